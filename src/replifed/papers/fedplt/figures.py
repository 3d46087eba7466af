"""Rates of Fed-PLT against its parameters, bounds of the theory, and privacy against accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replifed.algorithms.looks import method_line
from replifed.claims.curves import only
from replifed.figures import style
from replifed.figures.artefact import By, Grid, Reference, X, by_name
from replifed.figures.curves import note
from replifed.figures.lines import LONG, Line, sequence_lines
from replifed.figures.summaries import on_log_scale, over_repetitions
from replifed.papers.fedplt.measures import error_bounds, norms, zetas
from replifed.papers.fedplt.paper import BEST_EPOCHS, BEST_RHO, FEDPLT_RATES
from replifed.papers.fedplt.renyi import best_epsilon, composed_gaussian, proposition4
from replifed.papers.inputs import Inputs

if TYPE_CHECKING:
    from replifed.papers.fedplt import settings as of

figure = partial(
    Grid,
    prefix="Fed-PLT",
    y="convergence rate",
    x={"rho": "ρ", "steps": "local epochs N_e"},
    log_y=False,
    height=3.1,
    legend_columns=2,
)

# Of the smallest rate over ρ at ten local epochs.
_BEST_RATE = (
    Reference(f"published: lowest at ρ ≈ {BEST_RHO:g}", x=BEST_RHO, claim="fig2.best"),
    Reference(
        f"published: {FEDPLT_RATES[0]:g} (Table II)",
        y=FEDPLT_RATES[0],
        claim="table2.fedplt.gradient.all",
        dashes=(0, (6, 3)),
    ),
)


def _curve(history: pd.DataFrame, x: str, values: Any = None, **labels: str) -> pd.DataFrame:
    """Means over data sets of the rates, or of `values`, one for each line of a history, against `x`."""
    values = history["rate"] if values is None else values
    return over_repetitions(history.assign(value=values), (x,), "value").assign(**labels)


# -- Figures 2 and 3 -----------------------------------------------------------------------------------

LINES = {
    "empirical": method_line("fedplt", "Fed-PLT, empirical"),
    "exact": Line("exact Peaceman–Rachford", style.GREEN, (0, (5, 1.5))),
    "zeta": Line("ζ, bound for exact splitting", style.VERMILLION, (0, (4, 1.5, 1, 1.5))),
    "mean": Line("mean of the losses, as printed", style.GREY, (0, (4, 2))),
    "mean searched": Line("mean of the losses, at its best ρ = 1.25", style.SKY, (0, (3, 1))),
    "classification": method_line("fedplt", "Fed-PLT, make_classification", dashes=LONG, marker="^"),
    "exact mean": Line("exact Peaceman–Rachford, mean", style.GREY, (0, (1, 1.2))),
}


def _by_rho(inputs: Inputs) -> pd.DataFrame:
    history = inputs.run("penalty", "fedplt")
    frames = [
        _curve(history, "rho", curve="empirical"),
        _curve(only(inputs.run("splitting", "fedplt"), steps=0), "rho", curve="exact"),
        _curve(only(inputs.run("splitting_mean", "fedplt"), steps=0), "rho", curve="exact mean"),
        _curve(history, "rho", zetas(history, history["rho"]), curve="zeta"),
        _curve(inputs.run("penalty_mean", "fedplt"), "rho", curve="mean"),
        _curve(inputs.run("penalty_classification", "fedplt"), "rho", curve="classification"),
    ]
    return pd.concat(frames, ignore_index=True)


def _mark_best_rho(ax: Axes, panel: pd.DataFrame, *_: Any) -> None:
    empirical = panel[panel["curve"] == "empirical"]
    best = empirical.loc[empirical["mean"].idxmin()]
    text, at = f"{best['mean']:.3f} at ρ = {best['rho']:.2g}", (best["rho"], best["mean"])
    ax.annotate(text, at, textcoords="offset points", xytext=(-10, 2), ha="right", fontsize=7.5)


def _by_epochs(inputs: Inputs) -> pd.DataFrame:
    """Mean rate for each N_e; rate and bound of exact splitting at the ends of the axis."""
    history = inputs.run("epochs", "fedplt")
    rho = inputs.experiment("epochs").rho
    exact = only(history, solver="exact")
    frames = [
        _curve(only(history, solver="gradient"), "steps", curve="empirical"),
        _curve(only(inputs.run("epochs_mean", "fedplt"), solver="gradient"), "steps", curve="mean"),
        _curve(
            only(inputs.run("epochs_mean_searched", "fedplt"), solver="gradient"),
            "steps",
            curve="mean searched",
        ),
        _curve(
            only(inputs.run("epochs_classification", "fedplt"), solver="gradient"),
            "steps",
            curve="classification",
        ),
    ]
    for name, values in (("exact", exact["rate"]), ("zeta", zetas(exact, rho))):
        for end in (history["steps"][history["steps"] > 0].min(), history["steps"].max()):
            frames.append(_curve(exact.assign(steps=end), "steps", values, curve=name))
    frame = pd.concat(frames, ignore_index=True).assign(rho=rho)
    searched = inputs.experiment("epochs_mean_searched").rho
    return frame.assign(rho=frame["rho"].where(frame["curve"] != "mean searched", searched))


# -- Bounds --------------------------------------------------------------------------------------------

BOUND_LINES = {
    "gradient": method_line("fedplt", "empirical, gradient"),
    "accelerated": method_line("fedplt", "empirical, accelerated", dashes=LONG, marker="s"),
    "zeta": Line("ζ, exact Peaceman–Rachford", style.GREEN, (0, (5, 1.5))),
    "S": Line("‖S‖ as printed", style.VERMILLION, (0, (4, 1.5, 1, 1.5)), "^"),
    "S corrected": Line("‖S‖ corrected", style.PURPLE, (0, (1, 1)), "D"),
    "S'": Line("‖S′‖ as printed", style.SKY, (0, (3, 1)), "v"),
}
NUMBERS = ["mean", "low", "high"]
# Panels, and what their axes say.
_SYMBOLS = {"penalty": "ρ", "epochs": "N_e"}  # of those with rates; the others have errors over the rounds
_OVER_ROUNDS = {
    "participation": "Proposition 2, without noise",
    "noise": "Corollary 1, all agents, noise of deviation τ",
}
BOUND_PANELS = dict.fromkeys(_SYMBOLS, "") | _OVER_ROUNDS
_AGAINST = {"penalty": "ρ (N_e = 10)", "epochs": "N_e (ρ = 0.3)"}
_AGAINST |= dict.fromkeys(_OVER_ROUNDS, "communication rounds")
_HEIGHTS = dict.fromkeys(_SYMBOLS, "convergence rate")
_HEIGHTS |= dict.fromkeys(_OVER_ROUNDS, "distance of (x, z) to its fixed point")


def _bounds(inputs: Inputs) -> pd.DataFrame:
    """Curves of all panels: x, mean, low, high; void bounds are empty."""
    penalty, epochs = inputs.run("penalty", "fedplt"), inputs.run("epochs", "fedplt")
    steps, rho = inputs.experiment("penalty").local_steps, inputs.experiment("epochs").rho
    plain, fast = only(epochs, solver="gradient"), only(epochs, solver="accelerated")
    frames = [
        _against("rho", penalty, "gradient", penalty["rate"]),
        _against("rho", penalty, "zeta", zetas(penalty, penalty["rho"])),
        _against("rho", penalty, "S", norms(penalty, steps, penalty["rho"], printed=True)),
        _against("rho", penalty, "S corrected", norms(penalty, steps, penalty["rho"])),
        _against("steps", plain, "gradient", plain["rate"]),
        _against("steps", plain, "S", norms(plain, plain["steps"], rho, printed=True)),
        _against("steps", plain, "S corrected", norms(plain, plain["steps"], rho)),
        _against("steps", fast, "accelerated", fast["rate"]),
        _against("steps", fast, "S'", norms(fast, fast["steps"], rho, accelerated=True, printed=True)),
        _against("steps", plain, "zeta", zetas(plain, rho)),
        *_over_rounds(inputs.run("bounds", "fedplt"), inputs.experiment("bounds")),
    ]
    return pd.concat(frames, ignore_index=True)


def _against(x: str, history: pd.DataFrame, name: str, values: Any) -> pd.DataFrame:
    panel = {"rho": "penalty", "steps": "epochs"}[x]
    curve = _curve(history, x, values, panel=panel, curve=name).rename(columns={x: "x"})
    if name.startswith("S"):
        # A bound of one or more is void, and omitted unless it is below one on every data set.
        worst = history.assign(value=values).groupby(x, sort=False)["value"].max().to_numpy()
        curve.loc[worst >= 1, NUMBERS] = np.nan
    return curve


def _over_rounds(history: pd.DataFrame, made: of.Bounds) -> Iterator[pd.DataFrame]:
    history = history.assign(measured=history["distance"], bound=error_bounds(history, made))
    for (_, probability, tau), part in history.groupby(["steps", "probability", "tau"], sort=False):
        panel = "participation" if tau == 0 else "noise"
        name = f"p = {probability:g}" if tau == 0 else f"τ = {tau:g}"
        for kind in ("measured", "bound"):
            curve = _curve(part, "round", part[kind], panel=panel, curve=f"{name}, {kind}")
            if not np.isfinite(part[kind]).all():
                curve[NUMBERS] = np.nan
            yield curve.rename(columns={"round": "x"})


def _drawn_bounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of the table of `_bounds`; void bounds are gaps."""
    frame = frame.assign(**frame[NUMBERS].apply(pd.to_numeric, errors="coerce"))
    # On a logarithmic axis intervals of few data sets would hide the rest.
    frame.loc[frame["panel"].isin(_OVER_ROUNDS), ["low", "high"]] = np.nan
    return frame


