"""The Hessians that FedNL's server learns: whole matrices, or on sparse data their non-zeros alone.

Both do the same; `H` is an array whose layout only they know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.newton_type import averaged


class Matrices:
    """One matrix a device, (R, N, n, n).

    Parameters
    ----------
    problem : with the capability Hessian
    compress : callable
        C, of the matrices of all devices.
    """

    def __init__(self, problem, compress: Callable[[NDArray], Any]) -> None:
        self._problem, self._compress = problem, compress

    def zero(self, rows: int) -> NDArray:
        return np.zeros((rows, self._problem.n_clients, self._problem.dim, self._problem.dim))

    def whole(self, x: NDArray) -> tuple[NDArray, NDArray]:
        """The devices' Hessians at the server's models, and sum_i p_i H_i, shape (R, n, n)."""
        H = self._problem.client_hessians(x)
        return H, averaged(self._problem.weights, H)

    def learn(
        self, H: NDArray, x: NDArray, rate: NDArray, distances: bool
    ) -> tuple[NDArray, NDArray, NDArray | None]:
        """H_i + rate_i C(hess f_i(x) - H_i).

        Parameters
        ----------
        H : array
        x : array, shape (R, n)
        rate : array, shape (R, N)
        distances : bool
            Whether they are needed.

        Returns
        -------
        learned : array, as H
        change : array, shape (R, n, n)
            Of sum_i p_i H_i.
        distances : array, shape (R, N)
            |hess f_i(x) - H_i|_F.
        """
        difference, far = self._difference(H, x, distances)
        # Nothing is learned in rows that have diverged.
        sound = np.isfinite(difference).all(axis=(-2, -1), keepdims=True)
        difference = difference if sound.all() else np.where(sound, difference, 0.0)
        step = self._compress(difference)
        step *= rate[..., None, None]
        return H + step, averaged(self._problem.weights, step), far

    def _difference(self, H: NDArray, x: NDArray, distances: bool) -> tuple[NDArray, NDArray | None]:
        """hess f_i(x) - H_i, and its norm."""
        difference = self._problem.client_hessians(x)
        difference -= H
        return difference, np.linalg.norm(difference, axis=(-2, -1)) if distances else None


class EigenpairMatrices(Matrices):
    """One matrix a device, (R, N, n, n), that learns an eigenpair a round.

    Parameters
    ----------
    problem : with the capability Hessian
    compress : callable
        C: the matrices of all devices give values (R, N) and vectors (R, N, n), which may be NaN.
    """

    def learn(
        self, H: NDArray, x: NDArray, rate: NDArray, distances: bool
    ) -> tuple[NDArray, NDArray, NDArray | None]:
        difference, far = self._difference(H, x, distances)
        value, v = self._compress(difference)
        # Nothing is learned in rows that have diverged.
        sound = np.isfinite(value)
        v = np.where(sound[..., None], v, 0.0)
        scaled = (rate * np.where(sound, value, 0.0))[..., None] * v
        # The difference is needed no more; a device at a time, whose matrix stays in the cache.
        learned = difference
        for device in np.ndindex(value.shape):
            np.multiply(scaled[device][:, None], v[device], out=learned[device])
            learned[device] += H[device]
        change = np.matmul((self._problem.weights[..., None] * scaled).swapaxes(1, 2), v)
        return learned, change, far


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

    def whole(self, x: NDArray) -> tuple[NDArray, NDArray]:
        """See `Matrices`, as for `learn`."""
        # From nothing all entries are learned.
        everything = self._pattern.bounds[-1]
        return self._learn(everything, self.zero(len(x)), x, np.ones((len(x), self._problem.n_clients)))[:2]

    def learn(
        self, H: NDArray, x: NDArray, rate: NDArray, distances: bool
    ) -> tuple[NDArray, NDArray, NDArray]:
        return self._learn(self._entries, H, x, rate)

    def _learn(self, entries: int, H: NDArray, x: NDArray, rate: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        h, weights = self._problem.sample_curvatures(x), self._problem.weights[0]
        return self._pattern.learn_largest(h, self._problem.l2, H, entries, rate, weights)
