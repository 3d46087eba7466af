"""SHED, Q-SHED, NQ-SHED and ideal-SHED: Hessian eigenvectors, sent bit by bit.

N. Dal Fabbro, M. Rossi, L. Schenato, S. Dey: Q-SHED: Distributed Optimization at the Edge via Hessian
Eigenvectors Quantization, arXiv 2305.10852, 2023 (Algorithm 1); SHED is arXiv 2202.05800 by the same authors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, Round
from replifed.algorithms.newton_type import Direction, NewtonType, solve_runs
from replifed.errors import ConfigError
from replifed.network.ledger import BITS_PER_VALUE
from replifed.operators.bit_allocation import allocate, allocate_exactly, vectors_in_use
from replifed.operators.matrices import eigenpairs
from replifed.operators.quantise import draw_dither, quantise_grown, refine

RENEWALS = ("fibonacci", "fibonacci_numbers", "once")


def renews(renewals: str | int, t: int) -> bool:
    """Whether round t = 1, 2, ... is in the set I of rounds with new Hessians.

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
    a, b, at = 1, 2, 1
    while at < t:
        at = at + a if renewals == "fibonacci" else b
        a, b = b, a + b
    return at == t


class SharedEigenpairs(NamedTuple):
    """State: the server's model, and what clients and server know of each client's last Hessian."""

    x: NDArray  # (R, n)
    values: NDArray  # (R, N, n), eigenvalues lambda_1 >= ... >= lambda_n
    vectors: NDArray  # (R, N, n, n); row i is v_i
    received: NDArray  # (R, N, k, n), what the server has of the first k, where they are quantised
    dither: NDArray  # (R, N, n, n), what each vector is dithered with, if it is
    bits: NDArray  # int (R, N, n), bits per coordinate of each vector, sent so far
    q: NDArray  # int (R, N), vectors in use


