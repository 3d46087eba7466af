"""Relative cost against rounds or bits, rounds to a threshold, what is left open, bits of eigenvectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replifed.claims.curves import reached
from replifed.claims.samples import UNDECIDED, Sample
from replifed.figures.artefact import Made, by_name
from replifed.figures.grid import By, Curves, Grid, X
from replifed.figures.style import BLUE, GREY, ORANGE, Line, canvas, legend, of_seeds, styled
from replifed.figures.summaries import median_and_range
from replifed.papers.inputs import Inputs
from replifed.papers.qshed.experiments import UNLIMITED, example_bits, nearest_spectrum
from replifed.papers.qshed.paper import (
    CHANNELS,
    EXPERIMENTS,
    LINES,
    PRINTED_BITS,
    PRINTED_VALUES,
    THRESHOLDS,
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
    "Lines are medians over seeds (each draws its own samples), bands the range, of the first "
    f"{DRAWN} rounds."
)
_READINGS = (
    "The paper does not state its renewal rounds, dither and line search; here Hessians are renewed at "
    "rounds 1, 2, 4, 7, 12, 20, …, one dither is shared and subtracted for all refinements, and steps are "
    "halved from 1 (Armijo, with GIANT's constant 0.1). All three were chosen by their fit to the published "
    "savings. Nor does it state what becomes of coordinates that overload the quantiser: here they wrap "
    "around. What other choices do is drawn in the figure of choices."
)
_DATA = {"fmnist": "Fashion-MNIST, class 1 against the rest", "w8a": "w8a"}
_FEDNL = (
    "FedNL starts from zero Hessians; projected without a line search its first step is a gradient step "
    "of length 1/µ, and it diverges."
)


def _runs(kept: Collection[str], channels: Collection[str]) -> Callable[[pd.DataFrame, Any], pd.DataFrame]:
    """Return what takes the runs of some curves over some channels."""

    def prepare(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
        pairs = zip(history["method"], history["variant"], strict=True)
        history = history.assign(
            curve=[curve_name(method, variant) for method, variant in pairs],
            megabits=history["bits_up"] / 1e6,
            experiment=history["experiment"].map(shown_with),
        )
        return history[history["curve"].isin(kept) & history["channel"].isin(channels)]

    return prepare


_KINDS = {"curvature": "Q-SHED and others", "fednl": "Q-SHED and FedNL"}


def _in_kinds(frame: pd.DataFrame) -> pd.DataFrame:
    """FedNL's variants in panels of their own, Q-SHED in all."""
    drawn = frame[frame["round"] <= DRAWN]
    of_fednl = drawn["curve"].str.startswith("fednl")
    return pd.concat(
        [
            drawn[~of_fednl].assign(kind="curvature"),
            drawn[of_fednl | (drawn["curve"] == "qshed")].assign(kind="fednl"),
        ]
    )


