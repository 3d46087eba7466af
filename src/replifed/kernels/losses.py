"""Losses in many predictions at once, with exponentials in a form that compilers turn into vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from replifed.kernels import compiled_as_written, read_only

# exp(x) = 2^n exp(t) with |t| <= ln(2) / 2; ln(2) in two parts, so that n times the first one is exact.
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Added to a number below 2^51, this leaves the nearest whole number in its lowest bits.
_SHIFT = 6755399441055744.0
_BIAS = 1023
_LEAST, _MOST = -708.0, 709.0
_C0, _C1, _C2 = 0.5000000000000001, 0.16666666666666669, 0.041666666666624164
_C3, _C4, _C5 = 0.008333333333330065, 0.0013888888917196719, 0.00019841269863040545
_C6, _C7, _C8 = 2.4801521322368692e-05, 2.7557268480310024e-06, 2.7620075879983367e-07
_C9 = 2.5100375832561234e-08

# The same in single precision.
_LOG2_E_32 = np.float32(_LOG2_E)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SHIFT_32 = np.float32(12582912.0)
_BIAS_32 = 127
_LEAST_32, _MOST_32 = np.float32(-87.0), np.float32(88.0)
_ONE_32 = np.float32(1.0)
_Q0, _Q1, _Q2, _Q3, _Q4 = (np.float32(q) for q in (0.5, 0.16666578, 0.041666556, 0.008363173, 0.0013926176))


def exponential(x: Any) -> Any:
    """exp(x) to an ulp in compiled code, beyond the range of x's numbers that of its bound; else numpy's."""
    return np.exp(x)


@overload(exponential, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _exponential(x):
    return _exponential_single if x == types.float32 else _exponential_double


@register_jitable(error_model="numpy", fastmath={"contract"})
def _reduced(x, least, most, log2_e, shift, high, low):
    """n, in the lowest bits of the first number, and t with exp(x) = 2^n exp(t), for x within the bounds."""
    v = min(max(x, least), most)
    shifted = v * log2_e + shift
    n = shifted - shift
    return shifted, (v - n * high) - n * low


def _exponential_double(x):
    shifted, t = _reduced(x, _LEAST, _MOST, _LOG2_E, _SHIFT, _LN2_HIGH, _LN2_LOW)
    # 1 + t + t^2 q(t), where q interpolates (exp(t) - 1 - t) / t^2 in ten Chebyshev points: to 2e-17.
    # By pairs and not by Horner's rule, whose every step waits for the last one.
    square = t * t
    fourth = square * square
    low = (_C0 + _C1 * t) + square * (_C2 + _C3 * t)
    middle = (_C4 + _C5 * t) + square * (_C6 + _C7 * t)
    high = _C8 + _C9 * t
    p = 1.0 + (t + square * (low + fourth * (middle + fourth * high)))
    return p * _floating((_bits(shifted) + _BIAS) << 52)


def _exponential_single(x):
    shifted, t = _reduced(x, _LEAST_32, _MOST_32, _LOG2_E_32, _SHIFT_32, _LN2_HIGH_32, _LN2_LOW_32)
    # As above, with five Chebyshev points: to 1e-8.
    square = t * t
    p = _ONE_32 + (t + square * ((_Q0 + _Q1 * t) + square * ((_Q2 + _Q3 * t) + square * _Q4)))
    # Sums of whole numbers of 32 bits are of 64 unless they are told otherwise.
    return p * _floating(np.int32((_bits(shifted) + _BIAS_32) << 23))


_WHOLE = {types.float32: types.int32, types.float64: types.int64}
_FLOATING = {whole: number for number, whole in _WHOLE.items()}
_LLVM = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
_LLVM |= {whole: ir.IntType(whole.bitwidth) for whole in _FLOATING}


def _reinterpreted(to: dict) -> Any:
    """An intrinsic that takes a number's bits for those of the type that `to` names for its own."""

    @intrinsic
    def reinterpret(typing, x):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], _LLVM[to[x]])

        return to[x](x), generate

    return reinterpret


_bits, _floating = _reinterpreted(_WHOLE), _reinterpreted(_FLOATING)

# The bounds of `falling`.
_BOUND, _BOUND_32 = 700.0, np.float32(80.0)
# With these, what rounds to whole numbers leaves powers of two with their bias in the lowest bits.
_BIASED, _BIASED_32 = _SHIFT + _BIAS, _SHIFT_32 + np.float32(_BIAS_32)
# log(1 + e) = 2 artanh(s) with s = e / (2 + e), at most a third: artanh(s) / s interpolated in s^2, with ten
# Chebyshev points to 5e-17 and with five to 4e-9.
_A0, _A1, _A2 = 0.99999999999999996, 0.33333333333341287, 0.199999999976438
_A3, _A4, _A5 = 0.14285714555828580, 0.11111095430673142, 0.090914299002369555
_A6, _A7, _A8 = 0.076818381244458171, 0.067956527427899469, 0.049403945243823931
_A9 = 0.088903819130566515
_A0_32, _A1_32 = np.float32(1.0000000038408794), np.float32(0.33333160820688887)
_A2_32, _A3_32 = np.float32(0.20012297615351874), np.float32(0.13982578872598634)
_A4_32 = np.float32(0.1407888918155454)
_ZERO_32, _TWO_32 = np.float32(0), np.float32(2)
# P(t^2) / R(t^2) interpolates tanh(t / 2) / t for |t| <= log(2) / 2 in five Chebyshev points: to 5e-18;
# in single precision in three: to 6e-10. The highest coefficient of R is one.
_P0, _P1, _P2 = 504.15294965172444, 14.002731053276293, 0.033318175564349836
_R0, _R1 = 1008.3058993034489, 112.0309537151713
_P0_32, _P1_32, _R0_32 = (np.float32(c) for c in (5.001075884177412, 0.08324407821900759, 10.00215177371756))


