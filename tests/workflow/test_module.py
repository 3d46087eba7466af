"""The workflow as a module of another one, in a folder that holds nothing of it."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import yaml

import warm
from copies import ROOT, Copy, surroundings

SNAKEFILE = ROOT / "workflow/Snakefile"
SIX_LINES = f"""
configfile: "config/config.yaml"
module replifed:
    snakefile: "{SNAKEFILE}"
    config: config
use rule * from replifed
"""
ONE_TABLE = {"papers": ["fedmm"], "fedmm": {"only": ["remark1"]}}
PLAN = ("--dry-run", "--cores", "1")


def outer(folder, snakefile=SIX_LINES, config=ONE_TABLE):
    """A folder with another workflow and its settings."""
    (folder / "config").mkdir(parents=True)
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    (folder / "Snakefile").write_text(snakefile)
    return Copy(folder)


def test_six_lines_plan_what_the_workflow_itself_does(tmp_path):
    planned = outer(tmp_path / "outer", config={"papers": ["fedgradmp", "qshed"]}).snakemake(*PLAN)
    (tmp_path / "empty").mkdir()
    words = ("--snakefile", str(SNAKEFILE), "--config", "papers=[fedgradmp, qshed]")
    itself = Copy(tmp_path / "empty").snakemake(*PLAN, *words)
    assert planned.status == itself.status == 0, planned.text
    assert len(planned.jobs) > 50
    assert planned.jobs == itself.jobs
    assert f"{len(planned.jobs)} jobs ahead" in itself.last_line
    assert "ahead" not in planned.text  # what to say is up to the other workflow


# --- Beside other workflows ---

BESIDE = f"""
configfile: "config/config.yaml"
module other:
    snakefile: "other.smk"
module replifed:
    snakefile: "{SNAKEFILE}"
    config: config["replifed"]
module again:
    snakefile: "{SNAKEFILE}"
    config: config["again"]
    prefix: "again"
use rule * from other as other_*
rule all:
    input:
        "surroundings.txt",
        "figures/tiny/fedht/rates.csv",
        "again/figures/tiny/fedht/rates.csv",
    default_target: True
use rule * from replifed as replifed_*
use rule * from again as again_*
"""
OTHER = """
rule surroundings:
    output: "surroundings.txt"
    shell: "env > {output}"
"""


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A folder in which a workflow has made one figure by each of two modules, with a setting changed."""
    tiny = yaml.safe_load((ROOT / "config/tiny.yaml").read_text())
    more = yaml.safe_load((ROOT / "config/tiny.yaml").read_text())
    more["fedht"]["experiments"]["planted"]["rounds"] = 7
    copy = outer(tmp_path_factory.mktemp("beside"), BESIDE, {"samples": 3, "replifed": tiny, "again": more})
    (copy.folder / "other.smk").write_text(OTHER)
    made = copy.snakemake("--cores", "2", "--rerun-triggers", "mtime")
    assert made.status == 0, made.text
    return copy


@pytest.mark.parametrize(("prefix", "rounds"), [("", 5), ("again/", 7)])
def test_a_figure_is_made_with_the_settings_of_its_module(beside, prefix, rounds):
    for suffix in ("pdf", "png"):
        assert (beside.folder / f"{prefix}figures/tiny/fedht/rates.{suffix}").stat().st_size > 500
    assert pd.read_csv(beside.folder / f"{prefix}figures/tiny/fedht/rates.csv")["round"].max() == rounds
    results = beside.folder / f"{prefix}results/tiny"
    # Where this job alone was asked for, no other one of the paper ran.
    assert {file.name for file in results.glob("fedht/*/*.parquet")} == {"fedht.parquet", "fediterht.parquet"}
    assert (results / "benchmarks/fedht/rates.usage.json").is_file()
    assert (beside.folder / f"{prefix}logs/tiny/fedht/rates.log").is_file()


def test_jobs_of_another_workflow_keep_their_environment(beside):
    there = re.findall(r"^(\w+)=(.*)", (beside.folder / "surroundings.txt").read_text(), re.MULTILINE)
    ours = {name: value for name, value in there if name.startswith(("PYTHON", "REPLIFED"))}
    assert ours.items() <= surroundings().items()


def test_what_was_made_is_not_made_again(beside):
    assert "Nothing to be done" in beside.snakemake("--cores", "1").text
    again = beside.snakemake("again_all", *PLAN)
    assert again.status == 0, again.text
    assert "fedht: make figures and tables of runs" in again.jobs
    assert "fedht: run fedht on planted" not in again.jobs


