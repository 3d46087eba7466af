"""What the searches found: parameters of each method as multiples of its reference values."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt.titles import METHODS


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Best multiples and the mean rate they give on the data sets of the search."""
    rows = []
    for method in settings["artefact"]["tuned"]["comparison"]:
        found = inputs.tuned("comparison", method)
        for cell, result in found["cells"].items():
            solver, cohort = cell.split("/")
            rows.append(
                {
                    "method": method,
                    "solver": solver,
                    "cohort": int(cohort),
                    "best": ", ".join(
                        f"{name} x {value:.3g}"
                        for name, value in zip(found["parameters"], result["best"], strict=True)
                    ),
                    "rate": result["rate"],
                    "tried": len(result["tried"]),
                }
            )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read."""
    return pd.DataFrame(
        {
            "Algorithm": frame["method"].map(METHODS),
            "Local solver": frame["solver"],
            "Active agents": frame["cohort"].astype(str),
            "Best multiples": frame["best"],
            "Rate in the search": frame["rate"].map("{:.3f}".format),
            "Points tried": frame["tried"].astype(str),
        }
    )
