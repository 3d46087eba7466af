"""Settings in config/papers/fedac.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import (
    Artefact,
    Count,
    Counts,
    Maybe,
    Name,
    Natural,
    Positive,
    Replicates,
    Several,
)


class Common(fields.Experiment):
    """Settings of every experiment."""

    dataset: Name = Field(description="a data set of the catalogue")
    l2: Positive = Field(description="weight of |w|^2 / 2")
    steps: dict[str, Several[Positive]] = Field(description="steps eta, by method as the authors name it")
    local_steps: Counts = Field(description="numbers K of local steps, divisors of `every`")
    iterations: Count = Field(description="steps T, local ones counted")
    every: Count = Field(description="steps between two records, among which the best counts")
    replicates: Replicates = Field(description="seeds; the authors' is 1")


class Grid(Common):
    """All steps, workers and local steps on the same random numbers, with perturbed runs."""

    kind: Literal["grid"] = Field(description="kind of experiment")
    random: Literal["authors", "own"] = Field(description="source of the random numbers")
    workers: Counts = Field(description="numbers M of workers")
    neighbours: Maybe[Natural] = Field(
        None, description="steps to either side of the authors' best; all by default"
    )


class Around(fields.Settings):
    """Search of a step around the authors' best."""

    replicates: Replicates = Field(description="seeds of the search, none of them reported")
    neighbours: Natural = Field(description="steps to either side of the authors' best")


class Fresh(Common):
    """The best step of some seeds, and the authors', on other seeds."""

    kind: Literal["fresh"] = Field(description="kind of experiment")
    random: Literal["authors", "own"] = Field(description="source of the random numbers")
    workers: Counts = Field(description="numbers M of workers")
    tuning: Around = Field(description="search of the step")


Experiment = Annotated[Grid | Fresh, Field(discriminator="kind")]


class Section(fields.Paper[Experiment, Artefact]):
    """FedAc."""
