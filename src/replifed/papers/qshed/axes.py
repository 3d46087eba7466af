"""What the paper leaves open (Dal Fabbro et al. 2023), and the runs and claims of a reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim
from replifed.claims.curves import only, reached
from replifed.claims.quantities import Quantity, least, quantity, run
from replifed.claims.statements import Statements, slug
from replifed.papers.qshed.paper import EXPERIMENTS, THRESHOLDS

# What one needs to run an experiment from the text alone. What FedNL alone leaves open, the options of
# `fednl`, `vectors` and `quantiser`, is named by the claims on it.
_FMNIST = ["features", "split", "start", "search"]  # of GIANT, Newton's method and FedNL
_OF_SHED = ["renewals", "dither", "overload", "leftover"]
_W8A = ["split", "start", "search", *_OF_SHED]
_OF_HESSIANS = ["split", "overload"]  # vectors are sent once, from two models
GAPS = {
    **{f"fmnist{ending}": [*_FMNIST, *_OF_SHED] for ending in ("", "_halved", "_baselines", "_choices")},
    **{f"w8a{ending}": _W8A for ending in ("", "_halved", "_baselines", "_choices")},
    "conditions": [*_FMNIST, *_OF_SHED],
    **{name: _FMNIST for name in ("conditions_others", "conditions_printed")},
    **{name: ["features", *_OF_HESSIANS] for name in ("fmnist_hessians", "fmnist_hessians_printed")},
    "w8a_hessians": _OF_HESSIANS,
    "example": [*_FMNIST, *_OF_SHED],
}
_FEW = "only three seeds in the figure `choices`, without a claim"

AXES = Axes(
    Axis(
        "features",
        "Section V reduces FMNIST by PCA to n = 90; scale and intercept are not stated.",
        Option(
            "PCA to 90",
            "printed",
            "Section V; pixels in [0, 1], components of the samples drawn",
            against="without an intercept a device's eigenvalues are several times those of Section IV-A",
        ),
        Option("89 and intercept", "fitted", "eigenvalues come near those of Section IV-A"),
        Option(
            "standardised",
            "chosen",
            "PCA is usually of pixels with variance one",
            not_run="the eigenvalues that Section IV-A prints are those of pixels in [0, 1] or less",
        ),
    ),
    Axis(
        "split",
        "How each device gets its 500 samples is not stated.",
        Option("at random", "chosen", "drawn anew for each repetition, without replacement"),
        Option(
            "sorted by class",
            "chosen",
            "the introduction speaks of heterogeneous data",
            kind="different",
            not_run="Section V does not mention it; `conditions` has it for FMNIST, as a condition",
        ),
    ),
    Axis(
        "start",
        "The first model is not stated.",
        Option("zero", "chosen", "the usual start of logistic regression"),
        Option(
            "random",
            "chosen",
            "the cost is strongly convex",
            kind="equivalent",
            not_run="it changes the first rounds alone, by an unstated spread",
        ),
    ),
    Axis(
        "renewals",
        "The rounds at which Hessians are computed anew are not given; the paper cites its reference [10].",
        Option(
            "Fibonacci",
            "fitted",
            "rounds 1, 2, 4, 7, 12, 20, ... give the published savings. Of reference [10] only the "
            "abstract and first lines are in stored public pages, which do not give the rounds, and no code "
            "of its authors was found",
            against="with one renewal alone no variant of SHED converges, with one every 40 rounds Q-SHED "
            "saves nothing",
        ),
        Option(
            "Fibonacci numbers", "fitted", "rounds 1, 2, 3, 5, 8, ..., tried for the savings", not_run=_FEW
        ),
        Option("every 10", "fitted", "a period, tried for the savings", not_run=_FEW),
        Option("every 40", "fitted", "a long period, tried for the savings", not_run=_FEW),
        Option("once", "fitted", "round 1 alone, tried for the savings", not_run=_FEW),
        tried=6,
    ),
    Axis(
        "dither",
        "The dither of a coordinate that is refined is not stated.",
        Option(
            "nested",
            "fitted",
            "one shared, subtracted dither for all refinements: the only one for which eq. (11) holds after "
            "them, and that gives the savings on w8a",
        ),
        Option("fresh", "fitted", "a new one at each refinement, tried for the savings", not_run=_FEW),
        Option("added", "fitted", "one that is not subtracted, tried for the savings", not_run=_FEW),
        Option("none", "fitted", "midpoints of cells, tried for the savings", not_run=_FEW),
    ),
    Axis(
        "overload",
        "At one bit the quantiser's range does not hold all coordinates; their treatment is not stated.",
        Option("wrap", "chosen", "modulo 2, as this dither treats all values"),
        Option("clip", "chosen", "to the end of the range, as a quantiser without dither does"),
    ),
    Axis(
        "search",
        'Section IV-D has "a backtracking strategy like in" GIANT and SHED, without constants.',
        Option(
            "giant",
            "software",
            "GIANT's, which the text names: ten step sizes 1, 1/4, ..., Armijo's constant 0.1, the last if "
            "none is good enough",
        ),
        Option(
            "backtracking",
            "fitted",
            "steps halved from 1, with GIANT's constant",
            against="the constant was 1e-4 until a full run showed that savings on w8a need about 0.1",
        ),
        Option("loose", "chosen", "the same with a constant of 1e-4, which is usual"),
        Option("fednl", "chosen", "the same with a constant of 0.5, which FedNL's own code has"),
        tried=5,
    ),
    Axis(
        "leftover",
        "What NQ-SHED does with bits that are too few for one more vector at full quality is not stated.",
        Option(
            "unused", "chosen", "Section V sends the gradient alone if the bits are too few for one vector"
        ),
        Option(
            "next vector",
            "chosen",
            "all bits go to the first vectors, in the words of Section V",
            not_run="a vector below full quality is what Section V excludes; it would concern fading alone",
        ),
    ),
    Axis(
        "fednl",
        "For FedNL the text states rank-1 compressors, but no option, start or line search.",
        Option("option 1", "chosen", "projected, from zero, with line search: the strongest of rank 1"),
        Option("option 2", "chosen", "adds a multiple of the identity that makes the Hessian invertible"),
        Option(
            "top-k",
            "chosen",
            "its largest entries, in as many bits as Q-SHED sends",
            against="the text compares with rank 1",
            kind="different",
        ),
        tried=5,
    ),
    Axis(
        "vectors",
        'How many bits per coordinate FedNL\'s vectors take at "full quality" is not stated.',
        Option(
            "32 bits",
            "printed",
            "inferred from the captions: all methods use the same number of bits in each round, which is 32 "
            "per coordinate",
        ),
        Option(
            "16 bits",
            "chosen",
            "b_max, at which Q-SHED's own vectors are complete",
            against="a round without fading is then two thirds of the others', against the captions",
        ),
    ),
    Axis(
        "quantiser",
        "How the authors quantised FedNL's vectors is not stated.",
        Option("dithered", "chosen", "with a dither, with all bits that the budget leaves"),
        Option(
            "without dither",
            "chosen",
            "to the nearest of equal cells",
            not_run="each way to quantise needs another set of runs, and the text does not choose",
        ),
    ),
    Axis(
        "target",
        'The relative cost at which "convergence" is counted is not stated.',
        Option("1e-6", "chosen", "the middle one of three"),
        Option("1e-4", "chosen", "an early one"),
        Option("1e-8", "chosen", "a late one"),
    ),
    inferred={
        "features": "89 and intercept",
        "split": "at random",
        "start": "zero",
        "renewals": "Fibonacci",
        "dither": "nested",
        "overload": "wrap",
        "search": "giant",
        "leftover": "unused",
        "fednl": "option 1",
        "vectors": "32 bits",
        "quantiser": "dithered",
        "target": "1e-6",
    },
    # Savings, and what these imply: that runs converge and Q-SHED is ahead. Hessians are counted at the
    # renewals, which were chosen; the bits of FedNL's vectors were inferred from the captions.
    fitted_on=[
        "abstract.hessians",
        "section1.fading",
        "section1.steady",
        "example.bits",
        "section4.converges",
        "fig1_bits.same",
        "fig2_bits.same",
        "section6",
    ],
    gaps=GAPS,
)


class Runs(NamedTuple):
    """Runs that stand for a reading."""

    options: dict[str, str]
    ending: str  # of their experiments' names
    artefact: str  # that shows them
    case: str = "default"
    fednl: str = ""  # a variant of FedNL's that was run apart, with the baselines


_GIANT = {"search": "giant"}
RUNS = {
    "giant": Runs(_GIANT, "", "{figure}"),
    "16 bits": Runs(_GIANT | {"vectors": "16 bits"}, "", "baselines", fednl="vector16_ls"),
    "backtracking": Runs({"search": "backtracking"}, "_halved", "{figure}_halved"),
    "loose": Runs({"search": "loose"}, "_choices", "choices", case="search_loose"),
    "fednl": Runs({"search": "fednl"}, "_choices", "choices", case="search_half"),
    "clip": Runs(_GIANT | {"overload": "clip"}, "_choices", "choices", case="overload_clip"),
    "option 2": Runs(_GIANT | {"fednl": "option 2"}, "", "baselines", fednl="option2_ls"),
    "top-k": Runs(_GIANT | {"fednl": "top-k"}, "", "baselines", fednl="topk_ls"),
}
SEARCHES, CHOICES = ("giant", "backtracking"), ("loose", "fednl", "clip", "option 2")


def reading(name: str, experiment: str, *, fednl: bool = False, fading: bool = False) -> dict[str, str]:
    """Options of a claim; one on `fednl` with `fading` depends on the bits of its vectors."""
    assert AXES.inferred is not None
    axes = [*GAPS[experiment], *(["fednl"] if fednl else []), *(["vectors"] if fednl and fading else [])]
    return {axis: AXES.inferred[axis] for axis in axes} | RUNS[name].options


# --- Claims and sentences of a reading ---------------------------------------------------------------

FIGURES = {"fmnist": "fig1", "w8a": "fig2"}
COMPETITORS = {"nqshed": "NQ-SHED", "fednl": "FedNL"}

# Settings have no part in ids, unless a claim is made in several.
CLAIM = Statements("qshed", AXES, suffix=lambda options: "", runs="own runs")


def of(experiment: str, **common: Any) -> Statements:
    """Claims on Q-SHED and its relatives alone, on an experiment."""
    return CLAIM.given(options=reading("giant", experiment), **common)


def ending_in(claims: Statements, words: str) -> Statements:
    """Claims whose ids end in the words that tell their settings apart."""
    claims = claims.given()
    claims.suffix = lambda options: slug(words)
    return claims


def shown(
    name: str, experiment: str, *, fednl: bool = False, fading: bool = False, **common: Any
) -> Statements:
    """Claims in a reading, on the artefact that shows its runs."""
    artefact = RUNS[name].artefact.format(figure=FIGURES[experiment])
    options = reading(name, experiment, fednl=fednl, fading=fading)
    words = {"giant": "32 bits" if fednl and fading else "giant", "16 bits": "giant", "backtracking": ""}
    claims = CLAIM.given(options=options, **{"artefact": artefact, **common})
    return ending_in(claims, words.get(name, name))


def compared(
    experiment: str, channels: Iterable[str], **common: Any
) -> Iterator[tuple[str, str, str, Statements]]:
    """Channel, reading, competitor and its claims; the bits of FedNL's vectors matter with fading alone."""
    for channel, name in product(channels, COMPETITORS):
        fednl, fading = name == "fednl", channel == "rayleigh"
        for one in (*SEARCHES, *(["16 bits"] if fednl and fading else [])):
            yield channel, one, name, shown(one, experiment, fednl=fednl, fading=fading, **common)


