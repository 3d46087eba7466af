"""Copies of data sets in the package: real data where there is neither mirror nor network."""

import importlib.util
import lzma
import shutil
from pathlib import Path

import pytest

from replifed.data import fetch as fetching
from replifed.data.catalogue import CATALOGUE, PACKAGED, PACKED
from replifed.data.fetch import fetch
from replifed.data.parse import parse
from replifed.errors import DataError

SHIPPED = ["a9a", "a9a_test", "mushrooms", "phishing"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    monkeypatch.delenv("REPLIFED_MIRROR", raising=False)


@pytest.mark.parametrize("id_", SHIPPED)
@pytest.mark.parametrize("policy", ["auto", "real"])
def test_without_mirror_and_network_the_copy_is_the_original(tmp_path, capsys, id_, policy):
    record = fetch(CATALOGUE[id_], tmp_path / "raw", policy=policy)
    assert (record["kind"], record["form"], record["stamp"]) == ("original", PACKAGED, "")
    assert capsys.readouterr().err == ""  # nothing stands in for anything
    if policy == "auto":
        meta = parse(CATALOGUE[id_], tmp_path / "raw", tmp_path / "table.npz")
        assert meta["content_sha256"] == CATALOGUE[id_].content_sha256 is not None


def test_a_surrogate_of_before_gives_way_to_the_copy_but_not_one_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "PACKED", tmp_path)
    assert fetch(CATALOGUE["mushrooms"], tmp_path / "raw")["kind"] == "surrogate"
    monkeypatch.undo()
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    assert fetch(CATALOGUE["mushrooms"], tmp_path / "raw", mirror=tmp_path)["form"] == PACKAGED
    assert fetch(CATALOGUE["mushrooms"], tmp_path / "raw", policy="surrogate")["kind"] == "surrogate"


def test_a_mirror_comes_first(tmp_path):
    with lzma.open(PACKED / "mushrooms.xz") as stream:
        (tmp_path / "mushrooms").write_bytes(stream.read())
    (tmp_path / "mushrooms.xz").write_text("of another release")  # looked at in the package alone
    assert fetch(CATALOGUE["mushrooms"], tmp_path / "raw", mirror=tmp_path)["form"] == "plain"


def test_an_altered_copy_is_named(tmp_path, monkeypatch):
    (tmp_path / "mushrooms.xz").write_bytes(PACKED.joinpath("mushrooms.xz").read_bytes()[:-1])
    monkeypatch.setattr(fetching, "PACKED", tmp_path)
    with pytest.raises(DataError, match=r"mushrooms\.xz is not mushrooms\.xz of mushrooms: its hash is"):
        fetch(CATALOGUE["mushrooms"], tmp_path / "raw")


def test_the_script_packs_the_same_bytes_again(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location(
        "pack_data", Path(__file__).parents[2] / "tools/pack_data.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "CATALOGUE", {"mushrooms": CATALOGUE["mushrooms"]})
    monkeypatch.setattr(tool, "PACKED", tmp_path)
    (tmp_path / "libsvm").mkdir()
    with lzma.open(PACKED / "mushrooms.xz") as packed, (tmp_path / "libsvm/mushrooms").open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    tool.main(tmp_path)
    assert (tmp_path / "mushrooms.xz").read_bytes() == (PACKED / "mushrooms.xz").read_bytes()
    assert CATALOGUE["mushrooms"].form(PACKAGED).files[0].sha256 in capsys.readouterr().out
    (tmp_path / "libsvm/mushrooms").write_text("1 1:1\n0 2:1\n")
    with pytest.raises(DataError, match="not the expected content of mushrooms"):
        tool.main(tmp_path)


def test_every_copy_has_its_licence_and_source():
    text = (PACKED / "README.md").read_text()
    assert "creativecommons.org/licenses/by/4.0" in text
    copies = {path.name for path in PACKED.glob("*.xz")}
    files = {id_: CATALOGUE[id_].form(PACKAGED).files[0].name for id_ in SHIPPED}
    assert copies == {*files.values()}
    for id_, file in files.items():
        assert CATALOGUE[id_].licence.startswith("CC BY 4.0")
        assert f"`{file}`" in text
    assert text.count("https://doi.org/10.24432/") == len(SHIPPED) - 1  # both parts of a9a have one
