"""The paper's runs: methods, data and settings.

Variants of a method stand side by side: FedGradMP's solvers of its sub-problem, the two ways to read the
weight of the 1-norm, and tau on digits. If a step is searched, two readings of it stand side by side, too: in
`own` each method takes its best step, for which the printed grid is extended until it lies inside; in
`printed` the best of the printed grid, even at its edge. For digits no grid is printed, and the configured
one stands for it. In both a step must be stable, if any is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.engine.plans import Planned, Ran, execute, in_one_table, run_plan
from replifed.engine.search import Grid, Search
from replifed.engine.simulate import Metric, nonzeros, objective
from replifed.engine.trials import Check, SuccessiveHalving, Trials, best_printed, tune_steps
from replifed.network.participation import FixedSize
from replifed.operators.projections import Thresholding
from replifed.papers.fedgradmp import problems
from replifed.papers.fedgradmp.problems import (
    accuracy,
    limit,
    relative_error,
    support_precision,
    support_recall,
)
from replifed.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedgradmp import settings as of

COMPOSITE = ("fedmid", "feddualavg")
SPARSE = ("fedgradmp", "fediterht")
# Problems whose drawn data stand in for the paper's.
SURROGATES = ("drawn_video",)
# How sub-problems are solved where the theorems promise something.
_ISOMETRY = {"exact": {}, "gd": {"solver": "gd", "inner_steps": 1}}
# Number of step sizes that a search on digits keeps, by the rounds after which it drops the others.
_SURVIVORS = {10: 3, 50: 2}
# Perturbed runs on digits cost three times what a trial does, and all repetitions have the same data.
_DIGITS_CHECK = Check(data_sets=1, rounds=50, tail=0.2, records=2)


def variants(method: str, settings: of.Regression | of.Digits) -> list[str]:
    """Names of a method's variants: a solver or, on digits, tau; the weight of the 1-norm; or nothing."""
    if method in COMPOSITE:
        assert settings.weights is not None
        return [f"{weight:g}" for weight in settings.weights]
    if settings.problem == "digits":
        return [str(tau) for tau in settings.sparsities] if method in SPARSE else [""]
    return list(settings.solvers) if method == "fedgradmp" else [""]


def regression_method(
    method: str, settings: of.Regression, variant: str, step: NDArray, K: int, sparsity: int | None = None
):
    """Build `method` for a regression, at the true sparsity if none is given; FedGradMP has no step."""
    own: dict[str, Any] = {"local_steps": K, "batch": settings.batch}
    if method in SPARSE:
        own["sparsity"] = sparsity or settings.planted
    if method in COMPOSITE:
        own["weight"] = float(variant)
    if method != "fedgradmp":
        return method_class(method)(step=step, **own)
    if variant == "gd":
        own["inner_steps"] = settings.inner_steps
    return method_class(method)(solver=variant, **own)


def digits_method(
    method: str, settings: of.Digits, names: Sequence[str] | NDArray, steps: Sequence[float] | NDArray
):
    """Build `method` for runs that differ in tau, in the weight of the 1-norm, or in the step."""
    own: dict[str, Any] = {"step": np.array(steps), "batch": settings.batch}
    if method in SPARSE:
        own["sparsity"] = np.array(names, dtype=int)
    if method in COMPOSITE:
        own["weight"] = np.array(names, dtype=float)
    if method != "fedgradmp":
        return method_class(method)(local_steps=settings.local_steps[0], **own)
    if settings.classes:
        own["projection"] = Thresholding(settings.classes)
    return method_class(method)(
        local_steps=settings.matched_steps,
        solver="sgd",
        inner_steps=settings.inner_steps,
        reuse=True,
        radius=settings.radius,
        **own,
    )


# -- step sizes ----------------------------------------------------------------------------------------


