"""Vectors of the processor as variables of kernels, for what compilers do not find in loops by themselves.

A `Register` holds as many numbers of a type as fit into `VECTOR_BYTES`. Of two alike there are `+`, `-`, `*`
of floating-point numbers, and `+`, `&`, `>`, `<=` of whole ones with a sign, all lane by lane; what is
compared gives marks, one a lane, of which there is `&` alone. Arguments and results of compiled functions are
arrays, never registers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.core.errors import RequireLiteralValue, TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

# Those of this processor, unless numba is told to compile for another.
_FEATURES = config.CPU_FEATURES
if _FEATURES is None:
    _FEATURES = get_host_cpu_features()
AVX512 = "+avx512f" in _FEATURES
"""Whether there are 32 registers of 64 bytes, and masks that say which of a vector's numbers to store."""
VECTOR_BYTES = 64 if AVX512 else 32
LINE_BYTES = 64
"""What caches hold and read at once."""
DOUBLES = VECTOR_BYTES // 8
"""Doubles in a vector."""


class Register(types.Type):
    """A vector of so many numbers of a type, or of marks if these are boolean."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(f"Register({element}, {lanes})")


@register_model(Register)
class _InRegister(models.PrimitiveModel):
    def __init__(self, known: Any, kind: Register) -> None:
        super().__init__(known, kind, ir.VectorType(known.lookup(kind.element).get_value_type(), kind.lanes))


def _whole(element: Any) -> Register:
    """A whole vector of numbers of a type."""
    element = types.unliteral(element)
    if not isinstance(element, types.Integer | types.Float):
        raise TypingError(f"no vectors of {element}")
    return Register(element, 8 * VECTOR_BYTES // element.bitwidth)


def _marks(kind: Register) -> Register:
    return Register(types.boolean, kind.lanes)


# -- operators ----------------------------------------------------------------------------------

# A product may be fused with the sum that it is a term of; no more than that, whatever else a kernel allows.
_FLAGS = ("contract",)


def _define(symbol: Callable, real: Callable | None, whole: Callable | None, compares: bool = False) -> None:
    """Let kernels apply an operator to two registers alike.

    Parameters
    ----------
    symbol : of the module operator
    real, whole : callable, or None
        What LLVM's builder does for floating-point numbers, and for whole ones with a sign; `&` of marks is
        that of whole numbers.
    compares : bool
        Whether it gives marks.
    """

    def code_for(kind: Register) -> Callable | None:
        if isinstance(kind.element, types.Float):
            return real
        if isinstance(kind.element, types.Integer):
            return whole if kind.element.signed else None
        return whole if symbol is operator.and_ else None

    @type_callable(symbol)
    def _(context: Any) -> Callable:
        def typer(one: Any, other: Any) -> Register | None:
            if not isinstance(one, Register) or one != other or code_for(one) is None:
                return None
            return _marks(one) if compares else one

        return typer

    @lower_builtin(symbol, Register, Register)
    def _(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return code_for(signature.args[0])(builder, *arguments)


_define(operator.add, lambda to, *pair: to.fadd(*pair, flags=_FLAGS), lambda to, *pair: to.add(*pair))
_define(operator.sub, lambda to, *pair: to.fsub(*pair, flags=_FLAGS), None)
_define(operator.mul, lambda to, *pair: to.fmul(*pair, flags=_FLAGS), None)
_define(operator.and_, None, lambda to, *pair: to.and_(*pair))
_define(operator.gt, None, lambda to, *pair: to.icmp_signed(">", *pair), compares=True)
_define(operator.le, None, lambda to, *pair: to.icmp_signed("<=", *pair), compares=True)


# -- filling registers --------------------------------------------------------------------------

# LLVM's type for numbers of lanes.
_LANE = ir.IntType(32)


def spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """The vector of LLVM's with `scalar` in every lane."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, scalar, ir.Constant(_LANE, 0))
    return builder.shuffle_vector(one, nothing, _lanes([0] * vector.count))


def _lanes(chosen: list[int]) -> Any:
    """Which lanes of two vectors side by side make up another."""
    return ir.Constant(ir.VectorType(_LANE, len(chosen)), chosen)


