"""Look of curves: colours, dashes and markers. Nothing here imports matplotlib, which takes .6 s of CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from replifed.errors import ConfigError, unknown_name

# Okabe and Ito's palette, told apart with any kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, WINE = "#767676", "#882255"
COLOURS = {
    **{"black": BLACK, "orange": ORANGE, "sky": SKY, "green": GREEN, "yellow": YELLOW},
    **{"blue": BLUE, "vermillion": VERMILLION, "purple": PURPLE, "grey": GREY, "wine": WINE},
}
LONG, SHORT, DOTS, DASH_DOT = (0, (5, 1.5)), (0, (2.5, 1)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5))
# Dashes of variants of a method, which keep its colour.
WIDE, TWO_DOTS, TWO_DASHES, SPARSE = (
    (0, (7, 2.5)),
    (0, (6, 2, 1, 1.5, 1, 1.5)),
    (0, (6, 2, 2, 2)),
    (0, (1, 2)),
)
DASHES = {"solid": "-", "long": LONG, "short": SHORT, "dots": DOTS, "dash_dot": DASH_DOT, "wide": WIDE}


class Line(NamedTuple):
    """Look of a curve: colour, dashes and marker each tell it apart; without dashes all points are drawn."""

    label: str
    color: str
    dashes: str | tuple = "-"
    marker: str = ""
    width: float = 1.4
    size: float = 4.0  # of its markers, in points
    filled: bool = True
    explained: bool = True  # whether a legend names it by itself

    @property
    def look(self) -> dict[str, Any]:
        """Keywords for matplotlib, without the label."""
        return {
            "color": self.color,
            "linestyle": self.dashes,
            "marker": self.marker,
            "linewidth": self.width,
            "markersize": self.size,
            "fillstyle": "full" if self.filled else "none",
        }


def described(label: str, color: str, dashes: str, marker: str = "", width: float = 1.4) -> Line:
    """Return the line of a look in words: of `COLOURS`, or #RRGGBB, and of `DASHES`; matplotlib's marker."""
    color = color if color.startswith("#") else _known("colour", color, COLOURS)
    return Line(label, color, _known("dashes", dashes, DASHES), marker, width)


def _known(kind: str, word: str, words: Mapping[str, Any]) -> Any:
    if word not in words:
        raise ConfigError(unknown_name(kind, word, words))
    return words[word]


# Of curves that would have the colour and the marker of another one, in this order.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "h", "<", ">", "d", "8", "H")


def distinguished(lines: Mapping[Any, Line], shown: Iterable[Any]) -> dict[Any, Line]:
    """Return lines of which no two that are `shown` share colour and marker; colours and dashes stay."""
    found, taken = dict(lines), set()
    for key in [key for key in lines if key in set(shown)]:
        line = found[key]
        free = (line.marker, *(one for one in _MARKERS if one != line.marker))
        marker = next((one for one in free if (line.color, one) not in taken), line.marker)
        taken.add((line.color, marker))
        found[key] = line._replace(marker=marker)
    return found


# A sequence (three levels of heterogeneity, four numbers of local steps) keeps its order of entries.
SEQUENCE = (
    Line("", BLUE, "-", "o"),
    Line("", ORANGE, (0, (5, 1.5)), "s"),
    Line("", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    Line("", PURPLE, (0, (1, 1)), "D"),
    Line("", BLACK, (0, (6, 2, 2, 2)), "v"),
    Line("", SKY, (0, (3, 1)), "P"),
    Line("", VERMILLION, (0, (2, 1)), "X"),
)


def numbered(number: int) -> Line:
    """Return a line for each number: the sequence, then its colours with other dashes and markers."""
    n, turn = len(SEQUENCE), number // len(SEQUENCE)
    dashes, marker = SEQUENCE[(number + turn) % n].dashes, SEQUENCE[(number + 2 * turn) % n].marker
    return SEQUENCE[number % n]._replace(dashes=dashes, marker=marker)


def sequence_lines(labels: Mapping[Any, str]) -> dict[Any, Line]:
    """Return one line per key of `labels`, in order, with the labels given."""
    return {
        key: SEQUENCE[number % len(SEQUENCE)]._replace(label=label)
        for number, (key, label) in enumerate(labels.items())
    }
