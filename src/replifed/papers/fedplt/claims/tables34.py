"""Section VII-A, Tables III and IV: fewer agents, and noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity
from replifed.papers.fedplt import measures
from replifed.papers.fedplt.axes import CLAIM, Reading, by_agents, on_loss, readings
from replifed.papers.fedplt.measures import at, by_setting, mean_change
from replifed.papers.fedplt.paper import TABLE3, TABLE4

_NOISE_LEVEL = (
    "the text does not state how it measures the error, and without noise the algorithm is exact (Remark 3)"
)
_LINEAR = measures.off_line(TABLE3)


@CLAIM.sentence("table3.law", "Table III", "With k of 10 agents the rate is 1 - k (1 - r) / 10.")
def _law() -> Iterator[Claim]:
    # The ten printed numbers are one fact and one cell: they lie on this line within .009.
    for reading in by_agents():
        by_active = by_setting(reading.run("participation"), "active")
        yield reading.claims(unit="rate")("table3.law").near(
            "With k of 10 agents the mean rate is 1 - k (1 - r) / 10, with r that of all.",
            0.0,
            measures.off_line_of(by_active),
            within=2 * _LINEAR,
            because="twice the largest distance of the printed rates from that line",
            note="of the means over data sets, as the printed rates are means",
        )


@CLAIM.sentence("table3", "Table III", "The rate with 5 of 10 agents is .764.")
def _table3() -> Iterator[Claim]:
    for reading in by_agents():
        by_active = by_setting(reading.run("participation"), "active")
        for draws, repetitions in (("many", 100), ("one", 1)):
            yield (
                reading._replace(draws=draws)
                .claims(unit="rate")("table3.5")
                .value(
                    "With 5 active agents Fed-PLT converges at the rate 0.764.",
                    f"{TABLE3[4]:.3f}",
                    at(by_active, 5, "5 agents"),
                    rival=TABLE3[5],
                    repetitions=repetitions,
                    note=on_loss(reading.loss),
                )
            )


@CLAIM.sentence("table3.monotone", "Section VII-A", "The fewer agents take part, the higher the rate.")
def _monotone() -> Iterator[Claim]:
    for reading in by_agents():
        by_active = by_setting(reading.run("participation"), "active")
        yield reading.claims(artefact="table3")("table3.monotone").shape(
            "The mean rate falls with each additional agent.",
            mean_change(by_active) < 0,
            fails="a mean rate that rises with another agent",
        )


def _by_noise(levels: tuple[str, ...], errors: tuple[str, ...] = ("agents",)) -> Iterator[Reading]:
    """Readings of Table IV, with errors from the minimiser."""
    for reading, error in itertools.product(readings(*levels), errors):
        yield reading.also(penalty="searched", reference="minimiser", error=error)


def _errors(reading: Reading) -> Quantity:
    of = dict(reading.more)
    column = "free_intercept" if of["reference"] == "free intercept" else of["error"]
    return by_setting(reading.run("noise"), "tau", column, reading=reading.way)


@CLAIM.sentence(
    "table4",
    "Table IV",
    "The errors are .1357, .1359, .1380, .1569, .2957, .8478, 2.7529 and 9.8387 for noise from 1e-6 to 10.",
)
def _table4() -> Iterator[Claim]:
    # The eight printed numbers are two facts: squared, a constant floor and noise of variance tau on it.
    for reading in (*_by_noise(("variance",), _MEASURED), *_by_noise(("deviation",))):
        yield _floor(reading)
        yield from _slopes(reading)
        if reading.way == "variance" and dict(reading.more)["error"] == "agents":
            yield _floor(reading.also(reference="free intercept"))


_MEASURED = ("agents", "stacked", "coordinator")


def _floor(reading: Reading) -> Claim:
    floor = TABLE4[1e-6]
    return reading.claims(note=_NOISE_LEVEL, unit="distance")("table4.floor").near(
        f"With negligible noise the error is {floor}.",
        floor,
        at(_errors(reading), 1e-6, "noise level 1e-06"),
        within=0.1 * floor,
        because="a tenth of the printed number, whose way of measuring is not stated",
    )


def _slopes(reading: Reading) -> Iterator[Claim]:
    floor, claim = TABLE4[1e-6], reading.claims(note=_NOISE_LEVEL)
    printed = {tau: (error**2 - floor**2) / tau for tau, error in TABLE4.items() if tau > 1e-6}
    slopes = {tau: measures.per_noise(_errors(reading), tau) for tau in (0.01, 10.0)}
    yield claim("table4.level", unit="ratio").near(
        f"At 0.01 its square grows by {printed[0.01]:.1f} times the noise level.",
        printed[0.01],
        slopes[0.01],
        within=0.1 * printed[0.01],
        because="a tenth of the printed number, whose way of measuring is not stated",
    )
    growth = printed[10.0] / printed[0.01]
    yield claim("table4.growth", unit="ratio").near(
        f"At 10 it grows by {growth:.2f} times as much.",
        growth,
        slopes[10.0] / slopes[0.01],
        within=0.1 * 2**0.5 * growth,
        because="of two numbers that may be off by a tenth each, the root of two as much: 14 %",
    )


@CLAIM.sentence(
    "table4.increasing",
    "Section VII-A, Corollary 1",
    "The larger the variance, the larger the asymptotic error.",
)
def _increasing() -> Iterator[Claim]:
    for reading in _by_noise(("variance", "deviation")):
        yield reading.claims(artefact="table4")("table4.increasing").shape(
            "The mean error grows from each level of noise to the next.",
            mean_change(_errors(reading)) > 0,
            fails="a mean error that falls at a higher level of noise",
        )
