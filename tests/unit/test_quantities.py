"""Quantities of claims on histories made by hand: which runs they read, how seeds pair and bounds follow."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import planted_paper
import replifed.claims
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import FITTED_ELSEWHERE, FITTED_ON_IT, NotMeasurableError
from replifed.claims.curves import curves, first, last, reached, rounds_to, steps
from replifed.claims.quantities import as_it_stands, formula, joined, least, quantity, run, settings
from replifed.claims.samples import UNDECIDED, Sample
from replifed.claims.statements import Statements
from replifed.claims.verdicts import judge
from replifed.errors import ConfigError


class Runs:
    """Histories by experiment and method."""

    def __init__(self, **histories):
        self.histories, self.read = histories, []

    def experiment(self, name):
        return {"sim": "its settings"}[name]

    def run(self, experiment, method):
        self.read.append(method)
        return self.histories[method]


def history(*curves, first=0, **columns):
    frames = [
        pd.DataFrame(
            {"replicate": seed, "round": range(len(one)), "gap": one, "bits_up": np.arange(len(one)) * 10.0}
        )
        for seed, one in enumerate(curves, start=first)
    ]
    return pd.concat(frames, ignore_index=True).assign(**columns)


def test_rounds_to_a_threshold():
    frame = history([1, 1e-2, 1e-5, 1e-7], [1, 1e-1, 1e-3], [1, 1e-5, 1e-9])
    found = reached(frame, 1e-4)
    assert reached(frame, 1e-4, touch=True).values.tolist() == found.values.tolist()  # none rises again
    rising = history([1, 1e-5, 1, 1e-5], [1, 1, 1e-5, 1e-5], [1e-5, 1, 1, 1])
    assert reached(rising, 1e-4).values.tolist() == [3, 2, 3]
    assert reached(rising, 1e-4, touch=True).values.tolist() == [1, 2, 0]
    assert found.values.tolist() == [2, 2, 1]
    assert found.bounds.tolist() == [0, 1, 0]
    assert found.median_reached == 2
    assert reached(frame, 1e-6).median_reached == 3
    assert reached(frame, 1e-8).median_reached == np.inf
    assert reached(frame, 1e-8).median == 2
    assert reached(frame, 1e-4, count="bits_up").values.tolist() == [20, 20, 10]


def test_a_window_delays_what_is_reached_and_no_diverged_run_is_there():
    one = curves(history([9, 3, 1, 1, 1, 1], [9, 1, 1, np.inf, np.inf, np.inf]), "gap")
    assert rounds_to(one, 1.0).values.tolist() == [2, 5]
    found = rounds_to(one, 1.0, window=2)
    assert (found.values.tolist(), found.bounds.tolist()) == ([3, 5], [0, 1])
    assert rounds_to(one, np.inf, window=2).values.tolist() == [0, 0]


def test_an_expression_knows_what_it_reads_and_computes_it_once():
    one, two = (last(curves(run("sim", name), "gap")) for name in ("a", "b"))
    ratio = one / two - 1
    assert ratio.needs == ("run:sim/a", "run:sim/b")
    assert (two - one + two).needs == ("run:sim/b", "run:sim/a")
    runs = Runs(a=history([1, 0.3], [1, 0.6]), b=history([1, 0.1], [1, 0.2]))
    np.testing.assert_allclose(ratio(runs).values, [2, 2])
    again = last(curves(run("sim", "a"), "gap")) / last(curves(run("sim", "b"), "gap"))
    np.testing.assert_allclose(again(runs).values, [3, 3])
    assert runs.read == ["a", "b"]
    # Other inputs, other numbers.
    assert ratio(Runs(a=runs.histories["b"], b=runs.histories["a"])).values[0] == pytest.approx(-2 / 3)


def test_equality_is_of_expressions_and_its_negation_is_no_quantity():
    one, two = (last(curves(run("sim", name), "gap")) for name in ("a", "b"))
    assert one == last(curves(run("sim", "a"), "gap")) and (one == two) is False
    assert one != two and (one != last(curves(run("sim", "a"), "gap"))) is False
    runs = Runs(a=history([1, 0.3], [1, 0.6]), b=history([1, 0.3], [1, 0.2]))
    assert np.not_equal(one, two)(runs).values.tolist() == [False, True]
    with pytest.raises(ConfigError, match=r"p\.differ: True is no quantity; np\.equal and np\.not_eq"):
        Statements("p").identity("differ", "They differ.", one != two)


def test_functions_of_quantities_are_functions_of_what_they_stand_for():
    @quantity
    def added(one, other=1.0):
        return one + other

    assert added(2.0) == 3.0
    lazy = added(settings("sim"), other=run("sim", "a"))
    assert lazy.needs == ("run:sim/a",)
    assert formula(added, 2.0, other=5.0)(Runs()) == 7.0
    assert settings("sim")(Runs()) == "its settings"


def test_seeds_are_paired():
    one, two = Sample([1.0, 2.0, 3.0], seeds=[1, 2, 3]), Sample([10.0, 20.0], seeds=[3, 1])
    two = two.take(np.argsort(two.seeds))
    assert (two - one).values.tolist() == [19, 7]
    assert (two - one).seeds.tolist() == [1, 3]
    assert (one < two).values.all()
    with pytest.raises(NotMeasurableError, match="share no seed"):
        one - Sample([1.0], seeds=[9])


@pytest.mark.parametrize(
    "function, expected",
    [
        # Bounds of a and b, in order: (0, 0), (1, 0), (0, 1), (1, 1), (-1, 1).
        (lambda a, b: a - b, [0, 1, -1, UNDECIDED, -1]),
        (lambda a, b: a / b, [0, 1, -1, UNDECIDED, -1]),
        (lambda a, b: a + b, [0, 1, 1, 1, UNDECIDED]),
        (lambda a, b: a * b, [0, 1, 1, 1, UNDECIDED]),
        (lambda a, b: 1 - a, [0, -1, 0, -1, 1]),
        (lambda a, b: 1 / a - 1, [0, -1, 0, -1, 1]),
        (lambda a, b: 1 - a / b, [0, -1, 1, UNDECIDED, 1]),
        (lambda a, b: 2 * a + 1, [0, 1, 0, 1, -1]),
        (lambda a, b: as_it_stands(a - b), [0, 1, -1, 0, -1]),
        (lambda a, b: np.float64(3) - b, [0, 0, -1, -1, -1]),
    ],
)
def test_bounds_follow(function, expected):
    a, b = Sample(np.full(5, 4.0), [0, 1, 0, 1, -1]), Sample(np.full(5, 2.0), [0, 0, 1, 1, 1])
    assert function(a, b).bounds.tolist() == expected


def test_a_bound_is_true():
    """Whatever the truth beyond the bounds, the result is beyond its own."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 9, (2, 400))
    bounds = rng.integers(-1, 2, (2, 400))
    shown = np.where(bounds > 0, truth * 0.7, np.where(bounds < 0, truth * 1.4, truth))
    a, b = (Sample(*pair) for pair in zip(shown, bounds, strict=True))
    for function in (lambda x, y: x - y, lambda x, y: x / y, lambda x, y: x + y, lambda x, y: 1 - x * y):
        found, true = function(a, b), function(*truth)
        assert (found.values == true)[found.bounds == 0].all()
        assert (found.values <= true + 1e-12)[found.bounds == 1].all()
        assert (found.values >= true - 1e-12)[found.bounds == -1].all()


