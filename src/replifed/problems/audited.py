"""Audited problem: it reports each use of the clients' data to a listener, and hides the data themselves.

A compiled loop counts by its arguments: the number of its steps times the samples of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import ismethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError

# What a method may know without asking a client: sizes, constants of the theory, public data.
_FREE = {
    *("n_clients", "dim", "dtype", "sizes", "weights", "parameters", "n_features", "l1", "l2", "net"),
    *("smoothness", "strong_convexity", "common_mu_L", "restricted_work"),
    *("start", "T", "project", "targets", "n_targets"),
    *("on_demand", "refuse_all"),
}
_COUNTED = {
    *("gradient", "client_gradients", "client_hessians", "loss", "client_losses"),
    *("per_client_gradients", "per_client_descent", "per_client_hessians", "minibatch_steps"),
    *("restricted_minima", "restricted_descent", "oracle", "mirror", "sources"),
}
_FREE_LOCALLY = {"start", "threshold", "mean"}
_COUNTED_LOCALLY = {"gradient", "descend", "pursue", "restricted_minima", "restricted_descent"}
# Where these have their batch, and those that name their clients before it.
_BATCH = {"gradient": 1, "per_client_gradients": 1, "oracle": 2, "sources": 1}
_CHOSEN = {"oracle": 1, "sources": 0}
# Those whose first argument is not of points.
_NO_POINTS = {"descend", "pursue", "sources"}

_STAYS = "it reads {}: clients' data stay with them; ask for gradients, Hessians or losses"

_idle: ContextVar[NDArray | None] = ContextVar("idle", default=None)


class RawDataError(ReplifedError):
    """A method reads the clients' data, or another attribute that cannot be counted."""


@contextmanager
def idle(lanes: NDArray) -> Iterator[None]:
    """Declare that the caller discards the answers for `lanes`, a mask (R, 1) or (R, N), of a batched call.

    An audited problem returns zeros for them at no cost; any other problem ignores the declaration.
    """
    token = _idle.set(lanes)
    try:
        yield
    finally:
        _idle.reset(token)


class Call(NamedTuple):
    """One call by which a method uses the clients' data, and its cost for each client."""

    name: str
    arguments: list[Any]
    runs: NDArray  # numbers of the runs, (r,)
    clients: NDArray  # numbers of the clients, (r or 1, c)
    samples: NDArray | float = 0.0  # gradients of single samples, (r or 1, c)
    hessians: NDArray | float = 0.0
    values: NDArray | float = 0.0  # of the client's loss


class Listener(Protocol):
    """Receiver of the calls."""

    def answer(self, call: Call, answer: Any) -> Any:
        """Record `call` and return the answer that the method gets."""


class _Place(NamedTuple):
    """Indices, in the whole problem, of the runs and clients of a part of it."""

    runs: NDArray  # (r,)
    clients: NDArray  # (r or 1, c)
    sizes: NDArray  # of all clients, (R, N)
    listener: Listener

    def among(self, chosen: Any) -> _Place:
        """Indices for the clients `chosen` (r or 1, c) among these; None for all."""
        if chosen is None:
            return self
        rows = max(len(chosen), len(self.clients))
        mine, chosen = (np.broadcast_to(a, (rows, a.shape[1])) for a in (self.clients, np.asarray(chosen)))
        return self._replace(clients=np.take_along_axis(mine, chosen, axis=1))

    def one_pass(self, batch: Any = None) -> NDArray:
        """Samples that each client uses for one gradient, (r, c) or (r or 1, c)."""
        if batch is None:
            return self.sizes[self.runs[:, None], self.clients].astype(float)
        return np.full(self.clients.shape, float(np.shape(batch)[-1]))

    def report(self, name: str, arguments: Any, answer: Any, times: float = 1.0, **taken: Any) -> Any:
        """Report a call to the listener, without the cost of idle lanes, and return the answer."""
        lanes = _idle.get()
        shape = len(self.runs), self.clients.shape[1]
        if lanes is not None and lanes.any() and np.shape(answer)[:2] == shape:
            lanes = np.broadcast_to(lanes, shape)
            taken = {kind: np.where(lanes, 0.0, amount) for kind, amount in taken.items()}
            answer = np.where(lanes.reshape(*shape, *(1,) * (answer.ndim - 2)), 0, answer)
        taken = {kind: times * amount for kind, amount in taken.items()}
        return self.listener.answer(Call(name, list(arguments), self.runs, self.clients, **taken), answer)


