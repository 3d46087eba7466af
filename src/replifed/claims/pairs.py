"""Effort of methods until a target is reached: all pairs on a problem, and data profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.curves import at_the_end, curves, rounds_to
from replifed.claims.multiplicity import LEVEL, holm, p_value, sign_test
from replifed.claims.samples import Sample, independent, originals, paired
from replifed.claims.units import UNITS
from replifed.intervals import mean_interval

USES = {"round": "rounds", "bits": "bits", "sample_gradients": "sample gradients"}
# Time is used, too, where a history has it (`network.times`).
EVERY_USE = {**USES, "seconds": "time"}
# Of `pairs`, after the problem.
COLUMNS = (
    *("first", "second", "problem", "target", "used", "seeds", "runs"),
    *("difference", "ci_low", "ci_high", "p", "p_holm"),
)
_LEAST = {"gap": 1e-12, "seconds": 1e-12}  # smaller gaps are rounding, and no round takes less time
# Verdicts as `matrix` shows them.
_MARKS = {"fewer": "<", "more": ">", "neither": "·", "one run": "1"}


def uses_of(histories: Iterable[pd.DataFrame]) -> list[str]:
    """Return what all of these histories count: rounds, bits, sample gradients, and time if they have it."""
    timed = all("seconds" in history for history in histories)
    return [use for use in EVERY_USE if timed or use in USES]


def used_until(
    history: pd.DataFrame,
    targets: Sequence[float],
    value: str = "gap",
    *,
    touch: bool = False,
    uses: Sequence[str] | None = None,
) -> dict[tuple[float, str], Sample]:
    """Effort of each seed from when on its `value` stays at most a target, by target and use.

    Reached as `curves.rounds_to` has it, or with `touch` at the first time, whatever comes later. A seed that
    never reaches it has used at least its total at the end. `uses` are columns, by default `uses_of`.
    """
    history = history.assign(bits=history["bits_up"] + history["bits_down"])
    gaps = curves(history, value)
    totals = {"round": np.broadcast_to(gaps.rounds, gaps.values.shape)}
    counted = uses_of([history]) if uses is None else uses
    totals |= {used: curves(history, used).values for used in counted if used != "round"}
    used_by = {}
    for target in targets:
        there = rounds_to(gaps, target, touch=touch)
        index = np.searchsorted(gaps.rounds, there.values)[:, None]
        for used, total in totals.items():
            # Effort between two records is counted at the later one.
            step = np.diff(total, axis=1, prepend=0.0)
            at, grid = (np.take_along_axis(one.astype(float), index, axis=1)[:, 0] for one in (total, step))
            used_by[target, used] = gaps.sample(at, there.bounds, grid)
    return used_by


def pairs(
    problem: str, histories: Mapping[str, pd.DataFrame], targets: Sequence[float], value: str = "gap"
) -> pd.DataFrame:
    """Compare the effort of all pairs of methods, by name, on one problem until its gap stays at a target.

    Seeds are paired. `difference` is the mean decimal logarithm of the first's effort as a multiple of the
    second's, so that it is negative where the first needs fewer; ci_low and ci_high are its 95 %
    interval, p the two-sided p-value, and p_holm that after Holm's correction over all pairs and targets
    of one use. A seed on which one of the two never reaches the target enters as a bound, and the interval is
    open on that side: then only signs are tested, as no bound changes them. Where it could, p is 1. Without
    targets the gaps at the end are compared, `used` is gap, and target is NaN.

    The verdict is "fewer" or "more" where p_holm is at most 5 % and the difference at least 0.02, and
    "neither" elsewhere. Copies of a run (`copies`) count once: of `seeds` repetitions `runs` are left, and
    where that is one, its verdict is "one run", without an interval or p.
    """
    uses = uses_of(histories.values())
    wanted = [(target, use) for use in uses for target in targets] or [(np.nan, "gap")]
    used = {
        name: used_until(history, targets, value, uses=uses)
        if targets
        else {wanted[0]: at_the_end(history, value)}
        for name, history in histories.items()
    }
    copied = {name: originals(history) for name, history in histories.items()}
    rows = []
    for target, use in wanted:
        logarithms = {name: _logarithm(one[target, use], use) for name, one in used.items()}
        for first, second in combinations(histories, 2):
            names = {"first": first, "second": second, "problem": problem, "target": target, "used": use}
            kept = independent(copied[first], copied[second])
            rows.append(names | _compared(logarithms[first] - logarithms[second], kept))
    frame = pd.DataFrame(rows, columns=[name for name in COLUMNS if name != "p_holm"])  # of no pairs, too
    frames = [
        part.assign(p_holm=holm([None if np.isnan(p) else p for p in part["p"]]))
        for _, part in frame.groupby("used", sort=False)
    ]
    frame = pd.concat(frames or [frame.assign(p_holm=[])], ignore_index=True)[list(COLUMNS)]
    frame = frame.astype({"p_holm": float})
    differ = (frame["p_holm"] <= LEVEL) & (frame["difference"].abs() >= UNITS["decades"].effect)
    sides = np.where(frame["difference"] < 0, "fewer", "more")
    one = (frame["runs"] == 1) & (frame["seeds"] > 1)
    return frame.assign(verdict=np.select([one, differ], ["one run", sides], "neither"))


def _compared(difference: Sample, kept: Sequence[Any]) -> dict[str, Any]:
    """Difference of logarithms, its interval and its p-value, of the seeds that are no copies."""
    seeds = len(difference.values)
    difference = difference.take(np.isin(difference.seeds, kept))
    values, bounds = difference.values, difference.bounds
    counts = {"seeds": seeds, "runs": len(values), "difference": float(values.mean())}
    if len(values) < seeds and len(values) == 1:
        return {**counts, "ci_low": np.nan, "ci_high": np.nan, "p": np.nan}
    below, above = float(difference.below.mean()), float(difference.above.mean())
    _, low, high = mean_interval(values)
    # Neither reached it, or the one that did used more than the other had at its end.
    if ((bounds != 0) & (bounds * values <= 0)).any() or (np.abs(bounds) > 1).any():
        p = 1.0
    else:
        p = sign_test(values) if bounds.any() else p_value(values, max(below, above))
    return {
        **counts,
        "ci_low": -np.inf if ((bounds < 0) | (bounds > 1)).any() else low - below,
        "ci_high": np.inf if (bounds > 0).any() else high + above,
        "p": p,
    }


def _logarithm(sample: Sample, use: str) -> Sample:
    least = _LEAST.get(use, 1.0)  # no count is less than one
    return sample.map(lambda values: np.log10(np.maximum(values, least)))


def matrix(frame: pd.DataFrame, labels: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """One table a problem and target; a mark a use, < where the row needs fewer than the column."""
    tables = {}
    turned = frame["verdict"].replace({"fewer": "more", "more": "fewer"})
    mirrored = frame.assign(first=frame["second"], second=frame["first"], verdict=turned)
    for (problem, target), part in frame.groupby(["problem", "target"], sort=False, dropna=False):
        names = list(dict.fromkeys([*part["first"], *part["second"]]))
        whole = pd.concat([part, mirrored.loc[part.index]])
        marks = (
            whole.assign(mark=whole["verdict"].map(_MARKS)).groupby(["first", "second"])["mark"].agg("".join)
        )
        rows = [
            {"method": f"{number} {labels.get(name, name)}"}
            | {str(k): marks.get((name, other), "") for k, other in enumerate(names, 1)}
            for number, name in enumerate(names, 1)
        ]
        end = "gap at the end" if np.isnan(target) else f"gap {target:g}"
        tables[f"{problem}, {end}"] = pd.DataFrame(rows)
    return tables


def profile(
    histories: Mapping[str, Mapping[str, pd.DataFrame]],
    targets: Sequence[float],
    units: Mapping[str, str],
    points: int = 80,
) -> pd.DataFrame:
    """Share of targets and problems that each method has touched, by effort (a data profile).

    Parameters
    ----------
    histories : by method, and by problem.
    units : column of the histories by which a use is divided, so that problems of several sizes have one
        axis; others are not divided.

    Returns
    -------
    DataFrame
        Columns method, used, at, mean (of the seeds' shares), low and high (their 95 % interval); copies of a
        run count once, and one run alone has no interval: low and high are its share.
    """
    kept = {method: independent(*map(originals, runs.values())) for method, runs in histories.items()}
    spent: dict[str, dict[str, list[Sample]]] = {used: {name: [] for name in histories} for used in USES}
    for method, runs in histories.items():
        for history in runs.values():
            sizes = {
                used: history.groupby("replicate")[of].first().to_numpy(float) for used, of in units.items()
            }
            for (_, used), one in used_until(history, targets, touch=True).items():
                values = np.where(one.bounds, np.inf, one.values / sizes.get(used, 1.0))
                spent[used][method].append(Sample(values, seeds=one.seeds))
    rows = []
    for used, cases in spent.items():
        known = np.concatenate([one.values for some in cases.values() for one in some])
        known = known[np.isfinite(known)]
        axis = np.geomspace(known.min(), known.max(), points) if known.size else np.ones(1)
        for method, some in cases.items():
            values = np.stack([one.values[np.isin(one.seeds, kept[method])] for one in paired(*some)])
            # Rounding must not lose the last.
            shares = (values <= axis[:, None, None] * (1 + 1e-9)).mean(axis=1)
            for at, share in zip(axis, shares, strict=True):
                mean, low, high = mean_interval(share) if len(share) > 1 else (share[0],) * 3
                low, high = max(low, 0.0), min(high, 1.0)
                rows.append(
                    {"method": method, "used": used, "at": at, "mean": mean, "low": low, "high": high}
                )
    return pd.DataFrame(rows)
