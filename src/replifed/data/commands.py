"""What the command line offers for data: fetch, parse and status."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replifed.data.catalogue import CATALOGUE, get
from replifed.data.records import find_record

if TYPE_CHECKING:
    from replifed.data.fetch import Policy


def fetch_command(
    ids: Iterable[str],
    raw_dir: str | os.PathLike[str],
    *,
    policy: Policy = "auto",
    mirror: str | os.PathLike[str] | None = None,
    substitutes: bool = False,
    refresh: bool = False,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Fetch the named data sets, or all of them, and print one line for each.

    Parameters
    ----------
    ids : iterable of str
        Data sets; none means all.
    raw_dir, policy, mirror, substitutes, refresh, progress
        As for `replifed.data.fetch.fetch`.

    Returns
    -------
    list of dict
        The records.
    """
    from replifed.data.fetch import fetch

    records = []
    for dataset in [get(id_) for id_ in ids] or CATALOGUE.values():
        record = fetch(
            dataset,
            raw_dir,
            policy=policy,
            mirror=mirror,
            substitutes=substitutes,
            refresh=refresh,
            progress=progress,
        )
        sources = ", ".join(f"{file['name']} ({file['source']})" for file in record["files"])
        print(f"{record['id']}: {record['kind']}" + (f", {sources}" if sources else ""))
        if dataset.terms and record["kind"] != "surrogate":
            print(f"{record['id']}: terms of use: {dataset.terms}")
        records.append(record)
    return records


def parse_command(id_: str, raw_dir: str | os.PathLike[str], out: str | os.PathLike[str]) -> dict[str, Any]:
    """Parse one fetched data set into `out` and print what it holds; return its metadata."""
    from replifed.data.parse import parse

    meta = parse(get(id_), raw_dir, out)
    counts = ", ".join(f"{value} {name}" for name, value in meta["counts"].items() if value is not None)
    print(f"{id_}: {meta['kind']}, {counts}")
    return meta


def status_rows(raw_dir: str | os.PathLike[str], ids: Iterable[str] | None = None) -> list[dict[str, str]]:
    """Return one row a data set: id, form, kind, files and licence.

    Parameters
    ----------
    raw_dir : path-like
    ids : iterable of str, optional
        Which data sets; default all.

    Returns
    -------
    list of dict
        With `kind` "not fetched" where there is no record.
    """
    rows = []
    for dataset in CATALOGUE.values() if ids is None else [get(id_) for id_ in ids]:
        record = find_record(Path(raw_dir), dataset.id) or {"form": "", "kind": "not fetched", "files": []}
        files = ", ".join(file["name"] for file in record["files"])
        rows.append(
            {
                "id": dataset.id,
                "form": record["form"],
                "kind": record["kind"],
                "files": files,
                "licence": dataset.licence,
            }
        )
    return rows


def not_original(rows: Iterable[dict[str, str]]) -> str:
    """Say in one sentence how many of the data sets in `status_rows` are not the papers' own.

    >>> not_original([{"id": "a", "kind": "original"}, {"id": "b", "kind": "surrogate"}])
    '1 of 2 data sets is not original: b (surrogate)'
    """
    rows = list(rows)
    others = [f"{row['id']} ({row['kind']})" for row in rows if row["kind"] != "original"]
    verb = "is" if len(others) == 1 else "are"
    named = f": {', '.join(others)}" if others else ""
    return f"{len(others)} of {len(rows)} data sets {verb} not original{named}"


def status_table(raw_dir: str | os.PathLike[str], ids: Iterable[str] | None = None) -> str:
    """Return the text of ``replifed data status``: a table, then the sentence of `not_original`."""
    from tabulate import tabulate

    rows = status_rows(raw_dir, ids)
    return f"{tabulate(rows, headers='keys')}\n\n{not_original(rows)}"
