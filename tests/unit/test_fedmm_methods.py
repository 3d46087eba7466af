"""SA-SSMM, FedMM and the naive scheme: identities of the paper, exact ones to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from replifed.algorithms.base import Round
from replifed.algorithms.fedmm import FedMM, ParameterAggregation
from replifed.algorithms.sa_ssmm import SaSsmm
from replifed.engine.simulate import simulate
from replifed.errors import ConfigError
from replifed.network.participation import FixedSize, Independent
from replifed.operators.lasso import lasso
from replifed.operators.quantise import block_quantise
from replifed.problems.surrogates.base import FederatedSurrogate
from replifed.problems.surrogates.families import DictionaryLearning, GaussianMixture
from replifed.randomness import Streams

N, M, P, K = 6, 12, 5, 3
STREAMS = Streams(3, (1, 2))
FAMILY = DictionaryLearning(features=P, atoms=K, lam=0.2, eta=0.05)


def dictionary(n=N, weights=None, rows=2):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(rows, n, M, P)) + 2 * rng.normal(size=(rows, n, 1, P))
    return FederatedSurrogate(FAMILY, Z, rng.normal(size=(rows, FAMILY.parameters)), weights=weights)


def mixture():
    rng = np.random.default_rng(1)
    fam = GaussianMixture(weights=np.array([0.6, 0.4]), covariance=np.eye(2), lam=0.01)
    Z = rng.normal(size=(2, N, M, 2)) + np.linspace(-2, 2, N)[:, None, None]
    return FederatedSurrogate(fam, Z, rng.normal(size=(2, 4)))


WEIGHTS = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "make", [lambda: dictionary(weights=WEIGHTS), mixture], ids=["dictionary", "mixture"]
)
def test_full_participation_with_step_one_is_centralised_mm(alpha, make):
    problem = make()
    theta = problem.T(problem.project(problem.start(STREAMS)))
    history = simulate(FedMM(beta=1.0, decay=0.0, alpha=alpha), problem, STREAMS, 8)
    for _ in range(8):
        theta = problem.T(problem.mirror(theta))
    np.testing.assert_allclose(history.state.theta, theta, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("clients", [1, N])
def test_without_compression_and_with_all_clients_fedmm_is_sa_ssmm(alpha, clients):
    problem = dictionary(clients)
    federated = simulate(FedMM(beta=0.7, alpha=alpha, batch=4), problem, STREAMS, 10)
    central = simulate(SaSsmm(beta=0.7, batch=4), problem, STREAMS, 10)
    np.testing.assert_allclose(federated.state.x, central.state.s, atol=1e-12)
    np.testing.assert_allclose(federated.metrics["objective"], central.metrics["objective"], rtol=1e-11)


@pytest.mark.parametrize(
    ("features", "atoms", "lam", "settings", "cohort"),
    [
        (5, 8, 0.2, {"beta": 1.0, "decay": 0.0}, None),
        (6, 20, 0.3, {"beta": 0.5, "alpha": 0.1, "batch": 4}, FixedSize(3)),
        (4, 7, 0.05, {"beta": 0.5, "alpha": 0.1, "bits": 8, "participation": 0.5}, Independent(0.5)),
        (8, 24, 0.1, {"beta": 0.5, "alpha": 0.2, "bits": 6}, FixedSize(2)),
    ],
)
def test_more_atoms_than_features(features, atoms, lam, settings, cohort):
    """The objective falls, in every round of exact MM, and the last codes are optimal to 1e-9."""
    rng = np.random.default_rng(0)
    family = DictionaryLearning(features=features, atoms=atoms, lam=lam, eta=0.05)
    Z = rng.normal(size=(2, N, M, features)) + 2 * rng.normal(size=(2, N, 1, features))
    problem = FederatedSurrogate(family, Z, rng.normal(size=(2, family.parameters)))
    history = simulate(FedMM(**settings), problem, STREAMS, 20, cohort=cohort)
    objective = history.metrics["objective"]
    assert (objective[-1] < 0.9 * objective[0]).all()
    if cohort is None:
        assert (np.diff(objective, axis=0) < 0).all()
    D = history.state.theta.reshape(2, features, atoms)
    G, C = np.swapaxes(D, 1, 2) @ D, Z.reshape(2, N * M, features) @ D
    h = lasso(G, C, lam)
    off = np.where(h != 0, np.abs(C - h @ G - lam * np.sign(h)), np.abs(C - h @ G) - lam)
    assert (off.max(axis=2) < 1.01e-9 * (np.abs(C).max(axis=2) + lam)).all()


def test_sa_ssmm_sends_nothing_and_reads_every_clients_minibatch():
    everything = N * dictionary().sizes.max()
    for batch, samples in ((4, N * 4), (None, everything), (1000, everything)):
        algorithm, problem = SaSsmm(beta=0.7, batch=batch), dictionary()
        ctx = Round(0, None, None, STREAMS.at(0))
        cost = algorithm.round(algorithm.init(problem, STREAMS), problem, ctx)[1]
        assert all(np.all(a == b) for a, b in zip(cost, (0, 0, 0, 1, samples, 0, 0), strict=True))


def one_round(algorithm, problem, state, ctx):
    """Algorithm 2 line by line, with loops over rows and clients."""
    R, n, q = state.V_i.shape
    x, V, V_i = state.x.copy(), state.V.copy(), state.V_i.copy()
    out, gamma = np.empty_like(x), min(1.0, algorithm.beta / (ctx.t + 1) ** algorithm.decay)
    c = int(np.sum(ctx.active, axis=1).max())
    batch = ctx.streams.draw("batch", lambda rng: rng.random((1, c, algorithm.batch)))[:, 0]
    batch = np.broadcast_to((batch * M).astype(int), (R, c, algorithm.batch))
    dither = np.broadcast_to(ctx.streams.draw("dither", lambda rng: rng.random((c, q))), (R, c, q))
    naive = isinstance(algorithm, ParameterAggregation)
    for r in range(R):
        active = np.flatnonzero(np.broadcast_to(ctx.active, (R, n))[r])
        p = algorithm.participation or len(active) / n
        total = np.zeros(q)
        for place, i in enumerate(active):
            S = FAMILY.sbar(problem.Z[r, i, batch[r, place]], state.theta[r])
            answer = FAMILY.T(S) if naive else S
            message = block_quantise(answer - x[r] - V_i[r, i], dither[r, place], algorithm.bits)
            V_i[r, i] += algorithm.alpha * message
            total += problem.weights[r, i] * message
        H = V[r] + total / p
        V[r] += algorithm.alpha * total
        out[r] = x[r] + gamma * H if naive else FAMILY.project(x[r] + gamma * H)
    return out, V, V_i


@pytest.mark.parametrize("cohort", [FixedSize(3), Independent(0.5)])
@pytest.mark.parametrize("method", [FedMM, ParameterAggregation])
def test_a_round_is_algorithm_2_line_by_line(method, cohort):
    problem = dictionary(weights=WEIGHTS)
    p = 0.5 if isinstance(cohort, Independent) else None
    algorithm = method(beta=0.8, alpha=0.2, batch=4, bits=5, participation=p)
    state = simulate(algorithm, problem, STREAMS, 3, cohort=cohort).state
    for t in (3, 4, 5, 6):
        now = STREAMS.at(t)
        ctx = Round(t, *cohort(now, N)[:1], None, now, cohort(now, N).chosen)
        expected = one_round(algorithm, problem, state, ctx)
        state = algorithm.round(state, problem, ctx)[0]
        for found, wanted in zip((state.x, state.V, state.V_i), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("cohort", [FixedSize(2), Independent(0.35)])
@pytest.mark.parametrize("bits", [None, 3])
def test_the_mean_step_is_the_mean_field(cohort, bits):
    """E[H | past] = h(S), over cohorts, minibatches and rounding."""
    rows = 4000
    small = dictionary(rows=1)
    problem = FederatedSurrogate(FAMILY, small.Z, small.theta0)
    settings = {"beta": 1e-3, "alpha": 0.5, "batch": 5, "bits": bits, "participation": 0.35}
    state = simulate(FedMM(**settings), problem, Streams(9, (0,)), 3, cohort=cohort).state
    many = type(state)(*(np.repeat(field, rows, axis=0) for field in state))

    class Unprojected(FedMM):
        def project(self, problem, x):
            return x

    streams = Streams(11, tuple(range(rows))).at(5)
    drawn = cohort(streams, N)
    half = (
        Unprojected(**settings).round(many, problem, Round(5, drawn.active, None, streams, drawn.chosen))[0].x
    )
    gamma = 1e-3 / np.sqrt(6)
    H = (half - many.x) / gamma
    h = (problem.mirror(problem.T(state.x)) - state.x)[0]
    error = np.abs(H.mean(axis=0) - h) / (H.std(axis=0, ddof=1) / np.sqrt(rows) + 1e-9)
    assert error.max() < 5
    assert np.abs(h).max() > 0.05  # the start is no fixed point: there is something to be unbiased about


def test_bernoulli_needs_its_probability_and_may_draw_nobody():
    problem = dictionary()
    with pytest.raises(ConfigError, match="participation"):
        simulate(FedMM(beta=1.0), problem, STREAMS, 1, cohort=Independent(0.5))
    nobody = np.zeros((2, N), dtype=bool)
    algorithm = FedMM(beta=1.0, participation=0.5, alpha=0.1)
    start = algorithm.init(problem, STREAMS)
    state, cost = algorithm.round(start, problem, Round(0, nobody, None, STREAMS.at(0)))
    np.testing.assert_allclose(state.x, start.x, atol=1e-14)
    assert not np.any(cost.bits_up)
