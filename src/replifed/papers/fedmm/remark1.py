"""Remark 1 as a table: what either aggregation gives on the toy, and the solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from replifed.papers.fedmm.simulations import TOYS

READINGS = {
    "interval": "(θ − z)² / 2 on [−1, 1], T(s) = clip(s)",
    "rate": "θ z − log θ, T(s) = 1 / s",
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Model after each round, its distance to the solution, and the solution T(mean of z)."""
    rows = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for reading, z in settings["experiments"][experiment]["values"].items():
            solution = float(TOYS[reading].T(np.array([np.mean(z)]))[0])
            for method in methods:
                history = inputs.run(experiment, method)
                for line in history[history["reading"] == reading].itertuples():
                    if line.round > 0:
                        rows.append(
                            {
                                "reading": reading,
                                "z": " ".join(f"{value:g}" for value in z),
                                "method": method,
                                "round": line.round,
                                "theta": line.theta,
                                "solution": solution,
                                "error": line.theta - solution,
                            }
                        )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: the first and the last round."""
    rows = []
    for (reading, method), lines in frame.groupby(["reading", "method"], sort=False):
        first, last = lines.iloc[0], lines.iloc[-1]
        rows.append(
            {
                "Loss": READINGS[reading],
                "Clients' z": first["z"],
                "Aggregation of": "surrogates (FedMM)" if method == "fedmm" else "parameters",
                "θ after round 1": f"{first['theta']:.6g}",
                f"θ after round {last['round']}": f"{last['theta']:.6g}",
                "Solution": f"{first['solution']:.6g}",
                "Error": f"{last['error']:.3g}",
            }
        )
    return pd.DataFrame(rows)
