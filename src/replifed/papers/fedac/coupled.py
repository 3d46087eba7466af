"""Runs of many settings on the same random numbers, side by side.

All methods, steps eta and numbers K of local steps of one seed and one M see the same numbers: the start, and
the sample of every worker at every step. All methods of the paper are two coupled sequences: FedAvg is FedAc
with gamma = eta and beta = 1, whose second sequence is the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fedac import coupling
from replifed.papers.fedac.paper import VARIANTS
from replifed.randomness import Streams

# Calls of the authors' generator are joined to this number of steps, so that its results, of 64 bits, stay
# small.
_STEPS = 512
# Number of runs computed at once; runs are padded to a multiple of it.
_WIDTH = 8


class Numbers(NamedTuple):
    """Random numbers of a run."""

    start: NDArray  # (D,), standard normal
    samples: NDArray  # int32 (T, M), of n


def draw(source: str, stream: int, seed: int, dim: int, n: int, steps: int, workers: int) -> Numbers:
    """Draw from the "authors'" generator, or from the library's streams ("own").

    Parameters
    ----------
    stream : the seed of all streams of the paper, which the authors' generator does not use.
    seed : the run's; theirs is 1 in all published runs.
    dim, n, steps, workers : D, number of samples, T and M.
    """
    if source == "authors":
        return _authors(seed, dim, n, steps, workers)
    streams = Streams(stream, (seed,))
    start = streams.draw("start", lambda rng: rng.standard_normal(dim))[0]
    shape = steps, workers
    samples = streams.draw("samples", lambda rng: rng.integers(n, size=shape, dtype=np.int32))[0]
    return Numbers(start, samples)


def _authors(seed: int, dim: int, n: int, steps: int, workers: int) -> Numbers:
    """numpy's legacy generator: D standard normals, then `choice(n, M)` at each step.

    Calls of M indices and of a multiple of M continue one stream alike. After the last record a run draws
    once more, which changes no number.
    """
    rng = np.random.RandomState(seed)
    start = rng.standard_normal(dim)
    samples = np.empty((steps, workers), np.int32)
    for first in range(0, steps, _STEPS):
        part = samples[first : first + _STEPS]
        part[:] = rng.choice(n, part.shape, replace=True)
    return Numbers(start, samples)


class Constants(NamedTuple):
    """Constants of the coupled sequences of L runs; arrays (L,)."""

    eta: NDArray
    gamma: NDArray
    alpha: NDArray
    beta: NDArray

    @property
    def from_w(self) -> NDArray:
        """Weight of w where the gradient is taken."""
        return 1 / self.beta

    def matrix(self, l2: float) -> NDArray:
        """Linear map (2, 2, L) of (w, w_ag) in a step, where the sample has no feature."""
        md = np.stack([self.from_w, 1 - self.from_w])
        w = (1 / self.alpha - self.gamma * l2) * md
        w[0] += 1 - 1 / self.alpha
        return np.stack([w, (1 - self.eta * l2) * md])

    def padded(self) -> Constants:
        """With the last run repeated."""
        more = -len(self.eta) % _WIDTH
        return Constants(*(np.concatenate([one, np.repeat(one[-1:], more)]) for one in self))


def constants_of(variant: str, eta: NDArray, l2: float, K: int) -> Constants:
    """Constants of a method, by its name in `paper.VARIANTS`, at steps `eta` (L,)."""
    eta = np.asarray(eta, float)
    if (kind := VARIANTS[variant].coupling) is None:
        return Constants(eta, eta, np.full(len(eta), np.inf), np.ones(len(eta)))
    return Constants(eta, *coupling(kind, eta, l2, K))


def joined(several: Sequence[Constants]) -> Constants:
    """Put the runs of several methods side by side."""
    return Constants(*map(np.concatenate, zip(*several, strict=True)))


@dataclass(frozen=True)
class Logistic:
    """F(w) = mean log(1 + exp(-y x'w)) + l2 / 2 |w|^2 on a table whose labels are classes by their sign."""

    table: Any
    l2: float

    @cached_property
    def arrays(self) -> tuple[NDArray, ...]:
        """CSR features and labels -1 and 1, as kernels take them."""
        from scipy.sparse import csr_matrix

        X = csr_matrix(self.table.X)
        y = np.where(self.table.y > 0, 1.0, -1.0)
        return X.data.astype(float), X.indices.astype(np.int32), X.indptr.astype(np.int32), y

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.table.y)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.table.X.shape[1]

    def loss(self, models: NDArray) -> NDArray:
        """F (L,) at models (D, L)."""
        from replifed.kernels.coupled import logistic_means

        means = np.empty(models.shape[1])
        logistic_means(*self.arrays, np.ascontiguousarray(models), means)
        return means + self.l2 / 2 * (models**2).sum(axis=0)

    @cached_property
    def minimum(self) -> float:
        """The minimum of F, by Newton's method."""
        import scipy.sparse as sp

        from replifed.problems.losses import loss_named
        from replifed.problems.minimiser import minimiser
        from replifed.problems.sparse import SparseLinearModel

        y, X = self.arrays[3], sp.csr_array(self.table.X, dtype=float)
        problem = SparseLinearModel(X, y, loss_named("logistic"), np.zeros(self.n, int), l2=self.l2)
        return float(problem.loss(minimiser(problem, 1))[0])


def objectives(
    problem: Logistic,
    variant_kind: str,
    constants: Constants,
    start: NDArray,
    numbers: Numbers,
    K: int,
    every: int,
) -> NDArray:
    """F at steps 0, `every`, 2 `every`, ..., T of the server's output, (records, L).

    Parameters
    ----------
    variant_kind : "local", or "minibatch": one step for every K.
    start : (L, D), of both sequences.
    every : steps between two records, a multiple of K, which divides T.
    """
    from replifed.kernels.coupled import local_rounds, minibatch_rounds

    L, padded = len(constants.eta), constants.padded()
    start = np.concatenate([start, np.repeat(start[-1:], len(padded.eta) - L, axis=0)])
    server = np.repeat(start.T[:, None], 2, axis=1)  # (D, 2, L and padding), contiguous
    powers = _powers(padded.matrix(problem.l2), K if variant_kind == "local" else 1)
    weights = padded.from_w, padded.eta, padded.gamma
    records = [problem.loss(server[:, 1])[:L]]
    for begin in range(0, len(numbers.samples), every):
        samples = numbers.samples[begin : begin + every]
        if variant_kind == "local":
            local_rounds(*problem.arrays, samples, powers, *weights, server)
        else:
            minibatch_rounds(*problem.arrays, samples, K, powers, *weights, server)
        records.append(problem.loss(server[:, 1])[:L])
    return np.stack(records)


def _powers(matrix: NDArray, most: int) -> NDArray:
    """Powers 0 to `most` of matrices (2, 2, L), as (most + 1, 4, L)."""
    powers = [np.broadcast_to(np.eye(2)[..., None], matrix.shape)]
    for _ in range(most):
        powers.append(np.einsum("abl,bcl->acl", matrix, powers[-1]))
    return np.stack(powers).reshape(most + 1, 4, -1)
