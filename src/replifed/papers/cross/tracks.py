"""How much searches vary with their seeds, and the ranks of methods with their theory's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.curves import at_the_end
from replifed.claims.pairs import used_until
from replifed.figures.artefact import Made
from replifed.papers.cross.cohorts import labels_of
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.used import Targets


def _ends(history: pd.DataFrame, target: float) -> tuple[float, float]:
    """Median rounds until the target, NaN without one, and median gap at the end; infinite if not reached."""
    gap = at_the_end(history).median_reached
    if np.isnan(target):
        return np.nan, gap
    return used_until(history, [target], uses=("round",))[target, "round"].median_reached, gap


def _ranks(frame: pd.DataFrame) -> pd.Series:
    """Ranks by rounds, and then by the gap at the end, from 1."""
    keys = pd.DataFrame({"rounds": frame["rounds"].fillna(0.0), "gap": frame["gap"]})
    ordered = keys.sort_values(["rounds", "gap"], kind="stable")
    place = (ordered != ordered.shift()).any(axis=1).cumsum()
    first = pd.Series(np.arange(1, len(ordered) + 1), ordered.index).groupby(place).transform("min")
    return first.reindex(frame.index)


def _targets(inputs: Any, problem: str, methods: list[str], targets: Targets) -> float:
    return [np.nan, *targets({method: inputs.run(problem, method) for method in methods})][-1]


def studies(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return one row per problem, study and method: the number that came out, and what its run does."""
    frames = []
    for problem, others in inputs.options.studies.items():
        methods = inputs.methods(others[0])
        target = _targets(inputs, problem, inputs.methods(problem), targets)
        for number, experiment in enumerate([problem, *others], 1):
            rows = []
            for method in methods:
                rounds, gap = _ends(inputs.run(experiment, method), target)
                step = inputs.tuned(experiment, method)["search"]["step"]
                head = {"experiment": problem, "study": number, "method": method, "target": target}
                rows.append({**head, "multiple": step, "rounds": rounds, "gap": gap})
            frame = pd.DataFrame(rows)
            frames.append(frame.assign(rank=_ranks(frame)))
    return pd.concat(frames, ignore_index=True)


def show_studies(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table per problem, one line per method: medians and ranges over studies."""
    named, tables = labels_of(frame), {}
    for (problem, target), part in frame.groupby(["experiment", "target"], sort=False, dropna=False):
        lines = []
        for method, own in part.groupby("method", sort=False):
            line = {
                "method": named.get(str(method), str(method)),
                "tuned number, × reference": _range(own["multiple"]),
            }
            if not np.isnan(target):
                line[f"rounds to {target:g}"] = _range(own["rounds"])
            lines.append({**line, "gap at the end": _range(own["gap"], ".2g"), "rank": _range(own["rank"])})
        count = part["study"].nunique()
        tables[f"{problem_name(str(problem))}, {count} studies"] = pd.DataFrame(lines)
    return tables


def _range(values: pd.Series, form: str = ".3g") -> str:
    """Return "0.3 [0.1, 1]", or one number if all are equal."""
    low, high, mid = values.min(), values.max(), float(np.median(values))
    texts = [f"{one:{form}}" if np.isfinite(one) else "–" for one in (mid, low, high)]
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} [{texts[1]}, {texts[2]}]"


def untuned(inputs: Any, targets: Targets) -> pd.DataFrame:
    """Return one row per problem and method: its ranks tuned and by theory, and what theory says.

    A method with nothing to tune has the same run in both; one without such theory has no rank.
    """
    frames, said = [], inputs.options.said
    for problem, other in inputs.options.untuned.items():
        methods, by_theory = inputs.methods(problem), set(inputs.methods(other))
        target = _targets(inputs, problem, methods, targets)
        tracks: dict[str, list[dict[str, Any]]] = {"tuned": [], "untuned": []}
        for method in methods:
            rounds, gap = _ends(inputs.run(problem, method), target)
            tracks["tuned"].append({"method": method, "rounds": rounds, "gap": gap})
            if method in by_theory:
                rounds, gap = _ends(inputs.run(other, method), target)
            elif said[method]:  # why theory gives it no parameters
                continue
            tracks["untuned"].append({"method": method, "rounds": rounds, "gap": gap})
        parts = []
        for name, rows in tracks.items():
            frame = pd.DataFrame(rows, columns=["method", "rounds", "gap"])
            frame["rank"] = _ranks(frame)
            parts.append(frame.set_index("method").add_suffix(f"_{name}"))
        joined = parts[0].join(parts[1]).reset_index()
        theory = [said[method] or "no number to tune" for method in joined["method"]]
        frames.append(joined.assign(experiment=problem, target=target, theory=theory))
    return pd.concat(frames, ignore_index=True)


def show_untuned(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table a problem, in the order of tuned ranks, both ranks side by side."""
    named, tables = labels_of(frame), {}
    for (problem, target), part in frame.groupby(["experiment", "target"], sort=False, dropna=False):
        until = "gap at the end" if np.isnan(target) else f"rounds to {target:g}, then gap"
        tables[f"{problem_name(str(problem))}, {until}"] = pd.DataFrame(
            [_line(row, named) for row in part.sort_values("rank_tuned", kind="stable").to_dict("records")]
        )
    return tables


def _line(row: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, str]:
    run = not np.isnan(row["rank_untuned"])

    def shown(name: str, track: str) -> str:
        value = row[f"{name}_{track}"]
        return f"{value:.3g}" if np.isfinite(value) else "–"

    return {
        "method": named.get(row["method"], row["method"]),
        "rank tuned": shown("rank", "tuned"),
        "rank untuned": shown("rank", "untuned") if run else "not run",
        "rounds tuned, untuned": f"{shown('rounds', 'tuned')}, {shown('rounds', 'untuned')}",
        "gap tuned, untuned": f"{shown('gap', 'tuned')}, {shown('gap', 'untuned')}",
        "parameters by theory": row["theory"],
    }


def artefacts(targets: Targets) -> tuple[Made, Made]:
    """Return the table of studies, and that of both tracks."""
    return (
        Made(
            "studies",
            "What the search finds on other seeds",
            "Each search is repeated on other repetitions, and the reported ones are run at what it finds: "
            "median and range over the studies. Ranks are by median rounds until the target, then by the gap "
            "at the end, among methods with a number to tune. Methods whose ranges meet are distinguished by "
            "the luck of a search.",
            lambda inputs: studies(inputs, targets),
            show_studies,
        ),
        Made(
            "untuned",
            "Ranks with and without tuning",
            "Untuned: every method at the parameters that its own theory gives, from the constants mu and L "
            "of the clients' losses. Ranks are by median rounds until the target, then by the gap at the "
            "end. A method whose theory gives no parameters is listed and not run; one with nothing to tune "
            "is the same in both.",
            lambda inputs: untuned(inputs, targets),
            show_untuned,
        ),
    )
