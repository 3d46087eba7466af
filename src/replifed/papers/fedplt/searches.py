"""What the searches found, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from replifed.papers.fedplt.comparison import COSTS
from replifed.papers.fedplt.methods import FREE, PARAMETERS
from replifed.papers.fedplt.titles import METHODS, READINGS
from replifed.tune import Spent


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """A line for each method, reading and cell.

    Returns
    -------
    DataFrame
        best : multiples of the reference parameters for `common`, else the names of what was searched; rate :
        mean over the data sets of the search; sets : their number; tried : points tried, for each data set
        where it has its own; edge : searches whose best point lies at an edge of what was tried; tuning_runs,
        tuning_rounds, tuning_bits : the cost of all of them.
    """
    rows = []
    for method in settings["artefact"]["tuned"]["comparison"]:
        found, history = inputs.tuned("comparison", method), inputs.run("comparison", method)
        sets = len(settings["experiments"]["comparison"]["tuning"]["replicates"])
        for cell, result in found["cells"].items():
            solver, cohort = cell.split("/")
            rows.append(
                {
                    "method": method,
                    "reading": "common",
                    "solver": solver,
                    "cohort": int(cohort),
                    "best": ", ".join(
                        f"{name} x {value:.3g}"
                        for name, value in zip(found["parameters"], result["best"], strict=True)
                    ),
                    "rate": result["rate"],
                    "sets": sets,
                    "tried": len(result["tried"]),
                    "edge": int(result["edge"]),
                    **{f"tuning_{name}": used for name, used in result["cost"].items()},
                }
            )
        rows += _for_each_data_set(method, history)
    return pd.DataFrame(rows)


def _for_each_data_set(method: str, history: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The searches in which every data set chose by itself."""
    searched = history[history["reading"].isin(("own", "equal budget")) & (history["tuning_runs"] > 0)]
    for (reading, solver, cohort), cell in searched.groupby(["reading", "solver", "cohort"], sort=False):
        names = (FREE if reading == "equal budget" else PARAMETERS)[method]
        yield {
            "method": method,
            "reading": reading,
            "solver": solver,
            "cohort": cohort,
            "best": f"{', '.join(names)} of each data set",
            "rate": cell["rate"].mean(),
            "sets": len(cell),
            "tried": round(cell["tuning_runs"].iloc[0] / len(cell)),
            "edge": cell["edge"].sum(),
            **cell[COSTS].iloc[0].to_dict(),
        }


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read."""
    return pd.DataFrame(
        {
            "Algorithm": frame["method"].map(METHODS),
            "Parameters": frame["reading"].map(READINGS),
            "Local solver": frame["solver"],
            "Active agents": frame["cohort"].astype(str),
            "Best multiples": frame["best"],
            "Rate in the search": frame["rate"].map("{:.3f}".format),
            "Data sets": frame["sets"].astype(str),
            "Points tried": frame["tried"].astype(str),
            "At an edge": frame["edge"].astype(str),
            "Cost": [str(Spent(*used)) for used in frame[COSTS].itertuples(index=False)],
        }
    )
