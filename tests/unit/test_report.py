"""The report: one page, complete, self-contained, the same bytes every time."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import planted_paper
from replifed.claims import tables
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim
from replifed.claims.errata import COLUMNS, write
from replifed.claims.files import number_text, unit_text
from replifed.claims.sentences import not_claimed
from replifed.claims.verdicts import COLUMNS as VERDICT_COLUMNS
from replifed.claims.verdicts import measure
from replifed.errors import DataError
from replifed.figures.style import canvas, save
from replifed.papers import jobs
from replifed.report import curves, gallery
from replifed.report.artefacts import in_order
from replifed.report.page import _deviations, _numbers, build, facts
from replifed.report.section import _range, by_part
from replifed.report.sentences import of_paper
from replifed.settings.needs import artefacts

CONFIG = {
    "papers": ["fedht"],
    "fedht": {
        "artefacts": {"fig1": {"runs": {"simulation1": ["fedht"]}}, "table2": {}, "fig6": {}, "bias": {}},
        "not_computed": {"table1": "notation only"},
        "experiments": {"simulation1": {"rounds": 40, "replicates": [1, 2, 3], "partition": {"parts": 2}}},
    },
}
CLOSED_BY_THE_NEXT = {"tr", "th", "td", "li"}
VOID = {"meta", "br", "wbr", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """Collects elements; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], text
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID | CLOSED_BY_THE_NEXT:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in CLOSED_BY_THE_NEXT:
            assert self.open.pop() == tag

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


AXES = Axes(
    Axis(
        "step",
        "The text does not say which.",
        Option("own", "chosen", "a grid"),
        Option("common", "fitted", "Figure 6 comes out"),
    )
)
MAIN = {"main": True, "statement_id": "fedht.main", "sentence": "It is <faster>.", "place": "Abstract"}


class Inputs:
    def has(self, key):
        return True

    def data_kind(self, experiment):
        return ("surrogate" if experiment == "e2006" else "substitute"), ""


def claim(name, kind, values, **more):
    more = {"paper": "fedht", "artefact": "fig1", "statement": f'Claim {name} <holds> & "so"', **more}
    more = {"tolerance": 0.1, "fewest": 1, **more} if kind == "order" else more
    more = {"axes": AXES, **more}
    return Claim(id=name, kind=kind, measure=lambda inputs: np.array(values), **more)


