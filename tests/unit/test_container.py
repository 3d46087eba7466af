"""The Containerfile and the workflows of GitHub, without building or running them; and how to cite."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from replifed import __version__, cli
from replifed.data.download import OFFLINE_VARIABLE

ROOT = Path(__file__).parents[2]
FILE = (ROOT / "Containerfile").read_text()
LINES = [line for line in FILE.splitlines() if line and not line.startswith("#")]
INSTRUCTIONS = [line.split(" ", 1) for line in LINES]
RUN = [text for name, text in INSTRUCTIONS if name == "RUN"]


def test_the_base_is_a_supported_python_by_tag():
    (name, base), *others = INSTRUCTIONS
    assert name == "FROM" and {one for one, _ in others} == {"RUN", "WORKDIR", "COPY", "ENV", "CMD"}
    (version,) = re.fullmatch(r"python:(3\.\d+)-slim-[a-z]+", base).groups()
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert f"Programming Language :: Python :: {version}" in classifiers


def test_the_lock_is_installed_with_hashes_before_the_code_is_copied():
    copied = [text.split()[:-1] for name, text in INSTRUCTIONS if name == "COPY"]
    assert copied == [["requirements.lock"], ["."]]
    assert (ROOT / "requirements.lock").is_file()
    packages, project = (text for text in RUN if "pip install" in text)
    assert "--require-hashes -r requirements.lock" in packages and "--no-deps" in project
    order = [LINES.index(one) for one in ("COPY requirements.lock ./", f"RUN {packages}", "COPY . ./")]
    assert order == sorted(order)


@pytest.mark.parametrize("line", RUN)
def test_its_lines_are_shell(line):
    subprocess.run(["sh", "-n", "-c", line], check=True)


def test_nothing_comes_from_a_network_once_it_runs():
    assert INSTRUCTIONS[-2] == ["ENV", f"{OFFLINE_VARIABLE}=1"]
    assert RUN[-1] == "snakemake data --cores 2"  # so that the data are there
    name, words = INSTRUCTIONS[-1]
    assert name == "CMD" and json.loads(words) == ["replifed"]
    (call,) = re.findall(r"--network none .*?replifed replifed (.*)", FILE)
    cli._parser().parse_args(call.split())
    ignored = (ROOT / ".dockerignore").read_text().splitlines()[1:]
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    assert not [file for file in tracked.splitlines() for one in ignored if file.startswith(f"{one}/")]


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    preferred = cited["preferred-citation"]
    assert cited["version"] == preferred["version"] == __version__
    assert [cited[key] == preferred[key] for key in ("title", "authors", "license")] == [True] * 3


def test_workflows_of_github_fit_their_schema():
    files = sorted(map(str, (ROOT / ".github/workflows").iterdir()))
    assert files
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