def counts(*values, step=2.0):
    return Sample(np.array(values), below=np.full(len(values), step))


@pytest.mark.parametrize(
    ("function", "below", "above"),
    [
        (lambda a, b: a - b, 2, 2),  # 8 to 10 less 3 to 5
        (lambda a, b: a + b, 4, 0),
        (lambda a, b: a / b, 0.4, 4 / 3),  # 8/5 to 10/3
        (lambda a, b: (a - b) - (b - a), 4, 4),
        (lambda a, b: -a, 0, 2),
        (lambda a, b: a.map(np.log), np.log(10 / 8), 0),
        (lambda a, b: 1 / (b - 3), 0.0, np.inf),  # anything from 1/2 on
        (lambda a, b: least(a, b), 2, 0),
    ],
)
def test_the_truth_lies_in_a_step_below_each_count(function, below, above):
    """Counts of 10 and 5 that are read every second round."""
    found = function(counts(10.0), counts(5.0))
    np.testing.assert_allclose([found.below[0], found.above[0]], [below, above])
    assert found.measured().grid == pytest.approx(max(below, above))


def test_what_nobody_knows_is_left_out():
    a, b = Sample([5.0, 5.0], [1, 1]), Sample([4.0, 3.0], [1, 0])
    assert (a - b).measured().values.tolist() == [2]
    assert (a - b).measured().bounds.tolist() == [1]
    both = a - Sample([4.0, 3.0], [1, 1])
    with pytest.raises(NotMeasurableError, match="not even once"):
        both.decided("not even once")


