"""The Hessians that FedNL's server learns: whole matrices, or on sparse data their non-zeros alone.

Both do the same; `H` and `difference` are arrays whose layout only they know.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.newton_type import averaged
from replifed.operators.stretches import largest_of_stretches


class Matrices:
    """One matrix a device, (R, N, n, n).

    Parameters
    ----------
    problem : with the capability Hessian
    compress : callable
        C, of the matrices of all devices.
    """

    def __init__(self, problem, compress: Callable[[NDArray], NDArray]) -> None:
        self._problem, self._compress = problem, compress

    def zero(self, rows: int) -> NDArray:
        return np.zeros((rows, self._problem.n_clients, self._problem.dim, self._problem.dim))

    def at(self, x: NDArray) -> NDArray:
        """The devices' Hessians at the server's models."""
        return self._problem.client_hessians(x)

    def mean(self, H: NDArray) -> NDArray:
        """sum_i p_i H_i, shape (R, n, n)."""
        return averaged(self._problem.weights, H)

    def distances(self, difference: NDArray) -> NDArray:
        """Frobenius norms, (R, N)."""
        return np.linalg.norm(difference, axis=(-2, -1))

    def learn(self, H: NDArray, difference: NDArray, alpha: float, heard: NDArray) -> NDArray:
        """H_i + alpha C(difference) of the devices that are `heard` (R, N)."""
        # Rows that have diverged would stop an eigensolver.
        sound = np.isfinite(difference).all(axis=(-2, -1), keepdims=True)
        difference = difference if sound.all() else np.where(sound, difference, 0.0)
        return H + np.where(heard, alpha, 0.0)[..., None, None] * self._compress(difference)


class NonZeros:
    """The entries of all devices' Hessians that can be other than zero, (R, E); C is top-k.

    Made of the device's Hessians, what is learned of them can be other than zero at the same entries alone.

    Parameters
    ----------
    problem : with the capability SparseHessian
    entries : int
        k of top-k.
    """

    def __init__(self, problem, entries: int) -> None:
        self._problem, self._pattern, self._entries = problem, problem.hessian_pattern, entries

    def zero(self, rows: int) -> NDArray:
        return np.zeros((rows, self._pattern.bounds[-1]))

    def at(self, x: NDArray) -> NDArray:
        """See `Matrices`, as for all that follows."""
        return self._problem.hessian_values(x)

    def mean(self, H: NDArray) -> NDArray:
        return self._pattern.mean(H, self._problem.weights[0])

    def distances(self, difference: NDArray) -> NDArray:
        return self._pattern.norms(difference)

    def learn(self, H: NDArray, difference: NDArray, alpha: float, heard: NDArray) -> NDArray:
        learned, bounds = H.copy(), self._pattern.bounds
        # Row by row, since each of them takes milliseconds.
        for known, change, rate in zip(learned, difference, np.where(heard, alpha, 0.0), strict=True):
            sent = largest_of_stretches(change, bounds, self._entries)
            of_each = np.diff(np.searchsorted(sent, bounds))
            known[sent] += np.repeat(rate, of_each) * change[sent]
        return learned
