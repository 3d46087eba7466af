"""Number of exchanges that a round needs, from the points at which clients evaluate their losses.

Between two exchanges a client knows what the server sent it, its own data and its own answers. So the round
is run again with the answers of half the clients changed: if one of the other clients is then evaluated at a
different point, an exchange came between. This also detects points that are common to all clients up to
noise, since the noise is unchanged. Besides, each exchange brings at most one new point common to all
clients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.problems.audited import Call, audited

MOST = 64  # exchanges that are counted at most
# Gradients and models are turned round, which no rule of signs hides; the rest must keep its sign, and grows.
_TURNED, _GROWN = -1.0, 1.125
_KEEP_THEIR_SIGN = ("client_hessians", "per_client_hessians", "oracle", "mirror", "sources")
# Scalars of line searches are counted for themselves, see `network.ledger.Cost.line_search_messages`.
_SCALARS = ("loss", "client_losses", "along")
# Answers of all clients together, (R, D).
_OF_ALL = ("gradient", "mirror", "hessian_products")


def exchanges_needed(algorithm: Any, state: Any, problem: Any, ctx: Round) -> int:
    """Number of exchanges that a round from `state` needs, at most `MOST`; the round is run again for each.

    It is 1 if fewer than two clients take part.
    """
    runs, some = len(state[0]), np.arange(problem.n_clients) if ctx.chosen is None else ctx.chosen[0]
    some = some if ctx.active is None else some[ctx.active[0, some]]
    if len(some) < 2:
        return 1
    changed = np.isin(np.arange(problem.n_clients), some[::2])

    def asked(begin: int, points: CommonPoints | None = None) -> list[Call]:
        """Calls of the round, if answers from the call `begin` on are changed."""
        listener = _Changes(changed, begin, points)
        copied = type(state)(*(array.copy() for array in state))
        with np.errstate(all="ignore"):
            algorithm.round(copied, audited(problem, runs, listener), ctx._replace(in_place=False))
        return listener.calls

    points = CommonPoints(state)
    before, begin = asked(MOST**3, points), 0
    for exchange in range(1, MOST):
        pairs = enumerate(zip(before, asked(begin), strict=False))
        later = (k for k, (one, other) in pairs if k > begin and not _alike(one, other))
        begin = next(later, -1)
        if begin < 0:
            return min(max(exchange, points.exchanges), MOST)
    return MOST


class CommonPoints:
    """Points common to all clients in a round from `state`, counted as exchanges."""

    def __init__(self, state: Any) -> None:
        self._known = {_hashed(array) for array in state if array.ndim == 2}
        self._seen: set[int] = set()

    def see(self, call: Call) -> None:
        """Add the point of a call if it is common to all clients."""
        # Local models began at the point of `local`.
        ours, alone = call.name.startswith("local "), call.clients.shape[1] == 1
        if ours or alone or call.name in (*_SCALARS, "sources"):
            return
        x = call.arguments[0]
        if np.ndim(x) == 3:
            if not (np.array_equal(x[0, 0], x[0, -1]) and (x[:, 1:] == x[:, :1]).all()):
                return
            x = x[:, 0]
        if np.ndim(x) == 2:
            self._seen.add(_hashed(x))

    @property
    def exchanges(self) -> int:
        """Number of exchanges: one for each new point, and one for all points in the state together."""
        new = self._seen - self._known
        return len(new) + (len(new) < len(self._seen))


def _hashed(x: NDArray) -> int:
    return hash((x + 0.0).tobytes())  # one zero


class _Changes:
    """Listener that changes the answers of some clients, and records the calls to the others."""

    def __init__(self, changed: NDArray, begin: int, points: CommonPoints | None) -> None:
        self._changed, self._begin, self._points = changed, begin, points
        self.calls: list[Call] = []

    def answer(self, call: Call, answer: Any) -> Any:
        if call.name in _SCALARS:
            return answer
        if self._points is not None:
            self._points.see(call)
        lanes = self._changed[call.clients]  # (r or 1, c)
        flat, whole = answer is not None and answer.ndim == 2, call.name in _OF_ALL
        alone = lanes.shape[1] == 1  # a client for itself, of which models have no axis, either
        # Local models on sparse data have no axis of clients.
        unseen = (flat and not whole) or (alone and lanes.any())
        seen = [] if unseen else [_unchanged(one, lanes) for one in call.arguments]
        self.calls.append(call._replace(arguments=seen))
        if answer is None or len(self.calls) <= self._begin or flat is not whole:
            return answer
        if alone and not lanes.all():
            return answer
        change = _GROWN if call.name in _KEEP_THEIR_SIGN else _TURNED
        if whole:
            return answer * change
        factor = np.where(lanes, change, 1.0).astype(answer.dtype)
        return answer * factor.reshape(*lanes.shape, *(1,) * (answer.ndim - 2))


def _unchanged(argument: Any, lanes: NDArray) -> Any:
    """Copy of an argument, zero for the clients whose answers are changed."""
    if isinstance(argument, list | tuple):
        return [_unchanged(one, lanes) for one in argument]
    if not isinstance(argument, np.ndarray):
        return argument
    if argument.ndim < 3 or argument.shape[1] != lanes.shape[1]:
        return argument.copy()
    return np.where(lanes.reshape(*lanes.shape, *(1,) * (argument.ndim - 2)), 0, argument)


def _alike(one: Call, other: Call) -> bool:
    """Return True if two calls have the same name, clients and arguments."""
    return one.name == other.name and _equal([one.clients, *one.arguments], [other.clients, *other.arguments])


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one is other or one == other
