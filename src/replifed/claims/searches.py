"""What a search's record (`engine.search.Search.record`) says on the step that it selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from replifed.claims.claim import Measured

# Scores closer than this, relative to the best, are equal: `engine.search.TIE`, which claims do not import.
_TIE = 1e-9


def eligible(found: Mapping[str, Any]) -> list[float]:
    """The step that a search selected, and those that it might have, had rounding fallen otherwise.

    These have scores that are no higher, and were rejected since their perturbed runs went elsewhere, which
    may itself hang on rounding; where no step was found stable, they are all that converged.
    """
    scored = zip(found["steps"], found["scores"], strict=True)
    converged = {step: score for step, score in scored if score is not None}
    if found["chaotic"]:
        return list(dict.fromkeys([found["step"], *converged]))
    enough = found["score"] + _TIE * max(abs(found["score"]), 1e-3)
    lower = (step for step in found["rejected"] if converged.get(step, np.inf) <= enough)
    return [found["step"], *lower]


def within(lowest: float, largest: float, records: Iterable[Mapping[str, Any]]) -> Measured:
    """True if the step of each search lies between `lowest` and `largest`.

    A case is open where a step that the search might have selected lies on the other side.
    """
    every = [np.array(eligible(one)) for one in records]
    inside = [(lowest <= steps) & (steps <= largest) for steps in every]
    unsure = np.array([not (one == one[0]).all() for one in inside], dtype=int)
    own = [steps[0] for steps in every]
    note = f"best steps from {min(own):.3g} to {max(own):.3g}"
    if unsure.any():
        note += f"; in {unsure.sum()} of {len(unsure)} searches rounding decides on which side the step lies"
    return Measured(np.array([one[0] for one in inside]), unsure, seeds=1, note=note)
