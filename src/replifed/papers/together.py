"""One method on several experiments of a paper in one job, where each takes but seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replifed.papers.jobs import run, tune


def tune_and_run(
    paper: str,
    method: str,
    settings: dict[str, dict[str, Any]],
    inputs: dict[str, list[Path]],
    outputs: dict[str, Path],
) -> None:
    """As `jobs.tune`, for experiments that tune, and `jobs.run`, one experiment after the other.

    Settings are by experiment, under "run" and, for the searches of those that tune, under "tune". Inputs are
    by keys "data:EXPERIMENT" and "partition:EXPERIMENT", of which the first file counts; outputs by keys
    "run:EXPERIMENT" and "tuned:EXPERIMENT".
    """
    searches = settings.get("tune", {})
    for name, own in settings["run"].items():
        data, partition = (inputs.get(f"{kind}:{name}", [None])[0] for kind in ("data", "partition"))
        tuned = None
        if name in searches:
            tuned = outputs[f"tuned:{name}"]
            tune(paper, name, method, searches[name], data, partition, tuned)
        run(paper, name, method, own, data, partition, tuned, outputs[f"run:{name}"])