def _lines_of_bounds(frame: pd.DataFrame) -> dict[str, Line]:
    """Lines of rates, and a colour for each setting of the errors, dashed for its bound."""
    drawn = set(frame.loc[frame["mean"].notna(), "curve"])
    # A bound that is void everywhere has a note, and no entry in the legend.
    lines = {key: line._replace(explained=key in drawn) for key, line in BOUND_LINES.items()}
    for _, part in frame[frame["panel"].isin(_OVER_ROUNDS)].groupby("panel", sort=False):
        names = dict.fromkeys(name.rsplit(", ", 1)[0] for name in part["curve"])
        for name, line in sequence_lines({name: name for name in names}).items():
            for kind, dashes in (("measured", "-"), ("bound", (0, (4, 2)))):
                label = f"{name}, {kind}"
                lines[label] = line._replace(label=label, dashes=dashes, marker="")
    return lines


def _note_void_bounds(ax: Axes, panel: pd.DataFrame, lines: Mapping[Any, Line], *_: Any) -> None:
    """Note where bounds of rates are void."""
    symbol = _SYMBOLS.get(panel["panel"].iloc[0])
    for key, line in lines.items():
        curve = panel[panel["curve"] == key]
        void = curve["mean"].isna()
        if symbol and void.any():
            note(ax, f"{line.label} void (≥ 1): {_range(curve['x'], void, symbol)}")


