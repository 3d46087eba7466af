"""Partitions and their files: an uncompressed ``.npz`` whose bytes depend only on the partition."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import DataError
from replifed.store.npz import read_described, write_described

_CLIENT = "client_"


@dataclass(frozen=True)
class Partition:
    """Cluster and client of each sample, (n,) each."""

    cluster: NDArray[np.int32]
    clients: Mapping[int, NDArray[np.int32]]  # by the replicate's name
    meta: dict[str, Any] = field(default_factory=dict)  # settings, and content_sha256 of the arrays

    def __post_init__(self) -> None:
        digest = hashlib.sha256(np.ascontiguousarray(self.cluster, dtype="<i4").data)
        for replicate in sorted(self.clients):
            digest.update(f"/{replicate}/".encode())
            digest.update(np.ascontiguousarray(self.clients[replicate], dtype="<i4").data)
        object.__setattr__(self, "meta", {**self.meta, "content_sha256": digest.hexdigest()})


def save(path: Path, partition: Partition) -> None:
    """Write `partition` to `path`, whole or not at all."""
    clients = {f"{_CLIENT}{replicate}": client for replicate, client in partition.clients.items()}
    write_described(path, {"cluster": partition.cluster, **clients}, partition.meta)


def load(path: Path, samples: int | None = None) -> Partition:
    """Read a partition that `save` wrote; if `samples` is given, it must be the number of samples."""
    with read_described(path, "a partition", "replifed partition") as (arrays, meta):
        recorded = meta["content_sha256"]
        names = sorted(int(name.removeprefix(_CLIENT)) for name in arrays if name.startswith(_CLIENT))
        partition = Partition(arrays["cluster"], {name: arrays[f"{_CLIENT}{name}"] for name in names}, meta)
    if (now := partition.meta["content_sha256"]) != recorded:
        raise DataError(f"{path} was altered: its content hash is {now}, recorded was {recorded}; delete it")
    length = len(partition.cluster)
    if samples is not None and samples != length:
        raise DataError(f"{path} splits {length} samples, but the data set has {samples}; delete it")
    return partition
