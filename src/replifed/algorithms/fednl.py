"""FedNL: the server learns the clients' Hessians from one compressed difference a round.

M. Safaryan, R. Islamov, X. Qian, P. Richtarik: FedNL: Making Newton-Type Methods Applicable to Federated
Learning, ICML 2022 (Algorithms 1 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, POSITIVE, Cohorts, Range, Round
from replifed.algorithms.newton_type import Direction, NewtonType, averaged, second_order, solve_runs
from replifed.errors import ConfigError
from replifed.network.ledger import BITS_PER_VALUE, sparse_bits
from replifed.network.messages import Counted, Sent
from replifed.operators.matrices import apply_inverse, leading_eigenpair, packed_size
from replifed.operators.quantise import draw_dither, quantise


class RankOne(NamedTuple):
    """Matrices c v v'."""

    values: NDArray  # (R, N), the c
    vectors: NDArray  # (R, N, n), the v

    def times(self, factors: NDArray) -> RankOne:
        """Product with `factors` (R, N), of which a zero makes zeros also of what is not finite."""
        kept = factors != 0
        return RankOne(
            np.where(kept, factors * self.values, 0.0), np.where(kept[..., None], self.vectors, 0.0)
        )

    def add_to(self, matrices: NDArray, mean: NDArray, weights: NDArray) -> None:
        """Add each to its client's matrix (R, N, n, n); to `mean` their sum with `weights` (1 or R, N)."""
        from replifed.kernels.symmetric import add_rank_one

        add_rank_one(self.values, self.vectors, matrices)
        weighted = (weights * self.values)[..., None] * self.vectors
        mean += np.matmul(weighted.swapaxes(-1, -2), self.vectors)


class Entries(NamedTuple):
    """Matrices with few entries below the diagonal or on it, and their mirror images."""

    values: NDArray  # (R, N, k)
    places: NDArray  # (R, N, k), n times row plus column

    def times(self, factors: NDArray) -> Entries:
        """See `RankOne.times`."""
        factors = factors[..., None]
        return Entries(np.where(factors != 0, factors * self.values, 0.0), self.places)

    def add_to(self, matrices: NDArray, mean: NDArray, weights: NDArray) -> None:
        """See `RankOne.add_to`."""
        from replifed.kernels.symmetric import add_entries

        weights = np.broadcast_to(weights, self.values.shape[:-1])
        add_entries(self.values, self.places, weights, matrices, mean)


def largest_entries(matrices: NDArray, k: int) -> Entries:
    """Top-k of the lower triangles of symmetric matrices (R, N, n, n).

    Ties go to the first entry, row by row.
    """
    from replifed.kernels.selection import largest_of_triangles

    *clients, n, _ = matrices.shape
    k = min(k, packed_size(n))
    values, places = np.zeros((*clients, k)), np.zeros((*clients, k), np.intp)
    largest_of_triangles(matrices.reshape(-1, n, n), values.reshape(-1, k), places.reshape(-1, k))
    return Entries(values, places)


def subtract(matrices: NDArray, others: NDArray) -> NDArray:
    """Frobenius norms (R, N) of the differences of symmetric matrices (R, N, n, n).

    The lower triangles of `matrices` become those of the differences. Their upper ones are left.
    """
    from replifed.kernels.symmetric import subtract_triangles

    norms = np.empty(matrices.shape[:2])
    subtract_triangles(matrices, others, norms)
    return norms


class Learned(NamedTuple):
    """State: the server's model, and its estimate of each client's Hessian."""

    x: NDArray  # (R, n)
    hessians: NDArray  # (R, N, n, n), the H_i^k
    mean: NDArray  # (R, n, n), H^k, the mean of the H_i^k


