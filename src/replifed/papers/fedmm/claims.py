"""The paper's checkable statements (Dieuleveut et al. 2025), each with its reading, tolerance and measure.

Readings. `own`: each method at its own best step, tuned on other repetitions in a range that grows until the
best lies inside. `common`: both at FedMM's. The text has lost its numbers, so there are no values to meet:
statements are orders and shapes, whose thresholds were fixed before any of this was run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from replifed.papers.fedmm import comparisons as runs
from replifed.papers.fedmm.paper import EXPERIMENTS
from replifed.papers.verdicts import Claim

SYNTHETIC = ("synthetic_homogeneous", "synthetic_heterogeneous")
FIGURE1 = (*SYNTHETIC, "movielens")
FIGURE2 = ("variates_homogeneous", "variates_heterogeneous", "variates_movielens")
BOTH = ("fedmm", "parameter_aggregation")
ALPHAS = (0.1, 0.5)
SHARES = (0.5, 0.1)


def claim(name: str, artefact: str, statement: str, kind: str, **more: Any) -> Claim:
    """A claim of this paper; its id is `name` with the reading."""
    suffix = re.sub(r"[^a-z0-9.]+", "-", more.get("reading", "")).strip("-")
    suffix = f".{suffix}" if suffix else ""
    if any("movielens" in key for key in more.get("needs", ())):
        more["shared"] = "one split"
    return Claim(
        id=f"fedmm.{name}{suffix}", paper="fedmm", artefact=artefact, statement=statement, kind=kind, **more
    )


def _needs(experiment: str, *methods: str, tuned: tuple[str, ...] = BOTH) -> tuple[str, ...]:
    chosen = tuple(f"tuned:{experiment}/{method}" for method in tuned)
    return tuple(f"run:{experiment}/{method}" for method in methods) + chosen


def _figure1() -> Iterator[Claim]:
    for experiment in FIGURE1:
        where = EXPERIMENTS[experiment]
        yield claim(
            f"fig1.{experiment}.monotone",
            "fig1",
            f"{where}: with FedMM the objective decays monotonically (Section 6, Figure 1).",
            "shape",
            tolerance_reason="the objective may rise by 1 % between windows of five records",
            needs=_needs(experiment, "fedmm"),
            measure=runs.monotone(experiment),
        )
        for reading in ("own", "common"):
            yield claim(
                f"fig1.{experiment}.better",
                "fig1" if reading == "own" else "fig1_common",
                f"{where}: FedMM ends at a lower objective than parameter aggregation (Section 6, Figure 1).",
                "order",
                unit="objective",
                reading=reading,
                needs=_needs(experiment, *BOTH),
                measure=runs.better(experiment, reading),
            )
        for method, value in itertools.product(BOTH, ("parameter_update",)):
            yield claim(
                f"fig1.{experiment}.{method}.parameter",
                "fig1",
                f"{where}: the parameter update of {'FedMM' if method == 'fedmm' else 'the naive method'} "
                "decays (Section 6, Figure 1).",
                "shape",
                needs=_needs(experiment, method),
                measure=runs.decays(experiment, method, value),
            )
        yield claim(
            f"fig1.{experiment}.fedmm.surrogate",
            "fig1",
            f"{where}: FedMM's surrogate update decays (Section 6, Figure 1).",
            "shape",
            needs=_needs(experiment, "fedmm"),
            measure=runs.decays(experiment, "fedmm", "surrogate_update"),
            note="an update over γ holds the noise of minibatches, cohorts and rounding, which does not "
            "shrink with γ; without heterogeneity little else is left from the start",
        )
    for reading in ("own", "common"):
        yield claim(
            "fig1.synthetic_heterogeneous.diverges",
            "fig1" if reading == "own" else "fig1_common",
            "Synthetic, heterogeneous: with parameter aggregation the objective diverges "
            "(Section 6, Figure 1).",
            "shape",
            reading=reading,
            tolerance_reason="diverging is ending 2 % above the lowest objective of the run",
            needs=_needs("synthetic_heterogeneous", "parameter_aggregation"),
            measure=runs.diverges("synthetic_heterogeneous", reading),
            note="a range of steps that ends above the best one would have it diverge here too"
            if reading == "own"
            else "the step is FedMM's best, and far above the naive method's",
        )
    for reading in ("own", "common"):
        yield from _naive_updates(reading)


def _naive_updates(reading: str) -> Iterator[Claim]:
    """What the paper says of the naive method's updates; ids without a reading are those of `own`."""
    artefact, read = ("fig1", "") if reading == "own" else ("fig1_common", reading)
    for experiment in SYNTHETIC:
        yield claim(
            f"fig1.{experiment}.naive_faster",
            artefact,
            f"{EXPERIMENTS[experiment]}: the naive method's parameter update decays faster than FedMM's "
            "(Section 6, Figure 1).",
            "order",
            unit="e-folds",
            reading=read,
            needs=_needs(experiment, *BOTH),
            measure=runs.naive_decays_faster(experiment, reading),
        )
        yield claim(
            f"fig1.{experiment}.naive_surrogate",
            artefact,
            f"{EXPERIMENTS[experiment]}: the naive method's surrogate update diverges (Section 6, Figure 1).",
            "shape",
            reading=read,
            tolerance_reason="diverging is ending no lower than it began, by tenths of the run",
            needs=_needs(experiment, "parameter_aggregation"),
            measure=runs.does_not_decay(experiment, "surrogate_update", reading),
        )
    yield claim(
        "fig1.movielens.overtaken",
        artefact,
        "MovieLens: FedMM's parameter update is lower at first and is overtaken by the naive method's "
        "(Section 6, Figure 1).",
        "shape",
        reading=read,
        needs=_needs("movielens", *BOTH),
        measure=runs.overtaken("movielens", reading),
    )
    yield claim(
        "fig1.movielens.unstable",
        artefact,
        "MovieLens: late in the run the naive method's surrogate update is less steady than FedMM's (Section "
        "6, Figure 1).",
        "order",
        unit="e-folds",
        reading=read,
        needs=_needs("movielens", *BOTH),
        measure=runs.unstable("movielens", reading),
    )


