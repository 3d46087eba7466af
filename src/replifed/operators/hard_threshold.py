"""Hard thresholding: the projection on the vectors with at most tau non-zero coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Rows handled at a time: few enough for the cache, and for temporaries that the allocator takes from its
# heap (below 128 KiB), not anew from the system page by page.
_BLOCK_BYTES = 96 << 10
# A list of the largest so far is quick where at most one in so many entries is on it.
_MANY = 32
# With a larger share of non-zeros than this, selection needs no care for zeros.
_MOST = 0.75


def hard_threshold(v: NDArray, tau: int | NDArray) -> NDArray:
    """Keep the `tau` entries of largest magnitude along the last axis, set the others to zero.

    Ties go to the lowest index, so that the result does not depend on the CPU's sorting network.

    Parameters
    ----------
    v : array, shape (..., d)
    tau : int or array, shape (R,)
        Sparsity level, at least 1; or one for each entry of v's first axis. With tau >= d a copy is
        returned.

    Returns
    -------
    array, shape (..., d)

    Notes
    -----
    H_tau of FedHT's Section 1. Only the tau-th largest magnitude is selected (linear time), never a
    full order. Rows that hold a NaN come back with NaN in them: the simulator calls those diverged.
    """
    kept = np.empty(v.shape, v.dtype)
    if np.ndim(tau):
        for row, k, place in zip(v, tau, kept, strict=True):
            _keep(row, int(k), place)
    else:
        _keep(v, tau, kept)
    return kept


def _keep(v: NDArray, tau: int, kept: NDArray) -> None:
    """Write H_tau of `v` (..., d) into `kept`, contiguous and of the same shape."""
    d = v.shape[-1]
    if tau >= d:
        kept[:] = v
        return
    if _MANY * tau <= d:
        chosen = _places_of_largest(v, tau)
        kept[:] = 0
        kept.reshape(-1, d)[chosen] = v.reshape(-1, d)[chosen]
        return
    for some, keep, place in _blocks(v, tau):
        np.multiply(some, keep, out=kept.reshape(-1, d)[place])


def largest(v: NDArray, tau: int | NDArray) -> NDArray:
    """Support of `hard_threshold`: boolean, True for the `tau` entries of largest magnitude.

    Entries that are zero may or may not be among them where fewer than `tau` are not.
    """
    if np.ndim(tau):
        return np.stack([largest(row, int(k)) for row, k in zip(v, tau, strict=True)])
    if tau >= v.shape[-1]:
        return np.ones(v.shape, dtype=bool)
    if _MANY * tau <= v.shape[-1]:
        mask = np.zeros((v.size // v.shape[-1], v.shape[-1]), dtype=bool)
        mask[_places_of_largest(v, tau)] = True
        return mask.reshape(v.shape)
    mask = np.empty(v.shape, dtype=bool)
    for _, keep, place in _blocks(v, tau):
        mask.reshape(-1, v.shape[-1])[place] = keep
    return mask


def _places_of_largest(v: NDArray, k: int) -> tuple[NDArray, NDArray]:
    """Rows and columns of the `k` largest of each vector, in one pass that keeps a list of those so far."""
    from replifed.kernels.selection import places_of_largest

    magnitudes = _order(np.ascontiguousarray(v)).reshape(-1, v.shape[-1])
    places = np.empty((len(magnitudes), k), dtype=np.intp)
    places_of_largest(magnitudes, places)
    return np.arange(len(places))[:, None], places


def _blocks(v: NDArray, tau: int) -> Iterator[tuple[NDArray, NDArray, slice]]:
    """Yield a few rows of `v` (..., d) at a time, which of their entries are kept, and where they stand."""
    d = v.shape[-1]
    rows = v.reshape(-1, d)
    # A few rows at a time, so that the passes over them stay in the cache.
    few = max(1, _BLOCK_BYTES // (d * v.itemsize))
    distinct = np.arange(d, dtype=_whole(v.dtype))
    for start in range(0, len(rows), few):
        place = slice(start, start + few)
        some = rows[place]
        magnitude = _order(some)
        cut = _cut(magnitude, tau, distinct)
        keep = magnitude >= cut
        if np.count_nonzero(keep) > tau * len(some):
            _break_ties(keep, magnitude, cut, tau)
        yield some, keep, place


def _order(v: NDArray) -> NDArray[np.integer]:
    """Return whole numbers in the order of |v|, with NaN above all numbers.

    Without their sign bit, floating-point numbers are in the order of their bits, and selecting among
    whole numbers, where no NaN needs care, is half again as fast.
    """
    kind = _whole(v.dtype)
    return v.view(kind) & np.iinfo(kind).max


def _whole(dtype: np.dtype) -> type[np.signedinteger]:
    return {4: np.int32, 8: np.int64}[dtype.itemsize]


def _cut(magnitude: NDArray, tau: int, distinct: NDArray) -> NDArray:
    """Return the `tau`-th largest entry of each row, shape (rows, 1); `distinct` is 0, 1, ..., d-1."""
    d = len(distinct)
    if np.count_nonzero(magnitude) > _MOST * magnitude.size:
        return np.partition(magnitude, d - tau, axis=-1)[:, d - tau, None]
    # Selection is slow among many equal numbers: zeros become different ones.
    numbers = np.maximum(magnitude, distinct)
    numbers.partition(d - tau, axis=-1)
    cut = numbers[:, d - tau, None]
    low = cut < d
    if low.any():
        # Fewer than tau are larger than what zeros became; the others are zeros, but for the odd subnormal.
        subnormal = ((magnitude > 0) & (magnitude < d)).any()
        exact = np.partition(magnitude, d - tau, axis=-1)[:, d - tau, None] if subnormal else 0
        cut = np.where(low, exact, cut)
    return cut


def _break_ties(keep: NDArray, magnitude: NDArray, cut: NDArray, tau: int) -> None:
    """Drop, in place, the last of the entries equal to the cut until tau are left in each row."""
    # A cut at zero keeps zeros, which are worth nothing either way: no tie to break there.
    crowded = np.flatnonzero((keep.sum(axis=-1) > tau) & (cut[:, 0] > 0))
    above = magnitude[crowded] > cut[crowded]
    tied = keep[crowded] & ~above
    room = tau - above.sum(axis=-1, keepdims=True)
    keep[crowded] = above | (tied & (np.cumsum(tied, axis=-1) <= room))


def support_bits(k: int | NDArray, d: int) -> NDArray:
    """Bits that name a support of `k` out of `d` coordinates: a list of indices or a bit mask."""
    return np.minimum(np.asarray(k) * int(np.ceil(np.log2(d))), d) if d > 1 else np.asarray(k) * 0
