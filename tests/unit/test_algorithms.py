"""Minibatches are drawn as they should be; hard-thresholding methods do what their paper says."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.distributed_iht import DistributedIHT
from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fedht import FedHT
from replifed.algorithms.fediterht import FedIterHT
from replifed.algorithms.hard_thresholding import alpha, fedht_rate, fediterht_rate
from replifed.engine.simulate import simulate
from replifed.operators.hard_threshold import hard_threshold
from replifed.papers.fedht.settings import Planted
from replifed.papers.fedht.simulations import planted
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams

METHODS = {"distributed_iht": DistributedIHT, "fedavg": FedAvg, "fedht": FedHT, "fediterht": FedIterHT}
# Settings for `problem`, without the minibatch size.
SETTINGS = {
    "distributed_iht": {"step": 0.05, "sparsity": 4},
    "fedavg": {"step": 0.05, "local_steps": 3},
    "fedht": {"step": 0.05, "local_steps": 3, "sparsity": 4},
    "fediterht": {"step": 0.05, "local_steps": 3, "sparsity": 4},
}
SIZES = (6, 3, 5, 6)
STREAMS = Streams(7, (1, 2))
THRESHOLDING = ("distributed_iht", "fedht", "fediterht")

batch_size = pytest.mark.parametrize("batch", [None, 4], ids=["full", "minibatch"])
layout = pytest.mark.parametrize("layout", ["dense", "csr"])


def samples(d=10, seed=0):
    """Targets and features of four clients, one list entry a client."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) for n in SIZES]
    return X, [rng.choice([-1.0, 1.0], n) for n in SIZES]


def problem(layout="dense", loss="logistic", order=(0, 1, 2, 3), d=10):
    """Four clients, listed in the order `order`."""
    X, y = samples(d)
    X, y, n = [X[i] for i in order], [y[i] for i in order], np.array(SIZES)[list(order)]
    if layout == "csr":
        client = np.repeat(np.arange(4), n)
        return SparseLinearModel(sp.csr_array(np.concatenate(X)), np.concatenate(y), loss_named(loss), client)
    stacked, targets = np.zeros((1, 4, max(n), d)), np.zeros((1, 4, max(n)))
    for i in range(4):
        stacked[0, i, : n[i]], targets[0, i, : n[i]] = X[i], y[i]
    return DenseLinearModel(stacked, targets, loss_named(loss), sizes=n[None])


def build(name, **more):
    return METHODS[name](**SETTINGS[name] | more)


