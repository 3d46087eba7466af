"""Errata of the published numbers of Yuan and Ma 2020."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from replifed.claims.errata import Errata, Outcome
from replifed.papers.fedac import published

ERRATA = Errata("fedac")

# Runs of those at hand, two thirds of what was published, whose last objective is infinite.
_INFINITE = 86


def _as_printed(z: NDArray) -> NDArray:
    with np.errstate(over="ignore"):
        return np.log(1 + np.exp(z))


def _stable(z: NDArray) -> NDArray:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


@ERRATA.add(
    "overflow",
    place="published runs, l2 = 1e-4",
    printed=f"The last objective of {_INFINITE} of the runs at hand is infinite, as log(1 + exp(z)) is "
    "where exp(z) overflows.",
    corrected="max(z, 0) + log(1 + exp(-|z|)) is the same loss and never overflows: the objective of any "
    "model is finite.",
    forms=(_as_printed, _stable),
)
def _never_overflows(loss: Callable[[NDArray], NDArray]) -> Outcome:
    """The loss must be finite at any margin -z, and so the objective of any model; and it must be this loss.

    Nothing is shown unless the published runs have as many infinite objectives as we say, all where we say.
    The models behind them are not stored, so that what their objectives are cannot be said without the runs.
    """
    runs = published.runs()
    infinite = runs[np.isinf(runs["final_loss"])]
    as_said = len(infinite) == _INFINITE and set(infinite["l2"]) == {1e-4}
    far = np.concatenate([np.arange(1.0, 1000.0), np.geomspace(1e3, 1e300, 1000)])
    finite = np.isfinite(loss(far)) & np.isfinite(loss(-far))
    near = np.linspace(-700.0, 700.0, 1401)
    same = bool(np.allclose(loss(near), np.logaddexp(0.0, near), rtol=1e-12))
    ends = "is finite at all z" if finite.all() else f"is infinite from z = {far[~finite].min():.3g} on"
    return Outcome(
        as_said and same and bool(finite.all()),
        f"the loss {ends}; {len(infinite)} of {len(runs)} published last objectives are infinite, with steps "
        f"from {infinite['eta'].min():g} on",
    )
