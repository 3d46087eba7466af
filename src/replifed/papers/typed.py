"""Settings as objects: what a job is given, of the class that its paper has for them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

# Not followed as a source: a job depends on the values of its settings, not on the code that checks them.
_CHECKS = "replifed.settings.checks"


def typed(paper: str, settings: Mapping[str, Any]) -> Any:
    """Return `settings.checks.typed` of a paper's settings."""
    return import_module(_CHECKS).typed(paper, settings)
