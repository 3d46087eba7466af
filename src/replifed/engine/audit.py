"""Audited ledger: the work that a method takes on the clients' data, beside the work that it books."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.engine.exchanges import MOST, CommonPoints, exchanges_needed
from replifed.network.ledger import Cost, Ledger
from replifed.problems.audited import Call, audited

# What is booked, and the calls that it covers.
_COVERS = {"sample_gradients": "samples", "hessians": "hessians", "line_search_messages": "values"}
_WORDS = {
    "sample_gradients": "sample gradients",
    "hessians": "Hessians",
    "line_search_messages": "values of losses (Cost.line_search_messages)",
}
_ROUNDING = 1e-6
# Rounds of a simulation that are run again to count exchanges; common points are counted in all.
_LOOKED_AT = 2


class Audit:
    """Ledger of R runs with the larger of the work that a method books and the work that it takes.

    Work that a run takes counts when its server's model next changes: runs that have stopped still compute
    along with the others.

    Attributes
    ----------
    problem : audited problem, which the method gets in place of the raw one.
    """

    def __init__(self, problem: Any, runs: int, rounds: range, cohorts: bool = False) -> None:
        self.problem, self._raw = audited(problem, runs, self), problem
        self._booked = Ledger(runs, cohorts)
        self._taken, self._pending = ({kind: np.zeros(runs) for kind in (*_COVERS, "outside")} for _ in "12")
        self._exchanges = {name: np.zeros(runs) for name in ("exchanges_booked", "exchanges_needed")}
        chosen = np.random.default_rng(len(rounds)).permutation(rounds)[:_LOOKED_AT]
        self._looked_at, self._needed = {*chosen.tolist()}, 0
        self._points: CommonPoints | None = None
        self._active: NDArray | None = None
        self._masked = False  # all clients compute, those of `active` take part
        self._server: NDArray | None = None
        # Clients and models of the last Hessians.
        self._hessians_at: tuple[NDArray, NDArray] | None = None

    @property
    def totals(self) -> dict[str, NDArray]:
        """Totals of `Ledger`, (R,) each, and the findings of the audit.

        booked_*: booked work of each kind; outside: accesses to clients out of the round's cohort;
        exchanges_booked, exchanges_needed: exchanges of the worst round.
        """
        booked = self._booked.totals
        work = {kind: np.maximum(booked[kind], self._taken[kind]) for kind in _COVERS}
        books = {f"booked_{kind}": booked[kind] for kind in _COVERS}
        return {**booked, **work, **books, "outside": self._taken["outside"], **self._exchanges}

    def answer(self, call: Call, answer: Any) -> Any:
        """Count a call; see `problems.audited.Listener`."""
        if self._points is not None:
            self._points.see(call)
        shape, inside = (len(call.runs), call.clients.shape[1]), np.ones((1, 1), bool)
        if self._active is not None:
            inside = self._active[call.runs[:, None] if len(self._active) > 1 else 0, call.clients]
        for kind, name in _COVERS.items():
            amount = getattr(call, name)
            if not np.any(amount):
                continue
            if kind == "hessians":
                amount = amount * self._new(call)[:, None]
            if self._masked:  # all clients compute, and those that are out throw it away
                amount = np.where(inside, amount, 0.0)
            else:
                self._pending["outside"][call.runs] += np.broadcast_to(~inside, shape).sum(axis=1)
            self._pending[kind][call.runs] += np.broadcast_to(amount, shape).sum(axis=1)
        return answer

    def _new(self, call: Call) -> NDArray:
        """Mask of the runs that need new Hessians: clients keep those at the last models."""
        now, last = (call.clients, call.arguments[0].copy()), self._hessians_at
        self._hessians_at = now
        (clients, x), runs = now, len(call.runs)
        if last is None or last[1].shape != x.shape or not np.array_equal(last[0], clients) or len(x) != runs:
            return np.ones(runs, bool)
        return (x != last[1]).reshape(runs, -1).any(axis=1)

    def open(self, algorithm: Any, state: Any, ctx: Round) -> None:
        """Begin a round."""
        self._active, self._masked = ctx.active, ctx.active is not None
        if ctx.active is not None and ctx.chosen is not None:
            self._masked = not np.take_along_axis(ctx.active, ctx.chosen, axis=1).all()
        if self._server is None:
            self._server = algorithm.observe(state)["server"].copy()
        self._needed = 0
        if not getattr(algorithm, "centralised", False):
            self._points = CommonPoints(state)
            if ctx.t in self._looked_at:
                self._needed = exchanges_needed(algorithm, state, self._raw, ctx)

    def close(self, cost: Cost, runs: NDArray, came: NDArray | None, server: NDArray) -> None:
        """Book the cost of a round that ends at the models `server` (R, D), as `Ledger.add` does."""
        self._booked.add(cost, runs, came)
        runs = runs if came is None else runs & (came > 0)
        moved = runs & (server != self._server).any(axis=-1)
        self._server = server.copy()
        for kind, amounts in self._pending.items():
            self._taken[kind][moved] += amounts[moved]
            amounts[moved] = 0
        exchanges, booked = self._exchanges, np.max(cost.exchanges)
        needed = max(self._needed, 0 if self._points is None else self._points.exchanges)
        if needed - booked > (exchanges["exchanges_needed"] - exchanges["exchanges_booked"]).max():
            exchanges["exchanges_booked"][:], exchanges["exchanges_needed"][:] = booked, needed


def differences(totals: Mapping[str, NDArray]) -> list[str]:
    """Messages on work and exchanges that are booked too low, from an `Audit`'s final totals, (R,) each."""
    booked, needed = (np.max(totals[f"exchanges_{of}"]) for of in ("booked", "needed"))
    short = exchanges_difference(booked, needed)
    return [*work_differences(totals), *([short] if short else [])]


def work_differences(totals: Mapping[str, NDArray]) -> list[str]:
    """Messages on each kind of work that is booked below what is taken, in means over the runs."""
    found = []
    for kind, word in _WORDS.items():
        booked, taken = np.mean(totals[f"booked_{kind}"]), np.mean(totals[kind])
        if taken > booked * (1 + _ROUNDING) + _ROUNDING:
            found.append(f"books {booked:,.0f} of {taken:,.0f} {word}")
    if np.any(totals["outside"]):
        found.append("asks clients that are out of the round's cohort")
    return found


def exchanges_difference(booked: float, needed: float) -> str:
    """Message on exchanges that a round needs but does not book; "" if there are none."""
    if needed <= booked:
        return ""
    plural, most = "" if booked == 1 else "s", " or more" if needed >= MOST else ""
    return f"books {booked:g} exchange{plural} a round and needs {needed:.0f}{most}"
