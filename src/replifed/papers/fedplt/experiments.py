"""What the paper runs: which method, on which data sets, with which parameters.

Readings of "tuned" stand side by side, the same for all methods:

theory : the parameters that the method's own paper prescribes;
common : one choice for all data sets, searched on others than those reported;
own : each data set's own choice, as the paper seems to have it, of rho for Fed-PLT and of two parameters for
    its rivals (FedLin has one), searched around the common choice with all agents active;
equal budget : each data set's own choice, where every method searches its local step and all parameters of
    its own (`methods.FREE`). All begin with the same grid around their reference values, and end by the same
    rule, where a finer grid no longer changes the rate.

In `own` and `equal budget` a data set's parameters are chosen on that data set itself, and no other data are
held back. As these runs draw nothing at random, choice and report coincide: the rate reported is that of
the best parameters. TAMUNA draws its number of local steps even with all agents active, and a cohort is drawn
for all methods: there the luckiest of several random runs would be chosen, so that neither reading has them
(but for Fed-PLT's rho, chosen with all agents).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Exact, Gradient, Noisy
from replifed.network.participation import FixedSize, Independent
from replifed.papers.fedplt import footprint
from replifed.papers.fedplt.convergence import consensus_error, rate, traces
from replifed.papers.fedplt.data import regression
from replifed.papers.fedplt.methods import FREE, PARAMETERS, PARTIAL, SOLVERS, Cell, reference, theory
from replifed.papers.fedplt.trials import Trial, Values, around, common, each
from replifed.problems.minimiser import minimiser
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import simulate
from replifed.tune import Grid, Search, Spent


def tune(
    method: str, settings: dict, table: Any, partition: Any, progress: Progress | None = None
) -> dict[str, Any]:
    """Search each cell's common parameters.

    Returns
    -------
    dict
        cells -> {"SOLVER/COHORT": {best, rate, tried, edge, cost}}. best : multiples of `methods.reference`;
        rate : mean over the data sets; tried : every point with its rate, None if one of its runs diverged;
        edge : whether the best point lies at an edge of what was tried; cost : runs, rounds and bits.
        trials -> {"replicates": the data sets that were run for it}.
    """
    chosen = settings["tuning"]
    found, used = {}, set()
    wanted = [] if method == "fedavg" else list(_cells(method, settings))
    for done, cell in enumerate(wanted):
        if progress is not None:
            progress(f"searching {_name(cell)}", done, len(wanted))
        trial = Trial(method, settings, tuple(chosen["replicates"]), chosen["rounds"])
        names = PARAMETERS[method]
        grid = around(np.ones(len(names)), chosen["ratio"], chosen["reach"], refine=chosen["refine"])
        best = common(trial, cell, reference(method, trial.moduli, cell), grid)
        used.update(trial.used)
        found[_name(cell)] = {
            "best": list(best.best),
            "rate": best.score,
            "tried": [
                [*point, score if np.isfinite(score) else None]
                for point, score in zip(best.points, best.scores, strict=True)
            ],
            "edge": best.edge,
            "cost": trial.costs.total().record(),
        }
    names = PARAMETERS.get(method, ())
    return {
        "method": method,
        "parameters": list(names),
        "cells": found,
        "trials": {"replicates": sorted(used)},
    }


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run `method` on all data sets; one line a data set and setting, or, for curves, a round as well."""
    runner: Callable[..., pd.DataFrame] = {
        "comparison": _compare,
        "participation": _participation,
        "noise": _noise,
        "penalty": _penalty,
        "epochs": _epochs,
        "exactness": _exactness,
        "bounds": _bounds,
        "privacy": _privacy,
        "readings": _readings,
        "footprint": footprint.run,
    }[settings["problem"]]
    return runner(method, settings, tuned or {}, progress or (lambda *_: None)).assign(method=method)


# --- Cells of Table II ----------------------------------------------------------------------------


def _cells(method: str, settings: dict) -> Iterator[Cell]:
    for solver in settings["solvers"]:
        for cohort in (settings["agents"], settings["cohort"]):
            if cohort == settings["agents"] or method in PARTIAL:
                yield Cell(solver, settings["local_steps"], settings["agents"], cohort)


def _name(cell: Cell) -> str:
    return f"{cell.solver}/{cell.cohort}"


class _Choice(NamedTuple):
    """Parameters by name, (S,) each, for the first `sets` data sets, and how they were found."""

    values: Values
    sets: int
    cost: Spent = Spent()
    edge: NDArray | bool = False


