"""Rules of verdicts: each decides in a constructed case and says why; none is left without one."""

from __future__ import annotations

import math
import re
from dataclasses import fields

import numpy as np
import pytest

from planted_paper import spread
from replifed.claims import rules, scores
from replifed.claims.claim import Claim, Measured
from replifed.claims.printed import Printed
from replifed.claims.rules import AGAINST, FAILS, HOLDS, OPEN, UNCHECKED, Corrected
from replifed.claims.verdicts import judge

COMMON = {"id": "x", "paper": "p", "artefact": "fig1", "statement": "It holds."}
OF_KIND = {
    "near": {"published": 5.0, "tolerance": 1.5, "tolerance_reason": "a round number"},
    "value": {"published": 5.0, "precision": 0.05, "rival": 6.0},
    "order": {"tolerance": 0.1, "fewest": 1},  # a few seeds show the other rules
}
# Of a value without a rival, the half-width that its prediction interval may have.
WIDTH = {"rival": None, "tolerance": 0.3, "tolerance_reason": "a third of the range"}


def of(values, bounds=(), corrected=None, **more):
    """What was measured, with which family, and what the claim has beyond `OF_KIND`."""
    own = {field.name: more.pop(field.name) for field in fields(Measured) if field.name in more}
    every = np.array([*bounds, *[0] * (len(values) - len(bounds))], dtype=int)
    return Measured(np.array(values), every, **own), corrected, more


def table(found, **more):
    """Which numbers of a table come out by the rule `last`."""
    return Printed(np.array(found), rule="last", **more), None, {}


def two(mean, half):
    """Two values whose interval has this half-width: t(.975, 1) is 12.7062047."""
    return of([mean - half / 12.7062047, mean + half / 12.7062047])


