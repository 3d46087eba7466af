"""Statements that hold on these problems whatever paper a method is from; nothing is open in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, least, quantity, run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.engine.accuracy import ACCURACY
from replifed.papers.cross.paper import EXPERIMENTS, LABELS, PROBLEMS, WITH_COHORT, WITH_NORM

CLAIM = Statements("cross", runs="own runs")
_EXACT = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs", "newton")
_CORRECTED = ("scaffold", "scaffnew", "slocalgd", "feddyn", "fedsplit")
_OF_COHORTS = ("fedplt", "tamuna", "fivegcs", "scaffold", "feddyn", "feddc")
# Whose papers say that they are more accurate than FedAvg.
_MORE_ACCURATE = ("scaffold", "feddyn", "feddc")


@quantity
def last_gap(history: pd.DataFrame) -> Sample:
    """Decimal logarithm of the last gap."""
    gaps = history.sort_values("round").groupby("replicate")["gap"].last().clip(1e-12, 1e12)
    return Sample(np.log10(gaps.to_numpy()), seeds=gaps.index.to_numpy())


@quantity
def last_accuracy(history: pd.DataFrame) -> Sample:
    """Share of the test samples that the last model classifies right, mean over clients."""
    last = history.sort_values("round").groupby("replicate")[ACCURACY].last()
    return Sample(last.to_numpy(), seeds=last.index.to_numpy())


def _below(method: str, other: str, problems: Iterable[str]) -> Quantity:
    """Decades between the gaps, on the data set with the fewest.

    Runs of one method on several data sets are no independent sample of anything: a seed has one number.
    """
    decades = [last_gap(run(name, other)) - last_gap(run(name, method)) for name in problems]
    means = ", ".join(f"{PROBLEMS[name]} {{{place}.mean:.3g}}" for place, name in enumerate(problems))
    return least(*decades).note(f"decades by data set: {means}", *decades)


_NAMES = {"fedavg": "FedAvg", "fedmid": "FedMid", "fedht": "FedHT", "fediterht": "FedIterHT"}
_NO_DRIFT = "which has no client drift"
# What a claim that does not come out depends on.
_NOTES = {
    "fedmm": "FedMM's step size is the inverse of L, with one gradient per round: at the end it still "
    "descends, while FedMid has come to rest"
}


def _smaller(method: str, other: str, artefact: str, says: str, problems: Iterable[str]) -> Iterator[Claim]:
    yield CLAIM(f"{method}.below_{other}", unit="decades", artefact=artefact).order(
        says,
        _below(method, other, problems),
        least=1.0,
        because="a gap of a tenth",
        note=_NOTES.get(method, ""),
    )


def _gaps() -> None:
    """Sentences on smaller gaps than those of a method with client drift."""
    other_figures = {"newton": "fig2"} | dict.fromkeys(_CORRECTED, "fig6")
    rows: list[tuple[str, str, str, str, str, Iterable[str]]] = [
        (other_figures.get(method, "fig1"), method, _NO_DRIFT, "fedavg", "on every data set", EXPERIMENTS)
        for method in (*_EXACT, *_CORRECTED)
    ]
    averages = "which averages before it thresholds"
    for method, why in (("feddualavg", averages), ("fedplt", _NO_DRIFT), ("fedmm", _NO_DRIFT)):
        rows.append(("fig3", method, why, "fedmid", "on every problem with a 1-norm", WITH_NORM))
    for other in ("fedht", "fediterht"):
        rows.append(("fig4", "distributed_iht", _NO_DRIFT, other, "on the planted problem", ["planted"]))
    for artefact, method, why, other, where, problems in rows:
        says = f"{LABELS[method]}, {why}, ends with a smaller gap than {_NAMES[other]} {where}."
        CLAIM.sentence(f"{method}.below_{other}", f"Figure {artefact[3:]}", says)(
            partial(_smaller, method, other, artefact, says, problems)
        )


_gaps()


def _smaller_with_cohorts(method: str, says: str) -> Iterator[Claim]:
    yield CLAIM(f"{method}.cohort", unit="decades", artefact="fig7").order(
        says,
        _below(method, "fedavg", WITH_COHORT),
        least=1.0,
        because="a gap of a tenth",
        note="a client takes part in one round of ten on average, so that the state it keeps is old",
    )


def _more_accurate(method: str, says: str) -> Iterator[Claim]:
    yield CLAIM(f"{method}.accuracy", unit="share", artefact="accuracies").order(
        says,
        last_accuracy(run("writers", method)) - last_accuracy(run("writers", "fedavg")),
        least=0.01,
        because="one sample in a hundred",
    )


def _cohorts() -> None:
    """Sentences on what is left of a method's advantage where one client in ten takes part."""
    for method in _OF_COHORTS:
        says = (
            f"{LABELS[method]}, {_NO_DRIFT}, ends with a smaller gap than FedAvg where one client in ten "
            "takes part."
        )
        CLAIM.sentence(f"{method}.cohort", "Figure 7", says)(partial(_smaller_with_cohorts, method, says))
    for method in _MORE_ACCURATE:
        says = f"{LABELS[method]} ends more accurate than FedAvg on digits by writer."
        CLAIM.sentence(f"{method}.accuracy", "Figure 7", says)(partial(_more_accurate, method, says))


_cohorts()

CLAIMS, SENTENCES = CLAIM.all(), CLAIM.sentences
