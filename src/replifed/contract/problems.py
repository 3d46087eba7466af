"""Small problems to check the contract on, with clients that can be listed in any order, or several times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.problems.surrogates.base import FederatedSurrogate
from replifed.problems.surrogates.families import DictionaryLearning
from replifed.problems.transport import FederatedTransport

# No other axis may have the length of the clients' axis, by which checks find it; nor is N a power of two.
N, FEATURES, SAMPLES, L2 = 11, 10, 16, 0.1
FAMILY = DictionaryLearning(features=4, atoms=3, lam=0.2, eta=0.05)


def size(client: int) -> int:
    """Number of samples of a client, enough for a Hessian of full rank; i and i + 5 have equally many."""
    return (16, 12, 15, 16, 14)[client % 5]


# Checks make problems over and over: of the same clients' data, which are drawn once, and copied.
@cache
def samples(client: int, data_set: int) -> tuple[NDArray, NDArray]:
    """Features (n, d), of which a third are zero, and labels of one client."""
    rng, n = np.random.default_rng((data_set, client)), size(client)
    X = rng.standard_normal((n, FEATURES)) * (rng.random((n, FEATURES)) < 0.7)
    return X / np.sqrt(np.arange(1, FEATURES + 1)), rng.choice([-1.0, 1.0], n)


def dense(clients: Sequence[int], data_sets: Sequence[int]) -> DenseLinearModel:
    X = np.zeros((len(data_sets), len(clients), SAMPLES, FEATURES))
    y = np.zeros(X.shape[:3])
    for s, data_set in enumerate(data_sets):
        for i, client in enumerate(clients):
            X[s, i, : size(client)], y[s, i, : size(client)] = samples(client, data_set)
    sizes = np.array([[size(client) for client in clients]] * len(data_sets))
    return DenseLinearModel(X, y, loss_named("logistic"), sizes=sizes, l2=L2)


def sparse(clients: Sequence[int], data_sets: Sequence[int]) -> SparseLinearModel:
    (data_set,) = data_sets
    X, y = zip(*(samples(client, data_set) for client in clients), strict=True)
    owner = np.repeat(np.arange(len(clients)), [len(targets) for targets in y])
    return SparseLinearModel(
        sp.csr_array(np.concatenate(X)), np.concatenate(y), loss_named("logistic"), owner, l2=L2
    )


@cache
def scattered(client: int, data_set: int) -> NDArray:
    """Points of one client around a mean of its own, shape (n, 4)."""
    rng = np.random.default_rng((data_set, client))
    return rng.normal(size=(SAMPLES, 4)) + 2 * rng.normal(size=4)


def surrogate(clients: Sequence[int], data_sets: Sequence[int]) -> FederatedSurrogate:
    Z = np.array([[scattered(client, data_set) for client in clients] for data_set in data_sets])
    theta = [np.random.default_rng((data_set, 99)).normal(size=FAMILY.parameters) for data_set in data_sets]
    return FederatedSurrogate(FAMILY, Z, np.array(theta))


@cache
def points(data_set: int, name: int, count: int) -> NDArray:
    """Standard normal points in the plane, shape (count, 2)."""
    return np.random.default_rng((data_set, name)).normal(size=(count, 2))


def transport(clients: Sequence[int], data_sets: Sequence[int]) -> FederatedTransport:
    sources = [[points(data_set, client, 20) for client in clients] for data_set in data_sets]
    targets = np.array([points(data_set, 99, 30) for data_set in data_sets])
    problem = FederatedTransport(np.array(sources), targets, targets, lambda x: x)
    # In doubles: Adam takes the rounding errors of single precision for steps of full length.
    problem.dtype = np.dtype(float)  # type: ignore[assignment]
    problem._sources, problem._targets = problem._sources.astype(float), problem._targets.astype(float)
    return problem


KINDS: dict[str, Callable[[Sequence[int], Sequence[int]], Any]] = {
    "dense": dense,
    "sparse": sparse,
    "surrogate": surrogate,
    "transport": transport,
}
# Each run of a batch may have data of its own; a cohort may take part.
OWN_DATA = ("dense", "surrogate", "transport")
COHORTS = ("dense", "sparse", "surrogate", "transport")


def make(kind: str, clients: Sequence[int] = range(N), data_sets: Sequence[int] = (0,)) -> Any:
    """Return a problem of some clients, with a data set for each run of a batch, or one for all."""
    return KINDS[kind](clients, data_sets)


@cache
def _example(kind: str) -> Any:
    return make(kind)


def kinds_for(needs: Sequence[type]) -> list[str]:
    """Return the kinds of problems that have all capabilities that a method needs."""
    return [kind for kind in KINDS if all(isinstance(_example(kind), need) for need in needs)]
