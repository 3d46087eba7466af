"""Numbers as bits: integers and floats of any width, packed without gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError

_IEEE = {16: np.float16, 32: np.float32, 64: np.float64}
# Bits of a double besides its fraction, of which a shorter float keeps the first.
_SIGN_AND_EXPONENT = 12


def packed(integers: NDArray, width: int) -> NDArray:
    """Bits, most significant first, of non-negative integers (m,) below 2^width; shape (m width,)."""
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    return ((integers.astype(np.uint64)[:, None] >> shifts) & np.uint64(1)).astype(np.uint8).ravel()


def unpacked(bits: NDArray, width: int) -> NDArray:
    """Integers (m,) of which `bits` (m width,) are `packed`."""
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    return (bits.reshape(-1, width).astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)


def from_floats(values: NDArray, width: int) -> NDArray:
    """Integers (m,) whose bits are the floats nearest to `values` (m,).

    Floats of 16, 32 and 64 bits are those of IEEE 754; of other widths, the first bits of a double.

    Raises
    ------
    ReplifedError
        If there is no float of so few, or so many, bits.
    """
    if width in _IEEE:
        with np.errstate(over="ignore"):
            return values.astype(_IEEE[width]).view(f"u{width // 8}").astype(np.uint64)
    dropped = np.uint64(64 - _checked(width))
    whole = np.ascontiguousarray(values, np.float64).view(np.uint64)
    half = np.where(np.isfinite(values), np.uint64(1) << (dropped - np.uint64(1)), np.uint64(0))
    return (whole + half) >> dropped


def to_floats(integers: NDArray, width: int) -> NDArray:
    """Doubles (m,) of the bits that `from_floats` returns."""
    if width in _IEEE:
        return integers.astype(f"u{width // 8}").view(_IEEE[width]).astype(float)
    return (integers.astype(np.uint64) << np.uint64(64 - _checked(width))).view(np.float64)


def _checked(width: int) -> int:
    if not _SIGN_AND_EXPONENT < width < 64:
        raise ReplifedError(
            f"a float of {width} bits: a float on the wire has {_SIGN_AND_EXPONENT + 1} to 64; set b_max, or "
            "vector_bits, to one of these, or single_precision"
        )
    return width
