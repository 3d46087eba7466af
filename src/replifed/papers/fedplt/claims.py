"""The paper's checkable statements (Bastianello, Liu and Johansson 2024).

See `experiments` for the ways to tune. The paper prints the mean of the local losses and publishes rates that
only their sum gives: every statement on its numerical section is tested in both readings. That of the mean is
nearest to the text, and the data's generator is ours there; the sum was chosen to fit, with the generator, so
that what it gives is consistent at best. Theory's parameters are for the worst case and the paper tunes: they
are held against TAMUNA's row alone, which they explain.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, formula, run, settings
from replifed.claims.statements import Statements, slug
from replifed.papers.fedplt import measures, release
from replifed.papers.fedplt.measures import at, by_setting, lines, mean_change, rates
from replifed.papers.fedplt.methods import PARTIAL, SOLVERS
from replifed.papers.fedplt.paper import (
    BEST_EPOCHS,
    BEST_RHO,
    COLUMNS,
    METHODS,
    STORED,
    TABLE2,
    TABLE3,
    TABLE4,
)

_TUNING = (
    "the paper does not print the baselines' parameters; an honest search of two parameters finds faster ones"
)
_COINCIDE = "chosen on each data set itself: the run draws nothing at random, so choice and report coincide"
_EQUAL = "every method searches its local step and its own parameters, from one grid and by one rule"
_UNEQUAL = "Fed-PLT searches rho alone here, its rivals two parameters (FedLin one)"
_AGAINST_TEXT = "the published row is that of theory's parameters, against the text"
_ORDER_NOTES = {"equal budget": f"{_EQUAL}; {_COINCIDE}", "common": f"{_UNEQUAL}; {_TUNING}"}
_LOSS = (
    "it depends on the loss, or the data's scale: with the printed mean and N(0, 1) features rates are lower "
    "(Fed-PLT's .23 for .531), and local steps come to the exact proximal map sooner; the published numbers "
    "come out with the sum, which is the mean over features of variance 20"
)
_ONE_RHO = "one rho for all data sets; with the best of each it is the published one"
_DIVERGES = "parameters chosen on ten other data sets diverge on some; chosen for each, none does"
_SOLVERS = "it depends on the parameters, which the paper does not print: both solvers are tuned alike here"
_DRAW = "it depends on the data's generator, which is ours: near the minimum the curve is flat"
_LEVEL = (
    "all ten numbers are low by .001 to .013: rho is each data set's own best, and the draw of the data ours"
)
_NOISE_LEVEL = (
    "the published floor of 0.1357 is unexplained: without noise the algorithm is exact (Remark 3), but how "
    "it was measured is not stated, and few rounds or another reference leave a floor; measured here as the "
    "mean distance of the agents' models"
)
_BEST, _SECOND, *_ = sorted(row[0] for row in TABLE2.values() if row[0])
_RATES = [rate for row in TABLE2.values() for rate in row if rate]
_RANGE = max(_RATES) - min(_RATES)


def _tolerance(method: str, published: float) -> tuple[float, str]:
    """Of a cell of Tables II and III."""
    match method:
        case "fedplt":
            return _SECOND - _BEST, f"the distance of Table II's two best methods, {_BEST} and {_SECOND}"
        case "tamuna":
            return 0.1 * (1.0 - published), "a tenth of the published rate's distance to one"
        case _:
            return (
                0.1 * _RANGE,
                "parameters of the baselines are not printed; a tenth of the range of Table II's rates, "
                f"{_RANGE:.3f}",
            )


# Ways to tune, nearest to the text first.
_TUNED = ("common", "equal budget", "own", "theory")
_NOISE = ("variance", "deviation")


def _reading(loss: str, way: str = "") -> str:
    """A loss, and where it matters a way to tune, or to read the level of the noise."""
    return way if loss == "sum" and way else ", ".join(filter(None, (loss, way)))


LOSSES = {"mean": "_mean", "sum": ""}
"""What the experiments with each are called at the end."""
READINGS = {
    "": "chosen",  # of what depends on neither
    **{_reading("mean", way): "chosen" for way in (*_TUNED, *_NOISE, "")},
    **{_reading("sum", way): "fitted" for way in (*_TUNED, *_NOISE, "")},
}


def _notes(*several: str) -> str:
    """Put those together that say something."""
    return "; ".join(filter(None, several))


def _suffix(reading: str) -> str:
    return "" if reading == "sum" else slug(reading)


CLAIM = Statements("fedplt", READINGS, _suffix)
RATE = CLAIM.given(unit="rate")


def _stated(loss: str, way: str, **common: Any) -> Statements:
    """Claims on Table II."""
    artefact = "table2_theory" if way == "theory" else f"table2{LOSSES[loss]}"
    return CLAIM.given(reading=_reading(loss, way), artefact=artefact, **common)


def Rate(loss: str, method: str, solver: str, who: str, way: str, **more: bool) -> Quantity:
    """The rate of a cell of Table II on each data set."""
    return rates(run(f"comparison{LOSSES[loss]}", method), solver, who, way, **more)


def _clipped(*cell: str) -> Quantity:
    """The same; one of a run that diverged is as bad as one, and not only a bound."""
    return Rate(*cell, clipped=True)


def _ways(method: str, who: str, *asked: str) -> Iterator[tuple[str, str]]:
    """Losses and ways to tune of which a cell was run, of those asked for.

    Choosing by data set would take the luckiest of random runs.
    """
    certain = who == "all" and method != "tamuna"
    ran = {"own": certain or method == "fedplt", "equal budget": certain, "common": True, "theory": True}
    for loss, way in itertools.product(LOSSES, asked):
        if ran[way] and not (loss == "mean" and way == "theory"):
            yield loss, way


def _table1() -> Iterator[Claim]:
    notes = {
        "fedlin": "between rounds only the server's model is needed; the count takes in g_i and a copy of x",
        "tamuna": "an agent needs h_i alone; the count takes in its copy of the server's model",
        "led": "after averaging all agents hold the same model; the count takes in every copy",
        "fivegcs": "x, v and u_i suffice; the count takes in x_hat",
    }
    for method, (each, shared) in STORED.items():
        yield CLAIM.identity(
            f"table1.{method}.stored",
            f"{METHODS[method]} stores {each if each > 1 else ''}N+{shared} variables (Table I).",
            measures.stores(run("footprint", method), each, shared),
            note=notes.get(method, ""),
        )
        yield CLAIM.identity(
            f"table1.{method}.random",
            f"{METHODS[method]} has {'a random' if method == 'tamuna' else 'one'} number of local epochs "
            "(Table I).",
            measures.random_epochs(run("footprint", method), method == "tamuna"),
        )
    for method in ("fedplt", "fedlin", "led"):
        yield CLAIM.shape(
            f"table1.{method}.epochs",
            f"{METHODS[method]} allows a single local epoch (Table I).",
            _arrives(lines(run("footprint", method), "left")),
        )
    for method in PARTIAL:
        yield CLAIM.shape(
            f"table1.{method}.partial",
            f"{METHODS[method]} allows partial participation: with half of the agents in each round it comes "
            "to the minimiser (Table I).",
            _arrives(
                lines(run("comparison", method), "error", reading="common", solver="gradient", cohort=5)
            ),
        )


def _arrives(left: Quantity, within: float = 1e-9) -> Quantity:
    """Whether all errors are as small as that."""
    return (left <= within).note("largest error left {0.max:.2g}", left)


def _cells() -> Iterator[Claim]:
    for method, row in TABLE2.items():
        for ((solver, who), column), published in zip(COLUMNS.items(), row, strict=True):
            if published is None:
                continue
            for loss, way in _ways(method, who, "common", "own", *["theory"] * (method == "tamuna")):
                if loss == "mean" and way == "own":
                    continue
                within, because = _tolerance(method, published)
                notes = {"fedplt": _ONE_RHO if way == "common" else "", "tamuna": _AGAINST_TEXT}
                note = "" if way == "theory" else notes.get(method, _TUNING)
                note = _notes(note, _COINCIDE if way == "own" and who == "all" else "")
                yield _stated(loss, way, unit="rate").value(
                    f"table2.{method}.{solver}.{who}",
                    f"{METHODS[method]} converges at the rate {published} ({column}, Table II).",
                    published,
                    measures.noting_lost(Rate(loss, method, solver, who, way)),
                    within=within,
                    because=because,
                    note=_LOSS if loss == "mean" else note,
                )


def _orders() -> Iterator[Claim]:
    for (solver, who), column in COLUMNS.items():
        rivals = [rival for rival in STORED if rival != "fedplt" and (who == "all" or rival in PARTIAL)]
        for rival in rivals:
            for loss, way in _ways(rival, who, "common", "equal budget"):
                yield _stated(loss, way, unit="rate").order(
                    f"table2.best.{solver}.{who}.{rival}",
                    f"Fed-PLT converges faster per round than {METHODS[rival]} ({column}; Section VII-A).",
                    Rate(loss, rival, solver, who, way) - _clipped(loss, "fedplt", solver, who, way),
                    note=_ORDER_NOTES[way],
                    says=f"table2.best.{solver}.{who}",
                )
    yield from _order_of_baselines()
    for method, solver, loss in itertools.product(PARTIAL, SOLVERS, LOSSES):
        everyone, half = (_clipped(loss, method, solver, who, "common") for who in ("all", "half"))
        yield _stated(loss, "common", unit="rate").order(
            f"table2.partial.{method}.{solver}",
            f"{METHODS[method]}: the rate increases when half of the agents take part "
            f"({solver} solver; Section VII-A).",
            half - everyone,
            says="table2.partial",
        )
    for method in STORED:
        # The paper has theorems on the accelerated solver for Fed-PLT and 5GCS.
        for loss, way in _ways(method, "all", "common", "own") if method not in ("fedplt", "fivegcs") else ():
            yield _stated(loss, way).shape(
                f"table2.accelerated.{method}.converges",
                f"{METHODS[method]} converges with the accelerated local solver, too (Section VII-A).",
                Rate(loss, method, "accelerated", "all", way) < 1.0,
                says="table2.accelerated.converges",
                note=_DIVERGES if way == "common" else "",
            )
        yield from _solvers(method, "all")
        yield from _solvers(method, "half")
    for loss in LOSSES:
        yield _stated(loss, "").shape(
            "fedavg.biased",
            "FedAvg does not reach the minimiser: client drift (Section I).",
            lines(run(f"comparison{LOSSES[loss]}", "fedavg"), "error") > 1e-3,
        )


def _order_of_baselines() -> Iterator[Claim]:
    """Neighbours in a column's order that differ by more than the least effect."""
    for number, ((solver, who), column) in enumerate(COLUMNS.items()):
        printed = {method: row[number] for method, row in TABLE2.items() if method != "fedplt"}
        ranked = sorted((rate, method) for method, rate in printed.items() if rate is not None)
        for (low, faster), (high, slower) in itertools.pairwise(ranked):
            # What one of them was not run with, such as TAMUNA with a choice of its own, is no pair.
            ways = set(_ways(faster, who, "common", "equal budget"))
            for loss, way in sorted(ways.intersection(_ways(slower, who, "common", "equal budget"))):
                yield _stated(loss, way, unit="rate").order(
                    f"table2.order.{solver}.{who}.{faster}",
                    f"{METHODS[faster]} converges faster than {METHODS[slower]}: {low} to {high} ({column}, "
                    "Table II).",
                    Rate(loss, slower, solver, who, way) - _clipped(loss, faster, solver, who, way),
                    note=_TUNING if way == "common" else _ORDER_NOTES[way],
                    says=f"table2.order.{solver}.{who}",
                )


