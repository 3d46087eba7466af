"""MovieLens ratings in both forms, checkpoints read without running them, clusters of equal size."""

from __future__ import annotations

import collections
import io
import lzma
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.data.catalogue import Counts, get
from replifed.data.checkpoints import read_state
from replifed.data.parse import read_form
from replifed.data.table import content_sha256
from replifed.data.texts import read_ratings as read
from replifed.errors import DataError
from replifed.partition.build import build
from replifed.partition.clusters import densest, equal_clusters

LINES = [(1, 2, 5), (1, 4, 3), (3, 1, 1), (2, 4, 4), (3, 4, 2)]


def ratings(folder, form, lines=LINES, tail=b""):
    plain = b"".join(b"%d::%d::%d\n" % line for line in lines) + tail
    if form == "no_timestamps":
        path = folder / "ratings_notimestamp.dat.xz"
        path.write_bytes(lzma.compress(plain))
        return path
    path = folder / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/README", "terms of use")
        archive.writestr("ml-1m/ratings.dat", plain.replace(b"\n", b"::978300760\n"))
    return path


@pytest.mark.parametrize("form", ["zip", "no_timestamps"])
def test_both_forms_of_movielens_hold_the_same_table(tmp_path, form):
    X, y = read([ratings(tmp_path, form)], Counts(3, 4))
    expected = np.array([[0, 5, 0, 3], [0, 0, 0, 4], [1, 0, 0, 2.0]])
    np.testing.assert_array_equal(X.toarray(), expected)
    assert not y.any()
    counts, sha = Counts(3, 4, nonzeros=5), content_sha256(X, y)
    dataset = replace(get("movielens_1m"), counts=counts, content_sha256=sha)
    path = ratings(tmp_path, form)
    assert read_form(dataset, dataset.form(form), [path]).meta["counts"]["nonzeros"] == 5


@pytest.mark.parametrize(
    ("lines", "tail", "said"),
    [
        ([(1, 2, 6)], b"", "line 1: rating 6 is not between 1 and 5"),
        ([(1, 2, 5), (9, 1, 1)], b"", "line 2: user 9"),
        ([(1, 2, 5), (1, 2, 4)], b"", "1 ratings occur twice"),
        ([(1, 2, 5)], b"1::3\n", "2 lines of 3 numbers are expected"),
        ([(1, 2, 5)], b"1::a::3\n", "not a file of whole numbers"),
        ([], b"<html>\n", "line 1 is not user::film::rating"),
    ],
)
def test_faults_of_ratings_are_named(tmp_path, lines, tail, said):
    with pytest.raises(DataError, match=said):
        read([ratings(tmp_path, "no_timestamps", lines, tail)], Counts(3, 4))


def test_broken_archives_are_named(tmp_path):
    path = ratings(tmp_path, "no_timestamps")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="truncated"):
        read([path], Counts(3, 4))
    for name, reader in (("ml-1m.zip", lambda path: read([path], Counts(3, 4))), ("x.pt", read_state)):
        path = tmp_path / name
        path.write_bytes(b"PK but no zip")
        with pytest.raises(DataError, match="not a sound zip"):
            reader(path)


# -- checkpoints ---------------------------------------------------------------------------------------


class _Global:
    def __init__(self, module, name, *arguments):
        self.what, self.arguments = (module, name), arguments


class _Storage:
    def __init__(self, key, count):
        self.identity = ("storage", _Global("torch", "FloatStorage"), key, "cpu", count)


class _Pickler(pickle._Pickler):
    """Writes names that need not exist here, as torch does."""

    dispatch = pickle._Pickler.dispatch.copy()

    def persistent_id(self, thing):
        return thing.identity if isinstance(thing, _Storage) else None

    def save_global_(self, thing):
        module, name = thing.what
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        if thing.arguments:
            self.save(thing.arguments[0])
            self.write(pickle.REDUCE)

    dispatch[_Global] = save_global_


def checkpoint(path, state, storages):
    out = io.BytesIO()
    _Pickler(out, 2).dump(state)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", out.getvalue())
        for key, values in storages.items():
            archive.writestr(f"archive/data/{key}", np.asarray(values, "<f4").tobytes())
    return path


def tensor(key, count, shape, strides, offset=0):
    arguments = (_Storage(key, count), offset, shape, strides, False, collections.OrderedDict())
    return _Global("torch._utils", "_rebuild_tensor_v2", arguments)


