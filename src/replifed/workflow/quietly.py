"""Snakemake as `replifed make` calls it: without its line on the profile, the same in every call."""

from __future__ import annotations

import sys
from typing import Any

from snakemake import cli


def said(*words: Any, **options: Any) -> None:
    """Print what Snakemake's command line says, but for its line on the profile."""
    if not str(words[0] if words else "").startswith("Using workflow specific profile"):
        print(*words, **options)


if __name__ == "__main__":
    sys.argv[0] = "snakemake"  # by which `command` knows a call of Snakemake
    setattr(cli, "print", said)  # noqa: B010 no option and no level silences this line
    cli.main()
