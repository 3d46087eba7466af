"""Dictionaries: matrices (n, d) whose columns, the atoms, combine to models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaussian(rng: np.random.Generator, n: int, d: int) -> NDArray:
    """Return d atoms with independent entries N(0, 1/n), so of length about one."""
    return rng.standard_normal((n, d)) / np.sqrt(n)


def small_space(atoms: NDArray) -> tuple[NDArray, NDArray]:
    """Factor atoms (n, d), n >= d, as Q R.

    What is a combination of atoms is Q z with z in R^d, of the same length; its atoms are the columns of R.
    Nothing that has to do with the atoms alone needs the n-dimensional space any more.

    Returns
    -------
    Q : array, shape (n, d), with orthonormal columns
    R : array, shape (d, d)
        Upper triangular, with a diagonal that is not negative.
    """
    q, r = np.linalg.qr(atoms)
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    return q * signs, r * signs[:, None]
