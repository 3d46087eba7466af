"""A data set of one's own: every form is one table, and what will not do is refused in one line."""

from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import optimize, sparse, special

from replifed.data.own import LOSSES, file_of, form_of, parse
from replifed.data.table import Table, load
from replifed.errors import ConfigError, DataError
from replifed.papers.cross.experiments import run
from replifed.papers.cross.problems import problem, solution
from replifed.partition.build import build
from replifed.parts import typed
from replifed.settings import comparison

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
CROSS = CONFIG["experiments"]["a9a"]
METHODS = CROSS["methods"]

RNG = np.random.default_rng(2)
X = RNG.normal(size=(12, 3)).round(3)
Y = np.array([0, 1] * 6)
CLIENT = np.array(["b", "a", "c"] * 4)


def written(folder, form):
    """A file of that form, and its settings."""
    path = folder / f"own.{form}"
    frame = pd.DataFrame(X, columns=["f", "g", "h"]).assign(who=CLIENT, label=np.where(Y, "yes", "no"))
    more = {"client": "who", "label": "label"}
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "parquet":
        frame.to_parquet(path)
    elif form == "npz":
        np.savez(path, X=X, y=Y, client=CLIENT)
        more = {}
    elif form == "libsvm":
        rows = (" ".join(f"{k + 1}:{v}" for k, v in enumerate(x)) for x in X)
        path.write_text("".join(f"{y} {row}\n" for y, row in zip(Y, rows, strict=True)))
        more = {}
    else:
        path = folder / "own.py"
        data = f"{X.tolist()}, {Y.tolist()}, {CLIENT.tolist()}"
        path.write_text(f"def made():\n    return {data}\n")
        return {"path": f"{path}:made"}
    return {"path": str(path), **more}


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "libsvm", "python"])
def test_every_form_is_the_same_table(tmp_path, form):
    settings = written(tmp_path, form)
    assert form_of(settings) == form and file_of(settings) == settings["path"].removesuffix(":made")
    parse("mine", settings | {"rows": 12, "features": 3}, tmp_path / "out.npz")
    table = load(tmp_path / "out.npz")
    np.testing.assert_allclose(table.X.toarray(), X)
    assert table.y.tolist() == np.where(Y, 1, -1).tolist()
    assert table.meta["id"] == "mine" and table.meta["counts"]["rows"] == 12
    if form == "libsvm":
        assert table.client is None
        with pytest.raises(DataError, match="does not say which client"):
            build(table.X, table.y, {"clusters": "given"}, [1], 0, table.client)
    else:
        assert table.client.tolist() == [1, 0, 2] * 4
        made, clients = build(table.X, table.y, {"clusters": "given"}, [1, 2], 0, table.client)
        assert made.clients[2].tolist() == [1, 0, 2] * 4
        assert clients["size"].tolist() == [4] * 6


@pytest.mark.parametrize(
    ("form", "change", "says"),
    [
        ("csv", {"rows": 13}, "12 rows; expected 13"),
        ("csv", {"features": 2}, "3 features; expected 2"),
        ("csv", {"label": "lable"}, "unknown column 'lable'; did you mean 'label'"),
        ("csv", {"client": None}, "line 2, column who: 'b' is no number"),
        ("npz", {"path": "nowhere.npz"}, "nowhere.npz does not exist"),
        ("python", {"path": "own.py:nothing"}, "own.py has no function nothing"),
    ],
)
def test_what_will_not_do_is_refused_in_one_line(tmp_path, monkeypatch, form, change, says):
    monkeypatch.chdir(tmp_path)
    settings = written(tmp_path, form) | change
    settings = {key: value for key, value in settings.items() if value is not None}
    with pytest.raises(DataError, match=says) as refusal:
        parse("mine", settings, tmp_path / "out.npz")
    assert "\n" not in str(refusal.value) and not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("loss", ["least_squares", "softmax"])
def test_targets_and_classes_are_those_of_the_loss(tmp_path, loss):
    y = RNG.normal(size=12) if loss == "least_squares" else np.array([5, 7, 9] * 4)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    parse("mine", {"path": str(tmp_path / "own.npz"), "loss": loss}, tmp_path / "out.npz")
    table = load(tmp_path / "out.npz")
    expected = y if loss == "least_squares" else [0, 1, 2] * 4
    np.testing.assert_array_equal(table.y, expected)
    assert table.meta["task"] == LOSSES[loss]


