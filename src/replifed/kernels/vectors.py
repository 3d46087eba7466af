"""Vectors of the processor, in LLVM's own terms, for what compilers do not find in loops by themselves."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

# Those of this processor, unless numba is told to compile for another.
_FEATURES = config.CPU_FEATURES
if _FEATURES is None:
    _FEATURES = get_host_cpu_features()
AVX512 = "+avx512f" in _FEATURES
"""Whether there are 32 registers of 64 bytes, and masks that say which of a vector's numbers to store."""
VECTOR_BYTES = 64 if AVX512 else 32


def spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """The vector with `scalar` in every lane."""
    nothing, number = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(nothing, scalar, ir.Constant(number, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(number, vector.count), None))


def _appending(places: bool) -> Any:
    """Return `append_between`, or the same for `places`: k, k + 1, ... in place of the magnitudes."""

    @intrinsic
    def append(typing: Any, bits: Any, k: Any, most: Any, low: Any, high: Any, out: Any, n: Any) -> Any:
        element = bits.dtype

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = context.get_data_type(element)
            lanes = VECTOR_BYTES // context.get_abi_sizeof(number)
            vector, marks = ir.VectorType(number, lanes), ir.VectorType(ir.IntType(1), lanes)
            source, k, most, low, high, sink, n = arguments
            source, sink = (
                context.make_array(kind)(context, builder, array).data
                for kind, array in ((bits, source), (out, sink))
            )
            most, low, high = (
                spread(builder, context.cast(builder, value, kind, element), vector)
                for value, kind in zip((most, low, high), signature.args[2:5], strict=True)
            )
            first = builder.bitcast(builder.gep(source, [k]), vector.as_pointer())
            magnitudes = builder.and_(builder.load(first, align=context.get_abi_sizeof(number)), most)
            wanted = builder.and_(
                builder.icmp_signed(">", magnitudes, low), builder.icmp_signed("<=", magnitudes, high)
            )
            appended = magnitudes
            if places:
                begin = context.cast(builder, k, types.int64, element)
                counted = ir.Constant(vector, list(range(lanes)))
                appended = builder.add(spread(builder, begin, vector), counted)
            store = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [vector, number.as_pointer(), marks]),
                f"llvm.masked.compressstore.v{lanes}i{number.width}",
            )
            builder.call(store, [appended, builder.gep(sink, [n]), wanted])
            found = builder.ctpop(builder.bitcast(wanted, ir.IntType(lanes)))
            return builder.add(n, builder.zext(found, n.type))

        return types.int64(bits, types.int64, most, low, high, out, types.int64), generate

    return append


append_between = _appending(places=False)
"""f(bits, k, most, low, high, out, n): append to the first `n` of `out` the magnitudes in (low, high] of the
vector bits[k:], in order, and return how many there are then.

Arrays of whole numbers of one type, each in one piece; a magnitude is what `& most` leaves of a number. Only
what is appended is written. Fast where `AVX512`.
"""
append_places_between = _appending(places=True)
"""The same, which appends where these magnitudes stand in `bits`."""

DOUBLES = VECTOR_BYTES // 8
"""Doubles in a vector."""


@intrinsic
def sum_gathered(typing: Any, table: Any, places: Any, k: Any, length: Any, out: Any, j: Any) -> Any:
    """Fill the vector out[j:] with the sum of `length` vectors: table[places[k:]], that DOUBLES further, ...

    `table` and `out` are of doubles, `places` of whole numbers without a sign; each in one piece.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (table, places, k, length, out, j), kinds = arguments, signature.args
        number, whole, one = ir.DoubleType(), ir.IntType(64), context.get_data_type(kinds[1].dtype)
        vector, wide, narrow, marks = (
            ir.VectorType(kind, DOUBLES) for kind in (number, whole, one, ir.IntType(1))
        )
        addresses = ir.VectorType(number.as_pointer(), DOUBLES)
        table, places, out = (
            context.make_array(kinds[place])(context, builder, array).data
            for place, array in ((0, table), (1, places), (4, out))
        )
        gather = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [addresses, ir.IntType(32), marks, vector]),
            f"llvm.masked.gather.v{DOUBLES}f64.v{DOUBLES}p0",
        )
        begin = spread(builder, builder.ptrtoint(table, whole), wide)
        nothing, everywhere = ir.Constant(vector, [0.0] * DOUBLES), ir.Constant(marks, [1] * DOUBLES)
        total = cgutils.alloca_once(builder, vector)
        builder.store(nothing, total)
        with cgutils.for_range(builder, length) as loop:
            at = builder.add(k, builder.mul(loop.index, ir.Constant(whole, DOUBLES)))
            read = builder.bitcast(builder.gep(places, [at]), narrow.as_pointer())
            found = builder.zext(builder.load(read, align=one.width // 8), wide)
            offsets = builder.shl(found, ir.Constant(wide, [3] * DOUBLES))
            pointers = builder.inttoptr(builder.add(begin, offsets), addresses)
            terms = builder.call(gather, [pointers, ir.Constant(ir.IntType(32), 8), everywhere, nothing])
            builder.store(builder.fadd(builder.load(total), terms), total)
        filled = builder.bitcast(builder.gep(out, [j]), vector.as_pointer())
        builder.store(builder.load(total), filled, align=8)
        return context.get_dummy_value()

    return types.void(table, places, types.int64, types.int64, out, types.int64), generate
