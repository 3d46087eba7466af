"""Replication of federated-optimisation papers: algorithms, problems and one engine that runs them."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where the names of `import replifed` come from when they are asked for: no job imports what it does not use.
_LIBRARY = {
    **dict.fromkeys(
        ("method", "run", "compare", "Comparison", "load", "read", "split", "hold_out"), "replifed.library"
    ),
    "judge": "replifed.testing",
    "Runs": "replifed.logs.runs",
    "Statements": "replifed.claims.statements",
    **dict.fromkeys(("Gradient", "Stochastic"), "replifed.algorithms.local_solvers"),
}


def __getattr__(name: str) -> Any:
    if name in _LIBRARY:
        return getattr(import_module(_LIBRARY[name]), name)
    if name == "problems":
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
