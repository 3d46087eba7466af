"""How many seeds a claim needs: the rule against simulation, and what a pilot makes of it."""

import json

import numpy as np
import pandas as pd
import pytest

from replifed.claims.claim import Claim, Measured
from replifed.claims.multiplicity import p_value
from replifed.claims.seeds import asked, needed, number_for, record
from replifed.claims.verdicts import measure
from replifed.errors import ConfigError
from replifed.intervals import mean_interval
from replifed.papers import jobs
from replifed.settings import validate
from replifed.store.histories import read_history

PILOT, MOST = 10, 60


def claim(kind="order", name="toy.a", **more):
    about = {"published": 0.3, "tolerance_reason": "so"} if kind in ("near", "value") else {}
    about |= {"precision": 0.005} if kind == "value" else {}
    common = {"paper": "toy", "artefact": "fig1", "statement": "", "measure": lambda _: None}
    return Claim(id=name, kind=kind, **{"tolerance": 0.1, **common, **about, **more})


def spread_out(mean, spread, n=PILOT):
    values = np.linspace(-1, 1, n)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


# --- The rule against simulation ---


@pytest.mark.parametrize("level", [0.05, 0.005])
def test_the_interval_is_narrow_enough_in_the_promised_share_of_cases(level):
    rng, half_width, narrow = np.random.default_rng(0), 0.35, []
    for _ in range(1000):
        spread = rng.standard_normal(PILOT).std(ddof=1)
        n = max(number_for(spread, half_width, PILOT, level), PILOT)
        _, low, high = mean_interval(rng.standard_normal(n), 1 - level)
        narrow.append((high - low) / 2 <= half_width)
    # Taking the pilot's spread for the truth, half of the intervals would be.
    assert np.mean(narrow) == pytest.approx(0.8, abs=0.04)


def draw(rng, n):
    """Differences of two methods that do equally well; they are not normal."""
    return rng.exponential(0.2, n) - rng.exponential(0.2, n)


def two_stages(rng):
    pilot = Measured(draw(rng, PILOT))
    n = record(PILOT, MOST, asked([claim()], [pilot], PILOT))["seeds"]
    return p_value(draw(rng, n))


def until_it_tells(rng):
    """Ten seeds, and five more as long as nothing comes out."""
    values = draw(rng, PILOT)
    while len(values) < MOST and p_value(values) > 0.05:
        values = np.append(values, draw(rng, 5))
    return p_value(values)


@pytest.mark.parametrize(
    ("rule", "times", "least", "most"), [(two_stages, 1500, 0.035, 0.065), (until_it_tells, 300, 0.11, 1)]
)
def test_orders_without_a_difference_come_out_in_one_case_of_twenty(rule, times, least, most):
    """Planted: a rule that goes on until an order comes out."""
    rng = np.random.default_rng(1)
    assert least <= np.mean([rule(rng) <= 0.05 for _ in range(times)]) <= most


# --- What claims ask for ---


def test_a_value_asks_until_its_interval_is_within_the_tolerance():
    near = needed(claim("near"), Measured(spread_out(0.3, 0.2)), 0)
    assert near == number_for(0.2, 0.1, PILOT) == 29
    assert needed(claim("near", tolerance=0.05), Measured(spread_out(0.3, 0.2)), 0) > 3.5 * near
    # What is far off tells without being known well: half of the 0.5 beyond the tolerance.
    far = needed(claim("near"), Measured(spread_out(0.9, 0.2)), 0)
    assert far == number_for(0.2, 0.25, PILOT) < 10


def test_a_value_asks_until_its_prediction_excludes_the_rival():
    pilot, rival = Measured(spread_out(0.3, 0.04)), {"tolerance": None, "tolerance_reason": ""}
    # Between mean and rival lie .15, of which half a digit is theirs.
    wanted = needed(claim("value", rival=0.45, **rival), pilot, 1)
    assert wanted == number_for(0.04, 0.145, PILOT, theirs=1.0) > number_for(0.04, 0.145, PILOT)
    assert needed(claim("value", rival=0.45, **rival), pilot, 5) > wanted
    # However many there are here, theirs is a mean over one.
    assert needed(claim("value", rival=0.35, **rival), pilot, 1) is None
    assert needed(claim("value", rival=0.35, repetitions=100, **rival), pilot, 1) is not None
    assert needed(claim("value", tolerance=0.15), pilot, 1) == wanted


