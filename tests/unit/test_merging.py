"""Comparisons made before: opened from a folder, a zip or an archive, reused by another one, and merged."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.algorithms.registry import METHODS
from replifed.errors import ConfigError, DataError
from replifed.partition.store import Partition, save
from replifed.runs.recorded import open_recorded
from replifed.store.histories import provenance, write_history, write_tuned
from replifed.workflow.merging import merge
from replifed.workflow.reuse import opened, other_settings, other_sources

ROOT = Path(__file__).parents[2]
A9A = yaml.safe_load((ROOT / "config/papers/cross.yaml").read_text("utf-8"))["cross"]["experiments"]["a9a"]
ENGINE = "replifed.papers.cross.experiments"
TIME = "uplink=1Mbps,downlink=1Mbps,latency=1ms,gradient=1us"


def settings(**changes):
    own = {key: value for key, value in A9A.items() if key != "methods"}
    return {"seed": 2026, **own, "replicates": [1, 2, 3], **changes}


def write(folder, method, rate, experiment="a9a", content="data", clients=4, **changes):
    """A run of a comparison in its folder, with its search, and the split."""
    stated, data = (
        settings(**changes),
        {"id": "a9a", "kind": "original", "stamp": "", "content_sha256": content},
    )
    modules = [METHODS[method].split(":")[0] if method in METHODS else "replifed.algorithms.fedavg", ENGINE]
    run = {key: value for key, value in stated.items() if key != "tuning"}
    t = np.arange(31)
    frames = [
        pd.DataFrame({"method": method, "replicate": seed, "round": t, "gap": rate ** (t * (1 + seed / 50))})
        for seed in (1, 2, 3)
    ]
    frame = pd.concat(frames, ignore_index=True).assign(diverged=False, message_bits=4 * 320, samples=40.0)
    for name, each in {"bits_up": 1e3, "bits_down": 1e3, "exchanges": 1, "sample_gradients": 40}.items():
        frame[name] = each * frame["round"]
    file = folder / "results/compare" / experiment / f"{method}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_history(file, frame.assign(hessians=0.0), provenance(modules, run, data))
    found = {"method": method, "search": None, "trials": {"replicates": []}}
    tuned = {
        key: value for key, value in stated.items() if key not in ("rounds", "replicates", "record_every")
    }
    write_tuned(file.with_suffix(".tuned.json"), found, provenance(modules, tuned, data))
    client = np.arange(40, dtype=np.int32) % clients
    meta = {"data": data, "settings": stated["partition"]}
    save(file.parent / "partition.npz", Partition(client, {seed: client for seed in (1, 2, 3)}, meta))
    return folder


@pytest.fixture
def two(tmp_path):
    write(tmp_path / "A", "fedavg", 0.7)
    write(tmp_path / "A", "fedlin", 0.5)
    write(tmp_path / "B", "fedavg", 0.7)
    write(tmp_path / "B", "mine", 0.4)
    return tmp_path


def packed(folder):
    file = folder.with_suffix(".zip")
    with zipfile.ZipFile(file, "w") as archive:
        for one in sorted(folder.rglob("*")):
            archive.write(one, one.relative_to(folder.parent).as_posix())
    return file


def merged(folder, *names, time=None):
    sources = [open_recorded(folder / name) for name in names]
    return merge(sources, folder / "both", time, "replifed merge A B --out both")


def test_two_comparisons_become_one(two):
    """One of them is a zip; a method that is not known here keeps its name; the outcome merges again."""
    packed(two / "B")
    lines = merged(two, "A", "B.zip", time=TIME)
    assert lines == [str(two / "both" / name) for name in ("figures", "report.html")]
    table = pd.read_csv(two / "both/figures/compare/table1.csv")
    assert set(table["method"]) == {"fedavg", "fedlin", "mine"} and "seconds" in set(table["used"])
    best = pd.read_csv(two / "both/figures/compare/best.csv")
    assert set(best.loc[best["used"] == "round", "method"]) == {"mine"}
    assert (two / "both/figures/compare/where.png").is_file()
    assert "replifed merge A B" in (two / "both/report.html").read_text()
    again = open_recorded(two / "both")
    assert list(again.runs()) == [("a9a", "fedavg"), ("a9a", "fedlin"), ("a9a", "mine")]
    before, now = (open_recorded(two / name).run("a9a", "fedavg") for name in ("A", "both"))
    pd.testing.assert_frame_equal(before.frame, now.frame)
    with pytest.raises(ConfigError, match="both exists"):
        merged(two, "A", "B.zip")


FAULTS = {
    "settings": ({"ridge": 0.5}, "A and B both have a9a/fedavg, and its settings differ"),
    "data": ({"content": "others"}, "A and B both have a9a/fedavg, and its data differ"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_run_that_both_have_is_the_same(two, what):
    changes, said = FAULTS[what]
    write(two / "B", "fedavg", 0.7, **changes)
    with pytest.raises(DataError) as error:
        merged(two, "A", "B")
    assert said in str(error.value).replace(f"{two}/", "") and "\n" not in str(error.value)
    assert sorted(file.name for file in two.iterdir()) == ["A", "B"], "nothing half-written"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ridge": 0.5}, "A and C differ on a9a: other settings: ridge"),
        ({"content": "others"}, "A and C are on different data: a9a of fedavg and of mine"),
        ({"clients": 5}, "A and C are on different data, or clients: a9a"),
        ({"experiment": "w8a"}, "A is on a9a, C is on w8a: they have no problem in common"),
        ({"tuning": {"rounds": 3}}, "A and C differ on a9a: other settings: tuning"),
    ],
)
def test_comparisons_of_different_things_are_not_merged(two, changes, said):
    write(two / "C", "mine", 0.4, **changes)
    with pytest.raises(DataError) as error:
        merged(two, "A", "C")
    assert str(error.value).replace(f"{two}/", "") == said
    assert not (two / "both").exists()


def test_what_only_one_has_is_left_out_and_said(two):
    write(two / "A", "fedavg", 0.7, experiment="w8a")
    assert merged(two, "A", "B")[0] == "left out, not in all: w8a"


def test_a_run_is_taken_if_it_would_come_out_the_same(two):
    source = open_recorded(two / "A")
    section = {"seed": 2026, "experiments": {"a9a": settings()}}
    made = source.run("a9a", "fedlin")
    assert other_settings(section, "a9a", "fedlin", source, made) == ""
    assert other_sources("fedlin", made) == ""
    assert other_sources("fedavg", made) == "other sources: replifed.algorithms.fedavg"
    for change, said in {"ridge": 0.5, "rounds": 7, "tuning": {"rounds": 2}}.items():
        changed = {"seed": 2026, "experiments": {"a9a": settings(**{change: said})}}
        assert other_settings(changed, "a9a", "fedlin", source, made) == f"other settings: {change}"


def test_a_place_has_a_digest_and_the_runs_of_one_comparison(two, monkeypatch):
    file = packed(two / "A")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert len([*opened(f"{file}#sha256={digest}", two / "kept").runs()]) == 2
    with pytest.raises(DataError, match=f"its sha256 is {digest}, not {'0' * 64}; nothing of it was read"):
        opened(f"{file}#sha256={'0' * 64}", two / "kept")
    with pytest.raises(ConfigError, match=r"add its digest, https://example\.org/a\.zip#sha256="):
        opened("https://example.org/a.zip", two / "kept")
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    with pytest.raises(DataError, match="cannot be had: REPLIFED_OFFLINE is set"):
        opened(f"https://example.org/a.zip#sha256={digest}", two / "kept")
    assert not [*(two / "kept").glob("*.zip")]
    with pytest.raises(DataError, match="holds several runs; name one of its folders"):
        open_recorded(two)
    with pytest.raises(DataError, match="holds no runs of a comparison"):
        open_recorded(two / "kept")
