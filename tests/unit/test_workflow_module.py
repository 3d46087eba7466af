"""Which file is made from which, and when one job stands in place of many."""

import copy
import os
import re
from pathlib import Path

import pytest

from replifed import parts
from replifed.errors import ConfigError, ReplifedError
from replifed.store.provenance import source_stamp
from replifed.workflow import Grouping, Plan, inputs_flag

CONFIG = {
    "scale": "small",
    "papers": ["fedht", "qshed"],
    "paths": {"data": "data", "results": "results/small", "figures": "figures/small"},
    "fedht": {
        "seed": 1,
        "together": True,
        "experiments": {
            "toy": {"methods": ["fedht", "fedavg"], "rounds": 3, "memory_mb": 500},
            "mnist": {
                "methods": ["fedht"],
                "dataset": "mnist",
                "partition": {"clients": 2},
                "replicates": [1],
                "rounds": 5,
                "tuning": {"replicates": [101]},
                "memory_mb": 4000,
            },
            "unused": {"methods": ["fedht"], "rounds": 9},
        },
        "artefacts": {
            "fig1": {"kind": "figure", "runs": {"toy": ["fedht", "fedavg"]}},
            "fig2": {"kind": "figure", "runs": {"toy": ["fedht"], "mnist": ["fedht"]}},
            "fig3": {"kind": "figure", "runs": {"toy": ["fedht"]}},
            "table1": {"kind": "table", "partitions": ["mnist"]},
        },
    },
    "qshed": {
        "seed": 2,
        "experiments": {"example": {"methods": ["fednl"], "rounds": 4}},
        "artefacts": {"fig1": {"kind": "figure", "runs": {"example": ["fednl"]}}},
    },
}
RUNS = {"run_fedht_toy_and_1_more_fedht", "run_fedht_toy_fedavg"}
ALL = {*RUNS, "artefacts_fedht"}


def planned(version="1", **edits):
    """A plan whose sources are their modules' names, with `version` for the methods."""

    def source(*modules):
        return [f"{module} {version}" if ".algorithms." in module else module for module in modules]

    config = copy.deepcopy(CONFIG)
    config["fedht"].update(edits)
    return Plan(config, source)


@pytest.fixture
def plan():
    return planned()


# --- Single jobs ---


def test_a_run_reads_its_data_its_partition_and_its_tuned_step(plan):
    assert plan.run_inputs("fedht", "mnist", "fedht") == {
        "data": "data/parsed/mnist.npz",
        "partition": "results/small/fedht/mnist/partition.npz",
        "tuned": "results/small/fedht/mnist/fedht.tuned.json",
        "source": [
            "replifed.papers.jobs:run",
            "replifed.papers.fedht.experiments",
            "replifed.algorithms.fedht 1",
        ],
    }
    assert list(plan.run_inputs("fedht", "toy", "fedht")) == ["source"]
    assert "tuned" not in plan.tune_inputs("fedht", "mnist", "fedht")
    assert plan.step_settings("run", "fedht", "toy") == '{"rounds":3,"seed":1}'


def test_jobs_share_a_run_if_it_has_enough_repetitions(plan):
    assert plan.shared_runs() == set()
    toy = CONFIG["fedht"]["experiments"]["toy"] | {"split": {"fedht": 3}, "replicates": [1, 2, 3, 4]}
    shared = planned(together="artefacts", experiments=CONFIG["fedht"]["experiments"] | {"toy": toy})
    assert shared.shared_runs() == {"fedht/toy/fedht"}
    assert shared.share_files("fedht", "toy", "fedht") == [
        f"results/small/shares/fedht/toy/fedht.{number}.parquet" for number in (1, 2, 3)
    ]
    assert shared.step_settings("run", "fedht", "toy") == '{"replicates":[1,2,3,4],"rounds":3,"seed":1}'
    toy["replicates"] = [1, 2]
    assert len(shared.share_files("fedht", "toy", "fedht")) == 2
    grouping = Grouping(shared, ["all"])
    for file, whole in {
        "toy/fedht.parquet": False,
        "toy/fedavg.parquet": True,
        "mnist/x.parquet": True,
    }.items():
        name = f"fedht/{file}"
        assert bool(re.match(rf"{grouping.papers_of_whole_runs()}/", name)) == whole
        assert bool(re.match(rf"{grouping.papers_of_shared_runs()}/", name)) == (not whole)
        assert re.match(rf"{grouping.papers_of_single_runs()}/", name)


