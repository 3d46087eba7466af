"""Allocation of bits to the eigenvectors of one client after the other; see `operators.bit_allocation`."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within
from replifed.kernels.linear import dot

# Steps of the safeguarded Newton iteration; some ten are needed, bisection alone takes 60.
_MAX_STEPS = 200
_BITS_TOLERANCE = 1e-12


@compiled
def allocate_bits(gamma, lbar, square, cross, lowest, highest, total, bits):
    """Fill `bits` (D, k) by solving x_i (gamma_i + square_i x_i + cross_i S) = nu with S = sum lbar_j x_j.

    Arrays are (D, k), with `square` = 2 (a2 - a3) lbar^2, `cross` = 2 a3 lbar, and bounds of x_i = 4^(1 -
    b_i); the sum of the bits, `total` (D,), determines the multiplier nu. Given nu, S is the fixed point of
    a contraction (its factor is below n a3 / (2 (a2 - a3)) < 1); sum b_i decreases in nu. So Newton's method
    in u = log nu, safeguarded by bisection, finds the one solution.
    """
    x = np.empty(bits.shape[1])
    for d in range(len(bits)):
        coefficients = gamma[d], lbar[d], square[d], cross[d], lowest[d], highest[d]
        low, high = _range(*coefficients)
        u, s = 0.5 * (low + high), 0.0
        for _ in range(_MAX_STEPS):
            nu = np.exp(u)
            s = _fixed_point(nu, s, *coefficients, x)
            excess = -total[d]
            for i in range(len(x)):
                bits[d, i] = 1.0 - 0.5 * np.log2(x[i])
                excess += bits[d, i]
            if abs(excess) <= _BITS_TOLERANCE * max(total[d], 1.0) or high - low <= 1e-15 * abs(u):
                break
            low, high = (u, high) if excess > 0 else (low, u)
            newton = u + excess / _decline(nu, s, *coefficients, x)
            u = newton if low < newton < high else 0.5 * (low + high)


@compiled_within
def _range(gamma, lbar, square, cross, lowest, highest):
    """Logarithms of the multipliers beyond which all x are at their bounds."""
    s_lowest, s_highest = dot(lbar, lowest), dot(lbar, highest)
    low, high = np.inf, 0.0
    for i in range(len(lbar)):
        if lbar[i] > 0:
            low = min(low, lowest[i] * (gamma[i] + square[i] * lowest[i] + cross[i] * s_lowest))
            high = max(high, highest[i] * (gamma[i] + square[i] * highest[i] + cross[i] * s_highest))
    return (np.log(low) - 1e-9, np.log(high) + 1e-9) if high > 0 else (-1.0, 1.0)


@compiled_within
def _fixed_point(nu, s, gamma, lbar, square, cross, lowest, highest, x):
    """S for a multiplier, by Newton's method from `s`; fills `x`."""
    for _ in range(_MAX_STEPS):
        for i in range(len(x)):
            g = gamma[i] + cross[i] * s
            x[i] = min(max(2.0 * nu / (g + np.sqrt(g * g + 4.0 * square[i] * nu)), lowest[i]), highest[i])
        slope = 1.0
        for i in range(len(x)):
            if lowest[i] < x[i] < highest[i]:
                slope += lbar[i] * cross[i] * x[i] / (2 * square[i] * x[i] + gamma[i] + cross[i] * s)
        gap = dot(lbar, x) - s
        s += gap / slope
        if abs(gap) <= 1e-15 * s:
            break
    return s


@compiled_within
def _decline(nu, s, gamma, lbar, square, cross, lowest, highest, x):
    """Rate at which the sum of all bits falls in u = log nu.

    On the x_i between their bounds, d x_i / du = (nu - cross_i x_i dS/du) / (2 square_i x_i + g_i).
    """
    ds, slope = 0.0, 1.0
    for i in range(len(x)):
        if lowest[i] < x[i] < highest[i]:
            pull = lbar[i] / (2 * square[i] * x[i] + gamma[i] + cross[i] * s)
            ds += pull * nu
            slope += pull * cross[i] * x[i]
    ds, decline = ds / slope, 0.0
    for i in range(len(x)):
        if lowest[i] < x[i] < highest[i]:
            pull = 1.0 / (2 * square[i] * x[i] + gamma[i] + cross[i] * s)
            decline += pull * (nu / x[i] - cross[i] * ds)
    return decline / (2 * np.log(2.0))