def audited(problem: Any, runs: int, listener: Listener) -> Any:
    """Problem for `runs` runs that reports each use of the clients' data to `listener`.

    Raises
    ------
    RawDataError
        Later, when a method reads an attribute that is neither counted nor public.
    """
    sizes = np.repeat(problem.sizes, runs // len(problem.sizes), axis=0)
    everyone = np.arange(problem.n_clients)[None]
    return _Audited(problem, _Place(np.arange(runs), everyone, sizes, listener))


class _Hidden:
    """Wrapper of a problem, or of local models, which passes on only calls that it can count."""

    __slots__ = ("_of",)

    def __init__(self, *of: Any) -> None:
        self._of = of

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__reduce_ex__"):
            return object.__getattribute__(self, name)
        return object.__getattribute__(self, "_found")(name, *object.__getattribute__(self, "_of"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RawDataError(_STAYS.format("a copy of the problem"))


class _Audited(_Hidden):
    """A problem, or a part of it."""

    __slots__ = ()

    @staticmethod
    def _found(name: str, raw: Any, place: _Place) -> Any:
        found = getattr(raw, name)  # an AttributeError for what the problem lacks
        if name in _FREE:
            return _unbound(found)
        if name in _COUNTED:
            return _counted(found, name, raw, place)
        if name == "local":
            return _local(found, raw, place)
        if name in _SPECIAL:
            return _SPECIAL[name](found, place)
        raise RawDataError(_STAYS.format(f"problem.{name}"))


class _AuditedLocally(_Hidden):
    """Local models of the clients that take part."""

    __slots__ = ()

    @staticmethod
    def _found(name: str, raw: Any, problem: Any, place: _Place) -> Any:
        found = getattr(raw, name)
        if name in _FREE_LOCALLY:
            return _unbound(found)
        if name in _COUNTED_LOCALLY:
            return _counted(found, name, problem, place, "local ")
        raise RawDataError(_STAYS.format(f"{name} of local models"))


def _unbound(found: Any) -> Any:
    """Return an attribute of a problem; a bound method loses its reference to the problem."""
    return (lambda *given, **named: found(*given, **named)) if ismethod(found) else found


def _counted(
    ask: Callable[..., Any], name: str, problem: Any, place: _Place, prefix: str = ""
) -> Callable[..., Any]:
    """Function that reports its calls, as `name` with the `prefix`."""

    def asked(*arguments: Any, **named: Any) -> Any:
        answer = ask(*arguments, **named)
        if answer is None:  # what is not compiled is asked for step by step
            return None

        def given(position: int, key: str) -> Any:
            return arguments[position] if len(arguments) > position else named.get(key)

        of = place.among(given(_CHOSEN[name], "chosen")) if name in _CHOSEN else place
        # Rows beyond those of the runs are further points.
        times = 1.0 if name in _NO_POINTS else max(1.0, len(arguments[0]) / len(place.runs))
        taken: dict[str, Any] = {}
        match name:
            case "client_hessians" | "per_client_hessians":
                taken["hessians"] = 1.0
            case "loss" | "client_losses":
                taken["values"] = 1.0
            case "per_client_descent":
                taken["samples"] = given(1, "steps") * of.one_pass()
            case "minibatch_steps" | "descend":
                batches = given(1 if name == "minibatch_steps" else 0, "batches")
                taken["samples"] = len(batches) * of.one_pass(batches[0])
            case "pursue":
                batches, inner = given(0, "batches"), given(1, "inner")
                taken["samples"] = (len(batches) + len(inner)) * of.one_pass(batches[0])
            case "restricted_minima":
                size = np.count_nonzero(given(1, "support"), axis=-1)
                taken["samples"] = problem.restricted_work(size)
            case "restricted_descent":
                size = np.count_nonzero(given(1, "support"), axis=-1)
                taken["samples"] = given(2, "steps") * of.one_pass() * size / problem.dim
            case _:
                batch = given(_BATCH[name], "batch") if name in _BATCH else None
                taken["samples"] = of.one_pass(batch)
        return of.report(prefix + name, [*arguments, *named.values()], answer, times, **taken)

    return asked


def _local(ask: Callable[..., Any], problem: Any, place: _Place) -> Callable[..., Any]:
    def local(x: NDArray, *, clients: NDArray | None = None, **more: Any) -> Any:
        of = place.among(clients)
        of.report("local", [x], None)
        return _AuditedLocally(ask(x, clients=clients, **more), problem, of)

    return local


def _with_clients(ask: Callable[..., Any], place: _Place) -> Callable[..., Any]:
    return lambda chosen: _Audited(ask(chosen), place.among(chosen))


def _with_runs(ask: Callable[..., Any], place: _Place) -> Callable[..., Any]:
    def with_runs(kept: NDArray) -> Any:
        clients = place.clients[kept] if len(place.clients) > 1 else place.clients
        return _Audited(ask(kept), place._replace(runs=place.runs[kept], clients=clients))

    return with_runs


def _along(ask: Callable[..., Any], place: _Place) -> Callable[..., Any]:
    """Losses on a line; runs whose step has not changed since the last call cost nothing."""

    def along(x: NDArray, p: NDArray) -> Callable[[NDArray], NDArray]:
        losses, last = ask(x, p), np.full(len(place.runs), np.nan)

        def at(eta: NDArray) -> NDArray:
            new = eta != last
            last[:] = eta
            return place.report(
                "along", [eta], losses(eta), values=np.broadcast_to(new[:, None], (len(new), 1))
            )

        return at

    return along


def _hessian_products(ask: Callable[..., Any], place: _Place) -> Callable[..., Any]:
    """Products with a Hessian, each of which is worth a gradient."""

    def hessian_products(x: NDArray) -> Callable[[NDArray], NDArray]:
        multiply = ask(x)
        return lambda v: place.report("hessian_products", [x, v], multiply(v), samples=place.one_pass())

    return hessian_products


_SPECIAL = {
    "with_clients": _with_clients,
    "with_runs": _with_runs,
    "along": _along,
    "hessian_products": _hessian_products,
}
