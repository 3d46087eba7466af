"""Picture of a statement by settings: what was measured against what was published, and the options below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from replifed.claims import scores
from replifed.claims.files import unit_text
from replifed.claims.scores import Row, Settings

# Settings from which on there is a picture; of many claims, those that hold in the fewest are drawn.
FEWEST = 3
_PANELS = 3
_COLOURS = {"holds": "#009e73", "fails": "#d55e00", "inconclusive": "#888888"}
# In pixels.
_LEFT, _RIGHT, _HEIGHT, _DOT = 230, 110, 96, 16
_COLUMN, _WIDTH = 30, 620  # at least
# Part of the range of numbers by which a panel reaches beyond them.
_MARGIN = 0.3


def picture(group: Sequence[Row]) -> str:
    """SVG of a statement, one panel per claim and one column per settings; "" with fewer than three settings.

    Columns are sorted by what the first panel measured, and numbered. A point is the measured number, shaded
    the prediction interval of a value or the confidence interval of another number, a line the published
    number, dotted its rival. Options that were fitted are hollow. Below all is the legend.
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
    parts.append(_text(_LEFT - 6, top, "settings", 'text-anchor="end"'))
    for number, x in enumerate(places.values(), 1):
        parts.append(_text(x, top, str(number), 'text-anchor="middle"'))
    parts += _dots(choices, places, options, top + 6)
    height = top + _DOT * len(options) + 26
    drawn = [row for part in shown for row in by_part[part].values()]
    for line in _legend(drawn, choices, options):
        parts += [one.format(y=height) for one in line]
        height += 16
    note = ""
    if len(shown) < len(by_part):
        note = f"Drawn are the {len(shown)} of {len(by_part)} claims that hold in the fewest settings."
        parts.append(_text(8, height, note, 'fill="#555555"'))
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
    parts = [_text(8, top + 12, _quantity(one), 'fill="#555555"')]
    for tick, label in _ticks(low, high, _quantity(one)):
        parts.append(f'<path d="M{_LEFT - 4} {at(tick)}H{right}" stroke="#dddddd" stroke-width="0.6"/>')
        parts.append(_text(_LEFT - 6, at(tick) + 4, label, 'text-anchor="end"'))
    parts += [
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
        parts.append(_text(right + 4, at(aim) + 4, named))
    if one["rival"]:
        rival = float(one["rival"])
        parts.append(f'<path d="M{_LEFT} {at(rival)}H{right}" stroke="#555555" stroke-dasharray="2 3"/>')
        apart = 12 if aim is not None and abs(at(rival) - at(aim)) < 12 else 0  # texts do not overlap
        parts.append(_text(right + 4, at(rival) + 4 + apart, f"rival {rival:.4g}"))
    for number, row in rows.items():
        y, colour = at(float(row["measured"])), _COLOURS[row["verdict"]]
        parts.append(f'<circle cx="{places[number]:.1f}" cy="{y}" r="4.5" fill="{colour}"/>')
    return parts


def _aim(row: Row) -> tuple[float | None, str]:
    """Number that a claim is to meet or exceed, and what it is in words."""
    if row["kind"] == "order":
        least = float(row["published"] or 0.0)
        return least, f"claimed: above {math.exp(least) if unit_text(row) == 'factor' else least:.4g}"
    if row["published"]:
        return float(row["published"]), f"published {float(row['published']):.4g}"
    asked = float(row["tolerance"]) if row["kind"] == "shape" and row["tolerance"] else 1.0
    return asked, f"asked: {asked:.4g}"


def _quantity(row: Row) -> str:
    """What the numbers of a panel are."""
    unit = unit_text(row)
    if row["kind"] == "order":
        return unit if unit == "factor" else ", ".join(filter(None, ("difference", unit)))
    return "share of cases" if row["kind"] in ("shape", "identity") and not row["published"] else unit


def _ticks(low: float, high: float, quantity: str) -> list[tuple[float, str]]:
    """Some round numbers between the ends of an axis, and their texts; of a factor its logarithms."""
    if quantity == "factor" and math.exp(high - low) > 3:
        factors = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
        inside = [one for one in factors if low <= math.log(one) <= high]
        return [(math.log(one), f"{one:.3g}") for one in inside[:: -(-len(inside) // 5)]]
    step = 10.0 ** math.floor(math.log10(high - low))
    step *= next(part for part in (0.2, 0.5, 1.0, 2.0) if (high - low) / (part * step) <= 5)
    numbers = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if quantity == "factor":  # near one it is one and the difference of logarithms
        return [(math.log1p(one), f"{1 + one:.3g}") for one in numbers if one > -1]
    return [(one, f"{one:.3g}") for one in numbers if one <= 1 or quantity != "share of cases"]


def _legend(
    drawn: Sequence[Row], choices: Sequence[Settings], options: Mapping[str, bool]
) -> Iterator[list[str]]:
    """Lines of what the picture's signs mean, of those that it has; each is placed at {y}."""
    signs, x = [], 8
    for verdict in dict.fromkeys(row["verdict"] for row in drawn):
        signs.append(f'<circle cx="{x + 4}" cy="{{y}}" r="4.5" fill="{_COLOURS[verdict]}"/>')
        signs.append(f'<text x="{x + 13}" y="{{y}}" dy="4">{verdict}</text>')
        x += 24 + 7 * len(verdict)
    shaded = "prediction interval" if any(row["pi_low"] for row in drawn) else "95 % interval"
    names = {name for one in choices for name in one.names}
    known = (name for name in (scores.PRINTED, scores.INFERRED) if name in names)
    words = [
        f"shaded: {shaded}" if any(row["pi_low"] or row["ci_low"] for row in drawn) else "",
        *(f"{name[0].upper()}: {name} settings" for name in known),
        "hollow: fitted option" if any(options.values()) else "",
    ]
    yield signs
    if text := "; ".join(filter(None, words)):
        yield [f'<text x="8" y="{{y}}" dy="4">{text}</text>']


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
