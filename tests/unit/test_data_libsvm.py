"""LibSVM files: what is read is what was written, and every fault is named with its line."""

import bz2
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from replifed.data import texts
from replifed.data.catalogue import Counts
from replifed.data.table import content_sha256
from replifed.errors import DataError

GOOD = b"1 1:0.5 3:2\n-1 2:1\n1\n"

FAULTS = {
    "unsorted": (b"-1 3:1 2:5\n", r"line 2: '2:5': the indices are not in ascending order \(2 after 3\)"),
    "twice": (b"-1 2:1 2:5\n", "line 2: '2:5': the index occurs twice"),
    "zero": (b"-1 0:1\n", "line 2: '0:1': indices start at 1"),
    "negative": (b"-1 -4:1\n", "line 2: '-4:1': indices start at 1"),
    "beyond": (b"-1 5:1\n", "line 2: '5:1': the index is beyond the 4 features"),
    "value": (b"-1 2:abc\n", "line 2: '2:abc': the value is not a number"),
    "no value": (b"-1 2:\n", "line 2: '2:': the value is not a number"),
    "nan": (b"-1 2:nan\n", "line 2: '2:nan': the value is not finite"),
    "inf": (b"-1 2:-inf\n", "line 2: '2:-inf': the value is not finite"),
    "nan label": (b"nan 2:1\n", "line 2: 'nan': the label is not finite"),
    "index": (b"-1 x:1\n", "line 2: 'x:1': the index is not a whole number"),
    "no pair": (b"-1 17\n", "line 2: '17': not an index:value pair"),
    "no label": (b"2:1 3:1\n", "line 2: '2:1': the label is missing"),
    "label": (b"one 2:1\n", "line 2: 'one': the label is not a number"),
    "cut line": (b"-1 2:1 3", "line 2: '3': not an index:value pair"),
    "binary": (b"\x89PNG\xff\x00 1:1\n", "line 2: .*the label is not a number"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("suffix", ["", ".bz2"])
def test_fault_is_named(tmp_path, name, suffix):
    line, message = FAULTS[name]
    content = b"1 1:0.5\n" + line
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(bz2.compress(content) if suffix else content)
    with pytest.raises(DataError, match=message) as caught:
        texts.read_libsvm([path], Counts(features=4))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"# only a remark\n"])
def test_empty_file(tmp_path, content):
    path = tmp_path / "empty"
    path.write_bytes(content)
    with pytest.raises(DataError, match="empty"):
        texts.read_libsvm([path], Counts(features=4))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_broken_streams(tmp_path, suffix, pack):
    rng = np.random.default_rng(0)
    content = b"".join(b"1 1:%f 2:%f\n" % tuple(rng.random(2)) for _ in range(2000))
    path = tmp_path / f"data{suffix}"
    path.write_bytes(pack(content)[:-50])
    with pytest.raises(DataError, match=r"truncated: its .* stream ends early"):
        texts.read_libsvm([path], Counts(features=2))
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"is not .* data"):
        texts.read_libsvm([path], Counts(features=2))
    packed = bytearray(pack(content))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(DataError, match=rf"{path}"):
        texts.read_libsvm([path], Counts(features=2))


def test_truncation_without_other_faults(tmp_path):
    path = tmp_path / "cut"
    path.write_bytes(GOOD[:-3])
    says = "line 2: '-1 2:1': no line end here, so the file may be truncated"
    assert says in texts.first_error(path, 4)
    path.write_bytes(GOOD)
    assert texts.first_error(path, 4) is None


def test_explicit_zeros_go(tmp_path):
    path = tmp_path / "zeros"
    path.write_bytes(b"1 1:0 2:3\n-1 3:0\n")
    X, y = texts.read_libsvm([path], Counts(features=3))
    assert X.nnz == 1
    assert X.indices.dtype == X.indptr.dtype == np.int32
    np.testing.assert_array_equal(X.toarray(), [[0, 3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1])


numbers = st.one_of(st.just(0.0), st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False))
matrices = st.tuples(st.integers(1, 8), st.integers(1, 6)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=numbers)
)


@settings(max_examples=60, deadline=None)
@given(matrices, st.randoms(use_true_random=False), st.sampled_from(["", ".gz", ".bz2"]))
def test_round_trip(tmp_path_factory, dense, random, suffix):
    y = np.array([random.choice([-1.0, 1.0, 2.5]) for _ in dense])
    X = csr_matrix(dense)
    text = io.BytesIO()
    dump_svmlight_file(X, y, text, zero_based=False)
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    path = tmp_path_factory.mktemp("round") / f"data{suffix}"
    path.write_bytes(pack(text.getvalue()))
    read, labels = texts.read_libsvm([path], Counts(features=X.shape[1]))
    np.testing.assert_allclose(read.toarray(), dense, rtol=1e-14)
    np.testing.assert_array_equal(labels, y)
    assert texts.first_error(path, X.shape[1]) is None
    # The content hash does not depend on the packing, nor on explicit zeros and their order.
    padded = path.with_name("padded")
    padded.write_bytes(text.getvalue().replace(b"\n", b" # a remark\n"))
    assert content_sha256(*texts.read_libsvm([padded], Counts(features=X.shape[1]))) == content_sha256(
        read, labels
    )
