"""Fed-PLT's experiments: rates, searches, errata, and that every experiment, artefact and claim is made."""

import copy
import dataclasses
import re
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.splitting_theory import best_step, linear_round
from replifed.claims.claim import NotMeasurableError
from replifed.claims.samples import Sample
from replifed.claims.verdicts import judge
from replifed.engine.plans import in_one_table
from replifed.engine.search import Grid
from replifed.engine.trials import Spent
from replifed.papers import jobs
from replifed.papers.fedplt import errata, experiments, measures, release, trials
from replifed.papers.fedplt.claims import CLAIMS
from replifed.papers.fedplt.figures import FIGURES
from replifed.papers.fedplt.methods import FREE, PARAMETERS, SOLVERS, Cell, Moduli, build, reference, theory
from replifed.papers.fedplt.paper import STORED, TABLE3, WAITING
from replifed.papers.fedplt.settings import Regression
from replifed.papers.fedplt.tables import TABLES
from replifed.papers.fedplt.trials import Trial, rate, regression
from replifed.papers.fedplt.trials import footprint as footprint_of
from replifed.papers.inputs import Inputs
from replifed.parts import typed
from replifed.randomness import Streams
from replifed.settings import needs, reading
from replifed.settings.needs import artefact_keys
from replifed.store.histories import read_tuned
from small_tables import columns

SHAPE = {"replicates": [1, 2], "agents": 4, "samples": 6, "features": 3, "rounds": 10}
SETTINGS = Regression.of_job({"seed": 3, "ridge": 0.5, "loss": "sum", "data": "planted", **SHAPE})


def test_the_rate_is_the_slope_in_the_window():
    t = np.arange(60)
    errors = np.stack([0.6**t, 3.0 * 0.8**t, 0.999**t, 2.0**t], axis=1)
    errors[0] = 1
    errors[40:, 0] = np.nan
    errors[30:, 3] = np.inf
    found = rate(errors)
    np.testing.assert_allclose(found[:3], [0.6, 0.8, 0.999])
    assert found[3] == np.inf
    # What comes before the window does not count.
    bent = np.concatenate([0.1 ** np.arange(3), 1e-2 * 0.5 ** np.arange(1, 20)])[:, None]
    assert rate(bent)[0] == pytest.approx(0.5)
    # Nor does what comes after it, rounding, however few rounds a fast run has in the window.
    fast = np.maximum(np.array([0.1, 1e-3, 1e-6]) ** np.arange(26)[:, None], 1e-16)
    np.testing.assert_allclose(rate(fast), [0.1, 1e-3, 1e-6])


def test_a_rate_that_bends_late_is_not_taken_before_it_has_settled():
    """Planted: a curve that falls at 0.97 first and at 0.988 later on, as at small rho."""
    t = np.arange(20_000)
    curve = (0.9 * 0.97**t + 0.1 * 0.988**t)[:, None, None]
    short = types.SimpleNamespace(rounds=300)
    short.errors = lambda *_: np.where(curve > 1e-10, curve, np.nan)[: short.rounds + 1]
    assert rate(short.errors())[0, 0] < 0.987
    assert rate(Trial.settled_errors(short, None, None, 1e-4))[0, 0] == pytest.approx(0.988, abs=2e-4)
    assert short.rounds > 1000


def test_a_grid_of_settings_is_its_single_runs_whoever_ends_first():
    cell, rho = Cell("fedplt", "gradient", 3, 4, 4), np.tile([0.05, 0.3, 1.0], (2, 1))
    trial = Trial(SETTINGS.with_(rounds=300))
    grid = trial.errors(cell, {"rho": rho})
    assert (grid[0] == 1).all()
    for point in range(3):
        alone = trial.errors(cell, {"rho": rho[:, point : point + 1]})[..., 0]
        ran = ~np.isnan(alone)
        np.testing.assert_allclose(grid[: len(alone), :, point][ran], alone[ran], rtol=1e-5, atol=2e-10)
        assert (grid[len(alone) :, :, point] < 1e-9).sum() == np.isfinite(grid[len(alone) :, :, point]).sum()


