"""What this paper's claims measure that others' do not: on runs, and on what it states as formulas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.fedgradmp_rates import Constants, Promise, theorem5, theorem8_factors
from replifed.claims.curves import Curves, at, level, round_at
from replifed.claims.quantities import Quantity, quantity
from replifed.claims.samples import Sample, paired
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.operators import dictionaries
from replifed.operators.restricted_isometry import isometry_constant, restricted_eigenvalues, stable_rank
from replifed.papers.fedgradmp import problems
from replifed.papers.fedgradmp.paper import COLUMNS, PRINTED, declared
from replifed.randomness import generator

# Relative errors below are rounding, which is another one on each processor.
MACHINE = 1e-14
# Squares of rounding errors are no error of the method.
_ROUNDING = 1e-28
# Random supports on which restricted constants are estimated.
_SUPPORTS = 20


@quantity
def logs(one: Curves) -> Curves:
    """Curves of log10 of errors, of machine precision at least; once lost, of the largest, at least one."""
    values = np.log10(np.maximum(one.values, MACHINE))
    finite = np.isfinite(values)
    largest = values.max(axis=1, initial=0.0, where=finite, keepdims=True)
    return one._replace(values=np.where(finite, values, largest))


@quantity
def tail(one: Curves) -> Sample:
    """Geometric mean of the last quarter of each curve, as a log10."""
    return level(logs(one), 0.25)


def decades(other: Quantity, best: Quantity) -> Quantity:
    """Difference of decimal logarithms, with a note on what they are of."""
    return (other - best).note("{0.antilog:.3g} against {1.antilog:.3g}", other, best)


@quantity
def end_floor(one: Curves) -> Sample:
    """Twice what a curve ends at, relative to its start; a half where the curve has not fallen by half."""
    return (2 * tail(one).map(lambda ends: 10**ends) / one.sample(one.values[:, 0])).map(
        lambda share: np.minimum(share, 0.5)
    )


@quantity
def at_work_of(ours: Curves, spent: Curves, theirs: Curves, spent_by_them: Curves, rounds: int) -> Measured:
    """Decades by which `ours` is below `theirs` at the work that it has used after some rounds."""
    ours, theirs = paired(logs(ours), logs(theirs))
    work = at(spent, rounds).values
    mine = at(ours, round_at(spent, rounds))
    # A run that diverged stopped counting; its total is what it would have been.
    each = np.nanmax(np.diff(spent_by_them.values, axis=1), axis=1)
    end = len(theirs.rounds) - 1
    index = np.minimum((work // each).astype(int), end)
    others = theirs.sample(theirs.values[np.arange(len(index)), index])
    reach = min(int(work.mean() // each.mean()), end)
    note = f"their round {reach}; {others.antilog:.3g} against {mine.antilog:.3g}"
    return (others - mine).measured(note=note)


@quantity
def at_seconds_of(frame: pd.DataFrame, best: str, other: str, rounds: int) -> Measured:
    """Whether `best` is below `other` at the seconds that it has used after `rounds` rounds."""
    one, two = (frame[frame["series"] == name].sort_values("round") for name in (best, other))
    if one.empty or two.empty:
        raise NotMeasurableError("one of the two was not timed")
    mine = one[one["round"] <= rounds].iloc[-1]
    theirs = two[two["seconds"] <= mine["seconds"]].iloc[-1]
    note = f"{theirs['mean']:.3g} against {mine['mean']:.3g} after {mine['seconds']:.2g} s"
    below = np.array([mine["mean"] < theirs["mean"]])
    return Measured(below, shown=float(theirs["mean"] / mine["mean"]), note=note)


@quantity
def at_bits_of(spent: Curves, theirs: Curves, spent_by_them: Curves) -> Sample:
    """Values of `theirs` at the bits that have been `spent` by the end."""
    total = spent.values[:, -1]
    if (spent_by_them.values[:, -1] < total).any():
        raise NotMeasurableError("the other method's run ends with fewer bits")
    rows = zip(total, spent_by_them.values, theirs.values, strict=True)
    return theirs.sample(np.array([np.interp(one, bits, row) for one, bits, row in rows]))


@quantity
def with_bits(history: pd.DataFrame) -> pd.DataFrame:
    """The history with the bits sent both ways."""
    return history.assign(bits=history["bits_up"] + history["bits_down"])


@quantity
def at_most_nonzeros(history: pd.DataFrame, tau: int) -> Measured:
    """Whether no model of the server has more than tau non-zeros."""
    return Measured((history["nonzeros"] <= tau).to_numpy(), seeds=history["replicate"].nunique())


@quantity
def alike(most: float, *tails: Sample) -> Measured:
    """Whether mean residuals differ by no more than a factor."""
    levels = [one.antilog for one in tails]
    note = "residuals " + ", ".join(f"{one:.3g}" for one in levels)
    return Measured(np.array([max(levels) <= most * min(levels)]), seeds=len(tails[0].values), note=note)


@quantity
def recovered(history: pd.DataFrame, within: float) -> Measured:
    """Whether the frame's PSNR comes within some decibels of the best approximation's."""
    history = history[history["part"] == "curve"]
    last = history[history["round"] == history["round"].max()]
    psnr, best = last["psnr"].to_numpy(), last["best_psnr"].to_numpy()
    note = f"PSNR {psnr.mean():.2f} dB, best {best.mean():.2f} dB"
    return Measured(psnr >= best - within, shown=float(psnr.mean()), note=note)


def ended(ends: Sample) -> str:
    """How many runs diverge, and where others end."""
    values = ends.values
    finite = values[np.isfinite(values)]
    others = f"; others end between {finite.min():.3g} and {finite.max():.3g}" if finite.size else ""
    return f"{len(values) - len(finite)} of {len(values)} runs diverge{others}"


# -- theorems, on the runs that meet their conditions --------------------------------------------------


def _constants(smoothness: NDArray) -> Constants:
    """Clients of equal weight with rho^- = 1."""
    N = len(smoothness)
    return Constants(convexity=np.ones(N), smoothness=smoothness, weights=np.full(N, 1 / N))


def promises(
    history: pd.DataFrame, settings: dict[str, Any], solver: str = "exact"
) -> Iterator[tuple[tuple[float, float, int], pd.DataFrame, Promise]]:
    """Condition number, noise and K of each case of the isometry experiment, its runs and what is promised.

    By Theorem 5 where sub-problems are solved to the end; by Theorem 7 with the solver "gd", one gradient
    step, of which the largest error made is delta.
    """
    cases = history[history["solver"] == solver].groupby(["condition", "noise", "local_steps"])
    for (condition, noise, K), runs in cases:
        constants = _constants(np.full(settings["clients"], condition))  # by construction
        accuracy = None if solver == "exact" else float(runs["accuracy"].max())
        promised = theorem5(constants, int(K), float(runs["peak"].mean()), accuracy=accuracy)
        yield (condition, noise, K), runs, promised


def _kept(*of_what: Any) -> list:
    """The cases of which the theorem promises something."""
    cases = [case for case in promises(*of_what) if case[-1].holds]
    if not cases:
        raise NotMeasurableError("the theorem promises nothing of any of the problems")
    return cases


@quantity
def below_bound(history: pd.DataFrame, settings: dict[str, Any], solver: str = "exact") -> Measured:
    """Mean squared error at most kappa^t + residual, in every round of every case."""
    holds, kappas = [], []
    for _, runs, promised in _kept(history, settings, solver):
        mean = (runs["error"] ** 2).groupby(runs["round"]).mean()
        bound = promised.kappa**mean.index + promised.residual + _ROUNDING
        holds.extend(mean <= bound)
        kappas.append(promised.kappa)
    note = f"kappa from {min(kappas):.3g} to {max(kappas):.3g}"
    return Measured(np.array(holds), seeds=history["replicate"].nunique(), note=note)


@quantity
def objective_below_bound(history: pd.DataFrame, settings: dict[str, Any]) -> Measured:
    """Mean objective at most what Corollary 6 makes of Theorem 5, in every round of every case."""
    holds, worst = [], 0.0
    # The clients' restricted smoothness, whose mean is rho, is the condition number by construction.
    for (rho, _, _), runs, promised in _kept(history, settings, "exact"):
        mean = runs["objective"].groupby(runs["round"]).mean()
        error = promised.kappa**mean.index + promised.residual
        bound = runs["least"].mean() + runs["slope"].mean() / (2 * rho) + rho * error + _ROUNDING
        holds.extend(mean <= bound)
        worst = max(worst, float((mean / bound).max()))
    note = f"objective at most {worst:.3g} of the bound"
    return Measured(np.array(holds), seeds=history["replicate"].nunique(), note=note)


def client_constants(settings: dict[str, Any], alpha: float, replicate: int) -> pd.DataFrame:
    """Restricted constants of each client's loss over 4 tau coordinates, estimated on random supports."""
    data, _ = problems.regression(settings, alpha, 0.0, replicate)
    rows = []
    for i, A in enumerate(data.X[0]):
        rng = generator(settings["seed"], replicate, None, f"supports/{i}")
        low, high = restricted_eigenvalues(
            A / np.sqrt(data.n_samples), 4 * settings["planted"], rng, _SUPPORTS
        )
        rows.append({"client": i + 1, "low": low, "high": high, "condition": high / max(low, 1e-300)})
    return pd.DataFrame(rows)


