"""FedGradMP's experiments: data, theory, errata, and what claims and figures make of histories."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fedgradmp_rates import Constants, geometric_sum, theorem5
from replifed.algorithms.fedmid import FedMid
from replifed.algorithms.local_steps import loop
from replifed.claims.claim import NotMeasurableError
from replifed.claims.curves import Curves, at, level
from replifed.claims.verdicts import judge
from replifed.data.surrogates import clip
from replifed.engine import plans, trials
from replifed.engine.simulate import simulate
from replifed.operators.hard_threshold import threshold_by_class
from replifed.operators.matrices import isometry_constant, restricted_eigenvalues, stable_rank
from replifed.papers import jobs
from replifed.papers.fedgradmp import experiments, measures, problems
from replifed.papers.fedgradmp.claims import CLAIMS
from replifed.papers.fedgradmp.errata import ERRATA
from replifed.papers.fedgradmp.figures import FIGURES
from replifed.papers.fedgradmp.settings import Clip, Digits, Isometry, Regression
from replifed.papers.fedgradmp.tables import TABLES
from replifed.papers.inputs import Inputs
from replifed.parts import typed
from replifed.problems.losses import loss_named
from replifed.randomness import Streams, generator

SMALL = {
    "seed": 1,
    "problem": "regression",
    "clients": 6,
    "samples": 30,
    "features": 40,
    "planted": 3,
    "decay": 0.2,
    "alphas": [0.2],
    "noises": [0.0, 1e-4],
    "batch": 15,
    "local_steps": [2],
    "solvers": ["exact", "gd"],
    "inner_steps": 10,
    "weights": [0.01],
    "rounds": 5,
    "record_every": 1,
    "replicates": [1, 2, 3],
}
BY_ID = {claim.id: claim for claim in CLAIMS}
# Five rounds of FedGradMP cost as much as more of the others'.
BASELINE_ROUNDS = 40
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


def test_corollary_10_holds_and_can_fail(monkeypatch):
    measured = measures.isometry_improves(measures.isometries())
    assert measured.values.all() and measured.seeds == 10
    # Planted: a constant that does not depend on the rank.
    monkeypatch.setattr(measures, "isometry_constant", lambda *_: 1.0)
    assert not measures.isometry_improves(measures.isometries()).values.any()


def test_theorem_13_promises_nothing_and_could():
    assert not measures.theorem13_contracts().values.any()
    # Planted: a factor of a hundredth.
    assert measures.theorem13_contracts(0.01).values.all()


def test_searches_tell_whether_the_printed_grid_holds_the_best_steps():
    def searched(*steps):
        found = ({"step": step, "score": 0.5, "steps": [step], "scores": [0.5]} for step in steps)
        stable = [{**one, "rejected": [], "chaotic": False} for one in found]
        return {"variants": {str(number): one for number, one in enumerate(stable)}}

    held = measures.steps_within(5e-6, 0.01, searched(0.01, 0.001), searched(0.03))
    assert held.values.tolist() == [True, True, False]


def test_remark_3_holds_and_can_fail():
    assert measures.rate_worsens(measures.unlike(10, 1.005, 1.12)).values.all()
    assert measures.residual_turns(measures.unlike(50, 1.02, 1.1)).values.all()
    # Planted: no client with mu > 1, and clients that are all alike.
    assert measures.rate_worsens(measures.unlike(10, 1.005, 1.005)).values.tolist() == [False, True, False]
    assert measures.residual_turns(measures.unlike(50, 1.02, 1.02)).values.tolist() == [True, True, False]


def test_logistic_bounds_hold_and_can_fail(monkeypatch):
    assert measures.logistic_bounds().values.all()
    joint = slice(1, None, 4)  # of each r: binary, least, binary, largest
    # Planted: next to no reference class, as in the softmax that runs have.
    assert not measures.logistic_bounds(reference=1e-30).values[joint].any()
    # Planted: the second derivative of another loss, e^-|z|.
    monkeypatch.setattr(measures.np, "cosh", lambda z: np.exp(np.abs(z)))
    assert not measures.logistic_bounds().values.all()


@pytest.mark.parametrize("solver", ["exact", "gd"])
def test_no_run_comes_near_the_bounds_so_that_they_are_not_claimed(solver):
    settings = {"seed": 3, "clients": 3, "features": 40, "planted": 3, "rounds": 4, "record_every": 1}
    settings |= {"conditions": [1.01], "noises": [1e-4], "local_steps": [1], "replicates": [1, 2]}
    settings["problem"] = "isometry"
    history = run("fedgradmp", settings, None, None, None)
    accuracy = history.groupby("solver")["accuracy"].max()
    # A gradient step on Hessians between 1 and 1.01 is off by less than a hundredth of the way of length 1.
    assert accuracy["exact"] < 1e-12 < 1e-6 < accuracy["gd"] < 0.02
    [(_, runs, promised)] = measures.promises(history, typed("fedgradmp", settings), solver)
    mean = (runs["error"] ** 2).groupby(runs["round"]).mean()
    bound = promised.kappa**mean.index + promised.residual
    assert promised.holds
    assert 0 < (mean / bound)[1:].max() < 1e-3
    [(_, _, nothing)] = measures.promises(history.assign(condition=3.0), typed("fedgradmp", settings), solver)
    assert not nothing.holds


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


class Runs(Inputs):
    """Histories of one small experiment under the names that claims ask for."""

    def __init__(self, frames, settings=None):
        self.frames, self.settings = frames, settings

    def experiments(self):
        return list(dict.fromkeys(experiment for experiment, _ in self.frames))

    def experiment(self, name):
        return typed("fedgradmp", self.settings)

    def runs(self):
        return list(self.frames)

    def run(self, experiment, method):
        return self.frames[experiment, method]


@pytest.fixture(scope="module")
def runs():
    settings = SMALL | {"noises": [1e-4], "tuning": TUNING, "baseline_rounds": BASELINE_ROUNDS}
    frames = {}
    for method in ("fedgradmp", "fedmid", "fedavg"):
        tuned = tune(method, settings, None, None)
        frames["mild", method] = run(method, settings, tuned, None, None)
    return Runs(frames)


def test_a_run_has_a_curve_for_every_variant_and_seed(runs):
    frame = runs.run("mild", "fedgradmp")
    assert set(frame["variant"]) == {"exact", "gd"}
    assert len(frame) == 2 * 3 * 6
    assert (frame["nonzeros"] <= 3).all()
    assert frame[frame["round"] == 5]["error"].max() < 0.1
    assert frame[frame["round"] == 5]["recall"].min() == 1
    baseline = runs.run("mild", "fedavg")
    assert baseline["step"].notna().all()
    assert len(baseline) == 2 * 3 * (BASELINE_ROUNDS + 1)
    assert set(baseline["reading"]) == {"own", "printed"}


def test_dense_methods_run_figure_8_with_the_loss_as_printed_alone():
    """At the listed steps, by hand in one case."""
    readings = {"text": {"sparsity": 3, "scale": 1}, "summed": {"sparsity": 3, "scale": 15}}
    settings = SMALL | {"noises": [0.0], "steps": [1e-3, 1e-2], "readings": readings, "replicates": [1]}
    variants = {
        method: set(run(method, settings, None, None, None)["variant"]) for method in ("fediterht", "fedmid")
    }
    assert variants == {"fediterht": {"text", "summed"}, "fedmid": {"text"}}
    frame = run("fedmid", settings | {"rounds": 1, "local_steps": [1], "batch": 30}, *[None] * 3)
    data, x = problems.regression(Regression.of_job(settings), 0.2, 0.0, 1)
    # The proximal step of clients and, on the mean, that of the server.
    for step, ends in frame[frame["round"] == 1].groupby("step"):
        local = -step * np.einsum("imn,im->in", data.X[0], -data.y[0]) / 30
        mean = (np.sign(local) * np.maximum(np.abs(local) - 0.01 * step, 0)).mean(axis=0)
        server = np.sign(mean) * np.maximum(np.abs(mean) - 0.01 * step, 0)
        assert ends["error"].item() == pytest.approx(np.linalg.norm(server - x), rel=1e-9)


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


def test_table_1_shows_the_cost_of_tuning(runs):
    class Inputs(Runs):
        def tuned(self, experiment, method):
            cost = {"runs": 40, "rounds": 2000, "bits": 1.5e8}
            return {"cost": cost} if method == "fedavg" else {"variants": {}}

        def searches(self):
            return [("mild", "fedgradmp"), ("mild", "fedavg"), ("digits_gaussian", "fedavg")]

        def has(self, key):
            return tuple(key.removeprefix("tuned:").split("/")) in self.searches()

    frames = {key: runs.frames[key] for key in (("mild", "fedgradmp"), ("mild", "fedavg"))}
    shown = TABLES["table1"].show(TABLES["table1"].table(Inputs(frames)))
    columns = [column for column in shown if column.startswith("Tuning")]
    assert columns == ["Tuning, Figure 3's data (α = 0.2)", "Tuning, digits, Gaussian atoms"]
    for column in columns:
        assert shown[column].tolist() == ["none", "40 runs, 2,000 rounds, 1.5e+08 bits"]


# -- digits --------------------------------------------------------------------------------------------

DIGITS = {
    "seed": 1,
    "problem": "digits",
    "dictionary": "standard",
    "clients": 5,
    "samples": 20,
    "cohort": 3,
    "batch": 10,
    "sparsities": [30, 60],
    "local_steps": [4],
    "matched_steps": 2,
    "inner_steps": 2,
    "weights": [1e-4],
    "dtype": "float64",
    "rounds": 6,
    "record_every": 3,
    "replicates": [1, 2],
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
    for name in ("30", "60"):
        one = searched[0]["variants"][name]
        assert one["step"] > 0.04 and not one["edge"]
        assert one["steps"][0] < one["step"] < one["steps"][-1]
        assert one["printed"]["step"] == 0.04 and one["printed"]["edge"]
        assert not one["chaotic"]
        assert one["score"] < one["printed"]["score"]
        # Only steps that were given all rounds can win; the others were dropped.
        finished = [score for score in one["scores"] if score is not None]
        assert len(finished) < len(one["scores"])
        assert one["score"] == pytest.approx(min(finished))


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


def test_a_search_on_digits_says_what_it_ran(searched):
    found, asked = searched
    names = {name for _, replicates, _, _ in asked for name in replicates}
    assert found["trials"]["replicates"] == sorted(names) == [101, 102]
    json.dumps(found, allow_nan=False)  # it is written as such
    assert found["cost"]["runs"] == sum(len(steps) for steps, _, _, resume in asked if resume is None)
    rounds = [len(steps) * (stop - (resume[0] if resume else 0)) for steps, _, stop, resume in asked]
    assert found["cost"]["rounds"] == sum(rounds)


def test_no_step_on_digits_is_tried_twice(searched):
    """Both readings ask for the printed grid."""
    _, asked = searched
    begun = [(step, names[0]) for steps, names, stop, resume in asked if stop == 10 for step in steps]
    assert max(begun.count(one) for one in begun) <= 2  # two levels tau


def test_where_no_step_on_digits_is_stable_the_mean_of_five_repetitions_decides(digits, monkeypatch):
    """Planted: every run differs from its twins."""
    perturbed = trials.simulate_perturbed
    monkeypatch.setattr(
        trials,
        "simulate_perturbed",
        lambda *words, **more: (found := perturbed(*words, **more))._replace(
            difference=np.ones_like(found.difference)
        ),
    )
    search = {**DIGITS["tuning"], "replicates": [101, 102, 103, 104, 105]}
    settings = {**DIGITS, "sparsities": [30], "tuning": search}
    found = tune("fediterht", settings, digits, None)
    one = found["variants"]["30"]
    assert one["chaotic"]
    assert found["trials"]["replicates"] == search["replicates"]
    settings |= {"replicates": search["replicates"], "rounds": search["rounds"]}
    frame = run("fediterht", settings, found, digits, None)
    ends = frame[(frame["reading"] == "own") & (frame["round"] == search["rounds"])]
    assert one["score"] == pytest.approx(1 - ends["train_accuracy"].mean())


def test_both_readings_of_the_step_are_run_on_digits(searched, digits):
    found = searched[0]
    frame = run("fediterht", DIGITS, found, digits, None)
    curves = frame.groupby(["variant", "reading", "replicate"])
    assert len(curves) == 2 * 2 * 2
    for (name, reading, _), curve in curves:
        one = found["variants"][name]
        assert set(curve["step"]) == {one["step"] if reading == "own" else one["printed"]["step"]}
        assert curve["round"].tolist() == [0, 3, 6]
    own, printed = (
        frame[frame["reading"] == reading]["train_accuracy"].to_numpy() for reading in ("own", "printed")
    )
    assert (own != printed).any()

    class Ran:
        def run(self, experiment, method):
            shift = 0.1 if method == "better" else 0.0
            return frame.assign(train_accuracy=frame["train_accuracy"] + shift)

    for reading in ("own", "printed"):
        levels = (
            level(measures.column("train_accuracy", "digits", method, "30", reading=reading))
            for method in ("better", "fediterht")
        )
        found = measures.more_accurate(*levels)(Ran())
        np.testing.assert_allclose(found.values, 0.1)
        last = frame[(frame["reading"] == reading) & (frame["variant"] == "30") & (frame["round"] == 6)]
        assert found.note.endswith(f"against {last['train_accuracy'].mean():.4f}")


def test_one_run_serves_both_readings_where_they_agree(searched, digits, monkeypatch):
    same = {name: one | {"printed": one} for name, one in searched[0]["variants"].items()}
    rows = []
    ran = plans.simulate_perturbed
    monkeypatch.setattr(
        plans, "simulate_perturbed", lambda *words, **more: rows.append(len(words[2])) or ran(*words, **more)
    )
    frame = run("fediterht", DIGITS, {"variants": same}, digits, None)
    assert rows == [2, 2]
    own, printed = (
        frame[frame["reading"] == reading].drop(columns="reading") for reading in ("own", "printed")
    )
    pd.testing.assert_frame_equal(own.reset_index(drop=True), printed.reset_index(drop=True))


def test_thresholds_by_class_by_hand():
    """Two of five weights of each of three classes; FedIterHT's first round, client by client."""
    u = np.array([[5, 1, 0, 4, 2, 9, 3, 3, 8, 0, 4, 1, 1, 5, 2.0]]).reshape(1, 15)
    kept = threshold_by_class(u, 6, 3).reshape(5, 3)
    np.testing.assert_array_equal(kept[:, 0], [5, 4, 0, 0, 0])
    np.testing.assert_array_equal(kept[:, 1], [0, 0, 0, 4, 5])
    np.testing.assert_array_equal(kept[:, 2], [0, 9, 8, 0, 0])


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


