"""What the paper runs: which method, on which data, with which settings.

A curve is one combination of step beta, control-variate step alpha, participation, minibatch and bits.
Where beta is tuned, on other repetitions, each method runs with its own best one (`own`) and with FedMM's
(`common`). Experiments without tuning run a list of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.engine.simulate import History, objective, simulate
from replifed.engine.tune import Grid, Spent, Trials, search, tune_step
from replifed.engine.twins import Twinned, simulate_with_twins
from replifed.network.participation import FixedSize
from replifed.papers.fedmm.problems import dictionary_problem, em_problem, toy_problem, transport_problems
from replifed.progress import Progress, silent
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.fedmm import settings as of

    Codes = of.Dictionary | of.MovieLens

FULL = "full"
"""How a history writes a minibatch of all samples, and messages without quantisation."""


def _squared(moved: NDArray, gamma: NDArray) -> NDArray:
    """|moved|^2 / gamma^2, 0 before the first step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gamma > 0, (moved**2).sum(axis=-1) / gamma**2, 0.0)


def surrogate_update(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """E^s: |s+ - s|^2 / gamma^2; for parameter aggregation, of the mirrors of its parameters."""
    if "surrogate" in seen:
        return _squared(seen["surrogate"] - seen["surrogate_before"], seen["gamma"])
    # The earlier mirror first: the later one is at hand for the objective.
    before = problem.mirror(seen["server_before"])
    return _squared(problem.mirror(seen["server"]) - before, seen["gamma"])


def parameter_update(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """E^p: |T(s+) - T(s)|^2 / gamma^2; for parameter aggregation |theta+ - theta|^2 / gamma^2."""
    before = problem.T(seen["surrogate_before"]) if "surrogate" in seen else seen["server_before"]
    return _squared(seen["server"] - before, seen["gamma"])


def mean_field(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """|h(s)|^2, where h(s) = E sbar(Z, T(s)) - s is zero at stationary points."""
    return ((problem.mirror(seen["server"]) - seen["surrogate"]) ** 2).sum(axis=-1)


METRICS = {"surrogate_update": surrogate_update, "objective": objective, "parameter_update": parameter_update}
EM_METRICS = {"surrogate_update": surrogate_update, "objective": objective, "mean_field": mean_field}


# --- Searches ------------------------------------------------------------------------------------


def tune(
    method: str,
    settings: Codes | of.Transport,
    table: Any,
    partition: Any,
    progress: Progress = silent,
    leader: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Search the method's step beta.

    Returns what `_search` does; where the method is to run with the step of a `leader`, too, also `common`:
    what that one's search returned. `trials` are those of both.
    """
    if settings.problem == "transport":
        return _search_transport(method, settings, table, progress)
    found = {"method": method, **_search(method, settings, table, partition, progress)}
    if leader is not None:
        found["common"] = {key: value for key, value in leader.items() if key not in ("method", "meta")}
        names = {*found["trials"]["replicates"], *found["common"]["trials"]["replicates"]}
        found["trials"] = {"replicates": sorted(names)}
    return found


def tuned_betas(tuned: dict[str, Any]) -> dict[str, float]:
    """The steps that a method runs with, by reading, from the outcome of `tune`."""
    return {"own": tuned["beta"], "common": tuned.get("common", tuned)["beta"]}


def _search(method: str, settings: Codes, table: Any, partition: Any, progress: Progress) -> dict[str, Any]:
    """Search the step with the lowest mean objective in the tail among those that are stable.

    Returns a record of `tune.Search`, its steps called beta and betas; highest: the bound of the search;
    trials, cost: what was run.
    """
    progress(f"searching the step of {method}", 0, 1)
    asked = settings.tuning
    assert asked is not None
    rounds = asked.rounds
    (curve,) = _curves(settings)
    trials = Trials.on(
        asked.replicates,
        lambda name: dictionary_problem(settings, [name], table, partition),
        settings.seed,
        rounds,
        asked.tail,
        options={"cohort": _cohort(curve["participation"], settings.clients)},
    )
    # gamma_t = min(1, beta / t^decay) is 1 all along for all larger steps.
    highest = float(f"{rounds**settings.decay:.4g}")
    found = tune_step(
        lambda beta: _algorithm(method, settings, curve, beta, settings.alphas[0]),
        trials,
        Grid.of_steps(asked.betas, asked.refine, bounds=((0.0, highest),)),
        check=True,
    ).record()
    steps = {"beta": found.pop("step"), "betas": found.pop("steps")}
    return {**steps, **found, "highest": highest, **trials.record()}


def _search_transport(method: str, settings: of.Transport, table: Any, progress: Progress) -> dict[str, Any]:
    """Search the step with the lowest L2-UVP, mean over the search's repetitions."""
    asked, spent = settings.tuning, Spent()
    assert asked is not None
    names, rounds = asked.replicates, asked.rounds
    only_last = settings.with_(rounds=rounds, record_every=rounds)
    data_sets = list(transport_problems(settings, table, names))

    def score(steps: NDArray) -> NDArray:
        found = []
        for number, step in enumerate(steps):
            progress(f"step {step:g}", number, len(steps))
            last = []
            for name, data in zip(names, data_sets, strict=True):
                history = _transport(method, only_last, data, name, step)
                spent.add(history)
                last.append(history.metrics["uvp"][-1, 0])
            found.append(np.mean(last))
        return np.where(np.isfinite(found), found, np.inf)

    found = search(score, Grid.of_steps(asked.steps[method], refine=0)).record()
    return {"method": method, **found, "trials": {"replicates": sorted(names)}, "cost": spent.record()}


# --- Runs ----------------------------------------------------------------------------------------


def run(
    method: str,
    settings: of.Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run all curves and seeds of `method`."""
    if settings.problem == "em":
        frames = _run_em(method, settings)
    elif settings.problem == "toy":
        frames = _run_toy(method, settings)
    elif settings.problem == "transport":
        frames = _run_transport(method, settings, table, progress)
    else:
        frames = _run_dictionary(method, settings, tuned, table, partition, progress)
    return pd.concat(frames, ignore_index=True)


def _curves(settings: Codes) -> Iterator[dict[str, Any]]:
    """Settings of which each combination is a simulation of its own; steps are runs of one."""
    for values in itertools.product(settings.participations, settings.batches, settings.bits):
        yield dict(zip(("participation", "batch", "bits"), values, strict=True))


def _algorithm(method: str, settings: Codes, curve: dict, beta: NDArray, alpha: NDArray | float) -> Any:
    return method_class(method)(
        beta=beta, decay=settings.decay, alpha=alpha, bits=curve["bits"], batch=curve["batch"]
    )


def _cohort(participation: float, clients: int) -> FixedSize | None:
    active = max(round(participation * clients), 1)
    return None if active == clients else FixedSize(active)


def _simulate(
    algorithm: Any,
    problem: Any,
    names: list[int],
    settings: of.Experiment,
    participation: float = 1.0,
    **metrics: Any,
) -> History:
    """The repetitions `names` of an algorithm, for the rounds of the settings."""
    return simulate(
        algorithm,
        problem,
        Streams(settings.seed, tuple(names)),
        settings.rounds,
        metrics=metrics,
        record_every=1 if settings.problem == "toy" else settings.record_every,
        cohort=_cohort(participation, problem.n_clients),
    )


def _run_dictionary(
    method: str, settings: Codes, tuned: dict | None, table: Any, partition: Any, progress: Progress
) -> Iterator[pd.DataFrame]:
    steps = sorted(set(tuned_betas(tuned).values())) if tuned is not None else settings.betas
    assert steps is not None
    runs = list(itertools.product(settings.replicates, steps, settings.alphas))
    names, betas, alphas = (list(column) for column in zip(*runs, strict=True))
    known = {}
    if tuned is not None:  # what the searches found out about their steps
        luck = {one["beta"]: one["chaotic"] for one in (tuned.get("common", tuned), tuned)}
        known["chaotic"] = [luck[beta] for beta in betas]
    curves = list(_curves(settings))
    problem = dictionary_problem(settings, names, table, partition)
    for number, curve in enumerate(curves):
        progress(", ".join(f"{key} {value}" for key, value in curve.items()), number, len(curves))
        algorithm = _algorithm(method, settings, curve, np.array(betas), np.array(alphas))
        history = _simulate(algorithm, problem, names, settings, curve["participation"], **METRICS)
        yield history.frame(
            method=method,
            beta=betas,
            alpha=alphas,
            participation=curve["participation"],
            batch=FULL if curve["batch"] is None else str(curve["batch"]),
            message_bits=FULL if curve["bits"] is None else str(curve["bits"]),
            replicate=names,
            **known,
        )


def _run_em(method: str, settings: of.ExpectationMaximisation) -> Iterator[pd.DataFrame]:
    """Centralised EM for SA-SSMM; FedMM with everybody, all samples and step 1, and as a federation."""
    exact: dict[str, Any] = {"beta": 1.0, "decay": 0.0}
    readings = {"exact": (exact, 1.0)}
    if method != "sa_ssmm":
        keys = {"beta", "decay", "alpha", "bits", "batch"}
        federation = {key: value for key, value in settings if key in keys}
        exact["alpha"] = settings.alpha
        readings["federated"] = (federation, settings.participation)
    for replicate in settings.replicates:
        problem = em_problem(settings, replicate)
        for reading, (own, participation) in readings.items():
            algorithm = method_class(method)(**own)
            history = _simulate(algorithm, problem, [replicate], settings, participation, **EM_METRICS)
            yield history.frame(method=method, reading=reading, replicate=replicate)


def _first_coordinate(_: Any, seen: dict[str, NDArray]) -> NDArray:
    return seen["server"][:, 0]


def _run_toy(method: str, settings: of.Toy) -> Iterator[pd.DataFrame]:
    """Remark 1: exact oracles, all clients, step 1."""
    for reading, z in settings.values:
        algorithm, problem = method_class(method)(beta=1.0, decay=0.0), toy_problem(reading, z)
        history = _simulate(algorithm, problem, [0], settings, objective=objective, theta=_first_coordinate)
        yield history.frame(method=method, reading=reading, replicate=0)


def _run_transport(
    method: str, settings: of.Transport, table: Any, progress: Progress
) -> Iterator[pd.DataFrame]:
    """All repetitions of one method at its step, each with samples and a split of its own."""
    assert settings.steps is not None
    names, step = settings.replicates, settings.steps[method]
    data_sets = list(transport_problems(settings, table, names))
    linear = float(np.mean([data.linear_uvp() for data in data_sets]))
    for number, (name, data) in enumerate(zip(names, data_sets, strict=True)):
        progress(f"seed {name}", number, len(names))
        if settings.twin_replicates is None or name in settings.twin_replicates:
            twinned = _transport_with_twins(method, settings, data, name, step)
            history, chaotic = twinned.history, twinned.chaotic
        else:
            history, chaotic = _transport(method, settings, data, name, step), np.zeros(1, bool)
        yield history.frame(
            method=method,
            dim=settings.dim,
            step=step,
            linear_uvp=linear,
            replicate=name,
            chaotic=chaotic,
        )


def _networks(method: str, settings: of.Transport, step: NDArray) -> Any:
    keys = {"batch", "server_batch", "start_steps", "cycle"}
    if method == "fedmm_ot":
        keys |= {"alpha", "server_step", "server_steps"}
    return method_class(method)(step=step, **{key: value for key, value in settings if key in keys})


def _transport(method: str, settings: of.Transport, data: Any, name: int, step: float) -> History:
    algorithm = _networks(method, settings, np.array([step]))
    return _simulate(algorithm, data, [name], settings, settings.participation, uvp=_uvp)


def _transport_with_twins(method: str, settings: of.Transport, data: Any, name: int, step: float) -> Twinned:
    return simulate_with_twins(
        lambda numbers, factors: _networks(method, settings, step * factors),
        data,
        Streams(settings.seed, (name,)),
        settings.rounds,
        compared="uvp",
        metrics={"uvp": _uvp},
        record_every=settings.record_every,
        cohort=_cohort(settings.participation, data.n_clients),
    )


def _uvp(data: Any, seen: dict[str, NDArray]) -> NDArray:
    """L2-UVP of the potential's map, in percent."""
    return data.uvp(seen["server"])
