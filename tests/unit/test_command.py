"""Calls of Snakemake and of the command line that are refused: one line, with what to do."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from replifed import cli
from replifed.errors import ConfigError
from replifed.settings import checks as config
from replifed.workflow import command, screen
from replifed.workflow.jobs import Table

ROOT = Path(__file__).parents[2]

MISSING = {
    "missing.yaml": "missing.yaml does not exist; run from the folder that holds config/",
    "config/smal.yaml": "config/smal.yaml does not exist; did you mean 'config/small.yaml'?",
    "config": "config cannot be read: Is a directory; give a YAML file",
    "Snakefile/x.yaml": "Snakefile/x.yaml cannot be read: Not a directory",
}
BROKEN = {
    "fedht: [1\n": "{file}, line 2, column 1: not valid YAML: ",
    "# nothing yet\n": "{file} holds no settings; write KEY: VALUE, or leave it out",
    "fedht\n": '{file}: expected a mapping at the top, got "fedht"',
    "scale: small\nscale: tiny\n": "{file}, line 2: the key 'scale' stands twice; remove one",
    "data:\n  policy: real\n  mirror: null\n  policy: auto\n": "{file}, line 4: the key 'policy' stands",
}
OPTIONS = {
    "--cores 1 --config papers=[fedht] all": (
        "--config takes all words up to the next option, and 'all' is not KEY=VALUE; give targets first: "
        "snakemake all --cores 1 --config 'papers=[fedht]'"
    ),
    "-c 1 -n --config papers=[fedht] data -q": "give targets first: snakemake data -c 1 -n --config",
    "--cores 1 --configfile config/small.yaml all": (
        "--configfile takes all words up to the next option, and 'all' is not a settings file; give targets "
        "first: snakemake all --cores 1 --configfile config/small.yaml"
    ),
    "-c 1 --configfile config/small.yaml ./figures/small/fedht/fig1.pdf": (
        "give targets first: snakemake figures/small/fedht/fig1.pdf -c 1 --configfile config/small.yaml"
    ),
    "all --config data.policy=real": "write nested keys as --config 'data={policy: real}'",
    "all --config a-b=1": "--config a-b=1: 'a-b' is no key",
    "all --config papers=[fedht": "--config papers, line ",
    "all --cores 0": "--cores 0: no job can run; give at least 1",
    "all -j 0": "--jobs 0: no job can run",
    "all -c -3": "at least 1",
}
FIGURES = "(known: bias, fig1, fig2, fig3, "
TARGETS = {
    "al": "unknown target 'al'; did you mean 'all'?",
    "gallery": "gallery is made at the papers' scale alone",
    "nonsense": "unknown target 'nonsense'; there are all, claims, ",
    "data/raw/mnits.json": "unknown target 'data/raw/mnits.json'",
    "fedht/fig1": "unknown target 'fedht/fig1'; its file is figures/fedht/fig1.csv; or",
    "figures/fedht/fig9.pdf": f"unknown artefact of fedht 'fig9'; did you mean 'fig6'? {FIGURES}",
    "figures/fedth/fig1.pdf": "figures/fedth/fig1.pdf: unknown paper 'fedth'; did you mean 'fedht'?",
    "figures/fedht/fig1.svg": "fig1.svg is not made; of this artefact there are: figures/fedht/fig1.csv, ",
    "results/fedht/mnist/fedavgg.parquet": "method of this experiment 'fedavgg'; did you mean 'fedavg'?",
    "results/fedht/mnits/fedht.parquet": "unknown experiment of fedht 'mnits'; did you mean 'mnist'?",
    "results/fedht/simulation1/partition.npz": "simulation1 of fedht has no section `partition`",
    "figures/fedmm/bits.pdf": "fedmm/bits is no longer made: no sentence of the paper is on it; `bits` of",
    "results/claims_timing.csv": "claims_timing is no longer made: seconds are those of one machine; ",
    "results/fedht/claims/rates.fedht.k.csv": "unknown claim of fedht 'rates.fedht.k'; did you mean",
}
COMMANDS = {
    "claims --file nofile.csv": "`replifed make claims --cores 2` makes results/claims.csv, and",
    "claims accept --file nofile.csv": "nofile.csv does not exist; ",
    "run fedht mnist fedavgg": "unknown method of this experiment 'fedavgg'; did you mean 'fedavg'?",
    "check fedavgg": "unknown method 'fedavgg'; did you mean 'fedavg'?",
    "make fedplt/fig33": "unknown artefact of fedplt 'fig33'; did you mean 'fig3'?",
    "make all --configfile missing.yaml": "missing.yaml does not exist; run from",
    "claims --paper fedpl": "unknown paper 'fedpl'; did you mean 'fedplt'?",
    "claims --verdict deviatess": "unknown verdict 'deviatess'; did you mean 'deviates'?",
    "make figures/fedplt/fig3.pd": "figures/fedplt/fig3.pd is not made; of this artefact there are: ",
    "compare": "no method; give FILE.py:CLASS, or --against NAMES",
}


def refused(function, *given):
    with pytest.raises(ConfigError) as caught:
        function(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def check_options(call):
    command.check_options(command.parsed(call), call)


@pytest.mark.parametrize("file", MISSING)
def test_a_settings_file_that_cannot_be_read(file):
    assert refused(check_options, ["all", "--configfile", file]).startswith(MISSING[file])


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_settings_file(text, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    said = refused(check_options, ["all", "--configfile", str(file)])
    assert said.startswith(BROKEN[text].replace("{file}", str(file)))


@pytest.mark.parametrize("call", OPTIONS)
def test_options_that_swallow_or_hold_no_setting(call):
    assert OPTIONS[call] in refused(check_options, call.split())


def test_sound_options_pass():
    for call in (
        "all --configfile config/small.yaml config/tiny.yaml --config papers=[fedht] scale=tiny",
        "--cores 1 --config papers=[fedht] -- all",
        "-n",
    ):
        check_options(call.split())


@pytest.fixture(scope="module")
def table():
    return Table(config.load(root=ROOT))


NAMES = ["all", "claims", "data", "help", "verify"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_that_nothing_makes(target, table):
    names = [*NAMES, *table.papers]
    assert TARGETS[target] in refused(command.check_targets, table, names, [target], [])


def test_targets_that_are_made_pass(table):
    files = [*table.files(*table["manifest:"].reads), "results/benchmarks/fedht/claims.tsv"]
    making = SimpleNamespace(is_producer=files.__contains__)
    command.check_targets(table, ["fedht", *NAMES], [*files, "fedht", "all", "config/small.yaml"], [making])


@pytest.mark.parametrize("call", COMMANDS)
def test_a_command_that_is_refused(call, capsys):
    assert cli.main(call.split()) == 2
    error = capsys.readouterr().err
    assert COMMANDS[call] in error
    assert error.startswith("replifed: error: ") and error.count("\n") == 1


def test_an_executor_of_a_profile_is_found(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("executor: touch\n")
    for more, executor in {
        "": "local",
        f"--profile {tmp_path}": "touch",
        "--executor dryrun": "dryrun",
    }.items():
        monkeypatch.setattr(sys, "argv", ["snakemake", "all", "--cores", "1", *more.split()])
        command.of_process.cache_clear()
        assert command.executor() == executor
    command.of_process.cache_clear()
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert command.executor() == "local"
    command.of_process.cache_clear()


LOGS = {
    "replifed: error: no such file\n": ["replifed: error: no such file"],
    "10 of 20\nreplifed: error: a\n  b\n  c\nmore\n": ["replifed: error: a", "  b", "  c"],
    "replifed: error: first\nreplifed: error: last\n": ["replifed: error: last"],
    "Traceback (most recent call last):\nKeyError: 1\n": [
        "Traceback (most recent call last):",
        "KeyError: 1",
    ],
    "": [],
    None: [],
}


def failed_job(log, command):
    more = {"rule_name": "errata", "output": ["e.csv", "f.csv"], "log": [str(log)], "shellcmd": command}
    return logging.makeLogRecord({"msg": None, "event": SimpleNamespace(name="JOB_ERROR"), **more})


@pytest.mark.parametrize("text", LOGS)
def test_a_failed_job_says_its_own_line_once(text, tmp_path, monkeypatch):
    log = tmp_path / "errata.log"
    if text is not None:
        log.write_text(text)
    formatter = screen.FailuresOnce(logging.Formatter())
    last = f"failed: errata, which makes e.csv; its log: {log}"
    said = formatter.format(failed_job(log, "replifed errata > e.log 2>&1"))
    assert said.splitlines() == [*LOGS[text], last]
    # A job that Ctrl-C has ended has not failed.
    with monkeypatch.context() as patch:
        patch.setattr(screen.interrupted, "is_set", lambda: True)
        assert formatter.format(failed_job(log, "replifed errata")) == ""
    # What went through `tee` has been seen.
    assert formatter.format(failed_job(log, "replifed tune 2>&1 | tee e.log >&2")) == last


def test_what_snakemake_says_beside_it_is_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no other call runs
    formatter = screen.FailuresOnce(logging.Formatter())
    said = {
        "RuleException:\nCalledProcessError in file x": "",
        "Exiting because a job execution failed. Look above": "",
        "WorkflowError:\nAt least one job did not complete successfully.": "",
        "LockException:\nDirectory cannot be locked.": "replifed: error: this folder is locked, but no "
        "call is known to run here: `snakemake --unlock`, then the same command",
    }
    for text, shown in said.items():
        assert formatter.format(logging.makeLogRecord({"msg": text})) == shown
