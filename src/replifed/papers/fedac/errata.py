"""What does not hold in the authors' published numbers (Yuan and Ma 2020)."""

from __future__ import annotations

import numpy as np

from replifed.claims.errata import Erratum, Outcome


def _overflows(stable: bool) -> Outcome:
    """The loss at a margin of -710, beyond which exp has no double."""
    z = 710.0
    with np.errstate(over="ignore"):
        value = float(np.logaddexp(0.0, z) if stable else np.log(1 + np.exp(z)))
    return Outcome(bool(np.isfinite(value)), f"log(1 + exp({z:g})) = {value:g}")


ERRATA = [
    Erratum(
        id="fedac.overflow",
        paper="fedac",
        place="published runs, l2 = 1e-4",
        printed="The objective of 120 runs is infinite, as log(1 + exp(z)) is where exp(z) overflows.",
        corrected="max(z, 0) + log(1 + exp(-|z|)) is finite; so are these objectives, at 25 to 200.",
        forms=(False, True),
        check=_overflows,
    ),
]
