"""What a comparison keeps for a test: never trained or tuned on, and how its accuracies are told."""

import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import sparse

from planned_comparison import PLAIN, config
from replifed.algorithms.registry import method_class
from replifed.data import own
from replifed.data.catalogue import CATALOGUE
from replifed.data.fetch import fetch
from replifed.data.table import Table, load
from replifed.engine.accuracy import ACCURACY, WORST, TestSet
from replifed.errors import DataError
from replifed.papers.cross import accuracy, experiments, problems
from replifed.papers.cross.held_out import Held
from replifed.partition.build import build
from replifed.parts import typed
from replifed.settings import held_out as settings_of_tests
from replifed.settings.comparison import OFFERED, comparison, errors
from replifed.settings.comparison import problems as problems_of

CROSS = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
METHODS_OF_CROSS = CROSS["experiments"]["a9a"]["methods"]
rng = np.random.default_rng(3)
NAMES = (1, 2, 101)
EXPERIMENT = {
    "problem": "softmax",
    "dataset": "mine",
    "partition": {"clusters": "iid", "clients": 5, "spread": 0.0},
    "local_steps": 2,
    "kept_share": 0.1,
    "ridge": 0.01,
    "rounds": 6,
    "record_every": 1,
    "replicates": [1, 2],
    "methods": ["fedavg", "scaffold"],
    "seed": 7,
    "tuning": {"replicates": [101], "rounds": 4, "multiples": [0.3, 1.0, 3.0], "refine": 0},
}


def settings(**changed):
    return typed("cross", {**EXPERIMENT, **changed})


def table_of(n=200, d=5, classes=3, client=None):
    X = rng.normal(size=(n, d)) * [1, 10, 0.1, 5, 1] + [0, 3, 0, -40, 0]
    y = ((X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, classes))).argmax(axis=1)
    meta = {"id": "mine", "kind": "original"}
    if client is not None:
        meta["clients"] = [f"site {k}" for k in range(client.max() + 1)]
    return Table(sparse.csr_matrix(X), y, meta, client)


def partition_of(table, clients=5, kind="iid"):
    dealt = {name: rng.permutation(np.arange(len(table.y)) % clients).astype(np.int32) for name in NAMES}
    if kind == "given":
        dealt = dict.fromkeys(NAMES, table.client)
    return types.SimpleNamespace(clients=dealt, meta={"settings": {"clusters": kind}})


# -- A comparison ------------------------------------------------------------------------------------


def rows_of(features, table):
    """Numbers of the samples of a table that have these features, which all differ."""
    places = {tuple(row): k for k, row in enumerate(table.X.toarray())}
    return {places[tuple(row)] for row in features}


@pytest.mark.parametrize("kind", ["iid", "given"])
def test_no_sample_is_trained_or_tuned_on_and_tested(kind, monkeypatch):
    """In any repetition, the search's included; nor validated on and trained or tested."""
    table = table_of(client=rng.integers(5, size=200).astype(np.int32))
    partition = partition_of(table, kind=kind)
    trained, tested = {"run": set(), "tune": set()}, []
    kept = problems.stacked

    def watched(sets):
        for clients in sets:
            for X, _ in clients:
                trained[step] |= rows_of(X, table)
        return kept(sets)

    class Watched(TestSet):
        def accuracies(self, x):
            tested.append(rows_of(self.X, table))
            return super().accuracies(x)

    monkeypatch.setattr(problems, "stacked", watched)
    monkeypatch.setattr("replifed.papers.cross.held_out.TestSet", Watched)
    validated = settings(test="20%", new_clients=1, tuning={**EXPERIMENT["tuning"], "validation": "25%"})
    step = "tune"
    found = experiments.tune("fedavg", validated, table, partition)
    validation = set.union(*tested)
    tested.clear()
    step = "run"
    history = experiments.run("fedavg", validated, found, table, partition)
    test = set.union(*tested)
    assert not test & (trained["tune"] | trained["run"] | validation)
    assert not validation & trained["tune"]
    assert len(test) == pytest.approx(40, abs=3) and 20 < len(validation) <= 40
    assert (history["test_clients"] == 4).all() and (history["test_new_clients"] == 1).all()
    # A client that never takes part has no sample among those that are trained on.
    if kind == "given":
        out = set(table.client.tolist()) - set(
            table.client[sorted(trained["run"] | trained["tune"])].tolist()
        )
        assert len(out) == 1


