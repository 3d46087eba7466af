"""Objectives by local steps, heterogeneity and method; clusters, clients, searches, and linear rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from replifed.algorithms.hard_thresholding import RATES
from replifed.figures import style
from replifed.figures.artefact import Made, by_name
from replifed.figures.curves import readable_log_axis
from replifed.figures.grid import By, Grid, X
from replifed.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SEQUENCE,
    VERMILLION,
    Line,
    canvas,
    housed,
    legend,
)
from replifed.figures.summaries import on_log_scale, summarise
from replifed.papers.fedht.embedding import embedding
from replifed.papers.fedht.paper import (
    EXPERIMENTS,
    LEVEL_READINGS,
    LINES,
    METHODS,
    READINGS,
    REAL_READINGS,
    level_key,
    level_name,
    ordered_levels,
)
from replifed.partition.heterogeneity import group_counts, label_groups, summary

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

_READINGS = (
    "Two readings of the step size stand side by side: each method at its own best step (and best K), "
    "and all methods at one step, half the inverse of the clients' largest smoothness constant, with the "
    "largest K. The paper names neither; the second was chosen because Figure 3's numbers come out in it."
)
_LEVELS = (
    "Two readings of the step size stand side by side: each method at its own best step (and best K) at "
    "each level, and one step for all levels, half the inverse of the largest smoothness constant at (1, 1)."
)
_BANDS = (
    "Lines are means over seeds, bands 95 % intervals of the mean; a cross marks the round at which a "
    "seed diverged, and seeds that diverge are not in the mean. Above a panel stand the numbers of local "
    "steps K and the step sizes γ of its curves, in the legend's order. A curve that hangs on rounding, as "
    "its twins say, is named in its panel and has no band."
)

# -- Objectives ----------------------------------------------------------------------------------------

_CURVE = ("experiment", "level", "reading", "method", "local_steps", "step")
_RUN = [*_CURVE[1:], "replicate"]

Keep = Callable[[pd.DataFrame], pd.Series]


def _curves(
    keep: Keep, readings: Collection[str] = READINGS, relative: bool = False
) -> Callable[[pd.DataFrame, Any], pd.DataFrame]:
    """Return what takes some runs, counts each curve's chaotic seeds, and names the kind of the data.

    Parameters
    ----------
    keep : callable
        Maps a history to a boolean for each of its lines.
    readings : collection of str
        Readings of the step size that are drawn.
    relative : bool
        Divide each run's objective by what it was at round 0.
    """

    def prepare(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
        history = history[keep(history) & history["reading"].isin(list(readings))]
        if history.empty:
            return history
        if relative:
            first = history.groupby(_RUN, sort=False)["objective"].transform("first")
            history = history.assign(objective=history["objective"] / first)
        chaotic = history.drop_duplicates(_RUN).groupby(_RUN[:-1])["chaotic"].sum().reset_index()
        history = history.drop(columns="chaotic").merge(chaotic, on=_RUN[:-1], how="left")
        return history.assign(kind=inputs.data_kind(history["experiment"].iloc[0])[0])

    return prepare


def _minibatched(history: pd.DataFrame) -> pd.Series:
    return history["batch"] != "full"


def _mildest(history: pd.DataFrame) -> pd.Series:
    return _minibatched(history) & (history["level"] == ordered_levels(history["level"])[0])


def _tuned(history: pd.DataFrame) -> pd.Series:
    return _minibatched(history) & history["tuned"]


def _first_and_last_level(history: pd.DataFrame) -> pd.Series:
    levels = ordered_levels(history["level"])
    return _tuned(history) & history["level"].isin([levels[0], levels[-1]])


def _full_batch(history: pd.DataFrame) -> pd.Series:
    return (history["batch"] == "full") & history["tuned"]


def _named(*columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what names panels by some columns, and takes the bands from curves that hang on rounding."""
    readings = {**READINGS, **LEVEL_READINGS, **REAL_READINGS}

    def name(curve: Any) -> str:
        level = level_name(str(curve.level)) if "level" in columns else ""
        method = METHODS[curve.method] if "method" in columns else ""
        head = " ".join(filter(None, (EXPERIMENTS[curve.experiment], level)))
        return ", ".join(filter(None, (head, method, readings[curve.reading])))

    def finish(frame: pd.DataFrame) -> pd.DataFrame:
        noisy = frame["chaotic"] > 0
        frame = frame.assign(**{end: frame[end].where(~noisy, frame["mean"]) for end in ("low", "high")})
        frame.insert(0, "panel", [name(curve) for curve in frame.itertuples()])
        return frame

    return finish