def falling(x: Any, scale: Any) -> Any:
    """scale / (1 + exp(x)), in compiled code with a relative error below 2.5 times the machine epsilon.

    Beyond |x| = 700, in single precision 80, it is that of the bound.
    """
    return scale / (1 + np.exp(x))


@overload(falling, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _falling(x, scale):
    return _falling_single if x == types.float32 else _falling_double


def _falling_double(x, scale):
    shifted, t = _reduced(x, -_BOUND, _BOUND, _LOG2_E, _BIASED, _LN2_HIGH, _LN2_LOW)
    # exp(x) = 2^n exp(t), and exp(t) = (R + t P) / (R - t P): one division does for both quotients.
    s = t * t
    p, q = t * (_P0 + s * (_P1 + s * _P2)), _R0 + s * (_R1 + s)
    return scale * (q - p) / ((q - p) + _floating(_bits(shifted) << 52) * (q + p))


def _falling_single(x, scale):
    shifted, t = _reduced(x, -_BOUND_32, _BOUND_32, _LOG2_E_32, _BIASED_32, _LN2_HIGH_32, _LN2_LOW_32)
    s = t * t
    p, q = t * (_P0_32 + s * _P1_32), _R0_32 + s
    # Whole numbers of 32 bits become of 64 where they are shifted, unless they are told otherwise.
    return scale * (q - p) / ((q - p) + _floating(np.int32(_bits(shifted) << 23)) * (q + p))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), in compiled code to a few ulp, and not below that of the bound of `exponential`."""
    return np.logaddexp(0, x)


@overload(softplus, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _softplus(x):
    return _softplus_single if x == types.float32 else _softplus_double


def _softplus_double(x):
    e = exponential(-abs(x))
    s = e / (2.0 + e)
    w = s * s
    low = _A0 + w * (_A1 + w * (_A2 + w * (_A3 + w * _A4)))
    high = _A5 + w * (_A6 + w * (_A7 + w * (_A8 + w * _A9)))
    square = w * w
    return max(x, 0.0) + 2.0 * s * (low + square * square * w * high)


def _softplus_single(x):
    e = exponential(-abs(x))
    s = e / (_TWO_32 + e)
    w = s * s
    p = _A0_32 + w * (_A1_32 + w * (_A2_32 + w * (_A3_32 + w * _A4_32)))
    return max(x, _ZERO_32) + _TWO_32 * s * p


@compiled_as_written
def logistic_values(t, f):
    """f = log(1 + exp(t)) for `t` and `f` (n,)."""
    for i in range(len(t)):
        f[i] = softplus(t[i])


@compiled_as_written
def logistic_derivatives(z, y, r):
    """r = -y / (1 + exp(y z)) for `z` and `r` (n, c) and labels `y` (n,)."""
    if z.shape[1] == 1:
        # As many as fit into a vector, which compilers do not find in loops of one.
        each, derivative = z.reshape(-1), r.reshape(-1)
        for i in range(len(y)):
            label = z.dtype.type(y[i])
            derivative[i] = falling(label * each[i], -label)
        return
    for i in range(len(y)):
        label = z.dtype.type(y[i])
        for j in range(z.shape[1]):
            r[i, j] = falling(label * z[i, j], -label)


@compiled_as_written
def softmax_derivatives(z, y, p):
    """p = softmax(z) less one at the class, for `z` and `p` (n, m, C) and classes `y` (n, m)."""
    n, m, C = z.shape
    e, top, total = np.empty((C, m), z.dtype), np.empty(m, z.dtype), np.empty(m, z.dtype)
    zero, one = z.dtype.type(0), z.dtype.type(1)
    for i in range(n):
        # Class by class, so that the samples of a client are the lanes of a vector.
        for c in range(C):
            for j in range(m):
                e[c, j] = z[i, j, c]
        for j in range(m):
            top[j], total[j] = e[0, j], zero
        for c in range(1, C):
            for j in range(m):
                top[j] = max(top[j], e[c, j])
        for c in range(C):
            for j in range(m):
                e[c, j] = exponential(e[c, j] - top[j])
                total[j] += e[c, j]
        for j in range(m):
            total[j] = one / total[j]
        for c in range(C):
            for j in range(m):
                p[i, j, c] = e[c, j] * total[j]
        for j in range(m):
            p[i, j, np.intp(y[i, j])] -= one


def softmax_values(z, y, f):
    """f = log sum_c exp(z_c) - z_y for `z` (n, m, C), classes `y` (n, m), and `f` (n, m)."""
    _softmax_values(z, read_only(y), f)


@compiled_as_written
def _softmax_values(z, y, f):
    n, m, C = z.shape
    top, total = np.empty(m, z.dtype), np.empty(m, z.dtype)
    for i in range(n):
        for j in range(m):
            top[j], total[j] = z[i, j, 0], z.dtype.type(0)
        for c in range(1, C):
            for j in range(m):
                top[j] = max(top[j], z[i, j, c])
        for c in range(C):
            for j in range(m):
                total[j] += exponential(z[i, j, c] - top[j])
        for j in range(m):
            f[i, j] = top[j] + np.log(total[j]) - z[i, j, y[i, j]]
