"""What does not hold as printed in Tong et al. 2022."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replifed.algorithms.base import Round
from replifed.algorithms.fedht import FedHT
from replifed.operators.hard_threshold import hard_threshold
from replifed.papers.errata import Erratum, Outcome
from replifed.papers.fedht.simulations import simulation
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams
from replifed.simulate import simulate

_TAU, _STEP = 2, 0.1


def _box_literally(local_steps: int) -> int:
    """Updates of Algorithm 1's box for K: from x_{t,1} to x_{t,K}."""
    return len(range(1, local_steps))


def _box_as_described(local_steps: int) -> int:
    return local_steps


def _one_step_is_distributed_iht(steps_of_box) -> Outcome:
    """With K = 1 every update is communicated, which is Distributed-IHT, x+ = H_tau(x - gamma grad f(x))."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1, 3, 8, 5)), rng.normal(size=(1, 3, 8))
    problem = DenseLinearModel(X, y, loss_named("least_squares"))
    streams = Streams(0, (0,))
    x = np.zeros((1, problem.dim))
    expected = hard_threshold(x - _STEP * problem.gradient(x), _TAU)
    made = steps_of_box(1)
    if made:
        method = FedHT(step=_STEP, sparsity=_TAU, local_steps=made)
        start = method.init(problem, streams)
        x = method.round(start, problem, Round(0, None, None, streams.at(0)))[0].x
    gap = float(np.abs(x - expected).max())
    return Outcome(gap < 1e-14, f"{made} local steps for K = 1, {gap:.2g} from an update of Distributed-IHT")


_PRINTED_GRID = (10.0, 1.0, 0.6, 0.3, 0.1, 0.06, 0.03, 0.01, 0.001)
_EXTENDED_GRID = (*_PRINTED_GRID, 1e-4, 3e-5, 1e-5)


@dataclass(frozen=True)
class _Scale:
    """Simulation I as printed, at the lowest heterogeneity."""

    clients: int = 100
    samples: int = 100
    features: int = 1000
    planted: int = 100


def _leaves_a_choice(grid: tuple[float, ...]) -> Outcome:
    """A search for the best step needs a step on either side of the best that does not diverge."""
    scale = _Scale()
    settings = {
        "seed": 319,
        "loss": "least_squares",
        "clients": scale.clients,
        "samples": scale.samples,
        "features": scale.features,
        "planted": scale.planted,
        "dtype": "float32",
    }
    problem = simulation(settings, (0.1, 0.1), 1)
    steps = np.array(grid)
    method = FedHT(step=steps, sparsity=200, local_steps=10)
    history = simulate(method, problem, Streams(319, (1,) * len(steps)), 5)
    usable = steps[~history.diverged[-1]]
    return Outcome(
        len(usable) >= 3, f"{len(usable)} of {len(steps)} steps do not diverge in 5 rounds at K = 10"
    )


ERRATA = (
    Erratum(
        id="fedht.local_steps",
        paper="fedht",
        place="Algorithms 1 and 2",
        printed="updates for k = 1, ..., K from x_{t,1} = x_t, of which x_{t,K} is sent: K - 1 updates",
        corrected="K updates a round, as the text says; K = 1 is Distributed-IHT",
        forms=(_box_literally, _box_as_described),
        check=_one_step_is_distributed_iht,
    ),
    Erratum(
        id="fedht.step_grid",
        paper="fedht",
        place="Section 5, search grid of the step size",
        printed="gamma in {10, 1, 0.6, 0.3, 0.1, 0.06, 0.03, 0.01, 0.001} for every method",
        corrected="a grid that goes on below 0.001: with features of norm 30, as in Simulation I, local "
        "steps of that size overshoot",
        forms=(_PRINTED_GRID, _EXTENDED_GRID),
        check=_leaves_a_choice,
    ),
)
