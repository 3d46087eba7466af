"""The paper's checkable statements (Dieuleveut et al. 2025), each with its reading, tolerance and quantity.

Readings. `own`: each method at its own best step, tuned on other repetitions in a range that grows until the
best lies inside. `common`: both at FedMM's. The text has lost its numbers, so there are no values to meet:
statements are orders and shapes, whose thresholds were fixed before any of this was run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from replifed.claims.curves import curves, early_level, first, last, level, lowest
from replifed.claims.quantities import Quantity, formula, log, percent, run, settings, tuned
from replifed.claims.statements import Statements
from replifed.claims.verdicts import Claim
from replifed.papers.fedmm import measures
from replifed.papers.fedmm.paper import EXPERIMENTS

SYNTHETIC = ("synthetic_homogeneous", "synthetic_heterogeneous")
FIGURE1 = (*SYNTHETIC, "movielens")
FIGURE2 = ("variates_homogeneous", "variates_heterogeneous", "variates_movielens")
FEDMM, NAIVE = BOTH = ("fedmm", "parameter_aggregation")
ALPHAS = (0.1, 0.5)
SHARES = (0.5, 0.1)
_TENTHS = "last over first tenth {0.mean:.3g} on average"

CLAIM = Statements("fedmm")
E_FOLDS = CLAIM.given(unit="e-folds")


def step(experiment: str, method: str, reading: str) -> Quantity:
    """The step at which a method is read."""
    return measures.step(tuned(experiment, method), reading)


def curve(experiment: str, method: str, reading: str, value: str = "objective") -> Quantity:
    """Curves at that step."""
    return measures.columns(run(experiment, method), value, beta=step(experiment, method, reading))


def variates(experiment: str, alpha: float, share: float, value: str) -> Quantity:
    """Curves of FedMM with control variates of step alpha, and a share of the clients."""
    return measures.columns(run(experiment, "fedmm"), value, alpha=alpha, participation=share)


def decay(one: Quantity) -> Quantity:
    """Last over first tenth of a curve."""
    return level(one) / early_level(one)


def _figure1(experiment: str) -> Iterator[Claim]:
    where = EXPERIMENTS[experiment]
    rise = measures.largest_rise(curve(experiment, FEDMM, "own"))
    yield CLAIM.shape(
        f"fig1.{experiment}.monotone",
        f"{where}: with FedMM the objective decays monotonically (Section 6, Figure 1).",
        (rise <= 0.01).note("largest rise {0.max:.2g} %", percent(rise)),
        because="the objective may rise by 1 % between windows of five records",
    )
    for reading in ("own", "common"):
        naive, ours = last(curve(experiment, NAIVE, reading)), last(curve(experiment, FEDMM, "own"))
        betas = (step(experiment, FEDMM, "own"), step(experiment, NAIVE, reading))
        yield CLAIM.order(
            f"fig1.{experiment}.better",
            f"{where}: FedMM ends at a lower objective than parameter aggregation (Section 6, Figure 1).",
            measures.finite(naive - ours).note("FedMM at β = {0:g}, the naive method at {1:g}", *betas),
            artefact="fig1" if reading == "own" else "fig1_common",
            unit="objective",
            reading=reading,
        )
    for method, value, name, words, note in (
        (FEDMM, "parameter_update", "parameter", "the parameter update of FedMM", ""),
        (NAIVE, "parameter_update", "parameter", "the parameter update of the naive method", ""),
        (
            FEDMM,
            "surrogate_update",
            "surrogate",
            "FedMM's surrogate update",
            "an update over γ holds the noise of minibatches, cohorts and rounding, which does not "
            "shrink with γ; without heterogeneity little else is left from the start",
        ),
    ):
        update = curve(experiment, method, "own", value)
        yield CLAIM.shape(
            f"fig1.{experiment}.{method}.{name}",
            f"{where}: {words} decays (Section 6, Figure 1).",
            (level(update) < early_level(update)).note(_TENTHS, decay(update)),
            note=note,
        )


def _naive(reading: str) -> Iterator[Claim]:
    artefact, name = "fig1" if reading == "own" else "fig1_common", "synthetic_heterogeneous"
    naive = curve(name, NAIVE, reading)
    ratio = last(naive) / lowest(naive)
    yield CLAIM.shape(
        f"fig1.{name}.diverges",
        "Synthetic, heterogeneous: with parameter aggregation the objective diverges (Section 6, Figure 1).",
        (ratio > 1.02).note(
            "β = {1:g}: last over lowest objective {0.mean:.4g} on average, {0.max:.4g} at most",
            ratio,
            step(name, NAIVE, reading),
        ),
        artefact=artefact,
        reading=reading,
        because="diverging is ending 2 % above the lowest objective of the run",
        note="a range of steps that ends above the best one would have it diverge here too"
        if reading == "own"
        else "the step is FedMM's best, and far above the naive method's",
    )


def _naive_updates(reading: str) -> Iterator[Claim]:
    """What the paper says of the naive method's updates; ids without a reading are those of `own`."""
    claim = CLAIM if reading == "own" else CLAIM.given(artefact="fig1_common", reading=reading)
    for experiment in SYNTHETIC:
        where = EXPERIMENTS[experiment]
        ours, naive = (decay(curve(experiment, one, reading, "parameter_update")) for one in BOTH)
        yield claim.given(unit="e-folds").order(
            f"fig1.{experiment}.naive_faster",
            f"{where}: the naive method's parameter update decays faster than FedMM's (Section 6, Figure 1).",
            log(ours) - log(naive),
        )
        update = curve(experiment, NAIVE, reading, "surrogate_update")
        yield claim.shape(
            f"fig1.{experiment}.naive_surrogate",
            f"{where}: the naive method's surrogate update diverges (Section 6, Figure 1).",
            (level(update) >= early_level(update)).note(_TENTHS, decay(update)),
            because="diverging is ending no lower than it began, by tenths of the run",
        )
    yield claim.shape(
        "fig1.movielens.overtaken",
        "MovieLens: FedMM's parameter update is lower at first and is overtaken by the naive method's "
        "(Section 6, Figure 1).",
        measures.overtaken(*(curve("movielens", one, reading, "parameter_update") for one in BOTH)),
    )
    ours, naive = (
        measures.unsteadiness(curve("movielens", one, reading, "surrogate_update")) for one in BOTH
    )
    yield claim.given(unit="e-folds").order(
        "fig1.movielens.unstable",
        "MovieLens: late in the run the naive method's surrogate update is less steady than FedMM's (Section "
        "6, Figure 1).",
        naive - ours,
    )


