"""Settings of a method that no search of the comparison chooses: the column "not tuned"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from replifed.algorithms.base import Conditions, compared
from replifed.algorithms.registry import METHODS, method_class

# What a method is made for, to see which of its settings follow from what: numbers that no setting has.
_MULTIPLE = 0.7310
_PROBLEM = {"mu": np.array([0.0137]), "L": np.array([1.2390]), "clients": 10, "sparsity": 7}
_OTHER = {"mu": np.array([0.0411]), "L": np.array([6.1950]), "clients": 13, "sparsity": 11}
# Of two ways to make a number: equal, up to rounding.
_SAME = 1e-9


def with_fixed(frame: pd.DataFrame, inputs: Any) -> pd.DataFrame:
    """Return a table with a column not_tuned: the settings of its method that were not searched."""
    said = {
        pair: fixed(pair[1], inputs.experiment(pair[0]))
        for pair in set(zip(frame["experiment"], frame["method"], strict=True))
    }
    pairs = zip(frame["experiment"], frame["method"], strict=True)
    return frame.assign(not_tuned=[said[pair] for pair in pairs])


def fixed(method: str, settings: Any) -> str:
    """Return the settings of a method that do not follow the tuned number, such as "local_steps = 5".

    Of a number that follows from mu, L, or the numbers of clients and coordinates, that is said. "" of a
    method that is not known here.
    """
    if method not in METHODS:
        return ""
    asked = (_MULTIPLE, _PROBLEM), (2 * _MULTIPLE, _PROBLEM), (_MULTIPLE, _OTHER)
    made, tuned, other = (_settings(_made(method, settings, *one)) for one in asked)
    words = []
    for name, value in made.items():
        if value is None or not _same(value, tuned.get(name)):
            continue  # what is not used, or tuned
        follows = not _same(value, other.get(name))
        words.append(f"{name} from the problem" if follows else f"{name} = {_in_words(value)}")
    return ", ".join(words)


def _made(method: str, settings: Any, multiple: float, problem: Mapping[str, Any]) -> Any:
    given = Conditions(**problem, local_steps=settings.local_steps, l1=getattr(settings, "l1", 0.0))
    return compared(method_class(method), np.array([multiple]), given)


def _settings(made: Any) -> dict[str, Any]:
    """Return the settings by name, those of a local solver, too."""
    found: dict[str, Any] = {}
    for field in fields(made):
        value = getattr(made, field.name, None)
        inner = is_dataclass(value) and not isinstance(value, type)
        found |= _settings(value) if inner else {field.name: value}
    return found


def _same(one: Any, other: Any) -> bool:
    numbers = [isinstance(value, int | float | np.number | np.ndarray) for value in (one, other)]
    return bool(np.allclose(one, other, rtol=_SAME, atol=0)) if all(numbers) else bool(one == other)


def _in_words(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.ravel()[0]
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = isinstance(value, int | float | np.number)
    return f"{value:g}" if number else str(getattr(value, "__name__", value))
