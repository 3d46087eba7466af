"""A run at one scale, wherever it lies: in the folders of the workflow, in an archive, or beside the code.

Its parts have the same names everywhere: ``claims.csv``, ``statements.csv``, ``not_claimed.csv``,
``manifest.csv``, ``environment.json``, ``settings.json``, ``histories/PAPER/EXPERIMENT/METHOD.parquet``,
``tuned/PAPER/EXPERIMENT/METHOD.json`` and ``tables/PAPER/ARTEFACT.csv``. Archives and the reference have
``run.json`` besides, which says so; in the reference, tables are packed (``.csv.xz``).
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from replifed.claims import reference as references
from replifed.claims import tables
from replifed.errors import DataError
from replifed.store import limits

SCHEMA = 1  # of `run.json`
ABOUT = "run.json"
CLOSING = ("claims.csv", "statements.csv", "not_claimed.csv", "manifest.csv", "environment.json")
# The folder that is meant where none is named.
REFERENCE = Path("reference")
# What a damaged file, or an archive that wants a password or another way of packing, may raise.
_UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)
# Columns without which nothing can be compared.
_COLUMNS = {
    "claims.csv": ("id", "paper", "data", "measured", "verdict"),
    "statements.csv": ("statement_id", "paper", "status"),
    "manifest.csv": ("sha256", "file"),
}


@dataclass(frozen=True)
class Run:
    """Parts of a run, by name; each is read when it is asked for."""

    place: str  # as the user knows it
    parts: Mapping[str, Callable[[], bytes]]

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def read(self, name: str) -> bytes:
        """Return the content of a part; one that is not there, or cannot be read, is a `DataError`."""
        if name not in self.parts:
            raise DataError(f"{self.place}: it has no {name}")
        try:
            return self.parts[name]()
        except _UNREADABLE as error:
            raise DataError(f"{self.place}: {name} is damaged: {error}") from error

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the lines of a CSV, every field as text."""
        try:
            reader = csv.DictReader(io.StringIO(self.read(name).decode(), newline=""), restval="")
            rows = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{self.place}: {name} is damaged: {error}") from error
        if lacking := [
            column for column in _COLUMNS.get(name, ()) if column not in (reader.fieldnames or ())
        ]:
            raise DataError(f"{self.place}: {name} is damaged: it has no column {lacking[0]}")
        for row in rows if name == "claims.csv" else ():
            if row["measured"] and not tables.is_number(row["measured"]):
                raise DataError(f"{self.place}: {name} is damaged: measured of {row['id']} is no number")
        return rows

    def entries(self, name: str) -> dict[str, Any]:
        """Return a JSON object; empty where the run has none of this name."""
        if name not in self:
            return {}
        try:
            found = json.loads(self.read(name))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.place}: {name} is damaged: {error}") from error
        if not isinstance(found, dict):
            raise DataError(f"{self.place}: {name} is damaged: it holds no entries")
        return found

    @property
    def verdicts_alone(self) -> bool:
        """True of references that are numbers and verdicts of claims alone."""
        return set(self.parts) == {"claims.csv"}

    def keeps(self, kind: str, paper: str) -> bool:
        """True if a run that is whole would have a paper's parts of a kind here."""
        papers = self.entries(ABOUT).get("histories")
        return not self.verdicts_alone and (kind != "histories" or papers is None or paper in papers)

    def raw_files(self) -> dict[str, str]:
        """Return the hashes of the raw files of data that the manifest lists, by "id/file"."""
        rows = self.rows("manifest.csv") if "manifest.csv" in self else []
        return {row["file"].partition("/raw/")[2]: row["sha256"] for row in rows if "/raw/" in row["file"]}

    def of_kind(self, kind: str) -> list[str]:
        """Return the names of all ``histories``, ``tuned`` or ``tables``, sorted."""
        return sorted(name for name in self.parts if name.startswith(f"{kind}/"))


def open_run(place: Path) -> Run:
    """Open an archive, the reference, a folder of results, or one in which the workflow ran; or a CSV of
    references (`claims.reference`), which has verdicts and numbers of claims alone.

    Raises
    ------
    DataError
        It is none of these, was written by a newer version, or is no sound archive.
    """
    if place.suffix == ".csv":
        return _references(place)
    if place.is_file():
        return _opened_archive(place)
    if (place / ABOUT).is_file():
        return _opened_packed(place)
    if not place.is_dir():
        raise DataError(f"{place} does not exist; give a folder of results, an archive, or the reference")
    if (place / "claims.csv").is_file() or (place / "manifest.csv").is_file():
        return of_folders(place, _figures_of(place))
    found = sorted(file.parent for end in ("", "[!.]*/") for file in place.glob(f"results/{end}manifest.csv"))
    if len(found) == 1:
        return of_folders(found[0], _figures_of(found[0]))
    if found:
        raise DataError(f"{place} holds {len(found)} runs; name one: {', '.join(map(str, found))}")
    raise DataError(f"{place} holds no run: there is no manifest.csv in it or in its results folder")


