"""What the FedMM paper's layer makes of small runs: histories, figures, tables, claims and errata."""

from __future__ import annotations

import copy
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from replifed import config
from replifed.data.archive import Table
from replifed.data.catalogue import get
from replifed.data.surrogates import generate
from replifed.papers.errata import measure as measure_errata
from replifed.papers.fedmm import experiments
from replifed.papers.fedmm.captions import CAPTIONS
from replifed.papers.fedmm.claims import CLAIMS
from replifed.papers.fedmm.errata import ERRATA
from replifed.papers.fedmm.simulations import dictionary_problem, sparse_signals
from replifed.papers.inputs import Inputs
from replifed.papers.verdicts import measure
from replifed.plotting.style import save
from replifed.randomness import Streams

ROOT = Path(__file__).parents[2]
# MovieLens needs its file, and one dimension of transport shows what the others would.
LEFT_OUT = ("movielens", "variates_movielens", "transport_4", "transport_8")
CUT = {
    "dictionary": {"samples": 80, "clients": 4, "features": 6, "atoms": 3, "rounds": 8, "replicates": [1, 2]},
    "em": {"samples": 60, "clients": 3, "batch": 5, "rounds": 8, "replicates": [1, 2]},
    "toy": {},
    "transport": {
        "samples": 60,
        "clients": 3,
        "batch": 8,
        "server_batch": 8,
        "server_steps": 2,
        "start_steps": 5,
        "rounds": 4,
        "record_every": 2,
        "replicates": [1, 2],
    },
}


@pytest.fixture(scope="module")
def section():
    """The paper's settings, cut down; MovieLens left out."""
    whole = copy.deepcopy(config.load(root=ROOT)["fedmm"])
    for settings in whole["experiments"].values():
        settings |= CUT.get(settings["problem"], {})
        settings["seed"] = whole["seed"]
        if settings["problem"] == "dictionary":
            settings |= {
                "record_every": 1,
                "batches": [None if b is None else 5 for b in settings["batches"][-1:]],
            }
        if settings["problem"] == "em":
            settings["record_every"] = 1
        if "tuning" in settings:
            settings["tuning"] = {**settings["tuning"], "replicates": [101], "rounds": 4}
    return whole


class Made(Inputs):
    """Runs made on demand instead of files."""

    def __init__(self, section):
        self.section, self.made, self.settings = section, {}, {"experiments": section["experiments"]}

    def has(self, key):
        return not any(name in key for name in LEFT_OUT)

    def data_kind(self, experiment):
        return "synthetic", ""

    def tuned(self, experiment, method):
        return self._make("tune", experiment, method)

    def run(self, experiment, method):
        return self._make("run", experiment, method)

    def _make(self, step, experiment, method):
        key = step, experiment, method
        if key not in self.made:
            settings, table = self.section["experiments"][experiment], None
            if settings["problem"] == "transport":
                table = Table(*generate(get(settings["dataset"])), {})
            arguments = (method, settings) if step == "tune" else (method, settings, None)
            self.made[key] = getattr(experiments, step)(*arguments, table, None)
        return self.made[key]


@pytest.fixture(scope="module")
def made(section):
    return Made(section)


@pytest.mark.parametrize("name", ["fig1", "fig1_common", "fig2", "fig3", "em", "batch", "bits"])
def test_figures_are_drawn_from_their_tables(name, section, made, tmp_path):
    artefact = copy.deepcopy(section["artefacts"][name])
    artefact["runs"] = {key: value for key, value in artefact["runs"].items() if key not in LEFT_OUT}
    module = import_module(f"replifed.papers.fedmm.{name}")
    settings = {"artefact": artefact, "experiments": section["experiments"]}
    frame = module.table(made, settings)
    numbers = frame.select_dtypes("number")
    assert np.isfinite(numbers.to_numpy()).all()
    save(module.draw(frame), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["remark1", "steps"])
def test_tables_are_written(name, section, made):
    artefact = copy.deepcopy(section["artefacts"][name])
    for kind in ("runs", "tuned"):
        if kind in artefact:
            artefact[kind] = {key: value for key, value in artefact[kind].items() if key not in LEFT_OUT}
    module = import_module(f"replifed.papers.fedmm.{name}")
    frame = module.table(made, {"artefact": artefact, "experiments": section["experiments"]})
    assert len(module.render(frame)) >= 4


def test_the_search_of_transport_steps_leaves_its_curve(made):
    found = made.tuned("transport_search_2", "fedadam")
    scores = [np.inf if score is None else score for score in found["scores"]]
    assert found["step"] == found["steps"][int(np.argmin(scores))]
    assert found["steps"] == sorted(found["steps"])
    # After four rounds no step has helped yet, and which of the smallest is best is rounding's choice.
    assert set(made.section["experiments"]["transport_search_2"]["tuning"]["steps"]["fedadam"]) <= set(
        found["steps"]
    )


def test_claims_are_measured(made):
    frame = measure(CLAIMS, made, "tiny")
    assert len(frame) == len(CLAIMS)
    left_out = frame["note"].str.contains("not measured")
    assert (left_out == frame["id"].str.contains("movielens|fig3.d4|fig3.d8")).all()
    identities = frame[frame["kind"] == "identity"]
    assert (identities["verdict"] == "reproduced").all()


def test_every_artefact_has_its_caption_and_every_claim_its_artefact(section):
    assert set(CAPTIONS) == set(section["artefacts"])
    assert {claim.artefact for claim in CLAIMS} <= set(section["artefacts"])


def test_errata_are_shown():
    assert [row["shown"] for row in measure_errata(ERRATA)] == ["yes"] * len(ERRATA)


def test_synthetic_data_are_as_described(section):
    settings = section["experiments"]["synthetic_heterogeneous"]
    Z = sparse_signals({**settings, "nonzeros": 0.34}, 1)
    assert Z.shape == (80, 6)
    # One code a sample: every sample is a multiple of one of three atoms.
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    assert len(np.unique(np.abs(unit[:, 0]).round(8))) == 3
    unlike = dictionary_problem(settings, [1, 2], None, None)
    alike = dictionary_problem({**settings, "heterogeneous": False}, [1, 2], None, None)
    assert unlike.Z.shape == (2, 4, 20, 6)
    assert alike.Z.shape == (2, 1, 80, 6)
    # The same samples and the same start, so the same objective and the same first surrogate.
    np.testing.assert_allclose(unlike.loss(unlike.theta0), alike.loss(alike.theta0), rtol=1e-12)
    streams = Streams(1, (1, 2))
    np.testing.assert_allclose(unlike.start(streams), alike.start(streams), atol=1e-12)
    means = unlike.Z.mean(axis=2)
    assert means.var(axis=1).sum() > 3 * alike.Z.reshape(2, 4, 20, 6).mean(axis=2).var(axis=1).sum()
