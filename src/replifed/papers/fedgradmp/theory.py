"""What the paper states as formulas, checked as formulas or on the runs that meet their conditions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from replifed.algorithms.fedgradmp_rates import Constants, Promise, theorem5, theorem8_factors
from replifed.claims.quantities import quantity
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.operators import dictionaries
from replifed.operators.restricted_isometry import isometry_constant, stable_rank
from replifed.papers.fedgradmp.paper import COLUMNS, PRINTED, declared
from replifed.papers.fedgradmp.rates import client_constants, promise, solved
from replifed.randomness import generator

# Squares of rounding errors are no error of the method.
_ROUNDING = 1e-28


def _promised(
    history: pd.DataFrame, settings: dict[str, Any], solver: str
) -> list[tuple[pd.DataFrame, float, Promise]]:
    """The cases of which the theorems promise something: runs, condition number, and what is promised."""
    cases = []
    runs_of = solved(history, solver).groupby(["condition", "noise", "local_steps"])
    for (condition, _, K), runs in runs_of:
        accuracy = None if solver == "exact" else float(runs["accuracy"].max())
        promised = promise(settings, condition, int(K), float(runs["peak"].mean()), accuracy)
        if promised.holds:
            cases.append((runs, condition, promised))
    if not cases:
        raise NotMeasurableError("the theorem promises nothing of any of the problems")
    return cases


@quantity
def below_bound(history: pd.DataFrame, settings: dict[str, Any], solver: str = "exact") -> Measured:
    """Mean squared error at most kappa^t + residual, in every round of every case.

    With the solver "gd", sub-problems are solved by one gradient step, and the largest error made is delta.
    """
    holds, kappas = [], []
    for runs, _, promised in _promised(history, settings, solver):
        mean = (runs["error"] ** 2).groupby(runs["round"]).mean()
        bound = promised.kappa ** mean.index.to_numpy() + promised.residual + _ROUNDING
        holds.append(mean.to_numpy() <= bound)
        kappas.append(promised.kappa)
    note = f"kappa from {min(kappas):.3g} to {max(kappas):.3g}"
    return Measured(np.concatenate(holds), seeds=runs["replicate"].nunique(), note=note)


@quantity
def objective_below_bound(history: pd.DataFrame, settings: dict[str, Any]) -> Measured:
    """Mean objective at most what Corollary 6 makes of Theorem 5, in every round of every case."""
    holds, worst = [], 0.0
    # The clients' restricted smoothness, whose mean is rho, is the condition number by construction.
    for runs, rho, promised in _promised(history, settings, "exact"):
        mean = runs["objective"].groupby(runs["round"]).mean()
        error = promised.kappa ** mean.index.to_numpy() + promised.residual
        bound = runs["least"].mean() + runs["slope"].mean() / (2 * rho) + rho * error + _ROUNDING
        holds.append(mean.to_numpy() <= bound)
        worst = max(worst, float((mean / bound).max()))
    note = f"objective at most {worst:.3g} of the bound"
    return Measured(np.concatenate(holds), seeds=runs["replicate"].nunique(), note=note)


@quantity
def conditions_met(*experiments: dict[str, Any]) -> Measured:
    """Whether any client of the experiments with these settings has 2 rho^- > rho^+, as the theorems need."""
    clients = pd.concat(client_constants(one, one["alphas"][0], one["replicates"][0]) for one in experiments)
    note = f"the smallest ratio of any client is {clients['condition'].min():.3g}, by an estimate from below"
    return Measured((2 * clients["low"] > clients["high"]).to_numpy(), seeds=1, note=note)


def _cases():
    for condition, N in itertools.product((1.001, 1.01, 1.05, 1.2, 1.5), (1, 5)):
        yield Constants(
            convexity=np.ones(N), smoothness=np.linspace(1, condition, N + 1)[1:], weights=np.full(N, 1 / N)
        )


def kappa_falls_with_k() -> Measured:
    """Remark 3: kappa falls as K grows, where it promises convergence."""
    holds: list[bool] = []
    for constants in _cases():
        kappas = [theorem5(constants, K, 1.0).kappa for K in (1, 3, 6, 9)]
        if kappas[0] < 1:
            holds.extend(later < sooner for sooner, later in itertools.pairwise(kappas))
    return Measured(np.array(holds), seeds=0)


def kappa_falls_with_cohort() -> Measured:
    """Remark 6: kappa of Theorem 8 falls, or stays, as the cohort grows."""
    holds: list[bool] = []
    for constants in _cases():
        N = len(constants.weights)
        kappas = [theorem8_factors(constants, 3, L)[0] for L in range(1, N + 1)]
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
