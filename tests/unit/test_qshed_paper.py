"""The paper's problems, its runs at a tiny size, and what is made of them."""

import itertools
import types
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from known_runs import Runs, judged
from replifed.claims.claim import NotMeasurableError
from replifed.claims.samples import Sample
from replifed.claims.verdicts import judge
from replifed.data.table import Table
from replifed.operators.bit_allocation import (
    allocate,
    allocate_exactly,
    expected_error,
    interval_squared,
    vectors_in_use,
)
from replifed.papers.qshed import axes, claims, errata, experiments, hessians, measures, model, tables
from replifed.papers.qshed.figures import CASES, CONDITIONS
from replifed.papers.qshed.paper import LINES, PRINTED_BITS, PRINTED_VALUES
from replifed.parts import typed
from replifed.settings.checks import load
from replifed.settings.reading import read_file
from tiny_papers import Tiny, section

of = partial(Runs, "qshed")
IMAGES = {
    **section("qshed")["experiments"]["fmnist"],
    "seed": 1,
    "components": 15,
    "l2": 1e-3,
    "line_search": {"c": 1e-4, "shrink": 0.5, "trials": 60},
    "rounds": 25,
    "cases": {"default": {}},
}


def run(method, settings, table, *more):
    return experiments.run(method, typed("qshed", settings), None, table, None, *more)


def problems(settings, table):
    return experiments.problems(typed("qshed", settings), table)


def images(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, (rows, 20)).astype(np.uint8)
    return Table(X=X, y=(X[:, 0] > 150).astype(int), meta={})


@pytest.fixture(scope="module")
def tiny():
    return Tiny("qshed")


def test_images_become_centred_components_and_a_constant():
    table = images()
    (drawn,) = problems(IMAGES, table)
    X, y = drawn.problem.X, drawn.problem.y
    assert X.shape == (2, 3, 20, 16)
    assert set(np.unique(y)) == {-1.0, 1.0}
    for one in X.reshape(2, 60, 16):
        assert (one[:, -1] == 1).all()
        np.testing.assert_allclose(one[:, :-1].mean(axis=0), 0, atol=1e-12)
        # Principal components: uncorrelated, by decreasing variance.
        covariance = one[:, :-1].T @ one[:, :-1]
        np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
        assert (np.diff(np.diag(covariance)) < 0).all()
    assert not np.array_equal(X[0], X[1])
    gradient = drawn.problem.gradient(np.zeros((2, 16)))
    assert gradient.shape == (2, 16)
    assert (drawn.minimum < drawn.problem.loss(np.zeros((2, 16)))).all()


def test_sparse_data_stay_apart_and_sparse():
    rng = np.random.default_rng(1)
    X = sp.csr_array((rng.random((90, 8)) < 0.3).astype(float))
    table = Table(X=X, y=rng.choice([-1, 1], 90), meta={})
    settings = {name: value for name, value in IMAGES.items() if name not in ("positive", "components")}
    drawn = list(problems({**settings, "intercept": False, "pixel_scale": 1}, table))
    assert [one.replicates for one in drawn] == [(1,), (2,)]
    assert all(one.problem.dim == 8 and one.problem.n_clients == 3 for one in drawn)
    together = run("qshed", {**settings, "rounds": 4}, table)
    assert set(together["replicate"]) == {1, 2}


