"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.stretches import longest

# Where at most one number in so many is not zero, the others are left out at once.
_FEW = 16
# Of numbers of which the largest are sought, one in so many is looked at first.
_SAMPLED = 16
# Fewer than so many numbers are all looked at at once.
_LONG = 1 << 12


@compiled
def keep_largest(bits, most, names, bounds, tau, kept):
    """Fill `kept` with the `tau` entries of largest magnitude of each stretch, and zeros elsewhere.

    Of entries of equal magnitude those with the lowest names are kept.

    Parameters
    ----------
    bits : int array, shape (R, W)
        Floating-point numbers as `operators.hard_threshold.as_whole` gives them, with their largest: without
        the sign bit they are in the order of their magnitudes.
    most : int
    names : int array, shape (R or 1, W)
        Not negative.
    bounds : int array, shape (s + 1,)
        Where the stretches of a row begin, and W.
    tau : int array, shape (R,)
    kept : int array, shape (R, W)
        May be `bits`.
    """
    most_entries = longest(bounds)
    room, few = np.empty(most_entries + 1, bits.dtype), np.empty(most_entries, bits.dtype)
    halves = np.empty(most_entries, np.int16)
    for row in range(len(bits)):
        named = names[min(row, len(names) - 1)]
        for s in range(len(bounds) - 1):
            entries, name = bits[row, bounds[s] : bounds[s + 1]], named[bounds[s] : bounds[s + 1]]
            filled = kept[row, bounds[s] : bounds[s + 1]]
            keep_of_stretch(entries, most, name, tau[row], room, halves, few, filled)


