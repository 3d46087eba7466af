"""Dithered cells of a quantiser, as numbers that can be sent bit by bit (Dal Fabbro et al. 2023, eq. 19)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.operators.quantise import interval


def cells(v: NDArray, dither: NDArray, bits: NDArray) -> NDArray:
    """Number, from 0 to 2^b - 1, of the cell of each coordinate.

    `v` and `dither` are (q, n), and `bits` (q,) are b. Of a finer cell the first bits are the coarser cell.
    """
    shifted = _wrapped(v + dither)
    number = np.floor((shifted + 1.0) / interval(bits)[:, None])
    return np.clip(number, 0, 2.0 ** bits[:, None] - 1).astype(np.int64)


def midpoints(number: NDArray, dither: NDArray, bits: NDArray) -> NDArray:
    """What is received of vectors in these cells: midpoints less the dither; 0 without bits."""
    middle = (number + 0.5) * interval(bits)[:, None] - 1.0
    return np.where(bits[:, None] > 0, _wrapped(middle - dither), 0.0)


def _wrapped(w: NDArray) -> NDArray:
    """`w` modulo 2, in [-1, 1)."""
    return w - 2.0 * np.floor(0.5 * (w + 1.0))
