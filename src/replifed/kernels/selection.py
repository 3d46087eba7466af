"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.segments import longest

# Zeros are dropped first if at most one number in this many is not zero.
_FEW = 16
# A first guess of the threshold looks at one number in this many.
_SAMPLED = 16
# Fewer numbers than this are not sampled first.
_LONG = 1 << 12


@compiled
def keep_largest(integers, most, keys, bounds, tau, kept):
    """Fill `kept` with the `tau` entries of largest magnitude of each segment, and zeros elsewhere.

    Of entries of equal magnitude it keeps those with the lowest keys.

    Parameters
    ----------
    integers : int array, shape (R, W)
        Floating-point numbers as `operators.hard_threshold.as_integers` gives them, with the largest integer:
        without the sign bit they are in the order of their magnitudes.
    most : int
    keys : int array, shape (R or 1, W)
        Not negative.
    bounds : int array, shape (s + 1,)
        Where the segments of a run begin, and W.
    tau : int array, shape (R,)
    kept : int array, shape (R, W)
        May be `integers`.
    """
    most_entries = longest(bounds)
    scratch, few = np.empty(most_entries + 1, integers.dtype), np.empty(most_entries, integers.dtype)
    halves = np.empty(most_entries, np.int16)
    for run in range(len(integers)):
        all_keys = keys[min(run, len(keys) - 1)]
        for s in range(len(bounds) - 1):
            entries, key = integers[run, bounds[s] : bounds[s + 1]], all_keys[bounds[s] : bounds[s + 1]]
            filled = kept[run, bounds[s] : bounds[s + 1]]
            keep_in_segment(entries, most, key, tau[run], scratch, halves, few, filled)


@compiled
def keep_in_segment(entries, most, key, tau, numbers, halves, few, filled):
    """`keep_largest` of one segment (n,); `numbers` (n + 1,), `halves` (n,), and `few` (n,) are scratch."""
    if len(entries) < _LONG:
        _keep_of_few(entries, most, key, tau, numbers[: len(entries)], halves, few, filled)
    else:
        _keep_of_many(entries, most, key, tau, numbers, halves, few, filled)


