"""Sparse tables in text files: LibSVM's, and MovieLens ratings.

scikit-learn's parser is quick, but it accepts truncated and empty files, and its errors have no line number.
If it fails, or if its result is wrong, `first_error` reads the file line by line.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.data.table import Stack, canonical
from replifed.errors import DataError
from replifed.store import limits

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MEMBER = "ratings.dat"
_WHOLE = re.compile(rb"[+-]?[0-9]+")
# What scikit-learn's parser takes for less than it is: an underscore for nothing, and qid for no feature.
_UNSURE = re.compile(rb"_|qid")
_BLOCK = 32 << 20  # bytes that are parsed at a time
_LONGEST = 128 << 20  # a line
# Bytes of models that every feature needs in any run: ten clients' at least.
_MODELS = 80
_DIGITS = 20  # of an index


def read_libsvm(
    paths: Sequence[Path], counts: Counts, *, ended: bool = False
) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Read one file: features in canonical form (see `table.canonical`), and labels as written.

    A column beyond ``counts.features`` is an error; without that number, the largest column is the last. If
    `ended`, a last line without a newline is an error, too: its last number may be truncated, which no other
    check finds.
    """
    from sklearn.datasets import load_svmlight_file

    (path,) = paths
    features = _most_features(counts)
    stack, labels, block = Stack(path), [], b"\n"

    def refuse(error: object) -> DataError:
        return DataError(first_error(path, counts.features) or f"{path}: {error}")

    with unpacked(path) as stream:
        for block in _whole_lines(stream, path):
            try:
                X, y = load_svmlight_file(io.BytesIO(block), zero_based=False)
            except (ValueError, IndexError, OverflowError, TypeError) as error:
                raise refuse(error) from error
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                raise refuse("holds a value that is not finite")
            if X.shape[1] > features:
                raise refuse(f"holds more than {features} features")
            if _UNSURE.search(block) and (wrong := first_error(path, counts.features)):
                raise DataError(wrong)
            stack.add(X, y)
            labels.append(y)
    if ended and not block.endswith(b"\n"):
        raise refuse("no line end after the last number")
    if stack.rows == 0:
        raise DataError(f"{path} is empty: it holds no line with data")
    return stack.whole(counts.features), np.concatenate(labels)


def _most_features(counts: Counts) -> int:
    return counts.features or limits.most() // _MODELS


