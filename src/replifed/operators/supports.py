"""Supports as lists of indices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def padded_indices(support: NDArray) -> tuple[NDArray, NDArray]:
    """Turn supports (..., D), boolean, into lists of equal length.

    Returns
    -------
    columns : int array, shape (..., s)
        The support in increasing order, then zeros.
    real : boolean array, shape (..., s)
        Which entries of `columns` count.
    """
    D = support.shape[-1]
    which, column = np.divmod(np.flatnonzero(support), D)
    counts = np.bincount(which, minlength=support.size // D).reshape(support.shape[:-1])
    real = np.arange(max(counts.max(initial=0), 1)) < counts[..., None]
    columns = np.zeros(real.shape, dtype=np.intp)
    columns[real] = column
    return columns, real
