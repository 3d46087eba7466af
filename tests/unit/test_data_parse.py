"""From fetched files to tables: checks against the catalogue, deterministic and atomic output."""

import gzip
import json
import struct
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from replifed.data import images as readers
from replifed.data import table as archive
from replifed.data.catalogue import Counts, Dataset, Form, RawFile
from replifed.data.fetch import fetch
from replifed.data.parse import parse
from replifed.data.table import Table, content_sha256, load
from replifed.errors import DataError

TEXT = b"0 1:0.5 3:2\n1 2:1\n1 1:1 4:-1\n"
SURROGATE = {
    "generator": "categorical",
    "rows": 30,
    "features": 9,
    "attributes": 3,
    "positives": 12,
    "clusters": 2,
}


@pytest.fixture
def tmp_path(tmp_path):
    """A folder in a folder of its own, so that no two tests share what lies beside it."""
    (tmp_path / "inner").mkdir()
    return tmp_path / "inner"


@pytest.fixture(autouse=True)
def no_mirror(monkeypatch):
    monkeypatch.delenv("REPLIFED_MIRROR", raising=False)


def sparse(**changes):
    form = Form("plain", "original", (RawFile("toy", "libsvm/toy"),), "libsvm")
    record = Dataset("toy", "Toy", "binary", "", "none", "", Counts(3, 4, 2, 5), (form,), SURROGATE)
    return replace(record, **changes)


def images(**changes):
    form = Form("idx", "original", (RawFile("img.gz", "img.gz"), RawFile("lab.gz", "lab.gz")), "idx")
    record = Dataset("pics", "Pics", "multiclass", "", "none", "", Counts(3, 4), (form,), SURROGATE)
    return replace(record, **changes)


def put(raw, dataset, **files):
    folder = raw / dataset.id
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)


def pack_idx(values, code=0x08):
    head = struct.pack(f">2xBB{values.ndim}I", code, values.ndim, *values.shape)
    return gzip.compress(head + values.astype(values.dtype.newbyteorder(">")).tobytes(), mtime=0)


PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
DIGITS = np.array([7, 0, 7], dtype=np.uint8)


def test_sparse_table(tmp_path):
    dataset = sparse()
    put(tmp_path, dataset, toy=TEXT)
    fetch(dataset, tmp_path, policy="real")
    meta = parse(dataset, tmp_path, tmp_path / "out" / "toy.npz")
    table = load(tmp_path / "out" / "toy.npz")
    assert table.meta == meta
    assert meta["counts"] == {"rows": 3, "features": 4, "classes": 2, "nonzeros": 5}
    assert (meta["form"], meta["kind"], meta["stamp"]) == ("plain", "original", "")
    assert meta["content_sha256"] == content_sha256(table.X, table.y)
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 0, 2, 0], [0, 1, 0, 0], [1, 0, 0, -1]])
    np.testing.assert_array_equal(table.y, [-1, 1, 1])
    assert table.y.dtype == np.int64


def test_regression_and_multiclass_labels(tmp_path):
    put(tmp_path, sparse(), toy=b"-3.25 1:1\n-2 2:1\n0 3:1\n")
    regression = sparse(task="regression", counts=Counts(3, 4))
    fetch(regression, tmp_path, policy="real")
    assert parse(regression, tmp_path, tmp_path / "toy.npz")["counts"]["classes"] is None
    np.testing.assert_array_equal(load(tmp_path / "toy.npz").y, [-3.25, -2, 0])
    with pytest.raises(DataError, match=r"toy: the label -3.25 of sample 1 is not a class number"):
        parse(sparse(task="multiclass", counts=Counts(3, 4)), tmp_path, tmp_path / "toy2.npz")
    put(tmp_path / "b", sparse(), toy=b"3 1:1\n5 2:1\n3 3:1\n")
    multi = sparse(task="multiclass", counts=Counts(3, 4, 2))
    fetch(multi, tmp_path / "b", policy="real")
    parse(multi, tmp_path / "b", tmp_path / "toy.npz")
    np.testing.assert_array_equal(load(tmp_path / "toy.npz").y, [3, 5, 3])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (Counts(4, 4), "3 rows instead of 4"),
        (Counts(3, 4, 2, 6), "5 nonzeros instead of 6"),
        (Counts(3, 4, 3), "2 classes instead of 3"),
        (Counts(3, 3), "line 3: '4:-1': the index is beyond the 3 features"),
    ],
)
def test_counts_are_checked(tmp_path, counts, message):
    put(tmp_path, sparse(), toy=TEXT)
    fetch(sparse(), tmp_path, policy="real")
    with pytest.raises(DataError, match=message) as caught:
        parse(sparse(counts=counts), tmp_path, tmp_path / "toy.npz")
    assert str(tmp_path / "toy" / "toy") in str(caught.value)
    assert not list(tmp_path.glob("*.npz"))


