"""Input-convex networks and their derivatives, the transport benchmark, FedMM-OT and FedAdam."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from replifed.algorithms.base import Round
from replifed.algorithms.fedadam import FedAdam
from replifed.algorithms.fedmm_ot import (
    FedMMOT,
    adam,
    conjugate_gradient,
    identity_networks,
    no_moments,
    potential_gradient,
)
from replifed.data.catalogue import Counts, get
from replifed.data.checkpoints import read_potentials
from replifed.data.surrogates import generate
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.problems.transport import (
    ICNN,
    FederatedTransport,
    Mixture,
    Transport,
    TrueMap,
    benchmark_hidden,
)
from replifed.randomness import Streams

NET = ICNN(dim=3, hidden=(5, 4, 6), strong=0.01)
STREAMS = Streams(4, (1, 2))
MIRROR = os.environ.get("REPLIFED_MIRROR", "")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def plain_value(flat, x):
    """f at one point, by the network's definition."""
    sizes, place, parts = [(3, 5), (5, 3), (5,), (3, 4), (4, 3), (4,), (3, 6), (6, 3), (6,)], 0, []
    for shape in [*sizes, (4, 5), (6, 4), (6,)]:
        parts.append(flat[place : place + np.prod(shape)].reshape(shape))
        place += np.prod(shape)
    q = [(x @ parts[3 * k]) ** 2 + parts[3 * k + 1] @ x + parts[3 * k + 2] for k in range(3)]
    celu = lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0)))  # noqa: E731
    u = celu(parts[10] @ celu(parts[9] @ q[0] + q[1]) + q[2])
    return parts[11] @ u + 0.005 * x @ x


def test_value_is_the_networks_and_convex():
    flat, x = NET.initial(5 * numbers(NET.parameters)), numbers(40, 3, seed=1)
    found = NET.value(flat, x)
    np.testing.assert_allclose(found, [plain_value(flat, one) for one in x], rtol=1e-12)
    middle = NET.value(flat, 0.5 * (x[::2] + x[1::2]))
    assert (middle <= 0.5 * (found[::2] + found[1::2]) + 1e-12).all()
    assert not np.array_equal(NET.clamped(numbers(NET.parameters)), numbers(NET.parameters))


def test_derivatives_are_those_of_finite_differences():
    flat = NET.initial(5 * numbers(2, 1, NET.parameters))
    x, v, c = numbers(2, 3, 5, 3, seed=1), numbers(2, 3, 5, 3, seed=2), numbers(2, 3, 5, seed=3)
    eps = 1e-6

    def total(flat, x):
        return (c * NET.value(flat, x) + (v * NET.push(flat, x)).sum(axis=-1)).sum(axis=-1)

    for k, e in enumerate(np.eye(3)):
        slope = (NET.value(flat, x + eps * e) - NET.value(flat, x - eps * e)) / (2 * eps)
        np.testing.assert_allclose(NET.push(flat, x)[..., k], slope, atol=1e-7)
    by_parameter, by_point = NET.at(flat, x).derivative(c=c, v=v, at_points=True)
    for j in range(0, NET.parameters, 3):
        e = eps * (np.arange(NET.parameters) == j)
        slope = (total(flat + e, x) - total(flat - e, x)) / (2 * eps)
        np.testing.assert_allclose(by_parameter[..., j], slope, atol=1e-6)
    for b in range(5):
        for k in range(3):
            e = np.zeros_like(x)
            e[:, :, b, k] = eps
            slope = (total(flat, x + e) - total(flat, x - e)) / (2 * eps)
            np.testing.assert_allclose(by_point[:, :, b, k], slope, atol=1e-6)
    apart = NET.derivative(flat, x, c=c) + NET.derivative(flat, x, v=v)
    np.testing.assert_allclose(apart, by_parameter, atol=1e-10)


@pytest.mark.parametrize("cycle", [0.0, 0.7])
def test_losses_have_the_gradients_that_are_used(cycle):
    omega, theta = (
        NET.initial(3 * numbers(1, NET.parameters)),
        NET.initial(3 * numbers(1, NET.parameters, seed=1)),
    )
    x, y = numbers(1, 2, 6, 3, seed=2), numbers(1, 4, 3, seed=3)
    z = NET.push(theta, y)

    def missed(omega, z):
        return cycle * ((NET.push(omega, z) - y) ** 2).sum(axis=-1).mean(axis=-1)

    def potential(omega):
        loss = NET.value(omega[:, None], x).mean(axis=-1) - NET.value(omega, z).mean(axis=-1)[:, None]
        return loss + missed(omega, z)[:, None]

    def conjugate(theta):
        z = NET.push(theta, y)
        return (NET.value(omega, z) - (z * y).sum(axis=-1)).mean(axis=-1) + missed(omega, z)

    eps, j = 1e-6, np.arange(0, NET.parameters, 5)
    found_up = potential_gradient(NET, omega, theta, x, y, cycle)
    found_down = conjugate_gradient(NET, omega, theta, y, cycle)
    for k in j:
        e = eps * (np.arange(NET.parameters) == k)
        slope = (potential(omega + e) - potential(omega - e)) / (2 * eps)
        np.testing.assert_allclose(found_up[..., k], slope, atol=1e-7)
        slope = (conjugate(theta + e) - conjugate(theta - e)) / (2 * eps)
        np.testing.assert_allclose(found_down[..., k], slope, atol=1e-7)