def test_an_artefact_is_made_from_what_its_entry_names(plan):
    assert plan.artefact_inputs("fedht", "table1") == {
        "partition:mnist": [
            "results/small/fedht/mnist/partition.npz",
            "results/small/fedht/mnist/partition.csv",
        ],
        "data:mnist": ["data/parsed/mnist.npz"],
        "source": ["replifed.papers.jobs:artefact", "replifed.papers.fedht.tables"],
    }
    assert inputs_flag(plan.artefact_inputs("qshed", "fig1")) == (
        "--inputs run:example/fednl=results/small/qshed/example/fednl.parquet"
    )
    assert plan.artefact_files("qshed") == [
        f"figures/small/qshed/fig1.{end}" for end in ("csv", "pdf", "png")
    ]
    assert plan.artefact_outputs("fedht", "{paper}")["table1.tex"] == "figures/small/{paper}/table1.tex"
    assert planned(only=["table1"]).artefact_names("figure") == {"fig1"}  # that of the other paper


def test_the_manifest_lists_searches_and_partitions_before_the_runs(plan):
    listed = plan.manifest_files()
    assert len(listed) == len(set(listed))
    assert {
        "data/raw/mnist.json",
        "results/small/fedht/mnist/fedht.tuned.json",
        "results/small/fedht/mnist/partition.csv",
        "results/small/fedht/toy/fedavg.parquet",
        "results/small/qshed/errata.csv",
        "results/small/report.html",
    } <= set(listed)
    assert not any("unused" in file for file in listed)


def test_the_last_line_names_a_damaged_record(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert plan.closing_line(["mnist"], ["report.html"]) == "report: report.html"
    record = Path("data/raw/mnist.json")
    record.parent.mkdir(parents=True)
    record.write_text('{"files": [{}]}')
    assert re.fullmatch(
        f"{record} is not a record of a fetched data set .*; delete it", plan.closing_line(["mnist"], [])
    )


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda plan: plan.partition_inputs("fedht", "toy"),
            "experiment toy of fedht has no section `partition` to make one from",
        ),
        (lambda plan: plan.memory("qshed", "toy"), "unknown experiment of qshed 'toy' (known: example)"),
        (
            lambda plan: plan.artefact_inputs("qshed", "fig2"),
            "unknown artefact of qshed 'fig2'; did you mean 'fig1'? (known: fig1)",
        ),
    ],
)
def test_what_no_job_makes_is_refused_in_one_line(plan, call, line):
    with pytest.raises(ConfigError, match=f"^{re.escape(line)}$"):
        call(plan)


# --- Grouped jobs ---


def rules(plan, *targets):
    grouping = Grouping(plan, targets)
    return {job.rule for job in (*grouping.runs, *grouping.artefacts)}


@pytest.mark.parametrize(
    ("targets", "used"),
    [
        (["all"], ALL),
        (["results/small/claims.csv"], ALL),
        (["results/small/fedht/claims.csv"], ALL),
        (["results/small/qshed/claims.csv"], set()),  # of another paper
        (["figures/small/fedht/fig1.pdf", "all"], ALL),
        (["figures/small/fedht/fig1.pdf"], {"run_fedht_toy_fedavg"}),
        (["figures/small/fedht/fig1.pdf", "figures/small/fedht/fig2.png"], RUNS),
        ([f"figures/small/fedht/{name}.csv" for name in CONFIG["fedht"]["artefacts"]], ALL),
        (
            [f"results/small/fedht/{name}/fedht.parquet" for name in ("toy", "mnist")],
            {"run_fedht_toy_and_1_more_fedht"},
        ),
        (["results/small/fedht/mnist/fedht.parquet", "data/raw/mnist.json"], set()),
        (["results/small/fedht/unused/fedht.parquet"], set()),
        (["results/small/fedht/mnist/fedht.tuned.json", "results/small/fedht/mnist/partition.npz"], set()),
        (["run_method"], set()),  # jobs on another machine
        (["run_fedht_toy_fedavg"], ALL),
    ],
)
def test_jobs_are_grouped_where_all_that_they_make_is_wanted(plan, tmp_path, monkeypatch, targets, used):
    monkeypatch.chdir(tmp_path)
    assert rules(plan, *targets) == used


def test_a_grouped_job_does_what_the_single_ones_do(plan):
    grouping = Grouping(plan, ["all"])
    job = grouping.runs[0]
    assert (job.experiments, job.method, job.memory) == (["toy", "mnist"], "fedht", 4000)
    assert job.keys == ["data:mnist", "partition:mnist"]
    assert job.outputs == {
        "tuned:mnist": "results/small/fedht/mnist/fedht.tuned.json",
        "run:toy": "results/small/fedht/toy/fedht.parquet",
        "run:mnist": "results/small/fedht/mnist/fedht.parquet",
    }
    assert job.patterns[0] == "results/small/fedht/mnist/{method}.tuned.json"
    for name in job.experiments:
        assert plan.step_settings("run", "fedht", name) in job.settings
    assert plan.step_settings("tune", "fedht", "mnist") in job.settings


