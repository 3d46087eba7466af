"""How sure orders are, one by one and as a family, and what statements come to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import planted_paper
from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import LEVEL, holm, holm_levels, p_value
from replifed.claims.scores import NOT_RUN, STATUSES, by_chance, in_lines, read, statements, write
from replifed.claims.verdicts import COLUMNS, judge


def test_p_value_is_students():
    # Mean 2.5, variance 5/3, n = 4: t = 3.8730; twice the tail of Student's t with 3 degrees of freedom.
    assert p_value([1.0, 2.0, 3.0, 4.0]) == pytest.approx(2 * stats.t.sf(2.5 / np.sqrt(5 / 12), 3), rel=1e-12)
    assert p_value([-1.0, -2.0, -3.0, -4.0]) == p_value([1.0, 2.0, 3.0, 4.0])


def test_where_differences_are_not_normal_their_signs_count():
    wild = [1.0, 1.1, 1.2, 0.9, 1.0, 1.1, -0.1, 5000.0]
    assert p_value(wild) == pytest.approx(stats.binomtest(7, 8).pvalue)
    assert p_value([1.0, 1.1, 1.2, 0.9, 1.0, 1.1, 0.8, 1.3]) < 1e-6  # by their signs it would be .008


def test_a_majority_against_the_mean_tells_nothing():
    many_small_and_one_large = [0.1] * 11 + [-9.0]
    assert p_value(many_small_and_one_large) == 1.0
    assert p_value([-0.1] * 11 + [-9.0]) < 0.01


def test_one_seed_tells_nothing_and_equal_seeds_all():
    assert p_value([3.0]) == 1.0
    assert p_value([3.0, 3.0]) == 0.0
    assert p_value([0.0, 0.0, 0.0]) == 1.0


def test_values_on_a_grid_have_the_spread_of_rounding():
    """Planted: two equal methods whose whole rounds happen to differ by the same on two or three seeds."""
    rng = np.random.default_rng(1)
    differences = (rng.integers(0, 3, (2000, 3)) - rng.integers(0, 3, (2000, 3))).astype(float)
    assert np.mean([p_value(one, grid=1.0) <= LEVEL for one in differences]) < 0.05
    assert p_value([1.0, 1.0], grid=1.0) > 0.15
    assert p_value([20.0] * 3, grid=1.0) < 0.001
    # One round less on one seed tells hardly less.
    assert p_value([66.0, 66.0, 66.0, 66.0, 65.0], grid=1.0) < 1e-6


def test_holm_by_hand():
    # Ordered .01, .02, .03, .04 times 4, 3, 2, 1, and never less than the one before.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, None, 0.5]) == [1.0, None, 1.0]


def test_a_family_errs_in_one_case_of_twenty():
    """Where no order exists, the share of families with one that is told stays at the level."""
    draws = np.random.default_rng(1).standard_normal((2000, 6, 5))
    p = stats.ttest_1samp(draws, 0.0, axis=-1).pvalue
    corrected = np.array([holm(family) for family in p.tolist()])
    assert (p <= LEVEL).any(axis=1).mean() > 0.2
    assert (corrected <= LEVEL).any(axis=1).mean() == pytest.approx(LEVEL, abs=0.015)


def test_skewed_differences_are_no_order():
    """Planted: a mean of zero, of skewed values, of which most are on the claimed side."""
    draws = 1 - np.random.default_rng(2).exponential(size=(300, 30))
    claim = Claim(id="x", paper="p", artefact="a", statement="s", kind="order", tolerance=0.05)
    told = [judge(claim, Measured(one)).verdict == "holds" for one in draws]
    assert np.mean([p_value(one) <= LEVEL for one in draws]) > 0.1
    assert np.mean(told) < 0.1


def test_levels_of_intervals_hold_what_holm_does_not_reject():
    """An interval at its level holds the tested number just if its corrected p-value is above the level."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        p_values = (rng.uniform(0, 0.1, 6) ** 2).tolist()
        for p, level, corrected in zip(p_values, holm_levels(p_values), holm(p_values), strict=True):
            assert (p <= level) == (corrected <= LEVEL)