def _exact_apart(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """The case with the exact choice of q as a curve of its own, beside those of the default case."""
    history = _runs(LINES, CHANNELS)(history, inputs)
    exact = history["case"] == "exact_q"
    return history.assign(
        curve=history["curve"].mask(exact, "qshed.exact_q"), case=history["case"].mask(exact, "default")
    )


figure = partial(
    Grid,
    prefix="Q-SHED",
    by=("experiment", "method", "variant", "case", "channel", "curve"),
    series="curve",
    lines=LINES,
    values=("gap",),
    centre="median",
    band="range",
    axes=("megabits",),
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
    "vector_32": "FedNL's vectors take 32 bits",
    "start_hessian": "FedNL starts from the Hessians",
    "search_loose": "Armijo constant 1e-4",
    "search_strict": "Armijo constant 0.2",
    "search_half": "Armijo constant 0.5 (FedNL)",
    "search_giant": "10 steps 1, 1/4, … (GIANT)",
}


def columns_of(rounds: Sample, **more: Any) -> dict[str, Any]:
    """Median, low and high over the seeds that got there, `more`, and the numbers of seeds.

    The median is infinite where no more than half of the seeds got there, low and high where not all or none
    did.
    """
    there = rounds.bounds == 0
    return {
        "median": rounds.median_reached,
        "low": rounds.values[there].min() if there.any() else np.inf,
        "high": rounds.values[there].max() if there.all() else np.inf,
        **more,
        "reached": int(there.sum()),
        "seeds": len(there),
    }


def _choices(inputs: Inputs) -> pd.DataFrame:
    """One row for each experiment (without "_choices"), channel, case and method that the case changes.

    Rounds to the threshold, as `columns_of` has them, and `last`: rounds of the run.
    """
    rows = []
    for experiment in inputs.experiments():
        last = inputs.experiment(experiment).rounds
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            keys = ["case", "variant", "channel"]
            for (case, variant, channel), curve in history.groupby(keys, sort=False):
                rows.append(
                    {
                        "experiment": experiment.removesuffix("_choices"),
                        "channel": channel,
                        "case": case,
                        "curve": curve_name(method, variant),
                        **columns_of(reached(curve, THRESHOLD), last=last),
                    }
                )
    return pd.DataFrame(rows)


@styled
def _draw_choices(frame: pd.DataFrame) -> Figure:
    """Draw what `_choices` returns: a panel for each data set and channel, a line for each case."""
    panels = list(dict.fromkeys(zip(frame["experiment"], frame["channel"], strict=True)))
    lines = {name: line for name, line in LINES.items() if (frame["curve"] == name).any()}
    shown = [case for case in CASES if (frame["case"] == case).any()]
    made, axes = canvas(
        1, len(panels), title="Q-SHED · What the paper leaves open", width=3.5, height=0.24 * len(shown) + 0.9
    )
    for ax, (experiment, channel) in zip(axes[0], panels, strict=True):
        one = frame[(frame["experiment"] == experiment) & (frame["channel"] == channel)]
        _draw_choices_of(ax, one, lines, shown)
        ax.set_title(f"{EXPERIMENTS[experiment]}, {CHANNELS[channel]}", loc="left")
        ax.set_xlabel("rounds to 1e-6")
        ax.set_yticks(range(len(shown)), [CASES[case] if ax is axes[0][0] else "" for case in shown])
    legend(made, [*lines.values(), *of_seeds(frame)])
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

# Vectors shown, and those beside the eleven of the example.
_SHOWN, _IN_EXAMPLE = 40, 14


def _bit_allocation(inputs: Inputs) -> pd.DataFrame:
    """Panel "example": printed and found bits; panel "growth": bits of the same device round by round.

    What the paper does not print is zero.
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


_EXAMPLE = {"eigenvalue": "eigenvalue", "bits": "bits per coordinate"}
_EXAMPLE_LINES = {
    "found": Line("nearest found", BLUE, "-", "o"),
    "printed": Line("published", ORANGE, "", "s"),
}


def _found_and_printed(frame: pd.DataFrame) -> pd.DataFrame:
    """Curves of the example that `_bit_allocation` returns; column metric is "eigenvalue" or "bits"."""
    example = frame[(frame["panel"] == "example") & (frame["vector"] <= _IN_EXAMPLE)].drop(columns="round")
    printed = example[example["printed_eigenvalue"] > 0]
    return pd.concat(
        rows.assign(
            metric=metric, curve=curve, mean=rows[metric if curve == "found" else f"printed_{metric}"]
        )
        for metric in _EXAMPLE
        for curve, rows in (("found", example), ("printed", printed))
    )


@styled
def _draw_bit_allocation(frame: pd.DataFrame) -> Figure:
    """Draw what `_bit_allocation` returns."""
    made, axes = canvas(1, 3, title="Q-SHED · Bits of each eigenvector", width=3.6, height=3.2)
    values, bits, growth = axes[0]
    example = frame[(frame["panel"] == "example") & (frame["vector"] <= _IN_EXAMPLE)].sort_values("vector")
    at, nearest = example["vector"].to_numpy(), example.iloc[0]
    printed = example[example["printed_eigenvalue"] > 0]
    values.semilogy(at, example["eigenvalue"], "o-", color=BLUE, label="nearest found")
    values.semilogy(printed["vector"], printed["printed_eigenvalue"], "s", color=ORANGE, label="printed")
    values.set_ylabel(_EXAMPLE["eigenvalue"])
    values.set_title(
        f"Seed {nearest['replicate']:g}, device {nearest['device']:g},\nround {nearest['round']:g}",
        loc="left",
    )
    values.legend(fontsize=7)
    bits.bar(at - 0.2, example["printed_bits"], 0.4, color=ORANGE, label="printed")
    bits.bar(at + 0.2, example["bits"], 0.4, color=BLUE, label="found")
    bits.set_ylabel(_EXAMPLE["bits"])
    bits.set_title(f"{sum(PRINTED_BITS)} bits per coordinate", loc="left")
    bits.legend(fontsize=7)
    table = frame[frame["panel"] == "growth"].set_index(["round", "vector"])["bits"].unstack()  # noqa: PD010
    # Not pcolormesh, which shows nothing of a single round.
    vectors, rounds = table.columns, table.index
    ends = (vectors[0] - 0.5, vectors[-1] + 0.5, rounds[0] - 0.5, rounds[-1] + 0.5)
    image = growth.imshow(
        table.to_numpy(), cmap="viridis", rasterized=True, origin="lower", aspect="auto", extent=ends
    )
    made.colorbar(image, ax=growth, label="bits per coordinate so far")
    growth.grid(False)
    growth.set_ylabel("round")
    growth.set_title("Until the next renewal", loc="left")
    for ax in (bits, growth):
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    for ax in axes[0]:
        ax.set_xlabel("eigenvector")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.tick_params(color=GREY)
    return made


def _compared(number: int, data: str) -> Iterator[Grid]:
    """A figure of the paper, against rounds as there, against bits, and with GIANT's search."""
    compared = partial(figure, prepare=_runs(COMPARED, CHANNELS))
    yield compared(
        f"fig{number}",
        title=f"Figure {number}: {EXPERIMENTS[data]}",
        caption=(
            f"Relative cost f − f* against communication rounds on {_DATA[data]}, "
            f"without and with Rayleigh fading. {_BANDS} {_READINGS} {_FEDNL}"
        ),
        columns=[*PANELS, X("round")],
    )
    yield compared(
        f"fig{number}_bits",
        title=f"Figure {number} against bits",
        caption=(
            f"The same runs on {EXPERIMENTS[data]} against the bits that all devices have sent, the line "
            "search's included. FedNL's message of rank 1 takes half of the budget without fading. "
            f"{_BANDS}"
        ),
        columns=[*PANELS, X("megabits")],
    )
    yield compared(
        f"fig{number}_giant_search",
        title=f"Figure {number} with GIANT's line search",
        caption=(
            f"Relative cost against rounds on {_DATA[data]}, with the line search as GIANT has it, which the "
            "paper names: ten steps 1, 1/4, …, of which the last is taken if none is good enough. Renewals "
            f"and dither are those of Figure {number}. {_BANDS} FedNL starts from zero Hessians."
        ),
        columns=[*PANELS, X("round")],
    )


# -- Tables --------------------------------------------------------------------------------------------

# Q-SHED is not compared with itself, nor with those that no budget limits.
_NO_RIVALS = ("qshed", "ideal_shed", *UNLIMITED)


def saving(mine: Sample, theirs: Sample) -> dict[str, Any]:
    """Median over the seeds that both ran of the share of rounds that `mine` saves, and of how many seeds.

    Not known where it depends on seeds of which nothing is known; `bound` if the truth may be larger.
    """
    one = 1 - mine / theirs
    lowest, highest = (
        float(np.median(np.where(np.isin(one.bounds, unknown), end, one.values)))
        for unknown, end in (((-1, UNDECIDED), -np.inf), ((1, UNDECIDED), np.inf))
    )
    return {"saving": lowest, "bound": highest > lowest, "pairs": len(one.values)}


def _rounds(inputs: Inputs) -> pd.DataFrame:
    """One row for each experiment, channel, method and threshold.

    Beside rounds there are megabits (median of what all devices sent until then) and Q-SHED's `saving`.
    """
    rows = []
    for experiment in inputs.experiments():
        own = inputs.run(shown_with(experiment), "qshed")
        for method in inputs.methods(experiment):
            history = inputs.run(experiment, method)
            for (variant, channel), curve in history.groupby(["variant", "channel"], sort=False):
                for threshold in THRESHOLDS:
                    rounds, bits = reached(curve, threshold), reached(curve, threshold, count="bits_up")
                    mine = reached(own[own["channel"] == channel], threshold)
                    rows.append(
                        {
                            "experiment": shown_with(experiment),
                            "channel": channel,
                            "curve": curve_name(method, variant),
                            "threshold": threshold,
                            **columns_of(rounds, megabits=bits.median_reached / 1e6),
                            **saving(mine, rounds),
                        }
                    )
    return pd.DataFrame(rows)


def _render_rounds(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a method: rounds as median [range], and what Q-SHED saves, for each threshold."""
    rows = []
    for (experiment, channel, name), cells in frame.groupby(["experiment", "channel", "curve"], sort=False):
        row = {
            "Data": EXPERIMENTS[experiment],
            "Channel": CHANNELS[channel],
            "Method": LINES[name].label,
            "Seeds": cells["seeds"].iloc[0],
        }
        for cell in cells.itertuples():
            to = f"{cell.threshold:.0e}"
            row[f"Rounds to {to}"] = median_and_range(cell, "g", " seeds")
            row[f"Mbit to {to}"] = f"{cell.megabits:.3g}" if np.isfinite(cell.megabits) else "–"
            row[f"Saved at {to}"] = "" if name in _NO_RIVALS else _saving(cell)
        rows.append(row)
    return pd.DataFrame(rows)


def _saving(cell: Any) -> str:
    if not np.isfinite(cell.saving):
        return "–"
    return f"{'≥ ' if cell.bound else ''}{100 * cell.saving:.0f} %"


FIGURES = by_name(
    *_compared(1, "fmnist"),
    *_compared(2, "w8a"),
    figure(
        "baselines",
        title="Further methods",
        caption=(
            "Relative cost against rounds without fading, of SHED, all variants of FedNL, GIANT, distributed "
            "Newton and gradient descent beside Q-SHED. The last three do not keep to the budget. "
            f"FedNL's variants are in panels of their own. {_BANDS}"
        ),
        # Without fading, 32 bits a coordinate change FedNL's bits alone.
        prepare=_runs(LINES.keys() - {"fednl.vector32_ls"}, ("constant",)),
        shown=_in_kinds,
        rows=[By("kind", _KINDS)],
        columns=[By("experiment", EXPERIMENTS), X("round")],
    ),
    figure(
        "conditions",
        title="Conditioning and heterogeneity",
        caption=(
            "Relative cost against rounds on Fashion-MNIST without fading, down to 1e-6: samples dealt at "
            "random at µ = 1e-5 (ill-conditioned, with Q-SHED choosing q exactly, too) and at 1e-2 "
            "(well-conditioned), and sorted by class at µ = 1e-5. GIANT and Newton's method do not keep to "
            f"the budget. {_BANDS}"
        ),
        prepare=_exact_apart,
        columns=[By("case", CONDITIONS), X("round")],
        limits=(THRESHOLD / 10, 1.0),
    ),
    Made(
        "choices",
        "What the paper leaves open",
        (
            "Rounds to a relative cost of 1e-6 (marks: medians over seeds, bars: range) with one choice "
            "changed at a time: renewal rounds, dither, overload of the quantiser, budget, µ, FedNL's start "
            "and the bits of its vectors, line search. With fading only overload, budgets, these bits "
            "and line searches are changed. No mark: the choice does not concern the method, or was not run "
            "with fading. Thin lines: the choices of Figures 1 and 2; open triangles: not reached within the "
            "run (dashed). The PDF has a page for each data set."
        ),
        _choices,
        _draw_choices,
        pages=("experiment",),
    ),
    Made(
        "bit_allocation",
        "Bits of each eigenvector",
        (
            "Section IV-A's example. Left: the printed eigenvalues and those of the device and round, in our "
            "runs on FMNIST with fading, that come closest to them, by the largest difference; middle: bits "
            "per coordinate, printed and found for that spectrum with the same budget; right: how that "
            "device's bits grow until its next Hessian."
        ),
        _bit_allocation,
        _draw_bit_allocation,
        curves=Curves(
            shown=_found_and_printed,
            columns=[By("metric", _EXAMPLE)],
            series="curve",
            lines=_EXAMPLE_LINES,
            metric="metric",
            x={"vector": "eigenvector"},
            x_column="vector",
            log_x=False,
            y=_EXAMPLE,
            log_y={"eigenvalue": True, "bits": False},
        ),
    ),
)

TABLES = by_name(
    Made(
        "rounds",
        "Rounds to a threshold",
        (
            "Rounds to a relative cost of 1e-4, 1e-6 and 1e-8 as median [range] over seeds, megabits that "
            "all devices sent until then, and the share of rounds that Q-SHED saves against those that keep "
            "to the budget: the median over the seeds that both have run, at least so much where the other "
            "method does not get there on enough of them. Seeds: those of the method. At 16 bits per "
            "coordinate NQ-SHED's vectors are as good as SHED's: on the same seeds the two take the same "
            "rounds."
        ),
        _rounds,
        _render_rounds,
    ),
)
