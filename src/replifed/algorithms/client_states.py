"""States of clients: an array of all, or, of very many clients, only of those that were ever drawn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


def zeros(problem: Any, runs: int) -> Any:
    """Zeros for each client and run, (R, N, D); `Drawn` where the problem makes data on demand."""
    shape = (runs, problem.n_clients, problem.dim)
    return (
        Drawn(shape, problem.dtype)
        if getattr(problem, "on_demand", False)
        else np.zeros(shape, problem.dtype)
    )


def mean(states: Any) -> NDArray:
    """Mean over all N clients; of an array as a product, four times as fast as numpy's."""
    if isinstance(states, Drawn):
        return states.mean()
    N = states.shape[1]
    return np.matmul(np.full(N, 1 / N, states.dtype), states)


class Drawn:
    """Vectors of N clients, zero but for those of clients that were drawn, (R, N, D).

    It has what the methods and the engine do with an array of states; memory follows the clients drawn, and
    four bytes a client.
    """

    ndim = 3

    def __init__(self, shape: tuple[int, int, int], dtype: DTypeLike) -> None:
        self.shape = shape
        runs, N, D = shape
        self._row = np.zeros(
            (runs, N), np.int32
        )  # of each client in `_rows`; row 0 is of those not yet drawn
        self._rows = np.zeros((runs, 1, D), dtype)
        self._used = np.ones(runs, np.int64)  # rows of each run, with row 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, runs: Any) -> Self:
        """Part of some runs, given as a mask or as indices."""
        return self._with(self._row[runs], self._rows[runs], self._used[runs])

    def copy(self) -> Self:
        return self._with(self._row.copy(), self._rows.copy(), self._used.copy())

    def _with(self, row: NDArray, rows: NDArray, used: NDArray) -> Self:
        made = object.__new__(type(self))
        made.shape = (len(row), *self.shape[1:])
        made._row, made._rows, made._used = row, rows, used
        return made

    def take(self, index: NDArray) -> NDArray:
        """Vectors of the clients `index` (R or 1, c), (R, c, D)."""
        run = np.arange(len(self))[:, None]
        return self._rows[run, self._row[run, index]]

    def put(self, index: NDArray, new: NDArray) -> None:
        """Set the vectors of the clients `index` (R or 1, c), each there once, to `new` (R, c, D)."""
        run, index = np.arange(len(self))[:, None], np.broadcast_to(index, new.shape[:2])
        fresh = self._row[run, index] == 0
        number = self._used[:, None] + fresh.cumsum(axis=1) - 1
        self._row[run, index] = np.where(fresh, number, self._row[run, index])
        self._used = self._used + fresh.sum(axis=1)
        if (most := int(self._used.max())) > (held := self._rows.shape[1]):
            more = max(most, 2 * held) - held
            self._rows = np.pad(self._rows, ((0, 0), (0, more), (0, 0)))
        self._rows[run, self._row[run, index]] = new

    def mean(self) -> NDArray:
        """Mean over all N clients, (R, D)."""
        return self._rows.sum(axis=1) / self.shape[1]

    def replaced(self, runs: NDArray, by: Self | None) -> Self:
        """Vectors with those of `by`, or zeros, in the mask `runs` (R,)."""
        other = type(self)(self.shape, self._rows.dtype) if by is None else by
        most = max(self._rows.shape[1], other._rows.shape[1])
        rows = [np.pad(one._rows, ((0, 0), (0, most - one._rows.shape[1]), (0, 0))) for one in (self, other)]
        return self._with(
            np.where(runs[:, None], other._row, self._row),
            np.where(runs[:, None, None], rows[1], rows[0]),
            np.where(runs, other._used, self._used),
        )