def _range(at: pd.Series, void: pd.Series, symbol: str) -> str:
    """Return the range of a void bound as text."""
    if void.all():
        return f"all {symbol}"
    low, high = at[~void].min(), at[~void].max()
    below = [f"{symbol} < {low:.2g}"] if (at[void] < low).any() else []
    above = [f"{symbol} > {high:.2g}"] if (at[void] > high).any() else []
    return ", ".join(below + above)


# -- Privacy -------------------------------------------------------------------------------------------

_PRIVACY = {"epsilon": "Privacy", "error": "Accuracy", "both": "Accuracy against privacy"}
_EPSILON, _EPOCHS = "ε (Proposition 4)", "local epochs N_e"
_ERROR = "mean distance of x_i to the minimiser"
_COMPOSED = Line("composed steps", style.GREY, (0, (1, 1.2)))


def _privacy(inputs: Inputs) -> pd.DataFrame:
    """Epsilon and error for each level of noise and number of epochs, after all rounds.

    Mean losses with clipped samples' gradients (sensitivity L / q), all agents active in K rounds, starts
    x_{i,0} ~ N(0, 2 tau^2 / low), as Proposition 4 asks for; epsilon at the best Renyi order.
    """
    history, own = inputs.run("privacy", "fedplt"), inputs.experiment("privacy")
    last = history[history["round"] == history["round"].max()]
    errors = on_log_scale(over_repetitions(last, ("steps", "tau"), "error"))
    common = {
        "sensitivity": own.clip / (own.samples if own.loss == "mean" else 1),
        "deviation": errors["tau"].to_numpy(),
        "gamma": last.groupby(["steps", "tau"], sort=False)["gamma"].mean().to_numpy(),
        "rounds": own.rounds,
        "steps": errors["steps"].to_numpy(),
    }
    # Both are linear in the order: their values at order 1 are the slopes.
    errors["epsilon"] = best_epsilon(proposition4(1.0, mu=own.ridge, **common), own.delta)
    errors["epsilon_composed"] = best_epsilon(composed_gaussian(1.0, **common), own.delta)
    return errors.assign(rounds=own.rounds, delta=own.delta)


