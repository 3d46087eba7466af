"""What the paper runs: which method, on which data, with which settings.

A method may have variants that stand side by side: FedGradMP's solvers of its sub-problem, and the two
ways to read the weight of the 1-norm of FedMid and FedDualAvg.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.metrics import accuracy, relative_error, support_precision, support_recall
from replifed.network.participation import FixedSize
from replifed.papers.fedgradmp import problems
from replifed.papers.fedgradmp.inexact import watched
from replifed.papers.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import nonzeros, objective, simulate
from replifed.tune import tune_step

COMPOSITE = ("fedmid", "feddualavg")
SPARSE = ("fedgradmp", "fediterht")
# How sub-problems are solved where the theorems promise something.
_ISOMETRY = {"exact": {}, "gd": {"solver": "gd", "inner_steps": 1}}
# A search on digits keeps so many of the step sizes after so many rounds.
_STAGES = ((10, 3), (50, 2))


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


# -- step sizes ----------------------------------------------------------------------------------------


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the step sizes of a method's variants.

    Returns
    -------
    dict
        variants -> {step, score, steps, scores}; empty for a method that needs none. In regressions the
        score is the objective after the search's rounds, None where a run diverged; on digits it is
        one minus the training accuracy, and variants are named after tau.
    """
    search, found = settings["tuning"], {}
    if settings["problem"] == "digits":
        return {"method": method, "variants": _tune_digits(method, settings, table, progress)}
    if method == "fedgradmp":
        return {"method": method, "variants": {}}
    drawn = [
        (r, problems.regression(settings, settings["alphas"][0], settings["noises"][0], r).problem)
        for r in search["replicates"]
    ]
    for number, variant in enumerate(variants(method, settings)):
        if progress is not None:
            progress(f"searching the step {variant}", number, len(variants(method, settings)))
        outcome = tune_step(
            lambda step, variant=variant: regression_method(
                method, settings, variant, step, settings["local_steps"][0]
            ),
            drawn,
            settings["seed"],
            search["rounds"],
            search["steps"],
            search["refine"],
        )
        found[variant] = outcome.record()
    return {"method": method, "variants": found}


def _tune_digits(method: str, settings: dict, table: Any, progress: Progress | None) -> dict[str, Any]:
    """Search the printed grid, dropping in stages the steps that are behind; all tau side by side."""
    data = problems.digits(settings, table)
    metrics = {"train_accuracy": _train_accuracy(data)}
    search = settings["tuning"]
    (replicate,) = search["replicates"]
    names = _digit_variants(method, settings)
    grid = [(name, step) for name in names for step in search["steps"]]
    scores = {point: 1.0 for point in grid}
    last = {point: 0 for point in grid}
    states, begin = None, 0
    stages = [(stop, keep) for stop, keep in _STAGES if stop < search["rounds"]] + [(search["rounds"], 1)]
    for number, (stop, keep) in enumerate(stages):
        if progress is not None:
            progress(f"searching the step, {len(grid)} runs to round {stop}", number, len(stages))
        history = simulate(
            digits_method(method, settings, [name for name, _ in grid], [step for _, step in grid]),
            data.problem,
            Streams(settings["seed"], (replicate,) * len(grid)),
            stop,
            metrics=metrics,
            record_every=stop - begin,
            cohort=FixedSize(settings["cohort"]),
            resume=None if states is None else (begin, states),
        )
        for point, value in zip(grid, history.metrics["train_accuracy"][-1], strict=True):
            scores[point], last[point] = 1.0 - float(value) if np.isfinite(value) else np.inf, stop
        kept = [
            place
            for name in names
            for place in sorted(
                (p for p, point in enumerate(grid) if point[0] == name), key=lambda p: scores[grid[p]]
            )[:keep]
        ]
        states = type(history.state)(*(field[kept] for field in history.state))
        grid, begin = [grid[place] for place in kept], stop
    best = dict(grid)
    return {
        name: {
            "step": best[name],
            "score": scores[name, best[name]],
            "steps": list(search["steps"]),
            "scores": [
                scores[name, step] if np.isfinite(scores[name, step]) else None for step in search["steps"]
            ],
            "rounds": [last[name, step] for step in search["steps"]],
        }
        for name in names
    }


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
    return kinds[settings["problem"]](method, settings, tuned, table, progress)


def _run_regression(
    method: str, settings: dict, tuned: dict | None, table: Any, progress: Progress | None
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


def _curves(method: str, settings: dict, tuned: dict | None, local_steps: int):
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


def digits_method(method: str, settings: Mapping, names: list[str], steps: list[float]):
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
    names = _digit_variants(method, settings)
    steps = [tuned["variants"][name]["step"] for name in names]
    metrics = {
        "train_accuracy": _train_accuracy(data),
        "test_accuracy": accuracy(*data.test),
        "nonzeros": nonzeros,
    }
    frames = []
    for replicate in settings["replicates"]:
        done = None if progress is None else lambda t, of, r=replicate: progress(f"seed {r}, rounds", t, of)
        history = simulate(
            digits_method(method, settings, names, steps),
            data.problem,
            Streams(settings["seed"], (replicate,) * len(names)),
            settings["rounds"],
            metrics=metrics,
            record_every=settings["record_every"],
            cohort=FixedSize(settings["cohort"]),
            progress=done,
        )
        frames.append(history.frame(method=method, variant=names, step=steps, replicate=replicate))
    return pd.concat(frames, ignore_index=True)
