"""Channels, the refined quantiser, bit allocation and eigenpairs, against independent computations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from replifed.algorithms.fednl import RankOne, largest_entries, subtract
from replifed.errors import ConfigError, ReplifedError
from replifed.network.fading import Constant, Rayleigh
from replifed.operators.bit_allocation import (
    a2,
    a3,
    allocate,
    allocate_exactly,
    coefficients,
    expected_error,
    interval_squared,
    solve,
    to_integers,
    vectors_in_use,
)
from replifed.operators.matrices import (
    apply_inverse,
    eigenpairs,
    leading_eigenpair,
    packed_size,
)
from replifed.operators.quantise import (
    draw_dither,
    interval,
    quantise,
    quantise_grown,
    refine,
)
from replifed.randomness import Streams

B_MAX = 16


# -- channels ----------------------------------------------------------------------------------------


def test_budgets_of_both_channels():
    streams = Streams(3, tuple(range(400)))
    assert np.array_equal(Constant(32)(streams, 5), np.full((1, 5), 32))
    budgets = Rayleigh(32)(streams.at(4), 8)
    assert budgets.shape == (400, 8)
    assert budgets.dtype.kind == "i"
    # gamma ~ Exp(1): P(B >= 32) = P(gamma >= 1), P(B >= 16) = P(gamma >= sqrt(2) - 1).
    for bits, share in ((32, np.exp(-1.0)), (16, np.exp(1.0 - np.sqrt(2.0)))):
        found = np.mean(budgets >= bits)
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / budgets.size)
    # Rounds, rows and devices differ; the same round is drawn alike, and gains and rates act as in eq. (26).
    assert not np.array_equal(Rayleigh(32)(streams.at(5), 8), budgets)
    assert np.array_equal(Rayleigh(32, gain=2.0, rate=2.0)(streams.at(4), 8), budgets)
    assert (Rayleigh(32, gain=np.linspace(1, 3, 8))(streams.at(4), 8) >= budgets).all()
    for wrong in (lambda: Constant(-1), lambda: Constant(1.5), lambda: Rayleigh(32, gain=0.0)):
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(ConfigError, match="gains of 3 clients; there are 8"):
        Rayleigh(32, gain=np.ones(3))(streams.at(0), 8)


# -- the quantiser -----------------------------------------------------------------------------------


def test_nested_dither_is_unbiased_with_the_papers_variance_at_every_refinement():
    rng = np.random.default_rng(0)
    draws, v = 100_000, np.array([-0.5, -0.31, 0.0, 0.123, 0.5])
    dither = draw_dither(rng, (draws, 5))
    before = np.zeros(draws)
    for b in range(1, B_MAX + 1):
        received = quantise(np.broadcast_to(v, (draws, 5)), np.full(draws, b), dither)
        error, delta = received - v, interval(b)
        assert np.abs(error).max() <= delta / 2 + 1e-15
        assert np.all(np.abs(error.mean(axis=0)) < 4.5 * np.sqrt(delta**2 / 12 / draws))
        # The fourth moment of a uniform error is Delta^4/80.
        spread = np.sqrt((delta**4 / 80 - delta**4 / 144) / draws)
        assert np.all(np.abs((error**2).mean(axis=0) - delta**2 / 12) < 4.5 * spread)
        if b > 1:
            # Refinement stays in the cell that was sent before.
            assert np.abs(received - before).max() <= delta / 2 + 1e-15
        before = received


def test_cells_are_nested_and_their_number_is_that_of_the_bits():
    grid = np.linspace(-1, 1, 4001)[:-1, None]
    for kind in ("none", "nested"):
        dither = np.full_like(grid, 0.37)
        coarse = quantise(grid, np.full(len(grid), 2), dither, kind)
        fine = quantise(grid, np.full(len(grid), 5), dither, kind)
        assert len(np.unique(np.round(coarse, 12))) == 4
        assert len(np.unique(np.round(fine, 12))) == 32
        # The finer value decides the coarser one.
        pairs = {(a, b) for a, b in np.round(np.hstack([fine, coarse]), 12)}
        assert len(pairs) == 32


def test_other_dithers_have_larger_errors():
    rng = np.random.default_rng(1)
    draws, v, b = 40_000, 0.2, 5
    at = np.full((draws, 1), v)
    dither = draw_dither(rng, (draws, 1))
    added = quantise(at, np.full(draws, b), dither, "added") - v
    received = np.zeros((draws, 1))
    for k in range(1, b + 1):
        before, after = np.full(draws, k - 1), np.full(draws, k)
        received = refine(at, received, before, after, draw_dither(rng, (draws, 1)))
    expected = interval(b) ** 2 / 12
    assert np.mean(added**2) > 1.5 * expected
    assert np.mean((received - v) ** 2) > 1.2 * expected
    untouched = refine(at, received, np.full(draws, b), np.full(draws, b), dither)
    assert np.array_equal(untouched, received)


def grown_in_steps(v, bits, dither, overload):
    """What the receiver has of `v` (draws, n) after each of `bits`, and before the first."""
    v, dither = v[None, :, None], dither[None, :, None]
    heard, before = [np.zeros_like(v)], np.zeros((1, len(v[0]), 1), dtype=int)
    for b in bits:
        heard.append(quantise_grown(v, heard[-1], before, np.full_like(before, b), dither, overload=overload))
        before = np.full_like(before, b)
    return [one[0, :, 0] for one in heard]


def test_an_overloaded_coordinate_is_clipped_and_no_other_one_differs():
    rng, bits = np.random.default_rng(6), (2, 3, 7)
    v = np.tile(np.linspace(-1, 1, 401), (50, 1))
    dither = draw_dither(rng, v.shape)
    wrapped, clipped = (grown_in_steps(v, bits, dither, overload) for overload in ("wrap", "clip"))
    first = interval(2)
    for b, wrap, clip in zip(bits, wrapped[1:], clipped[1:], strict=True):
        delta, inside = interval(b), np.abs(v) <= 1 - first / 2
        np.testing.assert_allclose(clip[inside], wrap[inside], atol=1e-14)
        # Refinement stays in the cell that was sent first, and takes of it what is nearest.
        assert np.abs(clip - clipped[1]).max() <= (first - delta) / 2 + 1e-14
        nearest = np.clip(v, clipped[1] - first / 2, clipped[1] + first / 2)
        assert np.abs(clip - nearest).max() <= delta / 2 + 1e-14
    wrap, clip = wrapped[1], clipped[1]
    lost = np.abs(wrap - v) > 1
    assert 0 < lost.sum() < (np.abs(v) > 1 - first / 2).sum()
    assert np.array_equal(clip[~lost], wrap[~lost])
    # The last cell before the end on its own side; its midpoint less the dither, as of any other.
    assert (np.sign(clip) == np.sign(v))[lost].all()
    assert ((np.abs(clip) >= 1 - first) & (np.abs(clip) < 1))[lost].all()
    cells = ((clip + dither + 1) / first - 0.5)[lost]
    np.testing.assert_allclose(cells, np.rint(cells), atol=1e-13)
    np.testing.assert_array_equal(clip, quantise(v, np.full(50, 2), dither, overload="clip"))
    with pytest.raises(ValueError, match="unknown overload 'crop'"):
        quantise(v, np.full(50, 2), dither, overload="crop")


@pytest.mark.parametrize("kind", ["nested", "none", "added"])
@pytest.mark.parametrize("shared", [False, True])
def test_vectors_whose_bits_have_grown_are_quantised_the_others_stay(kind, shared):
    rng = np.random.default_rng(4)
    v, received = rng.uniform(-1, 1, (2, 2, 3, 4, 17))
    dither = np.broadcast_to(draw_dither(rng, (1 if shared else 2, 3, 4, 17)), v.shape)
    before = rng.integers(0, 4, (2, 3, 6))
    after = before + rng.integers(0, 3, before.shape)
    found = quantise_grown(v, received, before, after, dither, kind)
    grown = (after > before)[..., :4, None]
    assert 0 < grown.sum() < grown.size
    np.testing.assert_array_equal(
        found, np.where(grown, quantise(v, after[..., :4], dither, kind), received), strict=True
    )


def test_without_bits_a_vector_is_zero_and_one_bit_overloads_beyond_a_half():
    dither = draw_dither(np.random.default_rng(2), (20_000, 1))
    for kind in ("nested", "none", "added"):
        assert not quantise(np.full((3, 4), 0.7), np.zeros(3, int), np.zeros((3, 4)), kind).any()
    one = np.ones(20_000, dtype=int)
    assert np.mean(quantise(np.full((20_000, 1), 0.5), one, dither)) == pytest.approx(0.5, abs=0.01)
    assert abs(np.mean(quantise(np.full((20_000, 1), 0.9), one, dither)) - 0.9) > 0.3
    with pytest.raises(ValueError, match="unknown kind"):
        quantise(np.zeros((1, 1)), np.ones(1, int), np.zeros((1, 1)), "nest")
    with pytest.raises(ValueError, match="kind 'added' needs a dither"):
        quantise(np.zeros((1, 1)), np.ones(1, int), kind="added")


# -- bit allocation ----------------------------------------------------------------------------------


def instance(seed, most=30):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, most))
    q, B = int(rng.integers(1, n)), int(rng.integers(1, 40))
    values = np.sort(rng.lognormal(0, 2, n))[::-1]
    previous = np.zeros(n, dtype=int)
    if seed % 2:
        k = int(rng.integers(0, q + 1))
        previous[:k] = np.sort(rng.integers(1, 8, k))[::-1]
    return values, q, previous, B


def by_slsqp(values, q, previous, B):
    """Minimum of problem (21) as printed, over real bits of this round."""
    n = len(values)
    gamma, lbar = coefficients(values, np.array(q))
    g, tilde = gamma[:q] * 4.0 ** -previous[:q], lbar[:q] * 4.0 ** -previous[:q]
    A = (a2(n) - a3(n)) * np.diag(tilde**2) + a3(n) * np.outer(tilde, tilde)

    def cost(bits):
        x = 4.0 ** (1 - bits)
        return g @ x + x @ A @ x

    def slope(bits):
        x = 4.0 ** (1 - bits)
        return -2 * np.log(2) * x * (g + 2 * A @ x)

    total = min(B, int((B_MAX - previous[:q]).sum()))
    start = np.full(q, total / q)
    scale = cost(start)
    found = minimize(
        lambda bits: cost(bits) / scale,
        start,
        jac=lambda bits: slope(bits) / scale,
        bounds=[(0, B_MAX - p) for p in previous[:q]],
        constraints=[{"type": "eq", "fun": lambda bits: bits.sum() - total, "jac": lambda bits: np.ones(q)}],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return cost, scale, found


@pytest.mark.parametrize("seed", range(14))
def test_the_convex_problem_is_solved_to_1e_9_of_a_reference_solver(seed):
    values, q, previous, B = instance(seed)
    bits = solve(values, np.array(q), previous, np.array(B), B_MAX)
    new = (bits - previous)[:q]
    cost, scale, found = by_slsqp(values, q, previous, B)
    assert cost(new) / scale <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(new, found.x, atol=2e-5)
    total = min(B, int((B_MAX - previous[:q]).sum()))
    assert new.sum() == pytest.approx(total, abs=1e-9)
    assert new.min() >= -1e-12
    assert bits.max() <= B_MAX + 1e-12
    # The same cost in terms of all bits sent: eq. (20) is eq. (14) at the finer intervals.
    rest = expected_error(values, np.array(q), np.zeros(len(values)))
    whole = expected_error(
        values, np.array(q), np.where(np.arange(len(values)) < q, interval_squared(bits), 0)
    )
    assert whole - rest == pytest.approx(cost(new), rel=1e-9)


def test_stacks_are_solved_as_their_members():
    rng = np.random.default_rng(5)
    values = -np.sort(-rng.lognormal(-2, 2, (2, 3, 20)), axis=-1)
    q, B = rng.integers(1, 20, (2, 3)), rng.integers(0, 60, (2, 3))
    previous = np.zeros((2, 3, 20), dtype=int)
    together = solve(values, q, previous, B, B_MAX)
    for i, j in np.ndindex(2, 3):
        alone = solve(values[i, j], q[i, j], previous[i, j], B[i, j], B_MAX)
        np.testing.assert_allclose(together[i, j], alone, atol=1e-9)
    # Numbers that all members share may be given once.
    shared = solve(values, np.array(5), previous[0, 0], np.array(7), B_MAX)
    np.testing.assert_array_equal(
        shared[1, 2], solve(values[1, 2], np.array(5), previous[0, 0], np.array(7), B_MAX)
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-8, 10.0), min_size=2, max_size=25),
    st.lists(st.integers(0, 120), min_size=1, max_size=6),
)
def test_bits_round_by_round(values, budgets):
    values = np.sort(np.array(values))[::-1]
    n = len(values)
    bits, q = np.zeros(n, dtype=int), np.array(0)
    for B in budgets:
        qbar = min(int(q) + B, n - 1)
        room = (B_MAX - bits[:qbar]).sum()
        after = allocate(values, q, bits, np.array(B), B_MAX)
        assert (after - bits).sum() == min(B, room)
        assert (after >= bits).all()
        assert after.max(initial=0) <= B_MAX
        assert (after[qbar:] == bits[qbar:]).all()
        assert (np.diff(after) <= 0).all()
        bits, q = after, vectors_in_use(after)
        assert q <= n - 1


def test_rounding_is_to_the_nearest_and_repaired_where_it_matters_least():
    bits = np.array([2.6, 1.55, 1.45, 0.4, 0.0])
    zero = np.zeros(5, dtype=int)
    assert to_integers(bits, np.array(4), zero, np.array(6), B_MAX).tolist() == [3, 2, 1, 0, 0]
    # These sum to 6: one too many goes from the one that gained most, one missing to the one that lost most.
    assert to_integers(bits, np.array(4), zero, np.array(5), B_MAX).tolist() == [3, 1, 1, 0, 0]
    assert to_integers(bits, np.array(4), zero, np.array(7), B_MAX).tolist() == [3, 2, 2, 0, 0]
    assert to_integers(bits, np.array(4), zero, np.array(100), 4).tolist() == [4, 4, 4, 4, 0]
    assert vectors_in_use(np.array([[3, 1, 0, 0], [0, 0, 0, 0]])).tolist() == [2, 0]


@pytest.mark.parametrize("allocation", [allocate, allocate_exactly])
@pytest.mark.parametrize("scale", [1e154, 1e307, 1e-160, 1e-300])
def test_bits_do_not_depend_on_the_scale_of_the_eigenvalues(allocation, scale):
    rest = np.array(0), np.zeros(6, dtype=int), np.array(9), B_MAX
    values = np.array([8.0, 3.0, 1.0, 1.0, 0.2, 0.0])
    assert np.array_equal(allocation(scale * values, *rest), allocation(values, *rest))


@pytest.mark.parametrize("allocation", [allocate, allocate_exactly])
@pytest.mark.parametrize(
    "values",
    [[np.nan] * 4, [np.inf, 1, 0.5, 0], [1e154, 1, 1e-154, 0], [np.inf, 1, 0, -np.inf], [1, 0, 0, np.nan]],
)
def test_sharing_out_bits_ends_on_any_eigenvalues_and_leaves_the_others_alone(allocation, values):
    sound = np.array([2.0, 1.0, 0.5, 0.0])
    rest = np.zeros(2, dtype=int), np.zeros((2, 4), dtype=int), np.full(2, 5), B_MAX
    found = allocation(np.array([values, sound]), *rest)
    assert found.sum(axis=-1).tolist() == [5, 5]
    assert np.array_equal(found[1], allocation(np.array([sound, sound]), *rest)[1])


@pytest.mark.parametrize("budget", [-1, np.nan])
def test_a_budget_that_cannot_be_shared_out_is_refused(budget):
    with pytest.raises(
        ReplifedError, match=f"^a budget of {budget} bits cannot be allocated: must be 0 or more"
    ):
        to_integers(np.zeros(4), np.array(3), np.zeros(4, dtype=int), np.array(budget), B_MAX)


def test_the_exact_search_over_q_is_a_loop_over_q():
    rng = np.random.default_rng(11)
    n, B = 12, 9
    values = -np.sort(-rng.lognormal(-1, 1.5, (4, n)), axis=-1)
    zero = np.zeros((4, n), dtype=int)
    found = allocate_exactly(values, np.zeros(4, dtype=int), zero, np.full(4, B), B_MAX)
    for spectrum, bits in zip(values, found, strict=True):
        errors = {}
        for q in range(1, n):
            real = solve(spectrum, np.array(q), zero[0], np.array(B), B_MAX)
            errors[q] = expected_error(spectrum, np.array(q), interval_squared(real))
        best = min(errors, key=errors.get)
        real = solve(spectrum, np.array(best), zero[0], np.array(B), B_MAX)
        assert bits.tolist() == to_integers(real, np.array(best), zero[0], np.array(B), B_MAX).tolist()
        assert bits.sum() == B


def test_expected_error_is_the_mean_over_quantised_hessians():
    rng = np.random.default_rng(4)
    n, q, draws = 5, 2, 60_000
    values, bits = np.array([1.0, 0.7, 0.2, 0.1, 0.05]), np.array([4, 3])
    # Coordinates of at most 1 - Delta/2, where the quantiser does what the model says.
    V = np.linalg.qr(rng.standard_normal((n, n)))[0].T
    dither = draw_dither(rng, (draws, q, n))
    received = quantise(np.broadcast_to(V[:q], (draws, q, n)), np.broadcast_to(bits, (draws, q)), dither)
    rho = values[q]
    H = (V.T * values) @ V
    sent = np.matmul(received.swapaxes(1, 2) * (values[:q] - rho), received) + rho * np.eye(n)
    errors = ((H - sent) ** 2).sum(axis=(1, 2))
    x = np.zeros(n)
    x[:q] = interval_squared(bits)
    expected = expected_error(values, np.array(q), x)
    assert abs(errors.mean() - expected) < 4 * errors.std() / np.sqrt(draws)


# -- eigenpairs --------------------------------------------------------------------------------------


def symmetric(n):
    """Full ones, two with coordinates coupled to nothing, two with equal values, and a diagonal one."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((2, 3, n, n))
    A = A @ A.swapaxes(-1, -2)
    for j in (0, n // 2, n - 1):
        A[1, 2, j, :] = A[1, 2, :, j] = 0.0
        A[1, 2, j, j] = 0.5 * (j == n // 2)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A[0, 1] = (Q * np.repeat([3.0, 1.0], [n // 2, n - n // 2])) @ Q.T
    A[0, 0] = np.diag(np.arange(1.0 * n))
    # Coordinates of their own with the largest value, and the same block twice.
    half = (n - 2) // 2
    A[1, 1] = 5 * n * np.eye(n)
    for begin in (1, 1 + half):
        A[1, 1, begin : begin + half, begin : begin + half] = A[0, 2, :half, :half] if half > 0 else 0.0
    return (A + A.swapaxes(-1, -2)) / 2


@pytest.mark.parametrize("n", [1, 9, 40])
def test_eigenpairs_are_those_of_the_matrices(n):
    A = symmetric(n)
    values, vectors = eigenpairs(A)
    assert vectors.shape == (2, 3, n, n)
    assert (np.diff(values, axis=-1) <= 0).all()
    scale = np.abs(values).max(axis=-1, keepdims=True) + 1e-300
    assert (np.abs(values - np.linalg.eigvalsh(A)[..., ::-1]) <= 1e-13 * scale).all()
    np.testing.assert_allclose(
        vectors @ vectors.swapaxes(-1, -2), np.broadcast_to(np.eye(n), (2, 3, n, n)), atol=1e-12
    )
    residual = np.abs(vectors @ A - values[..., None] * vectors)
    assert (residual <= 1e-12 * scale[..., None]).all()
    top = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=-1)[..., None], axis=-1)
    assert (top > 0).all()