def test_a_clients_test_samples_are_its_own_and_numbered_after_those_that_train():
    table = table_of()
    partition = partition_of(table)
    held = Held(settings(test="20%", new_clients=2), table, partition)
    test = held.test([1, 2])
    for row, name in enumerate((1, 2)):
        training = held.partition.clients[name]
        present = np.unique(training[training >= 0])
        assert len(present) == test.clients == 3
        assert test.samples[row] == (held._kept & (partition.clients[name] >= 0)).sum()
        for number, client in enumerate(present):
            mine = rows_of(test.X[test.client[row] == number], table)
            assert set(partition.clients[name][sorted(mine)]) == {client}
        new = rows_of(test.X[test.client[row] >= 3], table)
        assert set(partition.clients[name][sorted(new)]) == set(range(5)) - set(present)


def test_an_official_test_set_changes_no_run():
    table, test = table_of(), table_of(60)
    partition = partition_of(table)
    tuned = {"search": {"step": 0.5}}
    for method in ("fedavg", "scaffold"):
        plain = experiments.run(method, settings(), tuned, table, partition)
        tested = experiments.run(method, settings(test="official"), tuned, table, partition, test=test)
        pd.testing.assert_frame_equal(tested[plain.columns], plain, check_exact=True)
        added = set(tested.columns) - set(plain.columns)
        assert added == {ACCURACY, "test_samples", "test_clients", "test_new_clients"}
        assert tested["test_samples"].unique() == [60] and tested["test_clients"].unique() == [0]


def test_clients_of_an_official_test_set_are_known_by_their_names():
    table = table_of(client=rng.integers(5, size=200).astype(np.int32))
    other = table_of(50, client=rng.integers(3, size=50).astype(np.int32))
    other.meta["clients"][:] = ["site 4", "elsewhere", "site 0"]
    test = Held(settings(test="official"), table, partition_of(table, kind="given"), other).test([1])
    np.testing.assert_array_equal(test.client[0], np.array([4, 5, 0])[other.client])
    assert test.clients == 5 and test.known == [2] and test.new == [1]


def test_natural_clients_that_are_not_drawn_never_take_part():
    """Of a test set of the same clients, those of a repetition that train are numbered first."""
    table = table_of(client=rng.integers(5, size=200).astype(np.int32))
    other = table_of(60, client=np.tile(np.arange(5, dtype=np.int32), 12))
    made, _ = build(table.X, table.y, {"clusters": "given", "clients": 3}, NAMES, 7, table.client)
    drawn = {name: set(np.unique(one)) - {-1} for name, one in made.clients.items()}
    assert {len(one) for one in drawn.values()} == {3} and len({*map(frozenset, drawn.values())}) > 1
    for name in NAMES:
        held = made.clients[name] >= 0
        np.testing.assert_array_equal(made.clients[name][held], table.client[held])
    test = Held(settings(test="official"), table, made, other).test([1, 2])
    for row, name in enumerate((1, 2)):
        for number, client in enumerate([*sorted(drawn[name]), *sorted(set(range(5)) - drawn[name])]):
            np.testing.assert_array_equal(test.client[row] == number, other.client == client)
    assert test.clients == 3
    with pytest.raises(DataError, match="it names 5 clients, not 6; ask for fewer"):
        build(table.X, table.y, {"clusters": "given", "clients": 6}, NAMES, 7, table.client)