@pytest.mark.parametrize("method", ["qshed", "fednl"])
def test_a_case_among_others_is_what_it_is_alone(method):
    searched = {
        "default": {},
        "budget_64": {"budget": 64},
        "l2_2": {"l2": 1e-2},
        # The first takes other steps from some round on, the second the same ones in fewer trials or none.
        "search_half": {"line_search": {"c": 0.49, "shrink": 0.9, "trials": 60}},
        "search_short": {"line_search": {"c": 1e-6, "shrink": 0.5, "trials": 50}},
        "vector_24": {"vector_bits": 24},
        "quantised": {"quantised": True, "budget": 12},
        "budget_12": {"budget": 12},
    }
    # FedNL's many curves take long; some end early, beside others that go on.
    few = {"rounds": 12, "stop": 1e-5} if method == "fednl" else {}
    settings, told = {**IMAGES, **few, "cases": searched}, []
    together = run(method, settings, images(), lambda *words: told.append(words))
    assert told and all(done <= total or not total for _, done, total in told)
    alone = [
        run(method, {**settings, "cases": {case: changed}}, images())
        for case, changed in experiments.cases(method, typed("qshed", settings)).items()
    ]
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))
    ends = together.groupby(["case", "variant", "channel", "replicate"])["round"].max()
    assert ends.min() < ends.max() - 2
    steady = together[(together["channel"] == "constant") & (together["variant"] != "projected")]
    histories = {case: frame["objective"].to_numpy() for case, frame in steady.groupby("case")}
    assert np.array_equal(histories["default"], histories["search_short"])
    assert not np.array_equal(histories["default"], histories["search_half"])
    # A larger budget is no news to FedNL without fading.
    assert np.array_equal(histories["default"], histories["budget_64"]) == (method == "fednl")


def test_runs_hold_every_curve(tiny):
    """Newton's method knows no fading, FedNL no renewals; a variant may have one channel alone."""
    both = {"constant", "rayleigh"}
    assert set(tiny.run("fmnist_baselines", "newton")["channel"]) == {"constant"}
    over = tiny.run("fmnist_baselines", "fednl").groupby("variant")["channel"].unique().map(set).to_dict()
    assert over.pop("quantised_ls") == {"rayleigh"} and over and all(one == both for one in over.values())
    cases = {name: set(tiny.run("fmnist_choices", name)["case"]) for name in ("qshed", "nqshed", "fednl")}
    assert {"renewals_10", "dither_none"} <= (cases["qshed"] & cases["nqshed"]) - cases["fednl"]
    assert "budget_64" in cases["fednl"]
    frame = tiny.run("fmnist_choices", "fednl")
    assert set(frame[frame["case"] == "l2_4"]["channel"]) == {"constant"}


def curve(gaps, **labels):
    frames = [
        pd.DataFrame(
            {"replicate": seed, "round": range(len(gap)), "gap": gap, "bits_up": np.arange(len(gap)) * 10.0}
        )
        for seed, gap in enumerate(gaps)
    ]
    return pd.concat(frames, ignore_index=True).assign(**labels)


def test_savings_and_their_bounds_by_hand():
    labels = {"variant": "", "case": "default", "channel": "constant"}
    fast = curve([[1, 1e-5], [1, 1e-5]], **labels)
    slow = curve([[1, 1, 1, 1, 1e-5], [1, 1, 1]], **labels)
    made = of({("w8a", "qshed"): fast, ("w8a", "nqshed"): slow}, {})
    saving = axes.saving("giant", "w8a", "nqshed", threshold=1e-4)
    assert saving.needs == ("run:w8a/qshed", "run:w8a/nqshed")
    measured = saving(made)
    np.testing.assert_allclose(measured.values, [0.75, 0.5])
    assert measured.bounds.tolist() == [0, 1]
    turned = of({("w8a", "qshed"): slow, ("w8a", "nqshed"): fast}, {})
    measured = saving(turned)
    np.testing.assert_allclose(measured.values, [-3.0, -1.0])
    assert measured.bounds.tolist() == [0, -1]


def both_channels(steady, fading, variant=""):
    labels = {"variant": variant, "case": "default"}
    return pd.concat(
        [curve(steady, **labels, channel="constant"), curve(fading, **labels, channel="rayleigh")]
    )


def reaches(*rounds, last=None):
    """Curves that reach every threshold in these rounds; None is cut off after `last`."""
    return [[1.0] * (last + 1) if at is None else [1.0] * at + [1e-9] for at in rounds]


def test_a_run_that_misses_the_target_is_a_bound_and_not_left_unchecked():
    """Without fading the first seed never gets there: its factor is at most what is seen."""
    theirs = both_channels(reaches(None, 8, 8, last=10), reaches(20, 16, 16), variant="rank1_ls")
    made = of({("w8a", "fednl"): theirs}, {})
    factor = axes.slowdown("giant", "w8a", "fednl")(made)
    assert factor.values.tolist() == [2, 2, 2] and factor.bounds.tolist() == [-1, 0, 0]


