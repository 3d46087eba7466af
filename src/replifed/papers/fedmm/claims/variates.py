"""Section 6, Figure 2: control variates, on mean curves as Figure 1."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula
from replifed.papers.fedmm import measures, theory
from replifed.papers.fedmm.axes import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    PROVED,
    RECORDED,
    UNLIKE,
    on_data,
    variates,
)
from replifed.papers.fedmm.measures import late_decay, level, log_mean


@on_data("fig2", "objective", "control variates have no effect on the objective.")
def _objective(data: str) -> Iterator[Claim]:
    for where, cohort, claim, pair in variates(data):
        yield claim("objective").near(
            f"{where}: control variates have no effect on the objective.",
            0.0,
            measures.farthest(*pair("objective")),
            within=0.02,
            because=f"mean objectives may differ by 2 % where they are farthest apart, {RECORDED}",
            note="with a tenth of the clients single runs with control variates jump to several times their "
            "objective before they settle; in the end they agree"
            if data == HETEROGENEOUS and cohort == "tenth"
            else "",
        )


@on_data(
    "fig2",
    "cancel",
    "given [a formula, lost], control variates cancel exactly and have no effect on updates.",
    HOMOGENEOUS,
)
def _cancel(data: str) -> Iterator[Claim]:
    for (where, _, claim, pair), (words, ending) in product(
        variates(data), (("surrogate", ""), ("parameter", "_parameter"))
    ):
        gap = measures.farthest(*pair(f"{words}_update"))
        yield claim(f"cancel{ending}").near(
            f"{where}: control variates cancel and have no effect on the {words} update.",
            0.0,
            gap.note(lambda gap: f"{abs(gap.mean) / np.log(10):.2g} decades on the figure's axis"),
            within=0.01,
            because=f"mean {words} updates may differ by 1 % where they are farthest apart",
            note="a formula in this sentence is lost, and may be the condition that all clients take part, "
            "under which they cancel exactly; the objectives agree closely",
        )
    yield PROVED("fig2.homogeneous.cancel.all", informs=True).identity(
        "Clients that share their samples, all of them active: control variates cancel.",
        formula(theory.variates_cancel),
    )


@on_data("fig2", "rate", "control variates improve the rate of decay of both updates.", *UNLIKE, also="5")
def _rate(data: str) -> Iterator[Claim]:
    for (where, cohort, claim, pair), words in product(variates(data), ("surrogate", "parameter")):
        falls = [late_decay(one) for one in pair(f"{words}_update")]
        yield claim(f"{words}_rate").order(
            f"{where}: control variates improve the rate of decay of the {words} update.",
            (falls[0] - falls[1]).note("logarithms fall by {0.mean:.2g} and by {1.mean:.2g}", *falls),
            note="from the second tenth of the rounds to the last"
            + "; with few active clients they first enlarge updates, and part of the fall undoes this"
            * (cohort == "tenth"),
        )


@on_data("fig2", "lower", "variates bring both updates to significantly lower values.", *UNLIKE, also="3.2")
def _lower(data: str) -> Iterator[Claim]:
    for (where, cohort, claim, pair), words in product(variates(data), ("surrogate", "parameter")):
        with_, without = map(log_mean, map(level, pair(f"{words}_update")))
        yield claim(words).order(
            f"{where}: control variates bring the {words} update to significantly lower values.",
            (without - with_).note(
                lambda lower: f"with over without {np.exp(-lower.mean):.2g}", without - with_
            ),
            note="with few active clients control variates first enlarge the parameter's updates; with a "
            "small α they have not caught up by the end"
            if words == "parameter" and cohort == "tenth"
            else "",
        )
