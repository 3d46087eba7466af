"""Printed tables against the runs behind them: which rule gives them, and whether that is luck."""

import math
import re
from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import replifed as rf
from replifed.claims import printed, scores
from replifed.claims.claim import NotMeasurableError
from replifed.claims.curves import Curves
from replifed.claims.files import number_text
from replifed.errors import ConfigError
from replifed.testing import assert_claim

ROOT = Path(__file__).parents[2]
BETTER = {"acc": "higher", "loss": "lower"}
METHODS = tuple("abcd")
RUNS = rf.Runs(BETTER)
CLAIM = rf.Statements("mine", artefact="table1")


def logs(seeds=7, rounds=14, methods=METHODS, dead=("b", 2)):
    """Noisy curves of accuracy and loss; one run loses its loss from round 8 on, and stays at chance."""
    rng = np.random.default_rng(1)
    rows = []
    for k, method in enumerate(methods):
        for seed in range(1, seeds + 1):
            for t in range(rounds):
                acc = 40 + 5 * k + t + 2 * rng.standard_normal()
                lost = (method, seed) == dead and t >= 8
                rows.append((method, seed, t, 10.01 if lost else acc, math.nan if lost else 100 - acc))
    return pd.DataFrame(rows, columns=["method", "seed", "round", "acc", "loss"])


FRAME = logs()


def wide(frame, method):
    """A line of accuracies a seed."""
    return frame[frame["method"] == method].pivot_table(index="seed", columns="round", values="acc")


def by_hand(rule, frame, method):
    """What a rule makes of a method's runs, from the frame itself; higher is better."""
    own, table = frame[frame["method"] == method], wide(frame, method)
    ends = table.iloc[:, -1]
    alive = own.groupby("seed")["loss"].apply(lambda values: values.notna().all())
    means = table.mean(axis=0)
    return {
        "last": ends.mean(),
        "best": table.max(axis=1).mean(),
        "last_5": table.iloc[:, -5:].mean(axis=1).mean(),
        "last_10": table.iloc[:, -10:].mean(axis=1).mean(),
        "best_round": means.max(),
        "survivors": ends[alive].mean(),
        "median": ends.median(),
        "best_seed": ends.max(),
        "best_record": table.max(axis=None),
        "first_1": ends.iloc[0],
        "first_3": ends.iloc[:3].mean(),
        "first_5": ends.iloc[:5].mean(),
    }[rule]


def claim(numbers, rule="", metric="acc", **more):
    cells = [RUNS.printed(number, method, metric, **more) for method, number in numbers.items()]
    return CLAIM.printed("table", "These are the means.", cells, rule)


def judged(one, frame=FRAME, **more):
    row = rf.judge(frame, [one], BETTER, **more).iloc[0]
    return row, scores.statements(
        [{name: "" if value is None else str(value) for name, value in row.items()}]
    )[0]


def test_the_page_lists_the_rules():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (ROOT / "docs/printed.md").read_text(), re.M)
    assert rows == [(name, rule.words) for name, rule in printed.RULES.items()]


@pytest.mark.parametrize("rule", printed.RULES)
def test_a_rule_finds_the_table_that_it_made(rule):
    """Planted: a table of four methods with two digits."""
    numbers = {method: f"{by_hand(rule, FRAME, method):.2f}" for method in METHODS}
    row, statement = judged(claim(numbers, rule))
    assert (row["verdict"], statement["status"], row["options"]) == ("holds", "reproduced", "")
    row, statement = judged(claim(numbers))
    assert (row["verdict"], row["options"], row["settings"]) == ("holds", f"rule: {rule}", "")
    assert statement["status"] == "conditional" and re.search(
        r"by chance with probability 0\.0\d+ %", row["reason"]
    )
    other = "best" if rule == "last" else "last"
    row, statement = judged(claim(numbers, other))
    assert (statement["status"], row["options"]) == ("conditional", f"rule: {rule}")
    assert (statement["gap"], statement["replaces"]) == ("against the text", f"rule: {other}")
    assert statement["evidence"] == "authors' logs"
    assert f"the text says {printed.RULES[other].words}: " in row["note"]


def test_a_wrong_table_deviates_and_the_nearest_rule_says_by_how_much():
    numbers = {method: f"{by_hand('best', FRAME, method):.2f}" for method in METHODS}
    wrong = numbers | {"c": f"{float(numbers['c']) + 0.03:.2f}"}
    for rule in ("", "best", "last"):
        row, statement = judged(claim(wrong, rule))
        assert (row["verdict"], statement["status"]) == ("fails", "deviates")
        assert "the nearest is the mean of each seed's best record: 3 of 4 come out" in row["reason"]
        assert f"acc of c is {float(wrong['c']):g}, not {by_hand('best', FRAME, 'c'):.6g}" in row["reason"]
    assert number_text({name: str(value) for name, value in row.items()} | {"published": ""}) == (
        "gives 75 % of the numbers"
    )
    # Named first is what is off by more digits, though by less.
    last = {method: by_hand("last", FRAME, method) for method in METHODS}
    wrong = {"a": f"{last['a'] + 0.3:.1f}", "b": f"{last['b'] + 0.007:.3f}"}
    reason = judged(claim({method: f"{last[method]:.2f}" for method in "cd"} | wrong))[0]["reason"]
    assert re.search(r"2 of 4 come out; acc of b is .* acc of a is ", reason)