def _figure2() -> Iterator[Claim]:
    for experiment, alpha, share in itertools.product(FIGURE2, ALPHAS, SHARES):
        where = f"{EXPERIMENTS[experiment]}, {100 * share:.0f} % of the clients, α = {alpha:g}"
        name = f"fig2.{experiment.removeprefix('variates_')}.a{alpha:g}.p{share:g}".replace("0.", "")
        homogeneous = experiment == "variates_homogeneous"

        def pair(value: str, where: tuple[str, float, float] = (experiment, alpha, share)) -> list[Quantity]:
            """Curves with control variates and without."""
            return [variates(where[0], a, where[2], value) for a in (where[1], 0.0)]

        gap = measures.gap(*map(last, pair("objective")))
        yield CLAIM.shape(
            f"{name}.objective",
            f"{where}: control variates have no effect on the objective (Section 6, Figure 2).",
            (gap < 0.02).note("largest difference {0.max:.2g} %", percent(gap)),
            because="final objectives may differ by 2 %",
            note=""
            if homogeneous
            else "the objective is not convex: some seeds end in another of its minima",
        )
        if homogeneous:
            gap = measures.largest_gap(*pair("surrogate_update"))
            yield CLAIM.shape(
                f"{name}.cancel",
                f"{where}: control variates cancel and have no effect on the surrogate update (Section 6, "
                "Figure 2).",
                (gap < 0.01).note("largest relative difference {0.max:.2g}", gap),
                because="no recorded surrogate update may differ by 1 %",
                note="exact only where all clients take part, see the errata; the objectives agree closely",
            )
            continue
        for value, words in (("surrogate_update", "surrogate"), ("parameter_update", "parameter")):
            with_, without = (log(level(one)) for one in pair(value))
            yield E_FOLDS.order(
                f"{name}.{words}",
                f"{where}: control variates bring the {words} update to lower values (Section 6, Figure 2).",
                (without - with_).note(
                    lambda lower: f"with over without {np.exp(-lower.mean):.2g}", without - with_
                ),
                note="with few active clients control variates first enlarge the parameter's updates"
                if value == "parameter_update" and share < 0.5
                else "",
            )


