"""The paper's logistic regression (Section VII): one random data set for each repetition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.randomness import generator


def regression(settings: dict, replicates: Sequence[int], **other: str) -> DenseLinearModel:
    """Stack the data sets of several repetitions.

    Parameters
    ----------
    settings : dict
        Keys seed, agents, samples, features, ridge, and:

        loss : "sum" over an agent's samples, or their "mean" as printed.
        data : "planted", features ~ N(0, 1) and labels ~ Bernoulli(sigmoid(<a, w>)) with w ~ N(0, I), no
            intercept; or "classification", scikit-learn's generator with informative features only.
    replicates : sequence of int
    **other
        Replace entries of `settings`.

    Returns
    -------
    DenseLinearModel
        With a data set a repetition, an intercept in the first column, and equal weights of all agents.
    """
    chosen = {**settings, **other}
    N, m, d = (chosen[key] for key in ("agents", "samples", "features"))
    draw = {"planted": _planted, "classification": _classification}[chosen["data"]]
    X, y = np.ones((len(replicates), N, m, d + 1)), np.empty((len(replicates), N, m))
    for row, replicate in enumerate(replicates):
        features, labels = draw(generator(chosen["seed"], replicate, None, "data"), N * m, d)
        X[row, :, :, 1:], y[row] = features.reshape(N, m, d), labels.reshape(N, m)
    return DenseLinearModel(X, y, Logistic(), l2=chosen["ridge"], summed=chosen["loss"] == "sum")


def _planted(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    X, w = rng.standard_normal((samples, d)), rng.standard_normal(d)
    chance = 1.0 / (1.0 + np.exp(-X @ w))
    return X, np.where(rng.random(samples) < chance, 1.0, -1.0)


def _classification(rng: np.random.Generator, samples: int, d: int) -> tuple[NDArray, NDArray]:
    from sklearn.datasets import make_classification

    X, label = make_classification(
        samples,
        d,
        n_redundant=0,
        n_clusters_per_class=1,
        random_state=int(rng.integers(2**31)),
    )
    return X, 2.0 * label - 1.0
