"""A comparison as a paper shows it: who is best on each data set, and who is not distinguished from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.claims.pairs import EVERY_USE
from replifed.claims.units import UNITS
from replifed.figures.artefact import Made
from replifed.figures.curves import readable_log_axis
from replifed.figures.lines import Line
from replifed.figures.style import canvas, styled
from replifed.figures.summaries import short
from replifed.papers.cross.cohorts import labels_of, lines_of
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.timed import timed
from replifed.papers.cross.used import Targets, all_pairs, use

# Of a method on a problem, by one use: the least median, not distinguished from it by the pairs, or behind.
BEST, TIED, BEHIND = "best", "tied", ""


def placed(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return the table of uses with a column place: who is best by each, and who not distinguished from it.

    The best has the least median use until the last target, or the least gap at the end where there is no
    target. Another is tied if the pairs of the two (`claims.pairs`, with Holm's correction over all pairs and
    targets of the use) do not decide that it needs more.
    """
    uses, pairs = use(inputs, targets), all_pairs(inputs, targets)
    places = [
        place
        for _, part in uses.groupby(["experiment", "used"], sort=False)
        for place in _places(part, pairs).items()
    ]
    return uses.assign(place=pd.Series(dict(places)))


def _places(part: pd.DataFrame, pairs: pd.DataFrame) -> dict[Any, str]:
    """Return the places of the methods on a problem by one use, by the index of their lines."""
    first = part.iloc[0]
    reached = not np.isnan(first["target"])
    values = part["median" if reached else "gap"]
    if not np.isfinite(values).any():
        return dict.fromkeys(part.index, BEHIND)
    best = values.idxmin()
    at = (pairs["target"] == first["target"]) if reached else pairs["target"].isna()
    at &= (pairs["problem"] == first["experiment"]) & (pairs["used"] == (first["used"] if reached else "gap"))
    behind = set(_behind(part.loc[best, "method"], pairs[at]))
    return {
        index: BEST if index == best else BEHIND if method in behind else TIED
        for index, method in part["method"].items()
    }


def _behind(best: str, pairs: pd.DataFrame) -> Iterator[str]:
    """Yield the methods that need more than the best; of single runs, by the least effect alone."""
    effect = UNITS["decades"].effect
    for pair in pairs.itertuples():
        if best not in (pair.first, pair.second):
            continue
        turned = pair.first == best
        more = "fewer" if turned else "more"
        ahead = -pair.difference if turned else pair.difference
        if pair.verdict == more or (pair.verdict == "one run" and ahead >= effect):
            yield pair.second if turned else pair.first


