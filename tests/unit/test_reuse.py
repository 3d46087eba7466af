"""Runs that a comparison takes from the reference: only those that would come out the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from replifed.cli import check
from replifed.runs import opened
from replifed.runs.opened import Run
from replifed.runs.recorded import Recorded
from replifed.settings import checks
from replifed.settings.needs import settings_for
from replifed.store.histories import provenance, write_history
from replifed.workflow import reuse
from replifed.workflow.jobs import Table

ROOT = Path(__file__).parents[2]
MODULES = ["replifed.algorithms.fedlin", "replifed.papers.cross.experiments"]
FILE = Path("results/small/reused/a9a/fedlin.parquet")


@pytest.fixture
def config(tmp_path, monkeypatch):
    config = checks.load([ROOT / "config/small.yaml"], ROOT)
    monkeypatch.chdir(tmp_path)
    compared = {"data": ["a9a"], "against": ["fedlin", "fedavg"]}
    return {**config, "methods": {"mine": "mine.py:Mine"}, "comparison": compared}


def split(files, content=b"clients"):
    for file in map(Path, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return 0


def reference(config, tmp_path, modules=MODULES, kind="original", experiment="a9a", tested=None, **changes):
    """A reference with FedLin's run on an experiment, whose settings are those of a9a."""
    stated = {**settings_for("run", config["cross"], "a9a"), **changes}
    data = {"id": "a9a", "kind": kind, "stamp": ""} | ({} if tested is None else {"test": tested})
    meta = provenance(modules, stated, data)
    write_history(tmp_path / "made.parquet", pd.DataFrame({"round": [0], "gap": [1.0]}), meta)
    digest = hashlib.sha256(b"clients").hexdigest()
    listed = f"sha256,bytes,file\n{digest},7,results/cross/{experiment}/partition.npz\n# sealed\n"
    parts = {
        "manifest.csv": listed.encode,
        f"histories/cross/{experiment}/fedlin.parquet": (tmp_path / "made.parquet").read_bytes,
        f"tuned/cross/{experiment}/fedlin.json": b"{}".strip,
    }
    return Recorded(Run("reference", parts))


def test_what_would_come_out_the_same_is_taken(config, tmp_path):
    found = reuse.reuse(config, reference(config, tmp_path), split)
    assert found == (["a9a/fedlin"], {})
    assert FILE.read_bytes() == (tmp_path / "made.parquet").read_bytes()
    assert FILE.with_suffix(".tuned.json").read_bytes() == b"{}"
    checked = checks.validate(
        {**config, "methods": {}, "comparison": {**config["comparison"], "reused": found.runs}}
    )
    table = Table(checked)
    assert table["comparison_report:"].settings["compare"]["reused"] == found.runs
    reads = table["table:compare/table1"].reads
    assert table.files(reads["run:a9a/fedlin"], reads["tuned:a9a/fedlin"]) == [
        *("results/small/reused/a9a/fedlin.parquet", "results/small/reused/a9a/fedlin.tuned.json")
    ]
    assert table.files(reads["run:a9a/fedavg"]) == ["results/small/cross/a9a/fedavg.parquet"]
    needed = table.needed(["table:compare/table1"])  # and not what no job makes
    assert "run:cross/a9a/fedavg" in needed and not [key for key in needed if "fedlin" in key]
    # `all` computes it.
    made = table.maker("results/small/cross/a9a/fedlin.parquet")
    assert made == "run:cross/a9a/fedlin" and made in table["manifest:"].reads


def test_other_settings_of_a_comparison_are_not_looked_for(config, monkeypatch):
    looked = {}

    def planted(given, reference, make, there):
        looked.update(given["comparison"])
        return reuse.Reused([], {})

    monkeypatch.setattr(reuse, "reuse", planted)
    about = json.dumps({"scale": "small"}).encode
    part = "histories/cross/a9a/fedlin.parquet"
    monkeypatch.setattr(opened, "reference", lambda: Run("reference", {opened.ABOUT: about, part: bytes}))
    asked = {**config, "comparison": {**config["comparison"], "vary": {}}}
    arguments = SimpleNamespace(taken_from=[], reference=True, config=[])
    assert check._taken(asked, arguments, []) == {}
    assert looked == config["comparison"], "that --vary adds is in no reference run"


def test_of_the_reference_the_commit_of_its_comparison_alone_is_named(config, monkeypatch):
    environments = {
        "environment.json": "old",
        "environment/fedac.json": "new",
        "environment/cross.json": "one",
    }
    parts = {
        name: json.dumps({"commit": commit, "date": "today"}).encode for name, commit in environments.items()
    }
    parts[opened.ABOUT] = json.dumps({"scale": "small", "papers": ["cross", "fedac", "fedht"]}).encode
    parts["histories/cross/a9a/fedlin.parquet"] = bytes
    monkeypatch.setattr(opened, "reference", lambda: Run("reference", parts))
    ((_, named, _),) = check._reference(config, SimpleNamespace(reference=True, config=[]))
    assert named == "the reference run, commit one, today, Python unknown, unknown"


REFUSED = {
    "settings": ({"ridge": 0.5}, "other settings: ridge"),
    "sources": ({"modules": MODULES[:1]}, "other sources: replifed.papers.cross.experiments"),
    "surrogates": ({"kind": "surrogate"}, "surrogate data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_not_is_not_and_says_why(config, tmp_path, name):
    changes, why = REFUSED[name]
    assert reuse.reuse(config, reference(config, tmp_path, **changes), split) == ([], {"fedlin": why})
    assert not FILE.exists()


def test_other_clients_take_nothing(config, tmp_path):
    found = reuse.reuse(config, reference(config, tmp_path), lambda files: split(files, b"others"))
    assert found.reasons == {"fedlin": "other data, or other clients"}
    again = {**config, "comparison": {**config["comparison"], "partition": "iid"}}
    assert reuse.reuse(again, reference(config, tmp_path), split) == ([], {}), "a problem of another name"


OFFICIAL = "a9a_test_official"
TEST_SETS = {
    "the same": (hashlib.sha256(b"clients").hexdigest(), [f"{OFFICIAL}/fedlin"], {}),
    "another": (hashlib.sha256(b"others").hexdigest(), [], {"fedlin": "another test set"}),
    "not recorded": (None, [], {"fedlin": "no record of its test set"}),
}


@pytest.mark.parametrize("name", TEST_SETS)
def test_a_run_has_the_accuracy_of_its_own_test_set(config, tmp_path, name):
    digest, runs, reasons = TEST_SETS[name]
    source = reference(config, tmp_path, experiment=OFFICIAL, tested=digest, test="official")
    asked = {**config, "comparison": {**config["comparison"], "test": "official"}}
    assert reuse.reuse(asked, source, split) == (runs, reasons)


def test_data_of_ones_own_are_split_anew(config, tmp_path):
    """What was made of an earlier state of a file says nothing of the present one."""
    own = {"path": "own.csv", "loss": "logistic"}
    asked = {**config, "datasets": {"own": own}, "comparison": {"data": ["own"], "against": ["fedlin"]}}
    split(["results/small/compare/own/partition.npz"])
    source = reference(config, tmp_path, experiment="own")
    found = reuse.reuse(asked, source, lambda files: split(files, b"others"))
    assert found == ([], {"fedlin": "other data, or other clients"})


def test_what_was_made_here_is_kept(config, tmp_path):
    split(["results/small/cross/a9a/fedlin.parquet"])
    assert reuse.reuse(config, reference(config, tmp_path), split) == ([], {})