def test_adam_by_hand():
    """Two rows, each with a step size of its own."""
    state, x, steps = no_moments(2, 1, np.dtype(float)), np.array([[1.0], [-2.0]]), []
    size = np.array([0.1, 0.3])
    m = s = 0.0
    for t in range(1, 5):
        g = 2 * x
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g**2
        expected = -size[:, None] * m / (1 - 0.9**t) / (np.sqrt(s / (1 - 0.999**t)))
        state, change = adam(state, g, size, (0.9, 0.999), 0.0)
        np.testing.assert_allclose(change, expected, rtol=1e-12)
        x = x + change
        steps.append(float(x[0, 0]))
    assert steps == sorted(steps, reverse=True)


@pytest.fixture(scope="module")
def small():
    """Two dimensions, a random pair, 4 clients."""
    rng = np.random.default_rng(0)
    mixture = Mixture(dim=2)
    true_map = TrueMap(generate(get("mix3to10_2"))[0], 2, mixture.sample(rng, 4000))
    clients = mixture.sample(rng, 400).reshape(1, 4, 100, 2)
    public = true_map(mixture.sample(rng, 500))
    return FederatedTransport(clients, public[None], mixture.sample(rng, 1000)[None], true_map)


def test_the_benchmark_is_standardised_and_scored_right(small):
    rng = np.random.default_rng(1)
    samples = Mixture(dim=4).sample(rng, 40_000)
    np.testing.assert_allclose(samples.mean(axis=0), 0, atol=0.03)
    assert samples.var(axis=0).sum() == pytest.approx(4, rel=0.02)
    assert isinstance(small, Transport)
    (images,) = small._images
    assert images.var(axis=0).sum() == pytest.approx(2, rel=0.15)
    assert small._uvp(images, 0) == 0
    assert small._uvp(images.mean(axis=0), 0) == pytest.approx(100, rel=1e-12)
    assert 0 < small.linear_uvp() < 100


@pytest.mark.skipif(not Path(MIRROR or "?").is_dir(), reason="REPLIFED_MIRROR names no folder with the files")
@pytest.mark.parametrize(("dim", "percent"), [(2, 14), (4, 15), (8, 27)])
def test_the_linear_map_scores_as_known_on_the_benchmark(dim, percent):
    paths = [Path(MIRROR, f"w2bench/Mix3toMix10/{dim}_v{k}.pt") for k in (1, 2)]
    pair = read_potentials(paths, Counts())[0]
    rng = np.random.default_rng(0)
    mixture = Mixture(dim=dim)
    true_map = TrueMap(pair, dim, mixture.sample(rng, 2**14))
    samples = mixture.sample(rng, 40).reshape(1, 2, 20, dim)
    data = FederatedTransport(samples, samples[:, 0], mixture.sample(rng, 2**14)[None], true_map)
    assert data.linear_uvp() == pytest.approx(percent, abs=0.7)