@dataclass(frozen=True, kw_only=True)
class Shed(NewtonType):
    """SHED: as many further eigenvectors as the budget allows each round, exactly.

    Parameters
    ----------
    renewals : I, the rounds in which Hessians are computed anew; see `renews`.
    """

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
        # Round 1 renews them all.
        x, values, none = np.zeros((R, n)), np.zeros((R, N, n)), np.zeros((R, N, 0, n))
        bits, q = np.zeros((R, N, n), dtype=np.int64), np.zeros((R, N), dtype=np.int64)
        return SharedEigenpairs(x, values, none, none, none, bits, q)

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
        kept = received if self.quantises else state.received
        # `NewtonType.round` has lines 4 (stop), 12 (gradient), 26 (line search), 27 (update), 28 (broadcast).
        return Direction(state._replace(received=kept, bits=bits, q=q), p, sent, hessians=N * renewed)

    def _renew(self, state: SharedEigenpairs, problem, ctx: Round) -> SharedEigenpairs:
        """New Hessians; all that was sent before is dropped."""
        values, vectors = eigenpairs(problem.client_hessians(state.x))
        dither = none = vectors[:, :, :0]
        if self.quantises:
            # Drawn for all vectors, so that it does not depend on how many are sent, here or in other runs.
            shape = vectors.shape[1:]
            dither = ctx.streams.draw("dither", lambda rng: draw_dither(rng, shape))
        dither = np.broadcast_to(dither, (len(vectors), *dither.shape[1:]))
        nothing = np.zeros_like(state.bits), np.zeros_like(state.q)
        return SharedEigenpairs(state.x, values, vectors, none, dither, *nothing)

    # -- what the variants differ in -------------------------------------------------------------

    quantises: ClassVar = False

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        """Bits per coordinate of each vector after this round, (R, N, n)."""
        n, each = state.bits.shape[-1], self.b_max if self.quantises else self.value_bits
        q = np.minimum(state.q + B // each, n - 1)
        return np.where(np.arange(n) < q[..., None], each, 0)

    def send(self, state: SharedEigenpairs, bits: NDArray, most: int, ctx: Round) -> NDArray:
        """What the server has of the first `most` vectors, all that are in use, after this round."""
        return self.sent(state.vectors[:, :, :most])

    def read(self, received: NDArray) -> NDArray:
        """The vectors that enter the server's Hessian."""
        return received

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        """Bits per coordinate that all clients together send of their vectors in a round, (R,)."""
        return (after - before).sum(axis=(1, 2))


@dataclass(frozen=True, kw_only=True)
class _Allocating(Shed):
    """Each round's bits go where they reduce the expected error of the Hessian most.

    Parameters
    ----------
    q_choice : how q_t is chosen: once for qbar = q_{t-1} + B (Section IV-C), or by solving (21) for every q.
    """

    q_choice: Literal["heuristic", "exact"] = "heuristic"

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        choose = allocate_exactly if self.q_choice == "exact" else allocate
        return choose(state.values, state.q, state.bits, B, self.b_max)


@dataclass(frozen=True, kw_only=True)
class IdealShed(_Allocating):
    """ideal-SHED: sends exactly all vectors of which Q-SHED would send some bits."""

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        return self.value_bits * (vectors_in_use(after) - vectors_in_use(before)).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class NQShed(Shed):
    """NQ-SHED: as SHED, with each new vector quantised at once with b_max bits per coordinate.

    Parameters
    ----------
    dither, overload : see `operators.quantise`.
    normalise : whether the server scales what it receives to unit length, which the paper does not.
    """

    dither: Literal["nested", "none", "added", "fresh"] = "nested"
    overload: Literal["wrap", "clip"] = "wrap"
    normalise: bool = False

    quantises: ClassVar = True

    @property
    def stochastic(self) -> bool:
        return self.dither != "none"

    def send(self, state: SharedEigenpairs, bits: NDArray, most: int, ctx: Round) -> NDArray:
        v, before = state.vectors, state.bits
        new = max(most - state.received.shape[2], 0)
        received = np.pad(state.received, ((0, 0), (0, 0), (0, new), (0, 0)))
        if self.dither != "fresh":
            return quantise_grown(v, received, before, bits, state.dither, self.dither, self.overload)
        dither = ctx.streams.draw("refinement", lambda rng: draw_dither(rng, v.shape[1:]))
        changed = np.nonzero(bits > before)
        dither = np.broadcast_to(dither, v.shape)[changed]
        received[changed] = refine(v[changed], received[changed], before[changed], bits[changed], dither)
        return received

    def read(self, received: NDArray) -> NDArray:
        if not self.normalise:
            return received
        norm = np.linalg.norm(received, axis=-1, keepdims=True)
        return received / np.where(norm > 0, norm, 1.0)


@dataclass(frozen=True, kw_only=True)
class QShed(_Allocating, NQShed):
    """Q-SHED (Algorithm 1): each round's bits go where they reduce the expected error of the Hessian most.

    Parameters are those of `NQShed` and `IdealShed`.
    """


def aggregate(values: NDArray, received: NDArray, q: NDArray, rho: NDArray, weights: NDArray) -> NDArray:
    """The server's Hessian, eq. (22), shape (R, n, n).

    Parameters
    ----------
    values : array, shape (R, N, n)
    received : array, shape (R, N, k, n); row i is what the server has of v_i.
    q, rho : int array and array, shape (R, N)
    weights : N_d / N, array, shape (S, N)
    """
    R, N, n = values.shape
    most = int(q.max())
    used = np.arange(most) < q[..., None]
    lbar = np.where(used, values[..., :most] - rho[..., None], 0.0)
    # All clients' vectors below each other: for each run, one product of a matrix with its transpose.
    scaled = np.sqrt(weights[..., None] * lbar)[..., None] * received[:, :, :most]
    scaled = scaled.reshape(R, N * most, n)
    H = np.matmul(scaled.swapaxes(1, 2), scaled)
    H[:, np.arange(n), np.arange(n)] += (weights * rho).sum(axis=1)[:, None]
    return H
