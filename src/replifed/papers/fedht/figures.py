"""Objectives by local steps, heterogeneity and method; clusters, clients, searches, rates, and data sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from replifed.algorithms.hard_thresholding import RATES
from replifed.figures.artefact import Made, by_name
from replifed.figures.curves import note, plot_curves, readable_log_axis
from replifed.figures.grid import By, Curves, Grid, Published, X
from replifed.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    WINE,
    YELLOW,
    Line,
    canvas,
    legend,
    of_seeds,
    panels,
    sequence_lines,
    styled,
)
from replifed.figures.summaries import on_log_scale, summarise
from replifed.papers.fedht.paper import (
    COMPARISON_READINGS,
    EXPERIMENTS,
    LEVEL_READINGS,
    LINES,
    METHODS,
    READINGS,
    REAL_READINGS,
    ROUNDS,
    SPARSITIES,
    experiment_name,
    level_key,
    level_name,
    ordered_levels,
)
from replifed.partition.heterogeneity import group_counts, is_regression, label_groups, summary
from replifed.randomness import generator

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs


_READINGS = (
    "Two readings of the step size: each method at its own best step (and best K), "
    "and all methods at one step, half the inverse of the clients' largest smoothness constant, with the "
    "largest K. The paper names neither; the second was chosen because Figure 3's numbers come out in it."
)
_LEVELS = (
    "Two readings of the step size: each method at its own best step (and best K) at "
    "each level, and one step for all levels, half the inverse of the largest smoothness constant at (1, 1)."
)
_PAGES = "The PDF has a page for each reading; the first is shown."
_BANDS = (
    "Lines are means over seeds, bands 95 % intervals of the mean; a cross marks the round at which a "
    "seed diverged, and seeds that diverge are not in the mean. Numbers of local steps K and step sizes γ "
    "that a method has in all panels stand in the legend, others in the panel. A curve that depends on "
    "rounding, as its twins say, is named in its panel and has no band."
)

# -- Objectives ----------------------------------------------------------------------------------------

_CURVE = ("experiment", "level", "reading", "method", "local_steps", "step")
_RUN = [*_CURVE[1:], "replicate"]


def _curves(
    readings: Collection[str] = READINGS,
    *,
    levels: Collection[int] | None = None,
    every_K: bool = False,
    full_batch: bool = False,
    relative: bool = False,
) -> Callable[[pd.DataFrame, Any], pd.DataFrame]:
    """Return what takes the runs of some readings, and divides their objectives by the first if `relative`.

    Levels are given by number, all are taken by default; `every_K` takes every number of local steps, not
    just the one that a reading prescribes; `full_batch` takes runs with full gradients, not those with
    minibatches. Column chaotic counts each curve's chaotic seeds.
    """

    def prepare(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
        shown = history["reading"].isin(list(readings)) & ((history["batch"] == "full") == full_batch)
        if not every_K:
            shown &= history["tuned"]
        if levels is not None:
            ordered = ordered_levels(history["level"])
            shown &= history["level"].isin([ordered[number] for number in levels])
        history = history[shown]
        if history.empty:
            return history
        if relative:
            first = history.groupby(_RUN, sort=False)["objective"].transform("first")
            history = history.assign(objective=history["objective"] / first)
        # Each run once: at its start.
        at_start = history.assign(chaotic=history["chaotic"] & (history["round"] == 0))
        chaotic = at_start.groupby(_RUN[:-1])["chaotic"].transform("sum")
        return history.assign(chaotic=chaotic, kind=inputs.data_kind(history["experiment"].iloc[0])[0])

    return prepare


def _named(*columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what names panels by some columns, and takes the bands from curves that depend on rounding."""
    readings = {**READINGS, **LEVEL_READINGS, **REAL_READINGS}

    def name(curve: Any) -> str:
        head = experiment_name(curve.experiment, curve.level if "level" in columns else "")
        method = METHODS[curve.method] if "method" in columns else ""
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
    lines = sequence_lines({K: f"K = {K}" for K in order})
    return {K: lines[K] for K in sorted(values)}


def _lines_of_K(frame: pd.DataFrame) -> Mapping[int, Line]:
    return local_steps_lines(frame["local_steps"].unique().tolist())


