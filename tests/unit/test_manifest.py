"""The manifest finds what was changed, lost, or is no manifest."""

import hashlib

import pytest

from replifed import cli
from replifed.errors import DataError
from replifed.manifest import verify, write


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("figures/a.csv", "raw/x/one.bin", "raw/x/two.bin", "raw/x/.partial"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    write(["figures/a.csv", "figures/a.csv"], "manifest.csv", folders=["raw/x", "raw/none"])
    return tmp_path


def test_it_names_every_file_once_by_its_hash(made):
    lines = (made / "manifest.csv").read_text().splitlines()
    assert lines[0] == "sha256,bytes,file"
    assert [line.split(",")[2] for line in lines[1:]] == ["figures/a.csv", "raw/x/one.bin", "raw/x/two.bin"]
    assert lines[1] == f"{hashlib.sha256(b'figures/a.csv').hexdigest()},13,figures/a.csv"
    assert verify("manifest.csv") == (3, [])


def test_changes_and_losses_are_named(made, capsys):
    (made / "figures/a.csv").write_text("figures/b.csv")
    (made / "raw/x/two.bin").unlink()
    assert cli.main(["manifest", "verify", "manifest.csv"]) == 1
    said = capsys.readouterr().out
    assert "figures/a.csv: changed" in said
    assert "raw/x/two.bin: missing" in said
    assert "3 files of manifest.csv checked, 2 faults" in said


def test_what_is_no_manifest_is_refused(made):
    with pytest.raises(DataError, match=r"other\.csv does not exist"):
        verify("other.csv")
    (made / "other.csv").write_text("a,b\n")
    with pytest.raises(DataError, match=r"other\.csv is no manifest"):
        verify("other.csv")
