"""The largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled


@compiled
def keep_largest(bits, most, tau, kept):
    """Fill `kept` with the `tau` entries of largest magnitude of each row, and zeros elsewhere.

    Of entries of equal magnitude the first are kept; of zeros none.

    Parameters
    ----------
    bits, kept : int arrays, shape (n, d)
        Floating-point numbers as the whole numbers that their bits spell. Without the sign these are in
        the order of the magnitudes, with NaN above all.
    most : int
        The largest whole number of that type: all bits but the sign.
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
            room = tau[i] - _above(numbers, cut)
            for k in range(len(numbers)):
                if numbers[k] == cut and room > 0:
                    kept[i, k] = bits[i, k]
                    room -= 1


@compiled
def cut_above(numbers, tau):
    """A number that exactly `tau` of the others exceed, or as many as are not zero.

    Where there is none since some are equal, it is the least that fewer exceed, and the second value
    returned is True. The numbers are whole and not negative.

    Counting takes a pass, but one without branches, and a handful of halvings of the range suffice.
    """
    low = numbers.dtype.type(0)  # exceeded by more than tau ...
    high = numbers.max()  # ... and by less
    if _above(numbers, low) <= tau:
        return low, False
    while high - low > 1:
        middle = low + (high - low) // 2
        count = _above(numbers, middle)
        if count == tau:
            return middle, False
        if count > tau:
            low = middle
        else:
            high = middle
    return high, True


@compiled
def _above(numbers, cut):
    count = np.int32(0)
    for k in range(len(numbers)):
        count += np.int32(numbers[k] > cut)
    return count