def tune(
    method: str, settings: of.Regression | of.Digits, table: Any, partition: Any, progress: Progress = silent
) -> dict[str, Any]:
    """Search the step sizes of a method's variants; on digits side by side.

    Returns
    -------
    dict
        variants -> the record of a search (`search.Search.record`); empty for a method that needs none. In
        regressions the score is the mean objective over the last of the search's rounds. On digits it is one
        minus the training accuracy at their end, None for steps that were dropped before. With each comes
        printed, the reading of that name. Then cost, what the searches used, and trials, on which
        repetitions.
    """
    if settings.problem == "regression" and method == "fedgradmp":
        return {"method": method, "variants": {}, "trials": {"replicates": []}}
    tuning, names = settings.tuning, variants(method, settings)
    assert tuning is not None

    def make(names: Sequence[str] | NDArray, steps: NDArray) -> Any:
        if settings.problem == "digits":
            return digits_method(method, settings, names, steps)
        return regression_method(method, settings, names[0], steps, settings.local_steps[0])

    if settings.problem == "digits":
        trials: Trials = _digits_trials(settings, table, progress)
        grouped = [names]
    else:
        trials, grouped = _regression_trials(settings), [[name] for name in names]

    def printed(name: str, own: Search) -> Search:
        return best_printed(own, tuning.steps, lambda steps: make([name] * len(steps), steps), trials)

    found: dict[str, Any] = {}
    for group in grouped:
        progress(f"searching the step {', '.join(group)}", len(found), len(names))
        searches = tune_steps(make, group, trials, Grid.of_steps(tuning.steps, tuning.refine))
        for name, own in zip(group, searches, strict=True):
            found[name] = own.record() | {"printed": printed(name, own).record()}
    return {"method": method, "variants": found, **trials.spent.of_trials()}


def _regression_trials(settings: of.Regression) -> Trials:
    tuning, alpha, noise = settings.tuning, settings.alphas[0], settings.noises[0]
    assert tuning is not None
    return Trials(
        tuning.replicates,
        lambda replicate: problems.regression(settings, alpha, noise, replicate).problem,
        settings.seed,
        tuning.rounds,
        tuning.tail,
    )


def _digits_trials(settings: of.Digits, table: Any, progress: Progress) -> SuccessiveHalving:
    data, tuning = problems.digits(settings, table), settings.tuning
    right = _train_accuracy(data)
    return SuccessiveHalving(
        tuning.replicates,
        lambda _: data.problem,
        settings.seed,
        tuning.rounds,
        metric=lambda problem, seen: 1.0 - right(problem, seen),
        check=_DIGITS_CHECK,
        options={"cohort": FixedSize(settings.cohort)},
        progress=progress,
        survivors=_SURVIVORS,
    )


def _train_accuracy(data: problems.Digits) -> Metric:
    X, y = data.problem.X, data.problem.y
    return accuracy(X.reshape(-1, X.shape[-1]), y.reshape(-1))


