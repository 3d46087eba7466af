"""Clusters of a data set in the plane, by t-SNE: what Figures 4 and 5 of the paper show.

The paper does not say how its pictures were made. Here some rows are drawn at random, reduced to a few
principal directions (not centred, so that sparse rows stay sparse), and embedded from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.randomness import generator

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

# scikit-learn asks for fewer neighbours than samples; its default looks at 3 * perplexity of them.
_NEIGHBOURS = 3


def embedding(inputs: Inputs, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Embed the samples of each experiment.

    Parameters
    ----------
    inputs : object with methods experiments(), data(experiment) and partition(experiment)
    settings : mapping
        rows: samples shown; components: principal directions kept; perplexity; seed (default 0). Or the
        settings of the whole artefact, with the first three in ``["artefact"]["settings"]``.

    Returns
    -------
    DataFrame, one row a sample shown
        experiment; x, y: coordinates, to 4 decimals; cluster, numbered from 0; silhouette: mean
        silhouette of the clusters before the embedding, among the principal directions (from -1 to 1,
        near 0 where clusters run into each other); samples: size of the data set.
    """
    chosen = settings["artefact"]["settings"] if "artefact" in settings else settings
    frames = []
    for experiment in inputs.experiments():
        X, cluster = inputs.data(experiment).X, inputs.partition(experiment).cluster
        seed = generator(settings.get("seed", 0), 0, None, f"embedding {experiment}")
        rows = np.sort(seed.permutation(X.shape[0])[: chosen["rows"]])
        reduced = _reduce(X[rows], chosen["components"], int(seed.integers(2**31)))
        flat = _embed(reduced, chosen["perplexity"], int(seed.integers(2**31)))
        frame = pd.DataFrame({"experiment": experiment, "x": flat[:, 0], "y": flat[:, 1]})
        frame["cluster"] = cluster[rows]
        frame["silhouette"] = round(_silhouette(reduced, cluster[rows]), 4)
        frame["samples"] = X.shape[0]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _reduce(X: Any, components: int, seed: int) -> NDArray[np.float64]:
    """Project the rows of `X` onto their leading right singular vectors, (n, components)."""
    from sklearn.decomposition import TruncatedSVD

    components = min(components, min(X.shape) - 1)
    return TruncatedSVD(components, random_state=seed).fit_transform(X.astype(np.float64, copy=False))


def _embed(reduced: NDArray, perplexity: float, seed: int) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(perplexity, (len(reduced) - 1) / _NEIGHBOURS)
    model = TSNE(2, perplexity=perplexity, init="pca", learning_rate="auto", random_state=seed, n_jobs=1)
    with threadpool_limits(1):  # threads would add up the repulsive forces in any order
        return np.round(model.fit_transform(reduced).astype(np.float64), 4)


def _silhouette(reduced: NDArray, cluster: NDArray) -> float:
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(reduced, cluster)) if len(np.unique(cluster)) > 1 else 0.0
