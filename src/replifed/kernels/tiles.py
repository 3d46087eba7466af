"""Products of matrices too small, narrow or tall for BLAS to be at its best, with samples where they lie.

A tile of the product, so many rows by 64 bytes of columns, is summed in registers from first to last.
Compilers do not find this form by themselves, so that it is stated in LLVM's own terms, with vectors of 64
bytes, which LLVM splits where a processor has shorter ones. The sums are the same with all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import literally, types
from numba.core import cgutils
from numba.extending import intrinsic

from replifed.kernels import compiled
from replifed.kernels.linear import accumulate, predict

# With six rows, a tile's twelve sums and the factors fill the 16 registers of AVX2.
_TILE_BYTES = 64
_FLAGS = ("contract",)
# So many rows of a tall matrix stay in the cache from one vector, or one tile's columns, to the next.
_TALL_ROWS = 16
_TALL_TILES = 48


def _tile(rows: int) -> Callable:
    """Return a compiled f(A, chosen, used, j, B, c, C, across) that writes a tile of C: from row j, column c.

    With M = A[chosen][:, used], of M B, or where `across` is literally True of M' B.
    """

    @intrinsic(prefer_literal=True)
    def tile(typing: Any, A: Any, chosen: Any, used: Any, j: Any, B: Any, c: Any, C: Any, across: Any) -> Any:
        transposed = across.literal_value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_data_type(A.dtype)
            size = context.get_abi_sizeof(element)
            vector = ir.VectorType(element, _TILE_BYTES // size)
            first, rows_named, columns_named, j, second, c, product, _ = arguments
            a = _Matrix(context, builder, A, first)
            b = _Matrix(context, builder, B, second)
            out = _Matrix(context, builder, C, product)
            of_row = context.make_array(chosen)(context, builder, rows_named).data
            of_column = context.make_array(used)(context, builder, columns_named).data

            def pick(names: Any, place: Any) -> Any:
                return builder.load(builder.gep(names, [place]))

            # Where the tile's rows begin in A, and by what they go on from term to term of a sum.
            places = [builder.add(j, _whole(r)) for r in range(rows)]
            if transposed:
                starts = [a.at(_whole(0), pick(of_column, k)) for k in places]
            else:
                starts = [a.at(pick(of_row, k), _whole(0)) for k in places]
            sums = [cgutils.alloca_once(builder, vector) for _ in range(rows)]
            for total in sums:
                builder.store(ir.Constant(vector, [0.0] * vector.count), total)
            with cgutils.for_range(builder, b.length) as loop:
                k = loop.index
                names, stride = (of_row, a.strides[0]) if transposed else (of_column, a.strides[1])
                step = builder.mul(pick(names, k), stride)
                columns = builder.load(b.vector(vector, k, c), align=size)
                for start, total in zip(starts, sums, strict=True):
                    place = builder.bitcast(builder.gep(start, [step]), element.as_pointer())
                    factor = _spread(builder, builder.load(place), vector)
                    term = builder.fmul(factor, columns, flags=_FLAGS)
                    builder.store(builder.fadd(builder.load(total), term, flags=_FLAGS), total)
            for row, total in zip(places, sums, strict=True):
                builder.store(builder.load(total), out.vector(vector, row, c), align=size)
            return context.get_dummy_value()

        return types.void(A, chosen, used, types.int64, B, types.int64, C, across), generate

    return tile


class _Matrix:
    """Where the entries of an array of two axes lie."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self._builder = builder
        self._data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        self.strides = cgutils.unpack_tuple(builder, array.strides, 2)
        self.length = cgutils.unpack_tuple(builder, array.shape, 2)[0]

    def at(self, row: Any, column: Any) -> Any:
        """Address of an entry."""
        places = (self._builder.mul(i, stride) for i, stride in zip((row, column), self.strides, strict=True))
        return self._builder.gep(self._data, [self._builder.add(*places)])

    def vector(self, vector: Any, row: Any, column: Any) -> Any:
        """Address of the vector that begins at an entry."""
        return self._builder.bitcast(self.at(row, column), vector.as_pointer())


def _spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """The vector with `scalar` in every place."""
    lane, nothing = ir.IntType(32), ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, scalar, ir.Constant(lane, 0))
    everywhere = ir.Constant(ir.VectorType(lane, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, nothing, everywhere)


def _whole(number: int) -> Any:
    return ir.Constant(ir.IntType(64), number)


_six, _four, _two, _one = (_tile(rows) for rows in (6, 4, 2, 1))


@compiled
def padded(columns, itemsize):
    """The least multiple of a tile's width that is at least `columns`."""
    width = _TILE_BYTES // itemsize
    return (columns + width - 1) // width * width


@compiled
def products(A, chosen, used, B, C):
    """C = M B for M = A[chosen][:, used], its rows and columns, B (columns, p) and C (rows, p), of one type.

    With at least as many columns p as a tile has: `padded(1, A.itemsize)`. B and C are in C order.
    """
    _fill(A, chosen, used, B, C, False)


@compiled
def transposed_products(A, chosen, used, B, C):
    """C = M' B for B (rows, p) and C (columns, p), else as `products`."""
    _fill(A, chosen, used, B, C, True)


@compiled
def _fill(A, chosen, used, B, C, across):
    """Write C tile by tile; `across` is a constant, so that each of its values is compiled apart."""
    literally(across)
    (rows, columns), width = C.shape, _TILE_BYTES // A.itemsize
    for start in range(0, columns, width):
        # The last tiles overlap those before them where the columns do not fill them.
        c = min(start, columns - width)
        j = 0
        while rows - j >= 6:
            _six(A, chosen, used, j, B, c, C, across)
            j += 6
        if rows - j >= 4:
            _four(A, chosen, used, j, B, c, C, across)
            j += 4
        if rows - j >= 2:
            _two(A, chosen, used, j, B, c, C, across)
            j += 2
        if rows - j == 1:
            _one(A, chosen, used, j, B, c, C, across)


@compiled
def stacked_products(A, B, C):
    """C_i = A_i B_i for stacks (N, n, d), (N, d, p) and (N, n, p) with p as in `products`."""
    everyone, every_column = np.arange(A.shape[1]), np.arange(A.shape[2])
    for i in range(len(A)):
        products(A[i], everyone, every_column, B[i], C[i])


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
    everyone, width, d = np.arange(len(A)), _TILE_BYTES // A.itemsize, len(B)
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
