"""What the command line offers for partitions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from replifed.atomic import write_text


def partition(
    paper: str,
    experiment: str,
    settings: Mapping[str, Any],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    table: str | os.PathLike[str],
) -> None:
    """Split a parsed data set between clients.

    Parameters
    ----------
    paper, experiment : str
        Whose partition it is; recorded in the file.
    settings : mapping
        seed; dataset, the id that the data must have; partition, see `replifed.partition.build.build`;
        replicates, and optionally tuning.replicates, which are partitioned as well.
    data : path-like
        The parsed data set.
    out : path-like
        The partition to write, an ``.npz``.
    table : path-like
        The CSV of all clients to write.
    """
    from replifed.data.table import load
    from replifed.errors import DataError
    from replifed.partition.build import build
    from replifed.partition.store import Partition, save

    samples = load(data)
    if samples.meta["id"] != settings["dataset"]:
        raise DataError(
            f"{data} holds {samples.meta['id']}, but {experiment} is to split {settings['dataset']}"
        )
    replicates = [*settings["replicates"], *settings.get("tuning", {}).get("replicates", ())]
    try:
        made, frame = build(samples.X, samples.y, settings["partition"], replicates, settings["seed"])
    except DataError as error:
        raise DataError(f"{paper}/{experiment}, {samples.meta['id']}: {error}") from error
    source = {key: samples.meta[key] for key in ("id", "kind", "stamp", "content_sha256")}
    meta = {**made.meta, "paper": paper, "experiment": experiment, "data": source}
    save(out, Partition(made.cluster, made.clients, meta))
    write_text(table, frame.to_csv(index=False, lineterminator="\n", float_format="%.12g"))
