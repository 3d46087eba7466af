"""Sections 2 to 4: lemmas, and what theorems and remarks say of FedHT and FedIterHT."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from replifed.claims.claim import Claim
from replifed.claims.quantities import decided, formula, run
from replifed.papers.fedht import measures, theory
from replifed.papers.fedht.axes import CLAIM, FASTER, PLANTED, RATES, REMARKS
from replifed.papers.fedht.claims.plotted import (
    BOUNDS,
    FEDERATED,
    OWN_K,
    SIMULATIONS,
    SPREADS,
    by_k,
    left,
    plotted,
)
from replifed.papers.fedht.measures import fewer
from replifed.papers.fedht.paper import EXPERIMENTS, METHODS

_AT_ONE_STEP = (
    "at one step it depends on K: FedIterHT is behind with few local steps; tau is twice tau* here, where "
    "Remark 3 speaks of a tau much larger than tau*"
)
_LONGER = "FedHT at K = 3 is stable at steps several times longer than FedIterHT's; at one step K decides"
_DRIFT = "clients drift to minimisers of their own, farther in more steps"


@CLAIM.sentence(
    "theory.lemma1",
    "Section 2, Lemma 1",
    "Hard thresholding expands the squared distance to x* by at most 1 + alpha, alpha = 2 sqrt(tau*) / "
    "sqrt(tau - tau*).",
    evidence="formula",
)
def _lemma1() -> Iterator[Claim]:
    yield RATES("theory.lemma1").identity(
        "Lemma 1: |H_tau(x) - x*|^2 <= (1 + alpha) |x - x*|^2.", formula(theory.lemma1)
    )


@CLAIM.sentence(
    "theory.ranks",
    "Section 3",
    "The theory applies to other constraints such as the rank of a matrix.",
    evidence="formula",
)
def _ranks() -> Iterator[Claim]:
    yield RATES("theory.ranks").identity(
        "Lemma 1 holds of ranks as of non-zeros, so that the results apply to the rank of a matrix "
        "(Section 3).",
        formula(theory.lemma1_of_ranks),
    )


@CLAIM.sentence(
    "support.known",
    "Section 3",
    "FedHT has a strong ability to recover the sparse solution with non-IID data.",
)
def _recovers_the_known() -> Iterator[Claim]:
    for experiment, options in PLANTED.items():
        for method in FEDERATED:
            claim = CLAIM(f"bias.{method}.support", options=options, informs=method != "fedht")
            yield claim.shape(
                f"{METHODS[method]} ends with the whole support of the known solution, at each alpha.",
                measures.recovers_all(run(experiment, method)),
                fails="a seed and an alpha at which a coordinate of the support is missing",
                note="" if method == "fedht" else "the sentence is on FedHT",
            )


def _below_one(method: str) -> Claim:
    theorem, theta, _ = BOUNDS[method]
    return RATES(f"theory.{method}.below_one").identity(
        f"{theta} lies in (0, 1) wherever tau is as large as {theorem} asks.",
        formula(theory.rates_below_one, method),
        note="with K = 1 it is 1 at the least tau, an erratum; with more local steps it is smaller",
    )


@CLAIM.sentence(
    "theory.fedht.below_one",
    "Section 3, Theorem 1",
    "theta_1 = (1 + 2 alpha) (1 - 1/(12 kappa_d))^K lies in (0, 1).",
    evidence="formula",
)
def _theta1() -> Iterator[Claim]:
    yield _below_one("fedht")


@CLAIM.sentence(
    "theory.remark2.bias",
    "Section 3, Remark 2",
    "The bias term g_1 grows with K, so that K has to balance rate and bias.",
    evidence="formula",
)
def _bias_term_grows() -> Iterator[Claim]:
    yield RATES("theory.remark2.bias").identity(
        "The bias term g_1 grows with K (Remark 2).",
        formula(theory.bias_grows_with_k),
        note="with q = (1 - 1/(12 kappa_d))^K the printed g_1 is proportional to (1 - q) / (1 - (1 + alpha) "
        "q), which grows with q and so falls with K; only its numerator xi_1 grows",
    )


@CLAIM.sentence("fig3.faster", "Section 4", "FedIterHT has a better convergence rate than FedHT.")
def _faster() -> Iterator[Claim]:
    for experiment, (reading, options) in product(SIMULATIONS, FASTER.items()):
        pair = (plotted(experiment, method, reading) for method in ("fediterht", "fedht"))
        yield CLAIM(f"fig3.{experiment}.faster", unit="rounds", options=options).order(
            f"{EXPERIMENTS[experiment]}: FedIterHT needs fewer rounds than FedHT (Section 4, Remark 3).",
            fewer(*pair),
            note=_LONGER if reading.K is None else _AT_ONE_STEP,
        )


@CLAIM.sentence(
    "theory.fediterht.below_one",
    "Section 4, Theorem 2",
    "theta_2 = (1 + 2 alpha)^2 (1 - 1/(12 kappa_s))^K lies in (0, 1).",
    evidence="formula",
)
def _theta2() -> Iterator[Claim]:
    yield _below_one("fediterht")


@CLAIM.sentence(
    "theory.remark3.condition",
    "Section 4, Remark 3",
    "theta_2 is smaller than theta_1 if 2 alpha is at most the K-th power of a ratio, minus one.",
    evidence="formula",
)
def _condition() -> Iterator[Claim]:
    yield RATES("theory.remark3.condition").identity(
        "theta_2 is at most theta_1 if 2 alpha <= ((1 - 1/(12 kappa_d)) / (1 - 1/(12 kappa_s)))^K - 1 "
        "(Remark 3).",
        formula(theory.remark3_condition),
    )


@CLAIM.sentence("fig1.benefit", "Section 4, Remark 3", "FedIterHT benefits more from a larger K than FedHT.")
def _benefit() -> Iterator[Claim]:
    for experiment, (reading, options) in product(SIMULATIONS, REMARKS.items()):
        soft, hard = (measures.speedup(by_k(experiment, method, reading)) for method in FEDERATED)
        more = decided(hard - soft, "both methods diverge at one of the two K on every seed")
        yield CLAIM(f"fig1.{experiment}.benefit", unit="e-folds", options=options).order(
            f"{EXPERIMENTS[experiment]}: FedIterHT benefits more from a larger K than FedHT does (Remark 3).",
            more.note(measures.speedups, hard, soft),
            note=OWN_K if reading == "own" else "",
        )


@CLAIM.sentence(
    "bias.slight_k",
    "Section 4, Remark 3",
    "A slightly larger K does not change the bias terms much where d is much larger than 2 N tau + tau*.",
    evidence="formula",
)
def _slight_k() -> Iterator[Claim]:
    for method, (_, _, bias) in BOUNDS.items():
        yield RATES(f"theory.{method}.slight_k").shape(
            f"By its formula {bias} changes by at most a tenth from one K to the next (Remark 3).",
            theory.bias_hardly_varies(formula(theory.bias_terms_by_k, method), 0.1),
            fails="a bias term that changes by more than a tenth from one K to the next",
        )
        # The remark is on the terms.
        for experiment in ("dissimilar", "dissimilar_support"):
            yield CLAIM(f"bias.{method}.slight_k", options=PLANTED[experiment], informs=True).shape(
                f"{METHODS[method]}: from K = 3 to 4 the bias changes by at most a tenth where d is much "
                f"larger than 2 N tau + tau*, {SPREADS[0]} (Remark 3).",
                measures.hardly_varies(left(method, experiment)[0], 0.1),
                fails="a bias that changes by more than a tenth from K = 3 to 4",
                note=_DRIFT,
            )
