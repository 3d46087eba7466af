"""Targets that are no longer made, so that asking for one says so, and what to look at instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from replifed.errors import unknown_name

# Targets of no single paper; papers list their artefacts under `retired`.
_TARGETS = {"claims_timing": "seconds are those of one machine; other claims count the work"}


def retired(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a line for each target that is no longer made, by all names that it had."""
    lines = {name: f"{name} is no longer made: {why}" for name, why in _TARGETS.items()}
    for paper in config["papers"]:
        for artefact, why in config[paper].get("retired", {}).items():
            names = f"{paper}/{artefact}", f"{paper}_{artefact}"  # the latter, of those on demand
            lines |= dict.fromkeys(names, f"{paper}/{artefact} is no longer made: {why}")
    return lines


def unknown_artefact(paper: str, section: Mapping[str, Any], artefact: str, known: Iterable[str]) -> str:
    """Say that an artefact of a paper is none of the `known`, or that it is no longer made."""
    line = retired({"papers": [paper], paper: section}).get(f"{paper}/{artefact}")
    return line or unknown_name(f"artefact of {paper}", artefact, known)
