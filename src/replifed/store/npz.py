"""Archives of arrays whose bytes depend on nothing but the arrays."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.store.atomic import replacing

# The earliest time that a zip entry can carry.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray]) -> None:
    """Write `arrays` to an uncompressed ``.npz``, whole or not at all; no clock or platform shows in it."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            entry.create_system = 3  # else the archive would tell Windows from the rest
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(arrays[name]), allow_pickle=False)


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """Read all arrays of an ``.npz``."""
    # Opened here: given a name, numpy leaves the file of a damaged archive open.
    with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