def best(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return a row for each problem and use: the best method, and those not distinguished from it."""
    rows = []
    for (experiment, used), part in placed(inputs, targets).groupby(["experiment", "used"], sort=False):
        target = part["target"].iloc[0]
        if np.isnan(target) and used != "round":
            continue  # gaps at the end are compared once
        value = "gap" if np.isnan(target) else "median"
        of_best, tied = (part[part["place"] == place] for place in (BEST, TIED))
        rows.append(
            {
                "experiment": experiment,
                "used": "gap" if np.isnan(target) else used,
                "target": target,
                "method": of_best["method"].iloc[0] if len(of_best) else "",
                "median": of_best[value].iloc[0] if len(of_best) else np.inf,
                "tied": " ".join(tied.sort_values(value, kind="stable")["method"]),
                "methods": len(part),
                "seeds": part["seeds"].max(),
            }
        )
    return pd.DataFrame(rows)


def show_best(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table per problem, one line per resource."""
    named, tables = labels_of(frame), {}
    for experiment, part in frame.groupby("experiment", sort=False):
        target = part["target"].iloc[0]
        until = "gap at the end" if np.isnan(target) else f"until the gap stays at {target:g}"
        tables[f"{problem_name(str(experiment))}, {until}"] = pd.DataFrame(
            [
                {
                    "by": EVERY_USE.get(row.used, row.used),
                    "best": named.get(row.method, row.method) or "none gets there",
                    "its median": _median(row.used, row.median) if row.method else "–",
                    "not distinguished from it": _listed(named.get(name, name) for name in row.tied.split()),
                }
                for row in part.itertuples()
            ]
        )
    return tables


def _median(used: str, median: float) -> str:
    if used == "gap":
        return f"{median:.3g}"
    return f"{median:.3g} s" if used == "seconds" else short(median, "bit" * (used == "bits"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


# -- Boxes over data sets ------------------------------------------------------------------------------

_LEAST_SETS = 3  # whose quartiles mean something


def ratios(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return what each method needs on each problem as a multiple of what the best needs, by use."""
    frame = placed(inputs, targets)
    values = frame["median"].where(frame["target"].notna(), frame["gap"])
    least = values.groupby([frame["experiment"], frame["used"]]).transform("min")
    kept = frame[["experiment", "method", "used", "target", "place", "seeds"]]
    return kept.assign(ratio=np.where(np.isfinite(least), values / least, np.inf))


@styled
def draw_boxes(frame: pd.DataFrame) -> Figure:
    """Draw a panel a use: a box a method, over data sets, and a dot a data set."""
    uses = [name for name in EVERY_USE if (frame["used"] == name).any()]
    lines = lines_of(frame)
    rank = frame.groupby("method")["ratio"].agg(lambda one: np.median(np.minimum(one, 1e9)))
    methods = rank.sort_values(kind="stable").index.tolist()
    sets = frame["experiment"].nunique()
    title = f"Comparison · Use as a multiple of the best method's · {sets} data sets"
    across = min(len(uses), 2)
    down = -(-len(uses) // across)
    made, grid = canvas(down, across, title=title, width=4.2, height=0.22 * len(methods) + 0.8)
    axes = [ax for row in grid for ax in row]
    for ax in axes[len(uses) :]:
        ax.set_axis_off()
    for number, (ax, used) in enumerate(zip(axes, uses, strict=False)):
        _draw_boxes_of(ax, frame[frame["used"] == used], methods, lines)
        ax.set_title(EVERY_USE[used], loc="left")
        names = [lines[name].label if name in lines else name for name in methods]
        ax.set_yticks(range(len(methods)), names if number % across == 0 else [""] * len(methods))
        if number // across == down - 1 or number + across >= len(uses):
            ax.set_xlabel("times what the best method needs")
    return made


def _draw_boxes_of(ax: Axes, frame: pd.DataFrame, methods: list[str], lines: Mapping[str, Line]) -> None:
    known = frame.loc[np.isfinite(frame["ratio"]), "ratio"]
    far = 1.3 * max(float(known.max()) if len(known) else 1.0, 2.0)
    for row, method in enumerate(methods):
        values = frame.loc[frame["method"] == method, "ratio"].to_numpy(float)
        color = lines[method].color if method in lines else "black"
        there = np.isfinite(values)
        if there.sum() >= _LEAST_SETS:
            look: dict[str, Any] = {"orientation": "horizontal", "widths": 0.6, "whis": (0, 100)}
            box = ax.boxplot([values[there]], positions=[row], **look)
            for parts in box.values():
                for part in parts:
                    part.set(color=color, linewidth=1.0)
        ax.plot(values[there], np.full(there.sum(), row), "o", color=color, markersize=3.0, alpha=0.8)
        if missing := int((~there).sum()):
            ax.plot(far, row, "x", color=color, markersize=5)
            said, offset = f"{missing} of {len(values)}", (6, 0)
            ax.annotate(said, (far, row), offset, textcoords="offset points", va="center", size=7)
    ends = 0.9, far**1.25
    ax.set(xscale="log", xlim=ends, ylim=(len(methods) - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    readable_log_axis(ax.xaxis, *ends)


def artefacts(targets: Targets) -> tuple[Made, Made]:
    """Return the table of the best, and the picture of boxes."""
    return (
        Made(
            "best",
            "Who is best, and who is not distinguished from it",
            "For each data set and each resource (rounds, bits, gradients) until the last target: the method "
            "with the least median over seeds, and those that the pairs below do not distinguish from it at "
            "5 %. Where no target is reached, the gaps at the end are compared. Single runs, where nothing "
            "is drawn, are distinguished by a ratio of 1.05.",
            lambda inputs: best(timed(inputs), targets),
            show_best,
            texts=("method", "tied"),
        ),
        Made(
            "boxes",
            "All data sets at once",
            "What each method needs until it stays at the target, as a multiple of what the best one needs "
            "on the same data set: a dot a data set, a box from quartile to quartile, whiskers to the least "
            "and the most. Methods come in the order of their medians. A cross says on how many data "
            "sets half of the seeds or more never get there.",
            lambda inputs: ratios(timed(inputs), targets),
            draw_boxes,
        ),
    )
