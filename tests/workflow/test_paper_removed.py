"""A paper less: its folder, its settings and its name are deleted, and nothing else is touched.

It is the one whose problems the comparison with custom methods has, so that this goes with it.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from copies import copy_repository

EVERYTHING = """
import importlib, pkgutil, replifed
for module in pkgutil.walk_packages(replifed.__path__, "replifed."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from replifed.cli import main
for words in ("list papers", "list artefacts", "schema --out schema.json", "columns --out columns.md"):
    assert main(words.split()) == 0
from replifed.settings import checks
from replifed.workflow.jobs import Table
from replifed.workflow.targets import targets
table = Table(checks.load())
print("planned:", *table.needed(targets(table)["all"]), sep="\\n")
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """A copy of the repository without a paper, and its name."""
    paper = "cross"
    copy = copy_repository(tmp_path_factory.mktemp(f"without_{paper}"), stubs={}, papers=None)
    shutil.rmtree(copy.folder / "src/replifed/papers" / paper)
    copy.folder.joinpath("config/papers", f"{paper}.yaml").unlink()
    config = copy.folder / "config/config.yaml"
    config.write_text(re.sub(rf"(?m)^(papers: .*), {paper}\b", r"\1", config.read_text()))
    return copy, paper


def test_all_modules_are_imported_and_neither_commands_nor_the_plan_of_all_name_it(without):
    copy, paper = without
    env = {**os.environ, "PYTHONPATH": str(copy.folder / "src")}
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING], cwd=copy.folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    papers = done.stdout.split("\n", 6)[:6]
    assert "fedht" in papers
    assert paper not in papers
    assert f"{paper}/" not in done.stdout
    planned = done.stdout.partition("planned:\n")[2].splitlines()
    assert "run:fedht/simulation1/fedht" in planned and len(planned) > 400
    assert paper not in json.loads((copy.folder / "schema.json").read_text())["properties"]
    assert f"figures/{paper}/" not in (copy.folder / "columns.md").read_text()


def test_a_section_that_is_left_in_overrides_is_named(without):
    copy, paper = without
    result = copy.snakemake("all", "-n", "--configfile", "config/small.yaml")
    assert result.status == 1
    assert f"replifed: error: {paper}: unknown key with value" in result.text
    assert "edit config/small.yaml" in result.text
