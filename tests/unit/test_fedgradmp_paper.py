"""FedGradMP's experiments: data, theory, errata, and what claims and figures make of histories."""

import itertools
import math
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from known_runs import Runs, claim_of, curves
from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fedgradmp_rates import Constants, geometric_sum, theorem5
from replifed.algorithms.fedmid import FedMid
from replifed.claims.claim import NotMeasurableError
from replifed.claims.curves import Curves, at
from replifed.claims.verdicts import judge
from replifed.data.surrogates import clip
from replifed.engine import plans, trials
from replifed.engine.simulate import simulate
from replifed.operators.matrices import isometry_constant, restricted_eigenvalues, stable_rank
from replifed.papers import jobs
from replifed.papers.fedgradmp import experiments, measures, problems
from replifed.papers.fedgradmp.claims import CLAIMS
from replifed.papers.fedgradmp.errata import ERRATA
from replifed.papers.fedgradmp.figures import FIGURES
from replifed.papers.fedgradmp.settings import Clip, Digits, Isometry, Regression
from replifed.parts import typed
from replifed.problems.losses import loss_named
from replifed.randomness import Streams, generator
from tiny_papers import section

SMALL = {
    **section("fedgradmp")["experiments"]["mild"],
    "seed": 1,
    "clients": 6,
    "noises": [0.0, 1e-4],
    "inner_steps": 10,
    "weights": [0.01],
    "rounds": 5,
    "replicates": [1, 2, 3],
}
of = partial(Runs, "fedgradmp")
TUNING = {"replicates": [7, 8, 9, 10, 11], "rounds": 5, "tail": 0.2, "steps": [0.1, 0.01], "refine": 0}


# -- data ----------------------------------------------------------------------------------------------


def run(method, settings, *more):
    return experiments.run(method, typed("fedgradmp", settings), *more)


def tune(method, settings, *more):
    return experiments.tune(method, typed("fedgradmp", settings), *more)


def test_clients_matrices_have_the_printed_law():
    settings = SMALL | {"clients": 40, "samples": 50, "features": 200, "decay": 1.1}
    data, x = problems.regression(Regression.of_job(settings), 1.5, 0.0, 1)
    spread = data.X[0].std(axis=(1, 2))
    np.testing.assert_allclose(spread, np.arange(1, 41) ** -0.55, rtol=0.05)
    means = data.X[0].mean(axis=(1, 2))
    assert 0.8 < means.std() < 1.8
    assert np.count_nonzero(x) == 3
    assert np.linalg.norm(x) == pytest.approx(1)
    np.testing.assert_allclose(data.X[0] @ x, data.y[0])
    noisy = problems.regression(Regression.of_job(settings), 1.5, 4e-4, 1)
    assert (noisy.problem.y - data.y).std() == pytest.approx(0.02, rel=0.05)
    np.testing.assert_array_equal(noisy.problem.X, data.X)
    milder = problems.regression(Regression.of_job(settings), 0.0, 0.0, 1).problem
    shift = (data.X - milder.X)[0]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1, :1], shift.shape), atol=1e-12)


def test_the_isometry_is_what_it_says():
    settings = {"seed": 1, "clients": 3, "features": 8, "planted": 2}
    data, x = problems.isometry(Isometry.of_job(settings), 1.01, 0.0, 1)
    eigenvalues = np.linalg.eigvalsh(data.client_hessians(x[None])[0])
    np.testing.assert_allclose(eigenvalues[:, 0], 1.0)
    np.testing.assert_allclose(eigenvalues[:, -1], 1.01)


