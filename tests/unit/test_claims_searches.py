"""Steps that a search might have selected, and what claims on them make of it."""

import pytest

from replifed.claims.claim import Claim
from replifed.claims.searches import _TIE, eligible, within
from replifed.claims.verdicts import judge
from replifed.engine.search import TIE

GRID = {"steps": [0.01, 0.1, 1.0, 10.0], "scores": [0.5, 0.4, 0.3, None], "rejected": [], "chaotic": False}


def record(step, **more):
    return {**GRID, "step": step, "score": GRID["scores"][GRID["steps"].index(step)], **more}


def test_a_stable_choice_is_the_only_one():
    assert eligible(record(1.0)) == [1.0]


def test_better_steps_that_were_rejected_might_have_been_selected():
    # 10 diverged, and 0.01 is worse: neither would have been.
    assert eligible(record(0.1, rejected=[0.01, 1.0, 10.0])) == [0.1, 1.0]


def test_a_rejected_step_that_is_as_good_might_have_been_selected():
    assert _TIE == TIE
    tied = {**record(0.1, rejected=[1.0]), "scores": [0.5, 0.4, 0.4 + 1e-11, None]}
    assert eligible(tied) == [0.1, 1.0]


def test_where_no_step_was_stable_any_might_have_been_selected():
    assert eligible(record(1.0, rejected=[0.01, 0.1, 1.0], chaotic=True)) == [1.0, 0.01, 0.1]


@pytest.mark.parametrize(
    ("lowest", "largest", "rejected", "verdict"),
    [
        (0.01, 0.1, [], "holds"),
        (0.01, 0.1, [1.0], "inconclusive"),  # 1 lies outside
        (0.01, 1.0, [1.0], "holds"),  # both lie inside
        (0.5, 10.0, [1.0], "inconclusive"),  # 1 alone lies inside
        (2.0, 10.0, [1.0], "fails"),  # both lie outside
    ],
)
def test_a_claim_on_steps_is_told_only_if_rounding_does_not_decide_it(lowest, largest, rejected, verdict):
    claim = Claim(id="p.steps", paper="p", artefact="t", statement="Within.", kind="shape")
    measured = within(lowest, largest, [record(0.1, rejected=rejected)])
    assert judge(claim, measured).verdict == verdict
    assert ("in 1 of 1 searches" in measured.note) == (verdict == "inconclusive")


def test_a_claim_on_a_step_of_sensitive_runs_is_told_only_if_all_steps_agree():
    (every, one) = (within(0.05, largest, [record(0.1, chaotic=True)]) for largest in (10.0, 0.5))
    assert every.values.all() and one.values.all()
    assert (every.bounds.any(), one.bounds.any()) == (True, True)  # 0.01 lies outside
    assert not within(0.005, 10.0, [record(0.1, chaotic=True)]).bounds.any()
