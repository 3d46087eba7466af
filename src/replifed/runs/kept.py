"""The reference run, which lies beside the code: what an accepted run came to, whole of it under 15 MB."""

from __future__ import annotations

import hashlib
import lzma
import tempfile
from collections.abc import Mapping
from pathlib import Path

from replifed.errors import DataError
from replifed.parts import COMPARED
from replifed.runs.archived import listed
from replifed.runs.opened import ABOUT, CLOSING, Run
from replifed.store.atomic import explained, write_text
from replifed.store.manifest import is_sealed, replaced
from replifed.store.provenance import canonical_json

LARGEST = 2 << 20  # bytes of a file
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
    with explained(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=".reference-") as made:
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
        earlier = Path(made, "old")
        try:
            if folder.exists():
                folder.rename(earlier)
            Path(made, "new").rename(folder)
        finally:
            if earlier.exists() and not folder.exists():
                earlier.rename(folder)
    return len(kept)


def restate(folder: Path, files: Mapping[str, str]) -> None:
    """Replace files of verdicts in the reference in a folder, and their lines in its manifest."""
    listed_as = {f"results/{name}": content.encode() for name, content in files.items()}
    manifest = replaced((folder / "manifest.csv").read_bytes(), listed_as)
    for name, content in {**files, "manifest.csv": manifest.decode()}.items():
        write_text(folder / name, content)


def _is_kept(name: str) -> bool:
    return name in _ENTRIES or name.startswith(("tables/", "tuned/", f"histories/{COMPARED}/"))


def faults(run: Run) -> list[str]:
    """Name the parts of the reference that are not as its manifest lists them, and those that it lacks."""
    digests = listed(run)
    unlisted = ("manifest.csv", "environment.json", "settings.json", ABOUT)
    found = [] if is_sealed(run.read("manifest.csv")) else ["manifest.csv: cut short or altered"]
    found += [
        f"{name}: not as the manifest lists it"
        for name in run.parts
        if name not in unlisted and hashlib.sha256(run.read(name)).hexdigest() != digests.get(name)
    ]
    expected = dict.fromkeys((*_ENTRIES, *filter(_is_kept, digests)))
    return [*found, *(f"{name}: missing" for name in expected if name not in run)]


def in_words(run: Run, paper: str = "") -> str:
    """Name the commit, the date and the machine of a run, or of a paper of it."""
    one = run.environment(paper)
    if not one:
        return "a run without a record of its environment"
    commit, date, python, processor = (
        one.get(key, "unknown") for key in ("commit", "date", "python", "processor")
    )
    return f"commit {commit}, {date}, Python {python}, {processor}"
