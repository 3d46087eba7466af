"""The paper's runs: methods, data sets and parameters.

Experiments that end in `_mean` have the loss as printed, the others the sum that fits the published rates. In
either, readings of "tuned" stand side by side, the same for all methods:

theory : the parameters that the method's paper prescribes;
common : the same parameters for all data sets, searched on others than those reported;
own : parameters per data set, as the paper seems to have it: rho for Fed-PLT, and two parameters for its
    rivals (FedLin has one), searched around the common ones with all agents active;
equal budget : parameters per data set, where every method searches its local step and all its parameters
    (`methods.FREE`). All searches begin with the same grid around reference values, and end by the same
    rule: when a finer grid no longer changes the rate.

In `own` and `equal budget` a data set's parameters are selected on that data set itself, and no other data
are held back. As these runs are deterministic, selection and report coincide: the rate reported is that of
the best parameters. TAMUNA samples its number of local steps even with all agents active, and a cohort is
sampled for all methods: there the luckiest of several random runs would be selected, so that neither reading
has them (but for Fed-PLT's rho, selected with all agents).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import (
    Accelerated,
    AcceleratedStochastic,
    Exact,
    Gradient,
    LocalSolver,
    Noisy,
    Stochastic,
    Uncoordinated,
)
from replifed.algorithms.splitting_theory import best_step, linear_round
from replifed.engine.plans import in_one_table
from replifed.engine.search import Grid
from replifed.engine.simulate import Metric
from replifed.engine.trials import Spent
from replifed.network.participation import FixedSize, Independent
from replifed.operators.proximal import L1
from replifed.papers.fedplt.methods import (
    FREE,
    PARAMETERS,
    PARTIAL,
    Cell,
    Moduli,
    Values,
    local_step,
    reference,
    theory,
    times,
)
from replifed.papers.fedplt.trials import (
    Trial,
    around,
    common,
    each,
    footprint,
    free_intercept_minimiser,
    rate,
    relative_error,
    worst,
)
from replifed.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedplt import settings as of


def tune(
    method: str, settings: of.Comparison, table: Any, partition: Any, progress: Progress
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
    chosen, names = settings.tuning, PARAMETERS.get(method, ())
    found: dict[str, Any] = {}
    cells = _cells(method, settings) if names else []
    for done, cell in enumerate(cells):
        progress(f"searching {_name(cell)}", done, len(cells))
        trial = Trial(settings.with_(replicates=chosen.replicates, rounds=chosen.rounds))
        grid = around(np.ones(len(names)), chosen.ratio, chosen.reach, refine=chosen.refine)
        best = common(trial, cell, reference(cell, trial.moduli), grid)
        found[_name(cell)] = {
            "best": list(best.best),
            "rate": best.score,
            "tried": [
                [*point, score if np.isfinite(score) else None]
                for point, score in zip(best.points, best.scores, strict=True)
            ],
            "edge": best.edge,
            "cost": trial.spent.record(),
        }
    trials = {"replicates": sorted(chosen.replicates) if found else []}
    return {"method": method, "parameters": list(names), "cells": found, "trials": trials}


def run(
    method: str, settings: of.Experiment, tuned: dict | None, table: Any, partition: Any, progress: Progress
) -> pd.DataFrame:
    """Run `method` on all data sets; one line a data set and setting, or, for curves, a round as well."""
    if settings.problem == "footprint":
        frames = footprint(method, settings.replicates[0])
    elif settings.problem == "comparison":
        frames = _comparison(method, settings, tuned or {}, progress)
    else:
        frames = _OF_FEDPLT[settings.problem](settings, progress)
    return in_one_table(frames).assign(method=method)


# --- Table II -------------------------------------------------------------------------------------


def _cells(method: str, settings: of.Comparison) -> list[Cell]:
    agents, steps = settings.agents, settings.local_steps
    solvers = ["gradient"] if method == "fedavg" else settings.solvers
    cohorts = (agents, settings.cohort) if method in PARTIAL else (agents,)
    return [Cell(method, solver, steps, agents, cohort) for solver in solvers for cohort in cohorts]


def _name(cell: Cell) -> str:
    return f"{cell.solver}/{cell.cohort}"


class _Choice(NamedTuple):
    """Parameters by name, (S,) each, for the first S data sets, and the search that selected them."""

    values: Values
    sets: int
    cost: Spent = Spent()
    edge: NDArray | bool = False


def _comparison(
    method: str, settings: of.Comparison, tuned: dict, progress: Progress
) -> Iterator[pd.DataFrame]:
    # FedAvg stays where it is after a few rounds.
    rounds = settings.baseline_rounds if method == "fedavg" else settings.rounds
    reported = Trial(settings.with_(rounds=rounds))
    S = len(reported.replicates)
    # As the paper has it: rho is for a solver and a data set, whatever the cohort.
    rho: dict[str, _Choice] = {}
    cells = _cells(method, settings)
    for done, cell in enumerate(cells):
        progress(_name(cell), done, len(cells))
        chooses = cell.everyone and method not in ("fedavg", "tamuna")
        choices = {"theory": _Choice(theory(cell, reported.moduli), S)}
        if method != "fedavg":
            found, base = tuned["cells"][_name(cell)], reference(cell, reported.moduli)
            multiples = np.array(found["best"])
            choices["common"] = _Choice(times(base, multiples), S, Spent(**found["cost"]), found["edge"])
        if method == "fedplt" and cell.everyone:
            choices["own"] = rho[cell.solver] = best_rho(settings, cell.solver)
        elif method == "fedplt":  # for which nothing more is searched
            choices["own"] = rho[cell.solver]._replace(cost=Spent())
        elif chooses:
            trial, own = Trial(settings.with_(rounds=settings.tuning_rounds)), settings.own
            grid = around(multiples, own.ratio, 1, refine=own.refine)
            choices["own"] = _of_each(trial, cell, base, grid)
        if chooses:
            choices["equal budget"] = equal_budget(cell, settings)
        yield _cell_frame(reported, cell, choices, settings.target)


def best_rho(settings: of.Comparison | of.Participation, solver: str) -> _Choice:
    """Each data set's best rho with all agents active, from the grid of `settings`, refined."""
    trial = Trial(settings.with_(rounds=settings.tuning_rounds))
    grid = Grid((tuple(_geometric(settings.rho_grid).tolist()),), settings.refine)
    base = {"rho": np.ones(len(trial.replicates))}
    return _of_each(trial, _fedplt(settings, solver), base, grid)