def local_steps_lines(values: Collection[int]) -> dict[int, Line]:
    """Return the line of each number of local steps K; those of the paper are always the same."""
    order = dict.fromkeys([3, 5, 8, 10, *sorted(values)])
    lines = {K: SEQUENCE[number % len(SEQUENCE)] for number, K in enumerate(order)}
    return {K: lines[K]._replace(label=f"K = {K}") for K in sorted(values)}


def _lines_of_K(frame: pd.DataFrame) -> Mapping[int, Line]:
    return local_steps_lines(frame["local_steps"].unique().tolist())


def _lines_of_levels(frame: pd.DataFrame) -> Mapping[str, Line]:
    return style.sequence_lines(
        {level: f"(α, β) = {level_name(level)}" for level in ordered_levels(frame["level"])}
    )


def _remarks(series: str, ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
    """Add K and step sizes above a panel, which curves hang on rounding, and whether data are surrogates."""
    if x == "round":
        settings = _settings(panel, series, lines)
        ax.text(0, 1.02, settings, transform=ax.transAxes, fontsize=7, color="#555555")
    noisy = [line.label for key, line in lines.items() if panel.loc[panel[series] == key, "chaotic"].any()]
    if noisy:
        remark = "hangs on rounding: " + ", ".join(noisy)
        ax.text(0.02, 0.03, remark, transform=ax.transAxes, fontsize=7, color="#B03A00", zorder=6)
    if (panel["kind"] == "surrogate").any():
        ax.text(
            0.5,
            0.5,
            "surrogate data",
            transform=ax.transAxes,
            ha="center",
            va="center",
            rotation=20,
            fontsize=15,
            color="#B03A00",
            alpha=0.25,
            zorder=1,
        )


def _settings(panel: pd.DataFrame, series: str, lines: Mapping[Any, Line]) -> str:
    """K and step size of a panel's curves: once if they are those of all, else in the legend's order."""
    names = {"step": "γ"} if series == "local_steps" else {"local_steps": "K", "step": "γ"}
    settings = [panel.loc[panel[series] == key, list(names)].drop_duplicates() for key in lines]
    curves = pd.concat([curve for curve in settings if len(curve) == 1])
    parts = []
    for column, name in names.items():
        values = [
            np.format_float_positional(value, precision=2, fractional=False, trim="-")
            for value in curves[column]
        ]
        parts.append(f"{name} = {', '.join(values if len(set(values)) > 1 else values[:1])}")
    return "; ".join(parts)


figure = partial(
    Grid,
    prefix="FedHT",
    by=(*_CURVE, "chaotic", "kind"),
    series="method",
    lines=LINES,
    annotate=partial(_remarks, "method"),
    finish=_named("experiment", "level", "reading"),
    y="objective",
    x={"round": "communication rounds", "iterations": "local iterations", "bits": "bits sent"},
    width=3.2,
    height=2.35,
    pad=15,
    legend_columns=6,
)
_ROWS = By("experiment", EXPERIMENTS)
_LEVELS_IN_ORDER = By("level", level_name, level_key)
_SHORT = {"own": "own best step", "common": "common step"}
_SHORT_REAL = {"own": "own best step", "printed": REAL_READINGS["printed"]}


# -- Figures 4 and 5 -----------------------------------------------------------------------------------


class GroupStyle(NamedTuple):
    """Colour, marker and hatch of a group; beyond ten groups they come round again, hatched."""

    color: str
    marker: str
    hatch: str


# Okabe and Ito's eight colours, and two more of other lightness: a wine red and a light grey.
_COLOURS = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PURPLE,
    style.SKY,
    style.VERMILLION,
    style.BLACK,
    style.YELLOW,
    "#882255",
    "#BBBBBB",
)
_MARKERS = "os^DvPX*<>"


