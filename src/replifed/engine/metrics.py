"""Metrics beyond objective and sparsity: distance to a known solution, its support, accuracy on labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.simulate import Metric


def relative_error(solution: NDArray) -> Metric:
    """|x - x#| / |x#| of the server's model; `solution` (D,) or (R, D)."""
    norm = np.linalg.norm(solution, axis=-1)

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        return np.linalg.norm(seen["server"] - solution, axis=-1) / norm

    return metric


def support_precision(solution: NDArray) -> Metric:
    """Share of the model's non-zeros that are non-zeros of the solution; one for a model of zeros."""

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        support = seen["server"] != 0
        right = (support & (solution != 0)).sum(axis=-1)
        return np.where(support.any(axis=-1), right / np.maximum(support.sum(axis=-1), 1), 1.0)

    return metric


def support_recall(solution: NDArray) -> Metric:
    """Share of the solution's non-zeros that are non-zeros of the model."""

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        right = ((seen["server"] != 0) & (solution != 0)).sum(axis=-1)
        return right / np.count_nonzero(solution, axis=-1)

    return metric


def accuracy(X: NDArray, y: NDArray) -> Metric:
    """Share of the samples `X` (n, d) whose class `y` (n,) has the largest score."""

    def metric(_: Any, seen: dict[str, NDArray]) -> NDArray:
        x = seen["server"]
        models = x.reshape(len(x), X.shape[1], -1)
        columns = models.transpose(1, 0, 2).reshape(X.shape[1], -1)
        scores = (X @ columns).reshape(len(X), len(x), -1)
        return (scores.argmax(axis=-1) == y[:, None]).mean(axis=0)

    return metric
