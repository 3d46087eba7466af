"""Samples of the clients: clusters of documents in the plane (Figures 4 and 5), and partitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from replifed.figures import style
from replifed.figures.artefact import Made
from replifed.figures.style import canvas, panels, styled
from replifed.papers.fedht.figures.objectives import mark_surrogate
from replifed.papers.fedht.paper import EXPERIMENTS
from replifed.papers.inputs import Inputs
from replifed.partition.heterogeneity import group_counts, label_groups, summary
from replifed.randomness import generator

# Okabe and Ito's eight colours, and two more of other lightness: a wine red and a light grey.
_COLOURS = [
    *(style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.VERMILLION, style.BLACK),
    *(style.YELLOW, style.WINE, "#BBBBBB"),
]
_MARKERS = "os^DvPX*<>"


def _embedding(inputs: Inputs) -> pd.DataFrame:
    """Clusters of an experiment's samples in the plane, by t-SNE.

    The paper does not describe how its pictures were made. Here some samples are drawn at random, reduced
    to a few principal directions (not centred, so that sparse ones stay sparse), and embedded from these.

    Column silhouette is the clusters' mean silhouette among the principal directions, near 0 where they run
    into each other; samples is the size of the data set.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    (experiment,), options = inputs.experiments(), inputs.options
    X, cluster = inputs.data(experiment).X, inputs.partition(experiment).cluster
    rng = generator(inputs.seed, 0, None, f"embedding {experiment}")
    rows = np.sort(rng.permutation(X.shape[0])[: options.rows])
    sample, cluster = X[rows].astype(np.float64, copy=False), cluster[rows]
    # At most as many directions and neighbours as exist; t-SNE uses three times its perplexity.
    directions = min(options.components, min(sample.shape) - 1)
    perplexity = min(options.perplexity, (len(rows) - 1) / 3)
    svd = TruncatedSVD(directions, random_state=int(rng.integers(2**31)))
    tsne = TSNE(perplexity=perplexity, random_state=int(rng.integers(2**31)), n_jobs=1)
    reduced = svd.fit_transform(sample)
    with threadpool_limits(1):  # threads would add up the repulsive forces in any order
        flat = np.round(tsne.fit_transform(reduced).astype(np.float64), 4)
    frame = pd.DataFrame({"experiment": experiment, "x": flat[:, 0], "y": flat[:, 1], "cluster": cluster})
    silhouette = round(float(silhouette_score(reduced, cluster)), 4)
    return frame.assign(silhouette=silhouette, samples=X.shape[0])


@styled
def _draw_embedding(frame: pd.DataFrame) -> Figure:
    first, clusters = frame.iloc[0], frame.groupby("cluster")
    name = EXPERIMENTS.get(first["experiment"], first["experiment"])
    title = f"FedHT · t-SNE of the clusters of {name}"
    made, [[axes]] = canvas(1, 1, title=title, width=5.6, height=4.2)
    for (cluster, part), colour, marker in zip(clusters, cycle(_COLOURS), cycle(_MARKERS), strict=False):
        axes.scatter(
            part["x"],
            part["y"],
            s=7,
            marker=marker,
            facecolors=colour,
            edgecolors="#333333",  # else yellow would be lost on white
            linewidths=0.15,
            alpha=0.85,
            label=f"{cluster} ({len(part) / len(frame):.1%})",
        )
    plate = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "#333333", "lw": 0.5, "alpha": 0.85}
    for cluster, part in clusters:
        # At the sample nearest to all others: the mean may lie far from all.
        points = part[["x", "y"]].to_numpy()
        middle = points[cdist(points, points).sum(axis=1).argmin()]
        axes.annotate(str(cluster), middle, ha="center", va="center", fontweight="bold", bbox=plate)
    axes.set(xlabel="t-SNE coordinate 1", ylabel="t-SNE coordinate 2")
    axes.set_aspect("equal", adjustable="datalim")
    shown = f"{len(frame):,} of {first['samples']:,} samples"
    axes.set_title(f"{name}: {shown}, silhouette {first['silhouette']:.3f}")
    _legend_beside(axes, "cluster (share)", markerscale=2.2, alignment="left")
    return made


def _legend_beside(axes: Axes, title: str, **more: Any) -> None:
    axes.legend(title=title, loc="center left", bbox_to_anchor=(1.0, 0.5), **more)


# -- Partitions ----------------------------------------------------------------------------------------

# The numbers of the last panel, top to bottom; all are ratios, so that one axis serves them.
_NUMBERS = {
    "label_distance": "label distance",
    "label_distance_random": "label distance,\nrandom split",
    "size_variation": "size variation",
    "size_max_over_mean": "largest / mean size",
    "effective_share": "effective clients\n/ clients",
}


def _clients(inputs: Inputs) -> pd.DataFrame:
    """Sizes, contents and heterogeneity of the clients of each experiment.

    Column panel is "sizes" (samples of the client of each rank, largest first, every replicate), "clusters"
    or "labels" (share of each cluster and of each label, or tenth of the targets, in each client of the first
    replicate, the clients ranked by their clusters), or "summary" (`part` names a number of
    `replifed.partition.heterogeneity.summary`, or effective_share; every replicate).
    """
    frames = []
    for experiment in inputs.experiments():
        data = inputs.data(experiment)
        descriptions = _description(inputs.partition(experiment), data.y)
        for panel, replicate, (client, rank, part, value) in descriptions:
            head = {"experiment": experiment, "panel": panel, "replicate": replicate}
            head["kind"] = data.meta["kind"]
            columns = {"client": client, "rank": rank, "part": part, "value": value}
            frames.append(pd.DataFrame({**head, **columns}))
    return pd.concat(frames, ignore_index=True)