@intrinsic
def everywhere(typing: Any, number: Any) -> Any:
    """The register with a number in every lane."""
    kind = _whole(number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return spread(builder, *arguments, context.get_value_type(kind))

    return kind(number), generate


@intrinsic
def in_lanes(typing: Any, number: Any, bit: Any) -> Any:
    """The register with a number in the lanes whose own number, from 0 on, has a bit; zeros elsewhere."""
    if not isinstance(bit, types.IntegerLiteral):
        raise RequireLiteralValue(f"a bit that is known when a kernel is compiled, not {bit}")
    kind = _whole(number)
    chosen = [0 if lane & bit.literal_value else kind.lanes for lane in range(kind.lanes)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(kind)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[0], ir.Constant(_LANE, 0))
        return builder.shuffle_vector(one, ir.Constant(vector, None), _lanes(chosen))

    return kind(number, bit), generate


@intrinsic
def counted_from(typing: Any, first: Any) -> Any:
    """The register with first, first + 1, first + 2 and so on."""
    kind = _whole(first)
    if not isinstance(kind.element, types.Integer):
        raise TypingError(f"counted are whole numbers, not {kind.element}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(kind)
        return builder.add(spread(builder, *arguments, vector), ir.Constant(vector, list(range(kind.lanes))))

    return kind(first), generate


@intrinsic
def as_whole(typing: Any, register: Any) -> Any:
    """Floating-point numbers' bits as whole numbers."""
    kind = Register(types.Integer.from_bitwidth(register.element.bitwidth), register.lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(*arguments, context.get_value_type(kind))

    return kind(register), generate


@intrinsic
def lane_sum(typing: Any, register: Any) -> Any:
    """The sum of a register's floating-point numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = [ir.Constant(_LANE, lane) for lane in range(register.lanes)]
        total, *others = (builder.extract_element(*arguments, lane) for lane in lanes)
        for each in others:
            total = builder.fadd(total, each)
        return total

    return register.element(register), generate


# -- arrays -------------------------------------------------------------------------------------


def in_one_piece(array: Any) -> None:
    """Refuse, when a kernel is compiled, arrays whose numbers do not lie side by side."""
    if not isinstance(array, types.Array) or array.layout != "C":
        raise TypingError(f"an array in one piece, not {array}")


def place_in(context: Any, builder: Any, kind: Any, array: Any, k: Any, pointed: Any) -> Any:
    """Where an array's number k stands, as a pointer to LLVM's type `pointed`."""
    first = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [k]), pointed.as_pointer())


@intrinsic
def read(typing: Any, array: Any, k: Any) -> Any:
    """The register of the array's numbers from k on."""
    in_one_piece(array)
    kind = _whole(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = place_in(context, builder, array, *arguments, context.get_value_type(kind))
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return kind(array, types.int64), generate


@intrinsic
def write(typing: Any, register: Any, array: Any, k: Any) -> Any:
    """Fill the array with the register's numbers from k on."""
    in_one_piece(array)
    if register != _whole(array.dtype):
        raise TypingError(f"{register} for an array of {array.dtype}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, *where = arguments
        place = place_in(context, builder, array, *where, numbers.type)
        builder.store(numbers, place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(register, array, types.int64), generate


_PACKED = (types.int32, types.int64)


@intrinsic
def append(typing: Any, register: Any, marks: Any, array: Any, n: Any) -> Any:
    """Put the whole numbers that are marked, of 32 or 64 bits, side by side into the array from n on.

    Returns n plus how many they are. Behind them the array may be overwritten by as many as the register has,
    for which there must be room. Needs `AVX512`.
    """
    in_one_piece(array)
    if register != _whole(array.dtype) or marks != _marks(register) or register.element not in _PACKED:
        raise TypingError(f"{register} and {marks} for an array of {array.dtype}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, wanted, _, n = arguments
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(numbers.type, [numbers.type, numbers.type, wanted.type]),
            f"llvm.x86.avx512.mask.compress.v{register.lanes}i{array.dtype.bitwidth}",
        )
        place = place_in(context, builder, array, *arguments[2:], numbers.type)
        packed = builder.call(compress, [numbers, numbers, wanted])
        builder.store(packed, place, align=array.dtype.bitwidth // 8)
        count = builder.ctpop(builder.bitcast(wanted, ir.IntType(register.lanes)))
        return builder.add(n, builder.zext(count, n.type))

    return types.int64(register, marks, array, types.int64), generate


def _hold(marks: Any, array: Any) -> None:
    """Refuse what is no array of bytes, and marks that do not fill bytes."""
    in_one_piece(array)
    if array.dtype != types.uint8 or marks.lanes % 8:
        raise TypingError(f"{marks} and {array}: whole bytes of marks are needed")


def _place_of_marks(context: Any, builder: Any, kind: Any, array: Any, k: Any, lanes: int) -> Any:
    """Where an array of bytes has so many marks from bit k on, as a pointer to as many bits."""
    byte = builder.lshr(k, ir.Constant(k.type, 3))
    return place_in(context, builder, kind, array, byte, ir.IntType(lanes))


@intrinsic
def write_marks(typing: Any, marks: Any, array: Any, k: Any) -> Any:
    """Fill the array of bytes with marks, of which there are whole bytes, from bit k on, a multiple of 8."""
    _hold(marks, array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wanted, *where = arguments
        place = _place_of_marks(context, builder, array, *where, marks.lanes)
        builder.store(builder.bitcast(wanted, place.type.pointee), place, align=1)
        return context.get_dummy_value()

    return types.void(marks, array, types.int64), generate


@intrinsic
def read_marks(typing: Any, like: Any, array: Any, k: Any) -> Any:
    """Marks for a register like another, from bit k of an array of bytes on, a multiple of 8."""
    _hold(like, array)
    kind = _marks(like)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place_of_marks(context, builder, array, *arguments[1:], like.lanes)
        return builder.bitcast(builder.load(place, align=1), context.get_value_type(kind))

    return kind(like, array, types.int64), generate