@dataclass(frozen=True, kw_only=True)
class FedNL(NewtonType):
    """H_i <- H_i + alpha C(hess f_i(x) - H_i), and a Newton step with the mean of the H_i.

    Parameters
    ----------
    compressor : C, the eigenpair of largest magnitude or the largest entries of the lower triangle.
    entries : k of "topk"; by default n.
    option : regularisation of the mean H: 1 projects it on the matrices with eigenvalues of at least mu,
        2 adds the mean of |hess f_i(x) - H_i|_F times the identity.
    alpha : step size of the learned Hessians.
    start : H_i^0; with "hessian" the clients send their whole Hessians in the first round.
    vector_bits : bits of a coordinate of an eigenvector at full quality, by default b_max; a client with a
        lower budget sends its gradient alone. With "topk" it is only this limit of the budget.
    quantised : with "rank1" such a client sends its eigenvector, too, dithered, with as many bits per
        coordinate as its budget allows.

    Notes
    -----
    `line_search` None with option 1 is the paper's Algorithm 1, with a search its Algorithm 3.
    """

    name: ClassVar = "fednl"
    look: ClassVar = ("green", "dots", "^")
    cohorts: ClassVar = Cohorts("has a variant for cohorts, FedNL-PP, which is not built here", form=False)

    compressor: Literal["rank1", "topk"] = "rank1"
    entries: Annotated[int | None, COUNT] = None
    option: Annotated[int, Range(1, 2, whole=True)] = 1
    alpha: Annotated[float, POSITIVE] = 1.0
    start: Literal["zero", "hessian"] = "zero"
    vector_bits: Annotated[int | None, Range(1, 52, whole=True)] = None
    quantised: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantised and self.compressor != "rank1":
            raise ConfigError("FedNL.quantised: for the compressor rank1 alone")
        if self.single_precision and (self.compressor != "rank1" or self.start != "zero"):
            raise ConfigError("FedNL.single_precision: for the compressor rank1 and start zero alone")

    @property
    def stochastic(self) -> bool:
        return self.quantised

    @property
    def _full_bits(self) -> int:
        """Bits of a coordinate of a vector at full quality."""
        return self.value_bits if self.vector_bits is None else self.vector_bits

    def init(self, problem, streams) -> Learned:
        R, N, n = len(streams), problem.n_clients, problem.dim
        x = np.zeros((R, n))
        H_i = problem.client_hessians(x) if self.start == "hessian" else np.zeros((R, N, n, n))
        return Learned(x, H_i, averaged(problem.weights, H_i))

    def direction(self, state: Learned, g: NDArray, problem, ctx: Round) -> Direction:
        x, H_i, H = state
        N, n = problem.n_clients, problem.dim
        budget = self.budget(ctx, problem, len(x))
        sends = budget >= (1 if self.quantised else self._full_bits)
        difference = problem.client_hessians(x)  # line 4
        l_i = subtract(difference, H_i)  # |hess f_i(x^k) - H_i^k|_F
        S_i = self._compress(difference, budget, ctx)  # line 5: S_i^k = C(hess f_i(x^k) - H_i^k)
        updated = sends & np.isfinite(l_i)  # not in runs that have diverged
        if not ctx.in_place:
            difference[:] = H_i  # in memory that is at hand, since it limits the speed of a round
            H_i = difference
        mean = H.copy()
        S_i.times(np.where(updated, self.alpha, 0.0)).add_to(H_i, mean, problem.weights)  # lines 6 and 10
        state = Learned(x, H_i, mean)
        if self.option == 1:
            p = -projected_solve(H, g, problem.strong_convexity().min(axis=1))  # line 11
        else:
            l = (problem.weights * self.sent(l_i)).sum(axis=1)  # noqa: E741
            p = -solve_runs(H, g, l)  # line 12
        sent = np.where(sends, self._message_bits(n, budget), 0).sum(axis=1)
        sent = sent + N * BITS_PER_VALUE * (self.option == 2)
        if ctx.t == 0 and self.start == "hessian":
            sent = sent + N * packed_size(n) * self.value_bits
        return Direction(state, p, sent, hessians=N)

    def _compress(self, difference: NDArray, budget: NDArray, ctx: Round) -> RankOne | Entries:
        """C of the symmetric matrices (R, N, n, n), as received from clients with the `budget` (R, N)."""
        if self.compressor == "topk":
            return largest_entries(difference, self.entries or difference.shape[-1])
        value, v = (self.sent(part) for part in leading_eigenpair(difference))
        if self.quantised:
            shape, bits = v.shape[1:], self._bits(budget)
            dither = ctx.streams.draw("dither", lambda rng: draw_dither(rng, shape))
            v = np.where((bits < self.b_max)[..., None], quantise(v, bits, dither), v)
        return RankOne(value, v)

    def _bits(self, budget: NDArray) -> NDArray:
        """Bits per coordinate of a vector from a client with the `budget`, (R, N)."""
        return np.where(budget < self._full_bits, np.minimum(budget, self.b_max), self._full_bits)

    def _message_bits(self, n: int, budget: NDArray) -> int | NDArray:
        """Bits of a compressed difference from clients with the `budget` (R, N) per coordinate."""
        if self.compressor == "rank1":
            return n * self._bits(budget) + BITS_PER_VALUE
        size = packed_size(n)
        return int(sparse_bits(min(self.entries or n, size), size, self.value_bits))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """An eigenpair, beside the gradient."""
        return second_order(r, r.c * (16 * r.D + 32))


def projected_solve(H: NDArray, g: NDArray, mu: NDArray) -> NDArray:
    """[H]_mu^{-1} g run by run, where [H]_mu is the nearest matrix with eigenvalues of at least mu (R,).

    NaN for runs that have diverged.
    """
    solution, mu = np.full(g.shape, np.nan), np.broadcast_to(mu, len(g))
    for run in np.flatnonzero(np.isfinite(H).all(axis=(-2, -1)) & np.isfinite(g).all(axis=-1)):
        solution[run] = apply_inverse(H[run], g[run], mu[run])
    return solution
