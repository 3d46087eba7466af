"""Compiled loops against numpy's formulas for the same."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax

from replifed.kernels import compiled, compiled_as_written
from replifed.kernels.losses import exponential, falling, softplus
from replifed.kernels.selection import keep_in_segment, keep_largest
from replifed.operators.hard_threshold import as_integers, hard_threshold
from replifed.problems import products as products_module
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic, Softmax, loss_named
from replifed.problems.products import tall_product, tall_product_transposed
from replifed.problems.restricted import least_squares


@compiled_as_written
def exponentials(x):
    for j in range(len(x)):
        x[j] = exponential(x[j])


@pytest.mark.parametrize("dtype, least, most", [(np.float64, -708, 709), (np.float32, -87, 88)])
def test_exponentials_are_right_to_an_ulp(dtype, least, most):
    x = np.concatenate([np.linspace(least, most, 100_001), np.linspace(-1, 1, 10_001), [0.0]]).astype(dtype)
    found = x.copy()
    exponentials(found)
    np.testing.assert_allclose(found, np.exp(x.astype(float)), rtol=1.4 * np.finfo(dtype).eps)
    assert found[-1] == 1.0


@pytest.mark.parametrize("dtype, large", [(np.float64, 1e307), (np.float32, 1e37)])
def test_exponentials_beyond_the_range_of_numbers_stay_finite_and_nan_stays_nan(dtype, large):
    x = np.array([-np.inf, -1e9, 1e9, np.inf, np.nan], dtype)
    exponentials(x)
    assert (x[:2] < 1 / large).all() and (x[2:4] > large).all()
    assert np.isfinite(x[:4]).all() and np.isnan(x[4])


@compiled_as_written
def all_falling(x, scale):
    for j in range(len(x)):
        x[j] = falling(x[j], scale)


@pytest.mark.parametrize("dtype, most", [(np.float64, 700), (np.float32, 80)])
def test_the_falling_logistic_function_is_right_to_rounding_and_nan_stays_nan(dtype, most):
    spread = np.random.default_rng(1).uniform(-1, 1, (3, 50_000)) * [[most], [10], [1]]
    x = np.append(spread, 0.0).astype(dtype)
    for scale in (dtype(-3), dtype(1.7), dtype(1) / dtype(7)):
        found = x.copy()
        all_falling(found, scale)
        exact = scale.astype(np.longdouble) / (1 + np.exp(x.astype(np.longdouble)))
        np.testing.assert_allclose(found, exact, rtol=2.5 * np.finfo(dtype).eps)
        assert found[-1] == scale / 2
    x = np.array([-np.inf, -1e9, 1e9, np.inf, np.nan], dtype)
    all_falling(x, dtype(1))
    assert (x[:2] == 1).all() and (x[2:4] < np.exp(-most) * 1.01).all() and np.isnan(x[4])


@compiled_as_written
def all_softplus(x, f):
    for j in range(len(x)):
        f[j] = softplus(x[j])


@pytest.mark.parametrize("dtype, most", [(np.float64, 700), (np.float32, 80)])
def test_the_logistic_loss_is_right_to_rounding_however_small(dtype, most):
    spread = np.random.default_rng(1).uniform(-1, 1, (3, 50_000)) * [[most], [10], [0.1]]
    x = np.append(spread, 0.0).astype(dtype)
    found = np.empty_like(x)
    all_softplus(x, found)
    x = x.astype(np.longdouble)
    np.testing.assert_allclose(
        found, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), rtol=4 * np.finfo(dtype).eps
    )
    x = np.array([-np.inf, -1e9, 1e9, np.inf, np.nan], dtype)
    all_softplus(x, found[:5])
    assert (
        (found[:2] < np.exp(-most)).all() and found[2] == x[2] and found[3] == np.inf and np.isnan(found[4])
    )


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([1, 15, 16, 17, 50, 97]),
    st.integers(1, 30),
    st.integers(1, 70),
)
def test_tall_products(dtype, n, d, columns):
    """Vectors one by one, tiles that columns fill and that they do not, and what is left to BLAS."""
    rng = np.random.default_rng(n)
    A, close = rng.standard_normal((n, d)).astype(dtype), {"rtol": 0, "atol": 200 * np.finfo(dtype).eps}
    B, C = rng.standard_normal((d, columns)).astype(dtype), rng.standard_normal((n, columns)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        for least in (0, 1 << 20):
            patch.setattr(products_module, "_WORTH_COMPILING", least)
            for found, expected in (
                (tall_product(A, B), A @ B),
                (tall_product_transposed(A, C), A.T @ C),
                # Columns that lie apart in memory.
                (tall_product(A, np.asfortranarray(B)), A @ B),
            ):
                assert found.dtype == dtype
                np.testing.assert_allclose(found, expected, **close)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-14), (np.float32, 1e-5)])
@pytest.mark.parametrize("classes", [3, 10, 37])
@pytest.mark.parametrize("sets, batches, runs", [(1, 1, 7), (2, 1, 8), (1, 4, 4)])
def test_softmax_gradients_of_runs_side_by_side(dtype, rtol, classes, sets, batches, runs):
    """Classes across the tiles' ends; groups of runs; features that no sample drawn, or no sample, has."""
    rng = np.random.default_rng(classes + runs)
    X = rng.standard_normal((sets, 2, 9, 6)).astype(dtype)
    X[..., 1], X[0, 0, :5, 3] = 0, 0
    y = rng.integers(0, classes, (sets, 2, 9))
    u, batch = rng.standard_normal((runs, 2, 6, classes)).astype(dtype), rng.integers(0, 5, (batches, 2, 6))
    problem = DenseLinearModel(X, y, loss_named("softmax", classes))
    found = problem.per_client_gradients(u.reshape(runs, 2, -1), batch).reshape(u.shape)
    for run, i in np.ndindex(runs, 2):
        drawn, s = batch[run * batches // runs, i], run * sets // runs
        p = softmax(X[s, i, drawn].astype(float) @ u[run, i], axis=-1) - np.eye(classes)[y[s, i, drawn]]
        np.testing.assert_allclose(found[run, i], X[s, i, drawn].T @ p / len(drawn), rtol=0, atol=rtol)
    assert (found[:, :, 1] == 0).all()


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-14), (np.float32, 1e-5)])
@pytest.mark.parametrize("order", ["samples", "classes", "clients last"])
def test_softmax_is_scipys_whatever_the_order_in_memory(dtype, rtol, order):
    rng = np.random.default_rng(0)
    z, classes = 5 * rng.standard_normal((3, 4, 50, 6)).astype(dtype), rng.integers(0, 6, (4, 50))
    if order == "classes":
        z = np.ascontiguousarray(z.swapaxes(-1, -2)).swapaxes(-1, -2)
    if order == "clients last":
        z = np.ascontiguousarray(z.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    p, f = Softmax(6).derivative(z, classes), Softmax(6).value(z, classes)
    assert p.dtype == f.dtype == dtype
    chosen = classes[..., None] == np.arange(6)
    np.testing.assert_allclose(p, softmax(z.astype(float), axis=-1) - chosen, rtol=rtol, atol=rtol)
    expected = logsumexp(z.astype(float), axis=-1) - (z * chosen).sum(axis=-1)
    np.testing.assert_allclose(f, expected, rtol=10 * rtol, atol=rtol)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-14), (np.float32, 1e-5)])
