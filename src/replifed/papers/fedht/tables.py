"""Table 2: the real data sets, and how they are split between the clients."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.papers.fedht.paper import EXPERIMENTS
from replifed.papers.inputs import Inputs
from replifed.partition.heterogeneity import is_regression, summary


def _table2(inputs: Inputs) -> pd.DataFrame:
    """A row for each experiment, of the files used here, since the paper's table is not available.

    Sizes are over clients and replicates; the columns after them are means over replicates of
    `replifed.partition.heterogeneity.summary`. Classes are 0 for regression.
    """
    rows = []
    for experiment in inputs.experiments():
        data, partition = inputs.data(experiment), inputs.partition(experiment)
        samples, features = data.X.shape
        nonzeros = int((data.X != 0).sum())
        splits = pd.DataFrame([summary(client, data.y) for client in partition.clients.values()])
        means = ["size_variation", "effective_clients", "label_distance", "label_distance_random"]
        rows.append(
            {
                "experiment": experiment,
                "dataset": data.meta["id"],
                "samples": samples,
                "features": features,
                "classes": 0 if is_regression(data.y) else len(np.unique(data.y)),
                "nonzeros": nonzeros,
                "density": nonzeros / (samples * features),
                "clusters": int(partition.cluster.max()) + 1,
                "clients": splits["clients"].max(),
                "replicates": len(splits),
                "size_min": splits["size_min"].min(),
                "size_median": splits["size_median"].mean(),
                "size_max": splits["size_max"].max(),
                **splits[means].mean(),
                "kind": data.meta["kind"],
                "stamp": data.meta["stamp"],
            }
        )
    return pd.DataFrame(rows)


_TEXTS = {
    "Data set": "{name}",
    "Task": "{task}",
    "Samples": "{samples:,}",
    "Features": "{features:,}",
    "Non-zeros": "{nonzeros:,}",
    "Density": "{density:.4f}",
    "Clusters": "{clusters}",
    "Clients": "{clients}",
    "Client size (min / median / max)": "{size_min:,} / {size_median:,.0f} / {size_max:,}",
    "Size variation": "{size_variation:.2f}",
    "Effective clients": "{effective_clients:.0f}",
    "Label distance (random split)": "{label_distance:.3f} ({label_distance_random:.3f})",
    "Source": "{source}",
}


def _render_table2(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with rounded numbers and readable headers."""
    rows = []
    for row in frame.to_dict("records"):
        row["name"] = EXPERIMENTS.get(row["experiment"], row["experiment"])
        row["task"] = f"{row['classes']} classes" if row["classes"] else "regression"
        row["source"] = "{kind} ({stamp})".format(**row) if row["kind"] == "substitute" else row["kind"]
        rows.append({header: text.format(**row) for header, text in _TEXTS.items()})
    return pd.DataFrame(rows)


TABLES = by_name(
    Made(
        "table2",
        "Table 2: data sets",
        "The real data sets, and how they are split between the clients.",
        _table2,
        _render_table2,
    )
)
