"""Settings: read, checked, and cut down to those that one job needs.

Typed classes are the single truth for keys, types, ranges, defaults and descriptions: `fields` holds those
that papers share, ``replifed.papers.<paper>.settings`` those of a paper. `checks` adds errors that no key
shows by itself: names that must exist elsewhere, numbers that must fit together. All errors are reported
together, one line each, before any job starts. Jobs read the checked configuration from one file; `subsets`
selects what each depends on, and `typed` makes an object of the paper's class of it.
"""

from replifed.settings.checks import load, typed, validate, write_schema
from replifed.settings.needs import artefacts
from replifed.settings.reading import MAIN_FILE, PAPER_FOLDER, deep_merge, project, read_file
from replifed.settings.subsets import settings_for

__all__ = [
    "MAIN_FILE",
    "PAPER_FOLDER",
    "artefacts",
    "deep_merge",
    "load",
    "project",
    "read_file",
    "settings_for",
    "typed",
    "validate",
    "write_schema",
]
