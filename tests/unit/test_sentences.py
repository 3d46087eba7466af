"""Every checkable sentence of a paper has its claims, or a reason for none; pages and score show both."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import planted_paper
from replifed.claims import scores
from replifed.claims.axes import Axes
from replifed.claims.sentences import Sentence, merged, not_claimed, read
from replifed.claims.statements import MOST_MAIN
from replifed.claims.why import also_in_words
from replifed.errors import DataError, ReplifedError
from replifed.papers import jobs
from replifed.parts import finding_file, paper_names, text_of
from replifed.report.by_settings import picture as by_settings
from replifed.report.score import picture, score, table
from replifed.report.sentences import Texts, of_paper, page

ROOT = Path(__file__).parents[2]
DOCUMENTED = ("README.md", "docs/score.md", "docs/verdicts.md")  # in part
OWN = "own runs on synthetic data made as described"
TEXT = """
- {place: Section 1, says: it is known, why: it is cited}
- {place: "Table 1, row 3", says: it is so, why: it is defined so}
"""
PAPERS = [
    name for name in paper_names() if (ROOT / "src/replifed/papers" / name / "sentences.yaml").is_file()
]


def line(*cells):
    return f"| {' | '.join(cells)} |"


def written(folder, text):
    path = folder / "sentences.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_stands_under_a_sentence_and_ten_at_most_are_main(paper):
    sentences = of_paper(paper)
    named = {one.name for one in sentences if one.name}
    assert {claim.statement_id for claim in jobs.claims_of(paper)} <= named
    assert len({one.says for one in sentences}) == len(sentences), "each sentence stands once"
    assert 0 < sum(one.main for one in sentences) <= MOST_MAIN


@pytest.mark.parametrize("paper", PAPERS)
def test_a_finding_is_short_and_so_are_its_sentences(paper):
    finding = re.sub(r"\{[^}]*\}", "0", text_of(finding_file(paper)))
    sentences = [one.split() for one in re.split(r"[.!?](?=\s|$)", finding)]
    assert sum(map(len, sentences)) <= 800 and max(map(len, sentences)) <= 60
    assert not finding.startswith("#")


def test_the_pages_are_those_that_the_command_writes(tmp_path):
    marked = [Path(shutil.copy(ROOT / name, tmp_path)) for name in DOCUMENTED]
    jobs.document(tmp_path / "papers", ROOT / "reference", *marked)
    made = {file.name: file.read_text() for file in [*(tmp_path / "papers").iterdir(), *marked]}
    pages = [*(ROOT / "docs/papers").iterdir(), *(ROOT / name for name in DOCUMENTED)]
    kept = {file.name: file.read_text() for file in pages}
    assert made == kept, "run `replifed claims document --golden reference --out docs/papers`"
    marked[0].write_text("no marks")
    with pytest.raises(ReplifedError, match=r"README\.md: it needs the lines"):
        jobs.document(tmp_path / "papers", ROOT / "reference", *marked)


def test_sentences_without_claims_stand_behind_those_of_their_place():
    def at(place, name=""):
        return Sentence("p", name, place, f"{place} {name}", why="" if name else "so")

    claimed = [
        at("Abstract", "a"),
        at("Section 1, line 2", "b"),
        at("Section 1, line 9", "c"),
        at("Table 1", "d"),
    ]
    others = [
        at("Title"),
        at("Section 1, line 2"),
        at("Section 1, line 5"),
        at("Section 2"),
        at("Table 1, row 1"),
    ]
    found = [one.place for one in merged(claimed, others)]
    assert found == [
        *("Title", "Abstract", "Section 1, line 2", "Section 1, line 2", "Section 1, line 9"),
        *("Section 1, line 5", "Section 2", "Table 1", "Table 1, row 1"),
    ]
    assert merged([], others) == others and merged(claimed, []) == claimed


def test_the_score_counts_main_claims_by_status_beside_the_printed_settings():
    found = score("p", scores.statements(planted_paper.rows()))
    without = score("cross", [])
    lines = table([without, found]).splitlines()
    cells = [
        "`p`",
        f"2 reproduced (2 {OWN}), 1 conditional (1 fills gaps), 2 deviates",
        "2 hold, 3 fail, 0 open, 0 not run",
        "0 of 2; 2 in the inferred settings, 1 of them not used in the fit",
        "1 reproduced, 1 conditional, 2 inconclusive, 1 untestable",
    ]
    assert lines[2] == line(*cells)
    assert lines[3] == "| `cross` |  |  | none tested |  |"
    drawn = picture([found])
    # A legend of five, five main claims and a bar of four.
    assert drawn.count("<rect") == 1 + 5 + 5 + 4
    ElementTree.fromstring(drawn)


def test_settings_more_better_no_count_of_the_printed_ones():
    """Planted: settings that hold beside the printed ones go, and their own count stays."""
    rows = planted_paper.rows()
    printed = [row for row in rows if "printed" in row["settings"]]
    both = [[one["printed"] for one in scores.statements(of)] for of in (rows, printed)]
    assert both[0] == both[1]
    assert [one["status"] for one in scores.statements(printed)].count("deviates") == 4


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("place: x", "is no list of sentences"),
        ("- {place: x, says: y}", "sentence 1 needs the keys"),
        ("- {place: x, says: y, claims: [a]}", "sentence 1 has claims; it belongs above them in claims"),
        ("- {place: x, says: y, why: z}\n- {says: y, why: z}", "sentence 2 needs the keys"),
        ("- {place: x, says: 3, why: z}", "put it in quotes"),
        ("- {place: [", "while parsing"),
    ],
)
def test_a_faulty_file_is_refused_in_one_line(tmp_path, text, fault):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=fault) as refusal:
        read("p", path)
    assert str(path) in str(refusal.value) and "\n" not in str(refusal.value)


def documented(rows=None, others=()):
    texts = Texts(planted_paper.FINDING.strip(), "Steps decide.")
    made = planted_paper.claims()
    made.all()
    listed = merged(made.sentences, others)
    about = {"name": "Demo", "citation": "By x."}
    return page(about, texts, planted_paper.AXES, listed, rows or planted_paper.rows(), ())


def part(text, heading):
    return text.partition(f"## {heading}\n\n")[2].partition("\n## ")[0].splitlines()


def test_a_page_opens_with_finding_and_main_claims(tmp_path):
    text, pictures = documented(others=read("demo", written(tmp_path, TEXT)))
    headings = re.findall("^## (.*)$", text, re.MULTILINE)
    assert headings == ["Finding", "Main claims", "What the paper leaves open", "Other sentences"]
    assert part(text, "Finding")[0].startswith("It is **faster**")
    told = "\n".join(part(text, "Main claims"))
    assert "; in the printed settings 2 hold, 3 fail, 0 open, 0 not run." in told
    main = {
        "**It is faster than the baseline.** (Abstract)": (
            "**reproduced**: it also holds in all 3 other settings. "
            "Measured: difference 5 [4.627, 5.373] rounds. `demo.abstract.faster`"
        ),
        "**Its rate is 0.53.** (Table 1, row 1)": (
            "**deviates**: it fails in the printed settings; it also holds with "
            "loss: sum; step: own (inferred, fitted on this statement), which does not count. "
            "Measured: published 0.53, measured 0.4 [0.371, 0.429]. `demo.table1.rate`"
        ),
    }
    for number, (says, came) in zip((1, 3), main.items(), strict=True):
        assert f"{number}. {says}\n\n   {came}\n" in told
    assert "   Likely cause: the floor is that of noise.\n" in told
    assert "   To the authors: Is the noise's variance one?\n\n   Reply, 2026-11-20: it is two" in told
    assert set(pictures) == {
        f"demo.{name}.svg" for name in ("abstract.faster", "abstract.fewer", "table1.rate", "fig1.other")
    }
    assert all(f"   ![Measured, by settings]({name})\n" in told for name in pictures)


def test_a_page_shows_what_is_open_and_the_other_sentences(tmp_path):
    others = read("demo", written(tmp_path, TEXT))
    text, _ = documented(others=others)
    axes = part(text, "What the paper leaves open")
    assert axes[:2] == [
        "- **loss**: Section 2 has a mean; the numbers suggest a sum. 4 options were tried. *Printed*: "
        "`mean` (printed): eq. (2). *Inferred*: `sum` (fitted): Table 1 comes out; but no text has it.",
        "- **step**: The text does not say how steps are chosen. *Printed*: `common` (software): "
        "its example has one for all. *Inferred*: `own` (chosen): a grid. *Other options*: `long` (ten "
        "times as long).",
    ]
    assert axes[-1] == "Steps decide."
    told = part(text, "Other sentences")
    assert told[0].startswith("7 sentences and cells with claims: ")
    assert f" The evidence, unless stated otherwise: {OWN}." in told[0]
    assert told[0].endswith(" 2 more sentences have no claim; `not_claimed.csv` says why.")
    rows = [one for one in told if one.startswith(("- ", "**"))]
    assert not any("It is faster" in one or "it is known" in one for one in rows)
    held = "**conditional** (against the text) `table1.held`"
    place = rows.index("**Table 1, row 2**")
    assert rows[place + 1] == f"- With noise it is 0.61. {held}"
    assert "- Cohorts are drawn at random. *no status*: its claims do not count `section6.cohorts`" in rows
    assert not_claimed(others)[1] == {
        **{"paper": "demo", "place": "Table 1, row 3", "statement": "it is so", "why": "it is defined so"}
    }


@pytest.mark.parametrize(
    ("also", "told"),
    [
        ("", ""),
        ("a: 1 | a: 2", "; it also holds with a: 1; with a: 2, which does not count"),
        (
            "a: 1 (fitted on this statement) | a: 2 | a: 3 (fitted on other statements)",
            "; it also holds in 3 settings, 1 fitted on it, which do not count (`--why` lists them)",
        ),
    ],
)
def test_many_settings_are_counted_and_few_named(also, told):
    assert also_in_words({"also": also}) == told


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"kind": "value", "unit": "rounds", "measured": "7", "published": "5"},
            "7 rounds, and 5 is printed",
        ),
        (
            {"kind": "near", "unit": "share", "measured": ".76", "published": ".45", "tolerance": ".2"},
            "0.76, where 0.25 to 0.65 is required",
        ),
        ({"kind": "order", "unit": "e-folds", "measured": "0"}, "1 times, where more than 1 is claimed"),
        ({"kind": "shape", "unit": "", "measured": ".5"}, "it holds in 50 % of the cases"),
    ],
)
def test_what_a_fit_misses_is_told_beside_what_is_asked(row, told):
    row = {"published": "", "tolerance": "", "verdict": "fails", **row}
    assert scores._miss(scores.Settings(frozenset(), "", [], "fails", [row])) == told


def test_a_page_does_without_axes_finding_and_main_claims():
    rows = [row | {"main": ""} for row in planted_paper.rows() if row["statement_id"] == "demo.fig2.open"]
    about = {"name": "Demo", "citation": "By x."}
    listed = [Sentence("demo", "demo.fig2.open", "Figure 2", "Noise does not matter.")]
    text, pictures = page(about, Texts("", ""), Axes(), listed, rows, ())
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Sentences"] and not pictures


def test_a_sentence_that_deviates_says_what_was_measured_and_why():
    printed = [row for row in planted_paper.rows() if row["options"] == "loss: mean; step: common"]
    rows = [row | {"main": ""} for row in printed]
    listed = [Sentence("demo", "demo.table1.rate", "Table 1", "Its rate is 0.53.")]
    text, _ = page({"name": "Demo", "citation": ""}, Texts("", ""), Axes(), listed, rows, ())
    assert "- Its rate is 0.53. **deviates**: published 0.53, measured 0.4 [0.371, 0.429]" in text


def test_main_claims_with_three_choices_of_settings_are_drawn():
    rows = [row for row in planted_paper.rows() if row["statement_id"] == "demo.table1.rate"]
    drawn = by_settings(rows)
    assert drawn == by_settings(rows)
    shapes = list(ElementTree.fromstring(drawn))
    circles = [one.attrib for one in shapes if one.tag.endswith("circle")]
    points, dots = circles[:4], circles[4:12]  # the others are of the legend
    # Sorted by what was measured, so that they rise: .40, .46, .53, .60.
    places = {point["cx"]: float(point["cy"]) for point in points}
    heights = [places[x] for x in sorted(places, key=float)]
    assert heights == sorted(heights, reverse=True)
    assert [point["fill"] for point in sorted(points, key=lambda one: float(one["cx"]))] == [
        *("#d55e00", "#d55e00", "#009e73", "#d55e00")
    ]
    # Two options each, of which the sum was fitted, and is hollow.
    assert sum(dot["fill"] == "#ffffff" for dot in dots) == 2
    texts = [one.text for one in shapes if one.tag.endswith("text")]
    assert {"P", "I", "published 0.53", "rival 0.7", "loss: sum"} <= set(texts)
    # Numbers on both axes, and a legend.
    assert {"0.4", "0.6", "1", "4", "holds", "fails"} <= set(texts)
    assert texts[-1] == (
        "shaded: prediction interval; P: printed settings; I: inferred settings; hollow: fitted option"
    )
    assert by_settings(rows[:2]) == ""
    assert by_settings([row | {"informs": "yes"} for row in rows]) == ""
