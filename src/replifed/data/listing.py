"""The text of ``data/README.md``, made from the catalogue so that the two cannot disagree.

Run ``python -m replifed.data.listing > data/README.md`` after a change of the catalogue; a test
compares them.
"""

from __future__ import annotations

from replifed.data.catalogue import CATALOGUE, Counts, Dataset, Form

_HEAD = """\
# Data

This folder holds what the workflow downloads and makes of it; nothing but this file is committed.
Made from the catalogue by `python -m replifed.data.listing > data/README.md`: edit
`src/replifed/data/catalogue.yaml` instead.

- `raw/<id>/`: the files as they come, and `raw/<id>.json`, which says which form was chosen.
- Files are looked for in `raw/<id>/`, then in the mirror folder (`mirror:` in the configuration, or the
  environment variable `REPLIFED_MIRROR`), then at the URLs. To put a file in by hand, copy it unchanged into
  `raw/<id>/` under the name given below; it is checked like any other.
- In a mirror, files lie under the paths given below, or under their bare names, or as `<id>/<name>`.
- `REPLIFED_OFFLINE=1` keeps everything away from the network.
- *Originals* are the data the papers used. *Substitutes* are other real data, and *surrogates* are generated;
  whatever is made from them is stamped as such.
- `.hashes/` beside the files keeps the hash of each file from its first acceptance on. It matters for files
  without an official hash; to replace such a file by another version, delete its hash too.
- A file that is wrong (altered, truncated, a web page, another data set's) is an error under every
  policy. It is never replaced by a surrogate in silence.

The *content hash* is a sha256 over the parsed numbers (`replifed.data.table`), the same for every packing
and way of writing them. A dash stands for what has not been checked on the original.
"""


def readme() -> str:
    """Return the whole text of ``data/README.md``."""
    return _HEAD + "".join(_section(dataset) for dataset in CATALOGUE.values())


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
    print(readme(), end="")
