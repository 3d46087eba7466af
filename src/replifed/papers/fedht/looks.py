"""How the ten clusters of a data set, and other groups, look in every picture."""

from __future__ import annotations

from typing import NamedTuple

from replifed.figures import style

# Okabe and Ito's eight colours, and two more of other lightness: a wine red and a light grey.
_COLOURS = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PURPLE,
    style.SKY,
    style.VERMILLION,
    style.BLACK,
    style.YELLOW,
    "#882255",
    "#BBBBBB",
)
_MARKERS = "os^DvPX*<>"


class Look(NamedTuple):
    """Colour, marker and hatch of a group; beyond ten groups they come round again, hatched."""

    color: str
    marker: str
    hatch: str


def group_look(place: int) -> Look:
    """Return the look of the group number `place`, from 0."""
    turn, place = divmod(place, len(_COLOURS))
    return Look(_COLOURS[place], _MARKERS[place], "/////" if turn else "")