def test_a_frame_is_measured_in_full_and_recovered_in_the_small_space():
    frames = clip(np.random.default_rng(0), np.random.default_rng(1), frames=14, height=24, width=32)[0]
    settings = {
        "seed": 1,
        "target": 12,
        "training": 10,
        "atoms": 6,
        "atom_sparsity": 2,
        "iterations": 3,
        "clients": 4,
        "samples": 9,
        "decay": 0.9,
        "alpha": 0.5,
        "sparsity": 3,
        "replicates": [1],
    }
    asked = Clip.of_job(settings)
    [frame] = problems.videos(asked, frames)
    np.testing.assert_array_equal(frame.image, frames[11] / 255)
    assert frame.atoms.shape == (768, 6)
    np.testing.assert_allclose(frame.projection.gram, frame.atoms.T @ frame.atoms, atol=1e-10)
    # The first client's matrix, drawn again: its features are A Psi, its targets A times the whole frame.
    rng = generator(1, 1, None, "data/video")
    A = next(problems.heterogeneous(rng, 4, 9, 768, 0.5, 0.9))
    np.testing.assert_allclose(frame.problem.X[0, 0], A @ frame.atoms)
    np.testing.assert_allclose(frame.problem.y[0, 0], A @ frame.image)
    assert np.count_nonzero(frame.best) == 3
    held = np.flatnonzero(frame.best)
    left = frame.image - frame.atoms @ frame.best
    np.testing.assert_allclose(frame.atoms[:, held].T @ left, 0, atol=1e-8)
    [short] = problems.videos(asked, frames[:4])
    assert short.atoms.shape[1] == 3
    np.testing.assert_array_equal(short.image, frames[3] / 255)


def test_digits_go_to_their_writers():
    class Table:
        X = np.arange(40 * 4, dtype=np.uint8).reshape(40, 4)
        y = np.arange(40) % 3

    settings = {"seed": 1, "clients": 3, "samples": 10, "dtype": "float32", "dictionary": "standard"}
    data = problems.digits(Digits.of_job(settings), Table)
    np.testing.assert_allclose(data.problem.X[0, 1] * 255, Table.X[10:20], rtol=1e-6)
    np.testing.assert_array_equal(data.problem.y[0, 2], Table.y[20:30])
    assert len(data.test[1]) == 10
    atoms = problems.digits(Digits.of_job(settings | {"dictionary": "gaussian", "atoms": 3}), Table)
    assert atoms.problem.X.shape == (1, 3, 10, 3)
    assert atoms.problem.dim == 9


def test_a_limit_is_where_short_steps_lead():
    """FedMid applies its weight twice a step; with half of it, it would come to rest elsewhere."""
    settings = SMALL | {"noises": [0.05], "batch": 30}
    planted = problems.regression(Regression.of_job(settings), 0.2, 0.05, 1)
    for method, own, rounds in ((FedAvg, {}, 3000), (FedMid, {"weight": 0.1}, 1500)):
        made = method(step=0.003, local_steps=2, **own)
        x = simulate(made, planted.problem, Streams(0, (1,)), rounds, record_every=rounds).state.x[0]
        name, end = method.__name__.lower(), float(np.linalg.norm(x - planted.solution))
        assert end == pytest.approx(problems.limit(name, planted, **own), rel=0.02)
    assert problems.limit("fedmid", planted, 0.1) == problems.limit("feddualavg", planted, 0.2)
    assert problems.limit("feddualavg", planted, 0.1) < 0.9 * end


def test_the_oracle_is_least_squares_on_the_true_support():
    for noise in (0.0, 0.05):
        planted = problems.regression(Regression.of_job(SMALL), 0.2, noise, 1)
        A, held = planted.problem.X[0].reshape(-1, 40), planted.solution != 0
        # The error of least squares is B'e, with B' the pseudo-inverse.
        e = planted.problem.y[0].ravel() - A @ planted.solution
        error = np.linalg.norm(np.linalg.pinv(A[:, held]) @ e)
        assert problems.limit("fedgradmp", planted) == pytest.approx(error, abs=1e-12)


# -- theory --------------------------------------------------------------------------------------------


def test_rates_by_hand():
    even = Constants(convexity=np.ones(2), smoothness=np.full(2, 1.02), weights=np.full(2, 0.5))
    beta1, beta2 = 1.02 / 0.98, 0.04
    np.testing.assert_allclose(even.beta1(), beta1)
    np.testing.assert_allclose(even.beta2(), beta2)
    mu = 4 * beta1 * beta2
    promised = theorem5(even, 2, slope=3.0)
    assert promised.kappa == pytest.approx(4 * mu**2)
    nu = 4 * (8 * beta1 + 4 / (1.02 * 0.98)) * 3
    assert promised.residual == pytest.approx(4 * nu * (1 + mu) / (1 - 4 * mu**2))
    # Theorem 7: mu doubles and delta^2 joins nu.
    inexact = theorem5(even, 2, slope=3.0, accuracy=0.1)
    assert inexact.kappa == pytest.approx(4 * (2 * mu) ** 2)
    assert inexact.residual == pytest.approx(4 * (nu + 0.01) * (1 + 2 * mu) / (1 - inexact.kappa))
    # Nothing is promised where kappa is no contraction, although the lemmas apply.
    past = theorem5(even, 1, slope=3.0, accuracy=0.1)
    assert even.holds and 1 < past.kappa < 2 and past.residual == math.inf
    far = Constants(convexity=np.ones(1), smoothness=np.full(1, 2.1), weights=np.ones(1))
    assert not far.holds
    assert theorem5(far, 1, 1.0).residual == math.inf
    assert geometric_sum(0.5, 3) == 1.75


