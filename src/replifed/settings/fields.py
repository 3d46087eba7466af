"""Types of values and base classes that the papers' settings share.

Each class is the single truth for its keys: types, ranges, defaults, descriptions. The papers' own classes
are in ``replifed.papers.<paper>.settings``. The workflow imports them at each start: they import no numerics.
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

from replifed.errors import shown

T = TypeVar("T")


def refusal(text: str) -> PydanticCustomError:
    """The error of a validator that says itself what is wrong."""
    return PydanticCustomError("refusal", "{text}", {"text": text})


class _LeftOut:
    """Marks a key that may be left out, and then is None."""


class _Absent(_LeftOut):
    """Marks one of which null is no value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        (kind,) = (kind for kind in get_args(source) if kind is not type(None))
        return handler.generate_schema(kind)


def _as_integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_written(value: Any, check: Any) -> Any:
    check(value)
    return value


def _without_repeats(values: list[Any]) -> list[Any]:
    if any(value in values[:place] for place, value in enumerate(values)):
        raise PydanticCustomError("repeats", "holds something twice")
    return values


# An integer may be written 5.0, but Python's range() takes no float.
WHOLE = BeforeValidator(_as_integer)
# Other numbers stay as they are written: 1 and 1.0 are different texts to a job.
REAL = WrapValidator(_as_written)
LEFT_OUT = _LeftOut()
# A key that may be left out.
Maybe = Annotated[T | None, _Absent()]

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
# Of data of one's own.
Loss = Literal["logistic", "least_squares", "softmax"]

_DISTINCT = {"uniqueItems": True}
Distinct = Annotated[list[T], Field(json_schema_extra=_DISTINCT), AfterValidator(_without_repeats)]
Several = Annotated[
    list[T], Field(min_length=1, json_schema_extra=_DISTINCT), AfterValidator(_without_repeats)
]
Names = Several[Name]
Counts = Several[Count]
Replicates = Several[Natural]
Named = Annotated[dict[Name, T], Field(min_length=1)]
ByExperiment = Annotated[dict[str, Names], Field(min_length=1)]


class Settings(BaseModel):
    """Base of all classes of settings: an unknown key is a fault, and what is left out stays out."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return the mapping that jobs get: with defaults, without what is left out."""
        unset = type(self).model_fields.keys() - self.model_fields_set
        metadata = {key: type(self).model_fields[key].metadata for key in unset}
        left_out = {key for key in unset if any(isinstance(mark, _LeftOut) for mark in metadata[key])}
        return {key: _plain(value) for key, value in self if key not in left_out}

    def with_(self, *others: Settings, **changed: Any) -> Self:
        """Return a copy with what `others` hold, and with what is `changed`."""
        held = {key: value for one in others for key, value in one if key in one.model_fields_set}
        return self.model_copy(update=held | changed)


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.plain()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


# --- Of all papers ---


class Paths(Settings):
    """Folders, relative to the working folder."""

    data: Text = Field("data", description="raw and parsed data sets, shared by all scales")
    results: Text = Field("results", description="histories, tuned steps, claims, report")
    figures: Text = Field("figures", description="figures and tables")


class Data(Settings):
    """Where data sets come from."""

    policy: Literal["auto", "real", "surrogate"] = Field(
        "auto",
        description="auto generates a surrogate when a data set can be had nowhere, real fails instead, "
        "surrogate never touches the network",
    )
    mirror: Text | None = Field(None, description="folder with copies of the files, asked before any network")
    substitutes: bool = Field(False, description="whether policy real accepts other real data in their place")


