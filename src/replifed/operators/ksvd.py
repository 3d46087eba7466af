"""K-SVD (Aharon, Elad, Bruckstein 2006): a dictionary in which training vectors are sparse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.operators.dictionaries import small_space
from replifed.operators.omp import matching_pursuit


class Learned(NamedTuple):
    """Outcome of K-SVD."""

    atoms: NDArray  # A, (n, d), of length one
    codes: NDArray  # C, (d, m), sparse coefficients of the training vectors
    errors: NDArray  # |Y - A C| / |Y| after each iteration


def ksvd(Y: NDArray, d: int, sparsity: int, iterations: int, rng: np.random.Generator) -> Learned:
    """Learn `d` atoms such that each column of Y (n, m) is close to a combination of `sparsity` of them.

    `rng` chooses the columns, the training vectors, that are the first atoms.

    Notes
    -----
    Every atom is a combination of training vectors, so with m < n all work is done on the m x m factor
    of Y = Q R, never in R^n.
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
        # A pursuit may do worse than the last codes did, on the atoms as they are now: keep the better.
        better = np.linalg.norm(Y - atoms @ coded, axis=0) <= np.linalg.norm(Y - atoms @ codes, axis=0)
        codes = np.where(better, coded, codes)
        for j in range(d):
            _renew(Y, atoms, codes, j)
        errors.append(np.linalg.norm(Y - atoms @ codes) / np.linalg.norm(Y))
    return Learned(atoms if basis is None else basis @ atoms, codes, np.array(errors))


def _renew(Y: NDArray, atoms: NDArray, codes: NDArray, j: int) -> None:
    """Replace atom j and its coefficients, in place, by the best rank-one fit to what the others leave."""
    users = np.flatnonzero(codes[j])
    if not users.size:
        # Nobody uses it: it becomes the training vector that is worst described.
        left = Y - atoms @ codes
        worst = left[:, np.argmax(np.einsum("ij,ij->j", left, left))]
        if np.linalg.norm(worst) > 0:
            atoms[:, j] = worst / np.linalg.norm(worst)
        return
    left = Y[:, users] - atoms @ codes[:, users] + np.outer(atoms[:, j], codes[j, users])
    u, s, vt = np.linalg.svd(left, full_matrices=False)
    sign = 1.0 if vt[0, np.argmax(np.abs(vt[0]))] >= 0 else -1.0
    atoms[:, j], codes[j, users] = sign * u[:, 0], sign * s[0] * vt[0]
