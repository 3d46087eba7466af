"""Accuracy on samples kept for a test: curves, and what each method needs to come near the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.pairs import used_until
from replifed.claims.samples import copies_in_words
from replifed.engine.accuracy import ACCURACY, NEW, WORST
from replifed.figures.artefact import By, Grid, Made, X
from replifed.figures.summaries import averages, median_and_range, short, use_until_target
from replifed.papers.cross import cohorts
from replifed.papers.cross.named import BY_PROBLEM, problem_name
from replifed.papers.cross.timed import rates_of, timed
from replifed.papers.cross.used import WITH_TIME, ends, head_of

NAMES = {ACCURACY: "accuracy", WORST: "worst tenth", NEW: "new clients"}
# Share of the best accuracy that is a target.
SHARE = 0.9
_ROUNDING = 1e-9

_SAID = (
    "Test samples are neither trained nor tuned on. Accuracy: mean over the clients that train, or the share "
    "of all test samples where these belong to none of them. Worst tenth: mean over the tenth of these "
    "clients, rounded up, for which it is lowest. New clients: mean over clients that never take part. A run "
    "that diverges counts as 0 from then on, so that every seed is in every number."
)


def _curves(inputs: Any) -> pd.DataFrame:
    """Median accuracies of all seeds, round by round, and by time if that is asked for."""
    frames, more = [], [] if rates_of(inputs) is None else ["seconds"]
    for history in timed(inputs).histories():
        values = [name for name in NAMES if name in history]
        counted = history.assign(diverged=False)
        by, axes = ["experiment", "method"], ["bits", "sample_gradients", *more]
        frame = averages([counted], by, values, metric="metric", centre="median", band="range", axes=axes)
        frames.append(frame.assign(diverged=int(history.groupby("replicate")["diverged"].last().sum())))
    return pd.concat(frames, ignore_index=True)


def _target(histories: Mapping[str, pd.DataFrame]) -> tuple[float, float]:
    """Highest median over seeds, of all methods and rounds, and the share of it to reach."""
    best = max(history.groupby("round")[ACCURACY].median().max() for history in histories.values())
    return float(best), SHARE * float(best)


def _accuracies(inputs: Any) -> pd.DataFrame:
    """A row a problem, method and use: accuracies at the end, and what was used until near the best."""
    rows, inputs = [], timed(inputs)
    for experiment in inputs.experiments():
        histories = {method: inputs.run(experiment, method) for method in inputs.methods(experiment)}
        best, target = _target(histories)
        for method, history in histories.items():
            last = history.groupby("replicate").last()
            shared = ends(history) | {"diverged": int(last["diverged"].sum()), "best": best, "target": target}
            for name in (name for name in NAMES if name in last):
                values = last[name].to_numpy(float)
                shared |= {name: np.median(values), f"{name}_low": values.min(), f"{name}_high": values.max()}
            shared |= {name: int(last[name].min()) for name in last if str(name).startswith("test_")}
            wrong = history.assign(wrong=1 - history[ACCURACY])
            for (_, use), one in used_until(wrong, [1 - target + _ROUNDING], "wrong").items():
                uses = use_until_target(one.values, one.bounds == 0)
                rows.append({"experiment": experiment, "method": method, "used": use, **uses, **shared})
    return pd.DataFrame(rows)


def _show(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table a problem, headed by what it is over, the most accurate method first."""
    tables, named = {}, cohorts.labels_of(frame)
    for experiment, part in frame.groupby("experiment", sort=False):
        one = part.iloc[0]
        order = part[part["used"] == "round"].sort_values([ACCURACY, "gap"], ascending=[False, True])[
            "method"
        ]
        lines = [_line(named.get(method, method), part[part["method"] == method]) for method in order]
        name, target = problem_name(str(experiment)), f"{one['target']:.3g}"
        target += ", which the start has" if not part["median"].any() else ""
        tables[f"{name}. Over {', '.join(_over(one))}. Target: {target}"] = pd.DataFrame(lines)
    return tables


def _over(one: pd.Series) -> Iterator[str]:
    yield f"{one['seeds']} seeds"
    yield f"at least {one['test_samples']:,} test samples a seed"
    if one["test_clients"]:
        yield f"{one['test_clients']} clients"
    if one["test_new_clients"]:
        yield f"{one['test_new_clients']} new clients"


def _line(label: str, rows: pd.DataFrame) -> dict[str, str]:
    one = next(rows.itertuples())
    copies = copies_in_words(one.runs, one.seeds)
    line = {"method": f"{label} ({copies})" if copies else label}
    for name, head in NAMES.items():
        if name in rows and rows[name].notna().any():
            middle, low, high = (getattr(one, f"{name}{end}") for end in ("", "_low", "_high"))
            line[head] = f"{middle:.3f}" + ("" if one.runs == 1 else f" [{low:.3f}, {high:.3f}]")
    for row in rows.itertuples():
        text = median_and_range(row, short)
        line[head_of(row.used, " to the target")] = text.partition(" [")[0] if row.runs == 1 else text
    line["gap"] = f"{one.gap:.2g}" if np.isfinite(one.gap) else "diverged"
    if one.diverged:
        line["gap"] += f" ({one.diverged} of {one.seeds} diverged)"
    return line


PICTURE = Grid(
    "accuracy",
    prefix="Comparison",
    title="Accuracy on samples kept for a test",
    caption=f"Median and range over seeds. {_SAID}",
    source=_curves,
    pages=[X(*WITH_TIME)],
    rows=[By("metric", NAMES)],
    columns=[BY_PROBLEM],
    series="method",
    lines=cohorts.lines_of,
    x=WITH_TIME,
    y="accuracy",
    log_y=False,
    width=4.2,
    height=2.5,
    legend_columns=5,
)
TABLE = Made(
    "accuracies",
    "Accuracy at the end, and use until it stays at 90 % of the best",
    f"Median [minimum, maximum] over seeds, the most accurate first. {_SAID} The best accuracy is the "
    "highest median over seeds, of all methods and rounds; the target is 90 % of it, and reached when a seed "
    "stays there, at least for the last tenth of the rounds; seeds that never do count as later than all "
    "others. Gap: relative, of the objective on the training samples, at the end.",
    _accuracies,
    _show,
    texts=("method",),
)