def _extreme_K(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    K = history["local_steps"]
    return history[K.isin([K.min(), K.max()])].assign(level=history["level"].astype(float))


def _remarks(series: str, ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
    """Add which curves depend on rounding, and whether data are surrogates."""
    noisy = [line.label for key, line in lines.items() if panel.loc[panel[series] == key, "chaotic"].any()]
    if noisy:
        note(ax, "depends on rounding: " + ", ".join(noisy))
    if (panel["kind"] == "surrogate").any():
        middle: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 20, "transform": ax.transAxes}
        ax.text(0.5, 0.5, "surrogate data", **middle, color="#B03A00", fontsize=15, alpha=0.25, zorder=1)


_ROWS = By("experiment", EXPERIMENTS)
figure = partial(
    Grid,
    prefix="FedHT",
    rows=[_ROWS],
    by=(*_CURVE, "chaotic", "kind"),
    series="method",
    lines=LINES,
    annotate=partial(_remarks, "method"),
    settings={"local_steps": "K", "step": "γ"},
    finish=_named("experiment", "level", "reading"),
    y="objective",
    x={"round": "communication rounds", "iterations": "local iterations", "bits": "bits sent"},
    width=4.6,
    height=2.35,
    legend_columns=6,
)
_LEVELS_IN_ORDER = By("level", level_name, level_key)
_PUBLISHED = [
    Published(
        f"published: {fast} rounds ({EXPERIMENTS[name]})",
        f"fig3.{name}.rounds",
        x=fast,
        where={"experiment": name},
    )
    for name, (fast, _, _) in ROUNDS.items()
]
_DOTTED = "Dotted: the round at which the paper has FedIterHT where Distributed-IHT is after " + ", ".join(
    f"{slow} ({EXPERIMENTS[name]})" for name, (_, slow, _) in ROUNDS.items()
)
_SHORT = {"own": "own best step", "common": "common step", "printed": "best printed step"}
# Figure 3, with small and with full batches.
_against_iht = partial(
    figure,
    pages=[By("reading", _SHORT)],
    rows=[_ROWS, _LEVELS_IN_ORDER],
    columns=[X("round", "iterations")],
    published=_PUBLISHED,
)


# -- Figures 4 and 5 -----------------------------------------------------------------------------------

# Okabe and Ito's eight colours, and two more of other lightness: a wine red and a light grey.
_COLOURS = (
    *(BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, BLACK, YELLOW, WINE),
    "#BBBBBB",
)
_MARKERS = "os^DvPX*<>"


def _embedding(inputs: Inputs) -> pd.DataFrame:
    """Clusters of an experiment's samples in the plane, by t-SNE.

    The paper does not say how its pictures were made. Here some samples are drawn at random, reduced to a few
    principal directions (not centred, so that sparse ones stay sparse), and embedded from these.

    Column silhouette is the clusters' mean silhouette among the principal directions, near 0 where they run
    into each other; samples is the size of the data set.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    (experiment,), chosen = inputs.experiments(), inputs.options
    X, cluster = inputs.data(experiment).X, inputs.partition(experiment).cluster
    rng = generator(inputs.seed, 0, None, f"embedding {experiment}")
    rows = np.sort(rng.permutation(X.shape[0])[: chosen.rows])
    sample, cluster = X[rows].astype(np.float64, copy=False), cluster[rows]
    # No more directions and neighbours than there are; t-SNE looks at three times its perplexity.
    directions = min(chosen.components, min(sample.shape) - 1)
    perplexity = min(chosen.perplexity, (len(rows) - 1) / 3)
    svd = TruncatedSVD(directions, random_state=int(rng.integers(2**31)))
    tsne = TSNE(perplexity=perplexity, random_state=int(rng.integers(2**31)), n_jobs=1)
    reduced = svd.fit_transform(sample)
    with threadpool_limits(1):  # threads would add up the repulsive forces in any order
        flat = np.round(tsne.fit_transform(reduced).astype(np.float64), 4)
    frame = pd.DataFrame({"experiment": experiment, "x": flat[:, 0], "y": flat[:, 1], "cluster": cluster})
    silhouette = round(float(silhouette_score(reduced, cluster)), 4)
    return frame.assign(silhouette=silhouette, samples=X.shape[0])


@styled
def _draw_embedding(frame: pd.DataFrame) -> Figure:
    first, clusters = frame.iloc[0], frame.groupby("cluster")
    name = EXPERIMENTS.get(first["experiment"], first["experiment"])
    title = f"FedHT · t-SNE of the clusters of {name}"
    made, [[axes]] = canvas(1, 1, title=title, width=5.6, height=4.2)
    for (cluster, part), colour, marker in zip(clusters, cycle(_COLOURS), cycle(_MARKERS), strict=False):
        axes.scatter(
            part["x"],
            part["y"],
            s=7,
            marker=marker,
            facecolors=colour,
            edgecolors="#333333",  # else yellow would be lost on white
            linewidths=0.15,
            alpha=0.85,
            label=f"{cluster} ({len(part) / len(frame):.1%})",
        )
    plate = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "#333333", "lw": 0.5, "alpha": 0.85}
    for cluster, part in clusters:
        # At the sample nearest to all others: the mean may lie far from all.
        points = part[["x", "y"]].to_numpy()
        middle = points[cdist(points, points).sum(axis=1).argmin()]
        axes.annotate(str(cluster), middle, ha="center", va="center", fontweight="bold", bbox=plate)
    axes.set(xlabel="t-SNE coordinate 1", ylabel="t-SNE coordinate 2")
    axes.set_aspect("equal", adjustable="datalim")
    shown = f"{len(frame):,} of {first['samples']:,} samples"
    axes.set_title(f"{name}: {shown}, silhouette {first['silhouette']:.3f}")
    _legend_beside(axes, "cluster (share)", markerscale=2.2, alignment="left")
    return made


def _legend_beside(axes: Axes, title: str, **more: Any) -> None:
    axes.legend(title=title, loc="center left", bbox_to_anchor=(1.0, 0.5), **more)


# -- Classes that a client does not see ----------------------------------------------------------------

_VARIANTS = {
    "paper": Line("threshold over all weights (Algorithm 2)", BLUE),
    "class": Line("threshold in each class", VERMILLION),
    "server": Line("server's model, either way", GREY, "--"),
}
_SEEN = {"local": "non-zeros in classes that the client does not see", "objective": "objective"}


def _classes(inputs: Inputs) -> pd.DataFrame:
    """Share of unseen classes in the supports, and the objective, round by round, for both variants."""
    history = inputs.run("mnist_classes", "fediterht")
    # The local steps of a round begin at the server's model of the round before.
    history = history.assign(local=history.groupby(["variant", "replicate"])["local"].shift(-1))
    columns = ["variant", "round", "server", "local", "objective", "local_steps", "step"]
    return history.loc[history["local"].notna(), columns].reset_index(drop=True)


def _shares_and_objective(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of what `_classes` returns; column metric is "local" or "objective"."""
    later = frame[frame["round"] > 0]
    # Each class is seen by as many clients: of a model that all share, the same part is unseen.
    server = later[later["variant"] == "class"].assign(variant="server", local=later["server"])
    curves = []
    for metric, shown in (("local", later), ("local", server), ("objective", frame)):
        ends = dict.fromkeys(("mean", "low", "high"), shown[metric])
        curves.append(shown.assign(metric=metric, **ends))
    return pd.concat(curves)


# -- Theorems 1 and 2 ----------------------------------------------------------------------------------

_LARGEST_K = 10


def _rates(inputs: Inputs) -> pd.DataFrame:
    """Measured error and bound by round; and for each experiment of the paper the tau it uses and needs.

    Column series is "error" (|x_t - x*|^2, mean over seeds), "small batches" (the same, begun with fewer
    samples than the theorem asks for), "bound" (theta^t |x_0 - x*|^2), "tau used" or "tau needed" (by the
    theorem, at kappa = 1 and tau* = 1, the kindest case that any data could offer). Column holds says whether
    the theorem's conditions are met; first_batch is the largest of the seeds.
    """
    planted = inputs.experiment("planted")
    frames = []
    for method in inputs.methods("planted"):
        history = inputs.run("planted", method)
        first_batch = history.groupby(["local_steps", "batch"])["first_batch"].max()
        averages = on_log_scale(summarise(history, ["local_steps", "batch"], "error"))
        for (K, batch), curve in averages.groupby(["local_steps", "batch"], sort=False):
            rate = RATES[method](planted.condition, planted.sparsity, planted.planted, int(K))
            theorem = batch == "theorem"
            measured = curve[["round", "mean", "low", "high", "seeds"]].assign(
                theta=rate.theta,
                holds=rate.holds and theorem,
                first_batch=first_batch[K, batch],
            )
            series = "error" if theorem else "small batches"
            head: dict[str, Any] = {"panel": f"{METHODS[method]}, planted problem", "series": series}
            head |= {"method": method, "experiment": "planted", "local_steps": int(K)}
            frames.append(pd.DataFrame({**head, **measured}))
            if theorem:
                bound = curve["mean"].iloc[0] * rate.theta ** curve["round"]
                frames.append(frames[-1].assign(series="bound", mean=bound, low=bound, high=bound))
        for name, tau in SPARSITIES.items():
            rate = RATES[method](1.0, tau, 1, _LARGEST_K)
            taus = pd.Series({"tau used": float(tau), "tau needed": rate.least_sparsity})
            conditions = {"panel": f"{METHODS[method]}, conditions on the paper's data", "series": taus.index}
            conditions |= {"method": method, "experiment": name, "local_steps": _LARGEST_K, "round": 0}
            conditions |= {"mean": taus.array, "low": taus.array, "high": taus.array, "seeds": 0}
            conditions |= {"theta": rate.theta, "holds": rate.holds, "first_batch": 0}
            frames.append(pd.DataFrame(conditions))
    return pd.concat(frames, ignore_index=True)


@styled
def _draw_rates(frame: pd.DataFrame) -> Figure:
    """Draw what `_rates` returns: above the rates, below the conditions, a column for each method."""
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    title = "FedHT · Linear rates (not in the paper)"
    made, axes = canvas(2, len(methods), title=title, width=4.8, height=2.9)
    planted = frame["experiment"] == "planted"
    lines = _lines_of_K(frame[planted])
    first = frame.loc[frame["series"] == "small batches", "first_batch"].max()
    bound = Line("bound θᵗ |x₀ − x*|²", GREY, ":", "", 1.2)
    small = Line(f"batches from {first:.0f} samples on", GREY, "--", "", 0.8)
    for ax, method in zip(axes[0], methods, strict=True):
        panel = frame[planted & (frame["method"] == method) & (frame["mean"] > 0)]
        for end in ("low", "high"):
            panel[end] = panel[end].where(panel["series"] == "error", panel["mean"])
        limits = panel["low"].min() / 2, panel["high"].max() * 2
        for series, look in (("error", None), ("bound", bound), ("small batches", small)):
            own = {K: look._replace(color=line.color) if look else line for K, line in lines.items()}
            plot_curves(ax, panel[panel["series"] == series], "local_steps", own, log_y=True, limits=limits)
        holds = panel.loc[panel["series"] == "error", "holds"].all()
        met = "conditions met" if holds else "CONDITIONS NOT MET"
        ax.set_title(f"{panel['panel'].iloc[0]}: {met}", loc="left")
        ax.set(xlabel="communication rounds", ylabel="|xₜ − x*|²")
    for ax, method in zip(axes[1], methods, strict=True):
        _draw_conditions(ax, frame[~planted & (frame["method"] == method)])
    taus = [Line("τ used", "black", "", "o"), Line("τ needed even at κ = 1, τ* = 1", VERMILLION, "", ">")]
    legend(made, [*lines.values(), bound, small, *taus, *of_seeds(frame)])
    return made


def _measured_and_bound(frame: pd.DataFrame) -> pd.DataFrame:
    """Of what `_rates` returns the curves on the planted problem, told apart by series and K."""
    kept = frame[(frame["experiment"] == "planted") & (frame["mean"] > 0)]
    kept = kept.assign(curve=kept["series"] + ", K = " + kept["local_steps"].astype(str))
    measured = kept["series"] == "error"
    return kept.assign(**{end: kept[end].where(measured) for end in ("low", "high")})


def _lines_of_rates(frame: pd.DataFrame) -> dict[str, Line]:
    """A colour for each K, and dashes for the bound and for small batches."""
    return {
        f"{series}, K = {K}": line._replace(dashes=dashes or line.dashes, label=f"{said}{line.label}")
        for series, dashes, said in (
            *(("error", "", ""), ("bound", ":", "bound, ")),
            ("small batches", "--", "small batches with "),
        )
        for K, line in _lines_of_K(frame).items()
    }


def _draw_conditions(ax: Axes, frame: pd.DataFrame) -> None:
    used, needed = (frame[frame["series"] == f"tau {one}"] for one in ("used", "needed"))
    at = np.arange(len(used))[::-1]
    ax.hlines(at, used["mean"], needed["mean"], color="#BBBBBB", linewidth=1.2, zorder=2)
    ax.plot(used["mean"], at, "o", color="black", zorder=3)
    ax.plot(needed["mean"], at, ">", color=VERMILLION, markersize=6, zorder=3)
    for y, holds in zip(at, used["holds"], strict=True):
        text = "conditions met" if holds else "conditions not met"
        ax.text(0.99, y, text, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=7.5)
    ax.set(xscale="log", xlim=(used["mean"].min() / 2, needed["mean"].max() * 1e4))
    ax.set(ylim=(-0.6, len(at) - 0.1), xlabel="sparsity level τ")
    ax.set_yticks(at, [EXPERIMENTS[name] for name in used["experiment"]])
    ax.set_title(frame["panel"].iloc[0], loc="left")


# -- Searches of the steps -----------------------------------------------------------------------------

# The paper's grid, which the searches here extend while the best step lies at its edge.
PRINTED_STEPS = (0.001, 10.0)
_BEST_STEP = Line("best step", "black", "", "*")
_ONE_STEP = Line("one local step", GREEN, "-", "^")


def _tuning(inputs: Inputs) -> pd.DataFrame:
    """Every point of every search; the score of a step that diverged is infinite.

    That of a step that was given up, since the objective rose, is what it had come to (`tune.Search`).
    """
    frames = []
    for experiment, method in inputs.searches():
        outcome = inputs.tuned(experiment, method)
        for level, searches in outcome["levels"].items():
            panel = f"{experiment_name(experiment, level)}, {METHODS[method]}"
            head = {"panel": panel, "experiment": experiment, "level": level, "method": method}
            for K, search in searches["by_local_steps"].items():
                steps = np.array(search["steps"])
                best = steps == search["step"]
                points = {
                    "local_steps": int(K),
                    "step": steps,
                    "score": search["scores"],
                    "best": best,
                    "chosen": best & (int(K) == searches["local_steps"]),
                    "rejected": np.isin(steps, search["rejected"]),
                    "chaotic": search["chaotic"],
                }
                frames.append(pd.DataFrame({**head, **points, **outcome["cost"]}))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(score=frame["score"].astype(float).fillna(np.inf))


_SEARCH_AXES = "step size", "objective"


def _scores(frame: pd.DataFrame) -> tuple[float, float]:
    """Least and largest score to show of a data set and level."""
    finite = frame[np.isfinite(frame["score"])]
    # The smallest steps hardly move; steps on the brink of divergence would squeeze all other curves.
    hardly_moved = finite[finite["step"] == finite["step"].min()]["score"].max()
    return finite["score"].min(), min(finite["score"].max(), 3 * hardly_moved)


def _searched(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of what `_tuning` returns, one for each K; and its best steps."""
    highest = frame.groupby(["experiment", "level"]).apply(lambda part: _scores(part)[1]).rename("highest")
    kept = frame.join(highest, on=["experiment", "level"])
    kept = kept[kept["score"] <= kept["highest"]].assign(mean=kept["score"])
    kept = kept.assign(curve=kept["local_steps"].astype(str))
    return pd.concat([kept, kept[kept["best"]].assign(curve="best")], ignore_index=True)


def _lines_of_searches(frame: pd.DataFrame) -> dict[str, Line]:
    lines = local_steps_lines(set(frame["local_steps"]) - {1}) | {1: _ONE_STEP}
    return {str(K): line for K, line in lines.items()} | {"best": _BEST_STEP}


@styled
def _draw_tuning(frame: pd.DataFrame) -> Figure:
    """Draw what `_tuning` returns for one data set and level: a panel for each method."""
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    lines = local_steps_lines(set(frame["local_steps"]) - {1})
    where = experiment_name(*frame[["experiment", "level"]].iloc[0])
    title = f"FedHT · Step-size searches on {where} (not in the paper)"
    made, cells = panels(len(methods), 2, title=title, width=3.5, height=2.3)
    low, high = _scores(frame)
    limits = low / (high / low) ** 0.1, high * (high / low) ** 0.25
    for ax, method in zip(cells, methods, strict=True):
        searched = frame[frame["method"] == method]
        runs, rounds, bits = searched[["runs", "rounds", "bits"]].iloc[0]
        cost = f"{runs:,.0f} runs, {rounds:,.0f} rounds, {bits:.1e} bits"
        ax.text(0.02, 0.03, cost, transform=ax.transAxes, fontsize=7, color="#555555", zorder=5)
        _draw_search(ax, searched, lines | {1: _ONE_STEP}, limits)
        ax.set_title(METHODS[method], loc="left")
        ax.set_xlim(frame["step"].min() / 1.5, frame["step"].max() * 1.5)
        ax.set(xlabel=_SEARCH_AXES[0], ylabel=_SEARCH_AXES[1])
    marks = [
        _ONE_STEP,
        _BEST_STEP,
        Line("diverged", GREY, "", "x"),
        Line("not stable", GREY, "", "o"),
        Line("the paper's grid", "#E3E8EE", "-", "", 8),
    ]
    legend(made, [*lines.values(), *marks], columns=5)
    return made


def _draw_search(ax: Axes, frame: pd.DataFrame, lines: dict[int, Line], limits: tuple[float, float]) -> None:
    ax.axvspan(*PRINTED_STEPS, color="#E3E8EE", zorder=0, linewidth=0)
    ax.set(xscale="log", yscale="log", ylim=limits)
    ax.xaxis.set_minor_locator(NullLocator())  # over eight decades they would be a grey band
    readable_log_axis(ax.yaxis, *limits)
    for number, (K, line) in enumerate(lines.items()):
        curve = frame[frame["local_steps"] == K].sort_values("step")
        lost = curve[~np.isfinite(curve["score"])]
        finite = curve.drop(lost.index)
        mark = partial(ax.plot, color=line.color, linestyle="", zorder=4)
        ax.plot(finite["step"], finite["score"], **line.look, markersize=2.5, linewidth=1.2, zorder=3)
        # One row of crosses per K, below the upper edge.
        height = np.full(len(lost), 0.97 - 0.045 * number)
        mark(lost["step"], height, marker="x", markersize=3.5, transform=ax.get_xaxis_transform())
        shaky, best = finite[finite["rejected"]], curve[curve["best"]]
        mark(shaky["step"], shaky["score"], marker="o", markersize=6, fillstyle="none")
        look: dict[str, Any] = {"markersize": 8, "markeredgecolor": GREY, "markeredgewidth": 0.4}
        if best["chosen"].any():
            look = {"markersize": 11, "markeredgecolor": "black", "markeredgewidth": 0.8}
        mark(best["step"], best["score"], marker="*", **look)


# -- Clients -------------------------------------------------------------------------------------------

# The numbers of the last panel, top to bottom; all are ratios, so that one axis serves them.
_NUMBERS = {
    "label_distance": "label distance",
    "label_distance_random": "label distance,\nrandom deal",
    "size_variation": "size variation",
    "size_max_over_mean": "largest / mean size",
    "effective_share": "effective clients\n/ clients",
}


def _clients(inputs: Inputs) -> pd.DataFrame:
    """Describe the clients of each experiment.

    Column panel is "sizes" (samples of the client of each rank, largest first, every replicate), "clusters"
    or "labels" (share of each cluster and of each label, or tenth of the targets, in each client of the first
    replicate, the clients ranked by their clusters), or "summary" (`part` names a number of
    `replifed.partition.heterogeneity.summary`, or effective_share; every replicate).
    """
    frames = []
    for experiment in inputs.experiments():
        described = _description(inputs.partition(experiment), inputs.data(experiment).y)
        for panel, replicate, (client, rank, part, value) in described:
            head = {"experiment": experiment, "panel": panel, "replicate": replicate}
            columns = {"client": client, "rank": rank, "part": part, "value": value}
            frames.append(pd.DataFrame({**head, **columns}))
    return pd.concat(frames, ignore_index=True)


def _description(partition: Any, y: NDArray) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    """Panel, replicate, and columns client, rank, part and value."""
    for replicate, client in partition.clients.items():
        size = np.bincount(client)
        order = np.argsort(-size, kind="stable")
        yield "sizes", replicate, (order, np.arange(len(size)), "", size[order].astype(float))
        numbers = summary(client, y)
        numbers["effective_share"] = numbers["effective_clients"] / numbers["clients"]
        yield "summary", replicate, (-1, -1, list(_NUMBERS), [numbers[name] for name in _NUMBERS])
    first, client = next(iter(partition.clients.items()))
    in_cluster = group_counts(client, partition.cluster)
    # Clients with the same largest cluster stand side by side.
    order = np.lexsort((*(-in_cluster.T[::-1]), np.argmax(in_cluster > 0, axis=1)))
    names, group = label_groups(y)
    clusters = np.arange(in_cluster.shape[1]).astype(str)
    of_groups = group_counts(client, group)
    for panel, parts, counts in (("clusters", clusters, in_cluster), ("labels", np.array(names), of_groups)):
        shares = (counts / counts.sum(axis=1, keepdims=True))[order]
        rank, part = np.nonzero(shares)
        yield panel, first, (order[rank], rank, parts[part], shares[rank, part])


@styled
def _draw_clients(frame: pd.DataFrame) -> Figure:
    """Draw the clients of one data set from the table alone."""
    experiment = frame["experiment"].iloc[0]
    heading = f"FedHT · Partitions of {EXPERIMENTS.get(experiment, experiment)} (not in the paper)"
    made, cells = panels(4, 2, title=heading, width=3.5, height=2.6)
    shown = dict(iter(frame.groupby("panel")))
    tenths = shown["labels"]["part"].str.startswith("tenth").any()
    _draw_sizes(cells[0], shown["sizes"])
    _draw_shares(cells[1], shown["clusters"], "cluster")
    _draw_shares(cells[2], shown["labels"], "tenth of\ntargets" if tenths else "label")
    _draw_numbers(cells[3], shown["summary"])
    parts = "targets" if tenths else "labels"
    titles = "sizes of the clients", "clusters of each client", f"{parts} of each client", "heterogeneity"
    for axes, title in zip(cells, titles, strict=True):
        axes.set_title(title, loc="left")
    return made


def _draw_sizes(axes: Axes, frame: pd.DataFrame) -> None:
    for replicate, part in frame.groupby("replicate"):
        label = "one deal" if replicate == frame["replicate"].min() else None
        axes.plot(part["rank"] + 1, part["value"], color=BLUE, linewidth=0.9, alpha=0.6, label=label)
    mean = frame["value"].mean()
    axes.axhline(mean, color=VERMILLION, linestyle="--", linewidth=1.1, label=f"mean, {mean:,.0f}")
    axes.set(xlabel="client, largest first", ylabel="samples", ylim=(0, 1.12 * frame["value"].max()))
    axes.legend(loc="best")


def _draw_shares(axes: Axes, frame: pd.DataFrame, title: str) -> None:
    """Stack each client's shares on its rank."""
    frame = frame.assign(part=frame["part"].str.removeprefix("tenth ").astype(int))
    shares = frame.pivot_table("value", "part", "rank", fill_value=0.0)
    edges = np.arange(shares.shape[1] + 1) + 0.5
    axes.stackplot(
        edges,
        np.column_stack([shares, shares.iloc[:, -1]]),
        labels=shares.index.astype(str),
        colors=_COLOURS,
        hatch=[""] * len(_COLOURS) + ["/////"] * len(_COLOURS),  # beyond ten they come round again, hatched
        edgecolor="white",  # of the hatch
        linewidth=0.0,
        step="post",
    )
    axes.set(xlabel="client, by clusters", ylabel="share of its samples", xlim=edges[[0, -1]], ylim=(0, 1))
    axes.grid(False)
    small = {"fontsize": 7, "title_fontsize": 7.5, "handlelength": 1.2, "labelspacing": 0.25}
    _legend_beside(axes, title, **small, reverse=True)


def _draw_numbers(axes: Axes, frame: pd.DataFrame) -> None:
    values = frame.groupby("part")["value"].agg(["mean", "max"]).loc[list(_NUMBERS)]
    colours = [GREY if number.endswith("random") else ORANGE for number in _NUMBERS]
    lines = frame["part"].map(list(_NUMBERS).index)
    axes.scatter(frame["value"], lines, s=36, color="black", marker="|", linewidths=1.0, label="one deal")
    axes.barh(range(len(values)), values["mean"], height=0.55, color=colours, alpha=0.55, label="mean")
    for line, (mean, end) in enumerate(values.to_numpy()):
        text = f"{mean:.2f}"
        axes.annotate(text, (end, line), (4, 0), textcoords="offset points", va="center", size=8)
    axes.set_yticks(range(len(_NUMBERS)), _NUMBERS.values())
    axes.set(xlabel="ratio", ylim=(len(_NUMBERS) - 0.4, -0.6))
    axes.margins(x=0.16)
    axes.grid(axis="y", visible=False)
    axes.legend(loc="best", fontsize=7.5)


# -- Tables --------------------------------------------------------------------------------------------


def _table2(inputs: Inputs) -> pd.DataFrame:
    """A row for each experiment, of the files used here, since the paper's own table could not be had.

    Sizes are those over clients and replicates; what comes after them are means over replicates of
    `replifed.partition.heterogeneity.summary`. Classes are 0 for regression.
    """
    rows = []
    for experiment in inputs.experiments():
        data, partition = inputs.data(experiment), inputs.partition(experiment)
        samples, features = data.X.shape
        nonzeros = int((data.X != 0).sum())
        deals = pd.DataFrame([summary(client, data.y) for client in partition.clients.values()])
        means = ["size_variation", "effective_clients", "label_distance", "label_distance_random"]
        rows.append(
            {
                "experiment": experiment,
                "dataset": data.meta["id"],
                "samples": samples,
                "features": features,
                "classes": 0 if is_regression(data.y) else len(np.unique(data.y)),
                "nonzeros": nonzeros,
                "density": nonzeros / (samples * features),
                "clusters": int(partition.cluster.max()) + 1,
                "clients": deals["clients"].max(),
                "replicates": len(deals),
                "size_min": deals["size_min"].min(),
                "size_median": deals["size_median"].mean(),
                "size_max": deals["size_max"].max(),
                **deals[means].mean(),
                "kind": data.meta["kind"],
                "stamp": data.meta["stamp"],
            }
        )
    return pd.DataFrame(rows)


_TEXTS = {
    "Data set": "{name}",
    "Task": "{task}",
    "Samples": "{samples:,}",
    "Features": "{features:,}",
    "Non-zeros": "{nonzeros:,}",
    "Density": "{density:.4f}",
    "Clusters": "{clusters}",
    "Clients": "{clients}",
    "Client size (min / median / max)": "{size_min:,} / {size_median:,.0f} / {size_max:,}",
    "Size variation": "{size_variation:.2f}",
    "Effective clients": "{effective_clients:.0f}",
    "Label distance (random deal)": "{label_distance:.3f} ({label_distance_random:.3f})",
    "Source": "{source}",
}


def _render_table2(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people: texts, rounded, with readable headers."""
    rows = []
    for row in frame.to_dict("records"):
        row["name"] = EXPERIMENTS.get(row["experiment"], row["experiment"])
        row["task"] = f"{row['classes']} classes" if row["classes"] else "regression"
        row["source"] = "{kind} ({stamp})".format(**row) if row["kind"] == "substitute" else row["kind"]
        rows.append({header: text.format(**row) for header, text in _TEXTS.items()})
    return pd.DataFrame(rows)


FIGURES = by_name(
    figure(
        "fig1",
        title="Figure 1: number of local steps",
        caption=(
            "Objective against communication rounds of FedHT and FedIterHT for each number of local steps K, "
            f"on both simulations at (0.1, 0.1). {_READINGS} {_PAGES} {_BANDS}"
        ),
        prepare=_curves(levels=[0], every_K=True),
        finish=_named("experiment", "level", "method", "reading"),
        pages=[By("reading", READINGS)],
        columns=[By("method", METHODS)],
        series="local_steps",
        settings={"step": "γ"},
        lines=_lines_of_K,
        annotate=partial(_remarks, "local_steps"),
    ),
    figure(
        "fig2",
        title="Figure 2: heterogeneity",
        caption=(
            "Objective, as a share of the initial one, against communication rounds of FedHT and FedIterHT "
            f"at three degrees of heterogeneity (α, β), on both simulations. {_LEVELS} {_PAGES} {_BANDS}"
        ),
        # The levels' objectives begin decades apart.
        prepare=_curves(LEVEL_READINGS, relative=True),
        finish=_named("experiment", "method", "reading"),
        pages=[By("reading", LEVEL_READINGS)],
        columns=[By("method", METHODS)],
        series="level",
        lines=By("level", lambda level: f"(α, β) = {level_name(level)}", level_key).lines,
        annotate=partial(_remarks, "level"),
        y="objective / initial objective",
    ),
    _against_iht(
        "fig3",
        title="Figure 3: against Distributed-IHT on the simulations",
        caption=(
            "Objective of FedHT, FedIterHT and Distributed-IHT, on Simulation I with dense FedAvg for "
            "reference, against communication rounds and local iterations, on both simulations at (0.1, 0.1) "
            f"and (1, 1). {_READINGS} A third reading keeps to the printed grid of steps, of which few "
            f"converge on Simulation I. {_DOTTED}. {_PAGES} {_BANDS}"
        ),
        prepare=_curves(COMPARISON_READINGS, levels=[0, -1]),
    ),
    _against_iht(
        "fig3_full_batch",
        title="Figure 3 with full local gradients",
        caption=(
            f"The same methods as in Figure 3 with all local samples in each gradient, at (0.1, 0.1). "
            f"{_READINGS} {_DOTTED}. {_PAGES}"
        ),
        prepare=_curves(full_batch=True),
    ),
    *(
        Made(
            name,
            title,
            "t-SNE of a sample of documents, coloured by k-means cluster.",
            _embedding,
            _draw_embedding,
        )
        for name, title in (
            ("fig4", "Figure 4: clusters of E2006-tfidf"),
            ("fig5", "Figure 5: clusters of RCV1"),
        )
    ),
    figure(
        "fig6",
        title="Figure 6: against Distributed-IHT on real data",
        caption=(
            "Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, against "
            "communication rounds, local iterations and bits, on E2006-tfidf, RCV1 and MNIST; each method at "
            "its own best step and K, and at the best step of the printed grid, which ends far below the "
            f"best on RCV1. The PDF has a page for each horizontal axis. {_BANDS}"
        ),
        prepare=_curves(REAL_READINGS),
        pages=[X("round", "iterations", "bits")],
        columns=[By("reading", _SHORT)],
        width=3.2,
    ),
    Grid(
        "fig6_classes",
        prefix="FedHT",
        title="FedIterHT on MNIST by class (not in the paper)",
        caption=(
            "Left, how much of the support of the server's model and of the clients' models after their "
            "local steps lies in classes that the client holds no sample of; right, the objective. The local "
            "threshold of Algorithm 2 stands beside a variant that keeps tau / 10 weights of each class."
        ),
        source=_classes,
        band="range",
        shown=_shares_and_objective,
        columns=[By("metric", _SEEN)],
        series="variant",
        lines=_VARIANTS,
        metric="metric",
        y={"local": "share, mean over clients", "objective": "objective"},
        x={"round": "communication rounds"},
        log_y=False,
        settings={"local_steps": "K", "step": "γ"},
        height=3.0,
    ),
    Made(
        "rates",
        "Linear rates (not in the paper)",
        (
            "Above, the measured error of FedHT and FedIterHT on a planted problem that meets the theorems' "
            "conditions, with the theorems' bounds, for each K. No threshold removes anything there. The "
            "first minibatches that they ask for are larger than what a client holds, so that all samples "
            "are used; dashed, batches that begin smaller and grow as fast, of which the theorems say "
            "nothing. Below, the sparsity τ of the paper's experiments beside the least τ that the theorems "
            "ask for in the kindest case: their conditions are met in none."
        ),
        _rates,
        _draw_rates,
        curves=Curves(
            shown=_measured_and_bound,
            columns=[By("method", METHODS)],
            series="curve",
            lines=_lines_of_rates,
            x={"round": "communication rounds"},
            y="|xₜ − x*|²",
            log_y=True,
        ),
    ),
    figure(
        "bias",
        title="Bias and dissimilarity (not in the paper)",
        caption=(
            "Squared distance to the solution of FedHT and FedIterHT, for the smallest and the largest K, on "
            "planted problems whose clients' minimisers scatter in all coordinates with variance α, drawn "
            "anew for each α; where they do not, the theorems' conditions hold. Gradients are full, and "
            "neither the solution nor the gradient at it depends on α: what the curves come to rest at is "
            "the bias. Lines are geometric means over seeds, bands from the least to the largest."
        ),
        by=("experiment", "level", "method", "local_steps"),
        prepare=_extreme_K,
        finish=None,
        values=("error",),
        centre="geometric",
        band="range",
        axes=(),
        rows=[_ROWS, By("local_steps", "K = {}".format)],
        columns=[By("method", METHODS)],
        series="level",
        lines=By("level", "α = {:g}".format).lines,
        annotate=None,
        settings={},
        y="|xₜ − x*|²",
        x={"round": "communication rounds"},
        log_y=True,
    ),
    Made(
        "tuning",
        "Step-size searches (not in the paper)",
        (
            "Objective at the end of a short run against the step size, for each method and K; stars mark "
            "the best steps, crosses steps that diverged, rings steps that are not stable (moved by their "
            "last bits their runs go elsewhere), the grey band the grid printed in the paper. Below stands "
            "what a method's search cost, over all levels and K. The PDF has a page for each data set and "
            "level."
        ),
        _tuning,
        _draw_tuning,
        pages=("experiment", "level"),
        curves=Curves(
            shown=_searched,
            pages=[_ROWS, _LEVELS_IN_ORDER],
            columns=[By("method", METHODS)],
            series="curve",
            lines=_lines_of_searches,
            x={"step": _SEARCH_AXES[0]},
            x_column="step",
            y=_SEARCH_AXES[1],
            log_y=True,
        ),
    ),
    Made(
        "partitions",
        "Partitions (not in the paper)",
        "Sizes and contents of the clients of the three real data sets, a page of the PDF for each.",
        _clients,
        _draw_clients,
        pages=("experiment",),
    ),
)

TABLES = by_name(
    Made(
        "table2",
        "Table 2: data sets",
        "The real data sets, as found and as split between the clients.",
        _table2,
        _render_table2,
    ),
)
