"""Readers of digits by writer and of video clips, on small files of the real formats."""

import gzip
import struct
import tarfile
from fractions import Fraction
from operator import mul

import numpy as np
import pytest

from replifed.data import images
from replifed.data.catalogue import Counts
from replifed.errors import DataError

h5py = pytest.importorskip("h5py")


def read_hdf5(path, **sizes):
    return images.read_writers_hdf5([path], Counts(), **sizes)


def read_idx(*paths, **sizes):
    return images.read_writers_idx(paths, Counts(), **sizes)


def release(path, sizes, seed=0):
    """A file like fed_emnist_digitsonly_train.h5: paper is 1."""
    rng, held = np.random.default_rng(seed), {}
    with h5py.File(path, "w") as file:
        for number, size in enumerate(sizes):
            name = f"f{4000 - number:04d}_{number:02d}"
            pixels = rng.random((size, 28, 28)).astype(np.float32)
            labels = rng.integers(0, 10, size)
            group = file.create_group(f"examples/{name}")
            group["pixels"], group["label"] = pixels, labels.astype(np.int32)
            held[name] = pixels, labels
    return held


@pytest.mark.parametrize("packed", [False, True])
def test_writers_of_the_release_come_in_order_of_their_names(tmp_path, packed):
    path = tmp_path / "fed_emnist_digitsonly_train.h5"
    held = release(path, (5, 3, 6, 4, 7))
    if packed:
        with tarfile.open(tmp_path / "release.tar.bz2", "w:bz2") as archive:
            archive.add(path, "./fed_emnist_digitsonly_train.h5")
        path = tmp_path / "release.tar.bz2"
    X, y = read_hdf5(path, writers=3, digits=4, release=(5, 25))
    names = [name for name in sorted(held) if len(held[name][1]) >= 4][:3]
    assert X.dtype == np.uint8
    np.testing.assert_array_equal(y, np.concatenate([held[name][1][:4] for name in names]))
    ink = 1 - np.concatenate([held[name][0][:4] for name in names]).reshape(12, 784)
    np.testing.assert_allclose(X / 255, ink, atol=0.51 / 255)


def test_faults_of_the_release_are_named(tmp_path):
    path = tmp_path / "few.h5"
    release(path, (5, 3))
    with pytest.raises(DataError, match="only 1 writers have 4 digits; 2 are needed"):
        read_hdf5(path, writers=2, digits=4, release=(2, 8))
    for release_ in ((2, 9), (3, 8)):  # a digit less, or a writer
        with pytest.raises(DataError, match=f"2 writers with 8 digits instead of {release_[0]} writers with"):
            read_hdf5(path, writers=1, digits=4, release=release_)
    (tmp_path / "page.h5").write_text("<html>not found</html>")
    with pytest.raises(DataError, match="not a file of federated EMNIST"):
        read_hdf5(tmp_path / "page.h5")
    with tarfile.open(tmp_path / "other.tar.bz2", "w:bz2") as archive:
        archive.add(tmp_path / "page.h5", "page.h5")
    with pytest.raises(DataError, match=r"holds no fed_emnist_digitsonly_train\.h5"):
        read_hdf5(tmp_path / "other.tar.bz2")
    (tmp_path / "fed_emnist_digitsonly_train.h5").mkdir()
    with tarfile.open(tmp_path / "folder.tar.bz2", "w:bz2") as archive:
        archive.add(tmp_path / "fed_emnist_digitsonly_train.h5", "fed_emnist_digitsonly_train.h5")
    with pytest.raises(DataError, match=r"fed_emnist_digitsonly_train\.h5 is not a file"):
        read_hdf5(tmp_path / "folder.tar.bz2")


def pack(values, code):
    head = struct.pack(f">2xBB{values.ndim}I", code, values.ndim, *values.shape)
    return gzip.compress(head + values.astype(values.dtype.newbyteorder(">")).tobytes())


def test_writers_of_qmnist(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 28, 28)).astype(np.uint8)
    extended = rng.integers(0, 9, (20, 8)).astype(np.int32)
    extended[:, 2] = [7] * 3 + [2, 5] * 6 + [7] * 3 + [1] * 2
    (tmp_path / "images.gz").write_bytes(pack(pixels, 0x08))
    (tmp_path / "labels.gz").write_bytes(pack(extended, 0x0C))
    files = tmp_path / "images.gz", tmp_path / "labels.gz"
    X, y = read_idx(*files, writers=2, digits=5)
    rows = [3, 5, 7, 9, 11, 4, 6, 8, 10, 12]
    np.testing.assert_array_equal(X, pixels.reshape(20, -1)[rows])
    np.testing.assert_array_equal(y, extended[rows, 0])
    (tmp_path / "labels.gz").write_bytes(pack(extended[:19], 0x0C))
    with pytest.raises(DataError, match="not the extended labels"):
        read_idx(*files)


