"""Dictionaries, matrices (n, d) whose columns are atoms: sampling, learning, and matching pursuit."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def gaussian(rng: np.random.Generator, n: int, d: int) -> NDArray:
    """Return d atoms with independent entries N(0, 1/n), so that their norms are about one."""
    return rng.standard_normal((n, d)) / np.sqrt(n)


def small_space(atoms: NDArray) -> tuple[NDArray, NDArray]:
    """Factor atoms (n, d), n >= d, as Q R.

    Each combination of atoms is Q z, with z in R^d of the same norm and the columns of R as atoms, so that
    computations on combinations need d dimensions instead of n. R's diagonal is not negative.
    """
    q, r = np.linalg.qr(atoms)
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    return q * signs, r * signs[:, None]


def matching_pursuit(gram: NDArray, correlations: NDArray, k: int) -> NDArray:
    """Approximate vectors by at most `k` atoms each, by orthogonal matching pursuit.

    `gram` (d, d) are the inner products of unit atoms, `correlations` (n, d) those of each vector with them.

    Returns
    -------
    array, shape (n, d)
        Coefficients. Fewer than `k` are non-zero if the vector is matched earlier, or if all remaining atoms
        depend linearly on the selected ones.
    """
    # Imported here since it takes a second, and only dictionaries need it.
    from sklearn.linear_model import orthogonal_mp_gram

    coefficients = np.zeros_like(correlations)
    # A vector of zeros has no atoms at all.
    nonzero = np.flatnonzero(np.isfinite(correlations).all(axis=1) & (correlations != 0).any(axis=1))
    if nonzero.size:
        with warnings.catch_warnings():
            # It warns of dependent atoms and stops early, as it should.
            warnings.simplefilter("ignore", RuntimeWarning)
            fitted = orthogonal_mp_gram(
                gram, np.ascontiguousarray(correlations[nonzero].T), n_nonzero_coefs=int(k), copy_Xy=True
            )
        coefficients[nonzero] = fitted.T.reshape(len(nonzero), -1)
    coefficients[~np.isfinite(correlations).all(axis=1)] = np.inf
    return coefficients


class Learned(NamedTuple):
    """Outcome of K-SVD."""

    atoms: NDArray  # A, (n, d), of length one
    codes: NDArray  # C, (d, m), sparse coefficients of the training vectors
    errors: NDArray  # |Y - A C| / |Y| after each iteration


def ksvd(Y: NDArray, d: int, sparsity: int, iterations: int, rng: np.random.Generator) -> Learned:
    """Learn `d` atoms such that each column of Y (n, m) is close to a combination of `sparsity` of them.

    K-SVD (Aharon, Elad, Bruckstein 2006); `rng` selects the columns of Y that are the initial atoms. Every
    atom is a combination of columns of Y: if m < n, K-SVD runs on the m x m factor R of Y = Q R.
    """
    basis = None
    if Y.shape[0] > Y.shape[1]:
        basis, Y = small_space(Y)
    first = rng.choice(Y.shape[1], size=d, replace=d > Y.shape[1])
    atoms = Y[:, first] + 0.0
    lengths = np.linalg.norm(atoms, axis=0)
    atoms[:, lengths == 0] = rng.standard_normal((len(Y), np.count_nonzero(lengths == 0)))
    atoms /= np.linalg.norm(atoms, axis=0)
    codes = np.zeros((d, Y.shape[1]))
    errors = []
    for _ in range(iterations):
        coded = matching_pursuit(atoms.T @ atoms, Y.T @ atoms, sparsity).T
        # With the updated atoms a pursuit may do worse than the last codes: the better ones are used.
        better = np.linalg.norm(Y - atoms @ coded, axis=0) <= np.linalg.norm(Y - atoms @ codes, axis=0)
        codes = np.where(better, coded, codes)
        for j in range(d):
            _update_atom(Y, atoms, codes, j)
        errors.append(np.linalg.norm(Y - atoms @ codes) / np.linalg.norm(Y))
    return Learned(atoms if basis is None else basis @ atoms, codes, np.array(errors))


def _update_atom(Y: NDArray, atoms: NDArray, codes: NDArray, j: int) -> None:
    """Replace atom j and its coefficients, in place, by the best rank-one fit to the residual without it."""
    users = np.flatnonzero(codes[j])
    if not users.size:
        # An atom without users becomes the training vector with the largest residual.
        residual = Y - atoms @ codes
        worst = residual[:, np.argmax(np.einsum("ij,ij->j", residual, residual))]
        if np.linalg.norm(worst) > 0:
            atoms[:, j] = worst / np.linalg.norm(worst)
        return
    residual = Y[:, users] - atoms @ codes[:, users] + np.outer(atoms[:, j], codes[j, users])
    u, s, vt = np.linalg.svd(residual, full_matrices=False)
    sign = 1.0 if vt[0, np.argmax(np.abs(vt[0]))] >= 0 else -1.0
    atoms[:, j], codes[j, users] = sign * u[:, 0], sign * s[0] * vt[0]
