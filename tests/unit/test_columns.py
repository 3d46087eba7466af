"""Every column has a meaning, and the page on them is fresh."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from replifed import cli
from replifed import settings as config
from replifed.claims import errata, scores, verdicts
from replifed.figures.grid import Grid
from replifed.network.ledger import Cost
from replifed.parts import part
from replifed.report import columns
from replifed.report.columns import column

ROOT = Path(__file__).parents[2]
BANDS = {"ci": "95 %", "sd": "standard deviation", "range": "least"}


def test_the_page_is_what_the_command_writes(tmp_path):
    assert cli.main(["columns", "--out", str(tmp_path / "columns.md")]) == 0
    kept = (ROOT / "docs/columns.md").read_text()
    assert (tmp_path / "columns.md").read_text() == kept, "run `replifed columns --out docs/columns.md`"


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("results/claims.csv", verdicts.COLUMNS),
        ("results/fedht/claims.csv", verdicts.COLUMNS),
        ("results/statements.csv", scores.COLUMNS),
        ("results/not_claimed.csv", ("paper", "place", "statement", "why")),
        ("results/fedht/errata.csv", errata.COLUMNS),
        ("results/own/data/method.parquet", ("replicate", "round", "objective", *Cost._fields, "diverged")),
        ("results/own/data/partition.csv", ("client", "size", "cluster_a", "label_-1", "tenth 3")),
    ],
)
def test_columns_that_the_code_lists_have_an_entry(file, names):
    assert [name for name in names if column(file, name) is None] == []


def grids():
    for paper in config.load(root=ROOT)["papers"]:
        for name, made in getattr(import_module(part(paper, "figures")), "FIGURES", {}).items():
            if isinstance(made, Grid) and made.source is None:
                yield pytest.param(paper, name, made, id=f"{paper}/{name}")


@pytest.mark.parametrize(("paper", "name", "made"), list(grids()))
def test_low_and_high_are_said_to_be_the_band_that_is_drawn(paper, name, made):
    """What the page says of a figure's band is what the figure draws."""
    file = f"figures/{paper}/{name}.csv"
    low = column(file, "low").meaning
    assert [band for band, words in BANDS.items() if words in low] == [made.band]
    assert made.centre == "median" or ("geometric" in column(file, "mean").meaning) == (
        made.centre == "geometric"
    )


def test_the_last_pattern_that_fits_counts():
    assert "mean distance" in column("results/fedplt/privacy/fedplt.parquet", "error").meaning
    assert column("results/fedht/mnist/fedht.parquet", "bits_up").unit == "bits"
    assert column("figures/x/fig1.csv", "nonsense") is None


def test_columns_without_an_entry_are_named(tmp_path, monkeypatch, capsys):
    for folder in ("results/p/e", "results/benchmarks", "figures/p"):
        (tmp_path / folder).mkdir(parents=True)
    pd.DataFrame({"round": [0], "other": [1.0]}).to_parquet(tmp_path / "results/p/e/m.parquet")
    (tmp_path / "results/benchmarks/x.csv").write_text("unread\n")
    (tmp_path / "figures/p/fig1.csv").write_text("mean,odd\n1,2\n")
    paths = {"results": "results", "figures": "figures"}
    monkeypatch.setattr("replifed.cli.columns.load_config", lambda _: {"paths": paths})
    monkeypatch.chdir(tmp_path)
    assert cli.main(["columns"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "results/p/e/m.parquet: other",
        "figures/p/fig1.csv: odd",
        "2 columns have no entry in a columns.yaml",
    ]


def test_a_comma_in_a_meaning_starts_no_unit():
    """In YAML it does, unless the meaning stands in quotes."""
    shared, files = columns._entries()
    for own in (shared, *files.values()):
        for name, one in own.items():
            assert len(one.unit.split()) <= 3, f"{name}: {one.unit!r} is no unit"
            assert one.meaning and not one.meaning.endswith("."), name


def test_the_words_for_better_are_few():
    with pytest.raises(ValueError, match=r"columns: a: 'smaller' is none of"):
        columns._columns("columns", {"a": ["a", "", "smaller"]})
