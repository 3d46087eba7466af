"""Handwritten digits grouped by writer: the federated EMNIST release, and MNIST with QMNIST's writers.

Of each source the first writers with enough digits are taken, and of each writer the first digits, as
the experiments want them. The table's rows are then writer by writer, equally many of each.
"""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.data import idx
from replifed.data.catalogue import Counts
from replifed.errors import DataError

WRITERS, DIGITS = 350, 100
_MEMBER = "fed_emnist_digitsonly_train.h5"
# Columns of QMNIST's extended labels.
_CLASS, _WRITER = 0, 2


def read_hdf5(
    paths: Sequence[Path], counts: Counts, writers: int = WRITERS, digits: int = DIGITS
) -> tuple[NDArray[np.uint8], NDArray]:
    """Read the training part of TensorFlow Federated's `fed_emnist_digitsonly`, an HDF5 file or its archive.

    Group ``examples/<writer>`` holds ``pixels`` (n, 28, 28), 1 for white paper and 0 for ink, and
    ``label`` (n,). Writers come in the order of their names.

    Returns
    -------
    X : array of uint8, shape (writers * digits, 784)
        0 for paper, 255 for ink.
    y : int array
    """
    # A tenth of a second to import, for this alone.
    import h5py

    (path,) = paths
    with _unpacked(path) as file:
        try:
            with h5py.File(file, "r") as archive:
                return _select(archive["examples"], path, writers, digits)
        except (OSError, KeyError, ValueError) as error:
            raise DataError(f"{path} is not a file of federated EMNIST digits ({error})") from error


def _select(examples, path: Path, writers: int, digits: int) -> tuple[NDArray[np.uint8], NDArray]:
    pixels: list[NDArray] = []
    labels: list[NDArray] = []
    for name in sorted(examples):
        if len(labels) == writers:
            break
        if len(examples[name]["label"]) >= digits:
            pixels.append(examples[name]["pixels"][:digits])
            labels.append(examples[name]["label"][:digits])
    if len(labels) < writers:
        raise DataError(f"{path}: only {len(labels)} writers have {digits} digits; {writers} are needed")
    white = np.concatenate(pixels).reshape(writers * digits, -1)
    if not (white.min() >= 0 and white.max() <= 1):
        raise DataError(f"{path}: pixels are not between 0 and 1")
    return np.round(255 * (1.0 - white)).astype(np.uint8), np.concatenate(labels).astype(np.int64)


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Yield the HDF5 file, taken out of its archive for the time being."""
    if not tarfile.is_tarfile(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, _MEMBER)
        try:
            with tarfile.open(path) as archive:
                names = [name for name in archive.getnames() if Path(name).name == _MEMBER]
                if not names:
                    raise DataError(f"{path} holds no {_MEMBER}")
                packed = archive.extractfile(names[0])
                if packed is None:
                    raise DataError(f"{path}: {_MEMBER} is not a file")
                with packed, out.open("wb") as plain:
                    shutil.copyfileobj(packed, plain)
        except (tarfile.TarError, EOFError) as error:
            raise DataError(f"{path} is damaged ({error}); fetch it again") from error
        yield out


def read_idx(
    paths: Sequence[Path], counts: Counts, writers: int = WRITERS, digits: int = DIGITS
) -> tuple[NDArray[np.uint8], NDArray]:
    """Read MNIST's training images, then QMNIST's extended labels of them; result as of `read_hdf5`."""
    pixels, extended = map(idx.read, paths)
    if extended.ndim != 2 or extended.shape[1] <= _WRITER or len(extended) != len(pixels):
        raise DataError(
            f"{paths[1]} is not the extended labels of {paths[0]}: it has shape {extended.shape}, "
            f"for {len(pixels)} images"
        )
    names, sizes = np.unique(extended[:, _WRITER], return_counts=True)
    taken = names[sizes >= digits][:writers]
    if len(taken) < writers:
        raise DataError(f"{paths[1]}: only {len(taken)} writers have {digits} digits; {writers} are needed")
    rows = np.concatenate([np.flatnonzero(extended[:, _WRITER] == name)[:digits] for name in taken])
    return pixels.reshape(len(pixels), -1)[rows], extended[rows, _CLASS].astype(np.int64)
