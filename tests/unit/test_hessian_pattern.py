"""Hessians by their non-zeros are the dense ones, and so is what is done with them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.errors import ReplifedError
from replifed.operators.hard_threshold import hard_threshold
from replifed.operators.symmetric import pack, packed_size, unpack
from replifed.problems import hessian_pattern as module
from replifed.problems.base import Listed
from replifed.problems.hessian_pattern import HessianPattern

SIZES, D = (5, 1, 9, 3), 8
FIRST = np.concatenate([[0], np.cumsum(SIZES)])
N, M = len(SIZES), int(FIRST[-1])


def draw(seed=0, n=D, plain=False):
    """Samples with few non-zeros; the second client's only one has none, and nobody's has the last column."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((M, n)) < 0.3, 1.0 if plain else rng.standard_normal((M, n)), 0.0)
    X[FIRST[1]] = X[:, -1] = 0.0
    return X, rng.standard_normal((3, M)), HessianPattern(sp.csr_array(X), FIRST)


def dense(X, h, ridge):
    """One client after the other, as the formula has it."""
    return np.array(
        [
            [(X[a:b].T * row[a:b]) @ X[a:b] / (b - a) + ridge * np.eye(D) for a, b in pairwise(FIRST)]
            for row in h
        ]
    )


def listed(pattern, values):
    """The same with all entries listed, from the last to the first."""
    H = pattern.none(len(values))
    sizes = np.diff(pattern.bounds)
    places, held = (np.zeros((len(values), N, sizes.max()), kind) for kind in (H.places.dtype, float))
    for i, (begin, end) in enumerate(pairwise(pattern.bounds)):
        places[:, i, : sizes[i]] = np.arange(sizes[i])[::-1]
        held[:, i, : sizes[i]] = values[:, begin:end][:, ::-1]
    return Listed(np.broadcast_to(sizes, (len(values), N)).copy(), places, held)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_values_are_those_of_the_dense_matrices(rows, ridge):
    X, h, pattern = draw()
    values = pattern.values(h[:rows], ridge)
    assert values.shape == (rows, pattern.bounds[-1])
    np.testing.assert_allclose(pattern.matrices(values), dense(X, h[:rows], ridge), atol=1e-14)


def test_only_pairs_of_columns_that_occur_together_have_entries():
    X, _, pattern = draw()
    touched = [X[a:b] != 0 for a, b in pairwise(FIRST)]
    together = [np.tril(held.T @ held | np.eye(D, dtype=bool)) for held in touched]
    assert np.diff(pattern.bounds).tolist() == [int(t.sum()) for t in together]
    assert np.diff(pattern.bounds)[1] == D
    # Each at a place of its own, a client's after those of the clients before.
    numbers = np.arange(1.0, pattern.bounds[-1] + 1)
    listed = [H[np.tril_indices(D)] for H in pattern.matrices(numbers[None])[0]]
    assert np.array_equal(np.concatenate([np.sort(own[own > 0]) for own in listed]), numbers)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_of_equal_entries_the_first_of_the_triangle_are_learned(k):
    # Clients of one sample of ones: all of their entries are equal.
    X = np.zeros((2, D))
    X[0, [1, 2, 5]], X[1, [0, 4, 6, 7]] = 1.0, 1.0
    pattern = HessianPattern(sp.csr_array(X), np.array([0, 1, 2]))
    mean, rate = np.zeros((1, D, D)), np.ones((1, 2))
    learned, *_ = pattern.learn_largest(np.ones((1, 2)), 0.0, pattern.none(1), mean, k, rate, np.ones(2))
    expected = hard_threshold(pack(np.einsum("ia,ib->iab", X, X)[None]), k)
    assert np.array_equal(pattern.matrices(pattern.spread(learned)), unpack(expected, D))


@pytest.mark.parametrize("k", [1, 4, 40])
@pytest.mark.parametrize("n", [1, 5, 8, 11, 26])
@pytest.mark.parametrize("plain", [False, True])
def test_learning_is_a_round_of_fednl_with_whole_matrices(k, n, plain):
    _, h, pattern = draw(0, n, plain)
    weights, rate = np.array([0.4, 0.1, 0.3, 0.2]), np.full((3, N), 0.8)
    rate[1, 2] = 0.0
    values, target = pattern.values(h[[1, 2, 0]], 0.1), pattern.values(h, 0.3)
    mean = np.einsum("i,riab->rab", weights, pattern.matrices(values))
    H = listed(pattern, values)
    assert np.array_equal(pattern.spread(H), values)
    given = [field.copy() for field in (*H, mean)]
    learned, mean_after, distances = pattern.learn_largest(h, 0.3, H, mean, k, rate, weights)
    assert all(np.array_equal(*pair) for pair in zip(given, (*H, mean), strict=True))
    difference = pattern.matrices(target - values)
    np.testing.assert_allclose(distances, np.linalg.norm(difference, axis=(-2, -1)))
    expected = pattern.matrices(values) + unpack(hard_threshold(pack(difference), k) * rate[..., None], n)
    np.testing.assert_allclose(pattern.matrices(pattern.spread(learned)), expected, atol=1e-14)
    np.testing.assert_allclose(mean_after, np.einsum("i,riab->rab", weights, expected), atol=1e-14)


