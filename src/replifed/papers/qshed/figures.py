"""Relative cost against rounds or bits, rounds to a threshold, what is left open, bits of eigenvectors."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replifed.claims.curves import reached
from replifed.figures.artefact import By, Grid, Made, X, by_name
from replifed.figures.curves import note
from replifed.figures.lines import BLUE, ORANGE, Line
from replifed.figures.style import canvas, legend, of_seeds, styled
from replifed.figures.summaries import averages, use_until_target
from replifed.papers.inputs import Inputs
from replifed.papers.qshed.experiments import example_bits, nearest_spectrum
from replifed.papers.qshed.paper import (
    CHANNELS,
    EXPERIMENTS,
    LINES,
    PRINTED_BITS,
    PRINTED_VALUES,
    curve_name,
    shown_with,
)

# Those that the paper compares.
COMPARED = ("ideal_shed", "qshed", "nqshed", "fednl.rank1_ls", "fednl.projected")
PANELS = (By("experiment", EXPERIMENTS), By("channel", CHANNELS))
# Gaps are drawn down to this; what is below is rounding error in part.
BOTTOM = 1e-11
# FedNL takes up to 540 rounds on a draw of FMNIST, all others far fewer.
DRAWN = 300

_BANDS = (
    f"Lines are medians over seeds (each draws its own samples), bands the range, of the first {DRAWN} "
    "rounds."
)
_READINGS = (
    "The paper does not state its renewal rounds and dither; here Hessians are renewed at rounds 1, 2, 4, 7, "
    "12, 20, …, and one dither is shared and subtracted for all refinements. Both were chosen by their fit "
    "to the published savings. The line search is that of GIANT, which the paper names: ten steps 1, 1/4, …, "
    "of which the last is taken if none is good enough. Coordinates that overload the quantiser wrap "
    "around here; the paper does not state it. The figure of choices shows the effect of other choices."
)
_DATA = {"fmnist": "Fashion-MNIST, class 1 against the rest", "w8a": "w8a"}
_FEDNL = (
    "FedNL starts from zero Hessians; without a line search, projected FedNL's first step is a gradient step "
    "of length 1/µ, and it diverges."
)


def _gaps(inputs: Inputs, curves: Collection[str], channels: Collection[str]) -> pd.DataFrame:
    """Median gaps of some curves over some channels; the exact choice of q is a curve of the default case."""
    frames = []
    for history in inputs.histories():
        pairs = zip(history["method"], history["variant"], strict=True)
        curve = pd.Series([curve_name(method, variant) for method, variant in pairs], history.index)
        exact = history["case"] == "exact_q"
        history = history.assign(
            curve=curve.mask(exact, "qshed.exact_q"),
            case=history["case"].mask(exact, "default"),
            megabits=history["bits_up"] / 1e6,
            experiment=history["experiment"].map(shown_with),
        )
        frames.append(history[history["curve"].isin(curves) & history["channel"].isin(channels)])
    by = ["experiment", "method", "variant", "case", "channel", "curve"]
    return averages(frames, by, ["gap"], centre="median", band="range", axes=["megabits"])


_KINDS = {"curvature": "Q-SHED and others", "fednl": "Q-SHED and FedNL"}


def _in_kinds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return FedNL's variants in separate panels, and Q-SHED in all."""
    drawn = frame[frame["round"] <= DRAWN]
    of_fednl = drawn["curve"].str.startswith("fednl")
    return pd.concat(
        [
            drawn[~of_fednl].assign(kind="curvature"),
            drawn[of_fednl | (drawn["curve"] == "qshed")].assign(kind="fednl"),
        ]
    )


figure = partial(
    Grid,
    prefix="Q-SHED",
    series="curve",
    lines=LINES,
    x={"round": "communication rounds", "megabits": "Mbit sent by all devices"},
    y="relative cost f − f*",
    log_y=True,
    log_x=False,
    limits=(BOTTOM, 1.0),
    shown=lambda frame: frame[frame["round"] <= DRAWN],
    height=3.3,
    legend_columns=3,
)


# -- What the paper leaves open ------------------------------------------------------------------------

