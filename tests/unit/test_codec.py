"""Messages as bytes: what comes out is what went in, in as many bits as the ledger says; or it is refused."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replifed.errors import ReplifedError
from replifed.network.ledger import dense_bits, sparse_bits
from replifed.wire import codec
from replifed.wire.messages import (
    Dense,
    Eigenpairs,
    Quantised,
    Sparse,
    from_floats,
    packed,
    to_floats,
    unpacked,
)

RNG = np.random.default_rng(5)
V = RNG.normal(size=40).astype(np.float32).astype(float)


def sparse(k: int, d: int = 40) -> np.ndarray:
    return np.where(np.isin(np.arange(d), np.linspace(0, d - 1, k).astype(int)), V[:d], 0.0)


# A part of each kind, what arrives, and its bits by hand.
PARTS = {
    "dense": (Dense(V), V, dense_bits(40)),
    "list": (Sparse(sparse(3), 3), sparse(3), 3 * (32 + 6)),
    "list, filled up": (Sparse(sparse(2), 3), sparse(2), 3 * (32 + 6)),
    "mask": (Sparse(sparse(20), 20), sparse(20), 20 * 32 + 40),
    "nearly dense": (Sparse(sparse(39), 39), sparse(39), 40 * 32),
    "quantised": (
        Quantised(np.array([[5, 0, 7], [0, 0, 0], [1, 1, 0]]), np.array([3, 0, 1])),
        np.array([[3, 5, 0, 7], [0, 0, 0, 0], [1, 1, 1, 0]]),
        3 * 3 + 3 * 1,
    ),
    "eigenpairs": (Eigenpairs(V.reshape(4, 10), 16), None, 4 * (32 + 9 * 16)),
}
SENT = {name: codec.encode([part], 3, 1, 2) for name, (part, _, _) in PARTS.items()}
kinds = pytest.mark.parametrize("name", PARTS)


@kinds
def test_codec_a_part_arrives_in_the_bits_of_the_ledger(name):
    part, arrives, bits = PARTS[name]
    size, read = codec.size(SENT[name]), codec.decode(SENT[name], [2], at=(3, 1))
    assert size.bits == bits and len(SENT[name]) == size.overhead + -(-bits // 8)
    assert read[:3] == (3, 1, 2)
    if arrives is not None:
        np.testing.assert_array_equal(read.parts[0], arrives)
    else:
        np.testing.assert_array_equal(read.parts[0][:, 0], part.pairs[:, 0])
        np.testing.assert_array_equal(read.parts[0][:, 1:], part.pairs[:, 1:].astype(np.float16))


def test_codec_parts_follow_each_other_without_gaps():
    parts = [part for part, _, _ in PARTS.values()]
    together = codec.encode(parts, 0, 0, 0)
    assert codec.size(together).bits == sum(bits for *_, bits in PARTS.values())
    for one, (name, (_, arrives, _)) in zip(codec.decode(together, [0]).parts, PARTS.items(), strict=True):
        if arrives is not None:
            np.testing.assert_array_equal(one, arrives, err_msg=name)


def sealed(data: bytes, key: int = 0) -> bytes:
    """A message that was altered, with the checksum that it would have."""
    return data[:-4] + zlib.crc32(data[:-4], key).to_bytes(4, "big")


DAMAGES = {
    "cut off": (lambda data: data[:-1], "it is cut off, or altered"),
    "a byte less": (lambda data: sealed(data[:-1]), "it is cut off, or altered"),
    "cut off in the head": (lambda data: data[:14], "a message of 14 bytes is cut off within its head"),
    "a byte more": (lambda data: sealed(data + b"\0"), "it is cut off, or altered"),
    "a bit altered": (lambda data: data[:-5] + bytes([data[-5] ^ 8]) + data[-4:], "altered, or of a run w"),
    "another run": (lambda data: sealed(data, key=1), "is altered, or of a run with another method or other"),
    "another version": (lambda data: b"\2" + data[1:], "version 2, this is 1: install the same replifed"),
    "exact floats": (lambda data: data[:1] + b"\1" + data[2:], "floats of 64 bits, not the stated"),
    "another width": (lambda data: sealed(wider(data)), "it is cut off, or altered"),
    "an unknown kind": (lambda data: data[:13] + b"\7" + data[14:], "unknown kind 7"),
    "another client": (lambda data: data[:8] + b"\0\0\0\7" + data[12:], "client 7 .*: it does not take part"),
    "another round": (lambda data: data[:5] + b"\4" + data[6:], "round 3, exchange 1 is due"),
    "another exchange": (lambda data: data[:7] + b"\2" + data[8:], "is of exchange 2: round 3, exchange 1"),
}


def wider(data: bytes) -> bytes:
    """A message whose head states a width of 16 bits more, of a float or of a vector's coordinate."""
    at = 23 if data[13] == Quantised.kind else 14
    return data[:at] + bytes([data[at] + 16]) + data[at + 1 :]