# By kind: verdict, reason, and what was measured where both are so.
CASES = {
    "value": [
        (OPEN, "2 more seeds have no value", of(spread(9.0, 0.1), undecided=2)),
        (
            *(
                FAILS,
                "the published number is outside the prediction interval, however far the bounds are off",
            ),
            *(of(spread(3.0, 0.1), [-1]), of(spread(7.0, 0.1), [1])),
        ),
        (
            *(OPEN, "some values are only bounds, and could change the verdict"),
            *(of(spread(3.0, 0.1), [1]), of(spread(5.0, 0.1), [1]), of(spread(7.0, 0.1), [1, -1])),
        ),
        (
            *(FAILS, "the published number is outside the prediction interval"),
            *(of(spread(5.30, 0.1)), of(spread(4.60, 0.1)), of(spread(9.0, 1.0))),
            *(of(spread(5.15, 0.1), repetitions=100), of(spread(8.0, 0.3), **WIDTH)),
            of(spread(5.15, 0.1), corrected=Corrected(0.05, 0.05)),
        ),
        (OPEN, "a single value has no interval", of([5.0]), of([5.0], **WIDTH)),
        (
            *(OPEN, "the prediction interval also contains the rival's number, 5.2"),
            *(of(spread(5.0, 0.1), rival=5.2), of(spread(5.0, 1.0), rival=5.2)),
        ),
        (
            *(HOLDS, "the prediction interval contains the published number, but not the rival's"),
            *(of(spread(5.0, 0.1)), of(spread(5.0, 0.1), rival=5.27), of(spread(5.15, 0.1))),
            of(spread(5.30, 0.1), grid=0.1),  # read on a grid of a tenth
            of(spread(5.25, 0.1)),  # within t sqrt(s^2 / 30 + s^2) = .21 and half a digit
            of(spread(5.3, 0.1), spread=0.3),  # their own spread counts where they print it
            of(spread(5.30, 0.1), corrected=Corrected(0.06, 0.001)),
        ),
        (
            *(HOLDS, "the prediction interval contains the published number, and is narrow enough"),
            of(spread(5.0, 0.12), **WIDTH),  # .2994 to either side
        ),
        (
            *(OPEN, "the prediction interval is wider than the claim allows"),
            *(of(spread(5.0, 0.125), **WIDTH), of(spread(5.0, 0.125), **WIDTH | {"tolerance": 0.0})),
        ),
    ],
    "near": [
        (OPEN, "1 more seeds have no value", of([5.0, 5.0], undecided=1)),
        (
            *(FAILS, "the whole interval is outside the tolerance, however far the bounds are off"),
            *(of([1.0, 1.0], [-1, -1]), of([9.0, 9.0], [1, 1])),  # at most 1, when 5 is published
        ),
        (
            *(OPEN, "some values are only bounds, and could change the verdict"),
            of([5.0, 5.0], [0, 1]),  # right, but nobody knows how much is missing
            *(of([1.0, 1.0], [1, 1]), of([9.0, 9.0], [-1, -1]), of([9.0, 9.0], [1, -1])),
        ),
        (OPEN, "a single value has no interval", of([5.0]), of([9.0])),
        (
            *(HOLDS, "the mean is within the tolerance, and the interval is narrow enough"),
            *(of([4.9, 5.1, 5.0]), two(5.0, 1.4985), two(6.48, 1.0)),
            *(of([6.5, 6.5, 6.5]), of([3.5, 3.5, 3.5])),  # on the edge of the tolerance
            of([0.4] * 3, published=0.3, tolerance=0.1),  # in floating point, off by more than a tenth
            of([0.1] * 3, published=0.0, tolerance=0.2),
        ),
        (
            *(FAILS, "the whole interval is outside the tolerance"),
            *(of([6.51, 6.51, 6.51]), of([3.49, 3.49, 3.49]), two(8.54, 2.0), two(7.52, 1.0)),
            *(of([50.0, 60.0, 70.0]), of([-50.0, -60.0, -70.0])),  # wide, clear of everything tolerated
            *(of([5.1] * 3, tolerance=0.0), of([5e-13] * 3, published=0.0, tolerance=1e-13)),
        ),
        (
            *(OPEN, "the interval overlaps the tolerance, but the mean is not clearly inside"),
            *(two(6.52, 1.0), two(7.49, 1.0), of([6.0, 6.8, 7.0])),
            *(two(6.505, 1.0), two(6.495, 1.0)),  # at an end, to a hundredth of its half-width
        ),
        (
            *(OPEN, "the interval is wider than the tolerance"),
            *(of([1.0, 5.0, 9.0]), of([0.0, 6.0, 12.0, 18.0]), two(5.0, 1.5015)),
            *(two(8.51, 2.0), two(1.49, 2.0)),  # it clears the tolerance by a two-hundredth of its half-width
            of([33.0] * 3, grid=4.0, published=35.0),  # read on a grid as wide
        ),
    ],
    "near, of several meanings": [
        (OPEN, "1 more seeds have no value", of([5.0, 5.0], undecided=1, alternatives=True)),
        (
            *(HOLDS, "the number is within the tolerance, whatever the paper meant"),
            of([4.0, 5.0, 6.5], alternatives=True),
        ),
        (
            *(FAILS, "the number is outside the tolerance, whatever the paper meant"),
            of([7.0, 9.0, 3.0], alternatives=True),
        ),
        (
            *(OPEN, "whether the number is within the tolerance depends on what the paper meant"),
            of([5.0, 5.0, 7.0], alternatives=True),
        ),
    ],
    "order": [
        (OPEN, "2 more seeds have no value", of([1.0, 1.1, 0.9], undecided=2)),
        (OPEN, "all repetitions are equal, so that there is only one run", of([1.0], copies=1)),
        (
            *(OPEN, "an order needs at least 5 seeds, and there are 4"),
            *(of([1.0, 1.1, 0.9, 1.0], fewest=5), of([1.0] * 9, fewest=5, seeds=4, copies=1)),
        ),
        (
            *(
                OPEN,
                "the difference is on the claimed side, but may be smaller: some values are bounds",
            ),
            of([1.0, 1.1, 0.9], [-1]),
        ),
        (
            *(HOLDS, "the difference is on the claimed side, and reaches the least effect"),
            *(of([1.0, 1.1, 0.9]), of([1.0, 1.1, 0.9, 1.0, 1.0], fewest=5), of([2.0, 2.0])),
            of([1.0, 1.1, 0.9], [1]),  # the truth lies further on the claimed side
            of([0.0029, 0.0028, 0.0033], tolerance=0.003),  # certain, and just the least effect
            *(of([4e-7, 4.1e-7, 3.9e-7], tolerance=1e-7), of([0.5] * 3, tolerance=0.5)),
            of([4.0] * 5, grid=4.0),
            of([0.34, 0.35, 0.36], published=0.3, tolerance=0.005),
            of([1.0, 1.1, 0.9], corrected=Corrected(0.05)),
        ),
        (
            *(OPEN, "the difference is on the other side, but may be larger: some values are bounds"),
            of([-1.0, -1.1, -0.9], [1]),
        ),
        (
            *(FAILS, "the difference is on the other side, and reaches the least effect"),
            *(of([-1.0, -1.1, -0.9]), of([-1.0, -1.1, -0.9], [-1]), of([-4.0] * 5, grid=4.0)),
            of([-0.5] * 3, tolerance=0.5),
            of([0.24, 0.25, 0.26], published=0.3, tolerance=0.005),
        ),
        (
            *(OPEN, "the difference is below the least effect, but some values are bounds"),
            of([0.0, 0.0, 0.0], [1]),
        ),
        (
            *(FAILS, "the difference and its whole interval are below the least effect"),
            *(of([0.0, 0.0, 0.0]), of([0.0] * 3, grid=0.5, tolerance=0.5)),  # a tie on every seed is no order
            *(of([4e-7, 4.1e-7, 3.9e-7], tolerance=0.003), of([-0.01, 0.01, 0.0])),
        ),
        (
            *(OPEN, "the difference is significant alone, not after Holm's correction: p = 0.06"),
            of([1.0, 1.1, 0.9], corrected=Corrected(0.06)),
        ),
        (OPEN, "the difference is not significant: p = 1", of([1.0]), of([-1.0]), of([1.0, -1.0])),
        # t = .229 with two degrees of freedom: 1 - t / sqrt(2 + t^2).
        (OPEN, "the difference is not significant: p = 0.84", of([0.1, 0.3, 0.6], published=0.3)),
        # t = sqrt(3) with one degree of freedom: a third.
        (OPEN, "the difference is not significant: p = 0.33", of([2.0, 2.0], grid=4.0)),
        (
            *(OPEN, "the difference is below the least effect, but its interval is not"),
            of([0.0029, 0.0026, 0.0031], tolerance=0.003),
            of([-0.0029, -0.0026, -0.0031], tolerance=0.003),
        ),
        (
            *(OPEN, "the difference is significant, but its interval reaches the other side"),
            *(of([2.0] * 20, grid=4.0), of([12.0] * 20, grid=4.0, published=10.0), of([-2.0] * 20, grid=2.5)),
        ),
    ],
    "shape": [
        (
            *(HOLDS, "it is true in 3 of 10 cases; the claim needs 30 %"),
            of([True] * 3 + [False] * 7, tolerance=0.1 + 0.2),  # in floating point, more than .3
        ),
        (HOLDS, "it is true in 5 of 5 cases; the claim needs 100 %", of([True] * 5)),
        (
            *(HOLDS, "it is true in 4 of 5 cases; the claim needs 80 %"),
            *(of([True] * 4 + [False], tolerance=0.8), of([True] * 5, [1], tolerance=0.8)),
            of([True] * 4, undecided=1, tolerance=0.8),
        ),
        (FAILS, "it is true in at most 4 of 5 cases; the claim needs 100 %", of([True] * 4 + [False])),
        (
            *(FAILS, "it is true in at most 3 of 5 cases; the claim needs 80 %"),
            *(of([True] * 3 + [False] * 2, tolerance=0.8), of([False] * 2, undecided=3, tolerance=0.8)),
            of([False] * 2 + [True] * 3, [0, 0, 1], tolerance=0.8),
        ),
        (
            *(OPEN, "1 of 2 cases are unknown, and could change the verdict"),
            *(of([True, True], [1]), of([True, False], [0, 1])),
        ),
        (
            *(OPEN, "2 of 9 cases are unknown, and could change the verdict"),
            *(of([True] * 7, undecided=2, tolerance=0.8), of([True] * 8, [1], undecided=1, tolerance=0.8)),
        ),
    ],
    "identity": [
        (HOLDS, "it is true in 2 of 2 cases; the claim needs 100 %", of([True, True])),
        (
            *(FAILS, "it is true in at most 999 of 1000 cases; the claim needs 100 %"),
            of([True] * 999 + [False], tolerance=0.5),  # it knows no share
        ),
        (OPEN, "1 of 3 cases are unknown, and could change the verdict", of([True, True], undecided=1)),
    ],
    "printed": [
        (
            *(
                FAILS,
                "no rule gives the printed numbers; the nearest is the mean of the last records: a is 1",
            ),
            table([True, False], off="a is 1", chance=0.0),
        ),
        (
            OPEN,
            "the mean of the last records gives the printed digits, but one of 12 rules matches them by "
            "chance with probability 5.1 %",
            table([True], chance=0.051, tried=12),
            table([True], chance=0.051, tried=12, stated="last"),
        ),
        (
            *(HOLDS, "the mean of the last records, as stated, gives the printed numbers (by chance: 5 %)"),
            table([True, True], chance=0.05, stated="last"),
        ),
        (
            HOLDS,
            "the mean of the last records, which the text does not state, gives the printed numbers; one of "
            "12 rules matches them by chance with probability 1 %",
            table([True], chance=0.01, tried=12),
            table([True], chance=0.01, tried=12, stated="best"),
        ),
    ],
}


