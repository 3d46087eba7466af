"""What each method keeps between rounds and sends in one, counted on its code (Table I)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from replifed.algorithms.registry import method_class
from replifed.network.ledger import dense_bits
from replifed.papers.fedplt.data import regression
from replifed.papers.fedplt.methods import Cell, Moduli, build, theory
from replifed.randomness import Streams
from replifed.simulate import simulate

_SETTINGS = {
    "seed": 0,
    "agents": 10,
    "samples": 4,
    "features": 2,
    "ridge": 0.5,
    "loss": "sum",
    "data": "planted",
}


class Footprint(NamedTuple):
    """Counts of models.

    Attributes
    ----------
    each : models that every agent keeps between rounds.
    shared : models at the coordinator.
    up, down : models that an agent sends and receives in a round.
    exchanges : times a round that agents and coordinator wait for each other.
    partial : whether agents may stay out.
    random : whether the number of local steps is random.
    """

    each: int
    shared: int
    up: float
    down: float
    exchanges: int
    partial: bool
    random: bool


@cache
def footprint(method: str) -> Footprint:
    """Run one method for a few rounds and count."""
    problem = regression(_SETTINGS, (0,))
    N = problem.n_clients
    moduli = Moduli(*problem.common_mu_L())
    cell = Cell("gradient", 3, N, N)
    algorithm: Any = build(method, moduli, cell, theory(method, moduli, cell))
    history = simulate(algorithm, problem, Streams(0, (0,)), 8)
    fields = list(history.state)
    model = dense_bits(problem.dim)
    steps = np.diff(history.ledger["iterations"][:, 0])
    return Footprint(
        sum(field.ndim == 3 for field in fields),
        sum(field.ndim == 2 for field in fields),
        history.ledger["bits_up"][1, 0] / (N * model),
        history.ledger["bits_down"][1, 0] / (N * model),
        int(history.ledger["exchanges"][1, 0]),
        method_class(method).partial_participation,
        len(set(steps.tolist())) > 1,
    )


def run(method: str, settings: dict, tuned: dict | None, progress: Any) -> pd.DataFrame:
    """Return one line: what a method keeps and sends."""
    return pd.DataFrame([{**footprint(method)._asdict(), "replicate": settings["replicates"][0]}])
