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
from replifed.papers.fedmm.paper import EXPERIMENTS, SHORTER, best_asked

HOMOGENEOUS, HETEROGENEOUS, MOVIELENS = "synthetic_homogeneous", "synthetic_heterogeneous", "movielens"
FEDMM, NAIVE = BOTH = ("fedmm", "parameter_aggregation")
SHORT = "0.3 to 3"
STEPS, UNLIKE = ("own", "common", SHORT), (HETEROGENEOUS, MOVIELENS)

RECORDED = "of the rounds recorded, the first 20 and every tenth"
# Options that are the same in all claims on a figure.
GIVEN = {"formulas": "reconstructed"}
_BOTH = {
    **GIVEN,
    "sizes": "earlier study",
    "decay": "square root",
    "start": "random dictionary",
    "updates": "over the squared step",
}
_FIGURE1 = {**_BOTH, "cohort": "half", "quantiser": "blocks", "alpha of Figure 1": "0.01"}
_FIGURE2 = {**_BOTH, "step of Figure 2": "1"}
TRANSPORT = {
    **GIVEN,
    "sizes": "earlier study",
    "transport loss": "saddle",
    "cycle": "none",
    "learning rate": "tuned",
}
_VARIED, _RATINGS = [*_FIGURE2, "alpha", "cohort"], ["users", "films"]
# Under which options the steps of Figure 1 were searched.
_UNDER = {
    "sizes": ("earlier study",),
    "decay": ("square root",),
    "start": ("random dictionary",),
    "cohort": ("half",),
    "quantiser": ("blocks",),
    "alpha of Figure 1": ("0.01",),
}
_ANEW = "the steps would have to be searched anew"

