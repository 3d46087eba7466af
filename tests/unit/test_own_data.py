"""A data set of one's own: every form is one table, and what will not do is refused in one line."""

import numpy as np
import pandas as pd
import pytest

from replifed.data.own import file_of, form_of, parse
from replifed.data.table import load
from replifed.errors import DataError
from replifed.partition.build import build

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
        ("csv", {"client": None}, "the column who holds what is no number"),
        ("npz", {"path": "nowhere.npz"}, "nowhere.npz: there is no such file"),
        ("python", {"path": "own.py:nothing"}, "it has no function nothing"),
    ],
)
def test_what_will_not_do_is_refused_in_one_line(tmp_path, monkeypatch, form, change, says):
    monkeypatch.chdir(tmp_path)
    settings = written(tmp_path, form) | change
    settings = {key: value for key, value in settings.items() if value is not None}
    with pytest.raises(DataError, match=says) as refusal:
        parse("mine", settings, tmp_path / "out.npz")
    assert "\n" not in str(refusal.value) and not (tmp_path / "out.npz").exists()


def test_labels_of_three_kinds_are_refused(tmp_path):
    np.savez(tmp_path / "own.npz", X=X, y=np.arange(12) % 3)
    with pytest.raises(DataError, match="3 kinds of labels"):
        parse("mine", {"path": str(tmp_path / "own.npz")}, tmp_path / "out.npz")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_refused(tmp_path, value):
    broken = X.copy()
    broken[3, 1] = value
    np.savez(tmp_path / "own.npz", X=broken, y=Y)
    with pytest.raises(DataError, match="missing or not finite"):
        parse("mine", {"path": str(tmp_path / "own.npz")}, tmp_path / "out.npz")
