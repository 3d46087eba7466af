"""Weights of networks from torch's zip checkpoints, read without torch.

A checkpoint is a zip with the tensors' bytes and a pickle that rebuilds the tensors. A pickle is a program:
`_Machine` runs only the few operations that tensors need, on dictionaries with strings as keys, and calls
nothing that the file names. So a small file can neither run code, nor nest or repeat values without end.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.errors import DataError
from replifed.store import limits

_STORAGES = {"torch FloatStorage": "<f4", "torch DoubleStorage": "<f8"}
_CALLED = ("collections OrderedDict", "torch._utils _rebuild_tensor_v2")
_LONGEST = 4 << 20  # bytes of a pickle
_MOST_DIMENSIONS = 8


def read_state(path: Path) -> dict[str, NDArray]:
    """Read a state dictionary of float tensors from a checkpoint in torch's zip format."""
    try:
        with zipfile.ZipFile(path) as archive:
            limits.check(path, sum(entry.file_size for entry in archive.infolist()))
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise DataError(f"{path}: not a checkpoint: it holds {len(names)} files called data.pkl")
            if archive.getinfo(names[0]).file_size > _LONGEST:
                raise ValueError(f"its pickle is longer than {_LONGEST >> 20} MiB")
            state = _Machine(path, archive, names[0].removesuffix("data.pkl")).run(archive.read(names[0]))
    except DataError:
        raise
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is not a sound zip file: {error}") from error
    except Exception as error:  # a malformed pickle may raise anything
        raise DataError(f"{path}: refused: {error}") from error
    if not isinstance(state, dict) or not all(isinstance(value, np.ndarray) for value in state.values()):
        raise DataError(f"{path}: refused: holds something other than a dictionary of tensors")
    return state


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


class _Machine:
    """Runs the pickle of an archive; names that the pickle looks up become marked strings (`_Name`)."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, folder: str) -> None:
        self._path, self._archive, self._folder = path, archive, folder
        self._storages: dict[str, NDArray] = {}
        self._bytes = 0  # of storages and tensors

    def run(self, program: bytes) -> Any:
        """Return the result of the program."""
        stack: list[Any] = []
        marks: list[int] = []
        memo: dict[Any, Any] = {}
        for opcode, value, _ in pickletools.genops(program):
            match opcode.name:
                case "PROTO":
                    pass
                case "STOP":
                    return stack.pop()
                case "BININT" | "BININT1" | "BININT2" | "BINUNICODE":
                    stack.append(value)
                case "NEWTRUE" | "NEWFALSE":
                    stack.append(opcode.name == "NEWTRUE")
                case "GLOBAL":
                    stack.append(_Name(_known(str(value))))
                case "MARK":
                    marks.append(len(stack))
                case "EMPTY_TUPLE":
                    stack.append(())
                case "EMPTY_DICT":
                    stack.append({})
                case "TUPLE1" | "TUPLE2" | "TUPLE3":
                    count = int(opcode.name[-1])
                    stack[-count:] = [tuple(stack[-count:])]
                case "TUPLE":
                    place = marks.pop()
                    stack[place:] = [tuple(stack[place:])]
                case "BINPUT" | "LONG_BINPUT":
                    memo[value] = stack[-1]
                case "BINGET" | "LONG_BINGET":
                    stack.append(memo[value])
                case "BINPERSID":
                    stack.append(self._storage(stack.pop()))
                case "REDUCE":
                    arguments = stack.pop()
                    stack.append(self._called(stack.pop(), arguments))
                case "SETITEM":
                    _set(stack[-3], stack[-2:])
                    del stack[-2:]
                case "SETITEMS":
                    place = marks.pop()
                    _set(stack[place - 1], stack[place:])
                    del stack[place:]
                case "BUILD":  # attributes such as _metadata
                    stack.pop()
                case name:
                    raise ValueError(f"its pickle has {name}, which no checkpoint needs")
        raise ValueError("its pickle has no end")

    def _called(self, name: Any, arguments: Any) -> Any:
        if not isinstance(name, _Name) or name not in _CALLED or not isinstance(arguments, tuple):
            raise ValueError("its pickle calls what no checkpoint needs")
        if name == _CALLED[0]:
            return {}  # it is filled later
        tensor = _tensor(*arguments[:4])
        self._count(tensor.nbytes)
        return tensor.copy()

    def _storage(self, what: Any) -> NDArray:
        if (
            not isinstance(what, tuple)
            or len(what) != 5
            or not all(isinstance(one, str | int) for one in what)
        ):
            raise ValueError("an unknown storage")
        kind, name, key, _, count = what
        if kind != "storage" or name not in _STORAGES or not str(key).isalnum():
            raise ValueError(f"unknown storage {str(what)[:80]}")
        if key not in self._storages:
            member = f"{self._folder}data/{key}"
            self._count(self._archive.getinfo(member).file_size)
            self._storages[key] = np.frombuffer(self._archive.read(member), dtype=_STORAGES[name])
        values = self._storages[key]
        if len(values) != count or values.dtype != np.dtype(_STORAGES[name]):
            raise ValueError(
                f"storage {key} holds {len(values)} numbers of {values.dtype}, not {count} of {name}"
            )
        return values

    def _count(self, size: int) -> None:
        self._bytes += size
        limits.check(self._path, self._bytes, "its tensors take")


class _Name(str):
    """A name that a pickle looks up, unlike a string of the pickle."""


def _known(value: str) -> str:
    if value not in _CALLED and value not in _STORAGES:
        raise ValueError(f"the pickle names {value!r}, which no checkpoint of tensors needs")
    return value


def _set(entries: Any, items: Sequence[Any]) -> None:
    keys, values = items[::2], items[1::2]
    if not isinstance(entries, dict) or not all(isinstance(key, str) for key in keys):
        raise ValueError("an entry that is not a name's")
    entries.update(zip(keys, values, strict=True))


def _tensor(values: Any, offset: Any, shape: Any, strides: Any) -> NDArray:
    if not isinstance(values, np.ndarray):
        raise ValueError("a tensor without numbers")
    for numbers in (shape, strides, (offset,)):
        if not isinstance(numbers, tuple) or not all(type(number) is int for number in numbers):
            raise ValueError("a tensor whose shape is no tuple of whole numbers")
    if len(shape) > _MOST_DIMENSIONS or math.prod(shape) > len(values):
        raise ValueError(f"a tensor of shape {shape[:_MOST_DIMENSIONS]} from {len(values)} numbers")
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if offset < 0 or min(*shape, 1) < 1 or min(*strides, 0) < 0 or last >= len(values):
        raise ValueError(f"a tensor of shape {shape} that reaches beyond its numbers")
    steps = [stride * values.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(values[offset:], shape, steps)