@pytest.fixture
def saved_apart():
    """With fading Q-SHED saves 60 % of NQ-SHED's rounds and 80 % of FedNL's, without a third of FedNL's."""
    labels = {"steady": reaches(4, 4, 4, 4), "fading": reaches(4, 4, 4, 4)}
    nqshed = both_channels(reaches(8, 8, 8, 8), reaches(10, 10, 10, 10))
    fednl = both_channels(reaches(6, 6, 6, 6), reaches(20, 20, 20, 20), variant="rank1_ls")
    runs = {"qshed": both_channels(**labels), "nqshed": nqshed, "fednl": fednl}
    return of({("w8a", name): run for name, run in runs.items()}, {})


def test_competitors_are_not_pooled(saved_apart):
    assert judged("qshed.fig2.largest.nqshed.giant", saved_apart).verdict == "holds"
    assert judged("qshed.fig2.largest.fednl.32-bits", saved_apart).verdict == "fails"
    told = judged("qshed.fig2.saving.fednl.1e-06.giant", saved_apart)
    # The saving itself, not what is left of it beyond 30 %.
    assert told.measured == pytest.approx(1 / 3) and told.verdict == "inconclusive"


def test_savings_between_30_and_60_percent_have_an_interval(saved_apart):
    """The means are in between, but the seeds are too far apart to say so."""
    assert judged("qshed.fig2.between.nqshed.rayleigh.1e-06.giant", saved_apart).verdict == "holds"
    wide = both_channels(reaches(8, 8, 8, 8), reaches(5, 40, 5, 40))
    made = of(saved_apart.frames | {("w8a", "nqshed"): wide}, {})
    told = judged("qshed.fig2.between.nqshed.rayleigh.1e-06.giant", made)
    assert 0.3 < told.measured < 0.6 and told.verdict == "inconclusive"


def spectra(*leading):
    """New Hessians of one device, with the leading eigenvalues, round by round."""
    rows = [
        {"replicate": 1, "round": t, "device": 1, "vector": i, "eigenvalue": one, "renewed": True, "bits": 0}
        for t, values in enumerate(leading, 1)
        for i, one in enumerate([*values, 0.001], 1)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("shift", "expected"), [(0.0049, "holds"), (0.0051, "fails")])
def test_a_spectrum_must_round_to_the_printed_one(shift, expected):
    """One entry that rounds to another number is enough, however near all of them are together."""
    printed = np.array(PRINTED_VALUES)
    near = printed + shift * (np.arange(11) == 1)
    made = of({("example", "qshed"): spectra(printed + 0.05, near)}, {})
    assert judged("qshed.example.spectrum", made).verdict == expected


def test_the_example_hangs_on_the_tail_that_is_not_printed(monkeypatch):
    """Planted: one of the admissible tails alone, with which a verdict would be told."""
    made = of({}, IMAGES | {"components": 89, "l2": 1e-5})
    told = judged("qshed.example.bits", made)
    assert (told.verdict, told.low, told.high) == ("inconclusive", 0, 8)
    known = measures.tails(90, 1e-5)
    for tail in known.values():
        spectrum = np.array([*PRINTED_VALUES, *tail])
        assert len(spectrum) == 90 and (np.diff(spectrum) <= 0).all() and spectrum[-1] >= 1e-5
    # Of one tail alone the verdict would be another one each.
    for name, expected in (("geometric", "holds"), ("flat", "fails")):
        monkeypatch.setattr(measures, "tails", lambda n, l2, name=name: {name: known[name]})
        assert judged("qshed.example.bits", of({}, made.settings)).verdict == expected


def test_the_second_term_of_eq_10_is_a_product_of_two_sums_as_printed():
    """Each sum binds its own i, and E dV_j = -Delta_j^2 / 12 I: without the term the drawn mean is missed."""
    values, bits, q = errata._VALUES, errata._BITS, errata._Q
    n, bars, squares = len(values), values - values[q], interval_squared(bits)
    term = 2 * bars[q:].sum() * (bars[:q] * -squares / 12).sum()
    mean, error = errata._drawn(tuple(bits))
    whole = errata._formula(errata.a1(n), errata.a2(n), errata.a3(n))
    assert abs(whole - mean) < 4 * error < abs(whole - term - mean)