def _solvers(method: str, who: str) -> Iterator[Claim]:
    """Which local solver gives the lower rate."""
    printed = dict(zip(COLUMNS, TABLE2[method], strict=True))
    plain, fast = printed["gradient", who], printed["accelerated", who]
    if plain is None or fast is None:
        return
    if plain == fast:
        for loss, way in _ways(method, who, "common", "equal budget", "own"):
            yield _stated(loss, way, unit="rate").value(
                f"table2.accelerated.{method}.same",
                f"{METHODS[method]} has the same rate with either local solver: {plain} (Table II).",
                0.0,
                _clipped(loss, method, "gradient", who, way)
                - _clipped(loss, method, "accelerated", who, way),
                within=0.0005,
                because="both are printed to three digits",
                note=_LOSS if loss == "mean" else _SOLVERS,
            )
        return
    some, suffix = ("", "") if who == "all" else (", with half of the agents", ".half")
    if plain < fast:
        slower, faster = "accelerated", "gradient"
        says = "gradient descent as local solver gives a lower rate than accelerated gradient descent,"
        place = 'as "often" (Section VII-A)'
    else:
        slower, faster = "gradient", "accelerated"
        says, place = "accelerated gradient descent gives the lower rate", "(Table II)"
    for loss, way in _ways(method, who, "common", "equal budget", "own"):
        note = _ORDER_NOTES["equal budget"] if way == "equal budget" else ""
        yield _stated(loss, way, unit="rate").order(
            f"table2.accelerated.{method}.slower{suffix}",
            f"{METHODS[method]}{some}: {says} {place}.",
            _clipped(loss, method, slower, who, way) - _clipped(loss, method, faster, who, way),
            note=_notes(_LOSS if loss == "mean" else _SOLVERS, note),
        )


