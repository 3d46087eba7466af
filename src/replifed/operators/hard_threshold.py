"""Hard thresholding: the projection on the vectors with at most tau non-zero coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Coordinates above which vectors may be averages of few sparse ones, of which one in so many is not zero.
_LONG, _FEW = 1 << 16, 4


def hard_threshold(v: NDArray, tau: int | NDArray) -> NDArray:
    """Keep the `tau` entries of largest magnitude along the last axis, set the others to zero.

    H_tau of FedHT's Section 1, of `v` (..., d); `tau` is at least 1, a number or one per entry of v's first
    axis. Ties go to the lowest index, so that the result is the same on every machine. A vector with
    a NaN keeps it, so that its run counts as diverged. The time is linear: nothing is sorted.
    """
    from replifed.kernels.selection import keep_largest

    d = v.shape[-1]
    if np.min(tau) >= d:
        return v.copy()
    check_levels(tau, v.shape)
    rows = v.reshape(-1, d)
    levels = np.repeat(tau, len(rows) // max(np.size(tau), 1))
    if d > _LONG and _FEW * np.count_nonzero(v) < v.size:
        result = np.zeros(rows.shape, v.dtype)
        for row, level, kept in zip(rows, levels, result, strict=True):
            _keep_of_nonzeros(row, level, kept)
        return result.reshape(v.shape)
    result = np.empty(rows.shape, v.dtype)
    integers, most = as_integers(np.ascontiguousarray(rows))
    keys = np.arange(d, dtype=np.int32)[None]
    keep_largest(integers, most, keys, np.array([0, d]), levels, as_integers(result)[0])
    return result.reshape(v.shape)


def _keep_of_nonzeros(v: NDArray, tau: np.integer, kept: NDArray) -> None:
    """Write to `kept`, which is zero, what `hard_threshold` keeps of a vector with few non-zeros."""
    from replifed.kernels.selection import keep_largest

    names = np.flatnonzero(v != 0).astype(np.int32)
    values = v[names]
    integers, most = as_integers(values[None])
    keep_largest(integers, most, names[None], np.array([0, len(names)]), np.array([tau]), integers)
    kept[names] = values


def threshold_by_class(W: NDArray, tau: int | NDArray, classes: int) -> NDArray:
    """Keep the tau / C weights of largest magnitude of each class, of flattened models `W` (..., d C)."""
    by_class = W.reshape(*W.shape[:-1], -1, classes).swapaxes(-1, -2)
    return hard_threshold(by_class, tau // classes).swapaxes(-1, -2).reshape(W.shape)


def largest(v: NDArray, tau: int | NDArray) -> NDArray:
    """Support of `hard_threshold`, a mask: fewer than `tau` where fewer entries are not zero."""
    return hard_threshold(v, tau) != 0


def check_levels(tau: int | NDArray, shape: tuple[int, ...]) -> None:
    """Reject sparsity levels below one, or other than one value or one per run; kernels do not check them."""
    if np.shape(tau) not in ((), shape[:-1][:1]) or np.min(tau, initial=1) < 1:
        raise ValueError(f"sparsity levels {tau!r} for an array of shape {shape}")


def as_integers(v: NDArray) -> tuple[NDArray, np.integer]:
    """Integer view of the same memory, and the largest integer, a mask of all bits but the sign's.

    Without the sign bit, floating-point numbers have the order of their bits, and NaN is above all numbers.
    """
    integer = np.dtype(f"i{v.dtype.itemsize}").type
    return v.view(integer), integer(np.iinfo(integer).max)


def support_bits(k: int | NDArray, d: int) -> NDArray:
    """Bits that encode a support of `k` out of `d` coordinates: a list of indices or a bit mask."""
    return np.minimum(np.asarray(k) * int(d - 1).bit_length(), d)
