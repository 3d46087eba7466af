"""A checkable statement of a paper (`Claim`), and what runs give for it (`Measured`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims.axes import Axes, in_words, misdeclared
from replifed.claims.units import COUNTED, UNITS
from replifed.errors import ReplifedError

# From the paper's own to none of it; a claim is as good as the worst of its data.
DATA_KINDS = ("synthetic", "original", "substitute", "surrogate")
# value : a printed outcome of an experiment, a mean over the paper's repetitions; near : another number, such
# as a range, a theory's or "up to", within a tolerance; order : a difference above zero; shape : true in a
# share of cases; identity : true without exception; printed : numbers that are said to summarise these very
# runs (`printed`).
Kind = Literal["value", "near", "order", "shape", "identity", "printed"]
NUMBERS = ("value", "near", "order")
# Whose numbers the settings of a claim were chosen by.
FITTED_ON_IT, FITTED_ELSEWHERE = "this statement", "other statements"


class MeasurementError(ReplifedError, ValueError):
    """What a measure gave is no measurement, since a seed has no finite number, say."""


class NotMeasurableError(ReplifedError):
    """The runs cannot answer a claim (a cut-down grid, say); the message says why."""


@dataclass(frozen=True)
class Measured:
    """Result of a claim's `measure`; arrays of shape (n,).

    Values are one per seed: numbers for a `value` or a `near`; for an `order` paired differences, positive on
    the claimed side; booleans, one per seed or case, for a `shape` or an `identity`. Never NaN or infinite.
    """

    values: NDArray
    # 0 where the value is exact; 1 or -1 where the run ended before it was known, and the truth is at least
    # or at most the value; of a `shape`, not 0 where a case could turn out otherwise. All 0 by default.
    bounds: NDArray = None  # type: ignore[assignment]
    shown: float | None = None  # for the column `measured`, instead of the mean or the share
    seeds: int | None = None  # repetitions behind it; the number of values by default
    names: NDArray | None = None  # of the repetition of each value, if they are known
    note: str = ""
    chaotic: bool = False  # one of the runs behind it is sensitive to rounding
    # Resolution of the values, such as the rounds between two records: no interval is narrower than this to
    # either side.
    grid: float = 0.0
    undecided: int = 0  # seeds left out, since nothing is known of them, not even a bound
    of_mean: bool = False  # the values stand for a mean: their own mean has a meaning, a seed's sign has none
    # The values are not of seeds, but of what the paper may have meant: all must have one verdict.
    alternatives: bool = False
    data_sets: NDArray | None = None  # of each value, where several runs share a data set
    copies: int = 0  # repetitions that were left out, since their runs repeat those of others

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        bounds = np.asarray(np.zeros(len(values)) if self.bounds is None else self.bounds, dtype=int)
        if values.ndim != 1 or not len(values) or bounds.shape != values.shape:
            raise MeasurementError("values and bounds must be lists of one length, with at least one entry")
        if not np.isfinite(values.astype(float)).all():
            text = f"a measurement must be finite; mark what was not reached by `bounds`: {values}"
            raise MeasurementError(text)
        if not np.isin(bounds, (-1, 0, 1)).all():
            raise MeasurementError(f"bounds must be -1, 0 or 1: {bounds}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "bounds", bounds)

    @property
    def count(self) -> int:
        """Number of repetitions behind it."""
        return len(self.values) if self.seeds is None else self.seeds


_NONE = Axes()


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable statement of a paper, in plain words close to the paper's."""

    id: str  # unique over all papers and settings
    paper: str
    artefact: str  # the target where it belongs
    statement: str
    kind: Kind
    part: str = ""  # its id without what its settings add, equal in all settings
    # Its settings: options by axis, of the axes that matter to it.
    options: Mapping[str, str] = field(default_factory=dict)
    ending: str | None = None  # what its settings add to its id
    axes: Axes = _NONE
    statement_id: str = ""  # of the sentence or cell that it tests; its own `part` if there is no other
    place: str = ""  # of that sentence
    sentence: str = ""  # in other words than the paper's
    main: bool = False  # the sentence is among those that the paper promises
    informs: bool = False  # the text does not say it, so that it does not decide the sentence
    evidence: str = ""  # what the sentence rests on, of `evidence.KINDS`
    question: str = ""  # to the authors, whose answer would settle the sentence
    reply: str = ""  # theirs, after its date
    # The paper's number; of an `order` what is exceeded, if it is not a difference.
    published: float | None = None
    precision: float = 0.0  # of a `value`: half of its last printed digit
    repetitions: int = 1  # over which the paper averaged a `value`
    spread: float | None = None  # standard deviation of a repetition, if the paper prints it
    # Of a `value`, the number of the nearest other method in its column, which its interval must exclude.
    rival: float | None = None
    # For a `near`, an absolute difference; for a `value` without a rival, the half-width that its interval
    # may have; for a `shape`, the share of cases in which it must hold; for an `order`, the least effect, by
    # default that of its unit.
    tolerance: float | None = None
    tolerance_reason: str = ""
    # Keys of the inputs: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT".
    needs: tuple[str, ...] = ()
    # Seeds without which an `order` is inconclusive: a t-test on three or four says more of the luck with
    # their spread.
    fewest: int = 5
    unit: str = ""  # one of `UNITS`, for numbers alone
    # Maps the inputs to a `Measured` or a plain array of its values; None leaves the claim unchecked.
    measure: Callable[[Any], Measured | ArrayLike] | None = None
    fails: str = ""  # of a shape, what would make it fail
    expression: Any = None  # what `measure` computes, as a `quantities.Quantity`
    note: str = ""
    shared: str = ""  # what all seeds have in common where they do not draw their own, such as "one split"

    def __post_init__(self) -> None:
        if not self.part:
            object.__setattr__(self, "part", self.id)
        if not self.statement_id:
            object.__setattr__(self, "statement_id", self.part)
        self.axes.check(self.options, self.id)
        if self.is_measured_order and self.tolerance is None and self.unit in UNITS:
            object.__setattr__(self, "tolerance", UNITS[self.unit].effect)
        if wrong := self._error():
            raise misdeclared(f"{self.id}: {wrong}")

    def _error(self) -> str:
        """First thing that is wrong with the claim; "" if nothing is."""
        if self.kind not in get_args(Kind):
            return f"unknown kind {self.kind!r}"
        if self.unit not in ("", *UNITS):
            return f"unknown unit {self.unit!r}"
        if self.unit and self.kind in ("shape", "identity", "printed"):
            return "what holds or does not hold has no unit"
        if self.is_measured_order and not (self.tolerance or 0.0) > 0:
            return "an order needs a least effect above 0, its unit has none"
        if self.kind in ("value", "near") and self.measure is not None:
            if self.published is None:
                return f"a {self.kind} needs a published number"
            tolerated = self.tolerance is not None and self.tolerance >= 0
            if (self.kind == "near" or self.rival is None) and not tolerated:
                return f"a {self.kind} needs a tolerance" + " or a rival" * (self.kind == "value")
            if self.tolerance is not None and not self.tolerance_reason:
                return "the tolerance needs a reason"
            if self.kind == "value" and not self.precision > 0:
                return "a value needs its printed precision"
            if self.repetitions < 1:
                return "a value is a mean over at least one repetition"
        if self.kind == "shape" and not 0 < self.share <= 1:
            return "a share must be above 0 and at most 1"
        if self.kind == "shape" and self.measure is not None and not self.fails:
            return "a shape says what would make it fail: fails=TEXT"
        return ""

    @property
    def is_measured_order(self) -> bool:
        """An order with a measure."""
        return self.kind == "order" and self.measure is not None

    @property
    def is_tested(self) -> bool:
        """An order or a value with a measure, whose test is corrected with its family."""
        return self.kind in ("order", "value") and self.measure is not None

    @property
    def hangs_on_rounding(self) -> bool:
        """An order, shape, identity or count: other numbers have their distribution over seeds."""
        return self.kind not in ("value", "near") or self.unit in COUNTED

    @property
    def settings(self) -> str:
        """Its settings in words."""
        return in_words(self.options)

    @property
    def fitted_on(self) -> str:
        """By whose numbers its settings were chosen; "" if nothing was fitted."""
        if not self.axes.fitted(self.options):
            return ""
        on_it = self.statement_id.removeprefix(f"{self.paper}.") in self.axes.fitted_on
        return FITTED_ON_IT if on_it else FITTED_ELSEWHERE

    @property
    def share(self) -> float:
        """Share of cases in which a `shape` or an `identity` must hold."""
        return 1.0 if self.tolerance is None or self.kind == "identity" else self.tolerance

    @property
    def family(self) -> tuple[str, str, str, str]:
        """Claims among which its error is controlled: of its paper, artefact, settings and kind.

        Settings are what ids end in, since their claims may name more or fewer axes.
        """
        return self.paper, self.artefact, self.settings if self.ending is None else self.ending, self.kind

    @property
    def experiments(self) -> list[str]:
        """Experiments whose results the claim needs."""
        return list(dict.fromkeys(key.split(":", 1)[1].split("/")[0] for key in self.needs))
