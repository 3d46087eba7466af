"""Numbers in prose are taken by name from claims and tables; one that no source has is refused."""

import re

import pytest

from replifed.claims.prose import Numbers, allowed, bare, filled
from replifed.errors import DataError
from replifed.papers import jobs
from replifed.parts import finding_file, folder_of, paper_names, text_of
from replifed.report.prose import numbers_of

CLAIMS = {
    "p.a": {"measured": "2.0", "seeds": "20", "data": "synthetic", "reason": ""},
    "p.b.own-1": {"measured": "-0.25", "seeds": "5", "data": "synthetic", "reason": ""},
    "p.new": {"measured": "", "reason": "not run yet"},
    "p.open": {"measured": "", "reason": "nothing to measure"},
}
TABLE = [
    {"K": "1", "method": "fedavg", "rate": "0.5"},
    {"K": "2", "method": "fedavg", "rate": "0.25"},
    {"K": "2", "method": "fedht", "rate": ""},
]
NUMBERS = Numbers(CLAIMS, lambda paper, name: TABLE if name == "fig1" else None, {"K = 5": "the text"})


def told(text):
    return filled(text, "p/finding.md", NUMBERS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{p.a.measured}", "2"),
        ("{p.a.measured:.2f} in {p.a.seeds:.0f} seeds", "2.00 in 20 seeds"),
        ("{p.a.data}", "synthetic"),
        ("{p.b.own-1.measured:.2f}", "−0.25"),
        ("{p.b.own-1.measured|abs:.2f}", "0.25"),
        ("{p.a.measured|exp:.2f}", "7.39"),
        ("{p.a.measured|pow10:.0f}", "100"),
        ("{p.b.own-1.measured|percent:.0f} %", "−25 %"),
        ("{p.b.own-1.measured|left:.2f} times", "1.25 times"),
        ("{p.b.own-1.measured|abs|exp:.2f} and {p.b.own-1.measured|abs|percent:.0f} %", "1.28 and 25 %"),
        ("{p/fig1[K=1].rate:.1f}", "0.5"),
        ("{p/fig1[K=2, method=fedavg].rate}", "0.25"),
        ("{p/fig1[K>=2].count:.0f} of {p/fig1.count:.0f}", "2 of 3"),
        ("{p/fig1[rate!=].count:.0f}", "2"),
        ("{p.new.measured}; {p.open.measured}", "(not run yet); (not measured)"),
        ("{p/fig9.count}", "(not measured)"),
        ("{p.open.measured|percent} %, {p.new.measured}\n  % of all", "(not measured), (not run yet) of all"),
    ],
)
def test_a_number_is_that_of_its_claim_or_cell(text, said):
    assert told(text) == said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It needs 13 rounds.", "no claim or table is named for the number 13"),
        ("It is 2.5 times faster, {p.a.measured}.", "for the number 2.5"),
        ("{p.c.measured}", "no claim is called p.c"),
        ("{p.a.median}", "there is no column median"),
        ("{p.a.measured|log}", "no change is called log"),
        ("{p.a.measured|abs|log}", "no change is called log"),
        ("{p.a.measured:wide}", "Invalid format specifier"),
        ("{p/fig1[K=2].rate}", "2 lines meet this, and one has to"),
        ("{p/fig1[K~2].rate}", "K~2 is no condition"),
        ("{p/fig1[L=2].rate}", "there is no column L"),
    ],
)
def test_what_names_nothing_is_refused_in_one_line(text, why):
    """Planted: a number of a finding that no claim has."""
    with pytest.raises(DataError, match=re.escape(why)) as error:
        told(text)
    assert str(error.value).startswith("p/finding.md: ") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "Figures 1 to 4 and 7, Section V-B2, Theorem 5, eq. (14), Propositions 1 to 3 and Simulation II",
        "On a9a, w8a, E2006 and RCV1, with `0.586` and the 1/K of [a page](b.md#c-3), K = 5.",
    ],
)
def test_ordinals_names_and_allowed_phrases_are_no_numbers(text):
    assert bare(text, ["K = 5", "1/K"]) == []


def test_an_allowed_phrase_is_whole():
    assert bare("K = 50 and K = 5.5 and K = 5", ["K = 5"]) == ["50", "5.5"]


@pytest.mark.parametrize("text", ["- a", "a: 1", "a: ["])
def test_a_faulty_list_is_refused(text):
    with pytest.raises(DataError, match=r"^p/numbers\.yaml"):
        allowed(text, "p/numbers.yaml")


def prose_of(paper):
    files = finding_file(paper), folder_of(paper) / "axes.md"
    return [*map(text_of, files), *(claim.note for claim in jobs.claims_of(paper))]


@pytest.mark.parametrize("paper", paper_names())
def test_no_number_is_typed_and_no_allowance_is_stale(paper):
    texts, phrases = prose_of(paper), numbers_of(paper, [], [], lambda *_: None).allowed
    assert [found for text in texts for found in bare(text, phrases)] == []
    whole = " ".join(" ".join(texts).split())
    assert [one for one in phrases if one not in whole] == []
