"""The paper's checkable statements (Dieuleveut et al. 2025), each with its reading, tolerance and quantity.

Readings. `own`: each method at its own best step, tuned on other repetitions in a range that grows until the
best lies inside. `common`: both at FedMM's. MovieLens is subsampled to 5000 users, either drawn at random,
which is what the word says, or those with the most ratings.

The text has lost its numbers. What is left are orders and, where it says "monotonically" or "no effect", a
zero. An earlier study looked for sizes, steps and rounds with which Figures 1 to 3 come out, and those are
the ones used here: these claims are fitted.

All figures draw means over runs, so Figures 1 and 2 are compared with mean curves; see `measures.log_mean`
for their intervals. Updates are recorded in every round; objectives, and the naive method's updates of the
surrogate, in the rounds that are drawn, the first 20 and then every tenth.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.curves import curves, first, last
from replifed.claims.quantities import Quantity, formula, partition_table, quantity, run, settings, tuned
from replifed.claims.statements import Statements
from replifed.papers.fedmm import measures, theory
from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.fedmm.measures import (
    decay,
    early_decay,
    early_level,
    farthest,
    late_decay,
    level,
    log_mean,
    rise,
)
from replifed.papers.fedmm.paper import EXPERIMENTS
from replifed.papers.fedmm.problems import TOYS

SYNTHETIC = ("synthetic_homogeneous", "synthetic_heterogeneous")
# Users of MovieLens, nearest to the text first.
USERS = {"movielens_random": "random users", "movielens": "fullest users"}
FEDMM, NAIVE = BOTH = ("fedmm", "parameter_aggregation")
STEPS = ("own", "common")

READINGS = {
    "": "chosen",
    **{f"{step}, {users}": "fitted" for step in STEPS for users in USERS.values()},
    **dict.fromkeys((*STEPS, "synthetic", *USERS.values()), "fitted"),
    **dict.fromkeys(("per round", "per gradient"), "fitted"),
    **dict.fromkeys(TOYS, "chosen"),
}
CLAIM = Statements("fedmm", READINGS)


def step(experiment: str, method: str, reading: str) -> Quantity:
    """The step at which a method is read: its own, or FedMM's."""
    return quantity(tuned_betas)(tuned(experiment, method))[reading]


def curve(experiment: str, method: str, reading: str, value: str = "objective") -> Quantity:
    """Curves at that step."""
    return measures.columns(run(experiment, method), value, beta=step(experiment, method, reading))


# --- Claims --------------------------------------------------------------------------------------

_RECORDED = "of the rounds recorded, the first 20 and every tenth"
_DIVERGING = f"diverging is ending 2 % above the lowest objective of the run, {_RECORDED}"
_FAR_ABOVE = "the step is FedMM's best, and far above the naive method's"
_NOISE = (
    "an update over γ holds the noise of minibatches, cohorts and rounding, which does not shrink with γ; "
    "without heterogeneity little else is left from the start"
)


