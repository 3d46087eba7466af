"""The problems: logistic regression with a ridge, the same with a 1-norm, and a planted sparse regression.

Repetitions are the first axis of one problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from replifed.algorithms.newton_type import averaged
from replifed.errors import ReplifedError
from replifed.memory import free
from replifed.operators.lasso import lasso
from replifed.operators.proximal import soft_threshold
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from replifed.papers.cross import settings as of

# Losses that custom data may have; all other data have logistic ones.
_LOSSES = ("least_squares", "softmax")
_MOST_STEPS = 100
_WHITE = 255.0  # a pixel
# Copies of the features at a time, about: as clients' and stacked, in doubles and in floats of 32 bits.
_COPIES = 3
# Newton's method stops after a move as short as this: the objective then changes by its square.
_SHORTEST = 1e-8


class Regression(DenseLinearModel):
    """F(x) = sum_i p_i f_i(x) + l1 |x|_1 of a linear model.

    For FedMM it is a `Surrogate`: at tau each f_i lies below its expansion <grad f_i(tau), x> +
    L |x - tau|^2 / 2, which s = tau - grad f_i(tau) / L determines, so that MM is the proximal gradient
    method. All clients take part in it.
    """

    l1 = 0.0  # weight of the 1-norm
    support: NDArray | None = None  # planted, boolean (S, D)

    def in_floats(self) -> Regression:
        """The same in floats of 32 bits; mu and L, which take as long as a run, are those of the doubles."""
        X, y = self.X.astype(np.float32), self.y
        y = y.astype(np.float32) if y.dtype.kind == "f" else y  # classes are numbers of columns
        floats = Regression(X, y, self.loss_function, sizes=self.sizes, weights=self.weights, l2=self.l2)
        floats.l1, floats.support, floats._of_all = self.l1, self.support, self.common_mu_L()
        for name in ("sample_weights", "batch_weights"):  # of a problem `with_equal_weights`
            setattr(floats, name, getattr(self, name).astype(X.dtype))
        return floats

    def loss(self, x: NDArray) -> NDArray:
        smooth = super().loss(x)
        return smooth + self.l1 * np.abs(x).sum(axis=-1) if self.l1 else smooth

    @property
    def parameters(self) -> int:
        return self.dim

    def start(self, streams: Streams) -> NDArray:
        return np.zeros((len(streams), self.dim))

    def oracle(self, theta: NDArray, chosen: NDArray | None, batch: NDArray | None) -> NDArray:
        return theta[:, None] - self.client_gradients(theta) / self._L[..., None]

    def mirror(self, theta: NDArray) -> NDArray:
        return theta - self.gradient(theta) / self._L

    def T(self, s: NDArray) -> NDArray:
        return soft_threshold(s, self.l1 / self._L)

    def project(self, s: NDArray) -> NDArray:
        return s

    @property
    def _L(self) -> NDArray:
        return self.common_mu_L()[1][:, None]


class SparseRegression(SparseLinearModel):
    """The same of logistic losses on sparse features, of one repetition."""

    l1 = 0.0
    support: NDArray | None = None

    def in_floats(self) -> SparseRegression:
        """The same in floats of 32 bits."""
        X, y = self.X.astype(np.float32), self.y.astype(np.float32)
        owner, p = np.repeat(np.arange(self.n_clients), self.sizes[0]), self.weights.astype(np.float32)
        return SparseRegression(X, y, self.loss_function, owner, weights=p, l2=self.l2)

    def common_mu_L(self) -> tuple[NDArray, NDArray]:
        """Smallest mu and largest L over all clients, (1,) each."""
        return self.strong_convexity().min(axis=1), self.smoothness().max(axis=1)


def _sparse(settings: of.OnDataSet, replicate: int, table: Any, partition: Any) -> SparseRegression:
    clients = [(table.X[rows], y) for rows, y in _drawn(settings, replicate, table, partition)]
    sizes = np.array([len(y) for _, y in clients])
    X, y = vstack([X for X, _ in clients], format="csr"), np.concatenate([y for _, y in clients])
    owner, p = np.repeat(np.arange(len(sizes)), sizes), np.full((1, len(sizes)), 1.0 / len(sizes))
    return SparseRegression(X, y, loss_named("logistic"), owner, weights=p, l2=settings.ridge)


def problem(
    settings: of.Experiment, replicates: Sequence[int], table: Any, partition: Any
) -> Regression | SparseRegression:
    """The problem of some repetitions, each with other data.

    F has the plain mean of the losses f_i, or `weights` by samples. The partition splits a table's samples,
    of which a client has `samples` at most, drawn, or all; clients with fewer are padded. Where features stay
    sparse, there is one repetition.
    """
    support, ridge = None, 0.0
    if settings.problem == "sparse":
        (replicate,) = replicates
        return _sparse(settings, replicate, table, partition)
    if settings.problem == "planted":
        drawn = [_planted(settings, replicate) for replicate in replicates]
        clients, support = [data for data, _ in drawn], np.stack([planted for _, planted in drawn])
        name = "least_squares"
    else:
        _refuse_what_does_not_fit(settings, replicates, table, partition)
        clients = [client_samples(settings, replicate, table, partition) for replicate in replicates]
        ridge, name = settings.ridge, _loss(settings)
    X, y, sizes = stacked(clients)
    # Classes are those of the whole table: a client may lack some.
    loss = loss_named(name, int(table.y.max()) + 1 if name == "softmax" else 1)
    if getattr(settings, "weights", "equal") == "samples":
        weights = sizes / sizes.sum(axis=1, keepdims=True)
    else:
        weights = np.full(sizes.shape, 1.0 / sizes.shape[1])
    y = y.astype(int if name == "softmax" else float)  # classes are numbers of columns
    regression = Regression(X, y, loss, sizes=sizes, weights=weights, l2=ridge)
    regression.l1 = settings.l1 if settings.problem == "composite" else 0.0
    regression.support = support
    return regression


def _refuse_what_does_not_fit(
    settings: of.OnDataSet, replicates: Sequence[int], table: Any, partition: Any
) -> None:
    """Refuse dense features, of all repetitions and padded clients, for which there is no memory."""
    held = [partition.clients[name] for name in replicates]
    sizes = [np.unique(client[client >= 0], return_counts=True)[1] for client in held]
    m, N = min(max(map(max, sizes)), settings.samples or table.X.shape[0]), max(map(len, sizes))
    needed, limit = _COPIES * 8.0 * len(sizes) * N * m * table.X.shape[1], free()
    if needed > limit:
        raise ReplifedError(
            f"{settings.dataset}: {len(sizes)} repetitions of {N} clients with up to {m} samples of "
            f"{table.X.shape[1]} features take {needed / 2**30:.1f} GiB, {limit / 2**30:.1f} are free: give "
            "the data set `samples`, the most of a client"
        )


def _loss(settings: of.OnDataSet) -> str:
    return settings.problem if settings.problem in _LOSSES else "logistic"


def client_samples(settings: of.OnDataSet, replicate: int, table: Any, partition: Any) -> list:
    """Features and labels of each client."""
    drawn = _drawn(settings, replicate, table, partition)
    return [(dense(table.X[rows]), y) for rows, y in drawn]


def _drawn(settings: of.OnDataSet, replicate: int, table: Any, partition: Any) -> list[tuple]:
    """Numbers and labels of the samples of each client."""
    client, y = partition.clients[replicate], targets(settings, table.y)
    rng = generator(settings.seed, replicate, None, "samples")
    samples = (np.flatnonzero(client == i) for i in np.unique(client[client >= 0]))
    drawn = [rng.permutation(rows)[: settings.samples] for rows in samples]
    return [(rows, y[rows]) for rows in drawn]


def targets(settings: of.OnDataSet, y: NDArray) -> NDArray:
    """Labels as the loss takes them."""
    return np.where(y > 0, 1.0, -1.0) if _loss(settings) == "logistic" else y.astype(float)


def dense(X: Any) -> NDArray:
    """Features as an array; pixels, which are bytes, are divided by the largest one."""
    if not isinstance(X, np.ndarray):
        return X.toarray()
    return X / _WHITE if X.dtype == np.uint8 else X.astype(float)


def _planted(settings: of.Planted, replicate: int) -> tuple[list, Any]:
    """Features and targets of each client, and the planted support.

    Each client's model is the planted one, perturbed on its support, and its features have other scales.
    """
    rng = generator(settings.seed, replicate, None, "planted")
    d, m, spread = settings.features, settings.samples, settings.spread
    support = np.zeros(d, bool)
    support[rng.choice(d, round(settings.kept_share * d), replace=False)] = True
    x = support * rng.choice([-1.0, 1.0], d) * rng.uniform(1.0, 2.0, d)
    clients = []
    for _ in range(settings.clients):
        A = rng.standard_normal((m, d)) * np.exp(spread * rng.standard_normal(d))
        x_i = x + support * spread * rng.standard_normal(d)
        clients.append((A, A @ x_i + settings.noise * rng.standard_normal(m)))
    return clients, support


def solution(problem: Regression | SparseRegression) -> NDArray:
    """The model (S, D) whose gap is zero: the minimiser, over the planted support if there is one."""
    sets, d = len(problem.weights), problem.dim
    if problem.support is not None:
        x, mask = np.zeros((sets, d)), problem.support
        H = averaged(problem.weights, problem.client_hessians(x)) * (mask[:, None] & mask[..., None])
        # Off the support the system is the identity's.
        return -np.linalg.solve(H + np.eye(d) * ~mask[:, None], (problem.gradient(x) * mask)[..., None])[
            ..., 0
        ]
    if problem.l1 and isinstance(problem, Regression):
        return _proximal_newton(problem)
    return minimiser(problem, sets)


def _proximal_newton(problem: Regression) -> NDArray:
    """Minimise the quadratic expansion and the 1-norm repeatedly, with halved steps."""
    x = np.zeros((len(problem.X), problem.dim))
    for _ in range(_MOST_STEPS):
        H, before = averaged(problem.weights, problem.client_hessians(x)), problem.loss(x)
        right = np.einsum("sab,sb->sa", H, x) - problem.gradient(x)
        move = lasso(H, right[:, None], problem.l1)[:, 0] - x
        if np.abs(move).max() <= _SHORTEST:
            return x + move
        length = np.ones((len(x), 1))
        while (worse := problem.loss(x + length * move) > before + 1e-14 * np.abs(before)).any():
            length[worse] /= 2
        x = x + length * move
    raise ReplifedError(f"the proximal Newton method still moves by {np.abs(move).max():.2g}")
