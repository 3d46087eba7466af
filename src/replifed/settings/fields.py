"""Types of values, and the bases of the settings of papers.

Each class is the single truth for its keys: types, ranges, defaults, descriptions. The papers' own classes
are in ``replifed.papers.<paper>.settings``, those of the whole configuration in `main`. The workflow imports
them at each start: they import no numerics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from replifed import __version__
from replifed.errors import shown

T = TypeVar("T")

# --- Markers of values: numbers as written, keys that may be left out, no repeats ---


def refusal(text: str) -> PydanticCustomError:
    """Return the error of a validator whose `text` says what is wrong."""
    return PydanticCustomError("refusal", "{text}", {"text": text})


def _whole_as_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unconverted(value: Any, check: Any) -> Any:
    check(value)
    return value


def _distinct(values: list[Any]) -> list[Any]:
    if any(value in values[:index] for index, value in enumerate(values)):
        raise PydanticCustomError("repeats", "a value occurs twice")
    return values


class LeftOut:
    """Marks a key that `Settings.plain` leaves out if it was not given; its attribute is then None."""


class _NotNull(LeftOut):
    """Marks such a key for which null is no value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        (kind,) = (kind for kind in get_args(source) if kind is not type(None))
        return handler.generate_schema(kind)


# An integer may be written 5.0, but Python's range() takes no float.
WHOLE = BeforeValidator(_whole_as_integer)
# Other numbers stay as they are written: 1 and 1.0 are different texts to a job.
REAL = WrapValidator(_unconverted)
# A key that may be left out; LEFT_OUT marks one that may also be null.
Maybe = Annotated[T | None, _NotNull()]
LEFT_OUT = LeftOut()
# A list without repeats.
Distinct = Annotated[list[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_distinct)]

# --- Values ---

Count = Annotated[int, Field(ge=1), WHOLE]
Natural = Annotated[int, Field(ge=0), WHOLE]
Number = Annotated[float, REAL]
Positive = Annotated[float, Field(gt=0), REAL]
NonNegative = Annotated[float, Field(ge=0), REAL]
# Above 0 and at most 1; and with 0.
Share = Annotated[float, Field(gt=0, le=1), REAL]
Weight = Annotated[float, Field(ge=0, le=1), REAL]
# Strictly between 0 and 1.
Fraction = Annotated[float, Field(gt=0, lt=1), REAL]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$", description="small letters, digits and underscores")]
Precision = Literal["float32", "float64"]
# Clients of a round, a number or a share.
Clients = Annotated[Text | Count, Field()]
# Of models on a custom data set.
Loss = Literal["logistic", "least_squares", "softmax"]

Several = Annotated[Distinct[T], Field(min_length=1)]
Names = Several[Name]
Counts = Several[Count]
Replicates = Several[Natural]
Named = Annotated[dict[Name, T], Field(min_length=1)]
ByExperiment = Annotated[dict[str, Names], Field(min_length=1)]


class Settings(BaseModel):
    """Base of all classes of settings: an unknown key is an error, and what is left out stays out."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return the mapping that jobs get: with defaults, but without keys that were left out."""
        marks = {key: field.metadata for key, field in type(self).model_fields.items()}
        return {
            key: _plain(value)
            for key, value in self
            if key in self.model_fields_set or not any(isinstance(mark, LeftOut) for mark in marks[key])
        }

    def with_(self, *others: Settings, **changed: Any) -> Self:
        """Return a copy with the keys that `others` were given, and with those that are `changed`."""
        given = {key: value for one in others for key, value in one if key in one.model_fields_set}
        return self.model_copy(update=given | changed)


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.plain()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


# --- Of one paper ---


class Shards(Settings):
    """A split of a data set between clients: groups, cut into shards that are assigned at random."""

    clusters: Literal["kmeans", "labels"] = Field(description="criterion by which samples are grouped")
    count: Count = Field(description="number of groups")
    parts: Count = Field(description="shards that each group is cut into")
    shards_per_client: Count = Field(description="shards that each client gets")

    @field_validator("shards_per_client")
    @classmethod
    def _divides(cls, value: int, info: ValidationInfo) -> int:
        shards = info.data.get("count", 0) * info.data.get("parts", 0)
        if shards % value:
            raise refusal(f"{value} is not allowed; expected a divisor of the {shards} shards")
        return value


class Given(Settings):
    """A split of a data set between clients that the data set names."""

    clusters: Literal["given"] = Field(description="criterion by which samples are grouped")
    clients: Maybe[Count] = Field(
        None, description="so many of them, drawn in each repetition; by default all"
    )