def test_logistic_derivatives_take_labels_of_every_stacking(dtype, rtol):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], (2, 4, 50)).astype(dtype)
    z = 5 * rng.standard_normal((2, 4, 50, 9)).astype(dtype)
    expected = -y[..., None] / (1 + np.exp(y[..., None] * z))
    # Rows that share their data are columns; each row with data of its own; all rows with the same.
    found = Logistic().derivative(z[..., None], y[..., None])
    np.testing.assert_allclose(found[..., 0], expected, rtol=rtol)
    assert found.dtype == dtype
    rows = np.moveaxis(z, -1, 0)[..., None]
    found = Logistic().derivative(rows[:, 0], y[0])[..., 0]
    np.testing.assert_allclose(found, np.moveaxis(expected[0], -1, 0), rtol=rtol)
    np.testing.assert_allclose(
        Logistic().derivative(rows, np.broadcast_to(y, (9, *y.shape)))[..., 0],
        np.moveaxis(expected, -1, 0),
        rtol=rtol,
    )
    values = Logistic().value(rows[:, 0], y[0])
    assert values.dtype == dtype
    np.testing.assert_allclose(values, np.logaddexp(0, -y[0] * rows[:, 0, ..., 0]), rtol=rtol, atol=rtol)


def test_the_logistic_curvature_is_as_exact_far_out():
    z = np.concatenate([np.linspace(-690, 690, 3001), [0.0, -0.0, 1e-9]])
    e = np.exp(-np.abs(z))
    found = Logistic().second_derivative(z[:, None], np.ones(len(z)))[:, 0, 0]
    np.testing.assert_allclose(found, e / (1 + e) ** 2, rtol=8e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 1.0, "wide", "tiny"])
