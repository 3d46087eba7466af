"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from replifed.claims.quantities import Quantity, least, quantity, run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.claims.verdicts import Claim
from replifed.papers.cross.paper import EXPERIMENTS, PROBLEMS, WITH_NORM

CLAIM = Statements("cross")
_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")
_CORRECTED = ("scaffold", "scaffnew", "slocalgd", "feddyn", "fedsplit")


@quantity
def last_gap(history: pd.DataFrame) -> Sample:
    """Decimal logarithm of the last gap."""
    gaps = history.sort_values("round").groupby("replicate")["gap"].last().clip(1e-12, 1e12)
    return Sample(np.log10(gaps.to_numpy()), seeds=gaps.index.to_numpy())


def _below(method: str, other: str, problems: Iterable[str]) -> Quantity:
    """Decades between the gaps, on the data set where they are fewest.

    Runs of one method on several data sets are no independent sample of anything: a seed has one number.
    """
    decades = [last_gap(run(name, other)) - last_gap(run(name, method)) for name in problems]
    means = ", ".join(f"{PROBLEMS[name]} {{{place}.mean:.3g}}" for place, name in enumerate(problems))
    return least(*decades).note(f"decades by data set: {means}", *decades)


# What a claim that does not come out hangs on.
_NOTES = {
    "fedmm": "its step follows from the data, 1/L, and it takes one gradient a round: after 150 rounds it is "
    "still falling, where FedMid has come to rest",
}


def _claim(method: str, why: str, other: str, where: str, problems: Iterable[str], artefact: str) -> Claim:
    return CLAIM.order(
        f"{method}.below_{other}",
        f"{method}, {why}, ends with a smaller gap than {_NAMES[other]} {where}.",
        _below(method, other, problems),
        artefact=artefact,
        unit="decades",
        least=1.0,
        because="a gap of a tenth",
        note=_NOTES.get(method, ""),
    )


_NAMES = {"fedavg": "FedAvg", "fedmid": "FedMid", "fedht": "FedHT", "fediterht": "FedIterHT"}
_NO_DRIFT = "which has no client drift"

CLAIMS = [
    *(
        _claim(
            method,
            _NO_DRIFT,
            "fedavg",
            "on every data set",
            EXPERIMENTS,
            "fig6" if method in _CORRECTED else "fig2" if method == "newton" else "fig1",
        )
        for method in (*_EXACT, *_CORRECTED)
    ),
    *(
        _claim(method, why, "fedmid", "on every problem with a 1-norm", WITH_NORM, "fig3")
        for method, why in {
            "feddualavg": "which averages before it thresholds",
            "fedplt": _NO_DRIFT,
            "fedmm": _NO_DRIFT,
        }.items()
    ),
    *(
        _claim("distributed_iht", _NO_DRIFT, other, "on the planted problem", ["planted"], "fig4")
        for other in ("fedht", "fediterht")
    ),
]
