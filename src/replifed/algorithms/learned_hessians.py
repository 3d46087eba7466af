"""The Hessians that FedNL's server learns: whole matrices, or on sparse data the entries it has heard of.

Both do the same, each on a state of its own that has the server's model `x` and `mean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.newton_type import averaged
from replifed.problems.base import Listed


class LearnedMatrices(NamedTuple):
    """State: the server's model, and each device's Hessian as the server knows it.

    Attributes
    ----------
    x : array, shape (R, n)
    hessians : array, shape (R, N, n, n)
        H_i^t.
    mean : array, shape (R, n, n)
        H^t, the server's mean of the H_i^t.
    """

    x: NDArray
    hessians: NDArray
    mean: NDArray


class LearnedEntries(NamedTuple):
    """The same with what is other than zero in the H_i^t, as in `problems.base.Listed`.

    Attributes
    ----------
    x : array, shape (R, n)
    counts : int array, shape (R, N)
    places : int array, shape (R, N, C)
    values : array, shape (R, N, C)
    mean : array, shape (R, n, n)
    """

    x: NDArray
    counts: NDArray
    places: NDArray
    values: NDArray
    mean: NDArray

    @property
    def hessians(self) -> Listed:
        """H_i^t."""
        return Listed(self.counts, self.places, self.values)


Learned = LearnedMatrices | LearnedEntries


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

    def start(self, x: NDArray) -> LearnedMatrices:
        """At the models x, with H_i = 0."""
        shape = len(x), self._problem.n_clients, self._problem.dim, self._problem.dim
        return LearnedMatrices(x, np.zeros(shape), np.zeros((len(x), *shape[2:])))

    def start_with_hessians(self, x: NDArray) -> LearnedMatrices:
        """At the models x, with H_i = hess f_i(x)."""
        H = self._problem.client_hessians(x)
        return LearnedMatrices(x, H, averaged(self._problem.weights, H))

    def learn(
        self, state: LearnedMatrices, rate: NDArray, distances: bool
    ) -> tuple[LearnedMatrices, NDArray | None]:
        """H_i + rate_i C(hess f_i(x) - H_i).

        Parameters
        ----------
        state
        rate : array, shape (R, N)
        distances : bool
            Whether they are needed.

        Returns
        -------
        learned
            The state with these H_i and their mean.
        distances : array, shape (R, N), or None
            |hess f_i(x) - H_i|_F; at hand in any case where they cost nothing more.
        """
        difference, far = self._difference(state, distances)
        # Nothing is learned in rows that have diverged.
        sound = np.isfinite(difference).all(axis=(-2, -1), keepdims=True)
        difference = difference if sound.all() else np.where(sound, difference, 0.0)
        step = self._compress(difference)
        step *= rate[..., None, None]
        change = averaged(self._problem.weights, step)
        return state._replace(hessians=state.hessians + step, mean=state.mean + change), far

    def _difference(self, state: LearnedMatrices, distances: bool) -> tuple[NDArray, NDArray | None]:
        """hess f_i(x) - H_i, and its norm."""
        difference = self._problem.client_hessians(state.x)
        difference -= state.hessians
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
        self, state: LearnedMatrices, rate: NDArray, distances: bool
    ) -> tuple[LearnedMatrices, NDArray | None]:
        difference, far = self._difference(state, distances)
        value, v = self._compress(difference)
        # Nothing is learned in rows that have diverged.
        sound = np.isfinite(value)
        v = np.where(sound[..., None], v, 0.0)
        scaled = (rate * np.where(sound, value, 0.0))[..., None] * v
        # The difference is needed no more; a device at a time, whose matrix stays in the cache.
        learned = difference
        for device in np.ndindex(value.shape):
            np.multiply(scaled[device][:, None], v[device], out=learned[device])
            learned[device] += state.hessians[device]
        change = np.matmul((self._problem.weights[..., None] * scaled).swapaxes(1, 2), v)
        return state._replace(hessians=learned, mean=state.mean + change), far


class NonZeros:
    """The entries of all devices' Hessians that have been learned; C is top-k.

    On sparse data few entries can be other than zero, and of these a server hears a part: of each device k a
    round at most, mostly of the same again.

    Parameters
    ----------
    problem : with the capability SparseHessian
    entries : int
        k of top-k.
    """

    def __init__(self, problem, entries: int) -> None:
        self._problem, self._pattern, self._entries = problem, problem.hessian_pattern, entries

    def start(self, x: NDArray) -> LearnedEntries:
        """See `Matrices`, as for the others."""
        n = self._problem.dim
        return LearnedEntries(x, *self._pattern.none(len(x)), np.zeros((len(x), n, n)))

    def start_with_hessians(self, x: NDArray) -> LearnedEntries:
        # From nothing all entries are learned.
        everything = int(self._pattern.bounds[-1])
        return self._learn(everything, self.start(x), np.ones((len(x), self._problem.n_clients)))[0]

    def learn(self, state: LearnedEntries, rate: NDArray, distances: bool) -> tuple[LearnedEntries, NDArray]:
        return self._learn(self._entries, state, rate)

    def _learn(self, entries: int, state: LearnedEntries, rate: NDArray) -> tuple[LearnedEntries, NDArray]:
        h, weights = self._problem.sample_curvatures(state.x), self._problem.weights[0]
        # Nothing is learned in rows that have diverged; curvatures are bounded, so that their sum tells.
        rate = np.where(np.isfinite(h.sum(axis=1))[:, None], rate, 0.0)
        learned, mean, distances = self._pattern.learn_largest(
            h, self._problem.l2, state.hessians, state.mean, entries, rate, weights
        )
        return LearnedEntries(state.x, *learned, mean), distances
