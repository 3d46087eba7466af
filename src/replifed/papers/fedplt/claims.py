"""The paper's checkable statements (Bastianello, Liu and Johansson 2024).

Readings. `own`: parameters tuned for each data set, which the paper seems to have done for Fed-PLT; of
Fed-PLT rho alone. `equal budget`: local step and own parameters of every method tuned for each data set, with
the same grid and rule; orders between methods are judged in it where one may choose by data set. `common`:
tuned on other data sets. `theory`: as each method's own paper prescribes. `own` and `equal budget` choose on
the data set that they report, see `experiments`. Tolerances were fixed before any of this was run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from replifed.papers.fedplt import checks
from replifed.papers.fedplt.paper import COLUMN_NAMES, COLUMNS, METHODS, STORED, TABLE2, TABLE3, TABLE4
from replifed.papers.verdicts import Claim

COMPARED = ("fedplt", "fedpd", "fedlin", "tamuna", "led", "fivegcs")
PARTIAL = ("fedplt", "tamuna", "fivegcs")

_TUNING = (
    "the paper does not print the baselines' parameters; an honest search of two parameters finds faster ones"
)
_COINCIDE = "chosen on each data set itself: the run draws nothing at random, so choice and report coincide"
_EQUAL = "every method searches its local step and its own parameters, from one grid and by one rule"
_UNEQUAL = "Fed-PLT searches rho alone here, its rivals two parameters (FedLin one)"
_THEORY = "the theory's constants are for the worst case, and slow"
# (method, participation): tolerance and its reason, for the readings that are expected to reproduce.
_FEDPLT = {
    "all": (0.03, "spread between draws of data sets, whose generator the paper does not print"),
    "half": (0.015, "partial participation hides most of the spread between data sets"),
}
_TAMUNA = (0.015, "ten percent of the distance between its columns' rates and one")
_OTHERS = (0.06, "parameters of the baselines are not printed; a tenth of the rates' range")


def claim(name: str, artefact: str, statement: str, kind: str, **more: Any) -> Claim:
    """A claim of this paper; its id is `name` with the reading."""
    suffix = re.sub(r"[^a-z0-9.]+", "-", more.get("reading", "")).strip("-")
    suffix = f".{suffix}" if suffix else ""
    return Claim(
        id=f"fedplt.{name}{suffix}", paper="fedplt", artefact=artefact, statement=statement, kind=kind, **more
    )


def _ran(*methods: str, experiment: str = "comparison") -> tuple[str, ...]:
    return tuple(f"run:{experiment}/{method}" for method in methods)


def _table1() -> Iterator[Claim]:
    notes = {
        "fedlin": "between rounds only the server's model is needed; the count takes in g_i and a copy of x",
        "tamuna": "an agent needs h_i alone; the count takes in its copy of the server's model",
        "led": "after averaging all agents hold the same model; the count takes in every copy",
        "fivegcs": "x, v and u_i suffice; the count takes in x_hat",
    }
    for method, (each, shared) in STORED.items():
        yield claim(
            f"table1.{method}.stored",
            "table1",
            f"{METHODS[method]} stores {each if each > 1 else ''}N+{shared} variables (Table I).",
            "identity",
            needs=_ran(method),
            measure=checks.stores(method, each, shared),
            note=notes.get(method, ""),
        )
        yield claim(
            f"table1.{method}.partial",
            "table1",
            f"{METHODS[method]} {'allows' if method in PARTIAL else 'does not allow'} partial participation "
            "(Table I).",
            "identity",
            needs=_ran(method),
            measure=checks.allows_partial(method, method in PARTIAL),
        )
    yield claim(
        "table1.tamuna.random",
        "table1",
        "Only TAMUNA's number of local epochs is random (Table I).",
        "identity",
        needs=_ran(*COMPARED),
        measure=checks.random_steps(COMPARED, "tamuna"),
    )


def _cells() -> Iterator[Claim]:
    for method, printed in TABLE2.items():
        for (solver, who), published in zip(COLUMNS, printed, strict=True):
            if published is None:
                continue
            for reading in ("own", "common", "theory"):
                if reading == "own" and method != "fedplt" and (who == "half" or method == "tamuna"):
                    continue  # not run: the best of several random runs would be chosen
                if method == "fedplt":
                    tolerance, reason = _FEDPLT[who]
                else:
                    tolerance, reason = _TAMUNA if method == "tamuna" else _OTHERS
                note = ""
                if method not in ("fedplt", "tamuna"):
                    note = _THEORY if reading == "theory" else _TUNING
                    if method == "led" and reading == "theory" and solver == "accelerated":
                        note = "the natural parameters are for gradient steps: momentum takes longer ones"
                elif method == "tamuna" and reading == "common":
                    note = "the published row is that of theory's parameters, against the text"
                if reading == "own" and who == "all":
                    note = f"{note}; {_COINCIDE}".removeprefix("; ")
                yield claim(
                    f"table2.{method}.{solver}.{who}",
                    "table2_theory" if reading == "theory" else "table2",
                    f"{METHODS[method]} converges at the rate {published} ({COLUMN_NAMES[solver, who]}, "
                    f"Table II).",
                    "value",
                    unit="rate",
                    reading=reading,
                    published=published,
                    tolerance=tolerance,
                    tolerance_reason=reason,
                    needs=_ran(method),
                    measure=checks.rate_of(method, solver, who, reading),
                    note=note,
                )


def _solvers(method: str, who: str, readings: tuple[str, ...]) -> Iterator[Claim]:
    """Which local solver gives the lower rate."""
    printed = dict(zip(COLUMNS, TABLE2[method], strict=True))
    plain, fast = printed["gradient", who], printed["accelerated", who]
    if plain == fast:
        return
    some = "" if who == "all" else ", with half of the agents"
    if plain < fast:
        said = (
            f"{METHODS[method]}{some}: gradient descent as local solver gives a lower rate than accelerated "
            'gradient descent, as "often" (Section VII-A).'
        )
    else:
        said = f"{METHODS[method]}{some}: accelerated gradient descent gives the lower rate (Table II)."
    for reading in readings:
        yield claim(
            f"table2.accelerated.{method}.slower" + ("" if who == "all" else ".half"),
            "table2",
            said,
            "order",
            unit="rate",
            reading=reading,
            needs=_ran(method),
            measure=checks.solver_order(method, reading, plain < fast, who),
            note=_note_of_solvers(method, reading),
        )


def _note_of_solvers(method: str, reading: str) -> str:
    if reading == "equal budget":
        return f"{_EQUAL}; {_COINCIDE}"
    return "" if method == "fedplt" else _TUNING


_ORDER_NOTES = {"equal budget": f"{_EQUAL}; {_COINCIDE}", "common": f"{_UNEQUAL}; {_TUNING}", "theory": ""}


def _orders() -> Iterator[Claim]:
    for solver, who in COLUMNS:
        for rival in COMPARED[1:]:
            if who == "half" and rival not in PARTIAL:
                continue
            for reading in ("equal budget", "common", "theory"):
                if reading == "equal budget" and (who == "half" or rival == "tamuna"):
                    continue  # the best of several random runs would be chosen
                yield claim(
                    f"table2.best.{solver}.{who}.{rival}",
                    "table2_theory" if reading == "theory" else "table2",
                    f"Fed-PLT converges faster per round than {METHODS[rival]} ({COLUMN_NAMES[solver, who]}; "
                    "Section VII-A).",
                    "order",
                    unit="rate",
                    reading=reading,
                    needs=_ran("fedplt", rival),
                    measure=checks.faster(rival, solver, who, reading),
                    note=_ORDER_NOTES[reading],
                )
        if who == "all":
            for reading in ("equal budget", "common"):
                yield claim(
                    f"table2.exchange.{solver}",
                    "table2",
                    f"Fed-PLT converges faster per exchange than FedLin, which takes two a round "
                    f"({COLUMN_NAMES[solver, who]}).",
                    "order",
                    unit="rate",
                    reading=reading,
                    needs=_ran("fedplt", "fedlin"),
                    measure=checks.faster("fedlin", solver, who, reading, per_exchange=True),
                    note=f"not in the paper, which compares rounds; {_ORDER_NOTES[reading]}",
                )
    for method in PARTIAL:
        for solver in ("gradient", "accelerated"):
            yield claim(
                f"table2.partial.{method}.{solver}",
                "table2",
                f"{METHODS[method]}: the rate increases when half of the agents take part "
                f"({solver} solver; Section VII-A).",
                "order",
                unit="rate",
                reading="common",
                needs=_ran(method),
                measure=checks.slower_with_half(method, solver, "common"),
            )
    for method in COMPARED:
        for reading in ("own", "common", "theory") if method != "tamuna" else ("common", "theory"):
            yield claim(
                f"table2.accelerated.{method}.converges",
                "table2_theory" if reading == "theory" else "table2",
                f"{METHODS[method]} converges with the accelerated local solver, too (Section VII-A).",
                "shape",
                reading=reading,
                needs=_ran(method),
                measure=checks.accelerated_converges(method, reading),
            )
        everywhere = ("own", "equal budget", "common") if method != "tamuna" else ("common",)
        yield from _solvers(method, "all", everywhere)
        if method in PARTIAL:
            yield from _solvers(method, "half", ("own", "common") if method == "fedplt" else ("common",))
    yield claim(
        "table2.accelerated.fedplt.every",
        "table2",
        "Fed-PLT: the accelerated local solver is slower than gradient descent on every data set.",
        "shape",
        reading="own",
        needs=_ran("fedplt"),
        measure=checks.slower_on_every_set("fedplt", "own"),
        note="not in the paper, which shows means",
    )
    yield claim(
        "fedavg.biased",
        "table2",
        "FedAvg does not reach the minimiser: client drift (Section I).",
        "shape",
        needs=_ran("fedavg"),
        measure=checks.stays_away("fedavg", 1e-3),
    )


def _table3() -> Iterator[Claim]:
    needs = _ran("fedplt", experiment="participation")
    for active, published in enumerate(TABLE3, start=1):
        yield claim(
            f"table3.{active}",
            "table3",
            f"With {active} active agent{'s' * (active > 1)} Fed-PLT converges at the rate {published} "
            f"(Table III).",
            "value",
            unit="rate",
            published=published,
            tolerance=0.015,
            tolerance_reason="spread between draws of data sets",
            needs=needs,
            measure=checks.rate_with(active),
        )
    yield claim(
        "table3.monotone",
        "table3",
        "The fewer agents take part, the higher the rate (Section VII-A).",
        "shape",
        needs=needs,
        measure=checks.rises_with_fewer,
    )
    yield claim(
        "table3.linear",
        "table3",
        "Rates follow 1 - p (1 - r) within 0.03, with r the rate of all agents and p their share.",
        "identity",
        needs=needs,
        measure=checks.linear_in_share(0.03),
        note="not in the paper: what its ten numbers have in common",
    )


def _table4() -> Iterator[Claim]:
    needs = _ran("fedplt", experiment="noise")
    for tau, published in TABLE4.items():
        for reading in ("variance", "deviation"):
            yield claim(
                f"table4.{tau:g}",
                "table4",
                f"With noise level {tau:g} the asymptotic error is {published} (Table IV).",
                "value",
                unit="distance",
                reading=reading,
                published=published,
                tolerance=0.1 * published,
                tolerance_reason="a tenth of the published number, whose way of measuring is not stated",
                needs=needs,
                measure=checks.error_at(tau, reading),
                note="the published floor of 0.1357 is none of the algorithm's, which is exact without noise;"
                " "
                "measured as the mean distance of the agents' models",
            )
    for reading in ("variance", "deviation"):
        yield claim(
            "table4.increasing",
            "table4",
            "The larger the variance, the larger the asymptotic error (Section VII-A, Corollary 1).",
            "identity",
            reading=reading,
            needs=needs,
            measure=checks.error_rises(reading),
        )
        for low, high in ((1e-2, 1e-1), (1e-1, 1.0), (1.0, 10.0)):
            ratio = TABLE4[high] / TABLE4[low]
            yield claim(
                f"table4.growth.{low:g}",
                "table4",
                f"From noise level {low:g} to {high:g} the error grows {ratio:.2f} times (Table IV).",
                "value",
                unit="ratio",
                reading=reading,
                published=ratio,
                tolerance=0.15 * ratio,
                tolerance_reason="15 %: the published floor still weighs at the lower level",
                needs=needs,
                measure=checks.error_growth(low, high, reading),
                note="" if reading == "variance" else "published errors grow as the root of the level",
            )
    yield claim(
        "table4.slope",
        "table4",
        "Errors grow as the square root of the noise level from 0.01 to 1: the level is a variance.",
        "value",
        unit="exponent",
        reading="variance",
        published=0.5,
        tolerance=0.05,
        tolerance_reason="published errors give slopes of 0.46 and 0.51 to 0.55",
        needs=needs,
        measure=checks.error_slope(1e-2, 1.0, "variance"),
        note="against eq. (13), where it is a standard deviation",
    )


def _figures() -> Iterator[Claim]:
    needs = _ran("fedplt", experiment="penalty")
    yield claim(
        "fig2.best",
        "fig2",
        "The rate is lowest at rho about 0.3 (Figure 2).",
        "value",
        unit="grid",
        published=0.3,
        tolerance=0.1,
        tolerance_reason="one point of the grid of 25 over six decades",
        needs=needs,
        measure=checks.best_rho,
    )
    for name, end in (("small", 0), ("large", -1)):
        yield claim(
            f"fig2.end.{name}",
            "fig2",
            f"The rate grows towards one at {name} rho: above 0.98 (Figure 2).",
            "shape",
            needs=needs,
            measure=checks.slow_at_end(end, 0.98),
        )
    yield claim(
        "fig2.valley",
        "fig2",
        "The mean rate falls up to its minimum and grows after it (Figure 2).",
        "identity",
        needs=needs,
        measure=checks.one_valley,
    )
    needs = _ran("fedplt", experiment="epochs")
    yield claim(
        "fig3.best",
        "fig3",
        "The rate is lowest at N_e about 10 (Figure 3).",
        "value",
        unit="grid",
        published=10.0,
        tolerance=2.0,
        tolerance_reason="about ten",
        needs=needs,
        measure=checks.best_epochs,
        note="the valley is flat, and its lowest point differs between data sets",
    )
    yield claim(
        "fig3.dip",
        "fig3",
        "The rate is not monotone: at its minimum it is lower than with 50 epochs by at least 0.1 "
        "(Figure 3).",
        "shape",
        needs=needs,
        measure=checks.dips(0.1),
    )
    yield claim(
        "fig3.plateau",
        "fig3",
        "For N_e above 25 the mean rate is constant within 0.01 (Figure 3 has it from 20 on).",
        "identity",
        needs=needs,
        measure=checks.plateau(25, 0.01),
    )
    yield claim(
        "fig3.constant20",
        "fig3",
        "For N_e above 20 the mean rate is constant within 0.01 (Figure 3, Section VII-B).",
        "identity",
        needs=needs,
        measure=checks.plateau(21, 0.01),
    )
    yield claim(
        "fig3.exact",
        "fig3",
        "The plateau is the rate of exact Peaceman-Rachford splitting.",
        "value",
        unit="rate",
        published=0.0,
        tolerance=0.005,
        tolerance_reason="difference of rates that are fitted to three digits",
        needs=needs,
        measure=checks.plateau_minus_exact,
    )
    yield claim(
        "fig3.zeta",
        "fig3",
        "The plateau is very close to zeta (Section VII-B): within 0.03.",
        "value",
        unit="rate",
        published=0.0,
        tolerance=0.03,
        tolerance_reason="very close",
        needs=needs,
        measure=checks.plateau_minus_zeta,
        note="zeta is a bound, and lies above the measured rate of exact splitting",
    )
    yield claim(
        "fig3.faster",
        "fig3",
        "Ten inexact local steps converge faster than exact proximal maps (Section VII-B).",
        "order",
        unit="rate",
        needs=needs,
        measure=checks.inexact_is_faster(10),
    )


def _theory() -> Iterator[Claim]:
    needs = _ran("fedplt", experiment="exactness")
    yield claim(
        "exact.full",
        "exactness",
        "No client drift: exact convergence for every number of local epochs (Remark 3).",
        "shape",
        needs=needs,
        measure=checks.exact("all", 1e-12),
    )
    yield claim(
        "exact.partial",
        "exactness",
        "Exact convergence also under partial participation (Remark 3).",
        "shape",
        needs=needs,
        measure=checks.exact("half", 1e-12),
    )
    yield claim(
        "warm.needed",
        "exactness",
        "Local steps must begin at x_{i,k}: from v_{i,k}, few of them do not converge to the minimiser "
        "(Remark 2).",
        "shape",
        needs=needs,
        measure=checks.cold_start_fails(1e-6),
    )
    yield claim(
        "bounds.rate",
        "bounds",
        "Where |S| < 1 the measured rate is at most |S| (Proposition 1).",
        "shape",
        needs=_ran("fedplt", experiment="epochs"),
        measure=checks.rate_below_norm,
    )
    yield claim(
        "bounds.rounds",
        "bounds",
        "Mean errors stay below the bound of Proposition 2, with and without partial participation and "
        "noise.",
        "identity",
        needs=_ran("fedplt", experiment="bounds"),
        measure=checks.errors_below_bound,
    )
    for reading in ("as printed", "corrected"):
        yield claim(
            "bounds.accelerated",
            "bounds",
            "Proposition 3 covers the paper's own setting, N_e = 10 and rho = 0.3: |S'| < 1.",
            "shape",
            reading=reading,
            needs=_ran("fedplt", experiment="epochs"),
            measure=checks.accelerated_condition(10, reading == "as printed"),
            note="chi(N_e) is far above one there with the moduli of f"
            if reading == "as printed"
            else "with the moduli of d, and the root that is in Lemma 7's proof but not in the lemma",
        )
    needs = _ran("fedplt", experiment="privacy")
    yield claim(
        "privacy.bounded",
        "privacy",
        "The Renyi bound grows with K N_e and stays below its limit (Proposition 4, Section VI).",
        "identity",
        needs=needs,
        measure=checks.epsilon_saturates,
        note="a property of the formula, at this experiment's settings",
    )
    yield claim(
        "privacy.tradeoff",
        "privacy",
        "The larger the noise, the larger the error (Corollary 1, Section VI).",
        "shape",
        needs=needs,
        measure=checks.error_rises_with_noise,
        tolerance=0.95,
        note="two levels whose noise is below the error that the rounds leave may be equal",
    )


CLAIMS = (*_table1(), *_cells(), *_orders(), *_table3(), *_table4(), *_figures(), *_theory())
