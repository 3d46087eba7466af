"""What the FedMM paper's layer makes of small runs: histories, figures, tables, claims and errata."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.sa_ssmm import SaSsmm
from replifed.claims import scores
from replifed.claims.claim import NotMeasurableError
from replifed.claims.curves import Curves, first
from replifed.claims.multiplicity import p_value
from replifed.claims.samples import Sample
from replifed.claims.verdicts import described, judge, measure
from replifed.data.catalogue import get
from replifed.data.surrogates import generate
from replifed.data.table import Table
from replifed.engine.search import Grid
from replifed.engine.simulate import simulate
from replifed.engine.trials import Trials
from replifed.errors import DataError
from replifed.papers import jobs
from replifed.papers.fedmm import experiments, measures
from replifed.papers.fedmm.claims import CLAIMS
from replifed.papers.fedmm.figures import FIGURES, TABLES
from replifed.papers.fedmm.paper import SHORTER, best_asked
from replifed.papers.fedmm.problems import (
    dictionary_problem,
    em_problem,
    sparse_signals,
    transport_problem,
)
from replifed.papers.fedmm.settings import ExpectationMaximisation
from replifed.papers.inputs import Inputs
from replifed.parts import typed
from replifed.randomness import Streams
from replifed.settings import checks as config
from replifed.settings.needs import artefact_keys
from replifed.store.histories import read_tuned
from small_tables import columns

ROOT = Path(__file__).parents[2]
# MovieLens needs its file, and one dimension of transport shows what the others would.
DATA = ("movielens", "movielens_random")
LEFT_OUT = ("shorter_movielens", *DATA, *(f"variates_{name}" for name in DATA), "transport_4", "transport_8")
CUT = {
    "dictionary": {"samples": 80, "clients": 4, "features": 6, "atoms": 3, "rounds": 8, "replicates": [1, 2]},
    "em": {"samples": 60, "clients": 3, "batch": 5, "rounds": 8, "replicates": [1, 2]},
    "toy": {},
    "transport": {
        "samples": 60,
        "clients": 3,
        "batch": 8,
        "server_batch": 8,
        "server_steps": 2,
        "start_steps": 5,
        "rounds": 4,
        "record_every": 2,
        "replicates": [1, 2],
    },
}


@pytest.fixture(scope="module")
def section():
    """The paper's settings, cut down; MovieLens left out."""
    whole = copy.deepcopy(config.load(root=ROOT)["fedmm"])
    for settings in whole["experiments"].values():
        settings |= CUT.get(settings["problem"], {})
        settings["seed"] = whole["seed"]
        if settings["problem"] == "dictionary":
            settings |= {
                "record_every": 1,
                "batches": [None if b is None else 5 for b in settings["batches"][-1:]],
            }
        if settings["problem"] == "em":
            settings["record_every"] = 1
        if "tuning" in settings:
            settings["tuning"] = {**settings["tuning"], "replicates": [101], "rounds": 4}
    return whole


class Made(Inputs):
    """Runs made on demand instead of files."""

    def __init__(self, section):
        super().__init__({}, section, "fedmm")
        self.section, self.made, self.run = section, {}, self._run

    def of(self, **artefact):
        """The same runs, as those of an artefact that reads the experiments `runs` and `tuned`."""
        kept = {
            kind: {name: methods for name, methods in read.items() if name not in LEFT_OUT}
            for kind, read in artefact.items()
        }
        seen = copy.copy(self)
        seen._files = dict.fromkeys(artefact_keys(kept))
        return seen

    def has(self, key):
        return not any(name in key for name in LEFT_OUT)

    def data_kind(self, experiment):
        return "synthetic", ""

    def tuned(self, experiment, method):
        return self._make("tune", experiment, method)

    def _run(self, experiment, method):
        return self._make("run", experiment, method)

    def _make(self, step, experiment, method):
        key = step, experiment, method
        if key not in self.made:
            settings, table = self.section["experiments"][experiment], None
            if settings["problem"] == "transport":
                table = Table(*generate(get(settings["dataset"])), {})
            choice, more = (), {}
            if step == "run":
                choice = (self.tuned(experiment, method) if "tuning" in settings else None,)
            elif method != settings["tuning"].get("leader", method):
                more["leader"] = {**self.tuned(experiment, settings["tuning"]["leader"]), "meta": {}}
            self.made[key] = getattr(experiments, step)(
                method, typed("fedmm", settings), *choice, table, None, **more
            )
        return self.made[key]