AXES = Axes(
    Axis(
        "formulas",
        "Our copy of the text has lost all formulas and most numbers: the paper may leave open none of this.",
        Option(
            "reconstructed",
            "chosen",
            "from its prose, from the steps of its proofs and from what it cites; constant factors and the "
            "distribution of the random effect are ours",
        ),
    ),
    Axis(
        "sizes",
        "Numbers of samples, features, atoms, clients and rounds, weights, minibatches and bits are lost.",
        Option(
            "earlier study",
            "fitted",
            "chosen by an earlier study because they give most of Figures 1 to 3",
            against="with minibatches of twice as many samples as atoms, or more, the naive method does not "
            "diverge",
        ),
        Option(
            "first look",
            "fitted",
            "smaller, with lighter penalties, since the orders of Figure 1 come out within seconds",
            not_run="it is fitted, too, so that it would decide no more",
        ),
    ),
    Axis(
        "step",
        'Steps decay and are "tuned for each algorithm and setting from the range", which is lost.',
        Option(
            "own",
            "chosen",
            "each at its own best, from our own range, extended until the best lies inside",
            searched=_UNDER,
        ),
        Option(
            "common",
            "chosen",
            "both at FedMM's best, as if the range ended above the naive method's best",
            against="the text has them tuned for each algorithm",
            searched=_UNDER,
        ),
        Option(
            SHORT,
            "fitted",
            "each at its best of 0.3, 1 and 3, the range with which the sizes were chosen",
            against="on heterogeneous data the naive method's is the end, 0.3, and smaller steps are better",
            searched=_UNDER,
        ),
    ),
    Axis(
        "decay",
        "The formula of the decaying step is lost.",
        Option("square root", "chosen", "min(1, beta / sqrt t), the usual one"),
        Option("harmonic", "chosen", "min(1, beta / t), as in Online EM", not_run=_ANEW),
    ),
    Axis(
        "start",
        "The text does not state where methods start.",
        Option("random dictionary", "chosen", "normal entries, and the surrogate that it has on all data"),
        Option("samples", "chosen", "atoms that are samples", not_run=_ANEW),
    ),
    Axis(
        "updates",
        "How squared updates are normalised is lost.",
        Option(
            "over the squared step",
            "chosen",
            "the surrogate update then mirrors the mean field, as the text says",
        ),
        Option(
            "as they are", "chosen", "the squared update itself", not_run="a decaying step alone lowers it"
        ),
    ),
    Axis(
        "quantiser",
        "Figure 1 quantises messages; the text states neither blocks nor norm.",
        Option("blocks", "chosen", "64 coordinates share their largest magnitude, as in the authors' FedEM"),
        Option("one scale", "chosen", "one largest magnitude for a message", not_run=_ANEW),
    ),
    Axis(
        "alpha of Figure 1",
        "The step of the control variates in Figure 1 is lost.",
        Option("0.01", "chosen", "a small step"),
        Option("0.5", "chosen", "as in Figure 2", not_run=_ANEW),
    ),
    Axis(
        "step of Figure 2",
        "The text tunes steps in all experiments, from a range that is lost.",
        Option(
            "tuned",
            "printed",
            "as in Figure 1",
            not_run="each alpha and cohort would need a search",
        ),
        Option("1", "fitted", "from the same study: it gives Figure 2"),
    ),
    Axis(
        "users",
        "MovieLens is subsampled to 5000 users.",
        Option("random users", "printed", "the usual sense of the word"),
        Option("fullest users", "chosen", "those with the most ratings"),
    ),
    Axis(
        "films",
        "The text does not state which films of MovieLens it takes, and their number is lost.",
        Option("most rated", "chosen", "the 100 films with the most ratings"),
        Option("random films", "chosen", "drawn as the users are", not_run="most ratings would be missing"),
    ),
    Axis(
        "alpha",
        "Figure 2 has control variates with one step alpha, which is lost.",
        Option("0.5", "fitted", "from the same study: it gives Figure 2"),
        Option("0.1", "chosen", "a smaller step"),
    ),
    Axis(
        "cohort",
        "The numbers of active clients of Figures 1 and 2 are lost.",
        Option("half", "chosen", "half of the clients in both figures"),
        Option("tenth", "chosen", "in Figure 2: where control variates matter most"),
    ),
    Axis(
        "faster",
        "What it means that an update decays faster.",
        Option("falls further", "chosen", "it falls by a larger factor until the last tenth of the rounds"),
        Option(
            "lower",
            "fitted",
            "its curve is lower in the first tenth of the rounds, as FedMM's is on MovieLens, where it is "
            "said to be beaten later",
            against="chosen after we had seen the curves; on synthetic data the naive method's is not lower",
        ),
    ),
    Axis(
        "count",
        "Figure 3's horizontal axis is lost.",
        Option("per round", "chosen", "as in Figures 1 and 2"),
        Option("per gradient", "chosen", "FedMM-OT takes more gradients in a round"),
    ),
    Axis(
        "transport loss",
        "Both networks minimise (31) to (33).",
        Option(
            "joint minimum",
            "printed",
            "the text speaks of minimisation problems",
            not_run="the loss has no lower bound then, see the errata",
        ),
        Option("saddle", "software", "the cited solver holds the other map fixed, and its conjugate ascends"),
    ),
    Axis(
        "cycle",
        "The weight of the cycle term in (33) is lost.",
        Option("none", "chosen", "the solver whose settings the paper adapts has no such term"),
        Option(
            "dimension",
            "chosen",
            "as in the cited solver that has the term",
            not_run="in two dimensions both methods ended alike with it, in runs that were not kept",
        ),
    ),
    Axis(
        "learning rate",
        "Learning rates of Figure 3 are tuned, from a range that is lost.",
        Option(
            "tuned",
            "chosen",
            "each method's best of our four, in every dimension, on other repetitions, after all rounds",
            searched={"sizes": ("earlier study",), "transport loss": ("saddle",), "cycle": ("none",)},
        ),
    ),
    Axis(
        "toy",
        "Remark 1's example has lost its formulas.",
        Option("interval", "chosen", "a quadratic loss on an interval", kind="equivalent"),
        Option("rate", "chosen", "the rate of an exponential distribution", kind="equivalent"),
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
        "formulas": "reconstructed",
        "sizes": "earlier study",
        "step": SHORT,
        "decay": "square root",
        "start": "random dictionary",
        "updates": "over the squared step",
        "quantiser": "blocks",
        "alpha of Figure 1": "0.01",
        "step of Figure 2": "1",
        "users": "random users",
        "films": "most rated",
        "alpha": "0.5",
        "cohort": "half",
        "faster": "lower",
        "count": "per round",
        "transport loss": "saddle",
        "cycle": "none",
        "learning rate": "tuned",
        "toy": "interval",
        "values": "unequal",
    },
    fitted_on=[
        "fig1.better",
        *(f"fig1.{data}.monotone" for data in (HOMOGENEOUS, HETEROGENEOUS, MOVIELENS)),
        f"fig1.{HETEROGENEOUS}.diverges",
        "fig1.movielens.overtaken",
        "remark1.parameter_aggregation",
        "fig2.homogeneous.cancel",
        *(f"fig2.{data}.{what}" for data in ("heterogeneous", "movielens") for what in ("lower", "rate")),
        "fig3.better",
    ],
    gaps={
        **{name: [*_FIGURE1, "step"] for name in (HOMOGENEOUS, HETEROGENEOUS, "shorter_heterogeneous")},
        **{
            name: [*_FIGURE1, "step", *_RATINGS]
            for name in (MOVIELENS, "movielens_random", "shorter_movielens")
        },
        **{name: _VARIED for name in ("variates_homogeneous", "variates_heterogeneous")},
        **{name: [*_VARIED, *_RATINGS] for name in ("variates_movielens", "variates_movielens_random")},
        **{f"transport_{dim}": [*TRANSPORT, "count"] for dim in (2, 4, 8)},
        **{f"em_{name}": ["formulas"] for name in ("poisson", "poisson_known_mean", "mixture")},
        # FedMM is at the solution whatever the clients' values are: they are a gap of the other claim alone.
        "remark1": ["formulas", "toy"],
    },
)
# Experiments of a data set, with the users that they have.
RUNS: dict[str, dict[str, dict[str, str]]] = {
    HOMOGENEOUS: {HOMOGENEOUS: {}},
    HETEROGENEOUS: {HETEROGENEOUS: {}},
    MOVIELENS: {
        "movielens_random": {"users": "random users", "films": "most rated"},
        MOVIELENS: {"users": "fullest users", "films": "most rated"},
    },
}
ARTEFACTS = {"own": "fig1", "common": "fig1_common", SHORT: "fig1_shorter"}
DATA = {HOMOGENEOUS: "Homogeneous", HETEROGENEOUS: "Heterogeneous", MOVIELENS: "MovieLens"}