UVP = {"uvp": lambda problem, seen: problem.uvp(seen["server"])}
SETTINGS = {"batch": 20, "server_batch": 16, "start_steps": 20}
METHODS = {
    "fedmm_ot": FedMMOT(step=0.02, alpha=0.4, server_steps=3, **SETTINGS),
    "fedadam": FedAdam(step=1e-3, **SETTINGS),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_beyond_a_clients_samples_takes_all_of_them(name, small):
    algorithm = dataclasses.replace(METHODS[name], batch=1000)
    history = simulate(algorithm, small, STREAMS, 2, metrics=UVP, cohort=FixedSize(2))
    per_round = {"fedmm_ot": 2 * (100 + 16) + 3 * 16, "fedadam": 2 * (100 + 2 * 16)}[name]
    assert (history.ledger["sample_gradients"][-1] == 2 * per_round).all()


def third_round(algorithm, problem):
    """The state before it, what it returns, its random numbers, and each row's clients with their samples."""
    state = simulate(algorithm, problem, STREAMS, 2, metrics=UVP, cohort=FixedSize(2)).state
    now = STREAMS.at(2)
    cohort = FixedSize(2)(now, 4)
    found = algorithm.round(state, problem, Round(2, cohort.active, None, now, cohort.chosen))
    drawn = now.draw("batch", lambda rng: rng.random((1, 2, 20)))[:, 0]
    batches = [
        [
            (i, problem._sources[0, i, (drawn[r, place] * 100).astype(int)].astype(float))
            for place, i in enumerate(np.flatnonzero(cohort.active[r]))
        ]
        for r in range(2)
    ]
    return state, found, now, batches


def test_a_round_is_algorithm_3_line_by_line(small):
    algorithm, net = FedMMOT(step=0.02, alpha=0.4, gamma=0.7, server_steps=2, **SETTINGS), small.net
    state, (found, _), now, batches = third_round(algorithm, small)
    public = now.draw("targets", lambda rng: rng.integers(500, size=(3, 16)))
    for r in range(2):
        omega, theta, V = (array[r].astype(float) for array in (state.omega, state.theta, state.V))
        V_i, total = state.V_i[r].astype(float), 0.0
        z = net.push(theta, small._targets[0, public[r, 0]].astype(float))
        for i, x in batches[r]:
            g = net.derivative(omega, x, c=np.full(20, 1 / 20)) - net.derivative(
                omega, z, c=np.full(16, 1 / 16)
            )
            delta = -0.02 * g - V_i[i]
            V_i[i] += 0.4 * delta
            total = total + 0.25 * delta
        omega = net.clamped(omega + 0.7 * (V + 2 * total))
        np.testing.assert_allclose(found.omega[r], omega, atol=2e-5)
        np.testing.assert_allclose(found.V[r], V + 0.4 * total, atol=2e-5)
        np.testing.assert_allclose(found.V_i[r], V_i, atol=2e-5)
        mean, square = (array[r].astype(float) for array in (state.mean, state.square))
        for t, drawn in enumerate(public[r, 1:], start=5):  # two steps a round
            y = small._targets[0, drawn].astype(float)
            g = net.derivative(theta, y, v=(net.push(omega, net.push(theta, y)) - y) / 16)
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
            bias = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            theta = net.clamped(theta - 1e-3 * bias * mean / (np.sqrt(square) + 1e-8))
        np.testing.assert_allclose(found.mean[r], mean, atol=1e-6)
        np.testing.assert_allclose(found.square[r], square, atol=1e-7)


def test_a_round_of_fedadam_is_adam_on_the_mean_gradients(small):
    """Of the potential at the clients that take part, and of the conjugate at the server."""
    algorithm, net, D = METHODS["fedadam"], small.net, small.net.parameters
    state, (found, cost), now, batches = third_round(algorithm, small)
    public = now.draw("targets", lambda rng: rng.integers(500, size=16))
    for r in range(2):
        parameters, mean, square = (
            array[r].astype(float) for array in (state.parameters, state.mean, state.square)
        )
        omega, theta = parameters[:D], parameters[D:]
        y = small._targets[0, public[r]].astype(float)
        z, up = net.push(theta, y), 0.0
        for _, x in batches[r]:
            up = up + 0.5 * net.derivative(omega, x, c=np.full(20, 1 / 20))
        up = up - net.derivative(omega, z, c=np.full(16, 1 / 16))
        down = net.derivative(theta, y, v=(net.push(omega, z) - y) / 16)
        g = np.concatenate([up, down])
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        np.testing.assert_allclose(found.mean[r], mean, atol=1e-6)
        np.testing.assert_allclose(found.square[r], square, atol=1e-7)
        # From the moments as found: Adam takes even those of rounding errors for steps of full length.
        mean, square = found.mean[r].astype(float), found.square[r].astype(float)
        bias = np.sqrt(1 - 0.999**3) / (1 - 0.9**3)
        moved = parameters - 1e-3 * bias * mean / (np.sqrt(square) + 1e-8)
        expected = np.concatenate([net.clamped(moved[:D]), net.clamped(moved[D:])])
        np.testing.assert_allclose(found.parameters[r], expected, atol=1e-5)
    bits = 2 * 2 * D * 32
    assert cost == (bits, bits, 1, 1, 2 * (20 + 2 * 16), 0, 0)


def test_training_starts_at_the_identity_and_learns(small):
    start = identity_networks(small.net, STREAMS, np.dtype(np.float32), 300)
    x = 3 * numbers(200, 2).astype(np.float32)
    assert ((small.net.push(start, x) - x) ** 2).mean() < 1e-3
    settings = {"batch": 64, "server_batch": 64, "start_steps": 300}
    for algorithm in (FedMMOT(step=0.02, **settings), FedAdam(step=3e-4, **settings)):
        history = simulate(algorithm, small, Streams(0, (0,)), 60, metrics=UVP, record_every=60)
        first, last = history.metrics["uvp"][[0, -1], 0]
        assert last < 0.9 * first


def test_widths_of_the_benchmark():
    assert benchmark_hidden(2) == (64, 64, 32)
    assert benchmark_hidden(64) == (128, 128, 64)
