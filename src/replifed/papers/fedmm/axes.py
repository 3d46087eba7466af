"""What the paper leaves open (Dieuleveut et al. 2025): the text at hand has lost its formulas and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, formula, quantity, run, settings, tuned
from replifed.claims.statements import Statements, slug
from replifed.papers.fedmm import measures
from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.fedmm.paper import EXPERIMENTS
from replifed.papers.fedmm.steps import SHORTER, best_asked

HOMOGENEOUS, HETEROGENEOUS, MOVIELENS = "synthetic_homogeneous", "synthetic_heterogeneous", "movielens"
FEDMM, NAIVE = BOTH = ("fedmm", "parameter_aggregation")
SHORT = "0.3 to 3"
STEPS, UNLIKE = ("own", "common", SHORT), (HETEROGENEOUS, MOVIELENS)

AXES = Axes(
    Axis(
        "sizes",
        "All sizes, weights, batches, bits and numbers of clients and rounds are lost.",
        Option(
            "earlier study",
            "fitted",
            "chosen by an earlier study because most of Figures 1 to 3 come out with them",
            against="with minibatches of twice as many samples as atoms, or more, the naive method does not "
            "diverge",
        ),
        tried=2,
    ),
    Axis(
        "step",
        'Steps decay and are "tuned for each algorithm and setting from the range", which is lost.',
        Option("own", "printed", "each at its own best, of a range that grows until the best lies inside"),
        Option(
            "common",
            "chosen",
            "both at FedMM's best, as if the range ended above the naive method's",
            against="the text has them tuned for each algorithm",
        ),
        Option(
            SHORT,
            "fitted",
            "each at its best of 0.3, 1 and 3, the range with which the sizes were chosen",
            against="on heterogeneous data the naive method's is the end, 0.3, and smaller steps are better",
        ),
    ),
    Axis(
        "users",
        "MovieLens is subsampled to 5000 users.",
        Option("random users", "printed", "the usual sense of the word"),
        Option("fullest users", "chosen", "those with the most ratings"),
    ),
    Axis(
        "alpha",
        "Figure 2 has control variates with one step alpha, which is lost.",
        Option("0.5", "fitted", "from the same study: Figure 2 comes out with it"),
        Option("0.1", "chosen", "a smaller step"),
    ),
    Axis(
        "cohort",
        "The expected number of active clients of Figure 2 is lost.",
        Option("half", "chosen", "as in Figure 1"),
        Option("tenth", "chosen", "where control variates matter most"),
    ),
    Axis(
        "count",
        "Figure 3's horizontal axis is lost.",
        Option("per round", "chosen", "as in Figures 1 and 2"),
        Option("per gradient", "chosen", "FedMM-OT takes more gradients in a round"),
    ),
    Axis(
        "toy",
        "Remark 1's example has lost its formulas.",
        Option("interval", "chosen", "a quadratic loss on an interval", kind="equivalent"),
        Option("rate", "chosen", "the rate of an exponential law", kind="equivalent"),
    ),
    Axis(
        "values",
        "Remark 1's example has lost the clients' values, too.",
        Option(
            "unequal",
            "fitted",
            "two values of which one is clipped, or whose means differ",
            against="with some others the parameters' mean is the solution",
        ),
    ),
    inferred={
        "sizes": "earlier study",
        "step": SHORT,
        "users": "random users",
        "alpha": "0.5",
        "cohort": "half",
        "count": "per round",
        "toy": "interval",
        "values": "unequal",
    },
    fitted_on=[
        *(
            f"fig1.{data}.{what}"
            for data in (HOMOGENEOUS, HETEROGENEOUS, MOVIELENS)
            for what in ("better", "monotone")
        ),
        f"fig1.{HETEROGENEOUS}.diverges",
        "remark1.parameter_aggregation",
        "fig2.homogeneous.cancel",
        *(f"fig2.{data}.{what}" for data in ("heterogeneous", "movielens") for what in ("lower", "rate")),
        *(f"fig3.d{dim}.better" for dim in (2, 4, 8)),
    ],
)
SIZES = {"sizes": "earlier study"}
# Experiments of a data set, with the users that they have.
RUNS: dict[str, dict[str, dict[str, str]]] = {
    HOMOGENEOUS: {HOMOGENEOUS: {}},
    HETEROGENEOUS: {HETEROGENEOUS: {}},
    MOVIELENS: {"movielens_random": {"users": "random users"}, MOVIELENS: {"users": "fullest users"}},
}
ARTEFACTS = {"own": "fig1", "common": "fig1_common", SHORT: "fig1_shorter"}
DATA = {HOMOGENEOUS: "Homogeneous", HETEROGENEOUS: "Heterogeneous", MOVIELENS: "MovieLens"}


def _ending(options: Mapping[str, str]) -> str:
    """Ending of a claim's id: options that differ between readings of one claim."""
    named = [options[axis] for axis in ("step", "users", "count", "toy") if axis in options]
    return slug(", ".join(named) or ("synthetic" if "cohort" in options else ""))


