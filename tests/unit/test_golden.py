"""References of measured claims: what moved is noticed, what did not is not."""

import csv

import pytest

from replifed import cli
from replifed.errors import DataError
from replifed.papers.golden import accept, compare
from replifed.papers.verdicts import COLUMNS


def write(path, **changes):
    row = dict.fromkeys(COLUMNS, "")
    row |= {"id": "p.a", "kind": "value", "measured": "5.0", "verdict": "reproduced", "data": "synthetic"}
    row |= changes
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    return path


@pytest.fixture
def golden(tmp_path):
    path = tmp_path / "golden.csv"
    assert accept(write(tmp_path / "claims.csv"), path) == ["p.a (synthetic): new, 5.0"]
    return path


def test_the_same_run_agrees(tmp_path, golden):
    assert compare(tmp_path / "claims.csv", golden) == (1, [])


@pytest.mark.parametrize(
    "change, said",
    [
        ({"measured": "9.0"}, "measured 9, reference 5"),
        ({"measured": ""}, "measured nothing"),
        ({"verdict": "inconclusive"}, "inconclusive, but reproduced"),
    ],
)
def test_what_moved_is_named(tmp_path, golden, change, said):
    compared, faults = compare(write(tmp_path / "later.csv", **change), golden)
    assert compared == 1
    assert len(faults) == 1 and said in faults[0] and "p.a" in faults[0]


def test_the_table_of_claims_fails_if_one_holds_no_longer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests/golden").mkdir(parents=True)
    held, gone, elsewhere = (
        str(write(tmp_path / f"{name}.csv", scale="small", published="5", **changes))
        for name, changes in {
            "held": {"measured": "9.0"},
            "gone": {"verdict": "deviates"},
            "elsewhere": {"verdict": "deviates", "data": "surrogate"},
        }.items()
    )
    assert cli.main(["claims", "--file", gone]) == 0  # no reference yet
    accept(held, tmp_path / "tests/golden/small.csv")
    assert cli.main(["claims", "--file", held]) == 0
    assert cli.main(["claims", "--file", elsewhere]) == 0
    capsys.readouterr()
    assert cli.main(["claims", "--file", gone]) == 1
    assert "p.a (synthetic): deviates, but reproduced in" in capsys.readouterr().out


def test_a_missing_file_is_one_line(tmp_path, golden, capsys):
    words = ["claims", "check", "--golden", str(golden), "--file", str(tmp_path / "absent.csv")]
    assert cli.main(words) == 2
    assert "absent.csv: No such file or directory" in capsys.readouterr().err


def test_rounding_and_other_data_are_let_pass(tmp_path, golden):
    assert compare(write(tmp_path / "near.csv", measured="5.4"), golden) == (1, [])
    assert compare(write(tmp_path / "other.csv", measured="50", data="surrogate"), golden) == (0, [])


def test_identities_have_no_tolerance(tmp_path):
    golden = tmp_path / "golden.csv"
    accept(write(tmp_path / "claims.csv", kind="identity", measured="1"), golden)
    assert compare(write(tmp_path / "claims.csv", kind="identity", measured="0.99"), golden)[1]


def test_accepting_prints_the_difference_and_keeps_other_data(tmp_path, golden):
    accept(write(tmp_path / "other.csv", data="surrogate", measured="1"), golden)
    assert accept(write(tmp_path / "new.csv", measured="6.5"), golden) == [
        "p.a (synthetic): 5.0 -> 6.5, difference +1.5"
    ]
    assert compare(tmp_path / "other.csv", golden) == (1, [])


def test_a_file_that_is_no_reference_is_named(tmp_path):
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"wrong\.csv: columns a, b; expected id"):
        compare(write(tmp_path / "claims.csv"), tmp_path / "wrong.csv")
