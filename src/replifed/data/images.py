"""Images, one per row: the idx format of the MNIST family, digits grouped by writer, grey frames of videos.

Writers are those of the federated EMNIST release, or MNIST's writers as given by QMNIST. The first writers
with enough digits are selected, and the first digits of each. Rows are grouped by writer, equally many for
each.
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
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.errors import DataError
from replifed.store import limits

_MOST_DIMENSIONS = 4
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
WRITERS, DIGITS = 350, 100
# Writers and digits of the release's training part, by its documentation.
RELEASE = (3383, 341_873)
_MEMBER = "fed_emnist_digitsonly_train.h5"
# Writers of the release with all classes, in both parts.
_FEMNIST_WRITERS = 3400
_SIZE = (28, 28)
# ITU-R BT.601, as rgb2gray has it: in integers, so that every processor rounds a tie alike.
_LUMA, _WHOLE = np.array([2989, 5870, 1140]), 10_000
# Type of a compressed variable in a MATLAB file.
_COMPRESSED = 15
_STEP = 1 << 20  # bytes that are unpacked at a time
# Columns of QMNIST's extended labels.
_CLASS, _WRITER = 0, 2


def idx_array(path: Path) -> NDArray:
    """Read an idx file, plain or compressed, as an array of the file's shape in native byte order."""
    with unpacked(path) as stream:
        start = stream.read(4)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
            raise DataError(f"{path} is not an idx file (it starts with {start!r})")
        dimensions, dtype = start[3], np.dtype(_TYPES[start[2]])
        if dimensions > _MOST_DIMENSIONS:
            raise DataError(f"{path} is not a file of images or labels: it has {dimensions} dimensions")
        sizes = stream.read(4 * dimensions)
        if dimensions == 0 or len(sizes) < 4 * dimensions:
            raise DataError(f"{path} is truncated inside its idx header")
        shape = struct.unpack(f">{dimensions}I", sizes)
        needed = math.prod(shape) * dtype.itemsize
        says = f"its header says {' x '.join(map(str, shape))} ({needed} bytes)"
        if not needed:
            raise DataError(f"{path} holds nothing: {says}")
        limits.check(path, needed, "by its header it holds")
        content = stream.read(needed)
        if len(content) < needed:
            raise DataError(f"{path} is truncated: {len(content)} bytes of data, but {says}")
        if stream.read(1):
            raise DataError(f"{path} has bytes left over: {says}")
    values = np.frombuffer(content, dtype=dtype).reshape(shape)
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
    (n,); writers are in the order of their names. The file must contain all writers and digits, as many as
    `release` says. Returns pixels (writers * digits, 784), 0 for paper and 255 for ink, and labels.
    """
    (path,) = paths

    def chosen(sizes: dict[str, int]) -> dict[str, int]:
        names = [name for name, size in sizes.items() if size >= digits][:writers]
        if len(names) < writers:
            raise DataError(_too_few(path, names, writers, digits))
        return dict.fromkeys(names, digits)

    X, y, _ = _of_release(path, _MEMBER, release, chosen)
    return X, y


def read_femnist(
    paths: Sequence[Path], counts: Counts, part: str, writers: int = _FEMNIST_WRITERS
) -> tuple[NDArray[np.uint8], NDArray, NDArray]:
    """Read a part, train or test, of TensorFlow Federated's `fed_emnist` with all 62 classes.

    Returns pixels and labels of all samples as `read_writers_hdf5` does, and the writer of each.
    """
    (path,) = paths
    return _of_release(path, f"fed_emnist_{part}.h5", (writers, counts.rows), lambda sizes: sizes)


def _of_release(
    path: Path,
    member: str,
    release: tuple[int, int | None],
    choose: Callable[[dict[str, int]], dict[str, int]],
) -> tuple[NDArray[np.uint8], NDArray, NDArray]:
    """Read so many first samples of each writer as `choose` says, from how many each has."""
    import h5py  # takes a tenth of a second

    with _taken_out(path, member) as file:
        try:
            with h5py.File(file, "r") as archive:
                examples = _inside(archive, "examples")
                sizes = {name: len(_inside(examples, name, "label")) for name in sorted(examples)}
                held = len(sizes), sum(sizes.values())
                if held != release:
                    found, wanted = ("{} writers with {} digits".format(*part) for part in (held, release))
                    raise DataError(f"{path}: {found} instead of {wanted}")
                chosen = choose(sizes)
                limits.check(path, sum(chosen.values()) * math.prod(_SIZE))
                ink, y = [], []
                for name, size in chosen.items():
                    ink.append(_ink(path, _first(_inside(examples, name, "pixels"), size, _SIZE)))
                    y.append(_first(_inside(examples, name, "label"), size, ()))
            whose = np.repeat(list(chosen), [*chosen.values()])
            return np.concatenate(ink), np.concatenate(y).astype(np.int64), whose
        except DataError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise DataError(f"{path} is not a file of federated EMNIST digits ({error})") from error


def _ink(path: Path, white: NDArray) -> NDArray[np.uint8]:
    """Turn 1 for white paper and 0 for ink into 0 and 255, an image a row."""
    if not (white.min() >= 0 and white.max() <= 1):
        raise DataError(f"{path}: pixels are not between 0 and 1")
    return np.round(255 * (1.0 - white)).astype(np.uint8).reshape(len(white), -1)


def _inside(group: Any, *names: str) -> Any:
    """Return a member of a group, which must lie in the same file: a link could lead anywhere."""
    import h5py

    for name in names:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name} is missing, or a link to something else")
        group = group[name]
    if isinstance(group, h5py.Dataset) and (group.external or group.is_virtual):
        raise ValueError(f"{names[-1]} lies in another file")
    return group


def _first(values: Any, count: int, size: tuple[int, ...]) -> NDArray:
    """Return the first values of a data set of numbers or images."""
    if values.shape[1:] != size or values.dtype.kind not in "fiu":
        raise ValueError(f"{values.name} is of shape {values.shape} and type {values.dtype}")
    limits.check(values.file.filename, math.prod(values.chunks or ()) * values.dtype.itemsize)
    return values[:count]


def _too_few(path: Path, names: Sized, writers: int, digits: int) -> str:
    return f"{path}: only {len(names)} writers have {digits} digits; {writers} are needed"


@contextlib.contextmanager
def _taken_out(path: Path, wanted: str) -> Iterator[Path]:
    """Yield the HDF5 file, temporarily unpacked from its archive."""
    if ".tar" not in path.suffixes:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, wanted)
        try:
            # As a stream, in which the limit holds, and members are read in their order.
            with unpacked(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                member = next((one for one in archive if Path(one.name).name == wanted), None)
                if member is None:
                    raise DataError(f"{path} holds no {wanted}")
                packed = archive.extractfile(member) if member.isfile() else None
                if packed is None:
                    raise DataError(f"{path}: {wanted} is not a file")
                with packed, out.open("wb") as plain:
                    shutil.copyfileobj(packed, plain)
        except DataError:
            raise
        except Exception as error:  # a damaged archive may raise anything
            raise DataError(f"{path} is damaged ({error})") from error
        yield out


def read_writers_idx(
    paths: Sequence[Path], counts: Counts, writers: int = WRITERS, digits: int = DIGITS
) -> tuple[NDArray[np.uint8], NDArray]:
    """Read MNIST's training images and QMNIST's extended labels, as `read_writers_hdf5` returns them."""
    pixels, extended = _extended(paths)
    names, sizes = np.unique(extended[:, _WRITER], return_counts=True)
    taken = names[sizes >= digits][:writers]
    if len(taken) < writers:
        raise DataError(_too_few(paths[1], taken, writers, digits))
    rows = np.concatenate([np.flatnonzero(extended[:, _WRITER] == name)[:digits] for name in taken])
    return pixels.reshape(len(pixels), -1)[rows], extended[rows, _CLASS].astype(np.int64)


def read_idx_by_writer(paths: Sequence[Path], counts: Counts) -> tuple[NDArray[np.uint8], NDArray, NDArray]:
    """Read MNIST's images, in their order, with classes and writers from QMNIST's extended labels.

    QMNIST's test part begins with MNIST's.
    """
    pixels, extended = _extended(paths, more=True)
    extended = extended[: len(pixels)]
    return pixels.reshape(len(pixels), -1), extended[:, _CLASS].astype(np.int64), extended[:, _WRITER]


def _extended(paths: Sequence[Path], more: bool = False) -> tuple[NDArray[np.uint8], NDArray]:
    """Images and extended labels, of which there may be `more`."""
    pixels, extended = map(idx_array, paths)
    fits = len(extended) >= len(pixels) if more else len(extended) == len(pixels)
    if extended.ndim != 2 or extended.shape[1] <= _WRITER or not fits:
        raise DataError(
            f"{paths[1]} is not the extended labels of {paths[0]}: it has shape {extended.shape}, "
            f"for {len(pixels)} images"
        )
    return pixels, extended


def grey(frames: Iterable[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Turn colour frames, (height, width, 3) each, into grey ones, one per row; ties go to the even value."""
    return np.stack([_rounded(frame.astype(np.int64) @ _LUMA).reshape(-1) for frame in frames])


