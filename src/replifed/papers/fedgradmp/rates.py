"""Theorem 5 beside what is measured, and why it says nothing of the paper's own data; not in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.algorithms.fedgradmp_rates import Constants, Promise, theorem5
from replifed.operators.restricted_isometry import restricted_eigenvalues
from replifed.papers.fedgradmp import problems
from replifed.papers.fedgradmp.panels import ERROR
from replifed.figures.summaries import summarise
from replifed.figures.style import (
    GREY,
    SEQUENCE,
    VERMILLION,
    Line,
    figure,
    housed,
    legend,
)
from replifed.randomness import generator

TITLE = "FedGradMP: Theorem 5 and the measured error"
_TRIALS = 20


def promise(
    settings: dict, condition: float, local_steps: int, slope: float, accuracy: float | None = None
) -> Promise:
    """Theorem 5, or 7, on the isometry experiment, which has rho^- = 1 and rho^+ = condition."""
    N = settings["clients"]
    constants = Constants(convexity=np.ones(N), smoothness=np.full(N, condition), weights=np.full(N, 1 / N))
    return theorem5(constants, local_steps, slope, accuracy=accuracy)


def isometry_runs(inputs: Any, solver: str = "exact") -> pd.DataFrame:
    """The isometry experiment with sub-problems solved to the end, or by one gradient step ("gd")."""
    history = inputs.run("isometry", "fedgradmp")
    return history[history["solver"] == solver]


def client_constants(settings: dict, alpha: float, replicate: int) -> pd.DataFrame:
    """Restricted constants of each client's loss over 4 tau coordinates, estimated on random supports."""
    data, _ = problems.regression(settings, alpha, 0.0, replicate)
    size = 4 * settings["planted"]
    rows = []
    for i in range(data.n_clients):
        rng = generator(settings["seed"], replicate, None, f"supports/{i}")
        low, high = restricted_eigenvalues(data.X[0, i] / np.sqrt(data.n_samples), size, rng, _TRIALS)
        rows.append({"client": i + 1, "low": low, "high": high, "condition": high / max(low, 1e-300)})
    return pd.DataFrame(rows)


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Measured |x_t - x*|^2 / |x*|^2 and its bound by round; and each client's restricted condition number.

    Column series is "error", "bound" or "condition".
    """
    isometry = settings["experiments"]["isometry"]
    history = isometry_runs(inputs)
    history = history.assign(squared=np.maximum(history["error"], 1e-17) ** 2)
    frames = []
    for (condition, noise, K), curve in history.groupby(["condition", "noise", "local_steps"]):
        measured = summarise(curve, ["condition"], "squared")
        # x* has length one, so squared errors are relative ones.
        promised = promise(isometry, condition, int(K), float(curve["peak"].mean()))
        bound = promised.kappa ** measured["round"] + promised.residual
        labels = {
            "noise": noise,
            "local_steps": K,
            "kappa": promised.kappa,
            "residual": promised.residual,
        }
        kept = measured[["condition", "round", "mean", "low", "high", "seeds"]].assign(**labels)
        frames.append(kept.assign(series="error"))
        frames.append(kept.assign(series="bound", mean=bound, low=bound, high=bound))
    for name in ("exact", "heterogeneity"):
        chosen = {"seed": settings["seed"], **settings["experiments"][name]}
        for alpha in chosen["alphas"]:
            found = client_constants(chosen, alpha, chosen["replicates"][0])
            frames.append(
                pd.DataFrame(
                    {
                        "series": "condition",
                        "experiment": name,
                        "alpha": alpha,
                        "client": found["client"],
                        "mean": found["condition"],
                        "low": found["low"],
                        "high": found["high"],
                        "seeds": 1,
                    }
                )
            )
    frame = pd.concat(frames, ignore_index=True)
    # A column of numbers with gaps would come back from the CSV as text.
    frame["experiment"] = frame["experiment"].fillna("isometry")
    return frame.fillna(0.0)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: without noise, with noise, and the conditions on the paper's data."""
    made, axes = figure(1, 3, title=TITLE, width=4.4, height=3.0, legend_lines=2)
    theory = frame[frame["series"].isin(["error", "bound"])]
    conditions = sorted(theory["condition"].unique())
    K = theory["local_steps"].min()
    lines = {c: SEQUENCE[i]._replace(label=f"ρ⁺/ρ⁻ = {c:g}") for i, c in enumerate(conditions)}
    for ax, noise in zip(axes[0], sorted(theory["noise"].unique()), strict=False):
        _draw_bounds(ax, theory[(theory["noise"] == noise) & (theory["local_steps"] == K)], lines)
        what = "noiseless" if noise == 0 else f"noise of variance {noise:g}"
        ax.set_title(f"near-isometric clients, K = {K:g}, {what}", loc="left", fontsize=9)
    ax = axes[0][2]
    ratios = frame[frame["series"] == "condition"]
    marks = {}
    for place, ((name, alpha), one) in enumerate(ratios.groupby(["experiment", "alpha"], sort=False)):
        style = SEQUENCE[place % len(SEQUENCE)]
        label = f"α = {alpha:g}" + (" (Figure 9)" if name == "exact" else "")
        ax.plot(one["client"], one["mean"], linestyle="", marker=style.marker, color=style.color, ms=3)
        marks[label] = Line(label, style.color, "", style.marker)
    ax.axhline(2.0, color=VERMILLION, linestyle="--", linewidth=1.2)
    ax.set_yscale("log")
    ax.set_xlabel("client i")
    ax.set_ylabel("restricted ρ⁺/ρ⁻ over 4τ coordinates")
    ax.set_title("the paper's data, estimated", loc="left", fontsize=9)
    extra = [
        Line("bound of Theorem 5", GREY, ":", "", 1.2),
        Line("2: the theorem needs less", VERMILLION, "--", "", 1.2),
    ]
    legend(made, [*lines.values(), *extra, *marks.values()], columns=5)
    return made


def _draw_bounds(ax: Axes, frame: pd.DataFrame, lines: dict) -> None:
    for place, (condition, line) in enumerate(lines.items()):
        one = frame[frame["condition"] == condition]
        error, bound = one[one["series"] == "error"], one[one["series"] == "bound"]
        ax.plot(
            error["round"],
            error["mean"],
            color=line.color,
            linestyle=line.dashes,
            marker=line.marker,
            markevery=(place, 4),
        )
        ax.plot(bound["round"], bound["mean"], color=line.color, linestyle=":", linewidth=1.2)
    ax.set_yscale("log")
    ax.set_xlabel("communication rounds")
    ax.set_ylabel(ERROR.replace("|xₜ − x#| / |x#|", "squared"))
