"""SHED, Q-SHED, NQ-SHED and ideal-SHED: Hessian eigenvectors, sent bit by bit.

N. Dal Fabbro, M. Rossi, L. Schenato, S. Dey: Q-SHED: Distributed Optimization at the Edge via Hessian
Eigenvectors Quantization, arXiv 2305.10852, 2023 (Algorithm 1); SHED is arXiv 2202.05800 by the same authors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, Round
from replifed.algorithms.newton_type import Direction, NewtonType, solve_rows
from replifed.errors import ConfigError
from replifed.network.ledger import BITS_PER_VALUE
from replifed.operators.bit_allocation import allocate, allocate_exactly, vectors_in_use
from replifed.operators.eigenpairs import Spectra, eigenvectors, empty_spectra, spectra
from replifed.operators.quantise import DITHERS, OVERLOADS, draw_first_dithers, quantise_grown, refine

RENEWALS = ("fibonacci", "fibonacci_numbers", "once")


def renews(renewals: str | int, t: int) -> bool:
    """Whether round t = 1, 2, ... is in the set I of rounds with new Hessians.

    Parameters
    ----------
    renewals : str or int
        "fibonacci" (gaps of 1, 2, 3, 5, 8, ...: I = {1, 2, 4, 7, 12, 20, 33, ...}), "fibonacci_numbers"
        (I = {1, 2, 3, 5, 8, 13, ...}), "once" (I = {1}), or a period P (I = {1, 1 + P, 1 + 2 P, ...}).
    t : int

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


def rounds_until_renewal(renewals: str | int, t: int) -> int | float:
    """Number of rounds that the Hessians of round t, t among them, still serve.

    >>> [rounds_until_renewal("fibonacci", t) for t in range(1, 9)]
    [1, 2, 1, 3, 2, 1, 5, 4]
    """
    if renewals == "once":
        return math.inf
    return next(left for left in count(1) if renews(renewals, t + left))


def last_renewal(renewals: str | int, t: int) -> int:
    """The last round, `t` or before, with new Hessians.

    >>> [last_renewal("fibonacci", t) for t in range(1, 9)]
    [1, 2, 2, 4, 4, 4, 7, 7]
    """
    return next(at for at in range(t, 0, -1) if renews(renewals, at))


class SharedEigenpairs(NamedTuple):
    """State: the server's model, and what devices and server know of each device's last Hessian.

    Attributes
    ----------
    x : array, shape (R, n)
    values, tridiagonal, reflectors, order
        Eigenvalues lambda_1 >= ... >= lambda_n, (R, N, n), and what eigenvectors are found from when they are
        needed; see `operators.eigenpairs.Spectra`.
    vectors : array, shape (R, N, k, n)
        Row i is v_i; those found so far.
    received : array, shape (R, N, k, n)
        Row i is what the server has of v_i.
    dither : array, shape (R, N, k, n)
    bits : int array, shape (R, N, n)
        Bits per coordinate of each vector, sent so far.
    q : int array, shape (R, N)
        Vectors in use.
    """

    x: NDArray
    values: NDArray
    tridiagonal: NDArray
    reflectors: NDArray
    order: NDArray
    vectors: NDArray
    received: NDArray
    dither: NDArray
    bits: NDArray
    q: NDArray


@dataclass(frozen=True, kw_only=True)
class Shed(NewtonType):
    """SHED: as many further eigenvectors as the budget allows each round, exactly.

    Parameters
    ----------
    renewals : str or int
        I, the rounds in which Hessians are computed anew; see `renews`.
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
        none = np.zeros((R, N, 0, n))
        x, bits, q = np.zeros((R, n)), np.zeros((R, N, n), dtype=np.int64), np.zeros((R, N), dtype=np.int64)
        return SharedEigenpairs(x, *empty_spectra((R, N), n), none, none, none, bits, q)

    def direction(self, state: SharedEigenpairs, g: NDArray, problem, ctx: Round) -> Direction:
        N, n, t = problem.n_clients, problem.dim, ctx.t + 1
        renewed = renews(self.renewals, t)  # line 7
        if renewed:
            state = self._renew(state, problem)
        B = self.budget(ctx, problem, len(g))
        bits = self.allocate(state, B)  # lines 13-15
        q = vectors_in_use(bits)  # line 16, eq. (23)
        state = self._find_vectors(state, q, ctx)
        received = self.send(state, bits, ctx)  # line 18
        values = self.sent(state.values)
        rho = np.take_along_axis(values, q[..., None], axis=-1)[..., 0]  # line 17
        H = aggregate(values, self.read(received), q, rho, problem.weights)  # lines 24-25, eq. (22)
        p = -solve_rows(H, g)
        # Line 19: bits of the vectors, new eigenvalues, rho. The first was the last round's rho, unless
        # Hessians are new.
        scalars = (q - state.q + renewed).sum(axis=1)
        sent = n * self.vector_bits(state.bits, bits) + BITS_PER_VALUE * scalars
        kept = received if self.quantises else state.received
        # Lines 26-28 are the line search's.
        return Direction(state._replace(received=kept, bits=bits, q=q), p, sent, hessians=N * renewed)

    def _renew(self, state: SharedEigenpairs, problem) -> SharedEigenpairs:
        """Lines 8-11: new Hessians; all that was sent before is dropped."""
        none = state.vectors[:, :, :0]
        nothing = np.zeros_like(state.bits), np.zeros_like(state.q)
        found = spectra(problem.client_hessians(state.x))
        return SharedEigenpairs(state.x, *found, none, none, none, *nothing)

    def _find_vectors(self, state: SharedEigenpairs, q: NDArray, ctx: Round) -> SharedEigenpairs:
        """Make sure that the first `q` (R, N) vectors are there."""
        t, needed, (_, N, known, n) = ctx.t + 1, int(q.max()), state.vectors.shape
        if needed <= known:
            return state
        # As many as will do until the next new Hessians, if each round wants as many more as this one.
        before = int(state.q.max())
        wanted = before + (needed - before) * rounds_until_renewal(self.renewals, t)
        found = Spectra(state.values, state.tridiagonal, state.reflectors, state.order)
        vectors = eigenvectors(found, min(wanted, n))
        if not self.quantises:
            return state._replace(vectors=vectors)
        received, count = np.zeros_like(vectors), vectors.shape[2]
        received[:, :, :known] = state.received
        # The same for each vector, in whichever round and beside whichever other rows it is found.
        streams = ctx.streams.at(last_renewal(self.renewals, t) - 1)
        dither = streams.draw("dither", lambda rng: draw_first_dithers(rng, (N, n, n), count))
        return state._replace(
            vectors=vectors, received=received, dither=np.broadcast_to(dither, vectors.shape)
        )

    # -- what the variants differ in -------------------------------------------------------------

    quantises: ClassVar = False

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        """Bits per coordinate of each vector after this round, (R, N, n)."""
        n, each = state.bits.shape[-1], self.b_max if self.quantises else self.value_bits
        q = np.minimum(state.q + B // each, n - 1)
        return np.where(np.arange(n) < q[..., None], each, 0)

    def send(self, state: SharedEigenpairs, bits: NDArray, ctx: Round) -> NDArray:
        """What the server has of the vectors after this round, (R, N, k, n)."""
        return self.sent(state.vectors)

    def read(self, received: NDArray) -> NDArray:
        """The vectors that enter the server's Hessian."""
        return received

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        """Bits per coordinate that all devices together send of their vectors in a round, (R,)."""
        return (after - before).sum(axis=(1, 2))


