"""The theorems' linear rates: on a planted problem that meets their conditions, and why nowhere else.

Not a figure of the paper, which tests its theory nowhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.algorithms.hard_thresholding import RATES
from replifed.papers.fedht.titles import EXPERIMENTS, METHODS
from replifed.figures.summaries import summarise
from replifed.figures.curves import readable_log_axis
from replifed.figures.style import GREY, VERMILLION, Line, figure, housed, legend, local_steps_lines

TITLE = "FedHT: the linear rates of Theorems 1 and 2"

# tau of the paper's experiments. The kindest case that any data could offer is kappa = 1 and tau* = 1.
SPARSITIES = {"simulation1": 200, "simulation2": 200, "e2006": 200, "rcv1": 200, "mnist": 500}
_LARGEST_K = 10


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Measured error and bound by round; and for each experiment of the paper the tau it uses and needs.

    Column series is "error" (|x_t - x*|^2, mean over seeds), "small batches" (the same, begun with fewer
    samples than the theorem asks for), "bound" (theta^t |x_0 - x*|^2), "tau used" or "tau needed" (by the
    theorem, at kappa = 1 and tau* = 1). Column holds says whether the theorem's conditions are met;
    first_batch is the largest of the seeds.
    """
    planted = settings["experiments"]["planted"]
    frames = []
    for method in settings["artefact"]["runs"]["planted"]:
        history = inputs.run("planted", method)
        summary = summarise(history, ["local_steps", "batch"], "error")
        for (K, batch), curve in summary.groupby(["local_steps", "batch"], sort=False):
            these = history[(history["local_steps"] == K) & (history["batch"] == batch)]
            rate = RATES[method](planted["condition"], planted["sparsity"], planted["planted"], int(K))
            frames.append(
                pd.DataFrame(
                    {
                        "panel": f"{METHODS[method]}, planted problem",
                        "series": "error" if batch == "theorem" else "small batches",
                        "method": method,
                        "experiment": "planted",
                        "local_steps": int(K),
                        "round": curve["round"],
                        "mean": curve["mean"],
                        "low": curve["low"],
                        "high": curve["high"],
                        "seeds": curve["seeds"],
                        "theta": rate.theta,
                        "holds": rate.holds and batch == "theorem",
                        "first_batch": these["first_batch"].max(),
                    }
                )
            )
            if batch != "theorem":
                continue
            bound = curve["mean"].iloc[0] * rate.theta ** curve["round"]
            frames.append(frames[-1].assign(series="bound", mean=bound, low=bound, high=bound))
        for name, tau in SPARSITIES.items():
            rate = RATES[method](1.0, tau, 1, _LARGEST_K)
            for series, value in (("tau used", float(tau)), ("tau needed", rate.least_sparsity)):
                frames.append(
                    pd.DataFrame(
                        {
                            "panel": [f"{METHODS[method]}, conditions on the paper's data"],
                            "series": series,
                            "method": method,
                            "experiment": name,
                            "local_steps": _LARGEST_K,
                            "round": 0,
                            "mean": value,
                            "low": value,
                            "high": value,
                            "seeds": 0,
                            "theta": rate.theta,
                            "holds": rate.holds,
                            "first_batch": 0,
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: above the rates, below the conditions, a column for each method."""
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    made, axes = figure(2, len(methods), title=TITLE, width=4.8, height=2.9)
    on_planted = frame[frame["experiment"] == "planted"]
    lines = local_steps_lines(on_planted["local_steps"].unique())
    for j, method in enumerate(methods):
        _draw_rates(axes[0][j], on_planted[on_planted["method"] == method], lines)
        _draw_conditions(axes[1][j], frame[(frame["experiment"] != "planted") & (frame["method"] == method)])
    small = on_planted[on_planted["series"] == "small batches"]["first_batch"].max()
    bound = Line("bound θᵗ |x₀ − x*|²", GREY, ":", "", 1.2)
    legend(made, [*lines.values(), bound, Line(f"batches from {small:.0f} samples on", GREY, "--", "", 0.8)])
    return made


def _draw_rates(ax: Axes, frame: pd.DataFrame, lines: dict[int, Line]) -> None:
    shown = frame[frame["mean"] > 0]
    for place, (K, line) in enumerate(lines.items()):
        curve = shown[shown["local_steps"] == K]
        error, bound = curve[curve["series"] == "error"], curve[curve["series"] == "bound"]
        small = curve[curve["series"] == "small batches"]
        ax.plot(
            error["round"],
            error["mean"],
            color=line.color,
            linestyle=line.dashes,
            marker=line.marker,
            markevery=(place, 6),
            zorder=3,
        )
        ax.fill_between(
            error["round"],
            error["low"].clip(lower=error["mean"] * 1e-3),
            error["high"],
            color=line.color,
            alpha=0.16,
            linewidth=0,
        )
        ax.plot(bound["round"], bound["mean"], color=line.color, linestyle=":", linewidth=1.2)
        ax.plot(small["round"], small["mean"], color=line.color, linestyle="--", linewidth=0.8)
    ax.set_yscale("log")
    readable_log_axis(ax.yaxis, *ax.get_ylim())
    met = "conditions met" if frame[frame["series"] == "error"]["holds"].all() else "CONDITIONS NOT MET"
    ax.set_title(f"{frame['panel'].iloc[0]}: {met}", loc="left")
    ax.set_xlabel("communication rounds")
    ax.set_ylabel("|xₜ − x*|²")


def _draw_conditions(ax: Axes, frame: pd.DataFrame) -> None:
    names = list(dict.fromkeys(frame["experiment"]))
    at = np.arange(len(names))[::-1]
    used = frame[frame["series"] == "tau used"]["mean"].to_numpy()
    needed = frame[frame["series"] == "tau needed"]["mean"].to_numpy()
    ax.hlines(at, used, needed, color="#BBBBBB", linewidth=1.2, zorder=2)
    ax.plot(used, at, "o", color="black", zorder=3)
    ax.plot(needed, at, ">", color=VERMILLION, markersize=6, zorder=3)
    above = {"textcoords": "offset points", "fontsize": 8}
    ax.annotate("τ used", (used[0], at[0]), (0, 7), ha="center", **above)
    ax.annotate("τ needed even at κ = 1, τ* = 1", (needed[0], at[0]), (-6, 7), color=VERMILLION, **above)
    for y, holds in zip(at, frame[frame["series"] == "tau used"]["holds"], strict=True):
        text = "conditions met" if holds else "conditions not met"
        ax.text(0.99, y, text, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=8)
    ax.set_xscale("log")
    ax.set_xlim(used.min() / 2, needed.max() * 25)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_yticks(at, [EXPERIMENTS[name] for name in names])
    ax.set_xlabel("sparsity level τ")
    ax.set_title(frame["panel"].iloc[0], loc="left")
