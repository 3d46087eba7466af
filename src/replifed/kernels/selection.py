"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled

# After so many halvings the range is tightened to the numbers in it: where some are equal, halving alone
# would go on to the last bit.
_TIGHTEN = 16


@compiled
def keep_largest(bits, most, names, bounds, tau):
    """Set all but the `tau` entries of largest magnitude of each stretch to zero, in place.

    Of entries of equal magnitude those with the lowest names are kept.

    Parameters
    ----------
    bits : int array, shape (R, W)
        Floating-point numbers as `operators.hard_threshold.as_whole` gives them, with their largest: without
        the sign bit they are in the order of their magnitudes.
    most : int
    names : int array, shape (R or 1, W)
    bounds : int array, shape (s + 1,)
        Where the stretches of a row begin, and W.
    tau : int array, shape (R,)
    """
    room = np.empty(np.diff(bounds).max(), bits.dtype)
    for row in range(len(bits)):
        named = names[min(row, len(names) - 1)]
        for s in range(len(bounds) - 1):
            entries, name = bits[row, bounds[s] : bounds[s + 1]], named[bounds[s] : bounds[s + 1]]
            numbers = room[: len(entries)]
            for k in range(len(entries)):
                numbers[k] = entries[k] & most
            cut, crowded = _cut_above(numbers, tau[row])
            if crowded:
                last = np.sort(name[numbers == cut])[tau[row] - _above(numbers, cut) - 1]
                for k in range(len(entries)):
                    # At the cut, but kept: lifted above it.
                    numbers[k] += numbers[k] == cut and name[k] <= last
            for k in range(len(entries)):
                entries[k] = entries[k] if numbers[k] > cut else 0


@compiled
def _cut_above(numbers, tau):
    """A number that exactly `tau` of the others exceed, or as many as are not zero.

    Where there is none since some are equal, it is the least that fewer exceed, and the second value
    returned is True. The numbers are whole and not negative.

    Counting takes a pass, but one without branches, and some twenty halvings of the range suffice.
    """
    whole = numbers.dtype.type
    low = whole(0)  # exceeded by more than tau ...
    if _above(numbers, low) <= tau:
        return low, False
    high = numbers.max()  # ... and by less
    halvings = 0
    while high - low > 1:
        middle = whole(low + (high - low) // 2)
        count = _above(numbers, middle)
        if count == tau:
            return middle, False
        if count > tau:
            low = middle
        else:
            high = middle
        halvings += 1
        if halvings == _TIGHTEN:
            least, most = high, low
            for number in numbers:
                if low < number <= high:
                    least, most = min(least, number), max(most, number)
            low, high = whole(least - 1), most
    return high, True


@compiled
def _above(numbers, cut):
    """How many of the numbers exceed another."""
    count = 0
    for k in range(len(numbers)):
        count += numbers[k] > cut
    return count
