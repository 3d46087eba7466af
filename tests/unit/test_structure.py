"""The order of packages that import-linter checks is the map in CONTRIBUTING.md."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def contract():
    """Return the layers of the contract, from the top, each a set of packages."""
    [layers] = [
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
            "contracts"
        ]
        if contract["type"] == "layers"
    ]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def map_of_source():
    """Return the first column of the map, as `contract` does."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## The map of the source")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")]
    return [
        {name.removesuffix("/").removesuffix(".py") for name in re.findall("`(.*?)`", row)} for row in rows
    ]


def test_the_map_is_the_contract():
    assert map_of_source() == contract()


def test_the_map_has_every_package():
    there = {path.stem for path in (ROOT / "src/replifed").iterdir() if not path.name.startswith("__pyc")}
    assert set().union(*map_of_source()) == there - {"__init__", "templates", "reference"}


def test_a_job_imports_late_what_only_its_output_needs():
    """Tables, pictures and compiled code take as long to import as all else that a job starts with."""
    modules = "pandas", "pyarrow", "matplotlib", "numba", "scipy.linalg", "sklearn"
    program = f"""
import sys
import replifed.papers.jobs
from importlib import import_module
from replifed.parts import paper_names, part
for paper in paper_names():
    import_module(part(paper, "experiments"))
    print(paper, *set({modules}) & set(sys.modules))
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    papers = [line.split() for line in told.stdout.splitlines()]
    assert len(papers) > 5
    assert [line for line in papers if len(line) > 1] == []
