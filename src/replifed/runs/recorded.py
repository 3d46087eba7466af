"""Runs of a comparison that lie elsewhere: the folder in which it was made, a zip of it, or an archive."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from replifed.errors import DataError
from replifed.parts import COMPARE, COMPARED
from replifed.runs.opened import Run, members_of, open_run
from replifed.store.histories import read_history

# Folders below which runs of a comparison lie: its own, those that it shares, and those that it reused, also
# where a file made before calls these lent.
_SECTIONS = (COMPARE, COMPARED, "reused", "lent")
_PLACE = re.compile(
    rf"(?P<before>(?:.*/)?)(?P<section>{'|'.join(_SECTIONS)})/(?P<experiment>\w+)/"
    r"(?P<name>\w+\.parquet|\w+\.tuned\.json|\w+\.json|partition\.npz)"
)
# Folders of kinds of parts, in an archive.
_KINDS = ("histories/", "tuned/")
_SMALL = ("small", "tiny")


class Made(NamedTuple):
    """A run: the table of its history, and what it was made of."""

    frame: Any
    meta: dict[str, Any]


class Recorded:
    """Runs of a comparison by experiment and method; each is read when it is asked for."""

    def __init__(self, run: Run) -> None:
        self.place = run.place
        self._run = run
        self._parts: dict[tuple[str, str], str] = {}
        befores = set()
        for part in run.parts:
            if found := _PLACE.fullmatch(part):
                before = found["before"]
                for kind in _KINDS:
                    before = before.removesuffix(kind)
                befores.add(before)
                # What a comparison made itself comes before what it took.
                key = (found["experiment"], _named(found["name"]))
                if key not in self._parts or _rank(part) < _rank(self._parts[key]):
                    self._parts[key] = part
        if len(befores) > 1:
            places = ", ".join(sorted(before.rstrip("/") or "." for before in befores))
            raise DataError(f"{run.place} holds several runs; name one of its folders: {places}")
        if not any(name.endswith(".parquet") for _, name in self._parts):
            raise DataError(f"{run.place} holds no runs of a comparison; `replifed compare` makes them")
        (self._before,) = befores

    @property
    def scale(self) -> str:
        """The scale of the runs: as an archive says, or as the folder is called."""
        words = [*Path(self.place).parts, *self._before.split("/")]
        said = self._run.entries("run.json").get("scale")
        return str(said) if said else next((one for one in reversed(words) if one in _SMALL), "paper")

    def runs(self) -> Iterator[tuple[str, str]]:
        """Yield experiment and method of each run."""
        for experiment, name in sorted(self._parts):
            if name.endswith(".parquet"):
                yield experiment, name.removesuffix(".parquet")

    def content(self, experiment: str, name: str) -> bytes | None:
        """Return METHOD.parquet, METHOD.tuned.json or partition.npz of an experiment; None if it has none."""
        part = self._parts.get((experiment, name))
        return None if part is None else self._run.read(part)

    def run(self, experiment: str, method: str) -> Made | None:
        """Return a run; None if there is none. A damaged one is a `DataError`."""
        name = f"{method}.parquet"
        content = self.content(experiment, name)
        if content is None:
            return None
        return Made(*read_history(Path(self.place, experiment, name), content))

    def tuned(self, experiment: str, method: str) -> dict[str, Any]:
        """Return what the search of a method found; {} where there is none."""
        content = self.content(experiment, f"{method}.tuned.json")
        try:
            found = {} if content is None else json.loads(content)
            return found if "settings" in found.get("meta", {}) else {}
        except (ValueError, RecursionError, AttributeError, TypeError) as error:
            raise DataError(
                f"{self.place}: the search of {experiment}/{method} is damaged: {error}"
            ) from error

    def partitions(self, experiment: str) -> set[str]:
        """Return the hashes of the partition of an experiment, of its file or as a manifest lists it."""
        if (content := self.content(experiment, "partition.npz")) is not None:
            return {hashlib.sha256(content).hexdigest()}
        rows = self._run.rows("manifest.csv") if "manifest.csv" in self._run else ()
        ends = tuple(f"/{section}/{experiment}/partition.npz" for section in _SECTIONS)
        return {row["sha256"] for row in rows if row["file"].endswith(ends)}


def _named(name: str) -> str:
    return (
        name
        if name.endswith((".tuned.json", ".parquet", ".npz"))
        else f"{name.removesuffix('.json')}.tuned.json"
    )


def _rank(part: str) -> int:
    return next(rank for rank, section in enumerate(_SECTIONS) if f"{section}/" in part)


def open_recorded(place: Path) -> Recorded:
    """Open the runs of a comparison in a folder, or in a zip.

    Raises
    ------
    DataError
        There are none, or those of several runs.
    """
    if place.is_file():
        return Recorded(_opened_zip(place))
    if (place / "run.json").is_file():
        return Recorded(open_run(place))
    if not place.is_dir():
        raise DataError(
            f"{place} does not exist; give a folder in which a comparison was made, or an archive"
        )
    found: dict[str, Callable[[], bytes]] = {}
    for section in _SECTIONS:
        for before in ("", "*/", "*/*/"):
            for file in place.glob(f"{before}{section}/*/*"):
                name = file.relative_to(place).as_posix()
                if _PLACE.fullmatch(name) and file.is_file():
                    found[name] = file.read_bytes
    return Recorded(Run(str(place), found))


def _opened_zip(file: Path) -> Run:
    """Return the members of a zip: of an archive, or of a folder that was packed."""
    try:
        members = zipfile.ZipFile(file).namelist()
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: not an archive of a comparison: {error}") from error
    if "run.json" in members:
        return open_run(file)
    return Run(str(file), members_of(file))
