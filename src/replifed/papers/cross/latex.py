"""The table of a comparison as LaTeX: booktabs, the best in bold, ties marked, as wide as the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from replifed.claims.pairs import EVERY_USE
from replifed.figures.summaries import short
from replifed.papers.cross.cohorts import labels_of
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.ranking import BEST, TIED

# Below which differences of gaps are rounding (`experiments`), and curves of a method say nothing more.
FLOOR, _FLOOR_SAID = 1e-12, "1e-12"
# Characters of a line at 9 points in a text of 12 cm: a table with more columns is cut in parts.
_WIDTH = 84
_GAP = 3  # characters between two columns
_SPECIAL = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
}
_HEADS = {**EVERY_USE, "sample_gradients": "gradients", "seconds": "time, s", "gap": "gap"}


class _Column(NamedTuple):
    """A column of numbers: its head, and its cells by method."""

    head: str
    cells: dict[str, str]

    @property
    def width(self) -> int:
        cells = (cell.replace(r"\textbf{", "") for cell in self.cells.values())
        return max(map(len, [self.head, *cells])) + _GAP


def used(frame: pd.DataFrame, note: str = "") -> str:
    """Return the table of uses (`ranking.placed`): of one data set all uses, of several one table per use.

    `note` is a remark on data and scale, in the caption.
    """
    experiments = list(dict.fromkeys(frame["experiment"]))
    uses = [name for name in EVERY_USE if (frame["used"] == name).any()]
    if len(experiments) == 1:
        columns = [_column(frame, experiments[0], name, _HEADS[name]) for name in [*uses, "gap"]]
        said = f"What each method needs on {problem_name(experiments[0])}{_until(frame)}"
        return _table(frame, [one for one in columns if one], said, "comparison", note)
    tables = []
    titles = {name: f"{EVERY_USE[name].capitalize()} of each method{_until(frame)}" for name in uses}
    for name, said in {**titles, "gap": "Relative gap of each method at the end"}.items():
        columns = [_column(frame, one, name, problem_name(one)) for one in experiments]
        if any(columns):
            tables.append(_table(frame, [one for one in columns if one], said, f"comparison-{name}", note))
    return "\n".join(tables)


def _until(frame: pd.DataFrame) -> str:
    targets = sorted(set(frame["target"].dropna()), reverse=True)
    return f" until its relative gap stays at {' or '.join(f'{one:g}' for one in targets)}" if targets else ""


def _column(frame: pd.DataFrame, experiment: str, used: str, head: str) -> _Column | None:
    """Return a column, None of a use where no target is reached."""
    part = frame[frame["experiment"] == experiment]
    part = part[part["used"] == ("round" if used == "gap" else used)]
    no_target = part["target"].isna().all()
    if used != "gap" and no_target:
        return None
    cells = {}
    for row in part.itertuples():
        text = _gap(row.gap) if used == "gap" else _number(row.median)
        # Gaps at the end are compared where there is no target alone.
        place = row.place if used != "gap" or no_target else ""
        cells[row.method] = rf"\textbf{{{text}}}" if place == BEST else f"{text}*" if place == TIED else text
    return _Column(head, cells)


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "--"
    return f"{value:.2g}" if value < 1 else short(value)


def _gap(value: float) -> str:
    if not np.isfinite(value):
        return "diverged"
    if value <= FLOOR * (1 + 1e-6):
        return _FLOOR_SAID
    return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")


def _table(frame: pd.DataFrame, columns: Sequence[_Column], said: str, label: str, note: str) -> str:
    """Return a table, its columns in as many parts, one below the other, as its width needs."""
    labels = labels_of(frame)
    rows = frame[frame["used"] == "round"].replace(np.inf, 1e300)
    rank = rows.groupby("method", sort=False)[["median", "gap"]].median()
    methods = rank.sort_values(["median", "gap"], kind="stable").index.tolist()
    caption = _caption(frame, columns, said, note)
    lines = [r"\begin{table}[t]", r"\centering", r"\footnotesize", rf"\caption{{{caption}}}"]
    lines.append(rf"\label{{tab:{label}}}")
    for number, part in enumerate(_parts(columns, max(len(labels.get(one, one)) for one in methods))):
        lines += [r"\medskip"] * (number > 0)
        lines += [
            rf"\begin{{tabular*}}{{\textwidth}}{{@{{\extracolsep{{\fill}}}}l*{{{len(part)}}}{{r}}@{{}}}}",
            r"\toprule",
            " & ".join(["method", *(_escaped(one.head) for one in part)]) + r" \\",
            r"\midrule",
        ]
        for method in methods:
            cells = [one.cells.get(method, "") for one in part]
            lines.append(" & ".join([_escaped(labels.get(method, method)), *cells]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular*}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _parts(columns: Sequence[_Column], names: int) -> Iterator[list[_Column]]:
    part: list[_Column] = []
    for column in columns:
        if part and names + sum(one.width for one in [*part, column]) > _WIDTH:
            yield part
            part = []
        part.append(column)
    yield part


def _caption(frame: pd.DataFrame, columns: Sequence[_Column], said: str, note: str) -> str:
    """Return at most three sentences: what the numbers are, what marks mean, and the floor."""
    seeds, remark = frame["seeds"].max(), f" ({note})" if note else ""
    over = "one seed" if seeds == 1 else f"{seeds} seeds"
    cells = [cell for column in columns for cell in column.cells.values()]
    holm = r"(paired over seeds, 5\,\% after Holm's correction)"
    marks = {
        "Bold: the best": any("textbf" in cell for cell in cells),
        f"*: not distinguished from it {holm}": any(cell.endswith("*") for cell in cells),
        "--: half of the seeds or more never get there": any(cell.startswith("--") for cell in cells),
    }
    sentences = [_escaped(f"{said}, median over {over}, all tuned on one budget{remark}.")]
    if any(marks.values()):
        sentences.append(f"{'; '.join(one for one, is_there in marks.items() if is_there)}.")
    if _FLOOR_SAID in cells:
        sentences.append(f"A gap of {_FLOOR_SAID} is a floor: what lies below is rounding.")
    return " ".join(sentences)


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)
