"""Checkable sentences of the paper's abstract, figures and published numbers, with their claims.

The authors' numbers are claimed as identities: each that is not sensitive to rounding, to 1e-9. Orders are
over all (K, M) that the authors published, of one seed, so that "ahead" means at more than half of them.
Fresh seeds have a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim, Measured, NotMeasurableError
from replifed.claims.evidence import FORMULA, LOGS, OWN
from replifed.claims.quantities import Quantity, quantity, run, settings
from replifed.claims.statements import Statements
from replifed.papers.fedac import measures, orders, published
from replifed.papers.fedac.measures import AGREES
from replifed.papers.fedac.orders import MOST
from replifed.papers.fedac.paper import (
    DRAWN,
    L2,
    LINES,
    LOCAL_STEPS,
    MOST_RUN,
    OPTIMA,
    POINTS_RUN,
    PUBLISHED_POINTS,
    PUBLISHED_RUNS,
    RUNS_AT_HAND,
    SMOOTHNESS,
    VARIANTS,
    Drawn,
)

if TYPE_CHECKING:
    from replifed.papers.fedac import settings as of

AXES = Axes(
    Axis(
        "random",
        "Random numbers are arbitrary.",
        Option(
            "authors",
            "authors",
            "numpy's RandomState(1), in the order of their published code: runs that are not sensitive to "
            "rounding come out to 1e-9",
        ),
        Option(
            "own",
            "chosen",
            "our own 20 seeds, each method at the best of three step sizes on other seeds",
            kind="equivalent",
        ),
    ),
    Axis(
        "factor",
        "The abstract asks for O~(M^(1/3)) rounds of FedAc, O~(M) of FedAvg; O~ hides factors.",
        Option(
            "theorem",
            "printed",
            "the theorem states its factors",
            not_run="the paper's prose, with the theorem, was not available",
        ),
        Option(
            "one",
            "chosen",
            "M^(1/3), or M, rounds, without a factor",
            "without its factors the sentence promises nothing",
        ),
        Option(
            "condition",
            "chosen",
            "(L / mu)^(2/3) M^(1/3) rounds, from which on a term L^2 sigma^2 / (mu^3 K R^4) is below "
            "sigma^2 / (mu M K R), the linear speed-up; L is the largest eigenvalue of X'X / (4 n), plus mu",
            "we added the term from memory, without reading it, when we knew the exponents",
        ),
    ),
    gaps={**{name: ["random"] for name in L2}, **{f"fresh{name[3:]}": [] for name in L2}},
)
AUTHORS, OWN_SEEDS = {"random": "authors"}, {"random": "own"}
# Settings have no part in ids.
CLAIM = Statements("fedac", AXES, suffix=lambda options: "", runs="re-execution", options=AUTHORS)
METHODS = list(dict.fromkeys(one.method for one in VARIANTS.values()))
_NAMES = {name: f"1e-{name[-1]}" for name in L2}
_LARGER = "points with more workers are run on demand (`fedac_large`), at three steps each, and not claimed"


@quantity
def summary(chosen: of.Grid, *histories: pd.DataFrame) -> pd.DataFrame:
    """Runs of one experiment."""
    return pd.concat([measures.summary(chosen.l2, one) for one in histories], ignore_index=True)


@quantity
def together(*several: pd.DataFrame) -> pd.DataFrame:
    """Runs of several experiments."""
    return pd.concat(several, ignore_index=True)


RUNS = {name: summary(settings(name), *(run(name, method) for method in METHODS)) for name in L2}
ALL = together(*RUNS.values())


@quantity
def agrees(runs: pd.DataFrame, which: str) -> Measured:
    """True of each comparable number that is the authors'."""
    deviations = measures.deviations(runs, which)
    if deviations.empty:
        raise NotMeasurableError("none of these runs was published")
    insensitive = int((runs[f"chaotic_{which}"] == 0).sum())
    note = f"{len(deviations)} of the {PUBLISHED_RUNS} published numbers are compared: {insensitive} of our "
    note += f"{len(runs)} are not sensitive to rounding, and not all are at hand; "
    note += f"largest deviation {deviations.max():.1e}"
    return Measured(deviations.to_numpy() <= AGREES, seeds=1, note=note)


