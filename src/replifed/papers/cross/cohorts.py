"""The table of a comparison that says who took part, and the table of what all methods do with cohorts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from replifed.algorithms.base import without_form
from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.figures.artefact import Made
from replifed.figures.lines import Line, distinguished, numbered
from replifed.papers.cross import paper
from replifed.papers.cross.named import problem_name

_CAPTION = (
    "The law by which clients come, alike for all methods and drawn with the same numbers, and what each "
    "method does with those who came. Clients: mean of a round, over rounds and seeds. Empty: rounds to "
    "which nobody came, mean over seeds; they count as rounds, cost nothing and leave the model as it is. "
    "Bits are those of who took part alone. A method whose paper has no form for cohorts runs with all "
    "clients if that was asked for; else it is listed and not run."
)


def lines_of(frame: pd.DataFrame) -> dict[str, Line]:
    """Return the lines of all methods; no two of those in the table share colour and marker.

    Beside cohorts, those that run with all clients say so.
    """
    columns = [name for name in ("method", "first", "second", "best") if name in frame]
    shown = [name for name in pd.unique(frame[columns].to_numpy().ravel()) if isinstance(name, str) and name]
    known = paper.registered_lines()
    unknown = [name for name in shown if name not in known]  # of a comparison that was made elsewhere
    known |= {name: numbered(k)._replace(label=name, width=2.4) for k, name in enumerate(unknown)}
    every = distinguished(known, shown)
    experiments = frame["experiment" if "experiment" in frame else "problem"]
    if not experiments.astype(str).str.contains("_cohort_").any():
        return every
    full = {name for name in METHODS if without_form(method_class(name))}
    return {
        name: line._replace(label=f"{line.label} (all clients)") if name in full else line
        for name, line in every.items()
    }


def labels_of(frame: pd.DataFrame) -> dict[str, str]:
    """Return what `lines_of` calls each method."""
    return {name: line.label for name, line in lines_of(frame).items()}


def _cohorts(inputs: Any) -> pd.DataFrame:
    """A row a problem and method: who takes part, how many came, and the method's form."""
    rows = []
    for experiment in inputs.experiments():
        methods, out = inputs.methods(experiment), inputs.options.left_out
        for method in [*methods, *(name for name in out if name not in methods)]:
            row = {"experiment": experiment, "said": inputs.options.said, "method": method}
            if method in out:
                row |= {"run": "all clients" if method in methods else "not run", "form": out[method]}
            else:
                ends = inputs.run(experiment, method).groupby("replicate").last()
                came = (ends["took_part"] / ends["round"]).mean()
                row |= {"run": "cohort", "form": _form(method)}
                row |= {"clients_a_round": came, "empty_rounds": ends["empty_rounds"].mean()}
            rows.append(row)
    return pd.DataFrame(rows)


def _form(method: str) -> str:
    said = getattr(method_class(method), "cohorts", None) if method in METHODS else None
    return (said and said.code) or "its own"


def _show(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table per problem, headed by who takes part, one line per method."""
    named, tables = paper.registered_labels(), {}
    for (experiment, said), part in frame.groupby(["experiment", "said"], sort=False):
        rows = [
            {
                "method": named.get(row["method"], row["method"]),
                "run": row["run"],
                "clients": _number(row, "clients_a_round"),
                "empty": _number(row, "empty_rounds"),
                "what it does with them, or why it has no form": row["form"],
            }
            for row in part.to_dict("records")
        ]
        tables[f"{problem_name(str(experiment))}. {said}"] = pd.DataFrame(rows)
    return tables


def _number(row: Mapping[str, Any], column: str) -> str:
    number = pd.to_numeric(row.get(column), errors="coerce")
    return "–" if number is None or pd.isna(number) else f"{number:.3g}"


def of_all_methods() -> str:
    """Return a table of all built-in methods in Markdown: what their papers say, and what the code does.

    Methods of which the same is said share a line.
    """
    rows: dict[str, list[str]] = {}
    for name in sorted(BUILT_IN):
        cls = method_class(name)
        said = cls.cohorts
        run = "not run" if without_form(cls) else "run"
        cells = [text.replace("|", "\\|") for text in (said.paper, said.code or "takes all clients", run)]
        rows.setdefault(" | ".join(cells), []).append(f"`{name}`")
    head = ["| method | its paper | the code | with a cohort |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *(f"| {', '.join(names)} | {said} |" for said, names in rows.items())])


TABLE = Made("cohorts", "Who takes part", _CAPTION, _cohorts, _show, texts=("said", "method", "run", "form"))
