"""Parameters that a method's own theory gives, for runs in which nothing is searched (`comparison.untuned`).

They are those that the replicated papers' code has from a theorem. A method of one's own says by a class
attribute `theory` where the parameters of its `compared` at the multiple 1 come from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Conditions
from replifed.algorithms.registry import method_class


class Theory(NamedTuple):
    """The number that theory gives in place of the tuned one, as a multiple of its reference value."""

    says: str
    multiple: Callable[[Conditions], NDArray] | None = None  # None: the reference value itself


def _beside(name: str) -> Any:
    """Return the module of a method; a run that needs none is not to depend on its source."""
    return sys.modules[method_class(name).__module__]


def _of_fedlin(given: Conditions) -> NDArray:
    return np.asarray(given.L * _beside("fedlin").theory_step(given.L, given.local_steps))


def _of_fedpd(given: Conditions) -> NDArray:
    return np.asarray(np.sqrt(given.mu * given.L) * _beside("fedpd").theory_eta(given.L))


_KNOWN = {
    "fedlin": Theory("local step 1 / (6 L K), theorem for strongly convex losses", _of_fedlin),
    "fedpd": Theory("eta = (sqrt 5 - 1) / (4 L), the end of the theorem's range", _of_fedpd),
    "fedplt": Theory("rho = 1 / sqrt(mu L), the best rate of exact splitting"),
    "fedsplit": Theory("s = 1 / sqrt(mu L), Theorem 1"),
    "fivegcs": Theory("gamma and tau of the theorem for strongly convex losses"),
    "scaffnew": Theory("gamma = 1 / L, the end of the range of Theorem 3.5"),
    "tamuna": Theory("gamma = 2 / (L + mu), and the largest eta"),
    "mb_sgd": Theory("step 1 / L, gradient descent on an L-smooth function"),
}
# Why others have none.
_WITHOUT = {
    "fedavg": "its paper has no theory",
    "led": "its theorem leaves the constants of its bounds open",
}
_NONE = "no theorem of its paper that fixes its parameters is in the code"


def tunes(name: str) -> bool:
    """True if the method has a number to tune."""
    method = method_class(name)
    by_default = getattr(method, "tuned", "step") in [field.name for field in fields(method)]
    return getattr(method, "searched", by_default)


def theory_of(name: str) -> Theory | None:
    """Return what theory gives a method with a number to tune; None if it gives nothing."""
    own: Any = getattr(method_class(name), "theory", None)
    return _KNOWN.get(name) or (Theory(own) if isinstance(own, str) else None)


def without_theory(name: str) -> str:
    """Return why theory gives a method no parameters; "" if it does, or none is needed."""
    return "" if not tunes(name) or theory_of(name) else _WITHOUT.get(name, _NONE)


def by_theory(name: str, given: Conditions) -> NDArray:
    """Return the multiple of the reference value that theory gives, (S,)."""
    found = theory_of(name)
    if found is None or found.multiple is None:
        return np.ones(np.shape(given.L))
    return found.multiple(given)