def test_the_least_of_several_is_a_bound_where_no_exact_one_is_as_small():
    found = least(Sample([5.0, 5.0, 5.0], [0, 1, 1]), Sample([6.0, 5.0, 7.0], [1, 0, 1]))
    assert found.values.tolist() == [5, 5, 5]
    assert found.bounds.tolist() == [0, 0, 1]


def test_cases_are_no_seeds():
    a, b = Sample([True, False]), Sample([True, True], chaotic=True)
    assert joined(a, b).measured().seeds == 2
    assert joined(a, b).chaotic
    assert joined(a, b, apart=True).measured().seeds is None
    change = steps(Sample([1.0, 3.0]), Sample([1.0, 2.0]), Sample([4.0, 4.0]))
    assert change.values.tolist() == [-0.5, 2.5]
    assert change.measured().seeds == 2


def test_targets_pair_with_curves():
    one = curves(history([8, 4, 2, 1], [8, 7, 6, 5], first=1), "gap")
    assert (first(one).values.tolist(), last(one).values.tolist()) == ([8, 8], [1, 5])
    found = rounds_to(one, Sample([6.0, 2.0], seeds=[2, 3]))
    assert (found.seeds.tolist(), found.values.tolist(), found.bounds.tolist()) == ([2], [2], [0])


def test_statements_take_id_artefact_and_needs_from_what_they_are():
    levels = Option("none", "printed", "eq. (1)"), Option("own (1, 1)", "fitted", "Figure 2 comes out")
    paper = Statements("p", Axes(Axis("level", "?", *levels)))
    difference = last(curves(run("sim", "a"), "gap")) - last(curves(run("sim", "b"), "gap"))
    claim = paper.order(
        "fig1.faster",
        "It is so.",
        difference.note("mean {0.mean:g}"),
        unit="ratio",
        options={"level": "own (1, 1)"},
        fewest=2,
    )
    assert (claim.id, claim.artefact) == ("p.fig1.faster.own-1-1", "fig1")
    assert claim.needs == ("run:sim/a", "run:sim/b")
    measured = claim.measure(Runs(a=history([3], [4]), b=history([1], [2])))
    assert measured.note == "mean 2"
    assert (claim.statement_id, claim.part, claim.settings) == (*["p.fig1.faster"] * 2, "level: own (1, 1)")
    assert judge(claim, measured).verdict == "holds"
    with pytest.raises(ConfigError, match='axis "level" has no option "owm"'):
        paper.order("fig1.faster", "It is so.", difference, unit="ratio", options={"level": "owm"})
    near = paper("table1.x", unit="ratio").near("It is 2.", 2.0, difference, within=0.1, because="a tenth")
    assert (near.kind, near.tolerance, near.tolerance_reason) == ("near", 0.1, "a tenth")
    value = paper.value(
        "table1.y", "It is 2.50.", "2.50", difference, rival=3.0, repetitions=20, unit="ratio"
    )
    assert (value.published, value.precision, value.rival, value.repetitions) == (2.5, 0.005, 3.0, 20)


def test_sentences_give_their_claims_what_they_have_in_common():
    claims = {claim.id: claim for claim in planted_paper.claims().all()}
    one = claims["demo.table1.rate.sum-own"]
    assert (one.statement_id, one.place, one.sentence) == (
        *("demo.table1.rate", "Table 1, row 1", "Its rate is 0.53."),
    )
    held = claims["demo.table1.held.sum-own"]
    assert (one.main, one.fitted_on, held.fitted_on) == (True, FITTED_ON_IT, FITTED_ELSEWHERE)
    assert one.part == "demo.table1.rate" and "demo.table1.rate" in claims


def test_a_run_that_lacks_a_reading_says_which():
    with pytest.raises(NotMeasurableError, match="there is no run with reading = owm"):
        curves(history([1, 2], reading="own"), "gap", reading="owm")


def test_claims_know_no_paper():
    """Imports run one way: papers import claims, which import neither papers nor what those are made of."""
    allowed = {
        "replifed.claims",
        *(f"replifed.store.{module}" for module in ("atomic", "documents", "limits")),
        "replifed.errors",
        "replifed.intervals",
    }
    for file in Path(replifed.claims.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name.startswith("replifed"):
                    assert any(name == one or name.startswith(f"{one}.") for one in allowed), (
                        file.name,
                        name,
                    )
