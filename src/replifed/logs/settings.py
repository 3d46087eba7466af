"""Settings of experiments whose runs are logs: which files, which columns, and which metrics."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from replifed.settings import fields
from replifed.settings.fields import Maybe, refusal

# What may stand in braces in a pattern of files, since a name says it.
PLACES = ("method", "seed")
# Names that a history gives other meanings.
TAKEN = ("method", "replicate", "round", "diverged", "bits", "experiment", "chaotic", "line")


class Columns(fields.Settings):
    """Columns of the logs, by what they mean; by default those of these names."""

    method: Maybe[fields.Text] = Field(None, description="the method's name; one method without it")
    seed: Maybe[fields.Text] = Field(None, description="name of the repetition; one without it")
    round: Maybe[fields.Text] = Field(
        None, description="communication round, or step; a table of final values has none"
    )
    bits: Maybe[fields.Text] = Field(None, description="bits that were sent so far, as they were counted")


class Metric(fields.Settings):
    """A number that was recorded."""

    better: Literal["lower", "higher"] = Field(description="side of better values, which nobody guesses")
    column: Maybe[fields.Text] = Field(None, description="its column, if that has another name")


class Experiment(fields.Experiment):
    """An experiment whose runs are logs."""

    logs: fields.Text | fields.Several[fields.Text] = Field(
        description="files in the paper's folder, such as runs/*.csv or runs/{method}_{seed}.csv"
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
    stopped: bool = Field(
        False,
        description="runs end where they stop by themselves, and their last records count on",
    )
    until: Maybe[fields.Natural] = Field(None, description="last round that counts, where logs go on")
    best_over: Maybe[fields.Text] = Field(
        None, description="of what each line is the best, such as eta or seeds: it is no run"
    )
    tuned_on: Maybe[fields.Replicates] = Field(None, description="seeds on which the methods were tuned")
    data: Literal["synthetic", "original", "substitute", "surrogate"] = Field(
        "original", description="data of the runs; on surrogates claims stay unchecked"
    )

    @field_validator("logs")
    @classmethod
    def _inside(cls, value: Any) -> Any:
        for pattern in [value] if isinstance(value, str) else value:
            if pattern.startswith(("/", "~")) or ".." in re.split(r"[/\\]", pattern):
                raise refusal(f"{pattern} leaves the folder of the paper; put the logs into it")
            for name in (names := re.findall(r"\{(.*?)\}", pattern)):
                if name not in PLACES or names.count(name) > 1:
                    raise refusal(
                        f"{{{name}}} in {pattern} is not allowed; expected {{method}} or {{seed}}, once"
                    )
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
