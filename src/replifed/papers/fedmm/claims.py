"""The paper's checkable statements (Dieuleveut et al. 2025), each with its reading, tolerance and quantity.

Readings. `own`: each method at its own best step, tuned on other repetitions in a range that grows until the
best lies inside. `common`: both at FedMM's. The text has lost its numbers, so there are no values to meet:
statements are orders and shapes, whose thresholds were fixed before any of this was run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from replifed.algorithms.fedmm import FedMM
from replifed.claims.curves import Curves, curves, early_level, first, last, level, lowest, roughness
from replifed.claims.quantities import Quantity, formula, quantity, run, settings, tuned
from replifed.claims.samples import Sample, paired
from replifed.claims.statements import Statements
from replifed.claims.verdicts import Claim, Measured, NotMeasurableError
from replifed.network.participation import FixedSize, Independent
from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.fedmm.paper import EXPERIMENTS
from replifed.papers.fedmm.problems import TOYS, em_problem
from replifed.randomness import Streams
from replifed.simulate import simulate

SYNTHETIC = ("synthetic_homogeneous", "synthetic_heterogeneous")
FEDMM, NAIVE = BOTH = ("fedmm", "parameter_aggregation")
_TENTHS = "last over first tenth {0.mean:.3g} on average"

READINGS = dict.fromkeys(("", "own", "common", "per round", "per gradient", *TOYS), "chosen")
CLAIM = Statements("fedmm", READINGS)
AT_STEP = {
    "own": CLAIM.given(artefact="fig1", reading="own"),
    "common": CLAIM.given(artefact="fig1_common", reading="common"),
}


# --- Quantities ----------------------------------------------------------------------------------


def step(experiment: str, method: str, reading: str) -> Quantity:
    """The step at which a method is read: its own, or FedMM's."""
    return quantity(tuned_betas)(tuned(experiment, method))[reading]


def curve(experiment: str, method: str, reading: str, value: str = "objective") -> Quantity:
    """Curves at that step."""
    return columns(run(experiment, method), value, beta=step(experiment, method, reading))


@quantity
def columns(history: pd.DataFrame, value: str, **where: Any) -> Curves:
    """Curves of a column; updates are of the round behind them, so that round 0 has none."""
    one = curves(history, value, **where)
    if value == "objective":
        return one
    return one._replace(rounds=one.rounds[1:], values=one.values[:, 1:])


def decay(one: Quantity) -> Quantity:
    """Last over first tenth of a curve."""
    return level(one) / early_level(one)


@quantity
def largest_rise(one: Curves) -> Sample:
    """Largest relative rise from one window of five records to the next."""
    width = min(5, len(one.rounds) - 1)
    smooth = np.apply_along_axis(np.convolve, 1, one.values, np.full(width, 1 / width), "valid")
    return one.sample((smooth[:, 1:] / smooth[:, :-1] - 1).max(axis=1))


@quantity
def finite(difference: Sample) -> Sample:
    """The same, refused where a run diverged."""
    if not np.isfinite(difference.values).all():
        raise NotMeasurableError("a run diverged beyond all numbers")
    return difference


@quantity
def overtaken(ours: Curves, naive: Curves) -> Measured:
    """Whether ours is lower in the first fifth of the rounds and higher at the end."""
    ours, naive = paired(ours, naive)
    early = early_level(ours, 0.2) < early_level(naive, 0.2)
    late = level(ours) > level(naive)
    note = f"early {early.values.sum()}, late {late.values.sum()} of {len(ours.seeds)}"
    return (early & late).measured(note=note)


