"""The logistic function in a form that compilers turn into vector instructions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from replifed.kernels import exponential as exp

_MOST, _MOST_32 = 700.0, np.float32(80.0)
# With these, what rounds to whole numbers leaves powers of two with their bias in the lowest bits.
_ROUND, _ROUND_32 = exp.ROUND + exp.BIAS, exp.ROUND_32 + np.float32(exp.BIAS_32)
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
# P(t^2) / Q(t^2) interpolates tanh(t / 2) / t for |t| <= log(2) / 2 in five Chebyshev points: to 5e-18;
# in single precision in three: to 6e-10. The highest coefficient of Q is one.
_P0, _P1, _P2 = 504.15294965172444, 14.002731053276293, 0.033318175564349836
_Q0, _Q1 = 1008.3058993034489, 112.0309537151713
_P0_32, _P1_32, _Q0_32 = (np.float32(c) for c in (5.001075884177412, 0.08324407821900759, 10.00215177371756))


def falling(x: Any, scale: Any) -> Any:
    """scale / (1 + exp(x)), in compiled code with a relative error below 2.5 times the machine epsilon.

    Beyond |x| = 700, in single precision 80, it is that of the bound.
    """
    return scale / (1 + np.exp(x))


@overload(falling, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _falling(x, scale):
    return _single if x == types.float32 else _double


# exp(x) = 2^n exp(t), and exp(t) = (Q + t P) / (Q - t P): one division does for both quotients.


def _double(x, scale):
    shifted, t = exp.reduced(x, -_MOST, _MOST, exp.LOG2_E, _ROUND, exp.LN2_HIGH, exp.LN2_LOW)
    s = t * t
    p, q = t * (_P0 + s * (_P1 + s * _P2)), _Q0 + s * (_Q1 + s)
    return scale * (q - p) / ((q - p) + exp.floating(exp.bits(shifted) << 52) * (q + p))


def _single(x, scale):
    shifted, t = exp.reduced(
        x, -_MOST_32, _MOST_32, exp.LOG2_E_32, _ROUND_32, exp.LN2_HIGH_32, exp.LN2_LOW_32
    )
    s = t * t
    p, q = t * (_P0_32 + s * _P1_32), _Q0_32 + s
    # Whole numbers of 32 bits become of 64 where they are shifted, unless they are told otherwise.
    return scale * (q - p) / ((q - p) + exp.floating(np.int32(exp.bits(shifted) << 23)) * (q + p))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), in compiled code to a few ulp, and not below that of the bound of `exponential`."""
    return np.logaddexp(0, x)


@overload(softplus, jit_options={"error_model": "numpy", "fastmath": {"contract"}})
def _softplus(x):
    return _softplus_single if x == types.float32 else _softplus_double


def _softplus_double(x):
    e = exp.exponential(-abs(x))
    s = e / (2.0 + e)
    w = s * s
    low = _A0 + w * (_A1 + w * (_A2 + w * (_A3 + w * _A4)))
    high = _A5 + w * (_A6 + w * (_A7 + w * (_A8 + w * _A9)))
    square = w * w
    return max(x, 0.0) + 2.0 * s * (low + square * square * w * high)


def _softplus_single(x):
    e = exp.exponential(-abs(x))
    s = e / (_TWO_32 + e)
    w = s * s
    p = _A0_32 + w * (_A1_32 + w * (_A2_32 + w * (_A3_32 + w * _A4_32)))
    return max(x, _ZERO_32) + _TWO_32 * s * p