def test_few_digits_are_inconclusive():
    """Whatever is printed of one method to whole per cents, some rule hits it."""
    number = f"{by_hand('last', FRAME, 'a'):.0f}"
    row, statement = judged(claim({"a": number}))
    assert (row["verdict"], statement["status"]) == ("inconclusive", "inconclusive")
    assert "one of 12 rules matches them by chance with probability" in row["reason"]
    row, _ = judged(claim({"a": f"{by_hand('last', FRAME, 'a'):.3f}"}))
    assert (row["verdict"], row["measured"]) == ("holds", pytest.approx(by_hand("last", FRAME, "a")))


def test_one_run_needs_more_than_one_digit():
    """A single run has no spread: of its last digit every tenth number would do."""
    frame = logs(seeds=1, dead=None)
    numbers = {method: f"{by_hand('last', frame, method):.2f}" for method in METHODS}
    assert judged(claim({"a": numbers["a"]}, "last"), frame)[0]["verdict"] == "inconclusive"
    assert judged(claim(numbers, "last"), frame)[0]["verdict"] == "holds"


def test_numbers_of_other_runs_rarely_come_out():
    """Tables of fresh runs, with a digit that is right in about one case of five, are no discovery."""
    found = 0
    for draw in range(200):
        rng = np.random.default_rng(draw)
        ours, theirs = (rng.normal(60, 2, (5, 1)) for _ in range(2))
        curve = Curves(np.zeros(1, int), np.arange(5), ours)
        one = printed.cell(curve, f"{theirs.mean():.1f}", better="higher")
        found += printed.table(one).found and printed.table(one).chance <= 0.05
    assert found <= 0.05 * 200


def exact_luck(cells, tried, place):
    """The chance that `luck` simulates: disjoint tables, each the product of its numbers' chances."""
    tables = {tuple(round(one.by_rule[k] / (2 * one.half)) for one in cells) for k in tried}
    total = 0.0
    for table in tables:
        product = 1.0
        for digits, one in zip(table, cells, strict=True):
            low, high = 2 * one.half * (digits - 0.5), 2 * one.half * (digits + 0.5)
            spread, wide = one.deviation[place], 10 * one.half

            def inside(shift, spread=spread, low=low, high=high, centre=one.by_rule[place]):
                ends = np.array([low, high]) - centre - shift
                return np.diff(norm.cdf(ends / spread))[0] if spread else float(ends[0] <= 0 <= ends[1])

            edges = [*np.clip([low - one.by_rule[place], high - one.by_rule[place]], -wide, wide)]
            product *= quad(inside, -wide, wide, points=edges, limit=200)[0] / (2 * wide)
        total += product
    return total


@pytest.mark.parametrize("digits", [0, 1, 2])
@pytest.mark.parametrize("seeds", [1, 2, 6])
@pytest.mark.parametrize("methods", [1, 2])
def test_luck_is_what_an_integral_says(digits, seeds, methods):
    frame = logs(seeds=seeds, dead=None)
    cells = [
        printed.cell(
            Curves(np.arange(14), np.arange(seeds), table.to_numpy()),
            f"{table.iloc[:, -1].mean():.{digits}f}",
            better="higher",
        )
        for method in METHODS[:methods]
        for table in [wide(frame, method)]
    ]
    known = [k for k in range(len(printed.RULES)) if all(np.isfinite(one.by_rule[k]) for one in cells)]
    for tried in ([0], known):
        exact, simulated = exact_luck(cells, tried, 0), printed.luck(cells, tried, 0)
        assert abs(simulated - exact) <= 4 * math.sqrt(exact / 20_000) + 1e-4
    assert printed.luck(cells, known, 0) == printed.luck(cells, known, 0) >= printed.luck(cells, [0], 0)


# --- Digits ---


def hits(value, text, **more):
    alone = Curves(np.zeros(1, int), np.zeros(1, int), np.array([[value]]))
    one = printed.cell(alone, text, better="lower", **more)
    return bool(one.hit[0])