THRESHOLD = 1e-6
CONDITIONS = {
    "default": "ill-conditioned",
    "well_conditioned": "well-conditioned",
    "sorted": "sorted by class",
}
CASES = {
    "default": "as in Figures 1 and 2",
    "renewals_numbers": "renewals 1, 2, 3, 5, 8, …",
    "renewals_10": "renewals every 10 rounds",
    "renewals_40": "renewals every 40 rounds",
    "renewals_once": "no renewal after round 1",
    "dither_none": "no dither",
    "dither_added": "dither not subtracted",
    "dither_fresh": "fresh dither at each refinement",
    "overload_clip": "overload clipped, not wrapped",
    "normalised": "received vectors normalised",
    "budget_16": "B = 16 bits per coordinate",
    "budget_64": "B = 64 bits per coordinate",
    "l2_4": "µ = 1e-4",
    "l2_6": "µ = 1e-6",
    "vector_16": "FedNL's vectors take 16 bits",
    "start_hessian": "FedNL starts from the Hessians",
    "search_loose": "Armijo constant 1e-4",
    "search_strict": "Armijo constant 0.2",
    "search_half": "Armijo constant 0.5 (FedNL)",
    "search_halved": "steps 1, 1/2, … (Armijo constant 0.1)",
}


def _choices(inputs: Inputs) -> pd.DataFrame:
    """One row for each experiment (without "_choices"), channel, case and method that the case changes.

    Rounds to the threshold (`use_until_target`), and `last`: rounds of the run.
    """
    rows = []
    for experiment in inputs.experiments():
        last = inputs.experiment(experiment).rounds
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            keys = ["case", "variant", "channel"]
            for (case, variant, channel), curve in history.groupby(keys, sort=False):
                rounds = reached(curve, THRESHOLD)
                rows.append(
                    {
                        "experiment": experiment.removesuffix("_choices"),
                        "channel": channel,
                        "case": case,
                        "curve": curve_name(method, variant),
                        **use_until_target(rounds.values, rounds.bounds == 0, last=last),
                    }
                )
    return pd.DataFrame(rows)


@styled
def _draw_choices(frame: pd.DataFrame) -> Figure:
    """Draw the table of `_choices`: a panel for each data set and channel, a line for each case."""
    panels = list(dict.fromkeys(zip(frame["experiment"], frame["channel"], strict=True)))
    lines = {name: line for name, line in LINES.items() if (frame["curve"] == name).any()}
    shown = [case for case in CASES if (frame["case"] == case).any()]
    title = " · ".join(filter(None, ("Q-SHED · What the paper leaves open", of_seeds(frame))))
    made, axes = canvas(1, len(panels), title=title, width=3.5, height=0.24 * len(shown) + 0.9)
    for ax, (experiment, channel) in zip(axes[0], panels, strict=True):
        one = frame[(frame["experiment"] == experiment) & (frame["channel"] == channel)]
        _draw_choices_of(ax, one, lines, shown)
        ax.set_title(f"{EXPERIMENTS[experiment]}, {CHANNELS[channel]}", loc="left")
        ax.set_xlabel("rounds to 1e-6")
        ax.set_yticks(range(len(shown)), [CASES[case] if ax is axes[0][0] else "" for case in shown])
    legend(made, [*lines.values()])
    return made


def _draw_choices_of(ax: Axes, frame: pd.DataFrame, lines: dict, shown: list[str]) -> None:
    last = float(frame["last"].max())
    ax.axvline(last, color="#999999", linewidth=0.8, linestyle=(0, (2, 2)))
    for shift, (name, line) in enumerate(lines.items()):
        curve = frame[frame["curve"] == name].set_index("case")
        default = curve["median"].get("default", np.nan)
        if np.isfinite(default):
            ax.axvline(default, color=line.color, linewidth=0.7, alpha=0.5, zorder=1)
        for row, case in enumerate(shown):
            if case not in curve.index:
                continue
            cell, y = curve.loc[case], row + 0.22 * (shift - 1)
            ax.plot(np.minimum([cell["low"], cell["high"]], last), [y, y], color=line.color, linewidth=1.4)
            there = np.isfinite(cell["median"])
            ax.plot(
                cell["median"] if there else last,
                y,
                line.marker if there else ">",
                color=line.color,
                markerfacecolor=line.color if there else "white",
                markersize=5,
                zorder=3,
                clip_on=False,
            )
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0, 1.04 * last)


