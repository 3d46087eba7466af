"""Why two runs may differ: other data, settings, sources, versions or processors; what one of them does not
record of these is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from replifed.runs.opened import Run
from replifed.store.histories import MACHINES, read_origin

# How two runs differ in their data, settings, sources, versions and processor: "" if they do not, None if one
# of them does not record it.
Found = Mapping[str, str | None]

_MACHINE = {
    "processor": "another processor",
    "blas": "other linear algebra",
    "features": "other instructions",
    "threads": "other threads",
    "system": "another system",
}
_STATED = 3  # changes of one kind


def in_words(found: Found) -> str:
    """Name what differs, or else what is the same, and what is unknown.

    >>> in_words({"data": "", "settings": "", "processor": None})
    'data and settings are the same; unknown: processor'
    >>> in_words({"data": "", "settings": "other settings: seed 1 against 2", "processor": None})
    'other settings: seed 1 against 2; unknown: processor'
    """
    same = [aspect for aspect, text in found.items() if text == ""]
    unknown = [aspect for aspect, text in found.items() if text is None]
    if not (said := differing(found)) and same:
        listed = " and ".join(filter(None, (", ".join(same[:-1]), same[-1])))
        said = f"{listed} {'is' if same == ['processor'] else 'are'} the same"
    return "; ".join(filter(None, (said, f"unknown: {', '.join(unknown)}" if unknown else "")))


def differing(found: Found) -> str:
    """Name what differs; "" if nothing is known to."""
    return "; ".join(filter(None, found.values()))


class Causes:
    """Causes for which two runs may differ, of their histories and of all that they have of a paper."""

    def __init__(self, a: Run, b: Run) -> None:
        self._runs = (a, b)
        self._settings = [run.entries("settings.json") for run in self._runs]
        self._raw_files = [_by_data_set(run.raw_files()) for run in self._runs]
        self.of_paper = cache(self._of_paper)

    def of_histories(self, paper: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Found:
        """Compare what two histories of a paper, or two searches, record."""
        machines = [
            one[MACHINES] if MACHINES in one else _in_list(run.environment(paper))
            for one, run in zip((a, b), self._runs, strict=True)
        ]
        return {
            "data": self._of_data(a.get("data"), b.get("data")),
            "settings": _other("settings", a.get("settings"), b.get("settings")),
            "sources": _other("sources", a.get("source"), b.get("source")),
            "versions": _other("versions", a.get("versions"), b.get("versions")),
            "processor": _other_machines(*machines),
        }

    def _of_paper(self, paper: str) -> Found:
        """Compare what two runs record of a paper as a whole, as of its tables and claims."""
        settings = [one.get(paper) for one in self._settings]
        data_sets = {name for one in settings if one for name in _data_sets(one)}
        environments = [run.environment(paper) for run in self._runs]
        return {
            "data": self._of_data_sets(data_sets) if any(settings) else None,
            "settings": _other("settings", *settings),
            "sources": _other_commits(*environments),
            "versions": _other("versions", *(_versions(run, paper) for run in self._runs)),
            "processor": _other_machines(*(_machines(run, paper) for run in self._runs)),
        }

    def _of_data(self, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> str | None:
        if a is None or b is None:
            return None
        content = [one.get("content_sha256") for one in (a, b)]
        if text := _other("data", *({**one, "content_sha256": None} for one in (a, b))):
            return text
        if "id" not in a:  # drawn here, by the settings
            return ""
        if all(content):
            return "" if content[0] == content[1] else f"other data: the samples of {a['id']} differ"
        return self._of_data_sets({a["id"]})

    def _of_data_sets(self, names: set[str]) -> str | None:
        """Compare the raw files of data sets, by their hashes."""
        ours, theirs = self._raw_files
        both = ours.keys() & theirs.keys() & names
        if changed := sorted(name for name in both if ours[name] != theirs[name]):
            return f"other data: the raw files of {', '.join(changed)} differ"
        # What neither lists was not read, where both list anything.
        used = names & (ours.keys() | theirs.keys()) if ours and theirs else names
        return "" if used <= both else None


def _by_data_set(raw_files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, digest in raw_files.items():
        found.setdefault(name.split("/")[0], {})[name] = digest
    return found


def _data_sets(section: Mapping[str, Any]) -> set[str]:
    return {one["dataset"] for one in section.get("experiments", {}).values() if "dataset" in one}


def _other(what: str, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> str | None:
    """Name what changed from `a` to `b`; None if there is not both."""
    if a is None or b is None:
        return None
    if what == "versions":  # of packages that both name
        a, b = ({key: one[key] for key in one if key in other} for one, other in ((a, b), (b, a)))
    changed = list(_changes(a, b))
    if what == "sources":
        changed = [one.partition(" ")[0] for one in changed]
    return f"other {what}: {_first(changed)}" if changed else ""


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


def _other_commits(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    """Compare the sources of two environments; None if one of them has none."""
    if not (a.get("sources") and b.get("sources")):
        return None
    if a["sources"] == b["sources"]:
        return ""
    commits = (f"commit {one.get('commit', 'unknown')}" for one in (a, b))
    return f"other sources: {' against '.join(commits)}"


def _versions(run: Run, paper: str) -> dict[str, Any] | None:
    """Return the versions that a run records of a paper, in its environment or in a history."""
    if one := run.environment(paper):
        return {"python": one.get("python"), **one.get("packages", {})}
    return next((meta["versions"] for meta in _histories(run, paper) if "versions" in meta), None)


def _machines(run: Run, paper: str) -> list[Mapping[str, Any]]:
    """Return the machines of a paper's histories, or that of its environment where none records any."""
    found = [meta[MACHINES] for meta in _histories(run, paper) if MACHINES in meta]
    return [one for machines in found for one in machines] if found else _in_list(run.environment(paper))


def _histories(run: Run, paper: str) -> Iterator[dict[str, Any]]:
    """Yield what a paper's histories record, but for damaged ones."""
    for name in run.of_kind(f"histories/{paper}"):
        try:
            yield read_origin(run.read(name))
        except (ValueError, TypeError, KeyError, OSError):
            continue


def _in_list(environment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [environment] if environment.get("processor") else []


def _other_machines(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> str | None:
    """Name what differs between the machines of two runs; None if one of them records none."""
    if not a or not b:
        return None
    values = {key: ([*_distinct(a, key)], [*_distinct(b, key)]) for key in _MACHINE}
    found = [key for key, (ours, theirs) in values.items() if set(ours) != set(theirs)]
    if "processor" in found:
        found = [key for key in found if key != "features"]  # which follow from it
    return "; ".join(
        f"{_MACHINE[key]}: {' against '.join(map(_listed, values[key]))}"
        if key in ("processor", "blas")
        else _MACHINE[key]
        for key in found
    )


def _distinct(machines: Sequence[Mapping[str, Any]], key: str) -> dict[str, None]:
    return dict.fromkeys(json.dumps(one.get(key), sort_keys=True) for one in machines)


def _listed(values: Sequence[str]) -> str:
    """Name values, each a text or a list of texts, as JSON."""
    found = (json.loads(one) for one in values)
    return ", ".join(", ".join(one) if isinstance(one, list) else str(one) for one in found)
