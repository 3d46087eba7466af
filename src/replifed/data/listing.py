"""The part of ``data/README.md`` that is made from the catalogue, so that the two cannot disagree.

Run ``python -m replifed.data.listing`` after a change of the catalogue; a test compares them.
"""

from __future__ import annotations

from pathlib import Path

from replifed.data.catalogue import CATALOGUE, Counts, Dataset, Form
from replifed.store.atomic import write_text


def sections() -> str:
    """Return one section a data set."""
    return "".join(map(_section, CATALOGUE.values()))


def _section(dataset: Dataset) -> str:
    lines = [
        "",
        f"## {dataset.id}",
        "",
        f"{dataset.title}. Task: {dataset.task}.",
        "",
        f"- Source: <{dataset.homepage}>",
        f"- Citation: {dataset.citation}",
        f"- Licence: {dataset.licence}",
        f"- Contents: {_counts(dataset.counts)}",
        f"- Content hash: {_code(dataset.content_sha256)}",
    ]
    for form in dataset.forms:
        lines += _form(form)
    return "\n".join(lines) + "\n"


def _form(form: Form) -> list[str]:
    stamp = f', stamped "{form.stamp}"' if form.stamp else ""
    lines = [f"- Form `{form.name}` ({form.kind}{stamp}):"]
    if form.counts is not None:
        lines.append(f"  - contents: {_counts(form.counts)}; content hash: {_code(form.content_sha256)}")
    for file in form.files:
        lines.append(f"  - `{file.name}`, in a mirror `{file.mirror_path}`, sha256 {_code(file.sha256)}")
        lines += [f"    - <{url}>" for url in file.urls] or ["    - no URL; put it in by hand or in a mirror"]
    return lines


def _counts(counts: Counts) -> str:
    def number(value: int | None) -> str:
        return "-" if value is None else f"{value:,}"

    text = f"{number(counts.rows)} x {number(counts.features)}, {number(counts.nonzeros)} non-zeros"
    return text if counts.classes is None else f"{text}, {counts.classes} classes"


def _code(text: str | None) -> str:
    return "-" if text is None else f"`{text}`"


if __name__ == "__main__":
    readme = Path("data/README.md")
    head, _, _ = readme.read_text(encoding="utf-8").partition("\n## ")
    write_text(readme, head + sections())
