"""A run is refused whose steps were searched on what it reports, by what both records say."""

from pathlib import Path

import pandas as pd
import pytest

from replifed.errors import DataError, ReplifedError
from replifed.papers import jobs
from replifed.settings import checks, fields, load, settings_for, typed
from replifed.store.histories import read_history
from replifed.store.provenance import canonical_json
from replifed.store.tuned import write_tuned


class Experiments:
    """A paper that searches on 101 and 102, whatever its settings say."""

    searched = (101, 102)

    @classmethod
    def tune(cls, method, settings, table, split, progress):
        return {"method": method, "step": 0.1, "trials": {"replicates": list(cls.searched)}}

    @staticmethod
    def run(method, settings, choice, table, split, progress):
        return pd.DataFrame({"replicate": settings.replicates, "round": 0, "objective": 1.0})


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.setattr(jobs, "_part", lambda paper, name: Experiments)
    monkeypatch.setattr(
        checks, "_section_of", lambda paper: fields.Paper[fields.FreeExperiment, fields.Artefact]
    )


def run(folder, replicates):
    settings = {"replicates": replicates}
    jobs.tune("qshed", "one", "qshed", settings, None, None, folder / "tuned.json")
    jobs.run("qshed", "one", "qshed", settings, None, None, folder / "tuned.json", folder / "run.parquet")


def test_other_repetitions_are_reported(paper, tmp_path):
    run(tmp_path, [1, 2])
    assert read_history(tmp_path / "run.parquet")[0]["replicate"].tolist() == [1, 2]


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
