"""Vectors of the processor, in LLVM's own terms, for what compilers do not find in loops by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.core.errors import TypingError
from numba.extending import intrinsic

# Those of this processor, unless numba is told to compile for another.
_FEATURES = config.CPU_FEATURES
if _FEATURES is None:
    _FEATURES = get_host_cpu_features()
AVX512 = "+avx512f" in _FEATURES
"""Whether there are 32 registers of 64 bytes, and masks that say which of a vector's numbers to store."""
VECTOR_BYTES = 64 if AVX512 else 32
LINE_BYTES = 64
"""What caches hold and read at once."""


def spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """The vector with `scalar` in every lane."""
    nothing, number = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(nothing, scalar, ir.Constant(number, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(number, vector.count), None))


def _check_alike(*arrays: Any) -> None:
    """Refuse, when a kernel is compiled, arrays in several pieces or of several types."""
    if any(array.layout != "C" or array.dtype != arrays[0].dtype for array in arrays):
        raise TypingError(f"arrays in one piece and of one type, not {', '.join(map(str, arrays))}")


class _Appending:
    """Code that goes through arrays of whole numbers of one type by vectors, and packs some into another.

    What is left over of the arrays when no vector is full any more is not read.
    """

    def __init__(self, context: Any, builder: Any, element: Any) -> None:
        self.context, self.builder, self.element = context, builder, element
        self.number = context.get_data_type(element)
        self.bytes = context.get_abi_sizeof(self.number)
        self.lanes = VECTOR_BYTES // self.bytes
        self.vector = ir.VectorType(self.number, self.lanes)
        self.marks = ir.VectorType(ir.IntType(1), self.lanes)

    def data(self, kind: Any, array: Any) -> Any:
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def vectors(self, kind: Any, array: Any) -> Any:
        """How many fill up an array."""
        size = self.context.make_array(kind)(self.context, self.builder, array).nitems
        return self.builder.sdiv(size, ir.Constant(size.type, self.lanes))

    def spread(self, value: Any, kind: Any) -> Any:
        return spread(self.builder, self.context.cast(self.builder, value, kind, self.element), self.vector)

    def read(self, data: Any, k: Any) -> Any:
        """The vector of number k."""
        first = self.builder.gep(data, [self.builder.mul(k, ir.Constant(k.type, self.lanes))])
        return self.builder.load(self.builder.bitcast(first, self.vector.as_pointer()), align=self.bytes)

    def run(self, vectors: Any, out: Any, step: Callable[[Any], tuple[Any, Any]]) -> Any:
        """Pack those that `step` marks of the numbers that it gives of each vector; return how many."""
        builder, whole = self.builder, ir.IntType(64)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.vector, [self.vector, self.vector, self.marks]),
            f"llvm.x86.avx512.mask.compress.v{self.lanes}i{self.number.width}",
        )
        found = cgutils.alloca_once_value(builder, ir.Constant(whole, 0))
        with cgutils.for_range(builder, vectors) as loop:
            numbers, wanted = step(loop.index)
            n = builder.load(found)
            end = builder.bitcast(builder.gep(out, [n]), self.vector.as_pointer())
            builder.store(builder.call(compress, [numbers, numbers, wanted]), end, align=self.bytes)
            count = builder.ctpop(builder.bitcast(wanted, ir.IntType(self.lanes)))
            builder.store(builder.add(n, builder.zext(count, whole)), found)
        return builder.load(found)


@intrinsic
def pack_between(typing: Any, bits: Any, most: Any, low: Any, high: Any, out: Any) -> Any:
    """Fill `out` with the magnitudes of `bits` in (low, high], in order, and return how many there are.

    Arrays of whole numbers of one type, each in one piece; a magnitude is what `& most` leaves of a number.
    What does not fill a vector at the end of `bits` is left out. `out` is at least as long; behind what is
    returned it may be overwritten. Needs `AVX512`, as do the other two.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code, kinds = _Appending(context, builder, bits.dtype), signature.args
        source, sink = code.data(kinds[0], arguments[0]), code.data(kinds[4], arguments[4])
        kept, least, top = (code.spread(arguments[place], kinds[place]) for place in (1, 2, 3))

        def step(k: Any) -> tuple[Any, Any]:
            numbers = builder.and_(code.read(source, k), kept)
            above = builder.icmp_signed(">", numbers, least)
            return numbers, builder.and_(above, builder.icmp_signed("<=", numbers, top))

        return code.run(code.vectors(kinds[0], arguments[0]), sink, step)

    _check_alike(bits, out)
    return types.int64(bits, most, low, high, out), generate


@intrinsic
def pack_places_above(typing: Any, bits: Any, most: Any, low: Any, out: Any) -> Any:
    """The same with where the magnitudes above `low` stand."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code, kinds = _Appending(context, builder, bits.dtype), signature.args
        source, sink = code.data(kinds[0], arguments[0]), code.data(kinds[3], arguments[3])
        kept, least = (code.spread(arguments[place], kinds[place]) for place in (1, 2))
        # Counted on from vector to vector: to spread a number takes as long as to compare.
        here = cgutils.alloca_once_value(builder, ir.Constant(code.vector, list(range(code.lanes))))

        def step(k: Any) -> tuple[Any, Any]:
            numbers, places = builder.and_(code.read(source, k), kept), builder.load(here)
            builder.store(builder.add(places, ir.Constant(code.vector, [code.lanes] * code.lanes)), here)
            return places, builder.icmp_signed(">", numbers, least)

        return code.run(code.vectors(kinds[0], arguments[0]), sink, step)

    _check_alike(bits, out)
    return types.int64(bits, most, low, out), generate