def curve_table(rounds=200):
    """Figure 1's numbers for two methods and numbers of local steps, which fall by a tenth a round."""
    rows = [
        {
            **{"experiment": "simulation1", "level": "0.1,0.1", "reading": "own", "method": method},
            **{"local_steps": steps, "step": 0.1, "chaotic": 0, "round": at, "iterations": at * steps},
            **{"bits": 64 * at, "mean": 0.9**at, "low": 0.8 * 0.9**at, "high": 1.2 * 0.9**at},
            **{"alive": 5, "seeds": 5, "diverged": 0, "data": "", "scale": "small"},
        }
        for method in ("fedht", "fediterht")
        for steps in (3, 10)
        for at in range(rounds)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with claims, a figure and a table."""
    folder = tmp_path_factory.mktemp("report")
    claims = [
        claim("good", "order", [1.0, 1.1, 0.9], options={"step": "own"}, needs=("run:rcv1/fedht",), **MAIN),
        claim(
            "bad",
            "order",
            [-1.0, -1.1, -0.9],
            options={"step": "own"},
            note="steps <must> be small",
            artefact="fig6",
        ),
        claim("open", "order", [1.0, -1.0]),
        claim(
            *("number", "value", [0.52, 0.54, 0.53]),
            **{"published": 0.5, "precision": 0.05, "rival": 0.8, "unit": "rate"},
        ),
        claim("surrogate", "identity", [True], needs=("run:e2006/fedht",), artefact="fig6"),
    ]
    measure(claims, Inputs(), "small").to_csv(folder / "claims.csv", index=False, lineterminator="\n")
    figures = folder / "figures" / "fedht"
    picture, _ = canvas(1, 1)
    figures.mkdir(parents=True)
    save(picture, figures / "fig1.png")
    curve_table().to_csv(figures / "fig1.csv", index=False)
    (figures / "table2.csv").write_text("dataset,data,scale\nmnist,e2006: made here <so>,small\n")
    (figures / "table2.md").write_text(
        "| Data set | samples |\n|:---------|--------:|\n| MNIST & co | 60000 |\n\n*note*\n"
    )
    return folder


@pytest.fixture(scope="module")
def alone(original):
    """The page as one file."""
    return page(original)


@pytest.fixture(scope="module")
def beside(original):
    """The page with its pictures, curves and run beside it."""
    return page(original, single=False)


@pytest.fixture
def made(original, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(original, tmp_path, dirs_exist_ok=True)


def page(made, config=CONFIG, scale="small", errata=(), single=True):
    files = {"claims": made / "claims.csv", "errata": errata}
    if not single:
        files |= {"curves": made / "report_curves.js", "run": made / "report_run.js"}
    build(made / "figures", scale, config, made / "report.html", **files, single=single)
    return Page((made / "report.html").read_text(encoding="utf-8"))


def test_page_is_self_contained(alone):
    sources = [attrs.get("src", "") for _, attrs in alone.elements if "src" in attrs]
    assert sources and all(source.startswith("data:image/png;base64,") for source in sources)
    assert not alone.all("link")
    without_pictures = re.sub(r"base64,[\w+/=]+", "", alone.text)
    without_pictures = without_pictures.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search("https?:|@import", without_pictures)


def test_artefacts_come_in_the_order_of_their_numbers():
    names = dict.fromkeys(["fig10", "fig2_full", "table1", "fig2", "bias", "fig1"])
    assert [name for name, _ in in_order(names)] == [
        *("fig1", "fig2", "fig2_full", "fig10", "table1", "bias")
    ]


def test_the_gallery_shows_every_picture_small_and_no_other(made, tmp_path):
    section = {
        "artefacts": {"bias": {"kind": "figure"}, "fig1": {"kind": "figure"}, "table2": {"kind": "table"}}
    }
    for name in ("fig1", "bias"):
        Image.new("RGB", (2000, 300), "white").save(made / "figures/fedht" / f"{name}.png")
    curve_table().to_csv(made / "figures/fedht/bias.csv", index=False)
    left = tmp_path / "pictures/fedht-fig9.webp"
    left.parent.mkdir()
    left.write_bytes(b"of a figure that is gone")
    settings, out = {"papers": ["fedht"], "fedht": section}, tmp_path / "pictures.md"
    gallery.write(made / "figures", settings, made / "claims.csv", out)
    text = out.read_text()
    shown = re.findall(r"\]\((pictures/.*)\)", text)
    assert shown == ["pictures/fedht-fig1.webp", "pictures/fedht-bias.webp"]
    assert sorted(left.parent.iterdir()) == sorted(tmp_path / name for name in shown)
    with Image.open(tmp_path / shown[0]) as small:
        assert small.size == (1000, 150)
    of_fig1, of_bias = text.partition("### Figure 1")[2].split("### ")
    link = "(papers/fedht.md#main-claims)"
    assert f"- **reproduced** (substitute data): main claim [1]{link}\n" in of_fig1
    assert "- 2 other statements: 1 reproduced, 1 inconclusive\n" in of_fig1
    assert "- **" not in of_bias


def test_pictures_are_whole_and_described(original, alone):
    (picture,) = alone.all("img")
    content = base64.b64decode(picture["src"].partition(",")[2])
    assert content == (original / "figures" / "fedht" / "fig1.png").read_bytes()
    assert "communication rounds" in picture["alt"]
    assert int(picture["width"]) == round(450 * 96 / 150)


def test_every_link_leads_somewhere(original, alone, beside):
    targets = {attrs["id"] for _, attrs in alone.elements if "id" in attrs}
    links = {attrs["href"][1:] for attrs in alone.all("a") if attrs["href"].startswith("#")}
    assert links <= targets
    assert {"claims", "deviations", "data", "fedht-fig1", "fedht-table2", "fedht-not-computed"} <= links
    ids = [attrs["id"] for _, attrs in alone.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    files = [attrs["href"] for attrs in beside.all("a") if attrs["href"][0] not in "#.?"]
    assert files == ["figures/fedht/fig1.csv", *(f"figures/fedht/table2.{end}" for end in ("csv", "md")),
                     "report_run.js"]  # fmt: skip
    files += [attrs["src"] for attrs in beside.all("img")]
    assert all((original / file).is_file() for file in files)


def test_claims_and_filters(alone):
    assert {"good", "bad", "open", "surrogate"} <= {attrs.get("id") for attrs in alone.all("tr")}
    assert "Claim good &lt;holds&gt; &amp; &#34;so&#34;" in alone.text
    columns = [attrs["data-column"] for attrs in alone.all("select") if "data-column" in attrs]
    assert [attrs["data-of"] for attrs in alone.all("select") if "data-of" in attrs] == ["paper", "kind"]
    table = alone.text.partition('id="claims-table"')[2]
    head = re.findall(r'<th scope="col">([^<]+)', table.partition("</thead>")[0])
    assert [head[int(column)] for column in columns] == ["Verdict", "Settings", "Part of", "Source"]
    assert {"Published", "Measured", "Interval", "Seeds"} <= set(head)
    number = table.partition('id="number"')[2].partition("<tr")[0]
    assert '<span class="note">Rival: 0.8</span>' in number
    assert '<td>0.5<td>0.53<td class="pi">[0.43' in number
    heading, _, good = table.partition('id="good"')
    assert "Main claim. Claim good" in heading.rpartition('class="says"')[2]
    assert re.search(
        r"<td>step: own <span class=.note.>the [^<]+</span>\s+<code>good</code><td>printed inferred", good
    )
    assert '<td class="unchecked">– not testable' in table
    assert '<span class="note">steps &lt;must&gt; be small</span>' in table


# A part of the page, what is there, and what is in the page, but not there.
PARTS = [
    ("", ["rounds: 40; replicates: 3; partition: {parts:2}", "table1: notation only."], []),
    ("", ['<a href="#fedht-experiment-simulation1">simulation1</a>', "<td>MNIST &amp; co<td>60000"], []),
    ('id="fedht-fig1".*?</section>', ["snakemake"], []),
    ('id="fedht-fig6".*', ["Not made in this run."], []),
    ('<details class="others".*?</details>\n<h3', ['id="fedht-bias"'], ['id="fedht-fig1"']),
    ('id="deviations".*?<h2', ["Claim bad", "steps &lt;must&gt; be small"], ["Claim good", "Claim open"]),
    ("<figcaption>.*?<details>", [], ["A cross marks"]),
    ("<figcaption>.*?</figcaption>", ["A cross marks"], []),
    ("SCALE.*", ["SCALE: SMALL", "e2006: made here &lt;so&gt;"], []),
    (
        'Published and measured: 1 numbers.*?href="#number"',
        [
            "Claim number &lt;holds&gt; &amp; &#34;so&#34;",
            "rate: factor by which the error shrinks in a round",
        ],
        [],
    ),
]


@pytest.mark.parametrize(("part", "there", "elsewhere"), PARTS)
def test_each_part_of_the_page_has_what_belongs_there(alone, part, there, elsewhere):
    found = re.search(part, alone.text, re.DOTALL)[0] if part else alone.text
    assert [one for one in there if one not in found] == []
    assert [one for one in elsewhere if one in found or one not in alone.text] == []


def test_content_is_a_few_tab_stops_away_and_a_caption_is_three_sentences(alone, beside):
    before, _, after = beside.text.partition('<main id="content">')
    assert len(re.findall("<(a|button|input|select|summary)[ >]", before)) < 10
    assert "<nav" in after.partition("</main>")[2]
    assert before.index('class="skip" href="#content"') < before.index("<header")
    seen = alone.text.partition("<figcaption>")[2].partition("<details>")[0]
    assert len(re.findall(r"[.:] [A-Z]", seen.partition(" Seeds:")[0])) == 2


def counts(text):
    return re.findall(r"(\d+)</b> ([a-z]+)( \(\d+\))?</li>", text)


TWO = {**CONFIG, "papers": ["fedht", "fedac"], "fedac": {"artefacts": {}}}


def test_one_paper_alone_has_its_score_once_and_says_that_no_verdict_needs_another(made):
    said, link = "No verdict needs another paper", "This paper alone, to print"
    alone, whole = page(made).text, page(made, TWO).text
    assert said in alone and said not in whole
    for of_all in (link, 'class="cards all"', 'id="summary"'):
        assert of_all in whole and of_all not in alone
    assert alone.count("Main claims</p>") == 1
    rows = alone.partition('id="not-claimed"')[2].partition("<tbody>")[2].partition("</table>")[0]
    assert rows.count("<tr") == len(not_claimed(of_paper("fedht"))) > 0
    assert rows.count("<tr") < whole.partition('id="not-claimed"')[2].count("<tr data-paper")


def test_the_score_comes_first_with_a_card_a_paper_and_substitutes_apart(made):
    main = page(made, TWO).text.partition("<main")[2]
    assert main.index('id="summary"') < main.index('class="cards all"') < main.index('id="fedht"')
    card = main.partition('class="cards all"')[2].partition('<h2 id="fedht"')[0]
    of_main, others = card.partition("Other statements")[::2]
    assert counts(of_main) == [("1", "reproduced", " (1)")]
    assert [found[:2] for found in counts(others)] == [
        *(("1", "reproduced"), ("1", "deviates"), ("1", "inconclusive"), ("1", "untestable"))
    ]
    assert "in the printed settings 1 hold, 0 fail, 0 open, 0 not run." in card
    assert "Printed values matched: 1 of 1." in card


def test_a_paper_begins_with_its_finding_and_its_main_claims(made, monkeypatch):
    (made / "finding.md").write_text("It *is* **fast** & `x < y`.\n\n- One.\n- Two\n  lines.\n")
    monkeypatch.setattr("replifed.report.page.finding_file", lambda paper: made / "finding.md")
    section = page(made).text.partition('<h2 id="fedht"')[2]
    assert "<p>It <em>is</em> <strong>fast</strong> &amp; <code>x &lt; y</code>.</p>" in section
    assert "<ul><li>One.</li><li>Two lines.</li></ul>" in section
    table = section.partition('id="fedht-main"')[2].partition("</table>")[0]
    row = re.findall("<td.*?(?=<td|<tr|</tbody)", table.partition("<tbody>")[2], re.DOTALL)
    assert [re.sub("<.*?>", "", cell).strip() for cell in row] == [
        "✓ reproduced (substitute data)",
        "It is &lt;faster&gt;. Abstract claims",
        *("not stated", "holds", "it holds in the printed settings", "difference 1 [0.7516, 1.248]"),
    ]
    assert section.index("<strong>fast") < section.index('id="fedht-main"') < section.index('id="fedht-fig1"')


def test_main_claims_in_three_settings_are_drawn_in_the_page(made):
    assert "<svg" not in page(made).text.partition('id="fedht-main"')[2].partition("<section")[0]
    rows = [row | {"paper": "fedht"} for row in planted_paper.rows()]
    tables.write(made / "claims.csv", VERDICT_COLUMNS, rows)
    text = page(made).text
    assert text.partition('id="fedht-main"')[2].partition("<section")[0].count("<svg") == 4
    assert "With perturbed runs: holds and holds" in text
    assert "For information: the text does not say it." in text


def test_what_a_paper_leaves_open_is_told_with_its_grounds(made):
    told = page(made).text.partition('id="fedht-open"')[2].partition("</details>")[0]
    for option in jobs.claims_of("fedht")[0].axes.axes["step"].options.values():
        assert f"<code>{option.name}</code>" in told and option.source in told


def test_a_difference_of_logarithms_is_told_as_a_factor():
    row = dict.fromkeys(VERDICT_COLUMNS, "") | {"kind": "order", "unit": "e-folds", "verdict": "fails"}
    row |= {"measured": "0.6931472", "ci_low": "0", "ci_high": "1.098612", "tolerance": "0.0953102"}
    assert number_text(row) == "factor 2 [1, 3], at least 1.1 required"
    assert _numbers(row) == ("", "factor 2", "[1, 3], at least 1.1 required")
    assert unit_text(row) == "factor" and unit_text({**row, "kind": "near"}) == "natural logarithms"


def test_curves_are_data_beside_the_page_or_in_the_single_file(original, alone, beside):
    assert 'data-draw="fedht-fig1"' in beside.text
    assert beside.all("body") == [{"data-curves": "report_curves.js"}]
    packed = json.loads((original / "report_curves.js").read_text().partition(" = ")[2].rstrip(";\n"))
    drawn = json.loads(zlib.decompress(base64.b64decode(packed)))["fedht-fig1"]
    assert [line[0] for line in drawn["lines"]] == ["K = 3", "K = 10"]
    assert len({line[1] for line in drawn["lines"]}) == 2
    titles = [f"Simulation I, {method}, own best step" for method in ("FedHT", "FedIterHT")]
    assert [panel["title"] for panel in drawn["panels"]] == titles
    assert [axis[0] for axis in drawn["panels"][0]["x"]] == ["round"]
    curve = drawn["panels"][0]["curves"][1]
    assert curve["x"]["round"][-1] == 199
    assert curve["y"][-1] == pytest.approx(0.9**199, rel=1e-3)
    assert len(curve["y"]) == len(curve["low"]) == len(curve["x"]["round"]) <= curves.MAX_POINTS
    assert (curve["seeds"], curve["diverged"]) == (5, 0)
    assert f'window.replifedCurves = "{packed}"' in alone.text and "data-curves" not in alone.text


@pytest.mark.parametrize(("length", "points"), [(1, 60), (60, 60), (61, 60), (5000, 12), (100_000, 60)])
def test_thinned_curves_keep_their_ends(length, points):
    kept = curves._thinned(length, points)
    assert (kept[0], kept[-1]) == (0, length - 1)
    assert len(kept) <= points
    assert len(kept) == len(set(kept))


def test_the_date_is_beside_the_page_and_not_in_it(original, alone, beside):
    known = json.loads((original / "report_run.js").read_text().partition(" = ")[2].rstrip(";\n"))
    names = ["Commit", "replifed", "Python", "Packages", "Machine", "Report written"]
    assert list(known) == list(facts()) == names
    assert known["Report written"] not in beside.text and "<dt>Commit</dt>" in alone.text


def test_only_what_was_asked_for_with_its_scale(made):
    asked = artefacts({**CONFIG["fedht"], "only": ["fig1"]})
    rows = [row | {"main": ""} for row in tables.rows(made / "claims.csv")]
    tables.write(made / "claims.csv", VERDICT_COLUMNS, rows)
    text = page(made, {**CONFIG, "fedht": {**CONFIG["fedht"], "artefacts": asked}}, "paper").text
    assert 'id="fedht-fig1"' in text and 'id="fedht-fig6"' not in text and "SCALE" not in text
    # A comparison, which promises nothing, folds nothing.
    text = page(made).text
    assert 'id="fedht-bias"' in text and '<details class="others"' not in text


def test_errata_only_if_there_are_any_and_a_conjecture_is_neither_green_nor_red(alone, made, tmp_path):
    assert 'id="errata"' not in alone.text
    colours = {"yes": "reproduced", "conjecture": "inconclusive", "no": "deviates"}
    rows = [
        dict.fromkeys(COLUMNS, "") | {"id": f"fedht.{shown}", "printed": "a < b", "shown": shown}
        for shown in colours
    ]
    write(tmp_path / "errata.csv", rows)
    text = page(made, errata=[tmp_path / "errata.csv"]).text
    assert 'id="fedht.yes"' in text and "<td>a &lt; b</td>" in text
    for shown, colour in colours.items():
        assert f'<td class="{colour}">{shown}</td>' in text


def test_a_number_is_drawn_in_half_widths_about_the_published_one():
    claim = {"published": "1", "measured": "1.1", "ci_low": "0.9", "ci_high": "9", "tolerance": "0.1"}
    claim |= {"pi_low": "", "pi_high": "", "rival": ""}
    at = _range(claim)
    assert at["measured"] == at["to"] > at["published"] > at["from"]
    assert at["low"] == at["from"]
    assert at["high"] == 164 and at["rival"] is None  # the edge
    exact = _range({**claim, "measured": "1", "ci_low": "", "ci_high": "", "tolerance": "0"})
    assert exact["measured"] == exact["published"] == exact["low"]
    # Of a value the prediction interval is shaded, in which the published number has to lie.
    value = _range({**claim, "pi_low": "0.9", "pi_high": "1.3", "rival": "1.4"})
    assert value["from"] < value["published"] < value["measured"] < value["to"] < value["rival"]


def test_readings_of_one_quantity_are_one_group_with_what_distinguishes_them():
    rows = [
        {"part": "p", "statement": "s", "kind": "value", "unit": "rate"}
        | {"options": f"loss: mean; step: {step}", "note": f"alike; {step} is long"}
        for step in ("own", "common")
    ]
    (group, alone) = by_part([*rows, rows[0] | {"unit": ""}])
    assert [(one["beside"], one["shared_note"], one["own_note"]) for one in group] == [
        *[("step: own", "alike", "own is long"), ("step: common", "alike", "common is long")]
    ]
    assert (alone[0]["beside"], alone[0]["quantity"]) == ("loss: mean; step: own", "")


def test_a_long_note_on_several_claims_stands_once(made):
    rows = [
        row | {"paper": "fedht", "note": "because of a step that the text does not print anywhere, twice"}
        for row in planted_paper.rows()
    ]
    tables.write(made / "claims.csv", VERDICT_COLUMNS, rows)
    claims = page(made).text.partition('id="claims-table"')[2].partition('<h2 id="deviations"')[0]
    assert claims.count("because of a step") == 1 < claims.count('href="#note-1">Note 1</a>')


def test_deviations_are_grouped_by_their_cause():
    notes = ["tau is not stated; 2 of 3", "tau is not stated; 1 of 3", "width: a tenth", "a bound"]
    rows = [
        {"verdict": "fails", "informs": "", "paper": "p", "note": note, "statement": f"{k}"}
        | {"part": "all", "options": "", "kind": "order", "unit": ""}
        for k, note in enumerate(notes)
    ]
    others = {**rows[0], "verdict": "holds"}, {**rows[0], "informs": "yes"}
    papers = _deviations([*rows, *others], ["none fails", "p"])
    assert [paper for paper, _ in papers] == ["p"]
    found = papers[0][1]
    assert [(cause, sum(map(len, groups))) for cause, groups in found] == [
        *[("tau is not stated", 2), ("a bound", 1), ("", 1)]
    ]


def test_runs_of_the_reference_are_named(made):
    reused = {"reused": ["a9a/fedlin", "a9a/fedavg", "w8a/fedlin", "a9a/led"]}
    text = page(made, config={**CONFIG, "fedht": {**CONFIG["fedht"], **reused}}).text
    assert "the same: fedavg, led (a9a); fedlin (a9a, w8a). All other runs were made here." in text
    assert "reference run, since" not in page(made).text


def test_same_bytes(made):
    first = page(made, single=False).text, (made / "report_curves.js").read_bytes()
    assert (page(made, single=False).text, (made / "report_curves.js").read_bytes()) == first


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
    assert "<td>LED" in found.text and "<td>a9a" not in found.text
