"""The largest of many numbers, by radix selection: digit by digit, among those with equal digits so far."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled

# Bits of a digit; the first one of a double is its exponent.
_DIGIT = 11
_MASK = (1 << _DIGIT) - 1


@compiled
def keep_largest(integers, most, keys, bounds, tau, kept):
    """Fill `kept` with the `tau` (R,) entries of largest magnitude of each segment, and zeros elsewhere.

    Of entries of equal magnitude it keeps those with the lowest keys, (R or 1, W) and not negative.
    `integers` (R, W) are floating-point numbers as `operators.hard_threshold.as_integers` gives them, with
    the largest integer, `most`: without the sign bit they are in the order of their magnitudes. `kept` may be
    `integers`. `bounds` are where the segments of a run begin, and W.
    """
    size = 0
    for s in range(len(bounds) - 1):
        size = max(size, bounds[s + 1] - bounds[s])
    scratch = np.empty(size + 1, integers.dtype), np.empty(size + 1, keys.dtype), _counts()
    for run in range(len(integers)):
        all_keys = keys[min(run, len(keys) - 1)]
        for s in range(len(bounds) - 1):
            segment = slice(bounds[s], bounds[s + 1])
            keep_in_segment(
                integers[run, segment], most, all_keys[segment], tau[run], scratch, kept[run, segment]
            )


@compiled
def keep_largest_of_triangles(matrices, tau):
    """Keep the `tau` entries of largest magnitude of each lower triangle, with their mirror images.

    Other entries of the symmetric matrices (m, n, n) become zero. Of equal ones the first stay, row by row.
    """
    n = matrices.shape[1]
    size = n * (n + 1) // 2
    packed, numbers, counts = np.empty(size), np.empty(size + 1, np.int64), _counts()
    integers, most = packed.view(np.int64), np.int64((1 << 63) - 1)
    for A in matrices:
        for j in range(n):
            line = packed[j * (j + 1) // 2 :]
            for k in range(j + 1):
                line[k] = A[j, k]
        nonzero = 0
        for k in range(size):
            # Without a branch: the next one overwrites what is zero.
            numbers[nonzero] = integers[k] & most
            nonzero += numbers[nonzero] != 0
        threshold, equals = np.int64(1), size
        if nonzero > tau:
            threshold, equals, _ = _select(numbers[:nonzero], tau, counts)
        A[:] = 0.0
        for j in range(n):
            line = integers[j * (j + 1) // 2 :]
            for k in range(j + 1):
                number = line[k] & most
                if number >= threshold and (number > threshold or equals > 0):
                    equals -= number == threshold
                    A[j, k] = A[k, j] = packed[j * (j + 1) // 2 + k]


@compiled
def _counts():
    return np.empty(1 << _DIGIT, np.int32)


@compiled
def keep_in_segment(entries, most, key, tau, scratch, filled):
    """`keep_largest` of one segment (n,); scratch: integers (n + 1,), keys (n + 1,), and `_counts`."""
    numbers, keys, counts = scratch
    size, n = len(entries), 0
    for k in range(size):
        # Without a branch, here and below: the next one overwrites what is not kept.
        numbers[n] = entries[k] & most
        n += numbers[n] != 0
    threshold, count, equals = entries.dtype.type(1), 0, 0
    if n > tau:
        threshold, count, equals = _select(numbers[:n], tau, counts)
    # In two loops: one that writes where it reads would be compiled without vectors.
    if equals > count:
        tied = 0
        for k in range(size):
            keys[tied] = key[k]
            tied += entries[k] & most == threshold
        last, _, _ = _select(keys[:equals], equals - count + 1, counts)
        for k in range(size):
            number = entries[k] & most
            numbers[k] = entries[k] if number > threshold or (number == threshold and key[k] <= last) else 0
    else:
        for k in range(size):
            numbers[k] = entries[k] if entries[k] & most >= threshold else 0
    for k in range(size):
        filled[k] = numbers[k]


@compiled
def _select(numbers, tau, counts):
    """The tau-th largest of numbers >= 0, how many of its equals are among the tau, and in all.

    Overwrites `numbers`.
    """
    n, shift = len(numbers), 8 * numbers.itemsize - 1
    while n > 1 and shift > 0:
        shift = max(shift - _DIGIT, 0)
        for digit in range(len(counts)):
            counts[digit] = 0
        largest = numbers[0]
        for k in range(n):
            largest = max(largest, numbers[k])
        for k in range(n):
            counts[(numbers[k] >> shift) & _MASK] += 1
        # The digit of the tau-th largest; all numbers share those before.
        digit = (largest >> shift) & _MASK
        while counts[digit] < tau:
            tau -= counts[digit]
            digit -= 1
        left = 0
        for k in range(n):
            number = numbers[k]
            numbers[left] = number
            left += (number >> shift) & _MASK == digit
        n = left
    return numbers[0], tau, n
