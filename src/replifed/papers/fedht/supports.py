"""Supports of models as numbers, so that histories hold them, and distances between them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.simulate import Metric

if TYPE_CHECKING:
    import pandas as pd

# Coordinates in a word: whole numbers of so many bits are exact in double precision.
_BITS = 48
NAME = "support."


def support_words(dim: int) -> dict[str, Metric]:
    """Metrics of the server's model that together hold its support, a bit a coordinate."""
    return {f"{NAME}{first:05d}": partial(_word, first=first) for first in range(0, dim, _BITS)}


def _word(_: Any, seen: dict[str, NDArray], first: int) -> NDArray:
    kept = seen["server"][:, first : first + _BITS] != 0
    return kept @ 2.0 ** np.arange(kept.shape[1])


def supports(lines: pd.DataFrame, twin: str = "") -> NDArray:
    """Supports of lines of a history, or those of a twin, as a mask (lines, coordinates)."""
    end = f".{twin}" if twin else ""
    names = sorted(name for name in lines if name.startswith(NAME) and name.count(".") == 1)
    words = lines[[name + end for name in names]].to_numpy(np.float64)
    bits = words[..., None].astype(np.int64) >> np.arange(_BITS) & 1
    return bits.astype(bool).reshape(len(lines), -1)


def apart(one: NDArray, other: NDArray) -> NDArray:
    """Share of two supports' coordinates, counted in each, that the other lacks: 0 equal, 1 disjoint."""
    return (one ^ other).sum(axis=-1) / np.maximum(one.sum(axis=-1) + other.sum(axis=-1), 1)
