"""Settings in config/papers/cross.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.network.participation import Average
from replifed.settings import fields, main
from replifed.settings.fields import Count, Maybe, Name, Natural, NonNegative, Positive, Several, Shards


class Tuning(fields.Tuning):
    """Search of each method's one number."""

    multiples: Several[Positive] = Field(description="multiples of the reference value that are tried first")
    refine: Natural = Field(description="rounds of refinement around the best")
    validation: Maybe[fields.Text] = Field(
        None,
        description="share of the training samples by whose accuracy to choose; by default the objective",
    )
    runs: Maybe[Count] = Field(
        None, description="runs that a search may take, extensions of the grid and checks included"
    )


class Common(fields.Recorded):
    """Settings of every experiment, on all kinds of data."""

    samples: Count = Field(description="maximum number of a client's samples")
    local_steps: Count = Field(description="local steps between two communications")
    kept_share: fields.Share = Field(description="share of the coordinates that sparse methods keep")
    bits: Maybe[Count] = Field(None, description="bits per coordinate that a client may send in a round")
    cohort: Maybe[fields.Clients] = Field(None, description=main.COHORT)
    availability: Maybe[fields.Text] = Field(None, description=main.AVAILABILITY)
    average: Maybe[Average] = Field(None, description=main.AVERAGE)
    tuning: Annotated[Tuning, fields.LEFT_OUT] = Field(
        None,  # type: ignore[assignment]
        description="search of each method's one number; with untuned none",
    )
    untuned: Maybe[bool] = Field(None, description="take the parameters of each method's theory")


class Logistic(Common):
    """Logistic regression with a ridge on a data set."""

    problem: Literal["logistic"] = Field(description="kind of problem")
    samples: Maybe[Count] = Field(  # type: ignore[assignment]
        None, description="maximum number of a client's samples; by default all"
    )
    weights: Literal["equal", "samples"] = Field(
        "equal", description="p_i in F = sum_i p_i f_i: 1/N, or the client's share of the samples"
    )
    dataset: Name = Field(description="a data set of the catalogue")
    partition: Shards | fields.Given | fields.Rule = Field(
        description="how the samples are split between the clients", discriminator="clusters"
    )
    ridge: Positive = Field(description="weight of |x|^2 / 2 in each client's loss")
    test: Maybe[fields.Text] = Field(None, description=main.TEST)
    new_clients: Maybe[fields.Clients] = Field(None, description=main.NEW_CLIENTS)
    standardise: Maybe[bool] = Field(
        None,
        description="whether features are standardised here, as a test needs it: over the training samples",
    )


class Own(Logistic):
    """Other losses with a ridge, on custom data."""

    problem: Literal["least_squares", "softmax"] = Field(description="loss")  # type: ignore[assignment]


class Sparse(Logistic):
    """Logistic regression with a ridge, whose features stay sparse; repetitions run one by one."""

    problem: Literal["sparse"] = Field(description="kind of problem")  # type: ignore[assignment]


class Composite(Logistic):
    """Logistic regression with a ridge and a 1-norm."""

    problem: Literal["composite"] = Field(description="kind of problem")  # type: ignore[assignment]
    l1: Positive = Field(description="weight of |x|_1 in the objective")


class Planted(Common):
    """Sparse linear regression whose solution is known, on synthetic data; all clients hold `samples`."""

    problem: Literal["planted"] = Field(description="kind of problem")
    clients: Count = Field(description="number of clients")
    features: Count = Field(description="coordinates, of which `kept_share` are planted")
    noise: NonNegative = Field(description="standard deviation of the targets' noise")
    spread: NonNegative = Field(description="spread of clients' models and of scales of features")


OnDataSet = Logistic | Own | Sparse | Composite
Experiment = Annotated[OnDataSet | Planted, Field(discriminator="problem")]


class Section(fields.Section[Experiment, fields.Artefact]):
    """All methods on the same problems."""
