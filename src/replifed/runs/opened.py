"""A run at one scale, wherever it lies: in the folders of the workflow, in an archive, or beside the code.

Its parts have the same names everywhere: ``claims.csv``, ``statements.csv``, ``not_claimed.csv``,
``manifest.csv``, ``environment.json``, ``settings.json``, ``histories/PAPER/EXPERIMENT/METHOD.parquet``,
``tuned/PAPER/EXPERIMENT/METHOD.json``, ``tables/PAPER/ARTEFACT.csv`` and ``environment/PAPER.json``. Archives
and the reference have ``run.json`` besides, which says so; in the reference, tables are packed (``.csv.xz``).
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from replifed.claims import files, scores, tables
from replifed.claims import reference as references
from replifed.claims.files import own_files
from replifed.claims.verdicts import COLUMNS as OF_CLAIMS
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
    partial: frozenset[str] = frozenset()  # papers of which single claims or artefacts alone were made

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

    def environment(self, paper: str = "") -> dict[str, Any]:
        """Return what a paper was made with, or the whole run; empty where it is not recorded.

        Of a run whose papers were made one by one, that is what they have in common, and the last date.
        """
        if (own := f"environment/{paper}.json") in self:
            return self.entries(own)
        papers = [self.entries(name) for name in self.of_kind("environment")]
        if "environment.json" in self or paper or not papers:
            return self.entries("environment.json")
        first, *others = papers
        shared = {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
        return {**shared, "date": max(str(one.get("date")) for one in papers)}

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
        """Return the names of all ``histories``, ``tuned``, ``tables`` or ``environment``, sorted."""
        return sorted(name for name in self.parts if name.startswith(f"{kind}/"))


def open_run(place: Path, papers: Collection[str] | None = None) -> Run:
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
    if (place / "claims.csv").is_file() or _holds_run(place):
        return of_folders(place, _figures_of(place), papers)
    found = [folder for end in ("", "/[!.]*") for folder in sorted(place.glob(f"results{end}"))]
    found = [folder for folder in found if _holds_run(folder)]
    if len(found) == 1:
        return of_folders(found[0], _figures_of(found[0]), papers)
    if found:
        raise DataError(f"{place} holds {len(found)} runs; name one: {', '.join(map(str, found))}")
    raise DataError(
        f"{place} holds no run: neither it nor its results folder has a manifest.csv, or verdicts on a paper"
    )


def _holds_run(folder: Path) -> bool:
    """True of a folder of results with a whole run, or with papers that were judged one by one."""
    whole = ("manifest.csv", "statements.csv")
    return any((folder / name).is_file() for name in whole) or bool(own_files(folder))


def of_folders(
    results: Path, figures: Path, papers: Collection[str] | None = None, single: bool = False
) -> Run:
    """Return the run in the workflow's folders; which files it has are those that lie there.

    Own files of claims count of `papers`, by default of all; with `single` also claims that were measured
    alone, on papers that were not judged.
    """
    parts = {name: (results / name).read_bytes for name in CLOSING if (results / name).is_file()}
    for file in sorted(results.glob("*/*/*")):
        if file.name.startswith(".") or file.parent.name.startswith(".") or file.is_dir():
            continue
        name = file.relative_to(results).as_posix()
        if file.suffix == ".parquet":
            parts[f"histories/{name}"] = file.read_bytes
        elif file.name.endswith(".tuned.json"):
            parts[f"tuned/{name.removesuffix('.tuned.json')}.json"] = file.read_bytes
    made = {name.split("/")[1] for name in parts if "/" in name} | own_files(results).keys()
    for file in sorted(figures.glob("*/*.csv")):
        if file.parent.name in made:
            parts[f"tables/{file.parent.name}/{file.name}"] = file.read_bytes
    for paper in sorted(made):
        if (file := results / paper / "environment.json").is_file():
            parts[f"environment/{paper}.json"] = file.read_bytes
    parts |= _verdicts(results, papers)
    if "manifest.csv" in parts:
        return Run(str(results), parts)
    judged = {row["paper"] for row in Run("", parts).rows("claims.csv")} if "claims.csv" in parts else set()
    partly = frozenset(made - judged)
    alone = [file for paper in sorted(partly) for file in sorted((results / paper / "claims").glob("*.csv"))]
    if single and alone:
        rows = [*files.of_folder(results, papers), *(row for file in alone for row in files.read(file))]
        parts["claims.csv"] = partial(str.encode, tables.as_text(OF_CLAIMS, rows))
    return Run(str(results), parts, partly)


def _verdicts(results: Path, papers: Collection[str] | None) -> dict[str, Callable[[], bytes]]:
    """Return claims and statements, where the joint files are missing or older than a paper's own."""
    own = {name: file for name, file in own_files(results).items() if papers is None or name in papers}
    if not own or _are_joined(own, results / "claims.csv"):
        return {}
    rows = files.of_folder(results, papers)
    texts = {
        "claims.csv": tables.as_text(OF_CLAIMS, rows),
        "statements.csv": tables.as_text(scores.COLUMNS, scores.statements(rows)),
    }
    return {name: partial(str.encode, text) for name, text in texts.items()}


def _are_joined(own: Mapping[str, Path], joint: Path) -> bool:
    """True if the joint file of claims has the lines of the papers' own; all may be of another version."""
    if not joint.is_file():
        return False
    try:
        rows, *of_papers = (
            list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
            for file in (joint, *own.values())
        )
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return all(
        [row for row in rows if row.get("paper") == paper] == lines
        for paper, lines in zip(own, of_papers, strict=True)
    )


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
    return _checked(Run(str(file), members_of(file)))


def members_of(file: Path) -> dict[str, Callable[[], bytes]]:
    """Return the files of a zip by name, each read when it is asked for."""
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
    parts: dict[str, Callable[[], bytes]] = {
        member.filename: partial(archive.read, member) for member in members if not member.is_dir()
    }
    if len({member.filename for member in members}) < len(members):
        raise DataError(f"{file}: two of its files have the same name; nothing of it was read")
    return parts


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
