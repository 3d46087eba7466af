"""Configuration: reading, checking, and cutting out what one job needs.

The JSON Schema files in ``config/schemas`` are the single truth for keys, types, ranges and
defaults. What a schema cannot say (names that must exist elsewhere, numbers that must fit
together) is checked here. All faults are reported together, one line each, before any job starts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replifed.config.checks import validate
from replifed.config.cuts import (
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
from replifed.config.reading import (
    MAIN_FILE,
    PAPER_FOLDER,
    SCHEMA_FOLDER,
    deep_merge,
    paper_names,
    read_file,
    retyped,
)

__all__ = [
    "MAIN_FILE",
    "PAPER_FOLDER",
    "SCHEMA_FOLDER",
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
    root = Path(root)
    overrides = [read_file(Path(file)) for file in configfiles]
    config = deep_merge(read_file(root / MAIN_FILE), *overrides)
    for paper in paper_names(config, root / PAPER_FOLDER):
        config = deep_merge(config, read_file(root / PAPER_FOLDER / f"{paper}.yaml"), *overrides)
    return validate(config, root / SCHEMA_FOLDER)
