"""Surrogates: the same numbers every time, and the shape, sparsity and balance that were asked for."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from replifed.data.catalogue import CATALOGUE, get
from replifed.data.surrogates import GENERATORS, generate
from replifed.data.table import content_sha256

SMALL = {
    "text_regression": {"rows": 400, "features": 3000, "row_nonzeros": 60, "clusters": 5},
    "text_classes": {
        "rows": 400,
        "features": 3000,
        "row_nonzeros": 40,
        "clusters": 6,
        "labels": (1, 2, 3),
        "sizes": (1, 1, 2),
    },
    "binary_bag": {"rows": 1500, "features": 100, "row_nonzeros": 8, "positives": 45, "clusters": 3},
    "categorical": {
        "rows": 500,
        "features": 40,
        "attributes": 10,
        "missing": 0.05,
        "positives": 120,
        "clusters": 3,
    },
    "digits": {"class_sizes": (20, 30, 25)},
    "potentials": {"rows": 2, "features": 6976, "dim": 2},
    "ratings": {"rows": 300, "features": 200, "nonzeros": 5000, "clusters": 4},
    "clip": {"frames": 9, "height": 24, "width": 32},
}


def small(generator):
    return replace(
        get("w8a"), id=f"small_{generator}", surrogate={"generator": generator, **SMALL[generator]}
    )


@pytest.mark.parametrize("generator", GENERATORS)
def test_same_numbers_every_time(generator):
    assert content_sha256(*generate(small(generator))) == content_sha256(*generate(small(generator)))
    other = replace(small(generator), id="another")
    assert content_sha256(*generate(other)) != content_sha256(*generate(small(generator)))


def test_text_regression():
    X, y = generate(small("text_regression"))
    assert X.shape == (400, 3000)
    assert 50 < X.nnz / 400 < 70
    assert np.diff(X.indptr).min() > 0
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-12)
    assert abs(y.mean() + 3.5) < 0.15
    assert abs(y.std() - 0.6) < 0.1
    popularity = np.sort(np.bincount(X.indices, minlength=3000))[::-1]
    assert popularity[0] > 20 * popularity[1500]


def test_text_classes_are_clusters():
    X, y = generate(small("text_classes"))
    np.testing.assert_array_equal(np.unique(y, return_counts=True)[1], [100, 100, 200])
    found = KMeans(6, n_init=3, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, found) > 0.2


def test_counts_values():
    settings = {"generator": "text_classes", **SMALL["text_classes"], "values": "counts"}
    X, _ = generate(replace(get("news20"), surrogate=settings))
    assert X.data.min() == 1
    np.testing.assert_array_equal(X.data, np.round(X.data))


def test_binary_bag():
    X, y = generate(small("binary_bag"))
    assert X.shape == (1500, 100)
    assert 7 < X.nnz / 1500 < 9
    np.testing.assert_array_equal(X.data, 1)
    assert (y == 1).sum() == 45
    assert (y == -1).sum() == 1455


def test_categorical():
    X, y = generate(small("categorical"))
    assert X.shape == (500, 40)
    assert np.diff(X.indptr).max() <= 10
    assert 4500 < X.nnz < 5000
    assert (y == 1).sum() == 120


def test_digits():
    X, y = generate(small("digits"))
    assert X.shape == (75, 784)
    assert X.dtype == np.uint8
    assert X.max() > 200
    assert 0.1 < (X > 0).mean() < 0.35
    np.testing.assert_array_equal(np.bincount(y), [20, 30, 25])


def test_ratings():
    X, y = generate(small("ratings"))
    assert X.shape == (300, 200)
    assert abs(X.nnz / 5000 - 1) < 0.1
    assert set(np.unique(X.data)) == {1, 2, 3, 4, 5}
    assert not y.any()


@pytest.mark.parametrize("id_", ["phishing", "mushrooms", "a9a"])
def test_of_the_catalogue(id_):
    dataset = CATALOGUE[id_]
    X, y = generate(dataset)
    assert X.shape == (dataset.counts.rows, dataset.counts.features)
    assert abs(X.nnz / dataset.counts.nonzeros - 1) < 0.01
    assert set(np.unique(y)) == {-1, 1}


@pytest.mark.parametrize("dataset", [one for one in CATALOGUE.values() if one.surrogate], ids=lambda d: d.id)
def test_shape_is_the_catalogues(dataset):
    settings = dataset.surrogate
    if "features" in settings:
        assert settings["features"] == dataset.counts.features
    rows = settings.get("rows") or settings.get("frames") or sum(settings["class_sizes"])
    assert dataset.counts.rows in (rows, None)
    labels = settings.get("labels")
    assert labels is None or dataset.counts.classes in (len(labels), None)