points = quantity(measures.points)


@quantity
def points_agree(drawn: pd.DataFrame, name: str = "") -> Measured:
    """True of each point of a figure, or of all, that has the authors' step and objective."""
    if name:
        drawn = measures.drawn(drawn, DRAWN[name])
    if drawn.empty:
        raise NotMeasurableError("no point of the figure was run")
    same = drawn["eta"] == drawn["published_eta"]
    worst = drawn["deviation"].max()
    of = f" of {len(measures.drawn(published.points(), DRAWN[name]))}" if name else ""
    note = f"{len(drawn)}{of} points, largest deviation {worst:.1e}, {same.sum()} with the same step"
    return Measured(((drawn["deviation"] <= AGREES) & same).to_numpy(), seeds=1, note=note)


@quantity
def equal(runs: pd.DataFrame, first: str, second: str, share: float) -> Measured:
    """True of runs at K = 1 in which two methods end alike, up to a `share`; not of those by rounding."""
    runs = runs[(runs["K"] == 1) & (runs["chaotic_best"] == 0)]
    table = runs.set_index(["l2", "M", "eta", "method"])["best_loss"].unstack()  # noqa: PD010
    if not {first, second} <= set(table):
        raise NotMeasurableError("K = 1 was not run")
    table = table[[first, second]].dropna()
    off = (table[first] / table[second] - 1).abs()
    return Measured(
        (off <= share).to_numpy(), seeds=1, note=f"{len(off)} runs, largest difference {off.max():.1e}"
    )


@quantity
def above_the_minimum(l2: float, history: pd.DataFrame) -> Measured:
    """True if the published optimum lies above the minimum, by less than any gap in a figure."""
    minimum = float((history["objective"] - history["gap"]).median())
    off = OPTIMA[l2] - minimum
    return Measured(np.array([0 < off < 1e-7]), seeds=1, note=f"by {off:.1e}")


# --- Sentences ------------------------------------------------------------------------------------

POINTS = {name: orders.every_point(points(RUNS[name])) for name in L2}
FRESH = {name: f"fresh{name[3:]}" for name in L2}
BOTH = {name: together(run(FRESH[name], "fedavg"), run(FRESH[name], "fedac")) for name in L2}
# Figures compare FedAc with FedAvg at these; other comparisons are our questions to the logs, and inform.
_FIGURES = ("a9a_2", "a9a_3")


def _most(
    name: str,
    experiment: str,
    says: str,
    method: str,
    other: str,
    where: orders.Where,
    *,
    fewer: int = 1,
    informs: bool = False,
) -> Iterator[Claim]:
    """A method's point is below another's at most (K, M) that were published; of those run this informs."""
    l2 = _NAMES[experiment]
    for part, which, of in (
        ("", "all published (K, M)", {"run": False}),
        (".run", f"those with at most {MOST_RUN} workers", {"run": True}),
        (".more", f"those with more than {MOST_RUN} workers", {"more_than": MOST_RUN}),
    ):
        yield CLAIM(f"{name}{part}", artefact="points", informs=informs or bool(part)).shape(
            f"l2 = {l2}: {says}, at more than half of {which}.",
            orders.ahead(POINTS[experiment], method, other, where, fewer=fewer, **of),
            fails="a point of the second method below the first one's at half of the (K, M) or more",
            share=MOST,
            because="more than half",
        )


def _fresh(name: str, part: str, experiment: str, says: str, lines: Quantity, *, informs: bool) -> Claim:
    return CLAIM(name, part=part, artefact="fresh", options=OWN_SEEDS, informs=informs).shape(
        f"l2 = {_NAMES[experiment]}: on fresh seeds {says}, at more than half of the (K, M).",
        orders.ahead_on_fresh_seeds(lines, orders.seeds_of(BOTH[experiment])),
        fails="half of the (K, M) or more at which FedAc-I is not significantly below FedAvg",
        share=MOST,
        because="more than half",
    )


