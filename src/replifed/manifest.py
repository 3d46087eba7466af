"""Hashes of everything that a run made and of the data it was made from."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path

from replifed.atomic import write_text
from replifed.data.streams import file_sha256
from replifed.errors import DataError

COLUMNS = ("sha256", "bytes", "file")


def write(
    files: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    folders: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write the manifest of `files` and of all files below `folders`.

    Parameters
    ----------
    files : iterable of path-like
        Relative to the working folder, as they will be looked for later.
    folders : iterable of path-like
        Taken without hidden files; generated data leave no raw files, so a folder may be absent.
    out : path-like
        A CSV with one line a file, sorted by name.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    names = {Path(file).as_posix() for file in files}
    for name in sorted(names.union(*(_below(Path(folder)) for folder in folders))):
        writer.writerow((file_sha256(Path(name)), Path(name).stat().st_size, name))
    write_text(out, text.getvalue())


def verify(manifest: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Hash again every file that a manifest names.

    Returns
    -------
    checked : int
    faults : list of str
        One line for each file that is missing or has changed.
    """
    if not Path(manifest).is_file():
        raise DataError(f"{os.fspath(manifest)} does not exist; it is written at the end of `snakemake all`")
    with Path(manifest).open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise DataError(f"{os.fspath(manifest)} is no manifest; delete it and run `snakemake all` again")
        rows = list(reader)
    faults = []
    for row in rows:
        if not Path(row["file"]).is_file():
            faults.append(f"{row['file']}: missing")
        elif (now := file_sha256(Path(row["file"]))) != row["sha256"]:
            faults.append(f"{row['file']}: changed, sha256 is {now[:12]}..., was {row['sha256'][:12]}...")
    return len(rows), faults


def _below(folder: Path) -> list[str]:
    found = (file for file in folder.rglob("*") if file.is_file())
    return [file.as_posix() for file in found if not any(part.startswith(".") for part in file.parts)]
