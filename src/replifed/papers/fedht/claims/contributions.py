"""Section 1: what the list of contributions promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula, run, settings
from replifed.claims.statements import Statements
from replifed.papers.fedht import measures, theory
from replifed.papers.fedht.axes import CLAIM, FIGURE3, PLANTED, RATES, REMARKS, THEOREMS
from replifed.papers.fedht.claims.plotted import (
    BASELINE,
    BOUNDS,
    FEDERATED,
    FREE_K,
    NOTES,
    SIMULATIONS,
    SPREADS,
    by_k,
    left,
    of_column,
    of_figure6,
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
_EDGE = (
    "at the printed grid's longest step, which all three methods take; their own best steps are far longer"
)
_RCV1 = {
    "printed": _EDGE,
    "own": "its own best step lies beyond the printed grid, where Distributed-IHT is there in a few rounds",
}
_PLANTED_TERM = "measured is the error that is left; the printed term g_1 falls with K, an erratum"
# Of as many coordinates as tau, drawn at random, the share of those that are planted: 200 of 1000.
_BY_CHANCE = 0.2


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
    "support.further",
    "Section 1, contribution (a)",
    "Thresholding of local models improves the ability of sparsity recovery further.",
    main=True,
    question="In which experiment, with which step sizes and K, does FedIterHT recover more of the support?",
)
def _recovers_further() -> Iterator[Claim]:
    for experiment, (reading, options) in product(SIMULATIONS, FIGURE3.items()):
        pair = (of_column("recovered", experiment, method, reading) for method in ("fediterht", "fedht"))
        yield CLAIM(
            f"fig3.{experiment}.support.further",
            unit="share",
            options=options,
            because="any: the text names no least effect",
        ).order(
            f"{EXPERIMENTS[experiment]}: at the end FedIterHT's model has more of the clients' common "
            "support, coordinates 1 to 100, than FedHT's (contribution (a)).",
            measures.recovers_more(*pair),
            least=measures.ANY,
        )


@CLAIM.sentence(
    "bias.smaller",
    "Section 1, contribution (a); Section 4; Remark 3; Corollary 3",
    "Thresholding of local models can make the statistical bias, the term g_3, smaller than FedHT's, g_1, as "
    "it depends only on 2 N tau + tau* coordinates of the gradient.",
    main=True,
    evidence="formula",
)
def _smaller() -> Iterator[Claim]:
    yield RATES("theory.bias.smaller").shape(
        "By their formulas g_3 is below g_1 where the gradient's entries are equal and 2 N tau + tau* is a "
        "tenth of d (Remark 3, Corollary 3).",
        theory.smaller_bias(formula(theory.bias_ratios), 0.1),
        fails="a kappa and K at which g_3's factor is ten or more times g_1's",
        note="much smaller than d: a tenth; one kappa and l for both terms, at the tau of Theorem 2. What "
        "runs leave is another matter: it informs",
    )
    for experiment, options in PLANTED.items():
        pairs = zip(SPREADS, left("fedht", experiment), left("fediterht", experiment), strict=True)
        for place, (spread, fedht, fediterht) in enumerate(pairs):
            claim = CLAIM(f"bias.smaller.{place + 1}", unit="decades", options=options, informs=True)
            yield claim.order(
                f"FedIterHT ends nearer to the solution than FedHT, {spread} (Section 4, Remark 3).",
                measures.larger(fedht, fediterht),
                note=_AGAINST.get(experiment, ""),
            )
    yield RATES("theory.remark3.support", informs=True).shape(
        "2 N tau + tau* is much smaller than d, which makes FedIterHT's bias the smaller one (Corollary 3).",
        theory.support_is_small(formula(theory.shares_of_coordinates)),
        fails="2 N tau + tau* above a tenth of d",
        note="much smaller: at most a tenth; N is that of the simulations everywhere. A regime that the text "
        "names, in which no experiment of the paper is",
    )


@CLAIM.sentence(
    "bias.bound",
    "Section 1, contribution (b); Theorems 1 and 2",
    "The squared error after T rounds is at most theta^T |x_0 - x*|^2 + g(x*), with theta_1 and g_1 for "
    "FedHT and theta_2 and g_3 for FedIterHT (contribution (b) prints the error without its square, an "
    "erratum).",
    main=True,
)
def _bounds() -> Iterator[Claim]:
    for method, (theorem, theta, bias) in BOUNDS.items():
        biased, own = run("biased", method), settings("biased")
        errors = measures.curves_by_k(biased, "error")
        yield CLAIM(f"bias.{method}.bound", options=THEOREMS).shape(
            f"{METHODS[method]}: |x_t - x*|^2 stays below {theta}^t |x_0 - x*|^2 + {bias}(x*) where "
            f"{theorem} holds, with a gradient at x* that is not zero.",
            theory.below_bound(errors, theory.bias_terms(biased, own, method), own, method),
            fails="a round after which the squared error is above the bound",
            note="all clients have one minimiser: Assumption 2 asks it wherever the gradient of f has "
            "a zero, so that the theorem excludes the unlike clients of which contribution (b) speaks",
        )


@CLAIM.sentence(
    "support",
    "Section 1, contribution (b)",
    "Both methods recover the sparse solution's support if clients differ.",
    main=True,
    question="Which share of the support do the methods recover in Simulations I and II?",
)
def _recovers() -> Iterator[Claim]:
    for experiment, method, (reading, options) in product(SIMULATIONS, FEDERATED, FIGURE3.items()):
        yield CLAIM(
            f"fig3.{experiment}.{method}.support",
            unit="share",
            options=options,
            because="any: the text names no least effect",
        ).order(
            f"{EXPERIMENTS[experiment]}: at the end {METHODS[method]}'s model has more of the clients' "
            "common support, coordinates 1 to 100, than as many coordinates drawn at random.",
            measures.recovered(of_column("recovered", experiment, method, reading)),
            published=_BY_CHANCE,
            least=measures.ANY,
            note="the least that recovery means: the text does not say which share is strong",
        )


@CLAIM.sentence(
    "bias.noniid",
    "Section 1, contribution (b)",
    "More non-IIDness among clients raises the bias of both methods.",
    main=True,
    question="For which clients does Assumption 2 hold with a finite B that grows with non-IIDness?",
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
    "Section 1, contribution (b); Remarks 2 and 3",
    "More local iterations lower theta: at the theorems' step size both methods need fewer rounds to a "
    "target with a larger K.",
    main=True,
)
def _larger_k() -> Iterator[Claim]:
    for experiment, method in product(SIMULATIONS, FEDERATED):
        yield from more_local_steps(
            CLAIM.given(options=REMARKS["theory"]), experiment, method, "theory", "Remarks 2 and 3"
        )


def more_local_steps(
    claim: Statements, experiment: str, method: str, reading: str, place: str
) -> Iterator[Claim]:
    """Claims that a larger K needs fewer rounds."""
    sweep, where = by_k(experiment, method, reading), f"{METHODS[method]} on {EXPERIMENTS[experiment]}"
    yield claim(f"fig1.{experiment}.{method}.k", unit="rounds").order(
        f"{where}: the largest K needs fewer rounds to a target than the smallest ({place}).",
        measures.larger_k_helps(sweep),
    )
    yield claim(f"fig1.{experiment}.{method}.monotone").shape(
        f"{where}: the rounds to a target fall as K grows through its values ({place}).",
        measures.rounds_fall_with_k(sweep),
        fails="a K that needs more rounds than a smaller one",
    )


@CLAIM.sentence(
    "bias.k",
    "Section 1, contribution (b)",
    "More local iterations raise the bias of both methods: the remaining error grows with K.",
    main=True,
    question="Is the bias that grows with K the remaining error, or the term g_1, which falls?",
)
def _bias_grows() -> Iterator[Claim]:
    for (experiment, options), method in product(PLANTED.items(), FEDERATED):
        yield CLAIM(f"bias.{method}.k", unit="decades", options=options).order(
            f"{METHODS[method]} ends farther from the solution at the largest K than at the smallest, "
            f"{SPREADS[0]} (Section 1, Remark 2).",
            measures.larger_with_k(left(method, experiment)[0]),
            note=_PLANTED_TERM,
        )


@CLAIM.sentence(
    "fig3.fewer",
    "Section 1, contribution (d); Section 5.1, Figure 3",
    "In the simulations both methods are more effective than Distributed-IHT.",
    main=True,
    question="Which step size and K does each method have in Figure 3, and how are the features scaled?",
)
def _fewer_in_simulations() -> Iterator[Claim]:
    for experiment, (reading, options), method in product(SIMULATIONS, FIGURE3.items(), FEDERATED):
        yield CLAIM(f"fig3.{experiment}.{method}.fewer", unit="rounds", options=options).order(
            f"{EXPERIMENTS[experiment]}: {METHODS[method]} needs fewer rounds than Distributed-IHT "
            "(contribution (d), Figure 3).",
            fewer(plotted(experiment, method, reading), plotted(experiment, BASELINE, reading)),
            note=NOTES[reading.name],
        )


@CLAIM.sentence(
    "fig6.fewer",
    "Section 1, contribution (d); Section 5.2, Figure 6",
    "On real data both methods need far fewer rounds to a given accuracy than Distributed-IHT.",
    main=True,
    question="Does tau = 500 on MNIST count the weights of the whole model, or of each class?",
)
def _fewer_on_real_data() -> Iterator[Claim]:
    for (reading, options, panel, experiment), method in product(of_figure6(), FEDERATED):
        yield CLAIM(f"fig6.{panel}.{method}.fewer", unit="rounds", options=options).order(
            f"{EXPERIMENTS[panel]}: {METHODS[method]} needs fewer rounds to a target than "
            "Distributed-IHT (Section 5.2, Figure 6).",
            fewer(plotted(experiment, method, reading), plotted(experiment, BASELINE, reading)),
            note=f"{FREE_K}; {_RCV1[reading]}" if panel == "rcv1" else FREE_K,
        )
