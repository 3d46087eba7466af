"""Samples that are drawn with replacement."""

from __future__ import annotations

from replifed.kernels import compiled


@compiled
def count_drawn(drawn, times, distinct):
    """Fill `distinct` with the samples `drawn` (b,), each once and in the order of their first draws.

    Returns how many they are. `times` (m,) is zero for these samples, and then how often each was drawn.
    """
    n = 0
    for j in drawn:
        if times[j] == 0:
            distinct[n] = j
            n += 1
        times[j] += 1
    return n


@compiled
def weigh_drawn(drawn, scale, times, distinct, share):
    """As `count_drawn`, with `times` zeros again at the end and `share` (b,) what each sample weighs.

    That is `scale` as often as the sample was drawn.
    """
    n = count_drawn(drawn, times, distinct)
    for j in range(n):
        share[j], times[distinct[j]] = times[distinct[j]] * scale, 0
    return n
