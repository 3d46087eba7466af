"""The paper's checkable statements (Jeong, Needell, Qin 2023), each with its reading, tolerance and measure.

Figures 3 to 5 put FedGradMP with exact sub-problems (as Algorithm 1 has it; Figure 5 with gradient descent,
as the text says) against each baseline at its best step, the weight of the 1-norm as printed. On digits
each tau is a reading, as the paper states none; all methods are at their best steps, or, in the readings
`printed`, at the best of the printed grid. Tolerances were fixed before any of this was run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from replifed.papers.fedgradmp import comparisons as runs
from replifed.papers.fedgradmp import theory
from replifed.papers.fedgradmp.paper import EXPERIMENTS, LINES, METHODS, READINGS
from replifed.papers.verdicts import Claim

BASELINES = (("fediterht", ""), ("fedmid", "0.03125"), ("feddualavg", "0.03125"), ("fedavg", ""))
ALPHAS = (0.0, 0.5, 1.0, 2.5)
NOISES = {0.0: "noiseless", 4e-6: "noisy"}
TAUS = (500, 1000, 2000, 4000)
GAUSSIAN_TAUS = (500, 1000, 2000)
# Readings of the step size on digits, and what a statement says of them.
STEPS = {"own": "", "printed": "with the printed steps "}
LARGE, SMALL = (0.004, 0.01, 0.02), (0.0001, 0.0005, 0.001, 0.002)
_LINEAR = "errors fall from round to round by random supports; four seeds of five must fit"


def claim(name: str, artefact: str, statement: str, kind: str, **more: Any) -> Claim:
    """A claim of this paper; its id is `name` with the reading."""
    # "tau 500, printed" -> ".tau-500.printed"
    parts = more.get("reading", "").lower().split(", ")
    suffix = "".join(f".{re.sub(r'[^a-z0-9.]+', '-', part).strip('-')}" for part in parts if part)
    return Claim(
        id=f"fedgradmp.{name}{suffix}",
        paper="fedgradmp",
        artefact=artefact,
        statement=statement,
        kind=kind,
        **more,
    )


def _ran(experiments: tuple[str, ...], methods: tuple[str, ...] = ("fedgradmp",)) -> tuple[str, ...]:
    return tuple(f"run:{experiment}/{method}" for experiment in experiments for method in methods)


def _table1() -> Iterator[Claim]:
    for method in ("fedavg", "feddualavg", "fediterht", "fedgradmp"):
        yield claim(
            f"table1.{method}",
            "table1",
            f"Table I, line of {METHODS[method]}: its four cells.",
            "identity",
            measure=theory.table_row(method),
            note="convergence and dissimilarity are as the authors' theorems state them",
        )


def _figure1() -> Iterator[Claim]:
    needs = _ran(("heterogeneity",))
    for alpha, (noise, name) in itertools.product(ALPHAS, NOISES.items()):
        yield claim(
            f"fig1.linear.{name}.{alpha:g}".replace(".", "-").replace("fig1-linear-", "fig1.linear."),
            "fig1",
            f"FedGradMP converges linearly at alpha = {alpha:g}, {name}: the logarithm of the error is a "
            "straight line down to its floor, R^2 >= 0.9 (Section V-A, Figure 1).",
            "shape",
            tolerance=0.8,
            tolerance_reason=_LINEAR,
            needs=needs,
            note="where the line fits badly, the descent speeds up: it is faster than linear",
            measure=runs.linear(
                "heterogeneity", 0.9, 1e-13 if noise == 0 else 5e-3, alpha=alpha, noise=noise
            ),
        )
    for noise, name in NOISES.items():
        yield claim(
            f"fig1.slower.{name}",
            "fig1",
            f"Higher heterogeneity, slower convergence, {name}: alpha = 2.5 needs more rounds to an error of "
            "0.01 than alpha = 0 (Figure 1).",
            "order",
            unit="rounds",
            needs=needs,
            measure=runs.needs_more_rounds(
                "heterogeneity",
                "fedgradmp",
                0.01,
                {"alpha": 2.5, "noise": noise},
                {"alpha": 0.0, "noise": noise},
            ),
        )
        yield claim(
            f"fig1.monotone.{name}",
            "fig1",
            f"The rounds to an error of 0.01 do not fall as alpha grows through 0, 0.5, 1, 2.5, {name} "
            "(Figure 1).",
            "shape",
            needs=needs,
            measure=runs.rounds_grow("heterogeneity", "fedgradmp", 0.01, "alpha", list(ALPHAS), noise=noise),
        )


def _figure2() -> Iterator[Claim]:
    for experiment in ("video", "video_drawn"):
        yield claim(
            f"fig2.{experiment.replace('_', '-')}",
            "fig2",
            f"The recovered frame is reasonably satisfactory ({EXPERIMENTS[experiment]}): within 3 dB of the "
            "best approximation by as many atoms (Section V-A, Figure 2).",
            "shape",
            needs=_ran((experiment,)),
            measure=runs.recovered(experiment, 3.0),
            note="the paper gives no number; 3 dB was chosen beforehand",
        )


def _comparisons() -> Iterator[Claim]:
    for artefact, experiment, variant in (
        ("fig3", "mild", "exact"),
        ("fig4", "strong", "exact"),
        ("fig5", "dense", "gd"),
    ):
        best = ("fedgradmp", variant)
        where = EXPERIMENTS[experiment]
        for other in BASELINES:
            needs = _ran((experiment,), ("fedgradmp", other[0]))
            name = METHODS[other[0]]
            yield claim(
                f"{artefact}.{other[0]}.rounds",
                artefact,
                f"{where}: FedGradMP converges faster than {name} in rounds; its error after 5 is smaller "
                "(Section V-B).",
                "order",
                unit="decades",
                needs=needs,
                measure=runs.lower_after(experiment, best, other, 5),
            )
            yield claim(
                f"{artefact}.{other[0]}.work",
                artefact,
                f"{where}: FedGradMP converges faster than {name} in computation; its error after 5 rounds "
                "is smaller than the other's at equal work (Section V-B).",
                "order",
                unit="decades",
                reading="counted work",
                needs=needs,
                measure=runs.lower_at_work(experiment, best, other, 5),
            )
            yield claim(
                f"{artefact}.{other[0]}.residual",
                artefact,
                f"{where}: FedGradMP has a smaller residual error than {name} at the end (Section V-B).",
                "order",
                unit="decades",
                needs=needs,
                measure=runs.lower_after(experiment, best, other, None),
            )
        tau = 400 if experiment == "dense" else 15
        yield claim(
            f"{artefact}.sparse",
            artefact,
            f"{where}: no model that FedGradMP's server sends has more than {tau} non-zeros (Algorithm 1).",
            "identity",
            published=float(tau),
            needs=_ran((experiment,)),
            measure=runs.sparse(experiment, "fedgradmp", tau),
        )
    for other in BASELINES[:3]:
        yield claim(
            f"fig3.slowest.{other[0]}",
            "fig3",
            f"FedAvg is the slowest of all: its final error is larger than {METHODS[other[0]]}'s "
            "(Section V-B).",
            "order",
            unit="decades",
            needs=_ran(("mild",), ("fedavg", other[0])),
            measure=runs.lower_after("mild", other, ("fedavg", ""), None),
        )
    yield claim(
        "fig3.fediterht.linear",
        "fig3",
        "FedIterHT converges linearly: the logarithm of its error is a straight line, R^2 >= 0.9, down to "
        "twice what it ends at (Section V-B).",
        "shape",
        needs=_ran(("mild",), ("fediterht",)),
        measure=runs.linear_to_its_end("mild", "fediterht", 0.9, variant=""),
    )
    for other in BASELINES[1:3]:
        yield claim(
            f"fig3.{other[0]}.converges",
            "fig3",
            f"{METHODS[other[0]]} converges too: its final error is below that of the start (Section V-B).",
            "order",
            unit="decades",
            needs=_ran(("mild",), (other[0],)),
            measure=runs.falls("mild", other[0], variant=other[1]),
        )
    yield claim(
        "fig3.fedavg.dense",
        "fig3",
        "FedAvg does not produce a sparse solution (Section V-B).",
        "identity",
        needs=_ran(("mild",), ("fedavg",)),
        measure=runs.not_sparse("mild", "fedavg", 15),
    )
    yield claim(
        "fig3.bias",
        "fig3",
        "FedGradMP's residual is the optimal statistical bias (Remark 4): exact sub-problems leave no more "
        "than inexact ones.",
        "order",
        unit="decades",
        needs=_ran(("mild",)),
        measure=runs.lower_after("mild", ("fedgradmp", "exact"), ("fedgradmp", "gd"), None),
    )
    best = ("fedgradmp", "exact")
    yield claim(
        "fig4.holds",
        "fig4",
        "FedGradMP still performs well in the highly heterogeneous environment: its final error is at most "
        "twice that of Figure 3 (Section V-B).",
        "shape",
        needs=_ran(("mild", "strong")),
        measure=runs.still_works("mild", "strong", best, 2.0),
        note="twice was chosen beforehand",
    )
    for other in BASELINES:
        yield claim(
            f"fig4.{other[0]}.degrades",
            "fig4",
            f"{METHODS[other[0]]} degrades more than FedGradMP from Figure 3 to Figure 4 (Section V-B).",
            "order",
            unit="decades",
            needs=_ran(("mild", "strong"), ("fedgradmp", other[0])),
            measure=runs.degrades_more("mild", "strong", best, other),
        )


def _digits() -> Iterator[Claim]:
    panels = {"train_accuracy": "training", "test_accuracy": "test"}
    for tau, (value, name), (step, text) in itertools.product(TAUS, panels.items(), STEPS.items()):
        best = ("digits", "fedgradmp", str(tau))
        for other in ("fediterht", "fedmid", "feddualavg", "fedavg"):
            variant = {"fediterht": str(tau), "fedavg": ""}.get(other, "0.0001")
            needs = _ran(("digits",), ("fedgradmp", other))
            yield claim(
                f"fig6.{other}.{name}",
                "fig6",
                f"FedGradMP is more accurate than {METHODS[other]} on the {name} digits after all rounds "
                f"{text}(Section V-B, Figure 6).",
                "order",
                unit="share",
                reading=_reading(tau, step),
                needs=needs,
                measure=runs.more_accurate(value, best, ("digits", other, variant), step),
            )
        yield claim(
            f"fig6-bits.fedavg.{name}",
            "fig6_bits",
            f"Sparse models save communication: FedGradMP is more accurate on the {name} digits than FedAvg "
            f"at equal bits {text}(Section I).",
            "order",
            unit="share",
            reading=_reading(tau, step),
            needs=_ran(("digits",), ("fedgradmp", "fedavg")),
            measure=runs.more_accurate(value, best, ("digits", "fedavg", ""), step, at_bits=True),
        )
    for tau, (step, text) in itertools.product(GAUSSIAN_TAUS, STEPS.items()):
        yield claim(
            "fig7",
            "fig7",
            "FedGradMP with a random Gaussian dictionary is more accurate on the training digits than with "
            f"the standard basis {text}(Section V-B, Figure 7).",
            "order",
            unit="share",
            reading=_reading(tau, step),
            needs=_ran(("digits", "digits_gaussian")),
            measure=runs.more_accurate(
                "train_accuracy",
                ("digits_gaussian", "fedgradmp", str(tau)),
                ("digits", "fedgradmp", str(tau)),
                step,
            ),
        )


def _reading(tau: int, step: str) -> str:
    return f"tau {tau}" if step == "own" else f"tau {tau}, {step}"


def _figures8_9() -> Iterator[Claim]:
    needs = _ran(("learning_rates",), ("fediterht",))
    for reading, text in READINGS.items():
        yield claim(
            "fig8.diverges",
            "fig8",
            f"FedIterHT quickly diverges at learning rates 0.004, 0.01 and 0.02 ({text}; Section V-C).",
            "shape",
            reading=reading,
            needs=needs,
            measure=runs.steps_diverge(reading, list(LARGE)),
        )
        yield claim(
            "fig8.stalls",
            "fig8",
            f"FedIterHT ends highly suboptimal at learning rates up to 0.002: the relative error stays above "
            f"one half ({text}; Section V-C).",
            "shape",
            reading=reading,
            needs=needs,
            measure=runs.steps_stall(reading, list(SMALL), 0.5),
        )
    yield claim(
        "fig9.precision",
        "fig9",
        "FedGradMP comes to machine precision (1e-14) within four rounds with K = 3, on every seed "
        "(Section V-C, Figure 9).",
        "shape",
        needs=_ran(("exact",)),
        measure=runs.machine_precision("exact", 4),
    )
    yield claim(
        "fig9.rounds",
        "fig9",
        "It takes four rounds (Section V-C, Figure 9).",
        "value",
        unit="rounds",
        published=4.0,
        tolerance=1.0,
        tolerance_reason="one round, the resolution of a figure that shows one run",
        needs=_ran(("exact",)),
        measure=runs.rounds_to_precision("exact"),
    )


def _figures10_11() -> Iterator[Claim]:
    steps = [3, 6, 9, 12, 15]
    needs = _ran(("local_iterations",))
    for noise, name in NOISES.items():
        yield claim(
            f"fig10.rate.{name}",
            "fig10",
            f"More local iterations, faster convergence, {name}: the error after the first round is smaller "
            "at K = 15 than at K = 3 (Section V-D).",
            "order",
            unit="decades",
            needs=needs,
            measure=runs.early_error_falls("local_steps", "local_iterations", 3, 15, noise, 1),
        )
        yield claim(
            f"fig10.monotone.{name}",
            "fig10",
            f"The error after the first round falls from each K to the next, {name} (Section V-D).",
            "shape",
            needs=needs,
            measure=runs.early_error_monotone("local_steps", "local_iterations", steps, noise, 1),
        )
    yield claim(
        "fig10.residual",
        "fig10",
        "Increasing the local iterations decreases the residual: it is smaller at K = 15 than at K = 3 "
        "(Section V-D).",
        "order",
        unit="decades",
        needs=needs,
        measure=runs.floors_differ("local_steps", "local_iterations", 3, 15, 4e-6),
    )
    yield claim(
        "fig10.residual.small",
        "fig10",
        "The effect on the residual is not as noticeable: residuals differ by no more than a factor of two "
        "(Section V-D).",
        "shape",
        needs=needs,
        measure=runs.floors_alike("local_steps", "local_iterations", steps, 4e-6, 2.0),
        note="two was chosen beforehand",
    )
    for experiment, after in (("cohorts", 3), ("cohorts_small", 1)):
        reading = EXPERIMENTS[experiment]
        needs = _ran((experiment,))
        for noise, name in NOISES.items():
            yield claim(
                f"fig11.rate.{name}",
                "fig11",
                f"Larger cohorts, faster convergence, {name}: the error after {after} rounds is smaller with "
                "30 clients than with 10 (Section V-E).",
                "order",
                unit="decades",
                reading=reading,
                needs=needs,
                measure=runs.early_error_falls("cohort", experiment, 10, 30, noise, after),
            )
        yield claim(
            "fig11.precision",
            "fig11",
            "The noiseless residuals decay to machine precision with every cohort (Figure 11).",
            "shape",
            reading=reading,
            needs=needs,
            measure=runs.machine_precision_all(experiment, "cohort", [10, 15, 20, 25, 30]),
        )
        yield claim(
            "fig11.residual",
            "fig11",
            "The noisy residual slightly increases with the cohort: it is larger with 30 clients than with "
            "10 (Section V-E).",
            "order",
            unit="decades",
            reading=reading,
            needs=needs,
            measure=runs.floors_differ("cohort", experiment, 30, 10, 4e-6),
        )


def _theory() -> Iterator[Claim]:
    yield claim(
        "theorem5.bound",
        "rates",
        "The mean squared error stays below kappa^t |x_0 - x*|^2 + residual where Theorem 5 holds.",
        "shape",
        needs=_ran(("isometry",)),
        measure=theory.below_bound,
    )
    yield claim(
        "corollary6.bound",
        "rates",
        "The mean objective stays below f(x*) + |grad f(x*)|^2 / (2 rho) + rho (kappa^t |x_0 - x*|^2 + "
        "residual) where Theorem 5 holds (Corollary 6).",
        "shape",
        needs=_ran(("isometry",)),
        measure=theory.objective_below_bound,
    )
    yield claim(
        "theorem5.conditions",
        "rates",
        "The clients' losses in the experiments have restricted constants with 2 rho^- > rho^+, as Theorem 5 "
        "needs (Figures 1 and 9).",
        "identity",
        needs=_ran(("exact", "heterogeneity")),
        measure=theory.conditions_met,
        note="so the theorem promises nothing of the experiments that are said to validate it",
    )
    yield claim(
        "theorem5.k",
        "rates",
        "kappa falls as the number of local iterations grows (Remark 3).",
        "shape",
        measure=theory.kappa_falls_with_k,
    )
    yield claim(
        "theorem7.bound",
        "rates",
        "With inexact sub-problems the mean squared error stays below kappa^t |x_0 - x*|^2 + residual where "
        "Theorem 7 holds.",
        "shape",
        needs=_ran(("isometry",)),
        measure=theory.inexact_below_bound,
        note=(
            "one gradient step a sub-problem; delta is the largest distance from an exact solution. The "
            "bound is the printed one; the paper's proof ends with 2 (1 + eta_2)^2 times its nu and delta^2"
        ),
    )
    yield claim(
        "theorem8.cohort",
        "rates",
        "kappa falls as the cohort grows (Remark 6).",
        "shape",
        measure=theory.kappa_falls_with_cohort,
    )
    yield claim(
        "corollary10",
        "rates",
        "The isometry constant of BA/|B|_F with Gaussian A falls as the stable rank of B grows "
        "(Corollary 10).",
        "shape",
        measure=theory.isometry_improves,
    )
    yield claim(
        "section4d",
        "rates",
        "A loss that is not restricted strongly convex in the standard basis is so with Gaussian atoms "
        "(Section IV-D).",
        "shape",
        measure=theory.gaussian_atoms_help,
    )


CLAIMS = (
    *_table1(),
    *_figure1(),
    *_figure2(),
    *_comparisons(),
    *_digits(),
    *_figures8_9(),
    *_figures10_11(),
    *_theory(),
)


def _timing() -> Iterator[Claim]:
    for k, experiment, variant in ((3, "mild", "exact"), (4, "strong", "exact"), (5, "dense", "gd")):
        for other in BASELINES:
            yield claim(
                f"fig{k}.{other[0]}.seconds",
                f"fig{k}_seconds",
                f"{EXPERIMENTS[experiment]}: FedGradMP converges faster than {METHODS[other[0]]} in "
                "wall-clock time: its error after 5 rounds is smaller than the other's at equal seconds "
                "(Section V-B).",
                "shape",
                reading="processor seconds",
                needs=(),
                measure=runs.lower_at_seconds(f"fig{k}_seconds", f"fedgradmp/{variant}", "/".join(other), 5),
                note=f"{LINES[f'fedgradmp/{variant}'].label}; one repetition, timed where it was run",
            )


# Measured on the figures by seconds, into a file of their own: they differ from run to run.
TIMING = tuple(_timing())