def _table3(loss: str) -> Iterator[Claim]:
    by_active = by_setting(run(f"participation{LOSSES[loss]}", "fedplt"), "active")
    claim = RATE.given(reading=loss, note=_LOSS if loss == "mean" else _LEVEL)
    # The run of all agents is that of Table II's cell, and so is that of half of them.
    same = {5: "table2.fedplt.gradient.half", 10: "table2.fedplt.gradient.all"}
    within, because = _tolerance("fedplt", TABLE3[0])
    for active, published in enumerate(TABLE3, start=1):
        yield claim.value(
            f"table3.{active}",
            f"With {active} active agent{'s' * (active > 1)} Fed-PLT converges at the rate {published} "
            f"(Table III).",
            published,
            at(by_active, active, f"{active} agents"),
            within=within,
            because=because,
            says=same.get(active, f"table3.{active}"),
        )
    yield claim.value(
        "table3.level",
        "The rates of Table III are right on average over the ten numbers of agents.",
        0.0,
        measures.level_above(by_active, TABLE3),
        within=0.003,
        because="the least difference between rates that is called one",
    )
    half, every = (at(by_active, count, f"{count} agents") for count in (5, 10))
    yield CLAIM.order(
        "table3.rounds",
        "Partial participation significantly reduces the number of rounds: with half of the agents they are "
        "fewer than with all, each at its own rho (Abstract, Section I).",
        _fewer_rounds(half, every),
        reading=loss,
        note="Section VII-A says the opposite, and is right: a round moves half of the agents",
        **_SIGNIFICANTLY,
    )
    yield CLAIM.order(
        "table3.messages",
        "Partial participation reduces the number of messages: half of the agents, each at its own rho, send "
        "fewer in all than all of them do (Sections I and IV-C).",
        _fewer_rounds(half, every) + np.log(2.0),
        unit="e-folds",
        reading=loss,
        note="a round has half of the messages, but more than twice as many rounds are needed",
    )
    yield CLAIM.shape(
        "table3.monotone",
        "The fewer agents take part, the higher the rate (Section VII-A).",
        mean_change(by_active) < 0,
        reading=loss,
    )


