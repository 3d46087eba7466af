"""Settings in config/papers/fedgradmp.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import Count, Counts, Maybe, Name, NonNegative, Positive, Several

_SOLVER = "steps of the inexact solver of FedGradMP's sub-problem"
_WEIGHTS = "weights lambda of the 1-norm of FedMid and FedDualAvg"


class Common(fields.Recorded):
    """Settings of every experiment."""

    clients: Count = Field(description="number of clients")
    local_steps: Counts = Field(description="numbers of local iterations, K")


class Reading(fields.Settings):
    """A way to read what the paper leaves open."""

    sparsity: Count = Field(description="sparsity level, tau")
    scale: Positive = Field(description="what gradients are multiplied by")


class Planted(Common):
    """A regression whose solution is known."""

    features: Count = Field(description="dimension n of the model")
    planted: Count = Field(description="non-zeros of the true model x#; tau as well")
    noises: Several[NonNegative] = Field(description="variances of the noise")


class Isometry(Planted):
    """Where Theorem 5 promises something."""

    problem: Literal["isometry"] = Field(description="kind of data")
    conditions: Several[Positive] = Field(description="condition numbers of the clients' losses")


class Regression(Planted):
    """Sparse linear regression on drawn data."""

    problem: Literal["regression"] = Field(description="kind of data")
    samples: Count = Field(description="samples of each client")
    decay: NonNegative = Field(description="c; entries of client i's data have variance 1/i^c")
    alphas: Several[NonNegative] = Field(description="variances of the clients' mean entries")
    batch: Count = Field(description="samples of a mini-batch")
    cohorts: Maybe[Counts] = Field(None, description="numbers of clients in a round; all by default")
    solvers: Several[Literal["exact", "gd"]] = Field(
        ["exact"], description="solvers of FedGradMP's sub-problem"
    )
    inner_steps: Maybe[Count] = Field(None, description=_SOLVER)
    weights: Maybe[Several[Positive]] = Field(None, description=_WEIGHTS)
    steps: Maybe[Several[Positive]] = Field(
        None, description="step sizes that are run instead of one that is searched"
    )
    readings: Maybe[Annotated[dict[str, Reading], Field(min_length=1)]] = Field(
        None, description="ways to read what the paper leaves open, by name"
    )
    baseline_rounds: Maybe[Count] = Field(None, description="rounds of other methods; as many by default")
    fediterht_rounds: Maybe[Count] = Field(
        None, description="rounds of FedIterHT; as many as of other methods by default"
    )
    baseline_record_every: Maybe[Count] = Field(
        None, description="rounds between two recorded points of other methods; as many by default"
    )
    tuning: Maybe[fields.StepTuning] = Field(None, description="how the step size of each method is chosen")


class Clip(Common):
    """A frame of a clip, in a dictionary that is learned from those before it."""

    target: Count = Field(description="number of the frame to recover; the last one of a shorter clip")
    training: Count = Field(description="frames before it that the dictionary is learned from")
    atoms: Count = Field(description="atoms of the dictionary; at most one a training frame")
    atom_sparsity: Count = Field(description="atoms that K-SVD gives a training frame")
    iterations: Count = Field(description="iterations of K-SVD")
    samples: Count = Field(description="samples of each client")
    decay: NonNegative = Field(description="c; entries of client i's data have variance 1/i^c")
    alpha: NonNegative = Field(description="variance of the clients' mean entries")
    sparsity: Count = Field(description="sparsity level, tau")


class Video(Clip):
    """The paper's clip."""

    problem: Literal["video"] = Field(description="kind of data")
    dataset: Name = Field(description="a data set of the catalogue")


class DrawnVideo(Clip):
    """A drawn clip."""

    problem: Literal["drawn_video"] = Field(description="kind of data")
    frames: Count = Field(description="frames of the drawn clip")


class Digits(Common, fields.RunByRepetition):
    """Classification of handwritten digits."""

    problem: Literal["digits"] = Field(description="kind of data")
    dataset: Name = Field(description="a data set of the catalogue")
    dictionary: Literal["standard", "gaussian"] = Field(description="atoms that models combine")
    atoms: Maybe[Count] = Field(None, description="number of Gaussian atoms")
    clients: Count = Field(description="writers for training; the others are the test set")
    samples: Count = Field(description="samples of each client")
    cohort: Count = Field(description="clients of a round")
    batch: Count = Field(description="samples of a mini-batch")
    sparsities: Counts = Field(description="sparsity levels, tau, of all classes together")
    classes: Maybe[Count] = Field(
        None,
        description="number of classes, each of which keeps an equal part of tau; by default they share it",
    )
    matched_steps: Count = Field(description="local iterations of FedGradMP")
    inner_steps: Count = Field(description=_SOLVER)
    radius: Maybe[Positive] = Field(None, description="largest norm of FedGradMP's models")
    fedavg_record_every: Count = Field(1, description="rounds between two recorded points of FedAvg")
    weights: Maybe[Several[Positive]] = Field(None, description=_WEIGHTS)
    dtype: fields.Precision = Field("float64", description="floating-point type of the arithmetic")
    tuning: fields.StepTuning = Field(description="how the step size of each method is chosen")


class Timing(fields.Settings):
    """Numbers that an artefact needs."""

    rounds: Maybe[Count] = Field(None, description="rounds that are timed")


Experiment = Annotated[Regression | Video | DrawnVideo | Digits | Isometry, Field(discriminator="problem")]


class Section(fields.Paper[Experiment, fields.ArtefactWith[Timing]]):
    """FedGradMP."""
