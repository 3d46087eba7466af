"""Trials of parameters: one method on some data sets, and the searches that score parameters by its rates.

Two kinds of search. `common` finds one choice for all data sets, by their mean rate. `each` finds one for
every data set, by that set's rate alone; these searches advance side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.network.participation import FixedSize
from replifed.papers.fedplt.convergence import Costs, rate, traces
from replifed.papers.fedplt.data import regression
from replifed.papers.fedplt.methods import Cell, Moduli, build
from replifed.problems.minimiser import minimiser
from replifed.tune import Ask, Grid, Search, as_array, search, searching, side_by_side

Values = dict[str, NDArray]


class Trial:
    """Runs of one method on some data sets.

    Attributes
    ----------
    moduli : of each data set.
    costs : what the runs have used so far.
    """

    def __init__(self, method: str, settings: dict, replicates: tuple[int, ...], rounds: int) -> None:
        self.method, self.rounds, self.seed = method, rounds, settings["seed"]
        self.replicates = replicates
        self.problem = regression(settings, replicates)
        self.moduli = Moduli(*self.problem.common_mu_L())
        self.costs = Costs.none(len(replicates))
        self._solution = minimiser(self.problem, len(replicates))

    @property
    def used(self) -> list[int]:
        """The repetitions whose data sets were run."""
        return [name for name, runs in zip(self.replicates, self.costs.runs, strict=True) if runs]

    def errors(
        self, cell: Cell, values: Values, target: float = 1e-10, wanted: NDArray | None = None
    ) -> NDArray:
        """Relative errors (T, S, G) with parameters (S, G); NaN for runs that are not `wanted` (S, G)."""

        def make(points: NDArray, sets: NDArray) -> Any:
            moduli = Moduli(*(np.repeat(modulus[sets], len(points)) for modulus in self.moduli))
            chosen = {name: value[sets][:, points].ravel() for name, value in values.items()}
            return build(self.method, moduli, cell, chosen)

        return traces(
            make,
            self.problem,
            self.seed,
            self.replicates,
            next(iter(values.values())).shape[1] if values else 1,
            self.rounds,
            target=target,
            cohort=None if cell.cohort == cell.agents else FixedSize(cell.cohort),
            wanted=wanted,
            solution=self._solution,
            costs=self.costs,
        )

    def rates(self, cell: Cell, base: Values, multiples: NDArray, wanted: NDArray | None = None) -> NDArray:
        """Rates (S, G) at multiples (S or 1, G, P) of the parameters `base`, each of shape (S,)."""
        shape = len(self.replicates), multiples.shape[1]
        values = {
            name: one[:, None] * np.broadcast_to(multiples[..., place], shape)
            for place, (name, one) in enumerate(base.items())
        }
        return rate(self.errors(cell, values, wanted=wanted))


def around(centre: NDArray, ratio: float, reach: int, **more: Any) -> Grid:
    """A grid of `reach` points, by factors of `ratio`, on each side of the multiples `centre`."""
    factors = float(ratio) ** np.arange(-reach, reach + 1)
    return Grid(tuple(tuple(float(c) for c in one * factors) for one in centre), **more)


def common(trial: Trial, cell: Cell, base: Values, grid: Grid) -> Search:
    """Find the multiples of `base` with the least mean rate over all data sets."""

    def score(points: NDArray) -> NDArray:
        multiples = points.reshape(1, len(points), -1)
        return trial.rates(cell, base, multiples).mean(axis=0)

    return search(score, grid)


def each(trial: Trial, cell: Cell, base: Values, grid: Grid, sets: int | None = None) -> list[Search]:
    """Find every data set's multiples of `base` with the least rate on it; of the first `sets` only."""
    S = len(trial.replicates)

    def answer(asked: list[tuple[int, Ask]]) -> list[NDArray]:
        most = max(len(points) for _, (_, points) in asked)
        multiples, wanted = np.ones((S, most, len(base))), np.zeros((S, most), bool)
        for number, (_, points) in asked:
            multiples[number, : len(points)] = as_array(points).reshape(len(points), -1)
            wanted[number, : len(points)] = True
        found = trial.rates(cell, base, multiples, wanted)
        return [found[number, : len(points)] for number, (_, points) in asked]

    return side_by_side([searching(grid) for _ in range(S if sets is None else min(sets, S))], answer)
