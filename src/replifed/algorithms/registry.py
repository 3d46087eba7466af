"""Names of all methods. Importing this module loads none of them."""

from __future__ import annotations

from importlib import import_module

from replifed.errors import ConfigError, unknown_name

METHODS: dict[str, str] = {
    "distributed_iht": "replifed.algorithms.distributed_iht:DistributedIHT",
    "fedavg": "replifed.algorithms.fedavg:FedAvg",
    "feddualavg": "replifed.algorithms.feddualavg:FedDualAvg",
    "fedgradmp": "replifed.algorithms.fedgradmp:FedGradMP",
    "fedht": "replifed.algorithms.fedht:FedHT",
    "fediterht": "replifed.algorithms.fediterht:FedIterHT",
    "fedmid": "replifed.algorithms.fedmid:FedMid",
    "fedlin": "replifed.algorithms.fedlin:FedLin",
    "fedpd": "replifed.algorithms.fedpd:FedPD",
    "fedplt": "replifed.algorithms.fedplt:FedPLT",
    "fedmm": "replifed.algorithms.fedmm:FedMM",
    "fivegcs": "replifed.algorithms.fivegcs:FiveGCS",
    "led": "replifed.algorithms.led:LED",
    "tamuna": "replifed.algorithms.tamuna:TAMUNA",
    "parameter_aggregation": "replifed.algorithms.fedmm:ParameterAggregation",
    "sa_ssmm": "replifed.algorithms.sa_ssmm:SaSsmm",
}


def method_class(name: str) -> type:
    """Return the class of the method called `name`."""
    if name not in METHODS:
        raise ConfigError(unknown_name("method", name, METHODS))
    module, attribute = METHODS[name].split(":")
    return getattr(import_module(module), attribute)
