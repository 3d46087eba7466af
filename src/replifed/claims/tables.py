"""CSV files with a fixed list of columns, every field as text."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replifed.errors import REMEDY, DataError
from replifed.store import limits
from replifed.store.atomic import write_text


def is_number(text: str) -> bool:
    """Return whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(
    path: str | os.PathLike[str], columns: Sequence[str], refusal: str, added: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Read the rows of a file; one with other columns is an error that says `refusal`.

    Of the columns those `added` may be lacking, as in files of older versions, and are empty then.
    """
    line = 0
    try:
        limits.check_text(path)
        with Path(path).open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names, rows = tuple(reader.fieldnames or ()), []
            for row in reader:
                line = reader.line_num
                rows.append(row)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        why = "not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise DataError(f"{os.fspath(path)} is damaged behind line {line}: {why}; {REMEDY}") from error
    if names not in (tuple(columns), tuple(name for name in columns if name not in added)):
        shown = f"columns {', '.join(names)}; expected {', '.join(columns)}"
        raise DataError(f"{os.fspath(path)} {refusal} ({shown})")
    if any(None in row or None in row.values() for row in rows):
        raise DataError(f"{os.fspath(path)} is damaged: a line has too few or too many fields")
    return [dict.fromkeys(columns, "") | row for row in rows] if added else rows


def rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a file, whatever its columns are, as of a file of an older version."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as a file, whole or not at all."""
    write_text(path, as_text(columns, rows))


def as_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as the content of a file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