def test_an_order_must_be_told_among_all_of_its_family():
    pilot = Measured(spread_out(0.05, 0.2))
    alone, one_of_nine = (needed(claim(), pilot, orders) for orders in (1, 9))
    assert (alone, one_of_nine) == (number_for(0.2, 0.1, PILOT), number_for(0.2, 0.1, PILOT, 0.05 / 9))
    assert alone < one_of_nine
    family = [claim(name=f"toy.{letter}") for letter in "abcdefghi"]
    assert asked(family, [pilot] + [None] * 8, PILOT) == {"toy.a": one_of_nine}
    assert number_for(0.2, 0.5, PILOT) < 5 == needed(claim(), Measured(spread_out(-1.0, 0.2)), 1)


def test_values_that_some_seeds_lack_and_several_of_one_seed_are_counted_in_seeds():
    half, double = (Measured(spread_out(0.3, 0.2, n)) for n in (5, 20))
    assert asked([claim("near")], [half], PILOT) == {"toy.a": 2 * number_for(0.2, 0.1, 5)}
    assert asked([claim("near")], [double], PILOT) == {"toy.a": -(-number_for(0.2, 0.1, 20) // 2)}


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


def test_the_claim_that_needs_most_decides_within_the_budget():
    assert record(10, 60, {"a": 4, "b": 37})["seeds"] == 37
    assert record(10, 60, {"a": 4})["seeds"] == record(10, 60, {})["seeds"] == 10
    assert record(10, 60, {"a": 4, "b": 137}) == {
        "seeds": 60,
        "pilot": 10,
        "most": 60,
        "asked": {"a": 4, "b": 137},
    }


@pytest.mark.parametrize(("mean", "told"), [(0.05, "would need 29 seeds"), (0.3, "")])
def test_an_inconclusive_claim_says_how_many_seeds_it_would_need(mean, told):
    values = spread_out(mean, 0.2)
    (row,) = measure([claim(measure=lambda _: values)], None, "paper").to_dict("records")
    assert (row["verdict"], row["note"]) == ("inconclusive" if told else "holds", told)


# --- What is run ---


class Experiments:
    """A paper that runs what it is told to."""

    @staticmethod
    def run(method, settings, choice, table, split, progress):
        return pd.DataFrame({"replicate": settings["replicates"], "round": 0, "objective": 1.0})


def test_a_run_takes_the_first_repetitions_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "_part", lambda paper, name: Experiments)
    monkeypatch.setattr(jobs, "typed", lambda paper, settings: settings)
    (tmp_path / "seeds.json").write_text(json.dumps(record(2, 4, {"a": 3})))
    settings, out = {"replicates": [7, 8, 9, 10]}, tmp_path / "run.parquet"
    jobs.run("fedht", "one", "fedht", settings, None, None, None, out, tmp_path / "seeds.json")
    history, meta = read_history(out)
    assert history["replicate"].tolist() == meta["settings"]["replicates"] == [7, 8, 9]


def configuration(**experiments):
    rest = {"l2": 1, "clients": 2, "samples": 3, "b_max": 16, "budget": 32, "line_search": None, "rounds": 5}
    common = {**rest, "kind": "comparison", "dataset": "w8a", "renewals": "once", "dither": "none"}
    given = {
        name: {**common, "methods": ["qshed"], "replicates": [1, 2, 3], **own}
        for name, own in experiments.items()
    }
    artefacts = {"fig2": {"kind": "figure", "runs": {name: ["qshed"] for name in given}}}
    return {"papers": ["qshed"], "qshed": {"seed": 1, "experiments": given, "artefacts": artefacts}}


def test_a_pilot_is_an_experiment_on_other_repetitions():
    made = validate(configuration(w8a={"pilot": [101, 102]}))["qshed"]["experiments"]
    del made["w8a"]["pilot"]
    assert made == {"w8a": made["w8a"], "w8a_pilot": {**made["w8a"], "replicates": [101, 102]}}


@pytest.mark.parametrize(
    ("experiments", "fault"),
    [
        ({"w8a": {"pilot": [3, 4]}}, "3 would be both a pilot and reported"),
        ({"w8a": {"pilot": [101]}}, "pilot"),
        ({"w8a_pilot": {}}, "names that end in _pilot are kept for pilots"),
    ],
)
def test_a_pilot_that_is_none_is_refused(experiments, fault):
    with pytest.raises(ConfigError, match=fault):
        validate(configuration(**experiments))
