"""The comparison of custom methods with built-in ones, on the problems of `cross`: `snakemake compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.algorithms.base import Conditions, compared
from replifed.algorithms.registry import METHODS, method_class
from replifed.claims.curves import within_reach
from replifed.claims.pairs import matrix
from replifed.figures.artefact import By, Grid, Made, X, by_name
from replifed.papers.cross import accuracy, clients, cohorts, latex, ranking, tracks, vary, where
from replifed.papers.cross.figures import figure, gaps, reached
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.paper import FAIR
from replifed.papers.cross.timed import rates_of, timed
from replifed.papers.cross.used import AUDITED, PAIRED, TARGETS, USED, WITH_TIME, render_used
from replifed.papers.cross.used import all_pairs as pairs_of

PAPER = {
    "name": "A comparison with your methods",
    "citation": "Your methods and built-in ones on the same problems, with one budget for tuning.",
    "doi": "",
    # What a page shows first; the rest is folded.
    "first": ("best", "fig1", "accuracy", "where", "boxes", "table1", "accuracies", "untuned", "studies"),
}


def _targets(histories: Mapping[str, pd.DataFrame]) -> tuple[float, ...]:
    return within_reach(histories, TARGETS)


_REACHED = (
    "A target is 1e-2 or 1e-4 where at least two methods reach it on all seeds, else the next larger of "
    "2e-4, 5e-4, 1e-3, ... that two do."
)
_OWN = (
    "Custom data have the loss that they name. Their clients have equal weights unless the data say weights: "
    "samples; then a method that takes plain means gets the losses N p_i f_i. "
    "Where a problem's name says “cohort”, the table “Who takes part” says of whom, by which law."
)
# Of one method alone.
_NO_PAIRS = {"no pairs": pd.DataFrame({"method": ["one method has none to be compared with"]})}


def _matrices(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    named = frame["problem"].map(problem_name)
    return matrix(frame.assign(problem=named), cohorts.labels_of(frame))


BEST, BOXES = ranking.artefacts(_targets)


class Compared(Grid):
    """The curves: of one problem on all axes side by side, of several on one page per axis."""

    def pages_of(self, frame: pd.DataFrame) -> list[Figure]:
        """Draw the table, a picture a page."""
        problems = sorted(set(frame["experiment"]))
        if len(problems) > 1:
            return super().pages_of(frame)
        # What all panels show is the title's, or in a paper the caption's.
        one = replace(self, prefix=problem_name(problems[0]), columns=[By("experiment")])
        if self.headed:
            one = replace(one, pages=(), columns=[X(*WITH_TIME)])
        return Grid.pages_of(one, frame)


def _gaps(inputs: Any) -> pd.DataFrame:
    """Median gaps, on the axis of time, too, if that is asked for."""
    more = () if rates_of(inputs) is None else ("seconds",)
    return gaps(timed(inputs), ("bits", "sample_gradients", *more))


_figure = partial(
    figure,
    kind=Compared,
    prefix="Comparison",
    title="Relative gap",
    source=_gaps,
    pages=[X(*WITH_TIME)],
    x=WITH_TIME,
    lines=cohorts.lines_of,  # when it is drawn: this imports custom methods
    limits=reached,
)
_TIME = "Time, where --time asks for it, is computed from recorded rounds, bits and gradients. "
FIGURES = by_name(
    _figure(
        "fig1",
        caption=f"Relative gap (F - F*) / (F(0) - F*), median and range over seeds. {_TIME}{FAIR} {_OWN}",
    ),
    accuracy.PICTURE,
    _figure(
        "paper",
        title="The curves for a paper",
        caption="The curves without a title, one column wide for one data set and two for several; one "
        "page per axis. Relative gap (F - F*) / (F(0) - F*), median and range over seeds.",
        headed=False,
        width=3.4,
        height=2.5,
    ),
    where.PICTURE,
    BOXES,
    clients.PICTURE,
    vary.PICTURE,
)

# -- Settings of a method that no search chooses: the column "not tuned" ---------------------------------

# What a method is made for, to see which of its settings follow from what: numbers that no setting has.
_MULTIPLE = 0.7310
_PROBLEM = {"mu": np.array([0.0137]), "L": np.array([1.2390]), "clients": 10, "sparsity": 7}
_OTHER = {"mu": np.array([0.0411]), "L": np.array([6.1950]), "clients": 13, "sparsity": 11}
# Of two ways to make a number: equal, up to rounding.
_SAME = 1e-9


def with_fixed(frame: pd.DataFrame, inputs: Any) -> pd.DataFrame:
    """Return a table with a column not_tuned: the settings of its method that were not searched."""
    said = {
        pair: fixed(pair[1], inputs.experiment(pair[0]))
        for pair in set(zip(frame["experiment"], frame["method"], strict=True))
    }
    pairs = zip(frame["experiment"], frame["method"], strict=True)
    return frame.assign(not_tuned=[said[pair] for pair in pairs])


def fixed(method: str, settings: Any) -> str:
    """Return the settings of a method that do not follow the tuned number, such as "local_steps = 5".

    Of a number that follows from mu, L, or the numbers of clients and coordinates, that is said. "" of a
    method that is not known here.
    """
    if method not in METHODS:
        return ""
    asked = (_MULTIPLE, _PROBLEM), (2 * _MULTIPLE, _PROBLEM), (_MULTIPLE, _OTHER)
    made, tuned, other = (_settings(_made(method, settings, *one)) for one in asked)
    words = []
    for name, value in made.items():
        if value is None or not _same(value, tuned.get(name)):
            continue  # what is not used, or tuned
        follows = not _same(value, other.get(name))
        words.append(f"{name} from the problem" if follows else f"{name} = {_in_words(value)}")
    return ", ".join(words)


def _made(method: str, settings: Any, multiple: float, problem: Mapping[str, Any]) -> Any:
    given = Conditions(**problem, local_steps=settings.local_steps, l1=getattr(settings, "l1", 0.0))
    return compared(method_class(method), np.array([multiple]), given)


def _settings(made: Any) -> dict[str, Any]:
    """Return the settings by name, those of a local solver, too."""
    found: dict[str, Any] = {}
    for field in fields(made):
        value = getattr(made, field.name, None)
        inner = is_dataclass(value) and not isinstance(value, type)
        found |= _settings(value) if inner else {field.name: value}
    return found


def _same(one: Any, other: Any) -> bool:
    numbers = [isinstance(value, int | float | np.number | np.ndarray) for value in (one, other)]
    return bool(np.allclose(one, other, rtol=_SAME, atol=0)) if all(numbers) else bool(one == other)


def _in_words(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.ravel()[0]
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = isinstance(value, int | float | np.number)
    return f"{value:g}" if number else str(getattr(value, "__name__", value))


# -- Tables --------------------------------------------------------------------------------------------

TABLES = by_name(
    BEST,
    Made(
        "table1",
        "Gap at the end, and use until it stays at a target",
        f"In the order of rounds, and then of gaps. Not tuned: what no search chose. {USED} {_REACHED} "
        f"{AUDITED} {FAIR} {_OWN}",
        lambda inputs: with_fixed(ranking.placed(timed(inputs), _targets), inputs),
        lambda frame: render_used(frame, cohorts.labels_of(frame), ranked=True),
        latex=latex.used,
    ),
    Made(
        "pairs",
        "Which of two methods needs less until the relative gap stays at a target",
        f"{PAIRED} A fourth mark, where --time asks for it, is time. {_REACHED} "
        "Where there is none, the gaps at the end are compared, by one mark.",
        lambda inputs: pairs_of(timed(inputs), _targets),
        lambda frame: _matrices(frame) or _NO_PAIRS,
    ),
    accuracy.TABLE,
    clients.HETEROGENEITY,
    clients.NAMED,
    cohorts.TABLE,
    *tracks.artefacts(_targets),
    vary.TABLE,
)
