"""Proximal maps of convex penalties h: prox_{c h}(v) = argmin_x h(x) + |x - v|^2 / (2 c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.operators.soft_threshold import soft_threshold


class Penalty(Protocol):
    """A convex, closed function h with a cheap proximal map."""

    def value(self, x: NDArray) -> NDArray:
        """h at `x` (..., D), infinite outside its domain; shape (...)."""

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        """prox_{c h} of `v` (..., D); `c` positive, a number or of the shape of `v` without its last axis."""


def _spread(c: float | NDArray) -> NDArray:
    return np.asarray(c)[..., None]


@dataclass(frozen=True)
class Zero:
    """h = 0."""

    def value(self, x: NDArray) -> NDArray:
        return np.zeros(x.shape[:-1])

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return v


@dataclass(frozen=True, kw_only=True)
class L1:
    """h = weight |x|_1; its proximal map is soft thresholding."""

    weight: float

    def __post_init__(self) -> None:
        _refuse_negative(self, "weight")

    def value(self, x: NDArray) -> NDArray:
        return self.weight * np.abs(x).sum(axis=-1)

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return soft_threshold(v, self.weight * _spread(c))


@dataclass(frozen=True, kw_only=True)
class ElasticNet:
    """h = l1 |x|_1 + l2 |x|^2 / 2."""

    l1: float
    l2: float

    def __post_init__(self) -> None:
        _refuse_negative(self, "l1", "l2")

    def value(self, x: NDArray) -> NDArray:
        return self.l1 * np.abs(x).sum(axis=-1) + 0.5 * self.l2 * (x * x).sum(axis=-1)

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return L1(weight=self.l1).prox(v, c) / (1.0 + self.l2 * _spread(c))


@dataclass(frozen=True, kw_only=True)
class Box:
    """h = 0 for low <= x <= high, coordinate by coordinate, infinite elsewhere."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ConfigError(f"Box: low = {self.low} is above high = {self.high}")

    def value(self, x: NDArray) -> NDArray:
        inside = ((x >= self.low) & (x <= self.high)).all(axis=-1)
        return np.where(inside, 0.0, np.inf)

    def prox(self, v: NDArray, c: float | NDArray) -> NDArray:
        return np.clip(v, self.low, self.high)


def _refuse_negative(penalty: object, *names: str) -> None:
    for name in names:
        if not getattr(penalty, name) >= 0:
            raise ConfigError(
                f"{type(penalty).__name__}.{name} = {getattr(penalty, name)}: must be at least 0"
            )
