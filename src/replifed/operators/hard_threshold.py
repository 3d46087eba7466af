"""Hard thresholding: the projection on the vectors with at most tau non-zero coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    result = np.empty(v.shape, v.dtype)
    integers, most = as_integers(np.ascontiguousarray(v))
    integers = integers.reshape(-1, d)
    levels, keys = np.repeat(tau, len(integers) // max(np.size(tau), 1)), np.arange(d, dtype=np.int32)
    keep_largest(integers, most, keys[None], np.array([0, d]), levels, as_integers(result)[0].reshape(-1, d))
    return result


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
