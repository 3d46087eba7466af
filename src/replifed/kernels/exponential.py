"""The exponential function in a form that compilers turn into vector instructions."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from replifed.kernels import compiled_as_written

# exp(x) = 2^n exp(t) with |t| <= ln(2) / 2; ln(2) in two parts, so that n times the first one is exact.
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Added to a number below 2^51, this leaves the nearest whole number in its lowest bits.
_ROUND = 6755399441055744.0
_BIAS = 1023
_LEAST, _MOST = -708.0, 709.0


@intrinsic
def _bits(typing, x):
    """The bits of a float64 as an int64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float(typing, bits):
    """The float64 with these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@compiled_as_written
def exponential(x):
    """exp(x) to an ulp; below -708 or above 709 that of the bound."""
    v = min(max(x, _LEAST), _MOST)
    shifted = v * _LOG2_E + _ROUND
    n = shifted - _ROUND
    t = (v - n * _LN2_HIGH) - n * _LN2_LOW
    # Taylor's series to t^13.
    p = 1.0 / 6227020800.0
    p = p * t + 1.0 / 479001600.0
    p = p * t + 1.0 / 39916800.0
    p = p * t + 1.0 / 3628800.0
    p = p * t + 1.0 / 362880.0
    p = p * t + 1.0 / 40320.0
    p = p * t + 1.0 / 5040.0
    p = p * t + 1.0 / 720.0
    p = p * t + 1.0 / 120.0
    p = p * t + 1.0 / 24.0
    p = p * t + 1.0 / 6.0
    p = p * t + 0.5
    p = p * t + 1.0
    p = p * t + 1.0
    return p * _float((_bits(shifted) + _BIAS) << 52)
