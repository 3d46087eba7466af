"""All artefacts of a paper in one job, where each takes but seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replifed.config.cuts import artefact_keys
from replifed.papers.jobs import artefact


def make(
    paper: str,
    settings: dict[str, Any],
    scale: str,
    inputs: dict[str, list[Path]],
    outputs: dict[str, Path],
) -> None:
    """As `jobs.artefact`, one artefact after the other.

    Parameters
    ----------
    settings : dict
        Of all artefacts, from `config.cuts.artefacts_settings`.
    inputs : dict
        Files of all of them by key.
    outputs : dict
        Paths by keys such as "fig1.csv".
    """
    for name, chosen in settings["artefacts"].items():
        read = {experiment: settings["experiments"][k] for experiment, k in settings["reads"][name].items()}
        files = {key: inputs[key] for key in artefact_keys(chosen)}
        made = {Path(key).suffix[1:]: file for key, file in outputs.items() if Path(key).stem == name}
        own = {"seed": settings["seed"], "artefact": chosen, "experiments": read}
        artefact(paper, name, own, scale, files, made)