def test_only_the_runs_that_are_asked_for_are_made_and_counted():
    cell, rho = Cell("fedplt", "gradient", 3, 4, 4), np.tile([0.05, 0.3, 1.0, 2.0], (3, 1))
    trial, other = (Trial(SETTINGS.with_(replicates=[1, 2, 3], rounds=20)) for _ in range(2))
    wanted = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    full = other.errors(cell, {"rho": rho})
    some = trial.errors(cell, {"rho": np.where(wanted, rho, np.nan)})
    assert np.isnan(some[:, ~wanted]).all()
    np.testing.assert_allclose(some[:, wanted], full[:, wanted], rtol=1e-12)
    # Each of 4 agents sends and receives a model of 4 doubles in every round.
    assert trial.spent == Spent(6, 120, 120 * 2 * 4 * 4 * 32)


class Bowls:
    """Stands for a trial: rates are log-distances from a point, one for each data set."""

    def __init__(self, *centres):
        self.centres, self.replicates = np.array(centres), tuple(range(len(centres)))

    def rates(self, cell, base, multiples):
        return (np.log(multiples / self.centres[:, None]) ** 2).sum(axis=-1)


def test_the_searches_go_beyond_their_grids_and_refine():
    base = {"one": np.ones(1), "two": np.ones(1)}
    found = trials.common(Bowls([40.0, 0.7]), None, base, trials.around(np.ones(2), 3, 1, refine=4))
    np.testing.assert_allclose(found.best, [40.0, 0.7], rtol=0.1)
    assert not found.edge
    centres = [[0.03], [0.4], [7.0]]
    grid = Grid((tuple(np.geomspace(0.1, 1.0, 9)),), 4)
    each = trials.each(Bowls(*centres), None, {"one": np.ones(3)}, grid)
    np.testing.assert_allclose([one.best for one in each], centres, rtol=0.05)
    assert not any(one.edge for one in each)
    # Far from the start in both parameters.
    centres = [[20.0, 0.05], [0.9, 0.9]]
    grid = trials.around(np.ones(2), 2, 1, refine=6, tolerance=1e-4)
    each = trials.each(Bowls(*centres), None, base, grid)
    np.testing.assert_allclose([one.best for one in each], centres, rtol=0.05)


class Valley(Bowls):
    """Steep on both sides, and it runs across the two parameters, at no angle of a grid."""

    def rates(self, cell, base, multiples):
        a, b = np.moveaxis(np.log(multiples), -1, 0)
        return 0.2 * np.abs(a - 1.5) + 0.3 * np.abs(b - 1.8 * a) + 0 * self.centres[:, :1]


def test_a_search_follows_a_valley_that_runs_across_two_parameters():
    grid = trials.around(np.ones(2), 2, 1, refine=6, tolerance=0.003)
    [found] = trials.each(Valley([1.0, 1.0]), None, {"one": np.ones(1), "two": np.ones(1)}, grid)
    assert found.score < 0.02


@pytest.fixture(scope="module")
def paper():
    """The paper's comparison, on its first data sets."""
    section = reading.read_file(Path(__file__).parents[2] / "config/papers/fedplt.yaml")["fedplt"]
    experiment = section["experiments"]["comparison"]
    return typed(
        "fedplt", {**experiment, "seed": section["seed"], "replicates": experiment["replicates"][:2]}
    )


def searched(method, settings, solver="gradient"):
    """Rates of the equal budget's choices, as reported with many rounds."""
    cell = Cell(method, solver, 10, 10, 10)
    choice = experiments.equal_budget(cell, settings)
    values = {name: value[:, None] for name, value in choice.values.items()}
    return rate(Trial(settings.with_(rounds=300)).errors(cell, values))[:, 0]


@pytest.mark.parametrize(("solver", "alpha", "beta"), [("gradient", 0.7, 1.7), ("accelerated", 0.16, 0.36)])
def test_an_equal_budget_finds_what_a_dense_grid_finds(paper, solver, alpha, beta):
    trial, cell = Trial(paper.with_(rounds=80)), Cell("led", solver, 10, 10, 10)
    axes = np.meshgrid(alpha * np.geomspace(0.7, 1.4, 12), beta * np.geomspace(0.7, 1.3, 12))
    dense = trial.rates(cell, reference(cell, trial.moduli), np.stack(axes, -1).reshape(1, -1, 2))
    assert (searched("led", paper, solver) < dense.min(axis=1) + 0.003).all()


def test_a_free_local_step_makes_fedplt_faster(paper):
    rho = experiments.best_rho(paper, "gradient").values["rho"]
    trial = Trial(paper.with_(rounds=300))
    alone = rate(trial.errors(Cell("fedplt", "gradient", 10, 10, 10), {"rho": rho[:, None]}))[:, 0]
    assert (searched("fedplt", paper) < alone - 0.05).all()


