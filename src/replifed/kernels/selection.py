"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled

# After so many halvings the range is tightened to the numbers in it: where some are equal, halving alone
# would go on to the last bit.
_TIGHTEN = 16


@compiled
def keep_largest(bits, most, tau, kept):
    """Fill `kept` with the `tau` entries of largest magnitude of each row, and zeros elsewhere.

    Of entries of equal magnitude the first are kept; of zeros none.

    Parameters
    ----------
    bits, kept : int arrays, shape (n, d)
        Floating-point numbers and the largest whole number `most` as `operators.hard_threshold.as_whole`
        gives them: without the sign bit they are in the order of their magnitudes.
    most : int
    tau : int array, shape (n,)
    """
    numbers = np.empty(bits.shape[1], bits.dtype)
    for i in range(len(bits)):
        for k in range(len(numbers)):
            numbers[k] = bits[i, k] & most
        cut, crowded = cut_above(numbers, tau[i])
        for k in range(len(numbers)):
            kept[i, k] = bits[i, k] if numbers[k] > cut else 0
        if crowded:
            room = tau[i] - above(numbers, cut)
            for k in range(len(numbers)):
                if numbers[k] == cut and room > 0:
                    kept[i, k] = bits[i, k]
                    room -= 1


@compiled
def cut_above(numbers, tau):
    """A number that exactly `tau` of the others exceed, or as many as are not zero.

    Where there is none since some are equal, it is the least that fewer exceed, and the second value
    returned is True. The numbers are whole and not negative.

    Counting takes a pass, but one without branches, and some twenty halvings of the range suffice.
    """
    whole = numbers.dtype.type
    low = whole(0)  # exceeded by more than tau ...
    high = numbers.max()  # ... and by less
    if above(numbers, low) <= tau:
        return low, False
    halvings = 0
    while high - low > 1:
        middle = whole(low + (high - low) // 2)
        count = above(numbers, middle)
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
def above(numbers, cut):
    """How many of the numbers exceed another."""
    count = 0
    for k in range(len(numbers)):
        count += numbers[k] > cut
    return count
