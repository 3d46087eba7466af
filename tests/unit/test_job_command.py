"""`replifed job`: what each kind is called with, what it checks and records, and several in one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replifed import cli
from replifed.papers.fedmm.figures import TABLES
from replifed.settings import checks as config
from replifed.settings.needs import settings_for
from replifed.store import environment, hashes
from replifed.workflow import entries
from replifed.workflow.jobs import KINDS, Table

ROOT = Path(__file__).parents[2]
CALLED = (
    *("data.fetch.fetch", "data.parse.parse", "data.own.parse", "partition.build.partition"),
    *("store.histories.join", "report.page.build", "report.gallery.write", "store.manifest.write"),
    *(f"papers.jobs.{name}" for name in ("tune", "run", "artefact", "measure_claims")),
    *("papers.jobs.measure_errata", "papers.jobs.collect_claims"),
)


@pytest.fixture(scope="module")
def whole():
    """The settings of all papers at their scale, with a data set and a method of one's own."""
    loaded = config.load(root=ROOT)
    return config.validate(
        {**loaded, "datasets": {"mine": {"path": str(ROOT / "README.md"), "loss": "logistic"}}}
    )


@pytest.fixture
def do(tmp_path, monkeypatch):
    """Does jobs in an empty folder, with the settings given."""
    monkeypatch.chdir(tmp_path)

    def done(settings, *keys):
        monkeypatch.setenv(entries.VARIABLE, entries.write(Table(settings)))
        return cli.main(["job", *keys])

    return done


@pytest.fixture
def calls(monkeypatch):
    """Replace what jobs call, and return the list of calls."""
    made = []

    def recorder(name):
        def record(*positional, **named):
            made.append((name, positional, named))
            return {"form": "", "kind": "", "files": [], "counts": {}}

        return record

    for path in CALLED:
        monkeypatch.setattr(f"replifed.{path}", recorder(path.rpartition(".")[2]))
    return made


def test_a_search_and_a_run_get_their_files_and_their_settings(whole, do, calls):
    assert do(whole, "tune:fedht/mnist/fedavg", "run:fedht/mnist/fedavg") == 0
    files = Path("data/parsed/mnist.npz"), Path("results/fedht/mnist/partition.npz")
    tuned, history = (Path(f"results/fedht/mnist/fedavg.{end}") for end in ("tuned.json", "parquet"))
    of = {step: settings_for(step, whole["fedht"], "mnist") for step in ("tune", "run")}
    assert calls == [
        ("tune", ("fedht", "mnist", "fedavg", of["tune"], *files, tuned, None), {"test": None}),
        ("run", ("fedht", "mnist", "fedavg", of["run"], *files, tuned, history, None), {"test": None}),
    ]
    # Their keys are in the order in which histories store them.
    assert list(calls[1][1][3]) == sorted(of["run"])


def test_a_search_gets_that_of_its_leader(whole, do, calls):
    key = "tune:fedmm/synthetic_heterogeneous/parameter_aggregation"
    assert do(whole, key) == 0
    [(_, given, _)] = calls
    assert given[-1] == Path("results/fedmm/synthetic_heterogeneous/fedmm.tuned.json")


def test_what_is_made_of_all_papers_gets_what_they_left(whole, do, calls):
    assert (
        do(whole, "claims:", "report:", "single_report:", "comparison_report:", "gallery:", "manifest:") == 0
    )
    (_, collected, _), (_, _, report), (_, _, single), (_, _, compared), (_, gallery, _), (_, manifest, _) = (
        calls
    )
    results = {name: Path(f"results/{name}.csv") for name in ("claims", "statements", "not_claimed")}
    assert collected == (
        [Path(f"results/{paper}/claims.csv") for paper in whole["papers"]],
        *results.values(),
    )
    assert report["errata"] == [Path(f"results/{paper}/errata.csv") for paper in whole["papers"]]
    shown = {"claims": results["claims"], "scale": "paper"}
    assert shown.items() <= report.items() and shown.items() <= single.items()
    assert (report["curves"], report["run"]) == (
        Path("results/report_curves.js"),
        Path("results/report_run.js"),
    )
    assert single["out"] == Path("results/report-single.html") and single["single"]
    assert compared["settings"]["papers"] == ["compare"] and "claims" not in compared
    assert gallery[2:] == (results["claims"], Path("docs/pictures.md"))
    listed, out, folders, environment = manifest
    assert {"results/report.html", "results/fedht/mnist/fedht.parquet"} <= set(listed)
    assert (out, environment) == (Path("results/manifest.csv"), Path("results/environment.json"))
    assert "data/raw/mnist" in folders and "data/raw/phishing" in folders


