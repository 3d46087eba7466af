"""What the paper runs: which method, on which data, with which settings.

A method may have variants that stand side by side: FedGradMP's solvers of its sub-problem, and the two
ways to read the weight of the 1-norm of FedMid and FedDualAvg.

On digits two readings of the step size stand side by side as well. In `own`, each method takes its best
step, for which the printed grid is extended until it lies inside. In `printed` it takes the best step of
the printed grid, even where that lies at the grid's edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.metrics import accuracy, relative_error, support_precision, support_recall
from replifed.network.participation import FixedSize
from replifed.papers.fedgradmp import problems
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import History, nonzeros, objective, simulate
from replifed.tune import (
    SCORED,
    Ask,
    Grid,
    Spent,
    Trials,
    best_of_chaotic,
    searching,
    side_by_side,
    tune_step,
)
from replifed.twins import simulate_with_twins

COMPOSITE = ("fedmid", "feddualavg")
SPARSE = ("fedgradmp", "fediterht")
# How sub-problems are solved where the theorems promise something.
_ISOMETRY = {"exact": {}, "gd": {"solver": "gd", "inner_steps": 1}}
READINGS = ("own", "printed")
# A search on digits keeps so many of the step sizes after so many rounds.
_STAGES = ((10, 3), (50, 2))
# Twins on digits run for so many rounds at most, of 40 local steps each, and are looked at so often.
_TWIN_ROUNDS, _TWIN_LOOKS = 50, 10


def variants(method: str, settings: Mapping) -> list[str]:
    """Names of a method's variants: a solver, the weight of the 1-norm, or nothing."""
    if method == "fedgradmp":
        return list(settings.get("solvers", ["exact"]))
    return [f"{weight:g}" for weight in settings["weights"]] if method in COMPOSITE else [""]


def regression_method(
    method: str, settings: Mapping, variant: str, step: NDArray | None, local_steps: int, **more: Any
):
    """Build `method` for a regression experiment."""
    common = {"local_steps": local_steps, "batch": settings["batch"]}
    if method == "fedgradmp":
        inner = {"inner_steps": settings["inner_steps"]} if variant == "gd" else {}
        return method_class(method)(sparsity=settings["planted"], solver=variant, **inner, **common)
    if method in COMPOSITE:
        common["weight"] = float(variant)
    if method == "fediterht":
        common["sparsity"] = more.get("sparsity", settings["planted"])
    return method_class(method)(step=step, **common)


def watched(method: type, distances: list[float]) -> type:
    """Return FedGradMP, given as `method`, with its sub-problems' solutions compared with exact ones.

    Parameters
    ----------
    method : type
    distances : list of float
        Where the largest |b - b_opt| of all clients is appended in each local iteration.
    """

    class Watched(method):
        def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
            exact = local.restricted_minima(u.copy(), support)
            b = super()._solve(local, u, r, support, batches)
            distances.append(float(np.linalg.norm(b - exact, axis=-1).max()))
            return b

    return Watched