@quantity
def conditions_met(*experiments: dict[str, Any]) -> Measured:
    """Whether any client of the experiments with these settings has 2 rho^- > rho^+, as the theorems need."""
    clients = pd.concat(client_constants(one, one["alphas"][0], one["replicates"][0]) for one in experiments)
    note = f"the smallest ratio of any client is {clients['condition'].min():.3g}, by an estimate from below"
    return Measured((2 * clients["low"] > clients["high"]).to_numpy(), seeds=1, note=note)


# -- formulas ------------------------------------------------------------------------------------------


_CLIENTS = [
    _constants(np.linspace(1, condition, N + 1)[1:])
    for condition, N in itertools.product((1.001, 1.01, 1.05, 1.2, 1.5), (1, 5))
]


def kappa_falls_with_k() -> Measured:
    """Remark 3: kappa falls as K grows, where it promises convergence."""
    holds: list[bool] = []
    for constants in _CLIENTS:
        kappas = [theorem5(constants, K, 1.0).kappa for K in (1, 3, 6, 9)]
        if kappas[0] < 1:
            holds.extend(later < sooner for sooner, later in itertools.pairwise(kappas))
    return Measured(np.array(holds), seeds=0)


def kappa_falls_with_cohort() -> Measured:
    """Remark 6: kappa of Theorem 8 falls, or stays, as the cohort grows."""
    holds: list[bool] = []
    for constants in _CLIENTS:
        cohorts = range(1, len(constants.weights) + 1)
        kappas = [theorem8_factors(constants, 3, L)[0] for L in cohorts]
        holds.extend(later <= sooner * (1 + 1e-12) for sooner, later in itertools.pairwise(kappas))
    return Measured(np.array(holds), seeds=0)


