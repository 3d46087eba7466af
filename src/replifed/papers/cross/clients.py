"""Clients of the comparison: how samples are split between them, how far they differ, and which is which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.data.catalogue import PACKAGED
from replifed.figures.artefact import Made
from replifed.figures.style import panels, styled
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.paper import PROBLEMS
from replifed.partition.heterogeneity import group_counts, label_groups, summary
from replifed.settings.partitions import stated

# Most clients that an axis names, most labels that a legend has, and most clients that a table shows.
_NAMED, _LEGEND, _LISTED = 25, 10, 100
_MEANS = ["size_variation", "effective_clients", "label_distance", "label_distance_random"]


def _split(partition: Any) -> str:
    """How the samples are split, in words such as dirichlet:0.3, 50 clients."""
    words = stated(partition.meta["settings"])
    words |= {"clients": f"{words['clients']} clients"} if "clients" in words else {}
    return ", ".join(words.values())


def _first(inputs: Any, experiment: str) -> tuple[np.ndarray, np.ndarray]:
    """Client and sample number of the samples that some client has, in the first repetition."""
    client = next(iter(inputs.partition(experiment).clients.values()))
    held = np.flatnonzero(client >= 0)
    return client[held], held


def _samples(inputs: Any) -> pd.DataFrame:
    """Samples of each client and label in the first repetition, a row each; name is the client's own id."""
    frames = []
    for experiment in inputs.experiments():
        data, partition = inputs.data(experiment), inputs.partition(experiment)
        client, held = _first(inputs, experiment)
        labels, group = label_groups(data.y)
        counts = group_counts(client, group[held])
        number, k = np.nonzero(counts)
        names = np.array(_names(data, partition, len(counts)))
        columns = {
            "client": number,
            "name": names[number],
            "label": np.array(labels)[k],
            "size": counts[number, k],
        }
        head = {"experiment": experiment, "dataset": data.meta["id"], "split": _split(partition)}
        frames.append(pd.DataFrame({**head, **columns}))
    return pd.concat(frames, ignore_index=True)


def _names(data: Any, partition: Any, clients: int) -> list[str]:
    """The data's own ids of the clients where these are given, numbers elsewhere."""
    given = partition.meta["settings"]["clusters"] == "given"
    return data.meta["clients"] if given and "clients" in data.meta else [str(k) for k in range(clients)]


@styled
def _draw(frame: pd.DataFrame) -> Figure:
    """Draw a panel a problem: each client's samples by label, the largest client first."""
    parts = list(frame.groupby("experiment", sort=False))
    made, axes = panels(len(parts), 2, title="Comparison · Samples of the clients", width=4.2, height=2.6)
    for ax, (experiment, part) in zip(axes, parts, strict=False):
        _draw_clients(ax, part)
        data, split = part[["dataset", "split"]].iloc[0]
        ax.set_title(f"{PROBLEMS.get(experiment) or problem_name(data)}: {split}", loc="left")
    return made


def _draw_clients(ax: Axes, part: pd.DataFrame) -> None:
    labels = list(dict.fromkeys(part["label"]))
    labels.sort(key=lambda label: float(str(label).removeprefix("tenth ")))
    counts = part.pivot_table("size", "client", "label", fill_value=0)[labels]
    of_a_size = (-counts).assign(size=-counts.sum(axis=1)).sort_values(["size", *labels], kind="stable")
    counts = counts.loc[of_a_size.index]
    at, below = np.arange(len(counts)), np.zeros(len(counts))
    colours = matplotlib.colormaps["viridis"](np.linspace(0.1, 0.9, len(labels)))
    width = 0.85 if len(counts) <= 4 * _NAMED else 1.0  # many bars touch, else their gaps would flicker
    for label, colour in zip(labels, colours, strict=True):
        height = counts[label].to_numpy()
        ax.bar(at, height, width, bottom=below, color=colour, label=str(label))
        below = below + height
    names = part.drop_duplicates("client").set_index("client")["name"]
    ax.set(xlabel="client, largest first", ylabel="samples")
    if len(counts) <= _NAMED:
        ax.set_xticks(at, [str(names[number])[:12] for number in counts.index], rotation=60, ha="right")
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.3 * below.max())  # with room for a legend
    if len(labels) <= _LEGEND:
        ax.legend(
            title="label", fontsize=7, title_fontsize=7.5, loc="upper right", ncols=5, columnspacing=1.0
        )
    else:
        ax.annotate(
            f"{len(labels)} labels, dark to light",
            (1, 1),
            xycoords="axes fraction",
            ha="right",
            va="top",
            size=7,
        )