@pytest.mark.parametrize("method", ["fedplt", "fedpd", "fivegcs"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_scale_of_one_is_the_best_constant_local_step(method, solver):
    trial, cell = Trial(SETTINGS), Cell(method, solver, 3, 4, 4)
    own = theory(cell, trial.moduli)
    values = {**own, "scale": np.ones(2)}
    assert tuple(values) == FREE[method]
    free = build(cell, trial.moduli, values)
    own.pop("scale", None)
    fixed = type(free)(**own, solver=SOLVERS[solver](steps=3))
    runs = [trial.traces(method) for method in (free, fixed)]
    np.testing.assert_allclose(*runs, rtol=1e-10)


def test_data_sets_are_as_described():
    both, alone = regression(SETTINGS), SETTINGS.with_(replicates=[2])
    assert (both.X[..., 0] == 1).all()
    assert set(np.unique(both.y)) == {-1.0, 1.0}
    assert np.array_equal(regression(alone).X[0], both.X[1])
    low, high = both.common_mu_L()
    assert (low == 0.5).all()
    expected = [max(np.linalg.eigvalsh(A.T @ A)[-1] for A in X) / 4 + 0.5 for X in both.X]
    np.testing.assert_allclose(high, expected)
    assert regression(alone.with_(data="classification")).X.shape == (1, 4, 6, 4)
    # Labels come of a model: features tell them apart far better than chance.
    many = regression(SETTINGS.with_(samples=500))
    X, y = many.X[0].reshape(-1, 4), many.y[0].ravel()
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    assert (np.sign(X @ w) == y).mean() > 0.65


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_a_free_intercept_has_no_ridge(loss):
    settings = SETTINGS.with_(loss=loss)
    problem, x = regression(settings), trials.free_intercept_minimiser(settings)
    left = problem.gradient(x)
    assert np.abs(left[:, 0]).min() > 1e-3
    left[:, 0] -= problem.l2 * x[:, 0] * problem.weights.sum(axis=1)
    np.testing.assert_allclose(left, 0, atol=1e-5)


@pytest.mark.parametrize("method", PARAMETERS)
def test_every_method_has_theory_and_a_place_to_search_from(method):
    moduli = Moduli(np.full(3, 0.5), np.full(3, 20.0))
    for solver in ("gradient", "accelerated"):
        cell = Cell(method, solver, 10, 10, 5)
        for values in (theory(cell, moduli), reference(cell, moduli)):
            assert tuple(values) == PARAMETERS[method]
            assert all(value.shape == (3,) and (value > 0).all() for value in values.values())
            build(cell, moduli, values)


# --- Measures, on histories made by hand --------------------------------------------------------------------


def by_rho(*minima):
    """Rates on the grid 0.1, 0.2, 0.4, 0.8, a line a data set, lowest at its minimum."""
    lines = [(s, rho, 0.5 + abs(np.log(rho / least))) for s, least in enumerate(minima) for rho in RHOS]
    return measures.by_setting(pd.DataFrame(lines, columns=["replicate", "rho", "rate"]), "rho")


RHOS = (0.1, 0.2, 0.4, 0.8)


def judged(name, measured):
    return judge(next(claim for claim in CLAIMS if claim.id == f"fedplt.{name}"), measured)


def test_the_best_setting_has_the_width_of_data_sets_and_of_the_grid():
    found = measures.best_setting(by_rho(0.2, 0.2, 0.4), ".2g")
    np.testing.assert_allclose(found.values, [0.2, 0.2, 0.4])
    assert found.grid == pytest.approx((0.2 + 0.2 + 0.4) / 3)
    # Alike on all data sets, but read on a grid too coarse to tell.
    same = measures.best_setting(by_rho(*[0.2] * 5), ".2g")
    assert judged("fig2.best", same).verdict == "inconclusive"
    assert judged("fig2.best", dataclasses.replace(same, grid=0.0)).verdict != "inconclusive"
    whole = by_rho(0.2, 0.4).set_axis([1, 2, 3, 4], axis=1)
    assert measures.best_setting(whole, ".0f").grid == 0


def test_shapes_of_means_count_data_sets_and_not_cases():
    table = by_rho(0.2, 0.4, 0.4)
    assert {f(table).measured().seeds for f in (measures.mean_change, measures.one_valley)} == {3}
    history = pd.DataFrame({"error": [0.0, 1.0] * 3, "replicate": [1, 2] * 3})
    assert measures.lines(history, "error").measured().seeds == 2


def test_curves_that_part_at_one_rho_are_found():
    table = by_rho(0.2, 0.2)
    assert measures.apart(table, table, 0.01).values.all()
    bent = table.add([0, 0, 0.02, 0])
    assert measures.apart(table, bent, 0.01).values.tolist() == [True, True, False, True]
    # Only data sets that both have are compared.
    assert measures.apart(pd.concat([table, by_rho(*[0.8] * 9).loc[5:]]), table, 0.01).values.all()


def test_a_round_that_a_proved_bound_does_not_hold_is_found():
    said = measures.norms(pd.DataFrame({"mu": [0.5], "L": [25.0]}), 40, 0.3, printed=True)[0]
    common = {"mu": 0.5, "L": 25.0, "rho": 0.3, "steps": [40, 40, 0], "replicate": [1, 2, 1]}
    norms = [said - 0.01, said + 0.01, 9.0]  # the exact round is no case
    assert measures.round_below_norm(pd.DataFrame({**common, "norm": norms})).values.tolist() == [True, False]


def test_errors_that_still_fall_are_not_steady():
    common = {"variant": "minibatches", "solver": "gradient"}
    common |= {"batch": [1, 1, 5, 5], "replicate": [1, 2, 1, 2]}
    falls = pd.DataFrame({**common, "before": [1.0, 2.0, 1.0, 2.0], "error": [2.0, 1.0, 0.5, 1.0]})
    assert measures.steady(falls, "gradient", 0.1).values.tolist() == [True, False]


def test_proposition_4_is_tighter_than_composition_only_of_many_steps():
    made = types.SimpleNamespace(clip=4.0, samples=20, ridge=0.5, delta=1e-5)
    runs = pd.DataFrame({"round": 1, "steps": [1, 100], "tau": 0.1, "gamma": 0.4, "replicate": 1})
    assert measures.tighter(runs, made, "renyi").values.tolist() == [False, True]
    # Of a single step, what is composed is the step itself.
    assert measures.tighter(runs, made, "advanced").values.tolist() == [False, True]


def test_the_divergence_itself_can_fall_where_its_bound_grows():
    once, twice = (release.divergences(10, 1.0, 10, rounds)["all"] for rounds in (1, 2))
    assert twice < once / 4
    assert release.bound(1.0, 10, 1) < release.bound(1.0, 10, 2)


def test_local_training_that_saves_no_rounds_is_found():
    """A rate that is as low with one epoch as with ten, or lower, or so near that no rounds are saved."""
    for loss, suffix in (("", ""), ("_mean", ".mean"), ("_mean_searched", ".mean-searched")):
        claim = next(claim for claim in CLAIMS if claim.id == f"fedplt.fig3.local{suffix}")
        # At one rho, which is the experiment's alone.
        assert claim.needs == (f"run:epochs{loss}/fedplt",)
        verdicts = [judge(claim, claim.measure(Epochs(gain))).verdict for gain in (0.3, 0.01, -0.1)]
        assert verdicts == ["holds", "fails", "fails"]


class Epochs:
    """Rates with one and with ten epochs, which are lower by `gain` and a bit."""

    def __init__(self, gain):
        lines = [(seed, 1, 0.6) for seed in range(5)]
        lines += [(seed, 10, 0.6 - gain - 1e-5 * seed) for seed in range(5)]
        self.lines = pd.DataFrame(lines, columns=["replicate", "steps", "rate"]).assign(solver="gradient")

    def run(self, *names):
        return self.lines


def test_rates_off_the_line_of_their_end_are_found():
    """Planted: rates with few agents that lie well below the line to that of all, on the mean."""
    line = 1 - np.arange(1, 11) / 10 * (1 - 0.5)
    assert measures.off_line(TABLE3) == pytest.approx(0.009, abs=5e-4)
    bend = 0.05 * np.array([*[1, -1] * 4, 0, 0])  # of single data sets, in turn up and down
    on, off = (
        pd.DataFrame([rates + bend, rates - bend] * 20, columns=range(1, 11)) for rates in (line, line**3)
    )
    assert judged("table3.law", measures.off_line_of(on)).verdict == "holds"
    assert judged("table3.law", measures.off_line_of(off)).verdict == "fails"
    with pytest.raises(NotMeasurableError):
        measures.off_line_of(on[[1, 3]])


def test_a_minimum_is_below_both_ends_by_more_than_its_interval():
    """Planted: a minimum at an end, and one that is lower on the mean, by less than data sets differ."""
    rng = np.random.default_rng(1)
    deep = pd.DataFrame([[0.8, 0.6, 0.7]] * 5, columns=[1, 2, 50]) + 1e-4 * rng.standard_normal((5, 3))
    assert measures.below_ends(deep).values.tolist() == [True, True]
    assert measures.best_of_means(deep).mean == pytest.approx(0.6, abs=1e-3)
    assert measures.below_ends(deep[[1, 2]]).values.tolist() == [True, False]
    deep[50] = deep[2] + np.array([-0.3, 0.1, 0.1, 0.1, 0.1])
    assert not measures.below_ends(deep).values.all()


def test_a_round_from_the_worst_direction_is_the_worst(made):
    """No other direction grows more, and with the corrected S the factor would be allowed."""
    section, inputs, _ = made
    history = Inputs(inputs, {}).run("worst", "fedplt")
    np.testing.assert_allclose(history["factor"], history["norm"], rtol=1e-3)
    settings = typed("fedplt", {**section["experiments"]["worst"], "seed": section["seed"]})
    assert not measures.worst_below_norm(history, settings, "gradient").values.any()
    plain = history[history["solver"] == "gradient"]
    assert (plain["factor"] <= measures.norms(plain, plain["steps"], settings.rho)).all()
    trial = Trial(settings)
    hessians = trial.problem.per_client_hessians(np.repeat(trial.solution[:, None], 10, axis=1))[0]
    (mu,), (L,) = trial.moduli
    matrix = linear_round(hessians, settings.rho, 10, best_step(mu, L, settings.rho))
    assert plain["norm"].iloc[0] == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-6)


def test_the_joint_test_of_a_row_holds_its_level():
    """A further draw passes in 95 of 100 cases; one five deviations off in one rate does not."""
    rng, mix = np.random.default_rng(3), np.array([[1.0, 0.8], [0.0, 0.5]])

    def passes(row, cloud):
        return bool(measures.joint(tuple(row), *map(Sample, cloud.T)).values[0])

    cases = [rng.standard_normal((13, 2)) @ mix for _ in range(400)]
    assert 0.92 <= np.mean([passes(draws[0], draws[1:]) for draws in cases]) <= 0.98
    assert not any(passes(draws[1:].mean(axis=0) + np.array([0, 8]), draws[1:]) for draws in cases[:20])
    one = cases[0][:, :1]
    for cloud in (np.hstack([one, one + 1e-12]), np.hstack([one, np.full_like(one, 0.5)])):
        with pytest.raises(NotMeasurableError):
            passes([0.7, 0.7], cloud)


def test_what_is_computed_in_a_round_is_counted_in_the_code(monkeypatch):
    footprint = {name: in_one_table(footprint_of(name, 1)).iloc[0] for name in STORED}
    counts = {name: (one["fewest"], one["most"]) for name, one in footprint.items()}
    assert counts.pop("tamuna")[0] < footprint["tamuna"]["most"]
    # FedLin's gradients at the server's model, and 5GCS's at the last one, come on top of 3 local steps.
    assert counts == {
        "fedplt": (3, 3),
        "fedpd": (3, 3),
        "fedlin": (4, 4),
        "led": (3, 3),
        "fivegcs": (4, 4),
    }
    # A method that says that its number is random, and always takes the same, is found out.
    monkeypatch.setattr(Streams, "draw", lambda streams, *_: np.full((len(streams), 1), 3))
    constant = in_one_table(footprint_of("tamuna", 1))
    assert not measures.random_epochs(constant, True).values[0]


def test_what_waits_for_a_reply_is_counted_beside_the_state():
    """FedLin's agents keep x and g_i between its two exchanges, nothing of their own from round to round."""
    state = pd.DataFrame({"each": [0], "shared": [1]})
    assert measures.stores(state, 2, 1, WAITING["fedlin"]).values.all()
    assert not measures.stores(state, 2, 1, WAITING["fedplt"]).values.any()


def test_another_fixed_point_is_found():
    """Planted: a distance that comes to rest above zero, and a round with an eigenvalue of one."""
    rounds = {"round": [0, 1, 0, 1], "replicate": [1, 1, 2, 2], "probability": 1, "tau": 0.0}
    left = measures.left(pd.DataFrame({**rounds, "distance": [2.0, 1e-9, 4.0, 1.0]})).values
    np.testing.assert_allclose(left, [5e-10, 0.25])
    common = {"mu": 0.5, "L": 25.0, "rho": [0.3, 0.3, 0.3, 1e3], "steps": [40, 40, 0, 40], "replicate": 1}
    radius = measures.rate_where_proved(pd.DataFrame({**common, "rate": [0.9, 1.0, 2.0, 3.0]})).values
    # The exact round is no case, nor is one for which nothing is proved.
    assert radius.tolist() == [0.9, 1.0]


def test_what_was_chosen_to_fit_is_no_part_of_the_printed_settings():
    for claim in CLAIMS:
        fitted = {need.split(":")[1].split("/")[0] for need in claim.needs} & FITTED
        if fitted and claim.artefact.startswith(("table2", "table3", "table4", "fig")) and claim.options:
            assert claim.axes.source(claim.options) == "fitted", claim.id
            assert "printed" not in claim.axes.names(claim.options), claim.id


def test_a_cell_has_the_nearest_other_rate_of_its_column_as_its_rival():
    cells = {claim.part: claim for claim in CLAIMS if claim.kind == "value"}
    assert cells["fedplt.table2.fedplt.gradient.all"].rival == 0.546
    assert cells["fedplt.table2.fivegcs.gradient.all"].rival == 0.762
    assert cells["fedplt.table2.led.accelerated.all"].rival == 0.774
    assert all(claim.precision == pytest.approx(0.0005) for claim in cells.values())


FITTED = {"comparison", "participation", "noise", "penalty", "epochs"}
FITTED |= {f"{name}_classification" for name in FITTED}


def test_the_mean_of_the_losses_fits_where_all_columns_are_scaled():
    assert errata.mean(("mean", 20**0.5, 20**0.5)) == errata.mean(("sum", 1.0, 1.0))
    assert not errata.mean(("mean", 20**0.5, 1.0)).passes


TINY = {
    "comparison": {
        "rounds": 40,
        "baseline_rounds": 10,
        "tuning_rounds": 20,
        "rho_grid": [0.2, 0.6, 3],
        "refine": 0,
        "own": {"ratio": 1.3, "refine": 0},
        "equal_budget": {"sets": 1, "rounds": 20, "refine": 0},
        "replicates": [1, 2],
        "tuning": {"replicates": [1001, 1002], "rounds": 20, "refine": 0},
    },
    "participation": {"rounds": 40, "tuning_rounds": 20, "rho_grid": [0.2, 0.6, 3], "replicates": [1, 2]},
    "noise": {"rounds": 8, "tail": 4, "replicates": [1, 2]},
    "penalty": {
        "rounds": 40,
        "settled": 1.0,
        "rho_grid": [0.001, 1000, 7],
        "valley": [0.1, 1, 3],
        "replicates": [1, 2],
    },
    "epochs": {"epochs": [1, 10, 20, 40], "accelerated_epochs": [10, 50], "rounds": 60, "replicates": [1, 2]},
    "exactness": {"epochs": [10], "rounds": 130, "replicates": [1]},
    "bounds": {"rounds": 5, "replicates": [1, 2]},
    "worst": {"epochs": [10], "replicates": [1]},
    "privacy": {"tau": [0.1, 1.0], "epochs": [1, 3], "replicates": [1, 2]},
    "splitting": {"rho_grid": [0.001, 1000, 3], "replicates": [1]},
    "variants": {"epochs": [1, 10], "rounds": 500, "tail": 20, "replicates": [1]},
}
BOTH = ("comparison", "participation", "noise", "penalty", "epochs", "splitting", "variants")
TINY |= {f"{name}_mean": TINY[name] for name in BOTH}
TINY["epochs_mean_searched"] = TINY["epochs"]
TINY |= {f"{name}_classification": TINY[name] for name in BOTH if name != "variants"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All runs of the paper at a tiny scale, on disk; and the settings.

    Other readings of the loss and the data have the same histories and searches as the first.
    """
    root = Path(__file__).parents[2]
    folder = tmp_path_factory.mktemp("fedplt")
    section = reading.read_file(root / "config/papers/fedplt.yaml")
    section = reading.deep_merge(section, {"fedplt": {"experiments": copy.deepcopy(TINY)}})["fedplt"]
    inputs = {}
    for name, experiment in section["experiments"].items():
        first = re.sub("_(mean|mean_searched|classification)$", "", name)
        for method in experiment["methods"]:
            if first != name and f"run:{first}/{method}" in inputs:
                of_first = {key: inputs.get(f"{key}:{first}/{method}") for key in ("run", "tuned")}
                inputs |= {f"{key}:{name}/{method}": files for key, files in of_first.items() if files}
                continue
            tuned = None
            if "tuning" in experiment:
                tuned = folder / f"{name}.{method}.tuned.json"
                settings = needs.settings_for("tune", section, name)
                jobs.tune("fedplt", name, method, settings, None, None, tuned)
                inputs[f"tuned:{name}/{method}"] = [tuned]
            out = folder / f"{name}.{method}.parquet"
            settings = {"refine": 0, "together": 25, "target": 1e-10}
            settings |= needs.settings_for("run", section, name)
            jobs.run("fedplt", name, method, settings, None, None, tuned, out)
            inputs[f"run:{name}/{method}"] = [out]
    return section, inputs, folder


def test_every_artefact_is_made(made):
    section, inputs, folder = made
    made_of = {**FIGURES, **TABLES}
    assert set(made_of) == set(section["artefacts"])
    for name, artefact in section["artefacts"].items():
        settings = needs.settings_for("artefact", section, name)
        files = {key: inputs[key] for key in artefact_keys(artefact)}
        table = made_of[name].table(Inputs(files, settings, "fedplt"))
        if artefact["kind"] == "figure":
            assert set(table) == columns("fedplt", name), name  # another test draws from such a table
        else:
            table.to_csv(folder / "table.csv", index=False)
            frame = pd.read_csv(folder / "table.csv", keep_default_na=False, na_values=["nan"])
            readable = made_of[name].show(frame)
            assert len(readable)
            assert not readable.map(str).isin(["nan", "None", ""]).any(axis=None), name


def test_every_claim_is_measured(made):
    section, inputs, folder = made
    jobs.measure_claims(
        "fedplt", needs.settings_for("claims", section), "tiny", inputs, folder / "claims.csv"
    )
    claims = pd.read_csv(folder / "claims.csv")
    assert len(claims) == len(CLAIMS) == claims["id"].nunique()
    unchecked = claims[claims["verdict"] == "unchecked"]
    assert unchecked["reason"].str.contains("not measured").all()
    # A joint test of a row needs more data sets than the tiny runs have.
    few = unchecked[~unchecked["reason"].str.contains("joint test")]
    assert len(few) <= 4, few["reason"].tolist()
    assert set(claims["artefact"]) <= set(section["artefacts"])
    # Some hold at any scale.
    held = claims.set_index("id")["verdict"]
    for name in ("table1.fedplt.stored", "privacy.bound", "fedavg.biased.mean-common", "exact.full"):
        assert held[f"fedplt.{name}"] == "holds", name


def test_readings_are_searched_where_they_say(made):
    section, inputs, _ = made
    settings = section["experiments"]["comparison"]
    read = Inputs(inputs, {})
    for method in PARAMETERS:
        history = read.run("comparison", method)
        reported = set(history["replicate"])
        assert reported == set(settings["replicates"])
        # Data of the common search are never reported.
        tuned = read_tuned(inputs[f"tuned:comparison/{method}"][0], method)
        assert tuned["trials"]["replicates"] == [1001, 1002]
        assert reported.isdisjoint(tuned["trials"]["replicates"])
        for cell in tuned["cells"].values():
            assert cell["cost"]["runs"] == len(cell["tried"]) * len(settings["tuning"]["replicates"])
            assert cell["cost"]["rounds"] > 0
            assert cell["cost"]["bits"] > 0
        equal = history[history["reading"] == "equal budget"]
        assert len(equal) == (0 if method == "tamuna" else 2 * settings["equal_budget"]["sets"])
        # Random runs choose nothing for themselves; all that is chosen has a cost.
        assert (equal["cohort"] == settings["agents"]).all()
        assert (equal["tuning_runs"] > 0).all()
        own = history[history["reading"] == "own"]
        assert own.empty == (method == "tamuna")
        assert ((own["tuning_runs"] > 0) == (own["cohort"] == settings["agents"])).all()