def test_an_entry_is_listed_once_however_often_it_is_learned():
    _, h, pattern = draw()
    sizes, mean = np.diff(pattern.bounds), np.zeros((3, D, D))
    H, weights, rate = pattern.none(3), np.full(N, 0.25), np.ones((3, N))
    rate[2, 0] = 0.0
    for t in range(12):
        H, mean, _ = pattern.learn_largest(h * (1 + t % 3), 0.3, H, mean, 2, rate, weights)
        assert (H.counts <= np.minimum(2 * (t + 1), sizes)).all()
        assert (H.counts > 0).tolist() == (rate > 0).tolist()
        for row, i in np.ndindex(*H.counts.shape):
            count = H.counts[row, i]
            assert len(set(H.places[row, i, :count])) == count
            assert not H.places[row, i, count:].any() and not H.values[row, i, count:].any()
        dense_mean = np.einsum("i,riab->rab", weights, pattern.matrices(pattern.spread(H)))
        np.testing.assert_allclose(mean, dense_mean, atol=1e-13)


def test_zeros_and_ones_need_no_products():
    X, h, _ = draw()
    X = (X != 0).astype(float)
    pattern, scaled = (HessianPattern(sp.csr_array(a * X), FIRST) for a in (1.0, 2.0))
    np.testing.assert_allclose(pattern.matrices(pattern.values(h, 0.2)), dense(X, h, 0.2), atol=1e-14)
    others = scaled.matrices(scaled.values(h / 4, 0.2))
    np.testing.assert_allclose(pattern.matrices(pattern.values(h, 0.2)), others, atol=1e-14)


def test_clients_with_more_entries_than_16_bits_count():
    D = 370
    X = np.random.default_rng(6).choice([0.5, 1.0], (2, D))
    pattern, rate, mean = (
        HessianPattern(sp.csr_array(X), np.array([0, 1, 2])),
        np.ones((1, 2)),
        np.zeros((1, D, D)),
    )
    h, k = np.array([[1.0, 2.0]]), D * (D + 1) // 2
    assert pattern.none(1).places.dtype == np.uint32
    learned, mean, _ = pattern.learn_largest(h, 0.0, pattern.none(1), mean, k, rate, np.array([0.5, 0.5]))
    expected = np.einsum("i,ia,ib->iab", h[0], X, X)
    np.testing.assert_allclose(pattern.matrices(pattern.spread(learned))[0], expected)
    np.testing.assert_allclose(mean[0], expected.mean(axis=0))


def test_triangles_of_many_columns():
    D = 400
    X = np.zeros((3, D))
    X[0, [0, 7, 399]], X[1, [3, 399]], X[2, [398, 399]] = 1.0, [2.0, -1.0], 1.0
    first, h = np.array([0, 2, 3]), np.array([[0.5, 0.25, 3.0]])
    pattern = HessianPattern(sp.csr_array(X), first)
    found = pattern.matrices(pattern.values(h, 0.0))[0]
    for i, (a, b) in enumerate(pairwise(first)):
        np.testing.assert_allclose(found[i], (X[a:b].T * h[0, a:b]) @ X[a:b] / (b - a), atol=1e-15)


def test_entries_listed_twice_or_in_any_order_are_one_matrix():
    X, h, _ = draw()
    plain = sp.coo_array(X)
    order = np.random.default_rng(1).permutation(plain.nnz)
    row, column, data = plain.coords[0][order], plain.coords[1][order], plain.data[order]
    # Half of each entry twice, unsorted within its sample.
    by_row = np.argsort(np.tile(row, 2), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(2 * np.bincount(row, minlength=M))])
    twice = sp.csr_array((np.tile(data / 2, 2)[by_row], np.tile(column, 2)[by_row], indptr), shape=X.shape)
    before = twice.copy()
    pattern = HessianPattern(twice, FIRST)
    np.testing.assert_allclose(pattern.matrices(pattern.values(h, 0.1)), dense(X, h, 0.1), atol=1e-14)
    assert np.array_equal(twice.indices, before.indices)


def test_a_client_without_samples_is_refused():
    with pytest.raises(ReplifedError, match="client 1 holds no sample"):
        HessianPattern(sp.csr_array(np.ones((5, 3))), np.array([0, 3, 3, 5]))


def test_too_many_products_are_refused(monkeypatch):
    X = sp.csr_array(np.ones((3, 4)))
    first = np.array([0, 3])
    monkeypatch.setattr(module, "_MOST_PRODUCTS", 3 * packed_size(4))
    HessianPattern(X, first)
    monkeypatch.setattr(module, "_MOST_PRODUCTS", 3 * packed_size(4) - 1)
    with pytest.raises(ReplifedError, match="not sparse enough"):
        HessianPattern(X, first)