def _figure1(experiment: str, at_step: str) -> Iterator[Claim]:
    movielens, own, where = experiment in USERS, at_step == "own", EXPERIMENTS[experiment]
    data = "movielens" if movielens else experiment
    reading = f"{at_step}, {USERS[experiment]}" if movielens else at_step
    claim = CLAIM.given(reading=reading, artefact="fig1" if own else "fig1_common", unit="e-folds")
    objective, naive_objective = (curve(experiment, method, at_step) for method in BOTH)
    parameter, naive_parameter, surrogate, naive_surrogate = (
        curve(experiment, method, at_step, value)
        for value in ("parameter_update", "surrogate_update")
        for method in BOTH
    )
    betas = [step(experiment, method, at_step) for method in BOTH]
    yield claim(f"fig1.{data}.better").order(
        f"{where}: FedMM ends at a lower objective than parameter aggregation (Section 6, Figure 1).",
        (log_mean(last(naive_objective)) - log_mean(last(objective))).note(
            "FedMM at β = {0:g}, the naive method at {1:g}", *betas
        ),
    )
    updates = {f"{NAIVE}.parameter": ("the naive method's parameter", naive_parameter)}
    if own:  # FedMM's step is the same in both readings
        yield claim(f"fig1.{data}.monotone").value(
            f"{where}: with FedMM the objective decays monotonically (Section 6, Figure 1).",
            0.0,
            rise(objective),
            within=0.01,
            because=f"a mean over runs may be 1 % above an earlier one {_RECORDED}",
        )
        ours = {"parameter": ("FedMM's parameter", parameter), "surrogate": ("FedMM's surrogate", surrogate)}
        updates = {f"{FEDMM}.{which}": update for which, update in ours.items()} | updates
    for name, (whose, update) in updates.items():
        fall = decay(update)
        yield claim(f"fig1.{data}.{name}").order(
            f"{where}: {whose} update decays (Section 6, Figure 1).",
            fall.note(lambda fall: f"last over first tenth {np.exp(-fall.mean):.3g}", fall),
            note=_NOISE if (data, name) == ("synthetic_homogeneous", f"{FEDMM}.surrogate") else "",
        )
    rises = rise(naive_objective, at_end=True).note("β = {0:g}", betas[1])
    if experiment == "synthetic_heterogeneous":
        yield claim(f"fig1.{data}.diverges").order(
            f"{where}: with parameter aggregation the objective diverges (Section 6, Figure 1).",
            rises,
            least=0.02,
            because=_DIVERGING,
            note="a range of steps that ends above the best one would have it diverge here too"
            if own
            else _FAR_ABOVE,
        )
    else:
        yield claim(f"fig1.{data}.settles").value(
            f"{where}: with parameter aggregation the objective does not diverge, which it does on "
            "heterogeneous synthetic data alone (Section 6, Figure 1).",
            0.0,
            rises,
            within=0.02,
            because=_DIVERGING,
            note="" if own else _FAR_ABOVE,
        )
    if movielens:
        yield from _naive_on_movielens(claim, where, parameter, naive_parameter, naive_surrogate)
        return
    for name, words, start in (("", "", early_level), (".first", ", from the first round", first)):
        yield claim(f"fig1.{data}.naive_faster{name}", says=f"fig1.{data}.naive_faster").order(
            f"{where}: the naive method's parameter update decays faster than FedMM's{words} (Section 6, "
            "Figure 1).",
            decay(naive_parameter, start) - decay(parameter, start),
            note="FedMM's falls most in the first ten rounds, with its large steps, the naive method's "
            "all along, with small ones: it depends on the range of steps, which is lost"
            if own
            else "at FedMM's step both take large steps at first, and FedMM's update falls further",
        )
    yield claim(f"fig1.{data}.naive_surrogate").order(
        f"{where}: the naive method's surrogate update diverges (Section 6, Figure 1).",
        -decay(naive_surrogate),
        note="diverging is ending above where it began, by tenths of the rounds; it depends on the step: "
        "at FedMM's the update falls from that of the first, long steps",
    )


def _naive_on_movielens(
    claim: Statements, where: str, parameter: Quantity, naive_parameter: Quantity, naive_surrogate: Quantity
) -> Iterator[Claim]:
    notes = {
        "overtaken": "with the small one that is best by the objective its update stays above FedMM's, with "
        "FedMM's it is below from the first rounds on",
        "unstable": "with a small one its update never falls, with FedMM's it falls at once and is level "
        "from then on",
    }
    for name, when, words, measured in (
        (
            "overtaken",
            "early",
            "FedMM's parameter update decays faster than the naive method's at first",
            early_decay(parameter) - early_decay(naive_parameter),
        ),
        (
            "overtaken",
            "late",
            "FedMM's parameter update is above the naive method's in the end",
            log_mean(level(parameter)) - log_mean(level(naive_parameter)),
        ),
        (
            "unstable",
            "early",
            "the naive method's surrogate update decays at first",
            early_decay(naive_surrogate),
        ),
        (
            "unstable",
            "late",
            "the naive method's surrogate update is less steady in the last third of the rounds than in the "
            "first",
            measures.roughness_gain(naive_surrogate),
        ),
    ):
        yield claim(f"fig1.movielens.{name}.{when}", says=f"fig1.movielens.{name}").order(
            f"{where}: {words} (Section 6, Figure 1).",
            measured,
            note=f"it depends on the naive method's step: {notes[name]}",
        )


