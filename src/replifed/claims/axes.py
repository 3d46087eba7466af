"""What a paper leaves open: axes with options, of which settings choose one on each axis that matters.

The *printed settings* take the printed option of every axis, else the best source before `fitted`. The
*inferred settings* are one other choice for the whole paper, which makes numbers come out. Both are fixed for
all sentences at once, never for one at a time. What is neither are *other settings*.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from replifed.errors import ConfigError

# Where an option comes from, best first: the text; software that it names; other public code of its authors;
# ours, fixed before a run; ours, since a published number comes out with it.
SOURCES = ("printed", "software", "authors", "chosen", "fitted")
# What an option is beside the printed one, from the mildest on: arbitrary, and should not matter; possibly
# what was meant; another question.
KINDS = ("equivalent", "uncertain", "different")
PRINTED, INFERRED = "printed", "inferred"
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Option:
    """One way to fix what a paper leaves open."""

    name: str
    source: str = ""  # of `SOURCES`
    grounds: str = ""  # what speaks for it, in a sentence
    against: str = ""  # what speaks against it
    kind: str = "uncertain"  # of `KINDS`
    not_run: str = ""  # why no run has it
    # Of what a search found: the options of other axes under which it was searched. With another option of
    # these axes it is to be searched anew.
    searched: Mapping[str, Collection[str]] = field(default_factory=dict)


class Axis:
    """A question that a paper leaves open, with options, each of which was run or says why not.

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
            raise misdeclared(f'axis "{name}" needs options, each with a name of its own')
        if self.tried < len(options):
            raise misdeclared(f'axis "{name}" lists more options than the {tried} that it says were tried')
        for one in options:
            of = f'axis "{name}", option "{one.name}"'
            if not one.source:
                raise misdeclared(f"{of} has no source; one of {', '.join(SOURCES)}")
            if one.source not in SOURCES:
                raise misdeclared(f"{of}: source {one.source!r}; one of {', '.join(SOURCES)}")
            if one.kind not in KINDS:
                raise misdeclared(f"{of}: kind {one.kind!r}; one of {', '.join(KINDS)}")
            if not one.grounds:
                raise misdeclared(f"{of} needs its grounds, in a sentence")

    @property
    def printed(self) -> str | None:
        """The option of the printed settings; None where all were fitted."""
        first = min(self.options.values(), key=lambda option: SOURCES.index(option.source))
        return None if first.source == "fitted" else first.name


