"""Sums over clients' samples are those of their dense matrices, however samples are put together."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.problems import sample_sums as module
from replifed.problems.losses import loss_named
from replifed.problems.sample_sums import SampleSums, Terms
from replifed.problems.sparse import SparseLinearModel

SIZES, D = (5, 1, 30, 8), 12
FIRST = np.concatenate([[0], np.cumsum(SIZES)])
M = int(FIRST[-1])


def draw(plain, seed=0):
    rng = np.random.default_rng(seed)
    A = (rng.random((M, D)) < rng.random(D)).astype(float)
    A[FIRST[1]] = A[:, 3] = 0.0
    return A if plain else A * rng.standard_normal(A.shape)


def terms(A):
    for begin, end in pairwise(FIRST):
        samples, names = np.nonzero(A[begin:end])
        values = A[begin:end][samples, names]
        yield Terms(names, samples, None if (A[A != 0] == 1).all() else values)


def sums(made, u, scale=1.0):
    """Each client's sums by their names."""
    from replifed.kernels.sample_sums import add_up, room_for

    found, (tables, room) = [], room_for(made.layout)
    for i, (begin, end) in enumerate(pairwise(made.layout.bounds)):
        tables[0][: SIZES[i]] = u[FIRST[i] : FIRST[i + 1]]
        add_up(i, scale, made.layout, tables, room)
        found.append(dict(zip(made.names[begin:end].tolist(), room.tolist(), strict=False)))
    return found


def columns():
    """What decides which of each client's samples are put together."""
    rng = np.random.default_rng(3)
    return [sp.csr_array((rng.random((m, 9)) < 0.4).astype(float)) for m in SIZES]


@pytest.mark.parametrize(("plain", "bundles"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("compared", [1000, 8])
def test_sums_are_those_of_dense_matrices(plain, bundles, compared, monkeypatch):
    monkeypatch.setattr(module, "_MOST_COMPARED", compared)
    A, u = draw(plain), np.random.default_rng(1).standard_normal(M)
    made = SampleSums(FIRST, list(terms(A)), [3, 5], columns_of=columns() if bundles else None)
    for i, (found, (begin, end)) in enumerate(zip(sums(made, u, 0.5), pairwise(FIRST), strict=True)):
        touched = {3, 5, *np.flatnonzero(A[begin:end].any(axis=0)).tolist()}
        assert set(found) == touched
        assert {*made.names[made.layout.bounds[i] :][:2].tolist()} == {3, 5}
        expected = 0.5 * u[begin:end] @ A[begin:end]
        np.testing.assert_allclose([found[e] for e in sorted(found)], expected[sorted(touched)], atol=1e-13)


def test_a_bundle_of_samples_with_the_same_names_is_one_term():
    A = np.zeros((M, D))
    A[FIRST[2] + np.array([3, 8, 11, 17, 29]), :7] = 1.0
    alike = [sp.csr_array(A[begin:end]) for begin, end in pairwise(FIRST)]
    made = SampleSums(FIRST, list(terms(A)), columns_of=alike)
    assert made.layout.lengths.tolist() == [1] * len(made.layout.lengths)
    apart = SampleSums(FIRST, list(terms(A)))
    assert apart.layout.lengths.tolist() == [5] * len(apart.layout.lengths)


def test_sums_of_equal_numbers_are_equal_wherever_there_are_as_many():
    # Exactly, so that which of equal entries are the largest is not left to rounding.
    A = draw(plain=True)
    found = sums(SampleSums(FIRST, list(terms(A)), columns_of=columns()), np.full(M, 0.25), 1 / 7)
    for own, (begin, end) in zip(found, pairwise(FIRST), strict=True):
        counts = A[begin:end].sum(axis=0)
        assert all(own[e] == 0.25 * counts[e] * (1 / 7) for e in own)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_gradients_of_sparse_data_are_those_of_the_formula(dtype, plain, rows):
    A, rng = draw(plain).astype(dtype), np.random.default_rng(2)
    y, x = rng.choice([-1.0, 1.0], M), rng.standard_normal((rows, D))
    device = np.repeat(np.arange(len(SIZES)), SIZES)
    data = SparseLinearModel(sp.csr_array(A), y, loss_named("logistic"), device, l2=0.1)
    z = x @ A.T.astype(float)
    assert not A[FIRST[1]].any()
    for _ in range(3):
        # Where arrays that are not filled may lie.
        np.full((rows, M), np.nan).sum()
        np.testing.assert_allclose(data.predictions(x * 1.0), z, rtol=1e-5 if dtype == np.float32 else 1e-12)
        data.predictions(x + 1.0)
    expected = (-y / (1 + np.exp(y * z))) @ A.astype(float) / M + 0.1 * x
    np.testing.assert_allclose(data.gradient(x), expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_terms_with_factors_are_not_put_together():
    with pytest.raises(ValueError, match="factors"):
        SampleSums(FIRST, list(terms(draw(plain=False))), columns_of=columns())


def test_entries_of_sparse_data_listed_twice_are_one():
    # Ones that stand at the same place are two there.
    twice = sp.csr_array((np.ones(4), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 3))
    data = SparseLinearModel(twice, np.array([1.0, -1.0]), loss_named("logistic"), np.array([0, 1]))
    x = np.array([[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(data.predictions(x), [[0.4, 0.4]])