@pytest.mark.parametrize("n", [1, 2, 40])
def test_the_inverse_of_a_projected_matrix(n):
    rng = np.random.default_rng(n)
    for A in symmetric(n).reshape(-1, n, n):
        A, g = A - 0.3 * np.eye(n), rng.standard_normal(n)
        w, V = np.linalg.eigh(A)
        expected = (V / np.maximum(w, 0.1)) @ (V.T @ g)
        np.testing.assert_allclose(apply_inverse(A, g, 0.1), expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("n", [1, 6, 49, 80])
def test_the_leading_eigenpair_is_the_one_of_largest_magnitude(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((8, n, n))
    A = A + A.swapaxes(-1, -2)
    A[3] = 0.0
    A[4] = np.diag(np.r_[-3.0, np.ones(n - 1)])
    A[5] = np.eye(n)
    # Of rank 3, and with values of 1, 1e-3, 1e-6, ...
    B = rng.standard_normal((n, 3))
    A[6] = B @ B.T
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A[7] = (Q * -(10.0 ** (-3.0 * np.arange(n)))) @ Q.T
    w = np.linalg.eigvalsh(A)
    expected = np.take_along_axis(w, np.abs(w).argmax(axis=-1)[:, None], axis=-1)[:, 0]
    for tolerance in (1e-5, 1e-8, 1e-10):
        value, vector = leading_eigenpair(A, tolerance)
        np.testing.assert_allclose(value, expected, atol=10 * tolerance**2 * np.abs(w).max() + 1e-12)
        np.testing.assert_allclose(np.linalg.norm(vector, axis=-1), 1.0, atol=1e-12)
        residual = np.matmul(A, vector[..., None])[..., 0] - value[:, None] * vector
        assert (np.linalg.norm(residual, axis=-1) <= 1.01 * tolerance * np.abs(value) + 1e-13).all()


@pytest.mark.parametrize("n", [6, 80])
def test_matrices_that_are_not_finite_have_no_leading_eigenpair(n):
    A = np.stack([np.eye(n)] * 4)
    A[1, 2, 3] = A[1, 3, 2] = np.nan
    A[2, 0, 0] = np.inf
    value, vector = leading_eigenpair(A)
    assert np.isnan(value).tolist() == [False, True, True, False]
    assert np.isnan(vector).all(axis=-1).tolist() == [False, True, True, False]


# Of 100 rows there are so many entries that a part of them is looked at first.
@pytest.mark.parametrize("n", [1, 4, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_entries_of_symmetric_matrices(n, dtype):
    A = np.random.default_rng(3).integers(-9, 10, (2, 3, n, n)).astype(dtype)
    A = A + A.swapaxes(-1, -2)
    a, b = np.tril_indices(n)
    for k in {1, 3, n, packed_size(n)}:
        expected = np.zeros_like(A)
        for at in np.ndindex(2, 3):
            kept = np.argsort(-np.abs(A[at][a, b]), kind="stable")[:k]
            expected[at][a[kept], b[kept]] = A[at][a[kept], b[kept]]
            expected[at][b[kept], a[kept]] = A[at][a[kept], b[kept]]
        mean, weights = np.zeros((2, n, n), dtype), np.array([[0.5, 0.25, 0.25]], dtype)
        sums = A.copy()
        largest_entries(A, k).add_to(sums, mean, weights)
        np.testing.assert_array_equal(sums - A, expected)
        np.testing.assert_array_equal(mean, np.einsum("sn,rnab->rab", weights, expected))


def test_differences_and_sums_of_rank_one_in_place():
    rng = np.random.default_rng(4)
    n, A = 21, rng.standard_normal((2, 2, 3, 21, 21))
    A, B = A + A.swapaxes(-1, -2)
    difference, sums, mean = A.copy(), A.copy(), np.zeros((2, n, n))
    np.testing.assert_allclose(subtract(difference, B), np.linalg.norm(A - B, axis=(-2, -1)), rtol=1e-13)
    np.testing.assert_array_equal(np.tril(difference), np.tril(A - B))
    c, v, weights = rng.standard_normal((2, 3)), rng.standard_normal((2, 3, n)), np.array([[0.5, 0.2, 0.3]])
    v[1, 2] = np.nan  # of a run that has diverged, and adds nothing
    factors = np.where(np.isfinite(v).all(axis=-1), 0.5, 0.0)
    RankOne(c, v).times(factors).add_to(sums, mean, weights)
    v[1, 2] = 0.0
    expected = np.einsum("rn,rna,rnb->rnab", 0.5 * c, v, v)
    np.testing.assert_allclose(sums - A, expected, atol=1e-14)
    np.testing.assert_allclose(mean, np.einsum("sn,rnab->rab", weights, expected), atol=1e-14)