# -- Section IV-A's example ----------------------------------------------------------------------------

# Vectors shown, and those shown with the eleven of the example.
_SHOWN, _IN_EXAMPLE = 40, 14


def _bit_allocation(inputs: Inputs) -> pd.DataFrame:
    """Panel "example": printed and measured bits; panel "growth": bits of the same device by round.

    Numbers that the paper does not print are zero.
    """
    (experiment,) = inputs.experiments()
    history = inputs.run(experiment, "qshed")
    spectrum, _ = nearest_spectrum(history)
    bits = example_bits(spectrum["eigenvalue"].to_numpy(), inputs.experiment(experiment).b_max)
    vectors = range(1, len(PRINTED_BITS) + 1)
    printed = pd.DataFrame({"printed_bits": PRINTED_BITS, "printed_eigenvalue": PRINTED_VALUES}, vectors)
    example = spectrum.assign(panel="example", bits=bits).join(printed, on="vector")
    nearest = spectrum.iloc[0]
    same = (history["replicate"] == nearest["replicate"]) & (history["device"] == nearest["device"])
    growth = history[same & (history["round"] >= nearest["round"])].assign(panel="growth")
    end = growth.loc[growth["renewed"] & (growth["round"] > nearest["round"]), "round"].min()
    growth = growth[~(growth["round"] >= end)]  # all of it without a further renewal
    columns = ["panel", "round", "vector", "eigenvalue", "bits", *printed, "replicate", "device"]
    frame = pd.concat([example, growth], ignore_index=True)[columns].fillna(0)
    return frame[frame["vector"] <= _SHOWN]


_PANELS = {
    "eigenvalue": "Eigenvalues",
    "bits": f"{sum(PRINTED_BITS)} bits per coordinate",
    "growth": "Until the next renewal",
}
_EXAMPLE_LINES = {
    "found": Line("nearest found", BLUE, "-", "o"),
    "printed": Line("published", ORANGE, "", "s", size=6.0, filled=False),
}


