"""What the paper runs: which method, on which data, with which settings.

A curve is one combination of step beta, control-variate step alpha, participation, minibatch and bits.
All steps of the paper's range are run; which one a figure shows is decided by a search on other
repetitions: each method's own (`own`), or FedMM's for both methods (`common`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.network.participation import FixedSize
from replifed.papers.fedmm import transport
from replifed.papers.fedmm.simulations import dictionary_problem, em_problem, toy_problem
from replifed.papers.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import objective, simulate

FULL = "full"
"""How a history writes a minibatch of all samples, and messages without quantisation."""


def _squared(moved: NDArray, gamma: NDArray) -> NDArray:
    """|moved|^2 / gamma^2, 0 before the first step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gamma > 0, (moved**2).sum(axis=-1) / gamma**2, 0.0)


def surrogate_update(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """E^s: |s+ - s|^2 / gamma^2; for parameter aggregation, of the mirrors of its parameters."""
    if "surrogate" in seen:
        moved = seen["surrogate"] - seen["surrogate_before"]
    else:
        # The earlier mirror first: the later one is at hand for the objective.
        before = problem.mirror(seen["server_before"])
        moved = problem.mirror(seen["server"]) - before
    return _squared(moved, seen["gamma"])


def parameter_update(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """E^p: |T(s+) - T(s)|^2 / gamma^2; for parameter aggregation |theta+ - theta|^2 / gamma^2."""
    if "surrogate" in seen:
        moved = seen["server"] - problem.T(seen["surrogate_before"])
    else:
        moved = seen["server"] - seen["server_before"]
    return _squared(moved, seen["gamma"])


METRICS = {
    "surrogate_update": surrogate_update,
    "objective": objective,
    "parameter_update": parameter_update,
}


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Run every step of the range on repetitions of its own.

    Returns
    -------
    dict
        beta: the step of the lowest mean objective after the search's rounds; betas, scores: all of them,
        None for a step that diverged.
    """
    if settings["problem"] == "transport":
        return transport.search(method, settings, table, progress)
    search = settings["tuning"]
    names, betas = search["replicates"], settings["betas"]
    rows = [(name, beta) for name in names for beta in betas]
    problem = dictionary_problem(settings, [name for name, _ in rows], table, partition)
    (curve,) = _curves(settings)
    history = _simulate(
        method, settings, curve, problem, rows, search["rounds"], search["rounds"], {"objective": objective}
    )
    scores = history.metrics["objective"][-1].reshape(len(names), len(betas)).mean(axis=0)
    # Where every step diverges, infinite scores make the smallest one win.
    best = betas[int(np.argmin(scores))]
    return {
        "method": method,
        "beta": best,
        "betas": list(betas),
        "scores": [float(score) if np.isfinite(score) else None for score in scores],
    }


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run all curves and seeds of `method`."""
    runner = {
        "dictionary": _run_dictionary,
        "movielens": _run_dictionary,
        "em": _run_em,
        "toy": _run_toy,
        "transport": _run_transport,
    }[settings["problem"]]
    return runner(method, settings, table, partition, progress)


def _curves(settings: dict) -> Iterator[dict[str, Any]]:
    """Settings of which each combination is a simulation of its own; steps are rows of one."""
    keys = {"participations": "participation", "batches": "batch", "bits": "bits"}
    for values in itertools.product(*(settings[key] for key in keys)):
        yield dict(zip(keys.values(), values, strict=True))


def _simulate(method, settings, curve, problem, rows, rounds, record_every, metrics):
    """Run one curve; `rows` lists the repetition, the step beta and perhaps alpha of each."""
    names, betas, *alphas = zip(*rows, strict=True)
    algorithm = method_class(method)(
        beta=np.array(betas),
        decay=settings["decay"],
        alpha=np.array(alphas[0]) if alphas else settings["alphas"][0],
        bits=curve["bits"],
        batch=curve["batch"],
    )
    active = max(round(curve["participation"] * problem.n_clients), 1)
    return simulate(
        algorithm,
        problem,
        Streams(settings["seed"], tuple(names)),
        rounds,
        metrics=metrics,
        record_every=record_every,
        cohort=None if active == problem.n_clients else FixedSize(active),
    )


def _run_dictionary(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    rows = list(itertools.product(settings["replicates"], settings["betas"], settings["alphas"]))
    names, betas, alphas = (list(column) for column in zip(*rows, strict=True))
    curves, frames = list(_curves(settings)), []
    problem = dictionary_problem(settings, names, table, partition)
    for number, curve in enumerate(curves):
        if progress is not None:
            progress(", ".join(f"{key} {value}" for key, value in curve.items()), number, len(curves))
        history = _simulate(
            method, settings, curve, problem, rows, settings["rounds"], settings["record_every"], METRICS
        )
        frames.append(
            history.frame(
                method=method,
                beta=betas,
                alpha=alphas,
                participation=curve["participation"],
                batch=FULL if curve["batch"] is None else str(curve["batch"]),
                message_bits=FULL if curve["bits"] is None else str(curve["bits"]),
                replicate=names,
            )
        )
    return pd.concat(frames, ignore_index=True)


def _run_em(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    """Centralised EM for SA-SSMM; FedMM with everybody, all samples and step 1, and as a federation."""
    frames = []
    for number, replicate in enumerate(settings["replicates"]):
        if progress is not None:
            progress(f"seed {replicate}", number, len(settings["replicates"]))
        problem = em_problem(settings, replicate)
        readings: dict[str, tuple[Any, FixedSize | None]]
        if method == "sa_ssmm":
            readings = {"exact": (method_class(method)(beta=1.0, decay=0.0), None)}
        else:
            federated = method_class(method)(
                beta=settings["beta"],
                decay=settings["decay"],
                alpha=settings["alpha"],
                bits=settings["bits"],
                batch=settings["batch"],
            )
            active = max(round(settings["participation"] * problem.n_clients), 1)
            readings = {
                "exact": (method_class(method)(beta=1.0, decay=0.0, alpha=settings["alpha"]), None),
                "federated": (federated, FixedSize(active)),
            }
        for reading, (algorithm, cohort) in readings.items():
            history = simulate(
                algorithm,
                problem,
                Streams(settings["seed"], (replicate,)),
                settings["rounds"],
                record_every=settings["record_every"],
                cohort=cohort,
            )
            frames.append(history.frame(method=method, reading=reading, replicate=replicate))
    return pd.concat(frames, ignore_index=True)


def _server(_: Any, seen: dict[str, NDArray]) -> NDArray:
    return seen["server"][:, 0]


def _run_toy(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    """Remark 1: exact oracles, all clients, step 1."""
    frames = []
    for reading, z in settings["values"].items():
        history = simulate(
            method_class(method)(beta=1.0, decay=0.0),
            toy_problem(reading, z),
            Streams(settings["seed"], (0,)),
            settings["rounds"],
            metrics={"objective": objective, "theta": _server},
        )
        frames.append(history.frame(method=method, reading=reading, replicate=0))
    return pd.concat(frames, ignore_index=True)


def _run_transport(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    return transport.run(method, settings, table, progress)
