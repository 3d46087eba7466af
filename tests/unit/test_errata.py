"""Errata of all papers: one check, which fails for the form as printed and passes for the correction."""

import re
from importlib import import_module

import numpy as np
import pytest

from replifed import parts
from replifed.claims.errata import COLUMNS, Erratum, Outcome, measure, read, write
from replifed.errors import DataError
from replifed.papers.fedac import published

PAPERS = sorted(file.parent.name for file in parts.PAPERS.glob("*/errata.py"))
ERRATA = [erratum for paper in PAPERS for erratum in import_module(f"replifed.papers.{paper}.errata").ERRATA]


CHECKS = {erratum.id: erratum.check for erratum in ERRATA}


def made(printed, corrected, **more):
    return Erratum(
        id="p.a",
        paper="p",
        place="eq. (1)",
        printed="1 + 1 = 3",
        corrected="1 + 1 = 2",
        forms=(printed, corrected),
        check=lambda total: Outcome(total == 1 + 1, str(total)),
        **more,
    )


@pytest.mark.parametrize(("conjecture", "told"), [(False, "yes"), (True, "conjecture")])
@pytest.mark.parametrize("forms", [(3, 2), (2, 2), (3, 3), (2, 3)])
def test_an_erratum_is_shown_only_if_the_check_tells_the_forms_apart(forms, conjecture, told):
    (row,) = measure([made(*forms, conjecture=conjecture)])
    assert row["shown"] == (told if forms == (3, 2) else "no")
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
    assert row["shown"] == ("conjecture" if erratum.conjecture else "yes"), row["evidence"]
    assert set(row) == set(COLUMNS)
    assert erratum.id.startswith(f"{erratum.paper}.")


def test_ids_are_unique():
    ids = [erratum.id for erratum in ERRATA]
    assert len(set(ids)) == len(ids)


def test_only_what_is_called_a_conjecture_is_one():
    assert {erratum.id for erratum in ERRATA if erratum.conjecture} == {
        "fedgradmp.hidden_sparsity",
        "fedht.step_grid",
        "fedplt.mean",
    }


def test_a_condition_that_is_never_met_or_always_is_not_sound():
    """Planted: with the one S whose norm is above one alone, a condition never met would pass."""
    stable = CHECKS["fedplt.stable"]
    never, always = stable(lambda S: 2.0), stable(lambda S: 0.0)
    assert not never.passes and "not met" in never.evidence
    assert not always.passes and "1.223 times" in always.evidence
    # Nor is one between the two that lets the first case in.
    assert not stable(lambda S: 0.8 * np.linalg.norm(S, 2)).passes
    assert stable(lambda S: np.linalg.norm(S, 2)).passes


def test_undefined_numbers_are_no_fault_if_some_of_those_tried_fit():
    """Planted: beside two that are off, the pair that fits."""
    ((tried, fits),) = (erratum.forms for erratum in ERRATA if erratum.id == "qshed.undefined_b_c")
    check = CHECKS["qshed.undefined_b_c"]
    assert not check(tried).passes
    assert check((*tried, *fits)).passes
    # What is told of those that are off is the nearest.
    nearest = re.search(r"the nearest of 4 is \+([0-9.]+) standard", check(tried).evidence)
    alone = [check((pair,)).evidence for pair in tried]
    off = [float(re.match(r"\+([0-9.]+) standard", said)[1]) for said in alone]
    assert float(nearest[1]) == min(off) < max(off)


@pytest.mark.parametrize(
    "qbar, said",
    [
        (lambda q, B, n: q + B, "in 528, by up to 32"),
        (lambda q, B, n: min(q + B, n), "in 528, by up to 1"),
        (lambda q, B, n: min(q + B, n - 2), "cut below it in 33"),
        (lambda q, B, n: n - 1 if q + B > n else q + B, "in 32, by up to 1"),
    ],
)
def test_qbar_is_held_against_all_vectors_and_budgets(qbar, said):
    outcome = CHECKS["qshed.qbar"](qbar)
    assert not outcome.passes and said in outcome.evidence


def test_a_range_of_q_that_ends_early_is_refused_as_one_that_ends_late_is():
    check = CHECKS["qshed.last_q"]
    assert [check(lambda n, by=by: n - by).passes for by in (0, 1, 2)] == [False, True, False]


def test_overflows_are_those_of_the_published_runs(monkeypatch):
    """Planted: one infinite objective less, or one of another regularisation; or another loss."""
    (erratum,) = [one for one in ERRATA if one.id == "fedac.overflow"]
    assert not erratum.check(lambda z: np.maximum(z, 0.0)).passes
    runs = published.runs()
    infinite = runs.index[np.isinf(runs["final_loss"])]
    for changes in ({"final_loss": 25.0}, {"l2": 1e-3}):
        moved = runs.copy()
        moved.loc[infinite[0], list(changes)] = list(changes.values())
        monkeypatch.setattr(published, "runs", lambda moved=moved: moved)
        assert measure([erratum])[0]["shown"] == "no"
