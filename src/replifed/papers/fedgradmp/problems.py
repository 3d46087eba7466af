"""The paper's problems: regression, and where methods rest on it; a frame, digits by writer, a theorem's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.data.surrogates import clip
from replifed.engine.simulate import Metric
from replifed.operators import dictionaries
from replifed.operators.dictionaries import ksvd
from replifed.operators.projections import MatchingPursuit
from replifed.problems.by_class import SoftmaxByClass
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, loss_named
from replifed.randomness import generator

if TYPE_CHECKING:
    from replifed.papers.fedgradmp import settings as of

# Thresholds of the 1-norm in a round: of FedMid each local step and the server apply one.
_APPLIED = {"fedmid": 2.0, "feddualavg": 1.0, "fedavg": 0.0}


class Planted(NamedTuple):
    """A regression problem and its solution x#, shape (D,)."""

    problem: DenseLinearModel
    solution: NDArray


def _sparse_model(rng: np.random.Generator, n: int, tau: int) -> NDArray:
    """Draw x#: non-zeros at random places, uniform on the unit sphere."""
    x = np.zeros(n)
    values = rng.standard_normal(tau)
    x[rng.choice(n, tau, replace=False)] = values / np.linalg.norm(values)
    return x


def heterogeneous(
    rng: np.random.Generator, clients: int, m: int, n: int, alpha: float, decay: float
) -> Iterator[NDArray]:
    """Draw the clients' matrices, one after the other.

    Client i = 1, ..., N has entries N(mu_i, 1/i^c), with one mean mu_i ~ N(0, alpha) for all of them
    (Section V-A; the second argument is a variance).
    """
    for i, mean in enumerate(np.sqrt(alpha) * rng.standard_normal(clients), start=1):
        A = rng.standard_normal((m, n))
        A *= i ** (-decay / 2)
        A += mean
        yield A


def regression(settings: of.Regression, alpha: float, noise: float, replicate: int) -> Planted:
    """Noisy measurements of one sparse model, with matrices whose law differs from client to client.

    All values of alpha and of the noise share their random numbers.
    """
    N, m, n, tau = settings.clients, settings.samples, settings.features, settings.planted
    rng = generator(settings.seed, replicate, None, "data/regression")
    x = _sparse_model(rng, n, tau)
    errors = rng.standard_normal((N, m))
    X = np.stack([*heterogeneous(rng, N, m, n, alpha, settings.decay)])[None]
    y = X @ x + np.sqrt(noise) * errors
    return Planted(DenseLinearModel(X, y, LeastSquares()), x)


def isometry(settings: of.Isometry, condition: float, noise: float, replicate: int) -> Planted:
    """A regression whose clients' losses have Hessians between 1 and `condition`, so that Theorem 5 applies.

    The Hessians are diagonal, and each client has one sample a coordinate.
    """
    N, n, tau = settings.clients, settings.features, settings.planted
    rng = generator(settings.seed, replicate, None, "data/isometry")
    x = _sparse_model(rng, n, tau)
    shares = rng.random((N, n))
    # Both ends are attained on every client.
    shares[:, 0], shares[:, 1] = 0.0, 1.0
    curvature = 1.0 + (condition - 1.0) * shares
    X = np.zeros((1, N, n, n))
    X[0, :, np.arange(n), np.arange(n)] = np.sqrt(n * curvature).T
    y = X @ x + np.sqrt(noise) * rng.standard_normal((1, N, n))
    return Planted(DenseLinearModel(X, y, LeastSquares()), x)


class Frame(NamedTuple):
    """A frame to be recovered from its clients' measurements."""

    problem: DenseLinearModel  # in the coefficients of the dictionary, with features A_i Psi
    projection: MatchingPursuit
    atoms: NDArray  # Psi (pixels, d)
    image: NDArray  # (pixels,), in [0, 1]
    number: int  # of the frame in its clip, from 1
    best: NDArray  # coefficients (d,) of the best approximation by tau atoms that matching pursuit finds

    def psnr(self, _: Any, seen: dict[str, NDArray]) -> NDArray:
        """Metric: peak signal-to-noise ratio of the server's frame, in decibels."""
        left = seen["server"] @ self.atoms.T - self.image
        return -10 * np.log10(np.mean(left**2, axis=-1))