def test_content_hash_and_number_of_classes(tmp_path):
    put(tmp_path, sparse(), toy=TEXT)
    fetch(sparse(), tmp_path, policy="real")
    with pytest.raises(DataError, match=f"the content hash is [0-9a-f]{{64}} instead of {'0' * 64}"):
        parse(sparse(content_sha256="0" * 64), tmp_path, tmp_path / "toy.npz")
    put(tmp_path / "c", sparse(), toy=b"1 1:1\n2 1:1\n3 1:1\n")
    with pytest.raises(DataError, match="toy has two classes, but this file has 3"):
        fetch(sparse(), tmp_path / "c", policy="real")


def test_truncated_text_says_where(tmp_path):
    put(tmp_path, sparse(), toy=TEXT[:-6])
    with pytest.raises(DataError, match=r"4 nonzeros instead of 5 .*line 3: '1 1:1': no line end here"):
        fetch(sparse(), tmp_path, policy="real")


def test_raw_file_altered_after_fetch(tmp_path):
    put(tmp_path, sparse(), toy=TEXT)
    record = fetch(sparse(), tmp_path, policy="real")
    put(tmp_path, sparse(), toy=TEXT.replace(b"0.5", b"0.6"))
    with pytest.raises(DataError, match="was altered since it was fetched") as caught:
        parse(sparse(), tmp_path, tmp_path / "toy.npz")
    assert record["files"][0]["sha256"] in str(caught.value)
    assert str(tmp_path / "toy" / "toy") in str(caught.value)
    (tmp_path / "toy" / "toy").unlink()
    with pytest.raises(DataError, match="is missing; run `replifed data fetch toy` again"):
        parse(sparse(), tmp_path, tmp_path / "toy.npz")
    assert not list(tmp_path.glob("*.npz"))


def test_no_or_bad_record(tmp_path):
    with pytest.raises(DataError, match=r"toy.json does not exist; run `replifed data fetch toy` first"):
        parse(sparse(), tmp_path, tmp_path / "toy.npz")
    whole = {"id": "toy", "form": "plain", "kind": "original", "stamp": "", "policy": "auto", "files": []}
    file = {"name": "toy", "sha256": "0" * 64, "bytes": 1}
    broken = [
        whole | {"files": [{}]},
        whole | {"files": [file | {"name": 1}]},
        whole | {"kind": "new"},
        {},
        [],
    ]
    for text in ("", "{", *map(json.dumps, broken)):
        (tmp_path / "toy.json").write_text(text)
        with pytest.raises(DataError, match=r"toy.json is not a record of .*; delete it") as caught:
            parse(sparse(), tmp_path, tmp_path / "toy.npz")
        assert "\n" not in str(caught.value)
    (tmp_path / "toy.json").write_text(json.dumps(whole | {"id": "mnist"}))
    with pytest.raises(DataError, match=r"toy.json is the record of another data set, mnist; delete it"):
        parse(sparse(), tmp_path, tmp_path / "toy.npz")