Makes = Callable[..., Iterator[Claim]]


def on_each(name: str, place: str, says: str) -> Callable[[Makes], None]:
    """Decorate claims on a data set, given its experiment, figure and name: a sentence for each."""

    def registered(claims: Makes) -> None:
        for experiment, figure in FIGURES.items():
            data = EXPERIMENTS[experiment]
            words = (text.format(figure=figure, number=figure[-1], data=data) for text in (name, place, says))
            CLAIM.sentence(*words)(partial(claims, experiment, figure, data))

    return registered


# --- Runs and rounds ------------------------------------------------------------------------------


@quantity
def curve(
    history: pd.DataFrame, variant: str, channel: str = "constant", case: str = "default"
) -> pd.DataFrame:
    """All seeds' runs of a variant in a case; one that changes nothing for the method was not run for it."""
    case = case if (history["case"] == case).any() else "default"
    return only(history, variant=variant, channel=channel, case=case)


def runs_of(experiment: str, name: str, channel: str = "constant", case: str = "default") -> Quantity:
    """Runs of "method" or "method.variant"; of FedNL, if none is named, the strongest of rank 1."""
    method, _, variant = name.partition(".")
    return curve(run(experiment, method), variant or ("rank1_ls" if method == "fednl" else ""), channel, case)


