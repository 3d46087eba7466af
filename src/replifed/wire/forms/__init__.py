"""Each method as what one client and the server do: read these first; `algorithms` has all clients at once.

A form has two functions. Messages are lists of parts (`wire.messages`), which arrive as lists of arrays.

client(method, message, own, data, turn) -> (message, own)
    Answer a message of the server. `own` is the client's state, a dict of arrays, empty at first; `data` its
    `wire.own_data.OwnData`; `turn` a `wire.session.Turn`.
server(method, state, turn) -> generator
    One round from `state`, a dict of arrays with the model "x". It yields a message to all clients that take
    part, or one for each, by client, and gets their answers by client; it returns the next state.

A method of one's own has both as methods of its class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from replifed.errors import ConfigError

MODULES = {
    "FedAvg": "fedavg",
    "FedGradMP": "fedgradmp",
    "FedHT": "fedht",
    "FedIterHT": "fediterht",
    "FedLin": "fedlin",
    "FedNL": "fednl",
    "FedPLT": "fedplt",
    "QShed": "qshed",
    "Scaffnew": "scaffnew",
    "Scaffold": "scaffold",
    "TAMUNA": "tamuna",
}
"""Module of the form of each built-in method's class that has one."""


class Forms(NamedTuple):
    """What a client and the server do, for one method with its settings."""

    client: Callable[..., Any]
    server: Callable[..., Any]


def has_forms(cls: type[Any]) -> bool:
    """Return whether a method's class has a client's and a server's form."""
    own = (getattr(cls, name, None) for name in ("client", "server"))
    return all(map(callable, own)) or (cls.__module__.startswith("replifed.") and cls.__name__ in MODULES)


def forms_of(method: Any) -> Forms:
    """Return both forms of a method.

    Raises
    ------
    ConfigError
        If it has none.
    """
    cls = type(method)
    if not has_forms(cls):
        raise ConfigError(
            f"{cls.__name__} has no client and server: those that have are {', '.join(sorted(MODULES))}, and "
            "methods of your own with both (docs/own-method.md)"
        )
    if hasattr(method, "client"):
        return Forms(method.client, method.server)
    module = import_module(f"{__name__}.{MODULES[cls.__name__]}")
    return Forms(partial(module.client, method), partial(module.server, method))
