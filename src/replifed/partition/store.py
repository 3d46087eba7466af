"""Partitions, and their files: an uncompressed ``.npz`` whose bytes depend on nothing but the partition."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import DataError
from replifed.store import FORMAT, check_format
from replifed.store.npz import read_npz, write_npz

_CLIENT = "client_"


@dataclass(frozen=True)
class Partition:
    """Who has which sample.

    Parameters
    ----------
    cluster : array of int32, shape (n,), cluster of each sample.
    clients : arrays of int32, shape (n,), client of each sample, by the replicate's name.
    meta : how it was made, with `content_sha256`, the hash of the arrays.
    """

    cluster: NDArray[np.int32]
    clients: Mapping[int, NDArray[np.int32]]
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "meta", {**self.meta, "content_sha256": _sha256(self.cluster, self.clients)})


def save(path: str | os.PathLike[str], partition: Partition) -> None:
    """Write `partition` to `path`, whole or not at all."""
    packed = json.dumps({**partition.meta, "format": FORMAT}, sort_keys=True, allow_nan=False).encode("utf-8")
    arrays: dict[str, NDArray] = {"cluster": partition.cluster}
    arrays["meta"] = np.frombuffer(packed, dtype=np.uint8)
    arrays |= {f"{_CLIENT}{replicate}": client for replicate, client in partition.clients.items()}
    write_npz(path, arrays)


def load(path: str | os.PathLike[str], samples: int | None = None) -> Partition:
    """Read a partition that `save` wrote; it must be of so many `samples`, where these are given."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} does not exist; make it with `replifed partition`")
    try:
        arrays = read_npz(path)
        meta = json.loads(arrays["meta"].tobytes().decode("utf-8"))
        check_format(path, meta.pop("format", None))
        recorded = meta["content_sha256"]
        names = sorted(int(name.removeprefix(_CLIENT)) for name in arrays if name.startswith(_CLIENT))
        partition = Partition(arrays["cluster"], {name: arrays[f"{_CLIENT}{name}"] for name in names}, meta)
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is damaged or not a partition of this package ({error}); delete it"
        ) from error
    if partition.meta["content_sha256"] != recorded:
        raise DataError(
            f"{path} was altered: its content hash is {partition.meta['content_sha256']}, recorded was "
            f"{recorded}; delete it"
        )
    length = len(partition.cluster)
    if any(len(client) != length for client in partition.clients.values()):
        raise DataError(f"{path} is damaged: its arrays differ in length; delete it")
    if samples is not None and samples != length:
        raise DataError(f"{path} splits {length} samples, but the data set has {samples}; make it again")
    return partition


def _sha256(cluster: NDArray, clients: Mapping[int, NDArray]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(cluster, dtype="<i4").data)
    for replicate in sorted(clients):
        digest.update(f"/{replicate}/".encode())
        digest.update(np.ascontiguousarray(clients[replicate], dtype="<i4").data)
    return digest.hexdigest()
