"""The paper's figures, and the ten curves of Theorem 4's example as a table."""

from pathlib import Path

import numpy as np
import pandas as pd

from replifed.figures.artefact import By, Grid, Made, by_name
from replifed.figures.lines import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line
from replifed.figures.summaries import averages

from . import example

PUBLISHED = Path(__file__).with_name("published")
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, BLACK)
EXAMPLES = {
    "fixed": "fixed step .4",
    "decaying": "the authors' decaying steps",
    "falling": "steps .08 / (1 + 2e-4 r)",
}


def published(name: str) -> pd.DataFrame:
    """One of the files of the authors' numbers."""
    return pd.read_csv(PUBLISHED / f"{name}.csv", float_precision="round_trip")


def _theorem4(inputs):
    """Distances of every curve at rounds evenly spaced on their logarithms, and the stored ones."""
    frames = []
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method)
        recorded = np.unique(history["round"])[1:]
        rounds = recorded[np.searchsorted(recorded, np.geomspace(recorded[0], recorded[-1], 200) - 0.5)]
        frames.append(history[history["round"].isin(rounds)].assign(experiment=experiment))
    theirs = published("theorem4").replace({"step_rule": {"fix": "fixed", "decay": "decaying"}})
    theirs = theirs.rename(columns={"step_rule": "experiment", "err": "distance"})
    frames += [theirs[theirs["round"].isin(np.unique(theirs["round"])[::3])].assign(stored=True)]
    table = pd.concat(frames, ignore_index=True).rename(columns={"distance": "mean"})
    known = table["stored"].eq(True)
    table["curve"] = (
        table["local_steps"].astype(str).where(~known, table["local_steps"].astype(str) + " stored")
    )
    return table[["experiment", "local_steps", "curve", "round", "mean"]]


def _example_lines(table):
    lines = {}
    for colour, E in zip(COLOURS, sorted(table["local_steps"].unique()), strict=False):
        lines[str(E)] = Line(f"E = {E}", colour)
        lines[f"{E} stored"] = Line("stored", colour, "", "o", size=2.5, filled=False, explained=False)
    return lines


def _ends(inputs):
    """Every curve's last round, in all its digits, beside the fixed point of the last step."""
    lines = []
    for experiment, method in inputs.runs():
        history, given = inputs.run(experiment, method), inputs.experiment(experiment)
        for E, a in zip(given.local_steps, given.falls, strict=True):
            curve = history[history["local_steps"] == E].sort_values("round")
            rounds, end = int(curve["round"].max()), curve.iloc[-1]
            step = given.step / (1 + a * (rounds - 1))
            there = {"rounds": rounds, "last_step": step, "fixed_point": example.plateau(E, step)}
            numbers = {"loss": repr(float(end["loss"])), "distance": repr(float(end["distance"]))}
            lines.append({"experiment": experiment, "local_steps": E, **there, **numbers})
    return pd.DataFrame(lines)


def _ends_shown(table):
    shown = table.assign(experiment=table["experiment"].map(EXAMPLES))
    shown["last_step"] = shown["last_step"].map("{:.6f}".format)
    shown["fixed_point"] = shown["fixed_point"].map("{:.10f}".format)
    names = ["Steps", "E", "Rounds", "Last step", "its fixed point: distance", "10 F", "distance"]
    return shown[
        ["experiment", "local_steps", "rounds", "last_step", "fixed_point", "loss", "distance"]
    ].set_axis(names, axis=1)


FIGURES = by_name(
    Grid(
        "theorem4",
        prefix="Li et al.",
        title="Distance from the minimiser on Theorem 4's example",
        caption="Lines are computed; circles are the authors' stored numbers, of which three curves are not at "
        "hand. Where the step falls by .2 % in the whole run (E = 5 and 10 in the middle), the curve ends at "
        "that step's fixed point, as with a fixed step. Where it does fall, on the right, so does the distance.",
        source=_theorem4,
        columns=[By("experiment", EXAMPLES)],
        series="curve",
        lines=_example_lines,
        x={"round": "communication rounds"},
        y="|w - w*|",
        log_x=True,
        log_y=True,
        others=[Line("authors' stored numbers", GREY, "", "o", size=2.5, filled=False)],
        legend_columns=6,
    ),
)
TABLES = by_name(
    Made(
        "ends",
        "Where the curves of Theorem 4's example end",
        "The curves of the paper's figure and two more, after their last round, in all digits of a double; beside "
        "them the point that rounds of the last step leave where it is.",
        _ends,
        _ends_shown,
        texts=("loss", "distance"),
    )
)
