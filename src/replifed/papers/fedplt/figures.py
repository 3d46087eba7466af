"""Rates of Fed-PLT against its parameters, bounds of the theory, and privacy against accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.algorithms.splitting_theory import zeta
from replifed.figures.artefact import Made, by_name
from replifed.figures.grid import Grid, X
from replifed.figures.style import GREEN, PURPLE, SKY, Line, canvas, housed, legend
from replifed.figures.summaries import on_log_scale, over_repetitions
from replifed.papers.fedplt.paper import (
    BEST_EPOCHS,
    BEST_RHO,
    BOUND,
    EMPIRICAL,
    EXACT,
    FEDPLT_RATES,
    PRINTED,
    SECOND,
    SEQUENCE,
)
from replifed.papers.fedplt.theory import bounded, norms, zetas
from replifed.privacy.renyi import best_epsilon, composed_gaussian, proposition4

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

figure = partial(
    Grid,
    prefix="Fed-PLT",
    y="convergence rate",
    x={"rho": "ρ", "steps": "local epochs N_e"},
    log_y=False,
    height=3.1,
    legend_columns=2,
)


def _note_published(ax: Axes, at: float, text: str, *, left: bool = False) -> None:
    """Mark a value of the horizontal axis that the paper names, above on its right or below on its left."""
    ax.axvline(at, color=PRINTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ax.annotate(
        text,
        (at, 0.04 if left else 0.98),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        xytext=(-4 if left else 4, 0),
        ha="right" if left else "left",
        va="bottom" if left else "top",
        fontsize=8,
    )


# -- Figures 2 and 3 -----------------------------------------------------------------------------------

LINES = {
    "empirical": Line("Fed-PLT, empirical", EMPIRICAL, "-", "o"),
    "exact": Line("exact Peaceman–Rachford, empirical", EXACT, (0, (5, 1.5))),
    "zeta": Line("ζ, bound for exact splitting", BOUND, (0, (4, 1.5, 1, 1.5))),
}


def _by_rho(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Mean rate and mean zeta for each rho."""
    history = inputs.run("penalty", "fedplt")
    bounds = [zeta(*moduli) for moduli in zip(history["low"], history["high"], history["rho"], strict=True)]
    frames = [
        over_repetitions(history, ("rho",), "rate").assign(curve="empirical"),
        over_repetitions(history.assign(zeta=bounds), ("rho",), "zeta").assign(curve="zeta"),
    ]
    return pd.concat(frames, ignore_index=True)


