"""Clients' losses, with gradients, Hessians and local steps, for all clients and runs at once."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "from_clients":
        return getattr(import_module(f"{__name__}.clients"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
