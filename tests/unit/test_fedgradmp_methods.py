"""FedGradMP and what it is compared with, against their boxes; cohorts; supports; dictionaries."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pairwise import covering
from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.feddualavg import FedDualAvg
from replifed.algorithms.fedgradmp import FedGradMP
from replifed.algorithms.fedmid import FedMid
from replifed.engine.simulate import simulate
from replifed.errors import ConfigError
from replifed.network.participation import FixedSize
from replifed.operators import dictionaries
from replifed.operators.dictionaries import ksvd
from replifed.operators.hard_threshold import hard_threshold, largest
from replifed.operators.projections import MatchingPursuit, Thresholding, onto_ball
from replifed.papers.fedgradmp.problems import accuracy, relative_error, support_precision, support_recall
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams

STREAMS = Streams(5, (1, 2))
N, M, D, TAU = 6, 12, 20, 3


def planted(loss="least_squares", rows=2, noise=0.0, d=D, m=M, l2=0.0, classes=1):
    """A problem with data of its own for each row, and its sparse solution."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((rows, N, m, d)) + 0.3 * rng.standard_normal((rows, N, 1, 1))
    x = np.zeros((rows, d))
    x[:, [2, 7, 11]] = rng.uniform(1, 2, (rows, 3))
    y = (X @ x[:, None, :, None])[..., 0] + noise * rng.standard_normal((rows, N, m))
    if loss == "softmax":
        return DenseLinearModel(X, rng.integers(0, classes, y.shape), loss_named(loss, classes), l2=l2), x
    if loss == "logistic":
        y = np.where(rng.random(y.shape) < 1 / (1 + np.exp(-y)), 1.0, -1.0)
    return DenseLinearModel(X, y, loss_named(loss), l2=l2), x


def drawn(ctx, data, K, b, purpose="batch"):
    """Minibatches as lists: [step][row][client]."""
    return [
        np.broadcast_to(one, (len(ctx.streams), *one.shape[1:]))
        for one in Cohort(data, ctx).minibatches(K, b, purpose)
    ]


# -- FedGradMP -----------------------------------------------------------------------------------------


def box(x, X, y, batches, tau, K):
    """One round of Algorithm 1 for least squares, client by client, on the clients given."""
    total = 0
    for i in range(len(X)):
        u = x.copy()
        kept = np.flatnonzero(x)
        for k in range(K):
            A, b = X[i][batches[k][i]], y[i][batches[k][i]]
            r = A.T @ (A @ u - b) / len(b)
            merged = np.union1d(np.argsort(-np.abs(r), kind="stable")[: 2 * tau], kept)
            w = np.zeros_like(u)
            w[merged] = np.linalg.lstsq(X[i][:, merged], y[i], rcond=None)[0]
            kept = np.argsort(-np.abs(w), kind="stable")[:tau]
            u = np.zeros_like(u)
            u[kept] = w[kept]
        total = total + u / len(X)
    return hard_threshold(total, tau)


@pytest.mark.parametrize("d, bits", [(D, 5), (130, 8)])
@pytest.mark.parametrize("cohort", [None, FixedSize(4)])
def test_rounds_are_those_of_algorithm_1_over_the_cohort(cohort, d, bits):
    data, _ = planted(noise=0.3, d=d)
    method = FedGradMP(sparsity=TAU, local_steps=2, batch=6)
    state = method.init(data, STREAMS)
    for t in range(4):
        streams = STREAMS.at(t)
        active, chosen = (None, None) if cohort is None else cohort(streams, N)
        ctx = Round(t, active, None, streams, chosen)
        batches = drawn(ctx, data, 2, 6)
        expected = []
        for row in range(2):
            clients = np.arange(N) if chosen is None else chosen[row]
            mine = [one[row] for one in batches]
            expected.append(box(state.x[row], data.X[row][clients], data.y[row][clients], mine, TAU, 2))
        state, cost = method.round(state, data, ctx)
        np.testing.assert_allclose(state.x, expected, atol=1e-11)
        # A model of 3 out of d: 3 values and 3 numbers; to and from each client of the round.
        assert cost.bits_up == cost.bits_down == (N if chosen is None else 4) * (3 * 32 + 3 * bits)
    assert np.abs(state.x).max() > 0.1