def _drawn_privacy(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of the table of `_privacy`: by tau over the local epochs, and by epochs over epsilon."""
    tau, epochs = (frame[column].map(f"{name} = {{:g}}".format) for column, name in _SERIES.items())
    over_epochs = frame.assign(x=frame["steps"], curve=tau)
    epsilon = over_epochs.assign(panel="epsilon", mean=frame["epsilon"], low=np.nan, high=np.nan)
    composed = epsilon.assign(curve=tau + ", composed", mean=frame["epsilon_composed"])
    error = over_epochs.assign(panel="error")
    both = frame.assign(panel="both", x=frame["epsilon"], curve=epochs)
    return pd.concat([epsilon, composed, error, both], ignore_index=True)


_SERIES = {"tau": "τ", "steps": "N_e"}


def _lines_of_privacy(frame: pd.DataFrame) -> dict[str, Line]:
    lines = {}
    for column, name in _SERIES.items():
        labels = [f"{name} = {value:g}" for value in sorted(frame[column].unique())]
        for label, line in sequence_lines({label: label for label in labels}).items():
            lines[label] = line._replace(dashes="-")
            composed = _COMPOSED._replace(label=f"{label}, composed", color=line.color, explained=False)
            lines[composed.label] = composed
    return lines


def _note_privacy(ax: Axes, panel: pd.DataFrame, *_: Any) -> None:
    if panel["panel"].iloc[0] == "epsilon":
        note(ax, "K = {rounds:g} rounds, δ = {delta:g}".format(**panel.iloc[0]))


FIGURES = by_name(
    figure(
        "fig2",
        title="Figure 2: rate of Fed-PLT against ρ",
        caption="Mean rates over data sets, 95 % intervals, the rate of exact Peaceman–Rachford splitting, "
        "linearised at the minimiser, and its bound ζ, for summed losses unless stated. Thin black: "
        "published; in Table II each data set has its own best ρ.",
        source=_by_rho,
        columns=[X("rho")],
        series="curve",
        lines=LINES,
        references=_BEST_RATE,
        annotate=_mark_best_rho,
        width=5.4,
    ),
    figure(
        "fig3",
        title="Figure 3: rate of Fed-PLT against the number of local epochs",
        caption="Mean rates over data sets at the printed ρ = 0.3, for summed losses unless stated. The "
        "plateau is the rate of exact Peaceman–Rachford splitting, run here with Newton's method; ζ is a "
        "bound above it. One curve has the best ρ of the mean in place of the printed one.",
        source=_by_epochs,
        columns=[X("steps")],
        log_x=False,
        series="curve",
        lines=LINES,
        references=[Reference(f"published: lowest at N_e ≈ {BEST_EPOCHS}", x=BEST_EPOCHS, claim="fig3.best")],
        width=5.8,
    ),
    figure(
        "bounds",
        title="Bounds of the theory (not in the paper)",
        caption="Contraction constants of Propositions 1 and 3 with measured rates, and the bounds of "
        "Proposition 2 and Corollary 1, with S as printed, with measured errors; drawn only where they are "
        "below one on every data set. Corrected, ‖S‖ has the factor 1 / ρ that eq. (14) lacks.",
        source=_bounds,
        shown=_drawn_bounds,
        columns=[By("panel", BOUND_PANELS)],
        wrap=2,
        series="curve",
        lines=_lines_of_bounds,
        metric="panel",
        x={"x": _AGAINST},
        log_x={panel: panel == "penalty" for panel in BOUND_PANELS},
        y=_HEIGHTS,
        log_y={panel: panel in _OVER_ROUNDS for panel in BOUND_PANELS},
        annotate=_note_void_bounds,
        width=4.4,
        height=2.9,
        legend_columns=3,
    ),
    figure(
        "privacy",
        title="Privacy, accuracy and local epochs (described without a figure in the paper)",
        caption="Mean losses, clipped gradients, all agents active, starts as Proposition 4 asks for. The "
        "bound is on the final model of agent i alone, not on z_i, which it sends in every round.",
        source=_privacy,
        shown=_drawn_privacy,
        columns=[By("panel", _PRIVACY)],
        wrap=2,
        series="curve",
        lines=_lines_of_privacy,
        metric="panel",
        x={"x": {"epsilon": _EPOCHS, "error": _EPOCHS, "both": _EPSILON}},
        y={"epsilon": _EPSILON, "error": _ERROR, "both": _ERROR},
        log_y=True,
        panel_legends=True,
        annotate=_note_privacy,
        others=[_COMPOSED],
        width=3.5,
        height=2.6,
    ),
)
