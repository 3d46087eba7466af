"""Section 1: what the list of contributions promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula, run, settings
from replifed.papers.fedht import measures, theory
from replifed.papers.fedht.axes import CLAIM, FIGURE1, FIGURE3, FIGURE6, PLANTED, RATES, THEOREMS
from replifed.papers.fedht.claims.plotted import (
    BASELINE,
    BOUNDS,
    FEDERATED,
    FREE_K,
    NOTES,
    OWN_K,
    REAL,
    SIMULATIONS,
    SPREADS,
    by_k,
    left,
    plotted,
    small_batches,
)
from replifed.papers.fedht.measures import fewer
from replifed.papers.fedht.paper import EXPERIMENTS, METHODS

_HIDDEN = (
    "a client's threshold keeps the largest entries of its model; in so many coordinates, many of them come "
    "from its own minimiser and not from the solution; FedHT averages before it thresholds"
)
_AGAINST = {"dissimilar": _HIDDEN, "dissimilar_noisy": _HIDDEN}
_RCV1 = "its own best step lies beyond the printed grid, where Distributed-IHT is there in a few rounds"


@CLAIM.sentence(
    "fig3.bits",
    "Section 1, contribution (a); Section 4",
    "Thresholding of local models improves communication efficiency further.",
    main=True,
)
def _bits() -> Iterator[Claim]:
    for experiment, (reading, options) in product(SIMULATIONS, FIGURE3.items()):
        pair = [plotted(experiment, method, reading) for method in ("fediterht", "fedht")]
        bits = (
            measures.bits_a_round(small_batches(experiment, method), "bits_up", "bits_down")
            for method in ("fediterht", "fedht")
        )
        yield CLAIM(f"fig3.{experiment}.bits", unit="decades", options=options).order(
            f"{EXPERIMENTS[experiment]}: FedIterHT needs fewer bits than FedHT to a target, both directions "
            "counted (Section 4).",
            fewer(*pair, *bits),
        )


@CLAIM.sentence(
    "bias.smaller",
    "Section 1, contribution (a); Section 4; Remark 3",
    "Thresholding of local models can make the statistical bias smaller than FedHT's, much smaller even, as "
    "FedIterHT's depends on 2 N tau + tau* coordinates of the gradient alone.",
    main=True,
)
def _smaller() -> Iterator[Claim]:
    nearer = {
        experiment: [
            measures.larger(*pair)
            for pair in zip(left("fedht", experiment), left("fediterht", experiment), strict=True)
        ]
        for experiment in PLANTED
    }
    yield CLAIM("bias.smaller.somewhere").shape(
        "There are problems on which FedIterHT ends nearer to the solution than FedHT (Section 4, Remark 3).",
        measures.somewhere(*(one for several in nearer.values() for one in several)),
        fails="no problem on which FedIterHT ends nearer to the solution",
        share=0.01,
        because="one example is enough",
        note="local thresholds may help against noise, and cannot where clients differ off the support",
    )
    for experiment, options in PLANTED.items():
        for place, (spread, difference) in enumerate(zip(SPREADS, nearer[experiment], strict=True)):
            claim = CLAIM(f"bias.smaller.{place + 1}", unit="decades", options=options, informs=True)
            yield claim.order(
                f"FedIterHT ends nearer to the solution than FedHT, {spread} (Section 4, Remark 3).",
                difference,
                note=_AGAINST.get(experiment, ""),
            )
    yield RATES("theory.remark3.support", informs=True).shape(
        "2 N tau + tau* is much smaller than d, which makes FedIterHT's bias the smaller one (Corollary 3).",
        formula(theory.support_is_small),
        fails="2 N tau + tau* above a tenth of d",
        note="much smaller: at most a tenth; 100 clients everywhere, as stated for the simulations. A regime "
        "that the text names, in which no experiment of the paper is",
    )


def _bound(method: str) -> Claim:
    theorem, theta, bias = BOUNDS[method]
    biased, own = run("biased", method), settings("biased")
    errors = measures.curves_by_k(biased, "error")
    return CLAIM(f"bias.{method}.bound", options=THEOREMS).shape(
        f"{METHODS[method]}: |x_t - x*|^2 stays below {theta}^t |x_0 - x*|^2 + {bias}(x*) where {theorem} "
        "holds, with a gradient at x* that is not zero.",
        theory.below_bound(errors, theory.bias_terms(biased, own, method), own, method),
        fails="a round after which the squared error is above the bound",
        note="all clients have one minimiser, as Assumption 2 asks wherever the gradient of f has a zero",
    )


@CLAIM.sentence(
    "bias.fedht.bound",
    "Section 1, contribution (b); Theorem 1; Remark 2",
    "FedHT's squared error after T rounds is at most theta_1^T |x_0 - x*|^2 + g_1(x*), so that it approaches "
    "x* linearly up to a bias (contribution (b) prints the error without its square, an erratum).",
    main=True,
)
def _bound_of_fedht() -> Iterator[Claim]:
    yield _bound("fedht")


@CLAIM.sentence(
    "bias.fediterht.bound",
    "Section 1, contribution (b); Theorem 2",
    "FedIterHT's squared error after T rounds is at most theta_2^T |x_0 - x*|^2 + g_3(x*).",
    main=True,
)
def _bound_of_fediterht() -> Iterator[Claim]:
    yield _bound("fediterht")


@CLAIM.sentence(
    "bias.noniid",
    "Section 1, contribution (b)",
    "More non-IIDness among clients raises the bias of both methods.",
    main=True,
)
def _noniid() -> Iterator[Claim]:
    for (experiment, options), method in product(PLANTED.items(), FEDERATED):
        ends = left(method, experiment)
        for end, (one, other) in {"low": (1, 0), "high": (2, 1)}.items():
            yield CLAIM(f"bias.{method}.noniid.{end}", unit="decades", options=options).order(
                f"{METHODS[method]} ends farther from the solution at {SPREADS[one]} than at "
                f"{SPREADS[other]} (Section 1).",
                measures.larger(ends[one], ends[other]),
            )


@CLAIM.sentence(
    "fig1",
    "Section 1, contribution (b); Remarks 2 and 3; Section 5, Figure 1",
    "More local iterations lower theta: with a larger K both methods need fewer rounds to a target.",
    main=True,
)
def _larger_k() -> Iterator[Claim]:
    for experiment, method, (reading, options) in product(SIMULATIONS, FEDERATED, FIGURE1.items()):
        claim = CLAIM.given(options=options, note=OWN_K if reading == "own" else "")
        sweep, where = by_k(experiment, method, reading), f"{METHODS[method]} on {EXPERIMENTS[experiment]}"
        yield claim(f"fig1.{experiment}.{method}.k", unit="rounds").order(
            f"{where}: the largest K needs fewer rounds to a target than the smallest (Remarks 2 and 3, "
            "Figure 1).",
            measures.larger_k_helps(sweep),
        )
        yield claim(f"fig1.{experiment}.{method}.monotone").shape(
            f"{where}: the rounds to a target fall as K grows through its values (Remarks 2 and 3, "
            "Figure 1).",
            measures.rounds_fall_with_k(sweep),
            fails="a K that needs more rounds than a smaller one",
        )


@CLAIM.sentence(
    "bias.k",
    "Section 1, contribution (b)",
    "More local iterations raise the bias of both methods.",
    main=True,
)
def _bias_grows() -> Iterator[Claim]:
    for (experiment, options), method in product(PLANTED.items(), FEDERATED):
        yield CLAIM(f"bias.{method}.k", unit="decades", options=options).order(
            f"{METHODS[method]} ends farther from the solution at the largest K than at the smallest, "
            f"{SPREADS[0]} (Section 1, Remark 2).",
            measures.larger_with_k(left(method, experiment)[0]),
        )


@CLAIM.sentence(
    "fig3.fewer",
    "Section 1, contribution (d); Section 5.1, Figure 3",
    "In the simulations both methods are more effective than Distributed-IHT.",
    main=True,
)
def _fewer_in_simulations() -> Iterator[Claim]:
    for experiment, (reading, options), method in product(SIMULATIONS, FIGURE3.items(), FEDERATED):
        yield CLAIM(f"fig3.{experiment}.{method}.fewer", unit="rounds", options=options).order(
            f"{EXPERIMENTS[experiment]}: {METHODS[method]} needs fewer rounds than Distributed-IHT "
            "(contribution (d), Figure 3).",
            fewer(plotted(experiment, method, reading), plotted(experiment, BASELINE, reading)),
            note=NOTES[reading],
        )


@CLAIM.sentence(
    "fig6.fewer",
    "Section 1, contribution (d); Section 5.2, Figure 6",
    "On real data both methods need far fewer rounds to a given accuracy than Distributed-IHT.",
    main=True,
)
def _fewer_on_real_data() -> Iterator[Claim]:
    for (reading, options), experiment, method in product(FIGURE6.items(), REAL, FEDERATED):
        yield CLAIM(f"fig6.{experiment}.{method}.fewer", unit="rounds", options=options).order(
            f"{EXPERIMENTS[experiment]}: {METHODS[method]} needs fewer rounds to a target than "
            "Distributed-IHT (Section 5.2, Figure 6).",
            fewer(plotted(experiment, method, reading), plotted(experiment, BASELINE, reading)),
            note=f"{FREE_K}; {_RCV1}" if (experiment, reading) == ("rcv1", "own") else FREE_K,
        )
