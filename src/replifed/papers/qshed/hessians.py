"""Errors of quantised Hessians of the devices, with equal bits that are allocated in several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.operators.bit_allocation import allocate, allocate_exactly, vectors_in_use
from replifed.operators.matrices import eigenpairs
from replifed.operators.quantise import draw_dither, quantise
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.qshed.experiments import Drawn
    from replifed.papers.qshed.settings import Experiment

# Vectors over which the even allocations spread the bits; two take all that they may have, as in NQ-SHED.
EVEN = (2, 4, 8, 16, 32)
ALLOCATIONS = {
    "heuristic": "Q-SHED's, with the heuristic q",
    "exact": "Q-SHED's, with the exact q",
    **{f"even_{m}": f"{m} vectors alike" for m in EVEN},
}
NAIVE = "even_2"
PLACES = {"start": "at the start", "minimum": "at the minimum"}


def even(n: int, vectors: int, budget: int, b_max: int) -> NDArray[np.int64]:
    """Bits of each of n vectors, if the first ones, n - 1 at most, share the budget alike, up to b_max each.

    >>> even(5, 3, 32, 16), even(3, 2, 64, 16)
    (array([11, 11, 10,  0,  0]), array([16, 16,  0]))
    """
    vectors = min(vectors, n - 1)  # rho is the eigenvalue of the next one
    each, more = divmod(budget, vectors)
    bits = np.where(np.arange(n) < vectors, each + (np.arange(n) < more), 0)
    return np.minimum(bits, b_max)


def allocations(values: NDArray, settings: Experiment) -> Iterator[tuple[str, NDArray]]:
    """Bits of each vector of new Hessians with eigenvalues (..., n), by the name of the allocation."""
    n, budget = values.shape[-1], np.array(settings.budget)
    none, fresh = np.zeros(values.shape[:-1], dtype=int), np.zeros(values.shape, dtype=int)
    arguments = values, none, fresh, np.broadcast_to(budget, none.shape), settings.b_max
    yield "heuristic", allocate(*arguments)
    yield "exact", allocate_exactly(*arguments)
    for m in EVEN:
        yield f"even_{m}", np.broadcast_to(even(n, m, settings.budget, settings.b_max), values.shape)


def squared_error(values: NDArray, vectors: NDArray, received: NDArray, q: NDArray) -> NDArray:
    """Squared Frobenius error of eq. (5), as a share of the Hessian's squared norm."""
    rho = np.take_along_axis(values, q[..., None], axis=-1)
    used = np.arange(values.shape[-1]) < q[..., None]
    lbar = np.where(used, values - rho, 0.0)
    exact, built = (
        np.matmul(one.swapaxes(-1, -2) * weights[..., None, :], one)
        for one, weights in ((vectors, values - rho), (received, lbar))
    )
    return ((exact - built) ** 2).sum(axis=(-2, -1)) / (values**2).sum(axis=-1)


def errors(settings: Experiment, drawn: Drawn, overloads: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Columns of each place, allocation and case, a line for each device of each repetition.

    Vectors are quantised with a dither that is subtracted; `overloads` says by case what becomes of
    coordinates that it takes beyond the range.
    """
    R, streams = len(drawn.replicates), Streams(settings.seed, drawn.replicates)
    points = {"start": np.zeros((R, drawn.problem.dim)), "minimum": minimiser(drawn.problem, R)}
    for place, x in points.items():
        values, vectors = eigenpairs(drawn.problem.client_hessians(x))
        shape = vectors.shape[1:]
        dither = streams.draw(f"dither {place}", partial(draw_dither, shape=shape))
        replicate, device = (axis.ravel() for axis in np.indices(values.shape[:2]))
        for (name, bits), (case, overload) in product(allocations(values, settings), overloads.items()):
            received = quantise(vectors, bits, dither, overload=overload)
            q = vectors_in_use(bits)
            yield {
                "replicate": np.array(drawn.replicates)[replicate],
                "case": case,
                "place": place,
                "device": device + 1,
                "allocation": name,
                "vectors": q.ravel(),
                "bits": bits.sum(axis=-1).ravel(),
                "error": squared_error(values, vectors, received, q).ravel(),
            }
