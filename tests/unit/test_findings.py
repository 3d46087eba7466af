"""What data of one's own show before any run, and how columns are dropped, standardised or made of words."""

import numpy as np
import pytest
import scipy.sparse as sp

import replifed as rf
from replifed.cli import main
from replifed.data.findings import findings
from replifed.data.own import prepared, read
from replifed.data.scaling import standardise
from replifed.data.table import Table
from replifed.errors import ConfigError, DataError

RNG = np.random.default_rng(3)
N = 60
COLUMNS = {
    "patient": np.arange(N) + 7,
    "age": RNG.normal(55, 9, N).round(1),
    "pressure": RNG.normal(130, 20, N).round(1),
    "sugar": RNG.normal(0.1, 0.02, N).round(4),
    "visit": 20240101 + np.arange(N) % 28,
    "one": np.ones(N, int),
    "city": np.array(["Graz", "Linz", "Wien"])[np.arange(N) % 3],
    "ward": np.where(np.arange(N) < 6, "b", "a"),
    "ill": np.where((np.arange(N) < 6) | (np.arange(N) % 4 > 0), "no", "yes"),
}
NUMBERS = ["patient", "age", "pressure", "sugar", "visit", "one"]


def written(folder, columns=COLUMNS, name="d.csv"):
    rows = zip(*columns.values(), strict=True)
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])
    (folder / name).write_text(text + "\n")
    return {"path": str(folder / name), "client": "ward", "categories": ["city"]}


def lines(table, **options):
    return "\n".join(map(str, findings(table, 0.01, **options)))


def test_columns_that_are_no_features_are_named(tmp_path):
    said = lines(read("d", written(tmp_path)))
    assert "60 samples, 9 features; classes: 78 % no, 22 % yes" in said
    assert "ids, by name or since no number repeats: patient; name them in drop" in said
    assert "dates, by name or value: visit; name them in drop" in said
    assert "1 constant column: one; name them in drop" in said
    assert "2 clients, with 6 to 54 samples each\n1 client with one class only: b" in said
    assert "from 0.10" in said and "(sugar) to 2.02e+07 (visit)" in said


@pytest.mark.parametrize("name", ["user_id", "userId", "ID", "index"])
def test_ids_are_known_by_their_names(tmp_path, name):
    many = {name: np.arange(N) % 9, "humid": np.arange(N) % 7, "acid": np.arange(N) % 5, **COLUMNS}
    kept = [name, "humid", "acid", "age", "ill"]
    settings = written(tmp_path, {key: many[key] for key in kept})
    assert f"no number repeats: {name};" in lines(read("d", {"path": settings["path"]}))


@pytest.mark.parametrize("by_client", [False, True])
@pytest.mark.parametrize("task", ["binary", "regression", "multiclass"])
def test_the_condition_number_is_that_of_the_hessian_at_zero(task, by_client):
    X = RNG.normal(size=(50, 4)) * [1, 30, 0.1, 4] + [0, 90, 3, 0]
    client = np.repeat([0, 1], [10, 40])
    y = np.arange(50) % 3 if task == "multiclass" else np.arange(50) % 2 * 2 - 1
    loss = {"binary": "logistic", "regression": "least_squares", "multiclass": "softmax"}[task]

    def condition(X):
        pairs = [(X[client == i], y[client == i]) for i in (0, 1)]
        weights = None if by_client else [0.2, 0.8]
        problem = rf.problems.from_clients(pairs, loss=loss, l2=0.01, weights=weights)
        H = np.einsum("n,nab->ab", problem.weights[0], problem.client_hessians(np.zeros((1, problem.dim)))[0])
        return np.linalg.cond(H)

    table = Table(sp.csr_matrix(X), y, {"task": task}, client)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = f"ridge 0.01: {condition(X):.3g}, with standardised features {condition(scaled):.3g}"
    assert expected in lines(table, by_client=by_client)


def test_a_wide_table_gives_the_largest_eigenvalue_alone(monkeypatch):
    X = sp.random(40, 90, 0.2, format="csr", random_state=1)
    table = Table(X, np.arange(40) % 2 * 2 - 1, {"task": "binary"})
    exact = lines(table)
    monkeypatch.setattr("replifed.data.findings._EXACT", 0)
    for n, said in ((40, exact), (90, "")):
        some = Table(X if n == 40 else X.T.tocsr(), np.arange(n) % 2 * 2 - 1, {"task": "binary"})
        largest = np.linalg.norm(some.X.toarray(), 2) ** 2 / (4 * n)
        bound = "" if said else "at most "
        assert f"ridge 0.01: {bound}{(largest + 0.01) / 0.01:.3g}, with" in lines(some)


def test_units_are_advised_against_where_they_matter(tmp_path):
    settings = written(tmp_path, {key: COLUMNS[key] for key in ("age", "pressure", "sugar", "ill")})
    table = read("d", {"path": settings["path"]})
    assert "may come from the units: set standardise: true" in lines(table)
    assert "as they are" in lines(table, standardised=True)
    X, y = rf.load("mushrooms")
    assert "standardise: true" not in lines(Table(X, y, {"task": "binary"}))


