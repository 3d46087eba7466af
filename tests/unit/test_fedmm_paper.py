"""What the FedMM paper's layer makes of small runs: histories, figures, tables, claims and errata."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from replifed import settings as config
from replifed.claims.errata import measure as measure_errata
from replifed.claims.verdicts import measure
from replifed.data.catalogue import get
from replifed.data.surrogates import generate
from replifed.data.table import Table
from replifed.figures.style import save
from replifed.network.ledger import Cost
from replifed.papers.fedmm import experiments
from replifed.papers.fedmm.claims import CLAIMS
from replifed.papers.fedmm.errata import ERRATA
from replifed.papers.fedmm.figures import FIGURES
from replifed.papers.fedmm.problems import dictionary_problem, sparse_signals, transport_problems
from replifed.papers.fedmm.tables import TABLES
from replifed.papers.inputs import Inputs
from replifed.randomness import Streams
from replifed.tune import Grid

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
            choice = ()
            if step == "run":
                choice = (self.tuned(experiment, method) if "tuning" in settings else None,)
            self.made[key] = getattr(experiments, step)(method, settings, *choice, table, None)
        return self.made[key]


@pytest.fixture(scope="module")
def made(section):
    return Made(section)


@pytest.mark.parametrize("name", ["fig1", "fig1_common", "fig2", "fig3", "em", "batch", "bits"])
def test_figures_are_drawn_from_their_tables(name, section, made, tmp_path):
    artefact = copy.deepcopy(section["artefacts"][name])
    artefact["runs"] = {key: value for key, value in artefact["runs"].items() if key not in LEFT_OUT}
    settings = {"artefact": artefact, "experiments": section["experiments"]}
    frame = FIGURES[name].table(made, settings)
    numbers = frame.select_dtypes("number")
    assert np.isfinite(numbers.to_numpy()).all()
    save(FIGURES[name].show(frame), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["remark1", "steps"])
def test_tables_are_written(name, section, made):
    artefact = copy.deepcopy(section["artefacts"][name])
    for kind in ("runs", "tuned"):
        if kind in artefact:
            artefact[kind] = {key: value for key, value in artefact[kind].items() if key not in LEFT_OUT}
    frame = TABLES[name].table(made, {"artefact": artefact, "experiments": section["experiments"]})
    assert len(TABLES[name].show(frame)) >= 4


class Where(NamedTuple):
    x: np.ndarray


class Settling:
    """A method whose objective settles at 1 + log(beta / best)^2."""

    needs, partial_participation, stochastic = (), True, False

    def __init__(self, beta, best):
        self.target = np.log(np.asarray(beta) / best)[:, None]

    def init(self, problem, streams):
        return Where(np.full((len(streams), 1), 50.0))

    def round(self, state, problem, ctx):
        return Where(state.x + 0.7 * (self.target - state.x)), Cost(1, 2, 1, 1, 1)

    def observe(self, state):
        return {"server": state.x}


class Bowl:
    n_clients = 4

    def loss(self, x):
        return 1 + x[:, 0] ** 2


@pytest.fixture
def search(monkeypatch):
    """FedMM's search where the best step is known."""

    def searched(best, **more):
        settings = {
            "problem": "dictionary",
            "seed": 1,
            "clients": 4,
            "decay": 0.5,
            "alphas": [0.01],
            "participations": [0.5],
            "batches": [5],
            "bits": [8],
            "tuning": {"replicates": [7, 8, 9, 10], "rounds": 100, "tail": 0.2, "betas": [0.3, 1, 3]} | more,
        }
        settings["tuning"].setdefault("refine", 1)
        monkeypatch.setattr(experiments, "dictionary_problem", lambda *_: Bowl())
        monkeypatch.setattr(experiments, "_algorithm", lambda m, s, c, beta, a: Settling(beta, best))
        return experiments.tune("fedmm", settings, None, None)

    return searched


def assert_inside(found):
    """Whether the best step has others on both sides, or the search says that it met its bound."""
    low, high = min(found["betas"]), max(found["betas"])
    assert found["edge"] == (found["beta"] in (low, high))
    assert low < found["beta"] < high or found["beta"] == found["highest"]


@pytest.mark.parametrize("best", [0.02, 0.3, 1.0, 3.0, 7.0])
def test_the_range_of_steps_grows_until_the_best_lies_inside(search, best):
    found = search(best)
    assert_inside(found)
    assert not found["edge"]
    assert abs(np.log(found["beta"] / best)) < 0.3
    assert not found["chaotic"]
    assert found["trials"]["replicates"] == [7, 8, 9]
    assert found["cost"]["runs"] >= 3 * len(found["betas"])
    assert found["cost"]["bits"] == 3 * found["cost"]["rounds"]


def test_a_step_at_the_bound_is_recorded(search):
    found = search(1e4)
    assert found["beta"] == found["highest"] == 10.0  # the root of 100 rounds
    assert max(found["betas"]) == 10.0
    assert found["edge"]
    assert_inside(found)


