"""The paper's synthetic data (Section 6), data for its EM examples (Appendix C), and its toy (Remark 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.partition.equal import equal_clusters
from replifed.problems.surrogates.base import Family, FederatedSurrogate
from replifed.problems.surrogates.jensen import GaussianMixture, Poisson, PoissonKnownMean
from replifed.problems.surrogates.means import Location, Rate
from replifed.problems.surrogates.variational import DictionaryLearning
from replifed.randomness import generator


def sparse_signals(settings: dict, replicate: int) -> NDArray:
    """Signals z_j = theta* h_j with a fixed number of non-zero codes each, shape (samples, features).

    theta* has independent entries N(0, 1); the codes' places are drawn without replacement, their values
    from N(0, 1).
    """
    p, K, n, share = (settings[key] for key in ("features", "atoms", "samples", "nonzeros"))
    rng = generator(settings["seed"], replicate, None, "data/dictionary")
    theta = rng.standard_normal((p, K))
    count = max(round(share * K), 1)
    places = np.argsort(rng.random((n, K)), axis=1)[:, :count]
    h = np.zeros((n, K))
    np.put_along_axis(h, places, rng.standard_normal((n, count)), axis=1)
    return h @ theta.T


def dictionary_problem(settings: dict, replicates: list[int], table: Any, partition: Any):
    """Problem (28) of every row: rows of synthetic data have data of their own, MovieLens is shared.

    Parameters
    ----------
    settings : dict
        Of an experiment of problem "dictionary" or "movielens".
    replicates : list of int, length R
        Name of each row's repetition; it decides on synthetic data and on where the methods start.
    table, partition : Table and Partition, for MovieLens
    """
    N = settings["clients"]
    if settings["problem"] == "movielens":
        cluster, columns = partition.cluster, partition.meta["columns"]
        ratings = table.X[:, columns].toarray()
        Z = np.stack([ratings[cluster == i] for i in range(N)])[None]
    else:
        drawn = {name: _clients(settings, name) for name in dict.fromkeys(replicates)}
        Z = np.stack([drawn[name] for name in replicates])
    family = DictionaryLearning(
        features=Z.shape[-1], atoms=settings["atoms"], lam=settings["lam"], eta=settings["eta"]
    )
    start = {name: _start(settings, family.parameters, name) for name in dict.fromkeys(replicates)}
    return FederatedSurrogate(family, Z, np.stack([start[name] for name in replicates]), n_clients=N)


def _clients(settings: dict, replicate: int) -> NDArray:
    """Synthetic samples by client, (N, m, p); (1, n, p) where all clients hold all samples."""
    Z = sparse_signals(settings, replicate)
    if not settings["heterogeneous"]:
        return Z[None]
    start = int(generator(settings["seed"], replicate, None, "clusters").integers(2**31))
    cluster = equal_clusters(Z, settings["clients"], start)
    return np.stack([Z[cluster == i] for i in range(settings["clients"])])


def _start(settings: dict, parameters: int, replicate: int) -> NDArray:
    """A dictionary with entries N(0, 1), common to all methods; s_0 is its mirror."""
    return generator(settings["seed"], replicate, None, "start").standard_normal(parameters)


def em_problem(settings: dict, replicate: int) -> FederatedSurrogate:
    """An EM example with unlike clients: their intensities, or their shares of the components, differ."""
    N, m = settings["clients"], settings["samples"] // settings["clients"]
    rng = generator(settings["seed"], replicate, None, f"data/{settings['model']}")
    if settings["model"] == "mixture":
        L, p = settings["components"], settings["features"]
        means = 3 * rng.standard_normal((L, p))
        shares = rng.dirichlet(np.full(L, 0.5), size=N)
        which = (rng.random((N, m, 1)) > np.cumsum(shares, axis=1)[:, None, :-1]).sum(axis=2)
        Z = means[which] + rng.standard_normal((N, m, p))
        family: Any = GaussianMixture(weights=shares.mean(axis=0), covariance=np.eye(p), lam=settings["lam"])
        theta = (means + rng.standard_normal((L, p))).reshape(1, -1)
    else:
        intensity = 1.0 + 0.7 * rng.standard_normal((N, 1))
        Z = rng.poisson(np.exp(intensity + rng.standard_normal((N, m))))[..., None].astype(float)
        if settings["model"] == "poisson":
            family = Poisson(lam=settings["lam"])
        else:
            family = PoissonKnownMean(lam=settings["lam"], mean=float(Z.mean()))
        theta = np.full((1, 1), -1.0)
    return FederatedSurrogate(family, Z[None], theta)


TOYS: dict[str, Family] = {"interval": Location(), "rate": Rate()}


def toy_problem(reading: str, z: list[float]) -> FederatedSurrogate:
    """Remark 1: client i holds the single value z_i."""
    return FederatedSurrogate(TOYS[reading], np.array(z, float)[None, :, None, None], np.array([[0.3]]))
