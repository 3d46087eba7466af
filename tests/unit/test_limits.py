"""Small files that ask for much, or are not what they seem: refused in one line, before memory is filled."""

import bz2
import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from itertools import count

import numpy as np
import pandas as pd
import pytest

from replifed.claims import files
from replifed.claims.verdicts import COLUMNS
from replifed.data import images, texts
from replifed.data.catalogue import Counts
from replifed.data.checkpoints import read_state
from replifed.data.own import parse
from replifed.errors import ConfigError, DataError
from replifed.settings.reading import read_value
from replifed.store import hashes, limits
from replifed.store.atomic import write_text

MOST = 1 << 20


def head(shape):
    stream = io.BytesIO()
    entries = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, entries)
    return stream.getvalue()


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def own(path):
    parse("mine", {"path": str(path), "limit_gb": MOST / 2**30}, path.with_name("out.npz"))


def own_csv(path):
    parse("mine", {"path": str(path), "form": "csv", "limit_gb": MOST / 2**30}, path.with_name("out.npz"))


def libsvm(path):
    texts.read_libsvm([path], Counts())


def ratings(path):
    texts.read_ratings([path], Counts(rows=30, features=30))


def mat(path):
    images.read_mat([path], Counts())


def writers(path):
    images.read_writers_hdf5([path], Counts())


def matlab(size):
    packed = zlib.compress(bytes(size))
    return b" " * 124 + b"\0\1IM" + struct.pack("<II", 15, len(packed)) + packed


def equal_rows(count):
    stream = io.BytesIO()
    pd.DataFrame({"a": np.zeros(count), "y": np.ones(count)}).to_parquet(stream)
    return stream.getvalue()


def archived(size):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:bz2") as archive:
        member = tarfile.TarInfo("fed_emnist_digitsonly_train.h5")
        member.size = size
        archive.addfile(member, io.BytesIO(bytes(size)))
    return stream.getvalue()


ABOVE = "above the limit of 1 MiB"
RAISE = "set a higher datasets.mine.limit_gb"
LINES = b"1 1:1\n" * 300_000


@pytest.mark.parametrize(
    ("name", "content", "read", "says"),
    [
        ("x.gz", gzip.compress(LINES), libsvm, ABOVE),
        ("x.bz2", bz2.compress(LINES), own, RAISE),
        ("x.bz2", bz2.compress(b"0" * (2 << 20)), libsvm, ABOVE),
        ("x.csv.gz", gzip.compress(b"a,y\n" + b"1,2\n" * 300_000), own_csv, RAISE),
        ("x.csv", b"a" + b",b" * 200_000 + b"\n", own_csv, "columns, more than 100000"),
        ("x.svm", b"1 20000:1\n-1 1:1\n", own, "line 1: '20000:1': the index is beyond 13107 features"),
        ("x.zip", zipped({"m/ratings.dat": b"1::1::1\n" * 200_000}), ratings, "more than 900 ratings|above"),
        ("x.gz", gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 1 << 30)), images.idx_array, ABOVE),
        ("x", b"\0\0\x08\xff" + bytes(1020), images.idx_array, "255 dimensions"),
        ("x", b"\0\0\x08\x02" + struct.pack(">II", 0, 2**32 - 1), images.idx_array, "holds nothing"),
        ("x.npz", zipped({"X.npy": head((10**12,)), "y.npy": head((2,))}), own, "does not fit its"),
        ("x.npz", zipped({"X.npy": bytes(2 << 20)}), own, RAISE),
        ("x.npz", b"PK\3\4", own, "no sound npz file"),
        ("x.mat", matlab(2 << 20), mat, ABOVE),
        ("x.parquet", equal_rows(100_000), own, "its 100000 rows take .*" + RAISE),
        ("x.tar.bz2", archived(2 << 20), writers, ABOVE),
        ("x.tar.bz2", archived(9)[:-20], writers, "is damaged|truncated"),
    ],
    ids=count(),  # not their bytes, some of which hold the time
)
def test_a_small_file_that_asks_for_much(tmp_path, name, content, read, says):
    path = tmp_path / name
    path.write_bytes(content)
    with limits.limit(MOST, "it is another file"), pytest.raises(DataError, match=says) as refusal:
        read(path)
    assert "\n" not in str(refusal.value) and not (tmp_path / "out.npz").exists()


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
TENSOR = b"X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00"
NESTED = b")q\x00" + b"q\x00h\x00\x86" * 60


@pytest.mark.parametrize(
    "program",
    [
        b"}" + TENSOR + b"K\x01\x85J\xff\xff\xff\x7f\x86K\x00K\x00\x86\x89tRs.",  # ((1,), 2^31 - 1)
        b"}" + TENSOR + NESTED + b"K\x00\x85\x89tRs.",
        b"(" + NESTED + b"X\x01\x00\x00\x00x" * 4 + b"tQ.",
        b"}" + NESTED + b"K\x01s.",
        b"}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    ],
    ids=count(),
)
def test_a_checkpoint_that_nests_or_repeats(tmp_path, program):
    path = tmp_path / "x.pt"
    path.write_bytes(zipped({"a/data.pkl": b"\x80\x02" + program, "a/data/0": bytes(16)}))
    with pytest.raises(DataError, match="refused") as refusal:
        read_state(path)
    assert len(str(refusal.value)) < 400 and "\n" not in str(refusal.value)


ALIASES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ALIASES, "line 6: more than 100000 values, with those that aliases repeat"),
        ("a: 1\nb: &b {c: *b}\n", "line 2: .*refers to what it stands in"),
        ("a: " + "[" * 100_000, "line 1: more than 50 lists or mappings in each other"),
        ("a: " + "9" * 5000, "line 1: a number of 5000 digits"),
        ("\na: 2001-13-45", "line 2: '2001-13-45' is no timestamp"),
        ("a: !!bool x", "line 1: 'x' is no bool"),
        ("x" * (2 << 20), "longer than 1 MiB"),
    ],
    ids=count(),
)
def test_yaml_that_grows(text, says):
    with pytest.raises(ConfigError, match=says) as refusal:
        read_value(text, "f.yaml")
    assert "\n" not in str(refusal.value)
    assert read_value("a: &a [1, {b: 2001-01-01}]\nb: *a\nc: '" + "9" * 5000 + "'\n", "f.yaml")["b"][0] == 1


def test_claims_that_are_damaged(tmp_path):
    row = dict.fromkeys(COLUMNS, "") | {"id": "a", "verdict": "holds", "source": "printed", "measured": "1"}
    row["data"] = "original"
    text = f"{','.join(COLUMNS)}\n{','.join(row.values())}\n".encode()
    path = tmp_path / "claims.csv"
    path.write_bytes(text)
    assert files.read(path)[0]["measured"] == "1"
    for content, says in (
        (text + b"\xff\n", "is damaged .*not text in UTF-8"),
        (text + b"y" * 200_000 + b"\n", "is damaged behind line 2: field larger"),
        (text.replace(b",1,", b",one,"), "is damaged: measured of a is no number"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=says) as refusal:
            files.read(path)
        assert "\n" not in str(refusal.value)


def test_a_record_that_is_no_record(tmp_path):
    write_text(tmp_path / "a", "text")
    (tmp_path / ".hashes/a").mkdir(parents=True)
    assert hashes.recorded(tmp_path / "a") == ("", 0)
    write_text(tmp_path / ".hashes/b", f"{'0' * 64} {'9' * 5000}\n")
    assert hashes.recorded(tmp_path / "b") == ("", 0)