def test_a_search_that_does_not_grow_is_found(search, monkeypatch):
    of_steps = Grid.of_steps
    monkeypatch.setattr(Grid, "of_steps", lambda *a, **more: of_steps(*a, **more | {"grow": False}))
    with pytest.raises(AssertionError):
        assert_inside(search(0.02))


def test_where_no_step_is_stable_all_repetitions_choose(search, monkeypatch):
    class Restless(Settling):
        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            return Where(after.x + np.sin(1e12 * after.x)), cost

    monkeypatch.setitem(globals(), "Settling", Restless)
    found = search(1.0)
    assert found["chaotic"]
    assert found["trials"]["replicates"] == [7, 8, 9, 10]


@pytest.mark.parametrize("experiment", ["synthetic_homogeneous", "synthetic_heterogeneous"])
def test_methods_run_at_their_own_step_and_at_fedmms(experiment, made):
    chosen = {method: made.tuned(experiment, method) for method in ("fedmm", "parameter_aggregation")}
    # Each job searches by itself, and must find FedMM's step to the last bit.
    again = {key: value for key, value in chosen["fedmm"].items() if key != "method"}
    assert chosen["parameter_aggregation"]["common"] == again
    leader = chosen["fedmm"]["beta"]
    for method, found in chosen.items():
        assert experiments.tuned_betas(found) == {"own": found["beta"], "common": leader}
        history = made.run(experiment, method)
        assert set(history["beta"]) == {found["beta"], leader}
        assert set(history["replicate"]) == {1, 2}
        assert found["trials"]["replicates"] == [101]


def test_experiments_without_tuning_run_all_their_steps(made):
    assert set(made.run("batch", "fedmm")["beta"]) == {0.3, 1, 3}


def test_the_table_of_searches_shows_what_they_cost(section, made):
    steps = TABLES["steps"]
    tuned = {"synthetic_heterogeneous": ["fedmm", "parameter_aggregation"]}
    frame = steps.table(made, {"artefact": {"tuned": tuned}})
    for method, lines in frame.groupby("method"):
        cost = made.tuned("synthetic_heterogeneous", method)["cost"]
        for key in ("runs", "rounds", "bits"):
            assert set(lines[key]) == {cost[key]}
    shown = steps.show(frame)
    assert {"runs", "rounds", "bits", "best", "stable"} <= set(shown.columns)
    assert shown["β: mean objective"].str.count(r"\*").tolist() == [1, 1]


def test_repetitions_of_transport_draw_their_own_samples(section):
    settings = section["experiments"]["transport_2"]
    table = Table(*generate(get(settings["dataset"])), {})
    one, other, again = transport_problems(settings, table, [1, 101, 1])
    # The true map is one for all, so equal points have equal images.
    np.testing.assert_array_equal(one._images, again._images)
    assert one._sources.shape == other._sources.shape
    for mine, others in ((one._sources, other._sources), (one._targets, other._targets)):
        mine, others = (set(map(tuple, points.reshape(-1, 2))) for points in (mine, others))
        assert not mine & others
    assert 0.9 < one._variance / other._variance < 1.1


@pytest.mark.parametrize("hangs", ["fedmm_ot", "fedadam"])
def test_adversarial_training_that_hangs_on_rounding_tells_no_order(hangs, made):
    """Whichever of the two methods it is, and although one repetition alone has twins."""
    wanted = [claim for claim in CLAIMS if "fig3.d2." in claim.id]
    lower = {"fedmm_ot": 1.0, "fedadam": 2.0}

    class Planted(Made):
        def run(self, experiment, method):
            history = made.run(experiment, method)
            noise = 1 + 0.01 * np.arange(len(history))
            chaotic = (history["replicate"] == 1) & (method == hangs and self.chaos)
            return history.assign(uvp=lower[method] * noise, chaotic=chaotic)

    for chaos, verdict in ((False, "reproduced"), (True, "inconclusive")):
        planted = Planted(made.section)
        planted.chaos = chaos
        assert set(measure(wanted, planted, "tiny")["verdict"]) == {verdict}


def test_transport_runs_beside_twins_say_whether_they_hang_on_rounding(made):
    """Adam divides by the gradient's size, so in single precision they part within a few rounds."""
    history = made.run("transport_2", "fedadam")
    twins = made.section["experiments"]["transport_2"]["twin_replicates"]
    assert set(twins) < set(history["replicate"])
    assert (history["chaotic"] == history["replicate"].isin(twins)).all()


def test_claims_say_what_seeds_share():
    shared = {claim.id: claim.shared for claim in CLAIMS}
    assert {name for name, what in shared.items() if what} == {n for n in shared if "movielens" in n}


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
    assert {*FIGURES, *TABLES} == set(section["artefacts"])
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