def test_standardised_columns_are_those_of_numpy():
    dense = RNG.normal(size=(30, 5)) * 10.0 ** np.arange(5) + 3
    rare = np.where(RNG.random((30, 2)) < 0.2, RNG.normal(size=(30, 2)), 0)
    flags, one = (np.arange(30) % 4 > 0)[:, None], np.full((30, 1), 7.0)
    X, whose = standardise(sp.csr_matrix(np.hstack([dense, rare, flags, one])))
    made = X.toarray()
    np.testing.assert_allclose(made[:, :5], (dense - dense.mean(axis=0)) / dense.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(made[:, 5:7], rare / np.sqrt((rare**2).sum(axis=0) / (rare != 0).sum(axis=0)))
    np.testing.assert_array_equal(made[:, 7:], np.hstack([flags, one / 7]))
    assert "all 30 samples" in whose
    sparse, _ = standardise(sp.csr_matrix(rare))
    np.testing.assert_allclose(sparse.toarray(), made[:, 5:7])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_words_become_zeros_and_ones_and_dropped_columns_go(tmp_path, form):
    settings = {**written(tmp_path), "drop": ["patient", "visit"]}
    if form == "parquet":
        import pandas as pd

        pd.DataFrame(COLUMNS).to_parquet(tmp_path / "d.parquet")
        settings["path"] = str(tmp_path / "d.parquet")
    table = read("d", settings)
    cities = ["city=Graz", "city=Linz", "city=Wien"]
    assert table.meta["columns"] == ["age", "pressure", "sugar", "one", *cities]
    np.testing.assert_array_equal(table.X[:, 4:].toarray(), np.tile(np.eye(3), (20, 1)))
    assert prepared(table, {**settings, "standardise": True}).meta["form"] == f"{form}, standardised"
    only = read("d", {**settings, "drop": NUMBERS})
    assert only.meta["columns"] == cities


def test_all_faults_come_at_once(tmp_path):
    broken = {key: column.astype(object) for key, column in COLUMNS.items()}
    broken["age"][3], broken["sugar"][5], broken["ill"][7], broken["ward"][9] = "", "x", "", "NA"
    with pytest.raises(DataError) as refusal:
        read("d", {**written(tmp_path, broken), "rows": 61})
    said = str(refusal.value)
    assert "\n" not in said
    for part in (
        "age (line 5: '' is",
        "sugar (line 7: 'x' is",
        "line 9: the label",
        "line 11: ward names no",
    ):
        assert part in said
    misspelt = {"drop": ["agee"], "categories": ["town"], "client": "hospital"}
    with pytest.raises(DataError, match=r"3 errors: .*'hospital'.*'agee'.*'town'"):
        read("d", {**written(tmp_path), **misspelt})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"drop": ["city"]}, "the column city cannot be both drop and categories"),
        ({"categories": ["ill"], "label": "ill"}, "ill cannot be both label and categories"),
        ({"categories": ["ill"]}, "ill cannot be both label and categories"),
        ({"drop": ["ward"]}, "ward cannot be both client and drop"),
    ],
)
def test_a_column_has_one_role(tmp_path, change, says):
    with pytest.raises(DataError, match=says):
        read("d", {**written(tmp_path), **change})


def test_a_column_of_ids_is_no_category(tmp_path, monkeypatch):
    monkeypatch.setattr("replifed.data.columns._MOST_KINDS", 50)
    with pytest.raises(DataError, match=r"patient holds 60 kinds of words.* name it in drop"):
        read("d", {**written(tmp_path), "categories": ["city", "patient"]})


def test_check_prints_what_a_file_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    assert main(["check", "d.csv", "client=ward", "categories=city", "standardise=true"]) == 0
    said = capsys.readouterr().out
    assert (
        said.startswith("d (d.csv):\n  60 samples") and "standardised with the statistics of all 60" in said
    )
    assert len(said.splitlines()) <= 12
    for words, says in (
        (["nope.csv"], "path: nope.csv does not exist"),
        (["d.csv", "clent=ward"], "clent: unknown key"),
        (["d.csv", "client=ward"], "column city: 'Graz' is no number"),
    ):
        assert main(["check", *words]) == 2
        assert says in capsys.readouterr().err


def test_read_returns_the_samples_of_clients_and_warns(tmp_path):
    settings = written(tmp_path)
    path = settings.pop("path")
    with pytest.warns(UserWarning, match="standardise: true"):
        raw = rf.read(path, **settings)
    with pytest.warns(UserWarning, match="patient"):
        data = rf.read(path, standardise=True, **settings)
    np.testing.assert_allclose(data.X[:, 1], (raw.X[:, 1] - raw.X[:, 1].mean()) / raw.X[:, 1].std())
    assert "condition number" in str(data) and data.client_names == ["a", "b"]
    problem = rf.problems.from_clients(data.pairs(), l2=0.1)
    assert problem.sizes.tolist() == [[54, 6]]
    client = rf.split(data.X, data.y, "iid", clients=4)
    assert len(data.pairs(client)) == 4
    for wrong in ({"lable": "ill"}, {"partition": "iid"}, {"loss": "logit"}):
        with pytest.raises(ConfigError):
            rf.read(path, **wrong)
