"""The package from Python, as its page shows it."""

import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import replifed as rf
from replifed.data.catalogue import PACKED
from replifed.errors import ReplifedError

PAGE = Path(__file__).parents[2] / "docs/library.md"
RNG = np.random.default_rng(3)
CLIENTS = [(RNG.normal(size=(n, 4)), RNG.choice([-1.0, 1.0], n)) for n in (5, 8, 6)]
PROBLEM = rf.problems.from_clients(CLIENTS, l2=0.1)


def test_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    assert (tmp_path / "compared.png").stat().st_size > 10_000
    table = names["compared"].table(target=1e-3)
    assert list(table.index) == ["FedAvg", "FedLin"]
    # Models and gradients, both ways, of three clients.
    assert table.loc["FedLin", "bits"] == 4 * 3 * 20 * 32 * table.loc["FedLin", "round"]
    assert len(names["history"]) == 2 * 5 and "bits" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["pairs", "sparse", "lists"])
def test_forms_of_the_same_data_are_one_problem(form):
    dense = rf.problems.from_clients(CLIENTS, l2=0.1)
    data = {
        "pairs": tuple(CLIENTS),
        "sparse": [(sp.csr_array(X), y) for X, y in CLIENTS],
        "lists": [(X.tolist(), y.tolist()) for X, y in CLIENTS],
    }[form]
    x = RNG.normal(size=(2, 4))
    other = rf.problems.from_clients(data, l2=0.1)
    np.testing.assert_allclose(other.loss(x), dense.loss(x))
    fits = [np.log1p(np.exp(-y * (X @ x[0]))).mean() for X, y in CLIENTS]
    assert other.loss(x)[0] == pytest.approx(np.mean(fits) + 0.05 * x[0] @ x[0])
    weighted = rf.problems.from_clients(data, l2=0.1, weights=[0.5, 0.2, 0.3])
    assert weighted.loss(x)[0] == pytest.approx(np.dot(fits, [0.5, 0.2, 0.3]) + 0.05 * x[0] @ x[0])
    # Equally many samples may come as one array.
    X, y = RNG.normal(size=(3, 5, 4)), RNG.normal(size=(3, 5))
    one, pairs = (
        rf.problems.from_clients(*of, loss="least_squares") for of in ((X, y), ([*zip(X, y, strict=True)],))
    )
    assert np.array_equal(one.loss(x), pairs.loss(x))


NEWTON = rf.method("newton")


MISTAKES = [
    (
        lambda: rf.problems.from_clients(CLIENTS, loss="logisitc"),
        "unknown loss 'logisitc'; did you mean 'log",
    ),
    (lambda: rf.problems.from_clients([(X, y * np.nan) for X, y in CLIENTS]), "client 0: targets hold NaN"),
    (lambda: rf.problems.from_clients(CLIENTS, l2="x"), "l2 = 'x': must be a number"),
    (lambda: rf.method("fedavg", lr=0.1), "unknown setting of fedavg 'lr'"),
    (lambda: rf.method("fedavg", step=0.1), "fedavg needs the setting local_steps"),
    (lambda: rf.method("fedlin", solver="gradient"), "must be a local solver, such as"),
    (lambda: rf.method("fedlin", solver=None), "must be a local solver, such as"),
    (lambda: rf.method("fedgradmp", sparsity=2, local_steps=1, solver="x"), "must be one of exact, gd, sgd"),
    (lambda: rf.method(None), "a method's name is None: must be a text"),
    (lambda: rf.run(None, None, 2, seeds=0), "seeds = 0: must be a whole number"),
    (lambda: rf.run(None, None, 2, seeds=[1, 2]), r"seeds = \[1, 2\]: must be a whole number"),
    (lambda: rf.run(None, None, 0.5), "rounds = 0.5: must be a whole number"),
    (lambda: rf.run("fedavg", None, 2), "a str is no method: make one with replifed.method"),
    (lambda: rf.run(NEWTON, CLIENTS, 2), "a list is no problem: make one with"),
    (lambda: rf.run(NEWTON, PROBLEM, 2, auditd=True), "'auditd'; did you mean 'audited'"),
    (lambda: rf.run(NEWTON, PROBLEM, 2, cohort="ten"), "cohort = 'ten': must be"),
    (lambda: rf.run(NEWTON, PROBLEM, 2, metrics=["gap"]), "must be functions by their names"),
    (lambda: rf.run(NEWTON, PROBLEM, 2, metrics={"gap": 1}), "must be functions by their names"),
    (lambda: rf.compare({}, None, 2), "no methods to compare"),
    (lambda: rf.compare(["fedavg"], None, 2), "a list is given to compare: give {NAME: METHOD}"),
    (lambda: rf.load(["a9a"]), "must be a text"),
    (lambda: rf.split(np.ones((4, 2)), np.ones(3), "iid"), "must be"),
    (lambda: rf.read("d.csv", l2=0), "l2 = 0: must be a number above 0"),
    (lambda: rf.read("d.libsvm", drop=["id"]), "data of form libsvm have no columns by name"),
]


