"""Targets that the runs at hand can tell apart, and what methods come to at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from replifed.claims.curves import curves, rounds_to
from replifed.claims.samples import Sample

# In place of a stated target: the next larger one of these that enough methods reach.
_COARSER = np.array([digit * 10.0**-k for k in range(10, 0, -1) for digit in (1, 2, 5)])
# A gap that no run has: it stands for that of a run that diverged, and is a bound.
_BEYOND = 1e12


def within_reach(
    histories: Mapping[str, pd.DataFrame], stated: Sequence[float], value: str = "gap"
) -> tuple[float, ...]:
    """Targets that at least two methods reach, or the only one: each stated one, or the next larger.

    A method reaches one if more than half of its seeds do. None is left where nobody halves the value.
    """
    runs = [curves(history, value) for history in histories.values()]
    found = []
    for target in sorted(stated, reverse=True):
        for one in (target, *_COARSER[target * (1 + 1e-9) < _COARSER].tolist()):
            reaching = sum((rounds_to(each, one).bounds == 0).mean() > 0.5 for each in runs)
            if reaching >= min(2, len(runs)):
                found.append(float(f"{one:.1g}"))
                break
    return tuple(dict.fromkeys(found))


def at_the_end(history: pd.DataFrame, value: str = "gap") -> Sample:
    """Value of each seed at its last round; of one that diverged only a bound is known."""
    ends = curves(history, value)
    known = np.isfinite(ends.values[:, -1])
    return ends.sample(np.where(known, ends.values[:, -1], _BEYOND), ~known)
