"""Uniform dithered quantisation in one pass; see `operators.quantise`."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled_as_written, read_only
from replifed.kernels.linear import copy


def quantise_grown(v, received, before, after, dither, wraps, clips, scale, out):
    """Fill `out` with `received`, (R, N, k, n), and with v quantised wherever bits per coordinate have grown.

    Only the first k vectors of `v`, `before`, `after`, and of the `dither` of each run or of all, are read.
    If it `wraps`, dither is added modulo 2, and subtracted in the end; if it also `clips`, coordinates that
    would wrap around go to the last cell on their side, which later bits split. Else `scale` widths of a
    cell times the dither are added.
    """
    # All read-only, or all would be compiled once more for arrays that are.
    v, received, before, after, dither = map(read_only, (v, received, before, after, dither))
    _quantise_grown(v, received, before, after, dither, wraps, clips, scale, out)


@compiled_as_written
def _quantise_grown(v, received, before, after, dither, wraps, clips, scale, out):
    R, N, k, n = received.shape
    for r in range(R):
        for i in range(N):
            for m in range(k):
                if after[r, i, m] <= before[r, i, m]:
                    copy(received[r, i, m], out[r, i, m])
                    continue
                # A power of two, so that all products with it are exact.
                delta = np.exp2(1.0 - after[r, i, m])
                last = 2.0 / delta - 1.0
                shift = 1.0 if wraps else scale * delta
                exact, noise, quantised = v[r, i, m], dither[r % len(dither), i, m], out[r, i, m]
                if clips and before[r, i, m] > 0:
                    _split(exact, received[r, i, m], np.exp2(1.0 - before[r, i, m]), delta, quantised)
                    continue
                for j in range(n):
                    w = exact[j] + shift * noise[j]
                    if wraps:
                        w -= 2.0 * np.floor(0.5 * (w + 1.0))
                    cell = min(max(np.floor((w + 1.0) / delta), 0.0), last)
                    w = (cell + 0.5) * delta - 1.0
                    if wraps:
                        w -= noise[j]
                        w -= 2.0 * np.floor(0.5 * (w + 1.0))
                    if clips and abs(w - exact[j]) > 1.0:
                        w += np.copysign(2.0 - delta, exact[j])
                    quantised[j] = w


@compiled_as_written
def _split(exact, received, width, delta, quantised):
    """Split cells of `width` about `received` into those of width `delta`; take the nearest to `exact`."""
    last = width / delta - 1.0
    for j in range(len(exact)):
        low = received[j] - 0.5 * width
        cell = min(max(np.floor((exact[j] - low) / delta), 0.0), last)
        quantised[j] = low + (cell + 0.5) * delta