@pytest.fixture(scope="module")
def made(section):
    return Made(section)


@pytest.mark.parametrize("name", ["fig1", "fig1_common", "fig1_shorter", "fig2", "fig3", "em"])
def test_figures_have_tables_as_those_from_which_they_are_drawn(name, section, made):
    frame = FIGURES[name].table(made.of(runs=section["artefacts"][name]["runs"]))
    assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()
    assert set(frame) == columns("fedmm", name)


def test_the_table_of_remark_1_is_written(section, made):
    frame = TABLES["remark1"].table(made.of(runs=section["artefacts"]["remark1"]["runs"]))
    assert len(TABLES["remark1"].show(frame)) >= 4


@pytest.mark.parametrize("experiment", ["synthetic_homogeneous", "synthetic_heterogeneous"])
def test_methods_run_at_their_own_step_and_at_fedmms(experiment, made):
    chosen = {method: made.tuned(experiment, method) for method in ("fedmm", "parameter_aggregation")}
    again = {key: value for key, value in chosen["fedmm"].items() if key != "method"}
    assert chosen["parameter_aggregation"]["common"] == again
    leader = chosen["fedmm"]["beta"]
    for method, found in chosen.items():
        assert experiments.tuned_betas(found) == {"own": found["beta"], "common": leader}
        history = made.run(experiment, method)
        assert set(history["beta"]) == {found["beta"], leader}
        assert set(history["replicate"]) == {1, 2}
        assert found["trials"]["replicates"] == [101]
        assert found["beta"] in found["betas"]


def test_steps_are_refined_and_held_against_twins_up_to_where_gamma_is_1_in_every_round(section, monkeypatch):
    asked, of_steps = [], Grid.of_steps
    monkeypatch.setattr(Grid, "of_steps", lambda *a, **more: asked.append((a, more)) or of_steps(*a, **more))
    monkeypatch.setattr(Trials, "stable", lambda trials, algorithm, searches: np.zeros(len(searches), bool))
    settings = typed("fedmm", section["experiments"]["synthetic_homogeneous"])
    found = experiments.tune("fedmm", settings, None, None)
    assert found["highest"] == 2.0  # the root of four rounds
    assert asked == [((settings.tuning.betas, settings.tuning.refine), {"bounds": ((0.0, 2.0),)})]
    assert found["chaotic"]  # planted: no step is stable


def test_the_inferred_settings_answer_all_sentences():
    """Planted: all claims hold."""
    rows = [
        {key: "" if value is None else str(value) for key, value in described(claim).items()}
        | {"verdict": "holds", "data": "original", "p_holm": "0"}
        for claim in CLAIMS
    ]
    assert {one["statement_id"] for one in scores.statements(rows) if one["inferred"] != "holds"} == set()


def test_a_shorter_range_ends_above_the_best_step_of_all():
    """Of a search from 0.3, 1 and 3 that went on to smaller steps; a step may have diverged."""
    whole = config.load(root=ROOT)["fedmm"]["experiments"]
    found = {"betas": [0.03, 0.1, 0.3, 1.0, 3.0], "scores": [6.9, 8.9, 11.0, 11.2, None], "beta": 0.03}
    settings = typed("fedmm", {"seed": 1, **whole["synthetic_heterogeneous"]})
    assert best_asked(found, settings) == 0.3
    assert best_asked(found | {"scores": [6.9, 8.9, 11.0, 4.0, None]}, settings) == 1
    for data, runs in SHORTER.items():
        kept = ("tuning", "methods", "replicates", "betas")
        one, other = ({k: v for k, v in whole[name].items() if k not in kept} for name in (data, runs))
        assert one == other
        assert whole[runs]["betas"] == [0.3]