def test_natural_data_of_the_catalogue_have_their_own_split_and_take_others():
    known = problems_of(config())
    one = known["mnist_writers"]
    assert one["partition"] == {"clusters": "given", "clients": 50} and one["problem"] == "softmax"
    whole = comparison(config(["mnist_writers"], partition="dirichlet:0.3"))["experiments"]
    assert list(whole) == ["mnist_writers_dirichlet_0_3_50"]
    assert not list(errors(config(["mnist_writers"], partition="given", clients=100, cohort="10%")))
    of_more = comparison(config(["mnist_writers"], clients=100, test="official"))["experiments"]
    (more,) = of_more.values()
    assert more["partition"] == {"clusters": "given", "clients": 100} and more["test"] == "official"


@pytest.mark.parametrize("policy", ["auto", "real", "surrogate"])
def test_nothing_stands_in_for_natural_clients(tmp_path, policy, monkeypatch):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    with pytest.raises(DataError, match=r"^femnist is (not available|never generated)") as refusal:
        fetch(CATALOGUE["femnist"], tmp_path, policy=policy)
    assert "\n" not in str(refusal.value) and not (tmp_path / "femnist.json").exists()


@pytest.mark.parametrize("method", OFFERED["rcv1"]["methods"])
def test_a_problem_on_sparse_features_is_that_on_dense_ones(method):
    table = table_of(classes=2)
    table = Table(sparse.csr_matrix(table.X / [1, 10, 0.1, 40, 1]), 2 * table.y - 1, table.meta)
    partition = partition_of(table)
    runs = [
        experiments.run(
            method,
            settings(problem=kind, test="20%", samples=25),
            {"search": {"step": 0.5}},
            table,
            partition,
        )
        for kind in ("logistic", "sparse")
    ]
    for name in ("objective", "gap", ACCURACY, WORST):
        np.testing.assert_allclose(runs[1][name], runs[0][name], rtol=1e-4, atol=1e-6)
    for name in ("replicate", "round", "bits_up", "bits_down", "sample_gradients", "test_clients"):
        np.testing.assert_array_equal(runs[1][name], runs[0][name])


def test_no_other_method_runs_on_sparse_features():
    needs = {name: {need.__name__ for need in method_class(name).needs} for name in METHODS_OF_CROSS}
    fit = {name for name, of in needs.items() if of <= {"Smooth", "LocalSteps", "Ray"}}
    assert fit == set(OFFERED["rcv1"]["methods"])


def test_texts_say_how_large_they_would_be_as_dense_features():
    one = {**PLAIN, "replicates": list(range(20)), "samples": 300}
    asked = config(["rcv1"], against=["scaffold"])
    asked["cross"]["experiments"]["phishing"] = one
    [(path, text)] = errors(asked)
    assert path == ("comparison", "against")
    assert text.startswith(
        "scaffold needs dense features, which are 21 GiB on rcv1 (20 repetitions of 10 clients"
    )
    assert pytest.approx(21.1, abs=0.1) == 20 * 10 * 300 * 47236 * 8 / 2**30
    [(path, text)] = errors(config(["news20"]))
    assert text.startswith("news20 has 20 classes, whose softmax takes dense features: 1.4 GiB a repetition")
    assert "; take rcv1, " in text and not [*errors(config(["rcv1"]))]


def test_a_test_set_that_is_generated_is_refused():
    table, test = table_of(), table_of(50)
    test.meta["kind"] = "surrogate"
    with pytest.raises(DataError, match="tests nothing: generated data take the place"):
        Held(settings(test="official"), table, partition_of(table), test).test([1])


@pytest.mark.parametrize("official", [False, True])
def test_features_are_standardised_over_the_training_samples_alone(official):
    table, own_test = table_of(), table_of(80) if official else None
    word = "official" if official else "20%"
    held = Held(settings(test=word, standardise=True), table, partition_of(table), own_test)
    train = held.partition.clients[1] >= 0
    raw, X = table.X.toarray(), held.table.X.toarray()
    mean, deviation = raw[train].mean(axis=0), raw[train].std(axis=0)
    np.testing.assert_allclose(X, (raw - mean) / deviation, atol=1e-12)
    wanted = (own_test.X.toarray() - mean) / deviation if official else X[~train]
    np.testing.assert_allclose(held.test([1]).X, wanted, atol=1e-12)
    if not official:
        assert not np.allclose(mean, raw.mean(axis=0))