def test_work_is_counted_in_sample_gradients():
    """Two local iterations on supports of 6, then of 6 to 9; a gradient has 4 D operations."""
    data, _ = planted(rows=1)
    ctx = Round(0, None, None, Streams(5, (1,)).at(0))
    for more, least, most in (
        ({}, 2 * N * M * 6**2 / (2 * D), N * M * (6**2 + 9**2) / (2 * D)),
        ({"solver": "gd", "inner_steps": 7}, 2 * 7 * N * M * 6 / D, 7 * N * M * (6 + 9) / D),
    ):
        method = FedGradMP(sparsity=TAU, local_steps=2, batch=5, **more)
        work = float(method.round(method.init(data, Streams(5, (1,))), data, ctx)[1].sample_gradients[0])
        assert 2 * 5 * N + least <= work <= 2 * 5 * N + most


@pytest.mark.parametrize("solver", [{}, {"solver": "gd", "inner_steps": 60}])
def test_noiseless_full_batches_are_recovered_exactly(solver):
    data, x = planted()
    metrics = {"error": relative_error(x), "precision": support_precision(x), "recall": support_recall(x)}
    found = simulate(
        FedGradMP(sparsity=TAU, local_steps=3, **solver), data, STREAMS, 12, metrics=metrics
    ).metrics
    assert np.all(found["error"][-1] < (1e-13 if solver.get("solver") != "gd" else 1e-4))
    assert np.all(found["precision"][-1] == 1)
    assert np.all(found["recall"][-1] == 1)
    assert np.all(found["recall"][0] == 0)


def test_sgd_on_the_support_is_the_loop_and_stays_in_the_ball():
    data, _ = planted("softmax", classes=3)
    method = FedGradMP(
        sparsity=np.array([4, 9]), local_steps=2, batch=5, solver="sgd", inner_steps=2, step=0.7, radius=0.3
    )
    ctx = Round(0, None, None, STREAMS.at(0))
    named, inner = drawn(ctx, data, 2, 5), drawn(ctx, data, 4, 5, "inner")

    def gradient(u, row, i, batch):
        A = data.X[row, i][batch]
        z = A @ u.reshape(D, 3)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        p[np.arange(5), data.y[row, i][batch]] -= 1
        return (A.T @ p / 5).ravel()

    def ball(u):
        return u * min(1, 0.3 / np.linalg.norm(u))

    x = np.zeros((2, 3 * D))
    expected = np.zeros_like(x)
    for row, tau in enumerate((4, 9)):
        total = 0
        for i in range(N):
            u = x[row]
            for k in range(2):
                mask = largest(gradient(u, row, i, named[k][row][i]), 2 * tau) | (u != 0)
                w = u
                for j in (2 * k, 2 * k + 1):
                    w = w - 0.7 * gradient(w, row, i, inner[j][row][i]) * mask
                u = ball(hard_threshold(w, tau))
            total = total + u / N
        expected[row] = ball(hard_threshold(total, tau))
    state, cost = method.round(method.init(data, STREAMS), data, ctx)
    np.testing.assert_allclose(state.x, expected, atol=1e-12)
    np.testing.assert_array_equal(cost.sample_gradients, 2 * 5 * N + 4 * 5 * N)
    reused = FedGradMP(sparsity=4, local_steps=2, batch=5, solver="sgd", inner_steps=1, step=0.7, reuse=True)
    assert np.all(reused.round(reused.init(data, STREAMS), data, ctx)[1].sample_gradients == 2 * 5 * N)


COMPILED = covering(
    product(
        ("float32", "float64"),
        (1, 5),
        ((1, 1), (1, 4), (2, 2)),
        ((True, 1), (True, 3), (False, 2)),
        (None, 0.5),
        (0.0, 0.3),
    )
)


@pytest.mark.parametrize("dtype, classes, drawing, solving, radius, l2", COMPILED)
def test_compiled_iterations_are_the_plain_ones(dtype, classes, drawing, solving, radius, l2):
    """To the bit, but for the order in which a vector's length is summed, of which later steps make more."""
    (rows, drawn), (reuse, inner_steps) = drawing, solving
    data, _ = planted("softmax", rows=rows, classes=5, l2=l2)
    data = DenseLinearModel(data.X.astype(dtype), data.y, data.loss_function, l2=l2)
    tau, rng = np.array([10, 20, 5, 500]), np.random.default_rng(8)
    method = FedGradMP(
        sparsity=tau,
        local_steps=4,
        batch=7,
        solver="sgd",
        step=np.array([0.5, 0.1, 2.0, 0.3]),
        inner_steps=inner_steps,
        reuse=reuse,
        radius=radius,
        projection=Thresholding(classes),
    )
    x = method.projection.prune(rng.standard_normal((4, data.dim)).astype(dtype), tau)
    local = data.local(x, clients=np.array([[0, 2, 5]]))
    batches, inner = (
        list(rng.integers(0, M, (count, drawn, 3, 7))) for count in (4, 4 * (inner_steps - reuse))
    )
    (fast, _), (plain, _) = method.compiled(local, batches, inner), method.pursue(local, batches, inner)
    assert fast.dtype == dtype
    last_bits = 0 if radius is None else 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(fast, plain, rtol=last_bits)
    assert (np.count_nonzero(fast[:3], axis=-1) <= tau[:3, None]).all()


