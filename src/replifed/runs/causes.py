"""Why two runs may differ: other data, settings, sources, versions or processors, as far as they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from replifed.runs.opened import Run

UNKNOWN = "data, settings, sources, versions and processor are the same"
_MACHINE = {
    "processor": "another processor",
    "blas": "other linear algebra",
    "features": "other instructions",
    "threads": "other threads",
    "system": "another system",
}
_STATED = 3  # changes of one kind


def of_histories(a: Mapping[str, Any], b: Mapping[str, Any], elsewhere: str) -> str:
    """Name the causes that two histories record, then those that their runs do (`of_runs`)."""
    return "; ".join(filter(None, [*_recorded(a, b), elsewhere])) or UNKNOWN


def _recorded(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for what, key in (
        ("data", "data"),
        ("settings", "settings"),
        ("sources", "source"),
        ("versions", "versions"),
    ):
        changed = list(_changes(a.get(key, {}), b.get(key, {})))
        if changed and key == "source":
            changed = [one.partition(" ")[0] for one in changed]
        if changed:
            yield f"other {what}: {_first(changed)}"


def _first(changed: list[str]) -> str:
    more = f" and {len(changed) - _STATED} more" if len(changed) > _STATED else ""
    return f"{', '.join(changed[:_STATED])}{more}"


def _changes(a: Any, b: Any, name: str = "") -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _changes(a.get(key), b.get(key), f"{name}.{key}" if name else key)
    elif a != b:
        yield f"{name} {_short(a)} against {_short(b)}"


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def of_runs(a: Run, b: Run) -> str:
    """Name what differs between the machines of two runs; "" if nothing is known to."""
    ours, theirs = a.entries("environment.json"), b.entries("environment.json")
    if not (ours and theirs):
        return ""
    found = [key for key in _MACHINE if ours.get(key) != theirs.get(key)]
    if "processor" in found:
        found = [key for key in found if key != "features"]  # which follow from it
    return "; ".join(
        f"{_MACHINE[key]}: {_listed(ours.get(key))} against {_listed(theirs.get(key))}"
        if key in ("processor", "blas")
        else _MACHINE[key]
        for key in found
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def of_papers(a: Run, b: Run, papers: Iterable[str]) -> dict[str, str]:
    """Name by paper what the settings, versions and sources of two runs differ in.

    It may be the cause where no history of a paper says more, as in the reference.
    """
    environments = [run.entries("environment.json") for run in (a, b)]
    settings = [run.entries("settings.json") for run in (a, b)]
    shared = []
    if all(environments):
        ours, theirs = ({key: one.get(key) for key in ("python", "packages")} for one in environments)
        if versions := [text.removeprefix("packages.") for text in _changes(ours, theirs)]:
            shared.append(f"other versions: {_first(versions)}")
        if environments[0].get("sources") != environments[1].get("sources"):
            names = (f"commit {one.get('commit')}" for one in environments)
            shared.append(f"other sources: {' against '.join(names)}")
    found = {}
    for paper in papers:
        changed = list(_changes(settings[0].get(paper), settings[1].get(paper))) if all(settings) else []
        own = [f"other settings: {_first(changed)}"] if changed else []
        found[paper] = "; ".join([*own, *shared])
    return found


def of_data(a: Run, b: Run) -> dict[str, str]:
    """Name the data sets whose raw files differ by their hashes, by id."""
    ours, theirs = a.raw_files(), b.raw_files()
    both = {name.split("/")[0] for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    return {name: f"other data: the raw files of {name} differ" for name in sorted(both)}
