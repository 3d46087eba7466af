"""Values of a log's columns: numbers as they are printed, words for none, and what is no number."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

_NO_NUMBER = {"nan", "none", "null", "na", "n/a", ""}
_LARGEST = 2**53  # above it, not all whole numbers are floats
# As arrays of numpy, torch and jax are printed, such as tensor(0.5, device='cuda:0').
_PRINTED = re.compile(r"\s*(?:\w+\.)*(?:tensor|array|Array|u?int\d+|float\d+)\(\s*([^,()]*?)\s*(?:,.*)?\)\s*")
_PERCENT = re.compile(r"\s*([-+.\deE]+)\s*%\s*")


def numbers_of(values: pd.Series) -> tuple[pd.Series, str]:
    """Return texts as numbers if they are numbers and words for none, else as they are; and what was done.

    Texts such as tensor(0.5) are the number inside. A column of percentages is of their numbers: 50% is 50.
    Ids that floats would not tell apart stay texts.
    """
    if values.dtype.kind not in "OTUS":
        return values, ""
    texts = values.dropna().astype(str)
    taken, done = values, ""
    if len(texts) and texts.str.fullmatch(_PRINTED).any():
        taken, done = values.astype(object).replace(_PRINTED, r"\1", regex=True), "the numbers in its arrays"
    words = texts[~texts.str.strip().str.lower().isin(_NO_NUMBER)]
    if len(words) and words.str.fullmatch(_PERCENT).all():
        taken, done = values.astype(object).replace(_PERCENT, r"\1", regex=True), "percentages"
    if len(spoilt(taken)):
        return values, ""
    numbers = _parsed(taken)
    if numbers.isna().all() or _are_long_ids(texts, numbers):
        return values, ""
    return numbers, done


def spoilt(values: pd.Series) -> pd.Series:
    """Values that are neither numbers nor words for none: texts, and complex numbers, times and dates."""
    if values.dtype.kind in "cmM":
        return values.dropna()
    lost = values[_parsed(values).isna() & values.notna()]
    return lost[~lost.astype(str).str.strip().str.lower().isin(_NO_NUMBER)]


def floats(values: pd.Series) -> pd.Series:
    """Numbers as floats; what is no number is NaN."""
    return _parsed(values).astype(float)


def _parsed(values: pd.Series) -> pd.Series:
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    try:
        return pd.to_numeric(values, errors="coerce")
    except (OverflowError, TypeError, ValueError):  # integers of hundreds of digits, and lists
        return pd.Series([_number(value) for value in values], index=values.index, dtype=float)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return np.nan


def _are_long_ids(texts: pd.Series, numbers: pd.Series) -> bool:
    return bool((numbers.abs() >= _LARGEST).any()) and texts.str.fullmatch(r"\s*[-+]?\d+\s*").all()
