"""What theory promises beside what was measured: rates against rho and N_e, errors over the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.papers.fedplt.panels import band
from replifed.papers.fedplt.summaries import over_data_sets
from replifed.papers.fedplt.theory import bounded, norms, zetas
from replifed.papers.fedplt.titles import BOUND, EMPIRICAL, SECOND, SEQUENCE
from replifed.figures.style import GREEN, PURPLE, SKY, Line, figure, housed, legend

LINES = {
    "gradient": Line("empirical, gradient", EMPIRICAL, "-", "o"),
    "accelerated": Line("empirical, accelerated", SECOND, "-", "s"),
    "zeta": Line("ζ, exact Peaceman–Rachford", GREEN, (0, (5, 1.5))),
    "S": Line("‖S‖, Proposition 1", BOUND, (0, (4, 1.5, 1, 1.5)), "^"),
    "S'": Line("‖S′‖, Proposition 3 corrected", PURPLE, (0, (1, 1)), "D"),
    "S' printed": Line("‖S′‖ as printed", SKY, (0, (3, 1)), "v"),
}


def _curve(history: pd.DataFrame, values: Any, x: str, panel: str, name: str) -> pd.DataFrame:
    found = over_data_sets(history.assign(value=values), (x,), "value").rename(columns={x: "x"})
    if name.startswith("S"):
        # A bound of one or more says nothing: it is left out unless it holds on every data set.
        worst = history.assign(value=values).groupby(x, sort=False)["value"].max().to_numpy()
        found.loc[worst >= 1, ["mean", "low", "high"]] = np.nan
    return found.assign(panel=panel, curve=name)


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Curves of all panels: x, mean, low, high; void bounds are empty."""
    penalty, epochs = inputs.run("penalty", "fedplt"), inputs.run("epochs", "fedplt")
    made = settings["experiments"]
    steps, rho = made["penalty"]["local_steps"], made["epochs"]["rho"]
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
    return pd.concat([*frames, _over_rounds(inputs, made["bounds"])], ignore_index=True)


def _over_rounds(inputs: Any, made: dict) -> pd.DataFrame:
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
            found = over_data_sets(part.assign(value=values), ("round",), "value")
            found = found.rename(columns={"round": "x"}).assign(panel=panel, curve=f"{name}, {kind}")
            if not np.isfinite(values).all():
                found[["mean", "low", "high"]] = np.nan
            frames.append(found)
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: rates above, errors over the rounds below."""
    numbers = ["mean", "low", "high"]
    frame = frame.assign(**frame[numbers].apply(pd.to_numeric, errors="coerce"))  # void bounds are empty
    made, axes = figure(
        2, 2, title="Fed-PLT: bounds of the theory beside what was measured", width=4.4, height=2.9,
        legend_lines=2,
    )  # fmt: skip
    for ax, panel, label in (
        (axes[0][0], "penalty", "ρ (N_e = 10)"),
        (axes[0][1], "epochs", "N_e (ρ = 0.3)"),
    ):
        part, void = frame[frame["panel"] == panel], []
        for name, line in LINES.items():
            curve = part[part["curve"] == name]
            if curve.empty:
                continue
            band(ax, curve, "x", line)
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
    legend(made, [line for name, line in LINES.items() if (frame["curve"] == name).any()], columns=3)
    return made


def _listed(missing: pd.Series, every: pd.Series, symbol: str) -> str:
    """Name the places where a bound is void."""
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
    for place, name in enumerate(names):
        for kind, dashes in (("measured", "-"), ("bound", (0, (4, 2)))):
            curve = part[part["curve"] == f"{name}, {kind}"]
            # Without intervals: on a logarithmic axis those of few data sets would hide the rest.
            ax.plot(
                curve["x"], curve["mean"], color=SEQUENCE[place], linestyle=dashes, label=f"{name}, {kind}"
            )
    ax.set_yscale("log")
    ax.set_title(title, loc="left", fontsize=9)
    ax.set_xlabel("communication rounds")
    ax.set_ylabel("distance of (x, z) to its fixed point")
    ax.legend(fontsize=7.5, loc=(0.5, 0.1) if "Corollary" in title else "lower left")