def test_tensors_are_rebuilt(tmp_path):
    state = collections.OrderedDict(
        a=tensor("7", 6, (2, 3), (3, 1)), b=tensor("7", 6, (3, 2), (1, 3)), c=tensor("8", 4, (2,), (1,), 2)
    )
    read_back = read_state(checkpoint(tmp_path / "x.pt", state, {"7": range(6), "8": range(4)}))
    np.testing.assert_array_equal(read_back["a"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(read_back["b"], [[0, 3], [1, 4], [2, 5]])
    np.testing.assert_array_equal(read_back["c"], [2, 3])


class _Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize(
    "attack",
    [
        lambda marker: {"a": _Evil(marker)},
        lambda marker: {"a": _Global("builtins", "eval", ("__import__('os').getpid()",))},
        lambda marker: {"a": _Global("torch._utils", "_rebuild_parameter", (1,))},
        lambda marker: {"a": _Global("collections", "OrderedDict", ([("a", 1)],))},
        lambda marker: {"a": tensor("7", 6, (2, 4), (3, 1))},
        lambda marker: {"a": tensor("7", 6, (2,), (-1,), 1)},
        lambda marker: {"a": tensor("7", 60, (2,), (1,))},
        lambda marker: {"a": tensor("7", 6, (1 << 20,), (0,))},
        lambda marker: {"a": tensor("../data", 6, (2,), (1,))},
        lambda marker: {"a": 3},
        lambda marker: [1, 2],
    ],
)
def test_a_malicious_checkpoint_is_refused_and_runs_nothing(tmp_path, attack):
    marker = tmp_path / "ran"
    path = checkpoint(tmp_path / "x.pt", attack(marker), {"7": range(6)})
    with pytest.raises(DataError, match=r"x\.pt"):
        read_state(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02}",  # without an end
        b"\x80\x02}cbuiltins\nlen\n.",
        b"\x80\x02(U\x01a.",  # a string that no checkpoint has
        # It would change its reader's defaults.
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x0c\x00\x00\x00__defaults__K\x01sb0}.",
    ],
)
def test_a_pickle_that_asks_for_more_than_tensors_is_refused(tmp_path, program):
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", program)
    with pytest.raises(DataError, match=r"no end|refused"):
        read_state(path)


# -- clusters of equal size ----------------------------------------------------------------------------


def test_clusters_are_equal_and_tighter_than_chance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) + 4 * rng.normal(size=(4, 3))[rng.integers(4, size=120)]
    cluster = equal_clusters(X, 6, 1)
    assert (np.bincount(cluster) == 20).all()
    assert np.array_equal(cluster, equal_clusters(X, 6, 1))

    def spread(label):
        return sum(((X[label == k] - X[label == k].mean(axis=0)) ** 2).sum() for k in range(6))

    assert spread(cluster) < 0.5 * spread(rng.permutation(cluster))


def test_partition_of_ratings_takes_the_fullest_rows_and_columns():
    rng = np.random.default_rng(1)
    X = sp.csr_matrix((rng.random((30, 12)) < rng.random((30, 1)) * rng.random(12)) * 3.0)
    rows, columns = densest(X, 20, 5)
    filled = X.toarray() != 0
    assert filled.sum(axis=1)[rows].min() >= np.delete(filled.sum(axis=1), rows).max()
    assert filled.sum(axis=0)[columns].min() >= np.delete(filled.sum(axis=0), columns).max()
    settings = {"clusters": "equal_kmeans", "count": 4, "rows": 20, "columns": 5, "choice": "fullest"}
    partition, table = build(X, np.zeros(30), settings, [1, 2], 7)
    assert (np.bincount(partition.clients[2][rows]) == 5).all()
    assert (np.delete(partition.clients[1], rows) == -1).all()
    assert partition.meta["columns"] == columns.tolist()
    assert list(table["size"]) == [5] * 8
    drawn, _ = build(X, np.zeros(30), settings | {"choice": "random"}, [1, 2], 7)
    chosen = np.flatnonzero(drawn.clients[1] >= 0)
    assert len(chosen) == 20 and chosen.tolist() != rows.tolist()
    assert drawn.meta["columns"] == columns.tolist()
    np.testing.assert_array_equal(drawn.clients[1], drawn.clients[2])