def test_the_largest_of_many_numbers_however_close(dtype, spread):
    """Numbers that share their first bits, some of them equal; of all orders of magnitude; subnormal."""
    rng = np.random.default_rng(0)
    if spread == "wide":
        v = np.exp(80 * rng.uniform(-1, 1, 40_000))
    elif spread == "tiny":
        v = np.finfo(dtype).smallest_subnormal * rng.integers(0, 9, 40_000)
    else:
        v = 1.0 + spread * rng.standard_normal(40_000)
    v = (v * rng.choice([-1, 1], v.shape)).astype(dtype)
    v[1::2] = v[::2]
    order = np.argsort(-np.abs(v), kind="stable")
    for tau in (1, 2, 9_999, 20_000, 39_999):
        expected = np.zeros_like(v)
        expected[order[:tau]] = v[order[:tau]]
        np.testing.assert_array_equal(hard_threshold(v[None], tau)[0], expected)


@pytest.mark.parametrize("n", [100, 10_000])
def test_scratch_behind_the_numbers_is_not_looked_at(n):
    # All are equal: what was left behind them in the scratch, and behind their keys, would come first.
    v, keys = np.ones(n), np.arange(n + 1, dtype=np.int32)
    keys[n] = 0
    (integers, most), tau = as_integers(v), n // 2
    scratch = np.full(n + 1, integers[0]), np.zeros(n + 1, np.int32)
    kept = np.empty_like(integers)
    keep_in_segment(integers, most, keys[:n], tau, 0, scratch, kept)
    np.testing.assert_array_equal(kept != 0, np.arange(n) < tau)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, (2, 30), elements=st.sampled_from([0.0, -0.0, 1, -1, 2, -2, 3.5])),
    st.permutations(range(30)),
    st.integers(1, 12),
    st.integers(1, 29),
)
def test_models_side_by_side_keep_their_largest_and_of_equals_the_lowest_column(u, columns, tau, cut):
    columns, bounds, taus = np.array([columns, columns[::-1]]), np.array([0, cut, 30]), np.array([tau, 1])
    expected = np.zeros_like(u)
    for row in range(2):
        for own in (slice(0, cut), slice(cut, 30)):
            order = np.argsort(columns[row, own])
            expected[row, own][order] = hard_threshold(u[row, own][order], taus[row])
    integers, most = as_integers(u)
    kept = np.empty(u.shape, bool)
    keep_largest(integers, most, columns, bounds, taus, kept)
    np.testing.assert_array_equal(kept, expected != 0)
    keep_largest(integers, most, columns, bounds, taus, integers)
    np.testing.assert_array_equal(u, expected)


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
@pytest.mark.parametrize("sets, rows", [(1, 1), (3, 3), (9, 9), (1, 9), (2, 4), (2, 16)])
@pytest.mark.parametrize("features", [2, 3, 8, 500])
def test_descent_is_its_steps(loss, sets, rows, features):
    """Row by row, in lanes of vectors, and the rows of a data set together; each with its own step."""
    rng = np.random.default_rng(rows)
    N, m = 2, 5
    y = rng.choice([-1.0, 1.0], (sets, N, m))
    X = rng.standard_normal((sets, N, m, features))
    problem = DenseLinearModel(X, y, loss_named(loss), sizes=np.full((sets, N), 4), l2=0.2, summed=True)
    u, linear = rng.standard_normal((2, rows, N, features))
    step, ridge = rng.uniform(0.01, 0.1, (rows, N, 1)) / max(1, features / 8), rng.uniform(0, 1, rows)
    before = u.copy()
    found = problem.per_client_descent(u, 4, step, ridge=ridge, linear=linear)
    assert np.array_equal(u, before)
    for _ in range(4):
        u = u - step * (problem.per_client_gradients(u) + ridge[:, None, None] * u + linear)
    np.testing.assert_allclose(found, u, atol=1e-12)
    beta = rng.uniform(0, 1, (rows, 1, 1))
    found = problem.per_client_descent(before, 4, step, ridge=ridge, linear=linear, momentum=beta)
    w = v = before
    for _ in range(4):
        ahead = w - step * (problem.per_client_gradients(w) + ridge[:, None, None] * w + linear)
        w, v = ahead + beta * (ahead - v), ahead
    np.testing.assert_allclose(found, w, atol=1e-12)
    wide = problem.per_client_descent(before, 4, step, ridge=ridge, linear=linear, momentum=0 * beta)
    np.testing.assert_array_equal(
        wide, problem.per_client_descent(before, 4, step, ridge=ridge, linear=linear)
    )
    one = problem.per_client_descent(before, 1, step[:1, :1], ridge=0.5, linear=linear)
    expected = before - step[:1, :1] * (problem.per_client_gradients(before) + 0.5 * before + linear)
    np.testing.assert_allclose(one, expected, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_descent_that_overflows_is_infinite_however_many_rows_there_are(rows):
    """Without momentum nothing is subtracted from it."""
    problem = DenseLinearModel(np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1)), loss_named("least_squares"))
    u = np.full((rows, 1, 1), 1e295)
    found = problem.per_client_descent(u, 3, np.full((rows, 1, 1), 1e5), linear=np.zeros_like(u))
    assert (found == -np.inf).all()