class EqualClusters(Settings):
    """A split of the rows of a data set between clients: each gets a cluster, all of one size."""

    clusters: Literal["equal_kmeans"] = Field(description="criterion by which samples are grouped")
    rows: Count = Field(description="users that are kept")
    choice: Literal["fullest", "random"] = Field(
        "fullest", description="those with the most ratings, or sampled once at random"
    )
    columns: Count = Field(description="films with the most ratings that are kept")
    count: Count = Field(description="number of groups")

    @field_validator("count")
    @classmethod
    def _divides(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("rows", 0) % value:
            raise refusal(f"{value} is not allowed; expected a divisor of the {info.data['rows']} rows")
        return value


class Rule(Settings):
    """A split of a data set between clients by a rule of the literature, drawn in each repetition."""

    clusters: Literal["iid", "dirichlet", "shards"] = Field(description="the rule")
    clients: Count = Field(description="number of clients")
    spread: NonNegative = Field(0.0, description="standard deviation of the logarithm of clients' sizes")
    samples: Maybe[Count] = Field(None, description="mean of a client's samples; by default all are used")
    alpha: Maybe[Positive] = Field(None, description="concentration of each label, of dirichlet")
    shards_per_client: Maybe[Count] = Field(None, description="shards of sorted labels, of shards")

    @model_validator(mode="after")
    def _has_its_number(self) -> Rule:
        needed = {"dirichlet": "alpha", "shards": "shards_per_client"}.get(self.clusters)
        if needed is not None and getattr(self, needed) is None:
            raise refusal(f"{self.clusters} lacks its key {needed}")
        return self


Partition = Annotated[Shards | EqualClusters | Rule, Field(discriminator="clusters")]


class Tuning(Settings):
    """Search of what a method leaves open."""

    replicates: Replicates = Field(description="repetitions used for tuning, none of them reported")
    rounds: Count = Field(description="rounds of a tuning run")


class StepTuning(Tuning):
    """Search of each method's step size."""

    steps: Several[Positive] = Field(description="step sizes tried first")
    refine: Natural = Field(0, description="rounds of refinement around the best step")
    tail: Weight = Field(
        0,
        description="share of the rounds, at the end, whose mean objective is a step's score and in which it "
        "must agree with perturbed runs; with 0 the last one alone",
    )


class Experiment(Settings):
    """Settings of every experiment."""

    methods: Names = Field(description="methods to run")
    memory_mb: Maybe[Annotated[int, Field(ge=100), WHOLE]] = Field(
        None, description="megabytes that a job declares; by default more than was recorded of it, or 2000"
    )
    _seed: int = PrivateAttr()

    @property
    def seed(self) -> int:
        """Seed of every random stream: that of the paper, which a job gets with its settings."""
        return self._seed

    @classmethod
    def of_job(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings `given` to a job, which have been checked.

        Optional keys have their defaults, or are None; required keys that are not given are no attributes.
        """
        values = {"_seed": given["seed"]} if "seed" in given else {}
        for key, value in given.items():
            field = cls.model_fields.get(key)
            if field is not None and isinstance(value, dict):
                value = TypeAdapter(field.rebuild_annotation()).validate_python(value, strict=True)
            values[key] = value
        constructed: Any = cls.model_construct(**values)
        return constructed


_TWINS = "repetitions with perturbed runs, which show whether a run is sensitive to rounding; default: all"
TwinReplicates = Annotated[Maybe[Distinct[Natural]], Field(description=_TWINS)]


class Repeated(Experiment):
    """An experiment with repetitions."""

    replicates: Replicates = Field(description="names of the reported repetitions")


class Recorded(Repeated):
    """An experiment that is recorded round by round."""

    rounds: Count = Field(description="communication rounds")
    record_every: Count = Field(1, description="rounds between two recorded points")


class RunByRepetition(Repeated):
    """An experiment whose runs take repetitions one by one, in order, so that jobs can share them."""

    split: Maybe[dict[Name, Count]] = Field(
        None,
        description="number of jobs, by method, that share its repetitions, so that several cores work on "
        "them; changes no result",
    )


class FreeExperiment(Experiment, extra="allow"):
    """An experiment of a paper that has no classes of its own: any further key may hold anything."""

    dataset: Maybe[Name] = Field(None, description="a data set of the catalogue")
    partition: Maybe[Partition] = Field(None, description="how the samples are split between the clients")
    replicates: Maybe[Replicates] = Field(None, description="names of the reported repetitions")
    rounds: Maybe[Count] = Field(None, description="communication rounds")
    tuning: Maybe[dict[str, Any]] = Field(None, description="search of what a method leaves open")

    @model_validator(mode="after")
    def _is_whole(self) -> FreeExperiment:
        if "split" in (self.model_extra or {}):
            # Nothing is known of the order of its repetitions.
            raise refusal("its key split is not allowed; expected a paper with classes for its settings")
        searched = (self.tuning or {}).get("replicates")
        missing = [key for key in ("dataset", "replicates") if getattr(self, key) is None]
        if self.partition is not None and self.tuning is not None and searched is None:
            missing.append("tuning.replicates")
        if self.partition is not None and missing:
            raise refusal(f"its key partition needs {missing[0]}, too")
        if not isinstance(searched, list | None):
            raise refusal(f"its key tuning.replicates is {shown(searched)}; expected a list of numbers")
        return self


class Artefact(Settings):
    """A figure or a table, and the files from which it is made."""

    kind: Literal["figure", "table"] = Field(description="figure or table")
    runs: Maybe[ByExperiment] = Field(None, description="runs that are read")
    tuned: Maybe[ByExperiment] = Field(None, description="searches that are read")
    partitions: Maybe[Names] = Field(None, description="experiments whose partition and data are read")
    published: Maybe[Literal[True]] = Field(
        None, description="that it shows published numbers alone, and is stamped so"
    )
    on_demand: Maybe[Literal[True]] = Field(
        None, description="that only its own target, PAPER_ARTEFACT, makes it, and `all` does not"
    )
    summary: Maybe[bool] = Field(
        None, description="whether it summarises all methods: then each needs another figure that shows it"
    )

    @model_validator(mode="after")
    def _has_a_source(self) -> Artefact:
        sources = ("runs", "tuned", "partitions", "published")
        if not self.model_fields_set.intersection(sources):
            keys = f"expected at least one of the keys {', '.join(sources)}"
            raise refusal(f"{shown(self.plain())} lacks its source; {keys}")
        return self


# A docstring is not inherited.
class ArtefactWith(Artefact, Generic[T], json_schema_extra={"description": Artefact.__doc__}):
    """An artefact that has settings of its own."""

    settings: Maybe[T] = Field(None, description="numbers that the artefact needs")


E = TypeVar("E")
A = TypeVar("A")


class Section(Settings, Generic[E, A]):
    """Experiments and artefacts of a paper, or of the comparison of methods."""

    seed: Natural = Field(description="seed of every random stream")
    together: bool | Literal["artefacts"] = Field(
        False,
        description="whether jobs are grouped: with `artefacts` one makes all figures and tables of runs; "
        "with true one also tunes and runs a method on all its experiments; otherwise each is a job",
    )
    experiments: Named[E] = Field(description="experiments by name")
    artefacts: Named[A] = Field(description="figures and tables by name")
    only: Maybe[Names] = Field(None, description="restricts the targets to these artefacts")

    @classmethod
    def of_job(cls, given: Mapping[str, Any]) -> Experiment:
        """Return the settings `given` to a job, as an object of the experiment's class."""
        experiment = get_args(cls.model_fields["experiments"].annotation)[1]
        union, *marks = get_args(experiment) or (experiment,)
        for mark in marks:  # of a union: the key whose value names the class
            key = mark.discriminator
            experiment = next(
                one for one in get_args(union) if given[key] in get_args(one.model_fields[key].annotation)
            )
        return experiment.of_job(given)


class Paper(Section[E, A], Generic[E, A]):
    """A section that replicates a paper."""

    not_computed: dict[Name, Text] = Field(default_factory=dict, description="artefacts not made, and why")
    retired: dict[Name, Text] = Field(default_factory=dict, description="artefacts no longer made, and why")


class FreePaper(Paper[FreeExperiment, ArtefactWith[dict[str, Any]]]):
    """A paper that has no classes for its settings."""

    replifed: Maybe[Text] = Field(
        None, description="minor version of the package that it is written for, such as 0.1"
    )

    @field_validator("replifed")
    @classmethod
    def _is_here(cls, value: str | None) -> str | None:
        # Public names stay within a minor version.
        if value is not None and value.split(".")[:2] != __version__.split(".")[:2]:
            raise refusal(f"the paper is written for replifed {value}, and {__version__} is installed")
        return value