def _found_and_printed(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of the example in the table of `_bit_allocation`, and the points of the growth."""
    growth = frame[frame["panel"] == "growth"].assign(metric="growth")
    found = frame[(frame["panel"] == "example") & (frame["vector"] <= _IN_EXAMPLE)]
    printed = found[found["printed_eigenvalue"] > 0]
    curves = [
        rows.assign(metric=metric, curve=curve, mean=rows[column])
        for metric in ("eigenvalue", "bits")
        for curve, rows, column in (("found", found, metric), ("printed", printed, f"printed_{metric}"))
    ]
    # Their horizontal axis is that of the vectors.
    return pd.concat([*curves, growth]).rename(columns={"round": "at_round"})


def _note_device(ax: Axes, panel: pd.DataFrame, *_: Any) -> None:
    nearest = panel.iloc[0]
    if nearest["metric"] == "eigenvalue":
        note(ax, "seed {replicate:g}, device {device:g}, round {at_round:g}".format(**nearest))


def _draw_growth(ax: Axes, panel: pd.DataFrame) -> None:
    table = panel.pivot_table("bits", "at_round", "vector")
    # Not pcolormesh, which shows nothing of a single round.
    vectors, rounds = table.columns, table.index
    ends = (vectors[0] - 0.5, vectors[-1] + 0.5, rounds[0] - 0.5, rounds[-1] + 0.5)
    image = ax.imshow(
        table.to_numpy(), cmap="viridis", rasterized=True, origin="lower", aspect="auto", extent=ends
    )
    ax.figure.colorbar(image, ax=ax, label="bits per coordinate so far")
    ax.grid(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))


def _compared(inputs: Inputs) -> pd.DataFrame:
    return _gaps(inputs, COMPARED, CHANNELS)


def _of_data(number: int, data: str) -> list[Grid]:
    """Return a figure of the paper, against rounds as there, against bits, and with steps halved from 1."""
    return [
        figure(
            f"fig{number}",
            title=f"Figure {number}: {EXPERIMENTS[data]}",
            caption=f"Relative cost f − f* against communication rounds on {_DATA[data]}, without and with "
            f"Rayleigh fading. {_BANDS} {_READINGS} {_FEDNL}",
            source=_compared,
            columns=[*PANELS, X("round")],
        ),
        figure(
            f"fig{number}_bits",
            title=f"Figure {number} against bits",
            caption=f"The same runs on {EXPERIMENTS[data]} against the bits that all devices have sent, the "
            "line search's included. FedNL's rank-1 message has 32 bits per coordinate, the whole budget "
            f"without fading; with 16 bits it would take half of it. {_BANDS}",
            source=_compared,
            columns=[*PANELS, X("megabits")],
        ),
        figure(
            f"fig{number}_halved",
            title=f"Figure {number} with steps halved from 1",
            caption=f"Relative cost against rounds on {_DATA[data]}, with another line search: steps 1, 1/2, "
            "…, until Armijo's condition holds with GIANT's constant 0.1. Renewals, dither and bits are "
            f"those of Figure {number}. {_BANDS} FedNL starts from zero Hessians.",
            source=_compared,
            columns=[*PANELS, X("round")],
        ),
    ]


FIGURES = by_name(
    *_of_data(1, "fmnist"),
    *_of_data(2, "w8a"),
    figure(
        "baselines",
        title="Further methods",
        caption="Relative cost against rounds without fading, of SHED, variants of FedNL, GIANT, "
        "distributed Newton and gradient descent beside Q-SHED. The last three do not keep to the budget. "
        f"FedNL's variants are in panels of their own. {_BANDS}",
        # FedNL at 16 bits a coordinate takes the same steps without fading.
        source=lambda inputs: _gaps(inputs, LINES.keys() - {"fednl.vector16_ls"}, ["constant"]),
        shown=_in_kinds,
        rows=[By("kind", _KINDS)],
        columns=[By("experiment", EXPERIMENTS), X("round")],
    ),
    figure(
        "conditions",
        title="Conditioning and heterogeneity",
        caption="Relative cost against rounds on Fashion-MNIST without fading: samples assigned "
        "at random at µ = 1e-5 (ill-conditioned, with Q-SHED choosing q exactly, too) and at 1e-2 "
        "(well-conditioned), and sorted by class at µ = 1e-5. GIANT and Newton's method do not keep to the "
        f"budget. {_BANDS}",
        source=lambda inputs: _gaps(inputs, LINES, CHANNELS),
        columns=[By("case", CONDITIONS), X("round")],
    ),
    figure(
        "conditions_printed",
        title="Conditioning and heterogeneity, features as printed",
        caption="Relative cost against rounds of the methods that need neither renewals nor a dither, with "
        "90 principal components and no constant, as the paper prints them. Otherwise as in the figure "
        f"before. {_BANDS}",
        source=lambda inputs: _gaps(inputs, LINES, CHANNELS),
        columns=[By("case", CONDITIONS), X("round")],
    ),
    Made(
        "choices",
        "What the paper leaves open",
        "Rounds to a relative cost of 1e-6 (marks: medians over seeds, bars: range) with one choice changed "
        "at a time: renewal rounds, dither, overload of the quantiser, budget, µ, FedNL's start and the "
        "bits of its vectors, line search. With fading only overload, budgets, these bits and line searches "
        "are changed. No mark: the choice does not concern the method, or was not run with fading. Thin "
        "lines: the choices of Figures 1 and 2; open triangles: not reached within the run (dashed). The "
        "PDF has a page for each data set.",
        _choices,
        _draw_choices,
        pages=("experiment",),
    ),
    figure(
        "bit_allocation",
        title="Bits of each eigenvector",
        caption="Section IV-A's example. Left: the printed eigenvalues and those of the device and round, "
        "in our runs on FMNIST with fading, that come closest to them, by the largest difference; middle: "
        "bits per coordinate, printed and found for that spectrum with the same budget; right: how that "
        "device's bits grow until its next Hessian.",
        source=_bit_allocation,
        shown=_found_and_printed,
        columns=[By("metric", _PANELS)],
        lines=_EXAMPLE_LINES,
        metric="metric",
        diagrams={"growth": _draw_growth},
        x={"vector": "eigenvector"},
        y={"eigenvalue": "eigenvalue", "bits": "bits per coordinate", "growth": "round"},
        log_y={"eigenvalue": True, "bits": False},
        limits=None,
        annotate=_note_device,
        width=3.6,
        height=3.2,
    ),
)
