"""What config/papers/cross.yaml may hold."""

from __future__ import annotations

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import Artefact, Count, Name, Natural, Positive, Several, Shards, Share


class Tuning(fields.Tuning):
    """How each method's one number is chosen."""

    multiples: Several[Positive] = Field(description="multiples of the reference value that are tried first")
    refine: Natural = Field(description="rounds of refinement around the best")


class Experiment(fields.Recorded):
    """All methods on one data set."""

    dataset: Name = Field(description="a data set of the catalogue")
    partition: Shards = Field(description="how the samples are split between the clients")
    samples: Count = Field(description="most samples of a client")
    ridge: Positive = Field(description="weight of |x|^2 / 2 in each client's loss")
    local_steps: Count = Field(description="local steps between two communications")
    kept_share: Share = Field(description="share of the coordinates that sparse methods keep")
    bits: Count = Field(description="bits per coordinate that a device may send in a round")
    tuning: Tuning = Field(description="how each method's one number is chosen")


class Section(fields.Section[Experiment, Artefact]):
    """All methods on the same problems."""
