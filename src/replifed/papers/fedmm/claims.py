"""The paper's checkable sentences (Dieuleveut et al. 2025), in its order, with their claims.

All figures draw means over runs, so Figures 1 and 2 are compared with mean curves; see `measures.log_mean`
for their intervals. Updates are recorded in every round; objectives, and the naive method's updates of the
surrogate, in the rounds that are drawn, the first 20 and then every tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.curves import curves, first, last
from replifed.claims.quantities import formula, partition_table, run, settings
from replifed.papers.fedmm import measures, theory
from replifed.papers.fedmm.axes import (
    BOTH,
    CLAIM,
    FEDMM,
    HETEROGENEOUS,
    HOMOGENEOUS,
    MOVIELENS,
    NAIVE,
    PROVED,
    RUNS,
    SHORT,
    SIZES,
    STEPS,
    UNLIKE,
    beta,
    curve,
    on_data,
    proved,
    readings,
    variates,
)
from replifed.papers.fedmm.measures import decay, early_decay, early_level, late_decay, level, log_mean, rise
from replifed.papers.fedmm.paper import EXPERIMENTS
from replifed.papers.fedmm.problems import TOYS

# --- Sections 1 to 4 ------------------------------------------------------------------------------

proved(
    "example.logistic",
    "Section 2, Example 1, abstract, Section 2.3 and Appendix A.1",
    "A smooth loss, here logistic with a 1-norm, has a quadratic surrogate, of which T is the proximal map.",
    *(theory.surrogate, "logistic"),
    main=True,
)


@CLAIM.sentence(
    "example.poisson",
    "Section 2, Example 2, abstract, Section 2.3, Appendices A.2 and C.1",
    "Counts with a random effect have Jensen's surrogate: two statistics, or one where E[Z] is known.",
    main=True,
    evidence="formula",
)
def _counts() -> Iterator[Claim]:
    for name, words in (("poisson", "two statistics"), ("poisson_known_mean", "one, with E[Z] known")):
        yield PROVED.identity(
            f"example.{name}",
            f"With {words}, the surrogate majorises the loss and touches it, and T(s) minimises it.",
            formula(theory.surrogate, name),
        )


proved(
    "example.mixture",
    "Section 2, Example 2, Section 2.3 and Appendix C.2",
    "A Gaussian mixture has Jensen's surrogate, of which T is EM's second step.",
    *(theory.surrogate, "mixture"),
)
proved(
    "example.dictionary",
    "Section 2, Example 3, abstract, eqs. (14) to (18) and Appendix A.3",
    "Dictionary learning has a variational surrogate, with two matrices as parameter.",
    *(theory.surrogate, "dictionary"),
    main=True,
)
proved(
    "descent",
    "Section 2.1, after (7) and (8)",
    "No exact iteration of MM raises the objective.",
    theory.descends,
)
proved(
    "prop1",
    "Section 2.1, Proposition 1, and Appendix B",
    "Roots of the mean field are stationary fixed points of MM, and the other way round.",
    theory.roots_are_fixed_points,
)
proved(
    "unbiased",
    "Section 2.2",
    "Minibatches give unbiased oracles of surrogates, and of their minimisers only if T is linear.",
    theory.only_surrogates_stay_unbiased,
)
proved(
    "memory",
    "Section 2.2, eq. (12), abstract and Section 2.3",
    "SA-SSMM forgets oracles geometrically with a constant step, and with 1/t, as Online EM, averages them.",
    theory.remembers,
    main=True,
)


@CLAIM.sentence(
    "em.exact",
    "Section 3.1, (22), Sections 4 and 5",
    "With all clients and no compression FedMM is centralised MM, on heterogeneous clients, too.",
    main=True,
    evidence="formula",
)
def _centralised() -> Iterator[Claim]:
    for experiment in ("em_poisson", "em_poisson_known_mean", "em_mixture"):
        ours, em = (curves(run(experiment, method), reading="exact") for method in (FEDMM, "sa_ssmm"))
        gap = measures.largest_gap(ours, em)
        yield CLAIM(f"em.{experiment}.exact").identity(
            f"{EXPERIMENTS[experiment]}: both have the same objectives, whatever α is.",
            (gap < 1e-10).note("largest relative difference {0.max:.2g}", gap),
        )


def _toy(method: str, words: str) -> Iterator[Claim]:
    # With some other values the parameters' mean is the solution.
    values = {"values": "unequal"} if method == NAIVE else {}
    for toy in TOYS:
        yield CLAIM(f"remark1.{method}", options={"toy": toy, **values}).identity(
            f"On the toy example {words}.",
            measures.toy(run("remark1", method), settings("remark1"), toy, solved=method == FEDMM),
        )


for _method, _words in (
    (FEDMM, "aggregation of surrogates is constant at the solution"),
    (NAIVE, "aggregation of parameters is constant at another point"),
):
    _place = "Section 3.1, (21) and Remark 1"
    CLAIM.sentence(f"remark1.{_method}", _place, f"On the toy, {_words}.", evidence="formula")(
        partial(_toy, _method, _words)
    )
proved(
    "sparsity",
    "Section 4",
    "Averaged parameters lose zeros of a 1-norm's minimiser, which averaged surrogates keep.",
    theory.averages_lose_zeros,
)

# --- Section 5 and its appendices -----------------------------------------------------------------

proved(
    "lemma1",
    "Section 5, A 4, A 5 and (25), Appendix D.2, Lemma 1",
    "Quantisation is unbiased, and sent with probability p it is a compression with ω + (1 − p)(1 + ω)/p.",
    theory.compression,
)


@CLAIM.sentence(
    "theorem1.noise",
    "Section 5, Corollary 1",
    "The noise term is divided by the number of clients and by the batch.",
    evidence="own runs",
)
def _noise() -> Iterator[Claim]:
    few, more, longer = (formula(theory.log_noise, n, b) for n, b in ((5, 10), (20, 10), (5, 40)))
    for name, words, less in (("clients", "clients", more), ("batch", "samples in a minibatch", longer)):
        yield PROVED(f"theorem1.noise.{name}", unit="e-folds").near(
            f"Logistic loss, homogeneous clients, constant step: 4 times the {words} leave a quarter of "
            "|h(S)|².",
            1.386,
            few - less,
            within=0.2,
            because="a fifth more or less, with 24 seeds",
        )


@CLAIM.sentence(
    "theorem1.unlike",
    "Section 5, heterogeneity",
    "With control variates the guarantee holds for any heterogeneity.",
    main=True,
    evidence="own runs",
)
def _unlike() -> Iterator[Claim]:
    with_variates, without = (formula(theory.late_noise, alpha) for alpha in (0.5, 0.0))
    yield PROVED("theorem1.unlike", unit="e-folds").order(
        "Logistic loss, heterogeneous clients, half of them active, constant step: with control variates "
        "|h(S)|² has no floor, without them it has one; in rounds 180 to 199 it is smaller with them.",
        without - with_variates,
        least=2.3,
        because="a tenth of what stays without variates",
        note="the theorem's 1/T, for the mean over all rounds, holds wherever the sum of |h(S)|² converges, "
        "and is not tested",
    )


proved(
    "projection",
    "Section 5, challenges",
    "Steps of FedMM and rounded matrices may leave S, and projecting back biases the step.",
    theory.leaves_and_is_biased,
)

# --- Section 6, Figure 1 --------------------------------------------------------------------------

_RECORDED = "of the rounds recorded, the first 20 and every tenth"
_DIVERGING = f"diverging is ending 2 % above the lowest objective of the run, {_RECORDED}"
_AT = {
    "own": "with a range of steps that ends above its best one it may diverge",
    "common": "the step is FedMM's best, and far above the naive method's",
    SHORT: "the step is the end of the range",
}
_FALLS = {
    SHORT: "FedMM's falls most in the first ten rounds, with large steps, the naive method's in all rounds",
    "common": "at FedMM's step both take large steps at first, and FedMM's update falls further",
}
_FALLS["own"] = f"{_FALLS[SHORT]}, with small ones: the order depends on the range, which is lost"
_NOISE = (
    "an update over γ holds the noise of minibatches, cohorts and rounding, which does not shrink with γ; "
    "without heterogeneity there is little else from the start"
)


@CLAIM.sentence(
    "movielens_clusters",
    "Section 6",
    "5000 users are split evenly by constrained k-means, which puts clients far apart.",
)
def _clusters() -> Iterator[Claim]:
    for experiment, users in RUNS[MOVIELENS].items():
        yield CLAIM("movielens_clusters", options=users, artefact="partitions").identity(
            f"{EXPERIMENTS[experiment]}: clients have equally many of the 5000 users, and are apart.",
            measures.apart(partition_table(experiment)),
        )


@on_data("fig1", "monotone", "with FedMM the objective decays monotonically.")
def _monotone(data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, "own", SHORT):  # FedMM's step is common to all
        yield claim(f"fig1.{data}.monotone").near(
            f"{EXPERIMENTS[experiment]}: rise of FedMM's objective above its lowest so far.",
            0.0,
            rise(curve(experiment, FEDMM, step)),
            within=0.01,
            because=f"a mean over runs may be 1 % above an earlier one {_RECORDED}",
        )


@CLAIM.sentence(
    f"fig1.{HETEROGENEOUS}.diverges",
    "Section 6, Figure 1, Sections 1 and 3.1",
    "Averaging the clients' parameters may not be stable: on heterogeneous synthetic data it diverges.",
    main=True,
)
def _diverges() -> Iterator[Claim]:
    for data in RUNS:
        for experiment, step, claim in readings(data, *STEPS):
            naive = curve(experiment, NAIVE, step)
            ends = beta(experiment, NAIVE, step), last(naive)
            rises = rise(naive, at_end=True).note("β = {0:g}, where it ends at {1.mean:.3g}", *ends)
            if data == HETEROGENEOUS:
                yield claim(f"fig1.{data}.diverges").order(
                    f"{EXPERIMENTS[experiment]}: with parameter aggregation the objective diverges.",
                    rises,
                    least=0.02,
                    because=_DIVERGING,
                    note=_AT[step],
                )
            else:
                yield claim(f"fig1.{data}.settles", informs=True).near(
                    f"{EXPERIMENTS[experiment]}: with parameter aggregation the objective does not diverge "
                    "(the text says so of heterogeneous synthetic data alone).",
                    0.0,
                    rises,
                    within=0.02,
                    because=_DIVERGING,
                    note=_AT[step],
                )


@on_data("fig1", "better", "FedMM ends at a lower objective than aggregation of parameters.", main=True)
def _better(data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, *STEPS):
        ours, theirs = (log_mean(last(curve(experiment, method, step))) for method in BOTH)
        yield claim(f"fig1.{data}.better").order(
            f"{EXPERIMENTS[experiment]}: FedMM ends at a lower objective than parameter aggregation.",
            (theirs - ours).note(
                "FedMM at β = {0:g}, the naive method at {1:g}",
                *(beta(experiment, method, step) for method in BOTH),
            ),
        )


def _decays(method: str, update: str, data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, *STEPS if method == NAIVE else ("own", SHORT)):
        fall = decay(curve(experiment, method, step, f"{update}_update"))
        yield claim(f"fig1.{data}.{method}.{update}").order(
            f"{EXPERIMENTS[experiment]}: the {update} update decays.",
            fall.note(lambda fall: f"last over first tenth {np.exp(-fall.mean):.3g}", fall),
            note=_NOISE if (data, update) == (HOMOGENEOUS, "surrogate") else "",
        )


for _method, _update, _whose in (
    (FEDMM, "parameter", "FedMM's"),
    (NAIVE, "parameter", "the naive method's"),
    (FEDMM, "surrogate", "FedMM's"),
):
    on_data("fig1", f"{_method}.{_update}", f"{_whose} {_update} update decays.")(
        partial(_decays, _method, _update)
    )


@on_data(
    "fig1", "naive_faster", "the naive method's parameter update decays faster.", HOMOGENEOUS, HETEROGENEOUS
)
def _naive_faster(data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, *STEPS):
        ours, theirs = (curve(experiment, method, step, "parameter_update") for method in BOTH)
        for name, words, start in (("", "", early_level), (".first", ", from the first round", first)):
            yield claim(f"fig1.{data}.naive_faster{name}").order(
                f"{EXPERIMENTS[experiment]}: the naive parameter update decays faster than FedMM's{words}.",
                decay(theirs, start) - decay(ours, start),
                note=_FALLS.get(step, ""),
            )


@on_data("fig1", "overtaken", "FedMM's parameter update is first faster, and eventually beaten.", MOVIELENS)
def _overtaken(data: str) -> Iterator[Claim]:
    note = (
        "at the naive method's best step, a small one, its update stays above FedMM's; at FedMM's step it "
        "is below from the first rounds on"
    )
    for experiment, step, claim in readings(data, *STEPS):
        ours, theirs = (curve(experiment, method, step, "parameter_update") for method in BOTH)
        early, late = early_decay(ours) - early_decay(theirs), log_mean(level(ours)) - log_mean(level(theirs))
        for name, words, measured in (
            ("early", "decays faster than the naive method's at first", early),
            ("late", "is above the naive method's at the end", late),
        ):
            yield claim(f"fig1.movielens.overtaken.{name}").order(
                f"{EXPERIMENTS[experiment]}: FedMM's parameter update {words}.", measured, note=note
            )


@on_data(
    "fig1", "naive_surrogate", "the naive method's surrogate update diverges.", HOMOGENEOUS, HETEROGENEOUS
)
def _naive_surrogate(data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, *STEPS):
        yield claim(f"fig1.{data}.naive_surrogate").order(
            f"{EXPERIMENTS[experiment]}: the naive method's surrogate update diverges.",
            -decay(curve(experiment, NAIVE, step, "surrogate_update")),
            note="diverging: its mean over the last tenth of the rounds is above that over the first; it "
            "depends on the step: at FedMM's, the long first steps make large updates, which then fall",
        )


@on_data(
    "fig1", "unstable", "the naive method's surrogate update decays at first and grows unstable.", MOVIELENS
)
def _unstable(data: str) -> Iterator[Claim]:
    for experiment, step, claim in readings(data, *STEPS):
        update = curve(experiment, NAIVE, step, "surrogate_update")
        for name, words, measured in (
            ("early", "decays at first", early_decay(update)),
            ("late", "is less steady in the last third of the rounds", measures.roughness_gain(update)),
        ):
            yield claim(f"fig1.movielens.unstable.{name}").order(
                f"{EXPERIMENTS[experiment]}: the naive method's surrogate update {words}.",
                measured,
                note="at a small step it never falls; at FedMM's it falls at once and then stays level",
            )


# --- Section 6, Figure 2 --------------------------------------------------------------------------


@on_data("fig2", "objective", "control variates have no effect on the objective.")
def _objective(data: str) -> Iterator[Claim]:
    for where, cohort, claim, pair in variates(data):
        yield claim("objective").near(
            f"{where}: control variates have no effect on the objective.",
            0.0,
            measures.farthest(*pair("objective")),
            within=0.02,
            because=f"mean objectives may differ by 2 % where they are farthest apart, {_RECORDED}",
            note="with a tenth of the clients single runs with control variates jump to several times their "
            "objective before they settle; in the end they agree"
            if data == HETEROGENEOUS and cohort == "tenth"
            else "",
        )


@on_data(
    "fig2",
    "cancel",
    "control variates cancel exactly and have no effect on updates.",
    HOMOGENEOUS,
    evidence="formula",
)
def _cancel(data: str) -> Iterator[Claim]:
    for (where, _, claim, pair), (words, ending) in product(
        variates(data), (("surrogate", ""), ("parameter", "_parameter"))
    ):
        gap = measures.farthest(*pair(f"{words}_update"))
        yield claim(f"cancel{ending}").near(
            f"{where}: control variates cancel and have no effect on the {words} update.",
            0.0,
            gap.note(lambda gap: f"{abs(gap.mean) / np.log(10):.2g} decades on the figure's axis"),
            within=0.01,
            because=f"mean {words} updates may differ by 1 % where they are farthest apart",
            note="exact only where all clients take part, see the errata; the objectives agree closely",
        )


@on_data("fig2", "rate", "control variates improve the rate of decay of both updates.", *UNLIKE, also="5")
def _rate(data: str) -> Iterator[Claim]:
    for (where, cohort, claim, pair), words in product(variates(data), ("surrogate", "parameter")):
        falls = [late_decay(one) for one in pair(f"{words}_update")]
        yield claim(f"{words}_rate").order(
            f"{where}: control variates improve the rate of decay of the {words} update.",
            (falls[0] - falls[1]).note("{0.mean:.2g} e-folds with and {1.mean:.2g} without", *falls),
            note="from the second tenth of the rounds to the last"
            + "; with few active clients they first enlarge updates, and part of the fall undoes this"
            * (cohort == "tenth"),
        )


@on_data("fig2", "lower", "variates bring both updates to significantly lower values.", *UNLIKE, also="3.2")
def _lower(data: str) -> Iterator[Claim]:
    for (where, cohort, claim, pair), words in product(variates(data), ("surrogate", "parameter")):
        with_, without = map(log_mean, map(level, pair(f"{words}_update")))
        yield claim(words).order(
            f"{where}: control variates bring the {words} update to significantly lower values.",
            (without - with_).note(
                lambda lower: f"with over without {np.exp(-lower.mean):.2g}", without - with_
            ),
            least=0.22,
            because="significantly lower is four fifths",
            note="with few active clients control variates first enlarge the parameter's updates; with a "
            "small α they have not caught up by the end"
            if words == "parameter" and cohort == "tenth"
            else "",
        )


# --- Section 7 and Appendices D and E -------------------------------------------------------------


def _transport(dim: int) -> Iterator[Claim]:
    histories = [run(f"transport_{dim}", method) for method in ("fedmm_ot", "fedadam")]
    ours, adam = (last(curves(history, "uvp")) for history in histories)
    for count, words, lower in (
        ("per round", "rounds", np.log(adam) - np.log(ours)),
        ("per gradient", "gradients of a sample", measures.at_equal_gradients(*histories)),
    ):
        yield CLAIM(f"fig3.d{dim}.better", unit="e-folds", options={**SIZES, "count": count}).order(
            f"D = {dim}: FedMM-OT significantly outperforms FedAdam in L2-UVP after equally many {words}.",
            lower,
            least=0.405,
            because="significantly is taken as 1.5 times less L2-UVP",
            note="it depends on the rounds, step sizes and weight of the cycle term, which are lost",
        )


for _dim in (2, 4, 8):
    CLAIM.sentence(
        f"fig3.d{_dim}.better",
        "Section 7.3, Figure 3",
        f"FedMM-OT significantly outperforms FedAdam in every dimension, as in {_dim}.",
    )(partial(_transport, _dim))
proved("lemma2", "Appendix D, Lemma 2", "Along s the map φ(T(s)) is monotone (57).", theory.monotone)
proved(
    "lemma3",
    "Appendix D, Lemma 3",
    "Projections make obtuse angles and bring no points farther apart, here with B = I.",
    theory.projects,
)
proved(
    "prop3",
    "Appendix D, Proposition 3",
    "H is an unbiased oracle of h(S), and variates act on the part of its variance that cohorts add.",
    theory.field,
)
proved(
    "prop5",
    "Appendix D, Proposition 5",
    "The server's control variate is the weighted mean of the clients' at all times.",
    theory.variates_add_up,
)
proved(
    "appendix_e",
    "Appendices E.2 and E.3, Section 5, A 7",
    "B(s) is singular for dictionary learning, and invertible for counts with a known mean.",
    theory.degenerate,
)

# All seeds share MovieLens' users and clients.
CLAIMS = [
    replace(claim, shared="one split" if any("movielens" in key for key in claim.needs) else "")
    for claim in CLAIM.all()
]
SENTENCES = CLAIM.sentences
