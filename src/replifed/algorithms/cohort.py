"""Clients of one round, for the methods: those that compute, those of them that take part, their averages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.algorithms.client_states import Drawn
from replifed.errors import ReplifedError
from replifed.network.ledger import Cost, dense_bits
from replifed.network.participation import MANY, shares

# Rounds from one sum over all clients to the next, where they are many.
_EXACT = 100


class Cohort:
    """Clients of a round: c of them compute, so that their arrays are (R, c, ...).

    Where the law names who computes, only these do; otherwise every client does. Results of those of them
    that do not take part are discarded.

    Attributes
    ----------
    whole : the problem of all N clients.
    index : int array, shape (R or 1, c), the clients that compute; None for all.
    mask : boolean array, shape (R or 1, c), true for those of them that take part; None for all.
    """

    def __init__(self, problem: Any, ctx: Round) -> None:
        self.whole, self._ctx = problem, ctx
        if ctx.chosen is None and getattr(problem, "on_demand", False):
            problem.refuse_all()
        # Whether an average has left out those that do not take part.
        self._averaged = False
        self.index = ctx.chosen
        self.mask = ctx.active
        if ctx.chosen is not None and ctx.active is not None:
            came = np.take_along_axis(ctx.active, ctx.chosen, axis=1)
            self.mask = None if came.all() else came

    def packed(self) -> Cohort:
        """Cohort in which only c clients compute, the largest number of active clients of any run.

        Runs with fewer active clients are filled up with inactive ones.
        """
        if self.mask is None or self.index is not None:
            return self
        packed, c = Cohort(self.whole, self._ctx), max(self.count.max(), 1)
        packed.index = np.argsort(~self.mask, axis=1, kind="stable")[:, :c]
        packed.mask = np.take_along_axis(self.mask, packed.index, axis=1)
        return packed

    # -- who they are ----------------------------------------------------------------------------

    @property
    def clients(self) -> NDArray:
        """Indices of the clients that compute, shape (R or 1, c)."""
        return np.arange(self.whole.n_clients)[None] if self.index is None else self.index

    @property
    def named(self) -> bool:
        """Whether the law names who computes; else all do, and take part at random."""
        return self._ctx.chosen is not None

    @cached_property
    def problem(self) -> Any:
        """Problem restricted to the clients that compute."""
        return self.whole if self.index is None else self.whole.with_clients(self.index)

    @property
    def count(self) -> NDArray:
        """Number of clients that take part, shape (R or 1,)."""
        return np.array([self.clients.shape[1]]) if self.mask is None else self.mask.sum(axis=1)

    @property
    def size(self) -> int:
        """Number of clients that take part, for methods in which it must not change; rejects others."""
        if self.mask is not None:
            raise ReplifedError("this method takes cohorts of a fixed size only")
        return self.clients.shape[1]

    @property
    def sizes(self) -> NDArray:
        """Numbers of samples n_i of the clients that compute, shape (R or 1, c)."""
        return self.take(self.whole.sizes)

    # -- their part of arrays --------------------------------------------------------------------

    def take(self, a: Any) -> NDArray:
        """Entries of an array (R or 1, N, ...), or of `Drawn` states, for the clients that compute."""
        if self.index is None:
            return a
        if isinstance(a, Drawn):
            return a.take(self.index)
        return a[np.arange(len(a))[:, None] if len(a) > 1 else 0, self.index]

    def put(self, old: Any, new: NDArray) -> Any:
        """Array (R, N, D): `new` (R, c, D) for the clients that take part, `old` (R, N, D) for the others.

        `old` is a field of the round's state, and is overwritten if the round owns that state.
        """
        if self.mask is not None:
            new = np.where(self.mask[..., None], new, self.take(old))
        if self.index is None:
            return new
        out = old if self._ctx.in_place else old.copy()
        if isinstance(out, Drawn):
            out.put(self.index, new)
            return out
        out[np.arange(len(old))[:, None], self.index] = new
        return out

    def mean(self, a: NDArray) -> NDArray:
        """Mean over the clients that take part, (R, c, D) -> (R, D); 0 if none does."""
        self._averaged = True
        if self.mask is None:
            return a.mean(axis=1)
        return np.where(self.mask[..., None], a, 0.0).sum(axis=1) / np.maximum(self.count, 1)[:, None]

    @property
    def shares(self) -> NDArray:
        """Shares of the clients that compute in a weighted average, (R or 1, c); 0 for those that are out.

        They are p_i over the sum of the cohort's, unless the law has its own (`network.participation`).
        """
        return self._shares[0]

    @cached_property
    def _shares(self) -> tuple[NDArray, NDArray]:
        self._averaged = True
        dtype, given, rest = self.whole.dtype, self._ctx.shares, self._ctx.rest
        if given is not None and rest is not None:
            return given.astype(dtype), rest.astype(dtype)
        p = self.take(self.whole.weights)
        if self.mask is None:
            return p / p.sum(axis=1, keepdims=True), np.zeros(1, dtype)
        if 1 < len(p) < len(self.mask):
            p = np.repeat(p, len(self.mask) // len(p), axis=0)
        part, rest = shares("own", p, self.mask, self.whole.n_clients)
        return part, rest.astype(dtype)

    def average(self, local: Any, u: NDArray, old: NDArray) -> NDArray:
        """Weighted average of local models `u` at the server, (R, D); its `old` model (R, D) has the rest."""
        if self.mask is None and self._ctx.shares is None:
            return local.mean(u)
        part, rest = self._shares
        return local.mean(u, part) + rest[:, None] * old

    def running(
        self, known: NDArray, old: NDArray, new: NDArray, exact: Callable[[], NDArray], weight: float = 1.0
    ) -> NDArray:
        """`weight` times a sum over all N clients, (R, D).

        It was `known` before the clients that compute replaced `old` (R, c, D) by `new`. For a cohort of
        fixed size from many clients it is updated, and summed anew by `exact()` every hundredth round, which
        keeps rounding errors from adding up. Otherwise it is summed anew in every round.
        """
        few = self.whole.n_clients <= MANY or self.index is None or self.mask is not None
        if few or self._ctx.t % _EXACT == 0:
            return exact()
        return known + weight * (new - old).sum(axis=1)

    def total(self, a: NDArray) -> NDArray:
        """Sum of one number per client, `a` (S, N), over the clients that take part; shape (R or 1,)."""
        if 1 < len(a) < len(self._ctx.streams):
            a = np.repeat(a, len(self._ctx.streams) // len(a), axis=0)
        return self.sum(self.take(a))

    # -- what they draw, look at and send --------------------------------------------------------

    def minibatches(
        self, steps: int, size: int | None, purpose: str = "batch", *, replace: bool = True
    ) -> list[NDArray] | list[None]:
        """Draw each client's minibatches of K `steps`, uniformly with replacement, in one call.

        Without it (`replace`) no sample is twice in a minibatch; of a client that has fewer than b samples it
        holds all equally often, and the rest is drawn.

        Returns a list of K arrays of sample numbers, (R or 1, c, b), or of K None for full batches, where the
        batch size b is None or at least max n_i.
        """
        if size is None or self._holds_all(size):
            return [None] * steps
        shape = steps, self.clients.shape[1], size
        uniform = self._ctx.streams.draw(purpose, lambda rng: rng.random(shape))
        sizes = self.sizes[:, None, :, None]
        drawn = (uniform * sizes).astype(np.int64) if replace else _distinct(uniform, sizes)
        return [drawn[:, k] for k in range(steps)]

    def _holds_all(self, size: int) -> bool:
        """True if minibatches of `size` hold all samples of every client, so that full batches are used."""
        # Those who compute first: they may be few.
        return size >= self.sizes.max() and size >= self.whole.sizes.max()

    def draws(self, steps: int, size: int | None) -> int | None:
        """Samples that each client draws in `minibatches`; None for full batches."""
        return None if size is None or self._holds_all(size) else steps * size

    def samples(self, size: int | None) -> NDArray:
        """Samples used in one local step on minibatches of `size` by those that take part, (R or 1,)."""
        if size is None or self._holds_all(size):
            return self.total(self.whole.sizes)
        return self.count * size if self.mask is not None else np.full(len(self.sizes), self.size * size)

    def sum(self, a: NDArray) -> NDArray:
        """Sum of one number for each client that computes, (R or 1, c), over those that take part."""
        return (a if self.mask is None else a * self.mask).sum(axis=1)

    def draw(self, solver: Any, steps: int | None = None) -> NDArray | None:
        """Random numbers of a local solver's steps.

        Those of a client do not depend on which others take part, unless there are many clients.
        """
        steps = solver.steps if steps is None else steps
        if self.index is not None and self.whole.n_clients > MANY:
            return solver.draw(self._ctx, self.problem, steps)
        drawn = solver.draw(self._ctx, self.whole, steps)
        if drawn is None or self.index is None:
            return drawn
        return np.take_along_axis(drawn, self.index[:, None, :, None], axis=2)

    def message(self, vectors: int = 1) -> NDArray:
        """Bits of `vectors` dense models, summed over all clients that take part, one way, (R or 1,)."""
        return self.count * vectors * dense_bits(self.whole.dim)

    def cost(
        self,
        steps: int,
        batch: int | None,
        *,
        up: NDArray | int | None = None,
        down: NDArray | int | None = None,
    ) -> Cost:
        """Cost of a round of `steps` local steps on minibatches of size `batch`.

        Rejects cohorts of changing size if no average here has left out those that do not take part.

        A client sends `up` bits and receives `down` bits, a dense model each by default.
        """
        if not self._averaged:
            _ = self.size
        uplink, downlink = (dense_bits(self.whole.dim) if bits is None else bits for bits in (up, down))
        used = steps * self.samples(batch)
        return Cost(self.count * uplink, self.count * downlink, iterations=steps, sample_gradients=used)


def _distinct(uniform: NDArray, sizes: NDArray) -> NDArray:
    """Sample numbers (..., b) without repeats, by Floyd's algorithm, from `uniform` numbers in their places.

    Where one of the `sizes` (..., 1) is n < b, the first numbers are 0 to n - 1, as often as they fit.
    """
    *shape, b = np.broadcast_shapes(uniform.shape, (*sizes.shape[:-1], uniform.shape[-1]))
    u = np.moveaxis(np.broadcast_to(uniform, (*shape, b)), -1, 0).reshape(b, -1)
    n = np.broadcast_to(sizes[..., 0], shape).ravel()
    given = np.where(n < b, b - b % n, 0)
    # Which samples each minibatch has; what is given is marked behind the last one.
    width = n.max() + 1
    taken, row, drawn = np.zeros(len(n) * width, bool), np.arange(len(n)) * width, np.empty(u.shape, np.int64)
    for j in range(b):
        last = n - b + j
        one = (u[j] * np.maximum(last + 1, 0)).astype(np.int64)
        one = np.where(j < given, width - 1, np.where(taken[row + one], last, one))
        taken[row + one] = True
        drawn[j] = np.where(j < given, j % n, one)
    return np.moveaxis(drawn.reshape(b, *shape), 0, -1)
