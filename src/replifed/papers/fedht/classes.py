"""Digits whose local models are thresholded as a whole, as in Algorithm 2, or class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.operators.hard_threshold import hard_threshold, threshold_by_class
from replifed.partition.heterogeneity import group_counts
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel, DenseLocalModels
from replifed.problems.losses import loss_named


def images(table: Any, client: NDArray, dtype: np.dtype, model: type = DenseLinearModel) -> Any:
    """Softmax regression on pixels in [0, 1], stacked by client."""
    held = [np.flatnonzero(client == i) for i in range(int(client.max()) + 1)]
    X, y, sizes = stacked([[(table.X[rows], table.y[rows]) for rows in held]], dtype)
    X /= 255
    return model(X, y, loss_named("softmax", int(table.y.max()) + 1), sizes=sizes)


class _LocalModels(DenseLocalModels):
    """Local models that note their non-zeros each time they are thresholded."""

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        digits = self._problem
        u = threshold_by_class(u, tau, digits.unseen.shape[1]) if digits.by_class else hard_threshold(u, tau)
        digits.local_share = share_unseen(u, digits.unseen)
        return u

    def descend(self, *_: Any, **more: Any) -> None:
        """Nothing: steps are taken one by one, with `threshold` between them."""


class Digits(DenseLinearModel):
    """Images with a local threshold by class, or as it is; they note the local models' non-zeros.

    Column u of `unseen` (N, C) says whether clients hold no sample of class u; `local_share` is the mean over
    clients of the share of their last models' non-zeros that belong to such classes.
    """

    unseen: NDArray
    by_class: bool
    local_share = 0.0

    def local_models(self, x: NDArray) -> _LocalModels:
        return _LocalModels(self, x)


def digits(table: Any, client: NDArray, dtype: np.dtype, *, by_class: bool) -> Digits:
    """The images of each client, with a threshold as a whole or `by_class`."""
    unseen = group_counts(client, table.y) == 0
    made = images(table, client, dtype, Digits)
    made.unseen, made.by_class = unseen, by_class
    return made


def share_unseen(u: NDArray, unseen: NDArray) -> float:
    """Mean over clients of the share of a model's non-zeros that belong to unseen classes."""
    clients, classes = unseen.shape
    count = np.count_nonzero(u.reshape(clients, -1, classes), axis=1)
    return float(np.mean((count * unseen).sum(axis=1) / np.maximum(count.sum(axis=1), 1)))


def server_share(digits: Digits, seen: dict[str, NDArray]) -> NDArray:
    """Share of the server's non-zeros in classes that a client does not hold, mean over clients, (1,)."""
    return np.array([share_unseen(np.repeat(seen["server"], digits.n_clients, axis=0), digits.unseen)])


def local_share(digits: Digits, _: dict[str, NDArray]) -> NDArray:
    """Share of the last local models' non-zeros in classes that their client does not hold, (1,)."""
    return np.array([digits.local_share])
