"""What the paper runs: which method, on which data, with which settings.

Variants of a method stand side by side: FedGradMP's solvers of its sub-problem, the two ways to read the
weight of the 1-norm, and tau on digits. Where a step is searched, two readings of it do so as well: in `own`
each method takes its best step, for which the printed grid is extended until it lies inside; in `printed` the
best of the printed grid, even at its edge. For digits none is printed, and the configured one stands for it.
In both a step must be stable, where one is.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.engine.metrics import accuracy, relative_error, support_precision, support_recall
from replifed.engine.simulate import History, nonzeros, objective, simulate
from replifed.engine.tune import (
    SCORED,
    Ask,
    Grid,
    Trials,
    best_of_chaotic,
    best_printed,
    searching,
    side_by_side,
    tune_step,
)
from replifed.engine.twins import simulate_with_twins
from replifed.network.participation import FixedSize
from replifed.papers.fedgradmp import problems
from replifed.progress import Progress, silent
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.fedgradmp import settings as of
    from replifed.settings.fields import StepTuning

Point = tuple[str, float]

COMPOSITE = ("fedmid", "feddualavg")
SPARSE = ("fedgradmp", "fediterht")
# Problems whose drawn data stand in for the paper's.
SURROGATES = ("drawn_video",)
# How sub-problems are solved where the theorems promise something.
_ISOMETRY = {"exact": {}, "gd": {"solver": "gd", "inner_steps": 1}}
# A search on digits keeps so many of the step sizes after so many rounds.
_STAGES = ((10, 3), (50, 2))
# Twins on digits run for so many rounds at most, of 40 local steps each, and are looked at so often.
_TWIN_ROUNDS, _TWIN_LOOKS = 50, 10


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


def digits_method(method: str, settings: of.Digits, names: Sequence[str], steps: Sequence[float] | NDArray):
    """Build `method` for runs that differ in tau, in the weight of the 1-norm, or in the step."""
    own: dict[str, Any] = {"step": np.array(steps), "batch": settings.batch}
    if method in SPARSE:
        own["sparsity"] = np.array(names, dtype=int)
    if method in COMPOSITE:
        own["weight"] = np.array(names, dtype=float)
    if method != "fedgradmp":
        return method_class(method)(local_steps=settings.local_steps[0], **own)
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
    """Search the step sizes of a method's variants.

    Returns
    -------
    dict
        variants -> what `tune.Search.record` says; empty for a method that needs none. In regressions the
        score is the mean objective over the last of the search's rounds. On digits it is one minus the
        training accuracy at their end, None for steps that fell behind before. Beside it printed, the
        reading of that name. Then cost, what the searches used, and trials,
        on which repetitions.
    """
    if settings.problem == "digits":
        return _tune_digits(method, settings, table, progress)
    if method == "fedgradmp":
        return {"method": method, "variants": {}, "trials": {"replicates": []}}
    tuning, alpha, noise = settings.tuning, settings.alphas[0], settings.noises[0]
    assert tuning is not None
    trials = Trials.on(
        tuning.replicates,
        lambda replicate: problems.regression(settings, alpha, noise, replicate).problem,
        settings.seed,
        tuning.rounds,
        tuning.tail,
    )
    found = {}
    names = variants(method, settings)
    for number, variant in enumerate(names):
        progress(f"searching the step {variant}", number, len(names))
        make = partial(regression_method, method, settings, variant, K=settings.local_steps[0])
        found[variant] = _both_steps(make, tuning, trials)
    return {"method": method, "variants": found, **trials.record()}


def _both_steps(make: Callable[[NDArray], Any], tuning: StepTuning, trials: Trials) -> dict[str, Any]:
    """The steps of both readings, as `tune` returns them, of the method that `make` builds."""

    def stable(steps: NDArray) -> NDArray:
        return trials.stable(lambda runs, factors: make(steps[runs] * factors), len(steps))

    own = tune_step(make, trials, Grid.of_steps(tuning.steps, tuning.refine), check=True)
    return own.record() | {"printed": best_printed(own, tuning.steps, stable).record()}


def _tune_digits(method: str, settings: of.Digits, table: Any, progress: Progress) -> dict[str, Any]:
    """Search the printed grid, and beyond it where its best step lies at an edge; all tau side by side."""
    steps, refine = settings.tuning.steps, settings.tuning.refine
    grid = Grid.of_steps(steps, refine)
    trials = _DigitTrials(method, settings, table, progress)
    searches = side_by_side([searching(grid, check=True) for _ in trials.names], trials.answer)
    found = {}
    for name, own in zip(trials.names, searches, strict=True):
        found[name] = best_of_chaotic(own, partial(trials.rescored, name)).record()
        found[name]["printed"] = best_printed(own, steps, partial(trials.are_stable, name)).record()
    return {"method": method, "variants": found, **trials.account.record()}


class _DigitTrials:
    """Trials of points, variants and their steps; those that fall behind are dropped in stages."""

    def __init__(self, method: str, settings: of.Digits, table: Any, progress: Progress) -> None:
        self.method, self.settings, self.progress = method, settings, progress
        self.names, self.data = variants(method, settings), problems.digits(settings, table)
        self.end, self.replicates = settings.tuning.rounds, settings.tuning.replicates
        self.account = Trials((), settings.seed, self.end)  # of what is spent
        self.scores: dict[Point, float] = {}  # errors at the end, infinite for what was dropped
        # Errors of all steps of a variant that were tried so far, after the rounds of a stage.
        self.reached: dict[tuple[str, int], list[float]] = defaultdict(list)

    def answer(self, asked: list[tuple[int, Ask]]) -> list[NDArray]:
        """Score, or compare with their twins, the steps that searches ask for (`tune.side_by_side`)."""
        wanted = [[(self.names[number], step) for (step,) in points] for number, (_, points) in asked]
        every = list(itertools.chain.from_iterable(wanted))
        if asked[0][1][0] == "admissible":
            replies: Mapping[Point, float] = dict(zip(every, self.stable(every), strict=True))
        else:
            self.score([point for point in every if point not in self.scores])
            replies = self.scores
        return [np.array([replies[point] for point in points]) for points in wanted]

    def score(self, points: list[Point]) -> None:
        """Run points stage by stage."""
        self.scores |= dict.fromkeys(points, np.inf)
        stages = [(stop, keep) for stop, keep in _STAGES if stop < self.end] + [(self.end, 1)]
        replicates = self.replicates[:SCORED]
        begin, states = 0, [None] * len(replicates)
        for number, (stop, keep) in enumerate(stages):
            if not points:
                return
            self.progress(f"searching the step, {len(points)} runs to round {stop}", number, len(stages))
            histories = [
                self._run(points, replicate, stop, begin, state)
                for replicate, state in zip(replicates, states, strict=True)
            ]
            errors = np.mean([_errors(history) for history in histories], axis=0)
            for (name, _), error in zip(points, errors.tolist(), strict=True):
                self.reached[name, stop].append(error)
            # Few of the variant's steps, tried now or before, may be better after as many rounds.
            least = [sorted(self.reached[name, stop])[:keep][-1] for name, _ in points]
            kept = np.flatnonzero(np.isfinite(errors) & (errors <= least))
            if stop == self.end:
                self.scores |= zip(points, errors.tolist(), strict=True)
            states = [history.take(kept).state for history in histories]
            points, begin = [points[place] for place in kept], stop

    def stable(self, points: list[Point]) -> NDArray:
        """Whether each run agrees with its twins, and descends.

        In the first repetition alone: all have the same data, and twins cost three times what a trial does.
        """
        self.progress(f"comparing {len(points)} runs with their twins", 0, 1)
        rounds = min(self.end, _TWIN_ROUNDS)
        twinned = simulate_with_twins(
            lambda runs, factors: self._make([points[run] for run in runs], factors),
            self.data.problem,
            Streams(self.settings.seed, (self.replicates[0],) * len(points)),
            rounds,
            whole=False,
            record_every=max(rounds // _TWIN_LOOKS, 1),
            cohort=FixedSize(self.settings.cohort),
        )
        self.account.spent.add(twinned.everything)
        return twinned.stable

    def are_stable(self, name: str, steps: NDArray) -> NDArray:
        """The same of steps (G,) of a variant."""
        return self.stable([(name, step) for step in steps.tolist()])

    def rescored(self, name: str, steps: NDArray, errors: NDArray) -> NDArray:
        """Means of a variant's steps (G,) over further repetitions too; `errors` are those of the first."""
        points = [(name, step) for step in steps.tolist()]
        further = (_errors(self._run(points, one, self.end)) for one in self.replicates[SCORED:])
        return (errors * SCORED + sum(further)) / max(len(self.replicates), SCORED)

    def _make(self, points: Sequence[Point], factors: NDArray | float = 1.0) -> Any:
        names, steps = zip(*points, strict=True)
        return digits_method(self.method, self.settings, names, np.array(steps) * factors)

    def _run(
        self, points: Sequence[Point], replicate: int, stop: int, begin: int = 0, state: Any = None
    ) -> History:
        """Run points from round `begin` to `stop`, recorded at the end."""
        history = simulate(
            self._make(points),
            self.data.problem,
            Streams(self.settings.seed, (replicate,) * len(points)),
            stop,
            metrics={"train_accuracy": _train_accuracy(self.data)},
            record_every=stop - begin,
            cohort=FixedSize(self.settings.cohort),
            resume=(begin, state) if begin else None,
        )
        self.account.spent.add(history, started=not begin)
        self.account.used.add(replicate)
        return history


