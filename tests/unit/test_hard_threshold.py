"""Hard thresholding: exactly tau kept, ties to the lowest index, and the expansion bound of Lemma 1."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from replifed.kernels.selection import keep_in_segment
from replifed.network.ledger import dense_bits, sparse_bits
from replifed.operators.hard_threshold import as_integers, hard_threshold, largest, support_bits

# Few distinct magnitudes: most draws have ties at the cut, of both signs.
CROWDED = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0])
SPREAD = st.floats(-1e300, 1e300, allow_subnormal=True)
ENTRIES = st.one_of(CROWDED, SPREAD)


@st.composite
def matrices(draw, entries=ENTRIES):
    rows, d = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    values = draw(st.lists(entries, min_size=rows * d, max_size=rows * d))
    return np.array(values).reshape(rows, d)


def by_sorting(row, tau):
    """H_tau by a full stable sort: the first tau of the entries by falling magnitude."""
    kept = np.zeros_like(row)
    for j in np.argsort(-np.abs(row), kind="stable")[:tau]:
        kept[j] = row[j]
    return kept


@settings(max_examples=300, deadline=None)
@given(st.one_of(matrices(), matrices(CROWDED)), st.integers(1, 13))
def test_keeps_the_tau_largest_and_of_equal_ones_the_first(v, tau):
    before = v.copy()
    kept = hard_threshold(v, tau)
    assert np.array_equal(v, before)
    assert not np.shares_memory(kept, v)
    assert np.array_equal(kept, [by_sorting(row, tau) for row in v])
    assert np.array_equal(np.count_nonzero(kept, axis=-1), np.minimum(tau, np.count_nonzero(v, axis=-1)))
    assert np.array_equal(hard_threshold(kept, tau), kept)
    # One vector, or more leading axes, are the same operation.
    assert np.array_equal(hard_threshold(v[0], tau), kept[0])
    assert np.array_equal(hard_threshold(v[:, None, None], tau)[:, 0, 0], kept)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("tau", [1, 4, 35, np.array([4, 1, 200, 7])])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-45, 5e-324])
def test_many_zeros_make_no_difference(share, tau, dtype, scale):
    """Rows with few non-zeros, up to none, with ties among them; subnormals are numbers like others."""
    rng = np.random.default_rng(0)
    v = (rng.integers(-30, 31, (4, 5, 40)) * (rng.random((4, 5, 40)) < share)).astype(dtype)
    v[1, 2] = 0.0
    v[:3] *= dtype(scale)
    v[:, 3] *= dtype(scale)
    taus = np.broadcast_to(tau, 4)
    expected = [[by_sorting(row, k) for row in rows] for rows, k in zip(v, taus, strict=True)]
    kept = hard_threshold(v, tau)
    assert kept.dtype == dtype
    assert np.array_equal(kept, expected)
    v[2, 3, 9] = np.nan
    assert np.isnan(hard_threshold(v, tau)[2, 3, 9])


@settings(max_examples=300, deadline=None)
@given(st.one_of(matrices(), matrices(CROWDED)), st.integers(1, 13), st.integers(0, 2**63 - 1))
def test_no_guess_of_the_threshold_makes_a_difference(v, tau, guess):
    """From far below the least entry kept, from far above, and from what the step before has returned."""
    row = np.ascontiguousarray(v[0])
    integers, most = as_integers(row)
    scratch = np.empty(len(row), np.int64), np.empty(len(row) + 1, np.int32)
    names, kept = np.arange(len(row), dtype=np.int32), np.empty_like(integers)
    for _ in range(2):
        guess = keep_in_segment(integers, most, names, tau, guess, scratch, kept)
        assert np.array_equal(kept.view(float), by_sorting(row, tau))


def test_the_largest_are_marked_and_zeros_never():
    v = np.array([[3.0, 0, -1, 2], [0, 0, 5, 0]])
    assert largest(v, 2).tolist() == [[True, False, False, True], [False, False, True, False]]
    assert largest(v, np.array([1, 4])).tolist() == [[True, False, False, False], [False, False, True, False]]


def test_levels_must_fit_the_first_axis():
    with pytest.raises(ValueError, match="sparsity levels"):
        hard_threshold(np.ones((4, 2, 5)), np.array([1, 2]))
    with pytest.raises(ValueError, match="sparsity levels"):
        hard_threshold(np.ones(6), np.full(6, 2))
    with pytest.raises(ValueError, match="sparsity levels"):
        largest(np.ones((2, 6)), 0)


@settings(max_examples=100, deadline=None)
@given(matrices(CROWDED), st.integers(1, 13), st.data())
def test_a_nan_is_never_thresholded_away(v, tau, data):
    column = data.draw(st.integers(0, v.shape[1] - 1))
    v[0, column] = np.nan
    kept = hard_threshold(v, tau)
    assert np.isnan(kept[0, column])
    for row, others in zip(v[1:], kept[1:], strict=True):
        assert np.array_equal(others, by_sorting(row, tau))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_lemma_1_bounds_the_expansion(data):
    # |H_tau(x) - x*|^2 <= (1 + alpha) |x - x*|^2 with alpha = 2 sqrt(tau*) / sqrt(tau - tau*).
    d = data.draw(st.integers(2, 15))
    tau_star = data.draw(st.integers(1, d - 1))
    tau = data.draw(st.integers(tau_star + 1, d))
    numbers = st.floats(-3, 3, allow_subnormal=False)
    x = np.array(data.draw(st.lists(st.one_of(CROWDED, numbers), min_size=d, max_size=d)))
    x_star = np.zeros(d)
    support = data.draw(st.permutations(range(d)))[:tau_star]
    x_star[list(support)] = data.draw(st.lists(numbers, min_size=tau_star, max_size=tau_star))
    assume(np.abs(x - x_star).max() > 1e-9)
    alpha = 2 * math.sqrt(tau_star) / math.sqrt(tau - tau_star)
    left = np.sum((hard_threshold(x, tau) - x_star) ** 2)
    assert left <= (1 + alpha) * np.sum((x - x_star) ** 2) * (1 + 1e-12)


def test_lemma_1_is_nearly_attained():
    # tau* = 1, tau = 2: all entries of x tie, and the one that x* needs is dropped, so that the distance
    # nearly doubles where 1 + alpha = 3.
    x_star, x = np.array([0.0, 0.0, 1.0]), np.full(3, 0.4)
    ratio = np.sum((hard_threshold(x, 2) - x_star) ** 2) / np.sum((x - x_star) ** 2)
    assert 1.9 < ratio <= 3.0


def test_bits_by_hand():
    # 3 of 1000: three indices of 10 bits; 200 of 1000: the mask of 1000 bits is shorter than 2000.
    assert (support_bits(3, 1000), support_bits(200, 1000), support_bits(1, 1)) == (30, 1000, 0)
    assert support_bits(5, 1024) == 50
    assert support_bits(5, 1025) == 55
    assert (sparse_bits(3, 1000), sparse_bits(200, 1000), dense_bits(1000)) == (126, 7400, 32000)
    # Never more than the dense vector.
    assert sparse_bits(1000, 1000) == sparse_bits(2000, 1000) == 32000