class OwnDataset(Settings):
    """A data set of one's own; it joins the comparison."""

    path: Text = Field(
        description="a file, or FILE.py:FUNCTION, which returns features, labels, maybe clients"
    )
    form: Maybe[Literal["libsvm", "csv", "parquet", "npz", "python"]] = Field(
        None, description="by default what the path's ending says"
    )
    label: Maybe[Text] = Field(None, description="column of the labels (csv, parquet); by default the last")
    client: Maybe[Text] = Field(None, description="column of the clients (csv, parquet)")
    loss: Loss = Field(
        "logistic", description="loss of the models: for two kinds of labels, targets, or classes"
    )
    partition: Literal["kmeans", "given"] = Field(
        "kmeans", description="k-means clusters dealt to clients, or the clients that the data name"
    )
    clients: Count = Field(10, description="number of clients, with k-means")
    rows: Maybe[Count] = Field(None, description="samples that it must have")
    features: Maybe[Count] = Field(None, description="features that it must have")


class Compare(Settings):
    """What `snakemake compare` compares."""

    data: Maybe[Several[Name]] = Field(None, description="problems of `cross`; by default all logistic ones")
    against: Maybe[Several[Name]] = Field(
        None, description="built-in methods; by default all on these problems"
    )


class Main(Settings):
    """What config/config.yaml holds, but for the list of papers."""

    scale: Literal["paper", "small", "tiny"] = Field("paper", description="size of the run, on each artefact")
    paths: Paths = Field(default_factory=Paths, description="folders, relative to the working folder")
    data: Data = Field(default_factory=Data, description="where data sets come from")
    methods: dict[Name, Text] = Field(
        default_factory=dict, description="methods of your own, NAME: FILE.py:CLASS"
    )
    paper_folders: list[Text] = Field(
        default_factory=list, description="folders of papers of your own, see `replifed new paper`"
    )
    datasets: dict[Name, OwnDataset] = Field(
        default_factory=dict, description="data sets of your own, which join the comparison"
    )
    comparison: Compare = Field(default_factory=Compare, description="what `snakemake compare` compares")


# --- Of one paper ---


class Shards(Settings):
    """How the samples of a data set are split between the clients: groups, cut into shards that are dealt."""

    clusters: Literal["kmeans", "labels"] = Field(description="what the samples are grouped by")
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
    """How the samples of a data set are split between the clients: as the data say."""

    clusters: Literal["given"] = Field(description="what the samples are grouped by")


