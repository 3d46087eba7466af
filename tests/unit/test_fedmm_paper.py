"""What the FedMM paper's layer makes of small runs: histories, figures, tables, claims and errata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from known_runs import claim_of, curves
from replifed.algorithms.sa_ssmm import SaSsmm
from replifed.claims.claim import NotMeasurableError
from replifed.claims.curves import Curves, first
from replifed.claims.multiplicity import p_value
from replifed.claims.samples import Sample
from replifed.claims.verdicts import judge, measure
from replifed.engine.search import Grid
from replifed.engine.simulate import simulate
from replifed.engine.trials import Trials
from replifed.errors import DataError
from replifed.papers import jobs
from replifed.papers.fedmm import experiments, measures
from replifed.papers.fedmm.claims import CLAIMS
from replifed.papers.fedmm.paper import SHORTER, best_asked
from replifed.papers.fedmm.problems import (
    dictionary_problem,
    em_problem,
    sparse_signals,
    transport_problem,
)
from replifed.papers.fedmm.settings import ExpectationMaximisation
from replifed.parts import typed
from replifed.randomness import Streams
from replifed.settings import checks as config
from replifed.store.histories import read_tuned
from tiny_papers import Tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made():
    return Tiny("fedmm")


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


def test_steps_are_refined_and_held_against_twins_up_to_where_gamma_is_1_in_every_round(made, monkeypatch):
    asked, of_steps = [], Grid.of_steps
    monkeypatch.setattr(Grid, "of_steps", lambda *a, **more: asked.append((a, more)) or of_steps(*a, **more))
    monkeypatch.setattr(Trials, "stable", lambda trials, algorithm, searches: np.zeros(len(searches), bool))
    settings = made.experiment("synthetic_homogeneous")
    found = experiments.tune("fedmm", settings, None, None)
    assert found["highest"] == 2.0  # the root of four rounds
    assert asked == [((settings.tuning.betas, settings.tuning.refine), {"bounds": ((0.0, 2.0),)})]
    assert found["chaotic"]  # planted: no step is stable


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
    class Planted(Tiny):
        def tuned(self, experiment, method):
            return {**made.tuned(experiment, method), "betas": [0.3, 1.0], "scores": scores, "beta": 0.3}

    name = "fedmm.fig1.synthetic_heterogeneous.diverges.0.3-to-3"
    frame = measure([claim for claim in CLAIMS if claim.id == name], Planted("fedmm"), "tiny")
    assert frame["reason"].str.contains("not measured: there is no run").tolist() == [missing]


def test_repetitions_of_transport_draw_their_own_samples(made):
    problem = transport_problem(made.experiment("transport_2"), made.data("transport_2"), [1, 101, 1])
    # The true map is one for all, so equal points have equal images.
    np.testing.assert_array_equal(problem._images[0], problem._images[2])
    for points in (problem._sources, problem._targets):
        mine, others = (set(map(tuple, own.reshape(-1, 2))) for own in points[:2])
        assert not mine & others
    assert 0.9 < problem._variance[0] / problem._variance[1] < 1.1


@pytest.mark.parametrize("perturbed", [None, [2, 3], []])
@pytest.mark.parametrize("method", ["fedmm_ot", "fedadam"])
def test_repetitions_of_transport_side_by_side_are_those_alone(method, perturbed, made):
    shorter = {"rounds": 3, "record_every": 1, "start_steps": 2, "batch": 16, "server_batch": 8}
    settings = made.experiment("transport_2").with_(**shorter, twin_replicates=perturbed)

    def run(replicates):
        asked = settings.with_(replicates=replicates)
        return experiments.run(method, asked, None, made.data("transport_2"), None)

    found = run([1, 2, 3])
    assert len(found) == 3 * 4
    for replicate, history in found.groupby("replicate"):
        alone = run([replicate]).drop(columns="linear_uvp")
        pd.testing.assert_frame_equal(history[alone.columns].reset_index(drop=True), alone)


@pytest.mark.parametrize("hangs", ["fedmm_ot", "fedadam"])
def test_adversarial_training_that_hangs_on_rounding_tells_no_order(hangs, made):
    """Whichever of the two methods it is, and although one repetition alone has perturbed runs."""
    wanted = [replace(claim, fewest=1) for claim in CLAIMS if claim.id == "fedmm.fig3.d2.better.per-round"]
    lower = {"fedmm_ot": 1.0, "fedadam": 2.0}

    class Planted(Tiny):
        def _run(self, experiment, method):
            history = made.run(experiment, method)
            noise = 1 + 0.01 * np.arange(len(history))
            chaotic = (history["replicate"] == 1) & (method == hangs and self.chaos)
            return history.assign(uvp=lower[method] * noise, chaotic=chaotic)

    for chaos, verdict in ((False, "holds"), (True, "inconclusive")):
        planted = Planted("fedmm")
        planted.chaos = chaos
        assert set(measure(wanted, planted, "tiny")["verdict"]) == {verdict}


def test_claims_say_what_seeds_share():
    shared = {claim.id: claim.shared for claim in CLAIMS}
    assert {name for name, what in shared.items() if what} == {n for n in shared if "movielens" in n}


def test_the_search_of_transport_steps_leaves_its_curve(made):
    found = made.tuned("transport_search_2", "fedadam")
    scores = [np.inf if score is None else score for score in found["scores"]]
    assert found["step"] == found["steps"][int(np.argmin(scores))]
    assert found["steps"] == sorted(found["steps"])
    # After four rounds no step has helped yet, and which of the smallest is best is rounding's choice.
    assert set(made.experiment("transport_search_2").tuning.steps["fedadam"]) <= set(found["steps"])


def test_synthetic_data_are_as_described(made):
    settings = made.experiment("synthetic_heterogeneous")
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
    order = claim_of("fedmm.fig1.synthetic_heterogeneous.naive_faster.own")
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


def test_what_codes_all_samples_is_recorded_when_it_is_drawn(made):
    settings = made.experiment("synthetic_heterogeneous")
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


def test_a_noisy_curve_that_does_not_rise_does_not_diverge():
    """Planted: the last round of a stationary curve, above the lowest of all by selection alone."""
    drawn = np.exp(0.2 * np.random.default_rng(0).normal(size=(100, 20, 200)))
    told = [p_value(measures.rise(curves(*one), at_end=True).values, of_mean=True) for one in drawn]
    assert np.mean(np.array(told) < 0.05) < 0.15


def test_no_effect_is_asked_for_where_mean_curves_are_farthest_apart():
    one, two = curves([4, 3, 2], [4, 5, 2]), curves([4, 4, 1.9], [4, 4, 1.9])
    assert measures.farthest(one, two).mean == pytest.approx(np.log(2 / 1.9))
    assert measures.farthest(two, one).mean == pytest.approx(np.log(1.9 / 2))
    assert measures.farthest(one, one).mean == 0


def test_the_rate_is_the_fall_after_the_first_tenth():
    """Both fall alike at first; the one stays where it is, the other falls on."""
    t = np.arange(1, 101)
    stays, falls = (curves(*[np.maximum(1 / t, floor)] * 2, first=1) for floor in (0.1, 0.0))
    assert measures.late_decay(stays).mean == pytest.approx(0)
    wanted = np.log((1 / t[10:20]).mean() / (1 / t[90:]).mean())
    assert measures.late_decay(falls).mean == pytest.approx(wanted)


def test_an_update_that_is_back_at_its_start_has_not_diverged():
    """Planted: one that falls to a third and comes back, and one that ends above its start."""
    claim = claim_of("fedmm.fig1.synthetic_homogeneous.naive_surrogate.own")
    t, noise = np.arange(1, 101), np.random.default_rng(0).normal(size=(10, 100))
    back = np.exp(np.log(1 / 3) * np.sin(np.pi * np.minimum(t, 90) / 90) + 0.1 * noise)
    for curve, verdict in ((back, "inconclusive"), (back * (1 + 2 * (t > 80)), "holds"), (1 / t, "fails")):
        rows = curve * np.exp(0.01 * noise)
        fall = measures.decay(curves(*rows, first=1), first)
        assert judge(claim, (-fall).measured()).verdict == verdict


def test_a_curve_that_starts_below_may_fall_by_less():
    """Lower at first and beaten in the end, as MovieLens' curves: "faster" as a fall says the opposite."""
    t = np.arange(1, 101)
    ours, theirs = (curves(*[a * t**-b] * 3, first=1) for a, b in ((20, 0.35), (120, 0.9)))
    assert measures.lower_at_first(ours, theirs).mean > 0
    assert (measures.early_decay(ours) - measures.early_decay(theirs)).mean < 0
    assert measures.level(ours).mean > measures.level(theirs).mean


