"""Manifest of a run: all files that it made and the data that it read, by the hashes that jobs recorded."""

from __future__ import annotations

import csv
import hashlib
import io
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from replifed.errors import DataError, counted
from replifed.store import hashes
from replifed.store.atomic import write_json, write_text
from replifed.store.environment import environment as surroundings
from replifed.store.hashes import Stored


def write(
    files: Iterable[str], out: Path, folders: Iterable[str] = (), environment: Path | None = None
) -> None:
    """Write the manifest of `files` and of all recorded files below `folders`, and the `environment` as JSON.

    Files are relative to the working folder; a folder may be absent, since generated data have no raw files.
    `out` is a CSV with one line per file, sorted by name; the last line begins with # and has the number of
    files and the hash of the lines before. Files that differ from their records, or have none, are a
    `DataError`.
    """
    names = {Path(file) for file in files} | _recorded(folders)
    if unknown := [file.as_posix() for file in sorted(names) if hashes.recorded(file) is None]:
        anew = hashes.snakemake("all", "--forceall") if len(unknown) > 1 else hashes.remake(Path(unknown[0]))
        raise DataError(
            f"{_and_more(unknown)}: no record of their hashes; an older version or someone else made them; "
            f"make them anew: `{anew}`"
        )
    hashes.check(sorted(names))
    if environment:
        write_json(environment, surroundings())
    write_text(out, _as_text(names))


def of_folders(folders: Iterable[str]) -> str:
    """Return a manifest of all recorded files below some folders, as `write` does, without a look at them."""
    return _as_text(_recorded(folders))


def _recorded(folders: Iterable[str]) -> set[Path]:
    return {file for folder in folders for file in _files(Path(folder)) if hashes.recorded(file)}


def _as_text(names: Iterable[Path]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*Stored._fields, "file"))
    for file in sorted(names):
        if stored := hashes.recorded(file):
            writer.writerow((*stored, file.as_posix()))
    return text.getvalue() + _seal(text.getvalue().encode())


def verify(manifest: Path, folders: Iterable[str] = ()) -> tuple[int, list[str]]:
    """Compare every file with the manifest and with what its job recorded.

    Without a manifest, which is an error, the records alone count. Files in the `folders` and in the
    manifest's folder must each have been made by a job. Returns the number of files, and a line for each that
    is missing, has changed or was made by no job, and one for all those whose records are gone.
    """
    listed, errors = _read(manifest) or {}, []
    found = {file for folder in folders for file in _files(Path(folder))} | {*_files(manifest.parent, "*")}
    if not listed or not hashes.recorded(manifest):
        found.discard(manifest)
    names = {*listed, *(file.as_posix() for file in found if listed or hashes.recorded(file))}
    if not listed:
        if not names and not manifest.exists():
            whole = hashes.snakemake("all")
            raise DataError(f"{manifest} does not exist; it is written at the end of `{whole}`")
        again = hashes.snakemake(manifest, "--force")
        why = "missing, altered, cut short, or of an older version: no file that is gone is known"
        errors.append(f"{manifest}: {why}; `{again}`")
    listed_or_it = (*map(Path, listed), *([manifest] if listed else []))
    if lost := [file for file in listed_or_it if file.is_file() and not hashes.recorded(file)]:
        anew = hashes.snakemake("all", "--forceall")
        errors.append(
            f"{_and_more(lost)}: no record of their hashes; copy the hidden folders {hashes.FOLDER}, too "
            f"(`cp -a`, `rsync -a`), or make all anew: `{anew}`"
        )
    errors += [error for name in sorted(names) if (error := _error(Path(name), listed.get(name), not lost))]
    return len(names), errors


def _and_more(files: Sequence[object]) -> str:
    """Return the first of some files, and how many follow it."""
    return f"{files[0]} and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else str(files[0])


def _error(file: Path, listed: Stored | None, records: bool) -> str | None:
    """Return the error of a file, if it has one; `records` says that those of the listed files are there."""
    if not file.is_file():
        return f"{file}: missing; `{hashes.remake(file)}`"
    made = hashes.recorded(file) or listed
    if made is None and not records:
        return f"{file}: neither listed nor recorded; no job made it, or its record is gone, too"
    if made is None:
        return f"{file}: extra, no job made it; `rm {shlex.quote(str(file))}`"
    now = hashes.measure(file)
    if now != made:
        before, after = (stored.sha256[:12] for stored in (made, now))
        return f"{file}: changed, sha256 is {after}..., was {before}...; `{hashes.remake(file)}`"
    if listed not in (None, now):
        return f"{file}: made anew since the manifest was written; `{hashes.snakemake('all')}`"
    return None


def replaced(manifest: bytes, contents: Mapping[str, bytes]) -> bytes:
    """A manifest with other contents of some of its files, sealed anew."""
    lines = manifest.rpartition(b"# ")[0].decode().splitlines(keepends=True)
    for place, line in enumerate(lines):
        file = line.rstrip("\n").split(",", 2)[2]
        if file in contents:
            content = contents[file]
            lines[place] = f"{hashlib.sha256(content).hexdigest()},{len(content)},{file}\n"
    text = "".join(lines)
    return (text + _seal(text.encode())).encode()


def joined(first: bytes, second: bytes, papers: Collection[str]) -> bytes:
    """The first of two manifests with the second's files of some papers, and of data, in place of its own."""
    lines = {}
    for place, manifest in enumerate((first, second)):
        for line in manifest.rpartition(b"# ")[0].decode().splitlines(keepends=True)[1:]:
            file = line.rstrip("\n").split(",", 2)[2]
            folder, of, *_ = Path(file).parts
            if folder == "data" or (of in papers) == (place == 1):
                lines[file] = line
    text = (
        ",".join((*Stored._fields, "file")) + "\n" + "".join(lines[file] for file in sorted(lines, key=Path))
    )
    return (text + _seal(text.encode())).encode()


def _seal(lines: bytes) -> str:
    rows = len(lines.splitlines()) - 1
    return f"# {rows} files, sha256 {hashlib.sha256(lines).hexdigest()}\n"


def is_sealed(manifest: bytes) -> bool:
    """Return whether the last line of a manifest has the number and the hash of those before."""
    lines, mark, end = manifest.rpartition(b"# ")
    return mark + end == _seal(lines).encode()


def _read(manifest: Path) -> dict[str, Stored] | None:
    """Return the files that a manifest lists; None if it is missing or damaged."""
    try:
        content = manifest.read_bytes()
    except OSError:
        return None
    if not is_sealed(content):
        return None
    rows = csv.DictReader(io.StringIO(content.rpartition(b"# ")[0].decode()))
    return {row["file"]: Stored(row["sha256"], int(row["bytes"])) for row in rows}


def _files(folder: Path, pattern: str = "**/*") -> Iterator[Path]:
    """Yield the files in a folder; of the hidden ones only those with a recorded hash."""
    for file in folder.glob(pattern):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and (not hidden or hashes.recorded(file)):
            yield file
