"""The order of packages that import-linter checks is the map in CONTRIBUTING.md."""

import re
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
    assert set().union(*map_of_source()) == there - {"__init__", "templates"}
