"""Settings of experiments whose runs are logs: which files, which columns, and which metrics."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from replifed.settings import fields
from replifed.settings.fields import Maybe, refusal

# Names that a history gives other meanings.
TAKEN = ("method", "replicate", "round", "diverged", "bits", "experiment", "chaotic", "line")


def braces(pattern: str, key: str) -> list[str]:
    """Return the names in braces in a pattern, each of which stands there once."""
    for name in (names := re.findall(r"\{(.*?)\}", pattern)):
        if not re.fullmatch(r"[a-z]\w*", name) or names.count(name) > 1:
            raise refusal(
                f"{{{name}}} in {key}: {pattern} is not allowed; expected a word in small letters, once"
            )
    return names


class Columns(fields.Settings):
    """Columns of the logs, by what they mean; by default those of these names."""

    method: Maybe[fields.Text] = Field(None, description="the method's name; one method without it")
    seed: Maybe[fields.Text] = Field(None, description="name of the repetition; one without it")
    round: Maybe[fields.Text] = Field(
        None,
        description="communication round, or step; `line` counts lines; a table of final values has none",
    )
    bits: Maybe[fields.Text] = Field(None, description="bits that were sent so far, as they were counted")
    client: Maybe[fields.Text] = Field(
        None, description="the client's name, of lines that are one client each: their weighted mean counts"
    )
    weight: Maybe[fields.Text] = Field(None, description="the client's weight, such as its samples")


class Metric(fields.Settings):
    """A number that was recorded."""

    better: Literal["lower", "higher"] = Field(description="side of better values, which nobody guesses")
    column: Maybe[fields.Text] = Field(None, description="its column, if that has another name")


class Experiment(fields.Experiment):
    """An experiment whose runs are logs."""

    logs: fields.Text | fields.Several[fields.Text] = Field(
        description="files in the paper's folder, such as runs/*.csv or runs/{method}_{seed}.csv; what else "
        "stands in braces is a column"
    )
    wide: Maybe[fields.Text] = Field(
        None,
        description="names of columns that are runs each, such as {method}, {method}_{seed} or "
        "{method} - {metric}; without {metric}, their numbers are the column `value`",
    )
    columns: Columns = Field(default_factory=Columns, description="columns of the logs, by what they mean")
    metrics: fields.Named[Metric] = Field(description="recorded numbers by name, each with its better side")
    axes: dict[fields.Text, fields.Text] = Field(
        default_factory=dict,
        description="what else grows beside the rounds, with its column, such as seconds, passes or epsilon",
    )
    where: dict[fields.Text, Any] = Field(
        default_factory=dict, description="only lines whose columns hold these values"
    )
    replicates: Maybe[fields.Replicates] = Field(None, description="reported seeds; by default all")
    until: Maybe[fields.Natural] = Field(None, description="last round that counts, where logs go on")
    stopped: bool = Field(
        False, description="runs stop once they are done: one that ends early keeps its last values"
    )
    ignore: fields.Distinct[fields.Text] = Field(
        default_factory=list, description="columns whose end says nothing of whether a run diverged"
    )
    best_over: Maybe[fields.Text] = Field(
        None, description="of what each line is the best, such as eta or seeds: it is no run"
    )
    tuned_on: Maybe[fields.Replicates] = Field(None, description="seeds on which the methods were tuned")
    evidence: Literal["authors' logs", "own runs"] = Field(
        "authors' logs", description="whose runs these are: those behind the paper's numbers, or others"
    )
    data: Literal["synthetic", "original", "substitute", "surrogate"] = Field(
        "original", description="data of the runs; on surrogates claims stay unchecked"
    )

    @field_validator("logs")
    @classmethod
    def _inside(cls, value: Any) -> Any:
        for pattern in [value] if isinstance(value, str) else value:
            if pattern.startswith(("/", "~")) or ".." in re.split(r"[/\\]", pattern):
                raise refusal(f"{pattern} leaves the folder of the paper; put the logs into it")
            braces(pattern, "logs")
        return value

    @field_validator("wide")
    @classmethod
    def _named(cls, value: str) -> str:
        if not set(braces(value, "wide")) & {"method", "seed", "metric"}:
            raise refusal(f"{value} has none of {{method}}, {{seed}} and {{metric}}")
        return value

    @field_validator("metrics")
    @classmethod
    def _free(cls, value: Any) -> Any:
        if taken := sorted(set(value) & set(TAKEN)):
            raise refusal(
                f"{taken[0]} is no name of a metric, it means something else; give another one, and `column`"
            )
        return value

    @field_validator("axes")
    @classmethod
    def _other(cls, value: Any, info: ValidationInfo) -> Any:
        if taken := sorted(set(value) & {*TAKEN, *info.data.get("metrics", ())}):
            raise refusal(f"{taken[0]} is no name of an axis, it means something else; give another one")
        return value


Section = fields.Paper[Experiment, fields.ArtefactWith[dict[str, Any]]]