def test_local_steps_by_class_are_the_loop(digits):
    settings = typed("fedgradmp", DIGITS | {"classes": 3})
    data, rng = problems.digits(settings, digits).problem, np.random.default_rng(2)
    x, tau = rng.standard_normal((2, data.dim)), np.array([12, 30])
    batches = list(rng.integers(0, 20, (4, 2, 5, 10)))
    local, plain = data.local(x), data.local(x)
    u = local.descend(batches, np.array([0.5, 0.1]), 0.0, tau)
    w = loop(plain, batches, np.array([0.5, 0.1]), 0.0, tau)
    np.testing.assert_allclose(u, w, rtol=1e-12)
    np.testing.assert_allclose(local.mean(u), plain.mean(w), rtol=1e-12)
    assert (np.count_nonzero(local.mean(u).reshape(2, -1, 3), axis=1) == tau[:, None] // 3).all()


@pytest.mark.parametrize("method", ["fediterht", "fedgradmp"])
def test_on_digits_each_class_keeps_its_own_weights(digits, method):
    settings = typed("fedgradmp", DIGITS | {"classes": 3, "sparsities": [12]})
    data = problems.digits(settings, digits).problem
    made = experiments.digits_method(method, settings, ["12"], [0.5])
    x = simulate(made, data, Streams(1, (1,)), 4).state.x.reshape(16, 3)
    np.testing.assert_array_equal(np.count_nonzero(x, axis=0), 4)
    # Together the classes keep other weights.
    alike = typed("fedgradmp", DIGITS | {"sparsities": [12]})
    made = experiments.digits_method(method, alike, ["12"], [0.5])
    other = simulate(made, problems.digits(alike, digits).problem, Streams(1, (1,)), 4).state.x
    assert np.count_nonzero(other.reshape(16, 3), axis=0).std() > 0


def test_thresholded_runs_have_twins_and_others_where_the_search_asks(digits):
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
    there = frame["variant"] == "30"
    # The table on demand says how far, over the last tenth of the rounds.
    moved = frame.assign(
        **{"train_accuracy.of_step": frame["train_accuracy"] + np.where(there, 0.01, np.nan)}
    )
    made = TABLES["digits_more"].table(Runs({("digits_fewest", "fediterht"): moved})).set_index("variant")
    assert dict(made["rounding"] > 0.009) == {"30": True, "60": False}
    last = frame[(frame["round"] == 6) & (frame["variant"] == "60") & (frame["reading"] == "own")]
    assert made["test_accuracy"]["60"] == pytest.approx(last["test_accuracy"].mean())
    assert TABLES["digits_more"].show(made.reset_index())["experiment"].tolist() == ["digits, τ = 500"] * 2


def test_fedavg_is_recorded_at_every_round_and_drawn_as_often_as_others(digits):
    step = {"step": 0.03, "chaotic": False}
    found, settings = {"variants": {"": {**step, "printed": step}}}, DIGITS | {"fedavg_record_every": 1}
    frame = run("fedavg", settings, found, digits, None)
    assert set(frame["round"]) == {*range(7)}

    drawn = FIGURES["fig6"].table(Runs({("digits", "fedavg"): frame}, DIGITS))
    assert set(drawn["round"]) == {0, 3, 6}


# -- claims --------------------------------------------------------------------------------------------


def test_claims_on_curves(runs):
    """Planted: a baseline that is not run on until it has spent as much."""
    for name, step in itertools.product(("rounds", "work", "residual"), ("", ".printed")):
        suffix = f"{step}.counted-work" if name == "work" else step
        found = BY_ID[f"fedgradmp.fig3.fedavg.{name}{suffix}"].measure(runs)
        assert found.values.shape == (3,)
        assert (found.values > 0).all()
    short = {key: frame[frame["round"] <= 5] for key, frame in runs.frames.items()}
    with pytest.raises(NotMeasurableError, match="ends after"):
        BY_ID["fedgradmp.fig3.fedavg.work.counted-work"].measure(Runs(short))


def test_lines_of_figures_are_geometric_means_with_ranges(runs):
    own = Runs({("mild", "fedgradmp"): runs.run("mild", "fedgradmp")})
    frame = FIGURES["fig3"].table(own)
    history = runs.run("mild", "fedgradmp")
    one = history[(history["variant"] == "gd") & (history["round"] == 3)]["error"]
    drawn = frame[(frame["series"] == "fedgradmp/gd") & (frame["round"] == 3)].iloc[0]
    assert drawn["mean"] == pytest.approx(np.exp(np.log(one).mean()))
    assert (drawn["low"], drawn["high"]) == pytest.approx((one.min(), one.max()))
    assert drawn["work"] == history[history["round"] == 3].groupby("variant")["sample_gradients"].mean()["gd"]


def test_figures_show_the_oracle_and_losses_down_to_rounding(runs):
    history = runs.run("mild", "fedavg").assign(method="fediterht")
    frame = FIGURES["fig3"].table(Runs({("mild", "fediterht"): history}))
    drawn = frame[frame["series"] == "oracle"]
    assert set(drawn["round"]) == set(history["round"])
    limits_of = history.groupby("replicate")["limit"].first()
    np.testing.assert_allclose(drawn["mean"], np.exp(np.log(limits_of).mean()))

    exact = runs.run("mild", "fedgradmp").query("variant == 'exact'").assign(objective=1e-32)
    frame = FIGURES["fig9"].table(Runs({("exact", "fedgradmp"): exact}))
    np.testing.assert_allclose(frame.loc[frame["panel"] == "objective", "mean"], 1e-32)
    errors = frame[frame["panel"] == "error"].set_index("round")["mean"]
    np.testing.assert_allclose(
        errors, exact.groupby("round")["error"].apply(lambda e: np.exp(np.log(e).mean()))
    )


def test_errors_below_machine_precision_are_equal():
    rows = [(10, 1, [1.0, 1e-3, 3e-16]), (10, 2, [1.0, 2e-16, 1e-16]), (30, 1, [1.0, 1e-4, 0.0])]
    rows.append((30, 2, [1.0, 1e-15, 4e-16]))
    frames = [
        pd.DataFrame({"cohort": cohort, "replicate": seed, "noise": 0.0, "round": range(3), "error": gaps})
        for cohort, seed, gaps in rows
    ]
    runs = Runs({("cohorts", "fedgradmp"): pd.concat(frames, ignore_index=True)})
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
    rounds = np.arange(101)
    rests = np.maximum(10.0 ** (-rounds / 10), 0.02)
    falls, grows = 10.0 ** (-rounds / 1000), 1 + rounds / 1000
    lost = np.where(rounds < 50, 1 + rounds, np.inf)
    made = Curves(rounds, np.arange(4), np.array([rests, falls, grows, lost]))
    found = measures.residual(made)
    np.testing.assert_array_equal(found.values, measures.tail(made).values)
    assert found.bounds.tolist() == [0, -1, 0, 0]
    known = measures.residual(made, at(Curves(rounds, np.arange(4), np.full((4, 101), 0.003)), 0))
    np.testing.assert_allclose(known.values[1], np.log10(0.003))
    np.testing.assert_array_equal(known.values[[0, 2, 3]], found.values[[0, 2, 3]])
    assert not known.bounds.any()
    # So that nobody has the larger residual for certain where the other one has not come to rest, unless it
    # is known where it would.
    cases = (
        ("fediterht", rests, "holds"),
        ("fediterht", falls, "inconclusive"),
        ("fedavg", falls, "holds"),
    )
    for method, theirs, verdict in cases:
        claim = BY_ID[f"fedgradmp.fig3.{method}.residual"]
        ran = {("mild", "fedgradmp"): 0.1 * rests, ("mild", method): theirs}
        frames = {
            key: pd.concat(
                pd.DataFrame({"replicate": seed, "round": rounds, "error": errors, "limit": 0.02})
                for seed in range(20)
            ).assign(variant="exact" if key[1] == "fedgradmp" else "", reading="own")
            for key, errors in ran.items()
        }
        assert judge(claim, claim.measure(Runs(frames))).verdict == verdict


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
        return Curves(np.arange(8), np.arange(len(errors)), np.array([[1.0] * 6 + [e, e] for e in errors]))

    # A hundredth, then a tenth: half of the decades are left. What rises keeps less than nothing.
    found = measures.kept(ends(0.01, 0.01, 0.5), ends(0.1, 10.0, 0.5))
    np.testing.assert_allclose(found.values, [0.5, -0.5, 1.0])
    with pytest.raises(NotMeasurableError, match="nothing descends"):
        measures.kept(ends(0.01, 2.0), ends(0.1, 0.1))


def test_values_at_equal_work_by_hand():
    def made(*values):
        return Curves(np.arange(len(values)), np.array([1]), np.array([values], dtype=float))

    spent, theirs, total = made(0, 10, 20), made(0.0, 0.5, 1.0), at(made(0, 6, 12), 2)
    found = measures.at_equal(total, theirs, spent)
    assert found.values == pytest.approx([0.6])
    # Not the last value that there is.
    with pytest.raises(NotMeasurableError, match="ends after 20 of 21"):
        measures.at_equal(at(made(0, 6, 21), 2), theirs, spent)
    # What has diverged spends no more, and stays lost.
    lost = measures.logs(made(1.0, 100.0, np.inf))
    assert measures.at_equal(at(made(0, 6, 21), 2), lost, made(0, 10, 10)).values == pytest.approx([2.0])


def test_accuracies_are_compared_at_every_budget():
    """Planted: ahead at first and behind later; and a rival whose rounds send too little."""

    def made(*values):
        return Curves(np.arange(len(values)), np.array([1]), np.array([values], dtype=float))

    mine, sent = made(0.1, 0.6, 0.7, 0.8, 0.8), made(0, 1, 2, 3, 4)
    theirs, spent = made(0.1, 0.5, 0.9), made(0, 2, 4)
    mean, ahead = measures.over_budgets(mine, sent, theirs, spent)
    np.testing.assert_allclose(mean.values, np.mean([0.3, 0.2, 0.1, -0.1]))
    np.testing.assert_allclose(ahead.values, 0.75)
    with pytest.raises(NotMeasurableError, match="sends 4 bits of 5"):
        measures.over_budgets(mine, made(0, 1, 2, 3, 5), theirs, spent)


def test_runs_are_compared_over_equally_many_rounds():
    def made(*values):
        return Curves(np.arange(0, 2 * len(values), 2), np.array([1]), np.array([values], dtype=float))

    cut = measures.as_long(made(1, 2, 3, 4), made(5, 6))
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


def test_the_printed_settings_have_tau_in_each_class_and_one_statement_has_all():
    """On digits; and Figure 11 at the printed dimension with three local iterations."""

    def printed(statement):
        claims = [claim for claim in CLAIMS if claim.statement_id == f"fedgradmp.{statement}"]
        claims = [claim for claim in claims if not claim.informs]
        return {claim.ending for claim in claims if "printed" in claim.axes.names(claim.options)}

    assert printed("fig6") == {".tau-2000.in-each-class"}
    # There no threshold acts on the atoms' coefficients, and communication is a matter of regressions.
    assert printed("fig7") == set() and printed("fig6-bits") == {".printed"}
    assert printed("fig11.rate") == {".n-50"}
    needs = BY_ID["fedgradmp.fig6.fedavg.test.tau-2000.in-each-class"].needs
    assert needs == ("run:digits_classes/fedgradmp", "run:digits/fedavg")


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
    found = BY_ID["fedgradmp.fig3-bits.fedavg"].measure(Runs(frames))
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
        return Runs({("mild", "fediterht"): pd.concat(frames)})

    straight = BY_ID["fedgradmp.fig3.fediterht.linear"].measure
    assert straight(ran(falling, falling)).values.all()
    assert not straight(ran(bent, np.exp(-0.01 * rounds))).values.any()
