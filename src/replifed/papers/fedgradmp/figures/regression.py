"""Figures 1, 3 to 5 and 8 to 11: errors on regression by method, step, noise, heterogeneity, K and cohort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from replifed.figures.grid import By, Grid, Reference, X
from replifed.figures.lines import BLACK, BLUE, ORANGE, Line, sequence_lines
from replifed.papers.fedgradmp.paper import EXACT_ROUNDS, EXPERIMENTS, LINES, METHODS, ORACLE, READINGS
from replifed.papers.inputs import Inputs

_BANDS = (
    "Lines: geometric means over seeds; bands: from the best to the worst seed. A cross marks the round in "
    "which a seed diverged; such seeds are not in the mean."
)
_WORK = (
    "On the right the work that was counted instead of the paper's wall-clock time: gradients of single "
    "samples over all clients; a least-squares solution counts as the gradients that cost as much."
)
_STEPS = (
    "each at its best step, be it beyond the printed grid, and where that is another one, at its best "
    "printed step as well; and the error of least squares of all samples on the true support, the oracle"
)

ERROR = "relative error |xₜ − x#| / |x#|"


def with_series(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Return a history with columns series, of its method and variant, and work."""
    return history.assign(
        series=history["method"] + "/" + history["variant"], work=history["sample_gradients"]
    )


