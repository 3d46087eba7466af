"""The clients of the three real data sets: sizes, what they hold, and how unequal they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.papers.fedht.looks import group_look
from replifed.papers.fedht.titles import EXPERIMENTS
from replifed.partition.heterogeneity import group_counts, label_groups, summary
from replifed.figures.style import BLUE, GREY, ORANGE, VERMILLION, figure, housed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# The numbers of the last panel, top to bottom; all are ratios, so that one axis serves them.
_NUMBERS = {
    "label_distance": "label distance",
    "label_distance_random": "label distance,\nrandom deal",
    "size_variation": "size variation",
    "size_max_over_mean": "largest / mean size",
    "effective_share": "effective clients\n/ clients",
}


def table(inputs: Any, settings: Mapping[str, Any]) -> DataFrame:
    """Describe the clients of each experiment.

    Parameters
    ----------
    inputs : object with methods experiments(), data(experiment) and partition(experiment)
    settings : mapping
        Not used.

    Returns
    -------
    DataFrame
        experiment, panel, replicate, client, rank, part, value. Panels: "sizes" (samples of the client
        of each rank, largest first, every replicate); "clusters" and "labels" (share of each cluster
        and of each label, or tenth of the targets, in each client of the first replicate, the clients
        ranked by their clusters); "summary" (`part` names a number of
        `replifed.partition.heterogeneity.summary`, or effective_share; every replicate; client and
        rank are -1).
    """
    import pandas as pd

    frames = []
    for experiment in inputs.experiments():
        partition, y = inputs.partition(experiment), inputs.data(experiment).y
        for replicate, client in partition.clients.items():
            size = np.bincount(client)
            order = np.argsort(-size, kind="stable")
            sizes = {
                "client": order,
                "rank": np.arange(len(size)),
                "part": "",
                "value": size[order].astype(float),
            }
            found = summary(client, y)
            found["effective_share"] = found["effective_clients"] / found["clients"]
            numbers = {
                "client": -1,
                "rank": -1,
                "part": list(_NUMBERS),
                "value": [found[n] for n in _NUMBERS],
            }
            for panel, columns in (("sizes", sizes), ("summary", numbers)):
                head = {"experiment": experiment, "panel": panel, "replicate": replicate}
                frames.append(pd.DataFrame({**head, **columns}))
        first, client = next(iter(partition.clients.items()))
        in_cluster = group_counts(client, partition.cluster)
        # Clients with the same largest cluster stand side by side.
        order = np.lexsort((*(-in_cluster.T[::-1]), np.argmax(in_cluster > 0, axis=1)))
        names, group = label_groups(y)
        clusters = [str(k) for k in range(in_cluster.shape[1])]
        for panel, parts, counts in (
            ("clusters", clusters, in_cluster),
            ("labels", names, group_counts(client, group)),
        ):
            rank, part = np.nonzero(counts[order])
            shares = (counts / counts.sum(axis=1, keepdims=True))[order]
            frames.append(
                pd.DataFrame(
                    {
                        "experiment": experiment,
                        "panel": panel,
                        "replicate": first,
                        "client": order[rank],
                        "rank": rank,
                        "part": [parts[k] for k in part],
                        "value": shares[rank, part],
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: DataFrame) -> Figure:
    """Draw the clients from the table alone: one row of panels a data set."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    made, grid = figure(
        len(experiments), 4, title="How the samples are split between clients", height=2.5, legend_lines=0
    )
    for row, experiment in zip(grid, experiments, strict=True):
        own = frame[frame["experiment"] == experiment]
        name = EXPERIMENTS.get(experiment, experiment)
        _draw_sizes(row[0], own[own["panel"] == "sizes"], name)
        _draw_shares(row[1], own[own["panel"] == "clusters"], f"{name}: clusters of each client", "cluster")
        labels = own[own["panel"] == "labels"]
        what = "targets" if labels["part"].astype(str).str.startswith("tenth").any() else "labels"
        _draw_shares(row[2], labels, f"{name}: {what} of each client", "label")
        _draw_numbers(row[3], own[own["panel"] == "summary"], name)
    return made


def _draw_sizes(axes: Axes, frame: DataFrame, name: str) -> None:
    for place, (_, part) in enumerate(frame.groupby("replicate", sort=True)):
        axes.plot(
            part["rank"] + 1,
            part["value"],
            color=BLUE,
            linewidth=0.9,
            alpha=0.6,
            label="one deal" if not place else None,
        )
    mean = frame["value"].mean()
    axes.axhline(mean, color=VERMILLION, linestyle="--", linewidth=1.1, label=f"mean, {mean:,.0f}")
    axes.set(xlabel="client, largest first", ylabel="samples", ylim=(0, 1.12 * frame["value"].max()))
    axes.set_title(f"{name}: sizes of the clients")
    axes.legend(loc="best")


def _draw_shares(axes: Axes, frame: DataFrame, title: str, kind: str) -> None:
    """Stack each client's shares on its rank."""
    parts = sorted(set(frame["part"].astype(str)), key=_natural)
    clients = int(frame["rank"].max()) + 1
    base = np.zeros(clients)
    edges = np.arange(clients + 1) + 0.5
    for place, part in enumerate(parts):
        own = frame[frame["part"].astype(str) == part]
        top = base.copy()
        top[own["rank"].to_numpy()] += own["value"].to_numpy()
        look = group_look(place)
        axes.fill_between(
            edges,
            np.append(base, base[-1]),
            np.append(top, top[-1]),
            step="post",
            facecolor=look.color,
            hatch=look.hatch,
            edgecolor="white",  # of the hatch
            linewidth=0.0,
            label=part.removeprefix("tenth "),
        )
        base = top
    axes.set(
        xlabel="client, by clusters", ylabel="share of its samples", xlim=(0.5, clients + 0.5), ylim=(0, 1)
    )
    axes.set_title(title)
    axes.grid(False)
    heading = "tenth of\ntargets" if parts[0].startswith("tenth") else kind
    axes.legend(
        title=heading,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=7,
        title_fontsize=7.5,
        handlelength=1.2,
        labelspacing=0.25,
        reverse=True,
    )


def _draw_numbers(axes: Axes, frame: DataFrame, name: str) -> None:
    for place, number in enumerate(_NUMBERS):
        values = frame.loc[frame["part"] == number, "value"]
        mean = values.mean()
        axes.barh(place, mean, height=0.55, color=GREY if number.endswith("random") else ORANGE, alpha=0.55)
        axes.plot(values, np.full(len(values), place), "|", color="black", markersize=6, label=None)
        axes.annotate(
            f"{mean:.2f}", (values.max(), place), (4, 0), textcoords="offset points", va="center", size=8
        )
    axes.plot([], [], "|", color="black", label="one deal")
    axes.barh(0, 0, color=ORANGE, alpha=0.55, label="mean")
    axes.set_yticks(range(len(_NUMBERS)), _NUMBERS.values())
    axes.set(xlabel="ratio", ylim=(len(_NUMBERS) - 0.4, -0.6))
    axes.margins(x=0.16)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"{name}: heterogeneity")
    axes.legend(loc="best", fontsize=8)


def _natural(part: str) -> tuple[float, str]:
    """Sort labels as numbers where they are numbers."""
    try:
        return float(part.removeprefix("tenth ")), part
    except ValueError:
        return float("inf"), part