def test_every_variant_of_the_settings_has_a_line_of_its_own():
    section = read_file(Path(__file__).parents[2] / "config/papers/qshed.yaml")["qshed"]
    for experiment in section["experiments"].values():
        for method, variants in experiment.get("variants", {}).items():
            assert {f"{method}.{name}" for name in variants} <= set(LINES) or set(variants) == {"ls"}


def test_bits_that_rise_are_found(tiny):
    assert judged("qshed.example.ordered.runs", tiny).verdict == "holds"
    history = tiny.run("example", "qshed").copy()
    history.loc[history["vector"] == 1, "bits"] = 0
    assert judged("qshed.example.ordered.runs", of({("example", "qshed"): history}, {})).verdict == "fails"


def test_errors_of_hessians_are_those_of_the_matrices():
    rng = np.random.default_rng(3)
    vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    values = np.array([1.0, 0.5, 0.3, 0.1, 0.05, 0.01])
    H = vectors.T @ np.diag(values) @ vectors
    received = vectors + 0.1 * rng.standard_normal((6, 6))
    built = 0.05 * np.eye(6)
    for i in range(4):
        built += (values[i] - 0.05) * np.outer(received[i], received[i])
    found = hessians.squared_error(values, vectors, received, np.array(4))
    assert found == pytest.approx(np.linalg.norm(H - built) ** 2 / np.linalg.norm(H) ** 2)
    # Exact vectors leave what is behind them.
    left = hessians.squared_error(values, vectors, vectors, np.array(4))
    assert left == pytest.approx(0.04**2 / (values**2).sum())


@pytest.fixture(scope="module")
def allocated():
    """Errors of a small problem's Hessians, with all allocations."""
    changed = {"kind": "hessians", "cases": {"default": {}, "overload_clip": {"overload": "clip"}}}
    table = images()
    table.X[:, 1] //= 8  # eigenvalues that differ
    return run("qshed", {**IMAGES, **changed, "components": 17, "replicates": [1, 2, 3, 4, 5]}, table)


def test_allocations_of_equal_bits_are_compared(allocated):
    counts = allocated.groupby(["case", "place", "allocation"]).size()
    assert len(counts) == 2 * 2 * 7 and (counts == 5 * 3).all()  # five repetitions, three devices
    bits = allocated.groupby("allocation")["bits"].unique().map(list).to_dict()
    assert set(bits) == set(hessians.ALLOCATIONS) and all(one == [32] for one in bits.values())
    # Of 18 coordinates 17 vectors at most are sent.
    assert allocated.groupby("allocation")["vectors"].max()["even_32"] == 17
    noise = 1 + 1e-3 * allocated["replicate"]
    for rival, (error, expected) in itertools.product(("naive", "even"), ((2.0, "fails"), (0.5, "holds"))):
        error = np.where(allocated["allocation"] == "heuristic", error, 1.0) ** noise
        made = of({("w8a_hessians", "qshed"): allocated.assign(error=error)}, {})
        assert judged(f"qshed.hessians.w8a.start.{rival}", made).verdict == expected


def bits_of_rounds(*rounds, values=(1.0, 0.5, 0.2, 0.1), budget=4):
    """One device's bits after each round, of one Hessian."""
    rows = [
        {"replicate": 1, "round": t, "device": 1, "vector": i, "eigenvalue": value, "bits": b}
        | {"budget": budget, "renewed": t == 1}
        for t, bits in enumerate(rounds, 1)
        for i, (b, value) in enumerate(zip(bits, values, strict=True), 1)
    ]
    return pd.DataFrame(rows)


def test_bits_of_all_rounds_may_decrease_where_those_of_one_do_not():
    later = bits_of_rounds([3, 1, 0, 0], [4, 2, 2, 0])
    assert measures.bits_decrease(later).values.tolist() == [True, True]
    assert measures.bits_decrease(later, added=True).values.tolist() == [True, False]
    # A new Hessian's bits are all added.
    later["renewed"] = True
    assert measures.bits_decrease(later, added=True).values.tolist() == [True, True]