def test_the_front_door_is_a_module_too(tmp_path):
    door = SIX_LINES.replace("/workflow/Snakefile", "/Snakefile").replace(
        "* from replifed", "* from replifed as my_*"
    )
    planned = outer(tmp_path, door).snakemake(*PLAN)
    assert planned.status == 0, planned.text
    assert "list what was made, by hash" in planned.jobs


# --- As snakedeploy writes it ---


@pytest.fixture
def deployed(tmp_path):
    """A folder with a module from a repository, of which Snakemake fetches the rules alone."""
    origin = tmp_path / "origin"
    shutil.copytree(ROOT / "workflow", origin / "workflow")
    shutil.copy(ROOT / "environment.yml", origin)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "x"], ["tag", "v1"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    source = f'gitfile("{origin}", path="workflow/Snakefile", tag="v1")'
    copy = outer(tmp_path / "work", SIX_LINES.replace(f'"{SNAKEFILE}"', source))
    (copy.folder / "workflow").mkdir()
    (copy.folder / "Snakefile").rename(copy.folder / "workflow/Snakefile")
    return copy


def test_a_module_from_a_repository_runs_the_installed_package(deployed):
    (deployed.folder / "config/papers").mkdir()
    settings = (ROOT / "config/papers/fedmm.yaml").read_text()
    (deployed.folder / "config/papers/fedmm.yaml").write_text(
        re.sub(r"(?m)^  seed: .*", "  seed: 4242", settings)
    )
    table = "figures/fedmm/remark1.csv"
    installed = {"PYTHONPATH": str(ROOT / "src")}
    planned = deployed.snakemake(table, "--printshellcmds", *PLAN, env=installed)
    assert planned.status == 0, planned.text
    (jobs,) = deployed.folder.glob(".snakemake/replifed/jobs-*.txt")
    assert json.loads(jobs.read_text().partition("\n")[0])["fedmm"]["seed"] == 4242
    # Commands that call Snakemake find the workflow and the settings.
    words = [warm.executable(), "-m", "replifed", "make", "fedmm/remark1", "--dry-run"]
    done = subprocess.run(
        words, cwd=deployed.folder, env=surroundings() | installed, capture_output=True, text=True
    )
    assert done.returncode == 0 and "fedmm: run fedmm on remark1" in done.stdout, done.stderr


# --- One line ---


def without(package, folder):
    """What Snakemake says in a folder where a package is not installed."""
    hidden = f"import sys; sys.modules[{package!r}] = None; from snakemake.cli import main; main()"
    words = [sys.executable, "-c", hidden, *PLAN]
    done = subprocess.run(words, cwd=folder, env=surroundings(), capture_output=True, text=True)
    assert done.returncode == 1
    return done.stdout + done.stderr


def test_without_the_package_one_line_says_what_to_install(deployed, tmp_path):
    missing = "replifed: error: the package replifed .* is not installed: pip install "
    (deployed.folder / "replifed").mkdir()  # no package, though Python could import it
    assert re.fullmatch(rf"{missing}git\+file://{tmp_path}/origin@v1\n", without("replifed", deployed.folder))
    rules = SIX_LINES.replace(str(ROOT), str(tmp_path / "origin"))
    copied = outer(tmp_path / "copied", rules)
    assert re.fullmatch(rf"{missing}CLONE, .*\n", without("replifed", copied.folder))
    whole = outer(tmp_path / "whole")
    install = f"pip install {shlex.quote(str(ROOT))}"
    line = f"replifed: error: numba is not installed, which replifed needs: {install}\n"
    assert without("numba", whole.folder) == line


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"papers": ["nosuch"]}, "papers: unknown paper 'nosuch' (known: cross, fedac, "),
        ({"samples": 3}, "samples: unknown key with value 3; .*; correct the `config` of the module"),
        ({"fedht": {"seed": "x"}}, 'fedht.seed: "x" is not allowed; .*; correct the `config` of the module'),
    ],
)
def test_a_wrong_setting_of_a_module_is_one_line(tmp_path, config, line):
    refused = outer(tmp_path, config=config).snakemake(*PLAN)
    assert refused.status == 1
    assert re.fullmatch(rf"replifed: error: {line.replace('(', '[(]')}.*\n", refused.text)