def test_a_client_that_keeps_nothing_to_train_on_is_named():
    table = table_of()
    partition = partition_of(table)
    partition.clients[2][partition.clients[2] == 4] = 0
    kept = np.flatnonzero(Held(settings(test="20%"), table, partition)._kept)
    partition.clients[2][kept[0]] = 4
    with pytest.raises(
        DataError, match="in repetition 2 client 4 keeps no sample to train on; take a smaller"
    ):
        Held(settings(test="20%"), table, partition)


def test_a_search_on_accuracy_takes_the_step_whose_validation_is_best(monkeypatch):
    """Against the same trials, run one by one, with errors counted by hand."""
    table = table_of()
    partition = partition_of(table)
    chosen = settings(rounds=4, test="20%", tuning={**EXPERIMENT["tuning"], "validation": "25%"})
    search = experiments.tune("fedavg", chosen, table, partition)["search"]
    held = Held(chosen, table, partition, None, "25%")
    validation = held.test([101])
    for step, score in zip(search["steps"], search["scores"], strict=True):
        monkeypatch.setattr(experiments, "_counts", lambda *_: {})
        plan = experiments._planned(
            "fedavg",
            chosen,
            [101],
            {"search": {"step": step}},
            held.table,
            held.partition,
            lambda _: validation,
        )
        history = experiments.execute("fedavg", 7, [plan])
        end = history.iloc[-1]
        if score is not None:
            assert score == pytest.approx(1 - end[ACCURACY], abs=3e-6)
        else:
            assert end["objective"] >= history["objective"].iloc[0] or end["diverged"]


def test_a_run_that_diverges_counts_as_zero_and_is_not_left_out(tmp_path):
    table = table_of()
    partition = partition_of(table)
    tested = settings(test="20%")
    good = experiments.run("fedavg", tested, {"search": {"step": 0.5}}, table, partition)
    bad = good.copy()
    late = (bad["replicate"] == 2) & (bad["round"] >= 3)
    bad.loc[late, ["diverged", ACCURACY, WORST, "objective", "gap"]] = [True, 0.0, 0.0, np.inf, np.inf]
    runs = {"fedavg": good, "scaffold": bad}
    inputs = types.SimpleNamespace(
        experiments=lambda: ["mine"],
        methods=lambda _: [*runs],
        run=lambda _, method: runs[method],
        histories=lambda: [run.assign(experiment="mine", method=name) for name, run in runs.items()],
    )
    ends = accuracy.TABLE.table(inputs).set_index(["method", "used"])
    low, middle, high = (ends.loc[("scaffold", "round"), f"{ACCURACY}{end}"] for end in ("_low", "", "_high"))
    assert low == 0 and middle == pytest.approx(high / 2)
    shown = next(iter(accuracy.TABLE.show(accuracy.TABLE.table(inputs)).values())).set_index("method")
    assert "(1 of 2 diverged)" in shown.loc["SCAFFOLD", "gap"]
    curve = accuracy.PICTURE.table(inputs)
    last = curve[(curve["method"] == "scaffold") & (curve["round"] == 6) & (curve["metric"] == ACCURACY)]
    assert last["low"].item() == 0 and last["diverged"].item() == 1 and last["seeds"].item() == 2


