"""What claims are held against changes only with an entry in the log."""

import inspect
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

from replifed.claims import tolerances
from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim
from replifed.claims.quantities import quantity, run
from replifed.claims.statements import Statements
from replifed.claims.tolerances import differences, measures_changed, record, record_measures
from replifed.errors import ConfigError, DataError
from replifed.papers.jobs import every_claim
from replifed.settings import needs
from replifed.settings.checks import load

GOLDEN = Path(__file__).parents[1] / "golden"
VALUE = Claim(
    id="p.a",
    paper="p",
    artefact="fig1",
    statement="It is 3.",
    kind="near",
    published=3.0,
    tolerance=0.1,
    tolerance_reason="a tenth",
    measure=lambda inputs: [3.0],
)


@cache
def configured():
    return load(["config/small.yaml"])


@pytest.mark.parametrize("paper", ["fedht", "fedmm", "fedgradmp", "fedplt", "qshed", "fedac", "cross"])
def test_claims_read_what_is_configured(paper):
    """A claim on a misspelled experiment or method would stay unchecked for ever."""
    keys = set(needs.claim_keys(configured()[paper]))
    claims = import_module(f"replifed.papers.{paper}.claims").CLAIMS
    unknown = {claim.id: set(claim.needs) - keys for claim in claims}
    assert not {name: missing for name, missing in unknown.items() if missing}


@pytest.mark.parametrize("log, compared", [("tolerances", differences), ("measures", measures_changed)])
def test_every_tolerance_and_measure_is_the_one_in_the_log(log, compared):
    changed = compared(every_claim(), GOLDEN / f"{log}.csv")
    said = "\n".join(
        f"{name}: log says {was or 'nothing'}, code says {now or 'nothing'}"
        for name, (was, now) in changed.items()
    )
    assert not changed, f"enter these with `replifed claims log {GOLDEN} --reason ...`:\n{said}"


def test_a_change_needs_a_reason_and_leaves_the_old_line(tmp_path):
    log = tmp_path / "log.csv"
    assert list(record([VALUE], log, "")) == ["p.a"]
    wider = replace(VALUE, tolerance=0.2)
    [(was, now)] = differences([wider], log).values()
    assert (was[:8], now[:8]) == ("3 +- 0.1", "3 +- 0.2")
    with pytest.raises(ConfigError, match="needs --reason"):
        record([wider], log, " ")
    record([wider], log, "measured twice")
    assert not differences([wider], log)
    rows = [line.split(",") for line in log.read_text().splitlines()]
    assert [(*row[:3], row[4]) for row in rows] == [
        ("id", "published", "tolerance", "reason"),
        ("p.a", "3", "0.1", "a tenth"),
        ("p.a", "3", "0.2", "measured twice"),
    ]


def test_a_claim_that_is_gone_leaves_its_lines(tmp_path):
    """Planted: a claim goes, and comes back with a wider tolerance."""
    log = tmp_path / "log.csv"
    record([VALUE], log, "")
    with pytest.raises(ConfigError, match="needs --reason"):
        record([], log, "")
    record([], log, "no run can fail it")
    assert not differences([], log)
    with pytest.raises(ConfigError, match="needs --reason"):
        record([replace(VALUE, tolerance=2.0)], log, "")
    record([replace(VALUE, tolerance=2.0)], log, "a run can fail it again")
    assert [line.split(",")[2] for line in log.read_text().splitlines()[1:]] == ["0.1", "", "2"]


def axes(source="chosen", kind="uncertain", fitted_on=(), more=()):
    sum_ = Option("sum", source, "the numbers come out", kind=kind)
    return Axes(Axis("loss", "?", Option("mean", "printed", "eq. (2)"), sum_), *more, fitted_on=fitted_on)


@pytest.mark.parametrize(
    "change",
    [
        *({"statement_id": "p.b"}, {"artefact": "fig2"}, {"main": True}, {"informs": True}),
        *({"evidence": "formula"}, {"rival": 5.0}, {"repetitions": 20}),
    ],
)
def test_what_decides_how_a_claim_counts_is_logged(tmp_path, change):
    """Planted: a main claim that is made one after its result is known."""
    one = replace(VALUE, axes=axes(), options={"loss": "sum"})
    record([one], tmp_path / "log.csv", "")
    assert not differences([one], tmp_path / "log.csv")
    assert "p.a" in differences([replace(one, **change)], tmp_path / "log.csv")


@pytest.mark.parametrize(
    "changed, line",
    [
        (axes("fitted"), "p, axis loss"),
        (axes(kind="different"), "p, axis loss"),
        (axes(fitted_on=["a"]), "p, fitted on"),
        (axes(more=[Axis("step", "?", Option("0.1", "chosen", "by us"))]), "p, axis step"),
    ],
)
def test_an_axis_has_one_line_and_claims_keep_theirs(tmp_path, changed, line):
    """Planted: a source that was fitted; a new axis, on which the claim has an option."""
    one = replace(VALUE, axes=axes(), options={"loss": "sum"})
    record([one], tmp_path / "log.csv", "")
    record_measures([one], tmp_path / "measures.csv", "")
    options = {"loss": "sum"} | ({"step": "0.1"} if "step" in changed.axes else {})
    other = replace(one, axes=changed, options=options)
    assert list(measures_changed([other], tmp_path / "measures.csv")) == [line]
    assert not differences([other], tmp_path / "log.csv")


def test_another_file_is_refused(tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n")
    with pytest.raises(DataError, match=r"log\.csv is no log of tolerances"):
        differences([VALUE], tmp_path / "log.csv")


def stated(**changes):
    """A claim whose measure has a target of its own."""
    measured = reach(run("exp", "m"), **changes)
    return Statements("p").near("a", "It is 3.", 3.0, measured, within=0.1, because="a tenth", unit="rounds")


@quantity
def reach(history, target=0.5):
    return [history.min() + target]


def test_another_target_is_another_expression(tmp_path):
    """Planted: the target of a measure changes after the runs, and nothing else does."""
    log = tmp_path / "log.csv"
    record([stated()], log, "")
    assert not differences([stated()], log)
    assert "p.a" in differences([stated(target=0.6)], log)


def test_another_window_in_the_code_is_another_measure(tmp_path, monkeypatch):
    """Planted: a constant that measures use changes, or the code of one; words and layout do not count."""
    from replifed.papers.fedht import measures

    claims, log = import_module("replifed.papers.fedht.claims").CLAIMS[::20], tmp_path / "log.csv"
    record_measures(claims, log, "")
    assert not measures_changed(claims, log)
    whole = inspect.getsource

    def edited(thing):
        return whole(thing).replace("_DESCENT = 0.9", "_DESCENT = 0.8") if thing is measures else whole(thing)

    monkeypatch.setattr(inspect, "getsource", edited)
    assert list(measures_changed(claims, log)) == ["replifed.papers.fedht.measures"]
    with pytest.raises(ConfigError, match="needs --reason"):
        record_measures(claims, log, "")
    with log.open("a") as file:
        file.write("config/papers/fedht.yaml: rounds,,a remark on a setting\n")
    record_measures(claims, log, "an eighth is enough")
    assert "a remark on a setting" in log.read_text()
    assert log.read_text().count("replifed.papers.fedht.measures") == 2


def test_words_do_not_change_a_measure():
    def one(x: float) -> float:
        """Double it."""
        return 2 * x  # twice

    first = tolerances._code(dedent(inspect.getsource(one)))

    def one(x):
        return 2 * x

    assert tolerances._code(dedent(inspect.getsource(one))) == first