def test_data_are_fetched_as_configured_and_custom_ones_read_in_their_place(whole, do, calls, capsys):
    stated = {**whole, "data": {**whole["data"], "policy": "real"}}
    assert do(stated, "fetch:mnist", "parse:mnist", "own_dataset:mine", "partition:fedht/mnist") == 0
    (_, fetched, chosen), (_, parsed, _), (_, own, _), (_, split, _) = calls
    assert (fetched[0].id, fetched[1], chosen) == (
        "mnist",
        Path("data/raw"),
        {"policy": "real", "substitutes": False},
    )
    assert (parsed[0].id, *parsed[1:]) == ("mnist", Path("data/raw"), Path("data/parsed/mnist.npz"))
    assert own[0] == "mine" and own[1]["partition_stated"] is False and own[2] == Path("data/parsed/mine.npz")
    assert split[:2] == ("fedht", "mnist") and split[2] == settings_for("partition", whole["fedht"], "mnist")


def test_every_kind_of_job_is_done_by_something(whole):
    from replifed.cli.job import _DONE_BY

    assert set(_DONE_BY) == set(KINDS) - {"reused"}
    assert {job.kind for job in Table(whole).values()} <= set(_DONE_BY)


def test_a_job_is_not_done_on_what_has_changed_and_records_what_it_leaves(whole, do, monkeypatch, capsys):
    monkeypatch.setattr(
        "replifed.papers.jobs.tune",
        lambda *given, **_: (given[6].parent.mkdir(parents=True), given[6].write_text("{}")),
    )
    monkeypatch.setattr("replifed.papers.jobs.run", lambda *given, **_: given[7].write_text("a history"))
    search, run = (f"{step}:fedht/simulation1/fedavg" for step in ("tune", "run"))
    assert do(whole, search) == 0
    tuned = Path("results/fedht/simulation1/fedavg.tuned.json")
    assert hashes.recorded(tuned) == hashes.measure(tuned)
    assert do(whole, run) == 0
    tuned.write_text("{ }")
    assert do(whole, run) == 2
    assert f"{tuned} has changed since it was made; make it anew" in capsys.readouterr().err


def test_jobs_in_one_process_are_the_single_ones(do, monkeypatch):
    tiny = config.load([ROOT / "config/tiny.yaml"], root=ROOT)
    tiny["fedmm"]["artefacts"]["again"] = tiny["fedmm"]["artefacts"]["remark1"]
    tiny["fedmm"]["only"] = ["remark1", "again"]
    monkeypatch.setitem(TABLES, "again", TABLES["remark1"])
    monkeypatch.setattr(environment, "_seconds_of_parts", {})
    table = Table(tiny)
    searched = [f"{step}:fedht/simulation1/fedavg" for step in ("tune", "run")]
    runs = list(table["table:fedmm/remark1"].reads.values())
    drawn = ["table:fedmm/remark1", "table:fedmm/again"]
    together, alone = ([*searched, *runs], drawn), [(one,) for one in (*searched, *runs, *drawn)]
    made = []
    for keys in (together, alone):
        for several in keys:
            assert do(tiny, *several) == 0
        made.append(
            {file: Path(file).read_bytes() for key in (*searched, *runs, *drawn) for file in table.files(key)}
        )
    assert made[0] == made[1]
    first, second = (table.files(key)[0] for key in drawn)
    assert made[0][first] == made[0][second]
    # What each cost is counted by itself.
    assert set(environment._seconds_of_parts) == {
        table[key].log.partition("/")[2] for key in (*searched, *runs, *drawn)
    }


def test_settings_that_jobs_share_stand_once_in_the_file_of_jobs(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = Table(whole)
    file = entries.write(table)
    config, *lines = Path(file).read_text().split("\n")
    shared, jobs = ([line for line in lines if line.startswith("{") == is_text] for is_text in (True, False))
    assert json.loads(config) == whole and len(set(shared)) == len(shared) < len(jobs) == len(table)
    assert entries.write(table) == file
