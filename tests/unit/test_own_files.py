"""Files of one's own: read right, or refused with place and cure; never other numbers in silence."""

import re

import numpy as np
import pandas as pd
import pytest

from replifed.data.own import parse
from replifed.data.table import load
from replifed.errors import ReplifedError

ROWS = "".join(f"{i / 4},{i % 5},h{i % 3},{i % 2}\n" for i in range(40))
HEAD = "a,b,site,y\n"
CSV = HEAD + ROWS
X = np.column_stack([np.arange(40) / 4, np.arange(40) % 5])
Y = np.where(np.arange(40) % 2, 1, -1)
SITE = {"label": "y", "client": "site"}
SVM = "".join(f"{y} 1:{a} 2:{b}\n" for (a, b), y in zip(X, Y, strict=True))


def read(folder, name, content, **settings):
    """The table, or the words of the refusal; anything else that is raised is a fault."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        parse("mine", {"path": str(path), **settings}, folder / "t.npz")
    except ReplifedError as refusal:
        assert not (folder / "t.npz").exists()
        return str(refusal).removeprefix(str(path))
    return load(folder / "t.npz")


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("d.csv", CSV, SITE),
        ("d.csv", "\ufeff" + CSV.replace("\n", "\r\n"), SITE),
        ("d.csv", CSV.replace(",", ";"), SITE),
        ("d.tsv", CSV.replace(",", "\t"), {**SITE, "form": "csv"}),
        ("d.csv", CSV.replace(",", " , "), SITE),
        ("d.csv", CSV.replace(",0\n", ",no\n").replace(",1\n", ",yes\n"), SITE),
        ("d.csv", CSV.replace(",0\n", ",False\n").replace(",1\n", ",True\n") + "\n \n", SITE),
        ("d.csv", CSV.replace("site", '"si\nte"').replace("h1", '"h\n1"'), {"client": "si te"}),
        ("d.csv", CSV.replace(HEAD, "0,1,site,y\n"), SITE),
        ("d.svm", SVM, {}),
        ("d.svm", SVM.replace("\n", " # 1_0 qid:1\n"), {}),
    ],
)
def test_read_right(tmp_path, name, content, settings):
    table = read(tmp_path, name, content, **settings)
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, Y)
    if "client" in settings:
        assert table.client.tolist() == [i % 3 for i in range(40)] or '"h\n1"' in content


def test_true_and_false_are_one_and_zero(tmp_path):
    table = read(tmp_path, "d.csv", "a,y\n" + "True,1\nfalse,0\nTRUE,0\n")
    assert table.X.toarray().ravel().tolist() == [1, 0, 1]


TABLE = "this looks like a table with columns, not like LibSVM; set form: csv"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,y\n0,5,1\n1,7,0\n", "line 2: 3 fields for 2 columns; the separator is ','"),
        (CSV + "1,2\n", "line 42: 2 fields for 4"),
        (CSV.replace(",", ";").replace(".", ","), "line 2, column a: '0,0' is no number: write a point"),
        ("y,b,site,y\n" + ROWS, "line 1: the column y stands twice, as column 1 and 4"),
        ("a,a,site,y\n" + ROWS, "line 1: the column a stands twice"),
        ("site,y\nh1,0\nh2,1\n", "no column is left for features"),
        (",b,site,y\n" + ROWS, "line 1: column 1 has no name: .* an index"),
        ("id,site,y\n" + "".join(f"{i},h,{i % 2}\n" for i in range(9)), "the column id counts the rows"),
        (ROWS, "line 1: 0.0 is a number, not the name of a column"),
        ("a;b,site,y\n" + ROWS, "its first line holds ',' and ';'"),
        (CSV + ",1,h1,0\n", "line 42, column a: '' is no number: the value is missing"),
        (CSV + "1,NA,h1,0\n", "line 42, column b: 'NA' is no number: the value is missing"),
        (CSV + "1,inf,h1,0\n", "line 42, column b: 'inf' is no number"),
        (CSV + "1e999,1,h1,0\n", "line 42, column a: 1e999 is not finite"),
        (CSV + "0x10,1,h1,0\n", "line 42, column a: '0x10' is no number"),
        (CSV + "1_0,1,h1,0\n", "line 42, column a: '1_0' is no number"),
        (CSV + '"1,000",1,h1,0\n', "line 42, column a: '1,000' is no number"),
        (CSV + "１,1,h1,0\n", "line 42, column a: '１' is no number"),
        (CSV + "1,1,h1,\n", "line 42: the y is missing"),
        (CSV + "1,1,None,1\n", "line 42: site names no client"),
        (CSV + "1,1,h1,0.8", "line 42: no line end here, so the last value may be cut"),
        (CSV + '1,1,"h1,0\n1,1,h1,0\n', "line 42: a quote is not closed"),
        (CSV + '1,1,"h1,0\n1,1,h1",0\n', "line 42, column site: a text in quotes goes over several rows"),
        (CSV.encode("utf-16"), "line 1: not text in UTF-8"),
        (CSV.replace("\n", "\r"), "line 1: lines end with CR alone"),
        (CSV.encode() + b"1,1,h\xf4,0\n", "line 42: not text in UTF-8"),
        (HEAD, "holds no rows, only names of columns"),
        ("", "is empty"),
    ],
)
def test_csv_is_refused_with_its_place(tmp_path, content, says):
    refusal = read(tmp_path, "d.csv", content, **({} if str(content).startswith("a,y") else SITE))
    assert isinstance(refusal, str) and "\n" not in refusal
    assert re.search(says, refusal), refusal


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("d.tsv", CSV.replace(",", "\t"), TABLE),
        ("d.txt", CSV, TABLE),
        ("D.CSV", CSV, TABLE),
        ("d.svm", SVM[:-2], "line 40: .*: no line end here, so the file may be truncated"),
        ("d.svm", SVM + f"1 {2**31 + 5}:1\n", "line 41: '2147483653:1': the index is beyond"),
        ("d.svm", SVM + "1 2147483647:1\n", "line 41: '2147483647:1': the index is beyond"),
        ("d.svm", SVM + "1 9" + 5000 * "0" + ":1\n", "line 41: .*: the index is beyond"),
        ("d.svm", SVM + "1 qid:3 1:1\n", "line 41: 'qid:3': queries are no features; remove them"),
        ("d.svm", SVM + "1 1_0:1\n", "line 41: '1_0:1': the index is not a whole number"),
        ("d.svm", SVM + "1 1:1_0\n", "line 41: '1:1_0': the value is not a number"),
        ("d.svm", SVM.replace("\n", "\r"), "line 1: "),
    ],
)
def test_libsvm_is_refused_with_its_place(tmp_path, name, content, says):
    refusal = read(tmp_path, name, content)
    assert isinstance(refusal, str) and "\n" not in refusal
    assert re.search(says, refusal), refusal


FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(site=[f"h{i % 3}" for i in range(40)], y=Y)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (FRAME, ""),
        (FRAME[::-1].iloc[::-1].set_index("site"), ""),
        (FRAME.assign(y=pd.Categorical(np.where(Y > 0, "yes", "no"))), ""),
        (FRAME.assign(b=[True, None] * 20), "row 2, column b: the value is missing"),
        (FRAME.assign(site=["h0", "NA"] * 20), "row 2: site names no client"),
        (FRAME.assign(b="text"), "the column b holds no numbers"),
        (FRAME.assign(b=2**60 + 1), "floats cannot hold the column b exactly"),
        (FRAME[:0], "holds no rows; give one row per sample"),
    ],
)
def test_parquet(tmp_path, frame, says):
    frame.to_parquet(tmp_path / "d.parquet")
    found = read(tmp_path, "d.parquet", (tmp_path / "d.parquet").read_bytes(), **SITE)
    if says:
        assert isinstance(found, str) and says in found and "\n" not in found
    else:
        np.testing.assert_array_equal(found.X.toarray(), X)
        assert found.y.tolist() == Y.tolist() and found.meta["clients"] == ["h0", "h1", "h2"]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({}, ""),
        ({"y": np.where(Y > 0, "yes", "no")}, ""),
        ({"X": np.asfortranarray(X.astype(">f4"))}, ""),
        ({"X": X.reshape(4, 10, 2)}, "features (4, 10, 2) and labels (40,); expected (n, d) and (n,)"),
        ({"X": X[:, :0]}, "features (40, 0)"),
        ({"X": np.where(X == 3, np.nan, X)}, "row 4, column 2: the feature is missing"),
        ({"X": np.where(X == 3, np.inf, X)}, "row 4, column 2: "),
        ({"X": X * 1j}, "the features are no numbers (complex128)"),
        ({"X": np.full((40, 1), 2**53 + 1)}, "whole numbers beyond 2^53"),
        ({"y": np.where(Y > 0, "yes", "")}, "row 1: the label is missing"),
        ({"y": X[:, :1]}, "labels (40, 1); expected"),
        ({"client": np.arange(3)}, "clients (3,); expected one a sample, (40,)"),
        ({"client": np.array(["a", None] * 20, dtype=object)}, "client.npy holds Python objects; save"),
    ],
)
def test_npz(tmp_path, arrays, says):
    np.savez(tmp_path / "d.npz", **{"X": X, "y": Y, **arrays})
    found = read(tmp_path, "d.npz", (tmp_path / "d.npz").read_bytes())
    if says:
        assert isinstance(found, str) and says in found and "\n" not in found
    else:
        np.testing.assert_array_equal(found.X.toarray(), X)
        assert found.y.tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return np.eye(4), ['b', 'a', 'b', 'a'], [7, '7', '07', 7.0]", ""),
        ("raise ValueError('one\\nline')", ".py:3: made fails: ValueError: one line"),
        ("return [[1, 2], [3]], [0, 1]", "the features are no array"),
        ("return np.ones((4, 2, 2)), [0, 1, 0, 1]", "features (4, 2, 2)"),
        ("return np.ma.array(np.eye(4), mask=np.eye(4) > 0), [0, 1, 0, 1]", "some features are masked"),
        (
            "m = sp.csr_matrix(np.eye(4)); m.indices[2] = 2**30; return m, [0, 1, 0, 1]",
            "no sound sparse matrix",
        ),
        ("return np.eye(4), [0, None, 0, 1]", "row 2: the label is missing"),
        ("return np.eye(4), [0, 1, 0, 1], [[1]] * 4", "clients (4, 1)"),
    ],
)
def test_functions(tmp_path, body, says):
    (tmp_path / "own.py").write_text(
        f"import numpy as np\nimport scipy.sparse as sp; made = lambda: 0\ndef made(): {body}\n"
    )
    settings = {"path": f"{tmp_path / 'own.py'}:made"}
    if not says:
        parse("mine", settings, tmp_path / "t.npz")
        assert load(tmp_path / "t.npz").y.tolist() == [1, -1, 1, -1]
        assert load(tmp_path / "t.npz").meta["clients"] == ["07", "7"]
        return
    with pytest.raises(ReplifedError) as refusal:
        parse("mine", settings, tmp_path / "t.npz")
    assert says in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("path", [300 * "x" + ".csv", "a\0b.csv", "/tmp", "/dev/zero"])
def test_a_path_that_is_no_file(tmp_path, path):
    with pytest.raises(ReplifedError, match="does not exist"):
        parse("mine", {"path": path, "form": "csv"}, tmp_path / "t.npz")
