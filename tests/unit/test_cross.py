"""The comparison of all methods: each can be set up, and the table says what each used."""

import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import sparse

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.registry import METHODS, method_class
from replifed.engine.simulate import simulate
from replifed.network.fading import Constant
from replifed.papers.cross import compare, experiments
from replifed.papers.cross.claims import CLAIMS
from replifed.papers.cross.figures import FIGURES, TABLES
from replifed.papers.cross.methods import algorithm, tunes, width
from replifed.papers.cross.problems import problem as problem_of
from replifed.papers.cross.problems import solution
from replifed.parts import typed
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
SETTINGS = CONFIG["experiments"]["a9a"]
COMPOSITE, PLANTED = (CONFIG["experiments"][name] for name in ("a9a_l1", "planted"))
METHODS_RUN = {method for one in CONFIG["experiments"].values() for method in one["methods"]}


def run(method, settings, *more):
    return experiments.run(method, typed("cross", settings), *more)


def tune(method, settings, *more):
    return experiments.tune(method, typed("cross", settings), *more)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1, 4, 30, 6))
    y = np.sign(X @ rng.normal(size=6) + rng.normal(size=(1, 4, 30)))
    return DenseLinearModel(X, y, loss_named("logistic"), weights=np.full((1, 4), 0.25), l2=0.01)


@pytest.mark.parametrize("method", sorted(METHODS_RUN - {"fedmm"}))
def test_every_method_sends_floats_of_32_bits(problem, method, monkeypatch):
    """First-order methods compute with them; others round each kind of message, and count 32 bits a value."""
    kept, rounded = width(method), []
    X, y = problem.X.astype(kept), problem.y.astype(kept)
    data = DenseLinearModel(X, y, problem.loss_function, weights=problem.weights, l2=0.01)
    made = algorithm(method, np.array([0.5]), problem, typed("cross", SETTINGS))
    if kept is np.float64:
        sent = type(made).sent
        monkeypatch.setattr(
            type(made), "sent", lambda self, exact: rounded.append(exact) or sent(self, exact)
        )
    history = simulate(made, data, Streams(0, (1,)), 3, channel=Constant(SETTINGS["bits"]))
    N, n, ledger = data.n_clients, data.dim, history.ledger
    if kept is np.float32:
        assert {field.dtype for field in history.state if field.dtype.kind == "f"} == {np.dtype(np.float32)}
        return
    shapes = {np.shape(exact)[1:] for exact in rounded}
    assert {(N, n), (n,), (N,)} <= shapes  # gradients, the direction, the line search's losses
    message = {
        "gradient_descent": (0, set()),
        "newton": (n * (n + 1) / 2, {(N, n, n)}),
        "giant": (n, {(N, n)}),
        "fednl": (n + 1, {(N, n), (N,)}),
        "shed": (2 * n + 3, {(N, 2, n), (N, n)}),  # two vectors and eigenvalues fit the budget, and rho
    }
    if method in message:
        values, kinds = message[method]
        assert kinds <= shapes
        searched = ledger["line_search_messages"][1, 0] // 2 + N / 2  # up: one more than down
        assert ledger["bits_up"][1, 0] == 32 * (N * (n + values) + searched)
    np.testing.assert_array_equal(made.sent(rounded[0]), rounded[0].astype(np.float32))