def _geometric(grid: list[float]) -> NDArray:
    low, high, points = grid
    return np.geomspace(low, high, int(points))


def equal_budget(cell: Cell, settings: of.Comparison) -> _Choice:
    """Search a method's local step and all its parameters, for each of the first data sets by itself."""
    chosen = settings.equal_budget
    trial = Trial(settings.with_(replicates=settings.replicates[: chosen.sets], rounds=chosen.rounds))
    base = reference(cell, trial.moduli)
    free = {name: base.get(name, np.ones(len(trial.replicates))) for name in FREE[cell.method]}
    ends = {"refine": chosen.refine, "tolerance": chosen.tolerance}
    grid = around(np.ones(len(free)), chosen.ratio, chosen.reach, **ends)
    return _of_each(trial, cell, free, grid)


def _of_each(trial: Trial, cell: Cell, base: Values, grid: Grid) -> _Choice:
    """Parameters per data set."""
    found = each(trial, cell, base, grid)
    values = times(base, np.array([one.best for one in found]))
    return _Choice(values, len(found), trial.spent, np.array([one.edge for one in found]))


def _cell_frame(reported: Trial, cell: Cell, choices: dict[str, _Choice], target: float) -> pd.DataFrame:
    """Run a cell; a row per data set and reading. The readings are points of one grid."""
    S, shape = len(reported.replicates), (len(reported.replicates), len(choices))
    wanted = np.arange(S)[:, None] < [choice.sets for choice in choices.values()]
    stacked = {name: np.ones(shape) for name in FREE.get(cell.method, ())}
    for column, choice in enumerate(choices.values()):
        for name, values in choice.values.items():
            stacked[name][: choice.sets, column] = values
    errors = reported.errors(cell, {k: np.where(wanted, v, np.nan) for k, v in stacked.items()}, target)
    costs = [choice.cost.record() for choice in choices.values()]
    parameters = [*stacked.values(), *[np.nan] * (3 - len(stacked))]
    frame = _rates_frame(
        reported,
        errors,
        solver=cell.solver,
        cohort=cell.cohort,
        reading=np.array(list(choices)),
        exchanges=2 if cell.method == "fedlin" else 1,
        **dict(zip(("first", "second", "third"), parameters, strict=True)),
        edge=np.stack([np.resize(choice.edge, S) for choice in choices.values()], axis=1),
        # Of the search for all data sets of this cell and reading.
        **{f"tuning_{name}": np.array([cost[name] for cost in costs]) for name in costs[0]},
    )
    return frame[wanted.ravel()]