class EqualClusters(Settings):
    """How the rows of a data set are split between the clients: each gets a cluster, all of one size."""

    clusters: Literal["equal_kmeans"] = Field(description="how the samples are grouped")
    rows: Count = Field(description="users that are kept")
    choice: Literal["fullest", "random"] = Field(
        "fullest", description="those with the most ratings, or drawn once at random"
    )
    columns: Count = Field(description="films with the most ratings that are kept")
    count: Count = Field(description="number of groups")

    @field_validator("count")
    @classmethod
    def _divides(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("rows", 0) % value:
            raise refusal(f"{value} is not allowed; expected a divisor of the {info.data['rows']} rows")
        return value


Partition = Annotated[Shards | EqualClusters, Field(discriminator="clusters")]


class Tuning(Settings):
    """How what a method leaves open is chosen."""

    replicates: Replicates = Field(description="repetitions used for tuning, none of them reported")
    rounds: Count = Field(description="rounds of a tuning run")


class StepTuning(Tuning):
    """How the step size of each method is chosen."""

    steps: Several[Positive] = Field(description="step sizes tried first")
    refine: Natural = Field(0, description="rounds of refinement around the best step")
    tail: Weight = Field(
        0,
        description="share of the rounds, at the end, whose mean objective is a step's score and in which it "
        "must agree with its twins'; with 0 the last one alone",
    )


class Experiment(Settings):
    """What every experiment has."""

    methods: Names = Field(description="methods to run")
    memory_mb: Maybe[Annotated[int, Field(ge=100), WHOLE]] = Field(
        None, description="megabytes that a job declares, 2000 by default"
    )
    _seed: int = PrivateAttr()

    @property
    def seed(self) -> int:
        """Names every random stream; it is the paper's, and a job gets it with its settings."""
        return self._seed

    @classmethod
    def of_job(cls, given: Mapping[str, Any]) -> Self:
        """Return what a job is `given` of an experiment, which has been checked.

        What may be left out has its default, or is None; what the job is not given is no attribute.
        """
        values = {"_seed": given["seed"]} if "seed" in given else {}
        for key, value in given.items():
            field = cls.model_fields.get(key)
            if field is not None and isinstance(value, dict):
                value = TypeAdapter(field.rebuild_annotation()).validate_python(value, strict=True)
            values[key] = value
        made: Any = cls.model_construct(**values)
        return made


_TWINS = (
    "names of repetitions that run beside twins, which tell whether a run depends on rounding; default: all"
)
TwinReplicates = Annotated[Maybe[Distinct[Natural]], Field(description=_TWINS)]
_PILOT = (
    "names of repetitions that are run first, and not reported: they tell how many of `replicates`, from the "
    "first on, the claims need"
)
Pilot = Annotated[Maybe[Annotated[Replicates, Field(min_length=2)]], Field(description=_PILOT)]


class Repeated(Experiment):
    """An experiment with repetitions."""

    replicates: Replicates = Field(description="names of the reported repetitions")
    pilot: Pilot = None


class Recorded(Repeated):
    """An experiment that is recorded round by round."""

    rounds: Count = Field(description="communication rounds")
    record_every: Count = Field(1, description="rounds between two recorded points")


class FreeExperiment(Experiment, extra="allow"):
    """An experiment of a paper that has no classes of its own: any further key may hold anything."""

    dataset: Maybe[Name] = Field(None, description="a data set of the catalogue")
    partition: Maybe[Partition] = Field(None, description="how the samples are split between the clients")
    replicates: Maybe[Replicates] = Field(None, description="names of the reported repetitions")
    pilot: Pilot = None
    rounds: Maybe[Count] = Field(None, description="communication rounds")
    tuning: Maybe[dict[str, Any]] = Field(None, description="how what a method leaves open is chosen")


class Artefact(Settings):
    """A figure or a table and what it is made from."""

    kind: Literal["figure", "table"] = Field(description="what is made")
    runs: Maybe[ByExperiment] = Field(None, description="runs that are read")
    tuned: Maybe[ByExperiment] = Field(None, description="searches that are read")
    partitions: Maybe[Names] = Field(None, description="experiments whose partition and data are read")
    published: Maybe[Literal[True]] = Field(
        None, description="that it shows published numbers alone, and is stamped so"
    )
    on_demand: Maybe[Literal[True]] = Field(
        None, description="that it has a target of its own, PAPER_ARTEFACT, and no part in `all`"
    )
    summary: Maybe[bool] = Field(
        None, description="whether it sums up all methods: then each needs another figure that shows it"
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
    """Experiments and artefacts of one kind each."""

    seed: Natural = Field(description="names every random stream")
    together: bool = Field(
        False,
        description="whether one job tunes and runs a method on all experiments that have it, and one makes "
        "all figures and tables; otherwise each search, each run, each figure and each table is a job",
    )
    experiments: Named[E] = Field(description="experiments by name")
    artefacts: Named[A] = Field(description="figures and tables by name")
    only: Maybe[Names] = Field(None, description="restricts the targets to these artefacts")

    @classmethod
    def of_job(cls, given: Mapping[str, Any]) -> Experiment:
        """Return what a job is given of an experiment (`Experiment.of_job`), of the class that it has."""
        one = get_args(cls.model_fields["experiments"].annotation)[1]
        kinds, *marks = get_args(one) or (one,)
        for mark in marks:  # of a union, which key tells the classes apart
            key = mark.discriminator
            one = next(
                kind for kind in get_args(kinds) if given[key] in get_args(kind.model_fields[key].annotation)
            )
        return one.of_job(given)


class Paper(Section[E, A], Generic[E, A]):
    """A section that replicates a paper."""

    not_computed: dict[Name, Text] = Field(default_factory=dict, description="artefacts not made, and why")
    retired: dict[Name, Text] = Field(default_factory=dict, description="artefacts no longer made, and why")