@pytest.mark.parametrize(("scores", "missing"), [([1.0, 2.0], False), ([2.0, 1.0], True)])
def test_the_shorter_range_is_told_of_runs_at_its_best_step_alone(scores, missing, made):
    class Planted(Made):
        def tuned(self, experiment, method):
            return {**made.tuned(experiment, method), "betas": [0.3, 1.0], "scores": scores, "beta": 0.3}

    name = "fedmm.fig1.synthetic_heterogeneous.diverges.0.3-to-3"
    frame = measure([claim for claim in CLAIMS if claim.id == name], Planted(made.section), "tiny")
    assert frame["reason"].str.contains("not measured: there is no run").tolist() == [missing]


def test_experiments_without_tuning_run_all_their_steps(section):
    settings = {**section["experiments"]["variates_heterogeneous"], "betas": [0.3, 1, 3]}
    history = experiments.run("fedmm", typed("fedmm", settings), None, None, None)
    assert set(history["beta"]) == {0.3, 1, 3}


def test_repetitions_of_transport_draw_their_own_samples(section):
    settings = typed("fedmm", section["experiments"]["transport_2"])
    table = Table(*generate(get(settings.dataset)), {})
    problem = transport_problem(settings, table, [1, 101, 1])
    # The true map is one for all, so equal points have equal images.
    np.testing.assert_array_equal(problem._images[0], problem._images[2])
    for points in (problem._sources, problem._targets):
        mine, others = (set(map(tuple, own.reshape(-1, 2))) for own in points[:2])
        assert not mine & others
    assert 0.9 < problem._variance[0] / problem._variance[1] < 1.1


@pytest.mark.parametrize("twinned", [None, [3], [2, 3], []])
@pytest.mark.parametrize("method", ["fedmm_ot", "fedadam"])
def test_repetitions_of_transport_side_by_side_are_those_alone(method, twinned, section):
    shorter = {"rounds": 3, "record_every": 1, "start_steps": 2, "batch": 16, "server_batch": 8}
    asked = {**section["experiments"]["transport_2"], **shorter, "twin_replicates": twinned}
    table = Table(*generate(get(asked["dataset"])), {})

    def run(replicates):
        settings = typed("fedmm", {**asked, "replicates": replicates})
        return experiments.run(method, settings, None, table, None)

    found = run([1, 2, 3])
    assert len(found) == 3 * 4
    for replicate, history in found.groupby("replicate"):
        alone = run([replicate]).drop(columns="linear_uvp")
        pd.testing.assert_frame_equal(history[alone.columns].reset_index(drop=True), alone)


@pytest.mark.parametrize("hangs", ["fedmm_ot", "fedadam"])
def test_adversarial_training_that_hangs_on_rounding_tells_no_order(hangs, made):
    """Whichever of the two methods it is, and although one repetition alone has twins."""
    wanted = [replace(claim, fewest=1) for claim in CLAIMS if claim.id == "fedmm.fig3.d2.better.per-round"]
    lower = {"fedmm_ot": 1.0, "fedadam": 2.0}

    class Planted(Made):
        def _run(self, experiment, method):
            history = made.run(experiment, method)
            noise = 1 + 0.01 * np.arange(len(history))
            chaotic = (history["replicate"] == 1) & (method == hangs and self.chaos)
            return history.assign(uvp=lower[method] * noise, chaotic=chaotic)

    for chaos, verdict in ((False, "holds"), (True, "inconclusive")):
        planted = Planted(made.section)
        planted.chaos = chaos
        assert set(measure(wanted, planted, "tiny")["verdict"]) == {verdict}


def test_transport_runs_beside_twins_say_whether_they_hang_on_rounding(made):
    """Adam divides by the gradient's size, so in single precision they part within a few rounds."""
    history = made.run("transport_2", "fedadam")
    perturbed = made.section["experiments"]["transport_2"]["twin_replicates"]
    assert set(perturbed) < set(history["replicate"])
    assert (history["chaotic"] == history["replicate"].isin(perturbed)).all()


