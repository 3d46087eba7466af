"""The paper's figures, and where the ten curves of Theorem 4's example end."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from replifed.figures.artefact import By, Grid, Made, by_name
from replifed.figures.lines import Line, described
from replifed.figures.summaries import averages

from . import example

COLOURS = "blue", "orange", "green", "purple", "vermillion", "sky", "black"
ENDS = ["steps", "E", "rounds", "last step", "distance of its fixed point", "10 F", "distance"]
OPEN = {"dashes": "", "marker": "o", "size": 3.5, "filled": False}
RULES = {"fixed": "step .4", "decaying": "authors' decaying steps", "falling": "steps .08 / (1 + 2e-4 r)"}
NAMES = {
    **{"synthetic00": "synthetic(0, 0)", "synthetic11": "synthetic(1, 1)"},
    **{"balanced": "MNIST balanced", "unbalanced": "MNIST unbalanced"},
}
READINGS = {
    "text": described("text", "blue", "solid"),
    "code": described("code", "vermillion", "long"),
    "mixed": described("text, but the code's step rule", "green", "solid"),
    "ridge of the text": described("code, but the text's ridge", "purple", "dots"),
    "rule of the text": described("code, but the text's step rule", "orange", "short"),
    "start of the text": described("code, but the text's start", "sky", "dots"),
    "published": Line("published", "black", **OPEN),
}
COHORTS = {
    K: described(f"K = {K}", colour, "solid")
    for K, colour in zip((10, 30, 50, 70, 100), COLOURS, strict=False)
}
SCHEMES = {
    "I": described("scheme I", "blue", "solid"),
    "transformed": described("scheme II, transformed", "green", "short"),
    "II": described("scheme II", "orange", "long"),
    "original": described("original, step .9", "vermillion", "dots"),
    "original .3": described("original, step .3", "purple", "dots"),
}
THEOREMS = {"full": 0.0, "I": 1 / 2, "II": (example.N - 2) / (example.N - 1) / 2}
BOUNDS = {
    f"{scheme}{more}": described(f"{scheme}{more}", colour, dashes)
    for scheme, colour in zip(THEOREMS, COLOURS, strict=False)
    for more, dashes in {"": "solid", " bound": "dots"}.items()
}
# On balanced MNIST Figure 1a counts rounds to this loss, elsewhere to that of E = 100 after so many rounds.
LEVEL, AFTER = 0.5, {"synthetic00": 101, "synthetic11": 140, "unbalanced": 100}


def published(name: str) -> pd.DataFrame:
    """One of the files of the authors' numbers."""
    return pd.read_csv(Path(__file__).with_name("published") / f"{name}.csv")


def kind(experiment: str) -> str:
    """What an experiment's name says of its data: "balanced" of "e_balanced_text"."""
    return experiment.split("_")[1]


def rounds_to_level(history: pd.DataFrame, data: str) -> pd.DataFrame:
    """First round of each curve at or below the level of its data; NaN where it ran out of rounds."""
    found = []
    for (reading, replicate), one in history.groupby(["reading", "replicate"]):
        table = one.pivot_table(index="round", columns="local_steps", values="objective")
        level = table[100].loc[: AFTER[data]].min() if data in AFTER else LEVEL
        for E in table:
            below, known = table.index[table[E] <= level], {"reading": reading, "replicate": replicate}
            known |= {"local_steps": E, "ran": table[E].last_valid_index()}
            found.append({**known, "rounds": below.min() if len(below) else np.nan})
    return pd.DataFrame(found)


def _theorem4(inputs):
    frames = [published("theorem4").replace({"fix": "fixed", "decay": "decaying"})]
    frames[0] = frames[0].set_axis(["experiment", "local_steps", "round", "loss", "distance"], axis=1)
    frames[0] = frames[0][frames[0]["round"].isin(np.unique(frames[0]["round"])[::3])].assign(
        stored=" stored"
    )
    for history in inputs.histories():
        recorded = np.unique(history["round"])[1:]
        some = recorded[np.searchsorted(recorded, np.geomspace(recorded[0], recorded[-1], 200) - 0.5)]
        frames.append(history[history["round"].isin(some)].assign(stored=""))
    table = pd.concat(frames, ignore_index=True).rename(columns={"distance": "mean"})
    table["curve"] = table["local_steps"].astype(str) + table["stored"]
    return table[["experiment", "local_steps", "curve", "round", "mean"]]


def _example_lines(table):
    several = sorted(table["local_steps"].unique())
    looks = {str(E): described(f"E = {E}", *one, "solid") for E, *one in zip(several, COLOURS, strict=False)}
    return looks | {f"{E} stored": look._replace(**OPEN, explained=False) for E, look in looks.items()}