def test_a_sub_problem_of_ones_own_is_not_passed_over():
    class Lazy(FedGradMP):
        def _solve(self, local, u, r, support, batches):
            return u

    data, _ = planted("softmax", classes=3)
    given = {"sparsity": 9, "local_steps": 2, "batch": 5, "solver": "sgd", "step": 0.1}
    assert not simulate(Lazy(**given), data, STREAMS, 2).state.x.any()
    assert simulate(FedGradMP(**given), data, STREAMS, 2).state.x.any()


def test_settings_that_do_not_fit_are_refused():
    for wrong in ({"solver": "lbfgs"}, {"solver": "sgd"}, {"step": 0.1}, {"radius": -1.0}):
        with pytest.raises(ConfigError, match="FedGradMP"):
            FedGradMP(sparsity=3, local_steps=1, **wrong)


# -- minimisers on supports ----------------------------------------------------------------------------


@pytest.mark.parametrize("size, l2", [(5, 0.0), (18, 0.0), (18, 0.1), (4, 0.2)])
def test_least_squares_on_a_support_is_the_nearest_minimiser(size, l2):
    data, _ = planted(noise=0.5, l2=l2)
    rng = np.random.default_rng(0)
    support = largest(rng.random((2, N, D)), size)
    support[0, 0, :] = False
    support[0, 0, 4] = True
    start = rng.standard_normal((2, N, D)) * support
    found = data.restricted_minima(start, support)
    far = data.restricted_descent(start, support, 3000)
    for row, i in np.ndindex(2, N):
        held = support[row, i]
        A = np.concatenate([data.X[row, i][:, held], np.sqrt(M * l2) * np.eye(held.sum())])
        b = np.concatenate([data.y[row, i], np.zeros(held.sum())])
        w = start[row, i][held]
        expected = w + np.linalg.lstsq(A, b - A @ w, rcond=None)[0]
        np.testing.assert_allclose(found[row, i][held], expected, atol=1e-10)
        np.testing.assert_allclose(far[row, i][held], expected, atol=1e-3)
        assert not found[row, i][~held].any()


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_steps_on_a_support_are_of_steepest_descent_with_exact_line_search(steps):
    data, _ = planted(noise=0.5)
    rng = np.random.default_rng(3)
    support = largest(rng.random((2, N, D)), 9)
    start = rng.standard_normal((2, N, D)) * support
    found = data.restricted_descent(start, support, steps)
    for row, i in np.ndindex(2, N):
        held = support[row, i]
        A, w = data.X[row, i][:, held], start[row, i][held]
        for _ in range(steps):
            g = A.T @ (data.y[row, i] - A @ w)
            w = w + (g @ g) / ((A @ g) @ (A @ g)) * g
        np.testing.assert_allclose(found[row, i][held], w, rtol=1e-11)
        assert not found[row, i][~held].any()


@pytest.mark.parametrize("summed", [False, True])
def test_least_squares_weighs_the_ridge_by_the_clients_samples(summed):
    rng = np.random.default_rng(2)
    sizes = np.array([[12, 7, 9]])
    real = np.arange(12) < sizes[..., None]
    X = rng.standard_normal((1, 3, 12, 8)) * real[..., None]
    y = rng.standard_normal((1, 3, 12)) * real
    data = DenseLinearModel(X, y, loss_named("least_squares"), sizes=sizes, l2=0.4, summed=summed)
    support = largest(rng.random((1, 3, 8)), 5)
    found = data.restricted_minima(np.zeros((1, 3, 8)), support)
    far = data.restricted_descent(np.zeros((1, 3, 8)), support, 2000)
    # Where the gradient on the support is zero.
    np.testing.assert_allclose(data.per_client_gradients(found)[support], 0.0, atol=1e-12)
    np.testing.assert_allclose(far, found, atol=1e-10)


