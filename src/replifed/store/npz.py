"""Archives of arrays, with or without metadata, whose bytes depend on nothing but their content."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import DataError
from replifed.store import FORMAT, check_format
from replifed.store.atomic import replacing

# The earliest time that a zip entry can carry.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_npz(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write `arrays` to an uncompressed ``.npz``, whole or not at all; no clock or platform shows in it."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            entry.create_system = 3  # else the archive would tell Windows from the rest
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(arrays[name]), allow_pickle=False)


def read_npz(path: Path) -> dict[str, NDArray]:
    """Read all arrays of an ``.npz``."""
    # Opened here: given a name, numpy leaves the file of a damaged archive open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def write_described(path: Path, arrays: Mapping[str, NDArray], meta: Mapping[str, Any]) -> None:
    """Write `arrays`, and `meta` as JSON in one more, with the number of the format."""
    packed = json.dumps({**meta, "format": FORMAT}, sort_keys=True, allow_nan=False).encode("utf-8")
    write_npz(path, {**arrays, "meta": np.frombuffer(packed, dtype=np.uint8)})


@contextlib.contextmanager
def read_described(
    path: Path, what: str, command: str
) -> Iterator[tuple[dict[str, NDArray], dict[str, Any]]]:
    """Yield arrays and metadata of a file that holds `what`, and that `command` makes.

    A file that is missing, of another version, damaged, or without an expected array is a `DataError`.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; make it with `{command}`")
    try:
        arrays = read_npz(path)
        meta = json.loads(arrays.pop("meta").tobytes().decode("utf-8"))
        check_format(path, meta.pop("format", None))
        yield arrays, meta
    except DataError:
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(f"{path} is damaged or not {what} of this package ({error}); delete it") from error
