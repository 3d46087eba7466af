"""How many seeds a claim needs: the rule against simulation."""

import numpy as np
import pytest

from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import p_value
from replifed.claims.verdicts import measure, needed, number_for
from replifed.intervals import mean_interval

KNOWN, MOST = 10, 60


def claim(kind="order", name="toy.a", **more):
    about = {"published": 0.3, "tolerance_reason": "so"} if kind in ("near", "value") else {}
    about |= {"precision": 0.005} if kind == "value" else {}
    about |= {"fails": "a False"} if kind == "shape" else {}
    common = {"paper": "toy", "artefact": "fig1", "statement": "", "measure": lambda _: None}
    return Claim(id=name, kind=kind, **{"tolerance": 0.1, **common, **about, **more})


def spread_out(mean, spread, n=KNOWN):
    values = np.linspace(-1, 1, n)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


# --- The rule against simulation ---


@pytest.mark.parametrize("level", [0.05, 0.005])
def test_the_interval_is_narrow_enough_in_the_promised_share_of_cases(level):
    rng, half_width, narrow = np.random.default_rng(0), 0.35, []
    for _ in range(1000):
        spread = rng.standard_normal(KNOWN).std(ddof=1)
        n = max(number_for(spread, half_width, KNOWN, level), KNOWN)
        _, low, high = mean_interval(rng.standard_normal(n), 1 - level)
        narrow.append((high - low) / 2 <= half_width)
    # Taking the known spread for the truth, half of the intervals would be.
    assert np.mean(narrow) == pytest.approx(0.8, abs=0.04)


def draw(rng, n):
    """Differences of two methods that do equally well; they are not normal."""
    return rng.exponential(0.2, n) - rng.exponential(0.2, n)


def as_stated(rng):
    return p_value(draw(rng, MOST))


def until_it_tells(rng):
    """Ten seeds, and five more as long as nothing comes out."""
    values = draw(rng, KNOWN)
    while len(values) < MOST and p_value(values) > 0.05:
        values = np.append(values, draw(rng, 5))
    return p_value(values)


@pytest.mark.parametrize(
    ("rule", "times", "least", "most"), [(as_stated, 1500, 0.035, 0.065), (until_it_tells, 300, 0.11, 1)]
)
def test_orders_without_a_difference_come_out_in_one_case_of_twenty(rule, times, least, most):
    """Planted: a rule that goes on until an order comes out."""
    rng = np.random.default_rng(1)
    assert least <= np.mean([rule(rng) <= 0.05 for _ in range(times)]) <= most


# --- What claims ask for ---


def test_a_value_asks_until_its_interval_is_within_the_tolerance():
    near = needed(claim("near"), Measured(spread_out(0.3, 0.2)), 0)
    assert near == number_for(0.2, 0.1, KNOWN) == 29
    assert needed(claim("near", tolerance=0.05), Measured(spread_out(0.3, 0.2)), 0) > 3.5 * near
    # What is far off tells without being known well: half of the 0.5 beyond the tolerance.
    far = needed(claim("near"), Measured(spread_out(0.9, 0.2)), 0)
    assert far == number_for(0.2, 0.25, KNOWN) < 10


def test_a_value_asks_until_its_prediction_excludes_the_rival():
    some, rival = Measured(spread_out(0.3, 0.04)), {"tolerance": None, "tolerance_reason": ""}
    # Between mean and rival lie .15, of which half a digit is theirs.
    wanted = needed(claim("value", rival=0.45, **rival), some, 1)
    assert wanted == number_for(0.04, 0.145, KNOWN, theirs=1.0) > number_for(0.04, 0.145, KNOWN)
    assert needed(claim("value", rival=0.45, **rival), some, 5) > wanted
    # However many there are here, theirs is a mean over one.
    assert needed(claim("value", rival=0.35, **rival), some, 1) is None
    assert needed(claim("value", rival=0.35, repetitions=100, **rival), some, 1) is not None
    assert needed(claim("value", tolerance=0.15), some, 1) == wanted


def test_an_order_must_be_told_among_all_of_its_family():
    some = Measured(spread_out(0.05, 0.2))
    alone, one_of_nine = (needed(claim(), some, orders) for orders in (1, 9))
    assert (alone, one_of_nine) == (number_for(0.2, 0.1, KNOWN), number_for(0.2, 0.1, KNOWN, 0.05 / 9))
    assert alone < one_of_nine
    assert number_for(0.2, 0.5, KNOWN) < 5 == needed(claim(), Measured(spread_out(-1.0, 0.2)), 1)


def test_several_values_of_one_seed_are_counted_in_seeds():
    double = Measured(spread_out(0.3, 0.2, 20), seeds=10)
    assert needed(claim("near"), double, 1) == -(-number_for(0.2, 0.1, 20) // 2)


@pytest.mark.parametrize(
    ("one", "more"),
    [
        (claim("near"), {"bounds": [1] + [0] * 9}),  # the truth is beyond, however many there are
        (claim("order"), {"bounds": [-1] + [0] * 9}),
        (claim("order"), {"chaotic": True}),
        (claim("near", unit="rounds"), {"chaotic": True}),
        (claim("near"), {"grid": 0.2}),  # no interval is narrower
        (claim("near", tolerance=0.0), {}),
        (claim("shape", tolerance=0.5), {}),
    ],
)
def test_what_more_seeds_do_not_tell_asks_for_none(one, more):
    assert needed(one, Measured(spread_out(0.3, 0.2), **more), 1) is None


def test_one_value_tells_nothing_of_its_spread():
    assert needed(claim(), Measured([0.3]), 1) is None


@pytest.mark.parametrize(("mean", "told"), [(0.05, "would need 29 seeds"), (0.3, "")])
def test_an_inconclusive_claim_says_how_many_seeds_it_would_need(mean, told):
    values = spread_out(mean, 0.2)
    (row,) = measure([claim(measure=lambda _: values)], None, "paper").to_dict("records")
    assert (row["verdict"], row["note"]) == ("inconclusive" if told else "holds", told)
