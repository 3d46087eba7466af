"""Settings: reading, checking, and cutting out what one job needs.

Typed classes are the single truth for keys, types, ranges, defaults and descriptions: `fields` holds those
that papers share, ``replifed.papers.<paper>.settings`` each paper's own. `checks` adds what no key shows by
itself: names that must exist elsewhere, numbers that must fit together. All faults are reported together, one
line each, before any job starts. Jobs get plain JSON, cut out of the checked configuration.
"""

from replifed.settings.checks import load, validate, write_schema
from replifed.settings.cuts import (
    artefact_keys,
    artefacts,
    artefacts_keys,
    artefacts_settings,
    claim_keys,
    groups,
    settings_for,
    used_datasets,
    used_experiments,
)
from replifed.settings.reading import MAIN_FILE, PAPER_FOLDER, deep_merge, listed_papers, read_file, retyped

__all__ = [
    "MAIN_FILE",
    "PAPER_FOLDER",
    "artefact_keys",
    "artefacts",
    "artefacts_keys",
    "artefacts_settings",
    "claim_keys",
    "deep_merge",
    "groups",
    "listed_papers",
    "load",
    "read_file",
    "retyped",
    "settings_for",
    "used_datasets",
    "used_experiments",
    "validate",
    "write_schema",
]
