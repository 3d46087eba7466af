"""What numba has compiled is kept on disk; a damaged file is made anew, and never run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from replifed import kernels


def total(x):
    s = 0.0
    for value in x:
        s += value
    return s


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A cache that holds `total`, compiled, and its two files."""
    monkeypatch.setattr(kernels, "_CACHE", tmp_path / "cache")
    kernels._make_cache.cache_clear()
    assert call().cache_misses
    assert call().cache_hits, "nothing was kept"
    yield sorted((tmp_path / "cache").iterdir())
    kernels._make_cache.cache_clear()


def call():
    """Numba's count of what a new process would find, after a call whose result is right."""
    kernel = kernels.compiled(total)
    assert kernel(np.arange(5.0)) == 10
    return kernel.stats


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "flipped": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not compiled code\n"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("which", [0, 1], ids=["code", "index"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_files_are_made_anew(files, which, kind):
    DAMAGE[kind](files[which])
    assert not call().cache_hits, "what is damaged was run"
    assert call().cache_hits, "it was not made anew"


@pytest.mark.parametrize("which", [0, 1], ids=["code", "index"])
def test_a_cache_that_cannot_be_written_stops_nothing(files, which):
    folder(files[which])
    assert not call().cache_hits
    shutil.rmtree(files[which])
    call()
    assert call().cache_hits