def test_claims_say_what_seeds_share():
    shared = {claim.id: claim.shared for claim in CLAIMS}
    assert {name for name, what in shared.items() if what} == {n for n in shared if "movielens" in n}


def test_the_search_of_transport_steps_leaves_its_curve(made):
    found = made.tuned("transport_search_2", "fedadam")
    scores = [np.inf if score is None else score for score in found["scores"]]
    assert found["step"] == found["steps"][int(np.argmin(scores))]
    assert found["steps"] == sorted(found["steps"])
    # After four rounds no step has helped yet, and which of the smallest is best is rounding's choice.
    assert set(made.section["experiments"]["transport_search_2"]["tuning"]["steps"]["fedadam"]) <= set(
        found["steps"]
    )


def test_claims_are_measured(made):
    frame = measure(CLAIMS, made, "tiny")
    assert len(frame) == len(CLAIMS)
    # A search of four rounds need not end where the shorter range does.
    frame = frame[~frame["id"].str.contains("0.3-to-3")]
    left_out = frame["reason"].str.contains("not measured")
    assert (left_out == frame["id"].str.contains("movielens|fig3.d4|fig3.d8")).all()
    identities = frame[(frame["kind"] == "identity") & ~left_out]
    assert identities["verdict"].isin(["holds"]).all()


def test_what_is_lost_is_an_option_of_a_reading_and_no_other_claim():
    """Of Figure 2 in half and a tenth of the clients, with two alphas: one part each, in four readings."""
    of = [claim for claim in CLAIMS if claim.part == "fedmm.fig2.heterogeneous.surrogate"]
    assert {(claim.options["alpha"], claim.options["cohort"]) for claim in of} == {
        ("0.5", "half"),
        ("0.5", "tenth"),
        ("0.1", "half"),
        ("0.1", "tenth"),
    }
    assert {claim.axes.names(claim.options) for claim in of} == {"inferred", ""}
    for claim in of:
        alpha, share = claim.options["alpha"], {"half": 0.5, "tenth": 0.1}[claim.options["cohort"]]
        read = str(claim.expression)
        assert f"('alpha', {alpha})" in read and f"('participation', {share})" in read
    # Orders of all of them are corrected together.
    assert len({claim.family for claim in of}) == 1


def test_synthetic_data_are_as_described(section):
    settings = typed("fedmm", section["experiments"]["synthetic_heterogeneous"])
    Z = sparse_signals(settings.with_(nonzeros=0.34), 1)
    assert Z.shape == (80, 6)
    # One code a sample: every sample is a multiple of one of three atoms.
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    assert len(np.unique(np.abs(unit[:, 0]).round(8))) == 3
    unlike = dictionary_problem(settings, [1, 2], None, None)
    alike = dictionary_problem(settings.with_(heterogeneous=False), [1, 2], None, None)
    assert unlike.Z.shape == (2, 4, 20, 6)
    assert alike.Z.shape == (2, 1, 80, 6)
    # The same samples and the same start, so the same objective and the same first surrogate.
    np.testing.assert_allclose(unlike.loss(unlike.theta0), alike.loss(alike.theta0), rtol=1e-12)
    streams = Streams(1, (1, 2))
    np.testing.assert_allclose(unlike.start(streams), alike.start(streams), atol=1e-12)
    means = unlike.Z.mean(axis=2)
    assert means.var(axis=1).sum() > 3 * alike.Z.reshape(2, 4, 20, 6).mean(axis=2).var(axis=1).sum()


def by_hand(*values, first=0):
    """Curves of several seeds."""
    values = np.array(values, float)
    return Curves(first + np.arange(values.shape[1]), np.arange(len(values)), values)


def of_id(name):
    return next(claim for claim in CLAIMS if claim.id == f"fedmm.{name}")