def test_clients_that_fit_stay_where_they_are():
    """A start that fits its client's targets to rounding is left alone; the other clients still move."""
    data, x = planted()
    support = largest(np.random.default_rng(4).random((2, N, D)), 6) | (x != 0)[:, None]
    start = np.repeat(x[:, None], N, axis=1)
    found = data.restricted_minima(start, support)
    np.testing.assert_array_equal(found, start)
    start[0, 2:4] *= 1 + 1e-9
    start[1, 5] = np.nan
    moved = data.restricted_minima(start, support)
    np.testing.assert_allclose(moved[0], found[0], rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(moved[0, [0, 1, 4, 5]], found[0, [0, 1, 4, 5]])
    assert not np.isfinite(moved[1, 5][support[1, 5]]).any()
    np.testing.assert_array_equal(moved[1, :5], found[1, :5])


def test_least_squares_keeps_its_digits_where_columns_nearly_agree():
    data, _ = planted()
    data.X[..., 1] = data.X[..., 2] + 1e-7 * data.X[..., 3]
    support = np.zeros((2, N, D), dtype=bool)
    support[..., [1, 2, 7, 11]] = True
    found = data.restricted_minima(np.zeros((2, N, D)), support)
    left = (data.X @ found[..., None])[..., 0] - data.y
    assert np.abs(left).max() < 1e-8


def test_newton_on_a_support_is_scipys_minimiser():
    data, _ = planted("logistic", l2=0.05)
    support = largest(np.random.default_rng(1).random((2, N, D)), 4)
    found = data.restricted_minima(np.zeros((2, N, D)), support)
    for i in (0, 4):
        held = support[1, i]
        A, y = data.X[1, i][:, held], data.y[1, i]

        def value(w, A=A, y=y):
            return np.logaddexp(0, -y * (A @ w)).mean() + 0.025 * w @ w

        expected = minimize(value, np.zeros(held.sum()), method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(found[1, i][held], expected, atol=1e-5)
    assert not found[~support].any()


# -- FedMid and FedDualAvg -----------------------------------------------------------------------------


@pytest.mark.parametrize("cohort", [None, FixedSize(3)])
def test_composite_methods_are_their_boxes(cohort):
    data, _ = planted(noise=0.2)
    K, eta, eta_s, lam = 3, 0.04, 0.8, 0.3
    mid = FedMid(step=eta, weight=lam, local_steps=K, batch=4, server_step=eta_s)
    dual = FedDualAvg(step=eta, weight=lam, local_steps=K, batch=4, server_step=eta_s)
    states = [method.init(data, STREAMS) for method in (mid, dual)]
    x, z = np.zeros((2, D)), np.zeros((2, D))

    def prox(v, weight):
        return np.sign(v) * np.maximum(np.abs(v) - weight, 0)

    for t in range(3):
        streams = STREAMS.at(t)
        active, chosen = (None, None) if cohort is None else cohort(streams, N)
        ctx = Round(t, active, None, streams, chosen)
        batches = drawn(ctx, data, K, 4)
        for row in range(2):
            ends = [], []
            for place, i in enumerate(range(N) if chosen is None else chosen[row]):
                w, v = x[row].copy(), z[row].copy()
                for k in range(K):
                    take = batches[k][row][place]
                    A, b = data.X[row, i][take], data.y[row, i][take]
                    w = prox(w - eta * A.T @ (A @ w - b) / 4, eta * lam)
                    shown = prox(v, (eta_s * eta * t * K + eta * k) * lam)
                    v = v - eta * A.T @ (A @ shown - b) / 4
                ends[0].append(w)
                ends[1].append(v)
            x[row] = prox(x[row] + eta_s * (np.mean(ends[0], axis=0) - x[row]), eta_s * eta * K * lam)
            z[row] = z[row] + eta_s * (np.mean(ends[1], axis=0) - z[row])
        states = [
            method.round(state, data, ctx)[0] for method, state in zip((mid, dual), states, strict=True)
        ]
        np.testing.assert_allclose(states[0].x, x, atol=1e-12)
        np.testing.assert_allclose(states[1].z, z, atol=1e-12)
        np.testing.assert_allclose(states[1].x, prox(z, eta_s * eta * (t + 1) * K * lam), atol=1e-12)
    assert (states[0].x == 0).any()


# -- cohorts -------------------------------------------------------------------------------------------


# -- projections and dictionaries ----------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_projections_agree_on_orthonormal_atoms(seed, k):
    rng = np.random.default_rng(seed)
    general, c = MatchingPursuit(np.eye(7)), rng.standard_normal((2, 3, 7))
    np.testing.assert_allclose(general.prune(c, k), Thresholding().prune(c, k), atol=1e-12)
    np.testing.assert_array_equal(general.support(c, k), Thresholding().support(c, k))
    np.testing.assert_allclose(general.norm(c), np.linalg.norm(c, axis=-1, keepdims=True))


def test_pursuit_finds_the_few_atoms_of_a_combination():
    rng, found = np.random.default_rng(2), 0
    atoms = dictionaries.gaussian(rng, 60, 120) * rng.uniform(0.5, 2, 120)
    for _ in range(10):
        c = np.zeros(120)
        c[rng.choice(120, 4, replace=False)] = rng.choice([-1, 1], 4) / 2
        pruned = MatchingPursuit(atoms.T @ atoms).prune(c[None], 4)[0]
        found += np.allclose(pruned, c, atol=1e-8)
    assert found >= 8


def test_pruned_vectors_are_projected_on_their_atoms():
    rng = np.random.default_rng(4)
    atoms = rng.standard_normal((10, 15))
    w = rng.standard_normal(15)
    pruned = MatchingPursuit(atoms.T @ atoms).prune(w[None], 4)[0]
    held = np.flatnonzero(pruned)
    np.testing.assert_allclose(atoms[:, held].T @ (atoms @ (w - pruned)), 0, atol=1e-10)
    assert len(held) == 4


@given(st.integers(0, 10**6), st.floats(0.1, 10))
@settings(max_examples=25, deadline=None)
def test_the_ball_is_projected_on(seed, radius):
    u = np.random.default_rng(seed).standard_normal((3, 5))
    inside = onto_ball(u, radius, Thresholding())
    lengths = np.linalg.norm(u, axis=1)
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), np.minimum(lengths, radius))
    np.testing.assert_array_equal(inside[lengths < radius], u[lengths < radius])


