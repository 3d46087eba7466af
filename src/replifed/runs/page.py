"""A page with the differences between two runs, and the curves of both over each other."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from replifed.figures.style import BLUE, VERMILLION
from replifed.runs.compared import SOUND, Difference, grouped, summary
from replifed.runs.kept import in_words
from replifed.runs.opened import Run
from replifed.store.atomic import write_text
from replifed.store.histories import read_history

_DRAWN = 24  # curves at most
# The page's text; `page.html.j2` beside this module.
_PAGE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write(out: Path, a: Run, b: Run, found: list[Difference]) -> None:
    """Write the page of a comparison (`compared.compare`) of two runs."""
    worse = [one for one in found if one.kind == "history" and one.at >= 0 and one.outcome not in SOUND]
    first: dict[str, Difference] = {}
    for one in worse:  # the worst column of each history
        first.setdefault(one.name, one)
    *lines, verdict = summary(found).splitlines()
    write_text(
        out,
        _PAGE.get_template("page.html.j2").render(
            verdict=f"{verdict[0].upper()}{verdict[1:]}",
            a=_named(a),
            b=_named(b),
            lines=lines,
            curves=[{**one._asdict(), "svg": _overlaid(one, a, b)} for one in list(first.values())[:_DRAWN]],
            rows=grouped(found),
        ),
    )


def _named(run: Run) -> str:
    return f"{run.place}, {in_words(run)}" if run.environment() else run.place


def _overlaid(one: Difference, a: Run, b: Run) -> str:
    """Draw the run in which a column of a history moved most, of both runs over each other, as an SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 2.7), layout="constrained")
    axes = figure.add_subplot()
    for run, name, (colour, dashes) in ((a, "A", (BLUE, "-")), (b, "B", (VERMILLION, "--"))):
        frame, _ = read_history(Path(one.name), run.read(one.name))
        drawn = _run_of(frame, one.at)
        along: Any = drawn["round"] if "round" in drawn else range(len(drawn))
        marker = "." if len(drawn) < 3 else ""
        axes.plot(along, drawn[one.column], label=name, color=colour, linestyle=dashes, marker=marker)
        values = drawn[one.column].to_numpy(float)
        if (values > 0).all() and values.max() > 30 * values.min():
            axes.set_yscale("log")
    axes.set(xlabel="round", ylabel=one.column)
    axes.legend(frameon=False)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    _, tag, drawn = text.getvalue().partition("<svg")  # behind the declaration of a file
    return f"{tag}{drawn}"


def _run_of(frame: pd.DataFrame, at: int) -> pd.DataFrame:
    """Rows of the run that has row `at`: those with the same values in all columns before the round."""
    if "round" not in frame:
        return frame.iloc[[at]]
    labels = frame[list(frame.columns[: list(frame.columns).index("round")])].astype(str).fillna("")
    return frame[(labels == labels.iloc[at]).all(axis=1)]