class Axes:
    """The axes of a paper, with its printed and its inferred settings.

    Parameters
    ----------
    axes : of the paper.
    inferred : option by axis of the inferred settings, on every axis; None if there are none.
    fitted_on : names of the sentences whose numbers the fitted options were chosen by; other successes of
        these were held out.
    gaps : names of the axes that one needs to run an experiment, by experiment; each claim on it names an
        option on all of them. Experiments without a gap have an empty list.
    """

    def __init__(
        self,
        *axes: Axis,
        inferred: Mapping[str, str] | None = None,
        fitted_on: Iterable[str] = (),
        gaps: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.axes = {axis.name: axis for axis in axes}
        if len(self.axes) < len(axes):
            raise misdeclared("two axes have one name")
        if inferred is not None and not isinstance(inferred, Mapping):
            raise misdeclared("a paper has one choice of inferred settings; a second one is other settings")
        self.inferred, self.fitted_on, self.gaps = inferred, tuple(fitted_on), gaps or {}
        self.printed = {name: axis.printed for name, axis in self.axes.items()}
        for experiment, names in self.gaps.items():
            if unknown := [name for name in names if name not in self.axes]:
                raise misdeclared(f"{experiment} has gaps without an axis: {', '.join(unknown)}")
        for axis in axes:
            for option in axis.options.values():
                for other, under in option.searched.items():
                    for one in under:
                        self._check_option(other, one)
        if inferred is not None:
            self.check(inferred)
            if missing := [name for name in self.axes if name not in inferred]:
                raise misdeclared(f"the inferred settings name no option on {', '.join(missing)}")

    def _check_option(self, axis: str, option: str) -> None:
        if axis not in self.axes:
            raise misdeclared(f'there is no axis "{axis}"; declared: {", ".join(self.axes) or "none"}')
        if option not in self.axes[axis].options:
            raise misdeclared(f'axis "{axis}" has no option "{option}": {", ".join(self.axes[axis].options)}')

    def check(self, options: Mapping[str, str], of: str = "settings") -> None:
        """Refuse options that no axis has, that no run has, or that were searched under others."""
        for axis, name in options.items():
            self._check_option(axis, name)
            option = self._option(axis, name)
            if option.not_run:
                raise misdeclared(f'{of}: no run has "{axis}: {name}", since {option.not_run}')
            for other, under in option.searched.items():
                if other in options and options[other] not in under:
                    raise misdeclared(
                        f'{of}: "{axis}: {name}" was searched under "{other}: {" or ".join(under)}" alone; '
                        f'search it anew under "{options[other]}", or declare that this is not run'
                    )

    def unnamed(self, options: Mapping[str, str], experiments: Iterable[str]) -> list[str]:
        """Gaps of experiments on which the options name none, as "axis of experiment"."""
        gaps = ((axis, name) for name in experiments for axis in self.gaps.get(name, ()))
        return [f"{axis} of {name}" for axis, name in gaps if axis not in options]

    def names(self, options: Mapping[str, str]) -> str:
        """Whether settings are part of the printed ones, of the inferred ones, of both, or of neither.

        Axes on which they have no option are free.
        """
        both = {PRINTED: self.printed, INFERRED: self.inferred or self.printed}
        return " ".join(
            name
            for name, whole in both.items()
            if all(whole[axis] == option for axis, option in options.items())
        )

    def replaces(self, options: Mapping[str, str]) -> str:
        """Printed options in the place of which the settings have others, as text."""
        return in_words(
            {
                axis: printed
                for axis, option in options.items()
                if (printed := self.printed[axis]) not in (None, option)
                and self._option(axis, printed).source == "printed"
            }
        )

    def source(self, options: Mapping[str, str]) -> str:
        """The weakest source among options; "printed" where nothing is open."""
        return max(self.sources(options), key=SOURCES.index, default=SOURCES[0])

    def sources(self, options: Mapping[str, str]) -> list[str]:
        """The source of each option."""
        return [self._option(*one).source for one in options.items()]

    def kind(self, options: Mapping[str, str]) -> str:
        """Kind of the furthest departure from the printed settings; "" where they do not depart."""
        departing = [
            KINDS.index(self._option(axis, option).kind)
            for axis, option in options.items()
            if self.printed[axis] != option
        ]
        return KINDS[max(departing)] if departing else ""

    def fitted(self, options: Mapping[str, str]) -> bool:
        """Whether options were chosen since published numbers come out with them."""
        return self.names(options) == INFERRED or "fitted" in self.sources(options)

    def grounds(self, options: Mapping[str, str]) -> str:
        """Source of each option, and what speaks for and against it."""
        chosen = ((axis, self._option(axis, option)) for axis, option in options.items())
        return "; ".join(
            f"{axis}: {one.name}, {one.source}: {one.grounds}{f', but {one.against}' * bool(one.against)}"
            for axis, one in chosen
        )

    def _option(self, axis: str, option: str) -> Option:
        return self.axes[axis].options[option]


def in_words(options: Mapping[str, str]) -> str:
    """Settings as text.

    >>> in_words({"loss": "sum", "step": "own"})
    'loss: sum; step: own'
    """
    return "; ".join(f"{axis}: {option}" for axis, option in options.items())


def misdeclared(what: str) -> ConfigError:
    """An error in a declaration, with the file and line of the first caller outside this package."""
    frame = sys._getframe(1)
    # Generated code, such as a dataclass's, has no file.
    while frame.f_back is not None and not _outside(Path(frame.f_code.co_filename)):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    return ConfigError(f"{file.parent.name}/{file.name}, line {frame.f_lineno}: {what}")


def _outside(file: Path) -> bool:
    return file.parent != _HERE and not file.name.startswith("<")