def clip_of(settings: of.Video | of.DrawnVideo, table: Any) -> NDArray:
    """The frames of the paper's clip, or of a drawn one, as bytes (frames, pixels)."""
    if settings.problem == "video":
        return table.X
    return clip(
        generator(settings.seed, 0, None, "data/clip/world"),
        generator(settings.seed, 0, None, "data/clip/sample"),
        frames=settings.frames,
    )[0]


def videos(settings: of.Clip, frames: NDArray) -> Iterator[Frame]:
    """Figure 2: learn a dictionary from the frames before the target, measure the target at each client.

    Takes bytes (frames, pixels). Yields measurements of each repetition, which share the dictionary.
    """
    target = min(settings.target, len(frames)) - 1
    training, image = frames[: min(settings.training, target)].T / 255.0, frames[target] / 255.0
    d = min(settings.atoms, training.shape[1])
    atoms = ksvd(
        training,
        d,
        min(settings.atom_sparsity, d),
        settings.iterations,
        generator(settings.seed, 0, None, "data/ksvd"),
    ).atoms
    # Lengths and inner products of combinations of atoms are those in R^d: nothing else needs the pixels.
    _, small = dictionaries.small_space(atoms)
    projection = MatchingPursuit(small.T @ small)
    best = projection.pursue((image @ atoms)[None], min(settings.sparsity, d))[0]
    N, m = settings.clients, settings.samples
    for replicate in settings.replicates:
        rng = generator(settings.seed, replicate, None, "data/video")
        X, y = np.empty((1, N, m, d)), np.empty((1, N, m))
        for i, A in enumerate(heterogeneous(rng, N, m, len(image), settings.alpha, settings.decay)):
            X[0, i], y[0, i] = A @ atoms, A @ image
        yield Frame(DenseLinearModel(X, y, LeastSquares()), projection, atoms, image, target + 1, best)


class Digits(NamedTuple):
    """Softmax regression on digits, one client a writer; and features and labels of the other writers."""

    problem: DenseLinearModel
    test: tuple[NDArray, NDArray]


def digits(settings: of.Digits, table: Any) -> Digits:
    """Deal the table, writer by writer, to clients; the writers left over are the test set.

    With Gaussian atoms Psi (784 x d) models are Psi a, that is features are Psi' b.
    """
    N, m = settings.clients, settings.samples
    X = (table.X / np.float32(255)).astype(settings.dtype)
    if settings.dictionary == "gaussian":
        assert settings.atoms is not None
        rng = generator(settings.seed, 0, None, "data/atoms")
        X = X @ dictionaries.gaussian(rng, X.shape[1], settings.atoms).astype(X.dtype)
    y = table.y
    train = X[: N * m].reshape(1, N, m, -1), y[: N * m].reshape(1, N, m)
    model = SoftmaxByClass if settings.classes else DenseLinearModel
    problem = model(*train, loss_named("softmax", int(y.max()) + 1))
    return Digits(problem, (X[N * m :], y[N * m :]))


def limit(method: str, planted: Planted, weight: float = 0.0) -> float:
    """Relative error of the model that a method of short steps would come to.

    Of dense methods that is the minimiser of f + c weight |x|_1, with c = 0 for FedAvg, 1 for FedDualAvg and
    2 for FedMid. Sparse ones could do no better than least squares on the true support, of all clients'
    samples: the oracle.

    Notes
    -----
    Clients have equally many samples, so that f is the mean square over all of them.
    """
    data, solution = planted
    A, y = data.X.reshape(-1, data.n_features), data.y.ravel()
    x = np.zeros_like(solution)
    if method in _APPLIED:
        x = _lasso(A, y, _APPLIED[method] * weight)
    else:
        support = solution != 0
        x[support] = np.linalg.lstsq(A[:, support], y, rcond=None)[0]
    return float(np.linalg.norm(x - solution) / np.linalg.norm(solution))


def _lasso(A: NDArray, y: NDArray, weight: float) -> NDArray:
    """Minimise |Ax - y|^2 / (2m) + weight |x|_1, from least squares on."""
    gram, correlations = A.T @ A, A.T @ y
    x = np.linalg.solve(gram, correlations)
    if not weight:
        return x
    from sklearn.linear_model import lasso_path  # late: no other job of the paper needs it

    path = lasso_path(A, y, alphas=[weight], precompute=gram, Xy=correlations, coef_init=x, tol=1e-7)
    return path[1][:, 0]


# --- Metrics beyond objective and sparsity ---


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