def group_style(number: int) -> GroupStyle:
    """Return the style of a cluster, or of another group, by its number from 0."""
    turn, number = divmod(number, len(_COLOURS))
    return GroupStyle(_COLOURS[number], _MARKERS[number], "/////" if turn else "")


# The small plate behind a cluster's number.
_TAG = {
    "boxstyle": "round,pad=0.15",
    "facecolor": "white",
    "edgecolor": "#333333",
    "linewidth": 0.5,
    "alpha": 0.85,
}


@housed
def _draw_embedding(frame: pd.DataFrame) -> Figure:
    """Draw the embedding from the table alone, one panel an experiment."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    names = ", ".join(EXPERIMENTS.get(name, name) for name in experiments)
    made, grid = canvas(
        1,
        len(experiments),
        title=f"FedHT · t-SNE of the clusters of {names}",
        width=5.6,
        height=4.2,
        legend_lines=0,
    )
    for axes, experiment in zip(grid[0], experiments, strict=True):
        shown = frame[frame["experiment"] == experiment]
        for cluster, part in shown.groupby("cluster", sort=True):
            own = group_style(int(cluster))
            axes.scatter(
                part["x"],
                part["y"],
                s=7,
                marker=own.marker,
                facecolors=own.color,
                edgecolors="#333333",  # else yellow would be lost on white
                linewidths=0.15,
                alpha=0.85,
                label=f"{cluster} ({len(part) / len(shown):.1%})",
            )
        for cluster, part in shown.groupby("cluster", sort=True):
            axes.annotate(str(cluster), _middle(part), ha="center", va="center", fontweight="bold", bbox=_TAG)
        axes.set(
            xlabel="t-SNE coordinate 1", ylabel="t-SNE coordinate 2", aspect="equal", adjustable="datalim"
        )
        axes.set_title(
            f"{EXPERIMENTS.get(experiment, experiment)}: {len(shown):,} of {shown['samples'].iloc[0]:,} "
            f"samples, silhouette {shown['silhouette'].iloc[0]:.3f}"
        )
        axes.legend(
            title="cluster (share)",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            markerscale=2.2,
            alignment="left",
        )
    return made


def _middle(part: pd.DataFrame) -> tuple[float, float]:
    """Return the sample with the least total distance to the others: the mean may lie far from all."""
    points = part[["x", "y"]].to_numpy()
    total = [np.hypot(*(points - point).T).sum() for point in points]
    return tuple(points[int(np.argmin(total))])


# -- Classes that a client does not see ----------------------------------------------------------------

VARIANTS = {"paper": "threshold over all weights (Algorithm 2)", "class": "threshold in each class"}


def _classes(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Share of unseen classes in the supports, and the objective, round by round, for both variants."""
    history = inputs.run("mnist_classes", "fediterht")
    frames = []
    for _, run in history.groupby(["variant", "replicate"], sort=False):
        # The local steps of a round begin at the server's model of the round before.
        frames.append(run.assign(local=run["local"].shift(-1)).iloc[:-1])
    columns = ["variant", "round", "server", "local", "objective", "local_steps", "step"]
    return pd.concat(frames, ignore_index=True)[columns]


