"""The report: one page, complete, self-contained, the same bytes every time."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from replifed.claims.errata import COLUMNS, write
from replifed.claims.sentences import write_not_claimed
from replifed.claims.verdicts import Claim, measure
from replifed.errors import DataError
from replifed.figures.style import canvas, save
from replifed.report.page import _place, build

CONFIG = {
    "papers": ["fedht"],
    "fedht": {
        "artefacts": {"fig1": {}, "table2": {}, "fig6": {}},
        "not_computed": {"table1": "notation only"},
    },
}
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """Collects elements; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], text
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


class Inputs:
    def has(self, key):
        return True

    def data_kind(self, experiment):
        return ("surrogate" if experiment == "e2006" else "substitute"), ""


def claim(name, kind, values, **more):
    more = {"paper": "fedht", "artefact": "fig1", "statement": f'Claim {name} <holds> & "so"', **more}
    more = {"tolerance": 0.1, **more} if kind == "order" else more
    return Claim(id=name, kind=kind, measure=lambda inputs: np.array(values), **more)


@pytest.fixture
def made(tmp_path):
    claims = [
        claim("good", "order", [1.0, 1.1, 0.9], reading="own", needs=("run:rcv1/fedht",)),
        claim(
            "bad",
            "order",
            [-1.0, -1.1, -0.9],
            reading="common",
            note="steps <must> be small",
            artefact="fig6",
        ),
        claim("open", "order", [1.0, -1.0]),
        claim("surrogate", "identity", [True], needs=("run:e2006/fedht",), artefact="fig6"),
    ]
    measure(claims, Inputs(), "small").to_csv(tmp_path / "claims.csv", index=False, lineterminator="\n")
    folder = tmp_path / "figures" / "fedht"
    picture, _ = canvas(1, 1)
    folder.mkdir(parents=True)
    save(picture, folder / "fig1.png")
    (folder / "fig1.csv").write_text("panel,data,scale\na,,small\n")
    (folder / "table2.csv").write_text("dataset,data,scale\nmnist,e2006: made here <so>,small\n")
    (folder / "table2.md").write_text(
        "| Data set | samples |\n|:---------|--------:|\n| MNIST & co | 60000 |\n\n*note*\n"
    )
    return tmp_path


def page(made, config=CONFIG, scale="small", errata=(), single=True):
    write_not_claimed(made / "not_claimed.csv", [])
    files = {"claims": made / "claims.csv", "not_claimed": made / "not_claimed.csv", "errata": errata}
    build(made / "figures", scale, config, made / "report.html", **files, single=single)
    return Page((made / "report.html").read_text(encoding="utf-8"))


def test_page_is_self_contained(made):
    found = page(made)
    sources = [attrs.get("src", "") for _, attrs in found.elements if "src" in attrs]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not found.all("link")
    without_pictures = re.sub(r"base64,[\w+/=]+", "", found.text)
    assert "http:" not in without_pictures
    assert "https:" not in without_pictures
    assert "@import" not in without_pictures


def test_pictures_may_lie_beside_the_page(made):
    (picture,) = page(made, single=False).all("img")
    assert picture["src"] == "figures/fedht/fig1.png"


def test_artefacts_come_in_the_order_of_their_numbers():
    assert sorted(["fig10", "fig2_full", "table1", "fig2", "bias", "fig1"], key=_place) == [
        *("fig1", "fig2", "fig2_full", "fig10", "table1", "bias")
    ]


def test_pictures_are_whole_and_described(made):
    (picture,) = page(made).all("img")
    content = base64.b64decode(picture["src"].partition(",")[2])
    assert content == (made / "figures" / "fedht" / "fig1.png").read_bytes()
    assert "communication rounds" in picture["alt"]
    assert int(picture["width"]) == round(450 * 96 / 150)


def test_every_link_leads_somewhere(made):
    found = page(made)
    targets = {attrs["id"] for _, attrs in found.elements if "id" in attrs}
    links = {attrs["href"][1:] for attrs in found.all("a")}
    assert links <= targets
    assert {"claims", "deviations", "data", "fedht-fig1", "fedht-table2", "fedht-not-computed"} <= links
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_claims_and_filters(made):
    found = page(made)
    assert {"good", "bad", "open", "surrogate"} <= {attrs.get("id") for attrs in found.all("tr")}
    assert "Claim good &lt;holds&gt; &amp; &#34;so&#34;" in found.text
    columns = [attrs["data-column"] for attrs in found.all("select")]
    head = re.findall(r'<th scope="col">([^<]+)</th>', found.text.partition('id="claims-table"')[2])
    assert [head[int(column)] for column in columns] == ["Paper", "Verdict", "Kind", "Reading", "Basis"]


def test_substitutes_are_counted_apart(made):
    row = page(made).text.partition("<tbody>")[2].partition("</tr>")[0]
    assert re.findall(r">(\d+)</span>( \(\d+\))?", row) == [("1", " (1)"), *[(n, "") for n in "0111"]]


def test_deviations_come_with_their_reason(made):
    section = page(made).text.partition('id="deviations"')[2].partition("<h2")[0]
    assert "Claim bad" in section
    assert "steps &lt;must&gt; be small" in section
    assert "Claim good" not in section
    assert "Claim open" not in section


def test_stamps(made):
    found = page(made)
    assert "SCALE: SMALL" in found.text
    assert found.text.count("e2006: made here &lt;so&gt;") == 2
    assert "SCALE" not in page(made, scale="paper").text


def test_tables_and_what_was_not_made(made):
    text = page(made).text
    assert "<td>MNIST &amp; co</td><td>60000</td>" in text
    assert "table1: notation only." in text
    assert "Not made in this run." in text.partition('id="fedht-fig6"')[2]


def test_only_what_was_asked_for(made):
    config = {**CONFIG, "fedht": {**CONFIG["fedht"], "only": ["fig1"]}}
    text = page(made, config).text
    assert 'id="fedht-fig1"' in text
    assert 'id="fedht-fig6"' not in text


def test_errata_only_if_there_are_any(made, tmp_path):
    assert 'id="errata"' not in page(made).text
    row = dict.fromkeys(COLUMNS, "") | {"id": "fedht.sign", "printed": "a < b", "shown": "yes"}
    write(tmp_path / "errata.csv", [row])
    text = page(made, errata=[tmp_path / "errata.csv"]).text
    assert 'id="fedht.sign"' in text
    assert "<td>a &lt; b</td>" in text


def test_same_bytes(made):
    first = page(made).text
    assert page(made).text == first


def test_a_broken_picture_is_named(made):
    (made / "figures" / "fedht" / "fig1.png").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"fig1\.png is no PNG"):
        page(made)


def test_an_artefact_of_several_tables_shows_each_under_its_title(made):
    tables = (
        f"**{data}**\n\n| method |\n|:--|\n| {method} |\n\n"
        for data, method in {"a9a": "LED", "w8a": "GD"}.items()
    )
    (made / "figures/fedht/table2.md").write_text("".join(tables) + "*note*\n")
    found = page(made)
    assert [found.text.count(f"<caption>{title}</caption>") for title in ("a9a", "w8a", "note")] == [1, 1, 0]
    assert "<td>LED</td>" in found.text and "<td>a9a</td>" not in found.text
