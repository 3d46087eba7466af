"""Every checkable sentence of a paper has its claims, or a reason for none."""

from pathlib import Path

import pytest

from replifed.claims import scores
from replifed.claims.sentences import read, read_not_claimed, write_not_claimed
from replifed.errors import DataError, ReplifedError
from replifed.papers import jobs
from replifed.parts import paper_names
from replifed.report.score import picture, score, table
from replifed.report.sentences import page

ROOT = Path(__file__).parents[2]
TEXT = """
- {place: Section 1, says: a | b, claims: [fig1, fig2]}
- {place: Section 2, says: it is so, why: it is defined so}
"""


def written(folder, text):
    path = folder / "sentences.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("paper", [name for name in paper_names() if jobs.sentences(name)])
def test_every_statement_stands_in_a_sentence(paper):
    sentences = jobs.sentences(paper)
    named = {name for one in sentences for name in one.statements}
    assert named == {claim.statement_id for claim in jobs.claims_of(paper)}
    assert len({(one.place, one.says) for one in sentences}) == len(sentences)


def test_the_pages_are_those_that_the_command_writes(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text((ROOT / "README.md").read_text())
    jobs.document(tmp_path / "papers", ROOT / "tests/golden/paper.csv", readme)
    made = {file.name: file.read_text() for file in [*(tmp_path / "papers").iterdir(), readme]}
    kept = {file.name: file.read_text() for file in [*(ROOT / "docs/papers").iterdir(), ROOT / "README.md"]}
    assert made == kept, "run `replifed claims document --golden tests/golden/paper.csv --out docs/papers`"
    readme.write_text("no marks")
    with pytest.raises(ReplifedError, match=r"README\.md: it needs the lines"):
        jobs.document(tmp_path / "papers", ROOT / "tests/golden/paper.csv", readme)


def test_readings_that_come_out_otherwise_are_told():
    one = {"paper": "p", "statement_id": "one", "data": "original", "statement": ""}
    rows = [
        one | {"id": str(number), "reading": reading, "basis": basis, "nearness": "0", "verdict": verdict}
        for number, (reading, basis, verdict) in enumerate(
            [
                ("mean", "chosen", "deviates"),
                ("mean", "chosen", "reproduced"),
                ("sum", "fitted", "consistent"),
                ("own", "fitted", "deviates"),
                ("text", "stated", "unchecked"),
            ]
        )
    ]
    assert scores.otherwise(rows, scores.statements(rows)) == {"one": {"consistent": ["sum"]}}


def test_the_score_counts_statements_by_the_nearest_reading():
    common = {
        "paper": "p",
        "basis": "stated",
        "nearness": "0",
        "reading": "",
        "data": "original",
        "statement": "",
    }
    rows = [
        common | {"id": "a", "statement_id": "one", "kind": "value", "verdict": "reproduced"},
        common | {"id": "b", "statement_id": "one", "kind": "value", "verdict": "deviates"},
        common
        | {"id": "c", "statement_id": "two", "kind": "order", "verdict": "consistent", "basis": "fitted"},
        common
        | {"id": "d", "statement_id": "three", "kind": "value", "verdict": "reproduced", "data": "surrogate"},
    ]
    found = score("p", rows)
    assert found.numbers == (1, 2) and found.data == {"original": 2, "surrogate": 1}
    line = table([found]).splitlines()[2]
    assert line == "| `p` | 3 | 1 | 1 | 1 | 0 | 0 | 1 of 2 | 2 original, 1 surrogate |"
    assert picture([found]).count("<rect") == 1 + 5 + 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("place: x", "is no list of sentences"),
        ("- {place: x, says: y}", "sentence 1 needs either claims or why"),
        ("- {place: x, says: y, claims: [a], why: z}", "sentence 1 needs either claims or why"),
        ("- {place: x, says: y, why: z}\n- {says: y, why: z}", "sentence 2 needs the keys"),
        ("- {place: x, says: y, claims: a}", "needs a list of statements"),
        ("- {place: x, says: 3, why: z}", "put it in quotes"),
        ("- {place: [", "while parsing"),
    ],
)
def test_a_faulty_file_is_refused_in_one_line(tmp_path, text, fault):
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=fault) as refusal:
        read("p", path)
    assert str(path) in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_page_shows_claims_reasons_and_verdicts(tmp_path):
    sentences = read("p", written(tmp_path, TEXT))
    row = {
        "paper": "p",
        "statement": "",
        "basis": "chosen",
        "nearness": "0",
        "reading": "",
        "data": "surrogate",
        "kind": "value",
        "measured": "12.3456789",
        "published": "10.0",
        "unit": "rounds",
        "note": "it depends on y",
    }
    claims = [
        row | {"id": f"p.{name}", "statement_id": f"p.{name[:4]}", "verdict": verdict}
        for name, verdict in (("fig1.a", "reproduced"), ("fig1.b", "deviates"), ("fig2", "reproduced"))
    ]
    lines = page({"name": "P", "citation": "By x."}, "", sentences, claims, ()).splitlines()
    assert lines[-1] == "| `p.fig1.b` |  | 12.35 rounds, published 10 rounds | it depends on y |"
    table = lines[: lines.index("## What deviates") - 1]
    assert table[-2:] == [
        r"| Section 1 | a \| b | `p.fig1` (2 claims)<br>`p.fig2` "
        "| deviates (surrogate data)<br>reproduced (surrogate data) |",
        "| Section 2 | it is so | none: it is defined so |  |",
    ]
    assert "Of the 2 rows below 1 have claims and 1 have none" in "\n".join(lines)
    write_not_claimed(tmp_path / "rest.csv", sentences)
    assert read_not_claimed(tmp_path / "rest.csv") == [
        {"paper": "p", "place": "Section 2", "statement": "it is so", "why": "it is defined so"}
    ]
