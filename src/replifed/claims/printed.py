"""Printed numbers, held against the runs they are said to summarise: which rule gives a whole table.

`RULES` were fixed before any table was looked at. One rule has to give all printed numbers of a table, to
their digits. Of a dozen rules one may hit a few digits by luck, so the chance of that is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from inspect import unwrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.claims.axes import SOURCES
from replifed.claims.claim import Claim, Measured, NotMeasurableError
from replifed.claims.curves import Curves
from replifed.claims.quantities import Quantity, quantity

_DRAWS = 20_000
_SEED = 76
# Printed numbers that a note names.
_NAMED = 3


# --- Rules ----------------------------------------------------------------------------------------

# Records (R, T) have lower values where they are better; a record of a seed is one of R numbers.


def _last(records: NDArray) -> NDArray:
    return records[:, -1]


def _best(records: NDArray) -> NDArray:
    return records.min(axis=1)


def _best_round(records: NDArray) -> NDArray:
    return records[:, records.mean(axis=0).argmin()]


def _tail(count: int) -> Callable[[NDArray], NDArray]:
    def mean_of_last(records: NDArray) -> NDArray:
        return records[:, -count:].mean(axis=1) if records.shape[1] >= count else records[:, -1] * np.nan

    return mean_of_last


def _all(numbers: NDArray, survived: NDArray) -> NDArray:
    return numbers


def _survivors(numbers: NDArray, survived: NDArray) -> NDArray:
    return numbers[survived]


def _first(count: int) -> Callable[[NDArray, NDArray], NDArray]:
    def first(numbers: NDArray, survived: NDArray) -> NDArray:
        return numbers[:count] if len(numbers) >= count else numbers[:0]

    return first


class Rule(NamedTuple):
    """How runs become a printed number."""

    words: str
    of_seed: Callable[[NDArray], NDArray] = _last
    seeds: Callable[[NDArray, NDArray], NDArray] = _all
    summary: Callable[[NDArray], Any] = np.mean


# At most twelve, the plain ones first: of several that give a table the first is named.
RULES = {
    "last": Rule("the mean of the last records"),
    "best": Rule("the mean of each seed's best record", _best),
    "last_5": Rule("the mean of the last 5 records", _tail(5)),
    "last_10": Rule("the mean of the last 10 records", _tail(10)),
    "best_round": Rule("the mean at the round whose mean is best", _best_round),
    "survivors": Rule("the mean of the last records of the seeds that did not diverge", _last, _survivors),
    "median": Rule("the median of the last records", _last, _all, np.median),
    "best_seed": Rule("the best seed's last record", _last, _all, np.min),
    "best_record": Rule("the best record of all seeds", _best, _all, np.min),
    "first_1": Rule("the first seed's last record", _last, _first(1)),
    "first_3": Rule("the mean of the first 3 seeds' last records", _last, _first(3)),
    "first_5": Rule("the mean of the first 5 seeds' last records", _last, _first(5)),
}


# --- Printed numbers ------------------------------------------------------------------------------


def half_digit(text: Any) -> float | None:
    """Half of the last digit of a printed number; None of what is no text of a finite number.

    >>> half_digit("62.35"), half_digit("1.2e-4"), half_digit("inf")
    (0.005, 5e-06, None)
    """
    try:
        exponent = Decimal(text).as_tuple().exponent if isinstance(text, str) else None
    except InvalidOperation:
        return None
    return 0.5 * 10.0**exponent if isinstance(exponent, int) else None


class Cell(NamedTuple):
    """A printed number, and what each rule makes of its runs."""

    name: str
    number: float
    half: float  # of its last digit
    by_rule: NDArray  # number by rule, NaN where the runs cannot give it, shape (rules,)
    # Standard deviation of the difference to another experiment of as many seeds, by rule; 0 if unknown.
    deviation: NDArray
    seeds: int

    @property
    def hit(self) -> NDArray:
        """Mask of the rules whose number rounds to the printed one; half a digit may go up or down."""
        with np.errstate(invalid="ignore"):
            return _rounds_to(self.by_rule, self.number, self.half)


def _rounds_to(value: NDArray, printed: Any, half: float) -> NDArray:
    # A mean of printed records is a hair more or less than half a digit.
    return np.abs(value - printed) <= half + 1e-12 * np.maximum(np.abs(value), half)


@quantity
def cell(
    curve: Curves,
    printed: str,
    *,
    better: str,
    name: str = "",
    times: float = 1.0,
    survived: NDArray | None = None,
) -> Cell:
    """What each rule makes of curves, beside the number that is printed for them.

    Parameters
    ----------
    printed : the number with its digits, such as "62.35".
    better : the better side of values, "lower" or "higher".
    name : of the number, in notes.
    times : factor from records to printed numbers: 100 for shares that are printed as percentages.
    survived : mask of the seeds that did not diverge; by default those whose curve ends in a number.
    """
    half = half_digit(printed)
    assert half is not None  # as `Statement.printed` makes sure
    sign = 1.0 if better == "lower" else -1.0
    survived = curve.survived if survived is None else np.asarray(survived)
    numbers, deviations = np.full((2, len(RULES)), np.nan)
    for place, rule in enumerate(RULES.values()):
        values = times * rule.seeds(rule.of_seed(sign * curve.values), survived)
        if len(values) and np.isfinite(values).all():
            numbers[place] = sign * rule.summary(values)
            alone = len(values) == 1
            deviations[place] = 0.0 if alone else values.std(ddof=1) * np.sqrt(2 / len(values))
    return Cell(name or printed, float(printed), half, numbers, deviations, len(curve.seeds))


def is_cell(one: Any) -> bool:
    """Whether a quantity is a printed number beside its runs."""
    return isinstance(one, Quantity) and one.function is unwrap(cell)


# --- A table --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Printed(Measured):
    """Which rule gives a table, or comes nearest; the values are True of the numbers that it gives."""

    rule: str = ""
    stated: str = ""  # the rule that the text states
    chance: float = 1.0  # that numbers of other runs would come out as well
    tried: int = 1  # rules
    off: str = ""  # by how much the rule misses, in words

    @property
    def found(self) -> bool:
        """Whether it gives all numbers."""
        return bool(self.values.all())

    @property
    def as_stated(self) -> bool:
        """Whether this is what the text says."""
        return self.rule == self.stated

    @property
    def facts(self) -> dict[str, Any]:
        """What reasons of verdicts are filled with."""
        words = {"rule": RULES[self.rule].words, "misses": self.off, "tried": self.tried}
        return words | {"chance": f"{100 * self.chance:.2g} %"}


@quantity
def table(*cells: Cell, rule: str = "") -> Printed:
    """Look for the rule that gives all numbers of a table, first the one that the text states."""
    names = list(RULES)
    hits: NDArray = np.stack([one.hit for one in cells])
    if not np.isfinite(np.stack([one.by_rule for one in cells])).all(axis=0).any():
        raise NotMeasurableError("no rule gives a number of all runs: some have no surviving seed")
    found = [name for name, whole in zip(names, np.all(hits, axis=0).tolist(), strict=True) if whole]
    if rule in found:
        tried, chosen = [rule], rule
    else:
        tried, chosen = names, found[0] if found else _nearest(cells)
    place = names.index(chosen)
    chance = luck(cells, [names.index(name) for name in tried], place) if found else 1.0
    notes = [f"by {len(found)} rules: {', '.join(found)}" if len(found) > 1 else ""]
    if rule and chosen != rule:
        notes.append(f"the text says {RULES[rule].words}: {_misses(cells, names.index(rule))}")
    return Printed(
        hits[:, place],
        shown=float(cells[0].by_rule[place]) if len(cells) == 1 else None,
        seeds=sum(one.seeds for one in cells),
        note="; ".join(filter(None, notes)),
        rule=chosen,
        stated=rule,
        chance=chance,
        tried=len(tried),
        off="" if found else _misses(cells, place),
    )


def luck(cells: Sequence[Cell], tried: Sequence[int], place: int) -> float:
    """Chance that one of the `tried` rules gives a table that was printed of other runs, by simulation.

    Its numbers lie around those of the rule at `place`: off by as much as another experiment of as many
    seeds would be, and by up to five last digits, since one seed alone has no spread. Around another centre
    that rule would hit less often.
    """
    rng = np.random.default_rng(_SEED)
    alive = np.ones((len(tried), _DRAWS), bool)
    for one in cells:
        normal, uniform = rng.standard_normal(_DRAWS), rng.uniform(-10, 10, _DRAWS)
        drawn = one.by_rule[place] + one.deviation[place] * normal + one.half * uniform
        printed = 2 * one.half * np.rint(drawn / (2 * one.half))
        with np.errstate(invalid="ignore"):
            alive &= _rounds_to(one.by_rule[list(tried), None], printed, one.half)
    return float((1 + alive.any(axis=0).sum()) / (1 + _DRAWS))


def _nearest(cells: Sequence[Cell]) -> str:
    """The rule that gives most numbers, and of these the one whose largest miss is the fewest digits."""

    def miss(place: int) -> tuple[float, float]:
        far = max(_digits_off(one, place) for one in cells)
        return -sum(bool(one.hit[place]) for one in cells), far

    return min(RULES, key=lambda name: miss(list(RULES).index(name)))


def _digits_off(one: Cell, place: int) -> float:
    """Distance of a rule's number from the printed one in last digits; infinite where it has none."""
    distance = abs(one.by_rule[place] - one.number) / (2 * one.half)
    return float(distance) if np.isfinite(distance) else np.inf