@pytest.mark.parametrize(
    ("value", "yes", "no"),
    [
        (0.125, ["0.12", "0.13", "0.125", "0.1"], ["0.14", "0.11", "0.2", "0.126"]),  # half a digit
        (62.345, ["62.34", "62.35", "62.3", "62"], ["62.36", "62.33", "62.4"]),
        (0.15, ["0.1", "0.2"], ["0.3", "0.0"]),  # in binary a hair below
        (1.005, ["1.00", "1.01"], ["0.99", "1.02"]),
        (-2.5, ["-2", "-3"], ["-4", "2"]),
        (1.25e-4, ["1.2e-4", "1.3e-4", "0.0001", "1e-4"], ["1.4e-4", "0.0002"]),
        (1234.0, ["1234", "1.2e3", "1.23E3"], ["1.3e3", "1235"]),
        (0.0, ["0", "0.00"], ["1", "0.01"]),
    ],
)
def test_half_digits_round_to_either_side(value, yes, no):
    assert [hits(value, text) for text in yes] == [True] * len(yes)
    assert [hits(value, text) for text in no] == [False] * len(no)


def test_shares_are_printed_as_percentages():
    assert hits(0.6235, "62.35", times=100) and not hits(0.6235, "62.35")
    assert hits(0.62345, "62.3", times=100) and not hits(0.62345, "62.4", times=100)
    shares = FRAME.assign(acc=FRAME["acc"] / 100)
    numbers = {method: f"{by_hand('last', FRAME, method):.2f}" for method in METHODS}
    assert_claim(claim(numbers, "last", times=100), shares, BETTER)
    assert_claim(claim(numbers, "last"), shares, BETTER, "fails")


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-(10**7), 10**7),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_HALF_DOWN]),
)
def test_every_rounding_hits_and_a_digit_more_or_less_does_not(units, decimals, digits, rounding):
    exact = Decimal(units).scaleb(-decimals)
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
    step = Decimal(1).scaleb(-digits)
    assert hits(float(exact), str(rounded))
    tie = abs(exact - rounded) * 2 == step
    others = [str(rounded + k * step) for k in (-2, -1, 1, 2)]
    assert sum(hits(float(exact), text) for text in others) == (1 if tie else 0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 100), min_size=12, max_size=12), min_size=1, max_size=6),
    st.sampled_from(list(printed.RULES)),
    st.integers(0, 3),
)
def test_turned_curves_have_turned_numbers(values, rule, digits):
    """Whatever is best where higher is better is best of the negatives where lower is."""
    values = np.array(values)
    up = Curves(np.arange(12), np.arange(len(values)), values)
    place = list(printed.RULES).index(rule)
    first = printed.cell(up, "1", better="higher").by_rule[place]
    second = printed.cell(up._replace(values=-values), "1", better="lower").by_rule[place]
    assert first == -second or (np.isnan(first) and np.isnan(second))
    if np.isfinite(first):
        text = f"{first:.{digits}f}"
        found = printed.table(printed.cell(up, text, better="higher"), rule=rule)
        assert found.found and found.as_stated and 0 < found.chance <= 1


# --- What cannot be read so ---


@pytest.mark.parametrize("text", ["62.35%", "", "about 3", "inf", "nan", 62.35, None])
def test_what_is_no_printed_number_is_refused(text):
    with pytest.raises(ConfigError, match=r"mine.table: .* is no printed number such as '62.35'"):
        claim({"a": text})


def test_a_rule_or_a_cell_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match=r"unknown rule 'lst'; did you mean 'last'"):
        claim({"a": "1"}, "lst")
    for cells in ([], [RUNS.last("a", "acc")], ["62.35"]):
        with pytest.raises(ConfigError, match=r"give the printed numbers, each a `Runs\.printed`"):
            CLAIM.printed("table", "These are the means.", cells)


def test_fewer_runs_or_rounds_than_a_rule_needs():
    frame = logs(seeds=2, rounds=4, dead=None)
    row, _ = judged(claim({"a": "44.1"}, "first_3"), frame)
    assert "the runs have no such number" in row["note"]
    lost = Curves(np.arange(2), np.arange(2), np.full((2, 2), np.inf))
    with pytest.raises(NotMeasurableError, match="no rule gives a number of all runs"):
        printed.table(printed.cell(lost, "44.1", better="lower"))


def test_two_tables_of_one_sentence_need_one_rule():
    """By two rules the sentence does not hold in any one reading."""
    best = {method: f"{by_hand('best', FRAME, method):.2f}" for method in METHODS}
    last = {method: f"{by_hand('last', FRAME, method):.2f}" for method in METHODS}

    def status(*tables):
        claims = rf.Statements("mine", artefact="table1")

        @claims.sentence("s", "Table 1", "The table.")
        def _s():
            for k, table in enumerate(tables):
                yield claims(f"t{k}").printed("Means.", [RUNS.printed(n, m, "acc") for m, n in table.items()])

        rows = rf.judge(FRAME, claims.all(), BETTER).astype(object).where(lambda f: f.notna(), "")
        return scores.statements(rows.astype(str).to_dict("records"))[0]["status"]

    assert status(best, dict(list(best.items())[:2])) == "conditional"
    assert status(best, last) == "inconclusive"
