"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.claims.quantities import Quantity, least, quantity, run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.papers.cross.paper import EXPERIMENTS

CLAIM = Statements("cross")
_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")


@quantity
def last_gap(history: pd.DataFrame) -> Sample:
    """Decimal logarithm of the last gap."""
    gaps = history.sort_values("round").groupby("replicate")["gap"].last().clip(1e-12, 1e12)
    return Sample(np.log10(gaps.to_numpy()), seeds=gaps.index.to_numpy())


def _below_fedavg(method: str) -> Quantity:
    """Decades between the gaps, on the data set where they are fewest.

    Runs of one method on several data sets are no independent sample of anything: a seed has one number.
    """
    decades = [last_gap(run(name, "fedavg")) - last_gap(run(name, method)) for name in EXPERIMENTS]
    means = ", ".join(f"{name} {{{place}.mean:.3g}}" for place, name in enumerate(EXPERIMENTS.values()))
    return least(*decades).note(f"decades by data set: {means}", *decades)


CLAIMS = [
    CLAIM.order(
        f"{method}.below_fedavg",
        f"{method}, which has no client drift, ends with a smaller gap than FedAvg on every data set.",
        _below_fedavg(method),
        artefact="fig2" if method == "newton" else "fig1",
        unit="decades",
        least=1.0,
        because="a gap of a tenth",
    )
    for method in _EXACT
]
