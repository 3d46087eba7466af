"""What claims are held against changes only with an entry in the log."""

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from replifed.claims.tolerances import differences, record
from replifed.claims.verdicts import Claim
from replifed.errors import ConfigError, DataError
from replifed.papers.jobs import every_claim
from replifed.settings import cuts, load

LOG = Path(__file__).parents[1] / "golden/tolerances.csv"
VALUE = Claim(
    id="p.a",
    paper="p",
    artefact="fig1",
    statement="It is 3.",
    kind="value",
    published=3.0,
    tolerance=0.1,
    tolerance_reason="a tenth",
    measure=lambda inputs: [3.0],
)


@cache
def configured():
    return load(["config/small.yaml"])


@pytest.mark.parametrize("paper", ["fedht", "fedmm", "fedgradmp", "fedplt", "qshed", "cross"])
def test_claims_read_what_is_configured(paper):
    """A claim on a misspelled experiment or method would stay unchecked for ever."""
    keys = set(cuts.claim_keys(configured()[paper]))
    claims = import_module(f"replifed.papers.{paper}.claims").CLAIMS
    unknown = {claim.id: set(claim.needs) - keys for claim in claims}
    assert not {name: missing for name, missing in unknown.items() if missing}


def test_every_tolerance_is_the_one_in_the_log():
    changed = differences(every_claim(), LOG)
    said = "\n".join(
        f"{name}: log says {was or 'nothing'}, claim says {now or 'nothing'}"
        for name, (was, now) in changed.items()
    )
    assert not changed, f"enter these with `replifed claims log {LOG} --reason ...`:\n{said}"


def test_a_change_needs_a_reason_and_leaves_the_old_line(tmp_path):
    log = tmp_path / "log.csv"
    assert record([VALUE], log, "") == {"p.a": ("", "3 +- 0.1")}
    wider = replace(VALUE, tolerance=0.2)
    assert differences([wider], log) == {"p.a": ("3 +- 0.1", "3 +- 0.2")}
    with pytest.raises(ConfigError, match="needs --reason"):
        record([wider], log, " ")
    record([wider], log, "measured twice")
    assert not differences([wider], log)
    assert log.read_text().splitlines() == [
        "id,published,tolerance,reason",
        "p.a,3,0.1,a tenth",
        "p.a,3,0.2,measured twice",
    ]


def test_a_claim_that_is_gone_is_noticed(tmp_path):
    log = tmp_path / "log.csv"
    record([VALUE], log, "")
    assert differences([], log) == {"p.a": ("3 +- 0.1", "")}


def test_another_file_is_refused(tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n")
    with pytest.raises(DataError, match=r"log\.csv is no log of tolerances"):
        differences([VALUE], tmp_path / "log.csv")