def _mark_best_rho(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
    _note_published(ax, BEST_RHO, f"published minimum, ρ ≈ {BEST_RHO:g}", left=True)
    empirical = panel[panel["curve"] == "empirical"]
    best = empirical.loc[empirical["mean"].idxmin()]
    ax.annotate(
        f"{best['mean']:.3f} at ρ = {best['rho']:.2g}",
        (best["rho"], best["mean"]),
        textcoords="offset points",
        xytext=(10, -4),
        fontsize=8,
    )


def _by_epochs(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Mean rate for each N_e; rate and bound of exact splitting at the ends of the axis."""
    history = inputs.run("epochs", "fedplt")
    rho = settings["experiments"]["epochs"]["rho"]
    ends = (history["steps"][history["steps"] > 0].min(), history["steps"].max())
    exact = history[history["solver"] == "exact"]
    bound = exact.assign(rate=[zeta(*m, rho) for m in zip(exact["low"], exact["high"], strict=True)])
    frames = [
        over_repetitions(history[history["solver"] == "gradient"], ("steps",), "rate").assign(
            curve="empirical"
        ),
        *(
            over_repetitions(part.assign(steps=end), ("steps",), "rate").assign(curve=name)
            for name, part in (("exact", exact), ("zeta", bound))
            for end in ends
        ),
    ]
    return pd.concat(frames, ignore_index=True).assign(rho=rho)


def _mark_best_epochs(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
    _note_published(ax, BEST_EPOCHS, f"published minimum, N_e ≈ {BEST_EPOCHS}")


# -- Readings of the set-up ----------------------------------------------------------------------------

SET_UPS = {
    ("sum", "planted"): Line("sum of the losses, planted model (used here)", SEQUENCE[0], "-", "o"),
    ("mean", "planted"): Line(
        "mean of the losses (as printed), planted model", SEQUENCE[1], (0, (4, 2)), "s"
    ),
    ("sum", "classification"): Line("sum, make_classification", SEQUENCE[2], "-", "^"),
    ("mean", "classification"): Line("mean, make_classification", SEQUENCE[3], (0, (4, 2)), "D"),
}


def _set_ups(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Mean rates for each rho and reading."""
    return over_repetitions(inputs.run("readings", "fedplt"), ("loss", "labels", "rho"), "rate")


def _as_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(set_up=list(zip(frame["loss"], frame["labels"], strict=True)))


def _mark_published_rate(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], x: str) -> None:
    _note_published(ax, BEST_RHO, "published minimum", left=True)
    ax.axhline(FEDPLT_RATES[0], color=PRINTED, linewidth=0.8, linestyle=(0, (1, 2)))


# -- Bounds --------------------------------------------------------------------------------------------

BOUND_LINES = {
    "gradient": Line("empirical, gradient", EMPIRICAL, "-", "o"),
    "accelerated": Line("empirical, accelerated", SECOND, "-", "s"),
    "zeta": Line("ζ, exact Peaceman–Rachford", GREEN, (0, (5, 1.5))),
    "S": Line("‖S‖, Proposition 1", BOUND, (0, (4, 1.5, 1, 1.5)), "^"),
    "S'": Line("‖S′‖, Proposition 3 corrected", PURPLE, (0, (1, 1)), "D"),
    "S' printed": Line("‖S′‖ as printed", SKY, (0, (3, 1)), "v"),
}


def _curve(history: pd.DataFrame, values: Any, x: str, panel: str, name: str) -> pd.DataFrame:
    curve = over_repetitions(history.assign(value=values), (x,), "value").rename(columns={x: "x"})
    if name.startswith("S"):
        # A bound of one or more says nothing: it is left out unless it holds on every data set.
        worst = history.assign(value=values).groupby(x, sort=False)["value"].max().to_numpy()
        curve.loc[worst >= 1, ["mean", "low", "high"]] = np.nan
    return curve.assign(panel=panel, curve=name)


def _bounds(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Curves of all panels: x, mean, low, high; void bounds are empty."""
    penalty, epochs = inputs.run("penalty", "fedplt"), inputs.run("epochs", "fedplt")
    own = settings["experiments"]
    steps, rho = own["penalty"]["local_steps"], own["epochs"]["rho"]
    frames = [_curve(penalty, penalty["rate"], "rho", "penalty", "gradient")]
    by_rho = list(penalty.groupby("rho", sort=False))
    for name, bound in (("zeta", zetas), ("S", lambda part, value: norms(part, steps, value))):
        values = pd.concat([pd.Series(bound(part, value), part.index) for value, part in by_rho])
        frames.append(_curve(penalty, values, "rho", "penalty", name))
    for solver, letter, printed in (
        ("gradient", "S", False),
        ("accelerated", "S'", False),
        ("accelerated", "S' printed", True),
    ):
        chosen = epochs[epochs["solver"] == solver]
        if not printed:
            frames.append(_curve(chosen, chosen["rate"], "steps", "epochs", solver))
        values = pd.concat(
            [
                pd.Series(
                    norms(part, number, rho, accelerated=solver == "accelerated", printed=printed), part.index
                )
                for number, part in chosen.groupby("steps", sort=False)
            ]
        )
        frames.append(_curve(chosen, values, "steps", "epochs", letter))
    chosen = epochs[epochs["solver"] == "gradient"]
    frames.append(_curve(chosen, zetas(chosen, rho), "steps", "epochs", "zeta"))
    return pd.concat([*frames, _over_rounds(inputs, own["bounds"])], ignore_index=True)


def _over_rounds(inputs: Inputs, made: dict) -> pd.DataFrame:
    history = inputs.run("bounds", "fedplt")
    keys = ["steps", "probability", "tau"]
    frames = []
    for (_, probability, tau), part in history.groupby(keys, sort=False):
        bound = pd.concat(
            [
                pd.Series(bounded(one, made["rho"], made["features"] + 1, made["agents"]), one.index)
                for _, one in part.groupby("replicate", sort=False)
            ]
        )
        panel = "participation" if tau == 0 else "noise"
        name = f"p = {probability:g}" if tau == 0 else f"τ = {tau:g}"
        for kind, values in (("measured", part["distance"]), ("bound", bound)):
            curve = over_repetitions(part.assign(value=values), ("round",), "value")
            curve = curve.rename(columns={"round": "x"}).assign(panel=panel, curve=f"{name}, {kind}")
            if not np.isfinite(values).all():
                curve[["mean", "low", "high"]] = np.nan
            frames.append(curve)
    return pd.concat(frames, ignore_index=True)


@housed
def _draw_bounds(frame: pd.DataFrame) -> Figure:
    """Draw what `_bounds` returns: rates above, errors over the rounds below."""
    numbers = ["mean", "low", "high"]
    frame = frame.assign(**frame[numbers].apply(pd.to_numeric, errors="coerce"))  # void bounds are empty
    made, axes = canvas(
        2, 2, title="Fed-PLT · Bounds of the theory (not in the paper)", width=4.4, height=2.9,
        legend_lines=2,
    )  # fmt: skip
    for ax, panel, label in (
        (axes[0][0], "penalty", "ρ (N_e = 10)"),
        (axes[0][1], "epochs", "N_e (ρ = 0.3)"),
    ):
        part, void = frame[frame["panel"] == panel], []
        for name, line in BOUND_LINES.items():
            curve = part[part["curve"] == name]
            if curve.empty:
                continue
            _band(ax, curve, "x", line)
            missing = curve.loc[curve["mean"].isna(), "x"]
            if len(missing):
                symbol = "ρ" if panel == "penalty" else "N_e"
                void.append(f"{line.label.split(',')[0]} void (≥ 1): {_listed(missing, curve['x'], symbol)}")
        if panel == "penalty":
            ax.set_xscale("log")
        ax.set_xlabel(label)
        ax.set_ylabel("convergence rate")
        if void:
            ax.set_title("\n".join(void), fontsize=7.5, loc="left")
    _rounds(axes[1][0], frame[frame["panel"] == "participation"], "Proposition 2, without noise")
    _rounds(axes[1][1], frame[frame["panel"] == "noise"], "Corollary 1, all agents, noise of deviation τ")
    legend(made, [line for name, line in BOUND_LINES.items() if (frame["curve"] == name).any()], columns=3)
    return made


def _listed(missing: pd.Series, every: pd.Series, symbol: str) -> str:
    """Say where a bound is void."""
    kept = every[~every.isin(missing)]
    if kept.empty:
        return f"all {symbol}"
    sides = []
    if (missing < kept.min()).any():
        sides.append(f"{symbol} < {kept.min():.2g}")
    if (missing > kept.max()).any():
        sides.append(f"{symbol} > {kept.max():.2g}")
    return ", ".join(sides)


def _rounds(ax: Axes, part: pd.DataFrame, title: str) -> None:
    names = list(dict.fromkeys(name.rsplit(", ", 1)[0] for name in part["curve"]))
    for number, name in enumerate(names):
        for kind, dashes in (("measured", "-"), ("bound", (0, (4, 2)))):
            curve = part[part["curve"] == f"{name}, {kind}"]
            # Without intervals: on a logarithmic axis those of few data sets would hide the rest.
            ax.plot(
                curve["x"], curve["mean"], color=SEQUENCE[number], linestyle=dashes, label=f"{name}, {kind}"
            )
    ax.set_yscale("log")
    ax.set_title(title, loc="left", fontsize=9)
    ax.set_xlabel("communication rounds")
    ax.set_ylabel("distance of (x, z) to its fixed point")
    ax.legend(fontsize=7.5, loc=(0.5, 0.1) if "Corollary" in title else "lower left")


def _band(ax: Axes, curve: pd.DataFrame, x: str, line: Line, every: int = 1) -> None:
    """Draw a mean with its 95 % interval; a gap where there is no number."""
    curve = curve.sort_values(x)
    ax.plot(
        curve[x],
        curve["mean"],
        **line.look,
        markevery=every,
        linewidth=line.width,
        label=line.label,
    )
    ax.fill_between(curve[x], curve["low"], curve["high"], color=line.color, alpha=0.18, linewidth=0)


# -- Privacy -------------------------------------------------------------------------------------------

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def _privacy(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Epsilon and error for each level of noise and number of epochs, after all rounds.

    Mean losses with clipped samples' gradients (sensitivity L / q), all agents active in K rounds, starts
    x_{i,0} ~ N(0, 2 tau^2 / low), as Proposition 4 asks for; epsilon at the best Renyi order.
    """
    history, own = inputs.run("privacy", "fedplt"), settings["experiments"]["privacy"]
    last = history[history["round"] == history["round"].max()]
    errors = on_log_scale(over_repetitions(last, ("steps", "tau"), "error"))
    keys = [errors["steps"], errors["tau"]]
    gamma = last.groupby(["steps", "tau"], sort=False)["gamma"].mean().to_numpy()
    common = {
        "sensitivity": own["clip"] / (own["samples"] if own["loss"] == "mean" else 1),
        "deviation": keys[1].to_numpy(),
        "gamma": gamma,
        "rounds": own["rounds"],
        "steps": keys[0].to_numpy(),
    }
    # Both are linear in the order: their values at order 1 are the slopes.
    errors["epsilon"] = best_epsilon(proposition4(1.0, mu=own["ridge"], **common), own["delta"])
    errors["epsilon_composed"] = best_epsilon(composed_gaussian(1.0, **common), own["delta"])
    return errors.assign(rounds=own["rounds"], delta=own["delta"])


@housed
def _draw_privacy(frame: pd.DataFrame) -> Figure:
    """Draw what `_privacy` returns: epsilon and error against N_e, and one against the other."""
    rounds, delta = frame["rounds"].iloc[0], frame["delta"].iloc[0]
    made, axes = canvas(
        1, 3, title=f"Fed-PLT · Privacy, accuracy and local epochs (K = {rounds:g} rounds, δ = {delta:g})",
        width=4.0, height=3.1, legend_lines=0,
    )  # fmt: skip
    private, accurate, both = axes[0]
    levels = sorted(frame["tau"].unique())
    levels = levels[:: max(1, len(levels) // 3)]
    for number, tau in enumerate(levels):
        part, colour = frame[frame["tau"] == tau].sort_values("steps"), SEQUENCE[number]
        private.plot(
            part["steps"], part["epsilon"], color=colour, marker=_MARKERS[number], label=f"τ = {tau:g}"
        )
        private.plot(part["steps"], part["epsilon_composed"], color=colour, linestyle=(0, (1, 1.2)))
        _band(accurate, part, "steps", Line(f"τ = {tau:g}", colour, "-", _MARKERS[number]))
    private.plot([], [], color="#767676", linestyle=(0, (1, 1.2)), label="composed steps")
    for number, steps in enumerate(sorted(frame["steps"].unique())):
        part = frame[frame["steps"] == steps]
        _band(both, part, "epsilon", Line(f"N_e = {steps:g}", SEQUENCE[number], "-", _MARKERS[number]))
    for ax, x, y in (
        (private, "local epochs N_e", "ε (Proposition 4)"),
        (accurate, "local epochs N_e", "mean distance of x_i to the minimiser"),
        (both, "ε (Proposition 4)", "mean distance of x_i to the minimiser"),
    ):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.legend(fontsize=7.5, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    for ax in (private, accurate):
        ticks = sorted(frame["steps"].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    return made


FIGURES = by_name(
    figure(
        "fig2",
        title="Figure 2: rate of Fed-PLT against ρ",
        caption=(
            "Mean over data sets and 95 % interval, and the bound ζ on the rate of exact Peaceman–Rachford "
            "splitting."
        ),
        source=_by_rho,
        columns=[X("rho")],
        series="curve",
        lines=LINES,
        annotate=_mark_best_rho,
        width=5.4,
    ),
    figure(
        "fig3",
        title="Figure 3: rate of Fed-PLT against the number of local epochs",
        caption=(
            "The plateau is the rate of exact Peaceman–Rachford splitting, run here with Newton's method; ζ "
            "is a bound "
            "above it."
        ),
        source=_by_epochs,
        columns=[X("steps")],
        log_x=False,
        series="curve",
        lines=LINES,
        annotate=_mark_best_epochs,
        width=5.8,
    ),
    Made(
        "bounds",
        "Bounds of the theory (not in the paper)",
        (
            "Contraction constants of Propositions 1 and 3 beside measured rates, and the bounds of "
            "Proposition 2 and "
            "Corollary 1 beside measured errors; drawn only where they are below one on every data set."
        ),
        _bounds,
        _draw_bounds,
    ),
    Made(
        "privacy",
        "Privacy, accuracy and local epochs (described without a figure in the paper)",
        (
            "Mean losses, clipped gradients, all agents active, starts as Proposition 4 asks for. Only what "
            "agent i "
            "holds at the end is bounded; z_i, sent in every round, is not."
        ),
        _privacy,
        _draw_privacy,
    ),
    figure(
        "readings",
        title="Readings of the set-up (not in the paper)",
        caption=(
            "Rates with summed and averaged losses and two kinds of data; the published best rate is the "
            "dotted line. Each ρ is one for all data sets here, which costs some hundredths against Table "
            "II, where each data set has its own."
        ),
        source=_set_ups,
        shown=_as_pairs,
        columns=[X("rho")],
        series="set_up",
        lines=SET_UPS,
        annotate=_mark_published_rate,
        y="convergence rate, N_e = 10",
        width=6.4,
    ),
)
