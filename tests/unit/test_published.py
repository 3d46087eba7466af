"""Numbers drawn across panels, such as claims'; pictures and pages drawn from one description."""

from __future__ import annotations

import base64
import json
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.figures.artefact import By, Grid, Reference, X
from replifed.figures.style import BLUE, Line, canvas, save
from replifed.papers.fedac import published
from replifed.papers.fedac.paper import OPTIMA
from replifed.parts import paper_names, part
from replifed.report.curves import curves, in_words, read
from replifed.report.page import build

TABLES = Path(__file__).parents[1] / "pictures"


def figures():
    for paper in paper_names():
        for name, made in import_module(part(paper, "figures")).FIGURES.items():
            if isinstance(made, Grid):
                yield paper, name, made


def drawn():
    """The references of all figures."""
    for paper, name, made in figures():
        for one in made.references:
            yield pytest.param(paper, one, id=f"{paper}-{name}-{one.label}")


def tables():
    for paper, name, made in figures():
        yield pytest.param(made, TABLES / f"{paper}-{name}.csv.gz", id=f"{paper}-{name}")


@pytest.mark.parametrize(("paper", "one"), list(drawn()))
def test_what_is_drawn_as_published_is_what_a_claim_is_held_against(paper, one):
    assert one.label.startswith("published") == bool(one.claim)
    if not one.claim:
        return
    claims = import_module(part(paper, "claims")).CLAIMS
    held = [claim for claim in claims if f"{claim.id}.".startswith(f"{paper}.{one.claim}.")]
    assert held
    assert {claim.published for claim in held} == {one.x if one.y is None else one.y}


ROUND = Reference("published: 5 rounds", x=5, where={"data": "first"}, claim="a")
LEVEL = Reference("published: 1e-4", y=1e-4, claim="b")
LATER = Reference("published: 50 rounds", x=50, claim="c")  # the runs have 10


def grid():
    return Grid(
        "fig",
        source=lambda _: table(),
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
        references=[ROUND, LEVEL, LATER],
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
        assert ax.get_ylim()[0] < 1e-4  # below all curves, which end near 1e-3
    assert rounds == [("first", [5])]
    assert len(levels) == 4
    explained = [text.get_text() for text in made.legends[0].texts]
    assert explained == ["One", ROUND.label, LEVEL.label]


def test_a_page_gets_the_same_numbers_and_words():
    first, second = (panel["published"] for panel in curves(grid(), table())["panels"])
    assert first == [[ROUND.label, 5, None], [LEVEL.label, None, 1e-4]]
    assert second == [[LEVEL.label, None, 1e-4]]
    assert "Published: 5 rounds. Published: 1e-4." in in_words(grid(), table())
    assert "50" not in in_words(grid(), table())


@pytest.mark.parametrize(("made", "table"), list(tables()))
def test_a_page_names_the_curves_of_a_picture(made, table):
    frame = read(table)
    found, shown = curves(made, frame), made.with_curves(made.shown(frame) if made.shown else frame)
    declared = made.lines(shown) if callable(made.lines) else made.lines
    assert set(shown[made.series]) <= set(declared)
    assert len({tuple(line) for line in found["lines"]}) == len(found["lines"])  # told apart
    titles = [(panel["page"], panel["title"], panel["x"][0][1], panel["y"]) for panel in found["panels"]]
    assert len(set(titles)) == len(titles)
    assert sum(len(panel["curves"]) for panel in found["panels"]) >= len(found["lines"])
    for panel in found["panels"]:
        assert panel["y"] and all(label for _, label, _ in panel["x"])
        assert panel["curves"]


def test_the_authors_points_are_on_the_page_beside_ours(tmp_path):
    folder = tmp_path / "figures" / "fedac"
    folder.mkdir(parents=True)
    read(TABLES / "fedac-fig1.csv.gz").to_csv(folder / "fig1.csv", index=False)
    save(canvas(1, 1)[0], folder / "fig1.png")
    settings = {"papers": ["fedac"], "fedac": {"artefacts": {"fig1": {"runs": {}}}}}
    script = tmp_path / "curves.js"
    build(tmp_path / "figures", "small", settings, tmp_path / "report.html", curves=script)
    assert 'data-draw="fedac-fig1"' in (tmp_path / "report.html").read_text()
    packed = json.loads(script.read_text().partition(" = ")[2].rstrip(";\n"))
    found = json.loads(zlib.decompress(base64.b64decode(packed)))["fedac-fig1"]
    labels, alone = [line[0] for line in found["lines"]], [line[3] for line in found["lines"]]
    assert [label for label, points in zip(labels, alone, strict=True) if points] == labels[4:]
    (panel,) = (one for one in found["panels"] if one["title"] == "K = 8")
    by_label = {labels[curve["line"]]: curve for curve in panel["curves"]}
    theirs = published.points().query("l2 == 1e-3 and method == 'fedavg' and K == 8 and M >= 4")
    theirs = theirs.sort_values("M")
    assert by_label["FedAvg, published"]["x"]["M"] == theirs["M"].tolist()
    gaps = (theirs["best_loss"] - OPTIMA[1e-3]).tolist()
    assert by_label["FedAvg, published"]["y"] == pytest.approx(gaps, rel=1e-3)
    # The authors' random numbers give their points, as far as there are runs.
    ours = by_label["FedAvg"]
    assert 0 < len(ours["y"]) < len(gaps)
    at = [theirs["M"].tolist().index(M) for M in ours["x"]["M"]]
    assert ours["y"] == pytest.approx([gaps[i] for i in at], rel=1e-3)
