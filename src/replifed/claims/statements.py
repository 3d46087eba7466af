"""Forms of a paper's claims: a value, an order, a shape or an identity, of a quantity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
    """Makes the claims of one paper, which know from their expressions which runs they need.

    Each claim has a name (its id is the paper's name, this one and what the reading adds), the statement in
    words, and a quantity. Further keywords are fields of `Claim`; `because`, the reason of its tolerance; and
    `says`, the name of the sentence or cell that it tests, where that is not its own name: all claims on one
    share it.

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

    def value(
        self, name: str, statement: str, published: float, measured: Quantity, *, within: float, **more: Any
    ) -> Claim:
        """A number is the published one, `within` a tolerance that is there `because` of something."""
        more |= {"published": published, "tolerance": within}
        return self._claim("value", name, statement, measured, **more)

    def order(
        self, name: str, statement: str, measured: Quantity, *, least: float | None = None, **more: Any
    ) -> Claim:
        """A difference is positive, or a number above the `published` one; by the `least` effect or more."""
        return self._claim("order", name, statement, measured, tolerance=least, **more)

    def shape(
        self, name: str, statement: str, measured: Quantity, *, share: float | None = None, **more: Any
    ) -> Claim:
        """Something is true in all cases, or in a `share` of them."""
        return self._claim("shape", name, statement, measured, tolerance=share, **more)

    def identity(self, name: str, statement: str, measured: Quantity, **more: Any) -> Claim:
        """Something is true without exception."""
        return self._claim("identity", name, statement, measured, **more)

    def unmeasured(self, name: str, statement: str, on: Quantity, **more: Any) -> Claim:
        """A shape without a measure; a statement `on` what a quantity reads."""
        return self._claim("shape", name, statement, None, needs=on.needs, **more)

    def _claim(self, kind: Kind, name: str, statement: str, measured: Quantity | None, **more: Any) -> Claim:
        defaults = {"artefact": name.partition(".")[0], "says": name, "because": "", "reading": ""}
        fields = {**defaults, **self.common, **more}
        reading = fields["reading"]
        if reading not in self.readings:
            raise ValueError(f"{self.paper}.{name}: reading {reading!r} is not declared")
        if measured is not None:
            fields["needs"], fields["expression"] = measured.needs, measured
            fields["measure"] = lambda inputs: as_measured(measured(inputs))
        return Claim(
            id=f"{self.paper}.{name}{self.suffix(reading)}",
            paper=self.paper,
            statement=statement,
            statement_id=f"{self.paper}.{fields.pop('says')}",
            kind=kind,
            tolerance_reason=fields.pop("because"),
            basis=fields.pop("basis", self.readings[reading]),
            nearness=fields.pop("nearness", list(self.readings).index(reading)),
            **fields,
        )