def line(name, verdict, statement="p.s", **more):
    row = dict.fromkeys(COLUMNS, "") | {"id": name, "part": name, "statement_id": statement, "paper": "p"}
    row |= {"verdict": verdict, "statement": "It holds.", "kind": "near", "settings": "printed inferred"}
    return row | {"artefact": "fig1", "data": "synthetic", "source": "printed"} | more


def test_a_statement_is_as_bad_as_its_worst_claim():
    rows = [line("a", "holds"), line("b", "inconclusive"), line("c", "fails")]
    assert statements(rows)[0]["status"] == "deviates"
    assert statements(rows[:2])[0]["status"] == "inconclusive"
    # What was measured in other settings alone is no success in this one; what only informs no failure.
    in_printed = line("u", "unchecked", part="u", options="loss: mean", settings="printed")
    in_inferred = line(
        "u.sum", "holds", part="u", options="loss: sum", settings="inferred", fitted_on="other statements"
    )
    one = statements([rows[0], in_printed, in_inferred])[0]
    assert (one["printed"], one["inferred"], one["status"]) == (NOT_RUN, "holds", "conditional")
    assert statements([line("u", "unchecked")])[0]["status"] == "untestable"
    assert statements([rows[0], line("d", "fails", informs="yes")])[0]["status"] == "reproduced"


def test_scores_count_main_claims_and_others_apart(tmp_path):
    rows = planted_paper.rows()
    write(rows, tmp_path / "statements.csv")
    assert read(tmp_path / "statements.csv") == statements(rows)
    assert in_lines(statements(rows)) == [
        "5 main claims: 2 reproduced (2 own runs on synthetic data made as described), "
        "1 conditional (1 fills gaps), 2 deviates, 0 inconclusive, 0 untestable; "
        "in the printed settings 2 hold, 3 fail, 0 open, 0 not run",
        "printed values matched: 0 of 2; 2 in the inferred settings, 1 of them not used in the fit",
        "5 other statements: 1 reproduced (1 own runs on synthetic data made as described), 1 conditional "
        "(1 against the text), 0 deviates, 2 inconclusive, 1 untestable",
    ]
    assert in_lines([]) == ["0 statements: " + ", ".join(f"0 {status}" for status in STATUSES)]


def test_every_status_stands_in_the_planted_paper():
    """Planted: a paper with each row of the table, on runs that hang on rounding and on those that do not."""
    found = {one["statement_id"].removeprefix("demo."): one for one in statements(planted_paper.rows())}
    assert {name: one["status"] for name, one in found.items()} == {
        "abstract.faster": "reproduced",
        "abstract.fewer": "reproduced",
        "table1.rate": "deviates",
        "table1.held": "conditional",
        "fig1.other": "conditional",
        "fig1.deviates": "deviates",
        "fig2.open": "inconclusive",
        "fig3.rounding": "reproduced",
        "fig3.hangs": "inconclusive",
        "section5.time": "untestable",
    }
    assert [found[name]["robust"] for name in ("abstract.faster", "abstract.fewer")] == ["yes", ""]
    fewer = found["abstract.fewer"]
    assert (fewer["hold"], fewer["others"], fewer["fail_in"]) == ("2", "3", "loss: sum; step: common")
    assert [found[name]["fit"] for name in ("table1.rate", "table1.held", "fig2.open")] == [
        *("fitted on", "held out", "")
    ]


def test_surrogate_data_leave_a_statement_untestable():
    class Surrogates(planted_paper.Runs):
        kind = "surrogate"

    found = statements(planted_paper.rows(Surrogates()))
    on_runs = {one["status"] for one in found if one["data"] == "surrogate"}
    assert on_runs == {"untestable"}


def test_orders_by_chance():
    numbers = {"kind": "order", "p_value": "0.01", "ci_low": "1", "ci_high": "3"}
    orders = [line(f"o{n}", "holds", measured=str(n), **numbers) for n in range(40)]
    assert by_chance(orders) == (40, 1.0, 0.025)
    # Two choices of settings that come to the same step are one run.
    assert by_chance([*orders, {**orders[0], "options": "step: own"}]) == (40, 1.0, 0.025)
