"""LibSVM text files: fast reading, and a slow second look that names the faulty line.

scikit-learn's parser is quick but takes truncated and empty files for good ones, and its errors do
not say where the fault is. When it fails, or when the caller finds the result wrong, `first_fault`
reads the file line by line.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replifed.data.content import canonical
from replifed.data.streams import BROKEN_STREAM, describe_broken, open_unpacked
from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

_WHOLE = re.compile(rb"[+-]?[0-9]+")


def read(
    path: Path, features: int | None = None, shown: str | None = None
) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Read a LibSVM file, plain or packed.

    Parameters
    ----------
    path : Path
        The file; ``.gz`` and ``.bz2`` are unpacked.
    features : int, optional
        Number of columns; a larger index in the file is an error. Default: the largest index.
    shown : str, optional
        What to call the file in error messages; default its path.

    Returns
    -------
    X : csr_matrix of float64, shape (rows, features)
        In canonical form.
    y : array of float64, shape (rows,)
        The labels as written.
    """
    from sklearn.datasets import load_svmlight_file

    shown = shown or str(path)
    try:
        with open_unpacked(path) as stream:
            X, y = load_svmlight_file(stream, n_features=features, dtype=np.float64, zero_based=False)
    except BROKEN_STREAM as error:
        raise DataError(describe_broken(path, shown, error)) from error
    except (ValueError, IndexError, OverflowError, TypeError) as error:
        raise DataError(first_fault(path, features, shown) or f"{shown}: {error}") from error
    if X.shape[0] == 0:
        raise DataError(f"{shown} is empty: it holds no line with data")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise DataError(first_fault(path, features, shown) or f"{shown} holds a value that is not finite")
    return canonical(X), y


def first_fault(path: Path, features: int | None = None, shown: str | None = None) -> str | None:
    """Describe the first malformed line of a LibSVM file.

    Parameters
    ----------
    path, features, shown
        As for `read`.

    Returns
    -------
    str or None
        File, line number, the offending text and what is wrong with it; None when all lines are
        well-formed.
    """
    shown = shown or str(path)
    number = 0
    line = b"\n"
    try:
        with open_unpacked(path) as stream:
            for number, line in enumerate(stream, start=1):
                fault = _line_fault(line, features)
                if fault is not None:
                    text, reason = fault
                    return f"{shown}, line {number}: {_quote(text)}: {reason}"
    except BROKEN_STREAM as error:
        return f"{describe_broken(path, shown, error)} (after line {number})"
    if not line.endswith(b"\n"):
        return f"{shown}, line {number}: {_quote(line)}: no line end here; the file may be truncated"
    return None


def _line_fault(line: bytes, features: int | None) -> tuple[bytes, str] | None:
    tokens = line.split(b"#", 1)[0].split()
    if not tokens:
        return line.strip(), "the line has no label"
    if b":" in tokens[0]:
        return tokens[0], "the label is missing: the line starts with an index:value pair"
    label = _number(tokens[0])
    if label is None:
        return tokens[0], "the label is not a number"
    if not math.isfinite(label):
        return tokens[0], "the label is not finite"
    previous = 0
    for token in tokens[1:]:
        left, colon, right = token.partition(b":")
        if not colon:
            return token, "not an index:value pair"
        if not _WHOLE.fullmatch(left):
            return token, "the index is not a whole number"
        index = int(left)
        if index < 1:
            return token, "indices start at 1"
        if features is not None and index > features:
            return token, f"the index is beyond the {features} features of this data set"
        if index == previous:
            return token, "the index occurs twice in its line"
        if index < previous:
            return token, f"the indices are not in ascending order ({index} after {previous})"
        previous = index
        value = _number(right)
        if value is None:
            return token, "the value is not a number"
        if not math.isfinite(value):
            return token, "the value is not finite"
    return None


def _number(text: bytes) -> float | None:
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def _quote(text: bytes, width: int = 60) -> str:
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= width else shown[:width] + "...")
