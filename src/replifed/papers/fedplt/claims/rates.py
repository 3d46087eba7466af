"""Rates of Table II as claims take them, by method, local solver, agents and reading."""

from __future__ import annotations

from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity
from replifed.claims.statements import Statements
from replifed.papers.fedplt import measures
from replifed.papers.fedplt.axes import DATA, Reading
from replifed.papers.fedplt.methods import PARTIAL
from replifed.papers.fedplt.paper import COLUMNS, METHODS, STORED

TUNING = (
    "the paper does not print the baselines' parameters, and a search of two parameters finds faster ones"
)
COINCIDE = "chosen on each data set itself: such a run is not random, so the best trial is the run reported"
ORDER_NOTES = {
    "equal budget": "every method searches its local step and its own parameters, from one grid and by one "
    f"rule; {COINCIDE}",
    "common": f"we tune rho alone for Fed-PLT, and two parameters for its rivals (one for FedLin); {TUNING}",
}


def claims(reading: Reading, **common: str) -> Statements:
    """Statements on Table II in a reading."""
    artefact = "table2_theory" if reading.way == "theory" else reading.experiment("table2")
    return reading.claims(artefact=artefact, **common)


def rate(reading: Reading, method: str, solver: str, who: str, *, clip: bool = False) -> Quantity:
    """Rates of a cell, one a data set; that of a run that diverged is a bound, or just one with `clip`."""
    return measures.rates(reading.run("comparison", method), solver, who, reading.way, clipped=clip)


def clipped(reading: Reading, method: str, solver: str, who: str) -> Quantity:
    """Rates of a cell, of which those of runs that diverged are one."""
    return rate(reading, method, solver, who, clip=True)


def ran(method: str, who: str, *ways: str) -> Iterator[Reading]:
    """Readings, by the ways to tune, in which a cell was run.

    Choosing by data set would take the luckiest of random runs.
    """
    certain = who == "all" and method != "tamuna"
    there = {"own": certain or method == "fedplt", "equal budget": certain, "common": True, "theory": True}
    for loss, data in DATA:
        for way in ways:
            if there[way] and (loss, way) != ("mean", "theory"):
                yield Reading(loss, data, way)


def faster_than_rivals(solver: str, who: str) -> Iterator[Claim]:
    """Fed-PLT before each of its rivals in a column."""
    for rival in STORED:
        if rival == "fedplt" or (who == "half" and rival not in PARTIAL):
            continue
        for reading in ran(rival, who, "common", "equal budget"):
            yield claims(reading, unit="rate")(f"table2.best.{solver}.{who}.{rival}").order(
                f"Fed-PLT converges faster per round than {METHODS[rival]} ({COLUMNS[solver, who]}).",
                rate(reading, rival, solver, who) - clipped(reading, "fedplt", solver, who),
                note=ORDER_NOTES[reading.way],
            )
