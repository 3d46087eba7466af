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
    Shards,
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


class Among(fields.Settings):
    """Search of a step in a list."""

    replicates: Replicates = Field(description="seeds of the search, none of them reported")
    steps: Several[Positive] = Field(description="steps that are tried")


class Clients(Common):
    """Clients with different data, in the library's engine."""

    kind: Literal["clients"] = Field(description="kind of experiment")
    partition: Shards = Field(description="how the samples are split between the clients")
    clients: Count = Field(description="number M of clients")
    samples: Count = Field(description="maximum number of a client's samples")
    mixed: bool = Field(False, description="true shares the samples out anew, at random")
    cohort: Maybe[Count] = Field(None, description="clients that take part in a round; all by default")
    tuning: Among = Field(description="search of the step")


Experiment = Annotated[Grid | Fresh | Clients, Field(discriminator="kind")]


class Section(fields.Paper[Experiment, Artefact]):
    """FedAc."""