def test_a_run_is_rounded_where_it_sends():
    """The step along a rounded direction is not the exact one's, but as close as floats are."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1, 4, 30, 6))
    y = np.sign(rng.normal(size=(1, 4, 30)))
    data = DenseLinearModel(X, y, loss_named("logistic"), l2=0.1)
    exact, rounded = (
        simulate(method_class("giant")(single_precision=single), data, Streams(0, (1,)), 1).state.x
        for single in (False, True)
    )
    assert (exact != rounded).all()
    np.testing.assert_allclose(rounded, exact, rtol=1e-5)
    np.testing.assert_array_equal(rounded, rounded.astype(np.float32))  # from zero, by a step of 1


def test_without_a_norm_fedmid_and_feddualavg_are_fedavg(problem):
    """Which is why one curve stands for all three."""
    models = [
        simulate(
            algorithm(name, np.array([0.5]), problem, typed("cross", SETTINGS)), problem, Streams(0, (1,)), 20
        ).state.x
        for name in ("fedavg", "fedmid", "feddualavg")
    ]
    for other in models[1:]:
        np.testing.assert_allclose(other, models[0], rtol=1e-10)


class Mine(FedAvg):
    """A stranger's method."""


def test_a_method_of_a_step_and_local_steps_joins_by_its_class_alone(problem, monkeypatch):
    monkeypatch.setitem(METHODS, "mine", f"{__name__}:Mine")
    made = algorithm("mine", np.array([0.5, 2.0]), problem, typed("cross", SETTINGS))
    assert isinstance(made, Mine) and tunes("mine") and width("mine") is np.float32
    np.testing.assert_allclose(made.step * problem.smoothness().max(), [0.5, 2.0])
    assert made.local_steps == SETTINGS["local_steps"]


def falling(*gaps, replicate=1):
    """A run with these gaps, round by round."""
    t = np.arange(len(gaps))
    one = pd.DataFrame({"round": t, "gap": gaps, "replicate": replicate, "diverged": False})
    return one.assign(bits_up=10.0 * t, bits_down=t, sample_gradients=5.0 * t, message_bits=1, samples=1)


def inputs_of(histories, tuned=None):
    return types.SimpleNamespace(
        experiments=lambda: ["a9a"],
        methods=lambda experiment: list(histories),
        run=lambda experiment, method: histories[method],
        tuned=lambda experiment, method: (tuned or {}).get(method, {"search": None}),
        experiment=lambda name: typed("cross", {"seed": 1, **CONFIG["experiments"][name]}),
    )


def tabled(table, inputs, folder):
    """The table as texts, from its CSV."""
    table.table(inputs).to_csv(folder / "t.csv", index=False, na_rep="nan")
    return table.show(pd.read_csv(folder / "t.csv", keep_default_na=False, na_values=["nan"]))


THERE = (1, 1e-2, 1e-5, 1e-6)


def test_the_table_counts_from_when_the_gap_stays_at_the_target(tmp_path):
    """One that oscillates has touched it only, and its end stands beside."""
    never = falling(1, 1, 1, 1, replicate=2)
    histories = {
        "fedlin": falling(*THERE),
        "fedavg": falling(1, 1e-5, 1e-2, 1e-3),
        "newton": pd.concat([falling(*THERE), never]),
        "giant": pd.concat([falling(*THERE), never, falling(1, 1e-2, 1e-3, 1e-4, replicate=3)]),
        "shed": pd.concat([falling(*THERE, replicate=seed) for seed in range(20)]),
    }
    cost = {"runs": 40, "rounds": 2000, "bits": 1.5e8, "budget": 60}
    tuned = {"fedlin": {"cost": cost, "search": {"edge": True}}}
    used = TABLES["table1"].table(inputs_of(histories, tuned))
    assert used[used["method"] == "fedlin"]["median"].tolist() == [2, 22, 10]
    assert np.isinf(used[used["method"] == "fedavg"][["median", "low", "high"]]).all(axis=None)
    shown = tabled(TABLES["table1"], inputs_of(histories, tuned), tmp_path)
    assert list(shown) == ["a9a, gap 0.0001"]
    shown = shown["a9a, gap 0.0001"].set_index("method")
    assert shown["bits"].to_dict() == {
        "FedAvg": "not reached",
        "FedLin": "22",
        "distributed Newton": "– [22, …] (1 of 2)",
        "GIANT": "– [22, …] (1 of 3)",  # one gets there in the last round alone
        "SHED (20 equal runs)": "22",
    }
    assert shown["first time there"].tolist()[:2] == ["1", "2"] and shown["gap"].tolist()[:2] == [
        "0.001",
        "1e-06",
    ]
    spent = "40 of 60 runs, 2,000 rounds, 150 Mbit"
    assert shown.loc["FedLin", "tuning"] == f"{spent}; best at an end of the grid"
    assert shown.loc["SHED (20 equal runs)", "tuning"] == "no number to tune"


