"""Where the verdicts on each paper lie in a folder of results, beside those on all papers."""

from __future__ import annotations

from pathlib import Path


def own_files(results: Path) -> dict[str, Path]:
    """Return the papers' own files of claims in a folder of results, by paper."""
    found = {file.parent.name: file for file in sorted(results.glob("[!.]*/claims.csv"))}
    # The folder of another scale has a joint file, with the statements beside it.
    return {name: file for name, file in found.items() if not file.with_name("statements.csv").is_file()}