def _misses(cells: Sequence[Cell], place: int) -> str:
    """By how much a rule misses which numbers, the furthest first."""
    missed = [one for one in cells if not one.hit[place]]
    missed.sort(key=lambda one: -_digits_off(one, place))
    words = [
        f"{one.name} is {one.number:.12g}, not {one.by_rule[place]:.6g}"
        f" (off by {abs(one.by_rule[place] - one.number):.2g})"
        if np.isfinite(one.by_rule[place])
        else f"{one.name} is {one.number:.12g}, and the runs have no such number"
        for one in missed[:_NAMED]
    ]
    more = f", and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return f"{len(cells) - len(missed)} of {len(cells)} come out; {', '.join(words)}{more}"


# --- Verdicts -------------------------------------------------------------------------------------


def settings(claim: Claim, measured: Measured | None, verdict: str) -> dict[str, str]:
    """Columns of a table that comes out by a rule that the text does not state: these are other settings.

    They fill a gap of a text that states no rule, or replace the rule that it states.
    """
    if not isinstance(measured, Printed) or verdict != "holds" or measured.as_stated:
        return {}
    axes, options = claim.axes, claim.options
    replaced = f"rule: {measured.stated}" * bool(measured.stated)
    return {
        "options": _joined(claim.settings, f"rule: {measured.rule}"),
        "settings": "",
        "sources": _joined(*axes.sources(options), "chosen"),
        "source": max(axes.source(options), "chosen", key=SOURCES.index),
        "departure": "uncertain",
        "replaces": _joined(axes.replaces(options), replaced),
    }


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))
