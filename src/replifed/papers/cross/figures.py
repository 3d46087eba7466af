"""Relative gap of all methods against rounds, bits and sample gradients; use until a target; tuning."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from replifed.algorithms.registry import METHODS, method_class
from replifed.claims.pairs import USES, matrix, pairs, profile, used_until
from replifed.engine.audit import differences
from replifed.engine.trials import Spent
from replifed.figures.artefact import Made, by_name
from replifed.figures.grid import By, Grid, X
from replifed.figures.lines import BLACK, Line
from replifed.figures.summaries import median_and_range, use_until_target
from replifed.papers.cross import paper

# Curves end here; smaller gaps are of no statistical use, and soon rounding errors.
_FLOOR = 1e-10
# Targets of the profile, and what its uses are divided by.
_PROFILED = [10.0**-k for k in range(1, 9)]
_UNITS = {"bits": "message_bits", "sample_gradients": "samples"}
_AXES = {
    "round": "communication rounds",
    "bits": "bits, as models from each client",
    "sample_gradients": "sample gradients, as passes over the data",
}


def _to_the_floor(frame: pd.DataFrame) -> pd.DataFrame:
    """Omit all after the first round at the floor."""
    curves = (frame["median"] <= _FLOOR).groupby([frame["experiment"], frame["method"]])
    passed = curves.transform(lambda low: low.shift(fill_value=False).cummax())
    return frame[~passed].reset_index(drop=True)


def _profiles(inputs: Any) -> pd.DataFrame:
    """Shares of targets reached, for each kind of problem."""
    by_kind: dict[str, dict[str, dict[str, pd.DataFrame]]] = {}
    for experiment, method in inputs.runs():
        of_kind = by_kind.setdefault(inputs.experiment(experiment).problem, {})
        of_kind.setdefault(method, {})[experiment] = inputs.run(experiment, method)
    shares = [profile(runs, _PROFILED, _UNITS).assign(problem=kind) for kind, runs in by_kind.items()]
    return pd.concat(shares, ignore_index=True)


_COUNTED, _FALL = "communications", "fall of Psi"


def _rates(inputs: Any) -> pd.DataFrame:
    """Median and range over seeds against the mean kappa, and the theorem's bound."""
    rows = []
    for experiment, method in inputs.runs():
        for _, part in inputs.run(experiment, method).groupby("l2", sort=False):
            shown = [(_COUNTED, method, part["round"])]
            if "rate" in part:
                falls = ((method, "rate"), ("bound", "bound"))
                shown += [(_FALL, name, -np.log(part[column])) for name, column in falls]
            for metric, name, values in shown:
                rows.append(
                    {
                        "experiment": experiment,
                        "metric": metric,
                        "method": name,
                        "l2": part["l2"].iloc[0],
                        "kappa": part["kappa"].mean(),
                        "multiple": part["multiple"].iloc[0],
                        "median": values.median(),
                        "low": values.min(),
                        "high": values.max(),
                        "reached": int(part["reached"].sum()),
                        "seeds": len(part),
                    }
                )
    return pd.DataFrame(rows)


def _slopes(ax: Any, panel: pd.DataFrame, lines: Any, x: str) -> None:
    """Draw the slopes 1/2 and 1 through Scaffnew's first point, where communications are counted."""
    if panel["metric"].iloc[0] != _COUNTED:
        return
    start = panel[panel["method"] == "scaffnew"].sort_values("kappa").iloc[0]
    kappa = np.array([start["kappa"], panel["kappa"].max()])
    for power, text in ((0.5, r"$\sqrt{\kappa}$"), (1.0, r"$\kappa$")):
        grown = start["median"] * (kappa / kappa[0]) ** power
        ax.plot(kappa, grown, color="#b0b0b0", linewidth=0.8, linestyle=":", zorder=1)
        ax.annotate(
            text, (kappa[1], grown[1]), color="#767676", fontsize=7.5, va="bottom", ha="right", clip_on=True
        )


# Panels of the profile, those of the figures: in one panel methods would hide each other.
_GROUPS = {
    "first order": ("logistic", paper.FIRST_ORDER),
    "curvature": ("logistic", paper.SECOND_ORDER),
    "averages": ("logistic", paper.AVERAGED),
    "corrected": ("logistic", paper.CORRECTED),
    "1-norm": ("composite", paper.COMPOSITE),
    "planted sparse model": ("planted", paper.SPARSE),
}