def test_restricted_eigenvalues_are_within_the_true_ones():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 6))
    pairs = [
        np.linalg.eigvalsh((A.T @ A)[np.ix_(s, s)]) for s in ([i, j] for i in range(6) for j in range(i))
    ]
    low, high = restricted_eigenvalues(A, 2, np.random.default_rng(1), 200)
    assert low == pytest.approx(min(pair[0] for pair in pairs))
    assert high == pytest.approx(max(pair[1] for pair in pairs))
    assert restricted_eigenvalues(A[:1], 2, rng)[0] == 0
    q = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    assert isometry_constant(q, 3, rng) < 1e-12
    assert stable_rank(q) == pytest.approx(9)
    assert stable_rank(np.outer(np.ones(3), np.ones(4))) == pytest.approx(1)


def test_searches_tell_whether_the_printed_grid_holds_the_best_steps():
    def searched(*steps):
        found = ({"step": step, "score": 0.5, "steps": [step], "scores": [0.5]} for step in steps)
        stable = [{**one, "rejected": [], "chaotic": False} for one in found]
        return {"variants": {str(number): one for number, one in enumerate(stable)}}

    held = measures.steps_within(5e-6, 0.01, searched(0.01, 0.001), searched(0.03))
    assert held.values.tolist() == [True, True, False]


def test_logistic_bounds_hold_and_can_fail(monkeypatch):
    assert measures.logistic_bounds().values.all()
    joint = slice(1, None, 4)  # of each r: binary, least, binary, largest
    # Planted: next to no reference class, as in the softmax that runs have.
    assert not measures.logistic_bounds(reference=1e-30).values[joint].any()
    # Planted: the second derivative of another loss, e^-|z|.
    monkeypatch.setattr(measures.np, "cosh", lambda z: np.exp(np.abs(z)))
    assert not measures.logistic_bounds().values.all()


def test_errata_look_at_sizes():
    """Forms with the right direction alone are refused."""
    checks = {erratum.id.removeprefix("fedgradmp."): erratum.check for erratum in ERRATA}
    assert not checks["stable_rank"](lambda rank: 1 / rank).passes
    assert not checks["mean_law"](lambda rng, alpha: rng.normal(0, alpha, 50)).passes
    assert not checks["optimal_bias"](lambda N: N**-0.5).passes
    assert not checks["theorem7_residual"]((2, 2)).passes
    assert not checks["cohort_sum"](0.99).passes
    assert not checks["theorem8_cohort"](lambda values, L: np.sort(values)[:L].mean()).passes
    assert not checks["theorem13_beta2"]((6.0, 1.0)).passes and not checks["theorem13_beta2"]((3, 0)).passes
    assert not checks["lemma4_moments"](lambda d, p: d * p**0.9).passes
    # Without a reference class it is a loss, but of another sigmoid.
    without = checks["log_sum_exp"](loss_named("softmax", 10).value)
    assert not without.passes and not without.evidence.startswith("least value -")


# -- runs, figures, claims -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    settings = SMALL | {"noises": [1e-4], "tuning": TUNING}
    frames = {}
    for method in ("fedgradmp", "fedmid", "fedavg"):
        tuned = tune(method, settings, None, None)
        frames["mild", method] = run(method, settings, tuned, None, None)
    return of(frames)


def test_dense_methods_run_figure_8_with_the_loss_as_printed_alone():
    readings = {"text": {"sparsity": 3, "scale": 1}, "summed": {"sparsity": 3, "scale": 15}}
    settings = SMALL | {"noises": [0.0], "steps": [1e-3, 1e-2], "readings": readings, "replicates": [1]}
    variants = {
        method: set(run(method, settings, None, None, None)["variant"]) for method in ("fediterht", "fedmid")
    }
    assert variants == {"fediterht": {"text", "summed"}, "fedmid": {"text"}}


