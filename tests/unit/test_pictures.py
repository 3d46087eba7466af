"""All figures can be read, drawn from their tables of a small run, thinned by tests/pictures/thin.py."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import pytest

from legible import faults
from replifed.figures.artefact import Grid
from replifed.figures.style import PRINT_WIDTH, banner
from replifed.parts import paper_names, part
from small_tables import small_table

MOST_PANELS = 12


def figures():
    for paper in paper_names():
        for name in import_module(part(paper, "figures")).FIGURES:
            yield pytest.param(paper, name, id=f"{paper}-{name}")


def drawn_when_called(picture, *page):
    """Stands for a picture's drawing of a page: few of the pages are looked at."""
    return partial(DRAW, picture, *page)


DRAW = Grid._page


@pytest.mark.parametrize(("paper", "name"), list(figures()))
def test_every_picture_can_be_read(paper, name, monkeypatch):
    monkeypatch.setattr(Grid, "_page", drawn_when_called)
    frame = small_table(paper, name)
    pages = import_module(part(paper, "figures")).FIGURES[name].pages_of(frame)
    # Pages are alike: the first and the last stand for those between them.
    for page in pages[:1] + pages[1:][-1:]:
        page = page() if callable(page) else page
        banner(page, str(frame["data"].iloc[0]) if "data" in frame else "", "small")
        assert page.get_size_inches()[0] <= PRINT_WIDTH + 1e-9
        colour_bars = sum(ax.get_label() == "<colorbar>" for ax in page.axes)
        panels = [ax for ax in page.axes if ax.axison]
        assert len(panels) - colour_bars <= MOST_PANELS
        assert all(ax.lines or ax.collections or ax.patches or ax.images or ax.texts for ax in panels)
        assert faults(page) == []
