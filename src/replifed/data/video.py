"""Video clips as tables: one grey frame a row, line by line; labels number them from 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.errors import DataError

# ITU-R BT.601, as rgb2gray has it.
_LUMA = np.array([0.2989, 0.5870, 0.1140])


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
        planes = np.asarray(loadmat(path, variable_names=["dat"])["dat"])
    except Exception as error:  # scipy raises anything on a damaged file, also TypeError and zlib's own
        raise DataError(f"{path} is damaged, or not a MATLAB file with frames ({error!r})") from error
    if planes.dtype != np.uint8 or planes.ndim != 3 or planes.shape[2] % 3:
        raise DataError(f"{path}: expected bytes of shape (height, width, 3 n), got {planes.shape}")
    height, width, _ = planes.shape
    frames = planes.reshape(height, width, -1, 3).transpose(2, 0, 1, 3)
    return grey(frames), np.arange(1, len(frames) + 1)
