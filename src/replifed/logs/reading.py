"""The bytes of a log, unpacked and decoded, and the table in it with its numbers as numbers."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import numpy as np
import pandas as pd

from replifed.data.streams import unpacked
from replifed.errors import DataError
from replifed.logs import forms, unopened
from replifed.logs.files import EVENTS, PACKED, ending
from replifed.logs.texts import Table, check_lines
from replifed.logs.values import numbers_of
from replifed.store import limits

_COST = 32  # bytes of memory for each byte of text, at most
_BINARY = {".parquet": forms.parquet, ".npz": forms.npz, ".npy": forms.npy}
_CONTROL = re.compile("[\0-\x08\x0e-\x1f]")  # no text has them


def read(path: Path) -> Table:
    """Read the table in a log, whatever its form (`forms`), and whether packed or not.

    Raises
    ------
    DataError
        It is empty, damaged, too large, no log, of a form that is not opened, or was written to meanwhile.
    """
    many = limits.limit(limits.DEFAULT, "keep fewer lines or columns of it")
    with many, np.errstate(over="ignore", invalid="ignore"):  # of floats that are longer than those of tables
        frame, said = _read(path)
        if frame.empty:
            raise DataError(f"{path} has no line but its header")
        columns: list[pd.Series] = []
        done: dict[str, list[str]] = {}
        for place, name in enumerate(frame.columns):
            values, text = numbers_of(frame.iloc[:, place])
            columns.append(values)
            done[text] = [*done.get(text, []), str(name)]
        tidy = pd.concat(columns, axis=1).copy()  # else each further column costs a warning
        said = [*said, *(f"{', '.join(names)} read as {text}" for text, names in done.items() if text)]
        check_lines(path, len(frame))
        return Table(tidy, said)


def _read(path: Path) -> Table:
    try:
        before = path.stat()
        with path.open("rb") as stream:
            unopened.refuse(path, stream.read(16))
        limits.check(path, before.st_size, "reading it takes")
        if EVENTS in path.name:
            return forms.events(path)
        packed = path.suffix in PACKED
        content = _unpacked(path) if packed else path.read_bytes()
        after = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    grown = before.st_size != after.st_size or not (packed or len(content) == before.st_size)
    if grown or before.st_mtime_ns != after.st_mtime_ns:
        raise DataError(f"{path} changed while it was read; wait until its run has ended")
    if not content.strip():
        raise DataError(f"{path} is empty")
    kind = ending(path.name).removesuffix(path.suffix if packed else "")
    if kind in _BINARY:
        return _BINARY[kind](path, content)
    limits.check(path, _COST * len(content), "reading it takes")
    text, said = _decoded(path, content)
    table = forms.text(path, text)
    return table._replace(said=[*said, *table.said])


def _unpacked(path: Path) -> bytes:
    most = limits.most() // _COST
    with limits.limit(most, "keep fewer lines or columns of it"), unpacked(path) as stream:
        return stream.read()


def _decoded(path: Path, content: bytes) -> tuple[str, list[str]]:
    """Text in UTF-8, or in UTF-16 with its mark; else in Latin-1, which is said."""
    said: list[str] = []
    try:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = content.decode("utf-16")
        else:
            text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, said = content.decode("latin-1"), ["text in Latin-1"]
    if _CONTROL.search(text):
        raise DataError(
            f"{path} is no log: neither text in UTF-8, UTF-16 or Latin-1, nor a form by its name "
            f"({', '.join(_BINARY)}, *{EVENTS}*)"
        )
    return text, said
