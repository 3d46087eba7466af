"""Who takes part in the rounds of a comparison, by the keys cohort, availability, average and everyone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from replifed.algorithms.base import without_form
from replifed.algorithms.registry import method_class
from replifed.errors import ConfigError
from replifed.network.participation import Asked
from replifed.settings import held_out, partitions
from replifed.settings.messages import Error

KEYS = ("cohort", "availability", "average")


def asked_for(requested: Mapping[str, Any]) -> Asked:
    """Return what the keys of the section `comparison` say."""
    return Asked(**{key: requested[key] for key in KEYS if key in requested})


def with_cohort(
    name: str, problem: Mapping[str, Any], requested: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """Return a problem with the keys of cohorts that are requested, and its name."""
    changes = {key: requested[key] for key in KEYS if key in requested}
    if asked_for(requested).everyone:
        return name, problem
    size = str(changes.get("cohort", "all")).replace("%", "pct")
    others = [changes[key] for key in KEYS[1:] if changes.get(key) not in (None, "uniform", "own")]
    return re.sub("[^a-z0-9]+", "_", "_".join([name, "cohort", size, *others])), {**problem, **changes}


def reasons(
    requested: Mapping[str, Any], config: Mapping[str, Any], methods: Sequence[str]
) -> dict[str, str]:
    """Return the methods whose papers have no form for cohorts, if any are requested, and why."""
    if asked_for(requested).everyone:
        return {}
    sources = config.get("methods", {})
    found = {name: without_form(method_class(sources.get(name, name))) for name in methods}
    return {name: why for name, why in found.items() if why}


def left_out(
    requested: Mapping[str, Any], config: Mapping[str, Any], methods: Sequence[str]
) -> dict[str, str]:
    """Return those of them that are not run, and why: all, unless `everyone` is set."""
    return {} if requested.get("everyone") else reasons(requested, config, methods)


def errors(
    requested: Mapping[str, Any],
    config: Mapping[str, Any],
    problems: Mapping[str, Any],
    methods: Sequence[str],
) -> Iterator[Error]:
    """Yield cohorts that a problem cannot have, and a comparison of which no method is left."""
    asked = asked_for(requested)
    if asked.everyone and asked.average == "own":
        if "everyone" in requested:
            yield ("comparison", "everyone"), "all clients take part anyway; give a cohort"
        return
    for name, one in problems.items():
        try:
            asked.check(_clients(one, requested))
        except ConfigError as error:
            key, _, text = str(error).partition(" = ")
            yield (
                ("comparison", key if key in KEYS else "availability"),
                f"{name}: {text if key in KEYS else error}",
            )
            return
    if config.get("methods"):
        from replifed.contract import cohort_error

        for name, source in config["methods"].items():
            if text := cohort_error(source):
                yield ("methods", name), text
    if methods and len(left_out(requested, config, methods)) == len(methods):
        text = (
            f"of {', '.join(methods)} none has a form for cohorts; set everyone to run all with all clients"
        )
        yield ("comparison", "cohort"), text


def _clients(problem: Mapping[str, Any], requested: Mapping[str, Any]) -> int | None:
    """Return the number of clients of a problem, None if only its data know it."""
    if "partition" not in problem:
        return problem["clients"]
    _, split = partitions.split_anew("", problem, requested)
    clients = partitions.stated(split["partition"]).get("clients")
    if clients is None or "new_clients" not in requested:
        return clients
    with suppress(ValueError):  # which has its own error
        clients -= held_out.number(requested["new_clients"], clients)
    return clients
