"""Statements that hold on these problems whatever paper a method is from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, least, quantity, run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.papers.cross.paper import EXPERIMENTS, LABELS, PROBLEMS, RATES, WITH_NORM

CLAIM = Statements("cross")
_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")
_CORRECTED = ("scaffold", "scaffnew", "slocalgd", "feddyn", "fedsplit")


@quantity
def last_gap(history: pd.DataFrame) -> Sample:
    """Decimal logarithm of the last gap."""
    gaps = history.sort_values("round").groupby("replicate")["gap"].last().clip(1e-12, 1e12)
    return Sample(np.log10(gaps.to_numpy()), seeds=gaps.index.to_numpy())


@quantity
def exponent(history: pd.DataFrame) -> Sample:
    """Slope of log communications on log kappa, a seed's; a bound if the target was not always reached."""
    slopes, bounds, seeds = [], [], []
    for seed, part in history.groupby("replicate"):
        slopes.append(np.polyfit(np.log(part["kappa"]), np.log(part["round"]), 1)[0])
        bounds.append(0 if part["reached"].all() else 1)
        seeds.append(seed)
    return Sample(np.array(slopes), np.array(bounds), np.array(seeds))


@quantity
def slowest_fall(history: pd.DataFrame) -> Sample:
    """How many times as fast as its bound Psi falls, by logarithms: a seed's least over condition numbers."""
    ratios = history.groupby("replicate")["ratio"].min()
    return Sample(ratios.to_numpy(), seeds=ratios.index.to_numpy())


def _below(method: str, other: str, problems: Iterable[str]) -> Quantity:
    """Decades between the gaps, on the data set where they are fewest.

    Runs of one method on several data sets are no independent sample of anything: a seed has one number.
    """
    decades = [last_gap(run(name, other)) - last_gap(run(name, method)) for name in problems]
    means = ", ".join(f"{PROBLEMS[name]} {{{place}.mean:.3g}}" for place, name in enumerate(problems))
    return least(*decades).note(f"decades by data set: {means}", *decades)


# What a claim that does not come out depends on.
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


def _grows(method: str, where: str, published: float, within: float, because: str, says: str) -> Claim:
    root = published < 1
    return CLAIM.value(
        f"rates.{method}.{where.removeprefix('rates_')}",
        f"{LABELS[method]}'s communications grow like "
        f"{'the root of kappa' if root else 'kappa'} on {RATES[where]}.",
        published,
        exponent(run(where, method)),
        artefact="rates",
        says=says,
        unit="ratio",
        within=within,
        because=because,
        note=""
        if root
        else "kappa is what its theorem bounds communications by; all methods have sqrt(kappa) "
        "local steps and their best step, and may do with fewer",
    )


_ROOT = "a fifth of the exponent: the Lyapunov function's start has kappa in it, and its logarithm adds to it"
_LINEAR = "the same for the larger exponent, and far from one half"
_RATES = [
    CLAIM.order(
        f"rates.lyapunov.{where.removeprefix('rates_')}",
        f"With gamma = 1/L and p = 1/sqrt(kappa) Scaffnew's Lyapunov function falls in an iteration at least "
        f"by max(1 - gamma mu, 1 - p^2) on {RATES[where]}, at every condition number.",
        slowest_fall(run(where, "scaffnew")),
        artefact="rates",
        says="rates.lyapunov",
        published=1.0,
        unit="ratio",
        least=0.05,
        because="a twentieth of the exponent; 2 is expected, from (1 - gamma mu)^2 along a curvature of mu",
    )
    for where in RATES
] + [
    _grows(method, where, 0.5, 0.1, _ROOT, "rates.root")
    if method == "scaffnew"
    else _grows(method, where, 1.0, 0.2, _LINEAR, "rates.linear")
    for method in ("scaffnew", "scaffold", "fedlin", "slocalgd")
    for where in RATES
]

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
    *_RATES,
]