CLAIM = Statements("fedmm", AXES, suffix=_ending, runs="own runs")
PROVED = CLAIM.given(artefact="em")


def proved(
    name: str, place: str, says: str, measured: Callable[..., Any], *more: Any, main: bool = False
) -> None:
    """A sentence that formulas and exact iterations of examples can contradict."""

    def claims() -> Iterator[Claim]:
        yield PROVED.identity(name, says, formula(measured, *more))

    CLAIM.sentence(name, place, says, main=main, evidence="formula")(claims)


def on_data(
    figure: str, name: str, says: str, *several: str, also: str = "", **more: Any
) -> Callable[[Callable[[str], Iterator[Claim]]], None]:
    """Decorate claims of a figure on a data set, given its name: a sentence for each of `several`, or all.

    `more` is what `Statements.sentence` takes.
    """

    def registered(claims: Callable[[str], Iterator[Claim]]) -> None:
        for data in several or DATA:
            sentence = f"{figure}.{data if figure == 'fig1' else data.removeprefix('synthetic_')}.{name}"
            where = f"Section 6, Figure {figure[-1]}" + f", and Section {also}" * bool(also)
            CLAIM.sentence(sentence, where, f"{DATA[data]} data: {says}", **more)(partial(claims, data))

    return registered


def readings(data: str, *steps: str) -> Iterator[tuple[str, str, Statements]]:
    """Experiment, step and claims of Figure 1's readings on a data set."""
    for experiment, users in RUNS[data].items():
        for step in steps:
            if step != SHORT or users.get("users") != "fullest users":  # there not run
                options = {**SIZES, "step": step, **users}
                yield experiment, step, CLAIM.given(options=options, artefact=ARTEFACTS[step], unit="e-folds")


def beta(experiment: str, method: str, step: str) -> Quantity:
    """The first step at which a method is read: its own, FedMM's, or its best of the shorter range."""
    found = tuned(experiment, method)
    if step == SHORT:
        return quantity(best_asked)(found, settings(experiment))
    return quantity(tuned_betas)(found)[step]


def curve(experiment: str, method: str, step: str, value: str = "objective") -> Quantity:
    """Curves at that step."""
    apart = step == SHORT and method == NAIVE
    runs = SHORTER.get(experiment, experiment) if apart else experiment
    return measures.columns(run(runs, method), value, beta=beta(experiment, method, step))


COHORTS = {"half": 0.5, "tenth": 0.1}


def variates(data: str) -> Iterator[tuple[str, str, Any, Callable[[str], list[Quantity]]]]:
    """Readings of Figure 2 on a data set: label, "half" or "tenth", claims, and curves with and without."""
    short = data.removeprefix("synthetic_")
    for (source, users), alpha, (cohort, share) in product(RUNS[data].items(), (0.1, 0.5), COHORTS.items()):
        experiment = f"variates_{source.removeprefix('synthetic_')}"
        if experiment == "variates_movielens_random" and cohort == "tenth":
            continue  # not run

        def pair(
            value: str, experiment: str = experiment, alpha: float = alpha, share: float = share
        ) -> list[Quantity]:
            return [
                measures.columns(run(experiment, FEDMM), value, alpha=one, participation=share)
                for one in (alpha, 0.0)
            ]

        options = {**SIZES, **users, "alpha": f"{alpha:g}", "cohort": cohort}
        name = f"fig2.{short}.a{alpha:g}.p{share:g}".replace("0.", "")
        where = f"{EXPERIMENTS[experiment]}, {100 * share:.0f} % of the clients, α = {alpha:g}"

        def claim(what: str, name: str = name, options: dict[str, str] = options) -> Any:
            return CLAIM(
                f"{name}.{what}",
                part=f"fig2.{short}.{what}",
                options=options,
                artefact="fig2",
                unit="e-folds",
            )

        yield where, cohort, claim, pair