def _rounded(scaled: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Divide by `_WHOLE` and round half to even."""
    below, rest = np.divmod(scaled, _WHOLE)
    up = (2 * rest > _WHOLE) | ((2 * rest == _WHOLE) & (below % 2 == 1))
    return (below + up).astype(np.uint8)


def read_mp4(paths: Sequence[Path], counts: Counts) -> tuple[NDArray[np.uint8], NDArray]:
    """Read all frames of a video file."""
    (path,) = paths
    try:
        import av
    except ImportError:
        raise DataError(
            f"reading {path} needs PyAV, which is not installed: pip install 'replifed[video]'"
        ) from None
    frames: list[NDArray[np.uint8]] = []
    try:
        with av.open(str(path)) as container:
            for frame in container.decode(video=0):
                frames.append(grey([frame.to_ndarray(format="rgb24")])[0])
                limits.check(path, len(frames) * frames[0].nbytes)
    except (av.error.FFmpegError, IndexError) as error:
        raise DataError(f"{path} is no readable video ({error})") from error
    if not frames:
        raise DataError(f"{path} holds no frame")
    return np.stack(frames), np.arange(1, len(frames) + 1)


def read_mat(paths: Sequence[Path], counts: Counts) -> tuple[NDArray[np.uint8], NDArray]:
    """Read frames of a MATLAB file: array `dat` (height, width, 3 n), planes R, G, B, ..."""
    from scipy.io import loadmat

    (path,) = paths
    try:
        with unpacked(path) as stream:
            content = stream.read()
        _check_sums(path, content)
        planes = np.asarray(loadmat(io.BytesIO(content), variable_names=["dat"])["dat"])
    except DataError:
        raise
    except Exception as error:  # scipy's reader may raise anything
        raise DataError(f"{path} is damaged, or not a MATLAB file with frames ({error!r})") from error
    if planes.dtype != np.uint8 or planes.ndim != 3 or planes.shape[2] % 3:
        raise DataError(f"{path}: expected bytes of shape (height, width, 3 n), got {planes.shape}")
    height, width, _ = planes.shape
    frames = planes.reshape(height, width, -1, 3).transpose(2, 0, 1, 3)
    return grey(frames), np.arange(1, len(frames) + 1)


def _check_sums(path: Path, content: bytes) -> None:
    """Unpack each variable of a MATLAB 5 file, which fails if it was altered: scipy would crash on it."""
    place, size = 128, 0
    if content[124:place] != b"\0\1IM":
        raise ValueError("no header of MATLAB 5")
    while place < len(content):
        kind, packed = struct.unpack_from("<II", content, place)
        if kind != _COMPRESSED:
            raise ValueError("a variable is not compressed, as MATLAB writes it")
        unpacker, rest = zlib.decompressobj(), content[place + 8 : place + 8 + packed]
        while not unpacker.eof:
            size += len(block := unpacker.decompress(rest, _STEP))
            limits.check(path, size)
            rest = unpacker.unconsumed_tail
            if not (block or rest or unpacker.eof):
                raise ValueError("a variable is cut short")
        place += 8 + packed
