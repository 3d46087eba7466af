"""Experiments of the paper: methods, on data, with settings.

A curve is one combination of step beta, control-variate step alpha, participation, minibatch and bits.
Where beta is tuned, on other repetitions, each method runs with its own best one (`own`) and with FedMM's
(`common`). Experiments without tuning run a list of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.engine.plans import Planned, execute, run_plan
from replifed.engine.search import Grid, search
from replifed.engine.simulate import objective
from replifed.engine.trials import Spent, Trials, tune_step
from replifed.network.participation import FixedSize
from replifed.papers.fedmm.paper import FIRST_ROUNDS
from replifed.papers.fedmm.problems import dictionary_problem, em_problem, toy_problem, transport_problem
from replifed.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedmm import settings as of

    Codes = of.Dictionary | of.MovieLens

FULL = "full"
"""Label, in histories, of a minibatch of all samples, and of messages without quantisation."""


def _squared(change: NDArray, gamma: NDArray) -> NDArray:
    """|change|^2 / gamma^2, 0 before the first step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gamma > 0, (change**2).sum(axis=-1) / gamma**2, 0.0)


def surrogate_update(problem: Any, observed: dict[str, NDArray]) -> NDArray:
    """E^s: |s+ - s|^2 / gamma^2; for parameter aggregation, of the mirrors of its parameters."""
    if "surrogate" in observed:
        return _squared(observed["surrogate"] - observed["surrogate_before"], observed["gamma"])
    # The earlier mirror first: the problem keeps the last one, and the objective needs the later one.
    before = problem.mirror(observed["server_before"])
    return _squared(problem.mirror(observed["server"]) - before, observed["gamma"])


def parameter_update(problem: Any, observed: dict[str, NDArray]) -> NDArray:
    """E^p: |T(s+) - T(s)|^2 / gamma^2; for parameter aggregation |theta+ - theta|^2 / gamma^2."""
    before = problem.T(observed["surrogate_before"]) if "surrogate" in observed else observed["server_before"]
    return _squared(observed["server"] - before, observed["gamma"])


def mean_field(problem: Any, observed: dict[str, NDArray]) -> NDArray:
    """|h(s)|^2, where h(s) = E sbar(Z, T(s)) - s is zero at stationary points."""
    return ((problem.mirror(observed["server"]) - observed["surrogate"]) ** 2).sum(axis=-1)


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

    Returns the outcome of `_search`; if the method is to run with the step of a `leader`, too, also `common`,
    the outcome of the leader's search. `trials` are those of both.
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
    """Steps that a method runs with, by reading, from the outcome of `tune`."""
    return {"own": tuned["beta"], "common": tuned.get("common", tuned)["beta"]}


def _search(method: str, settings: Codes, table: Any, partition: Any, progress: Progress) -> dict[str, Any]:
    """Search the step with the lowest mean objective in the tail among those that are stable.

    Returns a record of `search.Search`, its steps called beta and betas; highest: the bound of the search;
    trials, cost: what was run.
    """
    progress(f"searching the step of {method}", 0, 1)
    asked = settings.tuning
    assert asked is not None
    rounds = asked.rounds
    (curve,) = _curves(settings)
    trials = Trials(
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
    ).record()
    steps = {"beta": found.pop("step"), "betas": found.pop("steps")}
    return {**steps, **found, "highest": highest, **trials.spent.of_trials()}


def _search_transport(method: str, settings: of.Transport, table: Any, progress: Progress) -> dict[str, Any]:
    """Search the step with the lowest L2-UVP, mean over the search's repetitions."""
    asked, spent = settings.tuning, Spent()
    assert asked is not None
    names, rounds = asked.replicates, asked.rounds
    only_last = settings.with_(rounds=rounds, record_every=rounds)
    problem = transport_problem(settings, table, names)

    def score(steps: NDArray) -> NDArray:
        found = []
        for number, step in enumerate(steps):
            progress(f"step {step:g}", number, len(steps))
            history = run_plan(_at_step(method, only_last, names, problem, step), settings.seed).history
            spent.add(history)
            found.append(history.metrics["uvp"][-1].mean())
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
    match settings.problem:
        case "em":
            plans = _em(method, settings)
        case "toy":
            plans = _toy(method, settings)
        case "transport":
            plans = _transport(method, settings, table)
        case _:
            plans = _dictionary(method, settings, tuned, table, partition)
    return execute(method, settings.seed, plans, progress)


def _dictionary(
    method: str, settings: Codes, tuned: dict | None, table: Any, partition: Any
) -> Iterator[Planned]:
    """A plan for each curve, whose runs are all repetitions, steps beta and alpha."""
    steps = sorted(set(tuned_betas(tuned).values())) if tuned is not None else settings.betas
    assert steps is not None
    runs = itertools.product(settings.replicates, steps, settings.alphas)
    replicates, betas, alphas = (list(column) for column in zip(*runs, strict=True))
    labels: dict[str, Any] = {"beta": betas, "alpha": alphas}
    if tuned is not None:
        chaotic = {found["beta"]: found["chaotic"] for found in (tuned.get("common", tuned), tuned)}
        labels["chaotic"] = [chaotic[beta] for beta in betas]
    problem = dictionary_problem(settings, replicates, table, partition)
    for curve in _curves(settings):
        yield Planned(
            algorithm=_algorithm(method, settings, curve, np.array(betas), np.array(alphas)),
            problem=problem,
            replicates=replicates,
            rounds=settings.rounds,
            labels={
                **labels,
                "participation": curve["participation"],
                "batch": FULL if curve["batch"] is None else str(curve["batch"]),
                "message_bits": FULL if curve["bits"] is None else str(curve["bits"]),
            },
            metrics=METRICS,
            record_every=settings.record_every,
            options={
                "cohort": _cohort(curve["participation"], settings.clients),
                "schedule": _schedule(method, settings.objective_every),
            },
        )


