"""How a paper states its claims: a value, an order, a shape or an identity, of a quantity."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from replifed.claims.quantities import Quantity, as_measured
from replifed.claims.verdicts import Claim


def slug(reading: str) -> str:
    """A reading as the end of a claim's id.

    >>> slug("own (1, 1)"), slug("")
    ('.own-1-1', '')
    """
    suffix = re.sub(r"[^a-z0-9.]+", "-", reading).strip("-")
    return f".{suffix}" if suffix else ""


class Statements:
    """Makes the claims of one paper, which find the runs that they need in what they measure.

    Parameters
    ----------
    paper : str
    suffix : callable
        What the reading adds to an id.
    """

    def __init__(self, paper: str, suffix: Callable[[str], str] = slug) -> None:
        self.paper, self.suffix = paper, suffix

    def value(
        self,
        name: str,
        statement: str,
        published: float,
        measured: Quantity,
        *,
        within: float,
        because: str,
        **more: Any,
    ) -> Claim:
        """`measured` is the published number, `within` a tolerance that is there `because` of something."""
        numbers = {"published": published, "tolerance": within, "tolerance_reason": because}
        return self._claim("value", name, statement, measured, **numbers, **more)

    def order(self, name: str, statement: str, difference: Quantity, **more: Any) -> Claim:
        """`difference` is positive."""
        return self._claim("order", name, statement, difference, **more)

    def shape(
        self,
        name: str,
        statement: str,
        holds: Quantity,
        *,
        share: float | None = None,
        because: str = "",
        **more: Any,
    ) -> Claim:
        """`holds` is true in all cases, or in a share of them."""
        return self._claim("shape", name, statement, holds, tolerance=share, tolerance_reason=because, **more)

    def identity(self, name: str, statement: str, holds: Quantity, **more: Any) -> Claim:
        """`holds` is true without exception."""
        return self._claim("identity", name, statement, holds, **more)

    def unmeasured(self, name: str, statement: str, beside: Quantity, **more: Any) -> Claim:
        """A shape without a measure, beside what it is a statement on."""
        return self._claim("shape", name, statement, None, needs=beside.needs, **more)

    def _claim(
        self,
        kind: Any,
        name: str,
        statement: str,
        measured: Quantity | None,
        *,
        artefact: str = "",
        reading: str = "",
        **more: Any,
    ) -> Claim:
        if measured is not None:
            more |= {"needs": measured.needs, "measure": lambda inputs: as_measured(measured(inputs))}
        return Claim(
            id=f"{self.paper}.{name}{self.suffix(reading)}",
            paper=self.paper,
            artefact=artefact or name.partition(".")[0],
            statement=statement,
            kind=kind,
            reading=reading,
            **more,
        )