@pytest.mark.parametrize("stable", [True, False])
def test_a_regression_search_says_what_it_ran(monkeypatch, stable):
    """Three data sets are enough where a step is stable; on five, the best mean is taken, and marked."""
    monkeypatch.setattr(
        "replifed.engine.trials.Trials.stable",
        lambda trials, algorithm, searches: np.full(len(searches), stable),
    )
    drawn = []
    regression = problems.regression
    monkeypatch.setattr(problems, "regression", lambda *a: drawn.append(a[-1]) or regression(*a))
    found = tune("fedavg", SMALL | {"tuning": TUNING}, None, None)
    assert found["trials"]["replicates"] == sorted(drawn) == [7, 8, 9, 10, 11][: 3 if stable else 5]
    one = found["variants"][""]
    assert (one["chaotic"], one["edge"]) == (not stable, False)
    assert one["printed"]["step"] in TUNING["steps"]
    assert one["printed"]["chaotic"] == (not stable)
    assert one["steps"][0] < one["step"] < one["steps"][-1]


# -- digits --------------------------------------------------------------------------------------------

DIGITS = {
    **section("fedgradmp")["experiments"]["digits"],
    "seed": 1,
    "clients": 5,
    "sparsities": [30, 60],
    "dtype": "float64",
    "rounds": 6,
    "record_every": 3,
    "tuning": {"replicates": [101, 102], "rounds": 12, "steps": [0.04, 0.03, 0.02, 0.01, 0.001], "refine": 0},
}


@pytest.fixture(scope="module")
def digits():
    """Three kinds of ink on 8 pixels, 20 digits of each of six writers."""
    rng = np.random.default_rng(3)

    class Table:
        y = rng.integers(3, size=120)
        X = np.clip(rng.normal(size=(3, 16))[y] * 30 + rng.normal(size=(120, 16)) * 40 + 128, 0, 255)

    return Table


@pytest.fixture(scope="module")
def searched(digits):
    """The search of FedIterHT from a grid that is too low, with what `simulate` was asked for."""
    asked = []

    def counted(made, problem, streams, rounds, **more):
        asked.append((made.step.tolist(), streams.replicates, rounds, more.get("resume")))
        return simulate(made, problem, streams, rounds, **more)

    simulate = trials.simulate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "simulate", counted)
        patch.setattr("replifed.engine.perturbed.simulate", counted)
        return tune("fediterht", DIGITS, digits, None), asked


def test_on_digits_the_grid_is_extended_but_the_printed_one_is_not(searched):
    """What ran is told, and only steps that were given all rounds can win."""
    found, asked = searched
    for name in ("30", "60"):
        one = found["variants"][name]
        assert one["step"] > 0.04 and not one["edge"] and not one["chaotic"]
        assert one["steps"][0] < one["step"] < one["steps"][-1]
        assert one["printed"]["step"] == 0.04 and one["printed"]["edge"]
        assert one["score"] < one["printed"]["score"]
        finished = [score for score in one["scores"] if score is not None]
        assert len(finished) < len(one["scores"])
        assert one["score"] == pytest.approx(min(finished))
    names = {name for _, replicates, _, _ in asked for name in replicates}
    assert found["trials"]["replicates"] == sorted(names) == [101, 102]
    assert found["cost"]["runs"] == sum(len(steps) for steps, _, _, resume in asked if resume is None)
    rounds = [len(steps) * (stop - (resume[0] if resume else 0)) for steps, _, stop, resume in asked]
    assert found["cost"]["rounds"] == sum(rounds)


def test_a_search_that_stays_at_an_edge_is_found(searched, digits, monkeypatch):
    """Planted: the grid of `own` does not grow."""
    of_steps = experiments.Grid.of_steps
    monkeypatch.setattr(
        experiments.Grid, "of_steps", lambda steps, refine=0, **_: of_steps(steps, refine, grow=False)
    )
    stuck = tune("fediterht", DIGITS, digits, None)["variants"]["30"]
    assert stuck["edge"]
    assert stuck["step"] == max(stuck["steps"])
    assert stuck["score"] > searched[0]["variants"]["30"]["score"]