def _figure2() -> Iterator[Claim]:
    for experiment, alpha, share in itertools.product(FIGURE2, ALPHAS, SHARES):
        where = f"{EXPERIMENTS[experiment]}, {100 * share:.0f} % of the clients, α = {alpha:g}"
        name = f"fig2.{experiment.removeprefix('variates_')}.a{alpha:g}.p{share:g}".replace("0.", "")
        needs = _needs(experiment, "fedmm", tuned=())
        yield claim(
            f"{name}.objective",
            "fig2",
            f"{where}: control variates have no effect on the objective (Section 6, Figure 2).",
            "shape",
            tolerance_reason="final objectives may differ by 2 %",
            needs=needs,
            measure=runs.same_objective(experiment, alpha, share),
            note=""
            if experiment == "variates_homogeneous"
            else "the objective is not convex: some seeds end in another of its minima",
        )
        if experiment == "variates_homogeneous":
            yield claim(
                f"{name}.cancel",
                "fig2",
                f"{where}: control variates cancel and have no effect on the surrogate update (Section 6, "
                "Figure 2).",
                "shape",
                tolerance_reason="no recorded surrogate update may differ by 1 %",
                needs=needs,
                measure=runs.no_effect(experiment, alpha, share),
                note="exact only where all clients take part, see the errata; the objectives agree closely",
            )
            continue
        for value, words in (("surrogate_update", "surrogate"), ("parameter_update", "parameter")):
            yield claim(
                f"{name}.{words}",
                "fig2",
                f"{where}: control variates bring the {words} update to lower values (Section 6, Figure 2).",
                "order",
                unit="e-folds",
                needs=needs,
                measure=runs.lower_updates(experiment, alpha, share, value),
                note="with few active clients control variates first enlarge the parameter's updates"
                if value == "parameter_update" and share < 0.5
                else "",
            )


def _identities() -> Iterator[Claim]:
    for reading in ("interval", "rate"):
        for method, words in (
            ("fedmm", "aggregating surrogates gives the solution in every round"),
            ("parameter_aggregation", "aggregating parameters gives a constant other than the solution"),
        ):
            yield claim(
                f"remark1.{method}",
                "remark1",
                f"On the toy example, {words} (Remark 1).",
                "identity",
                reading=reading,
                needs=(f"run:remark1/{method}",),
                measure=runs.toy(reading, method),
            )
    for experiment in ("em_poisson", "em_poisson_known_mean", "em_mixture"):
        needs = (f"run:{experiment}/sa_ssmm", f"run:{experiment}/fedmm")
        yield claim(
            f"em.{experiment}.exact",
            "em",
            f"{EXPERIMENTS[experiment]}: with all clients and no compression FedMM is "
            "centralised MM, whatever "
            "α is (Sections 3.1 and 5).",
            "identity",
            needs=needs,
            measure=runs.is_em(experiment),
        )
        yield claim(
            f"em.{experiment}.federated",
            "em",
            f"{EXPERIMENTS[experiment]}: with half of the clients, minibatches and quantisation "
            "FedMM reaches "
            "EM's solution up to noise (Theorem 1).",
            "shape",
            tolerance_reason="1 % of EM's descent may be left",
            needs=needs,
            measure=runs.near_em(experiment),
        )
    yield claim(
        "prop5",
        "em",
        "The server's control variate is the weighted mean of the clients' at all times (Proposition 5).",
        "identity",
        measure=runs.variates_add_up,
    )


def _figure3() -> Iterator[Claim]:
    for dim in (2, 4, 8):
        experiment = f"transport_{dim}"
        needs = tuple(f"run:{experiment}/{method}" for method in ("fedmm_ot", "fedadam"))
        for reading in ("round", "gradient"):
            yield claim(
                f"fig3.d{dim}.better",
                "fig3",
                f"D = {dim}: FedMM-OT ends at a lower L2-UVP than FedAdam (Section 7.3, Figure "
                "3), after equally "
                f"many {'rounds' if reading == 'round' else 'gradients of a sample'}.",
                "order",
                unit="e-folds",
                reading=f"per {reading}",
                needs=needs,
                measure=runs.beats_fedadam(experiment, reading),
            )
        yield claim(
            f"fig3.d{dim}.significant",
            "fig3",
            f"D = {dim}: FedMM-OT significantly outperforms FedAdam (Section 7.3, Figure 3).",
            "shape",
            tolerance_reason="significantly is taken as 1.5 times less L2-UVP after equally many rounds",
            needs=needs,
            measure=runs.uvp_ratio(experiment),
        )


CLAIMS = (*_figure1(), *_figure2(), *_figure3(), *_identities())