@kinds
@pytest.mark.parametrize("damage", DAMAGES)
def test_codec_what_is_damaged_is_refused_in_one_line(name, damage):
    spoil, says = DAMAGES[damage]
    with pytest.raises(ReplifedError, match=says) as refused:
        codec.decode(spoil(SENT[name]), [0, 2], at=(3, 1))
    assert "\n" not in str(refused.value)


def test_codec_a_damaged_support_is_refused():
    data = bytearray(SENT["list"])
    data[codec.size(SENT["list"]).overhead - 4] = 0xFF
    with pytest.raises(ReplifedError, match="a support of 3 of 40 coordinates is damaged: send it again"):
        codec.decode(sealed(bytes(data)), [2])


def test_codec_more_non_zeros_than_stated_are_refused():
    with pytest.raises(ReplifedError, match="a message of 2 non-zeros is to carry 3: threshold it first"):
        codec.encode([Sparse(sparse(3), 2)], 0, 0, 0)


@pytest.mark.parametrize("values", [np.ones((4, 32)), np.ones((3, 1)), np.array(1.0)])
def test_codec_what_is_no_vector_is_refused(values):
    for part in (Dense(values), Sparse(values, 2)):
        with pytest.raises(ReplifedError, match=r"a part of the shape \(.*\): give a vector, such as"):
            codec.encode([part], 0, 0, 0)


@pytest.mark.parametrize("cell, bits", [(8, 3), (-1, 3), (1, 0)])
def test_codec_a_cell_beyond_its_bits_is_refused(cell, bits):
    part = Quantised(np.array([[0, cell]]), np.array([bits]))
    with pytest.raises(ReplifedError, match=f"a cell of {bits} bits: must be from 0 to {2**bits - 1}"):
        codec.encode([part], 0, 0, 0)


@pytest.mark.parametrize("parts", [[Dense(V)] * 256, [Quantised(np.zeros((1, 2), int), np.array([256]))]])
def test_codec_more_than_a_byte_can_count_is_refused(parts):
    with pytest.raises(ReplifedError, match="a message has at most 255 parts, with at most 255 bits a coord"):
        codec.encode(parts, 0, 0, 0)


@settings(max_examples=30, deadline=None)
@given(d=st.integers(1, 70), k=st.integers(1, 70), width=st.sampled_from([16, 24, 32]), exact=st.booleans())
def test_codec_sparse_vectors_of_any_size_arrive(d, k, width, exact):
    values = np.zeros(d)
    values[: min(k, d) : 2] = 1.5
    data = codec.encode([Sparse(values, k, width)], 0, 0, 0, exact)
    assert codec.size(data).bits == sparse_bits(min(k, d), d, width)
    np.testing.assert_array_equal(codec.decode(data, [0], exact).parts[0], values)


@pytest.mark.parametrize("width", [13, 16, 20, 30, 32, 48, 63, 64])
def test_codec_floats_are_the_nearest_of_their_width(width):
    values = np.concatenate([RNG.normal(size=50) * 100, [0.0, -0.0, np.inf, -np.inf, 1.0, -2.0]])
    got = to_floats(unpacked(packed(from_floats(values, width), width), width), width)
    fraction = {16: 10, 32: 23, 64: 52}.get(width, width - 12)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(got[~finite], values[~finite])
    np.testing.assert_allclose(got[finite], values[finite], rtol=2.0 ** -(fraction + 1), atol=0)
    if width < 64:
        assert not np.array_equal(got, values)


@pytest.mark.parametrize("width", [12, 65])
def test_codec_a_float_of_another_width_is_refused(width):
    with pytest.raises(ReplifedError, match=f"a float of {width} bits: a float on the wire has 13 to 64"):
        from_floats(np.ones(1), width)
