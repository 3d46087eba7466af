"""Suboptimality against workers or local steps, with published points; all runs with the published ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replifed.figures.artefact import By, Grid, Made, by_name
from replifed.figures.lines import GREY, Line
from replifed.papers.fedac import published
from replifed.papers.fedac.measures import AGREES, all_runs, deviations, drawn, fresh_orders, points
from replifed.papers.fedac.paper import DRAWN, EPSILON_OPTIMUM, LINES, OPTIMA, Drawn

_X = {"M": "workers M", "K": "local steps K"}
_OPEN: dict[str, Any] = {"dashes": "", "size": 7.0, "filled": False}  # look of published points


def _by_powers_of_two(ax: Axes, *_: Any) -> None:
    ax.set_xscale("log", base=2)


def _points_of(figure: Drawn, inputs: Any) -> pd.DataFrame:
    """Points of a figure: l2, method, M, K, ours and published, suboptimality by the authors' optimum."""
    alone = not inputs.runs()  # on data that are not available: published points alone
    theirs = drawn(published.points("epsilon") if alone else published.points(), figure)
    optimum = EPSILON_OPTIMUM if alone else OPTIMA[figure.l2]
    theirs = theirs.assign(published=theirs["best_loss"] - optimum)[["l2", "method", "M", "K", "published"]]
    if alone:
        return theirs.assign(ours=np.nan)
    ours = points(all_runs(inputs))
    ours = ours.assign(ours=ours["best_loss"] - optimum)[["l2", "method", "M", "K", "ours"]]
    return theirs.merge(ours, how="left", on=["l2", "method", "M", "K"])


def _ours_and_published(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of our points and of the authors' in the table of `_points_of`."""
    ours = frame.assign(curve=frame["method"], mean=pd.to_numeric(frame["ours"]))  # empty without a run
    theirs = frame.assign(curve=frame["method"] + "/published", mean=frame["published"])
    return pd.concat([ours, theirs]).dropna(subset="mean")


def _lines(one: Drawn, frame: pd.DataFrame) -> dict[str, Line]:
    """Return the lines of our points and of published ones, which a legend names where we have none."""
    ours, curves = {method: LINES[method] for method in one.methods}, set(frame["curve"])
    return ours | {
        f"{method}/published": line._replace(
            label=f"{line.label}, published", explained=method not in curves, **_OPEN
        )
        for method, line in ours.items()
    }


def _figure(name: str, one: Drawn) -> Grid:
    """Return a figure of the paper."""
    alone = name in ("fig5", "fig6")
    data = "epsilon" if alone else "a9a"
    if alone:
        caption = (
            f"Published points on epsilon, l2 = {one.l2:g}, whose data are not available: nothing here "
            "was computed, and nothing of it is claimed."
        )
    else:
        caption = (
            f"Smallest F - F* over steps eta and the nine records of a run on a9a, l2 = {one.l2:g}, "
            "with the authors' random numbers and their F*. Open markers: the authors' points; lines: "
            "ours, up to the largest M that was run."
        )
    other = "M" if one.panels == "K" else "K"
    return Grid(
        name,
        prefix="FedAc",
        title=f"Figure {name[3:]}: {data}, l2 = {one.l2:g}",
        caption=caption,
        source=lambda inputs: _points_of(one, inputs),
        shown=_ours_and_published,
        columns=[By(one.panels, f"{one.panels} = {{}}".format)],
        wrap=3,
        series="curve",
        lines=lambda frame: _lines(one, frame),
        others=[] if alone else [Line("published", GREY, marker="o", **_OPEN)],
        annotate=_by_powers_of_two,
        x={other: _X[other]},
        y="best suboptimality",
        log_y=True,
        width=3.3,
        height=2.5,
        legend_columns=6,
    )


FIGURES = by_name(*(_figure(name, one) for name, one in DRAWN.items()))


# -- Tables --------------------------------------------------------------------------------------------


def _by_method(row: Callable[[pd.DataFrame], dict[str, Any]], frame: pd.DataFrame) -> pd.DataFrame:
    """A `row` for each l2 and method."""
    parts = frame.groupby(["l2", "method"], sort=False)
    return pd.DataFrame(
        [{"l2": f"{l2:g}", "Method": LINES[name].label, **row(part)} for (l2, name), part in parts]
    )


def _counts(runs: pd.DataFrame) -> dict[str, Any]:
    """Count runs, those not sensitive to rounding, those that can be compared, and those that agree."""
    published = ["published_final", "published_best"]  # empty where they are not available
    runs = runs.assign(**runs[published].apply(pd.to_numeric))
    row: dict[str, Any] = {"Runs": len(runs)}
    for which, label in (("final", "last"), ("best", "best")):
        compared = deviations(runs, which)
        row[f"Insensitive, {label}"] = int((runs[f"chaotic_{which}"] == 0).sum())
        row[f"Compared, {label}"] = len(compared)
        row[f"To {AGREES:g}, {label}"] = int((compared <= AGREES).sum())
        row[f"Largest deviation, {label}"] = f"{compared.max():.1e}" if len(compared) else "–"
    return row


def _agreeing(part: pd.DataFrame) -> dict[str, Any]:
    return {
        "Points": len(part),
        "Same step": int((part["eta"] == part["published_eta"]).sum()),
        f"To {AGREES:g}": int((part["deviation"] <= AGREES).sum()),
        "Largest deviation": f"{part['deviation'].max():.1e}",
    }


def _ahead(part: pd.DataFrame) -> dict[str, Any]:
    decided = part["p_holm"] <= 0.05
    return {
        "Points": len(part),
        "Below FedAvg": int((decided & (part["mean"] < 0)).sum()),
        "Above": int((decided & (part["mean"] > 0)).sum()),
        "Undecided": int((~decided).sum()),
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
        "Every run with the published one",
        "Runs with the authors' random numbers: the last and the best objective. A number is sensitive to "
        "rounding unless two runs, perturbed by 1e-10 in start or step, end within 1e-7 of it; no machine "
        "can reproduce sensitive ones. The others are compared if the published number is available and "
        "finite.",
        all_runs,
        lambda frame: _by_method(_counts, frame),
        stamped=False,
    ),
    Made(
        "large",
        "Runs of more workers with the published ones",
        "As the table of all runs, with 512 to 8192 workers, at the step that the authors found best and "
        "its two neighbours.",
        all_runs,
        lambda frame: _by_method(_counts, frame),
        stamped=False,
    ),
    Made(
        "points",
        "The points of the figures",
        "The smallest objective over the figures' steps and the records of a run, with the published one: "
        "the step that is best, and the relative deviation of the objective.",
        lambda inputs: points(all_runs(inputs)),
        lambda frame: _by_method(_agreeing, frame),
    ),
    Made(
        "fresh",
        "Fresh seeds: who is ahead, the winner's luck, and the speed-up in M",
        "At each M up to 64 and K, at the step that is best on other seeds: whether the gap (of the best "
        "record, to the true minimum) is below FedAvg's, by a paired t-test on decades, Holm's correction "
        "over the grid. The winner's luck: the same at the authors' step against their published gap, "
        "geometric means. The exponent of the gap against M, over all M and from the last but one to the "
        "last, with its 95 % interval over seeds: -1 is a linear speed-up, 0 none.",
        fresh_orders,
        lambda frame: _by_method(_ahead, frame),
    ),
)
