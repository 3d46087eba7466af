"""Pictures that can be read: bands within their axes, labels apart, curves on one another named, pages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from legible import faults
from replifed.algorithms.looks import method_lines
from replifed.algorithms.registry import BUILT_IN
from replifed.figures.artefact import By, Grid, X
from replifed.figures.curves import Scale, coinciding, note
from replifed.figures.style import BLUE, ORANGE, PRINT_WIDTH, Line, banner, canvas, save
from replifed.papers.cross import paper as cross
from replifed.papers.cross.figures import FIGURES
from replifed.papers.fedac import paper as fedac
from replifed.papers.fedgradmp import paper as fedgradmp
from replifed.papers.fedht import paper as fedht
from replifed.papers.fedmm import paper as fedmm
from replifed.papers.qshed import paper as qshed

ROOT = Path(__file__).parents[2]
LINES = {"one": Line("One", BLUE, "-", "o"), "two": Line("Two", ORANGE, "--", "s")}


def table(spread=2.0):
    rows = [
        {"data": data, "method": method, "round": t, "bits": 100.0 * t, "mean": rate**t}
        for data in ("first", "second")
        for method, rate in (("one", 0.5), ("two", 0.7))
        for t in range(12)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(low=frame["mean"] / spread, high=frame["mean"] * spread)


SHAPES = {
    "one panel": {},
    "rows": {"rows": ["data"]},
    "columns and axes": {"columns": [By("data", {"first": "First", "second": "Second"}), X("round", "bits")]},
    "pages": {"pages": [By("data", str)], "columns": [X("round", "bits")]},
    "wrapped": {"columns": ["data", X("round", "bits")], "wrap": 2},
}


def grid(**shape):
    said = {"title": "A title", "caption": "", "prefix": "P", "y": "gap"}
    axes = {"round": "rounds", "bits": "bits"}
    return Grid("fig", source=table, series="method", lines=LINES, x=axes, width=3.5, **said, **shape)


@pytest.mark.parametrize(("shape", "spread"), [*((one, 2.0) for one in SHAPES), ("one panel", 1e9)])
def test_every_shape_of_grid_can_be_read(shape, spread):
    frame = table(spread)
    if not SHAPES[shape]:
        frame = frame[frame["data"] == "first"]
    for page in grid(**SHAPES[shape]).pages_of(frame):
        assert len(page.axes) <= 8
        assert faults(page, None) == []


def test_faults_are_found():
    made, [[axes]] = canvas(1, 1, title="A title")
    axes.set(ylim=(0, 1))
    axes.fill_between([0, 1], [0, 0], [2, 2])
    axes.text(0.5, 0.5, "small", fontsize=5)
    axes.text(0.5, 0.5, "over it", fontsize=9)
    note(axes, "a remark")
    axes.texts[-1].xyann = (0, -2)
    found = "\n".join(faults(made))
    assert "'small': 5.0 points" in found
    assert "'small' lies on 'over it'" in found
    assert "leaves its axes" in found
    assert "'a remark' stands on the frame" in found
    made.set_size_inches(15, 5)
    assert any("points" in one for one in faults(made))
    assert canvas(1, 5)[0].get_size_inches()[0] == pytest.approx(PRINT_WIDTH)


def test_a_page_for_each_value_and_a_strip_for_remarks_alone(tmp_path):
    pages = grid(**SHAPES["pages"]).pages_of(table())
    assert len(pages) == 2
    before = pages[0].get_size_inches()[1]
    banner(pages[0], "", "paper")
    assert pages[0].get_size_inches()[1] == before
    banner(pages[0], "drawn", "paper")
    assert pages[0].get_size_inches()[1] > before
    save(pages, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().count(b"/Type /Page ") == 2


def test_curves_within_a_line_of_one_another_are_named():
    at = np.arange(10.0)
    curves = {"one": 0.5**at, "two": 0.5**at * 1.01, "three": 0.7**at}
    frame = pd.concat(pd.DataFrame({"m": key, "round": at, "mean": y}) for key, y in curves.items())
    said = coinciding(frame, "m", list(curves), "round", Scale(1e-3, 1.0, log=True))
    assert said == [("two", "one")]
    assert coinciding(frame, "m", list(curves), "round", Scale(0.1, 0.11, log=True)) != []
    shorter = frame[(frame["m"] != "two") | (frame["round"] < 5)]
    assert coinciding(shorter, "m", list(curves), "round", Scale(1e-3, 1.0, log=True)) == []


def test_a_method_looks_the_same_everywhere_and_like_no_other():
    by_method = method_lines(BUILT_IN)
    looks = [(line.color, str(line.dashes)) for line in by_method.values()]
    assert len(set(looks)) == len(looks)
    papers = fedgradmp.LINES, fedgradmp.DIGIT_LINES, fedht.LINES, fedmm.METHODS, qshed.LINES, cross.EVERY
    for lines in papers:
        for key, line in lines.items():
            assert line.color == by_method[re.split(r"[./]", key)[0]].color
        assert len({(line.color, str(line.dashes), line.width) for line in lines.values()}) == len(lines)
    for group in (*met_in_a_panel(), fedac.LINES):
        assert len({line.color for line in group.values()}) == len(group)


def met_in_a_panel():
    """Lines of the methods that a panel of the comparison's figures shows."""
    settings = yaml.safe_load((ROOT / "config/papers/cross.yaml").read_text("utf-8"))["cross"]
    for name, figure in settings["artefacts"].items():
        told_apart = callable(
            getattr(FIGURES.get(name), "lines", None)
        )  # by colour and marker, as a test holds
        if figure["kind"] == "figure" and not figure.get("summary") and not told_apart:
            yield from ({name: cross.EVERY[name] for name in names} for names in figure["runs"].values())