def test_idx_table(tmp_path):
    put(tmp_path, images(), img__gz=pack_idx(PIXELS), lab__gz=pack_idx(DIGITS))
    fetch(images(), tmp_path, policy="real")
    parse(images(), tmp_path, tmp_path / "pics.npz")
    table = load(tmp_path / "pics.npz")
    assert table.X.dtype == np.uint8
    np.testing.assert_array_equal(table.X, PIXELS.reshape(3, 4))
    np.testing.assert_array_equal(table.y, DIGITS)
    assert table.meta["counts"] == {"rows": 3, "features": 4, "classes": 2, "nonzeros": 11}


def test_a_second_part_of_images_follows_the_first(tmp_path):
    files = [tmp_path / name for name in ("a.gz", "b.gz", "c.gz", "d.gz")]
    for file, values in zip(files, (PIXELS, DIGITS, PIXELS[:2], DIGITS[:2]), strict=True):
        file.write_bytes(pack_idx(values))
    X, y = readers.read_idx(files, Counts())
    np.testing.assert_array_equal(X, np.concatenate([PIXELS, PIXELS[:2]]).reshape(5, 4))
    np.testing.assert_array_equal(y, [*DIGITS, *DIGITS[:2]])


def test_idx_types(tmp_path):
    path = tmp_path / "ints.gz"
    path.write_bytes(pack_idx(np.array([[1, -2], [70000, 4]], dtype=np.int32), code=0x0C))
    values = readers.idx_array(path)
    assert values.dtype == np.int32
    np.testing.assert_array_equal(values, [[1, -2], [70000, 4]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "img.gz"),
        (b"not gzip at all", "is not gzip data"),
        (gzip.compress(b"PNG!", mtime=0), "is not an idx file"),
        (gzip.compress(b"\0\0\x08\x03\0\0", mtime=0), "truncated inside its idx header"),
        (
            gzip.compress(gzip.decompress(pack_idx(PIXELS))[:-1], mtime=0),
            "is truncated: 11 bytes .* 3 x 2 x 2",
        ),
        (gzip.compress(gzip.decompress(pack_idx(PIXELS)) + b"!", mtime=0), "has bytes left over"),
        (pack_idx(PIXELS)[:-9], "its gzip stream ends early"),
        (pack_idx(PIXELS[:2]), "holds 2 images but .*lab.gz holds"),
    ],
)
def test_idx_faults(tmp_path, content, message):
    put(tmp_path, images(), img__gz=content, lab__gz=pack_idx(DIGITS))
    with pytest.raises(DataError, match=message) as caught:
        fetch(images(), tmp_path, policy="auto")
    assert "img.gz" in str(caught.value)
    assert not (tmp_path / "pics.json").exists()


@pytest.mark.parametrize("X", [csr_matrix(np.eye(3)), np.eye(3, dtype=np.uint8)])
def test_archive_bytes_do_not_depend_on_the_clock(tmp_path, monkeypatch, X):
    table = Table(X, np.array([1, 2, 3]), {"id": "toy", "b": 1, "a": None})
    archive.save(tmp_path / "one.npz", table)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    shuffled = Table(X.copy(), table.y.copy(), dict(reversed(table.meta.items())))
    archive.save(tmp_path / "two.npz", shuffled)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    back = archive.load(tmp_path / "one.npz")
    assert type(back.X) is type(X)
    assert back.X.dtype == X.dtype
    assert (back.X != X).sum() == 0


def test_a_write_that_ends_early_leaves_the_old_file(tmp_path):
    archive.save(tmp_path / "toy.npz", Table(np.zeros((2, 2)), np.zeros(2), {}))
    before = (tmp_path / "toy.npz").read_bytes()
    with pytest.raises(ValueError, match="allow_pickle"):
        archive.save(tmp_path / "toy.npz", Table(np.ones((2, 2)), np.array([None, 1]), {}))
    assert (tmp_path / "toy.npz").read_bytes() == before


def test_surrogate_table(tmp_path):
    fetch(sparse(), tmp_path, policy="surrogate")
    meta = parse(sparse(), tmp_path, tmp_path / "a.npz")
    parse(sparse(), tmp_path, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert (meta["kind"], meta["stamp"], meta["form"]) == ("surrogate", "SURROGATE DATA", "surrogate")
    assert meta["counts"]["rows"] == 30
