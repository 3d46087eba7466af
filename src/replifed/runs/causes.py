"""Why two runs may differ: other data, settings, sources, versions or processors, as far as they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replifed.runs.opened import Run

UNKNOWN = "data, settings, sources, versions and processor are the same"
_PROCESSOR = ("processor", "features", "blas", "threads", "system")


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
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            yield f"other {what}: {', '.join(changed[:3])}{more}"


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
    found = [key for key in _PROCESSOR if ours.get(key) != theirs.get(key)]
    if not found:
        return ""
    if "processor" in found or "blas" in found:
        names = [f"{one.get('processor')} ({', '.join(one.get('blas', ()))})" for one in (ours, theirs)]
        return f"another processor: {' against '.join(names)}"
    return f"other {', '.join(found)}"


def of_data(a: Run, b: Run) -> dict[str, str]:
    """Name the data sets whose raw files differ by their hashes, by id."""
    ours, theirs = a.raw_files(), b.raw_files()
    both = {name.split("/")[0] for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    return {name: f"other data: the raw files of {name} differ" for name in sorted(both)}
