"""Names and folders of the papers, and the modules that hold their parts. No paper is imported for that."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Any

from replifed.errors import ConfigError, shown

PAPERS = Path(__file__).with_name("papers")
# The comparison with custom methods, which is no paper, and the paper whose experiments and modules it has.
COMPARE, COMPARED = "compare", "cross"
# Folders of custom papers, as JSON: each job is another process.
VARIABLE = "REPLIFED_PAPERS"
# The folder of one custom paper that is looked at alone, whatever else lies beside it.
LONE = "REPLIFED_PAPER"
# What a paper cannot be called: rules and targets, keys of settings, modules and folders beside the papers'.
TAKEN = {
    *("all", "claims", "compare", "comparison_report", "data", "errata", "fetch", "figure", "gallery"),
    *("help", "join", "manifest", "measure_claim", "measure_claims", "own_dataset", "paper_report", "parse"),
    *("partition", "report", "run", "share", "single_report", "table", "tune", "verify"),
    *("comparison", "datasets", "methods", "paper_folders", "papers", "paths", "scale"),
    *("inputs", "jobs", "benchmarks", "shares", "small", "tiny", "reused"),
}
# Imported by a name in a variable, so that `store.provenance` does not take it for a source: a job depends on
# the values of its settings, not on the code that checks them.
_FIELDS = "replifed.settings.fields"


def own_folders() -> list[Path]:
    """Return the folders outside the package whose folders are papers: registered, or of other packages."""
    lone = [Path(os.environ[LONE]).parent] if LONE in os.environ else []
    return [*lone, *map(Path, _registered()), *_installed_folders()]


def _registered() -> list[str]:
    return json.loads(os.environ.get(VARIABLE, "[]"))


@cache  # it reads the metadata of all installed packages
def _installed_folders() -> tuple[Path, ...]:
    specs = (find_spec(found.value) for found in entry_points(group="replifed.papers"))
    return tuple(Path(spec.origin).parent.parent for spec in specs if spec is not None and spec.origin)


def register_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Look for papers in these folders, too, in this process and in those that it starts.

    Raises
    ------
    ConfigError
        A paper has a name that no paper can have, or that another one has.
    """
    paths = [*dict.fromkeys([*_registered(), *(str(Path(folder).resolve()) for folder in folders)])]
    found: dict[str, Path] = {}
    for folder in (file.parent for path in paths for file in sorted(Path(path).glob("*/__init__.py"))):
        if wrong := name_error(folder.name):
            raise ConfigError(f"paper_folders: {folder}: {wrong}; rename the folder")
        if (other := found.setdefault(folder.name, folder)) != folder:
            raise ConfigError(f"paper_folders: {folder} and {other} have one name; rename one of them")
    if paths:
        os.environ[VARIABLE] = json.dumps(paths)


def name_error(name: str) -> str:
    """Return why no paper outside the package can be called `name`; nothing if one can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name):
        return f"{shown(name)} is no name of a paper: at most 60 small letters, digits, underscores"
    if PAPERS.joinpath(name, "__init__.py").is_file():
        return f"there is a paper {name} in the package already"
    if name in TAKEN or name.startswith(("run_", "artefacts_")) or iskeyword(name):
        return f"{name} is the name of a target, of a rule, of a setting or of a module"
    return ""


@contextmanager
def lone_paper(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Look for the paper in this folder while the block runs, and yield its name; its siblings are none.

    Raises
    ------
    ConfigError
        The folder holds no paper, or has a name that no paper can have.
    """
    path = Path(folder).resolve()
    if not path.joinpath("__init__.py").is_file() or not path.joinpath("settings.yaml").is_file():
        raise ConfigError(
            f"{folder} is no folder of a paper; `replifed new paper NAME --from-logs FOLDER` writes one"
        )
    if wrong := name_error(path.name):
        raise ConfigError(f"{folder}: {wrong}; rename the folder, and the section in its settings.yaml")
    os.environ[LONE] = str(path)
    package = f"replifed.papers.{path.name}"
    try:
        invalidate_caches()
        yield path.name
    finally:
        del os.environ[LONE]
        for module in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[module]


def own_papers() -> dict[str, Path]:
    """Return the folders of custom papers, by name."""
    folders = [*map(Path, _registered()), *_installed_folders()]
    found = {file.parent.name: file.parent for one in folders for file in one.glob("*/__init__.py")}
    lone = os.environ.get(LONE)
    return found if lone is None else found | {Path(lone).name: Path(lone)}


def folder_of(paper: str) -> Path:
    """Return the folder of a paper, which may be missing."""
    return own_papers().get(paper, PAPERS / paper)


def paper_names() -> list[str]:
    """Return the names of all papers, sorted."""
    return sorted({file.parent.name for file in PAPERS.glob("*/__init__.py")} | set(own_papers()))


def sentences_file(paper: str) -> Path:
    """Return the file that lists the checkable sentences of a paper, which may be missing."""
    return folder_of(paper) / "sentences.yaml"


def finding_file(paper: str) -> Path:
    """Return the file that says in a few sentences what came of a paper, which may be missing."""
    return folder_of(paper) / "finding.md"


def text_of(file: Path) -> str:
    """Return the text of a file, "" if it is missing."""
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def part(paper: str, name: str) -> str:
    """Return the module that holds a part of a paper, such as its claims.

    Tables may stand with the figures, and a small paper may have a single file, its `__init__.py`, that holds
    all its parts.
    """
    if paper == COMPARE:
        shared = name in ("experiments", "settings")
        return part(COMPARED, name if shared else COMPARE)
    package, folder = f"replifed.papers.{paper}", folder_of(paper)
    file, figures = folder / f"{name}.py", folder / "figures.py"
    if name == "tables" and not file.is_file() and figures.is_file():
        return f"{package}.figures" if "TABLES" in figures.read_text(encoding="utf-8") else package
    return f"{package}.{name}" if file.is_file() or (folder / name).is_dir() else package


def section_of(paper: str) -> Any:
    """Return ``Section`` of the paper's module ``settings``, or one whose experiments may hold anything.

    A paper without that module is not imported: every call of Snakemake would wait for it.
    """
    module = part(paper, "settings")
    free = import_module(_FIELDS).FreePaper
    return getattr(import_module(module), "Section", free) if module.endswith(".settings") else free


def typed(paper: str, settings: Mapping[str, Any]) -> Any:
    """Return the settings of an experiment that a job of a paper is given, as an object of its class."""
    return section_of(paper).of_job(settings)
