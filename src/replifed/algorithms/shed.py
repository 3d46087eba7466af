"""SHED, Q-SHED, NQ-SHED and ideal-SHED: Hessian eigenvectors, sent bit by bit.

N. Dal Fabbro, M. Rossi, L. Schenato, S. Dey: Q-SHED: Distributed Optimization at the Edge via Hessian
Eigenvectors Quantization, arXiv 2305.10852, 2023 (Algorithm 1); SHED is arXiv 2202.05800 by the same authors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, Round
from replifed.algorithms.newton_type import Direction, NewtonType, second_order, solve_runs
from replifed.errors import ConfigError
from replifed.network.ledger import BITS_PER_VALUE
from replifed.network.messages import Counted, Sent
from replifed.operators.bit_allocation import allocate, allocate_exactly, vectors_in_use
from replifed.operators.matrices import eigenpairs
from replifed.operators.quantise import draw_dither, quantise_grown, refine

RENEWALS = ("fibonacci", "fibonacci_numbers", "once")


def renews(renewals: str | int, t: int) -> bool:
    """Return True if round t = 1, 2, ... belongs to I, the rounds with new Hessians.

    `renewals` is "fibonacci" (gaps of 1, 2, 3, 5, 8, ...), "fibonacci_numbers", "once" (I = {1}), or a
    period P (I = {1, 1 + P, 1 + 2 P, ...}).

    >>> [t for t in range(1, 60) if renews("fibonacci", t)]
    [1, 2, 4, 7, 12, 20, 33, 54]
    >>> [t for t in range(1, 60) if renews("fibonacci_numbers", t)]
    [1, 2, 3, 5, 8, 13, 21, 34, 55]
    >>> [t for t in range(1, 30) if renews(10, t)]
    [1, 11, 21]
    """
    if renewals == "once":
        return t == 1
    if not isinstance(renewals, str):
        return (t - 1) % renewals == 0
    a, b, renewal = 1, 2, 1
    while renewal < t:
        renewal = renewal + a if renewals == "fibonacci" else b
        a, b = b, a + b
    return renewal == t


class SharedEigenpairs(NamedTuple):
    """State: the server's model, and eigenpairs of each client's last Hessian, exact and as received."""

    x: NDArray  # (R, n)
    values: NDArray  # (R, N, n), eigenvalues lambda_1 >= ... >= lambda_n
    vectors: NDArray  # (R, N, n, n); row i is v_i
    received: NDArray  # (R, N, k, n), the first k at the server, if they are quantised
    dither: NDArray  # (R, N, n, n), dither of each vector, if there is one
    bits: NDArray  # int (R, N, n), bits per coordinate of each vector sent so far
    q: NDArray  # int (R, N), vectors in use


def _more(r: Counted, name: str) -> Any:
    """How much a count of the clients has grown in a round, from nothing where Hessians are new."""
    before, after = (
        one.reshape(len(one), -1).sum(axis=1) for one in (getattr(r.before, name), getattr(r.after, name))
    )
    return after - before * (not r.renewed)


def _eigenvalues(r: Counted) -> Any:
    """Bits of one with each vector, and of each client's next one (rho), which is new with new Hessians."""
    return 32 * (_more(r, "q") + r.c * r.renewed)