def test_fedgradmp_recovers_sparsity_in_a_dictionary():
    """Orthonormal and Gaussian atoms; thresholding does not do for the latter."""
    rng = np.random.default_rng(0)
    n, d, tau, clients, m = 60, 60, 3, 8, 30
    X = rng.standard_normal((1, clients, m, n))
    for atoms, wide in (
        (np.linalg.qr(rng.standard_normal((n, n)))[0], False),
        (dictionaries.gaussian(rng, n, 2 * d), True),
    ):
        c = np.zeros(atoms.shape[1])
        c[rng.choice(len(c), tau, replace=False)] = rng.uniform(1, 2, tau)
        data = DenseLinearModel(
            X @ atoms, X[0] @ atoms @ c + np.zeros((1, 1, 1)), loss_named("least_squares")
        )
        approx = MatchingPursuit(atoms.T @ atoms) if wide else Thresholding()
        method = FedGradMP(sparsity=tau, local_steps=2, batch=20, projection=approx)
        found = simulate(method, data, Streams(0, (0,)), 8).state.x[0]
        np.testing.assert_allclose(atoms @ found, atoms @ c, atol=1e-8)


def test_ksvd_in_the_small_space_is_ksvd():
    rng = np.random.default_rng(1)
    Y = rng.standard_normal((300, 6)) @ (rng.standard_normal((6, 40)) * (rng.random((6, 40)) < 0.4))
    small = ksvd(Y, 8, 2, 12, np.random.default_rng(0))
    square = ksvd(np.linalg.qr(Y)[1], 8, 2, 12, np.random.default_rng(0))
    np.testing.assert_allclose(small.errors, square.errors, atol=1e-8)
    assert np.all(np.diff(small.errors) <= 1e-10)
    assert small.errors[-1] < 0.7 * small.errors[0]
    np.testing.assert_allclose(np.linalg.norm(small.atoms, axis=0), 1)
    assert np.all(np.count_nonzero(small.codes, axis=0) <= 2)
    np.testing.assert_allclose(
        np.linalg.norm(Y - small.atoms @ small.codes) / np.linalg.norm(Y), small.errors[-1]
    )
    q, r = dictionaries.small_space(small.atoms)
    np.testing.assert_allclose(q @ r, small.atoms, atol=1e-12)
    assert np.all(np.diag(r) >= 0)


def test_accuracy_counts_the_best_scores():
    X, y = np.eye(3), np.array([0, 1, 1])
    x = np.stack([np.eye(3).ravel(), np.zeros(9)])
    np.testing.assert_allclose(accuracy(X, y)(None, {"server": x}), [2 / 3, 1 / 3])