@pytest.mark.parametrize(
    ("on", "verdict", "reason", "cases"),
    [(on, verdict, reason, cases) for on, found in CASES.items() for verdict, reason, *cases in found],
)
def test_the_first_rule_that_applies_decides_and_says_why(on, verdict, reason, cases):
    """Planted: numbers inside, outside and beside a rival, wide intervals, orders without an effect."""
    kind = on.partition(",")[0]
    for measured, corrected, more in cases:
        one = Claim(kind=kind, **COMMON, **(OF_KIND.get(kind, {}) | more))
        assert judge(one, measured, corrected)[:2] == (verdict, reason)


# Of claims that held: kind, verdicts with perturbed runs, whether these are lost, and how far they are off.
HELD = (HOLDS, HOLDS)
OF_ROUNDING = {
    "": [("order", HELD, False, 0.99), ("shape", HELD, False, math.inf), ("near", HELD, False, math.inf)],
    "runs are sensitive to rounding, and there are no perturbed runs to judge by": [
        *(("order", HELD, True, 0.1), ("shape", HELD, True, math.inf))
    ],
    "runs are sensitive to rounding: with the perturbed runs the claim holds and is inconclusive": [
        *(("order", (HOLDS, OPEN), False, 0.1), ("shape", (HOLDS, OPEN), False, math.inf))
    ],
    "runs are sensitive to rounding: with the perturbed runs the claim fails": [
        ("order", (FAILS, FAILS), False, 0.1)
    ],
    "runs are sensitive to rounding, and fewer than 5 seeds have perturbed runs": [
        ("order", HELD, False, math.inf)
    ],
    "runs are sensitive to rounding: the difference is 3 times the shift that it causes; it must exceed 3": [
        ("order", HELD, False, 1.0)
    ],
}


