"""Errors and accuracies of FedGradMP and its rivals; a video frame; and Theorem 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import By, Grid, Reference, X, by_name
from replifed.figures.lines import BLACK, BLUE, ORANGE, Line
from replifed.figures.summaries import averages
from replifed.papers.fedgradmp.figures.theory import THEORY
from replifed.papers.fedgradmp.figures.video import VIDEO
from replifed.papers.fedgradmp.paper import (
    DICTIONARIES,
    DIGIT_LINES,
    EXACT_ROUNDS,
    EXPERIMENTS,
    LINES,
    METHODS,
    ORACLE,
    READINGS,
    noise_name,
)
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

_ERROR = "relative error |xₜ − x#| / |x#|"

figure = partial(
    Grid,
    prefix="FedGradMP",
    x={
        "round": "communication rounds",
        "work": "work, in gradients of single samples, all clients",
        "bits": "bits sent, both ways",
    },
    y=_ERROR,
    legend_columns=5,
)


def _errors(
    histories: Iterable[pd.DataFrame],
    by: Sequence[str],
    values: Sequence[str] = ("error",),
    metric: str = "",
) -> pd.DataFrame:
    """Return geometric means: while some seeds are at rounding errors, an interval means nothing."""
    with_work = (history.assign(work=history["sample_gradients"]) for history in histories)
    axes = ("work", "bits")
    return averages(with_work, by, values, metric=metric, centre="geometric", band="range", axes=axes)


def _compared(inputs: Inputs) -> pd.DataFrame:
    """Errors at the best step, and in a series of its own at the best printed step, where it is another one.

    FedIterHT, which runs longest, brings the oracle's line, a series of its own.
    """
    frames = []
    for history in inputs.histories():
        history = history.assign(series=history["method"] + "/" + history["variant"])
        if "reading" in history:
            printed = history["reading"] == "printed"
            oracle = history[~printed & (history["method"] == "fediterht")]
            best = history[~printed].groupby("variant")["step"].first()
            history = history.assign(series=history["series"].where(~printed, history["series"] + "/printed"))
            shown = history[~printed | (history["step"] != history["variant"].map(best))]
            history = pd.concat([shown, oracle.assign(series="oracle", error=oracle["limit"])])
        frames.append(history)
    return _errors(frames, ["experiment", "series"])


# Of Figures 3 to 5.
_AGAINST_ROUNDS_AND_WORK: dict[str, Any] = {
    "source": _compared,
    "columns": [X("round", "work")],
    "series": "series",
    "lines": LINES | {"oracle": ORACLE},
    "log_x": True,  # some go on a hundred times as long as others need
    "legend_columns": 3,
}


# -- Figures 8 and 9 -----------------------------------------------------------------------------------

# The text's left panel of Figure 8 has these steps and larger ones, its right panel the smaller ones.
_LARGE = 0.004
_RATES = {"large": "large steps", "small": "small steps", "loss": "small steps"}


def _by_rates(inputs: Inputs) -> pd.DataFrame:
    by = ["experiment", "variant", "step"]
    frame = _errors(inputs.histories(), by, ["error", "objective"], metric="panel")
    error, large = frame["panel"] == "error", frame["step"] >= _LARGE
    panel = np.select([error & large, error, ~large], list(_RATES), "")
    return frame.assign(panel=panel)[panel != ""].reset_index(drop=True)


def _down_to_a_hundredth(panel: pd.DataFrame) -> tuple[float, float] | None:
    """Limits that show a curve near one as the stall that it is."""
    return (0.01, max(2.0, 1.2 * panel["mean"].max())) if (panel["panel"] == "small").all() else None


def _ranged_by_all(frame: pd.DataFrame) -> pd.DataFrame:
    # The left panel shows how errors grow: there runs that diverge set the range as well.
    return frame.assign(diverged=frame["diverged"].where(frame["panel"] != "large", 0))


def _recovery(inputs: Inputs) -> pd.DataFrame:
    """Error and loss; averages take what is below 1e-17 for rounding, of a loss that is the square of it."""
    frames = []
    for history in inputs.histories():
        series, roots = history["method"] + "/" + history["variant"], np.sqrt(history["objective"])
        frames.append(history.assign(series=series, objective=roots))
    frame = _errors(frames, ["experiment", "series"], ["error", "objective"], metric="panel")
    numbers = frame[["mean", "low", "high"]]
    return frame.assign(**numbers.where(frame["panel"] != "objective", numbers**2))


# -- Remark 4 ------------------------------------------------------------------------------------------

_COUNTS = {
    "bias": Line("10 clients", BLUE, "-", "o"),
    "bias_many": Line("40 clients", ORANGE, "-", "s"),
    "bias_most": Line("160 clients", BLACK, "-", "^"),
}
_ORACLES = {
    f"{name} oracle": line._replace(label=f"{line.label}, oracle", dashes=":", marker="", width=1.0)
    for name, line in _COUNTS.items()
}


def _beside_the_oracle(inputs: Inputs) -> pd.DataFrame:
    frames = []
    for history in inputs.histories():
        name, oracle = history["experiment"], history.assign(error=history["limit"])
        frames.append(pd.concat([history.assign(series=name), oracle.assign(series=name + " oracle")]))
    return _errors(frames, ["series"])


# -- Figures 6 and 7 -----------------------------------------------------------------------------------

_ACCURACIES = (
    "Means over seeds with 95 % intervals, each method at its best step, be it beyond the coarse grid; "
    "FedAvg, FedMid and FedDualAvg have no tau and stand in every row."
)

_WRITERS = {"train_accuracy": "training writers", "test_accuracy": "test writers"}


def _accuracies(inputs: Inputs) -> pd.DataFrame:
    """Accuracies at the best steps, in rounds that are recorded of all methods.

    Column tau is the sparsity level, 0 for methods without one, and sparsity says what it counts.
    """
    (every,) = {inputs.experiment(name).record_every for name in inputs.experiments()}
    frames = []
    for history in inputs.histories():
        history = history[history["round"] % every == 0]
        if "reading" in history:
            history = history[history["reading"] == "own"]
        frames.append(history.assign(work=history["sample_gradients"]))
    by = ["experiment", "method", "variant"]
    frame = averages(frames, by, list(_WRITERS), metric="panel", axes=("work", "bits"))
    sparse = frame["method"].isin(["fedgradmp", "fediterht"])
    tau = pd.to_numeric(frame["variant"].where(sparse, "0")).astype(int)
    apart, together = (tau // 10).map("{} of 784 in each class".format), tau.map("{} of 7840".format)
    sparsity = apart.where(frame["experiment"].str.startswith("digits_classes"), together)
    return frame.assign(tau=tau, sparsity=sparsity).drop(columns="variant")


def _dense_in_every_row(frame: pd.DataFrame) -> pd.DataFrame:
    dense, sparse = frame[frame["tau"] == 0], frame[frame["tau"] > 0]
    copies = (dense.assign(sparsity=sparsity) for sparsity in sparse["sparsity"].unique())
    frame = pd.concat([sparse, *copies], ignore_index=True)
    return frame[frame["round"] > 0]


# Of Figure 6, against rounds and against bits.
_BY_WRITER: dict[str, Any] = {
    "source": _accuracies,
    "shown": _dense_in_every_row,
    "rows": [By("sparsity", "τ = {}".format)],
    "series": "method",
    "lines": DIGIT_LINES,
    "metric": "panel",
    "y": "accuracy",
    "log_y": False,
    "height": 2.3,
}


def _at_common_tau(inputs: Inputs) -> pd.DataFrame:
    """Accuracies at the sparsity levels that the Gaussian atoms have, too."""
    frame = _accuracies(inputs).drop(columns="sparsity")
    common = frame.loc[frame["experiment"].str.startswith("digits_gaussian"), "tau"]
    return frame[frame["tau"].isin(common)]


def _training_writers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["panel"] == "train_accuracy") & (frame["round"] > 0)]


FIGURES = by_name(
    figure(
        "fig1",
        title="Figure 1: linear convergence",
        caption="Relative error of FedGradMP with K = 1 against rounds for four variances alpha of the "
        f"clients' means; noiseless on the left, noisy on the right. {_BANDS}",
        source=lambda inputs: _errors(inputs.histories(), ["experiment", "noise", "alpha"]),
        columns=[By("noise", noise_name)],
        series="alpha",
        lines=By("alpha", "α = {:g}".format).lines,
    ),
    figure(
        "fig3",
        title="Figure 3: low heterogeneity",
        caption=f"Relative error of all methods against rounds, {_STEPS}. {_WORK} {_BANDS}",
        **_AGAINST_ROUNDS_AND_WORK,
    ),
    figure(
        "fig4",
        title="Figure 4: high heterogeneity",
        caption=f"As Figure 3, with clients' means of variance 0.5. {_WORK} {_BANDS}",
        **_AGAINST_ROUNDS_AND_WORK,
    ),
    figure(
        "fig5",
        title="Figure 5: many non-zeros",
        caption=f"As Figure 4 with 400 non-zeros, FedGradMP with gradient descent inside. {_WORK} {_BANDS}",
        **_AGAINST_ROUNDS_AND_WORK,
    ),
    VIDEO,
    figure(
        "fig6",
        title="Figure 6: digits by writer",
        caption="Accuracy on the training writers (left) and on others (right) against rounds, a row for "
        "each sparsity level tau, which the paper does not state: of all ten classes together, or of each, "
        f"as Section IV-D prints. {_ACCURACIES}",
        columns=[By("panel", _WRITERS)],
        **_BY_WRITER,
    ),
    figure(
        "fig6_bits",
        title="Figure 6 against bits (not in the paper)",
        caption=f"The accuracies of Figure 6 against the bits sent both ways. {_ACCURACIES}",
        columns=[By("panel", _WRITERS), X("bits")],
        **_BY_WRITER,
    ),
    figure(
        "fig7",
        title="Figure 7: random Gaussian dictionary",
        caption="Training accuracy of FedGradMP with the standard basis of 784 pixels and with 200 random "
        "Gaussian atoms, at equal tau of all ten classes, or of each. At 2000 no coefficient of the atoms is "
        f"set to zero; at 500, 50 in each class, 150 of 200 are. {_ACCURACIES.split(';')[0]}.",
        source=_at_common_tau,
        shown=_training_writers,
        columns=[By("tau", "τ = {}".format)],
        series="experiment",
        lines=DICTIONARIES,
        y="training accuracy",
        log_y=False,
        width=3.6,
    ),
    figure(
        "fig8",
        title="Figure 8: FedIterHT's learning rates",
        caption="Relative error of FedIterHT at the larger steps, at the smaller ones, and the latter's "
        "loss; the PDF has a page for each choice of tau and of the gradients' scale, which the text leaves "
        f"open. On the left, curves end where all seeds have diverged. {_BANDS}",
        source=_by_rates,
        shown=_ranged_by_all,
        pages=[By("variant", READINGS)],
        columns=[By("panel", _RATES)],
        series="step",
        lines=By("step", "{:g}".format).lines,
        metric="panel",
        y={"large": _ERROR, "small": _ERROR, "loss": "loss"},
        log_y=True,
        limits=_down_to_a_hundredth,
        width=4.0,
        legend_columns=7,
    ),
    figure(
        "fig8_baselines",
        title="Figure 8's steps with other methods (not in the paper)",
        caption="Relative error of FedMid, FedDualAvg and FedAvg at the steps and on the data of Figure 8, "
        "with the loss as printed; according to the text they behave as FedIterHT does. Curves end where "
        f"all seeds have diverged. {_BANDS}",
        source=lambda inputs: _errors(inputs.histories(), ["experiment", "method", "step"]),
        shown=lambda frame: frame.assign(diverged=0),
        columns=[By("method", METHODS)],
        series="step",
        lines=By("step", "{:g}".format).lines,
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
        source=_beside_the_oracle,
        series="series",
        lines=_COUNTS | _ORACLES,
        width=4.4,
    ),
    figure(
        "fig9",
        title="Figure 9: exact recovery",
        caption="Relative error and loss of FedGradMP with K = 3 on the data of Figure 8. Dotted: the "
        f"rounds to machine precision that the paper prints. {_BANDS}",
        source=_recovery,
        columns=["panel"],
        series="series",
        lines=LINES,
        metric="panel",
        y={"error": _ERROR, "objective": "loss"},
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
    figure(
        "fig10",
        title="Figure 10: number of local iterations",
        caption="Relative error of FedGradMP for each number of local iterations K; noiseless on the left, "
        f"noisy on the right. {_BANDS}",
        source=lambda inputs: _errors(inputs.histories(), ["experiment", "noise", "local_steps"]),
        columns=[By("noise", noise_name)],
        series="local_steps",
        lines=By("local_steps", "K = {}".format).lines,
    ),
    figure(
        "fig11",
        title="Figure 11: cohort size",
        caption="Relative error of FedGradMP for each number of clients that take part in a round; "
        "noiseless on the left, noisy on the right; at the dimension of all other figures and at the "
        "printed one, with one local iteration and with three. Below 1e-14 is rounding: that 20 clients "
        "rise there is their weight, 1/20, which is no binary number, so that each mean of their equal "
        f"models is longer by some units in the last place. {_BANDS}",
        source=lambda inputs: _errors(inputs.histories(), ["experiment", "noise", "local_steps", "cohort"]),
        rows=[By("experiment", EXPERIMENTS), By("local_steps", "K = {}".format)],
        columns=[By("noise", noise_name)],
        series="cohort",
        lines=By("cohort", "{} clients".format).lines,
    ),
    THEORY,
)