def _table4(loss: str) -> Iterator[Claim]:
    stated = {noise: CLAIM.given(reading=_reading(loss, noise)) for noise in _NOISE}
    noisy = run(f"noise{LOSSES[loss]}", "fedplt")
    errors = {noise: by_setting(noisy, "tau", "agents", reading=noise) for noise in _NOISE}

    def error(tau: float, noise: str) -> Quantity:
        return at(errors[noise], tau, f"noise level {tau:g}")

    for (tau, published), noise in itertools.product(TABLE4.items(), errors):
        yield stated[noise].value(
            f"table4.{tau:g}",
            f"With noise level {tau:g} the asymptotic error is {published} (Table IV).",
            published,
            error(tau, noise),
            within=0.1 * published,
            because="a tenth of the published number, whose way of measuring is not stated",
            unit="distance",
            note=_NOISE_LEVEL,
        )
    for noise, table in errors.items():
        yield stated[noise].shape(
            "table4.increasing",
            "The larger the variance, the larger the asymptotic error (Section VII-A, Corollary 1).",
            mean_change(table) > 0,
        )
        for low, high in ((1e-2, 1e-1), (1e-1, 1.0), (1.0, 10.0)):
            ratio = TABLE4[high] / TABLE4[low]
            yield stated[noise].value(
                f"table4.growth.{low:g}",
                f"From noise level {low:g} to {high:g} the error grows {ratio:.2f} times (Table IV).",
                ratio,
                error(high, noise) / error(low, noise),
                within=0.1 * 2**0.5 * ratio,
                because="of two numbers that may be off by a tenth each, the root of two as much: 14 %",
                unit="ratio",
                note=f"√10 = 3.16 for whatever answers noise of variance τ linearly; {_NOISE_LEVEL}"
                if noise == "variance"
                else _NOISE_LEVEL,
            )


