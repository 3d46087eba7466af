"""The problems: dictionaries (Section 6), EM (Appendix C), transport (Section 7), a toy (Remark 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.partition.clusters import equal_clusters
from replifed.problems.surrogates.base import Family, FederatedSurrogate
from replifed.problems.surrogates.families import (
    DictionaryLearning,
    GaussianMixture,
    Location,
    Poisson,
    PoissonKnownMean,
    Rate,
)
from replifed.problems.transport import FederatedTransport, Mixture, TrueMap
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from replifed.papers.fedmm.settings import Dictionary, ExpectationMaximisation, MovieLens, Transport

TOYS: dict[str, Family] = {"interval": Location(), "rate": Rate()}
# Numbers of transport's samples on which the map is tested, and of public samples of Q.
_TESTS, _PUBLIC = 4096, 2**14


def sparse_signals(settings: Dictionary, replicate: int) -> NDArray:
    """Signals z_j = theta* h_j with a fixed number of non-zero codes each, shape (samples, features).

    theta* has independent entries N(0, 1); the codes' positions are drawn without replacement, their values
    from N(0, 1).
    """
    p, K, n = settings.features, settings.atoms, settings.samples
    rng = generator(settings.seed, replicate, None, "data/dictionary")
    theta = rng.standard_normal((p, K))
    count = max(round(settings.nonzeros * K), 1)
    support = np.argsort(rng.random((n, K)), axis=1)[:, :count]
    h = np.zeros((n, K))
    np.put_along_axis(h, support, rng.standard_normal((n, count)), axis=1)
    return h @ theta.T


def dictionary_problem(settings: Dictionary | MovieLens, replicates: list[int], table: Any, partition: Any):
    """Problem (28) of every run: synthetic data are drawn for each of the `replicates`, MovieLens is shared.

    All methods start from a dictionary with entries N(0, 1); s_0 is its mirror.
    """
    N = settings.clients
    if settings.problem == "movielens":
        ratings = table.X[:, partition.meta["columns"]].toarray()
        Z = _by_client(ratings, partition.cluster, N)[None]
    else:
        samples = {replicate: _synthetic(settings, replicate) for replicate in set(replicates)}
        Z = np.stack([samples[replicate] for replicate in replicates])
    family = DictionaryLearning(
        features=Z.shape[-1], atoms=settings.atoms, lam=settings.lam, eta=settings.eta
    )
    streams = Streams(settings.seed, tuple(replicates))
    theta = streams.draw("start", lambda rng: rng.standard_normal(family.parameters))
    return FederatedSurrogate(family, Z, theta, n_clients=N)


def _synthetic(settings: Dictionary, replicate: int) -> NDArray:
    """Synthetic samples by client, (N, m, p); (1, n, p) if all clients hold all samples."""
    Z = sparse_signals(settings, replicate)
    if not settings.heterogeneous:
        return Z[None]
    return _clustered(Z, settings.clients, generator(settings.seed, replicate, None, "clusters"))


def _clustered(Z: NDArray, clients: int, rng: np.random.Generator) -> NDArray:
    """Samples (n, p) by client, a cluster each, shape (N, n / N, p)."""
    return _by_client(Z, equal_clusters(Z, clients, int(rng.integers(2**31))), clients)


def _by_client(Z: NDArray, cluster: NDArray, clients: int) -> NDArray:
    return np.stack([Z[cluster == i] for i in range(clients)])


def em_problem(settings: ExpectationMaximisation, replicate: int) -> FederatedSurrogate:
    """Example of EM on heterogeneous clients: their intensities, or shares of the components, differ."""
    N, m = settings.clients, settings.samples // settings.clients
    rng = generator(settings.seed, replicate, None, f"data/{settings.model}")
    if settings.model == "mixture":
        L, p = settings.components, settings.features
        assert L is not None and p is not None
        means = 3 * rng.standard_normal((L, p))
        shares = rng.dirichlet(np.full(L, 0.5), size=N)
        component = (rng.random((N, m, 1)) > np.cumsum(shares, axis=1)[:, None, :-1]).sum(axis=2)
        Z = means[component] + rng.standard_normal((N, m, p))
        family: Any = GaussianMixture(weights=shares.mean(axis=0), covariance=np.eye(p), lam=settings.lam)
        theta = (means + rng.standard_normal((L, p))).reshape(1, -1)
    else:
        intensity = 1.0 + 0.7 * rng.standard_normal((N, 1))
        Z = rng.poisson(np.exp(intensity + rng.standard_normal((N, m))))[..., None].astype(float)
        if settings.model == "poisson":
            family = Poisson(lam=settings.lam)
        else:
            family = PoissonKnownMean(lam=settings.lam, mean=float(Z.mean()))
        theta = np.full((1, 1), -1.0)
    return FederatedSurrogate(family, Z[None], theta)


def toy_problem(reading: str, z: list[float]) -> FederatedSurrogate:
    """Remark 1: client i holds the single value z_i."""
    return FederatedSurrogate(TOYS[reading], np.array(z, float)[None, :, None, None], np.array([[0.3]]))


def transport_problem(settings: Transport, table: Any, replicates: list[int]) -> FederatedTransport:
    """Transport: each repetition has other samples and another split, all have one true map.

    `table` holds the parameters of the two networks behind the true map.
    """
    dim, N, seed = settings.dim, settings.clients, settings.seed
    purpose, mixture = f"data/transport {dim}", Mixture(dim=dim)
    true_map = TrueMap(table.X, dim, mixture.sample(generator(seed, 0, None, purpose), _PUBLIC))
    data_sets = []
    for replicate in replicates:
        rng = generator(seed, replicate, None, purpose)
        clients = _clustered(mixture.sample(rng, settings.samples), N, rng)
        public = true_map(mixture.sample(rng, _PUBLIC))
        data_sets.append((clients, public, mixture.sample(rng, _TESTS)))
    sources, targets, tests = map(np.stack, zip(*data_sets, strict=True))
    return FederatedTransport(sources, targets, tests, true_map)
