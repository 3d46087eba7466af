"""A problem from clients' arrays: dense or sparse, a list or one stacked array."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from replifed.errors import ReplifedError
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel

_FORMS = "a list of (features, targets), one pair a client; or features (N, m, d) with targets (N, m)"


def from_clients(
    data: Any,
    targets: Any = None,
    *,
    loss: str = "logistic",
    l2: float = 0.0,
    weights: ArrayLike | None = None,
    classes: int = 0,
    dtype: DTypeLike = np.float64,
) -> DenseLinearModel | SparseLinearModel:
    """A linear model on the clients' data.

    Parameters
    ----------
    data : sequence of (features, targets), or array of features
        Pairs of arrays (m_i, d) and (m_i,), one per client; features may be sparse matrices. Or one array
        (N, m, d), with `targets` (N, m).
    targets : array, optional
    loss : "logistic" (targets -1 or +1), "least_squares" or "softmax" (targets 0 to classes - 1).
    l2 : weight of |x|^2 / 2 in each client's loss.
    weights : array (N,), optional
        p_i > 0 in F = sum_i p_i f_i, with f_i the mean loss of client i; their sum is one. 1/N by default.
    classes : number of classes of a softmax, some of which may have no sample. By default there are as many
        as different targets; others than 0 to classes - 1 are numbered in their order, with a warning.
    dtype : of the whole computation on dense features: float64, or float32, which takes half the memory.

    Raises
    ------
    ReplifedError
        The arrays have another form, or do not fit together; the message is one line.
    """
    if targets is not None and len(data) != len(targets):
        raise ReplifedError(f"features of {len(data)} clients, targets of {len(targets)}: expected {_FORMS}")
    pairs = _pairs(data if targets is None else zip(data, targets, strict=True))
    if not pairs:
        raise ReplifedError(f"there are no clients: expected {_FORMS}")
    X = [_array(one, f"client {i}: features") for i, (one, _) in enumerate(pairs)]
    y = [_array(one, f"client {i}: targets") for i, (_, one) in enumerate(pairs)]
    for i, (one, wanted) in enumerate(zip(X, y, strict=True)):
        if one.ndim != 2 or wanted.shape != one.shape[:1] or not wanted.size:
            raise ReplifedError(
                f"client {i}: features {one.shape} and targets {wanted.shape}; expected {_FORMS}"
            )
    if len(counts := {one.shape[1] for one in X}) > 1:
        listed = ", ".join(map(str, sorted(counts)))
        raise ReplifedError(f"clients have {listed} features: must be equally many")
    for i, one in enumerate(y):
        if not np.isfinite(one).all():
            raise ReplifedError(f"client {i}: targets hold NaN or infinite numbers: leave such samples out")
    if loss == "softmax":
        y, classes = _classes(y, classes)
    named = loss_named(loss, classes)
    sizes, N = np.array([one.size for one in y]), len(y)
    p = np.full((1, N), 1 / N) if weights is None else np.asarray(_array(weights, "weights"), float)[None]
    if p.shape != (1, N):
        raise ReplifedError(f"{p[0].size} weights for {N} clients: give each one")
    if any(map(sp.issparse, X)):
        owner = np.repeat(np.arange(N), sizes)
        return SparseLinearModel(
            sp.csr_array(sp.vstack(X)), np.concatenate(y), named, owner, weights=p, l2=l2
        )
    features, targets, sizes = stacked([list(zip(X, y, strict=True))], dtype)
    if targets.dtype.kind == "f":
        targets = targets.astype(dtype)
    return DenseLinearModel(features, targets, named, sizes=sizes, weights=p, l2=l2)


def stacked(
    sets: Sequence[Sequence[tuple[NDArray, NDArray]]], dtype: DTypeLike = np.float64
) -> tuple[NDArray, NDArray, NDArray]:
    """Clients' features (S, N, m, d) and targets (S, N, m) of several data sets, padded, and their sizes."""
    sizes = np.array([[len(y) for _, y in clients] for clients in sets])
    X = np.zeros((*sizes.shape, sizes.max(), sets[0][0][0].shape[1]), dtype)
    # A target of every loss where there is no sample.
    y = np.ones(X.shape[:3], np.result_type(*(b for clients in sets for _, b in clients)))
    for s, clients in enumerate(sets):
        for i, (A, b) in enumerate(clients):
            X[s, i, : len(b)], y[s, i, : len(b)] = A, b
    return X, y, sizes


def _classes(y: list[Any], classes: int) -> tuple[list[Any], int]:
    """Targets of a softmax as numbers of classes, and the number of classes."""
    labels = np.unique(np.concatenate(y))
    shown = ", ".join(f"{label:g}" for label in labels[:5]) + ", ..." * (len(labels) > 5)
    if classes:
        if not np.isin(labels, np.arange(classes)).all():
            raise ReplifedError(f"targets {shown}: must be whole numbers from 0 to {classes - 1}")
        return y, classes
    if len(labels) < 2:
        raise ReplifedError(f"all targets are {shown}: a softmax needs two classes; or state `classes`")
    if not np.array_equal(labels, np.arange(len(labels))):
        text = f"targets {shown} are numbered from 0 in their order: {len(labels)} classes"
        warnings.warn(text, stacklevel=3)
        y = [np.searchsorted(labels, one) for one in y]
    return y, len(labels)


def _pairs(data: Any) -> Sequence[tuple[Any, Any]]:
    try:
        pairs = [tuple(pair) for pair in data]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 for pair in pairs):
        raise ReplifedError(f"the clients' data are {type(data).__name__} of another form: expected {_FORMS}")
    return pairs


def _array(value: ArrayLike, what: str) -> Any:
    if sp.issparse(value):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        raise ReplifedError(f"{what} are no numbers: expected {_FORMS}")
    return array