@pytest.mark.parametrize("extra", [0, 7])
def test_all_digits_with_their_writers_and_no_other_labels(tmp_path, extra):
    """QMNIST's test part has more labels than MNIST has test images."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 28, 28)).astype(np.uint8)
    extended = rng.integers(0, 9, (20 + extra, 8)).astype(np.int32)
    (tmp_path / "images.gz").write_bytes(pack(pixels, 0x08))
    (tmp_path / "labels.gz").write_bytes(pack(extended, 0x0C))
    files = [tmp_path / "images.gz", tmp_path / "labels.gz"]
    X, y, writer = images.read_idx_by_writer(files, Counts())
    np.testing.assert_array_equal(X, pixels.reshape(20, -1))
    np.testing.assert_array_equal(y, extended[:20, 0])
    np.testing.assert_array_equal(writer, extended[:20, 2])
    (tmp_path / "labels.gz").write_bytes(pack(extended[:19], 0x0C))
    with pytest.raises(DataError, match="not the extended labels"):
        images.read_idx_by_writer(files, Counts())


@pytest.mark.parametrize("part", ["train", "test"])
def test_both_parts_of_femnist_have_all_samples_with_their_writers(tmp_path, part):
    held = release(tmp_path / f"fed_emnist_{part}.h5", (5, 3, 6))
    with tarfile.open(tmp_path / "fed_emnist.tar.bz2", "w:bz2") as archive:
        archive.add(tmp_path / f"fed_emnist_{part}.h5", f"fed_emnist_{part}.h5")
    path = tmp_path / "fed_emnist.tar.bz2"
    X, y, writer = images.read_femnist([path], Counts(rows=14), part=part, writers=3)
    for name, (pixels, labels) in held.items():
        np.testing.assert_allclose(X[writer == name] / 255, 1 - pixels.reshape(-1, 784), atol=0.51 / 255)
        np.testing.assert_array_equal(y[writer == name], labels)
    with pytest.raises(DataError, match="3 writers with 14 digits instead of 3400 writers with 14 digits"):
        images.read_femnist([path], Counts(rows=14), part=part)


def moving(frames=5, height=32, width=48):
    at = (np.arange(width) + 6 * np.arange(frames)[:, None]) % width
    red = np.broadcast_to((5 * at)[:, None], (frames, height, width))
    return np.stack([red, 255 - red, np.full_like(red, 90)], axis=-1).astype(np.uint8)


def test_frames_of_a_matlab_file(tmp_path):
    from scipy.io import savemat

    frames = moving()
    planes = np.concatenate([frame for frame in frames], axis=-1)
    savemat(tmp_path / "clip.mat", {"dat": planes}, do_compression=True)
    X, y = images.read_mat([tmp_path / "clip.mat"], Counts())
    luma = frames[2] @ np.array([0.2989, 0.5870, 0.1140])
    np.testing.assert_allclose(X[2].reshape(32, 48), luma, atol=0.5)
    assert y.tolist() == [1, 2, 3, 4, 5]
    savemat(tmp_path / "clip.mat", {"other": planes}, do_compression=True)
    with pytest.raises(DataError, match="not a MATLAB file with frames"):
        images.read_mat([tmp_path / "clip.mat"], Counts())


def test_a_damaged_matlab_file_is_named(tmp_path):
    from scipy.io import savemat

    path = tmp_path / "clip.mat"
    savemat(path, {"dat": np.concatenate([*moving(2, 4, 6)], axis=-1)}, do_compression=True)
    whole, content = images.read_mat([path], Counts())[0], path.read_bytes()
    faults = set()
    for k in range(120, len(content)):
        for broken in (content[:k], content[:k] + bytes([content[k] ^ 0x55]) + content[k + 1 :]):
            path.write_bytes(broken)
            try:
                np.testing.assert_array_equal(images.read_mat([path], Counts())[0], whole)
            except DataError as error:
                assert str(path) in str(error) and "\n" not in str(error)
                faults.add(type(error.__cause__).__name__)
    assert {"ValueError", "error"} <= faults


def test_grey_values_are_those_of_exact_arithmetic():
    """Ties above all: a matrix product rounds these as its processor has it."""
    colours = np.stack(np.meshgrid(*3 * [np.arange(0, 256, 10)], indexing="ij"), axis=-1).reshape(-1, 3)
    ties = colours[colours @ [2989, 5870, 1140] % 10_000 == 5000]
    assert len(ties) > 5
    pixels = np.concatenate([ties, np.random.default_rng(0).integers(0, 256, (2000, 3))])
    weights = Fraction(2989, 10_000), Fraction(5870, 10_000), Fraction(1140, 10_000)
    exact = [round(sum(map(mul, weights, pixel), Fraction(0))) for pixel in pixels.tolist()]
    assert images.grey([pixels[None].astype(np.uint8)])[0].tolist() == exact


def test_frames_of_a_video(tmp_path):
    av = pytest.importorskip("av")
    frames = moving(frames=9)
    with av.open(str(tmp_path / "clip.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 48, 32, "yuv420p", 2_000_000
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    X, y = images.read_mp4([tmp_path / "clip.mp4"], Counts())
    assert X.shape == (9, 32 * 48)
    assert y[-1] == 9
    # Compression costs some grey levels, at the edge that moves most of all.
    assert np.median(np.abs(X.astype(float) - images.grey(frames))) < 8
    (tmp_path / "clip.mp4").write_bytes(b"not a video")
    with pytest.raises(DataError, match="no readable video"):
        images.read_mp4([tmp_path / "clip.mp4"], Counts())


def test_a_missing_reader_is_named_with_its_remedy(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"pip install 'replifed\[video\]'"):
        images.read_mp4([tmp_path / "clip.mp4"], Counts())