def _faster(experiment: str) -> Iterator[Claim]:
    """FedAc-I against FedAvg, with the authors' random numbers and with fresh seeds."""
    part, says, informs = f"orders.fedac.{experiment}", "FedAc-I is below FedAvg", experiment not in _FIGURES
    yield from _most(part, experiment, says, "fedac_1", "fedavg", orders.everywhere, informs=informs)
    lines = orders.fresh_lines(L2[experiment], BOTH[experiment])
    yield _fresh(f"fresh.orders.{FRESH[experiment]}", part, experiment, says, lines, informs=informs)


def _fewer_rounds(experiment: str) -> Iterator[Claim]:
    part, informs = f"orders.rounds.{experiment}", experiment not in _FIGURES
    says = "with half of the rounds FedAc-I is below FedAvg"
    yield from _most(part, experiment, says, "fedac_1", "fedavg", orders.everywhere, fewer=2, informs=informs)
    lines = orders.half_the_rounds(BOTH[experiment])
    yield _fresh(f"fresh.rounds.{FRESH[experiment]}", part, experiment, says, lines, informs=informs)
    yield CLAIM(
        f"fresh.rounds.behind.{FRESH[experiment]}", artefact="fresh", options=OWN_SEEDS, informs=True
    ).shape(
        f"l2 = {_NAMES[experiment]}: on fresh seeds with half of the rounds FedAc-I is above FedAvg, at more "
        "than half of the (K, M).",
        orders.ahead_on_fresh_seeds(lines, orders.seeds_of(BOTH[experiment]), behind=True),
        fails="half of the (K, M) or more at which FedAc-I is not significantly above FedAvg",
        share=MOST,
        because="more than half",
    )


def _second(experiment: str) -> Iterator[Claim]:
    """FedAc-II, of which the abstract says nothing, against FedAvg and FedAc-I."""
    name, says = f"orders.fedac_2.{experiment}", "FedAc-II is below FedAvg"
    yield from _most(name, experiment, says, "fedac_2", "fedavg", orders.everywhere, informs=True)
    yield CLAIM(f"orders.fedac_2.fedac_1.{experiment}", artefact="points", informs=True).shape(
        f"l2 = {_NAMES[experiment]}: FedAc-II is below FedAc-I, at more than half of all published (K, M).",
        orders.ahead(POINTS[experiment], "fedac_2", "fedac_1"),
        fails="FedAc-I's point below FedAc-II's at half of the (K, M) or more",
        share=MOST,
        because="more than half",
    )


@CLAIM.sentence(
    "orders.fedac",
    "Abstract, Figures 1 to 4",
    "FedAc converges faster than FedAvg.",
    main=True,
    evidence=LOGS,
)
def _speed() -> Iterator[Claim]:
    for experiment in L2:
        yield from _faster(experiment)
    yield CLAIM("orders.fedac.a9a_4.512", artefact="points", informs=True).shape(
        "l2 = 1e-4: FedAc-I is below FedAvg at more than half of all published M for K = 512.",
        orders.ahead(POINTS["a9a_4"], "fedac_1", "fedavg", K=512),
        fails="FedAvg's point below FedAc-I's at half of the M or more",
        share=MOST,
        because="more than half",
    )
    for experiment in ("a9a_3", "a9a_4"):
        yield from _second(experiment)


@CLAIM.sentence(
    "orders.rounds",
    "Abstract, Figures 1 to 4",
    "FedAc needs less communication than FedAvg.",
    main=True,
    evidence=LOGS,
)
def _communication() -> Iterator[Claim]:
    for experiment in L2:
        yield from _fewer_rounds(experiment)


