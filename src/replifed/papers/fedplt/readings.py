"""Readings of the paper's numerical section: what a local loss is, and how parameters are chosen."""

from __future__ import annotations

from typing import Any, NamedTuple

from replifed.claims import quantities
from replifed.claims.quantities import Quantity
from replifed.claims.statements import Statements, slug

# The local loss, nearest to the text first, and where its settings come from.
LOSSES = {"mean": "chosen", "sum": "fitted"}
# Ways to tune, nearest to the text first, then what the level of the noise is.
_WAYS = ("common", "equal budget", "own", "theory", "variance", "deviation")


class Reading(NamedTuple):
    """A reading of the paper."""

    loss: str  # of `LOSSES`
    way: str = ""  # to tune, or to read the level of the noise; "" for statements that depend on neither

    @property
    def name(self) -> str:
        """Its name among the readings of claims, such as "mean, common", or "common" with the sum."""
        return self.way if self.loss == "sum" and self.way else ", ".join(filter(None, self))

    def experiment(self, name: str) -> str:
        """The experiment with this loss."""
        return f"{name}_mean" if self.loss == "mean" else name

    def run(self, experiment: str, method: str = "fedplt") -> Quantity:
        """History of a method on an experiment with this loss."""
        return quantities.run(self.experiment(experiment), method)

    def claims(self, **common: Any) -> Statements:
        """Statements in this reading."""
        return CLAIM.given(reading=self.name, **common)


def _suffix(reading: str) -> str:
    return "" if reading == "sum" else slug(reading)


CLAIM = Statements(
    "fedplt",
    {
        "": "chosen",  # of what depends on neither
        **{Reading(loss, way).name: basis for loss, basis in LOSSES.items() for way in (*_WAYS, "")},
    },
    _suffix,
)

# What a claim that does not come out depends on.
LOSS = (
    "it depends on the loss, or the data's scale: with the printed mean and N(0, 1) features rates are lower "
    "(Fed-PLT's .23 for .531), and local steps come to the exact proximal map sooner; the published numbers "
    "come out with the sum, which is the mean over features of variance 20"
)


def on_loss(loss: str, otherwise: str = "") -> str:
    """Note on what the loss changes, or with the sum another one."""
    return LOSS if loss == "mean" else otherwise


def notes(*several: str) -> str:
    """Notes that are not empty, joined."""
    return "; ".join(filter(None, several))
