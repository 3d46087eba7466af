"""LibSVM text files: fast reading, and a slow second look that names the faulty line.

scikit-learn's parser is quick but takes truncated and empty files for good ones, and its errors do
not say where the fault is. When it fails, or when the result is wrong, `first_fault` reads the file
line by line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.data.table import canonical
from replifed.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_WHOLE = re.compile(rb"[+-]?[0-9]+")


def read(paths: Sequence[Path], counts: Counts) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Read one file: features in canonical form (see `table.canonical`), and labels as written.

    A column beyond ``counts.features`` is an error; without a number, the largest one is the last.
    """
    from sklearn.datasets import load_svmlight_file

    (path,) = paths
    try:
        with unpacked(path) as stream:
            X, y = load_svmlight_file(stream, n_features=counts.features, zero_based=False)
    except (ValueError, IndexError, OverflowError, TypeError) as error:
        raise DataError(first_fault(path, counts.features) or f"{path}: {error}") from error
    if X.shape[0] == 0:
        raise DataError(f"{path} is empty: it holds no line with data")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise DataError(first_fault(path, counts.features) or f"{path} holds a value that is not finite")
    return canonical(X), y


def first_fault(path: Path, features: int | None = None) -> str | None:
    """Name the first malformed line: file, number, the offending text and why; None if there is none."""
    number, line = 0, b"\n"
    try:
        with unpacked(path) as stream:
            for number, line in enumerate(stream, start=1):
                fault = _line_fault(line, features)
                if fault is not None:
                    text, reason = fault
                    return f"{path}, line {number}: {_quote(text)}: {reason}"
    except DataError as error:
        return f"{error} (after line {number})"
    if not line.endswith(b"\n"):
        return f"{path}, line {number}: {_quote(line)}: no line end here; the file may be truncated"
    return None


def _line_fault(line: bytes, features: int | None) -> tuple[bytes, str] | None:
    label, *pairs = line.split(b"#", 1)[0].split() or [b""]
    if not label:
        return line.strip(), "the line has no label"
    if b":" in label:
        return label, "the label is missing: the line starts with an index:value pair"
    if fault := _number_fault(label):
        return label, f"the label is not {fault}"
    previous = 0
    for pair in pairs:
        left, colon, right = pair.partition(b":")
        if not colon:
            return pair, "not an index:value pair"
        if not _WHOLE.fullmatch(left):
            return pair, "the index is not a whole number"
        index = int(left)
        if index < 1:
            return pair, "indices start at 1"
        if features is not None and index > features:
            return pair, f"the index is beyond the {features} features of this data set"
        if index == previous:
            return pair, "the index occurs twice in its line"
        if index < previous:
            return pair, f"the indices are not in ascending order ({index} after {previous})"
        previous = index
        if fault := _number_fault(right):
            return pair, f"the value is not {fault}"
    return None


def _number_fault(text: bytes) -> str:
    try:
        finite = math.isfinite(float(text))
    except ValueError:
        return "a number"
    return "a number" if b"_" in text else "" if finite else "finite"


def _quote(text: bytes, width: int = 60) -> str:
    shown = text.strip().decode("utf-8", errors="backslashreplace")
    return repr(shown if len(shown) <= width else shown[:width] + "...")
