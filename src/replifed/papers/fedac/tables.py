"""Every run beside the published one, and the points of the figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.papers.fedac.measures import AGREES, all_runs, deviations, fresh_orders, points
from replifed.papers.fedac.paper import LINES


def _runs(inputs: Any, settings: dict) -> pd.DataFrame:
    return all_runs(inputs, settings["artefact"]["runs"], settings)


def _by_method(row: Callable[[pd.DataFrame], dict[str, Any]], frame: pd.DataFrame) -> pd.DataFrame:
    """A `row` for each l2 and method."""
    parts = frame.groupby(["l2", "method"], sort=False)
    return pd.DataFrame(
        [{"l2": f"{l2:g}", "Method": LINES[name].label, **row(part)} for (l2, name), part in parts]
    )


def _counts(runs: pd.DataFrame) -> dict[str, Any]:
    """Counts of runs, of calm ones, of those that can be compared and of those that agree."""
    theirs = ["published_final", "published_best"]  # empty where they are not at hand
    runs = runs.assign(**runs[theirs].apply(pd.to_numeric))
    row: dict[str, Any] = {"Runs": len(runs)}
    for which, label in (("final", "last"), ("best", "best")):
        found = deviations(runs, which)
        row[f"Calm, {label}"] = int((runs[f"chaotic_{which}"] == 0).sum())
        row[f"Compared, {label}"] = len(found)
        row[f"To {AGREES:g}, {label}"] = int((found <= AGREES).sum())
        row[f"Largest deviation, {label}"] = f"{found.max():.1e}" if len(found) else "–"
    return row


def _points(inputs: Any, settings: dict) -> pd.DataFrame:
    return points(_runs(inputs, settings))


def _agreeing(part: pd.DataFrame) -> dict[str, Any]:
    return {
        "Points": len(part),
        "Same step": int((part["eta"] == part["published_eta"]).sum()),
        f"To {AGREES:g}": int((part["deviation"] <= AGREES).sum()),
        "Largest deviation": f"{part['deviation'].max():.1e}",
    }


def _ahead(part: pd.DataFrame) -> dict[str, Any]:
    told = part["p_holm"] <= 0.05
    return {
        "Points": len(part),
        "Below FedAvg": int((told & (part["mean"] < 0)).sum()),
        "Above": int((told & (part["mean"] > 0)).sum()),
        "Not told": int((~told).sum()),
        "Best record on fresh seeds / published": f"{10 ** part['luck'].mean():.2f}",
        "Last record / published": f"{10 ** part['luck_last'].mean():.2f}",
        "Exponent in M at K = 1": _exponent(part, 1),
        "at K = 8": _exponent(part, 8),
        "at K = 64": _exponent(part, 64),
        "from M = 32 to 64, at K = 64": _exponent(part, 64, "last_exponent"),
    }


def _exponent(part: pd.DataFrame, K: int, name: str = "exponent") -> str:
    one = part[part["K"] == K]
    if not len(one) or not np.isfinite(one[name].iloc[0]):
        return "–"
    first = one.iloc[0]
    return f"{first[name]:.2f} [{first[f'{name}_low']:.2f}, {first[f'{name}_high']:.2f}]"


TABLES = by_name(
    Made(
        "runs",
        "Every run beside the published one",
        "Runs with the authors' random numbers: the last and the best objective. A number is calm where "
        "two twins, moved by 1e-10 in start or step, end within 1e-7 of it; the others depend on "
        "rounding, and no machine can reproduce them. Those that are calm, and whose published number is "
        "at hand and finite, are compared.",
        _runs,
        partial(_by_method, _counts),
        stamped=False,
    ),
    Made(
        "large",
        "Runs of more workers beside the published ones",
        "As the table of all runs, with 512 to 8192 workers, at the step that the authors found best and "
        "its two neighbours.",
        _runs,
        partial(_by_method, _counts),
        stamped=False,
    ),
    Made(
        "points",
        "The points of the figures",
        "The least objective over the figures' steps and the records of a run, beside the published one: "
        "the step that is best, and the relative deviation of the objective.",
        _points,
        partial(_by_method, _agreeing),
    ),
    Made(
        "fresh",
        "Fresh seeds: who is ahead, the winner's luck, and the speed-up in M",
        "At each M up to 64 and K, at the step that is best on other seeds: whether the gap (of the best "
        "record, to the true minimum) is below FedAvg's, by a paired t-test on decades, Holm's "
        "correction over the grid. The winner's luck: the same at the authors' step against their "
        "published gap, geometric means. The exponent of the gap against M, over all M and from the last "
        "but one to the last, with its 95 % interval over seeds: -1 is a linear speed-up, 0 none.",
        fresh_orders,
        partial(_by_method, _ahead),
    ),
)
