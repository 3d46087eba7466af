"""The reference run, which lies beside the code: what an accepted run came to, whole of it under 15 MB."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from replifed.claims import scores, tables
from replifed.claims.verdicts import COLUMNS as OF_CLAIMS
from replifed.errors import DataError
from replifed.parts import COMPARED
from replifed.runs.archived import listed
from replifed.runs.opened import ABOUT, CLOSING, Run
from replifed.store.atomic import explained, write_text
from replifed.store.manifest import is_sealed, joined, replaced
from replifed.store.provenance import canonical_json

LARGEST = 2 << 20  # bytes of a file
# Of folders in which a reference is made, beside it, and of a file that is locked meanwhile.
_MAKING, _LOCK = ".reference-", "lock"
_ENTRIES = (*CLOSING, "settings.json", ABOUT)


def write(run: Run, folder: Path) -> int:
    """Write a whole run as the reference, in the place of an earlier one; return the number of its files.

    Of the histories those of the comparison are kept, which others are compared with.

    Raises
    ------
    DataError
        A file would be too large, or what lies in its place is no reference.
    """
    if folder.exists() and not (folder / ABOUT).is_file():
        raise DataError(
            f"{folder} is no earlier reference: it has no {ABOUT}; remove it, or name another place"
        )
    kept = [name for name in run.parts if _is_kept(name)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with explained(folder), _making(folder) as made:
        for name in kept:
            content = run.read(name)
            if name == ABOUT:
                entries = {**run.entries(ABOUT), "histories": [COMPARED]}
                content = f"{canonical_json(entries)}\n".encode()
            file = Path(made, "new", name)
            if name.startswith("tables/"):
                file, content = file.with_name(f"{file.name}.xz"), lzma.compress(content, preset=9)
            if len(content) > LARGEST:
                raise DataError(
                    f"{name} takes {len(content)} bytes, above the {LARGEST} of a file of the reference"
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        earlier = Path(made, folder.name)
        try:
            if folder.exists():
                folder.rename(earlier)
            Path(made, "new").rename(folder)
        finally:
            if earlier.exists() and not folder.exists():
                earlier.rename(folder)
    return len(kept)


@contextlib.contextmanager
def _making(folder: Path) -> Iterator[str]:
    """Make a folder beside a reference that is locked while it is in use."""
    with (
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=_MAKING) as made,
        Path(made, _LOCK).open("w") as lock,
    ):
        _lock(lock)
        yield made


def _lock(file: TextIO) -> bool:
    """Lock a file until it is closed; False where another process has, or the system has no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def clean(folder: Path) -> None:
    """Remove what killed commands left beside a reference, and put back one that they had moved away."""
    for left in sorted(folder.absolute().parent.glob(f"{_MAKING}*/")):
        with explained(left), Path(left, _LOCK).open("w") as lock:
            if not _lock(lock):
                continue  # in use
            earlier = left / folder.name
            if earlier.is_dir() and not folder.exists():
                earlier.rename(folder)
            shutil.rmtree(left)


def renewed(earlier: Run, run: Run, papers: Collection[str]) -> Run:
    """Return the reference with some papers of another run in the place of its own.

    Of each, ``environment/PAPER.json`` says with what it was made; ``environment.json`` is of the others.
    """
    parts = {name: read for name, read in earlier.parts.items() if not _is_of(name, papers)}
    parts |= {name: read for name, read in run.parts.items() if _is_of(name, papers)}
    before, now = ([*one.rows("claims.csv")] for one in (earlier, run))
    rows = [
        row
        for paper in dict.fromkeys(row["paper"] for row in (*before, *now))
        for row in (now if paper in papers else before)
        if row["paper"] == paper
    ]
    stated = run.entries("settings.json")
    settings = earlier.entries("settings.json") | {paper: stated[paper] for paper in papers}
    entries = earlier.entries(ABOUT)
    entries["papers"] = [*dict.fromkeys((*entries["papers"], *papers))]
    texts = {
        "claims.csv": tables.as_text(OF_CLAIMS, rows),
        "statements.csv": tables.as_text(scores.COLUMNS, scores.statements(rows)),
        "settings.json": f"{canonical_json(settings)}\n",
        ABOUT: f"{canonical_json(entries)}\n",
    }
    manifest = joined(earlier.read("manifest.csv"), run.read("manifest.csv"), papers)
    contents = {name: text.encode() for name, text in texts.items()}
    contents["manifest.csv"] = replaced(manifest, {f"results/{name}": one for name, one in contents.items()})
    return Run(earlier.place, parts | {name: partial(bytes, one) for name, one in contents.items()})


def _is_of(part: str, papers: Collection[str]) -> bool:
    return "/" in part and Path(part).parts[1].removesuffix(".json") in papers


def restate(folder: Path, files: Mapping[str, str]) -> None:
    """Replace files of verdicts in the reference in a folder, and their lines in its manifest."""
    listed_as = {f"results/{name}": content.encode() for name, content in files.items()}
    manifest = replaced((folder / "manifest.csv").read_bytes(), listed_as)
    for name, content in {**files, "manifest.csv": manifest.decode()}.items():
        write_text(folder / name, content)


def _is_kept(name: str) -> bool:
    folders = ("environment/", "tables/", "tuned/", f"histories/{COMPARED}/")
    return name in _ENTRIES or name.startswith(folders)


def errors(run: Run) -> list[str]:
    """Name the parts of the reference that are not as its manifest lists them, and those that it lacks."""
    digests = listed(run)
    unlisted = ("manifest.csv", "environment.json", "settings.json", ABOUT, *run.of_kind("environment"))
    found = [] if is_sealed(run.read("manifest.csv")) else ["manifest.csv: cut short or altered"]
    found += [
        f"{name}: not as the manifest lists it"
        for name in run.parts
        if name not in unlisted and hashlib.sha256(run.read(name)).hexdigest() != digests.get(name)
    ]
    expected = dict.fromkeys((*_ENTRIES, *filter(_is_kept, digests)))
    return [*found, *(f"{name}: missing" for name in expected if name not in run)]


def in_words(run: Run, paper: str = "") -> str:
    """Name commit, date and machine of a run, or of a paper of it; of papers taken later, theirs."""
    newer = [Path(name).stem for name in run.of_kind("environment") if "environment.json" in run]
    if not newer or paper:
        return _made_by(run.environment(paper))
    older = {*run.entries(ABOUT)["papers"]} - {*newer}
    of_each: dict[str, list[str]] = {_made_by(run.environment()): []} if older else {}
    for one in newer:
        of_each.setdefault(in_words(run, one), []).append(one)
    return "; ".join(
        f"{', '.join(papers)}: {words}" if papers else words for words, papers in of_each.items()
    )


def _made_by(environment: Mapping[str, Any]) -> str:
    if not environment:
        return "a run without a record of its environment"
    names = ("commit", "date", "python", "processor")
    commit, date, python, processor = (environment.get(name, "unknown") for name in names)
    return f"commit {commit}, {date}, Python {python}, {processor}"