def test_the_target_is_a_share_of_the_best_accuracy_of_all_methods():
    def run(*accuracies):
        t = np.arange(len(accuracies))
        one = pd.DataFrame({"round": t, ACCURACY: accuracies, "gap": 1.0, "replicate": 1, "diverged": False})
        one = one.assign(bits_up=10.0 * t, bits_down=t, sample_gradients=5.0 * t, exchanges=t)
        one = one.assign(message_bits=640.0, samples=9.0)
        return one.assign(test_samples=9, test_clients=3, test_new_clients=0)

    runs = {"fedavg": run(0.1, 0.71, 0.6, 0.72, 0.73), "fedlin": run(0.1, 0.6, 0.8, 0.79, 0.8)}
    inputs = types.SimpleNamespace(
        experiments=lambda: ["mine"], methods=lambda _: [*runs], run=lambda _, method: runs[method]
    )
    table = accuracy.TABLE.table(inputs).set_index(["method", "used"])
    assert table["target"].unique() == pytest.approx([0.72])
    assert table.loc["fedavg", "median"].to_dict() == {"round": 3, "bits": 33, "sample_gradients": 15}
    assert table.loc["fedlin", "median"].to_dict() == {"round": 2, "bits": 22, "sample_gradients": 10}
    # With two clients a round takes 1 s there and back, 5 bits up and 1/2 down of each, and 2.5 gradients.
    inputs.options = types.SimpleNamespace(time="uplink=5bps,downlink=1bps,latency=1s,gradient=1s")
    inputs.has, inputs.experiment = lambda _: False, lambda _: types.SimpleNamespace(clients=2)
    timed = accuracy.TABLE.table(inputs)
    seconds = timed.set_index(["method", "used"]).loc[("fedlin", "seconds"), "median"]
    assert seconds == pytest.approx(2 * (1 + 5 / 5 + 0.5 / 1 + 2.5))
    assert "time to the target, s" in next(iter(accuracy.TABLE.show(timed).values()))


# -- Settings ----------------------------------------------------------------------------------------


def test_without_a_test_a_comparison_is_as_before():
    section = comparison(config())
    assert section["experiments"] == {"phishing": PLAIN} and "accuracy" not in section["artefacts"]


def test_a_comparison_takes_official_tests_and_else_a_share():
    one = config(["phishing", "a9a"], test="official,20%", tune_on="accuracy")
    experiments_of = comparison(one)["experiments"]
    assert {name: (made["test"], made["tuning"]["validation"]) for name, made in experiments_of.items()} == {
        "phishing_test_20pct_tuned_on_accuracy": ("20%", "20%"),
        "a9a_test_official_tuned_on_accuracy": ("official", "20%"),
    }
    assert {"accuracy", "accuracies"} <= set(comparison(one)["artefacts"])
    named = comparison(config(test="10%", new_clients="20%", cohort=3))["experiments"]
    assert list(named) == ["phishing_cohort_3_test_10pct_new_20pct"]


@pytest.mark.parametrize(
    "requested, key, says",
    [
        ({"test": "0%"}, "test", "expected a share between 0 and 100 %, such as 20%"),
        ({"test": "100%"}, "test", "expected a share between 0 and 100 %"),
        ({"test": "some"}, "test", "expected a share"),
        ({"test": "20%,official"}, "test", "expected official, 20%, or official,20%"),
        ({"test": "official"}, "test", "phishing has no test set of its own; keep a share, such as 20%"),
        ({"tune_on": "accuracy"}, "tune_on", "there is no test; give one"),
        (
            {"test": "20%", "new_clients": 10},
            "new_clients",
            "phishing: 10 is not allowed; expected from 1 to 9",
        ),
        ({"test": "official", "new_clients": 1, "data": ["a9a"]}, "new_clients", "give test a share"),
        ({"test": "20%", "new_clients": 2, "cohort": 9}, "cohort", "must be from 1 to 8 clients"),
        ({"test": "20%", "data": ["planted"]}, "test", "planted has no samples to keep"),
    ],
)
def test_settings_of_tests_are_checked_before_any_job(requested, key, says):
    found = list(errors(config(**requested)))
    assert [path for path, _ in found] == [("comparison", key)]
    assert says in found[0][1] and "\n" not in found[0][1]