@pytest.mark.parametrize("reason", OF_ROUNDING)
def test_what_held_may_hang_on_rounding(reason):
    for kind, *perturbed in OF_ROUNDING[reason]:
        for published, mean in ((1.0, 4.0), (None, -3.0)):
            one = Claim(kind=kind, **COMMON, published=published, tolerance=0.1)
            on_rounding = rules.of_rounding(one, Measured(np.array([mean, mean])), HOLDS, *perturbed)
            assert rules.decide(on_rounding) == (OPEN if reason else "", reason)


# Of claims without a verdict: measure, inputs that are lacking, why they do not answer, and the kind of data.
UNMEASURED = {
    "not measured: this run lacks run:a/m, run:b/m": (len, ["run:a/m", "run:b/m"], None, "none"),
    "nothing to measure": (None, [], None, "synthetic"),
    "not measured: {only one K}": (len, [], "{only one K}", "synthetic"),
    "measured on generated stand-in data, which say nothing about the paper": (len, [], None, "surrogate"),
    "": (len, [], None, "substitute"),
}


@pytest.mark.parametrize("reason", UNMEASURED)
def test_a_claim_stays_unchecked_for_a_reason(reason):
    measure, *rest = UNMEASURED[reason]
    found = rules.decide(
        rules.unmeasured(Claim(kind="shape", **COMMON, measure=measure, fails="a False"), *rest)
    )
    assert found == (UNCHECKED if reason else "", reason)


