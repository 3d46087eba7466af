"""Picture of a statement by settings: what was measured against what was published, and the options below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from replifed.claims import scores
from replifed.claims.scores import Row, Settings

# Settings from which on there is a picture; of many claims, those that hold in the fewest are drawn.
FEWEST = 3
_PANELS = 3
_COLOURS = {"holds": "#009e73", "fails": "#d55e00", "inconclusive": "#888888"}
# In pixels.
_LEFT, _RIGHT, _HEIGHT, _DOT = 230, 70, 96, 16
_COLUMN, _WIDTH = 30, 620  # at least
# Part of the range of numbers by which a panel reaches beyond them.
_MARGIN = 0.3


def picture(group: Sequence[Row]) -> str:
    """SVG of a statement, a panel a claim and a column for each of its settings; "" with fewer than three.

    Columns are sorted by what the first panel measured. A point is the measured number, shaded the prediction
    interval of a value or the confidence interval of another number, a line the published number, dotted its
    rival. Options that were fitted are hollow.
    """
    counted = [row for row in group if not row["informs"]]
    measured = [row for row in counted if row["measured"] and row["verdict"] != "unchecked"]
    choices = [one for one in scores.by_settings(measured) if one.options] if measured else []
    by_part: dict[str, dict[int, Row]] = {}
    for number, one in enumerate(choices):
        for row in one.rows:
            by_part.setdefault(row["part"], {})[number] = row
    if len(choices) < FEWEST:
        return ""
    shown = sorted(by_part, key=lambda part: sum(row["verdict"] == "holds" for row in by_part[part].values()))
    shown = shown[:_PANELS]
    first = by_part[shown[0]]
    order = sorted(range(len(choices)), key=lambda n: float(first[n]["measured"]) if n in first else 0.0)
    column = min(max((_WIDTH - _LEFT - _RIGHT) / len(order), _COLUMN), 2 * _COLUMN)
    places = {number: _LEFT + column * (place + 0.5) for place, number in enumerate(order)}
    options = _options(choices)
    width = max(_LEFT + _COLUMN * len(choices) + _RIGHT, _WIDTH)
    top = 24
    parts = []
    for number, x in places.items():
        names = " ".join(name[0].upper() for name in choices[number].names)
        parts.append(_text(x, 16, names, 'text-anchor="middle" font-weight="bold"') if names else "")
    for part in shown:
        rows = by_part[part]
        parts.append(_text(8, top + 12, _short(next(iter(rows.values()))["statement"], width)))
        parts += _panel(rows, places, top + 20, width)
        top += 20 + _HEIGHT + 14
    parts += _dots(choices, places, options, top)
    height = top + _DOT * len(options) + 12
    note = ""
    if len(shown) < len(by_part):
        note = f"Drawn are the {len(shown)} of {len(by_part)} claims that hold in the fewest settings."
        parts.append(_text(8, height + 4, note, 'fill="#555555"'))
        height += 16
    says = counted[0]["sentence"] or counted[0]["statement"]
    label = f"{says} In {len(choices)} settings: {_verdicts(choices)}. {note}".rstrip()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" role="img" '
        f'aria-label="{escape(label)}">'
    )
    return "\n".join(
        [
            head,
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *filter(None, parts),
            "</svg>",
            "",
        ]
    )


def _verdicts(choices: Sequence[Settings]) -> str:
    return ", ".join(f"{one.in_words} {one.verdict}" for one in choices)


def _options(choices: Sequence[Settings]) -> dict[str, bool]:
    """Options in which settings differ, and whether each was fitted; those of one axis together."""
    sources: dict[str, str] = {}
    for one in choices:
        for row in one.rows:
            if row["options"]:
                sources |= zip(row["options"].split("; "), row["sources"].split("; "), strict=True)
    everywhere = frozenset.intersection(*(one.options for one in choices))
    axes = list(dict.fromkeys(option.partition(": ")[0] for option in sources))
    chosen = (option for option in sources if option not in everywhere)
    by_axis = sorted(chosen, key=lambda option: axes.index(option.partition(": ")[0]))
    return {option: sources[option] == "fitted" for option in by_axis}


def _panel(rows: Mapping[int, Row], places: Mapping[int, float], top: float, width: float) -> list[str]:
    """A claim in all its settings."""
    one = next(iter(rows.values()))
    aim, named = _aim(one)
    numbers = [float(row["measured"]) for row in rows.values()] + ([] if aim is None else [aim])
    span = max(numbers) - min(numbers) or abs(numbers[0]) or 1.0
    low, high = min(numbers) - _MARGIN * span, max(numbers) + _MARGIN * span

    def at(number: float) -> float:
        share = (min(max(number, low), high) - low) / (high - low)
        return round(top + _HEIGHT * (1 - share), 1)

    right = width - _RIGHT
    parts = [
        f'<rect x="{_LEFT}" y="{top}" width="{right - _LEFT}" height="{_HEIGHT}" fill="none" '
        'stroke="#bbbbbb" stroke-width="0.6"/>'
    ]
    for number, row in rows.items():
        x, ends = places[number], ("pi_low", "pi_high") if row["pi_low"] else ("ci_low", "ci_high")
        if row[ends[0]]:
            bottom, upper = (at(float(row[end])) for end in ends)
            parts.append(
                f'<rect x="{x - 9:.1f}" y="{upper}" width="18" height="{max(bottom - upper, 1):.1f}" '
                'fill="#cfe0ee"/>'
            )
    if aim is not None:
        parts.append(f'<path d="M{_LEFT} {at(aim)}H{right}" stroke="#000000"/>')
        parts.append(_text(_LEFT - 6, at(aim) + 4, f"{named} {aim:.4g}", 'text-anchor="end"'))
    if one["rival"]:
        rival = float(one["rival"])
        parts.append(f'<path d="M{_LEFT} {at(rival)}H{right}" stroke="#555555" stroke-dasharray="2 3"/>')
        parts.append(_text(right + 4, at(rival) + 4, f"rival {rival:.4g}"))
    for number, row in rows.items():
        y, colour = at(float(row["measured"])), _COLOURS[row["verdict"]]
        parts.append(f'<circle cx="{places[number]:.1f}" cy="{y}" r="4.5" fill="{colour}"/>')
    return parts


def _aim(row: Row) -> tuple[float | None, str]:
    """Number that a claim is to meet or exceed, and what it is."""
    if row["published"]:
        return float(row["published"]), "above" if row["kind"] == "order" else "published"
    if row["kind"] == "order":
        return 0.0, "above"
    return (float(row["tolerance"]) if row["kind"] == "shape" and row["tolerance"] else 1.0), "share of cases"


def _dots(
    choices: Sequence[Settings], places: Mapping[int, float], options: Mapping[str, bool], top: float
) -> list[str]:
    """A row for each option, with a dot below all settings that have it."""
    parts = []
    for line, (option, fitted) in enumerate(options.items()):
        y = top + _DOT * (line + 0.5)
        parts.append(_text(_LEFT - 6, y + 4, _short(option, 300), 'text-anchor="end"'))
        fill = "#ffffff" if fitted else "#333333"
        parts += [
            f'<circle cx="{places[number]:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="#333333"/>'
            for number in places
            if option in choices[number].options
        ]
    return parts


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{f" {more}" * bool(more)}>{escape(text)}</text>'


def _short(text: str, width: float) -> str:
    """Text cut to about so many pixels."""
    most = int(width / 6)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