def test_targets_have_no_accuracy(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    mine = {"mine": {"path": str(tmp_path / "t.csv"), "loss": "least_squares"}}
    found = list(errors(config(["mine"], mine, test="20%")))
    assert found == [(("comparison", "test"), "mine has targets, and accuracy is of classes; leave it out")]


def test_a_file_of_its_own_must_be_there_and_its_name_free(tmp_path):
    for name in ("t.csv", "u.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    path = str(tmp_path / "t.csv")
    one = {"mine": {"path": path, "loss": "logistic", "test": str(tmp_path / "none.csv")}}
    assert "none.csv does not exist" in next(errors(config(["mine"], one, test="official")))[1]
    two = {"mine": {**one["mine"], "test": str(tmp_path / "u.csv")}, "mine_test": {**one["mine"]}}
    del two["mine_test"]["test"]
    assert "mine_test is another data set" in next(errors(config(["mine"], two, test="official")))[1]
    assert settings_of_tests.official("mine", two)


# -- Files -------------------------------------------------------------------------------------------

TRAIN = "colour,size,label\nred,1,a\nblue,2,b\nred,3,b\ngreen,4,c\n"


def parsed(folder, train, test, **more):
    paths = {}
    for name, text in {"train.csv": train, "test.csv": test}.items():
        (folder / name).write_text(text)
        paths[name] = {"path": str(folder / name), "loss": "softmax", **more}
    own.parse("mine", paths["train.csv"], folder / "train.npz")
    own.parse("mine_test", paths["test.csv"], folder / "test.npz", folder / "train.npz")
    return load(folder / "train.npz"), load(folder / "test.npz")


def test_a_test_file_has_the_columns_and_classes_of_the_samples_to_train_on(tmp_path):
    test = "size,label,colour\n5,c,blue\n6,a,blue\n"
    train, test = parsed(tmp_path, TRAIN, test, label="label", categories=["colour"])
    assert (
        test.meta["columns"] == train.meta["columns"] == ["size", "colour=blue", "colour=green", "colour=red"]
    )
    np.testing.assert_array_equal(test.X.toarray(), [[5, 1, 0, 0], [6, 1, 0, 0]])
    np.testing.assert_array_equal(test.y, [2, 0])


@pytest.mark.parametrize(
    "test, says",
    [
        (
            "colour,size,label\nred,1,a\nred,1,d\n",
            "the class d is none of the samples to train on",
        ),
        ("colour,weight,label\nred,1,a\nblue,1,b\n", "the feature weight is none of the samples to train on"),
        ("colour,label\nred,a\nblue,b\n", "the feature size of the samples to train on is missing"),
        ("colour,size,label\npink,1,a\nred,1,b\n", "the feature colour=pink is none of the samples"),
    ],
)
def test_a_test_file_with_other_classes_or_features_is_refused_in_one_line(tmp_path, test, says):
    with pytest.raises(DataError, match=says) as refusal:
        parsed(tmp_path, TRAIN, test, label="label", categories=["colour"])
    assert "test.csv: " in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "test.npz").exists()


def test_a_libsvm_test_may_lack_the_last_columns_and_has_no_more(tmp_path):
    for name, text in {"a": "1 1:1 3:2\n-1 2:1\n", "b": "-1 1:1\n1 2:1\n", "c": "1 4:1\n-1 1:1\n"}.items():
        (tmp_path / name).write_text(text)
    own.parse("a", {"path": str(tmp_path / "a")}, tmp_path / "a.npz")
    own.parse("b", {"path": str(tmp_path / "b")}, tmp_path / "b.npz", tmp_path / "a.npz")
    assert load(tmp_path / "b.npz").X.shape == (2, 3)
    with pytest.raises(DataError, match="c: 4 features; the samples to train on have 3"):
        own.parse("c", {"path": str(tmp_path / "c")}, tmp_path / "c.npz", tmp_path / "a.npz")