def _of_both_steps(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Return a history with a series for the best printed step, too, where it differs from the best step.

    FedIterHT, which runs longest, brings the oracle's line, a series of its own.
    """
    history = with_series(history, inputs)
    if "reading" not in history:
        return history
    printed = history["reading"] == "printed"
    oracle = history[~printed & (history["method"] == "fediterht")]
    best = history[~printed].groupby("variant")["step"].first()
    history = history.assign(series=history["series"].where(~printed, history["series"] + "/printed"))
    shown = history[~printed | (history["step"] != history["variant"].map(best))]
    return pd.concat([shown, oracle.assign(series="oracle", error=oracle["limit"])])


def noise_name(variance: float) -> str:
    """Return the name of a level of noise in titles."""
    return "noiseless" if variance == 0 else f"noise of variance {variance:.3g}"


def in_order(column: str, label: str, frame: pd.DataFrame) -> dict[Any, Line]:
    """Return lines of a sequence for the sorted values of a column."""
    return sequence_lines({value: label.format(value) for value in sorted(frame[column].unique())})


figure = partial(
    Grid,
    prefix="FedGradMP",
    prepare=with_series,
    by=("experiment", "series"),
    series="series",
    lines=LINES,
    values=("error",),
    # While some seeds are at rounding errors and others not, an interval means nothing.
    centre="geometric",
    band="range",
    axes=("work", "bits"),
    y=ERROR,
    x={
        "round": "communication rounds",
        "work": "work, in gradients of single samples, all clients",
        "bits": "bits sent, both ways",
    },
    legend_columns=5,
)
# Figures 3 to 5: rounds on the left, counted work on the right.
comparison = partial(
    figure,
    prepare=_of_both_steps,
    lines=LINES | {"oracle": ORACLE},
    columns=[X("round", "work")],
    log_x=True,  # some go on a hundred times as long as others need
    legend_columns=3,
)


def swept(name: str, column: str, label: str, by: Sequence[str] = (), **more: Any) -> Grid:
    """Return a figure with a curve for each value of a column; noiseless on the left, noisy on the right.

    Columns `by` tell curves apart as well.
    """
    return figure(
        name,
        by=("experiment", "noise", *by, column),
        columns=[By("noise", noise_name)],
        series=column,
        lines=partial(in_order, column, label),
        **more,
    )


# Figure 8: the text's left panel has these steps and larger ones, its right panel the smaller ones.
_LARGE = 0.004
_RATES = {"large": "large steps", "small": "small steps", "loss": "small steps"}


def _by_rates(frame: pd.DataFrame) -> pd.DataFrame:
    error, large = frame["panel"] == "error", frame["step"] >= _LARGE
    panel = np.select([error & large, error, ~large], list(_RATES), "")
    return frame.assign(panel=panel)[panel != ""].reset_index(drop=True)


def _down_to_a_hundredth(panel: pd.DataFrame) -> tuple[float, float] | None:
    """Limits that show a curve near one as the stall that it is."""
    return (0.01, max(2.0, 1.2 * panel["mean"].max())) if (panel["panel"] == "small").all() else None


def _ranged_by_all(frame: pd.DataFrame) -> pd.DataFrame:
    # The left panel shows how errors grow: there runs that diverge set the range as well.
    return frame.assign(diverged=frame["diverged"].where(frame["panel"] != "large", 0))


# Remark 4's experiments.
_COUNTS = {
    "bias": Line("10 clients", BLUE, "-", "o"),
    "bias_many": Line("40 clients", ORANGE, "-", "s"),
    "bias_most": Line("160 clients", BLACK, "-", "^"),
}


def _oracle_of(line: Line) -> Line:
    return line._replace(label=f"{line.label}, oracle", dashes=":", marker="", width=1.0)


def _beside_the_oracle(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    history = with_series(history, inputs)
    name, oracle = history["experiment"], history.assign(error=history["limit"])
    return pd.concat([history.assign(series=name), oracle.assign(series=name + " oracle")])


def _with_roots(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    # Averages take what is below 1e-17 for rounding; of a square that is the square of it.
    return with_series(history, inputs).assign(objective=np.sqrt(history["objective"]))


def _squared_again(frame: pd.DataFrame) -> pd.DataFrame:
    averages = frame[["mean", "low", "high"]]
    return frame.assign(**averages.where(frame["panel"] != "objective", averages**2))


REGRESSION = (
    swept(
        "fig1",
        "alpha",
        "α = {:g}",
        title="Figure 1: linear convergence",
        caption="Relative error of FedGradMP with K = 1 against rounds for four variances alpha of the "
        f"clients' means; noiseless on the left, noisy on the right. {_BANDS}",
    ),
    comparison(
        "fig3",
        title="Figure 3: low heterogeneity",
        caption=f"Relative error of all methods against rounds, {_STEPS}. {_WORK} {_BANDS}",
    ),
    comparison(
        "fig4",
        title="Figure 4: high heterogeneity",
        caption=f"As Figure 3, with clients' means of variance 0.5. {_WORK} {_BANDS}",
    ),
    comparison(
        "fig5",
        title="Figure 5: many non-zeros",
        caption=f"As Figure 4 with 400 non-zeros, FedGradMP with gradient descent inside. {_WORK} {_BANDS}",
    ),
    figure(
        "fig8",
        title="Figure 8: FedIterHT's learning rates",
        caption="Relative error of FedIterHT at the larger steps, at the smaller ones, and the latter's "
        "loss; the PDF has a page for each way to read what the paper leaves open. On the left, curves end "
        f"where all seeds have diverged. {_BANDS}",
        by=("experiment", "variant", "step"),
        metric="panel",
        values=("error", "objective"),
        finish=_by_rates,
        shown=_ranged_by_all,
        log_y={"large": True, "small": True, "loss": True},
        limits=_down_to_a_hundredth,
        pages=[By("variant", READINGS)],
        columns=[By("panel", _RATES)],
        series="step",
        lines=partial(in_order, "step", "{:g}"),
        y={"large": ERROR, "small": ERROR, "loss": "loss"},
        width=4.0,
        legend_columns=7,
    ),
    figure(
        "fig8_baselines",
        title="Figure 8's steps with other methods (not in the paper)",
        caption="Relative error of FedMid, FedDualAvg and FedAvg at the steps and on the data of Figure 8, "
        "with the loss as printed; according to the text they behave as FedIterHT does. Curves end where "
        f"all seeds have diverged. {_BANDS}",
        by=("experiment", "method", "step"),
        shown=partial(pd.DataFrame.assign, diverged=0),
        columns=[By("method", METHODS)],
        series="step",
        lines=partial(in_order, "step", "{:g}"),
        log_y=True,
        width=4.0,
        legend_columns=7,
    ),
    figure(
        "bias",
        title="Remark 4: the bias and the number of clients (not in the paper)",
        caption="Relative error of FedGradMP with all samples of clients whose data have one law. What is "
        "left is noise, of which four times as many clients should leave half, as they do of the error of "
        f"least squares of all samples on the true support, the oracle. {_BANDS}",
        prepare=_beside_the_oracle,
        by=("series",),
        lines=_COUNTS | {f"{name} oracle": _oracle_of(line) for name, line in _COUNTS.items()},
        width=4.4,
    ),
    figure(
        "fig9",
        title="Figure 9: exact recovery",
        caption="Relative error and loss of FedGradMP with K = 3 on the data of Figure 8. Dotted: the "
        f"rounds to machine precision that the paper prints. {_BANDS}",
        metric="panel",
        values=("error", "objective"),
        prepare=_with_roots,
        finish=_squared_again,
        columns=["panel"],
        y={"error": ERROR, "objective": "loss"},
        references=[
            Reference(
                f"published: {EXACT_ROUNDS} rounds",
                x=EXACT_ROUNDS,
                where={"panel": "error"},
                claim="fig9.rounds",
            )
        ],
        width=3.8,
    ),
    swept(
        "fig10",
        "local_steps",
        "K = {}",
        title="Figure 10: number of local iterations",
        caption="Relative error of FedGradMP for each number of local iterations K; noiseless on the left, "
        f"noisy on the right. {_BANDS}",
    ),
    swept(
        "fig11",
        "cohort",
        "{} clients",
        title="Figure 11: cohort size",
        caption="Relative error of FedGradMP for each number of clients that take part in a round; "
        "noiseless on the left, noisy on the right; at the dimension of all other figures and at the "
        "printed one, with one local iteration and with three. Below 1e-14 is rounding: that 20 clients "
        "rise there is their weight, 1/20, which is no binary number, so that each mean of their equal "
        f"models is longer by some units in the last place. {_BANDS}",
        by=("local_steps",),
        rows=[By("experiment", EXPERIMENTS), By("local_steps", "K = {}".format)],
    ),
)