def _compare(method: str, settings: dict, tuned: dict, progress: Progress) -> pd.DataFrame:
    replicates = tuple(settings["replicates"])
    # FedAvg stays where it is after a few rounds.
    rounds = settings["baseline_rounds"] if method == "fedavg" else settings["rounds"]
    reported = Trial(method, settings, replicates, rounds)
    cells = list(_cells(method, settings))
    if method == "fedavg":
        cells = [cell for cell in cells if cell.solver == "gradient"]
    # As the paper has it: rho is for a solver and a data set, whoever takes part.
    rho: dict[str, _Choice] = {}
    frames = []
    for done, cell in enumerate(cells):
        progress(_name(cell), done, len(cells))
        if method == "fedavg":
            readings = {"theory": _Choice({}, len(replicates))}
        else:
            readings = _chosen(method, settings, tuned["cells"][_name(cell)], cell, reported, rho)
        frames += _cell_frames(method, reported, cell, readings, settings["target"])
    return pd.concat(frames, ignore_index=True)


def _chosen(
    method: str, settings: dict, tuned: dict, cell: Cell, reported: Trial, rho: dict[str, _Choice]
) -> dict[str, _Choice]:
    """The parameters of each reading; `rho` keeps Fed-PLT's own ones."""
    replicates, base = reported.replicates, reference(method, reported.moduli, cell)
    S, multiples = len(replicates), np.array(tuned["best"])
    readings = {
        "theory": _Choice(theory(method, reported.moduli, cell), S),
        "common": _Choice(
            {name: base[name] * multiples[place] for place, name in enumerate(base)},
            S,
            Spent(**tuned["cost"]),
            tuned["edge"],
        ),
    }
    everyone = cell.cohort == cell.agents
    if method == "fedplt":
        if everyone:
            trial = _rho_trial(settings, replicates)
            found = _rho_searches(trial, settings, cell.solver)
            rho[cell.solver] = _choice(trial, {"rho": np.ones(S)}, found)
        # Nothing more is searched for half of the agents.
        readings["own"] = rho[cell.solver] if everyone else rho[cell.solver]._replace(cost=Spent())
    if not everyone or method == "tamuna":
        return readings
    if method != "fedplt":
        trial = Trial(method, settings, replicates, settings["tuning_rounds"])
        chosen = settings["own"]
        grid = around(multiples, chosen["ratio"], 1, refine=chosen["refine"])
        readings["own"] = _choice(trial, base, each(trial, cell, base, grid))
    readings["equal budget"] = equal_budget(method, settings, cell, replicates)
    return readings


def equal_budget(method: str, settings: dict, cell: Cell, replicates: tuple[int, ...]) -> _Choice:
    """Search a method's local step and all its own parameters, for each of the first data sets by itself."""
    chosen = settings["equal_budget"]
    trial = Trial(method, settings, replicates[: chosen["sets"]], chosen["rounds"])
    base = reference(method, trial.moduli, cell)
    free = {name: base.get(name, np.ones(len(trial.replicates))) for name in FREE[method]}
    grid = around(
        np.ones(len(free)),
        chosen["ratio"],
        chosen["reach"],
        refine=chosen["refine"],
        tolerance=chosen["tolerance"],
    )
    return _choice(trial, free, each(trial, cell, free, grid))


def _choice(trial: Trial, base: Values, found: list[Search]) -> _Choice:
    """What the searches found, as multiples of `base`."""
    best = np.array([one.best for one in found])
    values = {name: one * best[:, place] for place, (name, one) in enumerate(base.items())}
    return _Choice(values, len(found), trial.costs.total(), np.array([one.edge for one in found]))


