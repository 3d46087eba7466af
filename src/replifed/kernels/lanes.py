"""Numbers side by side in one vector of 64 bytes, on which arithmetic is stated once.

Compilers make vectors of loops only if they see that arrays do not overlap, and none of short loops. LLVM
splits a vector where a processor has shorter ones; the sums are the same with all of them.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic, lower_builtin, type_callable

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_FLAGS = ("contract", "reassoc", "nsz")


class Lanes(types.Type):
    """Eight doubles."""

    def __init__(self) -> None:
        super().__init__("Lanes")


_LANES_TYPE = Lanes()


@register_default(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _address(context: Any, builder: Any, kind: Any, value: Any, row: Any, k: Any) -> Any:
    """Where the eight numbers with number k of a row begin, in an array of two axes in C order."""
    array = context.make_array(kind)(context, builder, value)
    stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
    data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    at = builder.add(builder.mul(row, stride), builder.mul(k, ir.Constant(ir.IntType(64), 8 * LANES)))
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


@intrinsic
def load(typing: Any, array: Any, row: Any, k: Any) -> Any:
    """Lanes 8 k to 8 k + 7 of a row of `array`, doubles of two axes in C order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, array, *arguments), align=8)

    return _LANES_TYPE(array, types.int64, types.int64), generate


@intrinsic
def store(typing: Any, array: Any, row: Any, k: Any, lanes: Any) -> Any:
    """Write what `load` reads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *place, vector = arguments
        builder.store(vector, _address(context, builder, array, *place), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, _LANES_TYPE), generate


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """A number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lane, nothing = ir.IntType(32), ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(nothing, arguments[0], ir.Constant(lane, 0))
        return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(lane, LANES), [0] * LANES))

    return _LANES_TYPE(types.float64), generate


def _arithmetic(operation: Any, instruction: str) -> None:
    @type_callable(operation)
    def resolve(context: Any) -> Any:
        def of(a: Any, b: Any) -> Any:
            return _LANES_TYPE if isinstance(a, Lanes) and isinstance(b, Lanes) else None

        return of

    @lower_builtin(operation, Lanes, Lanes)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=_FLAGS)


for _operation, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _arithmetic(_operation, _instruction)
    _inplace = getattr(operator, f"i{_operation.__name__}")
    _arithmetic(_inplace, _instruction)
