"""A run is refused whose steps were searched on what it reports, by what both records say."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import planted_paper
from replifed import parts
from replifed.claims import scores, tables
from replifed.claims.reference import accept, new
from replifed.claims.verdicts import COLUMNS
from replifed.data.parse import meta_of
from replifed.data.table import Table, save
from replifed.errors import ConfigError, DataError, ReplifedError
from replifed.papers import jobs
from replifed.parts import typed
from replifed.report import sentences
from replifed.report.score import lines_around
from replifed.settings import fields
from replifed.settings.checks import load
from replifed.settings.needs import settings_for
from replifed.store.histories import read_history, write_tuned
from replifed.store.provenance import canonical_json


class Experiments:
    """A paper that searches on 101 and 102, whatever its settings say."""

    searched = (101, 102)

    @classmethod
    def tune(cls, method, settings, table, split, progress):
        return {"method": method, "step": 0.1, "trials": {"replicates": list(cls.searched)}}

    @staticmethod
    def run(method, settings, choice, table, split, progress, test=None):
        return pd.DataFrame({"replicate": settings.replicates, "round": 0, "objective": 1.0})


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.setattr(jobs, "_part", lambda paper, name: Experiments)
    monkeypatch.setattr(
        parts, "section_of", lambda paper: fields.Paper[fields.FreeExperiment, fields.Artefact]
    )


def run(folder, replicates):
    settings = {"replicates": replicates}
    jobs.tune("qshed", "one", "qshed", settings, None, None, folder / "tuned.json")
    jobs.run("qshed", "one", "qshed", settings, None, None, folder / "tuned.json", folder / "run.parquet")


def test_other_repetitions_are_reported(paper, tmp_path):
    run(tmp_path, [1, 2])
    assert read_history(tmp_path / "run.parquet")[0]["replicate"].tolist() == [1, 2]


def test_a_run_names_the_file_that_it_was_tested_on(paper, tmp_path):
    """By which another comparison tells whether it may take the run."""
    for name, label in (("one", 1), ("other", -1)):
        X, y = csr_matrix(np.eye(2)), np.array([1, label])
        save(
            tmp_path / f"{name}.npz", Table(X, y, meta_of("mine_test", "binary", "csv", "original", "", X, y))
        )
        out, test = tmp_path / f"{name}.parquet", tmp_path / f"{name}.npz"
        jobs.run("qshed", "one", "qshed", {"replicates": [1]}, None, None, None, out, test=test)
        assert read_history(out)[1]["data"]["test"] == hashlib.sha256(test.read_bytes()).hexdigest()
    run(tmp_path, [1, 2])
    assert "test" not in read_history(tmp_path / "run.parquet")[1]["data"]


def test_a_search_on_reported_repetitions_is_refused_by_the_records(paper, tmp_path):
    """Planted: the configuration's check would not see it, since the search ran on others than it says."""
    with pytest.raises(ReplifedError, match=r"tuned\.json: searched on the repetitions .* \(102\)$"):
        run(tmp_path, [1, 102])
    assert not (tmp_path / "run.parquet").exists()


def test_a_search_that_does_not_say_what_it_ran_is_refused(paper, tmp_path):
    meta = {"settings": {}, "data": {"kind": "synthetic", "stamp": ""}}
    write_tuned(tmp_path / "tuned.json", {"method": "qshed", "step": 0.1}, meta)
    with pytest.raises(DataError, match="lacks 'trials'"):
        jobs.run(
            "qshed", "one", "qshed", {"replicates": [1]}, None, None, tmp_path / "tuned.json", tmp_path / "r"
        )


