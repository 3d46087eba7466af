"""Settings: reading, checking, and cutting out what one job needs.

Typed classes are the single truth for keys, types, ranges, defaults and descriptions: `fields` holds those
that papers share, ``replifed.papers.<paper>.settings`` each paper's own. `checks` adds what no key shows by
itself: names that must exist elsewhere, numbers that must fit together. All faults are reported together, one
line each, before any job starts. Jobs get plain JSON, which `cuts` takes out of the checked configuration
and `typed` turns into the paper's class again.
"""

from replifed.settings.checks import load, typed, validate, write_schema
from replifed.settings.cuts import artefacts, settings_for
from replifed.settings.reading import MAIN_FILE, PAPER_FOLDER, deep_merge, read_file

__all__ = [
    "MAIN_FILE",
    "PAPER_FOLDER",
    "artefacts",
    "deep_merge",
    "load",
    "read_file",
    "settings_for",
    "typed",
    "validate",
    "write_schema",
]