def _whole_lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines."""
    rest = b""
    while block := stream.read(_BLOCK):
        lines, end, behind = block.rpartition(b"\n")
        if end:
            yield rest + lines + end
            rest = behind
        elif len(rest) > _LONGEST:
            raise DataError(f"{path}: a line is longer than {_LONGEST >> 20} MiB; correct its line ends")
        else:
            rest += block
    if rest:
        yield rest


def first_error(path: Path, features: int | None = None) -> str | None:
    """Return the first malformed line, as file, line number, text and reason, or None."""
    number, line = 0, b"\n"
    most = limits.most() // _MODELS
    try:
        with unpacked(path) as stream:
            for number, line in enumerate(stream, start=1):
                wrong = _line_error(line, features, most)
                if wrong is not None:
                    text, reason = wrong
                    return f"{path}, line {number}: {_quote(text)}: {reason}"
    except DataError as error:
        return f"{error} (after line {number})"
    if not line.endswith(b"\n"):
        return (
            f"{path}, line {number}: {_quote(line)}: no line end here, so the file may be truncated; "
            "add one if it is whole"
        )
    return None


def _line_error(line: bytes, features: int | None, most: int) -> tuple[bytes, str] | None:
    label, *pairs = line.split(b"#", 1)[0].split() or [b""]
    if not label:  # a blank line, or a comment
        return None
    if b":" in label:
        return label, "the label is missing: the line starts with an index:value pair"
    if error := _number_error(label):
        return label, f"the label is not {error}"
    previous = 0
    for pair in pairs:
        left, colon, right = pair.partition(b":")
        if not colon:
            return pair, "not an index:value pair"
        if left == b"qid":
            return pair, "queries are no features; remove them"
        if not _WHOLE.fullmatch(left):
            return pair, "the index is not a whole number"
        if len(left) > _DIGITS or (index := int(left)) > max(most, features or 0):
            return pair, f"the index is beyond {most} features, those of the limit; number them from 1 on"
        if index < 1:
            return pair, "indices start at 1"
        if features is not None and index > features:
            return pair, f"the index is beyond the {features} features of this data set"
        if index == previous:
            return pair, "the index occurs twice in its line"
        if index < previous:
            return pair, f"the indices are not in ascending order ({index} after {previous})"
        previous = index
        if error := _number_error(right):
            return pair, f"the value is not {error}"
    return None


def _number_error(text: bytes) -> str:
    try:
        finite = math.isfinite(float(text))
    except ValueError:
        return "a number"
    return "a number" if b"_" in text else "" if finite else "finite"


def _quote(text: bytes) -> str:
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= 60 else shown[:60] + "...")


def read_ratings(paths: Sequence[Path], counts: Counts) -> tuple[csr_matrix, NDArray]:
    """Read all ratings from a zip that holds a `ratings.dat`, or from such a file itself.

    A line is `user::film::rating`, with or without a time stamp at the end. Returns a sparse table of ratings
    (users, films) in the shape of `counts` (row u is user u + 1), and zeros (users,), since there are no
    labels.
    """
    from scipy.sparse import coo_matrix

    (path,) = paths
    users, films = counts.rows, counts.features
    assert users is not None and films is not None  # as the catalogue says of ratings
    blocks: list[NDArray] = []
    lines, columns = 0, 0
    with _ratings(path) as stream:
        for text in _whole_lines(stream, path):
            columns = columns or _columns(path, text)
            blocks.append(_whole_numbers(path, text, columns))
            lines += len(blocks[-1])
            if lines > users * films:
                raise DataError(
                    f"{path}: more than {users * films} ratings, of {users} users and {films} films"
                )
    if not blocks:
        raise DataError(f"{path} is empty: it holds no rating")
    user, film, rating = np.concatenate(blocks).T[:3]
    for name, numbers, most in (("user", user, users), ("film", film, films), ("rating", rating, 5)):
        if numbers.min() < 1 or numbers.max() > most:
            line = int(np.flatnonzero((numbers < 1) | (numbers > most))[0]) + 1
            raise DataError(f"{path}: line {line}: {name} {numbers[line - 1]} is not between 1 and {most}")
    X = coo_matrix((rating.astype(float), (user - 1, film - 1)), shape=(users, films)).tocsr()
    if X.nnz != lines:
        raise DataError(f"{path}: {lines - X.nnz} ratings occur twice")
    return canonical(X), np.zeros(users)


def _columns(path: Path, text: bytes) -> int:
    first, _, _ = text.partition(b"\n")
    columns = first.count(b"::") + 1
    if columns not in (3, 4):
        raise DataError(f"{path}: line 1 is not user::film::rating, with or without a time: {first[:60]!r}")
    return columns


def _whole_numbers(path: Path, text: bytes, columns: int) -> NDArray[np.int64]:
    """Return the numbers of whole lines, one row per line."""
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    try:
        values = np.array(text.replace(b"::", b" ").split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path}: not a file of whole numbers ({error})") from error
    if values.size != lines * columns:
        raise DataError(
            f"{path}: {lines} lines of {columns} numbers are expected, but {values.size} are held"
        )
    return values.reshape(lines, columns)


@contextmanager
def _ratings(path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".zip":
        with unpacked(path) as stream:
            yield stream
        return
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if Path(name).name == _MEMBER]
            if len(members) != 1:
                raise DataError(f"{path}: holds {len(members)} files called {_MEMBER} instead of one")
            with archive.open(members[0]) as member:
                yield limits.Reader(member, path)
    except DataError:
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(f"{path} is not a sound zip file: {error}") from error