# Of statements, by status and reason; what is not said is `Found`'s own.
AGAINST_ONE = {"gap": AGAINST, "replaces": "`loss: mean`"}
ON_STATEMENTS = {
    ("untestable", "nothing was measured, or only on generated stand-in data"): [
        {"measured": False, "inferred": True}
    ],
    ("reproduced", "it holds in the printed settings"): [{"printed": HOLDS, "unfitted": {FAILS}}],
    ("conditional", "it holds in the inferred settings, which fill gaps and were not fitted on it"): [
        {"printed": FAILS, "inferred": True, "other": True}
    ],
    (
        "conditional",
        "it holds in the inferred settings, which replace `loss: mean` and were not fitted on it",
    ): [{"printed": FAILS, "inferred": True, **AGAINST_ONE}],
    (
        "conditional",
        "it holds in other settings, which fill gaps and were not fitted on it; its orders are corrected "
        "for the number of settings",
    ): [{"printed": FAILS, "other": True, "only_fitted": True}, {"other": True}],
    ("deviates", "it fails in the printed settings"): [
        {"printed": FAILS, "only_fitted": True, "miss": "+1"},
        {"printed": FAILS, "unfitted": {HOLDS}},  # not after correction
    ],
    ("deviates", "it fails by algebra, whatever the settings"): [{"algebra_fails": True, "miss": "+1"}],
    (
        "deviates",
        "the printed settings cannot be run, and it fails in all others that have no fitted option",
    ): [{"unfitted": {FAILS}, "only_fitted": True}],
    ("inconclusive", "it holds only with settings that were fitted on it"): [
        {"only_fitted": True, "miss": "+1"},
        {"printed": OPEN, "only_fitted": True},
    ],
    (
        "inconclusive",
        "the printed settings cannot be run; the fitted ones do not give it: 2 rounds, and 1 is printed",
    ): [{"miss": "2 rounds, and 1 is printed"}],
    ("inconclusive", "no settings decide it"): [
        {"printed": OPEN, "unfitted": {FAILS}, "miss": "+1"},
        {"unfitted": {FAILS, OPEN}},
        {},
    ],
}


def test_the_first_rule_that_applies_is_a_statements_status():
    for came, cases in ON_STATEMENTS.items():
        for case in cases:
            found = rules.Found(**{"measured": True} | case)
            assert rules.decide(rules.of_statement(found)) == came
    assert list(dict.fromkeys(rule.verdict for rule in rules.of_statement(rules.Found()))) == [
        *("untestable", *(status for status in scores.STATUSES if status != "untestable"))
    ]


def test_no_rule_is_without_a_case():
    cases = {
        **{on: [case[:2] for case in found] for on, found in CASES.items()},
        "shape or identity": [case[:2] for case in CASES["shape"]],
        "runs sensitive to rounding": [(OPEN, reason) for reason in OF_ROUNDING],
        "not measured": [(UNCHECKED, reason) for reason in UNMEASURED],
    }
    cases["statement"] = list(ON_STATEMENTS)
    for on, listed in {**rules.listed(), "statement": rules.of_statement(rules.Found())}.items():
        for rule in listed:
            said = re.sub(r"\b[A-Z]+\b(\\ [A-Z]+)*", ".+", re.escape(rule.in_general))
            assert any(verdict == rule.verdict and re.fullmatch(said, why) for verdict, why in cases[on])
