"""Relative gap of all methods against rounds, bits and sample gradients."""

from __future__ import annotations

from functools import partial

import pandas as pd

from replifed.figures.artefact import by_name
from replifed.figures.grid import By, Grid, X
from replifed.papers.cross.paper import EXPERIMENTS, FIRST_ORDER, SECOND_ORDER, SETTING

# Curves end here; below, gaps are of no use to a statistician and soon of rounding.
_FLOOR = 1e-10


def _to_the_floor(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out what comes after the first round at the floor."""
    curves = (frame["median"] <= _FLOOR).groupby([frame["experiment"], frame["method"]])
    passed = curves.transform(lambda low: low.shift(fill_value=False).cummax())
    return frame[~passed].reset_index(drop=True)


figure = partial(
    Grid,
    prefix="All methods on the same problems",
    by=("experiment", "method"),
    rows=[By("experiment", EXPERIMENTS)],
    columns=[X("round", "bits", "sample_gradients")],
    series="method",
    values=("gap",),
    centre="median",
    band="range",
    axes=("bits", "sample_gradients"),
    finish=_to_the_floor,
    x={"round": "communication rounds", "bits": "bits sent", "sample_gradients": "sample gradients"},
    y="relative gap",
    log_y=True,
    limits=(_FLOOR / 3, 3.0),
    width=4.2,
    height=2.5,
    legend_columns=5,
)

FIGURES = by_name(
    figure(
        "fig1",
        title="First-order methods",
        caption=(
            f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {SETTING} FedHT, FedIterHT, "
            "Distributed-IHT and FedGradMP look for sparse models, so that a gap remains."
        ),
        lines=FIRST_ORDER,
    ),
    figure(
        "fig2",
        title="Methods that send curvature",
        caption=(
            "The same for methods that use Hessians, with the same budget of bits per coordinate and round "
            "for those that fit their messages to one."
        ),
        lines=SECOND_ORDER,
    ),
)