def _by_group(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the methods of each group on its kind of problem, and any others."""
    members = {
        group: (frame["problem"] == kind) & frame["method"].isin(methods)
        for group, (kind, methods) in _GROUPS.items()
    }
    members["others"] = ~np.logical_or.reduce(list(members.values()))
    parts = [frame[of].assign(group=group) for group, of in members.items()]
    return pd.concat(parts, ignore_index=True)


_PAGES = "The PDF has a page each for rounds, bits and sample gradients."

_grid = partial(Grid, prefix=paper.PAPER["name"], series="method", band="range", legend_columns=5)
figure = partial(
    _grid,
    by=("experiment", "method"),
    pages=[X("round", "bits", "sample_gradients")],
    columns=[By("experiment", paper.PROBLEMS)],
    wrap=2,
    values=("gap",),
    centre="median",
    axes=("bits", "sample_gradients"),
    finish=_to_the_floor,
    x={"round": "communication rounds", "bits": "bits sent", "sample_gradients": "sample gradients"},
    y="relative gap",
    log_y=True,
    limits=(_FLOOR / 3, 3.0),
    width=4.2,
    height=2.5,
)


# -- Tables --------------------------------------------------------------------------------------------

TARGET = 1e-4
# Of pairs: methods that drift reach the first alone.
TARGETS = (1e-2, TARGET)
USED = (
    "Median [least, largest] over seeds of rounds, bits (up and down, all clients) and sample gradients. "
    "Where not all seeds get there, (2 of 3) says how many do: the others count as later than those, so "
    "that the largest is open (…), and so is the median (–) if no more than half get there. “Not reached” "
    "is where none does. Tuning: what the search for the method's number used."
)
# Of methods from outside.
AUDITED = (
    "Audit: where a method of your own books less than it needs. Its sample gradients are counted, whatever "
    "it books; its rounds are as it has them, however many exchanges they need."
)


def _used(inputs: Any) -> pd.DataFrame:
    """Median, least and largest use until the target, for each data set and method.

    Seeds that never got there count as more than any other: a number that depends on them is infinite.
    reached and seeds are numbers of seeds; tuning_* say what the search used, zero where there was none.
    audit says what custom methods book less than they need.
    """
    rows = []
    for experiment in inputs.experiments():
        for method in inputs.methods(experiment):
            cost = inputs.tuned(experiment, method).get("cost", Spent().record())
            frame = inputs.run(experiment, method)
            audit = _audit(method, frame)
            for (_, used), first in used_until(frame, [TARGET]).items():
                rows.append(
                    {
                        "experiment": experiment,
                        "method": method,
                        "used": used,
                        **use_until_target(first.values, first.bounds == 0),
                        **{f"tuning_{kind}": amount for kind, amount in cost.items()},
                        **audit,
                    }
                )
    return pd.DataFrame(rows)


def _audit(method: str, frame: pd.DataFrame) -> dict[str, str]:
    """Column audit of a run that was audited, with what its method says for itself."""
    if "exchanges_needed" not in frame:
        return {}
    ends, cls = frame.groupby("replicate").last(), method_class(method) if method in METHODS else None
    found = differences({name: ends[name].to_numpy() for name in ends}) or ["as booked"]
    reasons = [getattr(cls, name, "") for name in ("counts_differ", "exchanges_differ")]
    found += [f"it says why: {reason}" for reason in reasons if reason]
    found += ["it says that all data are at the server"] if getattr(cls, "centralised", False) else []
    return {"audit": "; ".join(found)}


def render_used(frame: pd.DataFrame, labels: Mapping[str, str] = paper.LABELS) -> dict[str, pd.DataFrame]:
    """A table a data set, a line a method: median [least, largest] use (got there), and its search's."""
    tables = {}
    for experiment, part in frame.groupby("experiment", sort=False):
        rows = []
        for method in By("method", labels).order(part["method"].tolist()):
            line = {"method": labels.get(method, method)}
            for row in part[part["method"] == method].itertuples():
                line[USES[row.used]] = median_and_range(row, ".3g")
                line["tuning"] = str(Spent(row.tuning_runs, row.tuning_rounds, row.tuning_bits))
                if "audit" in part:
                    line["audit"] = row.audit if isinstance(row.audit, str) else ""
            rows.append(line)
        columns = ["method", *USES.values(), "tuning", *(["audit"] if "audit" in part else [])]
        tables[paper.PROBLEMS.get(experiment, experiment)] = pd.DataFrame(rows)[columns]
    return tables


def _pairs(inputs: Any) -> pd.DataFrame:
    frames = [
        pairs(
            experiment,
            {method: inputs.run(experiment, method) for method in inputs.methods(experiment)},
            TARGETS,
        )
        for experiment in inputs.experiments()
    ]
    return pd.concat(frames, ignore_index=True)


FIGURES = by_name(
    figure(
        "fig1",
        title="First-order methods",
        caption="Relative gap (F - F*) / (F(0) - F*), median and range over seeds. FedAvg's curve is also "
        f"that of FedMid and FedDualAvg, which are the same method without a 1-norm. {_PAGES} "
        f"{paper.SETTING}",
        lines=paper.FIRST_ORDER,
    ),
    figure(
        "fig2",
        title="Methods that send curvature",
        caption="The same for methods that use Hessians, with the same budget of bits per coordinate and "
        "round for those that fit their messages to one.",
        lines=paper.SECOND_ORDER,
    ),
    figure(
        "fig3",
        title="Composite problems",
        caption="The same with a 1-norm in the objective, for methods that handle one; the gap is that of "
        "the whole objective.",
        lines=paper.COMPOSITE,
    ),
    figure(
        "fig4",
        title="A planted sparse model",
        caption="The same for methods that keep a number of coordinates, that of the planted model; F* is "
        "the least objective on its support, and what falls below it counts as no gap.",
        lines=paper.SPARSE,
    ),
    figure(
        "fig5",
        title="Averages, with momentum and acceleration",
        caption="As Figure 1, for methods that average local steps, or gradients, as they are. All "
        "gradients are full, so that minibatch SGD is gradient descent at a constant step. With clients of "
        "nearly one size and a small proximal weight FedNova and FedProx are nearly FedAvg, on whose curve "
        "they lie.",
        lines=paper.AVERAGED,
    ),
    figure(
        "fig6",
        title="Corrected local steps",
        caption="As Figure 1, for methods that correct what local steps do to an average; all take part.",
        lines=paper.CORRECTED,
    ),
    _grid(
        "rates",
        title="Against the condition number",
        caption="Above: communication rounds until |x - x*|^2 is 1e-4 of what it was, against kappa = max "
        "L_i / mu, median and range over seeds; each method takes sqrt(kappa) local steps a round, on "
        "average, and the step that was best on other seeds. Dotted: slopes 1/2 and 1. FedLin and "
        "S-Local-GD have two exchanges a round. Below: minus the logarithm of the factor by which "
        "Scaffnew's Lyapunov function falls in an iteration with gamma = 1/L and p = 1/sqrt(kappa), beside "
        "that of its theorem, max(1 - gamma mu, 1 - p^2). Logistic regression on a9a, clients by k-means, "
        "and drawn least squares in 24 coordinates, of which four clients see six each.",
        source=_rates,
        rows=[By("metric", {_COUNTED: "", _FALL: ""})],
        columns=[By("experiment", paper.RATES)],
        lines={
            **paper.CORRECTED,
            "fedlin": paper.FIRST_ORDER["fedlin"],
            "bound": Line("Scaffnew's theorem", BLACK, (0, (2, 1)), "", 1.2),
        },
        metric="metric",
        y={_COUNTED: "communication rounds", _FALL: "- log rate of an iteration"},
        x={"kappa": "condition number"},
        log_x=True,
        log_y=True,
        annotate=_slopes,
        width=4.2,
        height=2.6,
    ),
    _grid(
        "profile",
        title="Targets reached",
        caption="Share of the relative gaps 1e-1, 1e-2, ... 1e-8 on all problems of a kind that a method "
        "has reached after so many rounds, bits (as multiples of one model from each client) and sample "
        "gradients (as passes over the data): a data profile, mean over seeds with its 95 % interval. A "
        "method counts on the problems on which it has run. The PDF has a page for each use.",
        source=_profiles,
        shown=_by_group,
        pages=[By("used", USES)],
        wrap=2,
        panel_legends=True,
        columns=[By("group", {name: name for name in _GROUPS})],
        lines=paper.EVERY,
        y="share of targets reached",
        metric="used",
        x={"at": _AXES},
        log_x=True,
        log_y=False,
        limits=(-0.02, 1.02),
        width=5.0,
        height=3.2,
    ),
)

TABLES = by_name(
    Made("table1", "Use until the relative gap is 1e-4", f"{USED} {paper.SETTING}", _used, render_used),
    Made(
        "pairs",
        "Who needs less until the relative gap is 1e-2, and 1e-4",
        "Three marks a pair, of rounds, bits and sample gradients: < where the method of the line needs "
        "fewer than that of the column (of the number that stands before its name), > where it needs more, "
        "· where neither is decided. Of logarithms, paired over seeds, after Holm's correction over all "
        "pairs and targets of one data set and one use, and where the ratio of geometric means is at least "
        "1.05; a seed that never gets there is a bound, and a pair whose order a bound leaves open is "
        "undecided.",
        _pairs,
        lambda frame: matrix(frame, paper.LABELS),
    ),
)