def test_a_mean_curve_counts_and_not_most_of_the_seeds():
    # One seed in ten falls from 130 to 0, the others rise by a half: so does their rule, and the mean falls.
    early, late = Sample(np.array([130.0] + [0.02] * 9)), Sample(np.array([0.0] + [0.03] * 9))
    fall = measures.log_mean(early) - measures.log_mean(late)
    assert fall.mean == pytest.approx(np.log(early.mean / late.mean))
    assert (early.values > late.values).mean() == 0.1
    # Of one mean alone: the interval of a mean's logarithm, to first order.
    spread = measures.log_mean(early).values.std(ddof=1)
    assert spread == pytest.approx(early.values.std(ddof=1) / early.mean)
    with pytest.raises(NotMeasurableError, match="diverged"):
        measures.log_mean(Sample(np.array([1.0, np.inf])))


def test_skewed_seeds_are_no_order_of_their_means():
    """Of two means that are equal, one of skewed values: most seeds are on one side, and tell nothing."""
    skewed = measures.log_mean(Sample(np.array([0.1] * 36 + [9.1] * 4)))
    even = measures.log_mean(Sample(np.tile([0.97, 1.03], 20)))
    order = of_id("fig1.synthetic_heterogeneous.naive_faster.own")
    judged = judge(order, (even - skewed + 0.06).measured())
    assert (judged.verdict, judged.p_value > 0.5) == ("inconclusive", True)
    assert judge(order, replace((even - skewed + 0.06).measured(), of_mean=False)).p_value < 0.01


DRAWN = [*range(20), *range(20, 101, 10)]
METHODS_OF_FIG1 = ("fedmm", "parameter_aggregation")


def history_by_hand(rounds, update):
    lines = [(seed, t, 1.0, update(seed, t)) for seed in range(6) for t in rounds]
    return pd.DataFrame(lines, columns=["replicate", "round", "objective", "surrogate_update"])


def test_the_transient_counts_and_a_coarse_record_is_refused():
    """A fall within the first rounds, after which noise is left, is a fall of the curve."""

    def update(seed, t):
        return 13.1 / t**2 + 0.06 + 0.001 * seed if t else 0.0

    whole = measures.columns(history_by_hand(range(101), update), "surrogate_update")
    assert whole.rounds[0] == 1
    assert measures.decay(whole).mean > 3
    # What the first rounds hold is not lost where later ones are recorded seldom, or not at all.
    lines = history_by_hand(range(101), update)
    seldom = lines.assign(surrogate_update=lines["surrogate_update"].where(lines["round"].isin(DRAWN)))
    thin = measures.columns(seldom, "surrogate_update")
    assert list(thin.rounds) == DRAWN[1:]
    assert measures.decay(thin).mean == pytest.approx(measures.decay(whole).mean, rel=1e-3)
    late = (measures.late_decay(one).mean for one in (thin, whole))
    assert next(late) == pytest.approx(next(late), rel=0.05)
    with pytest.raises(NotMeasurableError, match="not every one of the first rounds"):
        measures.columns(history_by_hand(range(0, 101, 10), update), "surrogate_update")


def test_a_mean_over_rounds_takes_a_record_for_those_before_it():
    curve = Curves(np.array([1, 2, 3, 4, 10, 20]), np.arange(1), np.array([[8.0, 6, 4, 2, 1, np.inf]]))
    assert measures.over(curve, 0.0, 0.5).values == pytest.approx([(8 + 6 + 4 + 2 + 6 * 1) / 10])
    assert measures.over(curve, 0.15, 0.4).values == pytest.approx([(2 + 4 * 1) / 5])
    assert np.isinf(measures.level(curve).values)
    few = Curves(np.arange(1, 6), np.arange(1), np.array([[8.0, 6, 4, 2, 1]]))
    assert [measures.over(few, *part).values[0] for part in ((0, 0.1), (0.1, 0.2), (0.9, 1))] == [8, 8, 1]


def test_what_codes_all_samples_is_recorded_when_it_is_drawn(section):
    settings = typed("fedmm", section["experiments"]["synthetic_heterogeneous"])
    settings = settings.with_(rounds=33, record_every=1, replicates=[1], tuning=None, betas=[1.0])
    every, seldom = (
        {m: experiments.run(m, settings.with_(objective_every=n), None, None, None) for m in METHODS_OF_FIG1}
        for n in (1, 10)
    )
    drawn = [*DRAWN[:22], 33]
    for method, frame in seldom.items():
        costly = {"objective"} | ({"surrogate_update"} if method == "parameter_aggregation" else set())
        for name in ("objective", "surrogate_update", "parameter_update"):
            there = frame[name].notna()
            assert list(frame["round"][there]) == (drawn if name in costly else list(range(34)))
            np.testing.assert_allclose(frame[name][there], every[method][name][there], rtol=1e-9)