@compiled
def keep_of_stretch(entries, most, name, tau, numbers, halves, few, filled):
    """`keep_largest` of one stretch (n,); `numbers` (n + 1,), `halves` (n,), and `few` (n,) are room."""
    if len(entries) < _LONG:
        _keep_of_few(entries, most, name, tau, numbers[: len(entries)], halves, few, filled)
    else:
        _keep_of_many(entries, most, name, tau, numbers, halves, few, filled)


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
    packed, kept, names = np.empty(size), np.empty(size), np.arange(size)
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
        keep_of_stretch(entries, most, names, tau, numbers, halves, few, filled)
        for j in range(n):
            line = kept[j * (j + 1) // 2 :]
            for k in range(j + 1):
                if line[k] != 0.0:
                    A[j, k] = A[k, j] = line[k]


@compiled
def _keep_of_few(entries, most, name, tau, numbers, halves, few, filled):
    """The same where all entries are looked at."""
    for k in range(len(entries)):
        numbers[k] = entries[k] & most
    cut, crowded = _cut_above(numbers, halves[: len(entries)], few, tau)
    if crowded:
        _lift_equals(numbers, cut, name, tau)
    # Not written at once where it is read, which would be compiled without vectors.
    for k in range(len(entries)):
        numbers[k] = entries[k] if numbers[k] > cut else 0
    for k in range(len(entries)):
        filled[k] = numbers[k]


@compiled
def _keep_of_many(entries, most, name, tau, numbers, halves, few, filled):
    """The same where it pays to put aside, with a few others, what may be among the largest."""
    bound = _likely_bound(entries, most, tau, numbers, halves, few)
    n = _numbers_above(entries, most, bound, numbers, halves)
    if n < tau and bound > 0:
        bound = entries.dtype.type(0)
        n = _numbers_above(entries, most, bound, numbers, halves)
    cut, crowded = _cut_above(numbers[:n], halves[:n], few, tau)
    # Where no more than `tau` exceed the bound, it is the cut: the others have not been looked at.
    cut = max(cut, bound)
    if not crowded:
        for k in range(len(entries)):
            numbers[k] = entries[k] if entries[k] & most > cut else 0
        for k in range(len(entries)):
            filled[k] = numbers[k]
        return
    count = tau - _above(numbers[:n], cut)
    for k in range(len(entries)):
        numbers[k] = entries[k] & most
    # Behind the entries there is room, with whatever was left there.
    last = _last_of_equals(numbers[: len(entries)], cut, name, count)
    for k in range(len(entries)):
        filled[k] = entries[k] if numbers[k] > cut or (numbers[k] == cut and name[k] <= last) else 0


@compiled
def _lift_equals(numbers, cut, names, tau):
    """Lift above the cut as many of the numbers at it, those of the lowest names, as make `tau` exceed it."""
    last = _last_of_equals(numbers, cut, names, tau - _above(numbers, cut))
    for k in range(len(numbers)):
        numbers[k] += numbers[k] == cut and names[k] <= last


@compiled
def _last_of_equals(numbers, cut, names, count):
    """The largest of the `count` lowest names of numbers at the cut, by halving the range of the names."""
    tied, n = np.empty(len(names), names.dtype), 0
    for k in range(len(numbers)):
        if numbers[k] == cut:
            tied[n] = names[k]
            n += 1
    low, high = np.int64(-1), np.int64(_most(tied[:n]))
    while high - low > 1:
        middle = low + (high - low) // 2
        found = 0
        for k in range(n):
            found += tied[k] <= middle
        if found < count:
            low = middle
        else:
            high = middle
    return high


@compiled
def _likely_bound(bits, most, tau, numbers, halves, few):
    """A number that, if all goes well, the `tau` entries of largest magnitude exceed, with few others.

    It is told by one entry in so many; where it is too large, the caller finds too few.
    """
    sampled = bits[::_SAMPLED]
    for k in range(len(sampled)):
        numbers[k] = sampled[k] & most
    share = tau / _SAMPLED
    bound, crowded = _cut_above(
        numbers[: len(sampled)], halves[: len(sampled)], few, int(share + 3.0 * np.sqrt(share) + 2.0)
    )
    return bits.dtype.type(bound - crowded)


@compiled
def _numbers_above(bits, most, bound, numbers, halves):
    """Fill `numbers` with the magnitudes above `bound`; return how many."""
    for k in range(len(bits)):
        halves[k] = (bits[k] & most) > bound
    # Four marks at a time, which are none where few magnitudes exceed the bound.
    fours, n = halves[: len(bits) // 4 * 4].view(np.uint64), 0
    for four in range(len(fours)):
        if fours[four]:
            for k in range(4 * four, 4 * four + 4):
                # Without a branch, as below.
                numbers[n] = bits[k] & most
                n += halves[k]
    for k in range(4 * len(fours), len(bits)):
        numbers[n] = bits[k] & most
        n += halves[k]
    return n


@compiled
def _between(numbers, most, low, high, found):
    """Fill `found` with the magnitudes in (low, high], in their order; return how many."""
    n = 0
    for k in range(len(numbers)):
        number = numbers[k] & most
        # Without a branch: what is not to be kept is written over by the next.
        found[n] = number
        n += low < number <= high
    return n


@compiled
def _cut_above(numbers, halves, few, tau):
    """A number that exactly `tau` of the others exceed, or as many as are not zero.

    Where there is none since some are equal, it is the least that fewer exceed, and the second value
    returned is True. The numbers are whole and not negative; `halves` and `few` are room for as many.

    Counting takes a pass, but one without branches: some fifteen halvings of the range of the numbers' first
    sixteen bits, which are quickly read, leave few to be told apart by the others.
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
            return _cut_among(few[:n], tau)
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
    return _cut_among(few[:n], tau - _halves_above(halves, high))


@compiled
def _cut_among(numbers, tau):
    """As `_cut_above` for numbers that are more than `tau`, by halving their range."""
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
def _above(numbers, cut):
    """How many of the numbers exceed another."""
    count = 0
    for k in range(len(numbers)):
        count += numbers[k] > cut
    return count


@compiled
def _halves_above(halves, cut):
    """The same for numbers of sixteen bits, counted in as many: sixteen of them in a vector."""
    total = 0
    for first in range(0, len(halves), 1 << 14):
        part, above = halves[first : first + (1 << 14)], np.int16(0)
        for k in range(len(part)):
            above = np.int16(above + np.int16(part[k] > cut))
        total += int(above)
    return total
