"""Artefacts of a paper that are made, and the files and experiments that they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def artefacts(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artefacts that `all` makes: all but those on demand, or those that ``only`` names."""
    every, only = paper_config["artefacts"], paper_config.get("only")
    if only is not None:
        return {name: entry for name, entry in every.items() if name in only}
    return {name: entry for name, entry in every.items() if "on_demand" not in entry}


def makeable(paper_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all artefacts that can be made, those on demand too."""
    every = paper_config["artefacts"]
    return artefacts(paper_config) | {name: entry for name, entry in every.items() if "on_demand" in entry}


def artefact_keys(artefact: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that an artefact is made from.

    >>> artefact_keys({"kind": "figure", "runs": {"mnist": ["fedht"]}, "partitions": ["mnist"]})
    ['run:mnist/fedht', 'partition:mnist', 'data:mnist']
    """
    keys = [
        f"{kind}:{experiment}/{method}"
        for kind, key in (("run", "runs"), ("tuned", "tuned"))
        for experiment, methods in artefact.get(key, {}).items()
        for method in methods
    ]
    partitioned = artefact.get("partitions", ())
    return [*keys, *(f"{kind}:{name}" for name in partitioned for kind in ("partition", "data"))]


def claim_keys(paper_config: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that claims are measured on: those of artefacts, but no parsed data."""
    keys = (key for artefact in artefacts(paper_config).values() for key in artefact_keys(artefact))
    return [key for key in dict.fromkeys(keys) if not key.startswith("data:")]


def used_experiments(artefact: Mapping[str, Any]) -> list[str]:
    """Return the experiments that an artefact reads, in order of first mention."""
    names = [*artefact.get("runs", {}), *artefact.get("tuned", {}), *artefact.get("partitions", ())]
    return list(dict.fromkeys(names))


def experiments_read(paper_config: Mapping[str, Any]) -> set[str]:
    """Return the experiments that the targets of a paper read."""
    return {name for artefact in artefacts(paper_config).values() for name in used_experiments(artefact)}
