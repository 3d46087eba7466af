"""What config/papers/cross.yaml may hold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import Count, Maybe, Name, Natural, NonNegative, Positive, Several, Shards


class Tuning(fields.Tuning):
    """How each method's one number is chosen."""

    multiples: Several[Positive] = Field(description="multiples of the reference value that are tried first")
    refine: Natural = Field(description="rounds of refinement around the best")


class Common(fields.Recorded):
    """What every experiment has, whatever its data."""

    samples: Count = Field(description="most samples of a client")
    local_steps: Count = Field(description="local steps between two communications")
    kept_share: fields.Share = Field(description="share of the coordinates that sparse methods keep")
    bits: Maybe[Count] = Field(None, description="bits per coordinate that a device may send in a round")
    tuning: Tuning = Field(description="how each method's one number is chosen")


class Logistic(Common):
    """Logistic regression with a ridge on a data set."""

    problem: Literal["logistic"] = Field(description="kind of problem")
    dataset: Name = Field(description="a data set of the catalogue")
    partition: Shards | fields.Given = Field(
        description="how the samples are split between the clients", discriminator="clusters"
    )
    ridge: Positive = Field(description="weight of |x|^2 / 2 in each client's loss")


class Own(Logistic):
    """The same with other losses, on data of one's own."""

    problem: Literal["least_squares", "softmax"] = Field(description="loss")  # type: ignore[assignment]


class Composite(Logistic):
    """The same with a 1-norm."""

    problem: Literal["composite"] = Field(description="kind of problem")  # type: ignore[assignment]
    l1: Positive = Field(description="weight of |x|_1 in the objective")


class Planted(Common):
    """Sparse linear regression whose solution is known, on drawn data; all clients hold `samples`."""

    problem: Literal["planted"] = Field(description="kind of problem")
    clients: Count = Field(description="number of clients")
    features: Count = Field(description="coordinates, of which `kept_share` are planted")
    noise: NonNegative = Field(description="standard deviation of the targets' noise")
    spread: NonNegative = Field(description="how much clients' models and scales of features differ")


class _ManyRidges(fields.Repeated):
    """Communications against the condition number."""

    samples: Count = Field(description="most samples of a client")
    ridges: Annotated[Several[Positive], Field(min_length=2)] = Field(description="weights of |x|^2 / 2")
    target: Positive = Field(description="of |x - x*|^2, as a share of what it was at the start")
    rounds: Count = Field(description="most rounds")
    lyapunov_every: Count = Field(
        description="rounds after which it is looked how low the Lyapunov function is"
    )
    tuning: Tuning = Field(description="how each method's step is chosen, as a multiple of 1 / L")


class Rates(_ManyRidges):
    """On a data set."""

    problem: Literal["rates"] = Field(description="kind of problem")
    dataset: Name = Field(description="a data set of the catalogue")
    partition: Shards = Field(description="how the samples are split between the clients")


class PlantedRates(_ManyRidges):
    """On drawn least squares."""

    problem: Literal["planted_rates"] = Field(description="kind of problem")
    clients: Count = Field(description="number of clients")
    features: Count = Field(description="coordinates")
    spread: NonNegative = Field(description="how much clients' models differ")


OnDataSet = Logistic | Own | Composite | Rates
ManyRidges = Rates | PlantedRates
OneRidge = Logistic | Own | Composite | Planted
Experiment = Annotated[OneRidge | ManyRidges, Field(discriminator="problem")]


class Section(fields.Section[Experiment, fields.Artefact]):
    """All methods on the same problems."""
