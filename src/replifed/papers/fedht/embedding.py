"""Clusters of a data set in the plane, by t-SNE: what Figures 4 and 5 of the paper show.

The paper does not say how its pictures were made. Here some rows are drawn at random, reduced to a few
principal directions (not centred, so that sparse rows stay sparse), and embedded from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.papers.fedht.looks import group_look
from replifed.papers.fedht.titles import EXPERIMENTS
from replifed.figures.style import figure, housed
from replifed.randomness import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from pandas import DataFrame

# scikit-learn asks for fewer neighbours than samples; its default looks at 3 * perplexity of them.
_NEIGHBOURS = 3

# The small plate behind a cluster's number.
_TAG = {
    "boxstyle": "round,pad=0.15",
    "facecolor": "white",
    "edgecolor": "#333333",
    "linewidth": 0.5,
    "alpha": 0.85,
}


def table(inputs: Any, settings: Mapping[str, Any]) -> DataFrame:
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
    import pandas as pd

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


@housed
def draw(frame: DataFrame) -> Figure:
    """Draw the embedding from the table alone, one panel an experiment."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    names = ", ".join(EXPERIMENTS.get(name, name) for name in experiments)
    made, grid = figure(
        1, len(experiments), title=f"t-SNE of the clusters of {names}", width=5.6, height=4.2, legend_lines=0
    )
    for axes, experiment in zip(grid[0], experiments, strict=True):
        shown = frame[frame["experiment"] == experiment]
        for cluster, part in shown.groupby("cluster", sort=True):
            look = group_look(int(cluster))
            axes.scatter(
                part["x"],
                part["y"],
                s=7,
                marker=look.marker,
                facecolors=look.color,
                edgecolors="#333333",  # else yellow would be lost on white
                linewidths=0.15,
                alpha=0.85,
                label=f"{cluster} ({len(part) / len(shown):.1%})",
            )
        for cluster, part in shown.groupby("cluster", sort=True):
            axes.annotate(str(cluster), _middle(part), ha="center", va="center", fontweight="bold", bbox=_TAG)
        axes.set(
            xlabel="t-SNE coordinate 1", ylabel="t-SNE coordinate 2", aspect="equal", adjustable="datalim"
        )
        axes.set_title(
            f"{EXPERIMENTS.get(experiment, experiment)}: {len(shown):,} of {shown['samples'].iloc[0]:,} "
            f"samples, silhouette {shown['silhouette'].iloc[0]:.3f}"
        )
        axes.legend(
            title="cluster (share)",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            markerscale=2.2,
            alignment="left",
        )
    return made


def _middle(part: DataFrame) -> tuple[float, float]:
    """Return the sample with the least total distance to the others: the mean may lie far from all."""
    points = part[["x", "y"]].to_numpy()
    total = [np.hypot(*(points - point).T).sum() for point in points]
    return tuple(points[int(np.argmin(total))])


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
