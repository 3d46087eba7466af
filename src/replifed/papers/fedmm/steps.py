"""The best step of a range that is shorter than the searched one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replifed.papers.fedmm import settings as of

# Runs of the naive method at its best step of the shorter range, by the experiment whose data they share. On
# homogeneous data this is its best step of all.
SHORTER = {
    "synthetic_heterogeneous": "shorter_heterogeneous",
    "movielens_random": "shorter_movielens",
}


def best_asked(found: Mapping[str, Any], experiment: of.Codes) -> float:
    """The best step of a search's record among those from which the search started."""
    assert experiment.tuning is not None
    scores = dict(zip(found["betas"], found["scores"], strict=True))
    asked = (beta for beta in experiment.tuning.betas if beta in scores)  # not beyond where gamma_t is 1
    return min(asked, key=lambda beta: math.inf if scores[beta] is None else scores[beta])