def _cell_frames(
    method: str, reported: Trial, cell: Cell, readings: dict[str, _Choice], target: float
) -> list[pd.DataFrame]:
    """Run a cell; a frame for each reading. The readings are points of one grid."""
    S = len(reported.replicates)
    wanted = np.stack([np.arange(S) < choice.sets for choice in readings.values()], axis=1)
    stacked = {name: np.ones((S, len(readings))) for name in FREE.get(method, ())}
    for place, choice in enumerate(readings.values()):
        for name, values in choice.values.items():
            stacked[name][:, place] = np.resize(values, S)  # what fills up is not run
    errors = reported.errors(cell, stacked, target, wanted)
    rates, last = rate(errors), _last(errors)
    frames = []
    for place, (reading, choice) in enumerate(readings.items()):
        n = choice.sets
        parameters: list[NDArray | float] = [values[:n, place] for values in stacked.values()]
        parameters += [np.nan] * (3 - len(parameters))
        frames.append(
            pd.DataFrame(
                {
                    "solver": cell.solver,
                    "cohort": cell.cohort,
                    "reading": reading,
                    "replicate": reported.replicates[:n],
                    "rate": rates[:n, place],
                    "error": last[:n, place],
                    "rounds": (~np.isnan(errors[:, :n, place])).sum(axis=0) - 1,
                    "exchanges": 2 if method == "fedlin" else 1,
                    "low": reported.moduli.low[:n],
                    "high": reported.moduli.high[:n],
                    **dict(zip(("first", "second", "third"), parameters, strict=True)),
                    "edge": choice.edge,
                    # Of the search for all data sets of this cell and reading together.
                    **{f"tuning_{name}": used for name, used in choice.cost.record().items()},
                }
            )
        )
    return frames


def _last(errors: NDArray) -> NDArray:
    """Last recorded error of each run, from (T, ...)."""
    recorded = (~np.isnan(errors)).sum(axis=0) - 1
    return np.take_along_axis(errors, recorded[None], axis=0)[0]


def _rho_trial(settings: dict, replicates: tuple[int, ...]) -> Trial:
    return Trial("fedplt", settings, replicates, settings["tuning_rounds"])


def _rho_searches(trial: Trial, settings: dict, solver: str) -> list[Search]:
    cell = Cell(solver, settings["local_steps"], settings["agents"], settings["agents"])
    grid = Grid((tuple(np.geomspace(*settings["rho_grid"]).tolist()),), settings["refine"])
    return each(trial, cell, {"rho": np.ones(len(trial.replicates))}, grid)


def best_rho(settings: dict, replicates: tuple[int, ...], solver: str) -> NDArray:
    """Each data set's best rho with all agents active, from the grid of `settings`, refined; shape (S,)."""
    found = _rho_searches(_rho_trial(settings, replicates), settings, solver)
    return np.array([one.step for one in found])


# --- Fed-PLT alone --------------------------------------------------------------------------------


def _plt_errors(
    settings: dict,
    solver: Any,
    rho: NDArray,
    rounds: int,
    *,
    target: float = 1e-10,
    cohort: Any = None,
    start: Literal["warm", "cold"] = "warm",
    **data: str,
) -> tuple[Any, NDArray]:
    """The problem, and the relative errors (T, S, G) of Fed-PLT with rho (S or 1, G)."""
    replicates = tuple(settings["replicates"])
    problem = regression(settings, replicates, **data)
    rho = np.broadcast_to(rho, (len(replicates), rho.shape[1]))
    errors = traces(
        lambda points, sets: FedPLT(rho=rho[sets][:, points].ravel(), solver=solver, start=start),
        problem,
        settings["seed"],
        replicates,
        rho.shape[1],
        rounds,
        target=target,
        cohort=cohort,
    )
    return problem, errors


def _rates_frame(settings: dict, problem: Any, errors: NDArray, **labels: Any) -> pd.DataFrame:
    """One line a data set and grid point; labels are scalars or of length G."""
    sets, points = errors.shape[1:]
    low, high = problem.common_mu_L()
    columns = {
        name: np.tile(np.broadcast_to(value, (points,)), sets) if np.ndim(value) != 2 else value.ravel()
        for name, value in labels.items()
    }
    return pd.DataFrame(
        {
            **columns,
            "replicate": np.repeat(settings["replicates"], points),
            "rate": rate(errors).ravel(),
            "error": _last(errors).ravel(),
            "low": np.repeat(low, points),
            "high": np.repeat(high, points),
        }
    )


