"""Forms of a paper's claims: a value, an order, a shape or an identity, of a quantity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replifed.claims.claim import Claim, Kind
from replifed.claims.quantities import Quantity, as_measured


def slug(reading: str) -> str:
    """A reading as the end of a claim's id.

    >>> slug("own (1, 1)"), slug("")
    ('.own-1-1', '')
    """
    suffix = re.sub(r"[^a-z0-9.]+", "-", reading).strip("-")
    return f".{suffix}" if suffix else ""


class Statements:
    """Makes the claims of one paper.

    `CLAIM("fig2.faster", says="section5.faster", unit="rounds")` names a claim, and `.order(...)` of that
    makes it (see `Statement`); `CLAIM.order("fig2.faster", ...)` does both. The claim's id is the paper's
    name, its own, and what the reading adds. Keywords are fields of `Claim`, and `says`: the name of the
    sentence or cell that it tests, where that is not its own; all claims on one share it.

    Parameters
    ----------
    paper : the paper's name.
    readings : interpretations of the paper, nearest to its text first; of each, where its settings come from
        (`claim.BASES`).
    suffix : gives what a reading adds to an id.
    common : keywords that all claims have in common; by default the artefact is the first part of the name.
    """

    def __init__(
        self,
        paper: str,
        readings: Mapping[str, str] | None = None,
        suffix: Callable[[str], str] = slug,
        **common: Any,
    ) -> None:
        readings = {"": "chosen"} if readings is None else readings
        self.paper, self.readings, self.suffix, self.common = paper, readings, suffix, common

    def given(self, **common: Any) -> Statements:
        """Statements with these keywords in common, too."""
        return Statements(self.paper, self.readings, self.suffix, **{**self.common, **common})

    def __call__(self, name: str, **fields: Any) -> Statement:
        """Name a claim."""
        return Statement(self, name, fields)

    def value(self, name: str, *what: Any, **more: Any) -> Claim:
        """Name a claim and make it: `Statement.value`."""
        return self(name).value(*what, **more)

    def order(self, name: str, *what: Any, **more: Any) -> Claim:
        """Name a claim and make it: `Statement.order`."""
        return self(name).order(*what, **more)

    def shape(self, name: str, *what: Any, **more: Any) -> Claim:
        """Name a claim and make it: `Statement.shape`."""
        return self(name).shape(*what, **more)

    def identity(self, name: str, *what: Any, **more: Any) -> Claim:
        """Name a claim and make it: `Statement.identity`."""
        return self(name).identity(*what, **more)


@dataclass(frozen=True)
class Statement:
    """A claim with a name; it knows from its expression which runs it needs.

    Each form takes the statement in words, and a quantity; `because` is the reason of its tolerance.
    """

    of: Statements
    name: str
    fields: dict[str, Any]

    def value(
        self, statement: str, published: float, measured: Quantity, *, within: float, **more: Any
    ) -> Claim:
        """A number is the published one, `within` a tolerance."""
        return self._claim("value", statement, measured, published=published, tolerance=within, **more)

    def order(self, statement: str, measured: Quantity, *, least: float | None = None, **more: Any) -> Claim:
        """A difference is positive, or a number above the `published` one; by the `least` effect or more."""
        return self._claim("order", statement, measured, tolerance=least, **more)

    def shape(self, statement: str, measured: Quantity, *, share: float | None = None, **more: Any) -> Claim:
        """Something is true in all cases, or in a `share` of them."""
        return self._claim("shape", statement, measured, tolerance=share, **more)

    def identity(self, statement: str, measured: Quantity, **more: Any) -> Claim:
        """Something is true without exception."""
        return self._claim("identity", statement, measured, **more)

    def unmeasured(self, statement: str, on: Quantity, **more: Any) -> Claim:
        """A shape without a measure; a statement `on` what a quantity reads."""
        return self._claim("shape", statement, None, needs=on.needs, **more)

    def _claim(self, kind: Kind, statement: str, measured: Quantity | None, **more: Any) -> Claim:
        defaults = {"artefact": self.name.partition(".")[0], "says": self.name, "because": "", "reading": ""}
        fields = {**defaults, **self.of.common, **self.fields, **more}
        paper, readings, reading = self.of.paper, self.of.readings, fields["reading"]
        if reading not in readings:
            raise ValueError(f"{paper}.{self.name}: reading {reading!r} is not declared")
        if measured is not None:
            fields["needs"], fields["expression"] = measured.needs, measured
            fields["measure"] = lambda inputs: as_measured(measured(inputs))
        return Claim(
            id=f"{paper}.{self.name}{self.of.suffix(reading)}",
            paper=paper,
            statement=statement,
            statement_id=f"{paper}.{fields.pop('says')}",
            kind=kind,
            tolerance_reason=fields.pop("because"),
            basis=fields.pop("basis", readings[reading]),
            nearness=fields.pop("nearness", list(readings).index(reading)),
            **fields,
        )