def _ends(inputs):
    found = []
    for experiment, method in inputs.runs():
        history, given = inputs.run(experiment, method), inputs.experiment(experiment)
        for E, a in zip(given.local_steps, given.falls, strict=True):
            end = history[history["local_steps"] == E].sort_values("round").iloc[-1]
            step = given.step / (1 + a * (end["round"] - 1))
            numbers = step, example.plateau(E, step), float(end["loss"]), float(end["distance"])
            found.append([RULES[experiment], E, int(end["round"]), *map(repr, map(float, numbers))])
    return pd.DataFrame(found, columns=ENDS)


def bound_of(scheme: str, rounds: int) -> float:
    """The bound of the theorem on a scheme with E = 5, and K = 2 of the five devices, after some rounds."""
    return float(example.bound(5 * rounds, 5, THEOREMS[scheme]))


def _bounds(inputs):
    table = averages(inputs.histories(), ["scheme"], axes=()).query("round > 0")
    bounds = [bound_of(*at) for at in zip(table["scheme"], table["round"], strict=True)]
    theirs = table.assign(mean=bounds, low=bounds, high=bounds, scheme=table["scheme"] + " bound")
    return pd.concat([table, theirs], ignore_index=True)


def _run(inputs):
    theirs = published("run").rename(columns={"loss_on_train_data": "mean"})[["round", "mean"]]
    theirs = theirs[theirs["round"].isin(np.geomspace(1, 200, 40).astype(int))]
    theirs = theirs.assign(reading="published", low=theirs["mean"], high=theirs["mean"])
    ours = averages(inputs.histories(), ["reading"], axes=())[[*theirs]]
    return pd.concat([ours, theirs], ignore_index=True).query("round > 0")


def _fig1a(inputs):
    theirs = published("fig1a").set_axis(["on", "local_steps", "mean"], axis=1).assign(reading="published")
    theirs["on"] = theirs["on"].map(dict(zip(theirs["on"].unique(), NAMES.values(), strict=False)))
    frames = [theirs.assign(low=theirs["mean"], high=theirs["mean"])]
    for experiment, method in inputs.runs():
        found = rounds_to_level(inputs.run(experiment, method), kind(experiment)).dropna()
        found = found.groupby(["reading", "local_steps"])["rounds"].agg(mean="mean", low="min", high="max")
        frames.append(found.reset_index().assign(on=NAMES[kind(experiment)]))
    return pd.concat(frames, ignore_index=True)


def _means(by):
    def table(inputs):
        named = (one.assign(on=NAMES[kind(one["experiment"].iloc[0])]) for one in inputs.histories())
        return averages(named, ["on", "reading", by], axes=())

    return table


PANELS = By("on", {name: name for name in NAMES.values()})
BY_DATA = {"rows": [By("reading", {"text": "text", "code": "code"})], "columns": [PANELS], "log_bands": True}
E_AXIS = {"x": {"local_steps": "local steps E"}, "y": "rounds", "columns": [PANELS], "log_x": True}
OF_EXAMPLE = {"columns": [By("experiment", RULES)], "y": "|w - w*|", "log_x": True}
STORED = {"others": [Line("authors' stored numbers", "grey", **OPEN)]}
# By figure: its table, the column that tells curves apart, their lines, and what else it needs.
GRIDS = {
    "theorem4": (_theorem4, "curve", _example_lines, OF_EXAMPLE | STORED),
    "bounds": (_bounds, "scheme", BOUNDS, {"y": "F(w) - F*", "log_x": True}),
    "run": (_run, "reading", READINGS, {"log_x": True, "width": 6.0}),
    "fig1a": (_fig1a, "reading", READINGS, E_AXIS),
    "fig1b": (_means("cohort"), "cohort", COHORTS, BY_DATA),
    "fig1c": (_means("scheme"), "scheme", SCHEMES, BY_DATA),
    "fig1d": (_means("scheme"), "scheme", SCHEMES, BY_DATA),
}
TEXTS = yaml.safe_load(Path(__file__).with_name("figures.yaml").read_text(encoding="utf-8"))
AXES = {"x": {"round": "communication rounds"}, "y": "cross-entropy", "log_y": True, "prefix": "Li et al."}
FIGURES = {
    name: Grid(name, source=source, series=series, lines=look, **TEXTS[name], **(AXES | more))
    for name, (source, series, look, more) in GRIDS.items()
}
TITLE = "Where the curves of Theorem 4's example end"
CAPTION = "In all digits of a double, and the point that rounds of the last step leave where it is."
TABLES = by_name(Made("ends", TITLE, CAPTION, _ends, lambda table: table[ENDS], texts=ENDS))
