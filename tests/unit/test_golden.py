"""References of measured claims: what moved is noticed, what did not is not."""

import csv
from pathlib import Path

import pytest

import planted_paper
from replifed import cli
from replifed.claims import scores
from replifed.claims.claim import NUMBERS
from replifed.claims.files import read
from replifed.claims.reference import accept, compare, known, lost, verdicts
from replifed.claims.units import UNITS, tolerance
from replifed.claims.verdicts import COLUMNS
from replifed.errors import DataError
from replifed.papers.jobs import every_claim

# What a line of claims.csv has beyond a reference.
LEFT_OUT = {
    *("tolerance", "rival", "published", "effect", "direction", "p_value", "verdict_single", "reason"),
    *("twins", "scale", "seeds", "command", "note"),
}
REFERENCES = Path(__file__).parents[1] / "golden"
ACCEPTED = Path(__file__).parents[2] / "reference"
CLAIMS = {claim.id: claim for claim in every_claim()}
# Where little but rounding may be left, so that a tenth of it is noise.
NEARLY_ZERO = (
    *("fedmm.fig1.movielens.monotone.", "fedmm.fig1.synthetic_homogeneous.monotone."),
    *("fedplt.fig3.exact", "fedplt.fig3.faster.", "fedplt.uncoordinated.faster."),
    *("fedplt.table2.accelerated.", "fedht.fig3.simulation2.support.further."),
)


def nearly_zero(row, unit, size):
    return row["id"].startswith(NEARLY_ZERO) and 0.1 * size < UNITS[unit].least


def write(path, **changes):
    row = dict.fromkeys(COLUMNS, "")
    row |= {"id": "p.a", "kind": "near", "measured": "5.0", "verdict": "holds", "data": "synthetic"}
    row |= {
        "paper": "p",
        "source": "chosen",
        "statement_id": "p.a",
        "part": "p.a",
        "settings": "printed inferred",
    }
    row |= {"unit": "" if changes.get("kind") == "identity" else "rounds"} | changes
    return write_all(path, [row])


def write_all(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def reference(name):
    return list(known(ACCEPTED if name == "paper" else REFERENCES / f"{name}.csv").values())


def numbers(name):
    """Lines of a reference that hold a number, with unit and size."""
    for row in reference(name):
        unit = CLAIMS[row["id"]].unit
        if unit and row["measured"]:
            yield row, unit, abs(float(row["measured"]))


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
        ({"verdict": "inconclusive"}, "inconclusive, but holds"),
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
            "gone": {"verdict": "fails"},
            "elsewhere": {"verdict": "fails", "data": "surrogate"},
        }.items()
    )
    assert cli.main(["claims", "--file", gone]) == 0  # no reference yet
    accept(held, tmp_path / "tests/golden/small.csv")
    assert cli.main(["claims", "--file", held]) == 0
    assert cli.main(["claims", "--file", elsewhere]) == 0
    capsys.readouterr()
    assert cli.main(["claims", "--file", gone]) == 1
    assert "p.a (synthetic): fails, but holds in" in capsys.readouterr().out


def test_a_reference_may_be_named_before_or_after_the_inner_command(tmp_path, golden, capsys):
    words = ["--golden", str(golden)], ["check"], ["--file", str(tmp_path / "claims.csv")]
    for order in ((0, 1, 2), (1, 0, 2)):
        assert cli.main(["claims", *(word for place in order for word in words[place])]) == 0
        assert "1 claim" in capsys.readouterr().out


def test_a_claim_that_is_gone_is_a_fault(tmp_path, golden):
    """Planted: a claim that held is left out of the file."""
    other = write(tmp_path / "other.csv", id="p.b")
    assert compare(other, golden) == (0, ["p.a (synthetic): no claim is called so any more"])
    assert lost(read(other), golden) == [f"p.a (synthetic): gone, but holds in {golden}"]
    fell = write(tmp_path / "fell.csv", verdict="fails")
    assert lost(read(fell), golden) == [f"p.a (synthetic): fails, but holds in {golden}"]
    damaged = write(tmp_path / "damaged.csv", source="guessed")
    with pytest.raises(DataError, match=r"damaged: verdict, source or data of p\.a"):
        compare(damaged, golden)


def test_a_reference_without_a_number_is_refused(tmp_path, golden):
    head, row = golden.read_text().splitlines()
    golden.write_text(f"{head}\n{row.rpartition(',')[0]},\n")
    with pytest.raises(DataError, match=r"golden\.csv: p\.a: measured or tolerance is no number"):
        compare(tmp_path / "claims.csv", golden)


def test_every_number_of_the_papers_has_a_unit():
    kinds = {claim.id: claim.kind for claim in CLAIMS.values() if not claim.unit}
    assert [name for name, kind in kinds.items() if kind in NUMBERS] == []
    assert set(UNITS) == {claim.unit for claim in CLAIMS.values()} - {""}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tenth_or_two_rounds_is_found(tmp_path, sign):
    rows, planted = [], set()
    for row, unit, size in numbers("paper"):
        change = 2.0 if unit == "rounds" else 0.1 * size
        if not size or nearly_zero(row, unit, size):
            change = 2 * UNITS[unit].least
        now = f"{float(row['measured']) + sign * change:.12g}"
        rows.append(
            dict.fromkeys(COLUMNS, "")
            | {"source": "chosen"}
            | {name: row[name] for name in ("id", "data", "verdict")}
            | {"kind": CLAIMS[row["id"]].kind, "unit": unit, "measured": now}
        )
        planted.add(row["id"])
    compared, faults = compare(write_all(tmp_path / "planted.csv", rows), ACCEPTED)
    assert compared == len(faults) == len(planted) > 400
    assert {fault.split(" ")[0] for fault in faults} == planted