@pytest.mark.parametrize(
    ("loss", "y", "says"),
    [
        ("softmax", np.arange(12), "12 kinds of labels .*; a softmax needs 2 to 100"),
        ("least_squares", np.ones(12), "all targets are 1"),
        ("logistic", np.arange(12) % 3, "for others set loss: least_squares or softmax"),
    ],
)
def test_labels_that_are_no_targets_of_the_loss_are_refused(tmp_path, loss, y, says):
    np.savez(tmp_path / "own.npz", X=X, y=y)
    with pytest.raises(DataError, match=says):
        parse("mine", {"path": str(tmp_path / "own.npz"), "loss": loss}, tmp_path / "out.npz")


@pytest.mark.parametrize("loss", ["least_squares", "softmax"])
def test_the_problem_of_ones_own_data_is_that_of_its_loss(loss):
    """Objective, constants and minimiser against formulas that share no code with it."""
    ridge, client = 0.02, np.repeat([0, 1, 2], 4)
    y = RNG.normal(size=12) if loss == "least_squares" else np.array([0, 1, 2] * 4)
    table = Table(sparse.csr_matrix(X), y, {})
    split = SimpleNamespace(clients={1: client})
    settings = {"problem": loss, "seed": 1, "samples": 4, "ridge": ridge}
    made = problem(typed("cross", settings), [1], table, split)

    def objective(x):
        if loss == "least_squares":
            fit = 0.5 * (X @ x - y) ** 2
        else:
            z = X @ x.reshape(3, 3)
            fit = special.logsumexp(z, axis=1) - z[np.arange(12), y]
        return fit.mean() + 0.5 * ridge * x @ x  # clients are equally large

    x = RNG.normal(size=made.dim)
    assert made.loss(x[None])[0] == pytest.approx(objective(x), rel=1e-12)
    largest = [np.linalg.eigvalsh(X[client == i].T @ X[client == i] / 4)[-1] for i in range(3)]
    curvature = 1.0 if loss == "least_squares" else 0.5
    np.testing.assert_allclose(made.common_mu_L()[1], curvature * max(largest) + ridge, rtol=1e-6)
    found = optimize.minimize(objective, np.zeros(made.dim), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(solution(made)[0], found, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "loss"), [*zip(METHODS, cycle(["least_squares", "softmax"]), strict=False)]
)
def test_every_method_of_the_comparison_descends_on_it(loss, method):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4))
    y = features @ rng.normal(size=4) if loss == "least_squares" else (features[:, :3]).argmax(axis=1)
    table = Table(sparse.csr_matrix(features), y, {})
    client = np.repeat([0, 1, 2], 20)
    settings = {**CROSS, "problem": loss, "seed": 1, "replicates": [1], "rounds": 25}
    split = SimpleNamespace(clients={1: client, 101: client})
    history = run(method, typed("cross", settings), {"search": {"step": 0.5}}, table, split)
    assert history["gap"].iloc[-1] < 0.3


def test_a_data_set_of_an_installed_package_joins_where_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "offered_data.py").write_text("def drawn():\n    return [[1.0], [2.0]], [0, 1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(comparison, "offered", lambda: {"drawn": "offered_data:drawn"})
    path = f"{tmp_path / 'offered_data.py'}:drawn"
    asked = comparison.with_offered({"comparison": {"data": ["a9a", "drawn"]}})
    assert asked["datasets"] == {"drawn": {"path": path}}
    # What an entry says beside stays; what nobody asks for is not there.
    stated = comparison.with_offered({"datasets": {"drawn": {"loss": "softmax"}}})
    assert stated["datasets"] == {"drawn": {"path": path, "loss": "softmax"}}
    assert comparison.with_offered({"comparison": {}}) == {"comparison": {}}


def test_a_function_that_returns_data_may_not_end_the_process(tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text("import sys\ndef data():\n    sys.exit(0)\n")
    with pytest.raises(ConfigError, match=r"leaves\.py:3: data ends or forks the process"):
        parse("mine", {"path": f"{path}:data"}, tmp_path / "mine.npz")
