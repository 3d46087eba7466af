"""What logs cannot answer: claims on numbers that are no runs, and words for what a number is the best of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from replifed.claims.claim import Claim, NotMeasurableError
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
    parts = [*_parts(claim.expression)]
    ends = dict.fromkeys(key for part in parts if part.function.__name__ == "last" for key in part.needs)
    if len(ends) > 1 and claim.measure is not None:
        claim = replace(claim, measure=_at_one_end(claim.measure, list(ends), experiments))
    if any(part.function.__name__ == runs.best.__name__ for part in parts):
        notes.append("the best of the seeds, whose spread is not that of a run")
    return replace(claim, note="; ".join(filter(None, notes)))


def _refusing(why: str) -> Any:
    def refuse(_: Any) -> Any:
        raise NotMeasurableError(why)

    return refuse


def _at_one_end(measure: Any, keys: list[str], experiments: Mapping[str, Mapping[str, Any]]) -> Any:
    """Refuse to compare what runs end at, if they end at different rounds and do not stop by themselves."""

    def measured(inputs: Any) -> Any:
        names = [key.removeprefix("run:").split("/") for key in keys]
        ends, words = [], []
        for experiment, method in names:
            settings = experiments.get(experiment, {})
            if "logs" not in settings or settings.get("stopped"):
                return measure(inputs)
            history = inputs.run(experiment, method)
            ends.append(history["round"].max())
            words.append(runs.counts(history, method, settings.get("metrics", ())))
        if len(set(ends)) > 1:
            raise NotMeasurableError(
                f"{'; '.join(words)}: compare them at one end, by until: {min(ends)}, or by Runs.at "
                "on an axis; or state stopped: true, where runs stop by themselves"
            )
        return measure(inputs)

    return measured


def _parts(expression: Any) -> Iterator[Quantity]:
    if isinstance(expression, Quantity):
        yield expression
        for part in (*expression.arguments, *(value for _, value in expression.named)):
            yield from _parts(part)
