"""What papers leave open is an axis, and main claims that lack a setting ask for it."""

from collections import Counter
from pathlib import Path

import pytest

from replifed.claims import scores
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.evidence import FORMULA
from replifed.claims.reference import verdicts
from replifed.claims.rules import NOT_RUN
from replifed.papers import jobs
from replifed.parts import paper_names

ROOT = Path(__file__).parents[2]
PAPERS = sorted(set(paper_names()) - {"cross"})  # the comparison is no paper


def hanging_on_no_axis(claims):
    """Parts of statements that are measured twice with the same options: what differs is no axis."""
    counts = Counter((claim.statement_id, claim.part, claim.settings) for claim in claims)
    return [key for key, count in counts.items() if count > 1]


def unnamed(claims):
    """Gaps of experiments on which a claim names no option, and experiments without a list of gaps."""
    found = [
        f"{claim.id}: {gap}"
        for claim in claims
        for gap in claim.axes.unnamed(claim.options, claim.experiments)
    ]
    read = {(claim.axes, name) for claim in claims for name in claim.experiments}
    return found + [name for axes, name in read if name not in axes.gaps]


def unasked(statements):
    """Main statements that deviate, or that want a setting, without a question to the authors."""
    return [
        one["statement_id"]
        for one in statements
        if scores.is_main(one) and not one["question"] and FORMULA not in one["evidence"]
        if one["status"] == "deviates" or (one["status"] == "inconclusive" and one["printed"] == NOT_RUN)
    ]


@pytest.mark.parametrize("paper", paper_names())
def test_no_status_hangs_on_a_gap_without_an_axis(paper):
    assert hanging_on_no_axis(jobs.claims_of(paper)) == []


@pytest.mark.parametrize("paper", PAPERS)
def test_each_claim_names_an_option_on_every_gap_of_its_experiments(paper):
    assert unnamed(jobs.claims_of(paper)) == []


@pytest.mark.parametrize("paper", PAPERS)
def test_main_claims_that_lack_a_setting_ask_for_it(paper):
    assert unasked(scores.statements(verdicts(jobs.claims_of(paper), ROOT / "reference"))) == []


def test_a_gap_without_an_axis_is_found():
    """Planted: one part measured in two ways that no axis tells apart, and a gap that no claim names."""
    from dataclasses import replace

    from planted_paper import claims

    several = claims().all()
    assert hanging_on_no_axis(several) == [] and unnamed(several[:1]) == ["sim"]
    twice = [*several, replace(several[0], id="demo.faster.again")]
    assert hanging_on_no_axis(twice) == [("demo.abstract.faster", "demo.faster", several[0].settings)]
    axis = Axis("rho", "?", Option("0.3", "printed", "Section 5"))
    gaps = replace(several[0], options={}, axes=Axes(axis, gaps={"sim": ["rho"]}))
    assert unnamed([gaps]) == ["demo.faster: rho of sim"]
    assert unnamed([replace(gaps, options={"rho": "0.3"})]) == []


def test_a_main_claim_without_a_question_is_found():
    """Planted: a main claim that deviates, and one that could not be run as printed."""
    from planted_paper import rows

    statements = scores.statements(rows())
    assert unasked(statements) == ["demo.table1.rate"]
    one = next(one for one in statements if one["statement_id"] == "demo.fig1.other")
    open_ = one | {"status": "inconclusive", "printed": NOT_RUN}
    assert unasked([open_]) == ["demo.fig1.other"] and not unasked([open_ | {"question": "Which rho?"}])
