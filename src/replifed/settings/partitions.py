"""Partitions by name, such as `dirichlet:0.3`, of custom data sets and of the comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Key and type of the number behind a name's colon; None where a name has no number.
_NUMBERS: dict[str, tuple[str, type] | None] = {
    "kmeans": None,
    "given": None,
    "iid": None,
    "dirichlet": ("alpha", float),
    "shards": ("shards_per_client", int),
}
_NAMES = "one of kmeans, given, iid, dirichlet:ALPHA (such as dirichlet:0.3), shards:K (such as shards:2)"
# The forms of data that have columns by name.
_WITH_COLUMNS = ("csv", "parquet")
CLIENTS = 10  # where nothing else is said
# Keys that split a problem's samples between other clients.
KEYS = ("partition", "clients", "sizes")


def rule(text: str) -> dict[str, Any]:
    """Return what the name of a partition says; a ValueError says what was expected.

    >>> rule("dirichlet:0.3")
    {'clusters': 'dirichlet', 'alpha': 0.3}
    """
    kind, colon, number = text.partition(":")
    behind = _NUMBERS.get(kind)
    if behind and colon:
        return {"clusters": kind, **_positive(*behind, number)}
    if kind in _NUMBERS and not behind and not colon:
        return {"clusters": kind}
    raise ValueError(f"{text!r} is not allowed; expected {_NAMES}")


def spread(text: str) -> float:
    """Return the standard deviation of the logarithm of clients' sizes that `lognormal:SIGMA` states.

    >>> spread("lognormal:0.5"), spread("equal")
    (0.5, 0.0)
    """
    kind, _, number = text.partition(":")
    if kind == "lognormal":
        return _positive("SIGMA", float, number)["SIGMA"]
    if text == "equal":
        return 0.0
    raise ValueError(f"{text!r} is not allowed; expected equal or lognormal:SIGMA (such as lognormal:0.5)")


def _positive(key: str, kind: type, text: str) -> dict[str, Any]:
    """Return a number above zero, by its key."""
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(
            f"{text!r} is not allowed; expected {'a whole' if kind is int else 'a'} number above 0"
        )
    return {key: number}


def partition(name: str, clients: int | None = None, sizes: str = "equal") -> dict[str, Any]:
    """Return the section `partition` of an experiment.

    There are `CLIENTS` by default; of those that the data name all, or as many, drawn in each repetition.
    """
    named = rule(name)
    if name == "given":
        return named if clients is None else {**named, "clients": clients}
    clients = CLIENTS if clients is None else clients
    if name == "kmeans":  # as many clusters as clients, and each client has samples of two
        return {"clusters": "kmeans", "count": clients, "parts": 2, "shards_per_client": 2}
    return {**named, "clients": clients, "spread": spread(sizes)}


def stated(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys partition, clients and sizes that stand for an experiment's section `partition`.

    >>> stated({"clusters": "dirichlet", "alpha": 0.3, "clients": 50, "spread": 0.5})
    {'partition': 'dirichlet:0.3', 'clients': 50, 'sizes': 'lognormal:0.5'}
    """
    kind = section["clusters"]
    if kind == "given":
        return {"partition": kind, **({"clients": section["clients"]} if "clients" in section else {})}
    if "clients" not in section:
        shards = section["count"] * section["parts"]
        return {"partition": kind, "clients": shards // section["shards_per_client"]}
    key, _ = _NUMBERS[kind] or ("", float)
    name = f"{kind}:{section[key]}" if key else kind
    sizes = {"sizes": f"lognormal:{section['spread']}"} if section["spread"] else {}
    return {"partition": name, "clients": section["clients"], **sizes}


def split_anew(
    name: str, problem: Mapping[str, Any], requested: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """Return a problem between the clients that are requested by the keys of a split, and its name."""
    changes = {key: requested[key] for key in KEYS if key in requested}
    if not changes:
        return name, problem
    before = stated(problem["partition"])
    if changes.get("partition") in ("given", "kmeans"):
        before.pop("sizes", None)
    if changes.get("partition", before["partition"]) == "given" != before["partition"]:
        before.pop("clients", None)
    keys = {**before, **changes}
    section = partition(keys["partition"], keys.get("clients"), keys.get("sizes", "equal"))
    changed = {**problem, "partition": section}
    if "spread" in section and (most := changed.pop("samples", None)):
        # What bounds a client's samples is then their mean, so that sizes may differ.
        changed["partition"] = {**section, "samples": most}
    words = [name, *map(str, stated(section).values())]
    return re.sub("[^a-z0-9]+", "_", "_".join(words)), changed


def errors(keys: Mapping[str, Any], before: str = "kmeans") -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the keys partition, clients and sizes of a data set or the comparison.

    An error is the key and a text. `before` is the partition where none is stated.
    """
    key = "partition"
    try:
        kind = rule(keys.get(key, before))["clusters"]
        key = "sizes"
        spread(keys.get(key, "equal"))
    except ValueError as error:
        yield key, str(error)
        return
    if kind in ("given", "kmeans") and "sizes" in keys:
        yield "sizes", f"{keys['sizes']} is not allowed with the partition {kind}; set iid, or another one"


def dataset_errors(
    one: Mapping[str, Any], form: str, named: bool, requested: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the clients of a custom data set, a key and a text each.

    `form` is that of its file; `named` is true if that names clients, and `requested` if the comparison
    states a partition for all data.
    """
    yield from errors(one)
    for key in ("client", "label", "drop", "categories"):
        if key in one and form not in _WITH_COLUMNS:
            names = one[key] if isinstance(one[key], str) else ", ".join(one[key])
            text = f"data of form {form} have no columns by name; leave it out"
            yield key, f"{names} is not allowed: {text}"
    if named and (form == "npz" or form in _WITH_COLUMNS) and not (requested or "partition" in one):
        column = one.get("client", f"the array client of {one['path']}")
        text = "names the clients, which k-means would drop; set partition: given, or another one"
        yield "client", f"{column} {text}"
    if one.get("client") is not None and one.get("client") == one.get("label"):
        yield "client", f"{one['client']} is the column of the labels, too; give another column"
    if one.get("partition") == "given" and not named and form != "python":  # which only its call could tell
        remedy = "set client: COLUMN" if form in _WITH_COLUMNS else "choose another one"
        yield "partition", f"given is not allowed: nothing says which client has which sample; {remedy}"
