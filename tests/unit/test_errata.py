"""Errata of all papers: one check, which fails for the form as printed and passes for the correction."""

from importlib import import_module
from pathlib import Path

import pytest

import replifed.papers
from replifed.claims.errata import COLUMNS, Erratum, Outcome, measure, read, write
from replifed.errors import DataError

PAPERS = sorted(file.parent.name for file in Path(replifed.papers.__path__[0]).glob("*/errata.py"))
ERRATA = [erratum for paper in PAPERS for erratum in import_module(f"replifed.papers.{paper}.errata").ERRATA]


def made(printed, corrected):
    return Erratum(
        id="p.a",
        paper="p",
        place="eq. (1)",
        printed="1 + 1 = 3",
        corrected="1 + 1 = 2",
        forms=(printed, corrected),
        check=lambda total: Outcome(total == 1 + 1, str(total)),
    )


@pytest.mark.parametrize(
    ("forms", "shown"), [((3, 2), "yes"), ((2, 2), "no"), ((3, 3), "no"), ((2, 3), "no")]
)
def test_an_erratum_is_shown_only_if_the_check_tells_the_forms_apart(forms, shown):
    (row,) = measure([made(*forms)])
    assert row["shown"] == shown
    assert row["evidence"] == f"as printed: {forms[0]}; corrected: {forms[1]}"


def test_written_and_read_back(tmp_path):
    rows = measure([made(3, 2)])
    write(tmp_path / "errata.csv", rows)
    assert read(tmp_path / "errata.csv") == rows
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(DataError, match=r"other\.csv is no list of errata"):
        read(tmp_path / "other.csv")


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: erratum.id)
def test_every_erratum_is_shown(erratum):
    (row,) = measure([erratum])
    assert row["shown"] == "yes", row["evidence"]
    assert set(row) == set(COLUMNS)
    assert erratum.id.startswith(f"{erratum.paper}.")


def test_ids_are_unique():
    ids = [erratum.id for erratum in ERRATA]
    assert len(set(ids)) == len(ids)
