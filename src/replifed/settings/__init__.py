"""Settings: reading, checking, and cutting out what one job needs.

Typed classes are the single truth for keys, types, ranges, defaults and descriptions: `fields` holds those
that papers share, ``replifed.papers.<paper>.settings`` each paper's own. `checks` adds what no key shows by
itself: names that must exist elsewhere, numbers that must fit together. All faults are reported together, one
line each, before any job starts. Jobs get plain JSON, cut out of the checked configuration.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replifed.settings.checks import validate
from replifed.settings.classes import write_schema
from replifed.settings.cuts import (
    artefact_keys,
    artefacts,
    artefacts_keys,
    artefacts_settings,
    claim_keys,
    drawn_together,
    groups,
    settings_for,
    used_datasets,
    used_experiments,
)
from replifed.settings.reading import (
    MAIN_FILE,
    PAPER_FOLDER,
    SCHEMA_FILE,
    deep_merge,
    paper_names,
    read_file,
    retyped,
)

__all__ = [
    "MAIN_FILE",
    "PAPER_FOLDER",
    "SCHEMA_FILE",
    "artefact_keys",
    "artefacts",
    "artefacts_keys",
    "artefacts_settings",
    "claim_keys",
    "deep_merge",
    "drawn_together",
    "groups",
    "load",
    "paper_names",
    "read_file",
    "retyped",
    "settings_for",
    "used_datasets",
    "used_experiments",
    "validate",
    "write_schema",
]


def load(
    configfiles: Sequence[str | os.PathLike[str]] = (), root: str | os.PathLike[str] = "."
) -> dict[str, Any]:
    """Read and check the configuration as the workflow does.

    Parameters
    ----------
    configfiles : sequence of path-like
        Overrides such as ``config/small.yaml``, merged in this order over the files of the workflow.
    root : path-like
        The folder that holds ``config/``.
    """
    root, main = Path(root), Path(root) / MAIN_FILE
    files = [Path(file) for file in configfiles]
    overrides = [read_file(file) for file in files]
    config = deep_merge(read_file(main), *overrides)
    papers = [root / PAPER_FOLDER / f"{paper}.yaml" for paper in paper_names(config, root / PAPER_FOLDER)]
    for file in papers:
        config = deep_merge(config, read_file(file), *overrides)
    return validate(config, [main, *papers, *files])
