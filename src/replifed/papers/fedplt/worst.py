"""A round from the worst direction near the fixed point, for the factors of Propositions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fedplt import FedPLT, FedPLTState
from replifed.papers.fedplt.methods import SOLVERS
from replifed.papers.fedplt.trials import Trial
from replifed.progress import Progress

if TYPE_CHECKING:
    from replifed.papers.fedplt import settings as of

# Distance of the points between which a round is taken as linear, to find its worst direction.
_NEAR = 1e-6


def worst(settings: of.Worst, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield the factor by which a round from that direction changes the distance to the fixed point.

    norm : the largest factor of the round's linearisation; factor : that of the round itself.
    """
    trial = Trial(settings.with_(rounds=1))
    x = np.repeat(trial.solution[:, None], settings.agents, axis=1)
    fixed = np.stack([x, x - settings.rho * trial.problem.per_client_gradients(x)], axis=1)  # (S, 2, N, D)
    low, high = trial.moduli
    plans = [(name, steps) for name in settings.solvers for steps in settings.epochs]
    for done, (name, steps) in enumerate(plans):
        progress(f"{name}, {steps} local steps", done, len(plans))
        method = FedPLT(rho=settings.rho, solver=SOLVERS[name](steps=steps))
        norm, direction = _steepest(trial, method, fixed)
        gap = settings.distance * direction[:, None]
        factor = np.linalg.norm(_after(trial, method, fixed, gap), axis=-1)[:, 0] / settings.distance
        labels = {"solver": name, "steps": steps, "mu": low, "L": high, "replicate": list(trial.replicates)}
        yield {**labels, "norm": norm, "factor": factor}


def _steepest(trial: Trial, method: FedPLT, fixed: NDArray) -> tuple[NDArray, NDArray]:
    """The norm (S,) of a round's derivative at the fixed point, and the unit direction (S, P) for it."""
    size = fixed[0].size
    gaps = np.broadcast_to(_NEAR * np.eye(size), (len(fixed), size, size))
    derivative = (_after(trial, method, fixed, gaps) - _after(trial, method, fixed, -gaps)) / (2 * _NEAR)
    _, growths, directions = np.linalg.svd(derivative.swapaxes(1, 2))
    return growths[:, 0], directions[:, 0]


def _after(trial: Trial, method: FedPLT, fixed: NDArray, gaps: NDArray) -> NDArray:
    """Differences (S, G, P) to the fixed point (S, 2, N, D) after a round from `gaps` (S, G, P) beside it."""
    count = gaps.shape[1]
    centre = np.repeat(fixed, count, axis=0)
    x, z = np.moveaxis(centre + gaps.reshape(centre.shape), 1, 0)
    state = FedPLTState(x, z, z.mean(axis=1))
    end = trial.simulate(method, count, metrics={}, resume=(0, state)).state
    return (np.stack([end.x, end.z], axis=1) - centre).reshape(gaps.shape)
