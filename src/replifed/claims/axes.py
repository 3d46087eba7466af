"""What a paper leaves open: axes with options, readings that choose options, and accounts of the whole paper.

A *reading* is one option on each axis that matters. The *printed account* takes the printed option of every
axis, else the best source before `fitted`. The *explained account* is one other choice for the whole paper,
which makes numbers come out. Both are fixed for all sentences at once, never for one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replifed.claims.places import fault

# Where an option comes from, best first: the text; software that it names; other public code of its authors;
# ours, fixed before a run; ours, since a published number comes out with it.
SOURCES = ("printed", "software", "authors", "chosen", "fitted")
# What an option is beside the printed one, from the mildest on: arbitrary, and should not matter; possibly
# what was meant; another question.
KINDS = ("equivalent", "uncertain", "different")
PRINTED, EXPLAINED = "P", "E"


@dataclass(frozen=True)
class Option:
    """One way to fix what a paper leaves open."""

    name: str
    source: str  # of `SOURCES`
    evidence: str  # for it, in a sentence
    against: str = ""  # what speaks against it
    kind: str = "uncertain"  # of `KINDS`


class Axis:
    """A question that a paper leaves open, with the options that were run.

    Parameters
    ----------
    name : in few words, such as "loss".
    question : what the paper does not say.
    options : at least one.
    tried : number of options that were tried, those thrown away too; by default those listed.
    """

    def __init__(self, name: str, question: str, *options: Option, tried: int | None = None) -> None:
        self.name, self.question = name, question
        self.options = {option.name: option for option in options}
        self.tried = len(options) if tried is None else tried
        if len(self.options) < len(options) or not options:
            raise fault(f'axis "{name}" needs options, each with a name of its own')
        if self.tried < len(options):
            raise fault(f'axis "{name}" lists more options than the {tried} that it says were tried')
        for one in options:
            if one.source not in SOURCES:
                raise fault(
                    f'axis "{name}", option "{one.name}": source {one.source!r}; one of {", ".join(SOURCES)}'
                )
            if one.kind not in KINDS:
                raise fault(
                    f'axis "{name}", option "{one.name}": kind {one.kind!r}; one of {", ".join(KINDS)}'
                )
            if not one.evidence:
                raise fault(f'axis "{name}", option "{one.name}" needs its evidence, in a sentence')

    @property
    def printed(self) -> str | None:
        """The option of the printed account; None where all were fitted."""
        first = min(self.options.values(), key=lambda option: SOURCES.index(option.source))
        return None if first.source == "fitted" else first.name


class Axes:
    """The axes of a paper and its two accounts.

    Parameters
    ----------
    axes : of the paper.
    explained : option by axis of the explained account, on every axis; None if there is none.
    fitted_on : names of the sentences whose numbers the fitted options of that account were chosen by; its
        other successes were held out.
    """

    def __init__(
        self,
        *axes: Axis,
        explained: Mapping[str, str] | None = None,
        fitted_on: Iterable[str] = (),
    ) -> None:
        self.axes = {axis.name: axis for axis in axes}
        if len(self.axes) < len(axes):
            raise fault("two axes have one name")
        if explained is not None and not isinstance(explained, Mapping):
            raise fault("there may be one explained account beside the printed one; a second is a reading")
        self.explained, self.fitted_on = explained, tuple(fitted_on)
        self.printed = {name: axis.printed for name, axis in self.axes.items()}
        if explained is not None:
            self.check(explained)
            if missing := [name for name in self.axes if name not in explained]:
                raise fault(f"the explained account names no option on {', '.join(missing)}")

    def check(self, options: Mapping[str, str]) -> None:
        """Refuse options that no axis has."""
        for axis, option in options.items():
            if axis not in self.axes:
                raise fault(f'there is no axis "{axis}"; declared: {", ".join(self.axes) or "none"}')
            if option not in self.axes[axis].options:
                raise fault(f'axis "{axis}" has no option "{option}": {", ".join(self.axes[axis].options)}')

    def accounts(self, options: Mapping[str, str]) -> str:
        """Accounts that a reading is part of: "P", "E", "P E" or none; axes without an option are free."""
        both = {PRINTED: self.printed, EXPLAINED: self.explained or self.printed}
        return " ".join(
            name
            for name, account in both.items()
            if all(account[axis] == option for axis, option in options.items())
        )

    def source(self, options: Mapping[str, str]) -> str:
        """The weakest source among the options of a reading; "printed" where nothing is open."""
        return max(self.sources(options), key=SOURCES.index, default=SOURCES[0])

    def sources(self, options: Mapping[str, str]) -> list[str]:
        """The source of each option."""
        return [self._option(*one).source for one in options.items()]

    def kind(self, options: Mapping[str, str]) -> str:
        """Kind of the reading's furthest departure from the printed account; "" where it does not depart."""
        departing = [
            KINDS.index(self._option(axis, option).kind)
            for axis, option in options.items()
            if self.printed[axis] != option
        ]
        return KINDS[max(departing)] if departing else ""

    def fitted(self, options: Mapping[str, str]) -> bool:
        """Whether an option of the reading was chosen since a published number comes out with it."""
        return any(self._option(*one).source == "fitted" for one in options.items())

    def evidence(self, options: Mapping[str, str]) -> str:
        """Source of each option, and what speaks for and against it."""
        chosen = ((axis, self._option(axis, option)) for axis, option in options.items())
        return "; ".join(
            f"{axis}: {one.name}, {one.source}: {one.evidence}{f', but {one.against}' * bool(one.against)}"
            for axis, one in chosen
        )

    def _option(self, axis: str, option: str) -> Option:
        return self.axes[axis].options[option]


def in_words(options: Mapping[str, str]) -> str:
    """A reading as text.

    >>> in_words({"loss": "sum", "step": "own"})
    'loss: sum; step: own'
    """
    return "; ".join(f"{axis}: {option}" for axis, option in options.items())
