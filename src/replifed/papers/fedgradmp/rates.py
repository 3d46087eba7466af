"""Theorem 5 on the runs that meet its conditions, and how far the paper's own data are from them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.algorithms.fedgradmp_rates import Constants, Promise, theorem5
from replifed.operators.restricted_isometry import restricted_eigenvalues
from replifed.papers.fedgradmp import problems
from replifed.randomness import generator

_TRIALS = 20


def promise(
    settings: dict, condition: float, local_steps: int, slope: float, accuracy: float | None = None
) -> Promise:
    """Theorem 5, or 7, on the isometry experiment, which has rho^- = 1 and rho^+ = condition."""
    N = settings["clients"]
    constants = Constants(convexity=np.ones(N), smoothness=np.full(N, condition), weights=np.full(N, 1 / N))
    return theorem5(constants, local_steps, slope, accuracy=accuracy)


def solved(history: pd.DataFrame, solver: str = "exact") -> pd.DataFrame:
    """The isometry experiment with sub-problems solved to the end, or by one gradient step ("gd")."""
    return history[history["solver"] == solver]


def client_constants(settings: dict, alpha: float, replicate: int) -> pd.DataFrame:
    """Restricted constants of each client's loss over 4 tau coordinates, estimated on random supports."""
    data, _ = problems.regression(settings, alpha, 0.0, replicate)
    size = 4 * settings["planted"]
    rows = []
    for i in range(data.n_clients):
        rng = generator(settings["seed"], replicate, None, f"supports/{i}")
        low, high = restricted_eigenvalues(data.X[0, i] / np.sqrt(data.n_samples), size, rng, _TRIALS)
        rows.append({"client": i + 1, "low": low, "high": high, "condition": high / max(low, 1e-300)})
    return pd.DataFrame(rows)
