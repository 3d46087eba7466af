"""The paper's two problems: logistic regression on Fashion-MNIST (one class against the rest) and on w8a."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import generator


class Drawn(NamedTuple):
    """A problem of some repetitions, side by side.

    Attributes
    ----------
    replicates : names of the repetitions
    problem : with one data set a repetition
    minimum : array, shape (R,)
        f*, by Newton's method to a gradient of 1e-13.
    """

    replicates: tuple[int, ...]
    problem: Any
    minimum: NDArray


def problems(settings: dict, table: Any, *, apart: bool = False) -> Iterator[Drawn]:
    """Draw the devices' samples, uniformly without replacement, anew for each repetition.

    Dense data of all repetitions make one problem, unless they are wanted `apart`. Sparse ones always are: a
    row of 300 features keeps 8 x 300 x 300 numbers in several arrays.
    """
    replicates = tuple(settings["replicates"])
    if apart:
        for replicate in replicates:
            yield from problems(settings | {"replicates": [replicate]}, table)
        return
    if sp.issparse(table.X):
        for replicate in replicates:
            rows = _samples(settings, len(table.y), replicate)
            device = np.repeat(np.arange(settings["clients"]), settings["samples"])
            X, y = sp.csr_array(table.X)[rows], _labels(settings, table.y[rows])
            problem = SparseLinearModel(X, y, loss_named("logistic"), device, l2=settings["l2"])
            yield _solved((replicate,), problem)
        return
    drawn = []
    for replicate in replicates:
        rows = _samples(settings, len(table.y), replicate)
        drawn.append((_features(settings, table.X[rows]), _labels(settings, table.y[rows])))
    shape = (len(replicates), settings["clients"], settings["samples"])
    X = np.stack([features for features, _ in drawn]).reshape(*shape, -1)
    y = np.stack([labels for _, labels in drawn]).reshape(shape)
    yield _solved(replicates, DenseLinearModel(X, y, loss_named("logistic"), l2=settings["l2"]))


def _solved(replicates: tuple[int, ...], problem: Any) -> Drawn:
    return Drawn(replicates, problem, problem.loss(minimiser(problem, len(replicates))))


def _samples(settings: dict, rows: int, replicate: int) -> NDArray:
    """Rows of all devices, device after device."""
    rng = generator(settings["seed"], replicate, None, "data")
    return rng.permutation(rows)[: settings["clients"] * settings["samples"]]


def _labels(settings: dict, y: NDArray) -> NDArray:
    """+1 for the positive class, -1 for the rest; labels that are so already are kept."""
    positive = settings.get("positive")
    return np.asarray(y, float) if positive is None else np.where(y == positive, 1.0, -1.0)


def _features(settings: dict, images: NDArray) -> NDArray:
    """Pixels in [0, 1], their leading principal components, and a constant."""
    X = np.asarray(images, dtype=float) / settings["pixel_scale"]
    components = settings.get("components")
    if components is not None:
        X = X - X.mean(axis=0)
        features = X.shape[1]
        leading = (features - components, features - 1)
        V = scipy.linalg.eigh(X.T @ X, subset_by_index=leading)[1][:, ::-1]
        V = V * np.where(np.take_along_axis(V, np.abs(V).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)
        X = X @ V
    return np.hstack([X, np.ones((len(X), 1))]) if settings["intercept"] else X