def _description(partition: Any, y: NDArray) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    """Yield panel, replicate, and columns client, rank, part and value."""
    for replicate, client in partition.clients.items():
        size = np.bincount(client)
        order = np.argsort(-size, kind="stable")
        yield "sizes", replicate, (order, np.arange(len(size)), "", size[order].astype(float))
        numbers = summary(client, y)
        numbers["effective_share"] = numbers["effective_clients"] / numbers["clients"]
        yield "summary", replicate, (-1, -1, list(_NUMBERS), [numbers[name] for name in _NUMBERS])
    first, client = next(iter(partition.clients.items()))
    in_cluster = group_counts(client, partition.cluster)
    # Clients with the same largest cluster stand side by side.
    order = np.lexsort((*(-in_cluster.T[::-1]), np.argmax(in_cluster > 0, axis=1)))
    names, group = label_groups(y)
    clusters = np.arange(in_cluster.shape[1]).astype(str)
    of_groups = group_counts(client, group)
    for panel, parts, counts in (("clusters", clusters, in_cluster), ("labels", np.array(names), of_groups)):
        shares = (counts / counts.sum(axis=1, keepdims=True))[order]
        rank, part = np.nonzero(shares)
        yield panel, first, (order[rank], rank, parts[part], shares[rank, part])


@styled
def _draw_clients(frame: pd.DataFrame) -> Figure:
    """Draw the clients of one data set."""
    experiment = frame["experiment"].iloc[0]
    heading = f"FedHT · Partitions of {EXPERIMENTS.get(experiment, experiment)} (not in the paper)"
    made, cells = panels(4, 2, title=heading, width=3.5, height=2.6)
    shown = dict(iter(frame.groupby("panel")))
    tenths = shown["labels"]["part"].str.startswith("tenth").any()
    _draw_sizes(cells[0], shown["sizes"])
    _draw_shares(cells[1], shown["clusters"], "cluster")
    _draw_shares(cells[2], shown["labels"], "tenth of\ntargets" if tenths else "label")
    _draw_numbers(cells[3], shown["summary"])
    parts = "targets" if tenths else "labels"
    titles = "sizes of the clients", "clusters of each client", f"{parts} of each client", "heterogeneity"
    for axes, title in zip(cells, titles, strict=True):
        axes.set_title(title, loc="left")
        mark_surrogate(axes, frame)
    return made


def _draw_sizes(axes: Axes, frame: pd.DataFrame) -> None:
    for replicate, part in frame.groupby("replicate"):
        label = "one split" if replicate == frame["replicate"].min() else None
        axes.plot(part["rank"] + 1, part["value"], color=style.BLUE, linewidth=0.9, alpha=0.6, label=label)
    mean = frame["value"].mean()
    axes.axhline(mean, color=style.VERMILLION, linestyle="--", linewidth=1.1, label=f"mean, {mean:,.0f}")
    axes.set(xlabel="client, largest first", ylabel="samples", ylim=(0, 1.12 * frame["value"].max()))
    axes.legend(loc="best")


def _draw_shares(axes: Axes, frame: pd.DataFrame, title: str) -> None:
    """Stack each client's shares on its rank."""
    frame = frame.assign(part=frame["part"].str.removeprefix("tenth ").astype(int))
    shares = frame.pivot_table("value", "part", "rank", fill_value=0.0)
    edges = np.arange(shares.shape[1] + 1) + 0.5
    axes.stackplot(
        edges,
        np.column_stack([shares, shares.iloc[:, -1]]),
        labels=shares.index.astype(str),
        colors=_COLOURS,
        hatch=[""] * len(_COLOURS) + ["/////"] * len(_COLOURS),  # colours repeat after ten, hatched
        edgecolor="white",  # of the hatch
        linewidth=0.0,
        step="post",
    )
    axes.set(xlabel="client, by clusters", ylabel="share of its samples", xlim=edges[[0, -1]], ylim=(0, 1))
    axes.grid(False)
    small = {"fontsize": 7, "title_fontsize": 7.5, "handlelength": 1.2, "labelspacing": 0.25}
    _legend_beside(axes, title, **small, reverse=True)


def _draw_numbers(axes: Axes, frame: pd.DataFrame) -> None:
    values = frame.groupby("part")["value"].agg(["mean", "max"]).loc[list(_NUMBERS)]
    colours = [style.GREY if number.endswith("random") else style.ORANGE for number in _NUMBERS]
    lines = frame["part"].map(list(_NUMBERS).index)
    axes.scatter(frame["value"], lines, s=36, color="black", marker="|", linewidths=1.0, label="one split")
    axes.barh(range(len(values)), values["mean"], height=0.55, color=colours, alpha=0.55, label="mean")
    for line, (mean, end) in enumerate(values.to_numpy()):
        text = f"{mean:.2f}"
        axes.annotate(text, (end, line), (4, 0), textcoords="offset points", va="center", size=8)
    axes.set_yticks(range(len(_NUMBERS)), _NUMBERS.values())
    axes.set(xlabel="ratio", ylim=(len(_NUMBERS) - 0.4, -0.6))
    axes.margins(x=0.16)
    axes.grid(axis="y", visible=False)
    axes.legend(loc="best", fontsize=7.5)


CLUSTERS = tuple(
    Made(
        name,
        title,
        "t-SNE of a sample of documents, coloured by k-means cluster.",
        _embedding,
        _draw_embedding,
    )
    for name, title in (("fig4", "Figure 4: clusters of E2006-tfidf"), ("fig5", "Figure 5: clusters of RCV1"))
)
PARTITIONS = Made(
    "partitions",
    "Partitions (not in the paper)",
    "Sizes and contents of the clients of the three real data sets, a page of the PDF for each.",
    _clients,
    _draw_clients,
    pages=("experiment",),
)
