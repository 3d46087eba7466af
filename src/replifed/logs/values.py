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


def holding(values: pd.Series, wanted: object) -> pd.Series:
    """Mask of the values that are a wanted one: numbers as numbers, so that 1e-1 is 0.1, and texts as texts.

    >>> holding(pd.Series(["0.10", "1e-1", "a9a", None]), "0.1").tolist()
    [True, True, False, False]
    """
    if values.dtype.kind == "b" and isinstance(wanted, str):
        return values.astype(str).str.lower() == wanted.strip().lower()
    same = values.notna() & (values.astype(str) == str(wanted))
    number = _one_number(wanted)
    return same if abs(number) >= _LARGEST else same | (floats(values) == number)


def number_or_text(text: str) -> int | float | str:
    """Text as a number, if it is one.

    >>> number_or_text("1e-1"), number_or_text("3.0"), number_or_text("a9a")
    (0.1, 3, 'a9a')
    """
    number = _one_number(text)
    if np.isnan(number) or (abs(number) >= _LARGEST and text.strip().isdecimal()):
        return text
    return int(number) if abs(number) < _LARGEST and number % 1 == 0 else number


def _one_number(value: object) -> float:
    return float(floats(pd.Series([value], dtype=object)).iloc[0])


def floats(values: pd.Series) -> pd.Series:
    """Numbers as floats; what is no number is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):  # of longer floats
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
