"""Averages of histories over repetitions, with bands: the numbers of curves and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.intervals import mean_interval

Centre = Literal["mean", "geometric", "median"]
Band = Literal["ci", "sd", "range"]

# Errors below are rounding; an error of exactly zero has no logarithm.
LEAST = 1e-17
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def averages(
    histories: Iterable[pd.DataFrame],
    by: Sequence[str],
    values: Sequence[str] = ("objective",),
    *,
    metric: str = "",
    first: Mapping[str, int] | None = None,
    centre: Centre = "mean",
    band: Band = "ci",
    axes: Sequence[str] = ("iterations", "bits"),
) -> pd.DataFrame:
    """Average several values of several histories as `summarise` does, one table below the other.

    A column called `metric` says which value was averaged; `first` is the first round that has a number, by
    value.
    """
    frames = []
    for history in histories:
        for value in values:
            since = history[history["round"] >= (first or {}).get(value, 0)]
            frame = summarise(since, by, value, centre=centre, band=band, axes=axes)
            if metric:
                frame.insert(0, metric, value)
            frames.append(frame)
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True)


def summarise(
    history: pd.DataFrame,
    by: Sequence[str],
    value: str = "objective",
    *,
    centre: Centre = "mean",
    band: Band = "ci",
    axes: Sequence[str] = ("iterations", "bits"),
) -> pd.DataFrame:
    """Average each curve over its repetitions, round by round.

    Repetitions that diverge at some round are excluded from the whole average, or it would blow up with
    them and then fall to the others' values; where all of them diverge, the average is over those still
    alive, and the curve ends with the last. So every number in the summary is finite. A repetition that ends
    early has converged, and keeps its last value.

    Parameters
    ----------
    history : DataFrame
        With columns `by` (which tell the curves apart), replicate, round, `value`, diverged, and `axes`;
        bits, if missing, are the sum of bits_up and bits_down.
    centre : {"mean", "geometric", "median"}
        The geometric mean fits curves that fall over many decades.
    band : {"ci", "sd", "range"}
        A 95 % t interval of the mean, one standard deviation to either side, or from the smallest to the
        largest repetition alive, those included that diverge later. Bands of a geometric mean are computed
        on logarithms.
    axes : sequence of str
        Columns that a horizontal axis may show: averaged as `value`, but never geometrically.

    Returns
    -------
    DataFrame
        Columns `by`, then round, `axes`, mean (or median), low, high (the mean itself where it is over one
        repetition), alive (repetitions at that round), seeds (in all) and diverged (lost by the end).
    """
    if "bits" in axes and "bits" not in history:
        history = history.assign(bits=history["bits_up"] + history["bits_down"])
    name = "median" if centre == "median" else "mean"
    average = np.median if centre == "median" else np.mean
    curves = []
    for key, curve in history.groupby(list(by), sort=False, dropna=False):
        # Not pivot_table, which would average duplicate lines instead of rejecting them.
        table = curve.set_index(["round", "replicate"])[[value, *axes, "diverged"]]
        table = table.sort_index().unstack()  # noqa: PD010
        ended = table["diverged"].isna().to_numpy()
        numbers = {
            column: np.where(ended, table[column].ffill(), table[column]).astype(float)
            for column in (value, *axes, "diverged")
        }
        values = numbers[value]
        lost = np.maximum.accumulate((numbers["diverged"] > 0) | ~np.isfinite(values), axis=0)
        survived = ~lost[-1]
        for t, number in enumerate(table.index):
            alive = ~lost[t]
            if not alive.any():
                break
            used = survived if survived.any() else alive
            mid, low, high = _centre_and_band(values[t, used], values[t, alive], centre, band)
            curves.append(
                {
                    **dict(zip(by, key, strict=True)),
                    "round": int(number),
                    **{axis: float(average(numbers[axis][t, used])) for axis in axes},
                    name: mid,
                    "low": low,
                    "high": high,
                    "alive": int(alive.sum()),
                    "seeds": lost.shape[1],
                    "diverged": int(lost[-1].sum()),
                }
            )
    return pd.DataFrame(curves)


def _centre_and_band(used: NDArray, alive: NDArray, centre: Centre, band: Band) -> tuple[float, float, float]:
    """Return the centre of the values `used`, and the ends of its band; a range is of the values `alive`."""
    if centre == "geometric":
        log_used, log_alive = (np.log10(np.maximum(values, LEAST)) for values in (used, alive))
        mid, low, high = _centre_and_band(log_used, log_alive, "mean", band)
        return 10.0**mid, 10.0**low, 10.0**high
    mid = float(np.median(used) if centre == "median" else used.mean())
    if band == "range":
        return mid, min(float(alive.min()), mid), max(float(alive.max()), mid)
    if len(used) == 1:
        return mid, mid, mid
    if band == "sd":
        spread = float(np.std(used, ddof=1))
        return mid, mid - spread, mid + spread
    _, low, high = mean_interval(used)
    return mid, low, high


def on_log_scale(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` with the bands of its means computed on the scale of logarithms.

    To first order, what lies h above a mean m lies h / m above its logarithm: the band goes from m exp(-h/m)
    to m exp(h/m). A band m - h to m + h reaches below zero where h > m, which no logarithmic axis can show.
    """
    mean = frame["mean"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(mean > 0, (frame["high"].to_numpy(float) - mean) / mean, 0.0)
        # Bands wider than any axis need no numbers of 300 digits.
        factor = np.exp(np.minimum(share, 200.0))
    return frame.assign(low=mean / factor, high=mean * factor)


def over_repetitions(history: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Average one number per repetition, such as a rate, for each combination of the columns `by`.

    Returns columns mean, low, high (95 % t interval, the mean itself over one repetition), sets, and
    diverged: repetitions without a finite value, which are excluded (the mean of none is 1).
    """
    rows = []
    for key, group in history.groupby(list(by), sort=False, dropna=False):
        values = group[value].to_numpy(dtype=float)
        finite = values[np.isfinite(values)]
        mean, low, high = _centre_and_band(finite, finite, "mean", "ci") if len(finite) else (1.0, 1.0, 1.0)
        rows.append(
            {
                **dict(zip(by, key, strict=True)),
                "mean": mean,
                "low": low,
                "high": high,
                "sets": len(values),
                "diverged": len(values) - len(finite),
            }
        )
    return pd.DataFrame(rows)


def with_interval(row: pd.Series) -> str:
    """Return "0.531 ± 0.004" and the number of runs that diverged, if any; that alone if most did."""
    if 2 * row["diverged"] > row["sets"]:
        return f"diverges ({row['diverged']} of {row['sets']})"
    text = f"{row['mean']:.3f} ± {(row['high'] - row['low']) / 2:.3f}"
    return f"{text} ({row['diverged']} of {row['sets']} diverge)" if row["diverged"] else text


def use_until_target(uses: NDArray, reached: NDArray, **columns: Any) -> dict[str, Any]:
    """Return median, low and high of the use until a target, `columns`, and the numbers reached and seeds.

    Seeds that never reached it count as later than all others: numbers that depend on them are infinite.
    """
    values = np.where(reached, uses, np.inf)
    return {
        "median": np.median(values),
        "low": values.min(),
        "high": values.max(),
        **columns,
        "reached": int(reached.sum()),
        "seeds": len(values),
    }


def median_and_range(row: Any, form: Callable[[float], str], seeds: str = "") -> str:
    """Return the use until a target as "120 [80, …] (2 of 3)", or "not reached" if no seed reached it.

    `row` has the columns of `use_until_target`; `form` writes a number, and `seeds` stands behind the number
    of seeds.
    """
    if not row.reached:
        return "not reached"
    median = form(row.median) if np.isfinite(row.median) else "–"
    high = form(row.high) if np.isfinite(row.high) else "…"
    some = "" if row.reached == row.seeds else f" ({row.reached} of {row.seeds}{seeds})"
    return f"{median} [{form(row.low)}, {high}]{some}"


def short(value: float, unit: str = "") -> str:
    """Return a number in three digits, with a prefix from a thousand on, and maybe its unit.

    >>> short(102), short(73_400), short(22.1e6, "bit"), short(999_999)
    ('102', '73.4k', '22.1 Mbit', '1M')
    """
    rounded = float(f"{value:.3g}")
    size, prefix = next((one for one in _PREFIXES if abs(rounded) >= one[0]), _PREFIXES[-1])
    return f"{rounded / size:.3g}{' ' * bool(unit)}{prefix}{unit}"
