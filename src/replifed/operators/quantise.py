"""Quantisers: dithered, with refinement (Dal Fabbro et al. 2023, Sections III-A, IV-A), and by blocks.

A coordinate in [-1, 1] gets b bits, which select one of 2^b cells of width Delta = 2^(1-b); later bits
split its cell further (eq. 19). The paper's variance Delta^2/12 (eq. 11) has to hold after every
refinement. It does with one dither, shared with the receiver, which is added modulo 2 before the first
cell is chosen and subtracted from the cell's midpoint: the shifted coordinate is uniform on [-1, 1), so its
error is uniform in every cell of every width. Other interpretations of "dithered" are options; their errors
are larger, or depend on the coordinate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

DITHERS = ("nested", "none", "added", "fresh")
"""Kinds of dither.

nested : one shared dither, added modulo 2 and subtracted, for all refinements
none : midpoint of the coordinate's cell
added : one dither as wide as the cell is added and not subtracted
fresh : each refinement quantises the remaining error, with a new subtracted dither
"""

OVERLOADS = ("wrap", "clip")
"""Treatment of a coordinate that overloads the quantiser: within half a cell of the end of the range, the
nested dither can push it beyond. With other dithers it is clipped.

wrap : it is received at the other end, until later bits correct it
clip : it goes to the last cell on its side, which later bits split
"""


# Number of coordinates that share a norm; the last block may be shorter.
_BLOCK = 64
_NORM_BITS = 32


def interval(bits: NDArray) -> NDArray:
    """Delta = 2^(1-b), width of a cell after b bits (eq. 11)."""
    return np.exp2(1.0 - np.asarray(bits, dtype=float))


def draw_dither(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Dither of every kind: uniform numbers on [-1, 1); narrower dithers are scaled from them."""
    return rng.uniform(-1.0, 1.0, shape)


def quantise(
    v: NDArray, bits: NDArray, dither: NDArray | None = None, kind: str = "nested", overload: str = "wrap"
) -> NDArray:
    """Quantised vectors, as received after `bits` (...) per coordinate of `v` (..., n) in [-1, 1] were sent.

    A vector without bits is received as zero. The `dither`, (..., n) or with fewer leading axes, comes from
    `draw_dither` and is the same at every refinement; kind "none" needs none; for "fresh" see `refine`. With
    kind "nested" the error is uniform on [-Delta/2, Delta/2] and independent of v if |v| <= 1 - Delta/2;
    beyond that the quantiser overloads (for one bit, if |v| > 1/2).
    """
    _check(kind, overload)
    if kind != "none" and dither is None:
        raise ValueError(f"quantise: kind {kind!r} needs a dither")
    n = v.shape[-1]
    flat, dither = (
        np.broadcast_to(array, v.shape).reshape(1, 1, -1, n)
        for array in (v, np.zeros(()) if dither is None else dither)
    )
    bits = np.broadcast_to(bits, v.shape[:-1]).reshape(1, 1, -1)
    nothing_sent = np.zeros_like(flat), np.zeros_like(bits)
    return quantise_grown(flat, *nothing_sent, bits, dither, kind, overload).reshape(v.shape)


def quantise_grown(
    v: NDArray,
    received: NDArray,
    before: NDArray,
    after: NDArray,
    dither: NDArray,
    kind: str = "nested",
    overload: str = "wrap",
) -> NDArray:
    """Quantise, in one pass, the vectors that got more bits; the others stay as received.

    Every coordinate, clipped or not, stays in the cell of its earlier bits. `received` (R, N, k, n) has k
    vectors; only the first k of `v` and `dither` (R, N, n, n) and of `before` and `after` (R, N, n) are read.
    """
    from replifed.kernels import quantisation

    _check(kind, overload)
    out = np.empty_like(received)
    if dither.strides[0] == 0:  # runs that share it
        dither = dither[:1]
    scale, wraps = 0.5 if kind == "added" else 0.0, kind == "nested"
    clips = wraps and overload == "clip"
    quantisation.quantise_grown(v, received, before, after, dither, wraps, clips, scale, out)
    return out


def refine(v: NDArray, received: NDArray, before: NDArray, after: NDArray, dither: NDArray) -> NDArray:
    """Quantise the error that remains after `before` bits with the further bits up to `after`: kind "fresh".

    Parameters are those of `quantise_grown`, with any shapes (..., n) and (...), and with a new dither for
    each refinement.
    """
    delta = interval(after)[..., None]
    # Cells of width Delta over the range of the remaining error, [-Delta_before/2, Delta_before/2].
    half = np.where(before > 0, 0.5 * interval(before), 1.0)[..., None]
    shifted = v - received + 0.5 * delta * dither
    cell = np.clip(np.floor((shifted + half) / delta), 0, 2.0 * half / delta - 1)
    estimate = received - half + (cell + 0.5) * delta - 0.5 * delta * dither
    return np.where((after > before)[..., None], estimate, received)


def _check(kind: str, overload: str) -> None:
    if kind not in DITHERS[:3]:
        raise ValueError(f"unknown kind of dither {kind!r}; known: {', '.join(DITHERS[:3])}")
    if overload not in OVERLOADS:
        raise ValueError(f"unknown overload {overload!r}; known: {', '.join(OVERLOADS)}")


def block_quantise(x: NDArray, uniform: NDArray, bits: int) -> NDArray:
    """Round each block of `x` (..., D) at random, without bias, to a grid scaled by its largest magnitude.

    This is the block quantiser with the infinity norm of FedEM (Dieuleveut et al. 2021, Supplement B).
    `uniform` are independent numbers in [0, 1) that broadcast with `x`. A coordinate has `bits` b >= 2: its
    sign, and zero or one of s = 2^(b-1) - 1 levels.

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
    # An infinity or NaN makes its whole block NaN, so that the run counts as diverged.
    return np.sign(x) * np.floor(ratio + uniform) / s * scale


def message_bits(dim: int, bits: int) -> int:
    """Bits of a quantised vector: `bits` a coordinate and one norm a block."""
    return dim * bits + math.ceil(dim / _BLOCK) * _NORM_BITS