def test_a_job_gets_an_object_with_the_values_that_it_was_given(tmp_path):
    """Also of a part of an experiment: 1 stays 1, what is cut out is no attribute, what is left out None."""
    given = {
        "seed": 7,
        "l2": 1,
        "rounds": 3,
        "stop": 1.0,
        "fading": {"gain": 1, "rate": 2.0},
        "cases": {"a": {"l2": 2}},
    }
    settings = typed("qshed", given)
    assert settings.seed == 7 and settings.split is None
    assert [repr(value) for value in (settings.l2, settings.stop, settings.fading.gain)] == ["1", "1.0", "1"]
    changed = settings.with_(settings.cases["a"], rounds=5)
    assert (changed.l2, changed.rounds, changed.seed, settings.rounds) == (2, 5, 7, 3)
    with pytest.raises(AttributeError):
        settings.replicates  # noqa: B018


class Demo:
    """The planted paper, as a package would have it."""

    def __init__(self):
        self.PAPER = {"name": "Demo", "citation": "By x."}
        made = planted_paper.claims()
        self.CLAIMS, self.SENTENCES = made.all(), made.sentences


@pytest.fixture
def demo(monkeypatch, tmp_path):
    """Papers that are the planted one alone, with a folder of texts."""
    made, folder = Demo(), tmp_path / "demo"
    folder.mkdir()
    (folder / "finding.md").write_text(planted_paper.FINDING)
    (folder / "sentences.yaml").write_text("- {place: Title, says: It is fast., why: a title}\n")
    monkeypatch.setattr(jobs, "_part", lambda paper, name: made)
    monkeypatch.setattr(jobs, "paper_names", lambda: ["demo"])
    monkeypatch.setattr(jobs, "finding_file", lambda paper: folder / "finding.md")
    monkeypatch.setattr(sentences, "import_module", lambda name: made)
    monkeypatch.setattr(sentences, "sentences_file", lambda paper: folder / "sentences.yaml")
    return made


def test_sentences_are_those_above_claims_and_those_of_the_list(demo):
    assert [one.says for one in sentences.of_paper("demo")][:2] == [
        "It is fast.",
        "It is faster than the baseline.",
    ]
    del demo.SENTENCES
    assert [one.says for one in sentences.of_paper("demo")] == ["It is fast."]


def test_a_claim_is_measured_with_those_that_its_test_is_corrected_with(demo):
    def measured_with(name):
        return [one.id.removeprefix("demo.") for one in jobs.claim_and_family("demo", name)]

    assert measured_with("table1.rate.sum-own") == ["table1.rate.sum-own", "table1.held.sum-own"]
    # Of one artefact and choice of settings, which is what ids end in.
    assert measured_with("more.own") == ["faster.own", "fewer.own", "more.own"]
    assert measured_with("stalls") == ["stalls"]
    with pytest.raises(
        ConfigError, match=r"unknown claim of demo 'table1\.rates'; did you mean 'table1\.rate'"
    ):
        measured_with("table1.rates")


