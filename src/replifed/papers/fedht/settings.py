"""Settings in config/papers/fedht.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import Count, Counts, Distinct, Maybe, Name, Natural, Positive, Several, Shards

Level = Annotated[list[fields.NonNegative], Field(min_length=2, max_length=2)]


class Tuning(fields.StepTuning):
    """Choice of the step size of each method, also in the reading `common`."""

    common_fraction: Positive = Field(
        0.5,
        description="step of the common reading, as a fraction of one over the clients' largest smoothness",
    )


class Common(fields.Repeated):
    """Settings of every experiment."""

    loss: Literal["least_squares", "logistic", "softmax"] = Field(description="loss of each client")
    sparsity: Count = Field(description="number of weights that hard thresholding keeps")
    local_steps: Counts = Field(description="numbers of local steps between two communications, K")
    rounds: Count = Field(description="communication rounds")
    dtype: fields.Precision = Field("float64", description="floating-point type of the arithmetic")


class Compared(Common, fields.Recorded, fields.RunByRepetition):
    """An experiment of the paper, in which steps are searched and some runs take full gradients."""

    batch: Count = Field(description="samples of a mini-batch")
    baseline_rounds: Maybe[Count] = Field(None, description="rounds where K = 1, if other than `rounds`")
    full_batch_replicates: Distinct[Natural] = Field(
        default_factory=list, description="names of the repetitions that are run with full gradients as well"
    )
    full_batch_rounds: Count = Field(1, description="rounds of the runs with full gradients")
    twin_replicates: fields.TwinReplicates = None
    tuning: Tuning = Field(description="how the step size of each method is chosen")


class Simulation(Compared):
    """Simulations I and II."""

    problem: Literal["simulation"] = Field(description="kind of data")
    clients: Count = Field(description="number of clients")
    samples: Count = Field(description="samples of each client")
    positives: Maybe[Count] = Field(None, description="samples of each client that are labelled +1")
    features: Count = Field(description="number of features")
    planted: Count = Field(description="non-zeros of each client's own weights")
    levels: Several[Level] = Field(description="pairs (alpha, beta): variance of weights and of features")


class DataSet(Compared):
    """Real data."""

    problem: Literal["dataset"] = Field(description="kind of data")
    dataset: Name = Field(description="a data set of the catalogue")
    partition: Shards = Field(description="how the samples are split between the clients")
    supports: bool = Field(False, description="whether the models' supports near the end are kept")
    classes: Maybe[Count] = Field(
        None,
        description="number of classes, each of which keeps `sparsity` weights; by default they share them",
    )


class Planted(Common, fields.Recorded):
    """Where the theorems' conditions hold."""

    problem: Literal["planted"] = Field(description="kind of data")
    clients: Count = Field(description="number of clients")
    samples: Count = Field(description="samples of each client")
    features: Count = Field(description="number of features")
    planted: Count = Field(description="non-zeros of the true weights, tau*")
    condition: Annotated[float, Field(ge=1), fields.REAL] = Field(description="condition number, kappa")
    first_batch: Count = Field(description="samples of the first mini-batch, where theorems ask for more")


class Biased(Common, fields.Recorded):
    """Where the gradient at the solution is known and not zero, and clients differ by degrees."""

    problem: Literal["biased"] = Field(description="kind of data")
    clients: Count = Field(description="number of clients")
    features: Count = Field(description="number of features")
    planted: Count = Field(description="non-zeros of the solution, tau*")
    condition: Annotated[float, Field(ge=1), fields.REAL] = Field(description="condition number, kappa")
    offset: Positive = Field(description="size of f's minimiser off the solution's support")
    spreads: Several[fields.NonNegative] = Field(
        description="variances of the clients' minimisers around that of f"
    )
    differ: Literal["everywhere", "support"] = Field(
        "everywhere", description="coordinates in which clients' minimisers differ: all, or the solution's"
    )
    batch: Maybe[Count] = Field(None, description="samples of a mini-batch; by default all")
    noise: fields.NonNegative = Field(
        0.0,
        description="standard deviation that targets' noise adds to each coordinate of the gradient of a "
        "mini-batch of as many samples as features",
    )


class Drawing(fields.Settings):
    """Numbers that a drawing needs."""

    rows: Maybe[Count] = Field(None, description="samples drawn")
    components: Maybe[Count] = Field(None, description="principal components kept before the embedding")
    perplexity: Maybe[Positive] = Field(None, description="perplexity of t-SNE")


Experiment = Annotated[Simulation | DataSet | Planted | Biased, Field(discriminator="problem")]


class Section(fields.Paper[Experiment, fields.ArtefactWith[Drawing]]):
    """FedHT and FedIterHT."""
