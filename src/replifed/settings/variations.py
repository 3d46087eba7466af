"""Design of `replifed compare --vary`: a problem of the comparison under other settings that could be meant.

Local steps, partition and ridge need runs of their own, of all combinations of their options: then every
option meets the same configurations, and the share of these that a method leads tells options apart without
a model. Targets and widths of a float are read from the recorded histories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from replifed.algorithms.registry import method_class
from replifed.settings import partitions
from replifed.settings.messages import Error

MOST_COMPETITORS = 3
# Of the ledger: bits of a float.
_COUNTED = 32
# Settings of a method by which it takes local steps.
_LOCAL = {"local_steps", "solver"}
# Partition beside the stated one, and the one beside that if it is stated.
_OTHER, _BESIDE_OTHER = "iid", "dirichlet:0.3"
# How far apart the two ridges are.
_RIDGES = 10


def has_local_steps(name: str) -> bool:
    """Return whether a method takes local steps whose number is a setting."""
    return bool(_LOCAL.intersection(field.name for field in fields(method_class(name)) if field.init))


class Design:
    """Experiments of one problem under all combinations of its options.

    Parameters
    ----------
    name, problem : the problem of `cross`, and its settings.
    requested : keys of the section `comparison`.
    methods : the first is compared with each other one.

    Attributes
    ----------
    experiments : the settings of each combination, by name, with the methods that run there. A method without
        local steps runs at the first number of them alone.
    settings : what a picture needs of the design: methods; points, the options of each experiment and
        `instead`, the experiment of the methods that do not run there; targets; widths; and notes, what is
        not varied and why.
    """

    def __init__(
        self, name: str, problem: Mapping[str, Any], requested: Mapping[str, Any], methods: Sequence[str]
    ) -> None:
        self._name, self._problem, self._requested = name, problem, requested
        wanted = requested["vary"]
        self.notes: list[str] = []
        steps = self._local_steps(wanted, methods)
        of_split, of_ridge = self._splits(wanted), self._ridges(wanted)
        self.experiments: dict[str, dict[str, Any]] = {}
        points: dict[str, dict[str, Any]] = {}
        for split, ridge in product(of_split, of_ridge):
            first = ""
            for count in steps:
                key, one = self._experiment(split, ridge, count)
                first = first or key
                here = [method for method in methods if key == first or has_local_steps(method)]
                self.experiments[key] = {**one, "methods": here}
                points[key] = {"local_steps": count, "partition": split, "ridge": ridge, "instead": first}
        self.settings = {
            "methods": list(methods),
            "points": points,
            "targets": wanted["target"],
            "widths": self._widths(wanted, methods),
            "notes": self.notes,
        }

    def _local_steps(self, wanted: Mapping[str, Any], methods: Sequence[str]) -> list[int]:
        stated = self._problem["local_steps"]
        without = [method for method in methods if not has_local_steps(method)]
        if len(without) == len(methods):
            self.notes.append("local steps are not varied: no method takes any")
            return [stated]
        if without:
            self.notes.append(f"local steps are not varied of {', '.join(without)}, which takes none")
        counts = wanted.get("local_steps") or dict.fromkeys([(stated + 1) // 2, stated, 2 * stated])
        return sorted(counts, key=lambda count: count != stated)  # first those that may have been run already

    def _splits(self, wanted: Mapping[str, Any]) -> list[str]:
        if "partition" not in self._problem:
            self.notes.append("the partition is not varied: the clients are drawn one by one")
            return [""]
        stated = self._stated()
        if "partition" in wanted:
            return wanted["partition"]
        if stated == "given":
            self.notes.append("the partition is not varied: the data name their clients")
            return [stated]
        return [stated, _BESIDE_OTHER if stated == _OTHER else _OTHER]

    def _ridges(self, wanted: Mapping[str, Any]) -> list[float]:
        if "ridge" not in self._problem:
            self.notes.append("the ridge is not varied: the problem has none")
            return [0.0]
        return wanted.get("ridge") or [self._problem["ridge"], self._problem["ridge"] / _RIDGES]

    def _widths(self, wanted: Mapping[str, Any], methods: Sequence[str]) -> list[int]:
        if any(getattr(method_class(method), "quantises", False) for method in methods):
            return wanted["width"]
        self.notes.append("the width of a float is not varied: no method quantises, so that all bits scale")
        return [_COUNTED]

    def _stated(self) -> str:
        """Return the partition of the comparison without `vary`."""
        _, split = partitions.split_anew(self._name, self._problem, self._requested)
        return partitions.stated(split["partition"])["partition"]

    def _experiment(self, split: str, ridge: float, steps: int) -> tuple[str, dict[str, Any]]:
        changes = self._requested
        if split and split != self._stated():
            changes = {**changes, "partition": split}
        key, problem = partitions.split_anew(self._name, self._problem, changes)
        words, changed = [key], {**problem, "local_steps": steps}
        if steps != problem["local_steps"]:
            words.append(f"{steps}_steps")
        if "ridge" in problem:
            changed["ridge"] = ridge
            words += [f"ridge_{ridge:g}"] if ridge != problem["ridge"] else []
        return re.sub("[^a-z0-9]+", "_", "_".join(words)), changed


def errors(requested: Mapping[str, Any], methods: Sequence[str]) -> Iterator[Error]:
    """Yield too many or too few competitors, and partitions that are none."""
    first, *competitors = methods or [""]
    if not competitors:
        yield ("comparison", "against"), "vary takes at least one competitor; name it, such as fedavg"
    elif len(competitors) > MOST_COMPETITORS:
        most = f"at most {MOST_COMPETITORS} competitors"
        text = f"vary takes {first} and {most}, not {len(competitors)}; name fewer"
        yield ("comparison", "against"), text
    for name in requested["vary"].get("partition", ()):
        split = {key: requested[key] for key in ("clients", "sizes") if key in requested}
        for _, text in partitions.errors({**split, "partition": name}):
            yield ("comparison", "vary"), f"partition: {text}"
