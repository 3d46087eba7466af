"""Tracks of a comparison beside the tuned one: searches on other seeds (`studies`), and none (`untuned`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replifed.algorithms.registry import theory_of, tunes, without_theory
from replifed.settings.messages import Error


def added(
    experiments: Mapping[str, Any], requested: Mapping[str, Any], artefacts: dict[str, Any]
) -> dict[str, Any]:
    """Return the experiments of other tracks, and add their tables."""
    found: dict[str, Any] = {}
    for kind, make in (("studies", _studies), ("untuned", _untuned)):
        of = {name: make(name, one, requested, one["methods"]) for name, one in experiments.items()}
        of = {name: made for name, made in of.items() if made}
        if not of:
            continue
        new = {name: one for made in of.values() for name, one in made.items()}
        runs = {name: one["methods"] for name, one in {**experiments, **new}.items() if one["methods"]}
        if kind == "studies":
            options: dict[str, Any] = {"studies": {name: list(made) for name, made in of.items()}}
            entry = {"kind": "table", "runs": runs, "tuned": runs, "settings": options}
        else:
            methods = list(dict.fromkeys(method for name in of for method in experiments[name]["methods"]))
            options = {"untuned": {name: next(iter(made)) for name, made in of.items()}}
            options["said"] = said(methods)
            entry = {"kind": "table", "runs": runs, "settings": options}
        artefacts[kind] = entry
        found |= new
    return found


def _studies(
    name: str, problem: Mapping[str, Any], requested: Mapping[str, Any], methods: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the experiments that repeat the searches of a problem on other repetitions, by name.

    Methods without a number to tune are in none.
    """
    count, found = requested.get("studies", 1), {}
    if count > 1:
        tuning, searched = problem["tuning"], [method for method in methods if tunes(method)]
        first = max([*problem["replicates"], *tuning["replicates"]]) + 1
        for study in range(2, count + 1):
            replicates = [*range(first, first + len(tuning["replicates"]))]
            first = replicates[-1] + 1
            changed = {**problem, "tuning": {**tuning, "replicates": replicates}, "methods": searched}
            found[f"{name}_study_{study}"] = changed
    return found


def _untuned(
    name: str, problem: Mapping[str, Any], requested: Mapping[str, Any], methods: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the experiment without searches, by name, if requested: of methods whose theory says how."""
    if not requested.get("untuned"):
        return {}
    by_theory = [method for method in methods if tunes(method) and theory_of(method)]
    one = {key: value for key, value in problem.items() if key != "tuning"}
    return {f"{name}_untuned": {**one, "untuned": True, "methods": by_theory}}


def said(methods: Sequence[str]) -> dict[str, str]:
    """Return what theory says of each method, or why it does not; "" of those with nothing to tune."""
    return {name: (theory_of(name) if tunes(name) else "") or without_theory(name) for name in methods}


def errors(requested: Mapping[str, Any], methods: Sequence[str]) -> Iterator[Error]:
    """Yield tracks without a method."""
    if not methods or not (requested.get("studies", 1) > 1 or requested.get("untuned")):
        return
    if requested.get("studies", 1) > 1 and not any(map(tunes, methods)):
        yield ("comparison", "studies"), f"of {', '.join(methods)} none has a number to tune"
    if requested.get("untuned") and all(map(without_theory, methods)):
        text = f"of {', '.join(methods)} none has parameters of its paper's theory"
        yield ("comparison", "untuned"), text