@quantity
def unsteadiness(one: Curves) -> Sample:
    """Spread of the logarithm around its trend in the last third of the run."""
    return roughness(one._replace(values=np.log(one.values)), max(len(one.rounds) // 3, 4))


@quantity
def largest_gap(one: Curves, two: Curves) -> Sample:
    """Largest relative difference of two curves in any recorded round."""
    return one.sample(np.abs(one.values / two.values - 1).max(axis=1))


@quantity
def at_equal_gradients(ours: pd.DataFrame, adam: pd.DataFrame) -> Measured:
    """log of the L2-UVP, FedAdam minus FedMM-OT, after equally many sample gradients."""
    pair = paired(curves(ours, "uvp"), curves(adam, "uvp"))
    work = [frame.groupby("round")["sample_gradients"].mean().to_numpy() for frame in (ours, adam)]
    # The last record of each that has used no more than both have.
    most = min(used[-1] for used in work)
    i, j = (int(np.searchsorted(used, most, side="right")) - 1 for used in work)
    ratio = pair[1].sample(pair[1].values[:, j]) / pair[0].sample(pair[0].values[:, i])
    note = f"FedMM-OT after {pair[0].rounds[i]} rounds, FedAdam after {pair[1].rounds[j]}"
    return np.log(ratio).measured(note=note)


@quantity
def toy(history: pd.DataFrame, settings: dict[str, Any], reading: str, *, solved: bool) -> Measured:
    """Rounds from the first on at which the toy's solution is met, or missed by 5 %, always the same way."""
    solution = float(TOYS[reading].T(np.array([np.mean(settings["values"][reading])]))[0])
    theta = history[(history["reading"] == reading) & (history["round"] > 0)]["theta"].to_numpy()
    error = np.abs(theta - solution)
    holds = error < 1e-14 if solved else (error > 0.05) & (np.ptp(theta) < 1e-14)
    return Measured(holds, note=f"error {error.max():.3g}")


def variates_add_up() -> Measured:
    """|V - sum_i mu_i V_i| stays at rounding over rounds with cohorts, minibatches and quantisation."""
    problem = em_problem({"seed": 1, "model": "poisson", "clients": 8, "samples": 80, "lam": 0.1}, 1)
    gaps = []
    for cohort, p in ((None, None), (FixedSize(3), None), (Independent(0.4), 0.4)):
        algorithm = FedMM(beta=0.5, alpha=0.2, bits=6, batch=4, participation=p)
        state = simulate(algorithm, problem, Streams(1, (1, 2)), 20, cohort=cohort).state
        gaps.append(np.abs((problem.weights[..., None] * state.V_i).sum(axis=1) - state.V).max())
    return Measured(np.array(gaps) < 1e-12, note=f"largest gap {max(gaps):.2g}")


# --- Claims --------------------------------------------------------------------------------------


def _figure1(experiment: str) -> Iterator[Claim]:
    where = EXPERIMENTS[experiment]
    rise = largest_rise(curve(experiment, FEDMM, "own"))
    yield CLAIM.shape(
        f"fig1.{experiment}.monotone",
        f"{where}: with FedMM the objective decays monotonically (Section 6, Figure 1).",
        (rise <= 0.01).note("largest rise {0.max:.2g} %", 100 * rise),
        because="the objective may rise by 1 % between windows of five records",
    )
    for reading, claim in AT_STEP.items():
        naive, ours = last(curve(experiment, NAIVE, reading)), last(curve(experiment, FEDMM, "own"))
        betas = (step(experiment, FEDMM, "own"), step(experiment, NAIVE, reading))
        yield claim.order(
            f"fig1.{experiment}.better",
            f"{where}: FedMM ends at a lower objective than parameter aggregation (Section 6, Figure 1).",
            finite(naive / ours - 1).note("FedMM at β = {0:g}, the naive method at {1:g}", *betas),
            unit="share",
        )
    for method, value, words in (
        (FEDMM, "parameter", "the parameter update of FedMM"),
        (NAIVE, "parameter", "the parameter update of the naive method"),
        (FEDMM, "surrogate", "FedMM's surrogate update"),
    ):
        update = curve(experiment, method, "own", f"{value}_update")
        yield CLAIM.shape(
            f"fig1.{experiment}.{method}.{value}",
            f"{where}: {words} decays (Section 6, Figure 1).",
            (level(update) < early_level(update)).note(_TENTHS, decay(update)),
            note="an update over γ holds the noise of minibatches, cohorts and rounding, which does not "
            "shrink with γ; without heterogeneity little else is left from the start"
            if value == "surrogate"
            else "",
        )


def _naive(reading: str) -> Iterator[Claim]:
    name = "synthetic_heterogeneous"
    ratio = last(curve(name, NAIVE, reading)) / lowest(curve(name, NAIVE, reading))
    yield AT_STEP[reading].shape(
        f"fig1.{name}.diverges",
        "Synthetic, heterogeneous: with parameter aggregation the objective diverges (Section 6, Figure 1).",
        (ratio > 1.02).note(
            "β = {1:g}: last over lowest objective {0.mean:.4g} on average, {0.max:.4g} at most",
            ratio,
            step(name, NAIVE, reading),
        ),
        because="diverging is ending 2 % above the lowest objective of the run",
        note="a range of steps that ends above the best one would have it diverge here too"
        if reading == "own"
        else "the step is FedMM's best, and far above the naive method's",
    )


def _naive_updates(reading: str) -> Iterator[Claim]:
    """What the paper says of the naive method's updates; ids without a reading are those of `own`."""
    claim = CLAIM if reading == "own" else AT_STEP[reading]
    for experiment in SYNTHETIC:
        where = EXPERIMENTS[experiment]
        ours, naive = (decay(curve(experiment, one, reading, "parameter_update")) for one in BOTH)
        yield claim.order(
            f"fig1.{experiment}.naive_faster",
            f"{where}: the naive method's parameter update decays faster than FedMM's (Section 6, Figure 1).",
            np.log(ours) - np.log(naive),
            unit="e-folds",
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
        overtaken(*(curve("movielens", one, reading, "parameter_update") for one in BOTH)),
    )
    ours, naive = (unsteadiness(curve("movielens", one, reading, "surrogate_update")) for one in BOTH)
    yield claim.order(
        "fig1.movielens.unstable",
        "MovieLens: late in the run the naive method's surrogate update is less steady than FedMM's (Section "
        "6, Figure 1).",
        naive - ours,
        unit="e-folds",
    )


def _figure2(experiment: str, alpha: float, share: float) -> Iterator[Claim]:
    where = f"{EXPERIMENTS[experiment]}, {100 * share:.0f} % of the clients, α = {alpha:g}"
    name = f"fig2.{experiment.removeprefix('variates_')}.a{alpha:g}.p{share:g}".replace("0.", "")
    homogeneous = experiment == "variates_homogeneous"

    def pair(value: str) -> list[Quantity]:
        """Curves with control variates and without."""
        return [
            columns(run(experiment, FEDMM), value, alpha=one, participation=share) for one in (alpha, 0.0)
        ]

    with_, without = map(last, pair("objective"))
    gap = abs(with_ / without - 1)
    yield CLAIM.shape(
        f"{name}.objective",
        f"{where}: control variates have no effect on the objective (Section 6, Figure 2).",
        (gap < 0.02).note("largest difference {0.max:.2g} %", 100 * gap),
        because="final objectives may differ by 2 %",
        note="" if homogeneous else "the objective is not convex: some seeds end in another of its minima",
    )
    if homogeneous:
        gap = largest_gap(*pair("surrogate_update"))
        yield CLAIM.shape(
            f"{name}.cancel",
            f"{where}: control variates cancel and have no effect on the surrogate update (Section 6, "
            "Figure 2).",
            (gap < 0.01).note("largest relative difference {0.max:.2g}", gap),
            because="no recorded surrogate update may differ by 1 %",
            note="exact only where all clients take part, see the errata; the objectives agree closely",
        )
        return
    for words in ("surrogate", "parameter"):
        with_, without = (np.log(level(one)) for one in pair(f"{words}_update"))
        yield CLAIM.order(
            f"{name}.{words}",
            f"{where}: control variates bring the {words} update to lower values (Section 6, Figure 2).",
            (without - with_).note(
                lambda lower: f"with over without {np.exp(-lower.mean):.2g}", without - with_
            ),
            unit="e-folds",
            note="with few active clients control variates first enlarge the parameter's updates"
            if words == "parameter" and share < 0.5
            else "",
        )


def _figure3(dim: int) -> Iterator[Claim]:
    histories = [run(f"transport_{dim}", method) for method in ("fedmm_ot", "fedadam")]
    ours, adam = (last(curves(history, "uvp")) for history in histories)
    for reading, words, lower in (
        ("round", "rounds", np.log(adam / ours)),
        ("gradient", "gradients of a sample", at_equal_gradients(*histories)),
    ):
        yield CLAIM.order(
            f"fig3.d{dim}.better",
            f"D = {dim}: FedMM-OT ends at a lower L2-UVP than FedAdam (Section 7.3, Figure "
            f"3), after equally many {words}.",
            lower,
            reading=f"per {reading}",
            unit="e-folds",
        )
    yield CLAIM.shape(
        f"fig3.d{dim}.significant",
        f"D = {dim}: FedMM-OT significantly outperforms FedAdam (Section 7.3, Figure 3).",
        (adam / ours > 1.5).note("ratio {0.mean:.3g} on average", adam / ours),
        because="significantly is taken as 1.5 times less L2-UVP after equally many rounds",
    )


def _identities() -> Iterator[Claim]:
    for reading in TOYS:
        for method, words in (
            (FEDMM, "aggregating surrogates gives the solution in every round"),
            (NAIVE, "aggregating parameters gives a constant other than the solution"),
        ):
            yield CLAIM.identity(
                f"remark1.{method}",
                f"On the toy example, {words} (Remark 1).",
                toy(run("remark1", method), settings("remark1"), reading, solved=method == FEDMM),
                reading=reading,
            )
    for experiment in ("em_poisson", "em_poisson_known_mean", "em_mixture"):
        em = curves(run(experiment, "sa_ssmm"), reading="exact")
        ours, federated = (curves(run(experiment, FEDMM), reading=one) for one in ("exact", "federated"))
        gap = largest_gap(ours, em)
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
        formula(variates_add_up),
        artefact="em",
    )


_DATA = ("homogeneous", "heterogeneous", "movielens")
_ALL = (
    *(claim for experiment in (*SYNTHETIC, "movielens") for claim in _figure1(experiment)),
    *(claim for part in (_naive, _naive_updates) for reading in AT_STEP for claim in part(reading)),
    *(
        claim
        for data, alpha, share in itertools.product(_DATA, (0.1, 0.5), (0.5, 0.1))
        for claim in _figure2(f"variates_{data}", alpha, share)
    ),
    *(claim for dim in (2, 4, 8) for claim in _figure3(dim)),
    *_identities(),
)
# All seeds share MovieLens' users and clients.
CLAIMS = tuple(
    replace(claim, shared="one split" if any("movielens" in key for key in claim.needs) else "")
    for claim in _ALL
)