@pytest.mark.parametrize("momentum", [None, np.full((1, 1, 1), 0.5)])
def test_descent_keeps_the_precision_of_the_problem(momentum):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1, 2, 5, 3)).astype(np.float32)
    problem = DenseLinearModel(X, rng.integers(0, 4, (1, 2, 5)), loss_named("softmax", 4))
    u = np.zeros((4, 2, 12), np.float32)
    found = problem.per_client_descent(u, 2, np.full((1, 1, 1), 0.1), linear=u, momentum=momentum)
    assert found.dtype == np.float32


def test_least_squares_hand_what_they_cannot_settle_to_a_safer_solver():
    """Two equal columns: the normal equations are singular, the nearest minimiser shares their weight."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((6, 3)), rng.standard_normal(6)
    A[:, 1] = A[:, 0]
    columns, support = np.ascontiguousarray(A.T)[None, None], np.ones((1, 1, 3), dtype=bool)
    w = least_squares(columns, y[None, None], np.zeros((1, 1)), np.zeros((1, 1, 3)), support)[0, 0]
    np.testing.assert_allclose(w, np.linalg.lstsq(A, y, rcond=None)[0], atol=1e-12)
    start = np.full((1, 1, 3), np.nan)
    assert not np.isfinite(least_squares(columns, y[None, None], np.zeros((1, 1)), start, support)).any()


def test_kernels_are_not_loaded_before_they_are_wanted():
    modules = "sys, replifed.cli, replifed.algorithms.registry, replifed.engine.simulate"
    code = f"import {modules}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sums_that_overflow_stay_infinite():
    @compiled
    def total(x):
        s = 0.0
        for v in x:
            s += v
        return s

    assert total(np.array([1e308, 1e308, 1.0])) == np.inf and np.isnan(total(np.array([np.inf, -np.inf])))