def _figure2(experiment: str, alpha: float, share: float) -> Iterator[Claim]:
    source = experiment.removeprefix("variates_")
    data = "movielens" if source in USERS else source
    claim = CLAIM.given(reading=USERS.get(source, "synthetic"), artefact="fig2", unit="e-folds")
    where = f"{EXPERIMENTS[experiment]}, {100 * share:.0f} % of the clients, α = {alpha:g}"
    name = f"fig2.{data}.a{alpha:g}.p{share:g}".replace("0.", "")

    def pair(value: str) -> list[Quantity]:
        """Curves with control variates and without."""
        return [
            measures.columns(run(experiment, FEDMM), value, alpha=one, participation=share)
            for one in (alpha, 0.0)
        ]

    yield claim(f"{name}.objective", says=f"fig2.{data}.objective").value(
        f"{where}: control variates have no effect on the objective (Section 6, Figure 2).",
        0.0,
        farthest(*pair("objective")),
        within=0.02,
        because=f"mean objectives may differ by 2 % where they are farthest apart, {_RECORDED}",
        note="with a tenth of the clients single runs with control variates jump to several times their "
        "objective before they settle; in the end they agree"
        if data == "heterogeneous" and share < 0.5
        else "",
    )
    if data == "homogeneous":
        for words, ending in (("surrogate", ""), ("parameter", "_parameter")):
            yield claim(f"{name}.cancel{ending}", says=f"fig2.{data}.cancel{ending}").value(
                f"{where}: control variates cancel and have no effect on the {words} update (Section 6, "
                "Figure 2).",
                0.0,
                farthest(*pair(f"{words}_update")),
                within=0.01,
                because=f"mean {words} updates may differ by 1 % where they are farthest apart",
                note="exact only where all clients take part, see the errata; the objectives agree closely",
            )
        return
    for words in ("surrogate", "parameter"):
        curves_of = pair(f"{words}_update")
        with_, without = map(log_mean, map(level, curves_of))
        yield claim(f"{name}.{words}", says=f"fig2.{data}.{words}").order(
            f"{where}: control variates bring the {words} update to significantly lower values (Section 6, "
            "Figure 2).",
            (without - with_).note(
                lambda lower: f"with over without {np.exp(-lower.mean):.2g}", without - with_
            ),
            least=0.22,
            because="significantly lower is four fifths",
            note="with few active clients control variates first enlarge the parameter's updates; with a "
            "small α they have not caught up by the end"
            if words == "parameter" and share < 0.5
            else "",
        )
        falls = [late_decay(one) for one in curves_of]
        yield claim(f"{name}.{words}_rate", says=f"fig2.{data}.{words}_rate").order(
            f"{where}: control variates improve the rate of decay of the {words} update (Section 6, "
            "Figure 2).",
            (falls[0] - falls[1]).note("{0.mean:.2g} e-folds with and {1.mean:.2g} without", *falls),
            note="from the second tenth of the rounds to the last; with few active clients variates first "
            "enlarge updates, and part of the fall is back from there"
            if share < 0.5
            else "from the second tenth of the rounds to the last",
        )


def _figure3(dim: int) -> Iterator[Claim]:
    histories = [run(f"transport_{dim}", method) for method in ("fedmm_ot", "fedadam")]
    ours, adam = (last(curves(history, "uvp")) for history in histories)
    for reading, words, lower in (
        ("round", "rounds", np.log(adam) - np.log(ours)),
        ("gradient", "gradients of a sample", measures.at_equal_gradients(*histories)),
    ):
        yield CLAIM(f"fig3.d{dim}.better", unit="e-folds", reading=f"per {reading}").order(
            f"D = {dim}: FedMM-OT significantly outperforms FedAdam, by the L2-UVP (Section 7.3, Figure 3), "
            f"after equally many {words}.",
            lower,
            least=0.405,
            because="significantly is taken as 1.5 times less L2-UVP",
            note="it depends on the rounds, rates and weight of the cycle term, which are lost",
        )


def _identities() -> Iterator[Claim]:
    for experiment, users in USERS.items():
        yield CLAIM("movielens_clusters", reading=users, artefact="partitions").identity(
            f"{EXPERIMENTS[experiment]}: constrained k-means gives clients equally many of the 5000 users, "
            "and puts them apart (Section 6).",
            measures.apart(partition_table(experiment)),
        )
    for reading in TOYS:
        for method, words in (
            (FEDMM, "aggregating surrogates gives the solution in every round"),
            (NAIVE, "aggregating parameters gives a constant other than the solution"),
        ):
            # With some other values the parameters' mean is the solution.
            basis = "chosen" if method == FEDMM else "fitted"
            yield CLAIM(f"remark1.{method}", reading=reading, basis=basis).identity(
                f"On the toy example, {words} (Remark 1).",
                measures.toy(run("remark1", method), settings("remark1"), reading, solved=method == FEDMM),
            )
    for experiment in ("em_poisson", "em_poisson_known_mean", "em_mixture"):
        em = curves(run(experiment, "sa_ssmm"), reading="exact")
        ours = curves(run(experiment, FEDMM), reading="exact")
        gap = measures.largest_gap(ours, em)
        yield CLAIM(f"em.{experiment}.exact").identity(
            f"{EXPERIMENTS[experiment]}: with all clients and no compression FedMM is centralised MM, "
            "whatever α is (Sections 3.1 and 5).",
            (gap < 1e-10).note("largest relative difference {0.max:.2g}", gap),
        )


