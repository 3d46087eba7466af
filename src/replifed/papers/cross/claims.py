"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.claims.quantities import quantity, run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.papers.cross.paper import EXPERIMENTS

CLAIM = Statements("cross")
_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")


@quantity
def last_gap(history: pd.DataFrame) -> Sample:
    """Decimal logarithm of the last gap."""
    gaps = history.sort_values("round").groupby("replicate")["gap"].last().clip(1e-12, 1e12)
    return Sample(np.log10(gaps.to_numpy()), seeds=gaps.index.to_numpy())


@quantity
def over_data_sets(*decades: Sample) -> Measured:
    """One number a seed, the mean over data sets.

    Runs of one method on several data sets are no independent sample of anything, so that they may not
    narrow the interval.
    """
    columns = zip(EXPERIMENTS.values(), decades, strict=True)
    table = pd.DataFrame({name: pd.Series(one.values, one.seeds) for name, one in columns}).dropna()
    if table.empty:
        raise NotMeasurableError("no seed was run on every data set")
    means = ", ".join(f"{name} {mean:.3g}" for name, mean in table.mean().items())
    return Measured(table.mean(axis=1).to_numpy(), note=f"decades by data set: {means}")


CLAIMS = [
    CLAIM.order(
        f"{method}.below_fedavg",
        f"{method}, which has no client drift, ends with a smaller gap than FedAvg, in decades on "
        "average over the data sets.",
        over_data_sets(*(last_gap(run(one, "fedavg")) - last_gap(run(one, method)) for one in EXPERIMENTS)),
        artefact="fig2" if method == "newton" else "fig1",
        unit="decades",
    )
    for method in _EXACT
]