def _copy(meta: Mapping[str, Any]) -> str:
    """Kind of the data, and the form in which they were had."""
    form = "copy in the package" if meta["form"] == PACKAGED else meta["form"]
    return ", ".join(dict.fromkeys([meta["kind"], form]))


def _heterogeneity(inputs: Any) -> pd.DataFrame:
    """Sizes and labels of the clients of each problem, over all repetitions, and the copy of the data."""
    rows = []
    for experiment in inputs.experiments():
        data, partition = inputs.data(experiment), inputs.partition(experiment)
        held = [(client >= 0, client) for client in partition.clients.values()]
        numbered = (np.unique(client[of], return_inverse=True)[1] for of, client in held)
        splits = pd.DataFrame(
            [summary(number, data.y[of]) for number, (of, _) in zip(numbered, held, strict=True)]
        )
        rows.append(
            {
                "experiment": experiment,
                "split": _split(partition),
                "copy": _copy(data.meta),
                "samples": len(data.y),
                "held": np.mean([of.sum() for of, _ in held]),
                "clients": splits["clients"].max(),
                "size_min": splits["size_min"].min(),
                "size_median": splits["size_median"].mean(),
                "size_max": splits["size_max"].max(),
                **splits[_MEANS].mean(),
            }
        )
    return pd.DataFrame(rows)


_TEXTS = {
    "problem": "{problem}",
    "copy of the data": "{copy}",
    "split": "{split}",
    "clients": "{clients}",
    "their samples, of all": "{held:,.0f} of {samples:,}",
    "least / median / largest": "{size_min:,} / {size_median:,.0f} / {size_max:,}",
    "effective clients": "{effective_clients:.1f}",
    "label distance (at random)": "{label_distance:.2f} ({label_distance_random:.2f})",
}


def _show_heterogeneity(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame.to_dict("records")
    for row in rows:
        row["problem"] = problem_name(row["experiment"])
    return pd.DataFrame([{head: text.format(**row) for head, text in _TEXTS.items()} for row in rows])


def _show_clients(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table per problem, one line per client: its number, its id in the data, samples, and labels."""
    tables = {}
    for experiment, part in frame.groupby("experiment", sort=False):
        rows = [
            {
                "client": str(client),
                "named in the data": of["name"].iloc[0],
                "samples": f"{of['size'].sum():,}",
                "labels": ", ".join(
                    f"{label}: {size}" for label, size in zip(of["label"], of["size"], strict=True)
                ),
            }
            for client, of in part.groupby("client")
        ]
        left_out = len(rows) - _LISTED
        rows = rows[:_LISTED] + [
            {"client": f"{left_out} more", **dict.fromkeys(list(rows[0])[1:], "see the CSV")}
        ] * (left_out > 0)
        tables[str(experiment)] = pd.DataFrame(rows)
    return tables


PICTURE = Made(
    "partition",
    "Samples of the clients",
    "Samples of each client in the first repetition, by label or by tenth of the targets, the largest first. "
    "Partitions are drawn anew in each repetition, but for those that the data give. A run uses no more of a "
    "client's samples than the setting “samples” says, if there is one.",
    _samples,
    _draw,
    texts=("name", "label"),
)
HETEROGENEITY = Made(
    "heterogeneity",
    "Heterogeneity of the clients",
    "Over all repetitions. Effective clients: 1 / sum (n_i / n)², the number of clients of one size that "
    "would average as well. Label distance: total variation between a client's labels and all, mean over "
    "clients; in brackets the same where labels are shuffled: that of clients without heterogeneity.",
    _heterogeneity,
    _show_heterogeneity,
)
NAMED = Made(
    "client_names",
    "Which client is which",
    "The number of each client in figures and files, and its id in the data.",
    _samples,
    _show_clients,
    texts=("name", "label"),
)
