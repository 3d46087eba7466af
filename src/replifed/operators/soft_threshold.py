"""Soft thresholding: the proximal map of the 1-norm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def soft_threshold(v: NDArray, weight: NDArray | float) -> NDArray:
    """sign(v) max(|v| - weight, 0), that is prox of weight |.|_1 at `v`; `weight` broadcasts."""
    weight = np.asarray(weight, dtype=v.dtype)
    # v minus its projection on [-weight, weight]: two passes, and no branch on the sign.
    return v - np.clip(v, -weight, weight)
