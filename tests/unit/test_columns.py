"""Every column has a meaning, and the page on them is fresh."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pandas as pd
import pytest

import small_tables
from replifed import cli
from replifed.claims import errata, scores, verdicts
from replifed.figures.artefact import Grid
from replifed.figures.summaries import averages
from replifed.network.ledger import Cost
from replifed.parts import part
from replifed.report import columns
from replifed.report.columns import column
from replifed.settings import checks as config

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


def averaged():
    """The figures whose tables are averages of histories, which count the runs that are alive."""
    for paper in config.load(root=ROOT)["papers"]:
        for name, made in getattr(import_module(part(paper, "figures")), "FIGURES", {}).items():
            if isinstance(made, Grid) and "alive" in small_tables.columns(paper, name):
                yield pytest.param(paper, name, made, id=f"{paper}/{name}")


class AskedError(Exception):
    """Centre and band of the averages that a figure asks for."""


def ask(histories, by, values=(), *, centre="mean", band="ci", **_):
    raise AskedError(centre, band)


@pytest.mark.parametrize(("paper", "name", "made"), list(averaged()))
def test_low_and_high_are_said_to_be_the_band_that_is_drawn(paper, name, made, monkeypatch):
    """What the page says of a figure's band is what the figure draws."""
    for module in [one for one in sys.modules.values() if getattr(one, "averages", None) is averages]:
        monkeypatch.setattr(module, "averages", ask)
    inputs = MagicMock()
    inputs.experiments.return_value = ["one"]
    inputs.options.time = None
    if name == "accuracy":  # it averages each history by itself
        inputs.histories.return_value = [MagicMock()]
    with pytest.raises(AskedError) as asked:
        made.source(inputs)
    centre, band = asked.value.args
    file = f"figures/{paper}/{name}.csv"
    low = column(file, "low").meaning
    assert [one for one, words in BANDS.items() if words in low] == [band]
    assert centre == "median" or ("geometric" in column(file, "mean").meaning) == (centre == "geometric")


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
    monkeypatch.setattr("replifed.cli.listing.load_config", lambda _: {"paths": paths})
    monkeypatch.chdir(tmp_path)
    assert cli.main(["columns"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "results/p/e/m.parquet: other",
        "figures/p/fig1.csv: odd",
        "2 columns have no entry in a columns.yaml",
    ]


def test_the_columns_of_a_file_are_explained_whatever_its_scale(tmp_path, monkeypatch, capsys):
    (tmp_path / "figures/small/fedplt").mkdir(parents=True)
    (tmp_path / "figures/small/fedplt/worst.csv").write_text("mean,odd,rounds\n")
    monkeypatch.chdir(tmp_path)
    paths = {"results": "results/small", "figures": "figures/small"}
    monkeypatch.setattr("replifed.cli.columns.load_config", lambda _: {"paths": paths})
    assert cli.main(["columns", "figures/small/fedplt/worst.csv"]) == 0
    told = capsys.readouterr().out
    assert column("figures/fedplt/worst.csv", "mean").meaning in " ".join(told.split())
    assert "odd: no meaning is written down" in told and "[rounds]" in told
    assert cli.main(["columns", "figures/none.csv"]) == 2
    assert "give a CSV or parquet file" in capsys.readouterr().err


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
