"""Proximal maps of convex penalties h: prox_{c h}(v) = argmin_x h(x) + |x - v|^2 / (2 c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError


def soft_threshold(v: NDArray, weight: NDArray | float) -> NDArray:
    """sign(v) max(|v| - weight, 0), that is prox of weight |.|_1 at `v`; `weight` broadcasts."""
    weight = np.asarray(weight, dtype=v.dtype)
    # v minus its projection on [-weight, weight]: two passes, and no branch on the sign.
    return v - np.clip(v, -weight, weight)


class Penalty(Protocol):
    """A convex, closed function h with a cheap proximal map."""

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        """prox_{c h} of `v` (..., D); `c` positive, a number or of the shape of `v` without its last axis."""


@dataclass(frozen=True)
class Zero:
    """h = 0."""

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return v


@dataclass(frozen=True, kw_only=True)
class L1:
    """h = weight |x|_1; its proximal map is soft thresholding."""

    weight: float

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ConfigError(f"L1.weight = {self.weight}: must be at least 0")

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return soft_threshold(v, self.weight * np.asarray(c)[..., None])
