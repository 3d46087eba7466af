"""The few largest of many numbers."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled


@compiled
def places_of_largest(numbers, places):
    """Fill `places` (n, k) with where the k largest of each row of `numbers` (n, d) stand.

    The numbers are whole and not negative; of equal ones the first are taken.
    """
    n, k = places.shape
    best = np.empty(k, numbers.dtype)
    for i in range(n):
        for at in range(k):
            best[at] = -1
        for j in range(numbers.shape[1]):
            number = numbers[i, j]
            if number > best[k - 1]:  # seldom, once a few have been seen
                at = k - 1
                while at > 0 and best[at - 1] < number:
                    best[at], places[i, at] = best[at - 1], places[i, at - 1]
                    at -= 1
                best[at], places[i, at] = number, j