def of_folders(results: Path, figures: Path) -> Run:
    """Return the run in the workflow's folders; which files it has are those that lie there."""
    parts = {name: (results / name).read_bytes for name in CLOSING if (results / name).is_file()}
    for file in sorted(results.glob("*/*/*")):
        if file.name.startswith(".") or file.parent.name.startswith(".") or file.is_dir():
            continue
        name = file.relative_to(results).as_posix()
        if file.suffix == ".parquet":
            parts[f"histories/{name}"] = file.read_bytes
        elif file.name.endswith(".tuned.json"):
            parts[f"tuned/{name.removesuffix('.tuned.json')}.json"] = file.read_bytes
    papers = {name.split("/")[1] for name in parts if "/" in name}
    papers |= {file.parent.name for file in results.glob("*/claims.csv")}
    for file in sorted(figures.glob("*/*.csv")):
        if file.parent.name in papers:
            parts[f"tables/{file.parent.name}/{file.name}"] = file.read_bytes
    return Run(str(results), parts)


def _figures_of(results: Path) -> Path:
    """Folder of the figures of a run, as the workflow lays them: results/small has figures/small.

    Those of a paper that was judged by itself lie in its results.
    """
    if (inside := results / "figures").is_dir():
        return inside
    *before, last = results.absolute().parts
    for i, word in reversed(list(enumerate((*before, last)))):
        if word == "results":
            return Path(*before[:i], "figures", *(*before, last)[i + 1 :])
    return results.parent / "figures"


def _references(file: Path) -> Run:
    rows = tables.read(file, references.COLUMNS, "is no list of references")
    text = io.StringIO()
    writer = csv.DictWriter(text, ("paper", *references.COLUMNS))
    writer.writeheader()
    writer.writerows({"paper": row["id"].split(".")[0], **row} for row in rows)
    return Run(str(file), {"claims.csv": text.getvalue().encode})


def _opened_packed(folder: Path) -> Run:
    parts: dict[str, Callable[[], bytes]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            name = file.relative_to(folder).as_posix()
            if file.suffix == ".xz":
                parts[name.removesuffix(".xz")] = partial(_unpacked, file)
            else:
                parts[name] = file.read_bytes
    return _checked(Run(str(folder), parts))


def _unpacked(file: Path) -> bytes:
    with lzma.open(file) as stream, limits.Reader(stream, file) as limited:
        return limited.read()


def _opened_archive(file: Path) -> Run:
    try:
        archive = zipfile.ZipFile(file)
        members = archive.infolist()
    except _UNREADABLE as error:
        raise DataError(f"{file}: not an archive of a run: {error}") from error
    for member in members:
        path = PurePosixPath(member.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
            raise DataError(f"{file}: {member.filename!r} leaves its folder; nothing of it was read")
    limits.check(file, sum(member.file_size for member in members))
    parts = {member.filename: partial(archive.read, member) for member in members if not member.is_dir()}
    if len({member.filename for member in members}) < len(members):
        raise DataError(f"{file}: two of its files have the same name; nothing of it was read")
    return _checked(Run(str(file), parts))


def _checked(run: Run) -> Run:
    schema = run.entries(ABOUT).get("schema")
    if not isinstance(schema, int):
        raise DataError(
            f"{run.place}: not an archive of a run: it has no {ABOUT} with the number of its schema"
        )
    if schema > SCHEMA:
        version = run.entries(ABOUT).get("replifed", "of a newer version")
        raise DataError(
            f"{run.place}: written by replifed {version}, in schema {schema}; this one knows up to {SCHEMA}"
        )
    return run


def reference(folder: Path | None = None) -> Run:
    """Open the reference run: that of the working folder, of the checkout, or that which was installed."""
    for place in (folder,) if folder else _places():
        if (place / ABOUT).is_file():
            return _opened_packed(place)
    raise DataError(
        "there is no reference run here; `replifed claims accept --golden reference --file "
        "results/claims.csv` makes this folder's run one"
    )


def _places() -> Iterator[Path]:
    yield REFERENCE
    yield Path(__file__).parents[1] / REFERENCE  # a link in a checkout, a folder of its own in a wheel
