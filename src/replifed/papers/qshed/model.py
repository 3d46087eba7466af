"""The paper's model of quantisation, eqs. (11) and (13), and the bound (24), against draws and a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.shed import QShed
from replifed.claims.claim import NotMeasurableError
from replifed.engine.simulate import simulate
from replifed.network.fading import Constant
from replifed.operators.bit_allocation import allocate, vectors_in_use
from replifed.operators.quantise import draw_dither, interval, quantise, quantise_grown
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams


def squared_errors(n: int = 90, draws: int = 20_000) -> NDArray:
    """Mean squared error of unit vectors that two bits and then three more were sent of, over Delta^2/12."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal((1, 1, draws, n))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    dither, received = draw_dither(rng, v.shape), np.zeros_like(v)
    bits = [np.full(v.shape[:-1], b) for b in (0, 2, 5)]
    for before, after in pairwise(bits):
        received = quantise_grown(v, received, before, after, dither)
    return ((received - v) ** 2).mean(axis=-1).ravel() / (interval(bits[-1]).ravel() ** 2 / 12)


def cross_traces(n: int = 90, draws: int = 100_000) -> NDArray:
    """tr(dV_i dV_j) of two orthogonal vectors with a bit each, over n Delta_i^2 Delta_j^2/144."""
    rng, part = np.random.default_rng(0), 10_000
    u, v = np.linalg.qr(rng.standard_normal((n, 2)))[0].T
    traces = []
    for _ in range(draws // part):
        one, two = (
            quantise(np.broadcast_to(w, (part, n)), np.ones(part, int), draw_dither(rng, (part, n)))
            for w in (u, v)
        )
        traces.append((u @ v) ** 2 - (two @ u) ** 2 - (one @ v) ** 2 + (one * two).sum(axis=1) ** 2)
    return np.concatenate(traces) / (n / 144)


def contractions(b_max: int, rounds: int = 7) -> Iterator[tuple[float, float, float]]:
    """kappa_t and the distances to the minimiser before and after each round, of Q-SHED on least squares."""
    rng = np.random.default_rng(8)
    N, m, n = 4, 30, 20
    X = rng.standard_normal((1, N, m, n)) / np.arange(1, n + 1)
    data = DenseLinearModel(X, rng.choice([-1.0, 1.0], (1, N, m)), loss_named("least_squares"), l2=0.05)
    minimum, streams = minimiser(data, 1)[0], Streams(7, (1,))
    algorithm = QShed(renewals="once", b_max=b_max, line_search=None)
    state = algorithm.init(data, streams)
    for t in range(rounds):
        before = state
        state = simulate(algorithm, data, streams, t + 1, channel=Constant(30), resume=(t, state)).state
        values, V, sent, q = state.values[0], state.vectors[0], state.received[0], state.q[0]
        rho = values[np.arange(N), q]
        e = sum(
            (values[d, i] - rho[d])
            * np.linalg.norm(np.outer(V[d, i], V[d, i]) - np.outer(sent[d, i], sent[d, i]), 2)
            for d in range(N)
            for i in range(q[d])
        )
        then, now = (float(np.linalg.norm(one.x[0] - minimum)) for one in (before, state))
        yield float(1 - (values[:, -1].mean() - e / N) / rho.mean()), then, now


def bound_holds(b_max: int) -> NDArray:
    """True if (24) holds, for each round in which it says something and rounding nothing."""
    said = (one for one in contractions(b_max) if one[0] < 1 and one[1] > 1e-9)
    holds = [now <= kappa * then for kappa, then, now in said]
    if not holds:
        raise NotMeasurableError("kappa_t is 1 or more in all rounds")
    return np.array(holds)


def bits_stay_ordered(n: int = 90, b_max: int = 16, rounds: int = 10, spectra: int = 200) -> NDArray:
    """True for each of random spectra and rounds after which no vector has more bits than the one before.

    Eigenvalues spread over some decades, budgets from 1 to 64 bits a coordinate.
    """
    rng = np.random.default_rng(0)
    decades = rng.uniform(1.0, 8.0, (spectra, 1))
    values = np.sort(10.0 ** -(decades * rng.random((spectra, n))))[:, ::-1]
    bits, ordered = np.zeros(values.shape, dtype=int), []
    for _ in range(rounds):
        budget = rng.integers(1, 65, spectra)
        bits = allocate(values, vectors_in_use(bits), bits, budget, b_max)
        ordered.append((np.diff(bits, axis=1) <= 0).all(axis=1))
    return np.concatenate(ordered)
