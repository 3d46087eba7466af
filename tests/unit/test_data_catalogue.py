"""The records of data sets are complete, consistent and cheap to import."""

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from replifed.data.catalogue import CATALOGUE, _read, get
from replifed.data.fetch import fetch
from replifed.data.parse import PARSERS
from replifed.data.pins import needs_pin
from replifed.data.surrogates import GENERATORS
from replifed.errors import DataError


@pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=lambda d: d.id)
def test_record_is_consistent(dataset):
    names = [form.name for form in dataset.forms]
    assert len(set(names)) == len(names)
    kinds = [form.kind for form in dataset.forms]
    assert kinds == sorted(kinds), "originals come before substitutes"
    assert dataset.surrogate is None or dataset.surrogate["generator"] in GENERATORS
    assert not (dataset.natural and dataset.surrogate), "nothing stands in for natural clients"
    for form in dataset.forms:
        assert form.parser in PARSERS
        assert bool(form.stamp) == (form.kind == "substitute")
        for file in form.files:
            assert Path(file.name).name == file.name
            assert not Path(file.mirror_path).is_absolute()
            # Without encryption only where the bytes are known.
            assert file.has_hash or all(url.startswith("https://") for url in file.urls)
            assert all(url.startswith(("https://", "http://")) for url in file.urls)
        counts, sha256 = dataset.expected(form)
        # Where no hash of the numbers is known, a file must at least have the whole size.
        assert sha256 or None not in (counts.rows, counts.features)
        if form.kind == "substitute":
            assert counts != dataset.counts
            assert sha256 not in (dataset.content_sha256, None)


LINES = b"-1 1:0.5 7:1\n1 3:1\n"
SMALL = {
    ("e2006_train", "plain"): "2 rows instead of 16087",
    ("e2006_test", "plain"): "2 rows instead of 3308",
    ("rcv1_binary", "plain"): "2 rows instead of 20242",
    ("rcv1_multiclass", "plain"): "2 rows instead of 15564",
    ("femnist_digits", "tff_unpacked"): "1 writers with 9 digits instead of 3383 writers with 341873 digits",
    ("femnist", "tff"): "1 writers with 9 digits instead of 3400 writers with 671585 digits",
    ("femnist_test", "tff"): "1 writers with 9 digits instead of 3400 writers with 77483 digits",
    ("xylophone", "mp4"): "2 rows instead of 141",
}


def test_these_originals_need_pins():
    forms = ((data, form) for data in CATALOGUE.values() for form in data.forms)
    needy = {(data.id, form.name) for data, form in forms if needs_pin(data, form)}
    assert needy == set(SMALL) | {(id_, "bz2") for id_, form in SMALL if form == "plain"}


@pytest.mark.parametrize(("id_", "name"), SMALL)
def test_a_small_file_in_place_of_an_original_without_a_hash_is_refused(tmp_path, monkeypatch, id_, name):
    """Policy auto does not fall back on a substitute, either."""
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    [file] = get(id_).form(name).files
    path = tmp_path / "mirror" / file.mirror_path
    path.parent.mkdir(parents=True)
    path.write_bytes(LINES)
    if name == "tff_unpacked":
        with pytest.importorskip("h5py").File(path, "w") as digits:
            digits.create_group("examples/f0000_00")["label"] = np.arange(9)
    elif name == "tff":
        part = tmp_path / f"fed_emnist_{'test' if id_.endswith('test') else 'train'}.h5"
        with pytest.importorskip("h5py").File(part, "w") as digits:
            digits.create_group("examples/f0000_00")["label"] = np.arange(9)
        with tarfile.open(path, "w:bz2") as archive:
            archive.add(part, part.name)
    elif name == "mp4":
        monkeypatch.setitem(PARSERS, "mp4", lambda *_: (np.ones((2, 76800), np.uint8), np.arange(2)))
    with pytest.raises(DataError) as caught:
        fetch(get(id_), tmp_path / "raw", mirror=tmp_path / "mirror")
    assert re.fullmatch(rf"{path}: .*{SMALL[id_, name]}.*", str(caught.value))
    assert not (tmp_path / "pins").exists()


def test_unknown_names_are_explained():
    with pytest.raises(DataError, match="did you mean 'w8a'"):
        get("w8")
    with pytest.raises(DataError, match="unknown form of data set w8a 'zip'"):
        get("w8a").form("zip")


def test_record_with_a_wrong_key_is_named():
    with pytest.raises(DataError, match=r"catalogue\.yaml: toy: .*titel"):
        _read("toy: {titel: Toy, counts: {}, surrogate: {generator: clip}}")