@housed
def _draw_classes(frame: pd.DataFrame) -> Figure:
    """Draw what `_classes` returns: shares on the left, the objective on the right."""
    made, axes = canvas(
        1,
        2,
        title="FedHT · FedIterHT on MNIST by class (not in the paper)",
        width=4.6,
        height=3.0,
        legend_lines=0,
    )
    left, right = axes[0]
    for (variant, label), colour in zip(VARIANTS.items(), ("#0072B2", "#D55E00"), strict=True):
        curve = frame[frame["variant"] == variant]
        later = curve[curve["round"] > 0]
        left.plot(later["round"], later["local"], "-", color=colour, label=label)
        right.plot(curve["round"], curve["objective"], "-", color=colour, label=label)
    # Each class is seen by as many clients: of a model that all share, the same part is unseen.
    left.plot(later["round"], later["server"], "--", color="#777777", label="server's model, either way")
    left.set_ylim(0, 1)
    left.set_title("non-zeros in classes that the client does not see", loc="left", fontsize=9)
    left.set_ylabel("share, mean over clients")
    right.set_title(
        f"K = {int(frame['local_steps'].iloc[0])}, step {frame['step'].iloc[0]:g}", loc="left", fontsize=9
    )
    right.set_ylabel("objective")
    for ax in (left, right):
        ax.set_xlabel("communication rounds")
        ax.legend(fontsize=7, loc="best")
    return made


# -- Theorems 1 and 2 ----------------------------------------------------------------------------------

# tau of the paper's experiments. The kindest case that any data could offer is kappa = 1 and tau* = 1.
SPARSITIES = {"simulation1": 200, "simulation2": 200, "e2006": 200, "rcv1": 200, "mnist": 500}
_LARGEST_K = 10


def _rates(inputs: Inputs, settings: dict) -> pd.DataFrame:
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
        averages = on_log_scale(summarise(history, ["local_steps", "batch"], "error"))
        for (K, batch), curve in averages.groupby(["local_steps", "batch"], sort=False):
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
def _draw_rates(frame: pd.DataFrame) -> Figure:
    """Draw what `_rates` returns: above the rates, below the conditions, a column for each method."""
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    made, axes = canvas(
        2, len(methods), title="FedHT · Linear rates (not in the paper)", width=4.8, height=2.9
    )
    on_planted = frame[frame["experiment"] == "planted"]
    lines = local_steps_lines(on_planted["local_steps"].unique())
    for j, method in enumerate(methods):
        _draw_rates_of(axes[0][j], on_planted[on_planted["method"] == method], lines)
        _draw_conditions(axes[1][j], frame[(frame["experiment"] != "planted") & (frame["method"] == method)])
    small = on_planted[on_planted["series"] == "small batches"]["first_batch"].max()
    bound = Line("bound θᵗ |x₀ − x*|²", GREY, ":", "", 1.2)
    legend(made, [*lines.values(), bound, Line(f"batches from {small:.0f} samples on", GREY, "--", "", 0.8)])
    return made


def _draw_rates_of(ax: Axes, frame: pd.DataFrame, lines: dict[int, Line]) -> None:
    shown = frame[frame["mean"] > 0]
    for number, (K, line) in enumerate(lines.items()):
        curve = shown[shown["local_steps"] == K]
        error, bound = curve[curve["series"] == "error"], curve[curve["series"] == "bound"]
        small = curve[curve["series"] == "small batches"]
        ax.plot(
            error["round"],
            error["mean"],
            **line.look,
            markevery=(number, 6),
            zorder=3,
        )
        ax.fill_between(
            error["round"],
            error["low"],
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
    above: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}
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


# -- Searches of the steps -----------------------------------------------------------------------------

# The paper's grid, which the searches here extend while the best step lies at its edge.
PRINTED_STEPS = (0.001, 10.0)


