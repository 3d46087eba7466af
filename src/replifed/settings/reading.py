"""Reading and merging configuration files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from replifed.errors import ConfigError, meant, one_line, shown, unknown_name
from replifed.parts import own_papers, register_folders
from replifed.store import documents

MAIN_FILE = Path("config/config.yaml")
PAPER_FOLDER = Path("config/papers")
# A checkout, or the folders in which an installation keeps the workflow.
_PROJECTS = (
    Path(__file__).parents[3],
    *(Path(place, "share/replifed") for place in (Path(__file__).parents[2], sys.prefix)),
)


def project() -> Path | None:
    """Return the folder with the workflow and its settings that came with the package, if they did."""
    return next((folder for folder in _PROJECTS if (folder / "workflow/Snakefile").is_file()), None)


def deep_merge(base: Mapping[str, Any], *overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `overrides` laid over it: mappings merge, everything else is replaced.

    >>> deep_merge({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}})
    {'a': {'b': 1, 'c': [3]}}
    """
    merged = dict(base)
    for override in overrides:
        for key, value in override.items():
            below = merged.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = deep_merge(below, value)
            merged[key] = value
    return merged


def retyped(value: Any) -> Any:
    """Return `value` with its texts parsed as YAML, so that "7" becomes 7.

    Snakemake makes a text of every value inside ``--config 'key={inner: 7}'``.
    """
    if isinstance(value, Mapping):
        return {key: retyped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [retyped(entry) for entry in value]
    if not isinstance(value, str):
        return value
    try:
        read = documents.load(value)
    except yaml.YAMLError:
        return value
    return read if isinstance(read, int | float | bool) or value in ("null", "~") else value


def paper_file(paper: str, *folders: Path) -> Path:
    """Return the file with a paper's settings: with a custom paper, or in the first of `folders` with one."""
    own = own_papers()
    if paper in own:
        return own[paper] / "settings.yaml"
    files = [folder / f"{paper}.yaml" for folder in folders]
    return next((file for file in files if file.exists()), files[0])


def listed_papers(config: Mapping[str, Any], *folders: Path) -> list[str]:
    """Return the papers that `config` lists, which have a file in one of `folders`, and custom ones.

    Those are in the folders that its key paper_folders names; this registers them.
    """
    own = config.get("paper_folders", [])
    if not isinstance(own, list):
        raise ConfigError(f"paper_folders: {shown(own)} is not allowed; expected a list of folders")
    for one in own:
        if not isinstance(one, str) or not Path(one).is_dir():
            raise ConfigError(f"paper_folders: {shown(one)} is not allowed; expected an existing folder")
        if not any(Path(one).glob("*/__init__.py")):
            raise ConfigError(
                f"paper_folders: {shown(one)} holds no folder of a paper; name the one above it"
            )
    register_folders(own)
    papers = config.get("papers", [])
    if not isinstance(papers, list) or not all(isinstance(paper, str) for paper in papers):
        raise ConfigError(f"papers: {shown(papers)} is not allowed; expected a list of names")
    known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")} | set(own_papers()))
    if errors := [f"papers: {unknown_name('paper', paper, known)}" for paper in papers if paper not in known]:
        raise ConfigError("\n".join(errors))
    return list(dict.fromkeys([*papers, *own_papers()]))


def read_file(file: Path) -> dict[str, Any]:
    """Read one YAML file; an empty one gives an empty mapping."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = meant(str(file), [str(one) for one in file.parent.glob("*.yaml")])
        remedy = near or "; run from the folder that holds config/, or correct the name"
        raise ConfigError(f"{file} does not exist{remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
        raise ConfigError(f"{file} cannot be read: {reason}; give a YAML file") from None
    content = read_value(text, str(file))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: expected a mapping at the top, got {shown(content)}")
    return content


def read_value(text: str, name: str, hint: str = "") -> Any:
    """Parse a text as YAML; an error begins with `name`, and ends with `hint` if the text is not YAML."""
    try:
        return documents.load(text)
    except yaml.MarkedYAMLError as error:
        place = f"{name}, line {error.problem_mark.line + 1}"
        if isinstance(error, yaml.constructor.ConstructorError):
            raise ConfigError(f"{place}: {error.problem}") from error
        column = error.problem_mark.column + 1
        raise ConfigError(f"{place}, column {column}: not valid YAML: {error.problem}{hint}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} is not valid YAML: {one_line(error)}{hint}") from error