def _ending(options: Mapping[str, str]) -> str:
    """Ending of a claim's id: options that differ between the settings of one claim."""
    named = [options[axis] for axis in ("step", "users", "count", "toy") if axis in options]
    return slug(", ".join(named) or ("synthetic" if "cohort" in options else ""))


CLAIM = Statements("fedmm", AXES, suffix=_ending, runs="own runs")
PROVED = CLAIM.given(artefact="em", options=GIVEN)


# Of sentences whose very formulas are lost.
LOST = "the text at hand has lost these formulas; reconstructed ones are tested"


def proved(
    name: str,
    place: str,
    says: str,
    measured: Callable[..., Any],
    *more: Any,
    main: bool = False,
    note: str = "",
) -> None:
    """A sentence that formulas and exact iterations of examples can contradict."""

    def claims() -> Iterator[Claim]:
        yield PROVED.identity(name, says, formula(measured, *more), note=note)

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
                options = {**_FIGURE1, "step": step, **users}
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


FURTHER, LOWER = "falls further", "lower"  # what "faster" means


def meaning(claims: Statements, name: str, faster: str, **more: Any) -> Any:
    """A claim of `readings` on an update that decays faster, in one sense of the word."""
    options = {**claims.common["options"], "faster": faster}
    return claims(name, options=options, **more)


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

        options = {**_FIGURE2, **users, "alpha": f"{alpha:g}", "cohort": cohort}
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