def _participation(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    replicates = tuple(settings["replicates"])
    rho = best_rho(settings, replicates, "gradient")[:, None]
    frames = []
    for active in settings["active"]:
        progress(f"{active} agents", active, settings["agents"])
        cohort = None if active == settings["agents"] else FixedSize(active)
        problem, errors = _plt_errors(
            settings, Gradient(steps=settings["local_steps"]), rho, settings["rounds"], cohort=cohort
        )
        frames.append(_rates_frame(settings, problem, errors, active=active, rho=rho))
    return pd.concat(frames, ignore_index=True)


def _penalty(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    rho = np.geomspace(*settings["rho_grid"])[None]
    problem, errors = _plt_errors(settings, Gradient(steps=settings["local_steps"]), rho, settings["rounds"])
    return _rates_frame(settings, problem, errors, rho=rho[0])


def _epochs(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    rho = np.array([[settings["rho"]]])
    plans = [("gradient", steps) for steps in settings["epochs"]]
    plans += [("accelerated", steps) for steps in settings["accelerated_epochs"]]
    frames = []
    for done, (solver, steps) in enumerate(plans):
        progress(f"{solver}, {steps} local steps", done, len(plans))
        problem, errors = _plt_errors(settings, SOLVERS[solver](steps=steps), rho, settings["rounds"])
        frames.append(_rates_frame(settings, problem, errors, solver=solver, steps=steps))
    problem, errors = _plt_errors(settings, Exact(), rho, settings["rounds"])
    frames.append(_rates_frame(settings, problem, errors, solver="exact", steps=0))
    return pd.concat(frames, ignore_index=True)


def _exactness(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    """Remark 3: runs to the last digits; Remark 2: the same from a cold start."""
    rho, frames = np.array([[settings["rho"]]]), []
    for steps in settings["epochs"]:
        for name, cohort in (("all", None), ("half", FixedSize(settings["agents"] // 2))):
            for start in ("warm", "cold") if name == "all" else ("warm",):
                progress(f"{steps} local steps, {name}, {start}", 0, len(settings["epochs"]))
                problem, errors = _plt_errors(
                    settings,
                    Gradient(steps=steps),
                    rho,
                    settings["rounds"],
                    target=settings["target"],
                    cohort=cohort,
                    start=start,
                )
                frames.append(
                    _rates_frame(settings, problem, errors, steps=steps, participation=name, start=start)
                )
    return pd.concat(frames, ignore_index=True)


def _readings(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    """The best penalty and its rate under other readings of the set-up."""
    grid, frames = np.geomspace(*settings["rho_grid"])[None], []
    for done, (loss, data) in enumerate(
        (("sum", "planted"), ("mean", "planted"), ("sum", "classification"), ("mean", "classification"))
    ):
        progress(f"{loss}, {data}", done, 4)
        problem, errors = _plt_errors(
            settings, Gradient(steps=settings["local_steps"]), grid, settings["rounds"], loss=loss, data=data
        )
        frames.append(_rates_frame(settings, problem, errors, rho=grid[0], loss=loss, labels=data))
    return pd.concat(frames, ignore_index=True)


# --- Noise and privacy ----------------------------------------------------------------------------


def _asymptotic(
    problem: Any, settings: dict, algorithm: Any, points: int, replicates: tuple[int, ...]
) -> dict[str, NDArray]:
    """Errors averaged over the last rounds, by the way they are measured; (S, G) each."""
    S, rounds, tail = len(replicates), settings["rounds"], settings["tail"]
    solution = np.repeat(minimiser(problem, S), points, axis=0)
    total = consensus_error(solution)

    def agents(_: Any, seen: dict[str, NDArray]) -> NDArray:
        return np.linalg.norm(seen["clients"] - solution[:, None], axis=-1).mean(axis=1)

    def coordinator(_: Any, seen: dict[str, NDArray]) -> NDArray:
        return np.linalg.norm(seen["server"] - solution, axis=-1)

    streams = Streams(settings["seed"], tuple(np.repeat(replicates, points).tolist()))
    begin = rounds - tail
    before = simulate(algorithm, problem, streams, begin, metrics={}, record_every=max(begin, 1))
    history = simulate(
        algorithm,
        problem,
        streams,
        rounds,
        metrics={"stacked": total, "agents": agents, "coordinator": coordinator},
        resume=(begin, before.state),
    )
    return {name: values[1:].mean(axis=0).reshape(S, points) for name, values in history.metrics.items()}


def _noise(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    levels = np.array(settings["tau"])
    # Both readings in one run: as a variance tau, and as a deviation tau^2.
    variances, inverse = np.unique(np.concatenate([levels, levels**2]), return_inverse=True)
    everyone, size = tuple(settings["replicates"]), settings["together"]
    frames = []
    for first in range(0, len(everyone), size):
        progress(f"data sets from {everyone[first]}", first, len(everyone))
        replicates = everyone[first : first + size]
        problem = regression(settings, replicates)
        algorithm = FedPLT(
            rho=settings["rho"],
            solver=Noisy(steps=settings["local_steps"], tau=np.tile(variances, len(replicates))),
        )
        errors = _asymptotic(problem, settings, algorithm, len(variances), replicates)
        for place, reading in enumerate(("variance", "deviation")):
            columns = inverse.reshape(2, -1)[place]
            frames.append(
                pd.DataFrame(
                    {
                        "reading": reading,
                        "tau": np.tile(levels, len(replicates)),
                        "replicate": np.repeat(replicates, len(levels)),
                        **{name: values[:, columns].ravel() for name, values in errors.items()},
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def _privacy(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    """Errors after K rounds for each level of noise and number of epochs, as Proposition 4 asks for it.

    Mean losses, samples' gradients clipped, all agents active, x_{i,0} ~ N(0, 2 tau^2 / low).
    """
    replicates = tuple(settings["replicates"])
    problem = regression(settings, replicates)
    low, high = problem.common_mu_L()
    deviations = np.array(settings["tau"])
    rows = np.tile(deviations, len(replicates))
    solution = np.repeat(minimiser(problem, len(replicates)), len(deviations), axis=0)
    rho, frames = settings["rho"], []
    for done, steps in enumerate(settings["epochs"]):
        progress(f"{steps} local steps", done, len(settings["epochs"]))
        solver = Noisy(steps=steps, tau=rows, reading="deviation", clip=settings["clip"])
        start = rows * np.sqrt(2.0 / np.repeat(low, len(deviations)))
        history = simulate(
            FedPLT(rho=rho, solver=solver, start_deviation=start),
            problem,
            Streams(settings["seed"], tuple(np.repeat(replicates, len(deviations)).tolist())),
            settings["rounds"],
            metrics={
                "error": lambda _, seen: np.linalg.norm(seen["clients"] - solution[:, None], axis=-1).mean(1)
            },
            record_every=settings["record_every"],
        )
        gamma = 2.0 / (low + high + 2.0 / rho)
        frames.append(
            history.frame(
                steps=steps,
                tau=rows,
                replicate=np.repeat(replicates, len(deviations)),
                low=np.repeat(low, len(deviations)),
                gamma=np.repeat(gamma, len(deviations)),
            )
        )
    kept = ["steps", "tau", "replicate", "round", "error", "low", "gamma", "diverged"]
    return pd.concat(frames, ignore_index=True)[kept]


def _bounds(method: str, settings: dict, tuned: Any, progress: Progress) -> pd.DataFrame:
    """Distance of (x, z) to the fixed point over the rounds, for Proposition 2 and Corollary 1."""
    replicates = tuple(settings["replicates"])
    problem = regression(settings, replicates)
    S, rho = len(replicates), settings["rho"]
    solution = minimiser(problem, S)
    x_bar = np.repeat(solution[:, None], problem.n_clients, axis=1)
    # x_bar = prox_{rho f_i}(2 x_bar - z_i) at the fixed point.
    z_bar = x_bar - rho * problem.per_client_gradients(x_bar)

    def distance(_: Any, seen: dict[str, NDArray]) -> NDArray:
        gap = np.stack([seen["clients"] - x_bar, seen["auxiliary"] - z_bar])
        return np.sqrt((gap**2).sum(axis=(0, 2, 3)))

    low, high = problem.common_mu_L()
    frames = []
    for steps in settings["epochs"]:
        for probability in settings["probabilities"]:
            for deviation in settings["tau"] if probability == 1 else settings["tau"][:1]:
                progress(f"{steps} local steps, p = {probability}, tau = {deviation}", 0, 1)
                solver = Noisy(steps=steps, tau=deviation, reading="deviation") if deviation else None
                history = simulate(
                    FedPLT(rho=rho, solver=solver or Gradient(steps=steps)),
                    problem,
                    Streams(settings["seed"], replicates),
                    settings["rounds"],
                    metrics={"distance": distance},
                    cohort=None if probability == 1 else Independent(probability),
                )
                frames.append(
                    history.frame(
                        steps=steps,
                        probability=probability,
                        tau=deviation,
                        replicate=list(replicates),
                        low=low,
                        high=high,
                    )
                )
    kept = ["steps", "probability", "tau", "replicate", "round", "distance", "low", "high", "diverged"]
    return pd.concat(frames, ignore_index=True)[kept]