def _errors(history: History) -> NDArray:
    """One minus the training accuracy at the end of each run (R,); infinite for one that diverged."""
    return np.where(history.diverged[-1], np.inf, 1.0 - history.metrics["train_accuracy"][-1])


def _train_accuracy(data: problems.Digits):
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
    if settings.problem == "regression":
        frames = _regression(method, settings, tuned or {}, progress)
    elif settings.problem == "isometry":
        frames = _isometry(method, settings)
    elif settings.problem == "digits":
        frames = _digits(method, settings, tuned or {}, table, progress)
    else:
        frames = _video(method, settings, table, progress)
    return pd.concat(frames, ignore_index=True)


def _regression(
    method: str, settings: of.Regression, tuned: dict, progress: Progress
) -> Iterator[pd.DataFrame]:
    cases = list(itertools.product(settings.alphas, settings.noises, settings.replicates))
    cohorts = settings.cohorts or [settings.clients]
    rounds = settings.rounds
    if method != "fedgradmp":
        rounds = settings.baseline_rounds or rounds
    for number, (alpha, noise, replicate) in enumerate(cases):
        progress(f"alpha {alpha:g} noise {noise:g} seed {replicate}", number, len(cases))
        data, solution = problems.regression(settings, alpha, noise, replicate)
        metrics = {
            "objective": objective,
            "error": relative_error(solution),
            "nonzeros": nonzeros,
            "precision": support_precision(solution),
            "recall": support_recall(solution),
        }
        for K, cohort in itertools.product(settings.local_steps, cohorts):
            for algorithm, runs, labels in _curves(method, settings, tuned, K):
                history = simulate(
                    algorithm,
                    data,
                    Streams(settings.seed, (replicate,) * (max(runs) + 1)),
                    rounds,
                    metrics=metrics,
                    record_every=settings.record_every,
                    cohort=FixedSize(cohort) if settings.cohorts else None,
                )
                yield history.take(np.array(runs)).frame(
                    method=method,
                    alpha=alpha,
                    noise=noise,
                    local_steps=K,
                    cohort=cohort,
                    replicate=replicate,
                    **labels,
                )