def test_a_rise_is_that_of_the_mean_from_its_lowest_before():
    assert measures.rise(by_hand([3, 2, 2.5, 1], [3, 2, 2.5, 1])).mean == pytest.approx(np.log(2.5 / 2))
    assert measures.rise(by_hand([3, 2, 2.5, 1], [3, 2, 2.5, 1]), at_end=True).mean == 0
    up = measures.rise(by_hand([3, 2, 1, 1.1], [3, 2, 1, 1.1]), at_end=True)
    assert up.mean == pytest.approx(np.log(1.1))
    with pytest.raises(NotMeasurableError, match="one seed"):
        measures.rise(by_hand([3, 2, 1, 1.1]), at_end=True)
    # One seed goes up where the other goes down by more: the mean is monotone.
    assert measures.rise(by_hand([3, 2, 1], [1, 1.1, 1.2])).mean == 0
    low = measures.rise(by_hand([3, 2.9, 2.5], [3, 2.7, 2.8])).mean
    assert low == 0
    monotone = of_id("fig1.synthetic_homogeneous.monotone.own")
    jumping = measures.rise(by_hand(*([3.0, 2.0, 2.0 + 0.4 * (seed == 9)] for seed in range(10))))
    assert judge(monotone, jumping.measured()).verdict == "inconclusive"
    rising = measures.rise(by_hand(*([3.0, 2.0, 2.1 + 0.001 * seed] for seed in range(10))))
    assert judge(monotone, rising.measured()).verdict == "fails"


def test_a_noisy_curve_that_does_not_rise_does_not_diverge():
    """Planted: the last round of a stationary curve, above the lowest of all by selection alone."""
    curves = np.exp(0.2 * np.random.default_rng(0).normal(size=(100, 20, 200)))
    told = [p_value(measures.rise(by_hand(*one), at_end=True).values, of_mean=True) for one in curves]
    assert np.mean(np.array(told) < 0.05) < 0.15


def test_no_effect_is_asked_for_where_mean_curves_are_farthest_apart():
    one, two = by_hand([4, 3, 2], [4, 5, 2]), by_hand([4, 4, 1.9], [4, 4, 1.9])
    assert measures.farthest(one, two).mean == pytest.approx(np.log(2 / 1.9))
    assert measures.farthest(two, one).mean == pytest.approx(np.log(1.9 / 2))
    assert measures.farthest(one, one).mean == 0


def test_the_rate_is_the_fall_after_the_first_tenth():
    """Both fall alike at first; the one stays where it is, the other falls on."""
    t = np.arange(1, 101)
    stays, falls = (by_hand(*[np.maximum(1 / t, floor)] * 2, first=1) for floor in (0.1, 0.0))
    assert measures.late_decay(stays).mean == pytest.approx(0)
    wanted = np.log((1 / t[10:20]).mean() / (1 / t[90:]).mean())
    assert measures.late_decay(falls).mean == pytest.approx(wanted)


def test_an_update_that_is_back_at_its_start_has_not_diverged():
    """Planted: one that falls to a third and comes back, and one that ends above its start."""
    claim = of_id("fig1.synthetic_homogeneous.naive_surrogate.own")
    t, noise = np.arange(1, 101), np.random.default_rng(0).normal(size=(10, 100))
    back = np.exp(np.log(1 / 3) * np.sin(np.pi * np.minimum(t, 90) / 90) + 0.1 * noise)
    for curve, verdict in ((back, "inconclusive"), (back * (1 + 2 * (t > 80)), "holds"), (1 / t, "fails")):
        rows = curve * np.exp(0.01 * noise)
        fall = measures.decay(by_hand(*rows, first=1), first)
        assert judge(claim, (-fall).measured()).verdict == verdict


