"""Clients' losses, with gradients, Hessians and local steps, for all clients and runs at once."""

from importlib import import_module
from typing import Any

_MAKERS = {"from_clients": "clients", "from_function": "on_demand"}


def __getattr__(name: str) -> Any:
    if name in _MAKERS:
        return getattr(import_module(f"{__name__}.{_MAKERS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
