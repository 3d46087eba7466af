"""Which method is the fastest, over bandwidth and the cost of a gradient: from recorded runs alone.

Only ratios decide: with another latency the picture is the same, shifted along both axes by the ratio of the
two latencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from replifed.claims.curves import within_reach
from replifed.claims.pairs import used_until
from replifed.claims.samples import independent, originals
from replifed.figures.artefact import Made
from replifed.figures.lines import COLOURS, Line
from replifed.figures.style import legend, panels, styled
from replifed.network import times
from replifed.papers.cross.cohorts import lines_of
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.timed import rates_of, size_of
from replifed.papers.cross.used import TARGETS

# Bits a second, and seconds.
UPLINK = np.geomspace(1e4, 1e10, 49)
GRADIENT = np.geomspace(1e-9, 1e-3, 49)
# The best is distinguished from the next one if it takes so many times less, and the interval agrees.
LEAST = 1.05
# Margins from which on a colour is full, and at which a line is drawn.
_FULL = 4.0
_LEVELS: dict[float, str | tuple] = {1.5: (0, (1, 1.5)), 2.0: (0, (4, 1.5)), 4.0: "-"}
_COLUMNS = (
    *("experiment", "target", "uplink", "gradient"),
    *("best", "second", "margin", "told", "seconds", "seeds"),
)


class _Used(NamedTuple):
    """What a method used until it stays at the target: the parts of its time, (R, 4), and which seeds do."""

    parts: NDArray
    there: NDArray
    kept: NDArray  # seeds that are no copies

    def seconds(self, rates: times.Rates) -> NDArray:
        """Time of each seed, of one that never gets there so far."""
        return times.seconds(dict(zip(times.PARTS, self.parts.T, strict=True)), rates)


def cells(inputs: Any) -> pd.DataFrame:
    """Return the fastest method at each uplink and cost of a gradient, and by how much, for each problem.

    The downlink is as many times as fast as the uplink, and the latency what the comparison says. A method
    counts if more than half of its seeds stay at the last target; margin is the median time of the second
    over that of the best. told says if the margin is at least 1.05 and the 95 % interval of its logarithm,
    paired over seeds, has no zero.
    """
    asked = rates_of(inputs)
    assert asked is not None
    rows: list[dict[str, Any]] = []
    for experiment in inputs.experiments():
        runs = {method: inputs.run(experiment, method) for method in inputs.methods(experiment)}
        for target in within_reach(runs, TARGETS)[-1:]:
            used = {
                method: _used(times.parts(run, size_of(inputs, experiment, run), asked.spread), target)
                for method, run in runs.items()
            }
            used = {method: one for method, one in used.items() if one.there.mean() > 0.5}
            for uplink in UPLINK:
                for gradient in GRADIENT:
                    downlink = uplink * asked.downlink / asked.uplink
                    rates = asked._replace(uplink=uplink, downlink=downlink, gradient=gradient)
                    head = {"experiment": experiment, "target": target}
                    rows.append({**head, "uplink": uplink, "gradient": gradient, **_fastest(used, rates)})
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    named = {"asked_uplink": asked.uplink, "asked_gradient": asked.gradient, "latency": asked.latency}
    return frame.assign(**named, downlinks=asked.downlink / asked.uplink, spread=asked.spread)


def _used(history: pd.DataFrame, target: float) -> _Used:
    until = used_until(history, [target], uses=times.PARTS)
    found = [until[target, part] for part in times.PARTS]
    kept = np.isin(found[0].seeds, independent(originals(history)))
    return _Used(np.stack([one.values for one in found], axis=1), found[0].bounds == 0, kept)


def _fastest(used: Mapping[str, _Used], rates: times.Rates) -> dict[str, Any]:
    taken = {method: one.seconds(rates) for method, one in used.items()}
    medians = {
        method: float(np.median(np.where(used[method].there, one, np.inf))) for method, one in taken.items()
    }
    best, *others = sorted(medians, key=lambda method: medians[method])
    row = {"best": best, "seconds": medians[best], "seeds": len(taken[best])}
    if not others:
        return {**row, "second": "", "margin": np.nan, "told": False}
    second = others[0]
    margin = medians[second] / medians[best]
    kept = used[best].kept | used[second].kept
    differences = np.log(taken[second] / taken[best])[kept]
    told = margin >= LEAST and bool(used[best].there[kept].all()) and _positive(differences)
    return {**row, "second": second, "margin": margin, "told": told}


def _positive(values: NDArray) -> bool:
    """Return whether the 95 % interval of the mean lies above zero; of one run, whether it does."""
    from replifed.intervals import mean_interval

    return bool(values[0] > 0) if len(values) == 1 else mean_interval(values)[1] > 0


# -- The picture ---------------------------------------------------------------------------------------


@styled
def _draw(frame: pd.DataFrame) -> Figure:
    parts = list(frame.groupby("experiment", sort=False))
    title = "Comparison · Who is the fastest where"
    made, axes = panels(max(len(parts), 1), 2, title=title, width=4.6, height=3.4)
    if not parts:
        axes[0].text(0.5, 0.5, "no target is reached", transform=axes[0].transAxes, ha="center")
        axes[0].set_axis_off()
        return made
    winners = _colours(frame)
    for ax, (experiment, part) in zip(axes, parts, strict=True):
        _draw_cells(ax, part, winners)
        name, target = problem_name(str(experiment)), part["target"].iloc[0]
        ax.set_title(f"{name}, gap {target:g}", loc="left")
    entries = [line._replace(dashes="none", marker="s", size=8.0) for line in winners.values()]
    crossed = {level: dashes for level, dashes in _LEVELS.items() if _is_crossed(frame, level)}
    entries += [Line(f"margin {level:g}×", "black", dashes, "", 0.8) for level, dashes in crossed.items()]
    entries.append(Line("as --time says", "black", "none", "*", size=9.0))
    legend(made, entries)
    return made


def _is_crossed(frame: pd.DataFrame, level: float) -> bool:
    """Return whether margins lie on both sides of a level in some panel, so that a line is drawn."""
    ends = frame.groupby("experiment")["margin"].agg(["min", "max"])
    return bool(((ends["min"] < level) & (level < ends["max"])).any())


def _colours(frame: pd.DataFrame) -> dict[str, Line]:
    """Return a line for each method that is somewhere the fastest, no two of one colour."""
    every, free = lines_of(frame), list(COLOURS.values())
    found: dict[str, Line] = {}
    for method in frame["best"].value_counts().index:
        line = every.get(method, Line(method, free[0]))
        used = {one.color for one in found.values()}
        if line.color in used:
            line = line._replace(color=next((one for one in free if one not in used), line.color))
        found[method] = line
    return found


def _draw_cells(ax: Axes, part: pd.DataFrame, winners: Mapping[str, Line]) -> None:
    x, y = (np.unique(part[name]) for name in ("uplink", "gradient"))
    table = part.sort_values(["gradient", "uplink"])
    shape = (len(y), len(x))
    best = table["best"].to_numpy().reshape(shape)
    margin = table["margin"].to_numpy(float).reshape(shape)
    told = table["told"].to_numpy(bool).reshape(shape)
    full = np.clip(np.log(np.nan_to_num(margin, nan=_FULL)) / np.log(_FULL), 0.0, 1.0)
    colours = np.array([[to_rgb(winners[name].color) for name in row] for row in best])
    shade = (0.3 + 0.7 * full)[..., None]
    ax.pcolormesh(x, y, shade * colours + (1 - shade), shading="nearest", rasterized=True)
    if not told.all():
        drawn = ax.contourf(x, y, (~told).astype(float), levels=[0.5, 1.5], colors="none", hatches=["////"])
        drawn.set(edgecolor="#555555", linewidth=0.0)
    if np.isfinite(margin).all():
        look: dict[str, Any] = {"colors": "black", "linewidths": 0.8, "linestyles": list(_LEVELS.values())}
        ax.contour(x, y, margin, levels=list(_LEVELS), **look)
    row = part.iloc[0]
    asked = row["asked_uplink"], row["asked_gradient"]
    ax.plot(*asked, "k*", markersize=9, markeredgecolor="white", clip_on=False)
    ax.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    beside = f"downlink {row['downlinks']:.3g}×, latency {1e3 * row['latency']:g} ms"
    ax.set_xlabel(f"uplink, bits a second ({beside})")
    ax.set_ylabel("seconds of a sample gradient")
    ax.grid(visible=False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_minor_formatter(NullFormatter())


PICTURE = Made(
    "where",
    "Who is the fastest where",
    "The method that is the first to stay at the target, by median time over seeds, for each uplink and cost "
    "of a sample gradient. The darker, the larger the margin, the ratio of the second's time to the best "
    "one's. Hatched: not distinguished (a ratio below 1.05, or a 95 % interval, paired over seeds, "
    "that holds 1). The times are computed from recorded rounds, bits and "
    "gradients; nothing is run. Another latency shifts the picture along both axes: only ratios matter.",
    cells,
    _draw,
    texts=("best", "second"),
)