def test_a_curve_that_starts_below_may_fall_by_less():
    """Lower at first and beaten in the end, as MovieLens' curves: "faster" as a fall says the opposite."""
    t = np.arange(1, 101)
    ours, theirs = (by_hand(*[a * t**-b] * 3, first=1) for a, b in ((20, 0.35), (120, 0.9)))
    assert measures.lower_at_first(ours, theirs).mean > 0
    assert (measures.early_decay(ours) - measures.early_decay(theirs)).mean < 0
    assert measures.level(ours).mean > measures.level(theirs).mean


def test_unrest_is_gained_late_and_a_steep_start_is_none():
    t, noise = np.arange(90), np.random.default_rng(0).normal(size=(4, 90))
    steep = np.exp(-t / 5.0 + 0.5 * noise * (t >= 60))
    assert (measures.roughness_gain(by_hand(*steep)).values > 0.3).all()
    assert (measures.roughness_gain(by_hand(*steep[:, ::-1])).values < -0.3).all()
    assert np.abs(measures.roughness_gain(by_hand(np.exp(-t / 5.0))).values).max() < 1e-12
    # Of rounds as far apart as the last ones: the first rounds, recorded one by one, are no unrest.
    kept = np.unique([*range(7), *range(0, 90, 3)])
    thin = Curves(kept, np.arange(4), steep[:, kept])
    even = by_hand(*steep[:, ::3])
    assert measures.roughness_gain(thin).values == pytest.approx(measures.roughness_gain(even).values)


def test_equal_work_is_equal_or_refused():
    def uvp(cost, slope):
        lines = [(seed, t, t * cost, 20 - slope * t) for seed in (1, 2) for t in range(11)]
        return pd.DataFrame(lines, columns=["replicate", "round", "sample_gradients", "uvp"])

    lower = measures.at_equal_gradients(uvp(5, 1.0), uvp(4, 0.5))
    assert "FedMM-OT after 8 rounds, FedAdam after 10" in lower.note
    np.testing.assert_allclose(lower.values, np.log(15 / 12))
    with pytest.raises(NotMeasurableError, match="equally many"):
        measures.at_equal_gradients(uvp(7, 1.0), uvp(4, 0.5))


def test_a_stationary_point_is_one_wherever_it_lies():
    settings = {"seed": 1, "model": "mixture", "components": 2, "features": 2, "clients": 3, "samples": 60}
    problem = em_problem(ExpectationMaximisation.of_job({**settings, "lam": 0.01}), 1)
    state = simulate(SaSsmm(beta=1.0, decay=0.0), problem, Streams(1, (1,)), 400).state
    seen = {"server": state.theta, "surrogate": state.s}
    assert experiments.mean_field(problem, seen) < 1e-20
    moved = {"server": problem.T(state.s + 0.01), "surrogate": state.s + 0.01}
    assert experiments.mean_field(problem, moved) > 1e-6


def test_the_leaders_search_is_made_once(tmp_path, monkeypatch):
    searched = []

    def search(method, *_):
        searched.append(method)
        return {"beta": float(len(searched)), "trials": {"replicates": [100 + len(searched)]}}

    monkeypatch.setattr(experiments, "_search", search)
    tuning = {"replicates": [9], "rounds": 5, "tail": 0.2, "betas": [1], "refine": 0, "leader": "fedmm"}
    settings = {"seed": 1, "problem": "dictionary", "tuning": tuning}
    ours, naive = tmp_path / "fedmm.json", tmp_path / "naive.json"
    jobs.tune("fedmm", "a", "fedmm", settings, None, None, ours)
    jobs.tune("fedmm", "a", "parameter_aggregation", settings, None, None, naive, ours)
    assert searched == ["fedmm", "parameter_aggregation"]
    found = read_tuned(naive, "parameter_aggregation", settings)
    assert experiments.tuned_betas(found) == {"own": 2.0, "common": 1.0}
    assert found["trials"]["replicates"] == [101, 102]
    with pytest.raises(DataError, match="with other settings"):
        jobs.tune("fedmm", "a", "parameter_aggregation", {**settings, "seed": 2}, None, None, naive, ours)