def _tuning(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Every point of every search; the score of a step that diverged is infinite.

    That of a step that was given up, since the objective rose, is what it had come to (`tune.Search`).
    """
    rows = []
    for experiment, methods in settings["artefact"]["tuned"].items():
        for method in methods:
            outcome = inputs.tuned(experiment, method)
            for level, searches in outcome["levels"].items():
                name = " ".join(filter(None, (EXPERIMENTS[experiment], level_name(level))))
                for K, search in searches["by_local_steps"].items():
                    for step, score in zip(search["steps"], search["scores"], strict=True):
                        rows.append(
                            {
                                "panel": f"{name}, {METHODS[method]}",
                                "experiment": experiment,
                                "level": level,
                                "method": method,
                                "local_steps": int(K),
                                "step": step,
                                "score": math.inf if score is None else score,
                                "best": step == search["step"],
                                "chosen": step == search["step"] and int(K) == searches["local_steps"],
                                "rejected": step in search["rejected"],
                                "chaotic": search["chaotic"],
                                **outcome["cost"],
                            }
                        )
    return pd.DataFrame(rows)


@housed
def _draw_tuning(frame: pd.DataFrame) -> Figure:
    """Draw what `_tuning` returns: a row for each data set, a column for each method."""
    rows = list(dict.fromkeys(zip(frame["experiment"], frame["level"], strict=True)))
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    lines = local_steps_lines(sorted(set(frame["local_steps"]) - {1}))
    made, axes = canvas(
        len(rows),
        len(methods),
        title="FedHT · Step-size searches (not in the paper)",
        width=3.1,
        height=1.95,
        legend_lines=2,
    )
    for i, (experiment, level) in enumerate(rows):
        row = frame[(frame["experiment"] == experiment) & (frame["level"] == level)]
        finite = row[np.isfinite(row["score"])]
        # The smallest steps hardly move; steps on the brink of divergence would squeeze all other curves.
        hardly_moved = finite[finite["step"] == finite["step"].min()]["score"].max()
        low, high = finite["score"].min(), min(finite["score"].max(), 3 * hardly_moved)
        limits = low / (high / low) ** 0.1, high * (high / low) ** 0.25
        for j, method in enumerate(methods):
            ax = axes[i][j]
            one = {1: Line("", GREEN, "-", "^")}
            searched = row[row["method"] == method]
            if searched.empty:
                ax.text(0.5, 0.5, "not run at this level", transform=ax.transAxes, ha="center", color=GREY)
            else:
                _note_cost(ax, searched.iloc[0])
            _draw_search(ax, searched, lines | one, limits)
            name = " ".join(filter(None, (EXPERIMENTS[experiment], level_name(str(level)))))
            ax.set_title(f"{name}, {METHODS[method]}", loc="left", fontsize=9)
            ax.set_xlim(frame["step"].min() / 1.5, frame["step"].max() * 1.5)
            if i == len(rows) - 1:
                ax.set_xlabel("step size")
            if j == 0:
                ax.set_ylabel("objective")
    marks = [
        Line("one local step", GREEN, "-", "^"),
        Line("best step", "black", "", "*"),
        Line("diverged", GREY, "", "x"),
        Line("not stable", GREY, "", "o"),
        Line("the paper's grid", "#E3E8EE", "-", "", 8),
    ]
    legend(made, [*lines.values(), *marks], columns=4)
    return made


def _note_cost(ax: Axes, row: pd.Series) -> None:
    cost = f"{row['runs']:,} runs, {row['rounds']:,} rounds, {row['bits']:.1e} bits"
    ax.text(0.02, 0.03, cost, transform=ax.transAxes, fontsize=7, color="#555555", zorder=5)


def _draw_search(ax: Axes, frame: pd.DataFrame, lines: dict[int, Line], limits: tuple[float, float]) -> None:
    ax.axvspan(*PRINTED_STEPS, color="#E3E8EE", zorder=0, linewidth=0)
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())  # over eight decades they would be a grey band
    ax.set_yscale("log")
    ax.set_ylim(*limits)
    readable_log_axis(ax.yaxis, *limits)
    for number, (K, line) in enumerate(lines.items()):
        curve = frame[frame["local_steps"] == K].sort_values("step")
        if curve.empty:
            continue
        finite = curve[np.isfinite(curve["score"])]
        ax.plot(
            finite["step"],
            finite["score"],
            **line.look,
            markersize=2.5,
            linewidth=1.2,
            zorder=3,
        )
        lost = curve[~np.isfinite(curve["score"])]
        # One row of crosses per K, below the upper edge.
        height = limits[1] / (limits[1] / limits[0]) ** (0.03 + 0.045 * number)
        ax.plot(lost["step"], [height] * len(lost), "x", color=line.color, markersize=3.5, zorder=3)
        shaky = finite[finite["rejected"]]
        ax.plot(
            shaky["step"], shaky["score"], "o", color=line.color, markersize=6, fillstyle="none", zorder=4
        )
        best = curve[curve["best"]]
        chosen = bool(best["chosen"].any())
        ax.plot(
            best["step"],
            best["score"],
            "*",
            color=line.color,
            markersize=11 if chosen else 8,
            zorder=4,
            markeredgecolor="black" if chosen else GREY,
            markeredgewidth=0.8 if chosen else 0.4,
        )


# -- Clients -------------------------------------------------------------------------------------------

# The numbers of the last panel, top to bottom; all are ratios, so that one axis serves them.
_NUMBERS = {
    "label_distance": "label distance",
    "label_distance_random": "label distance,\nrandom deal",
    "size_variation": "size variation",
    "size_max_over_mean": "largest / mean size",
    "effective_share": "effective clients\n/ clients",
}


def _clients(inputs: Inputs, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Describe the clients of each experiment.

    Parameters
    ----------
    inputs : object with methods experiments(), data(experiment) and partition(experiment)
    settings : mapping
        Not used.

    Returns
    -------
    pd.DataFrame
        experiment, panel, replicate, client, rank, part, value. Panels: "sizes" (samples of the client
        of each rank, largest first, every replicate); "clusters" and "labels" (share of each cluster
        and of each label, or tenth of the targets, in each client of the first replicate, the clients
        ranked by their clusters); "summary" (`part` names a number of
        `replifed.partition.heterogeneity.summary`, or effective_share; every replicate; client and
        rank are -1).
    """
    frames = []
    for experiment in inputs.experiments():
        partition, y = inputs.partition(experiment), inputs.data(experiment).y
        for replicate, client in partition.clients.items():
            size = np.bincount(client)
            order = np.argsort(-size, kind="stable")
            sizes = {
                "client": order,
                "rank": np.arange(len(size)),
                "part": "",
                "value": size[order].astype(float),
            }
            numbers_of = summary(client, y)
            numbers_of["effective_share"] = numbers_of["effective_clients"] / numbers_of["clients"]
            numbers = {
                "client": -1,
                "rank": -1,
                "part": list(_NUMBERS),
                "value": [numbers_of[n] for n in _NUMBERS],
            }
            for panel, columns in (("sizes", sizes), ("summary", numbers)):
                head = {"experiment": experiment, "panel": panel, "replicate": replicate}
                frames.append(pd.DataFrame({**head, **columns}))
        first, client = next(iter(partition.clients.items()))
        in_cluster = group_counts(client, partition.cluster)
        # Clients with the same largest cluster stand side by side.
        order = np.lexsort((*(-in_cluster.T[::-1]), np.argmax(in_cluster > 0, axis=1)))
        names, group = label_groups(y)
        clusters = [str(k) for k in range(in_cluster.shape[1])]
        for panel, parts, counts in (
            ("clusters", clusters, in_cluster),
            ("labels", names, group_counts(client, group)),
        ):
            rank, part = np.nonzero(counts[order])
            shares = (counts / counts.sum(axis=1, keepdims=True))[order]
            frames.append(
                pd.DataFrame(
                    {
                        "experiment": experiment,
                        "panel": panel,
                        "replicate": first,
                        "client": order[rank],
                        "rank": rank,
                        "part": [parts[k] for k in part],
                        "value": shares[rank, part],
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


@housed
def _draw_clients(frame: pd.DataFrame) -> Figure:
    """Draw the clients from the table alone: one row of panels a data set."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    made, grid = canvas(
        len(experiments), 4, title="FedHT · Partitions (not in the paper)", height=2.5, legend_lines=0
    )
    for row, experiment in zip(grid, experiments, strict=True):
        own = frame[frame["experiment"] == experiment]
        name = EXPERIMENTS.get(experiment, experiment)
        _draw_sizes(row[0], own[own["panel"] == "sizes"], name)
        _draw_shares(row[1], own[own["panel"] == "clusters"], f"{name}: clusters of each client", "cluster")
        labels = own[own["panel"] == "labels"]
        what = "targets" if labels["part"].astype(str).str.startswith("tenth").any() else "labels"
        _draw_shares(row[2], labels, f"{name}: {what} of each client", "label")
        _draw_numbers(row[3], own[own["panel"] == "summary"], name)
    return made


def _draw_sizes(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    for number, (_, part) in enumerate(frame.groupby("replicate", sort=True)):
        axes.plot(
            part["rank"] + 1,
            part["value"],
            color=BLUE,
            linewidth=0.9,
            alpha=0.6,
            label="one deal" if not number else None,
        )
    mean = frame["value"].mean()
    axes.axhline(mean, color=VERMILLION, linestyle="--", linewidth=1.1, label=f"mean, {mean:,.0f}")
    axes.set(xlabel="client, largest first", ylabel="samples", ylim=(0, 1.12 * frame["value"].max()))
    axes.set_title(f"{name}: sizes of the clients")
    axes.legend(loc="best")


def _draw_shares(axes: Axes, frame: pd.DataFrame, title: str, kind: str) -> None:
    """Stack each client's shares on its rank."""
    parts = sorted(set(frame["part"].astype(str)), key=_natural)
    clients = int(frame["rank"].max()) + 1
    base = np.zeros(clients)
    edges = np.arange(clients + 1) + 0.5
    for number, part in enumerate(parts):
        own = frame[frame["part"].astype(str) == part]
        top = base.copy()
        top[own["rank"].to_numpy()] += own["value"].to_numpy()
        own_style = group_style(number)
        axes.fill_between(
            edges,
            np.append(base, base[-1]),
            np.append(top, top[-1]),
            step="post",
            facecolor=own_style.color,
            hatch=own_style.hatch,
            edgecolor="white",  # of the hatch
            linewidth=0.0,
            label=part.removeprefix("tenth "),
        )
        base = top
    axes.set(
        xlabel="client, by clusters", ylabel="share of its samples", xlim=(0.5, clients + 0.5), ylim=(0, 1)
    )
    axes.set_title(title)
    axes.grid(False)
    heading = "tenth of\ntargets" if parts[0].startswith("tenth") else kind
    axes.legend(
        title=heading,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=7,
        title_fontsize=7.5,
        handlelength=1.2,
        labelspacing=0.25,
        reverse=True,
    )


def _draw_numbers(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    for line, number in enumerate(_NUMBERS):
        values = frame.loc[frame["part"] == number, "value"]
        mean = values.mean()
        axes.barh(line, mean, height=0.55, color=GREY if number.endswith("random") else ORANGE, alpha=0.55)
        axes.plot(values, np.full(len(values), line), "|", color="black", markersize=6, label=None)
        axes.annotate(
            f"{mean:.2f}", (values.max(), line), (4, 0), textcoords="offset points", va="center", size=8
        )
    axes.plot([], [], "|", color="black", label="one deal")
    axes.barh(0, 0, color=ORANGE, alpha=0.55, label="mean")
    axes.set_yticks(range(len(_NUMBERS)), _NUMBERS.values())
    axes.set(xlabel="ratio", ylim=(len(_NUMBERS) - 0.4, -0.6))
    axes.margins(x=0.16)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"{name}: heterogeneity")
    axes.legend(loc="best", fontsize=8)


def _natural(part: str) -> tuple[float, str]:
    """Sort labels as numbers where they are numbers."""
    try:
        return float(part.removeprefix("tenth ")), part
    except ValueError:
        return float("inf"), part


FIGURES = by_name(
    figure(
        "fig1",
        title="Figure 1: number of local steps",
        caption=(
            f"Objective against communication rounds of FedHT and FedIterHT for each number of local steps "
            f"K, on both "
            f"simulations at (0.1, 0.1). {_READINGS} {_BANDS}"
        ),
        prepare=_curves(_mildest),
        finish=_named("experiment", "level", "method", "reading"),
        rows=[_ROWS, By("reading", READINGS)],
        columns=[By("method", METHODS)],
        series="local_steps",
        lines=_lines_of_K,
        annotate=partial(_remarks, "local_steps"),
        width=4.6,
    ),
    figure(
        "fig2",
        title="Figure 2: heterogeneity",
        caption=(
            "Objective, as a share of the initial one, against communication rounds of FedHT and FedIterHT "
            f"at three degrees of heterogeneity (α, β), on both simulations. {_LEVELS} {_BANDS}"
        ),
        # The levels' objectives begin decades apart.
        prepare=_curves(_tuned, LEVEL_READINGS, relative=True),
        finish=_named("experiment", "method", "reading"),
        rows=[_ROWS, By("reading", LEVEL_READINGS)],
        columns=[By("method", METHODS)],
        series="level",
        lines=_lines_of_levels,
        annotate=partial(_remarks, "level"),
        y="objective / initial objective",
        width=4.6,
    ),
    figure(
        "fig3",
        title="Figure 3: against Distributed-IHT on the simulations",
        caption=(
            f"Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, against "
            f"communication "
            f"rounds and local iterations, on both simulations at (0.1, 0.1) and (1, 1). {_READINGS} {_BANDS}"
        ),
        prepare=_curves(_first_and_last_level),
        rows=[_ROWS, _LEVELS_IN_ORDER],
        columns=[By("reading", _SHORT), X("round", "iterations")],
    ),
    figure(
        "fig3_full_batch",
        title="Figure 3 with full local gradients",
        caption=(
            f"The same methods as in Figure 3 with all local samples in each gradient, at (0.1, 0.1). "
            f"{_READINGS}"
        ),
        prepare=_curves(_full_batch),
        rows=[_ROWS, _LEVELS_IN_ORDER],
        columns=[By("reading", _SHORT), X("round", "iterations")],
    ),
    Made(
        "fig4",
        "Figure 4: clusters of E2006-tfidf",
        ("t-SNE of a sample of documents, coloured by k-means cluster."),
        embedding,
        _draw_embedding,
    ),
    Made(
        "fig5",
        "Figure 5: clusters of RCV1",
        "t-SNE of a sample of documents, coloured by k-means cluster.",
        embedding,
        _draw_embedding,
    ),
    figure(
        "fig6",
        title="Figure 6: against Distributed-IHT on real data",
        caption=(
            "Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, against "
            "communication rounds, local iterations and bits, on E2006-tfidf, RCV1 and MNIST; each method at "
            "its own best step and K, and at the best step of the printed grid, which ends far below the "
            f"best on RCV1. {_BANDS}"
        ),
        prepare=_curves(_tuned, REAL_READINGS),
        rows=[_ROWS],
        columns=[By("reading", _SHORT_REAL), X("round", "iterations", "bits")],
    ),
    Made(
        "fig6_classes",
        "FedIterHT on MNIST by class (not in the paper)",
        (
            "Left, how much of the support of the server's model and of the clients' models after their "
            "local steps lies in classes that the client holds no sample of; right, the objective. The local "
            "threshold of Algorithm 2 stands beside a variant that keeps tau / 10 weights of each class. One "
            "seed."
        ),
        _classes,
        _draw_classes,
    ),
    Made(
        "rates",
        "Linear rates (not in the paper)",
        (
            "Above, the measured error of FedHT and FedIterHT on a planted problem that meets the theorems' "
            "conditions, with the theorems' bounds, for each K. The first minibatches that they ask for are "
            "larger than what a client holds, so that all samples are used; dashed, batches that begin "
            "smaller and grow as fast, of which the theorems say nothing. Below, the sparsity τ of the "
            "paper's experiments beside the least τ that the theorems ask for in the kindest case: their "
            "conditions are met in none."
        ),
        _rates,
        _draw_rates,
    ),
    Made(
        "tuning",
        "Step-size searches (not in the paper)",
        (
            "Objective at the end of a short run against the step size, for each method and K; stars mark "
            "the best steps, crosses steps that diverged, rings steps that are not stable (moved by their "
            "last bits their runs go elsewhere), the grey band the grid printed in the paper. Below stands "
            "what a method's search cost, over all levels and K."
        ),
        _tuning,
        _draw_tuning,
    ),
    Made(
        "partitions",
        "Partitions (not in the paper)",
        ("Sizes and contents of the clients of the three real data sets."),
        _clients,
        _draw_clients,
    ),
)
