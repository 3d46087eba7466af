"""Archives of arrays, with or without metadata, whose bytes depend on nothing but their content."""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import DataError, one_line
from replifed.store import FORMAT, check_format, limits
from replifed.store.atomic import replacing

# The earliest time that a zip entry can carry.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_HEADS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def write_npz(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write `arrays` to an uncompressed ``.npz``, whole or not at all; no clock or platform shows in it."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            entry.create_system = 3  # else the archive would tell Windows from the rest
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(arrays[name]), allow_pickle=False)


def read_npz(path: Path, names: Iterable[str]) -> dict[str, NDArray]:
    """Read those of the arrays `names` that an ``.npz`` has; one that is damaged is a `DataError`."""
    try:
        return _arrays(path, names)
    except (DataError, FileNotFoundError):
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(f"{path} is no sound npz file ({one_line(error)})") from error


def _arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray]:
    """Read arrays of a file, all of them without `names`, and then above the limit, too."""
    with zipfile.ZipFile(path) as archive:
        held = {entry.filename: entry.file_size for entry in archive.infolist()}
        if len(held) < len(archive.namelist()):
            raise ValueError("an array stands twice")
        if names is not None:
            held = {name: size for name, size in held.items() if name.removesuffix(".npy") in names}
            limits.check(path, sum(held.values()))  # whatever there are, no more bytes are unpacked
        return {name.removesuffix(".npy"): _array(archive, name, size) for name, size in held.items()}


def _array(archive: zipfile.ZipFile, name: str, size: int) -> NDArray:
    """Read an array, whose head must fit its size: numpy allocates what the head says."""
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADS:
            raise ValueError(f"{name}: version {version} of the format")
        shape, _, dtype = _HEADS[version](stream)
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects; save numbers or texts (dtype=float, dtype=str)")
        if stream.tell() + math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{name}: its head says {shape} of {dtype}, which does not fit its {size} bytes")
    with archive.open(name) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


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
        arrays = _arrays(path)
        meta = json.loads(arrays.pop("meta").tobytes().decode("utf-8"))
        check_format(path, meta.pop("format", None))
        yield arrays, meta
    except DataError:
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(f"{path} is damaged or not {what} of this package ({error}); delete it") from error
