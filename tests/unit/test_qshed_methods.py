"""SHED and its variants, FedNL, GIANT, Newton and gradient descent: costs, loops, and theorems."""

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.algorithms.base import Round, ServerModel
from replifed.algorithms.fednl import FedNL
from replifed.algorithms.giant import Giant
from replifed.algorithms.gradient_descent import GradientDescent
from replifed.algorithms.newton import DistributedNewton
from replifed.algorithms.newton_type import Armijo, solve_runs
from replifed.algorithms.shed import IdealShed, NQShed, QShed, Shed, renews
from replifed.engine.simulate import simulate
from replifed.errors import ConfigError
from replifed.network.fading import Constant, Rayleigh
from replifed.operators.bit_allocation import allocate
from replifed.operators.quantise import draw_dither, quantise
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams, generator

REACHING = {
    "ideal_shed": IdealShed(),
    "shed": Shed(),
    "qshed": QShed(),
    "nqshed": NQShed(),
    "fednl": FedNL(),
    "giant": Giant(),
    "newton": DistributedNewton(),
    "qshed fresh": QShed(dither="fresh", normalise=True),
    "qshed exact": QShed(q_choice="exact", renewals=3, dither="added"),
    "fednl top-k option 2": FedNL(compressor="topk", option=2),
    "fednl option 2": FedNL(option=2, start="hessian", vector_bits=30),
    "fednl quantised": FedNL(quantised=True, b_max=24),
}
STREAMS = Streams(7, (1, 2))
N, M, D = 4, 12, 7


def problem(layout="dense", order=range(N), loss="logistic", l2=1e-3, seed=0, sets=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sets, N, M, D)) * (rng.random((sets, N, M, D)) < 0.7) / np.arange(1, D + 1)
    y = rng.choice([-1.0, 1.0], (sets, N, M))
    X, y = X[:, list(order)], y[:, list(order)]
    if layout == "csr":
        device = np.repeat(np.arange(N), M)
        return SparseLinearModel(
            sp.csr_array(X[0].reshape(-1, D)), y[0].ravel(), loss_named(loss), device, l2=l2
        )
    return DenseLinearModel(X, y, loss_named(loss), l2=l2)


# -- settings and costs -------------------------------------------------------------------------------