@pytest.mark.parametrize("name", ["paper", "small", "small-surrogates"])
def test_no_number_tolerates_its_own_size(name):
    for row, unit, size in numbers(name):
        zero = size == 0 or nearly_zero(row, unit, size)
        least = UNITS[unit].least if zero else 0.0
        assert float(row["tolerance"]) <= max(0.45 * size, least), row["id"]


@pytest.mark.parametrize("name", ["paper", "small", "small-surrogates"])
def test_tolerances_of_the_references_are_those_of_the_rules(name):
    ruled = {(row["id"], row["data"]): unit for row, unit, _ in numbers(name)}
    for row in reference(name):
        unit = ruled.get((row["id"], row["data"]))
        wanted = f"{tolerance(float(row['measured']), unit):.3g}" if unit else "0"
        assert row["tolerance"] == wanted, row["id"]


@pytest.mark.parametrize(
    "measured, unit, wanted",
    [
        (20.0, "rounds", 1.5),
        (-1.0, "rounds", 0.4),
        (0.0, "rounds", 0.1),
        (1.0, "decades", 0.08),
        (-9.0, "decades", 0.2),
        (0.9, "rate", 0.002),
        (1e-7, "rate", 1e-5),
    ],
)
def test_tolerance_by_unit(measured, unit, wanted):
    assert tolerance(measured, unit) == pytest.approx(wanted)


def test_a_number_needs_a_unit(tmp_path):
    with pytest.raises(DataError, match=r"p\.a: a number without a unit"):
        accept(write(tmp_path / "claims.csv", unit=""), tmp_path / "golden.csv")


def test_accepting_prints_the_difference_and_keeps_other_data(tmp_path, golden):
    accept(write(tmp_path / "other.csv", data="surrogate", measured="1"), golden)
    assert accept(write(tmp_path / "new.csv", measured="6.5"), golden) == [
        "p.a (synthetic): 5.0 -> 6.5, difference +1.5"
    ]
    # A verdict that turned alone is told, too: the numbers would not show it.
    assert accept(write(tmp_path / "turned.csv", measured="6.5", verdict="inconclusive"), golden) == [
        "p.a (synthetic): holds -> inconclusive"
    ]
    assert compare(tmp_path / "other.csv", golden) == (1, [])


def test_pages_have_what_a_run_has_found_from_its_reference(tmp_path):
    """All that the status of a statement, and the pictures of the pages, depend on."""
    rows, made = planted_paper.rows(), planted_paper.claims().all()
    accept(write_all(tmp_path / "claims.csv", rows), tmp_path / "golden.csv")
    found = verdicts(made, tmp_path / "golden.csv")
    assert scores.statements(found) == scores.statements(rows)
    wanted = [row | dict.fromkeys(LEFT_OUT, "") for row in rows]
    assert [dict.fromkeys(COLUMNS, "") | row | dict.fromkeys(LEFT_OUT, "") for row in found] == wanted


def test_references_of_claims_that_are_no_longer_made_go(tmp_path, golden):
    accept(write(tmp_path / "other.csv", id="q.a", paper="q"), golden)
    said = accept(write(tmp_path / "renamed.csv", id="p.b", paper="p"), golden)
    assert said == ["p.b (synthetic): new, 5.0", "p.a (synthetic): gone, no claim is called so"]
    assert compare(tmp_path / "other.csv", golden) == (1, [])
    assert compare(tmp_path / "claims.csv", golden) == (
        0,
        ["p.b (synthetic): no claim is called so any more"],
    )


def test_a_file_that_is_no_reference_is_named(tmp_path):
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"wrong\.csv is no list of references \(columns a, b; expected id"):
        compare(write(tmp_path / "claims.csv"), tmp_path / "wrong.csv")


def test_every_deviation_says_what_it_hangs_on():
    rows = {row["id"]: row for row in verdicts(CLAIMS.values(), ACCEPTED)}
    for one in scores.statements(rows.values()):
        failing = [name for name in one["claims"].split() if rows[name]["verdict"] == "fails"]
        assert one["status"] != "deviates" or any(CLAIMS[name].note for name in failing), one["statement_id"]


def test_every_shape_says_what_would_make_it_fail():
    shapes = [claim for claim in CLAIMS.values() if claim.kind == "shape" and claim.measure is not None]
    assert shapes and all(claim.fails for claim in shapes)


def test_rounding_and_other_data_are_let_pass_but_not_of_identities(tmp_path, golden):
    assert compare(write(tmp_path / "near.csv", measured="5.4"), golden) == (1, [])
    assert compare(write(tmp_path / "other.csv", measured="50", data="surrogate"), golden) == (0, [])
    accept(write(tmp_path / "claims.csv", kind="identity", measured="1"), golden)
    assert compare(write(tmp_path / "claims.csv", kind="identity", measured="0.99"), golden)[1]
