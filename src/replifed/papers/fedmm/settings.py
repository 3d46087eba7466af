"""Settings in config/papers/fedmm.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from replifed.errors import shown
from replifed.settings import fields
from replifed.settings.fields import Count, Maybe, Name, Natural, Number, Positive, Several, Share, Weight

Bits = Annotated[int, Field(ge=2, le=32), fields.WHOLE]


class Tuning(fields.Tuning):
    """Search of the step of each method."""

    replicates: fields.Replicates = Field(
        description="repetitions used for tuning, none of them reported; every step is scored on the first "
        "three, the others are for the choice among steps of which none is stable"
    )
    tail: Share = Field(description="share of the rounds, at the end, over which the objective is averaged")
    betas: Several[Positive] = Field(description="first steps; the grid grows where the best is at an edge")
    refine: Natural = Field(description="halvings of the log-distance around the best step")
    leader: Name = Field("fedmm", description="method with whose step the others run, too")


class Codes(fields.Recorded):
    """Dictionary learning: the step is given or searched."""

    atoms: Count = Field(description="atoms of the dictionary, K")
    clients: Count = Field(description="number of clients")
    lam: Positive = Field(description="weight of the penalty on codes")
    eta: Positive = Field(description="weight of the dictionary's squared norm")
    decay: Weight = Field(description="exponent of the step's decay, 0 for a constant step")
    alphas: Several[Weight] = Field(description="steps of the control variates that are run, 0 for none")
    participations: Several[Share] = Field(description="shares of the clients that take part in a round")
    batches: Several[Count | None] = Field(description="local samples of a round, null for all of them")
    bits: Several[Bits | None] = Field(description="bits of a coordinate, null for whole numbers")
    objective_every: Count = Field(
        1,
        description="after the first 20 rounds, rounds between two records of what codes all samples: the "
        "objective and, of parameter aggregation, the update of the surrogate",
    )
    betas: Maybe[Several[Positive]] = Field(
        None, description="untuned steps gamma_t = min(1, beta / t^decay)"
    )
    tuning: Maybe[Tuning] = Field(None, description="search of the step of each method")

    @model_validator(mode="after")
    def _has_one_source_of_steps(self) -> Codes:
        if (self.betas is None) == (self.tuning is None):
            raise fields.refusal("no or two sources of steps; expected one of the keys betas, tuning")
        return self


class Dictionary(Codes):
    """Synthetic samples."""

    problem: Literal["dictionary"] = Field(description="kind of problem")
    heterogeneous: bool = Field(description="a cluster of the samples for each client, else all for all")
    samples: Count = Field(description="total number of samples")
    features: Count = Field(description="coordinates of a sample")
    nonzeros: Share = Field(description="share of non-zero codes of a sample")


class MovieLens(Codes):
    """Ratings of films."""

    problem: Literal["movielens"] = Field(description="kind of problem")
    dataset: Name = Field(description="a data set of the catalogue")
    partition: fields.EqualClusters = Field(description="how users are split between the clients")


class ExpectationMaximisation(fields.Recorded):
    """The EM examples of Appendix C."""

    problem: Literal["em"] = Field(description="kind of problem")
    model: Literal["poisson", "poisson_known_mean", "mixture"] = Field(description="latent-variable model")
    components: Maybe[Count] = Field(None, description="components of the mixture")
    features: Maybe[Count] = Field(None, description="coordinates of a sample of the mixture")
    clients: Count = Field(description="number of clients")
    samples: Count = Field(description="total number of samples")
    lam: Positive = Field(description="weight of the prior")
    beta: Positive = Field(description="step of the federated run")
    decay: Weight = Field(description="exponent of the step's decay, 0 for a constant step")
    alpha: Weight = Field(description="step of the control variates")
    participation: Share = Field(description="share of the clients in a round")
    batch: Count = Field(description="local samples of a round")
    bits: Bits = Field(description="bits of a coordinate")


class Values(fields.Settings):
    """The clients' values z_i in each reading of the example."""

    interval: Annotated[list[Number], Field(min_length=1)] = Field(description="values z_i, one a client")
    rate: Annotated[list[Number], Field(min_length=1)] = Field(description="values z_i, one a client")


class Toy(fields.Experiment):
    """The example of Remark 1."""

    problem: Literal["toy"] = Field(description="kind of problem")
    values: Values = Field(description="each client's value in each reading of the example")
    rounds: Count = Field(description="communication rounds")


class Searched(fields.Settings):
    """Outcome of a search of the steps."""

    steps: list[Positive] = Field(description="steps that were tried")
    uvp: list[Number | None] = Field(description="L2-UVP of each in percent, null if it diverged")

    @field_validator("uvp")
    @classmethod
    def _has_one_a_step(cls, value: list[float | None], info: ValidationInfo) -> list[float | None]:
        if "steps" in info.data and len(value) != len(info.data["steps"]):
            raise fields.refusal(f"{shown(value)} is not allowed; expected one for each step")
        return value


class MapTuning(fields.Tuning):
    """A search of the steps, made on request only."""

    steps: dict[str, Several[Positive]] = Field(description="steps tried for each method")


class Transport(fields.Recorded):
    """Optimal transport, Section 7."""

    problem: Literal["transport"] = Field(description="kind of problem")
    dataset: Name = Field(description="the true map's networks")
    dim: Count = Field(description="dimension")
    clients: Count = Field(description="number of clients")
    samples: Count = Field(description="samples of P that the clients share out")
    participation: Share = Field(description="share of the clients in a round")
    alpha: Weight = Field(description="step of the control variates")
    batch: Count = Field(description="local samples of a round")
    server_batch: Count = Field(description="public samples of a minibatch")
    server_step: Positive = Field(description="Adam's step for the conjugate")
    server_steps: Count = Field(description="Adam's steps a round")
    start_steps: Natural = Field(description="steps that train both networks to the identity beforehand")
    cycle: fields.NonNegative = Field(0, description="lambda, the weight of the cycle term in both losses")
    steps: Maybe[dict[str, Positive]] = Field(None, description="step of each method")
    searched: Maybe[dict[str, Searched]] = Field(None, description="the search behind each method's step")
    tuning: Maybe[MapTuning] = Field(None, description="a search of the steps, made on request only")
    twin_replicates: fields.TwinReplicates = None


Experiment = Annotated[
    Dictionary | MovieLens | ExpectationMaximisation | Toy | Transport, Field(discriminator="problem")
]


class Section(fields.Paper[Experiment, fields.Artefact]):
    """FedMM."""