def test_where_no_step_on_digits_is_stable_the_mean_of_five_repetitions_decides(digits, monkeypatch):
    """Planted: every run differs from its perturbed runs."""
    perturbed = trials.simulate_perturbed

    def shaken(*given, **more):
        found = perturbed(*given, **more)
        return found._replace(difference=np.ones_like(found.difference))

    monkeypatch.setattr(trials, "simulate_perturbed", shaken)
    names = [101, 102, 103, 104, 105]
    search = {**DIGITS["tuning"], "replicates": names}
    settings = {**DIGITS, "sparsities": [30], "tuning": search}
    found = tune("fediterht", settings, digits, None)
    one = found["variants"]["30"]
    assert one["chaotic"] and found["trials"]["replicates"] == names
    frame = run("fediterht", {**settings, "replicates": names, "rounds": 12}, found, digits, None)
    ends = frame[(frame["reading"] == "own") & (frame["round"] == 12)]
    assert one["score"] == pytest.approx(1 - ends["train_accuracy"].mean())


def test_both_readings_of_the_step_are_run_on_digits(searched, digits):
    found = searched[0]
    frame = run("fediterht", DIGITS, found, digits, None)
    steps = {
        (name, reading): one["step"] if reading == "own" else one["printed"]["step"]
        for name, one in found["variants"].items()
        for reading in ("own", "printed")
    }
    ran = frame.groupby(["variant", "reading", "replicate"])
    assert {key[:2] for key, _ in ran} == set(steps) and len(ran) == 8
    for key, curve in ran:
        assert set(curve["step"]) == {steps[key[:2]]} and curve["round"].tolist() == [0, 3, 6]


def test_a_run_is_sensitive_where_a_twin_classifies_one_other_sample(digits, monkeypatch):
    """Planted: in one of two repetitions, one of ten thousand."""
    step = {"step": 0.03, "chaotic": False}
    found, ran = {**step, "printed": step}, plans.simulate_perturbed

    def planted(algorithm, problem, streams, *words, **more):
        twinned = ran(algorithm, problem, streams, *words, **more)
        return twinned._replace(difference=1e-4 * (np.array(streams.replicates) == 2))

    monkeypatch.setattr(plans, "simulate_perturbed", planted)
    frame = run("fedgradmp", DIGITS, {"variants": dict.fromkeys(["30", "60"], found)}, digits, None)
    assert (frame["chaotic"] == (frame["replicate"] == 2)).all()


@pytest.mark.parametrize("method", ["fediterht", "fedgradmp"])
def test_on_digits_each_class_keeps_its_own_weights(digits, method):
    for by_class, kept in (({"classes": 3}, True), ({}, False)):
        settings = typed("fedgradmp", DIGITS | {"sparsities": [12]} | by_class)
        data = problems.digits(settings, digits).problem
        made = experiments.digits_method(method, settings, ["12"], [0.5])
        x = simulate(made, data, Streams(1, (1,)), 4).state.x.reshape(16, 3)
        assert (np.count_nonzero(x, axis=0) == 4).all() == kept


def test_fedavg_is_recorded_at_every_round_and_drawn_as_often_as_others(digits):
    step = {"step": 0.03, "chaotic": False}
    found, settings = {"variants": {"": {**step, "printed": step}}}, DIGITS | {"fedavg_record_every": 1}
    frame = run("fedavg", settings, found, digits, None)
    assert set(frame["round"]) == {*range(7)}

    drawn = FIGURES["fig6"].table(of({("digits", "fedavg"): frame}, DIGITS))
    assert set(drawn["round"]) == {0, 3, 6}


# -- claims --------------------------------------------------------------------------------------------


def test_claims_on_curves(runs):
    """Planted: a baseline that is not run on until it has spent as much."""
    for name, step in itertools.product(("rounds", "work", "residual"), ("", ".printed")):
        suffix = f"{step}.counted-work" if name == "work" else step
        found = claim_of(f"fedgradmp.fig3.fedavg.{name}{suffix}").measure(runs)
        assert found.values.shape == (3,)
        assert (found.values > 0).all()
    short = {key: frame[frame["round"] <= 5] for key, frame in runs.frames.items()}
    with pytest.raises(NotMeasurableError, match="ends after"):
        claim_of("fedgradmp.fig3.fedavg.work.counted-work").measure(of(short))


