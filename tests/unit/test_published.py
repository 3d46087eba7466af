"""What the papers print, drawn among the curves: numbers of claims, and where they lie."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from replifed.figures.grid import By, Curves, Grid, Published, X
from replifed.figures.style import BLUE, Line
from replifed.parts import paper_names, part
from replifed.report.curves import curves, in_words


def drawn():
    """The published numbers of all figures."""
    for paper in paper_names():
        for name, made in import_module(part(paper, "figures")).FIGURES.items():
            for one in made.published if isinstance(made, Curves) else ():
                yield pytest.param(paper, one, id=f"{paper}-{name}-{one.claim}")


@pytest.mark.parametrize(("paper", "one"), list(drawn()))
def test_what_is_drawn_as_published_is_what_a_claim_is_held_against(paper, one):
    claims = import_module(part(paper, "claims")).CLAIMS
    held = [claim for claim in claims if f"{claim.id}.".startswith(f"{paper}.{one.claim}.")]
    assert held
    assert {claim.published for claim in held} == {one.x if one.y is None else one.y}
    assert one.said.startswith("published")


ROUND = Published("published: 5 rounds", "a", x=5, where={"data": "first"})
LEVEL = Published("published: 1e-4", "b", y=1e-4)
LATER = Published("published: 50 rounds", "c", x=50)  # the runs have 10


def grid():
    return Grid(
        "fig",
        title="A title",
        caption="",
        prefix="P",
        rows=[By("data", str)],
        columns=[X("round", "bits")],
        series="method",
        lines={"one": Line("One", BLUE)},
        y="gap",
        x={"round": "rounds", "bits": "bits"},
        log_y=True,
        published=[ROUND, LEVEL, LATER],
    )


def table():
    at = np.arange(11)
    rows = [pd.DataFrame({"data": data, "round": at, "mean": 0.5**at}) for data in ("first", "second")]
    frame = pd.concat(rows).assign(method="one")
    return frame.assign(bits=frame["round"] * 9, low=frame["mean"], high=frame["mean"])


def test_published_numbers_lie_on_their_axes_in_their_panels():
    made = grid().show(table())
    levels, rounds = [], []
    for ax in made.axes:
        for line in ax.lines:
            x, y = (np.unique(values).tolist() for values in (line.get_xdata(), line.get_ydata()))
            rounds += [(ax.get_title(loc="left"), x)] * (x in ([5], [50]))
            levels += [y] * (y == [1e-4])
        assert ax.get_ylim()[0] <= 1e-4  # below all curves, which end near 1e-3
    assert rounds == [("first", [5])]
    assert len(levels) == 4
    explained = [text.get_text() for text in made.legends[0].texts]
    assert explained == ["One", ROUND.said, LEVEL.said]


def test_a_page_gets_the_same_numbers_and_words():
    first, second = (panel["published"] for panel in curves(grid(), table())["panels"])
    assert first == [[ROUND.said, 5, None], [LEVEL.said, None, 1e-4]]
    assert second == [[LEVEL.said, None, 1e-4]]
    assert "Published: 5 rounds. Published: 1e-4." in in_words(grid(), table())
    assert "50" not in in_words(grid(), table())
