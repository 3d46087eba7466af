"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from replifed.papers.cross.paper import EXPERIMENTS
from replifed.papers.verdicts import Claim, Measured, NotMeasurableError

_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")


def _ends_below(method: str, biased: str) -> Callable[[Any], Measured]:
    """Decades by which `method` ends below `biased`: one number a seed, the mean over data sets.

    Runs of one method on several data sets are no independent sample of anything, so that they may not
    narrow the interval.
    """

    def measure(inputs: Any) -> Measured:
        decades = pd.DataFrame(
            {
                EXPERIMENTS[experiment]: _last(inputs, experiment, biased) - _last(inputs, experiment, method)
                for experiment in EXPERIMENTS
            }
        ).dropna()
        if decades.empty:
            raise NotMeasurableError("no seed was run on every data set")
        shares = ", ".join(f"{name} {mean:.3g}" for name, mean in decades.mean().items())
        return Measured(decades.mean(axis=1).to_numpy(), note=f"decades by data set: {shares}")

    return measure


def _last(inputs: Any, experiment: str, method: str) -> pd.Series:
    """Decimal logarithm of the last gap, by seed."""
    history = inputs.run(experiment, method).sort_values("round")
    return np.log10(history.groupby("replicate")["gap"].last().clip(1e-12, 1e12))


CLAIMS = [
    Claim(
        id=f"cross.{method}.below_fedavg",
        paper="cross",
        artefact="fig2" if method == "newton" else "fig1",
        statement=f"{method}, which has no client drift, ends with a smaller gap than FedAvg, in decades on "
        "average over the data sets.",
        kind="order",
        unit="decades",
        needs=tuple(f"run:{experiment}/{name}" for experiment in EXPERIMENTS for name in (method, "fedavg")),
        measure=_ends_below(method, "fedavg"),
    )
    for method in _EXACT
]