def _rates_frame(trial: Trial, errors: NDArray, **labels: Any) -> pd.DataFrame:
    """A row per data set and grid point; labels are scalars or of shape (S or 1, G or 1)."""
    recorded = (~np.isnan(errors)).sum(axis=0) - 1
    columns = {
        **labels,
        "replicate": np.array(trial.replicates)[:, None],
        "rounds": recorded,
        "rate": rate(errors),
        "error": np.take_along_axis(errors, recorded[None], axis=0)[0],  # the last one recorded
        "mu": trial.moduli.low[:, None],
        "L": trial.moduli.high[:, None],
    }
    return _lines(columns, errors.shape[1:])


def _lines(columns: dict[str, Any], shape: tuple[int, ...]) -> pd.DataFrame:
    """A row per entry of arrays of a common shape."""
    return in_one_table([{name: np.broadcast_to(value, shape).ravel() for name, value in columns.items()}])


# --- Fed-PLT alone --------------------------------------------------------------------------------


def _fedplt(settings: of.LocalSteps, solver: str = "gradient", active: int | None = None) -> Cell:
    return Cell("fedplt", solver, settings.local_steps, settings.agents, active or settings.agents)


def _participation(settings: of.Participation, progress: Progress) -> Iterator[pd.DataFrame]:
    trial = Trial(settings)
    rho = best_rho(settings, "gradient").values["rho"][:, None]
    for active in settings.active:
        progress(f"{active} agents", active, settings.agents)
        errors = trial.errors(_fedplt(settings, active=active), {"rho": rho}, settings.target)
        yield _rates_frame(trial, errors, active=active, rho=rho)


def _in_groups(settings: of.Penalties | of.Noise, progress: Progress) -> Iterator[Trial]:
    """Trials of the data sets that are run side by side."""
    everyone, size = settings.replicates, settings.together
    for first in range(0, len(everyone), size):
        progress(f"data sets from {everyone[first]}", first, len(everyone))
        yield Trial(settings.with_(replicates=everyone[first : first + size]))


def _penalty(settings: of.Penalties, progress: Progress) -> Iterator[pd.DataFrame]:
    """Rates at every rho of the grids, of runs as long as the slowest needs."""
    grids = [_geometric(grid) for grid in (settings.rho_grid, settings.valley) if grid is not None]
    rho = np.unique(np.concatenate(grids).round(9))  # the grids have points in common
    for trial in _in_groups(settings, progress):
        values = {"rho": np.tile(rho, (len(trial.replicates), 1))}
        errors = trial.settled_errors(_fedplt(settings), values, settings.settled)
        yield _rates_frame(trial, errors, rho=rho)


