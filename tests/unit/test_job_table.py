"""The table of jobs: which file is made from which, and when one job stands in place of many."""

import copy
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from replifed import parts
from replifed.errors import ConfigError, ReplifedError
from replifed.store.provenance import source_listing
from replifed.workflow import closing, targets
from replifed.workflow.jobs import Table

SRC = Path(__file__).parents[2] / "src"
PATHS = {"data": "data", "results": "results/small", "figures": "figures/small"}
CONFIG = {
    "scale": "small",
    "papers": ["fedht", "qshed"],
    "paths": PATHS,
    "data": {"policy": "auto", "substitutes": False, "mirror": None},
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
ARTEFACTS = CONFIG["fedht"]["artefacts"]
RUNS = {"run_fedht_toy_and_1_more_fedht"}
ALL = {*RUNS, "artefacts_fedht"}


def planned(**edits):
    """The table of the configuration with some keys of one paper changed."""
    config = copy.deepcopy(CONFIG)
    config["fedht"].update(edits)
    return Table(config)


@pytest.fixture(scope="module")
def table():
    return planned()


# --- Single jobs ---


def test_a_run_reads_its_data_its_partition_and_its_tuned_step(table):
    run = table["run:fedht/mnist/fedht"]
    assert run.reads == {
        "data": "parse:mnist",
        "partition": "partition:fedht/mnist",
        "tuned": "tune:fedht/mnist/fedht",
    }
    assert list(run.sources) == [
        "replifed.papers.jobs:run",
        "replifed.papers.fedht.experiments",
        "replifed.algorithms.fedht",
    ]
    assert (run.memory, run.log) == (4000, "fedht/mnist/fedht")
    assert not table["run:fedht/toy/fedht"].reads
    assert "tuned" not in table["tune:fedht/mnist/fedht"].reads
    assert table["run:fedht/toy/fedht"].settings == {"rounds": 3, "seed": 1}


def test_jobs_come_after_what_they_read(table):
    seen = set()
    for key, job in table.items():
        assert seen.issuperset(job.upstream), key
        seen.add(key)


def test_jobs_share_a_run_if_it_has_enough_repetitions():
    toy = CONFIG["fedht"]["experiments"]["toy"] | {"split": {"fedht": 3}, "replicates": [1, 2, 3, 4]}

    def shares(together, replicates):
        experiments = CONFIG["fedht"]["experiments"] | {"toy": toy | {"replicates": replicates}}
        shared = planned(together=together, experiments=experiments)
        figure = shared["figure:fedht/fig3"].reads["run:toy/fedht"]
        return shared, figure, list(shared[figure].upstream)

    shared, joined, before = shares("artefacts", [1, 2, 3, 4])
    assert (joined, before) == ("join:fedht/toy/fedht", [f"share:fedht/toy/fedht.{n}" for n in (1, 2, 3)])
    assert shared.files(*before)[0] == "results/small/shares/fedht/toy/fedht.1.parquet"
    assert shared.files(joined) == ["results/small/fedht/toy/fedht.parquet"]
    assert shared[before[0]].settings == {"replicates": [1, 2, 3, 4], "rounds": 3, "seed": 1}
    assert shared[before[0]].options == {"share": 3}
    assert len(shares("artefacts", [1, 2])[2]) == 2
    assert shares("artefacts", [1])[1] == shares(True, [1, 2, 3, 4])[1] == "run:fedht/toy/fedht"


def test_an_artefact_is_made_from_what_its_entry_names(table):
    made = table["table:fedht/table1"]
    assert made.reads == {"partition:mnist": "partition:fedht/mnist", "data:mnist": "parse:mnist"}
    assert list(made.sources) == ["replifed.papers.jobs:artefact", "replifed.papers.fedht.tables"]
    assert table.files("figure:qshed/fig1") == [
        f"figures/small/qshed/fig1.{end}" for end in ("csv", "pdf", "png")
    ]
    assert table.maker("figures/small/fedht/table1.tex") == "table:fedht/table1"
    only = planned(only=["table1"])
    assert [key for key in only if key.startswith("figure:")] == ["figure:qshed/fig1"]  # of the other paper


def test_the_manifest_lists_searches_and_partitions_before_the_runs(table):
    listed = table.files(*table["manifest:"].reads.values())
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
    assert table["manifest:"].options == {"folders": ["data/raw/mnist"]}


def test_the_last_line_names_a_damaged_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert closing.data_line(PATHS, ["mnist"], ["report.html"]) == "report: report.html"
    record = Path("data/raw/mnist.json")
    record.parent.mkdir(parents=True)
    record.write_text('{"files": [{}]}')
    said = closing.data_line(PATHS, ["mnist"], [])
    assert re.fullmatch(f"{record} is not a record of a fetched data set .*; delete it", said)


def test_what_no_job_makes_is_refused_in_one_line(table):
    with pytest.raises(ConfigError, match=r"^there is no job run:qshed/toy/fedht of "):
        table["run:qshed/toy/fedht"]


# --- What a change reruns ---


def digests(table):
    return {key: table.digest(key, SRC) for key in table}


@pytest.mark.parametrize(
    ("edits", "changed"),
    [
        ({"artefacts": ARTEFACTS | {"table1": ARTEFACTS["table1"] | {"settings": {"rows": 7}}}}, {"table"}),
        # Of a group one hash changes with each job's: what is done together is done anew together.
        ({"artefacts": ARTEFACTS | {"fig1": {"kind": "figure", "runs": {"toy": ["fedavg"]}}}}, {"figure"}),
        ({"seed": 3}, {"partition", "tune", "run", "figure", "table"}),
    ],
)
def test_a_setting_changes_the_hash_of_what_depends_on_it(table, edits, changed):
    before, after = digests(table), digests(planned(**edits))
    differing = {key for key in before if before[key] != after[key]}
    closing_kinds = {"measure_claims", "paper_report", "report", "single_report"}
    assert {key.partition(":")[0] for key in differing} - closing_kinds == changed
    assert "measure_claims:fedht" in differing and "measure_claims:qshed" not in differing
    assert not any(key.startswith(("run:qshed", "figure:qshed", "fetch:", "parse:")) for key in differing)


def test_jobs_in_a_group_have_one_hash_and_others_their_own(table):
    found = digests(table)
    group = [
        key
        for key in table
        if key.startswith(("tune:fedht/mnist/fedht", "run:fedht")) and "unused" not in key
    ]
    assert len({found[key] for key in group if key.endswith("/fedht")}) == 1
    assert found["run:fedht/toy/fedavg"] not in {found[key] for key in group if key.endswith("/fedht")}
    alone = [key for key in table if not table[key].group]
    assert len({found[key] for key in alone}) == len(alone)


# --- Groups ---


def groups(table, *words, **more):
    return targets.groups_of_call(table, targets.targets(table), words, **more)


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (["all"], ALL),
        (["results/small/claims.csv"], RUNS),
        (["results/small/fedht/claims.csv"], RUNS),
        (["results/small/qshed/claims.csv"], set()),  # of another paper
        (["figures/small/fedht/fig1.pdf", "all"], ALL),
        (["figures/small/fedht/fig1.pdf"], set()),
        (["figures/small/fedht/fig1.pdf", "figures/small/fedht/fig2.png"], ALL),
        (["fedht"], ALL),
        (["results/small/fedht/mnist/fedht.parquet"], {"run_fedht_mnist_fedht"}),  # and its search
        (["results/small/fedht/mnist/fedht.tuned.json", "data/raw/mnist.json"], set()),
        (["results/small/fedht/unused/fedht.parquet"], set()),
        (["verify"], set()),
        (["config/small.yaml"], set()),
    ],
)
def test_jobs_are_grouped_as_far_as_they_are_needed(table, words, used):
    assert {group.rule for group in groups(table, *words)} == used