def test_a_comparison_has_targets_that_its_runs_reach_and_ranks_by_the_gap_where_there_is_none(tmp_path):
    def seeds(*gaps):
        return pd.concat(
            [falling(*(gap * (1 + seed / 40) for gap in gaps), replicate=seed) for seed in range(3)]
        )

    small = {"a": seeds(1, 0.4, 0.3, 0.15), "b": seeds(1, 0.3, 0.13, 0.11), "c": seeds(1, 0.9, 0.8, 0.7)}
    names = [list(tabled(compare.TABLES[name], inputs_of(small), tmp_path)) for name in ("table1", "pairs")]
    assert names == [["a9a, gap 0.5"], ["a9a, gap 0.5"]]  # that of the last round alone is not reached
    none = {name: seeds(1, gap, gap, gap) for name, gap in {"a": 0.9, "b": 0.7, "c": 0.8}.items()}
    table = tabled(compare.TABLES["table1"], inputs_of(none), tmp_path)["a9a, no target reached"]
    assert table["method"].tolist() == ["b", "c", "a"]
    pairs = tabled(compare.TABLES["pairs"], inputs_of(none), tmp_path)["a9a, gap at the end"]
    assert pairs.set_index("method").loc["2 b"].tolist() == ["<", "", "<"]


def test_a_method_without_a_line_of_its_own_is_drawn_and_tabled():
    """Nothing that was run is left out: a stranger's method has no entry in `paper`."""
    rounds = np.arange(3)
    run = pd.DataFrame({"round": rounds, "gap": [1.0, 1e-2, 1e-5], "replicate": 1, "diverged": False})
    run = run.assign(bits_up=1.0 + rounds, bits_down=rounds, sample_gradients=1.0 + rounds)
    run = run.assign(message_bits=1, samples=1)

    inputs = types.SimpleNamespace(
        experiments=lambda: ["a9a"],
        experiment=lambda name: typed("cross", SETTINGS),
        methods=lambda experiment: ["mine", "fedavg"],
        runs=lambda: [("a9a", "mine"), ("a9a", "fedavg")],
        histories=lambda: [run.assign(experiment="a9a", method=method) for method in ("mine", "fedavg")],
        run=lambda experiment, method: run.assign(method=method),
        tuned=lambda experiment, method: {},
    )
    for name, figure in FIGURES.items():
        if name == "accuracy":  # of its own experiments alone
            continue
        drawn = figure.show(figure.table(inputs))
        legends = drawn.legends or [ax.get_legend() for ax in drawn.axes if ax.get_legend()]
        assert "mine" in [text.get_text() for legend in legends for text in legend.get_texts()]
        # The profile has a panel for methods that are in none of its groups.
        assert [len(ax.lines) for ax in drawn.axes if ax.axison][-1] == (1 if name == "profile" else 2)
    used, pairs = (TABLES[name].show(TABLES[name].table(inputs)) for name in ("table1", "pairs"))
    used = used["a9a, gap 0.0001"]
    assert used["method"].tolist() == ["FedAvg", "mine"] and "audit" not in used
    assert pairs["a9a, gap 0.01"]["method"].tolist() == ["1 mine", "2 FedAvg"]

    booked = dict(booked_sample_gradients=run["sample_gradients"] / 3, booked_hessians=0, hessians=0)
    other = dict(booked_line_search_messages=0, line_search_messages=0, outside=0)
    audited = run.assign(**booked, **other, exchanges_booked=1.0, exchanges_needed=50.0)
    inputs.run = lambda experiment, method: audited if method == "mine" else run
    used = TABLES["table1"].show(TABLES["table1"].table(inputs))
    said = "books 1 of 3 sample gradients; books 1 exchange a round and needs 50"
    assert used["a9a, gap 0.0001"]["audit"].tolist() == ["", said]


