"""How a paper states its claims: a value, an order, a shape or an identity, of a quantity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partialmethod
from typing import Any

from replifed.claims.quantities import Quantity, as_measured
from replifed.claims.verdicts import Claim, Kind


def slug(reading: str) -> str:
    """A reading as the end of a claim's id.

    >>> slug("own (1, 1)"), slug("")
    ('.own-1-1', '')
    """
    suffix = re.sub(r"[^a-z0-9.]+", "-", reading).strip("-")
    return f".{suffix}" if suffix else ""


# What the tolerance of a claim and its reason are called where it is stated.
_NAMES = {"within": "tolerance", "share": "tolerance", "least": "tolerance", "because": "tolerance_reason"}


class Statements:
    """Makes the claims of one paper, which find the runs that they need in what they measure.

    `readings` says of each way to read the paper where its settings come from (`verdicts.BASES`), nearest to
    the text first. `suffix` is what a reading adds to an id. `common` is what all of them have in common,
    such as a reading, a unit or an artefact; by default the artefact is the first part of the name.
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
        """The same, with more in common."""
        return Statements(self.paper, self.readings, self.suffix, **{**self.common, **common})

    def value(self, name: str, statement: str, published: float, measured: Quantity, **more: Any) -> Claim:
        """`measured` is the published number, `within` a tolerance that is there `because` of something.

        As with all of these, `says` names the sentence or cell that it tests where that is not the name: all
        claims on one share it.
        """
        return self._claim("value", name, statement, measured, published=published, **more)

    def unmeasured(self, name: str, statement: str, beside: Quantity, **more: Any) -> Claim:
        """A shape without a measure, beside what it is a statement on."""
        return self._claim("shape", name, statement, None, needs=beside.needs, **more)

    def _claim(self, kind: Kind, name: str, statement: str, measured: Quantity | None, **more: Any) -> Claim:
        more = {"artefact": name.partition(".")[0], **self.common, **more}
        more = {_NAMES.get(key, key): value for key, value in more.items()}
        reading = more.get("reading", "")
        if reading not in self.readings:
            raise ValueError(f"{self.paper}.{name}: reading {reading!r} is not declared")
        more = {
            "statement_id": f"{self.paper}.{more.pop('says', name)}",
            "basis": self.readings[reading],
            "nearness": list(self.readings).index(reading),
            **more,
        }
        if measured is not None:
            more |= {
                "needs": measured.needs,
                "measure": lambda inputs: as_measured(measured(inputs)),
                "expression": measured,
            }
        return Claim(
            id=f"{self.paper}.{name}{self.suffix(reading)}",
            paper=self.paper,
            statement=statement,
            kind=kind,
            **more,
        )

    order = partialmethod(_claim, "order")  # a difference is positive
    shape = partialmethod(_claim, "shape")  # something is true in all cases, or in a `share` of them
    identity = partialmethod(_claim, "identity")  # something is true without exception