def _cohort(settings: of.Epochs, who: str) -> FixedSize | None:
    """Of "all" agents or of "half" of them."""
    return FixedSize(settings.agents // 2) if who == "half" else None


def _epochs(settings: of.LocalEpochs, progress: Progress) -> Iterator[pd.DataFrame]:
    trial = Trial(settings)
    plans: list[tuple[str, int, Any]] = [
        *(("gradient", steps, Gradient(steps=steps)) for steps in settings.epochs),
        *(("accelerated", steps, Accelerated(steps=steps)) for steps in settings.accelerated_epochs),
        ("exact", 0, Exact()),
    ]
    for done, (name, steps, solver) in enumerate(plans):
        progress(f"{name}, {steps} local steps", done, len(plans))
        errors = trial.traces(FedPLT(rho=settings.rho, solver=solver))
        yield _rates_frame(trial, errors, solver=name, steps=steps)


def _exactness(settings: of.Exactness, progress: Progress) -> Iterator[pd.DataFrame]:
    """Remark 3: runs to the last digits; Remark 2: from a cold start as well."""
    trial = Trial(settings)
    plans: tuple[tuple[str, Any], ...] = (("all", "warm"), ("all", "cold"), ("half", "warm"))
    for done, steps in enumerate(settings.epochs):
        for who, start in plans:
            progress(f"{steps} local steps, {who}, {start}", done, len(settings.epochs))
            method = FedPLT(rho=settings.rho, solver=Gradient(steps=steps), start=start)
            errors = trial.traces(method, target=settings.target, cohort=_cohort(settings, who))
            yield _rates_frame(trial, errors, steps=steps, participation=who, start=start)


def _splitting(settings: of.Splitting, progress: Progress) -> Iterator[pd.DataFrame]:
    """For every rho, the rate in the end and the norm of a round, exact and with local gradient steps."""
    trial, agents = Trial(settings), settings.agents
    hessians = trial.problem.per_client_hessians(np.repeat(trial.solution[:, None], agents, axis=1))
    rhos = _geometric(settings.rho_grid)
    for done, (replicate, H, mu, L) in enumerate(zip(trial.replicates, hessians, *trial.moduli, strict=True)):
        progress(f"data set {replicate}", done, len(hessians))
        for rho, steps in itertools.product(rhos, (0, settings.local_steps)):
            matrix = linear_round(H, rho, steps, best_step(mu, L, rho))
            rate, norm = np.abs(np.linalg.eigvals(matrix)).max(), np.linalg.norm(matrix, 2)
            labels = {"replicate": replicate, "rho": rho, "steps": steps, "mu": mu, "L": L}
            yield _lines({**labels, "rate": rate, "norm": norm}, (1,))


def _variants(settings: of.Variants, progress: Progress) -> Iterator[pd.DataFrame]:
    """Algorithm 1 beyond the tables: composite problems, solvers per agent, minibatches."""
    for done, variant in enumerate((_composite, _uncoordinated, _minibatches)):
        name = variant.__name__.strip("_")
        progress(name, done, 3)
        for frame in variant(settings):
            yield frame.assign(variant=name)


def _composite(settings: of.Variants) -> Iterator[pd.DataFrame]:
    """With h = weight |x|_1; `zeros` is the share of the minimiser's coordinates that are zero."""
    trial, penalty = Trial(settings), L1(weight=settings.weight)
    trial.solution = composite_minimiser(trial.problem, penalty)
    zeros = (trial.solution == 0).mean(axis=1, keepdims=True)
    for steps, who in itertools.product(settings.epochs, ("all", "half")):
        method = FedPLT(rho=settings.rho, solver=Gradient(steps=steps), penalty=penalty)
        errors = trial.traces(method, target=settings.target, cohort=_cohort(settings, who))
        yield _rates_frame(trial, errors, steps=steps, participation=who, zeros=zeros)


def composite_minimiser(problem: Any, penalty: L1) -> NDArray:
    """Minimise the sum of the losses and the penalty by proximal gradient steps, (S, D)."""
    step = 1.0 / problem.smoothness().sum(axis=1)
    x = np.zeros((len(step), problem.dim))
    while True:
        new = penalty.prox(x - step[:, None] * problem.n_clients * problem.gradient(x), step)
        if np.abs(new - x).max() <= 1e-15:
            return new
        x = new


def _uncoordinated(settings: of.Variants) -> Iterator[pd.DataFrame]:
    """A solver and a number of steps per agent, or steps for each agent's mu and L (Remark 1)."""
    trial, rho = Trial(settings), settings.rho
    agents = range(settings.agents)
    own = [Moduli(trial.moduli.low, L) for L in trial.problem.smoothness().T]

    def solver(i: int, steps: int, name: str) -> LocalSolver:
        kind = Gradient if name == "gradient" else Accelerated
        return kind(steps=steps, step=local_step(name, own[i], 1 / rho))

    mixed = Uncoordinated(solvers=tuple(solver(i, i + 1, ("gradient", "accelerated")[i % 2]) for i in agents))
    plans: list[tuple[str, int, str, LocalSolver]] = [("mixed", 0, who, mixed) for who in ("all", "half")]
    for steps in settings.epochs:
        alone = Uncoordinated(solvers=tuple(solver(i, steps, "gradient") for i in agents))
        plans += [("own", steps, "all", alone), ("common", steps, "all", Gradient(steps=steps))]
    for name, steps, who, used in plans:
        method, cohort = FedPLT(rho=rho, solver=used), Independent(0.5) if who == "half" else None
        errors = trial.traces(method, target=settings.target, cohort=cohort)
        yield _rates_frame(trial, errors, solver=name, steps=steps, participation=who)


def _minibatches(settings: of.Variants) -> Iterator[pd.DataFrame]:
    """Errors with minibatches, averaged over the last `tail` rounds and over the `tail` rounds before."""
    trial, rounds, tail = Trial(settings), settings.rounds, settings.tail
    kinds = {"gradient": Stochastic, "accelerated": AcceleratedStochastic}
    steps = settings.local_steps
    for (name, kind), batch in itertools.product(kinds.items(), settings.batches):
        history = trial.simulate(
            FedPLT(rho=settings.rho, solver=kind(steps=steps, batch=batch)),
            metrics={"error": relative_error(trial.solution)},
            record_from=rounds - 2 * tail + 1,
        )
        before, last = history.metrics["error"][1:].reshape(2, tail, -1).mean(axis=1)
        labels = {"solver": name, "batch": batch, "replicate": trial.replicates}
        yield _lines({**labels, "before": before, "error": last}, last.shape)


# --- Noise and privacy ----------------------------------------------------------------------------


def _distances(x_bar: NDArray) -> dict[str, Metric]:
    """Distances of models from the minimisers (R, D)."""
    return {
        "stacked": lambda _, seen: np.linalg.norm(seen["clients"] - x_bar[:, None], axis=(1, 2)),
        "agents": lambda _, seen: np.linalg.norm(seen["clients"] - x_bar[:, None], axis=-1).mean(axis=1),
        "coordinator": lambda _, seen: np.linalg.norm(seen["server"] - x_bar, axis=-1),
    }


def _noise(settings: of.Noise, progress: Progress) -> Iterator[pd.DataFrame]:
    """Errors averaged over the last rounds; `free_intercept` is that of the agents from another minimiser."""
    levels = np.array(settings.tau)
    # Both readings in one run: as a variance tau, and as a deviation tau^2.
    variances, inverse = np.unique(np.concatenate([levels, levels**2]), return_inverse=True)
    for trial in _in_groups(settings, progress):
        S, G = len(trial.replicates), len(variances)
        solver = Noisy(steps=settings.local_steps, tau=np.tile(variances, S))
        other = free_intercept_minimiser(settings.with_(replicates=trial.replicates))
        free = _distances(np.repeat(other, G, axis=0))["agents"]
        history = trial.simulate(
            FedPLT(rho=settings.rho, solver=solver),
            G,
            metrics={**_distances(np.repeat(trial.solution, G, axis=0)), "free_intercept": free},
            record_from=settings.rounds - settings.tail + 1,
        )
        errors = {name: values[1:].mean(axis=0).reshape(S, G) for name, values in history.metrics.items()}
        for reading, columns in zip(("variance", "deviation"), inverse.reshape(2, -1), strict=True):
            measured = {name: values[:, columns] for name, values in errors.items()}
            labels = {"reading": reading, "tau": levels, "replicate": np.array(trial.replicates)[:, None]}
            yield _lines({**labels, **measured}, (S, len(levels)))


def _privacy(settings: of.Privacy, progress: Progress) -> Iterator[pd.DataFrame]:
    """Errors after K rounds for each level of noise and number of epochs, as in Proposition 4.

    Mean losses, samples' gradients clipped, all agents active, x_{i,0} ~ N(0, 2 tau^2 / low).
    """
    trial, rho, G = Trial(settings), settings.rho, len(settings.tau)
    tau = np.tile(settings.tau, len(trial.replicates))
    replicate, low, high = (np.repeat(one, G) for one in (trial.replicates, *trial.moduli))
    gamma = local_step("gradient", Moduli(low, high), 1.0 / rho)
    error = _distances(np.repeat(trial.solution, G, axis=0))["agents"]
    for done, steps in enumerate(settings.epochs):
        progress(f"{steps} local steps", done, len(settings.epochs))
        solver = Noisy(steps=steps, tau=tau, reading="deviation", clip=settings.clip)
        method = FedPLT(rho=rho, solver=solver, start_deviation=tau * np.sqrt(2.0 / low))
        every = settings.record_every
        history = trial.simulate(method, G, metrics={"error": error}, record_every=every)
        yield history.frame(steps=steps, tau=tau, replicate=replicate, mu=low, gamma=gamma)


def _bounds(settings: of.Bounds, progress: Progress) -> Iterator[pd.DataFrame]:
    """Distance of (x, z) to the fixed point over the rounds, for Proposition 2 and Corollary 1."""
    trial, rho = Trial(settings), settings.rho
    x_bar = np.repeat(trial.solution[:, None], settings.agents, axis=1)
    # x_bar = prox_{rho f_i}(2 x_bar - z_i) at the fixed point.
    z_bar = x_bar - rho * trial.problem.per_client_gradients(x_bar)

    def distance(_: Any, seen: dict[str, NDArray]) -> NDArray:
        gap = np.stack([seen["clients"] - x_bar, seen["auxiliary"] - z_bar])
        return np.sqrt((gap**2).sum(axis=(0, 2, 3)))

    # Noise only where all agents take part.
    noises = {p: settings.tau if p == 1 else settings.tau[:1] for p in settings.probabilities}
    plans = [(steps, p, tau) for steps in settings.epochs for p in noises for tau in noises[p]]
    for done, (steps, p, tau) in enumerate(plans):
        progress(f"{steps} local steps, p = {p}, tau = {tau}", done, len(plans))
        solver = Noisy(steps=steps, tau=tau, reading="deviation") if tau else Gradient(steps=steps)
        cohort = None if p == 1 else Independent(p)
        history = trial.simulate(
            FedPLT(rho=rho, solver=solver), metrics={"distance": distance}, cohort=cohort
        )
        low, high = trial.moduli
        yield history.frame(steps=steps, probability=p, tau=tau, replicate=trial.replicates, mu=low, L=high)


def _worst(settings: of.Worst, progress: Progress) -> Iterator[pd.DataFrame]:
    for columns in worst(settings, progress):
        yield _lines(columns, (len(settings.replicates),))


_OF_FEDPLT: dict[str, Callable[[Any, Progress], Iterator[pd.DataFrame]]] = {
    "participation": _participation,
    "noise": _noise,
    "penalty": _penalty,
    "epochs": _epochs,
    "exactness": _exactness,
    "bounds": _bounds,
    "worst": _worst,
    "privacy": _privacy,
    "splitting": _splitting,
    "variants": _variants,
}