# -- step sizes ----------------------------------------------------------------------------------------


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the step sizes of a method's variants.

    Returns
    -------
    dict
        variants -> what `tune.Search.record` says; empty for a method that needs none. In regressions the
        score is the mean objective over the last of the search's rounds. On digits it is one minus the
        training accuracy at their end, variants are named after tau, rounds says how many each step was
        given, since those that fall behind are dropped, twin_difference is the chosen step's largest, and
        printed is the reading of that name, whose step need not be stable. Then cost, what the searches
        used, and trials, on which repetitions.
    """
    if settings["problem"] == "digits":
        return {"method": method, **_tune_digits(method, settings, table, progress)}
    if method == "fedgradmp":
        return {"method": method, "variants": {}, "trials": {"replicates": []}}
    search, found = settings["tuning"], {}
    alpha, noise = settings["alphas"][0], settings["noises"][0]
    trials = Trials.on(
        search["replicates"],
        lambda replicate: problems.regression(settings, alpha, noise, replicate).problem,
        settings["seed"],
        search["rounds"],
        search["tail"],
    )
    for number, variant in enumerate(variants(method, settings)):
        if progress is not None:
            progress(f"searching the step {variant}", number, len(variants(method, settings)))
        outcome = tune_step(
            partial(regression_method, method, settings, variant, local_steps=settings["local_steps"][0]),
            trials,
            Grid.of_steps(search["steps"], search["refine"]),
            check=True,
        )
        found[variant] = outcome.record()
    return {"method": method, "variants": found, **trials.record()}


def _tune_digits(method: str, settings: dict, table: Any, progress: Progress | None) -> dict[str, Any]:
    """Search the printed grid, and beyond it where its best step lies at an edge; all tau side by side."""
    search = settings["tuning"]
    trials = _DigitTrials(method, settings, problems.digits(settings, table), progress)
    names = _digit_variants(method, settings)
    grids = {
        "own": Grid.of_steps(search["steps"], search["refine"]),
        "printed": Grid.of_steps(search["steps"], 0, grow=False),
    }
    pairs = list(itertools.product(names, READINGS))

    def answer(asked: list[tuple[int, Ask]]) -> list[NDArray]:
        wanted = [[(pairs[number][0], step) for (step,) in points] for number, (_, points) in asked]
        return trials.scores(wanted) if asked[0][1][0] == "score" else trials.stable(wanted)

    searches = side_by_side(
        [searching(grids[reading], check=reading == "own") for _, reading in pairs], answer
    )
    outcomes = dict(zip(pairs, searches, strict=True))
    found = {}
    for name in names:
        own, printed = (outcomes[name, reading] for reading in READINGS)
        own = best_of_chaotic(own, partial(trials.rescored, name))
        tried = [trials.last[name, step] for step in own.steps]
        difference = trials.differences[name, own.step]
        found[name] = {
            **own.record(),
            "scores": [score if np.isfinite(score) else None for _, score in tried],
            "rounds": [rounds for rounds, _ in tried],
            "twin_difference": difference if np.isfinite(difference) else None,
            "printed": {"step": printed.step, "score": printed.score, "edge": printed.edge},
        }
    return {
        "variants": found,
        "cost": trials.spent.record(),
        "trials": {"replicates": sorted(trials.used)},
    }


@dataclass
class _DigitTrials:
    """Trials of steps on digits, of which those that fall behind are dropped in stages.

    Attributes
    ----------
    last : (variant, step) -> rounds that it was given, and its score then.
    differences : (variant, step) -> the largest difference between a run and its twins, of steps checked.
    spent, used : what the trials have cost so far, and the repetitions that they ran.
    """

    method: str
    settings: dict
    data: problems.Digits
    progress: Progress | None = None
    last: dict[tuple[str, float], tuple[int, float]] = field(default_factory=dict)
    differences: dict[tuple[str, float], float] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    used: set[int] = field(default_factory=set)
    _reached: dict[tuple[str, int], list[float]] = field(default_factory=dict)

    @property
    def _replicates(self) -> list[int]:
        """Repetitions that every step is scored on."""
        return self.settings["tuning"]["replicates"][:SCORED]

    def scores(self, wanted: list[list[tuple[str, float]]]) -> list[NDArray]:
        """Scores of several variants' steps at the end; infinite for those that were dropped."""
        new = dict.fromkeys(itertools.chain.from_iterable(wanted))
        self._try([point for point in new if point not in self.last])
        end = self.settings["tuning"]["rounds"]
        return [
            np.array([self.last[point][1] if self.last[point][0] == end else np.inf for point in points])
            for points in wanted
        ]

    def _try(self, grid: list[tuple[str, float]]) -> None:
        end, replicates = self.settings["tuning"]["rounds"], self._replicates
        stages = [(stop, keep) for stop, keep in _STAGES if stop < end] + [(end, 1)]
        begin = 0
        states: list[Any] = [None] * len(replicates)
        for number, (stop, keep) in enumerate(stages):
            if not grid:
                return
            if self.progress is not None:
                self.progress(f"searching the step, {len(grid)} runs to round {stop}", number, len(stages))
            errors = np.zeros(len(grid))
            for k, replicate in enumerate(replicates):
                history = self._run(grid, replicate, stop, begin, states[k])
                errors += _errors(history)
                states[k] = history.state
            for point, error in zip(grid, (errors / len(replicates)).tolist(), strict=True):
                self._reached.setdefault((point[0], stop), []).append(error)
                self.last[point] = stop, error
            kept = [place for place, point in enumerate(grid) if self._keeps_up(point, stop, keep)]
            states = [type(state)(*(part[kept] for part in state)) for state in states]
            grid, begin = [grid[place] for place in kept], stop

    def _keeps_up(self, point: tuple[str, float], stop: int, keep: int) -> bool:
        """Whether few of the variant's steps, tried now or before, were better after as many rounds."""
        best = sorted(self._reached[point[0], stop])[:keep]
        return np.isfinite(self.last[point][1]) and self.last[point][1] <= best[-1]

    def _make(self, grid: Sequence[tuple[str, float]], factors: NDArray | float = 1.0) -> Any:
        steps = np.array([step for _, step in grid]) * factors
        return digits_method(self.method, self.settings, [name for name, _ in grid], steps)

    def stable(self, wanted: list[list[tuple[str, float]]]) -> list[NDArray]:
        """Which of several variants' steps agree with their twins, and descend.

        In the first repetition alone: all have the same data, and twins cost three times what a trial does.
        """
        points = list(itertools.chain.from_iterable(wanted))
        if self.progress is not None:
            self.progress(f"comparing {len(points)} runs with their twins", 0, 1)
        rounds = min(self.settings["tuning"]["rounds"], _TWIN_ROUNDS)
        twinned = simulate_with_twins(
            lambda rows, factors: self._make([points[row] for row in rows], factors),
            self.data.problem,
            Streams(self.settings["seed"], (self._replicates[0],) * len(points)),
            rounds,
            whole=False,
            record_every=max(rounds // _TWIN_LOOKS, 1),
            cohort=FixedSize(self.settings["cohort"]),
        )
        self.spent.add(twinned.everything)
        self.differences |= dict(zip(points, twinned.difference.tolist(), strict=True))
        good = dict(zip(points, twinned.stable, strict=True))
        return [np.array([good[point] for point in some]) for some in wanted]

    def rescored(self, name: str, steps: NDArray, errors: NDArray) -> NDArray:
        """Means of a variant's steps (G,) over further repetitions too; `errors` are those of the first."""
        end, replicates = self.settings["tuning"]["rounds"], self.settings["tuning"]["replicates"]
        grid = [(name, step) for step in steps.tolist()]
        total = errors * SCORED + sum(_errors(self._run(grid, one, end)) for one in replicates[SCORED:])
        means = total / max(len(replicates), SCORED)
        self.last |= {point: (end, mean) for point, mean in zip(grid, means.tolist(), strict=True)}
        return means

    def _run(
        self, grid: Sequence[tuple[str, float]], replicate: int, stop: int, begin: int = 0, state: Any = None
    ) -> History:
        """Run variants at their steps from round `begin` to `stop`, recorded at the end."""
        history = simulate(
            self._make(grid),
            self.data.problem,
            Streams(self.settings["seed"], (replicate,) * len(grid)),
            stop,
            metrics={"train_accuracy": _train_accuracy(self.data)},
            record_every=stop - begin,
            cohort=FixedSize(self.settings["cohort"]),
            resume=(begin, state) if begin else None,
        )
        self.spent.add(history, started=not begin)
        self.used.add(replicate)
        return history


def _errors(history: History) -> NDArray:
    """One minus the training accuracy at the end of each run (R,); infinite for one that diverged."""
    return np.where(history.diverged[-1], np.inf, 1.0 - history.metrics["train_accuracy"][-1])


# -- runs ----------------------------------------------------------------------------------------------


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run all variants and seeds of `method`."""
    kinds = {
        "regression": _run_regression,
        "isometry": _run_isometry,
        "video": _run_video,
        "drawn_video": _run_video,
        "digits": _run_digits,
    }
    return kinds[settings["problem"]](method, settings, tuned or {}, table, progress)


def _run_regression(
    method: str, settings: dict, tuned: dict, table: Any, progress: Progress | None
) -> pd.DataFrame:
    frames = []
    cases = list(itertools.product(settings["alphas"], settings["noises"], settings["replicates"]))
    for number, (alpha, noise, replicate) in enumerate(cases):
        if progress is not None:
            progress(f"alpha {alpha:g} noise {noise:g} seed {replicate}", number, len(cases))
        data, solution = problems.regression(settings, alpha, noise, replicate)
        metrics = {
            "objective": objective,
            "error": relative_error(solution),
            "nonzeros": nonzeros,
            "precision": support_precision(solution),
            "recall": support_recall(solution),
        }
        for local_steps, cohort in itertools.product(
            settings["local_steps"], settings.get("cohorts", [settings["clients"]])
        ):
            for labels, algorithm in _curves(method, settings, tuned, local_steps):
                rows = len(labels["step"])
                history = simulate(
                    algorithm,
                    data,
                    Streams(settings["seed"], (replicate,) * rows),
                    settings["rounds"],
                    metrics=metrics,
                    record_every=settings["record_every"],
                    cohort=FixedSize(cohort) if "cohorts" in settings else None,
                )
                frames.append(
                    history.frame(
                        method=method,
                        alpha=alpha,
                        noise=noise,
                        local_steps=local_steps,
                        cohort=cohort,
                        replicate=replicate,
                        **labels,
                    )
                )
    return pd.concat(frames, ignore_index=True)


def _curves(method: str, settings: dict, tuned: dict, local_steps: int):
    """Yield the labels (lists, one entry a row) and the algorithm of rows that run side by side."""
    if "readings" in settings:
        steps = np.array(settings["steps"])
        for name, reading in settings["readings"].items():
            labels = {"variant": [name] * len(steps), "step": steps.tolist()}
            yield (
                labels,
                regression_method(
                    method,
                    settings,
                    "",
                    steps * reading["scale"],
                    local_steps,
                    sparsity=reading["sparsity"],
                ),
            )
        return
    for variant in variants(method, settings):
        step = tuned["variants"][variant]["step"] if method != "fedgradmp" else None
        shown = np.nan if step is None else step
        at = None if step is None else np.array([step])
        yield (
            {"variant": [variant], "step": [shown]},
            regression_method(method, settings, variant, at, local_steps),
        )


def _run_isometry(
    method: str, settings: dict, tuned: dict | None, table: Any, progress: Progress | None
) -> pd.DataFrame:
    frames = []
    cases = itertools.product(settings["conditions"], settings["noises"], settings["replicates"])
    for condition, noise, replicate in cases:
        data, solution = problems.isometry(settings, condition, noise, replicate)
        # What the residuals of Theorem 5 and Corollary 6 are made of, at x#.
        slopes = data.client_gradients(solution[None])[0] ** 2
        size = 4 * settings["planted"]
        residual = {
            "peak": float(np.sort(slopes, axis=1)[:, -size:].sum(axis=1).mean()),
            "least": float(data.loss(solution[None])[0]),
            "slope": float((data.gradient(solution[None]) ** 2).sum()),
        }
        for local_steps, (solver, own) in itertools.product(settings["local_steps"], _ISOMETRY.items()):
            distances: list[float] = []
            history = simulate(
                watched(method_class(method), distances)(
                    sparsity=settings["planted"], local_steps=local_steps, **own
                ),
                data,
                Streams(settings["seed"], (replicate,)),
                settings["rounds"],
                metrics={"objective": objective, "error": relative_error(solution)},
                record_every=settings["record_every"],
            )
            frames.append(
                history.frame(
                    method=method,
                    condition=condition,
                    noise=noise,
                    local_steps=local_steps,
                    solver=solver,
                    accuracy=max(distances),
                    **residual,
                    replicate=replicate,
                )
            )
    return pd.concat(frames, ignore_index=True)


def _run_video(
    method: str, settings: dict, tuned: dict | None, table: Any, progress: Progress | None
) -> pd.DataFrame:
    """Run the recovery of a frame; lines with `part` "pixels" hold the picture of the first repetition."""
    if settings["problem"] == "drawn_video":
        from replifed.data.surrogates import clip
        from replifed.randomness import generator

        streams = (generator(settings["seed"], 0, None, f"data/clip/{part}") for part in ("world", "sample"))
        frames = clip(*streams, frames=settings["frames"])[0]
    else:
        frames = table.X
    parts = []
    for number, replicate in enumerate(settings["replicates"]):
        if progress is not None:
            progress(f"seed {replicate}", number, len(settings["replicates"]))
        frame = problems.frame(settings, frames, replicate)

        def psnr(_: Any, seen: dict[str, NDArray], frame: problems.Frame = frame) -> NDArray:
            left = seen["server"] @ frame.atoms.T - frame.image
            return -10 * np.log10(np.mean(left**2, axis=-1))

        best = psnr(None, {"server": frame.best[None]})[0]
        history = simulate(
            method_class(method)(
                sparsity=min(settings["sparsity"], frame.problem.dim),
                local_steps=settings["local_steps"][0],
                projection=frame.projection,
            ),
            frame.problem,
            Streams(settings["seed"], (replicate,)),
            settings["rounds"],
            metrics={"objective": objective, "psnr": psnr},
            record_every=settings["record_every"],
        )
        parts.append(history.frame(method=method, part="curve", replicate=replicate, best_psnr=best))
        if number == 0:
            image, found = _halved(frame.image), _halved(frame.atoms @ history.state.x[0])
            down, right = np.indices(image.shape)
            parts.append(
                pd.DataFrame(
                    {
                        "method": method,
                        "part": "pixels",
                        "replicate": replicate,
                        "down": down.ravel(),
                        "right": right.ravel(),
                        "original": image.ravel(),
                        "recovered": found.ravel(),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def _halved(image: NDArray, height: int = 240, width: int = 320) -> NDArray:
    """Average blocks of 2 x 2 pixels, which is as fine as the figure is drawn."""
    return image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


# -- digits --------------------------------------------------------------------------------------------


def _digit_variants(method: str, settings: Mapping) -> list[str]:
    if method in SPARSE:
        return [str(tau) for tau in settings["sparsities"]]
    return [f"{weight:g}" for weight in settings["weights"]] if method in COMPOSITE else [""]


def digits_method(method: str, settings: Mapping, names: Sequence[str], steps: Sequence[float] | NDArray):
    """Build `method` for rows that differ in tau, in the weight of the 1-norm, or in the step."""
    step = np.array(steps)
    if method == "fedgradmp":
        return method_class(method)(
            sparsity=np.array(names, dtype=int),
            local_steps=settings["matched_steps"],
            batch=settings["batch"],
            solver="sgd",
            inner_steps=settings["inner_steps"],
            reuse=True,
            step=step,
            radius=settings.get("radius"),
        )
    common = {"step": step, "local_steps": settings["local_steps"][0], "batch": settings["batch"]}
    if method == "fediterht":
        common["sparsity"] = np.array(names, dtype=int)
    if method in COMPOSITE:
        common["weight"] = np.array(names, dtype=float)
    return method_class(method)(**common)


def _train_accuracy(data: problems.Digits):
    X, y = data.problem.X, data.problem.y
    return accuracy(X.reshape(-1, X.shape[-1]), y.reshape(-1))


def _run_digits(
    method: str, settings: dict, tuned: dict, table: Any, progress: Progress | None
) -> pd.DataFrame:
    data = problems.digits(settings, table)
    found, names = tuned["variants"], _digit_variants(method, settings)
    curves = [(name, "own", found[name]["step"]) for name in names]
    printed = [(name, "printed", found[name]["printed"]["step"]) for name in names]
    metrics = {
        "train_accuracy": _train_accuracy(data),
        "test_accuracy": accuracy(*data.test),
        "nonzeros": nonzeros,
    }
    frames = []
    for replicate in settings["replicates"]:
        done = None if progress is None else lambda t, of, r=replicate: progress(f"seed {r}, rounds", t, of)
        here = curves + printed * (replicate in settings.get("printed_replicates", settings["replicates"]))
        # The two readings may come to the same run.
        rows = list(dict.fromkeys((name, step) for name, _, step in here))
        history = simulate(
            digits_method(method, settings, *zip(*rows, strict=True)),
            data.problem,
            Streams(settings["seed"], (replicate,) * len(rows)),
            settings["rounds"],
            metrics=metrics,
            record_every=settings["record_every"],
            cohort=FixedSize(settings["cohort"]),
            progress=done,
        )
        frames.append(
            history.take(np.array([rows.index((name, step)) for name, _, step in here])).frame(
                method=method,
                variant=[name for name, _, _ in here],
                reading=[reading for _, reading, _ in here],
                step=[step for _, _, step in here],
                replicate=replicate,
                # What the search's twins said of the own step.
                chaotic=[found[name]["chaotic"] for name, _, _ in here],
            )
        )
    return pd.concat(frames, ignore_index=True)
