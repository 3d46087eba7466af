"""Names of all methods. Importing this module loads none of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from replifed.errors import ConfigError, unknown_name

METHODS: dict[str, str] = {
    "distributed_iht": "replifed.algorithms.distributed_iht:DistributedIHT",
    "fedac": "replifed.algorithms.fedac:FedAc",
    "fedadam": "replifed.algorithms.fedadam:FedAdam",
    "fedadam_server": "replifed.algorithms.fedadam_server:FedAdamServer",
    "fedavg": "replifed.algorithms.fedavg:FedAvg",
    "fedavgm": "replifed.algorithms.fedavgm:FedAvgM",
    "feddualavg": "replifed.algorithms.feddualavg:FedDualAvg",
    "feddyn": "replifed.algorithms.feddyn:FedDyn",
    "fedgradmp": "replifed.algorithms.fedgradmp:FedGradMP",
    "fedht": "replifed.algorithms.fedht:FedHT",
    "fediterht": "replifed.algorithms.fediterht:FedIterHT",
    "fedlin": "replifed.algorithms.fedlin:FedLin",
    "fedmid": "replifed.algorithms.fedmid:FedMid",
    "fedmm": "replifed.algorithms.fedmm:FedMM",
    "fedmm_ot": "replifed.algorithms.fedmm_ot:FedMMOT",
    "fednl": "replifed.algorithms.fednl:FedNL",
    "fednova": "replifed.algorithms.fednova:FedNova",
    "fedpd": "replifed.algorithms.fedpd:FedPD",
    "fedplt": "replifed.algorithms.fedplt:FedPLT",
    "fedprox": "replifed.algorithms.fedprox:FedProx",
    "fedsplit": "replifed.algorithms.fedsplit:FedSplit",
    "fivegcs": "replifed.algorithms.fivegcs:FiveGCS",
    "giant": "replifed.algorithms.giant:Giant",
    "gradient_descent": "replifed.algorithms.gradient_descent:GradientDescent",
    "ideal_shed": "replifed.algorithms.shed:IdealShed",
    "led": "replifed.algorithms.led:LED",
    "mb_ac_sgd": "replifed.algorithms.minibatch:MinibatchAcSGD",
    "mb_sgd": "replifed.algorithms.minibatch:MinibatchSGD",
    "newton": "replifed.algorithms.newton:DistributedNewton",
    "nqshed": "replifed.algorithms.shed:NQShed",
    "parameter_aggregation": "replifed.algorithms.fedmm:ParameterAggregation",
    "qshed": "replifed.algorithms.shed:QShed",
    "sa_ssmm": "replifed.algorithms.sa_ssmm:SaSsmm",
    "scaffnew": "replifed.algorithms.scaffnew:Scaffnew",
    "scaffold": "replifed.algorithms.scaffold:Scaffold",
    "shed": "replifed.algorithms.shed:Shed",
    "slocalgd": "replifed.algorithms.slocalgd:SLocalGD",
    "tamuna": "replifed.algorithms.tamuna:TAMUNA",
}


BUILT_IN = frozenset(METHODS)
# Custom methods, NAME: FILE.py:CLASS as JSON, for jobs, which are other processes.
_VARIABLE = "REPLIFED_METHODS"
INSTALLED = {entry.name: entry.value for entry in entry_points(group="replifed.methods")}  # of other packages
METHODS |= INSTALLED
METHODS |= json.loads(os.environ.get(_VARIABLE, "{}"))


def register(methods: Mapping[str, str]) -> None:
    """Add methods, NAME: FILE.py:CLASS, in this process and in those that it starts."""
    METHODS.update(methods)
    os.environ[_VARIABLE] = json.dumps(dict(methods))


def registered() -> dict[str, str]:
    """Name and value of the environment variable that passes the custom methods to other processes."""
    return {_VARIABLE: os.environ[_VARIABLE]} if _VARIABLE in os.environ else {}


def method_class(name: str) -> type[Any]:
    """Return the class of the method called `name`, or of a custom one, `FILE.py:CLASS`."""
    if ":" in name or name.endswith(".py"):
        return class_of(name)
    if name not in METHODS:
        raise ConfigError(unknown_name("method", name, METHODS))
    return class_of(METHODS[name])


def class_of(source: str) -> type[Any]:
    """Return the class of `MODULE:CLASS`, or of `FILE.py:CLASS`, a custom method."""
    module, colon, attribute = source.rpartition(":")
    if not colon:
        raise ConfigError(f"{source}: no method; write FILE.py:CLASS, such as mine.py:Mine")
    if module.endswith(".py"):
        # A composed name, since one in full would make `own` a source of every job.
        return import_module(f"{__package__}.own").load(source)
    return getattr(import_module(module), attribute)
