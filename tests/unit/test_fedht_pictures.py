"""Figures 4 and 5, the partitions' figure and Table 2 of the fedht paper, on small stand-ins."""

import io
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from replifed.data.table import Table
from replifed.papers.fedht.figures import FIGURES
from replifed.papers.fedht.simulations import support_distance, support_words, supports
from replifed.papers.fedht.tables import TABLES
from replifed.partition.build import build

DRAWING = {"rows": 90, "components": 5, "perplexity": 8}
PLAN = {"clusters": "kmeans", "count": 10, "parts": 4, "shards_per_client": 2}


class FakeInputs:
    """Three small data sets in ten groups each: real targets, two classes, ten classes as pixels."""

    def __init__(self, *names):
        self.names = names
        self.tables, self.partitions = {}, {}
        for place, name in enumerate(names):
            rng = np.random.default_rng(place)
            group = np.arange(200) % 10
            X = sp.random(200, 30, 0.2, format="csr", random_state=place)
            X = (X + sp.csr_matrix((np.full(200, 5.0), (np.arange(200), group)), shape=(200, 30))).tocsr()
            y = {"e2006": rng.standard_normal(200), "rcv1": np.where(group < 4, -1, 1), "mnist": group}[name]
            if name == "mnist":
                X = (40 * X.toarray()).astype(np.uint8)
            kind = ("original", "") if name == "mnist" else ("substitute", "other documents")
            self.tables[name] = Table(X, y, {"id": name, "kind": kind[0], "stamp": kind[1]})
            plan = {**PLAN, "clusters": "labels" if name == "mnist" else "kmeans"}
            self.partitions[name] = build(X, y, plan, [1, 2, 101], seed=3)[0]

    def experiments(self):
        return list(self.names)

    def data(self, experiment):
        return self.tables[experiment]

    def partition(self, experiment):
        return self.partitions[experiment]


def embedding(inputs, **drawing):
    inputs.seed, inputs.options = 1, types.SimpleNamespace(**{**DRAWING, **drawing})
    return FIGURES["fig4"].table(inputs)


@pytest.fixture(scope="module")
def inputs():
    return FakeInputs("e2006", "rcv1", "mnist")


def through_csv(frame):
    """What a picture is drawn from: the frame as its CSV says."""
    text = frame.to_csv(index=False, float_format="%.12g")
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["nan"])


@pytest.mark.parametrize("name, experiment", [("fig4", "e2006"), ("fig5", "rcv1")])
def test_embedding(name, experiment):
    fake = FakeInputs(experiment)
    frame = embedding(fake)
    assert list(frame.columns) == ["experiment", "x", "y", "cluster", "silhouette", "samples"]
    assert len(frame) == 90 and set(frame["experiment"]) == {experiment}
    assert np.array_equal(frame[["x", "y"]], frame[["x", "y"]].round(4))
    assert len(set(frame["silhouette"])) == 1 and frame["silhouette"][0] > 0.3
    assert frame.equals(embedding(fake))
    (axes,) = FIGURES[name].show(through_csv(frame)).axes
    drawn = np.concatenate([points.get_offsets() for points in axes.collections])
    assert np.allclose(drawn, frame.sort_values("cluster", kind="stable")[["x", "y"]])


def test_embedding_keeps_neighbours_of_a_group_together():
    frame = embedding(FakeInputs("mnist"), rows=200)
    points = frame[["x", "y"]].to_numpy()
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argmin(axis=1)
    assert np.mean(frame["cluster"].to_numpy()[nearest] == frame["cluster"]) > 0.9


def test_partitions_table(inputs):
    frame = FIGURES["partitions"].table(inputs)
    assert not frame.isna().any().any()
    sizes = frame[frame["panel"] == "sizes"]
    assert set(sizes["replicate"]) == {1, 2, 101}
    for _, deal in sizes.groupby(["experiment", "replicate"]):
        assert deal["value"].sum() == 200
        assert deal["value"].is_monotonic_decreasing
    for panel in ("clusters", "labels"):
        shares = frame[frame["panel"] == panel]
        assert set(shares["replicate"]) == {1}
        assert np.allclose(shares.groupby(["experiment", "client"])["value"].sum(), 1)
        assert (shares["value"] > 0).all()
    parts = frame[frame["panel"] == "labels"].groupby("experiment")["part"].unique()
    assert set(parts["rcv1"]) == {"-1", "1"}
    assert set(parts["e2006"]) == {f"tenth {k}" for k in range(1, 11)}
    numbers = frame[frame["panel"] == "summary"].set_index(["experiment", "replicate", "part"])["value"]
    # Two digits each, in equal parts, of ten equally frequent ones.
    assert numbers["mnist", 1, "label_distance"] == pytest.approx(0.8)
    assert numbers["mnist", 1, "effective_share"] == pytest.approx(1)


def test_table2(inputs):
    frame = through_csv(TABLES["table2"].table(inputs)).set_index("experiment", drop=False)
    assert frame["samples"].tolist() == [200] * 3 and frame["features"].tolist() == [30] * 3
    assert frame["classes"].tolist() == [0, 2, 10]
    assert frame["clients"].tolist() == [20] * 3 and frame["replicates"].tolist() == [3] * 3
    assert frame.loc["rcv1", "nonzeros"] == inputs.data("rcv1").X.nnz
    assert frame.loc["mnist", "nonzeros"] == np.count_nonzero(inputs.data("mnist").X)
    assert frame.loc["mnist", ["size_min", "size_median", "size_max"]].tolist() == [10, 10, 10]
    assert frame.loc["rcv1", "label_distance"] > frame.loc["rcv1", "label_distance_random"]

    readable = TABLES["table2"].show(frame)
    assert readable["Data set"].tolist() == ["E2006-tfidf", "RCV1", "MNIST"]
    assert readable["Task"].tolist() == ["regression", "2 classes", "10 classes"]
    assert readable["Source"].tolist() == ["substitute (other documents)"] * 2 + ["original"]
    assert readable["Client size (min / median / max)"][2] == "10 / 10 / 10"


def test_supports_are_kept_as_numbers_and_compared():
    rng = np.random.default_rng(1)
    models = np.where(rng.random((6, 2 * 48 + 5)) < 0.4, rng.standard_normal((6, 101)), 0.0)
    words = {name: of(None, {"server": models}) for name, of in support_words(101).items()}
    lines = pd.DataFrame(words | {f"{name}.of_start": values[::-1] for name, values in words.items()})
    found, perturbed = supports(lines), supports(lines, "of_start")
    np.testing.assert_array_equal(found[:, :101], models != 0)
    assert not found[:, 101:].any()
    np.testing.assert_array_equal(perturbed, found[::-1])
    one, other = np.array([[1, 1, 0, 0], [1, 1, 0, 0]], bool), np.array([[1, 0, 1, 0], [0, 0, 1, 1]], bool)
    assert support_distance(one, other).tolist() == [0.5, 1.0]
    assert support_distance(one, one).tolist() == [0.0, 0.0]


def test_partitions_are_stacks_that_are_full(inputs):
    pages = FIGURES["partitions"].pages_of(through_csv(FIGURES["partitions"].table(inputs)))
    assert [len(page.axes) for page in pages] == [4, 4, 4]
    clusters = pages[2].axes[1]
    top = max(path.vertices[:, 1].max() for area in clusters.collections for path in area.get_paths())
    assert top == pytest.approx(1)