def test_floats_of_32_bits_are_kept_where_they_are_asked_for():
    x = RNG.normal(size=(1, 4))
    half = rf.problems.from_clients(CLIENTS, l2=0.1, dtype=np.float32)
    assert half.dtype == np.float32 and half.gradient(x.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(half.loss(x.astype(np.float32)), PROBLEM.loss(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "there are no clients"),
        (3, "of another form"),
        ([(np.ones((2, 3)),)], "of another form"),
        (np.ones((2, 3, 4)), "of another form"),
        ([(np.ones(3), np.ones(3))], r"client 0: features \(3,\) and targets \(3,\)"),
        ([(np.ones((2, 3)), np.ones(3))], r"client 0: features \(2, 3\) and targets \(3,\)"),
        ([CLIENTS[0], (np.ones((2, 3)), np.ones(2))], "clients have 3, 4 features"),
        ([([[1, 2], [3]], [1, 1])], "client 0: features are no numbers"),
        ([(np.array([["a"]]), np.ones(1))], "client 0: features are no numbers"),
        ([(np.ones((2, 3)), np.zeros(2))], "labels hold 0.0"),
        ([(np.full((2, 3), np.nan), np.ones(2))], "finite"),
    ],
)
def test_other_forms_are_refused_in_one_line(data, says):
    with pytest.raises(ReplifedError, match=says) as refusal:
        rf.problems.from_clients(data)
    assert "\n" not in str(refusal.value)


def test_an_unknown_axis_or_name_is_refused():
    problem = rf.problems.from_clients(CLIENTS, l2=0.1)
    compared = rf.compare({"a": rf.method("fedavg", step=0.1, local_steps=1)}, problem, rounds=2)
    with pytest.raises(ReplifedError, match="x = 'bit': must be one of rounds, bits, gradients"):
        compared.plot(x="bit")
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = rf.runn


def test_a_picture_has_a_line_of_its_own_for_every_method():
    problem = rf.problems.from_clients(CLIENTS, l2=0.1)
    methods = {f"m{k}": rf.method("fedavg", step=0.05, local_steps=k) for k in range(1, 31)}
    [axes] = rf.compare(methods, problem, rounds=2).plot().axes
    drawn = axes.get_lines()
    assert [line.get_label() for line in drawn] == list(methods)
    looks = {(line.get_color(), str(line._dash_pattern), line.get_marker()) for line in drawn}
    assert len(looks) == 30


