"""What logs cannot answer: claims on numbers that are no runs, and words for what a number is the best of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from replifed.claims import printed
from replifed.claims.claim import Claim, Measured, NotMeasurableError
from replifed.claims.curves import Curves
from replifed.claims.multiplicity import LEVEL
from replifed.claims.quantities import Quantity
from replifed.logs import runs

_NO_RUN = {
    **dict.fromkeys(
        ("near", "value"),
        "its spread is not that of a run, and gives no interval; claim a shape or an identity",
    ),
    "order": "it is no run, so that seeds cannot be paired; claim a shape over the points",
}


def guarded(claims: Iterable[Claim], experiments: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Claims with what logs add to them, by the settings of the experiments; others stay as they are.

    A value or an order on lines that are the best over something, such as a grid of steps, cannot be
    measured, and says why. Whatever is the best over something is named so in a note.
    """
    return [
        _guarded(claim, experiments)
        if any("logs" in experiments.get(name, {}) for name in claim.experiments)
        else claim
        for claim in claims
    ]


def _guarded(claim: Claim, experiments: Mapping[str, Mapping[str, Any]]) -> Claim:
    notes = [claim.note]
    over = (experiments.get(name, {}).get("best_over") for name in claim.experiments)
    for what in dict.fromkeys(filter(None, over)):
        named = f"each number is the best over {what}"
        if claim.kind in _NO_RUN and claim.measure is not None:
            return replace(claim, measure=_refusing(f"{named}: {_NO_RUN[claim.kind]}"))
        notes.append(named)
    if claim.kind == "value" and claim.measure is not None:
        claim = replace(claim, measure=_of_these_runs(claim))
    parts = [*_parts(claim.expression)]
    if claim.measure is not None:
        claim = replace(claim, measure=_comparing(claim.measure, parts, experiments))
    if any(part.function.__name__ == runs.best.__name__ for part in parts):
        notes.append("the best of the seeds, whose spread is not that of a run")
    return replace(claim, note="; ".join(filter(None, notes)))


def _refusing(why: str) -> Any:
    def refuse(_: Any) -> Any:
        raise NotMeasurableError(why)

    return refuse


def _of_these_runs(claim: Claim) -> Any:
    """Measure a value, and say if the mean of these very runs rounds to it: a value asks about new ones."""
    measure = claim.measure
    assert measure is not None

    def measured(inputs: Any) -> Any:
        found, digits = measure(inputs), round(-math.log10(2 * claim.precision))
        if not isinstance(found, Measured) or found.bounds.any() or digits < 0:
            return found
        ends = Curves(np.zeros(1, int), np.arange(len(found.values)), found.values[:, None].astype(float))
        cell = printed.cell(ends, f"{claim.published:.{digits}f}", better="higher")
        table = printed.table(cell, rule="last")
        if not (table.found and table.as_stated and table.chance <= LEVEL):
            return found
        note = "the mean of these very runs is the printed number: as a claim of kind printed it holds"
        return replace(found, note="; ".join(filter(None, (found.note, note))))

    return measured


def _comparing(measure: Any, parts: list[Quantity], experiments: Mapping[str, Mapping[str, Any]]) -> Any:
    """Refuse to compare methods on different axes, or at different ends; both ends are named.

    Runs that stop by themselves end where they do.
    """
    ends = dict.fromkeys(key for part in parts if part.function.__name__ == "last" for key in part.needs)
    along: dict[str, set[str]] = {}
    for part in parts:
        if axis := runs.axis_of(part):
            along.setdefault(part.needs[0], set()).add(axis)

    def measured(inputs: Any) -> Any:
        def history(key: str) -> Any:
            return inputs.run(*key.removeprefix("run:").split("/"))

        def words(keys: Iterable[str]) -> str:
            named = ((key.removeprefix("run:").split("/"), history(key)) for key in keys)
            return "; ".join(
                runs.counts(one, method, experiments.get(experiment, {}).get("metrics", ()))
                for (experiment, method), one in named
            )

        apart = any(axes != along[part] for axes in along.values() for part in along)
        lacking = any(runs.lacks(history(key), axis) for key, axes in along.items() for axis in axes)
        if apart or (lacking and len(along) > 1):
            asked = (f"{key.rpartition('/')[2]} by {', '.join(sorted(axes))}" for key, axes in along.items())
            raise NotMeasurableError(f"these are different axes ({', '.join(asked)}): {words(along)}")
        stopped = any(_stops(key, experiments) for key in ends)
        last = [] if len(ends) < 2 or stopped else [history(key)["round"].max() for key in ends]
        if len(set(last)) > 1:
            raise NotMeasurableError(
                f"these are different ends: {words(ends)}; compare at one, by until: {min(last)}, or by "
                "Runs.at on an axis; or state stopped: true, where runs stop by themselves"
            )
        return measure(inputs)

    return measured


def _stops(key: str, experiments: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether runs of an experiment end by themselves; of those that are no logs nothing is said."""
    settings = experiments.get(key.removeprefix("run:").partition("/")[0], {})
    return "logs" not in settings or bool(settings.get("stopped"))


def _parts(expression: Any) -> Iterator[Quantity]:
    if isinstance(expression, Quantity):
        yield expression
        for part in (*expression.arguments, *(value for _, value in expression.named)):
            yield from _parts(part)
