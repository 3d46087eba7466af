"""The processor's vectors as variables of kernels: what numpy does with arrays, or a refusal."""

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from replifed.kernels import compiled
from replifed.kernels.gathered import sum_gathered
from replifed.kernels.vectors import (
    AVX512,
    DOUBLES,
    VECTOR_BYTES,
    append,
    as_whole,
    counted_from,
    everywhere,
    in_lanes,
    lane_sum,
    read,
    read_marks,
    write,
    write_marks,
)

needs_masks = pytest.mark.skipif(not AVX512, reason="this processor has no masks (AVX-512)")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@compiled
def _real(a, b, out):
    one, other = read(a, 0), read(b, DOUBLES)
    write(one * other - everywhere(0.5) + in_lanes(3.0, 2), out, 0)
    return lane_sum(one - other)


@compiled
def _whole(a, out):
    numbers = read(a, 0) & everywhere(a.dtype.type(0xFF))
    write(numbers + counted_from(a.dtype.type(7)), out, 0)


@compiled
def _bits(a, out):
    write(as_whole(read(a, 0)), out, 0)


@compiled
def _pack(numbers, low, high, marks, out, places):
    lanes = VECTOR_BYTES // numbers.itemsize
    least, most, n, m = everywhere(low), everywhere(high), 0, 0
    for k in range(0, len(numbers), lanes):
        each = read(numbers, k)
        wanted = (each > least) & (each <= most)
        n = append(each, wanted, out, n)
        write_marks(wanted, marks, k)
    here, step = counted_from(np.int32(0)), everywhere(np.int32(VECTOR_BYTES // 4))
    for k in range(0, len(numbers), VECTOR_BYTES // 4):
        m = append(here, read_marks(here, marks, k), places, m)
        here = here + step
    return n, m


@compiled
def _gathered(table, places, factors, length, out):
    write(sum_gathered(table, places, factors, DOUBLES, length), out, DOUBLES)


def test_arithmetic_is_lane_by_lane(rng):
    a, b, out = rng.standard_normal((3, 2 * DOUBLES))
    total = _real(a, b, out)
    third = np.where(np.arange(DOUBLES) & 2, 3.0, 0.0)
    np.testing.assert_allclose(out[:DOUBLES], a[:DOUBLES] * b[DOUBLES:] - 0.5 + third, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(total, (a[:DOUBLES] - b[DOUBLES:]).sum(), rtol=1e-13)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_whole_numbers_are_counted_and_masked(kind, rng):
    lanes = VECTOR_BYTES // np.dtype(kind).itemsize
    a, out = rng.integers(-(1 << 30), 1 << 30, (2, lanes)).astype(kind)
    _whole(a, out)
    np.testing.assert_array_equal(out, (a & 0xFF) + 7 + np.arange(lanes))


def test_bits_of_doubles_are_whole_numbers(rng):
    a, out = rng.standard_normal(DOUBLES), np.zeros(DOUBLES, np.int64)
    _bits(a, out)
    np.testing.assert_array_equal(out, a.view(np.int64))


@needs_masks
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("high", [-1, 10, 90])
def test_what_is_marked_is_packed_in_order(kind, high, rng):
    numbers = rng.integers(0, 100, 16 * 9).astype(kind)
    out, marks = np.zeros(len(numbers) + 16, kind), np.zeros(len(numbers) // 8, np.uint8)
    places = np.zeros(len(numbers) + 16, np.int32)
    n, m = _pack(numbers, kind(5), kind(high), marks, out, places)
    wanted = np.flatnonzero((numbers > 5) & (numbers <= high))
    np.testing.assert_array_equal(out[:n], numbers[wanted])
    np.testing.assert_array_equal(places[:m], wanted)
    np.testing.assert_array_equal(np.unpackbits(marks, bitorder="little").nonzero()[0], wanted)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("multiplied", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 30])
def test_gathered_terms_are_added_lane_by_lane(kind, multiplied, length, rng):
    table = rng.standard_normal(50_000)
    places = rng.integers(0, len(table), (length + 1, DOUBLES)).astype(kind)
    factors = rng.standard_normal(places.shape if multiplied else (0, DOUBLES))
    out = np.full(3 * DOUBLES, 7.0)
    _gathered(table, places.ravel(), factors.ravel(), length, out)
    terms = table[places[1:]] * (factors[1:] if multiplied else 1.0)
    np.testing.assert_allclose(out[DOUBLES:-DOUBLES], terms.sum(axis=0), atol=1e-13)
    assert (out[:DOUBLES] == 7.0).all() and (out[-DOUBLES:] == 7.0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: read(a[::2], 0),
        lambda a: write(everywhere(1), a, 0),
        lambda a: read(a, 0) > everywhere(0.0),
        lambda a: append(read(a, 0), as_whole(read(a, 0)) > everywhere(0), a, 0),
        lambda a: in_lanes(a[0], len(a)),
        lambda a: read(a, 0) + counted_from(1),
        lambda a: counted_from(1.0),
        lambda a: everywhere(np.uint64(1)) > everywhere(np.uint64(2)),
        lambda a: (everywhere(1) > everywhere(0)) + (everywhere(1) > everywhere(0)),
        lambda a: write_marks(everywhere(1) > everywhere(0), a, 0),
        lambda a: sum_gathered(a[::2], np.zeros(8, np.uint16), a, 0, 1),
        lambda a: sum_gathered(a.astype(np.float32), np.zeros(8, np.uint16), a, 0, 1),
        lambda a: sum_gathered(a, np.zeros(8, np.int16), a, 0, 1),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_compiled(wrong):
    with pytest.raises(TypingError):
        numba.njit(wrong)(np.zeros(64))
