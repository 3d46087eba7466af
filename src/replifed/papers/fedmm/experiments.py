"""What the paper runs: which method, on which data, with which settings.

A curve is one combination of step beta, control-variate step alpha, participation, minibatch and bits.
Where beta is tuned, on other repetitions, each method runs with its own best one (`own`) and with FedMM's
(`common`). Experiments without tuning run a list of them.
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
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import objective, simulate
from replifed.tune import Grid, Trials, tune_step

# The method at whose step both are read in `common`.
_LEADER = "fedmm"
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
    """Search the method's step beta, and FedMM's for a method that is to run with it too.

    Returns
    -------
    dict
        What `_search` returns; for another method than FedMM also `common`: the same of FedMM's search, as
        FedMM's own job makes it. `trials` are those of both.
    """
    if settings["problem"] == "transport":
        return transport.search(method, settings, table, progress)
    found = {"method": method, **_search(method, settings, table, partition, progress)}
    if method != _LEADER:
        found["common"] = _search(_LEADER, settings, table, partition, progress)
        names = {*found["trials"]["replicates"], *found["common"]["trials"]["replicates"]}
        found["trials"] = {"replicates": sorted(names)}
    return found


def tuned_betas(tuned: dict[str, Any]) -> dict[str, float]:
    """The steps that a method runs with, by reading, from the outcome of `tune`."""
    return {"own": tuned["beta"], "common": tuned.get("common", tuned)["beta"]}


def _search(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None
) -> dict[str, Any]:
    """Search the step with the lowest mean objective in the tail among those that are stable.

    Returns
    -------
    dict
        beta, score; betas, scores: all that were tried, None for a step that diverged; rejected, edge,
        chaotic: see `tune.Search`; highest: the bound of the search; trials, cost: what was run.
    """
    if progress is not None:
        progress(f"searching the step of {method}", 0, 1)
    asked = settings["tuning"]
    rounds = asked["rounds"]
    (curve,) = _curves(settings)
    trials = Trials.on(
        asked["replicates"],
        lambda name: dictionary_problem(settings, [name], table, partition),
        settings["seed"],
        rounds,
        asked["tail"],
        options={"cohort": _cohort(curve, settings["clients"])},
    )
    # gamma_t = min(1, beta / t^decay) is 1 all along for all larger steps.
    highest = float(f"{rounds ** settings['decay']:.4g}")
    found = tune_step(
        lambda beta: _algorithm(method, settings, curve, beta, settings["alphas"][0]),
        trials,
        Grid.of_steps(asked["betas"], asked["refine"], bounds=((0.0, highest),)),
        check=True,
    ).record()
    return {
        "beta": found.pop("step"),
        "betas": found.pop("steps"),
        **found,
        "highest": highest,
        **trials.record(),
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
    return runner(method, settings, tuned, table, partition, progress)


def _curves(settings: dict) -> Iterator[dict[str, Any]]:
    """Settings of which each combination is a simulation of its own; steps are rows of one."""
    keys = {"participations": "participation", "batches": "batch", "bits": "bits"}
    for values in itertools.product(*(settings[key] for key in keys)):
        yield dict(zip(keys.values(), values, strict=True))


def _algorithm(method: str, settings: dict, curve: dict, beta: NDArray, alpha: NDArray | float) -> Any:
    return method_class(method)(
        beta=beta, decay=settings["decay"], alpha=alpha, bits=curve["bits"], batch=curve["batch"]
    )


def _cohort(curve: dict, clients: int) -> FixedSize | None:
    active = max(round(curve["participation"] * clients), 1)
    return None if active == clients else FixedSize(active)


def _run_dictionary(
    method: str, settings: dict, tuned: dict | None, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    steps = settings["betas"] if tuned is None else sorted(set(tuned_betas(tuned).values()))
    rows = list(itertools.product(settings["replicates"], steps, settings["alphas"]))
    names, betas, alphas = (list(column) for column in zip(*rows, strict=True))
    known = {}
    if tuned is not None:  # what the searches found out about their steps
        luck = {one["beta"]: one["chaotic"] for one in (tuned.get("common", tuned), tuned)}
        known["chaotic"] = [luck[beta] for beta in betas]
    curves, frames = list(_curves(settings)), []
    problem = dictionary_problem(settings, names, table, partition)
    for number, curve in enumerate(curves):
        if progress is not None:
            progress(", ".join(f"{key} {value}" for key, value in curve.items()), number, len(curves))
        history = simulate(
            _algorithm(method, settings, curve, np.array(betas), np.array(alphas)),
            problem,
            Streams(settings["seed"], tuple(names)),
            settings["rounds"],
            metrics=METRICS,
            record_every=settings["record_every"],
            cohort=_cohort(curve, problem.n_clients),
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
                **known,
            )
        )
    return pd.concat(frames, ignore_index=True)


def _run_em(
    method: str, settings: dict, tuned: dict | None, table: Any, partition: Any, progress: Progress | None
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
    method: str, settings: dict, tuned: dict | None, table: Any, partition: Any, progress: Progress | None
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
    method: str, settings: dict, tuned: dict | None, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    return transport.run(method, settings, table, progress)