@compiled
def keep_largest_of_triangles(matrices, tau):
    """Keep the `tau` entries of largest magnitude of each lower triangle, with their mirror images.

    Of equal ones the first are kept, row by row.

    Parameters
    ----------
    matrices : array, shape (m, n, n)
        Symmetric; all other entries are set to zero.
    tau : int
        Less than n (n + 1) / 2.
    """
    n = matrices.shape[1]
    size = n * (n + 1) // 2
    packed, kept, keys = np.empty(size), np.empty(size), np.arange(size)
    entries, filled, most = packed.view(np.int64), kept.view(np.int64), np.int64((1 << 63) - 1)
    numbers, halves, few = np.empty(size + 1, np.int64), np.empty(size, np.int16), np.empty(size, np.int64)
    for A in matrices:
        for j in range(n):
            line = packed[j * (j + 1) // 2 :]
            for k in range(j + 1):
                line[k] = A[j, k]
        for j in range(n):
            for k in range(n):
                A[j, k] = 0.0
        keep_in_segment(entries, most, keys, tau, numbers, halves, few, filled)
        for j in range(n):
            line = kept[j * (j + 1) // 2 :]
            for k in range(j + 1):
                if line[k] != 0.0:
                    A[j, k] = A[k, j] = line[k]


@compiled
def _keep_of_few(entries, most, key, tau, numbers, halves, few, filled):
    """The same, looking at all entries."""
    for k in range(len(entries)):
        numbers[k] = entries[k] & most
    threshold, crowded = _threshold_above(numbers, halves[: len(entries)], few, tau)
    if crowded:
        _lift_equals(numbers, threshold, key, tau)
    # In two loops: one that writes where it reads would be compiled without vectors.
    for k in range(len(entries)):
        numbers[k] = entries[k] if numbers[k] > threshold else 0
    for k in range(len(entries)):
        filled[k] = numbers[k]


@compiled
def _keep_of_many(entries, most, key, tau, numbers, halves, few, filled):
    """The same, for long arrays: first collects the candidates, the entries above a likely bound."""
    bound = _likely_bound(entries, most, tau, numbers, halves, few)
    n = _numbers_above(entries, most, bound, numbers, halves)
    if n < tau and bound > 0:
        bound = entries.dtype.type(0)
        n = _numbers_above(entries, most, bound, numbers, halves)
    threshold, crowded = _threshold_above(numbers[:n], halves[:n], few, tau)
    # If no more than `tau` entries exceed the bound, it is the threshold.
    threshold = max(threshold, bound)
    if not crowded:
        for k in range(len(entries)):
            numbers[k] = entries[k] if entries[k] & most > threshold else 0
        for k in range(len(entries)):
            filled[k] = numbers[k]
        return
    count = tau - _above(numbers[:n], threshold)
    for k in range(len(entries)):
        numbers[k] = entries[k] & most
    # `numbers` is one longer than the entries.
    last = _last_of_equals(numbers[: len(entries)], threshold, key, count)
    for k in range(len(entries)):
        filled[k] = (
            entries[k] if numbers[k] > threshold or (numbers[k] == threshold and key[k] <= last) else 0
        )


@compiled
def _lift_equals(numbers, threshold, keys, tau):
    """Lift numbers at the threshold above it, lowest keys first, until `tau` exceed it."""
    last = _last_of_equals(numbers, threshold, keys, tau - _above(numbers, threshold))
    for k in range(len(numbers)):
        numbers[k] += numbers[k] == threshold and keys[k] <= last


@compiled
def _last_of_equals(numbers, threshold, keys, count):
    """The largest of the `count` lowest keys of numbers at the threshold, by bisection."""
    tied, n = np.empty(len(keys), keys.dtype), 0
    for k in range(len(numbers)):
        if numbers[k] == threshold:
            tied[n] = keys[k]
            n += 1
    low, high = np.int64(-1), np.int64(_most(tied[:n]))
    while high - low > 1:
        middle = low + (high - low) // 2
        chosen = 0
        for k in range(n):
            chosen += tied[k] <= middle
        if chosen < count:
            low = middle
        else:
            high = middle
    return high


@compiled
def _likely_bound(integers, most, tau, numbers, halves, few):
    """A number that the `tau` entries of largest magnitude and few others probably exceed.

    It is estimated from a sample. If it is too large, the caller finds too few entries above it.
    """
    sampled = integers[::_SAMPLED]
    for k in range(len(sampled)):
        numbers[k] = sampled[k] & most
    share = tau / _SAMPLED
    bound, crowded = _threshold_above(
        numbers[: len(sampled)], halves[: len(sampled)], few, int(share + 3.0 * np.sqrt(share) + 2.0)
    )
    return integers.dtype.type(bound - crowded)


@compiled
def _numbers_above(integers, most, bound, numbers, halves):
    """Fill `numbers` with the magnitudes above `bound`; return how many."""
    for k in range(len(integers)):
        halves[k] = (integers[k] & most) > bound
    # Four entries of the mask at a time: all are zero where few magnitudes exceed the bound.
    fours, n = halves[: len(integers) // 4 * 4].view(np.uint64), 0
    for four in range(len(fours)):
        if fours[four]:
            for k in range(4 * four, 4 * four + 4):
                # Without a branch, as below.
                numbers[n] = integers[k] & most
                n += halves[k]
    for k in range(4 * len(fours), len(integers)):
        numbers[n] = integers[k] & most
        n += halves[k]
    return n


@compiled
def _between(numbers, most, low, high, chosen):
    """Fill `chosen` with the magnitudes in (low, high], in their order; return how many."""
    n = 0
    for k in range(len(numbers)):
        number = numbers[k] & most
        # Without a branch: the next number overwrites one that is not kept.
        chosen[n] = number
        n += low < number <= high
    return n


@compiled
def _threshold_above(numbers, halves, few, tau):
    """The threshold that exactly `tau` numbers exceed, or all that are not zero if these are fewer.

    If ties allow no such threshold, it is the least that fewer exceed, and the second value is True. The
    numbers are integers and not negative; `halves` and `few` are scratch of their length.

    Bisects first on the numbers' upper sixteen bits: about fifteen passes without branches over short data
    leave few candidates for the lower bits.
    """
    whole = numbers.dtype.type
    shift = whole(8 * numbers.itemsize - 16)
    everything, most = whole(-1), whole(~(whole(1) << whole(8 * numbers.itemsize - 1)))
    for k in range(len(numbers)):
        halves[k] = numbers[k] >> shift
    if _halves_above(halves, np.int16(0)) <= max(tau, len(numbers) // _FEW):
        n = _between(numbers, everything, whole(0), most, few)
        if n <= tau:
            return whole(0), False
        if n <= len(numbers) // _FEW:
            return _threshold_among(few[:n], tau)
    low, high = np.int16(_least(halves) - 1), _most(halves)  # exceeded by more than tau, and by fewer
    while high - low > 1:
        middle = np.int16((low + high) // 2)
        count = _halves_above(halves, middle)
        if count == tau:
            return whole(((whole(middle) + 1) << shift) - 1), False
        if count > tau:
            low = middle
        else:
            high = middle
    least = whole(high) << shift
    n = _between(numbers, everything, whole(least - 1), whole(least + ((whole(1) << shift) - 1)), few)
    return _threshold_among(few[:n], tau - _halves_above(halves, high))


@compiled
def _threshold_among(numbers, tau):
    """As `_threshold_above` for more than `tau` numbers, by bisection."""
    whole = numbers.dtype.type
    low, high = whole(_least(numbers) - 1), _most(numbers)
    while high - low > 1:
        middle = whole(low + (high - low) // 2)
        count = _above(numbers, middle)
        if count == tau:
            return middle, False
        if count > tau:
            low = middle
        else:
            high = middle
    return high, True


@compiled
def _most(numbers):
    """The largest; numpy's functions for it, and for the least, take seconds to compile."""
    most = numbers[0]
    for number in numbers:
        most = max(most, number)
    return most


@compiled
def _least(numbers):
    """The least."""
    least = numbers[0]
    for number in numbers:
        least = min(least, number)
    return least


@compiled
def _above(numbers, threshold):
    """How many numbers exceed the threshold."""
    count = 0
    for k in range(len(numbers)):
        count += numbers[k] > threshold
    return count


@compiled
def _halves_above(halves, threshold):
    """The same for numbers of sixteen bits; a counter of sixteen bits fits sixteen into a vector."""
    total = 0
    for first in range(0, len(halves), 1 << 14):
        part, above = halves[first : first + (1 << 14)], np.int16(0)
        for k in range(len(part)):
            above = np.int16(above + np.int16(part[k] > threshold))
        total += int(above)
    return total