def same(a, b):
    return type(a) is type(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# -- minibatches -------------------------------------------------------------------------------------


def test_minibatches_are_uniform_over_each_clients_samples():
    data, rounds = problem(), 500
    drawn = np.stack(
        [Cohort(data, Round(t, None, None, STREAMS.at(t))).minibatches(2, 5) for t in range(rounds)]
    )
    assert drawn.shape == (rounds, 2, 2, 4, 5)
    for i, n in enumerate(SIZES):
        counts = np.bincount(drawn[..., i, :].ravel(), minlength=n)
        draws = rounds * 2 * 2 * 5
        assert len(counts) == n
        assert np.all(np.abs(counts - draws / n) < 4 * np.sqrt(draws / n * (1 - 1 / n)))
    # With replacement: pairs of draws agree once in n times.
    pairs = np.mean(drawn[..., 0, 0] == drawn[..., 0, 1])
    assert abs(pairs - 1 / 6) < 4 * math.sqrt(1 / 6 * 5 / 6 / (rounds * 4))
    cohort = Cohort(data, Round(0, None, None, STREAMS.at(0)))
    assert cohort.minibatches(3, 6) == cohort.minibatches(3, None) == [None] * 3


# -- hard thresholding (Tong et al. 2022) ------------------------------------------------------------


def box(x, batches, step, K, tau, *, inside):
    """One round of Algorithms 1 and 2, client by client, with K steps; logistic loss."""
    X, y = samples()
    total = np.zeros_like(x)
    for i, n in enumerate(SIZES):
        u = x.copy()
        for k in range(K):
            chosen = range(n) if batches[k] is None else batches[k][i]
            g = np.zeros_like(u)
            for j in chosen:
                g -= y[i][j] * X[i][j] / (1 + math.exp(y[i][j] * (X[i][j] @ u)))
            u = u - step * g / len(chosen)
            if inside:
                u = keep_largest(u, tau)
        total += n / sum(SIZES) * u
    return keep_largest(total, tau)


def keep_largest(v, tau):
    kept = np.zeros_like(v)
    for j in sorted(range(len(v)), key=lambda j: (-abs(v[j]), j))[:tau]:
        kept[j] = v[j]
    return kept


@layout
@batch_size
@pytest.mark.parametrize("name", ["fedht", "fediterht"])
def test_rounds_are_those_of_the_papers_boxes(name, batch, layout):
    data, algorithm = problem(layout), build(name, batch=batch, step=0.3)
    state = algorithm.init(data, STREAMS)
    assert not state.x.any()
    for t in range(6):
        context = Round(t, None, None, STREAMS.at(t))
        batches = Cohort(data, context).minibatches(3, batch)
        expected = [
            box(
                state.x[row],
                [b if b is None else b[row] for b in batches],
                0.3,
                3,
                4,
                inside=name == "fediterht",
            )
            for row in range(2)
        ]
        state, _ = algorithm.round(state, data, context)
        np.testing.assert_allclose(state.x, expected, atol=1e-12)


@layout
@batch_size
def test_distributed_iht_is_fedht_with_one_local_step(batch, layout):
    data = problem(layout)
    one = simulate(build("distributed_iht", batch=batch), data, STREAMS, 6)
    other = simulate(build("fedht", local_steps=1, batch=batch), data, STREAMS, 6)
    assert same(one.state, other.state)
    assert all(np.array_equal(one.ledger[what], other.ledger[what]) for what in one.ledger)
    with pytest.raises(TypeError, match="local_steps"):
        DistributedIHT(step=0.1, sparsity=4, local_steps=2)


@layout
@batch_size
def test_fedht_that_keeps_everything_is_fedavg(batch, layout):
    data = problem(layout)
    thresholded = simulate(build("fedht", sparsity=10, batch=batch), data, STREAMS, 6)
    averaged = simulate(build("fedavg", batch=batch), data, STREAMS, 6)
    assert same(thresholded.state, averaged.state)


@pytest.mark.parametrize("name", THRESHOLDING)
def test_one_client_and_one_full_step_is_iterative_hard_thresholding(name):
    X, y = samples()
    data = DenseLinearModel(X[0][None, None], y[0][None, None], loss_named("least_squares"))
    more = {} if name == "distributed_iht" else {"local_steps": 1}
    got = simulate(build(name, **more), data, Streams(0, (0,)), 10).state.x[0]
    x = np.zeros(10)
    for _ in range(10):
        x = keep_largest(x - 0.05 * X[0].T @ (X[0] @ x - y[0]) / 6, 4)
    np.testing.assert_allclose(got, x, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", THRESHOLDING)
def test_messages_are_as_sparse_as_they_are_billed(name, layout, monkeypatch):
    data, sent = problem(layout), []
    lend = data.local

    def spied(*args, **kwargs):
        local = lend(*args, **kwargs)
        mean = local.mean

        def noted(u):
            if layout == "dense":
                sent.append(np.count_nonzero(u, axis=-1))
            return mean(u)

        local.mean = noted
        return local

    monkeypatch.setattr(data, "local", spied)
    history = simulate(
        build(name, batch=4),
        data,
        STREAMS,
        6,
        metrics={"nonzeros": lambda _, seen: np.count_nonzero(seen["server"], axis=-1)},
    )
    assert np.all(history.metrics["nonzeros"] <= 4)
    assert np.all(history.metrics["nonzeros"][1:] > 0)
    # How many entries of a client's model are kept before it is sent (for CSR: tests/unit/test_problems.py).
    if name == "fediterht" and layout == "dense":
        np.testing.assert_array_equal(sent, np.full((6, len(STREAMS), 4), 4))


@pytest.mark.parametrize("name", THRESHOLDING)
def test_batches_grow_up_to_the_clients_samples(name):
    algorithm = build(name, batch=2, batch_decay=0.8)
    assert [algorithm.batch_size(t) for t in range(6)] == [2, 3, 4, 4, 5, 7]
    assert build(name, batch_decay=0.8).batch_size(3) is None
    # No overflow however long the run.
    assert algorithm.batch_size(100_000) is None
    used = simulate(algorithm, problem(), Streams(0, (0,)), 6).ledger["sample_gradients"][:, 0]
    K = algorithm.local_steps
    # From 6 samples, the largest client's, everyone takes all it has.
    assert np.diff(used).tolist() == [K * n for n in (8, 12, 16, 16, 20, sum(SIZES))]


# -- theorems ----------------------------------------------------------------------------------------


def test_rates_by_hand():
    assert alpha(5, 1) == 1.0
    assert alpha(18, 2) == pytest.approx(2 * math.sqrt(2) / 4)
    assert alpha(3, 3) == alpha(2, 3) == math.inf
    # kappa = 1: factors of 11/12. Theorem 1 asks for tau >= 16 x 11^2 + 1 = 1937, where alpha = 1/22
    # makes 1 + 2 alpha = 12/11: exactly the factor that one step gains.
    rate = fedht_rate(1.0, 1937, 1, 2)
    assert rate[:3] == (pytest.approx(11 / 12), 1937, True)
    assert fedht_rate(1.0, 1936, 1, 2).holds is False
    # At tau = 5, tau* = 1: alpha = 1 and q = (11/12)^2, so xi_1 l^2 / delta_1 is 2 (1 - q) / q.
    q = (11 / 12) ** 2
    assert fedht_rate(1.0, 5, 1, 2) == (pytest.approx(3 * q), 1937, False, pytest.approx(2 * (1 - q) / q))
    assert fedht_rate(2.0, 50, 2, 1).least_sparsity == (16 * 23**2 + 1) * 2
    # Theorem 2: at its smallest tau, (1 + 2 alpha)^2 = 12/11.
    least = fediterht_rate(1.0, 10, 1, 1).least_sparsity
    assert least == pytest.approx(16 / (math.sqrt(12 / 11) - 1) ** 2 + 1)
    above = fediterht_rate(1.0, math.ceil(least), 1, 1)
    assert (above.theta, above.holds) == (pytest.approx(1, abs=1e-4), True)
    assert fediterht_rate(1.0, math.floor(least), 1, 9).holds is False
    assert fediterht_rate(1.0, 5, 1, 2) == (
        pytest.approx(9 * q),
        pytest.approx(least),
        False,
        pytest.approx(4 * (1 - q) / (5 * q)),
    )
    q = (23 / 24) ** 2
    for rate, factor in ((fedht_rate, 2), (fediterht_rate, 4 / 5)):
        assert rate(2.0, 5, 1, 2).spread == pytest.approx(2 * factor * (1 - q) / q)
        assert rate(math.inf, 10**6, 1, 10).holds is False


@pytest.mark.parametrize(
    "name, rate, tau, d", [("fedht", fedht_rate, 2160, 2200), ("fediterht", fediterht_rate, 9000, 9100)]
)
@pytest.mark.parametrize("K", [3, 8])
def test_theorems_bound_the_error_where_they_hold(name, rate, tau, d, K):
    kappa = 1.05
    settings = {"seed": 1, "clients": 2, "samples": d, "features": d, "planted": 1, "condition": kappa}
    data, x_star, _ = planted(Planted.of_job(settings), 0)
    promised = rate(kappa, tau, 1, K)
    assert promised.holds

    def error(_, seen):
        return np.sum((seen["server"] - x_star) ** 2, axis=-1)

    # Without noise, and all clients with one minimiser, no bias is left: the bound goes to zero.
    algorithm = build(name, step=1 / (6 * kappa), sparsity=tau, local_steps=K)
    errors = simulate(algorithm, data, Streams(1, (0,)), 12, metrics={"error": error}).metrics["error"][:, 0]
    assert np.all(errors <= errors[0] * promised.theta ** np.arange(13))
    # A straight line in the logarithm: every round gains the same factor, up to the last digits.
    logs = np.log(errors[: np.argmax(errors < 1e-20) or None])
    assert len(logs) > 5
    assert np.corrcoef(np.arange(len(logs)), logs)[0, 1] < -0.99


def test_thresholding_keeps_the_planted_support():
    # tau = tau*: below what the theorems ask, yet the problem is easy enough to be solved exactly.
    settings = {"seed": 2, "clients": 4, "samples": 60, "features": 60, "planted": 5, "condition": 1.05}
    data, x_star, _ = planted(Planted.of_job(settings), 0)
    for name in ("fedht", "fediterht"):
        found = simulate(build(name, step=0.5, sparsity=5), data, Streams(1, (0,)), 30).state.x[0]
        np.testing.assert_allclose(found, x_star, atol=1e-8)
        assert np.array_equal(found, hard_threshold(found, 5))