def _figure2(loss: str) -> Iterator[Claim]:
    claim = CLAIM.given(reading=loss, note=_LOSS if loss == "mean" else "")
    by_rho = by_setting(run(f"penalty{LOSSES[loss]}", "fedplt"), "rho")
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
    exact = by_setting(run(f"splitting{LOSSES[loss]}", "fedplt"), "rho", steps=0)
    width = 0.1 * (1.0 - min(_RATES))
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


def _figure3(loss: str) -> Iterator[Claim]:
    claim = CLAIM.given(reading=loss, note=_LOSS if loss == "mean" else _DRAW)
    name = f"epochs{LOSSES[loss]}"
    epochs, chosen = run(name, "fedplt"), settings(name)
    by_steps = by_setting(epochs, "steps", solver="gradient")
    exact = measures.column(by_setting(epochs, "steps", solver="exact"), 0)
    plateau = measures.plateau(by_steps)
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
    one, ten, twenty = (at(by_steps, count, f"{count} local steps") for count in (1, 10, 20))
    for name, rate, statement in (
        ("zeta", plateau, "The plateau is very close to zeta (Section VII-B)."),
        ("zeta20", twenty, "Already with 20 local epochs the rate is very close to zeta (Section VII-B)."),
    ):
        yield claim.value(
            f"fig3.{name}",
            statement,
            0.0,
            rate - measures.zeta_of(epochs, chosen),
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
        _fewer_rounds(ten, one),
        note=f"one epoch is near the exact map; {_LOSS}" if loss == "mean" else "",
        **_SIGNIFICANTLY,
    )
    # Proposition 4 counts rounds and local epochs by their product alone, and grows with it.
    yield claim.order(
        "fig3.privacy",
        "Local epochs enhance privacy (title, Contribution 3): with ten of them fewer noisy steps in all, by "
        "which alone Proposition 4 counts, lead to the same accuracy than with one.",
        _fewer_rounds(ten, one) - np.log(10.0),
        unit="e-folds",
        note=_notes("ten epochs save fewer than nine rounds of ten", _LOSS if loss == "mean" else ""),
    )


