"""The paper's synthetic data (Section 5.1), planted problems whose solution is known, and supports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.engine.simulate import Metric
from replifed.memory import aligned_empty
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, loss_named
from replifed.problems.shifted import ShiftedLinearModel
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import generator

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedht.settings import Biased, Planted, Simulation

Level = tuple[float, float]
# Coordinates in a word: whole numbers of so many bits are exact in double precision.
_BITS = 48
NAME = "support."


def simulation(settings: Simulation, level: Level, replicate: int) -> DenseLinearModel:
    """Simulation I (least squares) or II (logistic).

    Client i draws u_i ~ N(0.1, alpha) and B_i ~ N(0, beta), its own model x_i with entries ~ N(u_i, 1) on
    the first coordinates and zero elsewhere, its feature mean v_i ~ N(B_i, 1), features
    z_ij ~ N(v_i, diag(k^-1.2)) and offsets b_ij ~ N(u_i, 1). The score is z_ij' x_i + b_ij: the target of
    Simulation I; in Simulation II the highest scores of each client are labelled +1, the rest -1.

    The level is (alpha, beta), variances.
    """
    normal = _standard_normals(settings, replicate)
    means, y = _of_level(settings, level, normal)
    X = aligned_empty((1, *normal.z.shape), normal.z.dtype)
    np.add(normal.z, means[:, None], out=X[0])
    return DenseLinearModel(X, y[None], loss_named(settings.loss))


def simulations(settings: Simulation, levels: Sequence[Level], replicate: int) -> ShiftedLinearModel:
    """As `simulation`, of several levels as the sets of one problem, and a run for each."""
    normal = _standard_normals(settings, replicate)
    means, y = zip(*(_of_level(settings, level, normal) for level in levels), strict=True)
    loss = loss_named(settings.loss)
    return ShiftedLinearModel(normal.z[None], np.stack(means), np.stack(y), loss, range(len(levels)))


def _of_level(settings: Simulation, level: Level, normal: _StandardNormals) -> tuple[NDArray, NDArray]:
    """The means (N, d) of the clients' features, and the targets (N, m)."""
    (alpha, beta), dtype, k = level, normal.z.dtype, settings.planted
    u = 0.1 + np.sqrt(alpha) * normal.u
    B = np.sqrt(beta) * normal.B
    x = u + normal.x
    v = (B + normal.v).astype(dtype)
    score: NDArray = np.empty(normal.b.shape)
    for i, z in enumerate(normal.z):
        score[i] = (z[:, :k] + v[i, :k]) @ x[i] + u[i] + normal.b[i]
    if settings.loss == "least_squares":
        return v, score.astype(dtype)
    # The sigmoid is monotone, so its largest values are those of the score.
    negatives = score.shape[-1] - settings.positives
    threshold = np.partition(score, negatives, axis=-1)[:, negatives, None]
    return v, np.where(score >= threshold, 1.0, -1.0).astype(dtype)


class _StandardNormals(NamedTuple):
    """Centred random numbers of a simulation with unit variance, but z with variance diag(k^-1.2)."""

    u: NDArray
    B: NDArray
    x: NDArray
    v: NDArray
    z: NDArray
    b: NDArray


def _standard_normals(settings: Simulation, replicate: int) -> _StandardNormals:
    """Standard normal numbers, equal for all levels, which differ in alpha and beta alone."""
    N, m, d, k = shape = settings.clients, settings.samples, settings.features, settings.planted
    asked = (settings.seed, settings.loss, *shape, settings.dtype, replicate)
    if asked in _drawn:
        return _drawn[asked]
    _drawn.clear()  # first: there need not be room for both, 400 MB each in Simulation II
    rng = generator(settings.seed, replicate, None, f"data/{settings.loss}")
    drawn = _StandardNormals(
        u=rng.standard_normal((N, 1)),
        B=rng.standard_normal((N, 1)),
        x=rng.standard_normal((N, k)),
        v=rng.standard_normal((N, d)),
        z=aligned_empty((N, m, d), settings.dtype),
        b=np.empty((N, m)),
    )
    scale = (np.arange(1, d + 1) ** -0.6).astype(settings.dtype)
    for z, b in zip(drawn.z, drawn.b, strict=True):
        rng.standard_normal(out=z, dtype=z.dtype)
        z *= scale
        b[:] = rng.standard_normal(m)
    _drawn[asked] = drawn
    return drawn


# The last numbers drawn: drawing is most of the work.
_drawn: dict[tuple, _StandardNormals] = {}