@CLAIM.sentence(
    "speedup",
    "Abstract",
    "FedAc's speed-up in M is linear with O~(M^(1/3)) rounds, where FedAvg's analysis requires O~(M).",
    main=True,
    evidence=OWN,
    question="We had only your abstract. With your theorem's constants, how many rounds does a linear "
    "speed-up to M = 64 need on a9a at l2 = 1e-3 and T = 4096? Is a table of them printed?",
)
def _speedup() -> Iterator[Claim]:
    for experiment, l2 in L2.items():
        name, key, runs = FRESH[experiment], _NAMES[experiment], BOTH[experiment]
        lines = orders.fresh_lines(l2, runs), orders.seeds_of(runs), settings(name)
        part = f"fresh.speedup.fedac_1.{name}"
        condition = ((SMOOTHNESS + l2) / l2) ** (2 / 3)
        for option, made, method, power, factor, words in (
            ("one", part, "fedac_1", 1 / 3, 1.0, "M^(1/3)"),
            (
                "condition",
                f"fresh.speedup.condition.{name}",
                "fedac_1",
                1 / 3,
                condition,
                "(L / mu)^(2/3) M^(1/3)",
            ),
            ("one", f"fresh.speedup.fedavg.{name}", "fedavg", 1.0, 1.0, "M"),
        ):
            of_fedavg = method == "fedavg"
            yield CLAIM(
                made,
                part=made if of_fedavg else part,
                artefact="fresh",
                options=OWN_SEEDS | {"factor": option},
                informs=of_fedavg,
            ).shape(
                f"l2 = {key}: {LINES[method].label}'s gap falls as 1 / M up to the largest M, wherever there "
                f"are {words} rounds.",
                orders.linear(*lines, method, power, factor),
                fails="a K whose exponent of the gap against M, with all its interval, is a tenth off -1",
                note="the theorem bounds the gap from above, with terms that M does not lower: a speed-up "
                "below linear does not contradict it",
            )


@CLAIM.sentence(
    "third_order",
    "Abstract",
    "FedAc's guarantees are stronger for objectives that are third-order smooth.",
    main=True,
    evidence=FORMULA,
    question="How many rounds does your theorem for third-order smooth objectives require on a9a, at "
    "l2 = 1e-3 and M = 64?",
)
def _third_order() -> Iterator[Claim]:
    yield CLAIM("third_order", artefact="points").unmeasured(
        "With a loss that is third-order smooth, as logistic regression is, FedAc needs fewer rounds.",
        Quantity(lambda: None),
        note="the abstract prints no bound, and the prose that does was not available; the authors' runs "
        "have a second coupling, FedAc-II, on which claims beside FedAc's speed inform",
    )


def _figure(name: str, drawn: Drawn) -> Iterator[Claim]:
    if name in ("fig5", "fig6"):
        says = f"Figure {name[3:]}: its points on epsilon, whose data are not available."
        yield CLAIM(f"{name}.points").unmeasured(says, Quantity(lambda: None))
        return
    (experiment,) = (key for key, l2 in L2.items() if l2 == drawn.l2)
    yield CLAIM(f"{name}.points").identity(
        f"Figure {name[3:]}: {drawn.count(MOST_RUN)} of its {drawn.count()} points, all those with at most "
        f"{MOST_RUN} workers, come out to 1e-9, at their step.",
        points_agree(points(RUNS[experiment]), name),
        note=_LARGER,
    )


for _name, _drawn in DRAWN.items():
    _data = "epsilon" if _name in ("fig5", "fig6") else f"a9a, l2 = {_drawn.l2:.0e}".replace("e-0", "e-")
    _axis = "M" if _drawn.panels == "K" else "K"
    _rests_on = "authors' logs" if _data == "epsilon" else "re-execution"
    _says = f"Figure {_name[3:]} shows points on {_data}, against {_axis}"
    if _data != "epsilon":
        _says += f"; we check {_drawn.count(MOST_RUN)} of {_drawn.count()}, with at most {MOST_RUN} workers"
    CLAIM.sentence(f"{_name}.points", f"Figure {_name[3:]}", f"{_says}.", evidence=_rests_on)(
        partial(_figure, _name, _drawn)
    )


def _naive(experiment: str) -> Iterator[Claim]:
    name = f"orders.naive.{experiment}"
    says = "where K > 1 FedAc-I is below naive FedAc"
    yield from _most(name, experiment, says, "fedac_1", "naive_fedac", orders.local)
    for K in LOCAL_STEPS[1:] if experiment == "a9a_3" else ():
        yield CLAIM(f"{name}.{K}", artefact="points", informs=True).shape(
            f"l2 = 1e-3: FedAc-I is below naive FedAc at more than half of all published M for K = {K}.",
            orders.ahead(POINTS[experiment], "fedac_1", "naive_fedac", K=K),
            fails="naive FedAc's point below FedAc-I's at half of the M or more",
            share=MOST,
            because="more than half",
        )