def _schedule(method: str, every: int) -> dict[str, Callable[[int], bool]]:
    """When to record the metrics that code all samples, which takes longer than a round."""
    names = ("objective", "surrogate_update") if method == "parameter_aggregation" else ("objective",)
    return dict.fromkeys(names, lambda t: t < FIRST_ROUNDS or t % every == 0)


def _curves(settings: Codes) -> Iterator[dict[str, Any]]:
    """Settings of which each combination is a simulation; steps are runs of one."""
    for values in itertools.product(settings.participations, settings.batches, settings.bits):
        yield dict(zip(("participation", "batch", "bits"), values, strict=True))


def _algorithm(method: str, settings: Codes, curve: dict, beta: NDArray, alpha: NDArray | float) -> Any:
    return method_class(method)(
        beta=beta, decay=settings.decay, alpha=alpha, bits=curve["bits"], batch=curve["batch"]
    )


def _cohort(participation: float, clients: int) -> FixedSize | None:
    """Cohorts of a share of the clients; None if all take part."""
    active = max(round(participation * clients), 1)
    return None if active == clients else FixedSize(active)


def _em(method: str, settings: of.ExpectationMaximisation) -> Iterator[Planned]:
    """Centralised EM for SA-SSMM; FedMM with all clients, all samples and step 1, and as a federation."""
    exact: dict[str, Any] = {"beta": 1.0, "decay": 0.0}
    readings = {"exact": (exact, 1.0)}
    if method != "sa_ssmm":
        exact["alpha"] = settings.alpha
        constants = {key: getattr(settings, key) for key in ("beta", "decay", "alpha", "bits", "batch")}
        readings["federated"] = constants, settings.participation
    for replicate in settings.replicates:
        problem = em_problem(settings, replicate)
        for reading, (constants, participation) in readings.items():
            yield Planned(
                algorithm=method_class(method)(**constants),
                problem=problem,
                replicates=[replicate],
                rounds=settings.rounds,
                labels={"reading": reading},
                metrics=EM_METRICS,
                record_every=settings.record_every,
                options={"cohort": _cohort(participation, settings.clients)},
            )


def _toy(method: str, settings: of.Toy) -> Iterator[Planned]:
    """Remark 1: exact oracles, all clients, step 1."""
    for reading, z in settings.values:
        yield Planned(
            algorithm=method_class(method)(beta=1.0, decay=0.0),
            problem=toy_problem(reading, z),
            replicates=[0],
            rounds=settings.rounds,
            labels={"reading": reading},
            metrics={"objective": objective, "theta": _first_coordinate},
        )


def _first_coordinate(_: Any, observed: dict[str, NDArray]) -> NDArray:
    return observed["server"][:, 0]


def _transport(method: str, settings: of.Transport, table: Any) -> Iterator[Planned]:
    """All repetitions of one method at its step, those with perturbed runs and then the others."""
    assert settings.steps is not None
    replicates, step = settings.replicates, settings.steps[method]
    chosen = replicates if settings.twin_replicates is None else settings.twin_replicates
    perturbed = [name for name in replicates if name in chosen]
    others = [name for name in replicates if name not in chosen]
    groups = [(names, transport_problem(settings, table, names)) for names in (perturbed, others) if names]
    linear = np.concatenate([problem.linear_uvp() for _, problem in groups]).mean()
    for names, problem in groups:
        yield replace(
            _at_step(method, settings, names, problem, step),
            labels={"dim": settings.dim, "step": step, "linear_uvp": float(linear)},
            run_labels={"chaotic": attrgetter("chaotic")},
            perturbed="compared" if names is perturbed else None,
        )


def _at_step(
    method: str, settings: of.Transport, replicates: list[int], problem: Any, step: float
) -> Planned:
    """Repetitions of a method, at a step."""
    keys = ["batch", "server_batch", "start_steps", "cycle"]
    if method == "fedmm_ot":
        keys += ["alpha", "server_step", "server_steps"]
    constants = {key: getattr(settings, key) for key in keys}
    return Planned(
        algorithm=method_class(method)(step=np.full(len(replicates), step), **constants),
        problem=problem,
        replicates=replicates,
        rounds=settings.rounds,
        metrics={"uvp": _uvp},
        compared="uvp",
        record_every=settings.record_every,
        options={"cohort": _cohort(settings.participation, settings.clients)},
    )


def _uvp(problem: Any, observed: dict[str, NDArray]) -> NDArray:
    """L2-UVP of the potential's map, in percent."""
    return problem.uvp(observed["server"])
