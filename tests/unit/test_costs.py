"""What jobs record of themselves, and the table of it with the clock of Snakemake's benchmark files."""

import json
import os
import subprocess
import sys

import pytest

from replifed.cli.listing import costs
from replifed.errors import DataError
from replifed.store import environment
from replifed.workflow.costs import Limits, read, record

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
ENDED = 1_700_000_000.0


@pytest.fixture
def folder(tmp_path):
    """Three jobs with records, one of them grouped; one without; one whose record is of an earlier run."""
    for name, clock, cpu, parts in (
        ("fedht/a/fedavg", 77.0, 74.44, {}),
        ("fedht/a_and_1_more/sgd", 61.0, 60.0, {"a/sgd": 12.0, "b/sgd": 47.0}),
        ("fedht/fig1", 0.2, None, {}),
        ("fedht/fig2", 3.0, 2.6, {}),
        ("report", 1.0, 0.6, {}),
    ):
        file = tmp_path / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{HEAD}{clock}\t0:00:00\tNA\tNA\tNA\tNA\tNA\tNA\tNA\tNA\n")
        os.utime(file, (ENDED, ENDED))
        if cpu is not None:
            own = tmp_path / f"{name}{environment.USAGE_SUFFIX}"
            own.write_text(json.dumps({"cpu": cpu, "memory": 90.0, "parts": parts}))
            ended = ENDED - (3600 if name == "fedht/fig2" else 1)
            os.utime(own, (ended, ended))
    return tmp_path


def test_jobs_are_listed_dearest_first_and_summed_without_those_that_are_not_known(folder):
    lines = costs(folder).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["fedht/a/fedavg", "fedht/a_and_1_more/sgd", "report"]
    assert lines[4].split() == ["fedht/fig1", "-", "0.2", "-"]
    assert lines[7].startswith("dearest: fedht/a/fedavg 74 s, fedht/b/sgd 47 s, fedht/a/sgd 12 s")
    assert "closing: 1 job, 0.0 CPU minutes, at most 90 MiB" in lines
    assert "fedht: 4 jobs, 2.2 CPU minutes, at most 90 MiB; 2 left no record" in lines
    assert lines[-1] == "all: 5 jobs, 2.3 CPU minutes, at most 90 MiB; 2 left no record"


def test_the_table_of_costs_has_known_cpu_and_is_read_without(folder, tmp_path):
    file = tmp_path / "costs.csv"
    file.write_text("scale,job,seconds\nsmall,report,3.0\n")
    assert record("paper", folder, file) == 5
    assert "paper,fedht/a/fedavg,77.0,74.4,90\n" in file.read_text()
    assert "paper,fedht/fig2,3.0,,\n" in file.read_text()
    assert read("small", file) == {"report": 3.0} and read("small", file, "memory") == {}
    assert set(read("paper", file, "memory")) == {"fedht/a/fedavg", "fedht/a_and_1_more/sgd", "report"}


def test_a_job_asks_for_more_than_was_recorded_of_it_or_of_the_job_that_does_it_too(tmp_path):
    file = tmp_path / "costs.csv"
    rows = [
        "fedht/a/sgd,601,,100",
        "fedht/a_and_1_more/lsq,60,,300",
        "fedht/b_and_2_more/lsq,600,,",
        "report,1,,",
    ]
    file.write_text("scale,job,seconds,cpu,memory\n" + "".join(f"small,{row}\n" for row in rows))
    asked = {
        "fedht/a/sgd": (36, 650),
        "fedht/a/sgd.tuned": (36, 650),
        "fedht/b/lsq": (35, 950),  # the longest of the grouped jobs that may be meant
        "report": (6, 7),
        "fedht/a/fedavg": (9, 7),
    }
    limits = Limits("small", file)
    assert {
        job: (limits.minutes(job, otherwise=9), limits.megabytes(job, otherwise=7)) for job in asked
    } == asked
    assert Limits("paper", file).minutes("report", otherwise=9) == 9


def test_a_job_records_its_own_processor_time_and_memory(tmp_path):
    work = "sum(i * i for i in range(4_000_000)); bytearray(100 * 2**20)"
    code = (
        "from replifed.store.environment import counted_part, record_usage\n"
        f"with counted_part('a'): {work}\n{work}; record_usage()"
    )
    logs, benchmarks = tmp_path / "logs", tmp_path / "benchmarks"
    variables = {
        environment.JOB_LOG: f"{logs}/p/e.tuned.log",
        environment.LOG_FOLDERS: f"{logs}{os.pathsep}{benchmarks}",
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | variables)
    own = json.loads((benchmarks / f"p/e.tuned{environment.USAGE_SUFFIX}").read_text())
    assert own["memory"] >= 100
    assert 0 < own["parts"]["a"] < own["cpu"] < 60
    assert own["parts"]["a"] == pytest.approx(own["cpu"] / 2, rel=0.4)


def test_no_benchmarks_is_one_line(tmp_path):
    with pytest.raises(DataError, match="holds no benchmark files"):
        costs(tmp_path)
