"""Parameters that a method's own theory gives, for runs without a search (`comparison.untuned`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Conditions
from replifed.algorithms.registry import method_class


def tunes(name: str) -> bool:
    """True if the method has a number to tune."""
    method = method_class(name)
    by_default = getattr(method, "tuned", "step") in [field.name for field in fields(method)]
    return getattr(method, "searched", by_default)


def theory_of(name: str) -> str:
    """Return what theory gives a method with a number to tune; "" if it gives nothing."""
    said: Any = getattr(method_class(name), "theory", "")
    return said if isinstance(said, str) else ""


def without_theory(name: str) -> str:
    """Return why theory gives a method no parameters; "" if it does, or none is needed."""
    given = not tunes(name) or theory_of(name)
    return "" if given else "no theorem of its paper that fixes its parameters is in the code"


def by_theory(name: str, given: Conditions) -> NDArray:
    """Return the multiple of the reference value that theory gives, (S,): 1 where no method says another."""
    of = getattr(method_class(name), "theory_multiple", None)
    return np.ones(np.shape(given.L)) if of is None else np.asarray(of(given))
