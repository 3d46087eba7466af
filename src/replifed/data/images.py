"""Images, a row each: the idx format of the MNIST family, digits grouped by writer, grey frames of videos.

Writers are those of the federated EMNIST release, or QMNIST's of MNIST. The first writers with enough digits
are selected, and of each the first digits. The rows of the table are grouped by writer, with the same number
of each.
"""

from __future__ import annotations

import contextlib
import io
import math
import shutil
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.errors import DataError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
WRITERS, DIGITS = 350, 100
# Writers and digits of the release's training part, by its documentation.
RELEASE = (3383, 341_873)
_MEMBER = "fed_emnist_digitsonly_train.h5"
# ITU-R BT.601, as rgb2gray has it.
_LUMA = np.array([0.2989, 0.5870, 0.1140])
# Type of a compressed variable in a MATLAB file.
_COMPRESSED = 15
# Columns of QMNIST's extended labels.
_CLASS, _WRITER = 0, 2


def idx_array(path: Path) -> NDArray:
    """Read an idx file, plain or packed, as an array of the file's shape in native byte order."""
    with unpacked(path) as stream:
        content = stream.read()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(f"{path} is not an idx file (it starts with {content[:4]!r})")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise DataError(f"{path} is truncated inside its idx header")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    dtype = np.dtype(_TYPES[content[2]])
    needed, size = math.prod(shape) * dtype.itemsize, len(content) - start
    if size != needed:
        error = "is truncated" if size < needed else "has bytes left over"
        wanted = " x ".join(map(str, shape))
        raise DataError(
            f"{path} {error}: {size} bytes of data, but its header says {wanted} ({needed} bytes)"
        )
    values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def read_idx(paths: Sequence[Path], counts: Counts) -> tuple[NDArray, NDArray]:
    """Read the idx file of the images, and that of their labels."""
    images, labels = map(idx_array, paths)
    if labels.ndim != 1 or len(images) != len(labels):
        raise DataError(f"{paths[0]} holds {len(images)} images but {paths[1]} holds {labels.shape} labels")
    return images.reshape(len(images), -1), labels


def read_writers_hdf5(
    paths: Sequence[Path],
    counts: Counts,
    writers: int = WRITERS,
    digits: int = DIGITS,
    release: tuple[int, int] = RELEASE,
) -> tuple[NDArray[np.uint8], NDArray]:
    """Read the training part of TensorFlow Federated's `fed_emnist_digitsonly`, an HDF5 file or its archive.

    Group ``examples/<writer>`` holds ``pixels`` (n, 28, 28), 1 for white paper and 0 for ink, and ``label``
    (n,); writers come in the order of their names. All its writers and digits must be there, as many as
    `release` says. Returns pixels (writers * digits, 784), 0 for paper and 255 for ink, and labels.
    """
    import h5py  # takes a tenth of a second

    (path,) = paths
    with _taken_out(path) as file:
        try:
            with h5py.File(file, "r") as archive:
                examples = archive["examples"]
                sizes = {name: len(examples[name]["label"]) for name in sorted(examples)}
                held = len(sizes), sum(sizes.values())
                if held != release:
                    found, wanted = ("{} writers with {} digits".format(*part) for part in (held, release))
                    raise DataError(f"{path}: {found} instead of {wanted}")
                names = [name for name, size in sizes.items() if size >= digits][:writers]
                if len(names) < writers:
                    raise DataError(_too_few(path, names, writers, digits))
                white, y = (
                    np.concatenate([examples[name][key][:digits] for name in names])
                    for key in ("pixels", "label")
                )
            if not (white.min() >= 0 and white.max() <= 1):
                raise DataError(f"{path}: pixels are not between 0 and 1")
            ink = np.round(255 * (1.0 - white)).astype(np.uint8)
            return ink.reshape(writers * digits, -1), y.astype(np.int64)
        except DataError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise DataError(f"{path} is not a file of federated EMNIST digits ({error})") from error


def _too_few(path: Path, names: Sized, writers: int, digits: int) -> str:
    return f"{path}: only {len(names)} writers have {digits} digits; {writers} are needed"


@contextlib.contextmanager
def _taken_out(path: Path) -> Iterator[Path]:
    """Yield the HDF5 file, temporarily unpacked from its archive."""
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


def read_writers_idx(
    paths: Sequence[Path], counts: Counts, writers: int = WRITERS, digits: int = DIGITS
) -> tuple[NDArray[np.uint8], NDArray]:
    """Read MNIST's training images and QMNIST's extended labels; returns what `read_writers_hdf5` does."""
    pixels, extended = map(idx_array, paths)
    if extended.ndim != 2 or extended.shape[1] <= _WRITER or len(extended) != len(pixels):
        raise DataError(
            f"{paths[1]} is not the extended labels of {paths[0]}: it has shape {extended.shape}, "
            f"for {len(pixels)} images"
        )
    names, sizes = np.unique(extended[:, _WRITER], return_counts=True)
    taken = names[sizes >= digits][:writers]
    if len(taken) < writers:
        raise DataError(_too_few(paths[1], taken, writers, digits))
    rows = np.concatenate([np.flatnonzero(extended[:, _WRITER] == name)[:digits] for name in taken])
    return pixels.reshape(len(pixels), -1)[rows], extended[rows, _CLASS].astype(np.int64)


def grey(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn colour frames (n, height, width, 3) into grey ones, a row each."""
    return np.round(frames @ _LUMA).astype(np.uint8).reshape(len(frames), -1)


def read_mp4(paths: Sequence[Path], counts: Counts) -> tuple[NDArray[np.uint8], NDArray]:
    """Read all frames of a video file."""
    (path,) = paths
    try:
        import av
    except ImportError:
        raise DataError(
            f"reading {path} needs PyAV, which is not installed: pip install 'replifed[video]'"
        ) from None
    try:
        with av.open(str(path)) as container:
            frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    except (av.error.FFmpegError, IndexError) as error:
        raise DataError(f"{path} is no readable video ({error})") from error
    if not frames:
        raise DataError(f"{path} holds no frame")
    return grey(np.stack(frames)), np.arange(1, len(frames) + 1)


def read_mat(paths: Sequence[Path], counts: Counts) -> tuple[NDArray[np.uint8], NDArray]:
    """Read frames of a MATLAB file: array `dat` (height, width, 3 n), planes R, G, B, ..."""
    from scipy.io import loadmat

    (path,) = paths
    try:
        content = path.read_bytes()
        _check_sums(content)
        planes = np.asarray(loadmat(io.BytesIO(content), variable_names=["dat"])["dat"])
    except Exception as error:  # scipy's reader may raise anything
        raise DataError(f"{path} is damaged, or not a MATLAB file with frames ({error!r})") from error
    if planes.dtype != np.uint8 or planes.ndim != 3 or planes.shape[2] % 3:
        raise DataError(f"{path}: expected bytes of shape (height, width, 3 n), got {planes.shape}")
    height, width, _ = planes.shape
    frames = planes.reshape(height, width, -1, 3).transpose(2, 0, 1, 3)
    return grey(frames), np.arange(1, len(frames) + 1)


def _check_sums(content: bytes) -> None:
    """Unpack each variable of a MATLAB 5 file, which fails if it was altered: scipy would crash on it."""
    place = 128
    if content[124:place] != b"\0\1IM":
        raise ValueError("no header of MATLAB 5")
    while place < len(content):
        kind, size = struct.unpack_from("<II", content, place)
        if kind != _COMPRESSED:
            raise ValueError("a variable is not compressed, as MATLAB writes it")
        zlib.decompress(content[place + 8 : place + 8 + size])
        place += 8 + size
