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


@intrinsic
def append_between(typing: Any, bits: Any, k: Any, most: Any, low: Any, high: Any, out: Any, n: Any) -> Any:
    """Append to the first `n` of `out` the magnitudes in (low, high] of the vector bits[k:], in order.

    Returns how many there are then. Arrays of whole numbers of one type, each in one piece; a magnitude is
    what `& most` leaves of a number. Only what is appended is written. Fast where `AVX512`.
    """
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
        store = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [vector, number.as_pointer(), marks]),
            f"llvm.masked.compressstore.v{lanes}i{number.width}",
        )
        builder.call(store, [magnitudes, builder.gep(sink, [n]), wanted])
        found = builder.ctpop(builder.bitcast(wanted, ir.IntType(lanes)))
        return builder.add(n, builder.zext(found, n.type))

    return types.int64(bits, types.int64, most, low, high, out, types.int64), generate
