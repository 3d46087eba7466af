"""Table IV: Fed-PLT's asymptotic error with noisy gradient descent."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt.published import TABLE4
from replifed.papers.fedplt.summaries import over_data_sets

MEASURES = {
    "agents": "mean distance of the agents' models",
    "stacked": "distance of all agents' models, stacked",
    "coordinator": "distance of the coordinator's model",
}
READINGS = {"variance": "variance τ", "deviation": "variance τ²"}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Mean errors by reading of the noise level, by the way of measuring, and by level."""
    history, frames = inputs.run("noise", "fedplt"), []
    for measure in MEASURES:
        found = over_data_sets(history, ("reading", "tau"), measure)
        found.insert(0, "measure", measure)
        frames.append(found)
    frame = pd.concat(frames, ignore_index=True)
    frame["published"] = frame["tau"].map(TABLE4)
    return frame


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read: a line a level."""
    levels = list(dict.fromkeys(frame["tau"]))
    columns = {"Noise level τ": [f"{tau:g}" for tau in levels]}
    for reading, said in READINGS.items():
        for measure, name in MEASURES.items():
            part = frame[(frame["reading"] == reading) & (frame["measure"] == measure)].set_index("tau")
            columns[f"{name} ({said})"] = [
                f"{part.loc[tau, 'mean']:.4g} ± {(part.loc[tau, 'high'] - part.loc[tau, 'low']) / 2:.2g}"
                for tau in levels
            ]
    columns["Published"] = [f"{frame.loc[frame['tau'] == tau, 'published'].iloc[0]:g}" for tau in levels]
    return pd.DataFrame(columns)
