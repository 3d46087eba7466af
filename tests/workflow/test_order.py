"""The longest chain of waiting jobs starts first: by a formula, and as Snakemake's scheduler does it."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import warm
from copies import surroundings
from replifed.workflow.targets import remaining, set_priorities

# Alone, "second" and "third" are both longer than "first", which another job waits for.
SECONDS = {"all": 0, "first": 2, "last": 5, "third": 3, "second": 6}
SNAKEFILE = f"""
from replifed.workflow import targets

SECONDS = {SECONDS}


rule all:
    input:
        "third", "last", "second"


for name, before in (("third", []), ("last", ["first"]), ("first", []), ("second", [])):
    rule:
        name: name
        input: before
        output: name
        shell: "echo {{rule}} >> started; touch {{output}}"


onstart:
    dag = workflow.dag
    before = {{job.jobid: [one.jobid for one in dag.dependencies[job]] for job in dag.needrun_jobs()}}
    seconds = {{job.jobid: SECONDS[job.rule.name] for job in dag.needrun_jobs()}}
    targets.set_priorities(dag, targets.remaining(seconds, before))
"""


def test_what_remains_is_the_longest_of_all_chains():
    rng = np.random.default_rng(1)
    for _ in range(20):
        count = 7
        edges = np.triu(rng.random((count, count)) < 0.4, k=1)  # row before column
        seconds = dict(enumerate(rng.integers(0, 9, count).tolist()))

        def chains(job, edges=edges):
            yield [job]
            for after in np.flatnonzero(edges[job]):
                yield from ([job, *rest] for rest in chains(int(after)))

        expected = {job: max(sum(seconds[one] for one in chain) for chain in chains(job)) for job in seconds}
        before = {job: np.flatnonzero(edges[:, job]).tolist() for job in seconds}
        assert remaining(seconds, before) == expected


@pytest.mark.parametrize(
    ("words", "order"),
    [((), "first second last third"), (("--prioritize", "third"), "third first second last")],
)
def test_snakemake_starts_jobs_in_this_order(tmp_path, words, order):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [warm.executable(), "-m", "snakemake", "all", "--cores", "1", "--scheduler", "greedy", *words]
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "started").read_text().split() == order.split()


def test_without_snakemakes_own_priorities_all_stays_as_it_is():
    set_priorities(SimpleNamespace(), {1: 2.0})
