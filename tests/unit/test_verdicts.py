"""Verdicts of families and on perturbed runs, claims' lines and files, and quantities on curves."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from known_runs import AllThere
from known_runs import curves as curves_of
from planted_paper import Runs, spread
from planted_paper import read as planted
from replifed.claims import tables
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim, Measured, NotMeasurableError
from replifed.claims.curves import curves, level, log_linear_fit, roughness, rounds_to, slowness
from replifed.claims.files import collect, read, show
from replifed.claims.quantities import run
from replifed.claims.samples import Sample
from replifed.claims.statements import Statements
from replifed.claims.units import UNITS
from replifed.claims.verdicts import COLUMNS, judge, measure
from replifed.errors import ConfigError, DataError
from replifed.intervals import mean_interval

made = partial(curves_of, every=2)


def claim(kind, measured=None, **more):
    more = {"id": "x", "paper": "p", "artefact": "fig1", "statement": "It holds.", **more}
    if kind == "near":
        more = {"published": 5.0, "tolerance": 1.5, "tolerance_reason": "a round number", **more}
    if kind == "value":
        more = {"published": 5.0, "precision": 0.05, **more}
    if kind == "shape":
        more = {"fails": "a False", **more}
    if kind == "order":
        more = {"tolerance": 0.1, "fewest": 1, **more}  # a few seeds show the other rules
    return Claim(kind=kind, measure=None if measured is None else lambda inputs: measured, **more)


# --- Intervals -----------------------------------------------------------------------------------


def test_interval_is_students():
    # t(0.975, 3) = 3.18245, from any table; the sample has mean 2.5 and variance 5/3.
    mean, low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert high - mean == pytest.approx(3.182446305 * math.sqrt(5 / 3) / 2, rel=1e-9)
    assert mean - low == pytest.approx(high - mean)
    assert mean_interval([3.0]) == (3.0, -math.inf, math.inf)
    assert mean_interval([0.1] * 7)[1:] == (pytest.approx(0.1, abs=1e-15),) * 2


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf, 1.0], [[1.0], [2.0]]])
def test_interval_refuses_what_has_none(values):
    with pytest.raises(ValueError, match="finite numbers"):
        mean_interval(values)


# --- Numbers beside a verdict, and families of tests -----------------------------------------------


def test_the_interval_beside_a_verdict_is_of_what_was_measured():
    def shown(kind, values, measured=(), **more):
        judged = judge(claim(kind, **more), Measured(np.array(values), **dict(measured)))
        return judged.measured, judged.low, judged.high

    assert shown("near", [33.0, 38.0, 37.0], {"alternatives": True}) == (36.0, 33.0, 38.0)
    assert shown("near", [35.0] * 3, {"grid": 4.0}) == (35.0, 31.0, 39.0)
    assert shown("order", [35.0] * 3, {"grid": 4.0}, published=30.0) == (35.0, 31.0, 39.0)
    assert shown("shape", [True, False]) == (0.5, None, None)
    assert shown("order", [1.0], {"shown": 7.0}) == (7.0, None, None)


def test_runs_on_one_data_set_are_no_repetitions_of_it():
    """Planted: ten runs on each of three data sets, which differ by more than their runs."""
    values = np.concatenate([spread(mean, 0.01, 10) for mean in (4.7, 5.1, 5.5)])
    apart = Measured(values, data_sets=np.repeat([1, 2, 3], 10))
    one = claim("value", published=5.7, rival=9.0)
    assert judge(one, Measured(values)).verdict == "holds"  # 5.1 +- .7
    low, high = judge(one, apart).predicted
    # Three means, as three values: t(.975, 2) = 4.303, sqrt(1 / 3 + 1).
    half = 4.303 * 0.4 * math.sqrt(4 / 3)
    assert (low, high) == (pytest.approx(5.1 - half, abs=0.1), pytest.approx(5.1 + half, abs=0.1))


def test_the_values_of_a_table_are_judged_together():
    """Planted: of twenty right values of a table one is off by what one in twenty is by chance."""
    off = claim("value", spread(5.24, 0.1), id="off", precision=0.005, rival=7.0)
    others = [claim("value", spread(5.0, 0.1), id=f"v{n}", rival=7.0) for n in range(19)]
    alone = measure([off], AllThere(), "paper").iloc[0]
    assert (alone["verdict"], alone["verdict_single"]) == ("fails", "fails")
    found = measure([off, *others], AllThere(), "paper").iloc[0]
    assert (found["verdict"], found["verdict_single"]) == ("holds", "fails")
    # The interval is wider by as much, and the rival has to lie outside of it.
    assert found["pi_high"] > alone["pi_high"]
    near = claim("value", spread(5.24, 0.1), id="off", precision=0.005, rival=found["pi_high"] - 0.01)
    assert measure([near, *others], AllThere(), "paper").iloc[0]["verdict"] == "inconclusive"


# --- Runs that depend on rounding -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "by", "expected"),
    [
        (5.0, 0.1, "holds"),
        (-5.0, 0.1, "fails"),
        (5.0, 4.0, "inconclusive"),  # a third of the distance is all but the gap
        (5.0, 9.0, "inconclusive"),  # a twin has it the other way round
        (1.05, 0.1, "inconclusive"),  # a twin's is below the least effect
    ],
)
def test_an_order_on_such_runs_is_told_where_twins_agree(mean, by, expected):
    """Planted: twins that agree and lie near, that lie too far, and that come out otherwise."""
    found = row(claim_on(planted(spread(mean, 0.5), by)), Runs())
    assert found["verdict"] == expected
    assert found["verdict_single"] != "inconclusive"
    assert "rounding" in (found["reason"] if expected == "inconclusive" else found["note"])


def claim_on(quantity):
    return Claim(
        id="x",
        paper="p",
        artefact="fig1",
        statement="It holds.",
        kind="order",
        tolerance=1.0,
        measure=quantity,
    )


def test_too_few_twins_tell_nothing():
    class Few(Runs):
        def with_perturbed(self):
            return [Part(), *Part().of_perturbed()]

    class Part(Runs):
        kept = 4

    def taken(inputs):
        values = spread(5.0, 0.5)[: getattr(inputs, "kept", None)]
        return Measured(values + 0.1 * inputs.moved, chaotic=not inputs.moved)

    assert row(claim_on(taken), Runs())["verdict"] == "holds"
    assert row(claim_on(taken), Few())["verdict"] == "inconclusive"
    Part.kept = 5
    assert row(claim_on(taken), Few())["verdict"] == "holds"


def test_twins_that_cannot_be_measured_decide_nothing():
    def reached(inputs):
        if inputs.moved:
            raise NotMeasurableError("no seed reached the threshold")
        return Measured(spread(5.0, 0.5), chaotic=True)

    found = row(claim_on(reached), Runs())
    assert found["verdict"] == "inconclusive" and found["measured"] == pytest.approx(5.0)
    assert found["twins"] == "" and "no perturbed runs to judge by" in found["reason"]


def test_a_number_has_its_spread_over_seeds_and_hangs_on_no_twin():
    shaken = Measured(spread(5.0, 0.1), chaotic=True)
    assert row(claim("value", shaken, rival=6.0, unit="rate"))["verdict"] == "holds"
    assert row(claim("near", shaken, unit="rate"))["verdict"] == "holds"
    assert row(claim("near", shaken, unit="rounds"))["verdict"] == "inconclusive"  # a count


def test_orders_are_corrected_over_the_family_that_was_declared():
    """Planted: of ten orders of one artefact one has p = .022, as one table in five has by chance."""
    lucky, none = [1.0, 0.9, 0.3, 0.5, 0.2], [1.0, -1.0, 0.5, -0.4, 0.0]
    family = [claim("order", none, id=f"n{n}") for n in range(9)]
    one = claim("order", lucky, id="lucky")
    alone = measure([one], AllThere(), "paper").iloc[0]
    assert alone["p_value"] == alone["p_holm"] == pytest.approx(0.02198, abs=1e-5)
    assert (alone["verdict"], alone["verdict_single"]) == ("holds", "holds")
    found = measure([one, *family], AllThere(), "paper").iloc[0]
    assert (found["p_value"], found["p_holm"]) == pytest.approx((alone["p_value"], 10 * alone["p_value"]))
    assert (found["verdict"], found["verdict_single"]) == ("inconclusive", "holds")
    # Other settings are another family; what was not measured belongs to the family all the same.
    # Step by step: the second smallest of two is compared with one order less.
    second = claim("order", [1.0, 0.9, 0.2, 0.5, 0.2], id="second")
    both = measure([one, second], AllThere(), "paper").set_index("id")
    assert both.loc["second", "p_holm"] == pytest.approx(2 * alone["p_value"])
    assert both.loc["second", "p_holm"] < 2 * both.loc["second", "p_value"]
    axes = Axes(Axis("step", "?", Option("own", "chosen", "a grid"), Option("other", "chosen", "as well")))
    others = [claim("order", none, id=f"o{n}", axes=axes, options={"step": "other"}) for n in range(9)]
    assert measure([one, *others], AllThere(), "paper").iloc[0]["verdict"] == "holds"
    missing = [claim("order", none, id=f"m{n}", needs=("run:a/m",)) for n in range(9)]
    found = measure([one, *missing], AllThere(missing=("run:a/m",)), "paper").iloc[0]
    assert found["p_holm"] == pytest.approx(10 * alone["p_value"])


def test_effect_and_direction():
    found = row(claim("near", [7.0, 7.2, 6.8]))
    assert (found["effect"], found["direction"]) == (pytest.approx(2.0), "above")
    assert row(claim("near", [5.5, 5.5]))["direction"] == "none"
    against = row(claim("order", [-1.0, -1.1, -0.9]))
    assert (against["effect"], against["direction"]) == (pytest.approx(-1.0), "against")
    assert row(claim("order", [1.0, 1.1, 0.9]))["direction"] == "as claimed"
    assert math.isnan(row(claim("shape", [True]))["effect"])


# --- Measurements and claims ---------------------------------------------------------------------


def row(one, inputs=None):
    return measure([one], inputs or AllThere(), "paper").iloc[0]


def test_row():
    found = row(claim("near", [4.9, 5.1, 5.0], needs=("run:sim/a", "run:sim/b"), note="so"))
    assert list(found.index) == list(COLUMNS)
    assert (found["verdict"], found["data"], found["scale"], found["seeds"]) == (
        "holds",
        "synthetic",
        "paper",
        3,
    )
    assert found["measured"] == pytest.approx(5.0)
    assert found["ci_low"] < 5 < found["ci_high"]
    assert found["note"] == "so; tolerance: a round number"
    for n, few in ((2, True), (19, True), (20, False)):
        note = row(claim("value", spread(5.0, 0.1, n), rival=9.0))["note"]
        assert (f"of {n} repetitions alone" in note) == few


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("original", "holds"),
        ("substitute", "holds"),
        ("synthetic", "holds"),
        ("surrogate", "unchecked"),
    ],
)
def test_only_surrogates_keep_a_claim_unchecked(kind, expected):
    found = row(claim("order", [1.0, 1.1, 0.9], needs=("run:mnist/a",)), AllThere(kind))
    assert (found["verdict"], found["data"]) == (expected, kind)
    assert found["measured"] == pytest.approx(1.0)  # measured all the same


def test_a_claim_is_as_good_as_its_worst_data():
    kinds = {"a": "synthetic", "b": "substitute", "c": "original"}
    found = row(claim("identity", [True], needs=("run:a/m", "run:b/m", "tuned:c/m")), AllThere(kinds))
    assert found["data"] == "substitute"
    found = row(
        claim("identity", [True], needs=("run:a/m", "partition:d")), AllThere({**kinds, "d": "surrogate"})
    )
    assert (found["data"], found["verdict"]) == ("surrogate", "unchecked")


def test_what_a_cut_down_run_cannot_answer_is_unchecked():
    def impossible(inputs):
        raise NotMeasurableError("only one K was run")

    one = Claim(
        id="x", paper="p", artefact="a", statement="s", kind="order", measure=impossible, tolerance=1.0
    )
    found = row(one)
    assert (found["verdict"], found["seeds"]) == ("unchecked", 0)
    assert "only one K" in found["reason"]
    assert math.isnan(found["measured"])


def test_doubled_ids_are_refused():
    with pytest.raises(ValueError, match="same id: x"):
        measure([claim("shape"), claim("shape")], AllThere(), "paper")


# --- Files ---------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    def write(name, *claims):
        path = tmp_path / name
        measure(claims, AllThere(), "small").to_csv(
            path, index=False, float_format="%.12g", lineterminator="\n"
        )
        return path

    a = write(
        "a.csv",
        claim("near", [5.0, 5.0], id="a1", paper="a", unit="rounds"),
        claim(
            "order", [-1.0, -1.1, -0.9], id="a2", paper="a", statement='Said "so", and more', note="because"
        ),
    )
    b = write("b.csv", claim("shape", id="b1", paper="b"), claim("order", [1.0, -1.0], id="b2", paper="b"))
    return a, b


def test_collect(files, tmp_path):
    out = tmp_path / "claims.csv"
    collect(files, out)
    rows = read(out)
    assert [row["id"] for row in rows] == ["a1", "a2", "b1", "b2"]
    assert [row["verdict"] for row in rows] == ["holds", "fails", "unchecked", "inconclusive"]
    assert rows[1]["statement"] == 'Said "so", and more'
    assert rows[2]["measured"] == ""
    assert [row["unit"] for row in rows] == ["rounds", "", "", ""]
    assert tuple(pd.read_csv(out).columns) == COLUMNS
    first = out.read_bytes()
    collect([out], out)
    assert out.read_bytes() == first


def test_a_file_from_before_reasons_had_a_column_is_read(files, tmp_path):
    rows = read(files[0])
    without = [{name: text for name, text in row.items() if name != "reason"} for row in rows]
    tables.write(tmp_path / "older.csv", list(without[0]), without)
    assert read(tmp_path / "older.csv") == [row | {"reason": ""} for row in without]
    assert all(row["reason"] for row in rows)


def test_collect_refuses_doubles_and_strangers(files, tmp_path):
    with pytest.raises(DataError, match="two claims are called a1"):
        collect([files[0], files[0]], tmp_path / "out.csv")
    (tmp_path / "other.csv").write_text("id,verdict\nx,fine\n")
    with pytest.raises(DataError, match="holds no claims"):
        collect([tmp_path / "other.csv"], tmp_path / "out.csv")
    damaged = tmp_path / "damaged.csv"
    damaged.write_text(files[0].read_text() + "a3,a\n")
    with pytest.raises(DataError, match="damaged"):
        collect([damaged], tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_show(files, tmp_path, capsys):
    collect(files, tmp_path / "claims.csv")

    def shown(**chosen):
        show(read(tmp_path / "claims.csv"), **chosen)
        return capsys.readouterr().out

    everything = shown(everything=True)
    assert "4 claims: 1 holds, 1 fails, 1 inconclusive, 1 unchecked" in everything
    assert "4 statements: 1 reproduced (1 not stated), 0 conditional, 1 deviates," in everything
    assert "of 2 orders 0 hold; if no method were better, 0.1 would hold by chance" in everything
    assert "\033" not in everything
    assert "a1" not in shown(verdict="fails") and "a1" not in shown(verdict="deviates")
    assert "a1" in shown(verdict="reproduced") and "a2" not in shown(verdict="reproduced")
    assert "2 claims: 1 holds, 1 fails" in shown(paper="a", everything=True)
    for wrong, said in (
        ({"verdict": "deviate"}, r"did you mean 'deviates'.*conditional.*holds"),
        ({"paper": "c"}, "unknown paper 'c'"),
    ):
        with pytest.raises(ConfigError, match=said):
            shown(**wrong)


# --- Measures on curves --------------------------------------------------------------------------


def test_rounds_to():
    targets = Sample([2.0, 2.0, 4.0], seeds=[1, 2, 3])
    curve = made([8, 4, 2, 1], [8, 7, 6, 5], [8, 4, np.inf, np.inf])
    reached = rounds_to(curve, targets, touch=True)
    assert reached.values.tolist() == [4, 6, 2]
    assert reached.bounds.tolist() == [0, 1, 0]
    assert reached.below.tolist() == [2, 2, 2]  # between two records


def test_a_target_is_reached_by_a_curve_that_stays_there():
    """Planted: a run that touches a target and ends above it."""
    touched, stayed, late = [8, 1, 8, 8, 8, 8], [8, 1, 8, 2, 1, 1], [8, 8, 8, 8, 8, 1]
    reached = rounds_to(made(touched, stayed, late), 2.0)
    assert (reached.values.tolist(), reached.bounds.tolist()) == ([10, 6, 10], [1, 0, 1])
    assert rounds_to(made(touched, stayed, late), 2.0, touch=True).values.tolist() == [2, 2, 10]
    noisy = rounds_to(made([8, 1, 1, 3, 1, 1]), 2.0), rounds_to(made([8, 1, 1, 3, 1, 1]), 2.0, window=3)
    assert [one.values.tolist() for one in noisy] == [[8], [6]]


def test_slowness():
    one = made([10, 5, 0, 0], [10, 10, 10, 10], [10, np.inf, np.inf, np.inf], [10, 0, 0, 0])
    np.testing.assert_allclose(slowness(one).values, [1.5 / 4, 1, 1, 0.25])


def test_roughness_ignores_the_trend():
    t = np.arange(40.0)
    rng = np.random.default_rng(0)
    smooth, noisy = 100 - t, 100 - t + rng.standard_normal(40)
    found = roughness(made(smooth, noisy), 8).values
    assert found[0] == pytest.approx(0, abs=1e-10)
    assert 0.3 < found[1] < 3


def test_level_is_infinite_for_the_diverged():
    assert level(made([4, 3, 2, 1], [4, 5, np.inf, np.inf])).values.tolist() == [1, np.inf]


def test_log_linear_fit():
    t = np.arange(20) * 2
    rng = np.random.default_rng(0)
    straight, bent = 0.5**t, 1.0 / (1 + t) ** 4
    noisy = straight * np.exp(3 * rng.standard_normal(20))
    factor, r2 = (fitted.values for fitted in log_linear_fit(made(straight, bent, noisy)))
    assert factor[0] == pytest.approx(0.5)
    assert r2[0] == pytest.approx(1)
    assert r2[1] < 0.9
    assert 0.7 < r2[2] < 0.99


# --- Copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "seen"), [(0.0, "inconclusive"), (1e-8, "inconclusive"), (1e-2, "holds")])
def test_an_order_on_copies_of_one_run_is_not_told(noise, seen):
    """Twenty seeds that draw nothing are one run, whose difference has neither p nor interval."""

    class Copies(AllThere):
        def run(self, experiment, method):
            t = np.arange(40)
            gaps = {"slow": 0.9**t, "fast": 0.7**t}[method]
            frames = [
                pd.DataFrame({"replicate": seed, "round": t, "gap": gaps * (1 + noise * rng.random(40))})
                for seed in range(20)
            ]
            return pd.concat(frames)

    rng = np.random.default_rng(1)
    slow, fast = (rounds_to(curves(run("a", name), "gap"), 1e-1) for name in ("slow", "fast"))
    order = Statements("p")("x", artefact="fig1").order("It is faster.", slow - fast, least=0.1, because="b")
    row = measure([order], Copies(), "paper").iloc[0]
    assert row["verdict"] == seen
    if noise < 1e-3:
        assert row[["p_value", "ci_low", "ci_high"]].isna().all() and row["seeds"] == 1
        assert "20 equal runs" in row["note"]
    else:
        assert row["p_value"] < 1e-6 and row["seeds"] == 20


@pytest.mark.parametrize(("runs", "seen"), [(4, "inconclusive"), (5, "holds")])
def test_copies_count_once_where_seeds_are_left_out_and_whatever_their_twins(runs, seen):
    """A measure leaves out one run with its four copies; each seed has perturbed runs of its own."""
    rng, t = np.random.default_rng(2), np.arange(40)

    class Copies(AllThere):
        def run(self, experiment, method):
            frames = [
                pd.DataFrame({"replicate": seed, "round": t, "gap": 0.9**t * (1 + seed // 4)})
                for seed in range(4 * (runs + 1))
            ]
            return pd.concat([one.assign(**{"gap.of_start": rng.random(40)}) for one in frames])

    kept = np.arange(4, 4 * (runs + 1))
    sample = Sample(5.0 + 0.1 * (kept // 4), seeds=kept)
    order = replace(claim_on(lambda inputs: sample.measured()), needs=("run:a/slow", "run:a/fast"))
    row = measure([order], Copies(), "paper").iloc[0]
    assert row["verdict"] == seen and row["seeds"] == runs


@pytest.mark.parametrize(
    ("values", "bounds", "said"),
    [
        ([], (), "finite|lists"),
        ([math.nan, 1.0], (), "finite|lists"),
        ([math.inf], (), "finite|lists"),
        ([[1.0]], (), "finite|lists"),
        ([1.0], [2], "-1, 0 or 1"),
        ([1.0], [0, 0], "one length"),
    ],
)
def test_measurements_are_finite_and_their_bounds_are_checked(values, bounds, said):
    with pytest.raises(ValueError, match=said):
        Measured(np.array(values), *([np.array(bounds)] if len(bounds) else []))


@pytest.mark.parametrize(
    ("kind", "faulty", "said"),
    [
        ("near", {"published": None}, "needs"),
        ("near", {"tolerance": None}, "needs"),
        ("near", {"tolerance": -1.0}, "needs"),
        ("near", {"tolerance": math.nan}, "needs"),
        ("near", {"tolerance_reason": ""}, "needs"),
        ("near", {"unit": "furlongs"}, "unknown unit 'furlongs'"),
        ("value", {}, "a tolerance or a rival"),
        ("value", {"rival": 6.0, "precision": 0.0}, "printed precision"),
        ("order", {"tolerance": None, "unit": "distance"}, "needs a least effect"),
        ("shape", {"unit": "rounds"}, "has no unit"),
        ("ordr", {}, "unknown kind"),
    ],
)
def test_a_claim_that_lacks_what_decides_it_is_refused(kind, faulty, said):
    with pytest.raises(ConfigError, match=said):
        claim(kind, [1.0], **faulty)


def test_the_least_effect_of_a_unit_is_known():
    assert claim("order", [1.0, 1.0], tolerance=None, unit="rate").tolerance == UNITS["rate"].effect
