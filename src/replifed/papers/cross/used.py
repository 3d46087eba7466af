"""What methods use until their relative gap stays at a target, where they end, what their searches cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replifed.algorithms.registry import METHODS, method_class
from replifed.claims.curves import at_the_end
from replifed.claims.pairs import EVERY_USE, pairs, used_until
from replifed.claims.samples import copies_in_words, independent, originals
from replifed.engine.audit import differences
from replifed.engine.trials import Spent
from replifed.figures.artefact import By
from replifed.figures.summaries import median_and_range, short, use_until_target
from replifed.papers.cross import paper
from replifed.papers.cross.named import problem_name

# What a run uses, as axes are labelled; time where it is asked for.
ON_AXES = {"round": "communication rounds", "bits": "bits sent", "sample_gradients": "sample gradients"}
WITH_TIME = {**ON_AXES, "seconds": "time, s"}

TARGET = 1e-4
# Of pairs: methods that drift reach the first alone.
TARGETS = (1e-2, TARGET)
USED = (
    "Median [minimum, maximum] over seeds. Gap: relative, at the end. Rounds, bits (up and down, all "
    "clients) and sample gradients count until the gap stays at the target, to the end and at least for the "
    "last tenth of the rounds. First time there: median round in which the gap first reaches the target, "
    "whatever comes later. (2 of 3): so many seeds reach the target and stay; the others count as later. "
    "“…”: some seeds never do. “–”: at least half never do. “Not reached”: no seed does. Seeds that give "
    "the same run, since nothing is drawn, count once. Tuning: share of its budget that the search used. "
    "“Best at an end of the grid”: the budget ran out before worse numbers were found on both sides. “None "
    "found stable”: every number that was checked is sensitive to rounding."
)
# Of methods from outside.
AUDITED = (
    "Audit: what a custom method books less than it uses. Its sample gradients are counted, whatever it "
    "books; its rounds are as it has them, however many exchanges they need."
)

PAIRED = (
    "Three marks a pair: rounds, bits, sample gradients. <: the method of the row needs fewer than that of "
    "the column (of the number before its name). >: it needs more. ·: neither is decided. 1: all seeds of "
    "both give one and the same run, so nothing is tested. The test is on logarithms, paired by seed, with "
    "Holm's correction over all pairs and targets of one data set and one use; the ratio of geometric means "
    "has to be at least 1.05. A seed that never stays at the target gives a bound; a pair whose order "
    "depends on it is undecided."
)

Targets = Callable[[Mapping[str, pd.DataFrame]], Sequence[float]]
"""Maps histories by method, of one experiment, to the targets of their gaps."""


def use(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return what each method used until the last of the targets, and where it ended.

    Seeds that never got there count as more than any other: a number that depends on them is infinite, and
    all are where there is no target, NaN. reached, seeds and runs are numbers of seeds, runs of those that
    are no copies; tuning_* say what the search used, zero where there was none; audit says what custom
    methods book less than they need.
    """
    rows = []
    for experiment in inputs.experiments():
        histories = {method: inputs.run(experiment, method) for method in inputs.methods(experiment)}
        target = [np.nan, *targets(histories)][-1]
        for method, history in histories.items():
            shared = ends(history) | _searched(inputs.tuned(experiment, method)) | _audit(method, history)
            touched = used_until(history, [target], touch=True)
            for key, one in used_until(history, [target]).items():
                rows.append(
                    {
                        "experiment": experiment,
                        "method": method,
                        "used": key[1],
                        "target": target,
                        **use_until_target(one.values, one.bounds == 0),
                        "touch": touched[key].median_reached,
                        **shared,
                    }
                )
    return pd.DataFrame(rows)


def ends(history: pd.DataFrame) -> dict[str, Any]:
    """Number of runs that are no copies, and median, least and largest gap at the end."""
    end = at_the_end(history)
    gaps = np.where(end.bounds == 0, end.values, np.inf)
    shown = {"gap": np.median(gaps), "gap_low": gaps.min(), "gap_high": gaps.max()}
    return {"runs": len(independent(originals(history))), **shown}