def test_unrest_is_gained_late_and_a_steep_start_is_none():
    t, noise = np.arange(90), np.random.default_rng(0).normal(size=(4, 90))
    steep = np.exp(-t / 5.0 + 0.5 * noise * (t >= 60))
    assert (measures.roughness_gain(curves(*steep)).values > 0.3).all()
    assert (measures.roughness_gain(curves(*steep[:, ::-1])).values < -0.3).all()
    assert np.abs(measures.roughness_gain(curves(np.exp(-t / 5.0))).values).max() < 1e-12
    # Of rounds as far apart as the last ones: the first rounds, recorded one by one, are no unrest.
    kept = np.unique([*range(7), *range(0, 90, 3)])
    thin = Curves(kept, np.arange(4), steep[:, kept])
    even = curves(*steep[:, ::3])
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


def test_transport_runs_beside_perturbed_ones_say_whether_they_hang_on_rounding(made):
    """Adam divides by the gradient's size, so in single precision they part within a few rounds."""
    history, perturbed = made.run("transport_2", "fedadam"), made.experiment("transport_2").twin_replicates
    assert set(perturbed) < set(history["replicate"])
    assert (history["chaotic"] == history["replicate"].isin(perturbed)).all()


def test_a_rise_is_that_of_the_mean_from_its_lowest_before():
    assert measures.rise(curves(*[[3, 2, 2.5, 1]] * 2)).mean == pytest.approx(np.log(2.5 / 2))
    assert measures.rise(curves(*[[3, 2, 2.5, 1]] * 2), at_end=True).mean == 0
    up = measures.rise(curves(*[[3, 2, 1, 1.1]] * 2), at_end=True)
    assert up.mean == pytest.approx(np.log(1.1))
    with pytest.raises(NotMeasurableError, match="one seed"):
        measures.rise(curves([3, 2, 1, 1.1]), at_end=True)
    # One seed goes up where the other goes down by more: the mean is monotone.
    assert measures.rise(curves([3, 2, 1], [1, 1.1, 1.2])).mean == 0
    monotone = claim_of("fedmm.fig1.synthetic_homogeneous.monotone.own")
    jumping = measures.rise(curves(*([3.0, 2.0, 2.0 + 0.4 * (seed == 9)] for seed in range(10))))
    assert judge(monotone, jumping.measured()).verdict == "inconclusive"
    rising = measures.rise(curves(*([3.0, 2.0, 2.1 + 0.001 * seed] for seed in range(10))))
    assert judge(monotone, rising.measured()).verdict == "fails"