def test_bits_that_are_not_the_best_cost_more():
    values = np.array([1.0, 0.5, 0.2, 0.1])
    none = np.zeros(4, dtype=int)
    best = allocate_exactly(values, np.array(0), none, np.array(4), 16)
    chosen = types.SimpleNamespace(b_max=16)
    assert measures.cost_of_the_heuristic(bits_of_rounds(best), chosen).values == [1.0]
    # By hand: of one vector with four bits the model's error is left out + gamma x + a2 lbar^2 x^2.
    x, lbar, rest = 4.0**-3, 0.5, np.array([0.0, 0.3, 0.4])
    error = (rest**2).sum() + (rest.sum() / 6 * lbar + 5 / 6 * lbar**2) * x
    error += (4 / 80 + 12 / 144) * lbar**2 * x**2
    least = expected_error(values, vectors_in_use(best), interval_squared(best))
    found = measures.cost_of_the_heuristic(bits_of_rounds([4, 0, 0, 0]), chosen)
    np.testing.assert_allclose(found.values, error / least)


def test_convergence_that_speeds_up_is_told_from_linear_convergence():
    labels = {"variant": "", "case": "default", "channel": "constant"}
    t = np.arange(60)
    linear, faster = 10.0 ** (-t / 5.0), 10.0 ** -(t**2 / 100.0)
    for gaps, decades in ((linear, 0), (faster, 0.1)):
        # Rounds 21 to 31, of which five are the first half and five the second.
        found = measures.speed_up(curve([gaps, gaps], **labels), 21, 31)
        np.testing.assert_allclose(found.values, decades, atol=1e-12)
    with pytest.raises(NotMeasurableError, match="not all runs have 99 rounds"):
        measures.speed_up(curve([linear], **labels), 21, 100)
    slower = 10.0 ** (-10 * np.sqrt(t / 59.0))
    for gaps, expected in ((slower, "fails"), (linear, "inconclusive"), (faster, "holds")):
        made = of({("w8a_baselines", "shed"): curve([gaps] * 4, **labels)}, {})
        assert judged("qshed.fig2.superlinear.shed", made).verdict == expected
    assert measures.converged(curve([linear, [1.0] * 60]), 1e-10).values.tolist() == [True, False]


def test_what_giant_and_others_lose_is_a_multiple_of_newton_s():
    def run(ill, well, by_class, variant=""):
        labels = {"variant": variant, "channel": "constant"}
        rounds = {"default": ill, "well_conditioned": well, "sorted": by_class}
        frames = [curve(reaches(*[one] * 4), **labels, case=case) for case, one in rounds.items()]
        return pd.concat(frames, ignore_index=True)

    runs = {"giant": run(40, 10, 80), "newton": run(8, 4, 16), "shed": run(30, 20, 60)}
    runs["fednl"] = run(100, 20, 120, "rank1_ls")
    places = {"shed": "conditions"}
    made = of({(places.get(name, "conditions_others"), name): one for name, one in runs.items()}, {})
    found = {}
    for who, what in itertools.product(("giant", "shed", "fednl"), ("conditioning", "heterogeneity")):
        told = judged(f"qshed.conditions.{who}.{what}" + ".giant" * (who == "fednl"), made)
        found[who, what] = told.measured, told.verdict
    # 4 times the rounds against Newton's 2; twice against twice.
    assert found["giant", "conditioning"][0] == 2 and found["giant", "heterogeneity"][0] == 0
    assert found["shed", "conditioning"][0] == 2.5 and found["shed", "heterogeneity"][0] == 0
    assert found["fednl", "conditioning"][0] == -1 and found["fednl", "conditioning"][1] == "fails"
    assert found["fednl", "heterogeneity"][0] == pytest.approx(0.8)


def test_sorted_samples_are_the_same_ones_by_class():
    settings, table = {**IMAGES, "replicates": [1]}, images()
    (mixed,), (by_class,) = (list(problems({**settings, "split": one}, table)) for one in (None, "labels"))
    y = by_class.problem.y.ravel()
    assert (np.diff(y) >= 0).all() and not (np.diff(mixed.problem.y.ravel()) >= 0).all()
    assert sorted(y) == sorted(mixed.problem.y.ravel())
    np.testing.assert_allclose(by_class.minimum, mixed.minimum, rtol=1e-9)


