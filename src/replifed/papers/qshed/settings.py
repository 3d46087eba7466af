"""Settings in config/papers/qshed.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from replifed.settings import fields
from replifed.settings.fields import LEFT_OUT, WHOLE, Count, Fraction, Maybe, Name, Positive, Several

L2 = Annotated[Positive, Field(description="weight of half the squared norm of the parameters, mu")]
Budget = Annotated[Count, Field(description="bits per coordinate and round of a channel without fading")]
Channels = Annotated[
    Several[Literal["constant", "rayleigh"]], Field(description="channels without and with fading")
]
Renewals = Annotated[
    Literal["fibonacci", "fibonacci_numbers", "once"] | Count,
    Field(description="rounds in which Hessians are computed anew; a number is a period"),
]
Dither = Annotated[
    Literal["nested", "none", "added", "fresh"], Field(description="how coordinates are dithered")
]
Overload = Annotated[
    Literal["wrap", "clip"],
    Field(
        description="what becomes of a coordinate that the nested dither takes beyond the quantiser's range: "
        "it wraps around, or is clipped to the last cell on its own side"
    ),
]


class LineSearch(fields.Settings):
    """Steps 1, r, r^2, ... tried until one is good enough."""

    c: Fraction = Field(description="share of the linear decrease that is asked for")
    shrink: Fraction = Field(description="ratio of two steps")
    trials: Count = Field(description="steps tried at most")


Search = Annotated[
    LineSearch | None, Field(description="steps 1, r, r^2, ... tried until one is good enough; null takes 1")
]


class Options(fields.Settings):
    """Choices of methods and of the split that differ from the default."""

    split: Maybe[Literal["labels"]] = Field(
        None, description="how samples go to devices: sorted by class; at random by default"
    )
    normalise: Maybe[bool] = Field(None, description="whether the server scales received vectors to length 1")
    q_choice: Maybe[Literal["heuristic", "exact"]] = Field(
        None, description="how many vectors are considered, once or all"
    )
    option: Maybe[Annotated[int, Field(ge=1, le=2), WHOLE]] = Field(
        None, description="what makes FedNL's Hessian invertible: 1 projects, 2 adds"
    )
    compressor: Maybe[Literal["rank1", "topk"]] = Field(None, description="what FedNL sends of a difference")
    entries: Maybe[Count] = Field(None, description="entries that a top-k compressor keeps")
    start: Maybe[Literal["zero", "hessian"]] = Field(None, description="FedNL's first Hessians")
    vector_bits: Maybe[Count] = Field(
        None, description="bits of a coordinate of FedNL's vector; with less it is not sent"
    )
    quantised: Maybe[bool] = Field(None, description="whether FedNL's vector has fewer bits at small budgets")
    step: Maybe[Positive] = Field(None, description="longest step of gradient descent")


class Changes(Options):
    """Settings that a case or a variant changes."""

    l2: Maybe[L2] = None
    budget: Maybe[Budget] = None
    channels: Maybe[Channels] = None
    renewals: Maybe[Renewals] = None
    dither: Maybe[Dither] = None
    overload: Maybe[Overload] = None
    line_search: Annotated[Search, LEFT_OUT] = None


class Fading(fields.Settings):
    """Parameters of Rayleigh fading."""

    gain: Positive = Field(1, description="transmission power and attenuation")
    rate: Positive = Field(1, description="one over the mean of the fading")


class Experiment(fields.Repeated, Options):
    """Logistic regression over channels of few bits."""

    kind: Literal["comparison", "allocation", "hessians"] = Field(
        description="compare methods, follow bits, or measure the errors of quantised Hessians"
    )
    dataset: Name = Field(description="a data set of the catalogue")
    positive: Maybe[Annotated[int, WHOLE]] = Field(None, description="class that is told from the rest")
    pixel_scale: Positive = Field(1, description="what features are divided by")
    components: Maybe[Count] = Field(None, description="principal components kept")
    intercept: bool = Field(False, description="whether a constant feature is added")
    clients: Count = Field(description="number of devices")
    samples: Count = Field(description="samples of each device")
    l2: L2
    b_max: Annotated[int, Field(ge=1, le=52), WHOLE] = Field(description="most bits of a coordinate")
    budget: Budget
    channels: Channels = Field(["constant", "rayleigh"])
    fading: Fading = Field(default_factory=Fading, description="parameters of Rayleigh fading")
    renewals: Renewals
    dither: Dither
    overload: Overload = "wrap"
    line_search: Search
    rounds: Count = Field(description="communication rounds at most")
    stop: fields.NonNegative = Field(0, description="gap to the minimum at which a run ends")
    variants: dict[Name, Annotated[dict[str, Changes], Field(min_length=1)]] = Field(
        default_factory=dict, description="ways to run a method, by method and name"
    )
    cases: fields.Named[Changes] = Field(
        default_factory=lambda: {"default": Changes()},
        description="changed settings by name; methods that have none of these are left out",
    )


class Section(fields.Paper[Experiment, fields.Artefact]):
    """Q-SHED."""