def test_figures_show_the_oracle_and_losses_down_to_rounding(runs):
    history = runs.run("mild", "fedavg").assign(method="fediterht")
    frame = FIGURES["fig3"].table(of({("mild", "fediterht"): history}))
    drawn = frame[frame["series"] == "oracle"]
    limits_of = history.groupby("replicate")["limit"].first()
    np.testing.assert_allclose(drawn["mean"], np.exp(np.log(limits_of).mean()))
    exact = runs.run("mild", "fedgradmp").query("variant == 'exact'").assign(objective=1e-32)
    frame = FIGURES["fig9"].table(of({("exact", "fedgradmp"): exact}))
    np.testing.assert_allclose(frame.loc[frame["panel"] == "objective", "mean"], 1e-32)


def test_errors_below_machine_precision_are_equal():
    rows = [(10, 1, [1.0, 1e-3, 3e-16]), (10, 2, [1.0, 2e-16, 1e-16]), (30, 1, [1.0, 1e-4, 0.0])]
    rows.append((30, 2, [1.0, 1e-15, 4e-16]))
    frames = [
        pd.DataFrame({"cohort": cohort, "replicate": seed, "noise": 0.0, "round": range(3), "error": gaps})
        for cohort, seed, gaps in rows
    ]
    runs = of({("cohorts", "fedgradmp"): pd.concat(frames, ignore_index=True)})
    for after, expected in ((1, [1.0, 0.0]), (2, [0.0, 0.0])):
        ten, thirty = (measures.log_error(after, "cohorts", cohort=size, noise=0.0) for size in (10, 30))
        np.testing.assert_allclose(measures.decades(ten, thirty)(runs).values, expected, atol=1e-12)


def test_what_slows_down_does_not_converge_linearly_and_what_accelerates_does():
    """Planted: a straight line, one that bends down, one that drops from a stall; sublinear rates; a rise."""
    t = np.arange(21)
    line, bent, drop = 0.5**t, 0.9**t * 0.99**t**2, np.where(t < 10, 0.99**t, 1e-14)
    sublinear, rise = [1 / (1 + t), np.exp(-np.sqrt(t))], np.where(t == 3, 0.3, 0.5**t)
    made = np.array([line, bent, drop, *sublinear, rise])
    worst, halves = measures.pace(Curves(t, np.arange(6), made), 1e-13)
    np.testing.assert_allclose(worst.values[[0, 3, 5]], [0.5, 20 / 21, 1.2], rtol=1e-9)
    assert (worst.values < 1).tolist() == [True] * 5 + [False]
    assert halves.values[0] == pytest.approx(1) and (halves.values[1:3] > 1).all()
    assert (halves.values[3:5] < 0.5).all()


def test_a_residual_is_a_bound_until_the_run_rests():
    t = np.arange(101)
    rests = np.maximum(10.0 ** (-t / 10), 0.02)
    falls, lost = 10.0 ** (-t / 1000), np.where(t < 50, 1 + t, np.inf)
    made = curves(rests, falls, 1 + t / 1000, lost)
    found = measures.residual(made)
    np.testing.assert_array_equal(found.values, measures.tail(made).values)
    assert found.bounds.tolist() == [0, -1, 0, 0]
    known = measures.residual(made, at(curves(*np.full((4, 101), 0.003)), 0))
    np.testing.assert_allclose(known.values[1], np.log10(0.003))
    np.testing.assert_array_equal(known.values[[0, 2, 3]], found.values[[0, 2, 3]])
    assert not known.bounds.any()


def test_where_untuned_runs_end_by_hand():
    """One that rests, one that still falls, one that is lost."""
    rounds = np.arange(0, 101, 10)
    rests, falls = np.maximum(10.0 ** (-rounds / 10), 0.6), 10.0 ** (-rounds / 1000)
    lost = np.where(rounds < 50, 1.0 + rounds, np.inf)
    made = Curves(rounds, np.arange(3), np.array([rests, falls, lost]))
    found = measures.at_rest(made)
    assert found.values[0] == pytest.approx(0.6) and found.values[2] == np.inf
    assert found.bounds.tolist() == [0, -1, 0]
    # Of what still falls it is not known whether it ends above one half.
    assert ((found >= 0.5) & (found <= 10.0)).measured().undecided == 1
    known = measures.at_rest(made, at(Curves(rounds, np.arange(3), np.full((3, 11), 0.01)), 0))
    np.testing.assert_allclose(known.values, [0.6, 0.01, np.inf])
    np.testing.assert_allclose(measures.soon(made).values, [0.6, falls[2], 21])
    np.testing.assert_allclose(measures.worst_tenth(made).values[:2], [0, -0.01], atol=1e-12)
    to_half = measures.way_to(
        made.take(np.array([0])), at(Curves(rounds, np.arange(1), np.full((1, 11), 0.2)), 0)
    )
    assert to_half.values == pytest.approx([0.5])