def T(experiment: str, name: str, channel: str = "constant", case: str = "default", **more: Any) -> Quantity:
    """Rounds of "method" or "method.variant" to a relative cost, 1e-6 without another `threshold`."""
    return reached(runs_of(experiment, name, channel, case), **{"threshold": 1e-6, **more})


def read(name: str, data: str, method: str) -> dict[str, str]:
    """Arguments of `runs_of` or `T` for the runs of a method that stand for a reading."""
    runs = RUNS[name]
    if method in ("shed", "newton"):
        return {"experiment": f"{data}_baselines", "name": method}
    if runs.fednl and method == "fednl":
        return {"experiment": f"{data}_baselines", "name": f"fednl.{runs.fednl}"}
    return {"experiment": data + runs.ending, "name": method, "case": runs.case}


def saving(name: str, data: str, *others: str, **more: Any) -> Quantity:
    """1 - T_Q / T for the best of the other methods; undecided where neither got there."""
    ours, *theirs = (T(**read(name, data, method), **more) for method in ("qshed", *others))
    return 1 - ours / (theirs[0] if RUNS[name].fednl else least(*theirs))


def saved(name: str, data: str, other: str, channel: str) -> dict[str, Quantity]:
    """Savings by threshold."""
    costs = {f"{cost:.0e}": cost for cost in THRESHOLDS}
    return {at: saving(name, data, other, channel=channel, threshold=cost) for at, cost in costs.items()}


def slowdown(name: str, data: str, method: str) -> Quantity:
    """Rounds with fading as a multiple of those without."""
    runs = read(name, data, method)
    return T(**runs, channel="rayleigh") / T(**runs)