# -- runs ----------------------------------------------------------------------------------------------


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run all variants and seeds of `method`."""
    match settings.problem:
        case "regression":
            plans = _regression(method, settings, tuned or {})
        case "isometry":
            plans = _isometry(method, settings)
        case "digits":
            plans = _digits(method, settings, tuned or {}, table)
        case _:
            return in_one_table(_video(method, settings, table, progress))
    return execute(method, settings.seed, plans, progress)


def _regression(method: str, settings: of.Regression, tuned: dict) -> Iterator[Planned]:
    rounds, every = settings.rounds, settings.record_every
    if method != "fedgradmp":
        rounds, every = settings.baseline_rounds or rounds, settings.baseline_record_every or every
    if method == "fediterht":
        rounds = settings.fediterht_rounds or rounds
    for alpha, noise, replicate in product(settings.alphas, settings.noises, settings.replicates):
        planted = problems.regression(settings, alpha, noise, replicate)
        data, solution = planted
        metrics = {
            "objective": objective,
            "error": relative_error(solution),
            "nonzeros": nonzeros,
            "precision": support_precision(solution),
            "recall": support_recall(solution),
        }
        at_rest = _limits(method, settings, planted)
        for K, cohort in product(settings.local_steps, settings.cohorts or [settings.clients]):
            case = {"alpha": alpha, "noise": noise, "local_steps": K, "cohort": cohort}
            for algorithm, curves, labels in _curves(method, settings, tuned, K):
                yield Planned(
                    algorithm=algorithm,
                    problem=data,
                    replicates=[replicate] * (max(curves) + 1),
                    rounds=rounds,
                    run_of_curve=curves,
                    labels={
                        **case,
                        "replicate": replicate,
                        "limit": at_rest.get(labels["variant"], np.nan),
                        **labels,
                    },
                    metrics=metrics,
                    record_every=every,
                    options={"cohort": FixedSize(cohort)} if settings.cohorts else {},
                )


def _limits(method: str, settings: of.Regression, planted: problems.Planted) -> dict[str, float]:
    """Where variants come to rest; not FedIterHT in Figure 8, nor a weight that the text does not have."""
    if settings.readings is not None:
        if method in SPARSE:
            return {}
        weight = settings.weights[0] if settings.weights else 0.0
        return dict.fromkeys(settings.readings, limit(method, planted, weight))
    if method in COMPOSITE:
        assert settings.weights is not None
        weight = settings.weights[0]
        return {f"{weight:g}": limit(method, planted, weight)}
    return dict.fromkeys(variants(method, settings), limit(method, planted))


def _curves(
    method: str, settings: of.Regression, tuned: dict, K: int
) -> Iterator[tuple[Any, Sequence[int], dict[str, Any]]]:
    """Yield an algorithm of runs side by side, the run of each curve, and the curves' labels."""
    if settings.readings is not None:
        steps = np.array(settings.steps)
        weight = f"{settings.weights[0]}" if method in COMPOSITE and settings.weights else ""
        for name, reading in settings.readings.items():
            # The other readings are for FedIterHT, which does not diverge with the loss as printed; dense
            # methods do.
            if method in SPARSE or name == "text":
                scaled, tau = steps * reading.scale, reading.sparsity
                algorithm = regression_method(method, settings, weight, scaled, K, tau)
                yield algorithm, range(len(steps)), {"variant": name, "step": steps}
        return
    for variant in variants(method, settings):
        both: dict[str, Any] = {"step": [np.nan]}
        if method != "fedgradmp":
            both = _readings(tuned["variants"][variant])
        distinct, curves = _distinct(both["step"])
        algorithm = regression_method(method, settings, variant, np.array(distinct), K)
        yield algorithm, curves, {"variant": variant, **both}


def _readings(found: dict) -> dict[str, list]:
    """The outcome of a variant's search as labels of two curves, one for each reading of the step."""
    both = {"own": found, "printed": found["printed"]}
    named = {name: [one[name] for one in both.values()] for name in ("step", "chaotic")}
    return {"reading": list(both), **named}


def _distinct(curves: Sequence[Any]) -> tuple[list, list[int]]:
    """The distinct runs of some curves, and the index of each curve's run: two readings may share one."""
    runs = list(dict.fromkeys(curves))
    return runs, [runs.index(curve) for curve in curves]


def _isometry(method: str, settings: of.Isometry) -> Iterator[Planned]:
    for condition, noise, replicate in product(settings.conditions, settings.noises, settings.replicates):
        data, solution = problems.isometry(settings, condition, noise, replicate)
        # The gradients' part of Theorem 5's residual, at x#.
        slopes = data.client_gradients(solution[None])[0] ** 2
        peak = float(np.sort(slopes, axis=1)[:, -4 * settings.planted :].sum(axis=1).mean())
        for K, (solver, own) in product(settings.local_steps, _ISOMETRY.items()):
            distances: list[float] = []
            watched = _watched(method_class(method), distances)
            yield Planned(
                algorithm=watched(sparsity=settings.planted, local_steps=K, **own),
                problem=data,
                replicates=[replicate],
                rounds=settings.rounds,
                labels={
                    "condition": condition,
                    "noise": noise,
                    "local_steps": K,
                    "solver": solver,
                    "peak": peak,
                    "replicate": replicate,
                },
                run_labels={"accuracy": partial(_largest, distances)},
                metrics={"objective": objective, "error": relative_error(solution)},
                record_every=settings.record_every,
            )