for _experiment, _place in (("a9a_4", "Figure 7"), ("a9a_3", "Abstract, published results")):
    CLAIM.sentence(
        f"orders.naive.{_experiment}",
        _place,
        f"Naive FedAc, whose coupling does not depend on K, is behind FedAc-I at l2 = {_NAMES[_experiment]}.",
        evidence=LOGS,
    )(partial(_naive, _experiment))


def _few_steps(cases: pd.DataFrame) -> pd.Series:
    """Few local steps of several workers: one has nothing to average."""
    return (cases["K"] >= 2) & (cases["K"] <= 16) & (cases["M"] > 1)


def _many_steps(cases: pd.DataFrame) -> pd.Series:
    return cases["K"] >= 32


@CLAIM.sentence(
    "orders.mb_ac_sgd.few",
    "Figure 7",
    "MB-AC-SGD is ahead of FedAc-I for K from 2 to 16, with two workers or more.",
    evidence=LOGS,
)
def _few_ahead() -> Iterator[Claim]:
    says = "for K from 2 to 16 and M > 1 MB-AC-SGD is below FedAc-I"
    yield from _most("orders.mb_ac_sgd.few", "a9a_4", says, "mb_ac_sgd", "fedac_1", _few_steps)


@CLAIM.sentence(
    "orders.mb_ac_sgd.many", "Figure 7", "MB-AC-SGD is behind FedAc-I from K = 32 on.", evidence=LOGS
)
def _many_behind() -> Iterator[Claim]:
    says = "from K = 32 on FedAc-I is below MB-AC-SGD"
    yield from _most("orders.mb_ac_sgd.many", "a9a_4", says, "fedac_1", "mb_ac_sgd", _many_steps)


@CLAIM.sentence(
    "points.all",
    "Published results",
    f"The best of each (K, M); we check {POINTS_RUN} of {PUBLISHED_POINTS}, with at most {MOST_RUN} workers.",
)
def _points() -> Iterator[Claim]:
    yield CLAIM("points.all").identity(
        f"{POINTS_RUN} of the {PUBLISHED_POINTS}, all with at most {MOST_RUN} workers, come out to 1e-9.",
        points_agree(points(ALL)),
        note=_LARGER,
    )


@CLAIM.sentence(
    "runs",
    "Published results",
    f"The last and the best objective of each run; we check those {RUNS_AT_HAND:,} of {PUBLISHED_RUNS:,} "
    f"that are available with at most {MOST_RUN} workers, if they are not sensitive to rounding.",
)
def _runs() -> Iterator[Claim]:
    for which in ("final", "best"):
        yield CLAIM(f"runs.{which}").identity(
            f"Every finite {which} objective that is at hand with at most {MOST_RUN} workers, and is not "
            "sensitive to rounding, comes out to 1e-9.",
            agrees(ALL, which),
        )


@CLAIM.sentence(
    "runs.one_step",
    "Published results",
    "At K = 1 FedAvg is MB-SGD, and FedAc-I, naive FedAc and MB-AC-SGD are one method.",
)
def _one_step() -> Iterator[Claim]:
    for name, first, second, share, words in (
        ("fedac", "fedac_1", "naive_fedac", 0.0, "FedAc-I and naive FedAc are one method, to the bit"),
        ("mb_ac_sgd", "fedac_1", "mb_ac_sgd", AGREES, "FedAc-I is MB-AC-SGD"),
        ("fedavg", "fedavg", "mb_sgd", AGREES, "FedAvg is MB-SGD"),
    ):
        yield CLAIM(f"runs.one_step.{name}").identity(f"At K = 1 {words}.", equal(ALL, first, second, share))


@CLAIM.sentence(
    "optima",
    "Published optima",
    "F* = 0.3727237615595949, 0.3333407530091771 and 0.3245069255709821.",
    evidence="own runs",
)
def _optima() -> Iterator[Claim]:
    for experiment, l2 in L2.items():
        name = f"fresh{experiment[3:]}"
        yield CLAIM(f"optima.{name}", artefact="fresh", options={}).identity(
            f"l2 = {_NAMES[experiment]}: the published optimum is above the minimum, by less than 1e-7.",
            above_the_minimum(l2, run(name, "fedavg")),
        )


CLAIMS, SENTENCES = CLAIM.all(), CLAIM.sentences
