"""Table 2: the data sets, as found and as split between the clients.

The paper's own table could not be had; these are the numbers of the files used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.papers.fedht.paper import EXPERIMENTS
from replifed.partition.heterogeneity import is_regression, summary

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs


def _table2(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """A row for each experiment.

    Sizes are those over clients and replicates; what comes after them are means over replicates of
    `replifed.partition.heterogeneity.summary`. Classes are 0 for regression.
    """
    rows = []
    for experiment in inputs.experiments():
        data, partition = inputs.data(experiment), inputs.partition(experiment)
        samples, features = data.X.shape
        nonzeros = int((data.X != 0).sum())
        deals = pd.DataFrame([summary(client, data.y) for client in partition.clients.values()])
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
                "clients": deals["clients"].max(),
                "replicates": len(deals),
                "size_min": deals["size_min"].min(),
                "size_median": deals["size_median"].mean(),
                "size_max": deals["size_max"].max(),
                **deals[means].mean(),
                "kind": data.meta["kind"],
                "stamp": data.meta["stamp"],
            }
        )
    return pd.DataFrame(rows)


def _render_table2(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: texts, rounded, with readable headers."""

    def text(row: Any) -> dict[str, str]:
        sizes = f"{row.size_min:,} / {row.size_median:,.0f} / {row.size_max:,}"
        source = f"{row.kind} ({row.stamp})" if row.kind == "substitute" else row.kind
        return {
            "Data set": EXPERIMENTS.get(row.experiment, row.experiment),
            "Task": f"{row.classes} classes" if row.classes else "regression",
            "Samples": f"{row.samples:,}",
            "Features": f"{row.features:,}",
            "Non-zeros": f"{row.nonzeros:,}",
            "Density": f"{row.density:.4f}",
            "Clusters": str(row.clusters),
            "Clients": str(row.clients),
            "Client size (min / median / max)": sizes,
            "Size variation": f"{row.size_variation:.2f}",
            "Effective clients": f"{row.effective_clients:.0f}",
            "Label distance (random deal)": f"{row.label_distance:.3f} ({row.label_distance_random:.3f})",
            "Source": source,
        }

    return pd.DataFrame([text(row) for row in frame.itertuples()])


TABLES = by_name(
    Made(
        "table2",
        "Table 2: data sets",
        "The real data sets, as found and as split between the clients.",
        _table2,
        _render_table2,
    ),
)