def _differs(ran: Ran) -> NDArray:
    """True if a perturbed run has another accuracy: what `perturbed.AGREEMENT` overlooks can turn orders."""
    return ran.difference > 0


def _largest(distances: list[float], _: Ran) -> list[float]:
    return [max(distances)]


def _watched(method: type, distances: list[float]) -> type:
    """FedGradMP that appends, in each local iteration, the clients' largest |b - b_opt| to `distances`."""

    class Watched(method):
        def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
            exact = local.restricted_minima(u.copy(), support)
            b = super()._solve(local, u, r, support, batches)
            distances.append(float(np.linalg.norm(b - exact, axis=-1).max()))
            return b

    return Watched


def _digits(method: str, settings: of.Digits, tuned: dict, table: Any) -> Iterator[Planned]:
    """Runs have perturbed ones if models are thresholded, or if the search found a step that is chaotic.

    A search looks at its first rounds. Over a whole run rounding has the time to name other coordinates.
    """
    data, found, names = problems.digits(settings, table), tuned["variants"], variants(method, settings)
    labels = in_one_table([{**_readings(found[name]), "variant": name} for name in names])
    # All curves or none: where some have perturbed runs, claims look at these alone for the distance of both.
    sensitive = labels.pop("chaotic").any()
    for replicate in settings.replicates:
        points, curves = _distinct(list(zip(labels["variant"], labels["step"], strict=True)))
        yield Planned(
            algorithm=digits_method(method, settings, *zip(*points, strict=True)),
            problem=data.problem,
            replicates=[replicate] * len(points),
            rounds=settings.rounds,
            run_of_curve=curves,
            labels={"replicate": replicate, **labels.to_dict("list")},
            run_labels={"chaotic": _differs},
            metrics={
                "train_accuracy": _train_accuracy(data),
                "test_accuracy": accuracy(*data.test),
                "nonzeros": nonzeros,
            },
            perturbed="recorded" if sensitive or method in SPARSE else None,
            compared="train_accuracy",
            record_every=settings.fedavg_record_every if method == "fedavg" else settings.record_every,
            options={"cohort": FixedSize(settings.cohort)},
        )


def _video(
    method: str, settings: of.Video | of.DrawnVideo, table: Any, progress: Progress
) -> Iterator[Mapping[str, Any] | pd.DataFrame]:
    """Recover a frame; rows with `part` "pixels" hold the picture of the first repetition."""
    progress("learning the dictionary", 0, len(settings.replicates))
    frames = problems.videos(settings, problems.clip_of(settings, table))
    for number, (replicate, frame) in enumerate(zip(settings.replicates, frames, strict=True)):
        progress(f"seed {replicate}", number, len(settings.replicates))
        tau = min(settings.sparsity, frame.problem.dim)
        plan = Planned(
            algorithm=method_class(method)(
                sparsity=tau, local_steps=settings.local_steps[0], projection=frame.projection
            ),
            problem=frame.problem,
            replicates=[replicate],
            rounds=settings.rounds,
            metrics={"objective": objective, "psnr": frame.psnr},
            record_every=settings.record_every,
        )
        history = run_plan(plan, settings.seed).history
        best = frame.psnr(None, {"server": frame.best[None]})[0]
        labels = {"best_psnr": best, "sparsity": tau, "atoms": frame.problem.dim, "frame": frame.number}
        yield history.frame(method=method, part="curve", replicate=replicate, **labels)
        if number == 0:
            original, recovered = _halved(frame.image), _halved(frame.atoms @ history.state.x[0])
            down, right = np.indices(original.shape).reshape(2, -1)
            pixels = {"original": original.ravel(), "recovered": recovered.ravel()}
            labels = {"method": method, "part": "pixels", "replicate": replicate, "frame": frame.number}
            yield {**labels, "down": down, "right": right, **pixels}


def _halved(image: NDArray, height: int = 240, width: int = 320) -> NDArray:
    """Average blocks of 2 x 2 pixels, the resolution of the figure."""
    return image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
