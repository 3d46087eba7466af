"""Unbiased block quantisation with p = infinity norm (FedEM: Dieuleveut et al. 2021, Supplement B)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Coordinates that share a norm; the last block may be shorter.
_BLOCK = 64
_NORM_BITS = 32


def block_quantise(x: NDArray, uniform: NDArray, bits: int) -> NDArray:
    """Round each block of `x` (..., D) at random to a grid of its largest magnitude, without bias.

    `uniform` are independent numbers in [0, 1) that broadcast with `x`. A coordinate has `bits` b >= 2: its
    sign and one of s = 2^(b-1) - 1 levels, or zero.

    Notes
    -----
    E|q - x|^2 <= min(d / (4 s^2), sqrt(d) / s) |x|^2 in blocks of d: rounding at random in a grid of mesh
    |x|_inf / s has variance at most mesh^2 / 4 a coordinate, and at most mesh |x_j|, so
    sum_j <= |x|_inf |x|_1 / s <= sqrt(d) |x|^2 / s.
    """
    D, s = x.shape[-1], 2 ** (bits - 1) - 1
    starts = np.arange(0, D, _BLOCK)
    norm = np.maximum.reduceat(np.abs(x), starts, axis=-1)
    scale = np.repeat(norm, np.diff([*starts, D]), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(scale > 0, np.abs(x) / scale, 0.0) * s
    # A diverging message keeps its infinity or NaN.
    return np.sign(x) * np.floor(ratio + uniform) / s * scale


def message_bits(dim: int, bits: int) -> int:
    """Bits of a quantised vector: `bits` a coordinate and one norm a block."""
    return dim * bits + math.ceil(dim / _BLOCK) * _NORM_BITS
