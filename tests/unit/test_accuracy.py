"""Accuracy on samples that are kept for a test: by plain loops, and in the library."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import replifed as rf
from replifed.engine.accuracy import ACCURACY, NEW, WORST, TestSet, held_out
from replifed.errors import ConfigError, ReplifedError

rng = np.random.default_rng(3)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_matrix])
def test_accuracies_are_those_of_plain_loops(classes, as_table):
    n, d, runs, known = 90, 4, 3, 12
    X, x = rng.normal(size=(n, d)), rng.normal(size=(runs, d * classes))
    y = rng.integers(classes, size=n) if classes > 1 else rng.choice([-1.0, 1.0], n)
    client = rng.integers(-1, 15, size=(runs, n))
    found = TestSet(as_table(X), y, client, known).accuracies(x)
    for run in range(runs):
        z = X @ x[run].reshape(d, classes)
        right = [
            (row.argmax() if classes > 1 else np.sign(row[0])) == one for row, one in zip(z, y, strict=True)
        ]
        shares = {}
        for k in set(client[run]) - {-1}:
            shares[k] = np.mean([one for one, i in zip(right, client[run], strict=True) if i == k])
        of_known = sorted(share for k, share in shares.items() if k < known)
        assert found[ACCURACY][run] == pytest.approx(np.mean(of_known))
        assert found[WORST][run] == pytest.approx(np.mean(of_known[:2]))  # of 12 the tenth, rounded up
        assert found[NEW][run] == pytest.approx(np.mean([share for k, share in shares.items() if k >= known]))


def test_samples_of_no_client_count_alike():
    X, y = rng.normal(size=(40, 3)), rng.choice([-1, 1], 40)
    x = rng.normal(size=(2, 3))
    test = TestSet(X, y, np.full((1, 40), -1), 0)
    assert list(test.metrics()) == [ACCURACY]
    np.testing.assert_allclose(test.accuracies(x)[ACCURACY], (np.sign(X @ x.T) == y[:, None]).mean(axis=0))


def test_metrics_follow_a_model_that_is_changed_in_place():
    X, y = rng.normal(size=(60, 3)), rng.choice([-1, 1], 60)
    test = TestSet(X, y, np.arange(60)[None] % 6, 4)
    metrics, seen = test.metrics(), {"server": rng.normal(size=(1, 3))}
    for _ in range(3):
        values = {name: metric(None, seen) for name, metric in metrics.items()}
        assert values == test.accuracies(seen["server"])
        seen["server"] *= -1


@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.999])
def test_of_each_group_a_share_is_held_out_and_something_left(share):
    group = np.repeat([3, 1, 8, 2], [1, 2, 10, 100])
    out = held_out(group, share, np.random.default_rng(0))
    for name, size in ((1, 2), (8, 10), (2, 100)):
        assert out[group == name].sum() == min(max(round(share * size), 1), size - 1)
    assert not out[group == 3].any()


# -- The library -------------------------------------------------------------------------------------


def pairs_of(clients=6, n=20, d=3):
    x = rng.normal(size=d)
    return [(X, np.sign(X @ x + 0.1)) for X in rng.normal(size=(clients, n, d))]


def test_the_library_records_accuracy_of_clients_that_train_and_of_new_ones():
    training, test = rf.hold_out(pairs_of(), 0.2)
    assert [len(y) for _, y in test] == [4] * 6 and [len(y) for _, y in training] == [16] * 6
    problem = rf.problems.from_clients(training[:4], l2=0.1)
    method = rf.method("fedavg", step=0.5, local_steps=3)
    frame = rf.run(method, problem, 5, 2, test=test)
    plain = rf.run(method, problem, 5, 2)
    pd.testing.assert_frame_equal(frame[plain.columns], plain)
    x = np.zeros(3)
    for _ in range(5):  # FedAvg by hand
        models = []
        for A, b in training[:4]:
            w = x.copy()
            for _ in range(3):
                w = w - 0.5 * (0.1 * w - A.T @ (b / (1 + np.exp(b * (A @ w)))) / len(b))
            models.append(w)
        x = np.mean(models, axis=0)
    shares = [np.mean((A @ x > 0) == (b > 0)) for A, b in test]
    end = frame.iloc[-1]
    assert end["accuracy"] == pytest.approx(np.mean(shares[:4]))
    assert end["accuracy_worst"] == pytest.approx(min(shares[:4]))
    assert end["accuracy_new"] == pytest.approx(np.mean(shares[4:]))
    compared = rf.compare({"a": method}, problem, 5, test=test)
    assert compared.table()["accuracy"].item() == pytest.approx(end["accuracy"])
    assert compared.plot(y="accuracy").axes[0].get_ylabel() == "accuracy"


@pytest.mark.parametrize(
    "test, says",
    [
        ((np.ones((2, 4)), np.ones(2)), "test: 4 features; the problem has 3"),
        ((np.ones((2, 3)), np.array([1, 2])), r"test: the class 2; the problem has -1 and \+1"),
        ((np.ones((2, 3)), np.ones(3)), "do not fit"),
        ([], "give a pair of features and classes"),
    ],
)
def test_the_library_refuses_another_test_in_one_line(test, says):
    problem = rf.problems.from_clients(pairs_of(), l2=0.1)
    with pytest.raises(ConfigError, match=says) as refusal:
        rf.run(rf.method("fedavg", step=0.5, local_steps=3), problem, 2, test=test)
    assert "\n" not in str(refusal.value)


def test_the_library_refuses_targets_and_shares_that_are_none():
    problem = rf.problems.from_clients(pairs_of(), loss="least_squares", l2=0.1)
    with pytest.raises(ReplifedError, match="accuracy is of classes, and the loss least_squares has targets"):
        rf.run(rf.method("fedavg", step=0.1, local_steps=3), problem, 2, test=pairs_of())
    with pytest.raises(ReplifedError, match="share = 1: must be a number between 0 and 1"):
        rf.hold_out(pairs_of(), 1)
