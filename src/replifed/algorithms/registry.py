"""Names of all methods. Importing this module loads none of them."""

from __future__ import annotations

from importlib import import_module

from replifed.errors import ConfigError, unknown_name

METHODS: dict[str, str] = {
    "distributed_iht": "replifed.algorithms.distributed_iht:DistributedIHT",
    "fedavg": "replifed.algorithms.fedavg:FedAvg",
    "fedht": "replifed.algorithms.fedht:FedHT",
    "fediterht": "replifed.algorithms.fediterht:FedIterHT",
}


def method_class(name: str) -> type:
    """Return the class of the method called `name`."""
    if name not in METHODS:
        raise ConfigError(unknown_name("method", name, METHODS))
    module, attribute = METHODS[name].split(":")
    return getattr(import_module(module), attribute)