@pytest.fixture(scope="module")
def dealt():
    """Two classes in twelve dimensions, dealt to three clients in four ways."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 12))
    table = types.SimpleNamespace(X=sparse.csr_array(X), y=np.sign(X @ rng.normal(size=12)))
    clients = {replicate: rng.integers(3, size=90) for replicate in (1, 101, 102, 103)}
    return table, types.SimpleNamespace(clients=clients)


def test_the_search_is_kept_and_used(dealt):
    settings = {**SETTINGS, "seed": 1, "samples": 20, "rounds": 5, "replicates": [1]}
    settings["tuning"] = {"replicates": [101, 102, 103], "rounds": 8, "multiples": [0.3, 1], "refine": 1}
    found = tune("fedlin", settings, *dealt)
    search = found["search"]
    assert search["score"] == search["scores"][search["steps"].index(search["step"])] < np.log(2)
    assert search["steps"] == sorted(search["steps"])
    assert None in search["scores"]  # the grid was extended to where FedLin diverges
    assert search["steps"][0] < search["step"] < search["steps"][-1]
    assert (search["edge"], search["chaotic"]) == (False, False)
    history = run("fedlin", settings, found, *dealt)
    assert set(history["multiple"]) == {search["step"]}
    assert history["gap"].iloc[-1] < 1.0


@pytest.mark.parametrize("method", [*SETTINGS["methods"], *COMPOSITE["methods"], *PLANTED["methods"]])
def test_repetitions_side_by_side_are_as_each_alone(dealt, method):
    """Clients of other repetitions have other numbers of samples, so that they are padded."""
    settings = COMPOSITE if method in COMPOSITE["methods"] else SETTINGS
    data = dealt
    if method in PLANTED["methods"]:
        settings, data = {**PLANTED, "clients": 3, "features": 20}, (None, None)
    settings = {**settings, "seed": 1, "samples": 28, "rounds": 8}
    tuned = {"search": {"step": 0.5}}
    together = run(method, {**settings, "replicates": [101, 102, 103]}, tuned, *data)
    if data[0] is not None:
        assert len(set(together["samples"])) > 1
    for name, part in together.groupby("replicate"):
        alone = run(method, {**settings, "replicates": [name]}, tuned, *data)
        part = part.reset_index(drop=True)
        tight = width(method) is np.float64
        np.testing.assert_allclose(part.pop("gap"), alone.pop("gap"), rtol=1e-6 if tight else 1e-3, atol=1e-6)
        np.testing.assert_allclose(part.pop("objective"), alone.pop("objective"), rtol=1e-5)
        pd.testing.assert_frame_equal(part, alone, check_dtype=False)


def test_the_gap_with_a_norm_is_to_the_minimiser(dealt):
    settings = {**COMPOSITE, "seed": 1, "samples": 40, "l1": 0.1}
    data = problem_of(typed("cross", settings), [101, 102], *dealt)
    x, g = solution(data), data.gradient(solution(data))
    assert (x == 0).any() and (x != 0).any()
    np.testing.assert_allclose(g[x != 0], -0.1 * np.sign(x[x != 0]), atol=1e-9)
    assert (np.abs(g[x == 0]) <= 0.1).all()
    settings |= {"replicates": [101, 102], "rounds": 300}
    for method in ("fedplt", "fedmm"):
        assert run(method, settings, {"search": {"step": 1.0}}, *dealt)["gap"].min() < 1e-5


def test_the_gap_of_the_planted_problem_is_to_the_best_on_its_support():
    settings = {**PLANTED, "seed": 1}
    data = problem_of(typed("cross", settings), [1, 2], None, None)
    x = solution(data)
    for model, support, X, y in zip(x, data.support, data.X, data.y, strict=True):
        assert support.sum() == 20 and (model[~support] == 0).all()
        best = np.linalg.lstsq(X[..., support].reshape(-1, 20), y.ravel(), rcond=None)[0]
        np.testing.assert_allclose(model[support], best)
    settings |= {"replicates": [1, 2], "rounds": 60}
    history = run("distributed_iht", settings, {"search": {"step": 3.0}}, None, None)
    # A sparse model below would say that the planted one is not the best.
    assert (history["objective"] >= np.repeat(data.loss(x), 61) * (1 - 1e-5)).all()
    assert history["gap"].min() < 1e-5


def small(**tuning):
    tuning = {"replicates": [101, 102, 103], "rounds": 8, "multiples": [0.1, 1], "refine": 0, **tuning}
    return {**SETTINGS, "seed": 1, "samples": 20, "tuning": tuning}


def test_a_multiple_that_diverges_on_one_repetition_is_not_chosen(dealt, monkeypatch):
    def ends(trial, multiples):
        [(replicate, _)] = trial._trials.problems
        return np.where((replicate == 103) & (multiples >= 1), np.inf, 1 / multiples)

    monkeypatch.setattr(experiments._Trial, "descents", ends)
    search = tune("fedlin", small(), *dealt)["search"]
    assert search["scores"][-1] is None
    assert search["step"] < 0.1  # not the largest that works either


def test_a_multiple_that_is_not_stable_on_one_repetition_is_not_chosen(dealt, monkeypatch):
    steady = tune("fedlin", small(), *dealt)["search"]

    def stable(trial, multiples):
        [(replicate, _)] = trial._trials.problems
        return (replicate != 103) | (multiples < steady["step"])

    monkeypatch.setattr(experiments._Trial, "stable", stable)
    search = tune("fedlin", small(), *dealt)["search"]
    assert search["step"] < steady["step"] in search["rejected"]


@pytest.mark.parametrize("runs", [24, 27])
def test_extensions_of_the_grid_spend_the_budget_of_all(dealt, runs):
    found = tune("fedlin", small(multiples=[1e-3, 3e-3], runs=runs), *dealt)
    assert found["search"]["edge"] and runs - 3 < found["cost"]["runs"] <= runs == found["cost"]["budget"]
    assert found["trials"]["replicates"] == [101, 102, 103]


@pytest.mark.parametrize("method", ["fedgradmp", "fedmm", "newton", "gradient_descent"])
def test_methods_without_a_number_search_nothing(method):
    nothing = {"method": method, "search": None, "trials": {"replicates": []}}
    assert tune(method, SETTINGS, None, None) == nothing


def test_a_seed_has_one_number_that_of_the_data_set_with_the_least_lead():
    """Ends of 1e-6 and 1e-8 against 1e-2, and on w8a of 1e-1: no data set makes up for another."""

    class Inputs:
        def run(self, experiment, method):
            ends = {1: 1e-2, 2: 1e-2} if method == "fedavg" else {1: 1e-6, 2: 1e-8}
            if experiment == "w8a" and method == "led":
                ends = {1: 1e-1, 2: 1e-1}
            lines = [(replicate, t, gap if t else 1.0) for replicate, gap in ends.items() for t in (0, 1)]
            return pd.DataFrame(lines, columns=["replicate", "round", "gap"])

    inputs = Inputs()
    found, lost = (
        next(claim for claim in CLAIMS if claim.id == f"cross.{method}.below_fedavg").measure(inputs)
        for method in ("fedlin", "led")
    )
    np.testing.assert_allclose(found.values, [4.0, 6.0])
    np.testing.assert_allclose(lost.values, [-1.0, -1.0])
    assert lost.note == "decades by data set: a9a 5, phishing 5, mushrooms 5, w8a -1"
