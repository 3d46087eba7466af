"""A checkable statement of a paper (`Claim`), and what runs give for it (`Measured`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replifed.claims.units import UNITS
from replifed.errors import ReplifedError

# Where the settings of a claim come from: all from the paper; ours, fixed beforehand; ours, chosen because
# the published number comes out.
BASES = ("stated", "chosen", "fitted")
# From the paper's own to none of it; a claim is as good as the worst of its data.
DATA_KINDS = ("synthetic", "original", "substitute", "surrogate")
Kind = Literal["value", "order", "shape", "identity"]


class NotMeasurableError(ReplifedError):
    """The runs cannot answer a claim (a cut-down grid, say); the message says why."""


@dataclass(frozen=True)
class Measured:
    """Result of a claim's `measure`; arrays of shape (n,).

    Values are one per seed: numbers for a `value`; for an `order` paired differences, positive on the claimed
    side; booleans, one per seed or case, for a `shape` or an `identity`. Never NaN or infinite.
    """

    values: NDArray
    # 0 where the value is exact; 1 or -1 where the run ended before it was known, and the truth is at least
    # or at most the value; of a `shape`, not 0 where a case could turn out otherwise. All 0 by default.
    bounds: NDArray = None  # type: ignore[assignment]
    shown: float | None = None  # for the column `measured`, instead of the mean or the share
    seeds: int | None = None  # repetitions behind it; the number of values by default
    note: str = ""
    chaotic: bool = False  # one of the runs behind it is sensitive to rounding
    # Resolution of the values, such as the rounds between two records: no interval is narrower than this to
    # either side.
    grid: float = 0.0
    undecided: int = 0  # seeds left out, since nothing is known of them, not even a bound
    of_mean: bool = False  # the values stand for a mean: their own mean has a meaning, a seed's sign has none
    # The values are not of seeds, but of what the paper may have meant: all must have one verdict.
    alternatives: bool = False

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        bounds = np.asarray(np.zeros(len(values)) if self.bounds is None else self.bounds, dtype=int)
        if values.ndim != 1 or not len(values) or bounds.shape != values.shape:
            raise ValueError("values and bounds must be lists of one length, with at least one entry")
        if not np.isfinite(values.astype(float)).all():
            raise ValueError(f"a measurement must be finite; mark what was not reached by `bounds`: {values}")
        if not np.isin(bounds, (-1, 0, 1)).all():
            raise ValueError(f"bounds must be -1, 0 or 1: {bounds}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "bounds", bounds)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable statement of a paper, in plain words close to the paper's."""

    id: str  # unique over all papers and readings
    paper: str
    artefact: str  # the target where it belongs
    statement: str
    kind: Kind
    reading: str = ""  # the interpretation of the paper that it takes; empty if there is one only
    # Of the sentence or cell that it tests, in whatever reading; its own id if there is no other.
    statement_id: str = ""
    basis: str = "chosen"
    nearness: int = 0  # of readings with one basis, that with the lowest number is nearest to the text
    # The paper's number, for a `value`; of an `order` what is exceeded, if it is not a difference.
    published: float | None = None
    # For a `value`, an absolute difference; for a `shape`, the share of cases in which it must hold; for an
    # `order`, the least effect, by default that of its unit.
    tolerance: float | None = None
    tolerance_reason: str = ""
    # Keys of the inputs: "run:EXPERIMENT/METHOD", "tuned:EXPERIMENT/METHOD", "partition:EXPERIMENT".
    needs: tuple[str, ...] = ()
    unit: str = ""  # one of `UNITS`, for a `value` or an `order` alone
    # Maps the inputs to a `Measured` or a plain array of its values; None leaves the claim unchecked.
    measure: Callable[[Any], Measured | ArrayLike] | None = None
    expression: Any = None  # what `measure` computes, as a `quantities.Quantity`
    note: str = ""
    shared: str = ""  # what all seeds have in common where they do not draw their own, such as "one split"

    def __post_init__(self) -> None:
        if not self.statement_id:
            object.__setattr__(self, "statement_id", self.id)
        if self.kind == "identity" and not self.needs:  # a formula's; runs have settings
            object.__setattr__(self, "basis", "stated")
        if self.is_measured_order and self.tolerance is None and self.unit in UNITS:
            object.__setattr__(self, "tolerance", UNITS[self.unit].effect)
        if fault := self._fault():
            raise ValueError(f"{self.id}: {fault}")

    def _fault(self) -> str:
        """First thing that is wrong with the claim; "" if nothing is."""
        if self.kind not in get_args(Kind):
            return f"unknown kind {self.kind!r}"
        if self.unit not in ("", *UNITS):
            return f"unknown unit {self.unit!r}"
        if self.unit and self.kind in ("shape", "identity"):
            return "what holds or does not hold has no unit"
        if self.basis not in BASES:
            return f"unknown basis {self.basis!r}"
        if self.is_measured_order and not (self.tolerance or 0.0) > 0:
            return "an order needs a least effect above 0, its unit has none"
        if self.kind == "value" and self.measure is not None:
            if self.published is None or self.tolerance is None or not self.tolerance >= 0:
                return "a value needs a published number and a tolerance"
            if not self.tolerance_reason:
                return "the tolerance needs a reason"
        if self.kind == "shape" and not 0 < self.share <= 1:
            return "a share must be above 0 and at most 1"
        return ""

    @property
    def is_measured_order(self) -> bool:
        """An order with a measure, which is tested and corrected with its family."""
        return self.kind == "order" and self.measure is not None

    @property
    def share(self) -> float:
        """Share of cases in which a `shape` or an `identity` must hold."""
        return 1.0 if self.tolerance is None or self.kind == "identity" else self.tolerance

    @property
    def family(self) -> tuple[str, str, str]:
        """The orders among which its error is controlled: paper, artefact and reading."""
        return self.paper, self.artefact, self.reading

    @property
    def experiments(self) -> list[str]:
        """Experiments whose results the claim needs."""
        return list(dict.fromkeys(key.split(":", 1)[1].split("/")[0] for key in self.needs))