_PROVED = {
    "descent": (
        theory.descends,
        "On all examples no exact iteration of MM raises the objective (Section 2.1).",
    ),
    "prop1": (
        theory.roots_are_fixed_points,
        "Roots of the mean field are stationary fixed points of MM, and the other way round (Proposition 1).",
    ),
    "unbiased": (
        theory.only_surrogates_stay_unbiased,
        "Minibatches give unbiased oracles of surrogates, and biased ones of their minimisers, unless T is "
        "linear (Section 2.2).",
    ),
    "memory": (
        theory.remembers,
        "SA-SSMM forgets its oracles geometrically with a constant step; with 1/t the surrogate is their "
        "mean (Section 2.2, eq. 12).",
    ),
    "sparsity": (
        theory.averages_lose_zeros,
        "Averaged parameters lose zeros of a 1-norm's minimiser, which averaged surrogates keep (Section 4).",
    ),
    "projection": (
        theory.leaves_and_is_biased,
        "Steps of FedMM and rounded matrices may leave S, and projecting back biases the step (Section 5).",
    ),
    "lemma1": (
        theory.compression,
        "Quantisation is unbiased, and sent with probability p it is a compression with "
        "ω + (1 − p)(1 + ω)/p (A 4, Lemma 1).",
    ),
    "lemma2": (theory.monotone, "Along s the map φ(T(s)) is monotone (Lemma 2)."),
    "lemma3": (
        theory.projects,
        "Projections make obtuse angles and bring no points farther apart (Lemma 3, B = I).",
    ),
    "prop3": (
        theory.field,
        "H is an unbiased oracle of h(S), and variates act on the part of its variance that cohorts add "
        "(Proposition 3).",
    ),
    "prop5": (
        theory.variates_add_up,
        "The server's control variate is the weighted mean of the clients' at all times (Proposition 5).",
    ),
    "appendix_e": (
        theory.degenerate,
        "B(s) is singular for dictionary learning (E.3), and invertible for counts with a known mean (E.2).",
    ),
}
_EXAMPLES = {
    "logistic": "Example 1, logistic loss with an l1 penalty",
    "poisson": "Example 2, counts with a random effect (Appendix C.1)",
    "poisson_known_mean": "Example 2, the same with E[Z] known (Appendix C.1)",
    "mixture": "Example 2, Gaussian mixture (Appendix C.2)",
    "dictionary": "Example 3, dictionary learning (eqs. 15 to 17)",
}


def _theory() -> Iterator[Claim]:
    claim = CLAIM.given(artefact="em")
    for name, words in _EXAMPLES.items():
        yield claim(f"example.{name}").identity(
            f"{words}: the surrogate majorises the loss and touches it (MM-1), and T(s) minimises it (MM-2).",
            formula(theory.surrogate, name),
        )
    for name, (measured, statement) in _PROVED.items():
        yield claim.identity(name, statement, formula(measured))
    few, more, longer = (formula(theory.log_noise, n, b) for n, b in ((5, 10), (20, 10), (5, 40)))
    for name, words, less in (("clients", "clients", more), ("batch", "samples in a minibatch", longer)):
        yield claim(f"theorem1.noise.{name}", unit="e-folds").value(
            f"Logistic loss, like clients, constant step: with four times as many {words} a quarter of "
            "|h(S)|² is left (Corollary 1).",
            1.386,
            few - less,
            within=0.2,
            because="a fifth more or less, with 24 seeds",
        )
    with_variates, without = (formula(theory.late_noise, alpha) for alpha in (0.5, 0.0))
    yield claim("theorem1.unlike", unit="e-folds").order(
        "Logistic loss, unlike clients of which half take part, constant step: with control variates |h(S)|² "
        "has no floor, and without it has one (Theorem 1): in rounds 180 to 199 it is less.",
        without - with_variates,
        least=2.3,
        because="a tenth of what stays without variates",
        note="the theorem's 1/T, for the mean over all rounds, holds wherever the sum of |h(S)|² converges, "
        "and is not tested",
    )


# Experiment and shares of active clients.
_VARIATES = {
    **{f"variates_{data}": (0.5, 0.1) for data in ("homogeneous", "heterogeneous", "movielens")},
    "variates_movielens_random": (0.5,),
}
_ALL = (
    *(
        claim
        for experiment in (*SYNTHETIC, *USERS)
        for at_step in STEPS
        for claim in _figure1(experiment, at_step)
    ),
    *(
        claim
        for experiment, shares in _VARIATES.items()
        for alpha, share in itertools.product((0.1, 0.5), shares)
        for claim in _figure2(experiment, alpha, share)
    ),
    *(claim for dim in (2, 4, 8) for claim in _figure3(dim)),
    *_identities(),
    *_theory(),
)
# All seeds share MovieLens' users and clients.
CLAIMS = tuple(
    replace(claim, shared="one split" if any("movielens" in key for key in claim.needs) else "")
    for claim in _ALL
)
