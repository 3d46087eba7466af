"""Search of parameters, as multiples of reference values, by the convergence rate that they give."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError

# A grid is moved outwards at most so often.
_MOST_EXTENSIONS = 8
# Rates closer than this are equal: more rounds would be needed to tell them apart.
_TIE = 1e-9


def common(
    rates: Callable[[NDArray], NDArray], dimensions: int, ratio: float, reach: int, refine: int
) -> dict[str, Any]:
    """Find the multiples with the least mean rate over all data sets.

    Parameters
    ----------
    rates : callable
        Maps multiples (G, dimensions) to rates (S, G), infinite for runs that diverge.
    dimensions : int
        Number of parameters.
    ratio : float
        Between neighbours on the first grid.
    reach : int
        Points of the first grid on each side of the reference values.
    refine : int
        Times that the grid is halved around the best point.

    Returns
    -------
    dict
        best : multiples, list; rate : mean over data sets; tried : every point with its mean rate.
        While the best point lies at an edge of what was tried, the grid is extended there.
    """
    found: dict[tuple[float, ...], float] = {}

    def try_out(exponents: list[tuple[float, ...]]) -> None:
        new = [point for point in dict.fromkeys(exponents) if point not in found]
        if new:
            means = np.mean(rates(ratio ** np.array(new)), axis=0)
            found.update(zip(new, means.tolist(), strict=True))

    def best() -> tuple[float, ...]:
        # Of equals, the one nearest to the reference.
        least = min(found.values())
        return min(
            (point for point, value in found.items() if value <= least + _TIE),
            key=lambda point: (sum(map(abs, point)), point),
        )

    try_out(list(itertools.product(range(-reach, reach + 1), repeat=dimensions)))
    if not np.isfinite(min(found.values())):
        raise ReplifedError("no point of the grid converges on all data sets")
    step = 1.0
    for _ in range(_MOST_EXTENSIONS):
        at = best()
        around = list(itertools.product(*((c - step, c, c + step) for c in at)))
        if all(point in found for point in around):
            break
        try_out(around)
    for _ in range(refine):
        step /= 2
        at = best()
        try_out(list(itertools.product(*((c - step, c, c + step) for c in at))))
    at = best()
    return {
        "best": [float(f"{ratio**c:.6g}") for c in at],
        "rate": found[at],
        "tried": [
            [*(float(f"{ratio**c:.6g}") for c in point), value if np.isfinite(value) else None]
            for point, value in sorted(found.items())
        ],
    }


def own(rates: Callable[[NDArray], NDArray], start: NDArray, ratios: tuple[float, ...]) -> NDArray:
    """Refine the multiples for each data set by itself.

    Parameters
    ----------
    rates : callable
        Maps multiples (S, G, dimensions), G points for each data set, to rates (S, G).
    start : array, shape (dimensions,)
    ratios : tuple of float
        For each in turn: the points around each data set's best, one such factor away in any direction,
        are tried.

    Returns
    -------
    array, shape (S, dimensions)
    """
    stencil = np.array(list(itertools.product((0, -1, 1), repeat=len(start))))
    best = start[None]
    for ratio in ratios:
        points = best[:, None] * ratio**stencil
        found = rates(points)
        rows = np.arange(len(found))
        best = np.broadcast_to(points, (len(found), *points.shape[1:]))[rows, np.argmin(found, axis=1)]
    return best


def on_grid(rates: Callable[[NDArray], NDArray], grid: NDArray, refine: int) -> NDArray:
    """Find each data set's best point of a one-dimensional geometric grid, refined.

    Parameters
    ----------
    rates : callable
        Maps values (S or 1, G) to rates (S, G).
    grid : array, shape (G,)
        Extended by a third wherever a data set's best point is at its edge.
    refine : int
        Times that the log-distance around each data set's best point is quartered.

    Returns
    -------
    array, shape (S,)
    """
    values = found = None
    wanted = np.sort(grid)
    ratio = (wanted[-1] / wanted[0]) ** (1 / (len(wanted) - 1))
    third = np.arange(1, max(len(grid) // 3, 1) + 1)
    for _ in range(_MOST_EXTENSIONS):
        new = rates(wanted[None])
        values = wanted if values is None else np.concatenate([values, wanted])
        found = new if found is None else np.concatenate([found, new], axis=1)
        at = values[found.argmin(axis=1)]
        wanted = np.concatenate(
            [
                values.min() * ratio**-third if (at == values.min()).any() else [],
                values.max() * ratio**third if (at == values.max()).any() else [],
            ]
        )
        if not len(wanted):
            break
    best, score = at, found.min(axis=1)
    for _ in range(refine):
        ratio **= 0.25
        points = best[:, None] * ratio ** np.array([-3, -2, -1, 1, 2, 3])
        new = rates(points)
        better = new.min(axis=1) < score
        best = np.where(better, points[np.arange(len(best)), new.argmin(axis=1)], best)
        score = np.minimum(score, new.min(axis=1))
    return best
