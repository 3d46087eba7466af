"""Outputs appear whole or not at all, and a refusal of the operating system is one clear line."""

import errno
import json
import re
import sys

import pytest

from replifed.errors import ReplifedError
from replifed.store import atomic
from replifed.store.atomic import replacing, write_json, write_text


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    write_text(path, "old\n")
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_text("half of the ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old\n"
    assert [one.name for one in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "read-only"), (errno.EACCES, "permission denied")],
)
def test_a_full_or_read_only_folder_is_named(tmp_path, code, said):
    path = tmp_path / "deep" / "out.txt"
    with pytest.raises(ReplifedError, match=said) as caught, replacing(path):
        raise OSError(code, "refused")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not path.exists() and not list(path.parent.iterdir())


def test_a_read_only_file_system_is_noticed_before_anything_is_written(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, "refused")

    monkeypatch.setattr(atomic.tempfile, "mkstemp", refuse)
    with pytest.raises(ReplifedError, match="read-only"):
        write_text(tmp_path / "out.txt", "new")


@pytest.mark.parametrize("below", ["", "deep/er"])
def test_what_is_in_the_way_of_a_folder_is_named(tmp_path, below):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("")
    link.symlink_to(tmp_path / "gone" / "disk")
    with pytest.raises(ReplifedError, match=re.escape(f": {file} is a file, not a folder")):
        write_text(file / below / "out.txt", "new")
    with pytest.raises(ReplifedError, match=re.escape(f": {link} is a link to {tmp_path}/gone/disk, which")):
        write_text(link / below / "out.txt", "new")


def test_any_other_refusal_is_told_in_the_words_of_the_system(tmp_path):
    too_long = tmp_path / ("x" * 300) / "out.txt"
    with pytest.raises(ReplifedError, match=f"cannot make the folder {too_long.parent}: .*too long"):
        write_text(too_long, "new")
    with pytest.raises(ReplifedError, match=f"cannot write {tmp_path}: it is a folder"):
        write_text(tmp_path, "new")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_a_folder_that_cannot_be_made_is_named():
    with pytest.raises(ReplifedError, match=r"cannot make the folder /proc/foo: .*No such file or directory"):
        write_text("/proc/foo/out.txt", "new")


def test_an_error_that_is_not_the_systems_passes(tmp_path):
    class OwnError(OSError):
        pass

    with pytest.raises(OwnError), replacing(tmp_path / "out.txt"):
        raise OwnError("a library's own")


def test_json_is_sorted_and_refuses_nan(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5]})
    assert (tmp_path / "a.json").read_text() == '{\n  "a": [\n    1.5\n  ],\n  "b": 1\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text())["b"] == 1
