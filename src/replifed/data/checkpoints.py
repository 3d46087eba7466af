"""Weights of networks from torch's zip checkpoints, read without torch and without unpickling.

A checkpoint is a zip with a pickle that says how to rebuild tensors, and the tensors' bytes beside it. A
pickle is a program; here a small interpreter runs the few instructions that rebuilding a dictionary of
tensors takes, on data only. No name from the file is ever imported or called: three names are known, and
stand for what this module itself does. Any other instruction or name is an error.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STORAGES = {"torch FloatStorage": "<f4", "torch DoubleStorage": "<f8"}
_REBUILD = "torch._utils _rebuild_tensor_v2"
_DICT = "collections OrderedDict"
_MARK = object()
# More than any checkpoint here holds: a zip that unpacks to gigabytes is refused.
_MOST_BYTES = 1 << 28


class _Name(str):
    """A whitelisted global of the pickle."""


def read_state(path: Path, shown: str) -> dict[str, NDArray]:
    """Read a state dictionary of float tensors.

    Parameters
    ----------
    path : Path
        A checkpoint in torch's zip format.
    shown : str
        What to call it in error messages.

    Returns
    -------
    dict of str to array
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise DataError(f"{shown}: unpacks to more than {_MOST_BYTES >> 20} MiB")
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(names) != 1:
                raise DataError(f"{shown}: not a checkpoint: it holds {len(names)} files called data.pkl")
            folder = names[0].removesuffix("data.pkl")
            state = _interpret(archive.read(names[0]), lambda key: archive.read(f"{folder}data/{key}"))
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{shown} is not a sound zip file: {error}") from error
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"{shown}: refused: {error}") from error
    if not all(isinstance(value, np.ndarray) for value in state.values()):
        raise DataError(f"{shown}: refused: holds something other than tensors")
    return state


def read_potentials(paths: list[Path], shown: list[str]) -> NDArray:
    """Parameters of networks with three hidden layers and quadratic skip connections, flat, one row each.

    The order is that of `replifed.problems.icnn`: quadratic, linear and constant part of each layer's skip
    connection, then the two layers between them and the last one.
    """
    names = [
        f"quadratic_layers.{layer}.{part}"
        for layer in range(3)
        for part in ("quadratic_decomposed", "weight", "bias")
    ]
    names += ["convex_layers.0.weight", "convex_layers.1.weight", "final_layer.weight"]
    rows = []
    for path, name in zip(paths, shown, strict=True):
        state = read_state(path, name)
        if set(state) != set(names):
            raise DataError(f"{name}: holds {', '.join(sorted(state))} instead of {', '.join(names)}")
        if any(state[f"quadratic_layers.{layer}.quadratic_decomposed"].shape[1] != 1 for layer in range(3)):
            raise DataError(f"{name}: its quadratic layers are not of rank 1")
        rows.append(np.concatenate([state[part].ravel() for part in names]))
    if len({len(row) for row in rows}) != 1:
        raise DataError(f"{', '.join(shown)}: networks of different sizes")
    return np.stack(rows).astype(np.float32)


def _interpret(program: bytes, storage: Any) -> dict[str, NDArray]:
    stack: list[Any] = []
    memo: dict[Any, Any] = {}

    def above_mark() -> list[Any]:
        place = max(i for i, entry in enumerate(stack) if entry is _MARK)
        taken = stack[place + 1 :]
        del stack[place:]
        return taken

    for opcode, value, _ in pickletools.genops(io.BytesIO(program)):
        match opcode.name:
            case "PROTO":
                pass
            case "STOP":
                (state,) = stack
                if not isinstance(state, dict):
                    raise ValueError("the pickle makes no dictionary")
                return state
            case "GLOBAL":
                if value not in (*_STORAGES, _REBUILD, _DICT):
                    raise ValueError(f"the pickle names {value!r}, which no checkpoint of tensors needs")
                stack.append(_Name(value))
            case "MARK":
                stack.append(_MARK)
            case "EMPTY_TUPLE":
                stack.append(())
            case "EMPTY_DICT":
                stack.append({})
            case "NEWFALSE" | "NEWTRUE":
                stack.append(opcode.name == "NEWTRUE")
            case "BININT" | "BININT1" | "BININT2" | "BINUNICODE":
                stack.append(value)
            case "BINPUT" | "LONG_BINPUT":
                memo[value] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[value])
            case "TUPLE":
                stack.append(tuple(above_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                size = int(opcode.name[-1])
                taken = tuple(stack[-size:])
                del stack[-size:]
                stack.append(taken)
            case "BINPERSID":
                stack.append(_load(stack.pop(), storage))
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(_call(function, arguments))
            case "SETITEM":
                entry, key = stack.pop(), stack.pop()
                stack[-1][key] = entry
            case "SETITEMS":
                entries = above_mark()
                stack[-1].update(zip(entries[::2], entries[1::2], strict=True))
            case "BUILD":
                stack.pop()  # attributes such as _metadata: of no use here, and never set
            case other:
                raise ValueError(
                    f"the pickle has the instruction {other}, which no checkpoint of tensors needs"
                )
    raise ValueError("the pickle has no end")


def _load(what: Any, storage: Any) -> NDArray:
    kind, name, key, _, count = what
    if kind != "storage" or not isinstance(name, _Name) or name not in _STORAGES or not str(key).isalnum():
        raise ValueError(f"unknown storage {what!r}")
    values = np.frombuffer(storage(key), dtype=_STORAGES[name])
    if len(values) != count:
        raise ValueError(f"storage {key} holds {len(values)} numbers instead of {count}")
    return values


def _call(function: Any, arguments: tuple) -> Any:
    if not isinstance(function, _Name):
        raise ValueError("the pickle calls something that is no name")
    if function == _DICT and arguments == ():
        return {}
    if function == _REBUILD:
        values, offset, shape, strides, *_ = arguments
        if not isinstance(values, np.ndarray):
            raise ValueError("a tensor without numbers")
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if offset < 0 or min(*shape, 1) < 1 or min(*strides, 0) < 0 or last >= len(values):
            raise ValueError(f"a tensor of shape {shape} that reaches beyond its numbers")
        steps = [stride * values.itemsize for stride in strides]
        return np.lib.stride_tricks.as_strided(values[offset:], shape, steps).copy()
    raise ValueError(f"the pickle calls {function!r} with {arguments!r}")
