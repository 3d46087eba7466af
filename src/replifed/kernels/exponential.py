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
    # 1 + t + t^2 q(t), where q interpolates (exp(t) - 1 - t) / t^2 in ten Chebyshev points: to 2e-17 of exp(t).
    # By pairs and not by Horner's rule, whose every step waits for the last one.
    square = t * t
    fourth = square * square
    low = (0.5000000000000001 + 0.16666666666666669 * t) + square * (
        0.041666666666624164 + 0.008333333333330065 * t
    )
    middle = (0.0013888888917196719 + 0.00019841269863040545 * t) + square * (
        2.4801521322368692e-05 + 2.7557268480310024e-06 * t
    )
    high = 2.7620075879983367e-07 + 2.5100375832561234e-08 * t
    p = 1.0 + (t + square * (low + fourth * (middle + fourth * high)))
    return p * _float((_bits(shifted) + _BIAS) << 52)