@dataclass(frozen=True, kw_only=True)
class _Allocating(Shed):
    """Each round's bits go where they reduce the expected error of the Hessian most.

    Parameters
    ----------
    q_choice : {"heuristic", "exact"}
        How q_t is chosen: once for qbar = q_{t-1} + B (Section IV-C), or by solving (21) for every q.
    """

    q_choice: str = "heuristic"

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of(self, "q_choice", ALLOCATIONS)

    def allocate(self, state: SharedEigenpairs, B: NDArray) -> NDArray:
        return ALLOCATIONS[self.q_choice](state.values, state.q, state.bits, B, self.b_max)


@dataclass(frozen=True, kw_only=True)
class IdealShed(_Allocating):
    """ideal-SHED: the vectors that Q-SHED would send some bits of, sent exactly, whatever that takes."""

    def vector_bits(self, before: NDArray, after: NDArray) -> NDArray:
        return self.value_bits * (vectors_in_use(after) - vectors_in_use(before)).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class NQShed(Shed):
    """NQ-SHED: as SHED, with each new vector quantised at once with b_max bits per coordinate.

    Parameters
    ----------
    dither : {"nested", "none", "added", "fresh"}
        See `operators.quantise`, as for the next one.
    overload : {"wrap", "clip"}
    normalise : bool
        Whether the server scales what it receives to unit length, which the paper does not.
    """

    dither: str = "nested"
    overload: str = "wrap"
    normalise: bool = False

    quantises: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of(self, "dither", DITHERS)
        _one_of(self, "overload", OVERLOADS)

    @property
    def stochastic(self) -> bool:
        return self.dither != "none"

    def send(self, state: SharedEigenpairs, bits: NDArray, ctx: Round) -> NDArray:
        v, received, before = state.vectors, state.received, state.bits
        if self.dither != "fresh":
            return quantise_grown(v, received, before, bits, state.dither, self.dither, self.overload)
        _, N, known, n = v.shape
        dither = ctx.streams.draw("refinement", lambda rng: draw_first_dithers(rng, (N, n, n), known))
        changed, received = np.nonzero(bits > before), received.copy()
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


ALLOCATIONS = {"heuristic": allocate, "exact": allocate_exactly}


def aggregate(values: NDArray, received: NDArray, q: NDArray, rho: NDArray, weights: NDArray) -> NDArray:
    """The server's Hessian, eq. (22).

    Parameters
    ----------
    values : array, shape (R, N, n)
    received : array, shape (R, N, k, n)
        Row i is what the server has of v_i.
    q : int array, shape (R, N)
    rho : array, shape (R, N)
    weights : array, shape (S, N)
        N_d / N.

    Returns
    -------
    array, shape (R, n, n)
    """
    R, N, n = values.shape
    most = int(q.max())
    used = np.arange(most) < q[..., None]
    lbar = np.where(used, values[..., :most] - rho[..., None], 0.0)
    # All devices' vectors below each other: one product of a matrix with its own transpose a row.
    scaled = np.sqrt(weights[..., None] * lbar)[..., None] * received[:, :, :most]
    scaled = scaled.reshape(R, N * most, n)
    H = np.matmul(scaled.swapaxes(1, 2), scaled)
    H[:, np.arange(n), np.arange(n)] += (weights * rho).sum(axis=1)[:, None]
    return H


def _one_of(algorithm, name: str, allowed) -> None:
    if getattr(algorithm, name) not in allowed:
        raise ConfigError(
            f"{type(algorithm).__name__}.{name} = {getattr(algorithm, name)!r}: must be one of "
            f"{', '.join(allowed)}"
        )