_SIGNIFICANTLY: dict[str, Any] = {
    "unit": "e-folds",
    "least": 0.22,
    "because": "significantly fewer is four fifths",
}


def _fewer_rounds(rate: Quantity, other: Quantity) -> Quantity:
    """Logarithm of how many times fewer rounds `rate` takes to an error than the `other`."""
    return np.log(-np.log(rate)) - np.log(-np.log(other))


def _theory() -> Iterator[Claim]:
    exactness = CLAIM.given(artefact="exactness")
    runs = run("exactness", "fedplt")
    for name, who, statement in (
        ("full", "all", "No client drift: exact convergence for every number of local epochs (Remark 3)."),
        ("partial", "half", "Exact convergence also under partial participation (Remark 3)."),
    ):
        left = lines(runs, "error", participation=who, start="warm")
        yield exactness.shape(f"exact.{name}", statement, _arrives(left, 1e-12))
    for name, cohort, who in (("full", 10, "all agents"), ("partial", 5, "half of the agents")):
        left = lines(
            run("comparison", "fedplt"), "error", reading="common", solver="accelerated", cohort=cohort
        )
        yield exactness.shape(
            f"exact.accelerated.{name}",
            f"Exact convergence also with accelerated local steps, with {who} (Proposition 3, Remark 3).",
            _arrives(left),
        )
    cold = measures.cold_errors_of_few_steps(runs)
    yield exactness.shape(
        "warm.needed",
        "Local steps must begin at x_{i,k}: from v_{i,k}, few of them do not converge to the minimiser "
        "(Remark 2).",
        (cold > 1e-6).note("least error left {0.min:.2g}", cold),
    )
    epochs, chosen = run("epochs", "fedplt"), settings("epochs")
    bounds = CLAIM.given(artefact="bounds")
    for name, solver, statement in (
        ("rate", "gradient", "Where |S| < 1 the measured rate is at most |S| (Proposition 1)."),
        ("accelerated", "accelerated", "Where |S'| < 1 the measured rate is at most |S'| (Proposition 3)."),
    ):
        measured = measures.rate_below_norm(epochs, chosen, solver)
        yield bounds.shape(f"bounds.{name}", statement, measured, note="S and S' as printed")
    yield bounds.shape(
        "bounds.contraction",
        "Where |S| < 1 a round brings any two states closer by the factor |S| (Proposition 1).",
        measures.round_below_norm(run("splitting", "fedplt")),
        note="S as printed; its eq. (14) lacks a factor 1 / rho, and with that |S| is above one everywhere "
        "here. A round is taken as its linearisation at the minimiser",
    )
    yield bounds.shape(
        "bounds.rounds",
        "Mean errors stay below the bound of Proposition 2, with and without partial participation and "
        "noise.",
        measures.errors_below_bound(run("bounds", "fedplt"), settings("bounds")),
        note="S as printed",
    )


