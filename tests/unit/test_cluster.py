"""Jobs on a cluster: the profile, and what is said of those that the cluster ends."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from snakemake.cli import parse_args

from replifed.workflow import screen

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "profiles/slurm"


def test_the_profile_groups_rules_that_there_are():
    groups = yaml.safe_load((PROFILE / "config.yaml").read_text())["groups"]
    rules = "\n".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))
    assert set(groups) <= set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)", rules, flags=re.MULTILINE))


def test_the_plugin_takes_the_profile():
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs the extra `slurm`")
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    _, arguments = parse_args(["all", "--profile", str(PROFILE)])
    settings = ExecutorPluginRegistry().get_plugin(arguments.executor).get_settings(arguments)
    assert settings.status_command == "squeue"
    assert settings.delete_logfiles_older_than == 0
    assert (arguments.jobs, arguments.cores) == (100, 2)
    assert arguments.groups["report"] == arguments.groups["measure_claims"]


# --- Errors ---

BESIDE = "For further error details see the cluster/cloud log and the log files of the involved rule(s)."
ENDED = "SLURM-job '7' failed, SLURM status is: '{}'. Detailed failure reason unavailable (x)." + BESIDE
SAID = {
    ENDED.format("CANCELLED"): "Slurm ended job 7: CANCELLED",
    ENDED.format(
        "OUT_OF_MEMORY"
    ): "Slurm ended job 7: OUT_OF_MEMORY; for more: --set-resources tune:mem_mb=MB",
    ENDED.format("TIMEOUT"): "Slurm ended job 7: TIMEOUT; for more: --set-resources tune:runtime=MINUTES",
    "SLURM sbatch failed. The error message was 'no\nsuch account'.\n    sbatch call:\n  sbatch -x "
    + BESIDE: ("SLURM sbatch failed. The error message was 'no such account'."),
}


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Logs of a job: its own, with an error, and Slurm's."""
    monkeypatch.chdir(tmp_path)
    Path("own.log").write_text("1 of 3\nreplifed: error: its own\n")
    Path("7.log").write_text(
        "slurmstepd-n: error: *** JOB 7 ON n CANCELLED AT 2026-01-02 DUE TO TIME LIMIT ***\n"
    )
    return ["own.log", str(tmp_path / "7.log")]


def shown(event, **more):
    record = {"msg": "", "event": SimpleNamespace(name=event), **more}
    return screen.FailuresOnce(logging.Formatter()).format(logging.makeLogRecord(record)).splitlines()


def job(logs, **more):
    tune = {"rule_name": "tune", "output": ["t.json"], "log": logs, "shellcmd": "tune 2>&1 | tee own.log"}
    return shown("JOB_ERROR", **tune, **more)


def test_a_job_that_the_cluster_ends_is_named_with_the_reason(logs):
    last = f"failed: tune, which makes t.json; its log: {', '.join(logs)}"
    for message, line in SAID.items():
        assert job(logs, rule_msg=message, aux={"external_jobid": "7"}) == [f"replifed: error: {line}", last]
    # Where the job itself failed: its error, which the screen has not shown, as it has on one machine.
    failed = {"rule_msg": ENDED.format("FAILED"), "aux": {"external_jobid": "7"}}
    assert job(logs, **failed) == ["replifed: error: its own", last]
    assert job(logs[:1], rule_msg=None, aux={}) == ["failed: tune, which makes t.json; its log: own.log"]


def test_of_a_group_that_the_cluster_ends_only_jobs_with_errors_are_named(logs):
    group = {"aux_logs": logs[1:], "external_jobid": "7", "job_error_info": [{}, {}]}
    assert shown("GROUP_ERROR", **group) == [
        "replifed: error: Slurm ended JOB 7 ON n CANCELLED AT 2026-01-02 DUE TO TIME LIMIT",
        f"failed: job 7 of the cluster, with 2 jobs; its log: {logs[1]}",
    ]
    assert job(logs[:1], rule_msg=None, aux={}, indent=True)[0] == "replifed: error: its own"
    assert job(["none.log"], rule_msg=None, aux={}, indent=True) == []
