"""A certificate as CODECHECK asks for: what was made again of one paper, compared with the reference run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from replifed.errors import DataError
from replifed.runs.compared import OUTCOMES, SOUND, Difference
from replifed.runs.kept import in_words
from replifed.runs.opened import Run
from replifed.store.atomic import write_text

_VERSION = "https://codecheck.org.uk/spec/config/1.0/"
# Left to whoever signs it.
_OPEN = "to be filled in"


def outcomes(paper: str, found: list[Difference], titles: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the tables of a paper's figures and tables, each with its title and its worst outcome."""
    rows = []
    for name, title in titles.items():
        part = f"tables/{paper}/{name}.csv"
        tables = [one for one in found if one.kind == "table" and one.name == part]
        if tables:
            worst = min(tables, key=lambda one: OUTCOMES.index(one.outcome))
            moved = f": {worst.column}, {worst.text}" if worst.outcome not in SOUND else ""
            rows.append({"file": f"{paper}/{name}.csv", "comment": f"{title}: {worst.outcome}{moved}"})
    return rows


def write(
    folder: Path,
    paper: str,
    about: Mapping[str, Any],
    run: Run,
    reference: Run,
    found: list[Difference],
    titles: Mapping[str, str],
    codechecker: Mapping[str, str],
) -> list[Path]:
    """Write codecheck.yml and a page, certificate.md, of one paper, unsigned; return both.

    `about` has the paper's "citation" and "doi", `titles` those of its figures and tables, and `codechecker`
    the "name" and the "ORCID" of who made the run.

    Raises
    ------
    DataError
        No figure or table of the paper was compared.
    """
    rows = outcomes(paper, found, titles)
    if not rows:
        raise DataError(f"{run.place} and {reference.place} share no figure or table of {paper}")
    authors, _, rest = about["citation"].partition(": ")
    claims = Counter(one.outcome for one in found if one.kind == "claim" and one.name.startswith(f"{paper}."))
    same = sum(row["comment"].endswith(SOUND) for row in rows)
    summary = (
        f"{same} of {len(rows)} figures and tables came out as in the reference run, and "
        f"{sum(claims[outcome] for outcome in SOUND)} of {claims.total()} claims. Whether they say what the "
        f"paper says is another question, which docs/papers/{paper}.md answers."
    )
    version, commit = (run.environment(paper).get(key, "unknown") for key in ("replifed", "commit"))
    entries = {
        "version": _VERSION,
        "source": f"replifed {version}, commit {commit}",
        "paper": {
            "title": rest.partition(". ")[0],
            "authors": [{"name": name.removeprefix("and ").strip()} for name in authors.split(", ")],
            "reference": f"https://doi.org/{about['doi']}" if about.get("doi") else rest,
        },
        "manifest": rows,
        "codechecker": [dict(codechecker)],
        "summary": summary,
        "repository": _OPEN,
        "check_time": _OPEN,
        "certificate": _OPEN,
        "report": _OPEN,
    }
    page = [
        f"# Certificate of {about.get('name', paper)}, not signed",
        summary,
        f"{about['citation']}",
        f"Run: {in_words(run, paper)}. Compared with {in_words(reference, paper)}.",
        f"Made by {codechecker['name']}, ORCID {codechecker['ORCID']}. Signed: ____________________",
        "| file | outcome |\n| --- | --- |\n"
        + "\n".join(f"| `{row['file']}` | {row['comment']} |" for row in rows),
    ]
    files = [folder / "codecheck.yml", folder / "certificate.md"]
    write_text(files[0], yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=110))
    write_text(files[1], "\n\n".join(page) + "\n")
    return files
