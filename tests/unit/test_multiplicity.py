"""How sure orders are, one by one and as a family, and what statements come to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import LEVEL, holm, p_value
from replifed.claims.scores import by_chance, read, statements, write
from replifed.claims.verdicts import judge


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
    told = [judge(claim, Measured(one)).verdict == "reproduced" for one in draws]
    assert np.mean([p_value(one) <= LEVEL for one in draws]) > 0.1
    assert np.mean(told) < 0.1


def line(name, verdict, basis="chosen", nearness="0", statement="p.s", **more):
    row = {"id": name, "statement_id": statement, "paper": "p", "basis": basis, "nearness": nearness}
    row |= {"verdict": verdict, "reading": "", "statement": "It holds.", "kind": "value", "p_value": ""}
    return row | {"artefact": "fig1", "data": "synthetic"} | more


def status(*rows):
    [one] = statements(rows)
    return one["status"], one["claims"]


def test_a_statement_has_the_status_of_the_reading_nearest_to_the_text():
    """Planted: the best of several readings must not win."""
    fitted, chosen = line("f", "consistent", "fitted"), line("c", "deviates")
    stated = line("s", "inconclusive", "stated")
    assert status(fitted, chosen) == ("deviates", "c")
    assert status(fitted, chosen, stated) == ("inconclusive", "s")
    assert status(fitted) == ("consistent", "f")
    further = line("d", "reproduced", nearness="1")
    assert status(further, chosen) == ("deviates", "c")
    # Of one reading the worst counts; what could not be measured says nothing beside what could.
    assert status(line("a", "reproduced"), line("b", "inconclusive")) == ("inconclusive", "a b")
    assert status(line("u", "unchecked", "stated"), chosen) == ("deviates", "c")
    assert status(line("u", "unchecked", "stated")) == ("unchecked", "u")


def test_scores_count_statements(tmp_path):
    rows = [line("a", "reproduced"), line("b", "reproduced"), line("c", "deviates", statement="p.t")]
    write(rows, tmp_path / "statements.csv")
    assert [one["status"] for one in read(tmp_path / "statements.csv")] == ["reproduced", "deviates"]


def test_orders_by_chance():
    numbers = {"kind": "order", "p_value": "0.01", "ci_low": "1", "ci_high": "3"}
    orders = [line(f"o{n}", "reproduced", measured=str(n), **numbers) for n in range(40)]
    assert by_chance(orders) == (40, 1.0, 0.025)
    # Two readings that come to the same step are one run.
    assert by_chance([*orders, {**orders[0], "reading": "own"}]) == (40, 1.0, 0.025)