def isometry_improves() -> Measured:
    """Corollary 10: the isometry constant of BA / |B|_F falls as the stable rank of B grows."""
    rng = generator(0, 0, None, "corollary 10")
    n, tau, rows = 200, 4, 100
    constants, ranks = [], []
    for decay in (2.0, 1.0, 0.5, 0.0):
        B = rng.standard_normal((rows, n)) * np.arange(1, n + 1) ** -decay
        A = np.sqrt(n) * dictionaries.gaussian(rng, n, n)
        ranks.append(stable_rank(B))
        constants.append(isometry_constant(B @ A / np.linalg.norm(B), tau, rng))
    note = "; ".join(f"rank {r:.3g}: {c:.3g}" for r, c in zip(ranks, constants, strict=True))
    return Measured(np.diff(constants) < 0, seeds=1, note=note)


def gaussian_atoms_help() -> Measured:
    """Section IV-D: a matrix that annihilates a sparse vector does not, with Gaussian atoms."""
    rng = generator(0, 0, None, "gaussian atoms")
    holds: list[bool] = []
    for _trial in range(20):
        B = rng.standard_normal((60, 200))
        B[:, 1] = B[:, 0]
        BA = B @ dictionaries.gaussian(rng, 200, 200)
        smallest = [np.linalg.svd(M[:, :2], compute_uv=False)[-1] for M in (B, BA)]
        holds.append(smallest[0] < 1e-10 < smallest[1])
    return Measured(np.array(holds), seeds=20)


def table_row(method: str) -> Measured:
    """Whether what the method declares is the printed line, cell by cell."""
    cells = declared(method)
    same = [cells[name] == cell for name, cell in zip(COLUMNS, PRINTED[method], strict=True)]
    return Measured(np.array(same), seeds=0)
