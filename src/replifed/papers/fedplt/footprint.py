"""Table I: memory, computation and messages of each method, counted on a few rounds of its code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.network.ledger import dense_bits
from replifed.papers.fedplt.methods import Cell, build, theory
from replifed.papers.fedplt.trials import Trial


def footprint(method: str, replicate: int) -> Iterator[dict[str, Any]]:
    """Memory, computation and communication of a method, counted on a few rounds of its code.

    each, shared : models that every agent and the coordinator keep between rounds; up, down : models that an
    agent sends and receives in a round; exchanges : round trips in which they wait for each other; fewest,
    most : gradients that an agent computes in a round; left : the error that one local step leaves.
    """
    data = {"seed": 0, "replicates": (0,), "data": "planted", "loss": "sum", "ridge": 0.5}
    drawn: Any = partial(SimpleNamespace, **data, agents=10, samples=4, features=2)
    trial, long = (Trial(drawn(rounds=rounds)) for rounds in (30, 1000))
    cell = Cell(method, "gradient", 3, 10, 10)
    algorithm = build(cell, trial.moduli, theory(cell, trial.moduli))
    counts = _count_gradients(trial.problem)
    history = trial.simulate(algorithm, metrics={"gradients": lambda *_: np.array([sum(counts)])})
    axes = [field.ndim for field in history.state]
    first = {name: total[1, 0] for name, total in history.ledger.items()}
    models = cell.agents * dense_bits(trial.problem.dim)
    gradients = np.diff(history.metrics["gradients"][:, 0])
    one_step = cell._replace(steps=1)
    values = {name: value[:, None] for name, value in theory(one_step, long.moduli).items()}
    yield {
        "each": axes.count(3),
        "shared": axes.count(2),
        "up": first["bits_up"] / models,
        "down": first["bits_down"] / models,
        "exchanges": int(first["exchanges"]),
        "fewest": int(gradients.min()),
        "most": int(gradients.max()),
        "left": np.nanmin(long.errors(one_step, values)),
        "replicate": [replicate],
    }


def _count_gradients(problem: Any) -> list[int]:
    """Make the problem record the number of gradients that each client computes, call by call."""
    counts: list[int] = []
    gradients, descent = problem.per_client_gradients, problem.per_client_descent

    def counted_gradients(*arguments: Any, **named: Any) -> NDArray:
        counts.append(1)
        return gradients(*arguments, **named)

    def counted_descent(models: NDArray, steps: int, *arguments: Any, **named: Any) -> NDArray:
        counts.append(steps)
        return descent(models, steps, *arguments, **named)

    problem.per_client_gradients, problem.per_client_descent = counted_gradients, counted_descent
    return counts
