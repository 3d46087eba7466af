"""Effort of methods until a target is reached: all pairs on a problem, and data profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from replifed.claims.curves import curves
from replifed.claims.multiplicity import LEVEL, holm, p_value, sign_test
from replifed.claims.samples import Sample, paired
from replifed.claims.units import UNITS
from replifed.intervals import mean_interval

USES = {"round": "rounds", "bits": "bits", "sample_gradients": "sample gradients"}
# Of `pairs`, after the problem.
COLUMNS = ("first", "second", "problem", "target", "used", "difference", "ci_low", "ci_high", "p", "p_holm")
# Verdicts as `matrix` shows them.
_MARKS = {"fewer": "<", "more": ">", "neither": "·"}


def used_until(
    history: pd.DataFrame, targets: Sequence[float], value: str = "gap"
) -> dict[tuple[float, str], Sample]:
    """Effort of each seed when its `value` was first at most a target, by target and use.

    A seed that never reaches it has used at least its total at the end.
    """
    history = history.assign(bits=history["bits_up"] + history["bits_down"])
    gaps, rounds = curves(history, value), np.unique(history["round"])
    totals = {"round": np.broadcast_to(rounds, gaps.values.shape)}
    totals |= {used: curves(history, used).values for used in USES if used != "round"}
    used_by = {}
    for target in targets:
        below = gaps.values <= target
        never = ~below.any(axis=1)
        index = np.where(never, -1, below.argmax(axis=1))[:, None]
        for used, total in totals.items():
            # Effort between two records is counted at the later one.
            step = np.diff(total, axis=1, prepend=0.0)
            at, grid = (np.take_along_axis(one.astype(float), index, axis=1)[:, 0] for one in (total, step))
            used_by[target, used] = gaps.sample(at, never, grid)
    return used_by


def pairs(
    problem: str, histories: Mapping[str, pd.DataFrame], targets: Sequence[float], value: str = "gap"
) -> pd.DataFrame:
    """Compare the effort of all pairs of methods, by name, on one problem until its gap is at most a target.

    Seeds are paired. `difference` is the mean decimal logarithm of the first's effort as a multiple of the
    second's, so that it is negative where the first needs fewer; ci_low and ci_high are its 95 %
    interval, p the two-sided p-value, and p_holm that after Holm's correction over all pairs and targets
    of one use. A seed on which one of the two never reaches the target enters as a bound, and the interval is
    open on that side: then only signs are tested, as no bound changes them. Where it could, p is 1.

    The verdict is "fewer" or "more" where p_holm is at most 5 % and the difference at least 0.02, and
    "neither" elsewhere.
    """
    used = {name: used_until(history, targets, value) for name, history in histories.items()}
    frames = []
    for use in USES:
        rows = [
            {"first": first, "second": second, "problem": problem, "target": target, "used": use}
            | _compared(used[first][target, use], used[second][target, use])
            for target in targets
            for first, second in combinations(histories, 2)
        ]
        frame = pd.DataFrame(rows, columns=list(COLUMNS[:-1]))  # of no pairs, too
        frames.append(frame.assign(p_holm=holm(frame["p"].tolist())))
    frame = pd.concat(frames, ignore_index=True)[list(COLUMNS)]
    differ = (frame["p_holm"] <= LEVEL) & (frame["difference"].abs() >= UNITS["decades"].effect)
    sides = np.where(frame["difference"] < 0, "fewer", "more")
    return frame.assign(verdict=np.where(differ, sides, "neither"))


def _compared(first: Sample, second: Sample) -> dict[str, float]:
    """Difference of the logarithms, its interval and its p-value."""
    difference = _logarithm(first) - _logarithm(second)
    values, bounds = difference.values, difference.bounds
    below, above = float(difference.below.mean()), float(difference.above.mean())
    _, low, high = mean_interval(values)
    # Neither reached it, or the one that did used more than the other had at its end.
    if ((bounds != 0) & (bounds * values <= 0)).any() or (np.abs(bounds) > 1).any():
        p = 1.0
    else:
        p = sign_test(values) if bounds.any() else p_value(values, max(below, above))
    return {
        "difference": float(values.mean()),
        "ci_low": -np.inf if ((bounds < 0) | (bounds > 1)).any() else low - below,
        "ci_high": np.inf if (bounds > 0).any() else high + above,
        "p": p,
    }


def _logarithm(sample: Sample) -> Sample:
    return sample.map(lambda values: np.log10(np.maximum(values, 1.0)))  # nothing is less than one


def matrix(frame: pd.DataFrame, labels: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """One table a problem and target; a mark a use, < where the row needs fewer than the column."""
    tables = {}
    turned = frame["verdict"].replace({"fewer": "more", "more": "fewer"})
    mirrored = frame.assign(first=frame["second"], second=frame["first"], verdict=turned)
    for (problem, target), part in frame.groupby(["problem", "target"], sort=False):
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
        tables[f"{problem}, gap {target:g}"] = pd.DataFrame(rows)
    return tables


def profile(
    histories: Mapping[str, Mapping[str, pd.DataFrame]],
    targets: Sequence[float],
    units: Mapping[str, str],
    points: int = 80,
) -> pd.DataFrame:
    """Share of targets and problems that each method has reached, by effort (a data profile).

    Parameters
    ----------
    histories : by method, and by problem.
    units : column of the histories by which a use is divided, so that problems of several sizes have one
        axis; others are not divided.

    Returns
    -------
    DataFrame
        Columns method, used, at, mean (of the seeds' shares), low and high (their 95 % interval).
    """
    spent: dict[str, dict[str, list[Sample]]] = {used: {name: [] for name in histories} for used in USES}
    for method, runs in histories.items():
        for history in runs.values():
            sizes = {
                used: history.groupby("replicate")[of].first().to_numpy(float) for used, of in units.items()
            }
            for (_, used), one in used_until(history, targets).items():
                values = np.where(one.bounds, np.inf, one.values / sizes.get(used, 1.0))
                spent[used][method].append(Sample(values, seeds=one.seeds))
    rows = []
    for used, cases in spent.items():
        known = np.concatenate([one.values for some in cases.values() for one in some])
        known = known[np.isfinite(known)]
        axis = np.geomspace(known.min(), known.max(), points) if known.size else np.ones(1)
        for method, some in cases.items():
            values = np.stack([one.values for one in paired(*some)])
            # Rounding must not lose the last.
            shares = (values <= axis[:, None, None] * (1 + 1e-9)).mean(axis=1)
            for at, share in zip(axis, shares, strict=True):
                mean, low, high = mean_interval(share) if len(share) > 1 else (share[0],) * 3
                low, high = max(low, 0.0), min(high, 1.0)
                rows.append(
                    {"method": method, "used": used, "at": at, "mean": mean, "low": low, "high": high}
                )
    return pd.DataFrame(rows)