def _curves(
    method: str, settings: of.Regression, tuned: dict, K: int
) -> Iterator[tuple[Any, Sequence[int], dict[str, Any]]]:
    """Yield an algorithm, which of its runs, side by side, is which curve, and the labels of these."""
    if settings.readings is not None:
        steps = np.array(settings.steps)
        for name, reading in settings.readings.items():
            # The others are there since FedIterHT does not diverge with the loss as printed; these do.
            if method not in SPARSE and name != "text":
                continue
            weight = f"{settings.weights[0]}" if method in COMPOSITE and settings.weights else ""
            scaled, tau = steps * reading.scale, reading.sparsity
            algorithm = regression_method(method, settings, weight, scaled, K, tau)
            yield algorithm, range(len(steps)), {"variant": name, "step": steps}
        return
    for variant in variants(method, settings):
        both: dict[str, Any] = {"step": [np.nan]}
        if method != "fedgradmp":
            both = _readings(tuned["variants"][variant])
        # The two readings may come to the same run.
        distinct = list(dict.fromkeys(both["step"]))
        algorithm = regression_method(method, settings, variant, np.array(distinct), K)
        yield algorithm, [distinct.index(step) for step in both["step"]], {"variant": variant, **both}


def _readings(found: dict) -> dict[str, list]:
    """What a variant's search found, as labels of two curves, one for each reading of the step."""
    both = {"own": found, "printed": found["printed"]}
    named = {name: [one[name] for one in both.values()] for name in ("step", "chaotic")}
    return {"reading": list(both), **named}


