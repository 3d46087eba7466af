"""Averages, thresholds, local steps and dithered cells, as the boxes of the papers have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.local_solvers import Accelerated, Gradient, Noisy, Stochastic
from replifed.errors import ConfigError, ReplifedError
from replifed.operators.quantise import interval
from replifed.wire.own_data import OwnData
from replifed.wire.session import Turn

Replies = Mapping[int, list[NDArray]]
"""Parts of the clients' answers, by client."""


def average(replies: Replies, p: NDArray, part: int = 0) -> Any:
    """sum_i p_i w_i / sum_i p_i over the clients that answered, w_i one part of their answers."""
    return sum(p[i] * w for i, w in _alike(replies, part).items()) / sum(p[i] for i in replies)


def mean(replies: Replies, part: int = 0) -> Any:
    """Plain mean of one part over the clients that answered."""
    return sum(_alike(replies, part).values()) / len(replies)


def _alike(replies: Replies, part: int) -> dict[int, NDArray]:
    """One part of each answer; numpy would stretch a vector that is too short."""
    vectors = {i: parts[part] for i, parts in replies.items() if part < len(parts)}
    if len(vectors) < len(replies) or len({w.shape for w in vectors.values()}) > 1:
        shapes = ", ".join(f"{w.shape} of client {i}" for i, w in vectors.items())
        raise ReplifedError(f"answers whose parts {part} do not go together, of the shapes {shapes}")
    return vectors


def threshold(tau: int, v: NDArray) -> NDArray:
    """H_tau(v): the tau entries of largest magnitude, ties to the first; the others are zero."""
    kept = np.argsort(-np.abs(v), kind="stable")[:tau]
    return np.where(np.isin(np.arange(len(v)), kept), v, 0.0)


def descend(
    solver: Any,
    w: NDArray,
    data: OwnData,
    turn: Turn,
    *,
    linear: NDArray | float = 0.0,
    ridge: float = 0.0,
    step: float | None = None,
    steps: int | None = None,
) -> NDArray:
    """`w` after the solver's steps on d(w) = f_i(w) + <linear, w> + ridge |w|^2 / 2.

    Parameters
    ----------
    solver : Gradient, Stochastic, Accelerated or Noisy
    step : that of the method, in place of the solver's.
    steps : their number, if it is not the solver's.
    """
    if not isinstance(solver, Gradient | Stochastic | Accelerated | Noisy):
        known = "Gradient, Stochastic, Accelerated and Noisy"
        raise ConfigError(f"{type(solver).__name__}: a client on the wire has the solvers {known}")
    K, gamma, beta = steps or solver.steps, step or solver.step, 0.0
    mu, L = turn.facts.mu + ridge, turn.facts.L + ridge
    draws: Any = [None] * K
    if isinstance(solver, Accelerated):
        gamma = gamma or 1 / L
        root = np.sqrt(min(mu * gamma, 1.0))
        beta = (1 - root) / (1 + root)
    elif isinstance(solver, Stochastic):
        draws = _of_client(turn, "batch", (K, turn.facts.n_clients, solver.batch), "random")
        draws = (draws * turn.facts.sizes[turn.client]).astype(int)
    elif isinstance(solver, Noisy):
        draws = _of_client(turn, "noise", (K, turn.facts.n_clients, len(w)), "standard_normal")
    gamma = gamma or 2 / (mu + L)
    u = w
    for drawn in draws:
        batch = drawn if isinstance(solver, Stochastic) else None
        clip = solver.clip / 2 if isinstance(solver, Noisy) and solver.clip else None
        ahead = w - gamma * (data.gradient(w, batch, clip) + linear + ridge * w)  # Fed-PLT eq. (11)
        w, u = ahead + beta * (ahead - u), ahead  # eq. (12); beta = 0 without acceleration
        if isinstance(solver, Noisy):  # eq. (13): + t, t = sqrt(2 gamma) n
            n = np.sqrt(solver.tau) if solver.reading == "variance" else solver.tau
            w = w + np.sqrt(2 * gamma) * n * drawn
    return w


def _of_client(turn: Turn, purpose: str, shape: tuple[int, int, int], kind: str) -> NDArray:
    """The client's part of numbers that are drawn for all clients."""
    return turn.draw(purpose, lambda rng: getattr(rng, kind)(shape))[:, turn.client]


def local_steps(turn: Turn, mean_steps: int) -> int:
    """L ~ Geom(p), 1 / p = mean_steps: how many steps all clients take until the next average."""
    return int(turn.draw("local_steps", lambda rng: rng.geometric(1 / mean_steps, 1))[0])


def cells(v: NDArray, dither: NDArray, bits: NDArray) -> NDArray:
    """Number, from 0 to 2^b - 1, of the cell of each coordinate.

    `v` and `dither` are (q, n), and `bits` (q,) are b. Of a finer cell the first bits are the coarser cell.
    """
    shifted = _wrapped(v + dither)
    number = np.floor((shifted + 1.0) / interval(bits)[:, None])
    return np.clip(number, 0, 2.0 ** bits[:, None] - 1).astype(np.int64)


def midpoints(number: NDArray, dither: NDArray, bits: NDArray) -> NDArray:
    """What is received of vectors in these cells: midpoints less the dither; 0 without bits."""
    middle = (number + 0.5) * interval(bits)[:, None] - 1.0
    return np.where(bits[:, None] > 0, _wrapped(middle - dither), 0.0)


def _wrapped(w: NDArray) -> NDArray:
    """`w` modulo 2, in [-1, 1)."""
    return w - 2.0 * np.floor(0.5 * (w + 1.0))