@intrinsic
def pack_others_above(typing: Any, numbers: Any, low: Any, others: Any, out: Any) -> Any:
    """The same with those of `others` that stand where `numbers` exceed `low`; `out` may be `others`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code, kinds = _Appending(context, builder, numbers.dtype), signature.args
        source, partner, sink = (code.data(kinds[place], arguments[place]) for place in (0, 2, 3))
        least = code.spread(arguments[1], kinds[1])

        def step(k: Any) -> tuple[Any, Any]:
            return code.read(partner, k), builder.icmp_signed(">", code.read(source, k), least)

        return code.run(code.vectors(kinds[0], arguments[0]), sink, step)

    _check_alike(numbers, others, out)
    return types.int64(numbers, low, others, out), generate


DOUBLES = VECTOR_BYTES // 8
"""Doubles in a vector."""
# So many places ahead of those that are read, the next ones are asked for: the processor's own guesses are
# late where they lie in memory.
_AHEAD = 2048


@intrinsic
def sum_gathered(
    typing: Any, table: Any, places: Any, k: Any, length: Any, scale: Any, out: Any, j: Any
) -> Any:
    """Fill the vector out[j:] with `scale` times the sum of `length` vectors.

    The first one is table[places[k:]], the next one that DOUBLES further, and so on. `table` and `out` are of
    doubles, `places` of whole numbers without a sign, below 2^31; each in one piece.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (table, places, k, length, scale, out, j), kinds = arguments, signature.args
        vector = ir.VectorType(ir.DoubleType(), DOUBLES)
        given = ir.VectorType(context.get_data_type(kinds[1].dtype), DOUBLES)
        table, places, out = (
            context.make_array(kinds[place])(context, builder, array).data
            for place, array in ((0, table), (1, places), (5, out))
        )
        first = builder.bitcast(builder.gep(places, [k]), given.as_pointer())
        total = cgutils.alloca_once(builder, vector)
        builder.store(ir.Constant(vector, [0.0] * DOUBLES), total)
        with cgutils.for_range(builder, length) as loop:
            here = builder.gep(first, [loop.index])
            _prefetch(builder, builder.gep(here, [ir.Constant(ir.IntType(64), _AHEAD // DOUBLES)]))
            read = builder.load(here, align=given.element.width // 8)
            terms = _gather(builder, table, read, vector)
            builder.store(builder.fadd(builder.load(total), terms), total)
        scaled = builder.fmul(builder.load(total), spread(builder, scale, vector))
        builder.store(scaled, builder.bitcast(builder.gep(out, [j]), vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(table, places, types.int64, types.int64, types.float64, out, types.int64), generate


def _gather(builder: Any, table: Any, places: Any, vector: Any) -> Any:
    """The vector of doubles that stand at `places` of `table`."""
    number, byte = ir.IntType(32), ir.IntType(8)
    marks = ir.VectorType(ir.IntType(1), DOUBLES)
    nothing, everywhere = ir.Constant(vector, [0.0] * DOUBLES), ir.Constant(marks, [1] * DOUBLES)
    if AVX512:
        # The instruction itself: of addresses that are computed LLVM leaves two additions more.
        short = ir.VectorType(number, DOUBLES)
        gather = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector, byte.as_pointer(), short, marks, number]),
            "llvm.x86.avx512.mask.gather.dpd.512",
        )
        base = builder.bitcast(table, byte.as_pointer())
        return builder.call(
            gather, [nothing, base, _widened(builder, places, short), everywhere, ir.Constant(number, 8)]
        )
    wide = ir.VectorType(ir.IntType(64), DOUBLES)
    addresses = ir.VectorType(vector.element.as_pointer(), DOUBLES)
    gather = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [addresses, number, marks, vector]),
        f"llvm.masked.gather.v{DOUBLES}f64.v{DOUBLES}p0",
    )
    begin = spread(builder, builder.ptrtoint(table, wide.element), wide)
    offsets = builder.shl(_widened(builder, places, wide), ir.Constant(wide, [3] * DOUBLES))
    pointers = builder.inttoptr(builder.add(begin, offsets), addresses)
    return builder.call(gather, [pointers, ir.Constant(number, 8), everywhere, nothing])


def _widened(builder: Any, numbers: Any, vector: Any) -> Any:
    """Whole numbers without a sign as those of another vector, of at least as many bits."""
    return numbers if numbers.type == vector else builder.zext(numbers, vector)


def _prefetch(builder: Any, address: Any) -> None:
    """Ask for what stands at an address, which may lie beyond an array's end, into the innermost cache."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    ask = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0"
    )
    builder.call(ask, [builder.bitcast(address, byte), *(ir.Constant(number, n) for n in (0, 3, 1))])