def test_what_is_kept_of_a_descent_by_hand():
    def ends(*errors):
        return curves(*([1.0] * 6 + [e, e] for e in errors))

    # A hundredth, then a tenth: half of the decades are left. What rises keeps less than nothing.
    found = measures.kept(ends(0.01, 0.01, 0.5), ends(0.1, 10.0, 0.5))
    np.testing.assert_allclose(found.values, [0.5, -0.5, 1.0])
    with pytest.raises(NotMeasurableError, match="nothing descends"):
        measures.kept(ends(0.01, 2.0), ends(0.1, 0.1))


def test_values_at_equal_work_by_hand():
    spent, theirs, total = curves([0, 10, 20]), curves([0.0, 0.5, 1.0]), at(curves([0, 6, 12]), 2)
    assert measures.at_equal(total, theirs, spent).values == pytest.approx([0.6])
    # Not the last value that there is.
    with pytest.raises(NotMeasurableError, match="ends after 20 of 21"):
        measures.at_equal(at(curves([0, 6, 21]), 2), theirs, spent)
    # What has diverged spends no more, and stays lost.
    lost = measures.logs(curves([1.0, 100.0, np.inf]))
    found = measures.at_equal(at(curves([0, 6, 21]), 2), lost, curves([0, 10, 10]))
    assert found.values == pytest.approx([2.0])


def test_accuracies_are_compared_at_every_budget():
    """Planted: ahead at first and behind later; and a rival whose rounds send too little."""
    mine, sent = curves([0.1, 0.6, 0.7, 0.8, 0.8]), curves([0, 1, 2, 3, 4])
    theirs, spent = curves([0.1, 0.5, 0.9]), curves([0, 2, 4])
    mean, ahead = measures.over_budgets(mine, sent, theirs, spent)
    np.testing.assert_allclose(mean.values, np.mean([0.3, 0.2, 0.1, -0.1]))
    np.testing.assert_allclose(ahead.values, 0.75)
    with pytest.raises(NotMeasurableError, match="sends 4 bits of 5"):
        measures.over_budgets(mine, curves([0, 1, 2, 3, 5]), theirs, spent)


def test_runs_are_compared_over_equally_many_rounds():
    cut = measures.as_long(curves([1, 2, 3, 4], every=2), curves([5, 6], every=2))
    assert (cut.rounds.tolist(), cut.values.tolist()) == ([0, 2], [[1, 2]])


def test_a_frame_of_all_atoms_says_nothing():
    """Planted: seven frames leave six atoms, all of which the model may take; its picture is perfect."""

    def shot(tau, atoms):
        columns = {"part": "curve", "round": 3, "psnr": [30.0], "best_psnr": [31.0]}
        return pd.DataFrame({**columns, "sparsity": tau, "atoms": atoms})

    assert measures.recovered(shot(5, 6), 3.0).values.all()
    with pytest.raises(NotMeasurableError, match="tau is 6 of 6 atoms"):
        measures.recovered(shot(6, 6), 3.0)


def test_a_drawn_clip_is_no_original():
    for problem, kind in (("drawn_video", "surrogate"), ("regression", "synthetic")):
        assert jobs._provenance("fedgradmp", "fedgradmp", {"problem": problem}, None)["data"]["kind"] == kind


def test_families_of_orders_can_be_told_with_the_seeds_there_are():
    """Even by signs alone, which need the most; on digits, whose runs take minutes, by paired t alone."""
    experiments_of = yaml.safe_load(Path("config/papers/fedgradmp.yaml").read_text())["fedgradmp"][
        "experiments"
    ]
    families: dict = {}
    for claim in CLAIMS:
        if claim.kind == "order":
            families.setdefault(claim.family, []).append(claim)
    for family, members in families.items():
        named = {name for claim in members for name in claim.experiments}
        seeds = min(len(experiments_of[name]["replicates"]) for name in named)
        if not all(name.startswith("digits") for name in named):
            assert len(members) * 2 * 0.5**seeds <= 0.05, family