def test_a_saving_is_of_the_seeds_that_both_have_run():
    mine = Sample(np.arange(10.0, 70.0), seeds=np.arange(1, 61))
    theirs = Sample([20.0, 22.0, 48.0], seeds=[1, 2, 3])
    assert tables.saving(mine, theirs) == {"saving": 0.5, "bound": False, "pairs": 3}
    later = Sample([20.0, 22.0, 48.0], [0, 1, 1], seeds=[1, 2, 3])
    assert tables.saving(mine, later) == {"saving": 0.5, "bound": True, "pairs": 3}
    unknown = Sample(mine.values, np.ones(60), mine.seeds)
    assert tables.saving(unknown, later)["saving"] == -np.inf


@pytest.mark.parametrize("b_max", [12, 16])
def test_the_bound_24_holds_on_a_quadratic(b_max):
    assert model.bound_holds(b_max).all() and len(model.bound_holds(b_max)) >= 2


def refinements_that_stop_a_bit_early(monkeypatch):
    grown = model.quantise_grown
    monkeypatch.setattr(
        model, "quantise_grown", lambda v, w, p, b, d: grown(v, w, p, np.maximum(b - 1, p), d)
    )


def no_dither(monkeypatch):
    monkeypatch.setattr(model, "draw_dither", lambda rng, shape: np.zeros(shape))


def cells_twice_as_wide(monkeypatch):
    monkeypatch.setattr(model, "interval", lambda bits: 2.0 ** (2 - np.asarray(bits)))


def steps_that_are_half_as_long(monkeypatch):
    """So that each round leaves half of the distance at least, as vectors that do not improve would."""
    rounds = model.contractions
    monkeypatch.setattr(
        model, "contractions", lambda b_max: ((k, x, max(y, x / 2)) for k, x, y in rounds(b_max))
    )


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("eq11", refinements_that_stop_a_bit_early),
        ("eq11", cells_twice_as_wide),
        ("eq13", no_dither),
        ("eq24", steps_that_are_half_as_long),
    ],
)
def test_a_model_of_another_quantiser_is_found(name, fault, monkeypatch):
    claim = next(one for one in claims.CLAIMS if one.id == f"qshed.model.{name}")
    fault(monkeypatch)
    assert judge(claim, claim.measure(of({}, None))).verdict == "fails"


def test_the_bound_24_is_that_of_the_bits_at_hand():
    """Two bits a coordinate never bring kappa below 1."""
    with pytest.raises(NotMeasurableError, match="1 or more in all rounds"):
        model.bound_holds(2)


def test_the_tolerance_of_the_example_is_what_rounding_moves():
    """Spectra that round to the printed one; the eigenvalues behind them are each of the tails."""
    rng, n, draws = np.random.default_rng(0), 90, 1000
    printed = np.array(PRINTED_VALUES)
    leading = -np.sort(-printed - rng.uniform(-0.005, 0.005, (draws, 11)), axis=1)
    assert np.abs(leading - printed).max() <= 0.005
    none, budget = np.zeros((draws, n), dtype=int), np.full(draws, sum(PRINTED_BITS))
    moved = []
    for tail in measures.tails(n, 1e-5).values():
        true = np.hstack([leading, np.minimum(tail, leading[:, -1:])])
        bits = allocate(true, none[:, 0], none, budget, 16)
        rounded = experiments.example_bits(np.array([*printed, *tail]), 16)
        moved.append(np.quantile(np.abs(bits - rounded).sum(axis=1), 0.95))
    (claim,) = (one for one in claims.CLAIMS if one.id == "qshed.example.bits")
    assert max(moved) == claim.tolerance


def test_conditions_and_choices_are_those_of_the_settings():
    configured = load(["config/small.yaml"])["qshed"]
    assert {*CONDITIONS, "exact_q"} == set(configured["experiments"]["conditions"]["cases"])
    shown = set(CASES)
    for name in ("fmnist_choices", "w8a_choices"):
        assert set(configured["experiments"][name]["cases"]) == shown