def test_pages_pictures_and_score_are_written_from_a_reference(demo, tmp_path):
    tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows())
    accept(tmp_path / "claims.csv", tmp_path / "golden.csv")
    readme, score, ruled, folder = (
        tmp_path / name for name in ("README.md", "score.md", "rules.md", "pages")
    )
    around = {
        what: "{}\n(yesterday)\n{}".format(*lines_around(what)) for what in ("score", "rules", "statuses")
    }
    for file in (readme, score):
        file.write_text(f"# Demo\n{around['score']}\nmore\n")
    ruled.write_text(f"{around['rules']}\n{around['statuses']}\n")
    folder.mkdir()
    (folder / "demo.fig9.svg").write_text("of a main claim that is gone")
    jobs.document(folder, tmp_path / "golden.csv", readme, score, ruled)
    text = (folder / "demo.md").read_text()
    assert text.index("It is **faster**") < text.index("## Main claims") < text.index("Table 1, row 2")
    assert "1 more sentences have no claim" not in text and "1 more sentence has no claim" in text
    shown = {
        f"demo.{name}.svg" for name in ("abstract.faster", "abstract.fewer", "table1.rate", "fig1.other")
    }
    assert {file.name for file in folder.iterdir()} == shown | {"demo.md", "score.svg"}
    line = (
        "**5 main claims: 2 reproduced (2 own runs on synthetic data made as described), "
        "1 conditional (1 fills gaps), 2 deviates**; in the printed settings 2 hold, 3 fail, 0 open, "
        "0 not run."
    )
    assert readme.read_text() == f"# Demo\n{around['score'].replace('(yesterday)', line)}\nmore\n"
    assert "yesterday" not in score.read_text() + ruled.read_text()
    assert (
        "| `demo` | 2 reproduced (2 own" in score.read_text()
        and "| **reproduced** | it " in ruled.read_text()
    )
    before = {file: file.read_bytes() for file in folder.iterdir()}
    jobs.document(folder, tmp_path / "golden.csv", readme, score, ruled)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_claims_that_are_newer_than_the_reference_are_not_run_yet(demo, tmp_path):
    """Those of the reference that are gone are left out; finding and score say so."""
    rows = [row for row in planted_paper.rows() if row["statement_id"] != "demo.abstract.faster"]
    gone = rows[0] | {"id": "demo.gone", "statement_id": "demo.gone", "sentence": "It was."}
    tables.write(tmp_path / "claims.csv", COLUMNS, [*rows, gone])
    accept(tmp_path / "claims.csv", tmp_path / "golden.csv")
    (tmp_path / "demo/finding.md").write_text("It saves {demo.faster.measured:.0f} rounds.")
    files = [tmp_path / name for name in ("README.md", "score.md", "rules.md")]
    for file in files:
        whats = ("rules", "statuses") if file.name == "rules.md" else ("score",)
        file.write_text("".join("{}\n{}\n".format(*lines_around(what)) for what in whats))
    jobs.document(tmp_path / "pages", tmp_path / "golden.csv", *files)
    text = (tmp_path / "pages/demo.md").read_text()
    assert "It saves (not run yet) rounds." in text and "demo.gone" not in text
    assert re.search(r"\*\*not run yet\*\* \(own runs.*\): the reference has not run all its claims", text)
    assert "1 not run yet" in files[0].read_text()
    assert new(tmp_path / "claims.csv", tmp_path / "golden.csv") == []
    tables.write(tmp_path / "more.csv", COLUMNS, planted_paper.rows())
    found = new(tmp_path / "more.csv", tmp_path / "golden.csv")
    assert found[0] == "demo.faster" and {name.split(".")[1] for name in found} == {"faster"}


def test_what_is_collected_has_statements_and_sentences_without_claims(demo, tmp_path):
    tables.write(tmp_path / "demo.csv", COLUMNS, planted_paper.rows())
    out, statements, rest = (tmp_path / f"{name}.csv" for name in ("claims", "statements", "rest"))
    jobs.collect_claims([tmp_path / "demo.csv"], out, statements, rest)
    assert [one["status"] for one in scores.read(statements)][:3] == ["reproduced", "reproduced", "deviates"]
    assert rest.read_text() == "paper,place,statement,why\ndemo,Title,It is fast.,a title\n"


def test_a_paper_without_classes_of_its_own_has_any_attribute():
    settings = fields.Paper[fields.FreeExperiment, fields.Artefact].of_job(
        {"seed": 1, "radius": {"a": [1, 2.0]}}
    )
    assert settings.radius == {"a": [1, 2.0]} and settings.dataset is None and settings.seed == 1


@pytest.mark.parametrize("scale", [[], ["config/small.yaml"]])
def test_every_job_gets_the_values_of_the_configuration(scale):
    root = Path(__file__).parents[2]
    config = load([root / file for file in scale], root)
    for paper in config["papers"]:
        for name, experiment in config[paper]["experiments"].items():
            for step in ["run", *["tune"] * ("tuning" in experiment)]:
                given = settings_for(step, config[paper], name)
                settings = typed(paper, given)
                held = {**settings.plain(), "seed": settings.seed}
                assert {key: canonical_json(held[key]) for key in given} == {
                    key: canonical_json(value) for key, value in given.items()
                }