def _identities() -> Iterator[Claim]:
    for reading in ("interval", "rate"):
        for method, words in (
            (FEDMM, "aggregating surrogates gives the solution in every round"),
            (NAIVE, "aggregating parameters gives a constant other than the solution"),
        ):
            yield CLAIM.identity(
                f"remark1.{method}",
                f"On the toy example, {words} (Remark 1).",
                measures.toy(run("remark1", method), settings("remark1"), reading, solved=method == FEDMM),
                reading=reading,
            )
    for experiment in ("em_poisson", "em_poisson_known_mean", "em_mixture"):
        em = curves(run(experiment, "sa_ssmm"), reading="exact")
        ours, federated = (
            curves(run(experiment, "fedmm"), reading=reading) for reading in ("exact", "federated")
        )
        gap = measures.largest_gap(ours, em)
        yield CLAIM.identity(
            f"em.{experiment}.exact",
            f"{EXPERIMENTS[experiment]}: with all clients and no compression FedMM is centralised MM, "
            "whatever α is (Sections 3.1 and 5).",
            (gap < 1e-10).note("largest relative difference {0.max:.2g}", gap),
        )
        left = (last(federated) - last(em)) / (first(em) - last(em))
        yield CLAIM.shape(
            f"em.{experiment}.federated",
            f"{EXPERIMENTS[experiment]}: with half of the clients, minibatches and quantisation FedMM "
            "reaches EM's solution up to noise (Theorem 1).",
            (left < 0.01).note("largest share {0.max:.2g}", left),
            because="1 % of EM's descent may be left",
        )
    yield CLAIM.identity(
        "prop5",
        "The server's control variate is the weighted mean of the clients' at all times (Proposition 5).",
        formula(measures.variates_add_up),
        artefact="em",
    )


def _figure3() -> Iterator[Claim]:
    for dim in (2, 4, 8):
        histories = [run(f"transport_{dim}", method) for method in ("fedmm_ot", "fedadam")]
        ours, adam = (last(curves(history, "uvp")) for history in histories)
        for reading, words, lower in (
            ("round", "rounds", log(adam / ours)),
            ("gradient", "gradients of a sample", measures.at_equal_gradients(*histories)),
        ):
            yield E_FOLDS.order(
                f"fig3.d{dim}.better",
                f"D = {dim}: FedMM-OT ends at a lower L2-UVP than FedAdam (Section 7.3, Figure "
                f"3), after equally many {words}.",
                lower,
                reading=f"per {reading}",
            )
        yield CLAIM.shape(
            f"fig3.d{dim}.significant",
            f"D = {dim}: FedMM-OT significantly outperforms FedAdam (Section 7.3, Figure 3).",
            (adam / ours > 1.5).note("ratio {0.mean:.3g} on average", adam / ours),
            because="significantly is taken as 1.5 times less L2-UVP after equally many rounds",
        )


def _with_what_seeds_share(claim: Claim) -> Claim:
    split = any("movielens" in key for key in claim.needs)
    return replace(claim, shared="one split") if split else claim


CLAIMS = tuple(
    _with_what_seeds_share(claim)
    for claim in (
        *(claim for experiment in FIGURE1 for claim in _figure1(experiment)),
        *(claim for part in (_naive, _naive_updates) for one in ("own", "common") for claim in part(one)),
        *_figure2(),
        *_figure3(),
        *_identities(),
    )
)