def _audit(method: str, frame: pd.DataFrame) -> dict[str, str]:
    """Column audit of a run that was audited, with what its method says for itself."""
    if "exchanges_needed" not in frame:
        return {}
    ends, cls = frame.groupby("replicate").last(), method_class(method) if method in METHODS else None
    found = differences({name: ends[name].to_numpy() for name in ends}) or ["as the method says"]
    reasons = [getattr(cls, name, "") for name in ("counts_differ", "exchanges_differ")]
    found += [f"it says why: {reason}" for reason in reasons if reason]
    found += ["it says that all data are at the server"] if getattr(cls, "centralised", False) else []
    return {"audit": "; ".join(found)}


def _searched(tuned: Mapping[str, Any]) -> dict[str, Any]:
    """What the search used, of how many runs, and a remark on what it found."""
    found, cost = tuned.get("search"), {**Spent().record(), "budget": None, **tuned.get("cost", {})}
    if found is None:
        note = "no number to tune"
    elif found.get("chaotic"):
        note = "none found stable"
    else:
        note = "best at an end of the grid" if found.get("edge") else ""
    return {f"tuning_{kind}": amount or 0 for kind, amount in cost.items()} | {"tuning_note": note}


def render_used(
    frame: pd.DataFrame, labels: Mapping[str, str] = paper.LABELS, *, ranked: bool = False
) -> dict[str, pd.DataFrame]:
    """One table per data set and target, one line per method: its gap at the end, its use, and its search's.

    If `ranked`, methods come in the order of the rounds that they need, and then of their gaps.
    """
    tables = {}
    for (experiment, target), part in frame.groupby(["experiment", "target"], sort=False, dropna=False):
        if ranked:
            rounds = part[part["used"] == "round"]
            order = rounds.sort_values(["median", "gap"], kind="stable")["method"].tolist()
        else:
            order = By("method", labels).order(part["method"].tolist())
        name = problem_name(experiment)
        reached = not np.isnan(target)
        part = part if "audit" not in part or part["audit"].notna().any() else part.drop(columns="audit")
        tables[f"{name}, {f'gap {target:g}' if reached else 'no target reached'}"] = pd.DataFrame(
            [_line(labels.get(method, method), part[part["method"] == method], reached) for method in order]
        )
    return tables


def head_of(use: str, more: str = "") -> str:
    """Return the head of a column of what was used, with its unit."""
    return f"{EVERY_USE[use]}{more}" + ", s" * (use == "seconds")


def _line(label: str, rows: pd.DataFrame, reached: bool) -> dict[str, str]:
    """A line of the table: what one method used, by `rows` a use."""
    one = next(rows.itertuples())
    copies = copies_in_words(one.runs, one.seeds)
    line = {"method": f"{label} ({copies})" if copies else label, "gap": _gap(one)}
    for row in rows.itertuples() if reached else ():
        text = median_and_range(row, short)
        line[head_of(row.used)] = text.partition(" [")[0] if row.runs == 1 else text
        if row.used == "round":
            line["first time there"] = short(row.touch) if np.isfinite(row.touch) else "–"
    budget = f" of {one.tuning_budget:,.0f}" * bool(one.tuning_budget)
    cost = (
        f"{one.tuning_runs:,.0f}{budget} runs, {one.tuning_rounds:,.0f} rounds, "
        f"{short(one.tuning_bits, 'bit')}"
    )
    line["tuning"] = "; ".join(filter(None, (cost * bool(one.tuning_runs), one.tuning_note)))
    if "not_tuned" in rows:
        line["not tuned"] = one.not_tuned
    if "audit" in rows:
        line["audit"] = one.audit if isinstance(one.audit, str) else ""
    return line


def _gap(one: Any) -> str:
    if not np.isfinite(one.gap):
        return "diverged"
    high = f"{one.gap_high:.2g}" if np.isfinite(one.gap_high) else "…"
    return f"{one.gap:.2g}" if one.runs == 1 else f"{one.gap:.2g} [{one.gap_low:.2g}, {high}]"


def all_pairs(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return all pairs of methods on each data set, at each of the targets."""
    frames = []
    for experiment in inputs.experiments():
        histories = {method: inputs.run(experiment, method) for method in inputs.methods(experiment)}
        frames.append(pairs(experiment, histories, targets(histories)))
    return pd.concat(frames, ignore_index=True)