@dataclass(frozen=True, kw_only=True)
class Shed(NewtonType):
    """SHED: in each round, sends as many further eigenvectors as the budget allows, unquantised.

    Parameters
    ----------
    renewals : I, the rounds in which Hessians are computed anew; see `renews`.
    """

    name: ClassVar = "shed"
    label: ClassVar = "SHED"
    look: ClassVar = ("wine", "long", "^")

    renewals: str | int = "fibonacci"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.renewals not in RENEWALS and (isinstance(self.renewals, str) or self.renewals not in COUNT):
            raise ConfigError(
                f"{type(self).__name__}.renewals = {self.renewals!r}: must be a period or one of "
                f"{', '.join(RENEWALS)}"
            )

    def init(self, problem, streams) -> SharedEigenpairs:
        R, N, n = len(streams), problem.n_clients, problem.dim
        # Round 1 renews all of them.
        x, values, empty = np.zeros((R, n)), np.zeros((R, N, n)), np.zeros((R, N, 0, n))
        bits, q = np.zeros((R, N, n), dtype=np.int64), np.zeros((R, N), dtype=np.int64)
        return SharedEigenpairs(x, values, empty, empty, empty, bits, q)

    def direction(self, state: SharedEigenpairs, g: NDArray, problem, ctx: Round) -> Direction:
        N, n, t = problem.n_clients, problem.dim, ctx.t + 1
        renewed = renews(self.renewals, t)  # line 7
        if renewed:
            state = self._renew(state, problem, ctx)  # lines 8-11
        B = self.budget(ctx, problem, len(g))
        bits = self.allocate(state, B)  # lines 13-15
        q = vectors_in_use(bits)  # line 16, eq. (23)
        received = self.send(state, bits, int(q.max()), ctx)  # line 18
        values = self.sent(state.values)
        rho = np.take_along_axis(values, q[..., None], axis=-1)[..., 0]  # line 17
        H = aggregate(values, self.read(received), q, rho, problem.weights)  # lines 24-25, eq. (22)
        p = -solve_runs(H, g)
        # Line 19: bits of the vectors, new eigenvalues, rho. The first was the last round's rho, unless
        # Hessians are new.
        scalars = (q - state.q + renewed).sum(axis=1)
        sent = n * self.vector_bits(state.bits, bits) + BITS_PER_VALUE * scalars
        stored = received if self.quantises else state.received
        # `NewtonType.round` has lines 4 (stop), 12 (gradient), 26 (line search), 27 (update), 28 (broadcast).
        return Direction(state._replace(received=stored, bits=bits, q=q), p, sent, hessians=N * renewed)

    def _renew(self, state: SharedEigenpairs, problem, ctx: Round) -> SharedEigenpairs:
        """State with new Hessians, before any of their eigenvectors is sent."""
        values, vectors = eigenpairs(problem.client_hessians(state.x))
        dither = empty = vectors[:, :, :0]
        if self.quantises:
            # Sampled for all vectors, so that it does not depend on the number sent, here or in other runs.
            shape = vectors.shape[1:]
            dither = ctx.streams.draw("dither", lambda rng: draw_dither(rng, shape))
        dither = np.broadcast_to(dither, (len(vectors), *dither.shape[1:]))
        bits, q = np.zeros_like(state.bits), np.zeros_like(state.q)
        return SharedEigenpairs(state.x, values, vectors, empty, dither, bits, q)

    # -- differences between the variants --------------------------------------------------------

    quantises: ClassVar = False

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        """Bits per coordinate of each eigenvector sent up to the end of this round, (R, N, n)."""
        n, full = state.bits.shape[-1], self.b_max if self.quantises else self.value_bits
        q = np.minimum(state.q + B // full, n - 1)
        return np.where(np.arange(n) < q[..., None], full, 0)

    def send(self, state: SharedEigenpairs, bits: NDArray, k: int, ctx: Round) -> NDArray:
        """Return the first `k` eigenvectors (all in use) as the server holds them after this round."""
        return self.sent(state.vectors[:, :, :k])

    def read(self, received: NDArray) -> NDArray:
        """Return the eigenvectors that enter the server's Hessian."""
        return received

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        """Bits per coordinate that a round adds, summed over all clients and eigenvectors, (R,)."""
        return (after - before).sum(axis=(1, 2))

    @staticmethod
    def messages(r: Counted) -> Sent:
        """Eigenvectors, whole, and eigenvalues."""
        return second_order(r, 16 * r.D * _more(r, "q") + _eigenvalues(r))


@dataclass(frozen=True, kw_only=True)
class _Allocating(Shed):
    """Allocates the bits of each round so as to minimise the expected error of the Hessian.

    Parameters
    ----------
    q_choice : choice of q_t: solve (21) for qbar = q_{t-1} + B alone (Section IV-C), or for every q.
    """

    q_choice: Literal["heuristic", "exact"] = "heuristic"

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        choose = allocate_exactly if self.q_choice == "exact" else allocate
        return choose(state.values, state.q, state.bits, B, self.b_max)


@dataclass(frozen=True, kw_only=True)
class IdealShed(_Allocating):
    """ideal-SHED: sends, unquantised, the eigenvectors of which Q-SHED would send bits."""

    name: ClassVar = "ideal_shed"
    label: ClassVar = "ideal-SHED"
    look: ClassVar = ("vermillion", "short", "X")

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        return self.value_bits * (vectors_in_use(after) - vectors_in_use(before)).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class NQShed(Shed):
    """NQ-SHED: SHED in which each new eigenvector is quantised at once, with b_max bits per coordinate.

    Parameters
    ----------
    dither, overload : see `operators.quantise`.
    normalise : whether the server scales received vectors to unit length; the paper does not.
    """

    name: ClassVar = "nqshed"
    label: ClassVar = "NQ-SHED"
    look: ClassVar = ("orange", "long", "<")

    dither: Literal["nested", "none", "added", "fresh"] = "nested"
    overload: Literal["wrap", "clip"] = "wrap"
    normalise: bool = False

    quantises: ClassVar = True

    @property
    def stochastic(self) -> bool:
        return self.dither != "none"

    def send(self, state: SharedEigenpairs, bits: NDArray, k: int, ctx: Round) -> NDArray:
        v, before = state.vectors, state.bits
        new = max(k - state.received.shape[2], 0)
        received = np.pad(state.received, ((0, 0), (0, 0), (0, new), (0, 0)))
        if self.dither != "fresh":
            return quantise_grown(v, received, before, bits, state.dither, self.dither, self.overload)
        dither = ctx.streams.draw("refinement", lambda rng: draw_dither(rng, v.shape[1:]))
        grown = np.nonzero(bits > before)
        dither = np.broadcast_to(dither, v.shape)[grown]
        received[grown] = refine(v[grown], received[grown], before[grown], bits[grown], dither)
        return received

    def read(self, received: NDArray) -> NDArray:
        if not self.normalise:
            return received
        norm = np.linalg.norm(received, axis=-1, keepdims=True)
        return received / np.where(norm > 0, norm, 1.0)


@dataclass(frozen=True, kw_only=True)
class QShed(_Allocating, NQShed):
    """Q-SHED (Algorithm 1): allocates the bits of each round so as to minimise the Hessian's expected error.

    Parameters are those of `NQShed` and `IdealShed`.
    """

    name: ClassVar = "qshed"
    label: ClassVar = "Q-SHED"
    look: ClassVar = ("blue", "solid", "o")

    @staticmethod
    def messages(r: Counted) -> Sent:
        """As many bits of eigenvectors as were allocated, and eigenvalues."""
        return second_order(r, r.D * _more(r, "bits") + _eigenvalues(r))


def aggregate(values: NDArray, received: NDArray, q: NDArray, rho: NDArray, weights: NDArray) -> NDArray:
    """The server's Hessian, eq. (22), shape (R, n, n).

    Parameters
    ----------
    values : array, shape (R, N, n)
    received : array, shape (R, N, k, n); row i is v_i as received.
    q, rho : int array and array, shape (R, N)
    weights : N_d / N, array, shape (S, N)
    """
    R, N, n = values.shape
    k = int(q.max())
    used = np.arange(k) < q[..., None]
    lbar = np.where(used, values[..., :k] - rho[..., None], 0.0)
    # All clients' vectors below each other: for each run, one product of a matrix with its transpose.
    scaled = np.sqrt(weights[..., None] * lbar)[..., None] * received[:, :, :k]
    scaled = scaled.reshape(R, N * k, n)
    H = np.matmul(scaled.swapaxes(1, 2), scaled)
    H[:, np.arange(n), np.arange(n)] += (weights * rho).sum(axis=1)[:, None]
    return H
