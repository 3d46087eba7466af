"""Figures 6 and 7: accuracies on digits, by sparsity level and by dictionary."""

from __future__ import annotations

from functools import partial

import pandas as pd

from replifed.figures.grid import By, X
from replifed.papers.fedgradmp.figures.regression import figure, with_series
from replifed.papers.fedgradmp.paper import DICTIONARIES, DIGIT_LINES
from replifed.papers.inputs import Inputs

_CAPTION = (
    "Means over seeds with 95 % intervals, each method at its best step, be it beyond the coarse grid; "
    "FedAvg, FedMid and FedDualAvg have no tau and stand in every row."
)

_WRITERS = {"train_accuracy": "training writers", "test_accuracy": "test writers"}


def _with_tau(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the sparsity level in column tau; methods without one have tau = 0.

    Column sparsity says what it counts.
    """
    sparse = frame["method"].isin(["fedgradmp", "fediterht"])
    tau = pd.to_numeric(frame["variant"].where(sparse, "0")).astype(int)
    apart, together = (tau // 10).map("{} of 784 in each class".format), tau.map("{} of 7840".format)
    sparsity = apart.where(frame["experiment"] == "digits_classes", together)
    return frame.assign(tau=tau, sparsity=sparsity).drop(columns="variant")


def _dense_in_every_row(frame: pd.DataFrame) -> pd.DataFrame:
    dense, sparse = frame[frame["tau"] == 0], frame[frame["tau"] > 0]
    copies = (dense.assign(sparsity=sparsity) for sparsity in sparse["sparsity"].unique())
    frame = pd.concat([sparse, *copies], ignore_index=True)
    return frame[frame["round"] > 0]


def _at_common_tau(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines with a tau that the Gaussian atoms have, too."""
    frame = _with_tau(frame).drop(columns="sparsity")
    common = frame.loc[frame["experiment"] == "digits_gaussian", "tau"]
    return frame[frame["tau"].isin(common)]


def _training_writers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["panel"] == "train_accuracy") & (frame["round"] > 0)]


def _at_best_step(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Select runs at the best steps, and rounds that are recorded of all methods."""
    (every,) = {inputs.experiment(name).record_every for name in inputs.experiments()}
    history = history[history["round"] % every == 0]
    if "reading" in history:
        history = history[history["reading"] == "own"]
    return with_series(history, inputs)


_digits = partial(
    figure,
    prepare=_at_best_step,
    by=("experiment", "method", "variant"),
    metric="panel",
    values=tuple(_WRITERS),
    centre="mean",
    band="ci",
    log_y=False,
)
_by_writer = partial(
    _digits,
    finish=_with_tau,
    shown=_dense_in_every_row,
    rows=[By("sparsity", "τ = {}".format)],
    series="method",
    lines=DIGIT_LINES,
    y="accuracy",
    height=2.3,
)
_dictionaries = partial(
    _digits,
    finish=_at_common_tau,
    shown=_training_writers,
    series="experiment",
    lines=DICTIONARIES,
    y="training accuracy",
    width=3.6,
)


DIGITS = (
    _by_writer(
        "fig6",
        title="Figure 6: digits by writer",
        caption="Accuracy on the training writers (left) and on others (right) against rounds, a row for "
        "each sparsity level tau, which the paper does not state: of all ten classes together, or of each, "
        f"as Section IV-D prints. {_CAPTION}",
        columns=[By("panel", _WRITERS)],
    ),
    _by_writer(
        "fig6_bits",
        title="Figure 6 against bits (not in the paper)",
        caption=f"The accuracies of Figure 6 against the bits sent both ways. {_CAPTION}",
        columns=[By("panel", _WRITERS), X("bits")],
    ),
    _dictionaries(
        "fig7",
        title="Figure 7: random Gaussian dictionary",
        caption="Training accuracy of FedGradMP with the standard basis of 784 pixels and with 200 random "
        "Gaussian atoms, at equal tau of all ten classes, or of each; 2000 is all of the atoms' "
        f"coefficients. {_CAPTION.split(';')[0]}.",
        columns=[By("tau", "τ = {}".format)],
    ),
)
