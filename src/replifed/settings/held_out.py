"""Samples that a comparison keeps for a test, by the keys test, new_clients and tune_on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from replifed.data.catalogue import CATALOGUE
from replifed.settings import partitions
from replifed.settings.messages import Error

KEYS = ("test", "new_clients", "tune_on")
OFFICIAL = "official"
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
# Of what tunes on accuracy, where the test says no share.
_VALIDATION = "20%"


def share(text: str) -> float:
    """Return the number that a share such as 20% stands for; a ValueError says what was expected.

    >>> share("20%")
    0.2
    """
    found = _SHARE.fullmatch(text)
    if not found or not 0 < float(found[1]) < 100:
        raise ValueError(f"{text!r} is not allowed; expected a share between 0 and 100 %, such as 20%")
    return float(found[1]) / 100


def number(text: str | int, clients: int) -> int:
    """Return how many of so many clients a number, or a share such as 10%, is; some have to be left.

    >>> number("10%", 30), number(2, 10)
    (3, 2)
    """
    if isinstance(text, str) and not text.isdecimal():
        count = max(round(share(text) * clients), 1)
    else:
        count = int(text)
    if not 0 < count < clients:
        raise ValueError(f"{text} is not allowed; expected from 1 to {clients - 1} of {clients} clients")
    return count


def official(dataset: str, custom: Mapping[str, Any]) -> bool:
    """Return whether a data set has a test set of its own."""
    return "test" in custom[dataset] if dataset in custom else name_of(dataset) in CATALOGUE


def name_of(dataset: str) -> str:
    """Return the name of the data set's own test set."""
    return f"{dataset}_test"


def with_test(
    name: str, problem: Mapping[str, Any], requested: Mapping[str, Any], custom: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """Return a problem with the test that is requested, and its name.

    `official,20%` is the data set's own test set where it has one, and else the share.
    """
    if "test" not in requested:
        return name, problem
    chosen = _chosen(problem["dataset"], requested["test"], custom)
    changed = {**problem, "test": chosen}
    words = [name, "test", chosen]
    if "new_clients" in requested:
        changed["new_clients"] = requested["new_clients"]
        words += ["new", str(requested["new_clients"])]
    if requested.get("tune_on") == "accuracy":
        validation = _VALIDATION if chosen == OFFICIAL else chosen
        changed["tuning"] = {**problem["tuning"], "validation": validation}
        words += ["tuned", "on", "accuracy"]
    if custom.get(problem["dataset"], {}).get("standardise"):
        changed["standardise"] = True
    return re.sub("[^a-z0-9]+", "_", "_".join(words).replace("%", "pct")), changed


def _chosen(dataset: str, text: str, custom: Mapping[str, Any]) -> str:
    first, _, rest = text.partition(",")
    return first if first != OFFICIAL or official(dataset, custom) or not rest else rest


def errors(
    requested: Mapping[str, Any], problems: Mapping[str, Any], custom: Mapping[str, Any]
) -> Iterator[Error]:
    """Yield tests that are none, or that a problem cannot have."""
    where = "comparison"
    if "test" not in requested:
        for key in KEYS[1:]:
            if key in requested:
                yield (where, key), "there is no test; give one, such as test 20%"
        return
    try:
        words = requested["test"].split(",")
        if words[0] == OFFICIAL:
            words = words[1:]
        if len(words) > 1:
            raise ValueError(f"{requested['test']!r} is not allowed; expected official, 20%, or official,20%")
        for word in words:
            share(word)
    except ValueError as error:
        yield (where, "test"), str(error)
        return
    for name, one in problems.items():
        if "dataset" not in one:
            yield (
                (where, "test"),
                f"{name} has no samples to keep: it is drawn client by client; leave it out",
            )
        elif one["problem"] == "least_squares":
            yield (where, "test"), f"{name} has targets, and accuracy is of classes; leave it out"
        elif _chosen(one["dataset"], requested["test"], custom) == OFFICIAL and not official(
            one["dataset"], custom
        ):
            yield (where, "test"), f"{name} has no test set of its own; keep a share, such as 20%"
        elif "new_clients" in requested:
            if _chosen(one["dataset"], requested["test"], custom) == OFFICIAL:
                text = f"{name}: samples of clients are kept for it; give test a share, such as 20%"
                yield (where, "new_clients"), text
                return
            try:
                number(requested["new_clients"], _clients(one, requested) or 10**9)
            except ValueError as error:
                yield (where, "new_clients"), f"{name}: {error}"


def _clients(problem: Mapping[str, Any], requested: Mapping[str, Any]) -> int | None:
    _, split = partitions.split_anew("", problem, requested)
    return partitions.stated(split["partition"]).get("clients")
