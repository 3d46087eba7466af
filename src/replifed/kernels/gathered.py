"""Sums of numbers that stand anywhere in a table, as many at once as a vector has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from replifed.kernels.vectors import AVX512, DOUBLES, LINE_BYTES, Register, in_one_piece, place_in, spread

# So many places ahead of those that are read, the next ones are asked for: the processor's own guesses are
# late where they lie in memory.
_AHEAD = 2048
# Sums of so few terms have code of their own, without a loop whose end the processor would have to guess.
_FEW = 8
_DOUBLES = ir.VectorType(ir.DoubleType(), DOUBLES)
_WHOLE = ir.IntType(64)


@intrinsic
def sum_gathered(typing: Any, table: Any, places: Any, factors: Any, k: Any, length: Any) -> Any:
    """The register of DOUBLES sums of `length` terms.

    The first terms are table[places[k:]] times factors[k:], the next ones those that stand DOUBLES further,
    and so on; if `factors` is empty they are not multiplied. `table` and `factors` are of doubles, `places`
    of whole numbers without a sign, below 2^31; each in one piece.
    """
    for array in (table, places, factors):
        in_one_piece(array)
    if {table.dtype, factors.dtype} != {types.float64} or getattr(places.dtype, "signed", True):
        raise TypingError(f"a table of {table}, {places} of it and {factors}")
    place_bytes = places.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table_, places_, factors_, k, length = arguments
        numbers = ir.VectorType(context.get_data_type(places.dtype), DOUBLES)
        start = place_in(context, builder, table, table_, ir.Constant(_WHOLE, 0), _DOUBLES.element)
        first = place_in(context, builder, places, places_, k, numbers)
        factor = place_in(context, builder, factors, factors_, k, _DOUBLES)

        def term(j: Any) -> Any:
            read = builder.load(builder.gep(first, [j]), align=place_bytes)
            return _gather(builder, start, read)

        def product(j: Any) -> Any:
            return builder.fmul(builder.load(builder.gep(factor, [j]), align=8), term(j))

        def ask(j: Any) -> None:
            ahead = builder.add(j, ir.Constant(_WHOLE, _AHEAD // DOUBLES))
            _prefetch(builder, builder.gep(first, [ahead]))

        total = cgutils.alloca_once(builder, _DOUBLES)
        size = context.make_array(factors)(context, builder, factors_).nitems
        plain = builder.icmp_signed("==", size, ir.Constant(size.type, 0))
        with builder.if_else(plain) as (without, multiplied):
            with without:
                lines = LINE_BYTES // (DOUBLES * place_bytes)
                _add_few_or_many(builder, term, ask, lines, length, total)
            with multiplied:
                _add_many(builder, product, ask, length, total)
        return builder.load(total)

    kinds = table, places, factors, types.int64, types.int64
    return Register(types.float64, DOUBLES)(*kinds), generate


def _add_few_or_many(
    builder: Any, term: Callable, ask: Callable, per_line: int, length: Any, total: Any
) -> None:
    """Store the sum of the vectors that `term` gives for 0 to length - 1.

    So many vectors of places share a line.
    """
    many, done = builder.append_basic_block("many"), builder.append_basic_block("done")
    cases = builder.switch(length, many)
    for n in range(1, _FEW + 1):
        few = builder.append_basic_block(f"of_{n}")
        cases.add_case(ir.Constant(_WHOLE, n), few)
        builder.position_at_end(few)
        found = None
        for j in (ir.Constant(_WHOLE, j) for j in range(n)):
            if j.constant % per_line == 0:
                ask(j)
            found = term(j) if found is None else builder.fadd(found, term(j))
        builder.store(found, total)
        builder.branch(done)
    builder.position_at_end(many)
    _add_many(builder, term, ask, length, total)
    builder.branch(done)
    builder.position_at_end(done)


def _add_many(builder: Any, term: Callable, ask: Callable, length: Any, total: Any) -> None:
    """The same in a loop."""
    builder.store(ir.Constant(_DOUBLES, [0.0] * DOUBLES), total)
    with cgutils.for_range(builder, length) as loop:
        ask(loop.index)
        builder.store(builder.fadd(builder.load(total), term(loop.index)), total)


def _gather(builder: Any, table: Any, places: Any) -> Any:
    """The vector of doubles that stand at `places` of `table`."""
    number, byte = ir.IntType(32), ir.IntType(8)
    marks = ir.VectorType(ir.IntType(1), DOUBLES)
    nothing, everywhere = ir.Constant(_DOUBLES, [0.0] * DOUBLES), ir.Constant(marks, [1] * DOUBLES)
    if AVX512:
        # The instruction itself: of addresses that are computed LLVM leaves two additions more.
        short = ir.VectorType(number, DOUBLES)
        gather = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_DOUBLES, [_DOUBLES, byte.as_pointer(), short, marks, number]),
            "llvm.x86.avx512.mask.gather.dpd.512",
        )
        base = builder.bitcast(table, byte.as_pointer())
        return builder.call(
            gather, [nothing, base, _widened(builder, places, short), everywhere, ir.Constant(number, 8)]
        )
    wide = ir.VectorType(_WHOLE, DOUBLES)
    addresses = ir.VectorType(_DOUBLES.element.as_pointer(), DOUBLES)
    gather = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_DOUBLES, [addresses, number, marks, _DOUBLES]),
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