def planted(settings: Planted, replicate: int) -> tuple[SparseLinearModel, NDArray, float]:
    """A noiseless regression with known solution whose condition number meets the theorems.

    Every client's Hessian is diagonal with entries between 1 and kappa, so that dense and restricted
    constants are known: rho = 1, l = kappa. Its samples, as many as features, are scaled unit vectors.

    Returns
    -------
    problem : SparseLinearModel
    x_star : array, shape (d,)
        The solution, with tau* non-zeros.
    variance : float
        sum_i p_i sigma_i^2, the variance of gradients of one sample, at zero. As there is no noise, it falls
        with the distance to the solution.
    """
    N, d = settings.clients, settings.features
    rng = generator(settings.seed, replicate, None, "data/planted")
    x_star, curvature = _solution_and_curvature(settings, rng)
    problem = _separable(curvature, np.tile(x_star, (N, 1)))
    # One sample in d has the gradient d c_j x*_j in coordinate j, where their mean is c_j x*_j.
    variance = (d - 1) * float(np.mean(((curvature * x_star) ** 2).sum(axis=1)))
    return problem, x_star, variance


def biased(settings: Biased, spread: float, replicate: int) -> tuple[SparseLinearModel, NDArray, NDArray]:
    """A noiseless regression with known solution at which the gradient of f is not zero.

    Hessians are as in `planted`. The minimiser of f has entries N(0, offset^2) off the solution's support.
    Clients' minimisers scatter around it, in all coordinates or on that support: N(0, spread), less the mean
    weighted by curvature. So neither the solution nor the gradient of f there depends on the spread. The
    scatter of each spread is drawn anew. With noise, samples come in pairs whose targets lie equally far to
    either side, so that minibatches alone are noisy.

    Returns
    -------
    problem : SparseLinearModel
    x_star : array, shape (d,)
        The best model with tau* non-zeros.
    curvature : array, shape (N, d)
        The diagonals of the clients' Hessians.
    """
    N, d = settings.clients, settings.features
    rng = generator(settings.seed, replicate, None, "data/biased")
    of_spread = generator(settings.seed, replicate, None, f"data/biased/spread {spread:g}")
    x_star, curvature = _solution_and_curvature(settings, rng)
    minimiser = np.where(x_star, x_star, settings.offset * rng.standard_normal(d))
    distance = of_spread.standard_normal((N, d))
    distance -= (curvature * distance).sum(axis=0) / curvature.sum(axis=0)
    if settings.differ == "support":
        distance *= x_star != 0
    return _separable(curvature, minimiser + np.sqrt(spread) * distance, settings.noise), x_star, curvature


def _solution_and_curvature(settings: Planted | Biased, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """A planted solution (d,), and diagonals (N, d) of Hessians."""
    N, d, k, kappa = settings.clients, settings.features, settings.planted, settings.condition
    x_star = np.zeros(d)
    support = rng.choice(d, k, replace=False)
    x_star[support] = rng.choice([-1.0, 1.0], k) * rng.uniform(1, 2, k)
    curvature = rng.uniform(1.0, kappa, (N, d))
    curvature[:, 0], curvature[:, -1] = 1.0, kappa  # attained, so that kappa is the condition number
    return x_star, curvature


def _separable(curvature: NDArray, minimisers: NDArray, noise: float = 0.0) -> SparseLinearModel:
    """f_i(x) = sum_j c_ij (x_j - a_ij)^2 / 2, the mean over d samples, one of which moves each coordinate.

    With noise over 2 d samples, two of which move it to a_ij + s and a_ij - s, where c_ij s = noise: the
    gradient of a minibatch of d of them has this noise in each coordinate, and that of who is drawn.
    """
    N, d = curvature.shape
    sides = np.array([1.0, -1.0] if noise else [0.0])
    shifted = minimisers[:, None] + sides[:, None] * (noise / curvature)[:, None]  # (N, 1 or 2, d)
    rows = np.broadcast_to(np.sqrt(d * curvature)[:, None], shifted.shape).ravel()
    columns, m = np.tile(np.arange(d), N * len(sides)), len(sides) * d
    X = sp.csr_array((rows, columns, np.arange(N * m + 1)), shape=(N * m, d))
    return SparseLinearModel(X, rows * shifted.ravel(), LeastSquares(), np.repeat(np.arange(N), m))


def support_words(dim: int) -> dict[str, Metric]:
    """Metrics of the server's model that together hold its support, a bit a coordinate."""
    return {f"{NAME}{first:05d}": partial(_word, first=first) for first in range(0, dim, _BITS)}


def _word(_: Any, seen: dict[str, NDArray], first: int) -> NDArray:
    kept = seen["server"][:, first : first + _BITS] != 0
    return kept @ 2.0 ** np.arange(kept.shape[1])


def supports(lines: pd.DataFrame, which: str = "") -> NDArray:
    """Supports of lines of a history, or those of a perturbed run, as a mask (lines, coordinates)."""
    end = f".{which}" if which else ""
    names = sorted(name for name in lines if name.startswith(NAME) and name.count(".") == 1)
    words = lines[[name + end for name in names]].to_numpy(np.float64)
    bits = words[..., None].astype(np.int64) >> np.arange(_BITS) & 1
    return bits.astype(bool).reshape(len(lines), -1)


def support_distance(one: NDArray, other: NDArray) -> NDArray:
    """Share of two supports' coordinates, counted in each, that the other lacks: 0 equal, 1 disjoint."""
    return (one ^ other).sum(axis=-1) / np.maximum(one.sum(axis=-1) + other.sum(axis=-1), 1)