def _isometry(method: str, settings: of.Isometry) -> Iterator[pd.DataFrame]:
    cases = itertools.product(settings.conditions, settings.noises, settings.replicates)
    for condition, noise, replicate in cases:
        data, solution = problems.isometry(settings, condition, noise, replicate)
        # What the residual of Theorem 5 is made of, at x#.
        slopes = data.client_gradients(solution[None])[0] ** 2
        peak = float(np.sort(slopes, axis=1)[:, -4 * settings.planted :].sum(axis=1).mean())
        for K, (solver, own) in itertools.product(settings.local_steps, _ISOMETRY.items()):
            distances: list[float] = []
            history = simulate(
                _watched(method_class(method), distances)(sparsity=settings.planted, local_steps=K, **own),
                data,
                Streams(settings.seed, (replicate,)),
                settings.rounds,
                metrics={"objective": objective, "error": relative_error(solution)},
                record_every=settings.record_every,
            )
            yield history.frame(
                method=method,
                condition=condition,
                noise=noise,
                local_steps=K,
                solver=solver,
                accuracy=max(distances),
                peak=peak,
                replicate=replicate,
            )


def _watched(method: type, distances: list[float]) -> type:
    """FedGradMP that appends, in each local iteration, the clients' largest |b - b_opt| to `distances`."""

    class Watched(method):
        def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
            exact = local.restricted_minima(u.copy(), support)
            b = super()._solve(local, u, r, support, batches)
            distances.append(float(np.linalg.norm(b - exact, axis=-1).max()))
            return b

    return Watched


def _video(
    method: str, settings: of.Video | of.DrawnVideo, table: Any, progress: Progress
) -> Iterator[pd.DataFrame]:
    """Recover a frame; lines with `part` "pixels" hold the picture of the first repetition."""
    frames = problems.clip_of(settings, table)
    for number, replicate in enumerate(settings.replicates):
        progress(f"seed {replicate}", number, len(settings.replicates))
        frame = problems.frame(settings, frames, replicate)
        tau = min(settings.sparsity, frame.problem.dim)
        history = simulate(
            method_class(method)(
                sparsity=tau,
                local_steps=settings.local_steps[0],
                projection=frame.projection,
            ),
            frame.problem,
            Streams(settings.seed, (replicate,)),
            settings.rounds,
            metrics={"objective": objective, "psnr": frame.psnr},
            record_every=settings.record_every,
        )
        best = frame.psnr(None, {"server": frame.best[None]})[0]
        told = {"best_psnr": best, "sparsity": tau, "atoms": frame.problem.dim}
        yield history.frame(method=method, part="curve", replicate=replicate, **told)
        if number == 0:
            original, recovered = _halved(frame.image), _halved(frame.atoms @ history.state.x[0])
            down, right = np.indices(original.shape).reshape(2, -1)
            pixels = {"original": original.ravel(), "recovered": recovered.ravel()}
            labels = {"method": method, "part": "pixels", "replicate": replicate}
            yield pd.DataFrame({**labels, "down": down, "right": right, **pixels})


def _halved(image: NDArray, height: int = 240, width: int = 320) -> NDArray:
    """Average blocks of 2 x 2 pixels, which is as fine as the figure is drawn."""
    return image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


def _digits(
    method: str, settings: of.Digits, tuned: dict, table: Any, progress: Progress
) -> Iterator[pd.DataFrame]:
    data, found, names = problems.digits(settings, table), tuned["variants"], variants(method, settings)
    labels = pd.concat(
        [pd.DataFrame(_readings(found[name])).assign(variant=name) for name in names], ignore_index=True
    )
    # The two readings may come to the same run.
    keys = list(zip(labels["variant"], labels["step"], strict=True))
    points = list(dict.fromkeys(keys))
    runs = np.array([points.index(key) for key in keys])
    metrics = {
        "train_accuracy": _train_accuracy(data),
        "test_accuracy": accuracy(*data.test),
        "nonzeros": nonzeros,
    }
    for replicate in settings.replicates:
        history = simulate(
            digits_method(method, settings, *zip(*points, strict=True)),
            data.problem,
            Streams(settings.seed, (replicate,) * len(points)),
            settings.rounds,
            metrics=metrics,
            record_every=settings.fedavg_record_every if method == "fedavg" else settings.record_every,
            cohort=FixedSize(settings.cohort),
            progress=partial(progress, f"seed {replicate}, rounds"),
        )
        yield history.take(runs).frame(method=method, replicate=replicate, **labels.to_dict("list"))
