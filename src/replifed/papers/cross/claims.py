"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from replifed.papers.cross.families import EXPERIMENTS
from replifed.papers.verdicts import Claim, Measured

_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")


def _ends_below(method: str, biased: str) -> Callable[[Any], Measured]:
    """Decades by which `method` ends below `biased`, over seeds and data sets."""

    def measure(inputs: Any) -> Measured:
        differences = []
        for experiment in EXPERIMENTS:
            ends = []
            for name in (method, biased):
                history = inputs.run(experiment, name).sort_values("round")
                ends.append(np.log10(history.groupby("replicate")["gap"].last().clip(1e-12, 1e12)))
            differences.append((ends[1] - ends[0]).to_numpy())
        return Measured(np.concatenate(differences))

    return measure


CLAIMS = [
    Claim(
        id=f"cross.{method}.below_fedavg",
        paper="cross",
        artefact="fig2" if method == "newton" else "fig1",
        statement=f"{method}, which has no client drift, ends with a smaller gap than FedAvg.",
        kind="order",
        needs=tuple(f"run:{experiment}/{name}" for experiment in EXPERIMENTS for name in (method, "fedavg")),
        measure=_ends_below(method, "fedavg"),
    )
    for method in _EXACT
]