def test_each_file_has_one_rule(plan):
    grouping = Grouping(plan, ["all"])
    single = re.compile(f"({grouping.papers_of_single_runs()})/(\\w+)/(\\w+)[.]parquet")
    assert single.fullmatch("fedht/unused/fedht.parquet")
    assert single.fullmatch("qshed/example/fednl.parquet")
    assert not single.fullmatch("fedht/toy/fedavg.parquet")
    drawn = re.compile(f"({grouping.papers_of_single_artefacts()})/(\\w+)[.]pdf")
    assert drawn.fullmatch("qshed/fig1.pdf")
    assert not drawn.fullmatch("fedht/fig1.pdf")
    assert drawn.fullmatch("fedht/on_demand.pdf")
    alone = Grouping(plan, ["run_method"])
    assert re.fullmatch(alone.papers_of_single_runs() + "/toy/fedht.parquet", "fedht/toy/fedht.parquet")
    assert re.fullmatch(alone.papers_of_single_artefacts() + "/fig1.pdf", "fedht/fig1.pdf")


@pytest.fixture
def made(plan, tmp_path, monkeypatch):
    """A folder in which all grouped jobs have run."""
    monkeypatch.chdir(tmp_path)
    grouping = Grouping(plan, ["all"])
    for job in (*grouping.runs, *grouping.artefacts):
        for file in (*plan.files_of(job.paper, *job.keys), *job.outputs.values()):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text("")
        assert os.system(job.note_command()) == 0
    return plan


SINGLE = "figures/small/fedht/fig3.pdf"


def test_what_a_grouped_job_has_made_stays_its_own(made):
    assert rules(made, "run_method") == ALL
    assert rules(made, SINGLE) == ALL


@pytest.mark.parametrize(
    ("edits", "left"),
    [
        # An edit of a method touches the runs, and what is drawn from them.
        ({"version": "2"}, set()),
        ({"seed": 3}, set()),
        ({"artefacts": CONFIG["fedht"]["artefacts"] | {"fig1": {"kind": "figure"}}}, RUNS),
    ],
)
def test_after_a_change_a_file_that_is_asked_for_alone_has_its_own_jobs(made, edits, left):
    changed = planned(**edits)
    assert rules(changed, SINGLE) == left
    assert rules(changed, "all") == ALL


def test_after_a_loss_too(made):
    Path("results/small/fedht/toy/fedavg.parquet").unlink()
    assert rules(made, SINGLE) == {"run_fedht_toy_and_1_more_fedht"}


# --- Sources ---


def test_a_stamp_is_that_of_what_the_sources_hold(tmp_path):
    package = tmp_path / "src/replifed"
    (package / "algorithms").mkdir(parents=True)
    for name in ("__init__", "algorithms/__init__", "algorithms/registry", "other"):
        (package / f"{name}.py").write_text("")
    (package / "job.py").write_text("import replifed.algorithms.registry\n")

    def stamp(root, module="replifed.job"):
        return Path(source_stamp((module,), root, tmp_path / "stamps"))

    first = stamp(tmp_path / "src")
    assert [line.split("  ")[1] for line in first.read_text().splitlines()] == [
        "replifed/__init__.py",
        "replifed/algorithms/__init__.py",
        "replifed/job.py",
    ]
    assert first.stat().st_mtime == 0
    # A process looks at one state of a folder, so each edit is made in a copy.
    for name, edited in (("other", False), ("algorithms/registry", False), ("algorithms/__init__", True)):
        root = tmp_path / name / "src"
        for file in package.rglob("*.py"):
            target = root / file.relative_to(tmp_path / "src")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.read_text() + ("# edit\n" if file == package / f"{name}.py" else ""))
        assert (stamp(root) != first) == edited
    with pytest.raises(ReplifedError, match=r"no module replifed\.none"):
        stamp(tmp_path / "src", "replifed.none")


@pytest.mark.parametrize(
    "files, found",
    [
        ({}, ""),
        ({"figures.py": "FIGURES = {}"}, ""),
        ({"figures.py": "FIGURES, TABLES = {}, {}"}, ".figures"),
        ({"figures.py": "FIGURES, TABLES = {}, {}", "tables.py": ""}, ".tables"),
    ],
)
def test_tables_of_a_paper_stand_alone_with_its_figures_or_with_all_its_parts(
    tmp_path, monkeypatch, files, found
):
    for name, text in {"__init__.py": "", **files}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(parts, "folder_of", lambda paper: tmp_path)
    assert parts.part("demo", "tables") == f"replifed.papers.demo{found}"