def test_a_group_does_what_the_single_jobs_do(table):
    (job, drawn) = groups(table, "all")
    assert (job.parts, job.memory) == (["toy", "mnist"], 4000)
    assert job.description == "fedht: run fedht on toy, mnist"
    assert job.keys == ("run:fedht/toy/fedht", "tune:fedht/mnist/fedht", "run:fedht/mnist/fedht")
    assert job.upstream == ["parse:mnist", "partition:fedht/mnist"]
    assert job.patterns[1] == "results/small/{paper}/mnist/fedht.tuned.json"
    assert (drawn.log, drawn.parts) == ("fedht/artefacts", ["fig1", "fig2", "fig3"])
    (some,) = [
        one for one in groups(table, *(f"figures/small/fedht/{n}.pdf" for n in ("fig1", "fig3"))) if one.draws
    ]
    assert (some.log, some.parts, some.whole) == ("fedht/fig1_and_1_more", ["fig1", "fig3"], False)


def test_a_module_knows_its_own_targets_alone(table):
    module = {"renamed": "mine_{}".format}
    assert groups(table, "all", "fedht", **module) == []
    assert {group.rule for group in groups(table, "mine_fedht", **module)} == ALL
    of_runs = groups(table, "theirs", "results/small/fedht/mnist/fedht.parquet", **module)
    assert [group.keys for group in of_runs] == [("tune:fedht/mnist/fedht", "run:fedht/mnist/fedht")]


def test_another_machine_is_asked_for_whole_groups_alone(table, monkeypatch):
    def on_another(*rules):
        return groups(table, remote=[SimpleNamespace(rulename=rule) for rule in rules])

    assert on_another("run", "tune") == []
    assert [group.rule for group in on_another("artefacts_fedht")] == ["artefacts_fedht"]
    monkeypatch.setattr(targets, "executor", lambda: "slurm")
    assert {group.rule for group in groups(table, "all")} == ALL
    assert groups(table, "results/small/fedht/mnist/fedht.parquet") == []


# --- Sources ---


def test_a_listing_is_that_of_what_the_sources_hold(tmp_path):
    package = tmp_path / "src/replifed"
    (package / "algorithms").mkdir(parents=True)
    for name in ("__init__", "algorithms/__init__", "algorithms/registry", "other"):
        (package / f"{name}.py").write_text("")
    (package / "job.py").write_text("import replifed.algorithms.registry\n")

    def listing(root, module="replifed.job"):
        return source_listing((module,), root)

    first = listing(tmp_path / "src")
    assert [line.split("  ")[1] for line in first.splitlines()] == [
        "replifed/__init__.py",
        "replifed/algorithms/__init__.py",
        "replifed/job.py",
    ]
    # A process looks at one state of a folder, so each edit is made in a copy.
    for name, edited in (("other", False), ("algorithms/registry", False), ("algorithms/__init__", True)):
        root = tmp_path / name / "src"
        for file in package.rglob("*.py"):
            target = root / file.relative_to(tmp_path / "src")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.read_text() + ("# edit\n" if file == package / f"{name}.py" else ""))
        assert (listing(root) != first) == edited
    with pytest.raises(ReplifedError, match=r"no module replifed\.none"):
        listing(tmp_path / "src", "replifed.none")


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
