"""Sentences of a paper, in its order, each above the function that yields the claims on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from replifed.claims import printed as of_print
from replifed.claims.axes import Axes, misdeclared
from replifed.claims.claim import Claim, Kind
from replifed.claims.evidence import KINDS as EVIDENCE
from replifed.claims.evidence import LOGS, OWN
from replifed.claims.quantities import Quantity, as_measured
from replifed.claims.sentences import Sentence
from replifed.errors import unknown_name

# As many sentences are what a title, an abstract, contributions and a conclusion promise.
MOST_MAIN = 10
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}: \S")
# What makes a comparison of two quantities fail.
_COMPARED: dict[Any, str] = {
    np.less: "a first number at or above the second",
    np.less_equal: "a first number above the second",
    np.greater: "a first number at or below the second",
    np.greater_equal: "a first number below the second",
}
# Keywords that make a claim.
_FIELDS = {field.name for field in fields(Claim)} | {"within", "because"}


def slug(options: str) -> str:
    """Options as the end of a claim's id.

    >>> slug("own (1, 1)"), slug("")
    ('.own-1-1', '')
    """
    suffix = re.sub(r"[^a-z0-9.]+", "-", options).strip("-")
    return f".{suffix}" if suffix else ""


class Statements:
    """Makes the sentences and claims of one paper.

    `@CLAIM.sentence("section5.fading", "Section V", "Fading degrades FedNL.", main=True)` stands above a
    function that yields the claims on a sentence, each made by `CLAIM("fig1.fading", unit="rounds")
    .order(...)` (see `Statement`). `CLAIM.all()` are the claims of all sentences. A claim's id is the paper's
    name, its own, and what its settings add. Keywords are fields of `Claim`; `options` are its settings.

    Parameters
    ----------
    paper : the paper's name.
    axes : what it leaves open.
    suffix : maps settings, options by axis, to what they add to an id; by default the options that depart
        from the printed settings.
    runs : what a sentence rests on whose claims all read runs, if it says nothing else: "own runs" (default),
        "re-execution" (of the authors' random numbers) or "authors' logs".
    common : keywords that all claims have in common; by default the artefact is the first part of the name.
    """

    def __init__(
        self,
        paper: str,
        axes: Axes | None = None,
        suffix: Callable[[Mapping[str, str]], str] | None = None,
        *,
        runs: str = OWN,
        **common: Any,
    ) -> None:
        if not (axes is None or isinstance(axes, Axes)):
            raise misdeclared(f"{paper}: what the paper leaves open is given as Axes(Axis(...), ...)")
        self.paper, self.axes, self.common = paper, axes or Axes(), common
        self.suffix, self.runs = suffix or self._departures, _kind_of_evidence(paper, runs)
        self.sentences: list[Sentence] = []
        self._claims: list[Callable[[], Iterator[Claim]]] = []

    def given(self, **common: Any) -> Statements:
        """The maker with these keywords in common, too; sentences stay those of the paper."""
        other = copy(self)
        other.common = {**self.common, **common}
        return other

    def _departures(self, options: Mapping[str, str]) -> str:
        departing = (option for axis, option in options.items() if option != self.axes.printed[axis])
        return slug(" ".join(departing))

    def sentence(
        self,
        name: str,
        place: str,
        says: str,
        *,
        main: bool = False,
        evidence: str = "",
        question: str = "",
        reply: str = "",
    ) -> Callable[[Callable[[], Iterator[Claim]]], Callable[[], Iterator[Claim]]]:
        """Decorate the function that yields the claims on a sentence.

        Parameters
        ----------
        name : of the statement, the paper's name apart.
        place : section, equation, figure or cell.
        says : the sentence, in other words.
        main : it is one of those, ten at most, that title, abstract, contributions or conclusion promise.
        evidence : what it rests on, of `evidence.KINDS`; by default `runs`, if all its claims read runs.
        question : to the authors, whose answer would settle it.
        reply : what they replied, after its date: "2026-12-01: the mean".
        """
        one = Sentence(
            self.paper,
            f"{self.paper}.{name}",
            place,
            says,
            main,
            evidence=_kind_of_evidence(name, evidence),
            question=question,
            reply=reply,
        )
        for other in self.sentences:
            if one.name == other.name or one.says == other.says:
                raise misdeclared(f"sentence {name} stands twice: as {other.name}, {other.place}")
        if main and sum(other.main for other in self.sentences) == MOST_MAIN:
            raise misdeclared(f"sentence {name} is one main claim too many; a paper has at most {MOST_MAIN}")
        if reply and not _DATED.match(reply):
            raise misdeclared(f"sentence {name}: a reply begins with its date, such as 2026-12-01: TEXT")

        def registered(claims: Callable[[], Iterator[Claim]]) -> Callable[[], Iterator[Claim]]:
            self.sentences.append(one)
            self._claims.append(claims)
            return claims

        return registered

    def also(self, name: str, place: str, says: str) -> None:
        """Add a sentence that says what a statement before it says: one fact has one status."""
        full = f"{self.paper}.{name}"
        if full not in {one.name for one in self.sentences}:
            raise misdeclared(f"sentence at {place}: no statement before it is called {name}")
        if says in {one.says for one in self.sentences}:
            raise misdeclared(f"sentence at {place} stands twice")
        self.sentences.append(Sentence(self.paper, full, place, says))
        self._claims.append(lambda: iter(()))

    def all(self) -> list[Claim]:
        """The claims of all sentences, in their order."""
        known = {one.name.removeprefix(f"{self.paper}.") for one in self.sentences}
        if unknown := set(self.axes.fitted_on) - known:
            raise misdeclared(f"settings were fitted on {', '.join(sorted(unknown))}: no such sentence")
        found = []
        for one, claims in zip(self.sentences, self._claims, strict=True):
            made = list(claims())
            found += [replace(claim, **self._of_sentence(one, made)) for claim in made]
        return found

    def _of_sentence(self, one: Sentence, claims: Sequence[Claim]) -> dict[str, Any]:
        """Fields that all claims on a sentence have."""
        making = [claim for claim in claims if not claim.informs]
        printed = bool(making) and all(claim.kind == "printed" for claim in making)
        evidence = one.evidence or LOGS * printed or self.runs * all(claim.needs for claim in making)
        if not evidence:
            raise misdeclared(f"{one.name} needs evidence=, one of {', '.join(EVIDENCE)}")
        texts = {"statement_id": one.name, "place": one.place, "sentence": one.says, "main": one.main}
        return {**texts, "evidence": evidence, "question": one.question, "reply": one.reply}

    def __call__(self, name: str, **fields: Any) -> Statement:
        """Name a claim."""
        return Statement(self, name, fields)

    def __getattr__(self, form: str) -> Callable[..., Claim]:
        """Name a claim and make it, in a form of `Statement`: `CLAIM.order("fig2.faster", ...)`."""
        if form not in ("value", "near", "order", "shape", "identity", "printed", "unmeasured"):
            raise AttributeError(form)
        return lambda name, *what, **more: getattr(self(name), form)(*what, **more)


def _kind_of_evidence(of: str, name: str) -> str:
    if name and name not in EVIDENCE:
        raise misdeclared(f"{of}: evidence {name!r}; one of {', '.join(EVIDENCE)}")
    return name


@dataclass(frozen=True)
class Statement:
    """A claim with a name; it knows from its expression which runs it needs.

    Each form takes the statement in words, and a quantity; `because` is the reason of its tolerance.
    """

    of: Statements
    name: str
    fields: dict[str, Any]

    def value(self, statement: str, published: str, measured: Quantity, **more: Any) -> Claim:
        """A printed outcome of an experiment, with the digits that are printed.

        `rival` is the number of the nearest other method, or `within` the half-width that the prediction
        interval may have. Of the paper: `repetitions` in its mean, and the `spread` of one if it is printed.
        """
        if not isinstance(published, str):
            raise misdeclared(
                f"{self.of.paper}.{self.name}: a value is text, with its printed digits: '0.50'"
            )
        precision = of_print.half_digit(published)
        if precision is None:
            raise misdeclared(f"{self.of.paper}.{self.name}: {published!r} is no number such as '0.50'")
        more = {"precision": precision, **more}
        return self._claim("value", statement, measured, published=float(published), **more)

    def near(
        self, statement: str, published: float, measured: Quantity, *, within: float, **more: Any
    ) -> Claim:
        """Another number, such as a range or a theory's, is the published one `within` a tolerance."""
        return self._claim("near", statement, measured, published=published, within=within, **more)

    def order(self, statement: str, measured: Quantity, *, least: float | None = None, **more: Any) -> Claim:
        """A difference is positive, or a number above the `published` one; by the `least` effect or more."""
        return self._claim("order", statement, measured, within=least, **more)

    def shape(
        self, statement: str, measured: Quantity, *, fails: str = "", share: float | None = None, **more: Any
    ) -> Claim:
        """Something is true in all cases, or in a `share`; `fails` says what data would make it fail.

        A comparison of two quantities says so by itself.
        """
        fails = fails or _COMPARED.get(measured.function, "")
        return self._claim("shape", statement, measured, fails=fails, within=share, **more)

    def identity(self, statement: str, measured: Quantity, **more: Any) -> Claim:
        """Something is true without exception."""
        return self._claim("identity", statement, measured, **more)

    def printed(
        self, statement: str, cells: Quantity | Iterable[Quantity], rule: str = "", **more: Any
    ) -> Claim:
        """Printed numbers summarise these very runs, all by one rule of `printed.RULES`.

        The cells of a table are made by `printed.cell`, or `Runs.printed`. `rule` is the one that the text
        states; without it, or if another one gives the table, the settings are not the printed ones.
        """
        cells = (cells,) if isinstance(cells, Quantity) else tuple(cells)
        named = f"{self.of.paper}.{self.name}"
        if not cells or not all(of_print.is_cell(one) for one in cells):
            raise misdeclared(f"{named}: give the printed numbers, each a `Runs.printed` or a `printed.cell`")
        texts = [one.arguments[1] for one in cells]
        for text in texts:
            if of_print.half_digit(text) is None:
                raise misdeclared(f"{named}: {text!r} is no printed number such as '62.35'")
        if rule and rule not in of_print.RULES:
            raise misdeclared(f"{named}: {unknown_name('rule', rule, of_print.RULES)}")
        published = float(texts[0]) if len(texts) == 1 else None
        measured = of_print.table(*cells, rule=rule)
        return self._claim("printed", statement, measured, published=published, **more)

    def unmeasured(self, statement: str, on: Quantity, **more: Any) -> Claim:
        """A shape without a measure; a statement `on` what a quantity reads."""
        return self._claim("shape", statement, None, needs=on.needs, **more)

    def _claim(self, kind: Kind, statement: str, measured: Quantity | None, **more: Any) -> Claim:
        artefact = self.name.partition(".")[0]
        defaults: dict[str, Any] = {"artefact": artefact, "because": "", "within": None, "options": {}}
        given = {**defaults, **self.of.common, **self.fields, **more}
        if not isinstance(measured, Quantity | None):
            named = f"{self.of.paper}.{self.name}"
            raise misdeclared(
                f"{named}: {measured!r} is no quantity; np.equal and np.not_equal compare values"
            )
        if measured is not None:
            given["needs"], given["expression"] = measured.needs, measured
            given["measure"] = lambda inputs: as_measured(measured(inputs))
            given["evidence"] = LOGS if kind == "printed" else self.of.runs if measured.needs else ""
        if unknown := sorted(set(given) - _FIELDS):
            raise misdeclared(f"{self.of.paper}.{self.name}: a claim has no {', '.join(unknown)}")
        self.of.axes.check(given["options"], f"{self.of.paper}.{self.name}")
        ending = self.of.suffix(given["options"])
        return Claim(
            id=f"{self.of.paper}.{self.name}{ending}",
            ending=ending,
            part=f"{self.of.paper}.{given.pop('part', self.name)}",
            paper=self.of.paper,
            axes=self.of.axes,
            statement=statement,
            kind=kind,
            tolerance=given.pop("within"),
            tolerance_reason=given.pop("because"),
            **given,
        )
