"""Orthogonal matching pursuit from a Gram matrix."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray


def matching_pursuit(gram: NDArray, correlations: NDArray, k: int) -> NDArray:
    """Approximate several vectors by at most `k` atoms each.

    Parameters
    ----------
    gram : array, shape (d, d)
        Inner products of unit atoms.
    correlations : array, shape (n, d)
        Inner products of each vector with the atoms.
    k : int

    Returns
    -------
    array, shape (n, d)
        Coefficients. Fewer than `k` are non-zero where the vector is reached earlier, or where no atom
        that is independent of the chosen ones is left.
    """
    # Imported here since it takes a second, and only dictionaries need it.
    from sklearn.linear_model import orthogonal_mp_gram

    coefficients = np.zeros_like(correlations)
    # A vector of zeros has no atoms at all.
    some = np.flatnonzero(np.isfinite(correlations).all(axis=1) & (correlations != 0).any(axis=1))
    if some.size:
        with warnings.catch_warnings():
            # It warns of dependent atoms, and then stops early, which is all that can be asked of it.
            warnings.simplefilter("ignore", RuntimeWarning)
            fitted = orthogonal_mp_gram(
                gram, np.ascontiguousarray(correlations[some].T), n_nonzero_coefs=int(k), copy_Xy=True
            )
        coefficients[some] = fitted.T.reshape(len(some), -1)
    coefficients[~np.isfinite(correlations).all(axis=1)] = np.inf
    return coefficients
