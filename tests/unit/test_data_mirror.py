"""The real files, where a mirror of them is at hand: each passes every check of the catalogue."""

import os
from pathlib import Path

import pytest

from replifed.data.catalogue import CATALOGUE
from replifed.data.fetch import fetch
from replifed.data.parse import parse
from replifed.data.table import load

MIRROR = os.environ.get("REPLIFED_MIRROR", "")

pytestmark = pytest.mark.skipif(
    not Path(MIRROR or "?").is_dir(), reason="REPLIFED_MIRROR names no folder with the real files"
)


@pytest.mark.parametrize(
    "id_",
    [
        "w8a",
        "a9a",
        "phishing",
        "mushrooms",
        "mnist",
        "movielens_1m",
        "mix3to10_8",
        # Millions of numbers, of a form that smaller ones above have.
        pytest.param("news20", marks=pytest.mark.on_demand),
        pytest.param("rcv1_multiclass", marks=pytest.mark.on_demand),
    ],
)
def test_mirror(tmp_path, monkeypatch, id_):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    dataset = CATALOGUE[id_]
    record = fetch(dataset, tmp_path / "raw", mirror=MIRROR)
    if record["kind"] == "surrogate":
        pytest.skip(f"the mirror has no {id_}")
    meta = parse(dataset, tmp_path / "raw", tmp_path / "table.npz")
    form = dataset.form(record["form"])
    counts, sha256 = dataset.expected(form)
    assert meta["content_sha256"] == sha256
    assert counts.nonzeros in (meta["counts"]["nonzeros"], None)
    assert load(tmp_path / "table.npz").X.shape == (counts.rows, counts.features)
