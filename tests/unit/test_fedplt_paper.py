"""Fed-PLT's experiments: rates, searches, errata, and that every experiment, artefact and claim is made."""

import dataclasses
import types

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.splitting_theory import best_step, linear_round
from replifed.claims.claim import NotMeasurableError
from replifed.claims.samples import Sample
from replifed.claims.verdicts import judge
from replifed.engine.plans import in_one_table
from replifed.engine.trials import Spent
from replifed.papers.fedplt import errata, measures, release, trials
from replifed.papers.fedplt.claims import CLAIMS
from replifed.papers.fedplt.methods import FREE, PARAMETERS, SOLVERS, Cell, build, theory
from replifed.papers.fedplt.paper import STORED, TABLE3, WAITING
from replifed.papers.fedplt.settings import Regression
from replifed.papers.fedplt.trials import Trial, rate, regression
from replifed.papers.fedplt.trials import footprint as footprint_of
from replifed.randomness import Streams
from tiny_papers import Tiny

SHAPE = {"replicates": [1, 2], "agents": 4, "samples": 6, "features": 3, "rounds": 10}
SETTINGS = Regression.of_job({"seed": 3, "ridge": 0.5, "loss": "sum", "data": "planted", **SHAPE})


@pytest.fixture(scope="module")
def tiny():
    return Tiny("fedplt")


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
    centres = [[20.0, 0.05], [0.9, 0.9]]
    grid = trials.around(np.ones(2), 2, 1, refine=6, tolerance=1e-4)
    each = trials.each(Bowls(*centres), None, base, grid)
    np.testing.assert_allclose([one.best for one in each], centres, rtol=0.05)


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


# --- Measures, on histories made by hand --------------------------------------------------------------------


def by_rho(*minima):
    """Rates on the grid 0.1, 0.2, 0.4, 0.8, one line per data set, lowest at its minimum."""
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


def test_a_round_from_the_worst_direction_is_the_worst(tiny):
    """No other direction grows more, and with the corrected S the factor would be allowed."""
    history, settings = tiny.run("worst", "fedplt"), tiny.experiment("worst")
    np.testing.assert_allclose(history["factor"], history["norm"], rtol=1e-3)
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


@pytest.mark.parametrize("method", PARAMETERS)
def test_readings_are_searched_where_they_say(tiny, method):
    settings = tiny.experiment("comparison")
    history, tuned = tiny.run("comparison", method), tiny.tuned("comparison", method)
    assert set(history["replicate"]) == set(settings.replicates)
    assert tuned["trials"]["replicates"] == settings.tuning.replicates
    for cell in tuned["cells"].values():
        assert cell["cost"]["runs"] == len(cell["tried"]) * len(settings.tuning.replicates)
        assert cell["cost"]["rounds"] > 0 and cell["cost"]["bits"] > 0
    # Random runs choose nothing for themselves; all that is chosen has a cost.
    own, equal = (history[history["reading"] == reading] for reading in ("own", "equal budget"))
    assert len(equal) == (0 if method == "tamuna" else 2) and own.empty == (method == "tamuna")
    assert (equal["cohort"] == settings.agents).all() and (equal["tuning_runs"] > 0).all()
    assert ((own["tuning_runs"] > 0) == (own["cohort"] == settings.agents)).all()
