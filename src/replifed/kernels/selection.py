"""The largest of many numbers, by narrowing the range in which the least of them lies."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, compiled_within

# Bits of a number behind its exponent, by its size in bytes: so far apart are integers of one octave.
_SINGLE, _DOUBLE = 23, 52
_FARTHEST = 1 << 60
# A good guess is off by some 2^-5 of an octave.
_NEAR = 5
# Bytes of numbers that are counted in the time in which one is packed.
_PACKING = 32


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
    scratch, none = (np.empty(size, integers.dtype), np.empty(size + 1, keys.dtype)), np.intp(0)
    for run in range(len(integers)):
        all_keys = keys[min(run, len(keys) - 1)]
        for s in range(len(bounds) - 1):
            segment = slice(bounds[s], bounds[s + 1])
            keep_in_segment(
                integers[run, segment], most, all_keys[segment], tau[run], none, scratch, kept[run, segment]
            )


@compiled
def largest_of_triangles(matrices, values, places):
    """Fill `values` (m, tau) with the entries of largest magnitude of lower triangles, row by row.

    `places` (m, tau) are n times row plus column in the matrices (m, n, n). Of equal entries the
    first are taken, and zeros never: what is not filled stays as it was.
    """
    n, tau = matrices.shape[1], values.shape[1]
    size = n * (n + 1) // 2
    packed, numbers = np.empty(size), np.empty(size, np.int64)
    integers, most = packed.view(np.int64), np.int64((1 << 63) - 1)
    for i in range(len(matrices)):
        for j in range(n):
            line, a = packed[j * (j + 1) // 2 :], matrices[i, j]
            for k in range(j + 1):
                line[k] = a[k]
        for k in range(size):
            numbers[k] = integers[k] & most
        threshold, equals, _ = _select(numbers, tau, np.intp(1), np.intp(0))
        taken = 0
        for j in range(n):
            begin = j * (j + 1) // 2
            line = integers[begin : begin + j + 1]
            # Most rows hold none of them, which a loop without a branch finds in vectors.
            if _reaching_magnitude(line, most, threshold) == 0:
                continue
            for k in range(j + 1):
                number = line[k] & most
                if number >= threshold and (number > threshold or equals > 0):
                    equals -= number == threshold
                    values[i, taken], places[i, taken] = packed[begin + k], j * n + k
                    taken += 1


@compiled
def keep_in_segment(entries, most, key, tau, guess, scratch, filled):
    """`keep_largest` of one segment (n,); scratch: integers (n,) and keys (n + 1,).

    Returns the least magnitude kept, or a number a little below it. A `guess` of it saves time, 0 for none.
    """
    numbers, keys = scratch
    size = len(entries)
    for k in range(size):
        numbers[k] = entries[k] & most
    threshold, count, equals = _select(numbers[:size], tau, np.intp(1), guess)
    # In two loops: one that writes where it reads would be compiled without vectors.
    if equals > count:
        tied = 0
        for k in range(size):
            # Without a branch: the next one overwrites what is not tied.
            keys[tied] = key[k]
            tied += entries[k] & most == threshold
        # These keys and higher ones.
        dropped, _, _ = _select(keys[:equals], equals - count, np.intp(0), np.intp(0))
        for k in range(size):
            number = entries[k] & most
            held = number > threshold or (number == threshold and key[k] < dropped)
            numbers[k] = entries[k] if held else 0
    else:
        for k in range(size):
            numbers[k] = entries[k] if entries[k] & most >= threshold else 0
    for k in range(size):
        filled[k] = numbers[k]
    return threshold


@compiled_within
def _select(numbers, tau, least, guess):
    """A number that `tau` of `numbers` reach, or `least` if fewer reach that.

    Returns with it how many that equal it are among the tau, and in all: only if these are more it has to be
    one of the numbers. Overwrites `numbers`. A `guess` of the result above `least` saves passes. A pass that
    counts is many times as fast as one that sorts.
    """
    # `reached` are at least `low`; `beyond`, fewer than tau, are above `top`.
    low, top, beyond, below, above = np.int64(least), np.int64(guess), np.int64(0), False, False
    far = np.int64(1) << (_SINGLE if numbers.itemsize == 4 else _DOUBLE)
    if guess <= least:
        # Most often the largest are a few octaves apart.
        for k in range(len(numbers)):
            top = max(top, np.int64(numbers[k]))
        reached, above = _reaching(numbers, low), True
    else:
        reached, far = _reaching(numbers, top), far >> _NEAR
        if reached >= tau:
            low, top, below = top, np.int64(np.iinfo(numbers.dtype).max), True
        else:
            top, beyond, reached, above = top - 1, reached, _reaching(numbers, low), True
    passes, gone = 0, np.int64(0)
    while reached > tau and low < top:
        if _PACKING * (reached - beyond) < len(numbers) * numbers.itemsize:
            numbers, gone = numbers[: _pack(numbers, low, top)], beyond
        if not below:
            middle = top - min(far, (top - low) // 2)
        elif not above:
            middle = low + min(far, (top - low) // 2 + 1)
        elif passes % 3 < 2:
            # Where `tau` would be if numbers were spread evenly. Where they are not, every third halves.
            share = (reached - tau) / (reached - beyond)
            middle, passes = low + max(np.int64(1), np.int64(share * (top - low))), passes + 1
        else:
            middle, passes = top - (top - low) // 2, passes + 1
        count, far = gone + _reaching(numbers, middle), 2 * min(far, np.int64(_FARTHEST))
        if count >= tau:
            low, reached, below = middle, count, True
        else:
            top, beyond, above = middle - 1, count, True
    return numbers.dtype.type(low), tau - beyond, reached - beyond


@compiled_within
def _reaching(numbers, least):
    """Number of `numbers` that are at least `least`."""
    # Both of their own type, so that as many fit into a vector.
    least, count = numbers.dtype.type(least), numbers.dtype.type(0)
    for k in range(len(numbers)):
        count = numbers.dtype.type(count + (numbers[k] >= least))
    return np.int64(count)


@compiled_within
def _reaching_magnitude(integers, most, least):
    """Number of `integers` that are at least `least` without their sign bit."""
    count = np.int64(0)
    for k in range(len(integers)):
        count += (integers[k] & most) >= least
    return count


@compiled_within
def _pack(numbers, least, most):
    """Move numbers from `least` to `most` to the front; returns how many."""
    least, most, n = numbers.dtype.type(least), numbers.dtype.type(most), 0
    for k in range(len(numbers)):
        # Without a branch: the next one overwrites what is not kept.
        number = numbers[k]
        numbers[n] = number
        n += (number >= least) & (number <= most)
    return n