def test_the_table_says_what_stays_what_was_touched_and_how_many_runs_there_are():
    """By hand: one method gets to a tenth and leaves it, the other stays; its seeds are copies."""
    rows = [
        (name, seed, t, gap * (1 + 0.01 * seed * (name == "back") * (t > 0)))
        for name, gaps in {"back": (1, 0.05, 0.5, 0.4), "there": (1, 0.5, 0.1, 0.02)}.items()
        for seed in (1, 2, 3)
        for t, gap in enumerate(gaps)
    ]
    frame = pd.DataFrame(rows, columns=["method", "seed", "round", "gap"])
    frame = frame.assign(bits=2 * frame["round"], bits_up=frame["round"], bits_down=frame["round"])
    table = rf.Comparison(frame.assign(sample_gradients=frame["round"])).table(0.2)
    assert table["round"].isna().tolist() == [True, False] and table.loc["there", "bits"] == 4
    assert table["touch"].tolist() == [1, 2] and table["gap"].round(3).tolist() == [0.408, 0.02]
    assert table["runs"].tolist() == [3, 1] and table["seeds"].tolist() == [3, 3]


@pytest.mark.parametrize(("call", "says"), MISTAKES)
def test_mistakes_are_refused_in_one_line(call, says):
    with pytest.raises(ReplifedError, match=says) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_labels_may_be_floats():
    y = np.repeat([1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1], 40)
    X = np.zeros((len(y), 1))
    dealt = [rf.split(X, y.astype(kind), "dirichlet:0.1", 5) for kind in (int, float)]
    assert (dealt[0] == dealt[1]).all()
    for wrong in ({"clients": 0}, {"clients": 2.5}, {"samples": 2.5}):
        with pytest.raises(ReplifedError, match="must be "):
            rf.split(X, y, "iid", **wrong)


def test_data_of_the_package_are_dealt_under_a_partition_by_name():
    X, y = rf.load("mushrooms")
    with lzma.open(PACKED / "mushrooms.xz") as file:
        wanted, labels = load_svmlight_file(file)
    assert (wanted != X).nnz == 0
    np.testing.assert_array_equal(y, 2 * labels - 3)  # 1 and 2 in the file

    def share(name, **settings):  # of each client's samples with the label +1
        client = rf.split(X, y, name, 6, **settings)
        return np.bincount(client), np.bincount(client, y > 0) / np.bincount(client)

    sizes, mixed = share("iid")
    assert np.ptp(sizes) <= 1 and np.abs(mixed - (y > 0).mean()).max() < 0.1
    # One shard of sorted labels each: the border between labels lies in one client.
    assert np.isin(share("shards:1")[1], [0, 1]).sum() == 5
    assert np.ptp(share("iid", sizes="lognormal:1")[0]) > 100
    few = rf.split(X, y, "dirichlet:0.3", 6, samples=50)
    assert (few >= 0).sum() == 300 and few.max() == 5
    with pytest.raises(ReplifedError, match="lognormal:1 is not allowed with the partition kmeans"):
        rf.split(X, y, "kmeans", sizes="lognormal:1")
    assert (rf.split(X, y, "iid", seed=1) != rf.split(X, y, "iid", seed=2)).any()
    with pytest.raises(ReplifedError, match=r"'dirichlet' is not allowed; .*dirichlet:ALPHA"):
        rf.split(X, y, "dirichlet")
    with pytest.raises(ReplifedError, match=r"unknown data set of the package 'a9b'; did you mean 'a9a'"):
        rf.load("a9b")


@pytest.mark.parametrize("name", ["scaffold", "fedmid"])
def test_a_method_that_needs_dense_features_says_how_to_give_them(name):
    X, y = rf.load("mushrooms")
    sparse, dense = (
        rf.problems.from_clients([(A[:40], y[:40]), (A[40:80], y[40:80])]) for A in (X, X.toarray())
    )
    solver, weight = {"solver": rf.Gradient(steps=2, step=0.1)}, {"weight": 0.1, "local_steps": 2}
    method = rf.method(name, step=0.1, **(solver if name == "scaffold" else weight))
    with pytest.raises(ReplifedError, match=r"dense features, such as X\.toarray\(\)"):
        rf.run(method, sparse, 2)
    assert rf.run(method, dense, 2)["objective"].notna().all()
