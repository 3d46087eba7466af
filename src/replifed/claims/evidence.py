"""What a statement rests on: algebra, the authors' random numbers, their published numbers, or own runs."""

from __future__ import annotations

FORMULA, RE_EXECUTION, LOGS, OWN = KINDS = ("formula", "re-execution", "authors' logs", "own runs")
# Of own runs, by kind of the data.
ON = {
    "original": "on the paper's data",
    "substitute": "on substitutes",
    "synthetic": "on synthetic data made as described",
    "surrogate": "on generated stand-in data",
    "none": "",
}


def in_full(kind: str, data: str) -> str:
    """A kind of evidence, of own runs with their data; "not stated" if there is none.

    >>> in_full("own runs", "synthetic"), in_full("formula", "none")
    ('own runs on synthetic data made as described', 'formula')
    """
    return f"{kind} {ON[data]}".rstrip() if kind == OWN else kind or "not stated"