def _privacy() -> Iterator[Claim]:
    runs, made = run("privacy", "fedplt"), settings("privacy")
    yield CLAIM.shape(
        "privacy.tradeoff",
        "The larger the noise, the larger the error (Corollary 1, Section VI).",
        measures.error_rises_with_noise(runs),
        share=0.95,
        note="two levels whose noise is below the error that the rounds leave may be equal",
    )
    yield CLAIM.shape(
        "privacy.bound",
        "The Renyi divergence of final models on neighbouring data sets is at most that of Proposition 4.",
        formula(release.final_models_below_bound),
        note="on quadratic losses, where it is known exactly, coupling by the coordinator included",
    )
    yield CLAIM.identity(
        "privacy.constant",
        "Proposition 4's privacy loss grows with the rounds, up to the constant lambda L^2 / (mu tau^2 q^2), "
        "where composing the Renyi divergences of all steps grows without bound (Section VI).",
        formula(measures.grows_to_constant),
        note="of the bound; the divergence of final models itself need not grow: on quadratic losses it can "
        "fall after the first round, since the coordinator mixes in the other agents' noise",
    )
    exactly = "on quadratic losses, where it is known exactly"
    for name, what, agents, words, note in (
        ("", "all", 10, "the agents' final models give away", exactly),
        (
            ".messages",
            "messages",
            2,
            "all messages give away",
            f"{exactly}; Proposition 4 is of final models",
        ),
    ):
        yield CLAIM.shape(
            f"privacy.epochs{name}",
            "Local training enhances privacy (title, Contribution 3, Section VI): at equally many gradient "
            f"steps, the more of them are local the less {words}.",
            formula(release.epochs_hide, what, agents),
            says="privacy.epochs",
            note=note,
        )
    for name, rival, how in (
        ("", "advanced", "advanced composition of"),
        (".renyi", "renyi", "composing the Renyi divergences of"),
    ):
        yield CLAIM.shape(
            f"privacy.tighter{name}",
            f"Proposition 4's privacy is tighter than {how} all noisy steps (Section VI).",
            measures.tighter(runs, made, rival),
            says="privacy.tighter",
            note="it costs half as much while steps are few, and protects every step's model" if name else "",
        )


def _variants(loss: str) -> Iterator[Claim]:
    """What Algorithm 1 allows beside the tables."""
    variants = CLAIM.given(artefact="variants", reading=loss)
    runs = run(f"variants{LOSSES[loss]}", "fedplt")
    for name, who, where in (("full", "all", "all agents"), ("partial", "half", "half of the agents")):
        yield variants.shape(
            f"composite.{name}",
            f"Exact convergence on composite problems, with {where} (Contribution 2, Section V).",
            _arrives(lines(runs, "error", variant="composite", participation=who), 1e-11),
            says="composite",
        )
        yield variants.shape(
            f"uncoordinated.{name}",
            "Agents may use different algorithms and numbers of local steps, and it still converges to the "
            f"minimiser, with {where} (Remark 1).",
            _arrives(lines(runs, "error", variant="uncoordinated", solver="mixed", participation=who), 1e-11),
            says="uncoordinated",
        )
    for steps in (1, 10):
        common, own = (
            lines(runs, "rate", variant="uncoordinated", solver=solver, steps=steps)
            for solver in ("common", "own")
        )
        yield variants.order(
            f"uncoordinated.faster.{steps}",
            "Steps for their own mu and L adapt to the agents' losses: the rate is lower than with one for "
            f"all ({steps} local epoch{'s' * (steps > 1)}; Remark 1).",
            common - own,
            unit="rate",
            says="uncoordinated.faster",
            note="the agents' mu and L differ little; with many epochs, or mean losses, it makes the "
            "proximal maps more exact, which is slower, as in Figure 3",
        )
    for solver, words in (("gradient", "Minibatches"), ("accelerated", "Minibatches with accelerated steps")):
        yield variants.shape(
            f"minibatches.{solver}.neighbourhood",
            f"{words} lead to a neighbourhood of the minimiser: mean errors settle, within a tenth "
            "(Section V-B, Table I).",
            measures.steady(runs, solver, 0.1),
        )
        by_batch = by_setting(runs, "batch", "error", variant="minibatches", solver=solver)
        yield variants.shape(
            f"minibatches.{solver}.variance",
            f"{words}: the larger their noise, the larger the neighbourhood (Contribution 3).",
            mean_change(by_batch) < 0,
        )


_OF_LOSS = (_table3, _table4, _figure2, _figure3, _variants)
CLAIMS = (
    *_table1(),
    *_cells(),
    *_orders(),
    *(claim for part, loss in itertools.product(_OF_LOSS, LOSSES) for claim in part(loss)),
    *_theory(),
    *_privacy(),
)
