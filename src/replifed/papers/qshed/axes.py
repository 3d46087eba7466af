"""What the paper leaves open (Dal Fabbro et al. 2023), and the runs and claims of a reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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

AXES = Axes(
    Axis(
        "features",
        "Section V reduces FMNIST by PCA to n = 90; scale and intercept are not stated.",
        Option(
            "PCA to 90",
            "printed",
            "Section V",
            against="without an intercept a device's eigenvalues are several times those of Section IV-A",
        ),
        Option("89 and intercept", "fitted", "eigenvalues come near those of Section IV-A"),
    ),
    Axis(
        "renewals",
        "The rounds at which Hessians are computed anew are not given.",
        Option(
            "Fibonacci",
            "fitted",
            "rounds 1, 2, 4, 7, 12, 20, ...: the published savings come out; the gaps are those of the paper "
            "on SHED as far as it is remembered",
            against="with one renewal alone no variant of SHED converges, with one every 40 rounds nothing "
            "is saved",
        ),
        tried=6,
    ),
    Axis(
        "dither",
        "The dither of a coordinate that is refined is not stated.",
        Option(
            "nested",
            "fitted",
            "one shared, subtracted dither for all refinements: the only one for which eq. (11) holds after "
            "them, and with which savings on w8a come out",
        ),
        tried=4,
    ),
    Axis(
        "overload",
        "At one bit the quantiser's range does not hold all coordinates; their treatment is not stated.",
        Option("wrap", "chosen", "modulo 2, like everything that this dither does"),
        Option("clip", "chosen", "to the end of the range, as a quantiser without dither does"),
    ),
    Axis(
        "search",
        'Section IV-D has "a backtracking strategy like in" GIANT and SHED, without constants.',
        Option(
            "giant",
            "software",
            "GIANT's, which the text names: ten steps 1, 1/4, ..., Armijo's constant 0.1, the last step if "
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
        "fednl",
        "For FedNL the text states rank-1 compressors, but no option, start or line search.",
        Option("option 1", "chosen", "projected, from zero, with line search: the strongest of rank 1"),
        Option("option 2", "chosen", "adds to the Hessian what makes it invertible"),
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
        'How many bits a coordinate FedNL\'s vectors take at "full quality" is not said.',
        Option(
            "32 bits",
            "printed",
            "the captions: all methods use the same number of bits in each round, which is 32 a coordinate",
        ),
        Option(
            "16 bits",
            "chosen",
            "b_max, at which Q-SHED's own vectors are complete",
            against="a round without fading is then two thirds of the others', against the captions",
        ),
    ),
    inferred={
        "features": "89 and intercept",
        "renewals": "Fibonacci",
        "dither": "nested",
        "overload": "wrap",
        "search": "giant",
        "fednl": "option 1",
        "vectors": "32 bits",
    },
    # Savings, and what these imply: that runs converge and Q-SHED is ahead.
    fitted_on=[
        "example.bits",
        "section4.converges",
        *(
            f"fig{n}.{what}"
            for n in (1, 2)
            for what in ("section1.fading", "section1.steady", "section5.savings", "section6")
        ),
    ],
)

# Of claims on Q-SHED and its relatives. GIANT's line search and halved steps give them the same steps on
# FMNIST, and hardly others on w8a, so that only claims on savings and on FedNL name one.
FEATURES = {"features": "89 and intercept"}
_SHED = {"renewals": "Fibonacci", "dither": "nested", "overload": "wrap"}
SETTINGS = {"fmnist": FEATURES | _SHED, "w8a": _SHED}


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
    own = {"fednl": "option 1"} | ({"vectors": "32 bits"} if fading else {}) if fednl else {}
    return SETTINGS[experiment] | own | RUNS[name].options


def ending(options: Mapping[str, str]) -> str:
    """Ending of a claim's id: the option that tells its reading apart; that of halved steps has none."""
    named = (*CHOICES, "top-k", *([] if options.get("search") == "backtracking" else ["32 bits", "giant"]))
    return slug(next((name for name in named if name in options.values()), ""))


# --- Claims and sentences of a reading ---------------------------------------------------------------

FIGURES = {"fmnist": "fig1", "w8a": "fig2"}
COMPETITORS = {"nqshed": "NQ-SHED", "fednl": "FedNL"}

CLAIM = Statements("qshed", AXES, suffix=ending, runs="own runs")


def of(experiment: str, **common: Any) -> Statements:
    """Claims on Q-SHED and its relatives alone, on a data set."""
    return CLAIM.given(options=SETTINGS[experiment], **common)


def shown(
    name: str, experiment: str, *, fednl: bool = False, fading: bool = False, **common: Any
) -> Statements:
    """Claims in a reading, on the artefact that shows its runs."""
    artefact = RUNS[name].artefact.format(figure=FIGURES[experiment])
    options = reading(name, experiment, fednl=fednl, fading=fading)
    return CLAIM.given(options=options, **{"artefact": artefact, **common})


def compared(
    experiment: str, channels: Iterable[str], **common: Any
) -> Iterator[tuple[str, str, str, Statements]]:
    """Channel, reading, competitor and its claims; the bits of FedNL's vectors matter with fading alone."""
    for channel, name in product(channels, COMPETITORS):
        fednl, fading = name == "fednl", channel == "rayleigh"
        for one in (*SEARCHES, *(["16 bits"] if fednl and fading else [])):
            yield channel, one, name, shown(one, experiment, fednl=fednl, fading=fading, **common)


Makes = Callable[..., Iterator[Claim]]


def on_each(name: str, place: str, says: str, *, main: bool = False) -> Callable[[Makes], None]:
    """Decorate claims on a data set, given its experiment, figure and name: a sentence for each."""

    def registered(claims: Makes) -> None:
        for experiment, figure in FIGURES.items():
            data = EXPERIMENTS[experiment]
            words = (text.format(figure=figure, number=figure[-1], data=data) for text in (name, place, says))
            CLAIM.sentence(*words, main=main)(partial(claims, experiment, figure, data))

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