def test_costs_of_a_round_by_hand():
    data = problem()
    tried = 2  # messages: f_i(x), then a loss and an answer for every step tried

    def one(algorithm, bits=40):
        history = simulate(algorithm, data, Streams(7, (1,)), 1, channel=Constant(bits))
        counted = {name: total[-1, 0] for name, total in history.ledger.items()}
        steps = (counted["line_search_messages"] / N - 1) / tried
        return counted, steps

    gradient, scalars = 16 * D, 32
    for algorithm, vectors, values, hessians, exchanges in (
        (GradientDescent(), 0, 0, 0, 1),
        (DistributedNewton(), 16 * D * (D + 1) // 2, 0, 1, 1),
        (Giant(), 16 * D, 0, 1, 2),
        (FedNL(), 16 * D, 1, 1, 1),
        (FedNL(option=2), 16 * D, 2, 1, 1),
        (FedNL(start="hessian"), 16 * D + 16 * D * (D + 1) // 2, 1, 1, 1),
        (FedNL(compressor="topk", entries=3), 3 * 16 + 3 * 5, 0, 1, 1),
        # Which ones are sent takes a bit each, or nothing where all are.
        (FedNL(compressor="topk", entries=26), 26 * 16 + 28, 0, 1, 1),
        (FedNL(compressor="topk", entries=27), 16 * D * (D + 1) // 2, 0, 1, 1),
        (FedNL(compressor="topk", entries=1000), 16 * D * (D + 1) // 2, 0, 1, 1),
        (FedNL(vector_bits=41), 0, 0, 1, 1),
        (FedNL(vector_bits=32), 32 * D, 1, 1, 1),
        (FedNL(quantised=True), 16 * D, 1, 1, 1),
        (NQShed(), 32 * D, 3, 1, 1),
        (Shed(), 32 * D, 3, 1, 1),
    ):
        counted, steps = one(algorithm)
        name = repr(algorithm)
        up = gradient + vectors + scalars * (values + 1 + steps)
        assert counted["bits_up"] == N * up, name
        down = scalars * (D * (2 if exchanges == 2 else 1) + steps)
        assert counted["bits_down"] == N * down, name
        assert (counted["hessians"], counted["exchanges"]) == (N * hessians, exchanges), name
        assert counted["sample_gradients"] == N * M
    counted, steps = one(QShed())
    state = simulate(QShed(), data, Streams(7, (1,)), 1, channel=Constant(40)).state
    assert state.bits.sum() == 40 * N
    up = N * (gradient + 40 * D + scalars * (2 + steps)) + scalars * state.q.sum()
    assert counted["bits_up"] == up
    # Below 16 bits a coordinate NQ-SHED and FedNL send their gradients alone; Q-SHED uses what there is.
    assert simulate(NQShed(), data, Streams(7, (1,)), 1, channel=Constant(15)).state.bits.sum() == 0
    assert simulate(QShed(), data, Streams(7, (1,)), 1, channel=Constant(3)).state.bits.sum() == 3 * N
    assert not simulate(FedNL(), data, Streams(7, (1,)), 1, channel=Constant(15)).state.hessians.any()
    counted, steps = one(FedNL(quantised=True), bits=5)
    assert counted["bits_up"] == N * (gradient + 5 * D + scalars * (2 + steps))


def test_fednl_learns_from_quantised_vectors_what_their_bits_tell():
    data = problem()

    def learned(bits, **settings):
        algorithm = FedNL(**settings)
        return simulate(algorithm, data, Streams(7, (1,)), 1, channel=Constant(bits)).state.hessians[0]

    exact = learned(40)
    np.testing.assert_array_equal(learned(40, quantised=True), exact)
    # One part in 2^14 of a vector's coordinates; one bit tells no more than a sign.
    gaps = [np.abs(learned(bits, quantised=True) - exact).max() for bits in (1, 6, 15)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 1e-4 * np.abs(exact).max() * 4


def test_a_converged_run_stops_and_costs_nothing():
    data = problem(sets=2, seed=3)
    history = simulate(DistributedNewton(epsilon=1e-3), data, STREAMS, 12)
    assert np.linalg.norm(data.gradient(history.state.x), axis=-1).max() < 1e-3
    used = np.diff(history.ledger["bits_up"], axis=0)
    assert (used[-1] == 0).all()
    assert (used[0] > 0).all()


def test_giants_server_is_silent_where_a_run_has_converged():
    data, x = problem(l2=0.1), np.zeros((2, D))
    x[1] = minimiser(data, 1)[0]
    cost = Giant(epsilon=1e-3).round(ServerModel(x), data, Round(0, None, None, STREAMS.at(0)))[1]
    for used in (cost.bits_up, cost.bits_down, cost.exchanges):
        assert used[0] > 0
        assert used[1] == 0


# -- against transcribed loops -----------------------------------------------------------------------


def by_hand_armijo(loss, x, g, p):
    eta = 1.0
    while loss(x + eta * p) > loss(x) + 1e-4 * eta * g @ p + 1e-14 * abs(loss(x)):
        eta /= 2
    return x + eta * p


def pieces(seed=5):
    data = problem(seed=seed)
    X, y, mu = data.X[0], data.y[0], data.l2

    def loss(x):
        return np.mean([np.mean(np.log1p(np.exp(-y[d] * (X[d] @ x)))) for d in range(N)]) + mu / 2 * x @ x

    def gradient(x):
        return (
            np.mean([-(X[d].T @ (y[d] / (1 + np.exp(y[d] * (X[d] @ x))))) / M for d in range(N)], axis=0)
            + mu * x
        )

    def hessian(d, x):
        s = 1 / (1 + np.exp(-X[d] @ x))
        return (X[d].T * (s * (1 - s))) @ X[d] / M + mu * np.eye(D)

    return data, loss, gradient, hessian


def test_qshed_is_algorithm_1():
    data, loss, gradient, hessian = pieces()
    channel, streams, rounds = Rayleigh(10), Streams(7, (1,)), 9
    x = np.zeros(D)
    for t in range(1, rounds + 1):
        B = channel(streams.at(t - 1), N)[0]
        if t in (1, 2, 4, 7):
            pairs = [np.linalg.eigh(hessian(d, x)) for d in range(N)]
            dither = draw_dither(generator(7, 1, t - 1, "dither"), (N, D, D))
            bits, q = np.zeros((N, D), dtype=int), np.zeros(N, dtype=int)
        H = np.zeros((D, D))
        for d, (w, V) in enumerate(pairs):
            values, vectors = w[::-1], V.T[::-1]
            bits[d] = allocate(values, q[d], bits[d], B[d], 16)
            q[d] = max([i + 1 for i in range(D) if bits[d, i] > 0], default=0)
            rho = values[q[d]]
            H += rho * np.eye(D) / N
            for i in range(q[d]):
                v = vectors[i] * np.sign(vectors[i][np.abs(vectors[i]).argmax()])
                sent = quantise(v[None], bits[d, i : i + 1], dither[d, i][None])[0]
                H += (values[i] - rho) * np.outer(sent, sent) / N
        g = gradient(x)
        x = by_hand_armijo(loss, x, g, -np.linalg.solve(H, g))
    found = simulate(QShed(), data, streams, rounds, channel=channel).state
    np.testing.assert_allclose(found.x[0], x, atol=1e-9)
    assert np.array_equal(found.bits[0], bits)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
@pytest.mark.parametrize("option", [1, 2])
def test_fednl_is_its_paper_s_loop(option, alpha):
    data, loss, gradient, hessian = pieces()
    channel, streams = Rayleigh(20), Streams(7, (1,))
    x, H = np.zeros(D), np.zeros((N, D, D))
    for t in range(8):
        B = channel(streams.at(t), N)[0]
        g, mean = gradient(x), H.mean(axis=0)
        S, distance = np.zeros((N, D, D)), 0.0
        for d in range(N):
            difference = hessian(d, x) - H[d]
            w, V = np.linalg.eigh(difference)
            k = np.abs(w).argmax()
            S[d] = w[k] * np.outer(V[:, k], V[:, k]) * (B[d] >= 16)
            distance += np.linalg.norm(difference) / N
        if option == 1:
            w, V = np.linalg.eigh(mean)
            p = -V @ ((V.T @ g) / np.maximum(w, data.l2))
        else:
            p = -np.linalg.solve(mean + distance * np.eye(D), g)
        x = by_hand_armijo(loss, x, g, p)
        H += alpha * S
    found = simulate(FedNL(option=option, alpha=alpha), data, streams, 8, channel=channel).state
    np.testing.assert_allclose(found.x[0], x, atol=1e-9)
    np.testing.assert_allclose(found.hessians[0], H, atol=1e-9)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"option": 2},
        {"option": 2, "start": "hessian", "entries": 3, "alpha": 0.5},
        {"entries": 1000, "line_search": None, "option": 2},
    ],
)
def test_fednl_on_non_zeros_is_fednl(settings, rows):
    # Sparse enough that most pairs of columns never meet, and the last column is not touched by anyone.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, M, 3 * D)) * (rng.random((N, M, 3 * D)) < 0.15)
    X[..., -1] = 0.0
    y = rng.choice([-1.0, 1.0], (N, M))
    weights = np.array([[0.1, 0.4, 0.3, 0.2]])
    loss, device = loss_named("logistic"), np.repeat(np.arange(N), M)
    plain = DenseLinearModel(X[None], y[None], loss, weights=weights, l2=1e-2)
    sparse = SparseLinearModel(
        sp.csr_array(X.reshape(N * M, -1)), y.ravel(), loss, device, weights=weights, l2=1e-2
    )
    algorithm, streams = FedNL(compressor="topk", **settings), Streams(7, tuple(range(rows)))
    ours, theirs = (simulate(algorithm, data, streams, 7, channel=Rayleigh(20)) for data in (sparse, plain))
    np.testing.assert_allclose(ours.state.hessians, theirs.state.hessians, atol=1e-10)
    np.testing.assert_allclose(ours.state.mean, theirs.state.mean, atol=1e-10)
    np.testing.assert_allclose(ours.state.x, theirs.state.x, atol=1e-10)
    for what, total in theirs.ledger.items():
        np.testing.assert_array_equal(ours.ledger[what], total, what)


def test_fednl_on_non_zeros_takes_the_first_of_equal_entries():
    # Zeros and ones, and a number of samples that divides without rounding: many entries are the same.
    rng = np.random.default_rng(4)
    X = (rng.random((N, 16, D)) < 0.4).astype(float)
    y = rng.choice([-1.0, 1.0], (N, 16))
    loss, device = loss_named("logistic"), np.repeat(np.arange(N), 16)
    plain = DenseLinearModel(X[None], y[None], loss)
    sparse = SparseLinearModel(sp.csr_array(X.reshape(-1, D)), y.ravel(), loss, device)
    for k in range(1, D * (D + 1) // 2):
        algorithm = FedNL(compressor="topk", entries=k, option=2)
        ours, theirs = (simulate(algorithm, data, Streams(7, (1,)), 1) for data in (sparse, plain))
        np.testing.assert_array_equal(ours.state.hessians, theirs.state.hessians)


def test_line_search_takes_the_first_step_that_is_good_enough():
    data = problem()
    x = np.random.default_rng(0).standard_normal((3, D))
    g = data.gradient(x)
    p = -g * np.array([1.0, 300.0, 5000.0])[:, None]
    search = Armijo(c=0.3, shrink=0.25)
    eta, tried = search.step(data, x, g, p)
    for row in range(3):
        good = [
            data.loss((x + s * p)[[row]])[0] <= data.loss(x[[row]])[0] + 0.3 * s * g[row] @ p[row]
            for s in 0.25 ** np.arange(20)
        ]
        assert eta[row] == 0.25 ** int(np.argmax(good))
        assert tried[row] == int(np.argmax(good)) + 1
    assert len(set(tried)) == 3
    capped = Armijo(c=0.3, shrink=0.25, trials=2).step(data, x, g, p)
    assert capped[0].min() == 0.25
    assert capped[1].max() == 2
    with np.errstate(invalid="ignore"):
        uphill = Armijo(trials=5).step(data, x, g, np.full_like(x, np.nan))
    assert uphill[1].tolist() == [1, 1, 1]


def test_line_search_forgives_what_rounding_may_have_added():
    """At the minimiser no step can lower the loss."""
    rises = 4.0 * np.array([1e-15, 1e-9])

    class Flat:
        weights = np.ones((2, 1))

        def along(self, x, p):
            return lambda eta: (4.0 + rises * (eta > 0))[:, None]

    direction = np.full((2, D), 1e-12)
    eta, tried = Armijo(trials=5).step(Flat(), np.zeros((2, D)), -direction, direction)
    assert eta.tolist() == [1.0, 0.5**4]
    assert tried.tolist() == [1, 5]


# -- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "halved"), [(1.0, False), (200.0, True)])
def test_gradient_descent_takes_its_step_halved_until_it_is_good_enough(step, halved):
    data, x = problem(l2=0.1), np.random.default_rng(0).standard_normal((2, D))
    found = GradientDescent(step=step).round(ServerModel(x), data, Round(0, None, None, STREAMS.at(0)))[0].x
    g = data.gradient(x)
    eta, tried = Armijo().step(data, x, g, -step * g)
    assert (tried > 1).all() == halved
    np.testing.assert_allclose(found, x - (eta * step)[:, None] * g, rtol=1e-12)


def test_renewal_rounds():
    def first(renewals, most):
        return [t for t in range(1, most) if renews(renewals, t)]

    assert first("fibonacci", 100) == [1, 2, 4, 7, 12, 20, 33, 54, 88]
    assert first("fibonacci_numbers", 100) == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert first("once", 100) == [1]
    assert first(40, 100) == [1, 41, 81]


@pytest.mark.parametrize("name", REACHING)
def test_exact_methods_reach_the_minimiser(name):
    data = problem(l2=1e-2)
    x_star = minimiser(data, 1)[0]
    found = simulate(REACHING[name], data, Streams(7, (1,)), 150, channel=Constant(40)).state.x[0]
    # b_max leaves an error in the vectors, and a line search ends where losses differ by rounding alone.
    np.testing.assert_allclose(found, x_star, atol=1e-6)


def test_without_a_channel_all_vectors_arrive_at_once_whatever_a_value_takes():
    data = problem()
    for single in (False, True):
        shed = Shed(b_max=4, single_precision=single)
        assert (simulate(shed, data, Streams(7, (1,)), 1).state.q == data.dim - 1).all()


def test_with_one_client_newton_giant_and_ideal_shed_are_one_method():
    data = problem(seed=2)
    alone = DenseLinearModel(data.X[:, :1], data.y[:, :1], data.loss_function, l2=data.l2)
    runs = [
        simulate(algorithm, alone, Streams(7, (1,)), 6).state.x
        for algorithm in (DistributedNewton(), Giant(), Shed(renewals=1), IdealShed(renewals=1))
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other, runs[0], atol=1e-9)


@pytest.mark.parametrize("shift", [None, 0.5])
def test_systems_are_solved_definite_or_not(shift):
    rng = np.random.default_rng(5)
    A, g = rng.standard_normal((4, D, D)), rng.standard_normal((4, D))
    H = A @ A.swapaxes(-1, -2) + np.eye(D)
    H[1] = A[1] + A[1].T
    H[1, np.arange(D), np.arange(D)] = 0.1  # indefinite, with a diagonal that does not tell
    H[2, 3, 3], H[3, 0, 1] = -5.0, np.nan
    given = H.copy()
    found = solve_runs(H, g, None if shift is None else np.full(4, shift))
    np.testing.assert_array_equal(H, given)
    assert np.linalg.eigvalsh(H[1] + (shift or 0.0) * np.eye(D))[0] < 0
    expected = np.linalg.solve(H[:2] + (shift or 0.0) * np.eye(D), g[:2, :, None])[..., 0]
    np.testing.assert_allclose(found[:2], expected, atol=1e-10)
    assert np.isnan(found[2:]).all()
    assert np.isnan(solve_runs(H[:1], g[:1], np.array([np.inf]))).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_systems_of_runs_that_have_diverged_have_no_solution(wrong):
    for place in ((2, 2), (0, 3), (D - 2, D - 1)):
        H = np.eye(D)
        H[place] = H[place[::-1]] = wrong
        assert np.isnan(solve_runs(H[None], np.ones((1, D)))).all()
        assert np.isnan(solve_runs(H[None], np.eye(1, D))).all()
    g = np.zeros((1, D))
    g[0, 1] = wrong
    assert np.isnan(solve_runs(np.eye(D)[None], g)).all()


@pytest.mark.parametrize(
    ("cls", "setting", "message"),
    [
        (QShed, {"dither": "some"}, "QShed.dither = 'some': must be one of nested"),
        (NQShed, {"overload": "crop"}, "NQShed.overload = 'crop': must be one of wrap, clip"),
        (Shed, {"renewals": "daily"}, "Shed.renewals = 'daily'"),
        (IdealShed, {"q_choice": "best"}, "IdealShed.q_choice"),
        (FedNL, {"compressor": "rank2"}, "FedNL.compressor = 'rank2'"),
        (FedNL, {"quantised": True, "compressor": "topk"}, r"FedNL\.quantised"),
    ],
)
def test_words_that_a_method_does_not_know_are_refused_by_name(cls, setting, message):
    """Numbers out of range, the contract's tests try."""
    with pytest.raises(ConfigError, match=message):
        cls(**setting)
