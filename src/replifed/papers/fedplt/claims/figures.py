"""Claims on Figures 2 and 3: rates by penalty, and by local epochs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.quantities import settings
from replifed.papers.fedplt import measures
from replifed.papers.fedplt.claims.readings import (
    LOSS,
    SIGNIFICANTLY,
    Reading,
    fewer_rounds,
    notes,
    on_loss,
)
from replifed.papers.fedplt.claims.table2 import RATES
from replifed.papers.fedplt.measures import at, by_setting
from replifed.papers.fedplt.paper import BEST_EPOCHS, BEST_RHO

_DRAW = "it depends on the data's generator, which is ours: near the minimum the curve is flat"


def figure2(loss: str) -> Iterator[Claim]:
    """Rates by penalty."""
    reading = Reading(loss)
    claim = reading.claims(note=on_loss(loss))
    by_rho = by_setting(reading.run("penalty"), "rho")
    yield claim.value(
        "fig2.best",
        "The rate is lowest at rho about 0.3 (Figure 2).",
        BEST_RHO,
        measures.best_setting(by_rho, ".2g"),
        within=0.1,
        because="one unit of the digit that is printed",
        unit="grid",
    )
    for name, end in (("small", 0), ("large", -1)):
        yield claim.shape(
            f"fig2.end.{name}",
            f"The rate grows towards one at {name} rho: above 0.98 (Figure 2).",
            measures.column(by_rho, end) > 0.98,
            says="fig2.valley",
        )
    yield claim.shape(
        "fig2.valley",
        "The mean rate falls up to its minimum and grows after it (Figure 2).",
        measures.one_valley(by_rho),
    )
    exact = by_setting(reading.run("splitting"), "rho", steps=0)
    width = 0.1 * (1.0 - min(RATES))
    yield claim.shape(
        "fig2.resembles",
        f"The rate resembles that of exact splitting: it is within {width:.3f} of it, a tenth of the range "
        "shown, at nine of ten rho (Section VII-B).",
        measures.apart(by_rho, exact, width),
        share=0.9,
        note="rates of exact splitting are those of its linearisation at the minimiser",
    )
    yield claim.shape(
        "fig2.exact",
        "As Fed-PLT's rate, that of exact splitting falls to one minimum and grows after it (Section VII-B).",
        measures.one_valley(exact),
        says="fig2.resembles",
    )


def figure3(loss: str) -> Iterator[Claim]:
    """Rates by local epochs."""
    reading = Reading(loss)
    claim = reading.claims(note=on_loss(loss, _DRAW))
    epochs = reading.run("epochs")
    by_steps = by_setting(epochs, "steps", solver="gradient")
    exact = measures.column(by_setting(epochs, "steps", solver="exact"), 0)
    plateau = measures.plateau(by_steps)
    one, ten, twenty = (at(by_steps, count, f"{count} local steps") for count in (1, 10, 20))
    yield claim.value(
        "fig3.best",
        "The rate is lowest at N_e about 10 (Figure 3).",
        float(BEST_EPOCHS),
        measures.best_setting(by_steps, ".0f"),
        within=2.0,
        because="a fifth of a number that is approximate by the text",
        unit="grid",
    )
    yield claim.shape(
        "fig3.dip",
        "The rate is not monotone: at its minimum it is lower than with 50 epochs by at least 0.1 "
        "(Figure 3).",
        plateau - measures.lowest(by_steps) >= 0.1,
    )
    yield claim.shape(
        "fig3.constant20",
        "For N_e above 20 the mean rate is constant within 0.01 (Figure 3, Section VII-B).",
        measures.constant(by_steps, 21, 0.01),
    )
    yield claim.value(
        "fig3.exact",
        "The plateau is the rate of exact Peaceman-Rachford splitting (Section VII-B).",
        0.0,
        plateau - exact,
        within=0.001,
        because="two rates to three digits",
        unit="rate",
        says="fig3.zeta",
    )
    for name, rate, statement in (
        ("zeta", plateau, "The plateau is very close to zeta (Section VII-B)."),
        ("zeta20", twenty, "Already with 20 local epochs the rate is very close to zeta (Section VII-B)."),
    ):
        yield claim.value(
            f"fig3.{name}",
            statement,
            0.0,
            rate - measures.zeta_of(epochs, settings(reading.experiment("epochs"))),
            within=0.1 * (1.0 - 0.74),
            because="very close: a tenth of the distance of zeta, 0.74, to one",
            unit="rate",
            note="zeta is a bound, and lies above the measured rate of exact splitting",
        )
    yield claim.shape(
        "fig3.valley",
        "The mean rate falls to its minimum and does not fall after it (Section VII-B).",
        measures.one_valley(by_steps),
    )
    yield claim.order(
        "fig3.faster",
        "Ten inexact local steps converge faster than exact proximal maps (Section VII-B).",
        exact - ten,
        unit="rate",
    )
    yield claim.order(
        "fig3.local",
        "Local training significantly reduces the number of rounds: with 10 local epochs they are fewer than "
        "with one, at the same rho (Abstract, Section I).",
        fewer_rounds(ten, one),
        note=f"one epoch is near the exact map; {LOSS}" if loss == "mean" else "",
        **SIGNIFICANTLY,
    )
    # Proposition 4 counts rounds and local epochs by their product alone, and grows with it.
    yield claim.order(
        "fig3.privacy",
        "Local epochs enhance privacy (title, Contribution 3): with ten of them fewer noisy steps in all, by "
        "which alone Proposition 4 counts, lead to the same accuracy than with one.",
        fewer_rounds(ten, one) - np.log(10.0),
        unit="e-folds",
        note=notes("ten epochs save fewer than nine rounds of ten", on_loss(loss)),
    )
