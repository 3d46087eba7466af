"""Section VII-B, Figures 2 and 3: the penalty and the number of local epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, settings
from replifed.papers.fedplt import measures
from replifed.papers.fedplt.axes import CLAIM, Reading, by_epochs, on_loss, readings
from replifed.papers.fedplt.measures import at, by_setting
from replifed.papers.fedplt.paper import BEST_EPOCHS, BEST_RHO, TABLE2

_RATES = [rate for row in TABLE2.values() for rate in row if rate]
_WIDTH = 0.1 * (1.0 - min(_RATES))


def _by_rho(reading: Reading) -> Quantity:
    return by_setting(reading.run("penalty"), "rho")


def _by_steps(reading: Reading) -> Quantity:
    return by_setting(reading.run("epochs"), "steps", solver="gradient")


@CLAIM.sentence("fig2.best", "Section VII-B, Figure 2", "The rate is lowest at rho about 0.3.")
def _best_rho() -> Iterator[Claim]:
    for reading in readings():
        yield reading.claims(unit="grid", note=on_loss(reading.loss))("fig2.best").near(
            "The rate is lowest at rho about 0.3.",
            BEST_RHO,
            measures.best_setting(_by_rho(reading), ".2g"),
            within=0.1,
            because="one unit of the digit that is printed",
        )


@CLAIM.sentence(
    "fig2.valley", "Section VII-B, Figure 2", "The rate grows towards both ends of the range of rho."
)
def _valley_of_rho() -> Iterator[Claim]:
    for reading in readings():
        claim, by_rho = reading.claims(note=on_loss(reading.loss)), _by_rho(reading)
        for name, end in (("small", 0), ("large", -1)):
            yield claim(f"fig2.end.{name}").shape(
                f"The rate grows towards one at {name} rho: above 0.98.",
                measures.column(by_rho, end) > 0.98,
                fails="a rate of 0.98 or less at that end",
            )
        yield claim("fig2.valley").shape(
            "The mean rate falls up to its minimum and grows after it.",
            measures.one_valley(by_rho),
            fails="a mean rate that rises before its minimum or falls after it",
        )


@CLAIM.sentence(
    "fig2.resembles",
    "Sections VII-A and VII-B, Figure 2",
    "The rate resembles that of exact splitting, which may dominate that of the local solver.",
)
def _resembles() -> Iterator[Claim]:
    for reading in readings():
        claim = reading.claims(note=on_loss(reading.loss))
        exact = by_setting(reading.run("splitting"), "rho", steps=0)
        yield claim("fig2.resembles").shape(
            f"The rate is within {_WIDTH:.3f} of that of exact splitting, a tenth of the range shown, at "
            "every rho.",
            measures.apart(_by_rho(reading), exact, _WIDTH),
            fails="a rho with a rate farther off",
            note="rates of exact splitting are those of its linearisation at the minimiser",
        )
        yield claim("fig2.exact").shape(
            "As Fed-PLT's rate, that of exact splitting falls to one minimum and grows after it.",
            measures.one_valley(exact),
            fails="a mean rate that rises before its minimum or falls after it",
        )


@CLAIM.sentence("fig3.best", "Section VII-B, Figure 3", "The rate is lowest at about 10 local epochs.")
def _best_epochs() -> Iterator[Claim]:
    for reading in by_epochs():
        yield reading.claims(unit="grid", note=on_loss(reading.loss))("fig3.best").near(
            "The rate is lowest at N_e about 10, on the mean over data sets.",
            float(BEST_EPOCHS),
            measures.best_setting(_by_steps(reading), ".0f"),
            within=2.0,
            because="a fifth of a number that is approximate by the text",
        )


@CLAIM.sentence(
    "fig3.valley",
    "Section VII-B, Figure 3",
    "With more local epochs the rate falls to a minimum and then increases.",
)
def _valley_of_epochs() -> Iterator[Claim]:
    for reading in by_epochs():
        yield reading.claims(note=on_loss(reading.loss))("fig3.valley").shape(
            "The mean rate falls to its minimum and does not fall after it.",
            measures.one_valley(_by_steps(reading)),
            fails="a mean rate that rises before its minimum or falls after it",
        )


@CLAIM.sentence(
    "fig3.constant20", "Section VII-B, Figure 3", "The rate settles, and is constant above 20 epochs."
)
def _constant() -> Iterator[Claim]:
    for reading in by_epochs():
        yield reading.claims(note=on_loss(reading.loss))("fig3.constant20").shape(
            "For N_e above 20 the mean rate is constant within 0.01.",
            measures.constant(_by_steps(reading), 21, 0.01),
            fails="a mean rate that moves by more than 0.01 above 20 epochs",
        )


def _exact(reading: Reading) -> Quantity:
    """Rates with exact proximal maps."""
    return measures.column(by_setting(reading.run("epochs"), "steps", solver="exact"), 0)


_VERY_CLOSE: dict[str, Any] = {
    "within": 0.1 * (1.0 - 0.74),
    "because": "very close: a tenth of the distance of zeta, 0.74, to one",
}


def _near_zeta(reading: Reading, name: str, rate: Quantity, statement: str) -> Claim:
    """Against zeta as a formula, a bound; the text means the rate of exact splitting, which it calls so."""
    return reading.claims(note=on_loss(reading.loss), unit="rate")(f"fig3.{name}", informs=True).near(
        statement,
        0.0,
        rate - measures.zeta_of(reading.run("epochs"), settings(reading.experiment("epochs"))),
        note="zeta is a bound, and lies above the measured rate of exact splitting",
        **_VERY_CLOSE,
    )


@CLAIM.sentence(
    "fig3.zeta", "Section VII-B", "The rate settles very close to zeta, the rate of exact splitting."
)
def _zeta() -> Iterator[Claim]:
    for reading in by_epochs():
        plateau = measures.plateau(_by_steps(reading))
        yield reading.claims(note=on_loss(reading.loss))("fig3.exact", unit="rate").near(
            "The plateau is the rate of exact Peaceman-Rachford splitting.",
            0.0,
            plateau - _exact(reading),
            within=0.001,
            because="two rates to three digits",
        )
        yield _near_zeta(reading, "zeta", plateau, "The plateau is very close to the bound zeta.")


@CLAIM.sentence("fig3.faster", "Section VII-B", "An inexact proximal map can speed up convergence.")
def _faster() -> Iterator[Claim]:
    for reading in by_epochs():
        yield reading.claims(note=on_loss(reading.loss), unit="rate")("fig3.faster").order(
            "With the best number of inexact local steps it converges faster than with exact maps.",
            _exact(reading) - measures.best_of_means(_by_steps(reading)),
        )


@CLAIM.sentence(
    "fig3.zeta20", "Section VII-B", "Already with about 20 epochs the rate is very close to zeta."
)
def _zeta20() -> Iterator[Claim]:
    for reading in by_epochs():
        twenty = at(_by_steps(reading), 20, "20 local steps")
        yield reading.claims(note=on_loss(reading.loss))("fig3.exact20", unit="rate").near(
            "With 20 local epochs the rate is very close to that of exact splitting.",
            0.0,
            twenty - _exact(reading),
            **_VERY_CLOSE,
        )
        yield _near_zeta(
            reading, "zeta20", twenty, "With 20 local epochs the rate is very close to the bound zeta."
        )
