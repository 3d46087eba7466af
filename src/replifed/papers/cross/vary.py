"""The comparison under other settings: who leads in how many configurations, and which axis turns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from replifed.algorithms.newton_type import NewtonType
from replifed.algorithms.registry import method_class
from replifed.claims.variations import by_option, counted, in_words, orders, turning
from replifed.figures.artefact import Made
from replifed.figures.lines import BLUE, GREY, VERMILLION, Line
from replifed.figures.style import canvas, legend, styled
from replifed.network.ledger import BITS_PER_VALUE
from replifed.papers.cross import paper
from replifed.papers.cross.named import problem_name

# Columns of the configurations, and their names in words.
AXES = {
    "local_steps": "local steps",
    "partition": "partition",
    "ridge": "ridge",
    "target": "target",
    "ledger": "ledger",
}

_CONFIGURATIONS = (
    "A configuration is one way to make the comparison: local steps, partition and ridge, of which all "
    "combinations are run, each method tuned anew with the same budget; and target and ledger, which are "
    "read from the recorded runs. It is judged as in the table of pairs: use until the gap stays at the "
    "target, paired over seeds, with Holm's correction over the pairs and targets of a run; where neither "
    "method gets there on more than half of its seeds, the gap at the end decides. A tie is a ratio below "
    "1.05; open is where runs that never got there could turn it. At another width of a float all bits "
    "scale, but for those that a quantising method sends to the server beyond a model of floats."
)


def at_width(method: str, history: pd.DataFrame, width: int) -> pd.DataFrame:
    """Return a history with the bits that it had if floats had `width` bits.

    A method with the attribute `quantises` sends up no floats, but for the gradient of a Newton-type one.
    """
    cls, up, more = method_class(method), history["bits_up"], width / BITS_PER_VALUE - 1
    floats = up
    if getattr(cls, "quantises", False):
        models = history["message_bits"] * history["round"] if issubclass(cls, NewtonType) else 0.0 * up
        floats = models.clip(upper=up)
    return history.assign(bits_up=up + more * floats, bits_down=history["bits_down"] * (1 + more))


def configurations(inputs: Any) -> pd.DataFrame:
    """A row a competitor and combination of options on each problem, as `claims.variations.orders`."""
    frames = []
    for problem, design in inputs.options.designs.items():
        for experiment, point in design["points"].items():
            frame = orders(_ledgers(inputs, experiment, point["instead"], design), design["targets"])
            options = {"local_steps": f"{point['local_steps']}", "partition": point["partition"]}
            options |= {"ridge": f"{point['ridge']:g}", "target": frame["target"].map("{:g}".format)}
            heads = {"experiment": problem, "run": experiment, "note": "; ".join(design["notes"])}
            frames.append(frame.drop(columns="problem").assign(**heads, **options))
    return pd.concat(frames, ignore_index=True)


def _ledgers(inputs: Any, experiment: str, instead: str, design: Mapping[str, Any]) -> dict[str, Any]:
    """Histories of all methods on an experiment, by ledger and method."""
    runs = {
        method: inputs.run(experiment if inputs.has(f"run:{experiment}/{method}") else instead, method)
        for method in design["methods"]
    }
    widths = design["widths"]
    return {
        "bits" if len(widths) == 1 else f"bits, {width} a float": {
            method: at_width(method, history, width) for method, history in runs.items()
        }
        for width in widths
    }


def _axes(part: pd.DataFrame) -> dict[str, list[str]]:
    """Options of the axes that have several, numbers ascending."""
    axes = {axis: list(dict.fromkeys(part[axis])) for axis in AXES}
    for axis in ("local_steps", "ridge", "target"):
        axes[axis].sort(key=float)
    return {axis: options for axis, options in axes.items() if len(options) > 1}


def _pairs(frame: pd.DataFrame) -> Any:
    return frame.groupby(["experiment", "first", "second"], sort=False)


# -- The picture ---------------------------------------------------------------------------------------

_COLOURS = {"before": BLUE, "after": VERMILLION}
# Effects beyond so many decades are drawn there.
_MOST = 3.0
_LEAST = 0.1


@styled
def _draw(frame: pd.DataFrame) -> Figure:
    """Draw one curve per pair, one below the other: its sorted effects above, dots of their options below."""
    pairs, named = list(_pairs(frame)), paper.registered_labels()
    problem, note = frame[["experiment", "note"]].iloc[0]
    title = f"Comparison · {problem_name(problem)} under other settings"
    rows = max(sum(map(len, _axes(part).values())) for _, part in pairs)
    made, axes = canvas(2 * len(pairs), 1, title=title, width=7.0, height=max(1.7, 0.16 * rows + 0.35))
    panels = [ax for row in axes for ax in row]
    for number, ((_, first, second), part) in enumerate(pairs):
        above, below = panels[2 * number : 2 * number + 2]
        options, one = _axes(part), counted(part)
        turns = turning(by_option(part, options))
        heading = (
            f"{named.get(first, first)} before {named.get(second, second)} in {one['before']} of "
            f"{one['cells']}, {one['share']:.0%} with ties half"
        )
        above.set_title(heading + (f"; {AXES[turns]} matters most" if turns else ""), loc="left")
        ordered = part.sort_values("difference", kind="stable").reset_index(drop=True)
        _effects(above, ordered)
        _dots(below, ordered, options)
        for ax in (above, below):
            ax.set_xlim(-0.8, len(ordered) - 0.2)
            ax.set_xticks([])
    panels[-1].set_xlabel("\n".join(["configurations, sorted by the difference", *note.split("; ")]))
    legend(made, _explained())
    return made


def _explained() -> list[Line]:
    lines = [Line(f"{name} the competitor", colour, "none", "o") for name, colour in _COLOURS.items()]
    lines.append(Line("tie, or open", GREY, "none", "o"))
    lines.append(Line("not decided", GREY, "none", "o", filled=False))
    return [*lines, Line("by the gap at the end", GREY, "none", "D")]


def _effects(ax: Axes, frame: pd.DataFrame) -> None:
    """Draw the differences with their intervals, as far as these are known."""
    difference = frame["difference"].clip(-_MOST, _MOST)
    most = max(_LEAST, 1.15 * difference.abs().max())
    ends = [pd.to_numeric(frame[name], errors="coerce").fillna(difference) for name in ("ci_low", "ci_high")]
    ax.vlines(frame.index, *(end.clip(-most, most) for end in ends), color="#BBBBBB", linewidth=0.8)
    kinds = frame.assign(end=frame["used"] == "gap")
    for (order, decided, end), part in kinds.groupby(["order", "decided", "end"]):
        colour = _COLOURS.get(order, GREY)
        (points,) = ax.plot(part.index, difference[part.index], "D" if end else "o", color=colour)
        points.set(markersize=3.6, markerfacecolor=colour if decided else "white")
    ax.axhline(0, color="black", linewidth=0.7)
    ax.set(ylim=(-most, most), ylabel="difference, decades")
    ax.grid(axis="x", visible=False)


def _dots(ax: Axes, frame: pd.DataFrame, options: Mapping[str, Sequence[str]]) -> None:
    """Draw one row per option, the axes below each other, with a dot where a configuration has it."""
    labels: dict[float, str] = {}
    at = 0.0
    for axis, values in options.items():
        for value in values:
            labels[at] = f"{AXES[axis]}  {value}" if value == values[0] else str(value)
            here = frame.index[frame[axis] == value]
            colours = [_COLOURS.get(order, GREY) for order in frame["order"][here]]
            ax.scatter(here, np.full(len(here), at), s=26, marker="|", color=colours, linewidths=1.3)
            at -= 1.0
        at -= 0.5
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_ylim(at + 0.7, 0.7)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", visible=False)


# -- The table -----------------------------------------------------------------------------------------


def _outcomes(inputs: Any) -> pd.DataFrame:
    """A row a pair with its outcome in words, then one an option of each axis."""
    frames, named = [], paper.registered_labels()
    for (problem, first, second), part in _pairs(configurations(inputs)):
        options = by_option(part, _axes(part))
        names = (named.get(first, first), named.get(second, second))
        words = in_words(names, part, options, AXES)
        whole = pd.DataFrame([{"axis": "all", "option": "", **counted(part), "outcome": words}])
        heads = {"experiment": problem, "first": first, "second": second, "note": part["note"].iloc[0]}
        frames.append(pd.concat([whole, options.assign(outcome="")]).assign(**heads))
    return pd.concat(frames, ignore_index=True)


def _show(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table per pair, headed by its outcome, one line per option, and the notes on what is not varied."""
    tables = {}
    for (problem, *_), part in _pairs(frame):
        lines = [
            {
                "axis": AXES.get(row.axis, row.axis),
                "option": row.option,
                "before": f"{row.before} of {row.cells} ({row.before_decided} decided)",
                "after": f"{row.after} ({row.after_decided} decided)",
                "tied, open": f"{row.tie}, {row.open}",
                "share": f"{row.share:.0%}",
            }
            for row in part.itertuples()
        ]
        notes = [{"axis": note, **dict.fromkeys(list(lines[0])[1:], "")} for note in
                 filter(None, part["note"].iloc[0].split("; "))]  # fmt: skip
        name = problem_name(problem)
        tables[f"{name}: {part['outcome'].iloc[0]}"] = pd.DataFrame([*lines, *notes])
    return tables


PICTURE = Made(
    "vary",
    "The comparison under other settings",
    f"Differences of decimal logarithms, of what the method needs and what its competitor needs, sorted, "
    f"with 95 % intervals; below each configuration its options. {_CONFIGURATIONS}",
    configurations,
    _draw,
    pages=("experiment",),
    texts=tuple(AXES),
)
TABLE = Made(
    "vary_axes",
    "Who leads under other settings, and which axis turns it",
    f"Configurations in which the method comes before its competitor, or after it, by option; share is that "
    f"before, with ties and open ones half. The axis that turns the order, or matters most, is that between "
    f"whose options decided configurations differ most, if by a quarter of all. {_CONFIGURATIONS}",
    _outcomes,
    _show,
    texts=("option",),
)