def test_errors_at_equal_bits_by_hand():
    """FedGradMP sends a tenth of the other's bits in five rounds, which is then between two records."""

    def ran(method, variant, rounds, errors, bits):
        columns = {"replicate": 1, "round": rounds, "error": errors, "bits_up": bits, "bits_down": bits}
        return pd.DataFrame({**columns, "variant": variant, "reading": "own", "method": method})

    t = np.arange(11)
    frames = {
        ("mild", "fedgradmp"): ran("fedgradmp", "exact", t, 0.1**t, 1.0 * t),
        ("mild", "fedavg"): ran("fedavg", "", 5 * t[:3], [1.0, 1e-2, 1e-4], 50.0 * t[:3]),
    }
    found = claim_of("fedgradmp.fig3-bits.fedavg").measure(of(frames))
    assert found.values == pytest.approx([5 - 0.2])


def test_straight_descents_differ_from_bent_ones():
    rounds = np.arange(30)
    bent = (1.0 + rounds) ** -2
    falling = np.maximum(np.exp(-0.2 * rounds), 0.01)

    def ran(*errors):
        frames = [
            pd.DataFrame(
                {"replicate": seed, "round": rounds, "error": values, "variant": "", "reading": "own"}
            )
            for seed, values in enumerate(errors)
        ]
        return of({("mild", "fediterht"): pd.concat(frames)})

    straight = claim_of("fedgradmp.fig3.fediterht.linear").measure
    assert straight(ran(falling, falling)).values.all()
    assert not straight(ran(bent, np.exp(-0.01 * rounds))).values.any()


def test_claims_without_runs_hold_and_can_fail(monkeypatch):
    """Planted: a constant that is the same at every rank, a small factor, clients that are alike."""
    assert not measures.theorem13_contracts().values.any()
    assert measures.theorem13_contracts(0.01).values.all()
    assert measures.rate_worsens(measures.unlike(10, 1.005, 1.12)).values.all()
    assert measures.residual_turns(measures.unlike(50, 1.02, 1.1)).values.all()
    assert measures.rate_worsens(measures.unlike(10, 1.005, 1.005)).values.tolist() == [False, True, False]
    assert measures.residual_turns(measures.unlike(50, 1.02, 1.02)).values.tolist() == [True, True, False]
    measured = measures.isometry_improves(measures.isometries())
    assert measured.values.all() and measured.seeds == 10
    monkeypatch.setattr(measures, "isometry_constant", lambda *_: 1.0)
    assert not measures.isometry_improves(measures.isometries()).values.any()


def test_thresholded_runs_are_perturbed_and_others_where_the_search_asks(digits):
    def found(variants, chaotic):
        one = {"step": 0.03, "chaotic": chaotic}
        return {"variants": {name: one | {"printed": one} for name in variants}}

    for chaotic in (False, True):
        dense = run("fedavg", DIGITS, found([""], chaotic), digits, None)
        assert ("train_accuracy.of_start" in dense) == chaotic
        assert not dense["chaotic"].any()
    frame = run("fediterht", DIGITS, found(["30", "60"], False), digits, None)
    assert frame[["train_accuracy.of_start", "train_accuracy.of_step"]].notna().all(axis=None)
    assert not frame["chaotic"].any()


@pytest.mark.parametrize(
    ("method", "falling", "verdict"),
    [("fediterht", False, "holds"), ("fediterht", True, "inconclusive"), ("fedavg", True, "holds")],
)
def test_nobody_has_the_larger_residual_where_the_other_has_not_come_to_rest(method, falling, verdict):
    """Unless it is known where it would."""
    t = np.arange(101)
    rests = np.maximum(10.0 ** (-t / 10), 0.02)
    theirs = 10.0 ** (-t / 1000) if falling else rests
    ran = {("mild", "fedgradmp"): 0.1 * rests, ("mild", method): theirs}
    frames = {
        key: pd.concat(
            pd.DataFrame({"replicate": seed, "round": t, "error": errors, "limit": 0.02})
            for seed in range(20)
        ).assign(variant="exact" if key[1] == "fedgradmp" else "", reading="own")
        for key, errors in ran.items()
    }
    claim = claim_of(f"fedgradmp.fig3.{method}.residual")
    assert judge(claim, claim.measure(of(frames))).verdict == verdict
