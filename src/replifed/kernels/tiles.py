"""Products of matrices too small, narrow or tall for BLAS to be at its best, with samples where they lie.

A tile of the product, so many rows by 64 bytes of columns, is summed in registers from first to last.
Compilers do not find this form by themselves, so that it is stated in LLVM's own terms, with vectors of 64
bytes, which LLVM splits where a processor has shorter ones. The sums are the same with all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import accumulate, predict

# With six rows, a tile's twelve sums and the factors fill the 16 registers of AVX2.
_TILE_ROWS = 6
TILE_BYTES = 64
_FLAGS = ("contract",)
# Vectors to copy are shorter, so that some fit into the columns that one run has of a tile.
_COPIED = 4
# So many rows of a tall matrix stay in the cache from one vector, or one tile's columns, to the next.
_TALL_ROWS = 16
_TALL_TILES = 48


@intrinsic
def _tile(
    typing: Any, A: Any, rows: Any, row: Any, terms: Any, term: Any, B: Any, C: Any, j: Any, c: Any
) -> Any:
    """Write a tile of C = M B, from row j and column c on.

    M[r, k] is the number in A at rows[r] times `row`, plus terms[k] times `term`, bytes. Beyond the last row
    the tile repeats it: a tile of fewer rows would be hardly faster, and is one more to compile.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(A.dtype)
        size = context.get_abi_sizeof(element)
        vector = ir.VectorType(element, TILE_BYTES // size)
        first, rows_named, row_step, terms_named, term_step, second, result, j, c = arguments
        a = builder.bitcast(context.make_array(A)(context, builder, first).data, ir.IntType(8).as_pointer())
        b = _Matrix(context, builder, B, second)
        out = _Matrix(context, builder, C, result)
        of_row = context.make_array(rows)(context, builder, rows_named).data
        of_term = context.make_array(terms)(context, builder, terms_named).data

        def pick(names: Any, place: Any, step: Any) -> Any:
            return builder.mul(builder.load(builder.gep(names, [place])), step)

        last = builder.sub(out.length, _whole(1))
        places = [builder.add(j, _whole(r)) for r in range(_TILE_ROWS)]
        places = [builder.select(builder.icmp_signed("<", k, last), k, last) for k in places]
        starts = [builder.gep(a, [pick(of_row, k, row_step)]) for k in places]
        sums = [cgutils.alloca_once(builder, vector) for _ in places]
        for total in sums:
            builder.store(ir.Constant(vector, [0.0] * vector.count), total)
        with cgutils.for_range(builder, b.length) as loop:
            step = pick(of_term, loop.index, term_step)
            columns = builder.load(b.vector(vector, loop.index, c), align=size)
            for start, total in zip(starts, sums, strict=True):
                place = builder.bitcast(builder.gep(start, [step]), element.as_pointer())
                factor = _spread(builder, builder.load(place), vector)
                product = builder.fmul(factor, columns, flags=_FLAGS)
                builder.store(builder.fadd(builder.load(total), product, flags=_FLAGS), total)
        for k, total in zip(places, sums, strict=True):
            builder.store(builder.load(total), out.vector(vector, k, c), align=size)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(A, rows, whole, terms, whole, B, C, whole, whole), generate


@intrinsic
def _copy(typing: Any, A: Any, i: Any, k: Any, B: Any, j: Any, c: Any) -> Any:
    """Copy a `_COPIED`-th of a tile's width of numbers, from A[i, k] on, to B[j, c] and on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(A.dtype)
        size = context.get_abi_sizeof(element)
        vector = ir.VectorType(element, TILE_BYTES // (_COPIED * size))
        first, i, k, second, j, c = arguments
        source = _Matrix(context, builder, A, first).vector(vector, i, k)
        target = _Matrix(context, builder, B, second).vector(vector, j, c)
        builder.store(builder.load(source, align=size), target, align=size)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(A, whole, whole, B, whole, whole), generate


class _Matrix:
    """Where the entries of an array of two axes lie."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self._builder = builder
        self._data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        self._strides = cgutils.unpack_tuple(builder, array.strides, 2)
        self.length = cgutils.unpack_tuple(builder, array.shape, 2)[0]

    def vector(self, vector: Any, row: Any, column: Any) -> Any:
        """Address of the vector that begins at an entry."""
        build = self._builder
        place = build.add(*(build.mul(i, step) for i, step in zip((row, column), self._strides, strict=True)))
        return build.bitcast(build.gep(self._data, [place]), vector.as_pointer())


def _spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """The vector with `scalar` in every place."""
    lane, nothing = ir.IntType(32), ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, scalar, ir.Constant(lane, 0))
    everywhere = ir.Constant(ir.VectorType(lane, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, nothing, everywhere)


def _whole(number: int) -> Any:
    return ir.Constant(ir.IntType(64), number)


@compiled
def padded(columns, itemsize):
    """The least multiple of a tile's width that is at least `columns`."""
    width = TILE_BYTES // itemsize
    return (columns + width - 1) // width * width


@compiled
def products(A, chosen, used, B, C):
    """C = M B for M = A[chosen][:, used], its rows and columns, B (columns, p) and C (rows, p), of one type.

    With at least as many columns p as a tile has: `padded(1, A.itemsize)`. B and C are in C order.
    """
    _fill(A, chosen, A.strides[0], used, A.strides[1], B, C)


@compiled
def transposed_products(A, chosen, used, B, C):
    """C = M' B for B (rows, p) and C (columns, p), else as `products`."""
    _fill(A, used, A.strides[1], chosen, A.strides[0], B, C)


@compiled_within
def _fill(A, rows, row, terms, term, B, C):
    """Write C tile by tile; all else is as in `_tile`."""
    (n, columns), width = C.shape, TILE_BYTES // A.itemsize
    for start in range(0, columns, width):
        # The last tiles overlap those before them where the columns do not fill them.
        c = min(start, columns - width)
        for j in range(0, n, _TILE_ROWS):
            _tile(A, rows, row, terms, term, B, C, j, c)


@compiled_within
def copy_columns(A, rows, c, B, places, q, n):
    """B[places, q : q + n] = A[rows, c : c + n], a vector at a time."""
    width = TILE_BYTES // (_COPIED * A.itemsize)
    if n < width:
        for j in range(len(rows)):
            for k in range(n):
                B[places[j], q + k] = A[rows[j], c + k]
        return
    for begin in range(0, n, width):
        # The last vectors overlap those before them where they do not fill the columns.
        k = min(begin, n - width)
        for j in range(len(rows)):
            _copy(A, rows[j], c + k, B, places[j], q + k)


@compiled
def tall_products(A, vectors, z):
    """z_c = A u_c for a tall A (n, d), vectors u_c (c, d) and z (c, n); reads A from memory once for all."""
    everyone = np.arange(len(A))
    for first in range(0, len(A), _TALL_ROWS):
        rows = everyone[first : first + _TALL_ROWS]
        for c in range(len(vectors)):
            predict(A, rows, vectors[c], z[c, first : first + _TALL_ROWS])


@compiled
def tall_transposed_products(A, vectors, g):
    """g_c = A' r_c for vectors r_c (c, n) and g (c, d), else as `tall_products`."""
    everyone = np.arange(len(A))
    g[:] = 0
    for first in range(0, len(A), _TALL_ROWS):
        rows = everyone[first : first + _TALL_ROWS]
        for c in range(len(vectors)):
            accumulate(A, rows, vectors[c, first : first + _TALL_ROWS], g[c])


@compiled
def tall_products_in_tiles(A, B, C):
    """C = A B with columns that fill their tiles, fast where those of a tile share most of their zeros.

    Rows of B that are zero in a whole tile add nothing, and are left out there.
    """
    everyone, width, d = np.arange(len(A)), TILE_BYTES // A.itemsize, len(B)
    tiles = B.shape[1] // width
    used, count, packed = (
        np.empty((tiles, d), np.intp),
        np.zeros(tiles, np.intp),
        np.empty((tiles, d, width), B.dtype),
    )
    for tile in range(tiles):
        for k in range(d):
            row, kept = B[k, tile * width : (tile + 1) * width], packed[tile, count[tile]]
            some = False
            for c in range(width):
                kept[c] = row[c]
                some |= row[c] != 0
            # Without a branch: the next one overwrites what is zero.
            used[tile, count[tile]] = k
            count[tile] += some
    for first in range(0, len(A), _TALL_TILES):
        rows = slice(first, first + _TALL_TILES)
        for tile in range(tiles):
            n, columns = count[tile], slice(tile * width, (tile + 1) * width)
            products(A, everyone[rows], used[tile, :n], packed[tile, :n], C[rows, columns])
