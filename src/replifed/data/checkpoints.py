"""Weights of networks from torch's zip checkpoints, read without torch.

A checkpoint is a zip with a pickle that rebuilds tensors, and with the tensors' bytes. A pickle is a program,
but it can call only functions that its reader looks up for it, and this reader imports no name from the file.
Four names are known, and stand for functions of this module; any other is an error.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.errors import DataError

_STORAGES = {"torch FloatStorage": "<f4", "torch DoubleStorage": "<f8"}
# Larger than any checkpoint here: a zip that unpacks to gigabytes is an error.
_MOST_BYTES = 1 << 28


def read_state(path: Path) -> dict[str, NDArray]:
    """Read a state dictionary of float tensors from a checkpoint in torch's zip format."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise DataError(f"{path}: unpacks to more than {_MOST_BYTES >> 20} MiB")
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise DataError(f"{path}: not a checkpoint: it holds {len(names)} files called data.pkl")
            folder = names[0].removesuffix("data.pkl")
            state = _Unpickler(archive, folder).load()
    except DataError:
        raise
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is not a sound zip file: {error}") from error
    except Exception as error:  # a malformed pickle may raise anything
        raise DataError(f"{path}: refused: {error}") from error
    if not isinstance(state, dict) or not all(isinstance(value, np.ndarray) for value in state.values()):
        raise DataError(f"{path}: refused: holds something other than a dictionary of tensors")
    return dict(state)


def read_potentials(paths: Sequence[Path], counts: Counts) -> tuple[NDArray, NDArray]:
    """Read parameters of networks with three hidden layers and quadratic skip connections, a flat row each.

    The order is that of `replifed.problems.transport`: quadratic, linear and constant part of each layer's
    skip connection, then the two layers between them and the last one.
    """
    names = [
        f"quadratic_layers.{layer}.{part}"
        for layer in range(3)
        for part in ("quadratic_decomposed", "weight", "bias")
    ]
    names += ["convex_layers.0.weight", "convex_layers.1.weight", "final_layer.weight"]
    rows = []
    for path in paths:
        state = read_state(path)
        if set(state) != set(names):
            raise DataError(
                f"{path}: holds {', '.join(sorted(map(str, state)))} instead of {', '.join(names)}"
            )
        if any(state[f"quadratic_layers.{layer}.quadratic_decomposed"].shape[1] != 1 for layer in range(3)):
            raise DataError(f"{path}: its quadratic layers are not of rank 1")
        rows.append(np.concatenate([state[name].ravel() for name in names]))
    if len({len(row) for row in rows}) != 1:
        raise DataError(f"{', '.join(map(str, paths))}: networks of different sizes")
    return np.stack(rows).astype(np.float32), np.zeros(len(rows))


class _State(dict):
    """An ordered dictionary: made empty, and without attributes such as _metadata, of no use here."""

    def __init__(self) -> None:
        super().__init__()

    def __setstate__(self, attributes: Any) -> None:
        pass


class _Rebuild:
    """Calls `_tensor`; a pickle may try to set attributes of the functions that it calls."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> NDArray:
        return _tensor(*arguments)

    def __setstate__(self, attributes: Any) -> None:
        pass


# Opcodes of a pickle of tensors.
_OPCODES = {
    *("PROTO", "STOP", "GLOBAL", "MARK", "EMPTY_TUPLE", "EMPTY_DICT", "NEWFALSE", "NEWTRUE"),
    *("BININT", "BININT1", "BININT2", "BINUNICODE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
    *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "BINPERSID", "REDUCE", "SETITEM", "SETITEMS", "BUILD"),
}


class _Unpickler(pickle.Unpickler):
    """Rebuilds the tensors of an archive."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        program = archive.read(f"{folder}data.pkl")
        for opcode, value, _ in pickletools.genops(program):
            # The largest index of PUT determines the memory that is allocated.
            index = int(value or 0) if opcode.name.endswith("PUT") else 0
            if opcode.name not in _OPCODES or index > len(program):
                raise ValueError(f"its pickle has {opcode.name} {value or ''}, which no checkpoint needs")
        super().__init__(io.BytesIO(program))
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        named = f"{module} {name}"
        known = {"collections OrderedDict": _State, "torch._utils _rebuild_tensor_v2": _Rebuild()}
        known |= {storage: storage for storage in _STORAGES}
        if named not in known:
            raise ValueError(f"the pickle names {named!r}, which no checkpoint of tensors needs")
        return known[named]

    def persistent_load(self, what: Any) -> NDArray:
        kind, name, key, _, count = what
        if kind != "storage" or name not in _STORAGES or not str(key).isalnum():
            raise ValueError(f"unknown storage {what!r}")
        values = np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype=_STORAGES[name])
        if len(values) != count:
            raise ValueError(f"storage {key} holds {len(values)} numbers instead of {count}")
        return values


def _tensor(values: Any, offset: int, shape: tuple, strides: tuple, *_: Any) -> NDArray:
    if not isinstance(values, np.ndarray):
        raise ValueError("a tensor without numbers")
    if math.prod(shape) > len(values):
        raise ValueError(f"a tensor of shape {shape} from {len(values)} numbers")
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if offset < 0 or min(*shape, 1) < 1 or min(*strides, 0) < 0 or last >= len(values):
        raise ValueError(f"a tensor of shape {shape} that reaches beyond its numbers")
    steps = [stride * values.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(values[offset:], shape, steps).copy()
