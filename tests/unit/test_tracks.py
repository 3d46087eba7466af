"""Tracks of a comparison beside the tuned one: searches on other seeds, and theory's parameters."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.registry import METHODS, theory_of, without_theory
from replifed.papers.cross import compare
from replifed.papers.cross.methods import algorithm
from replifed.parts import typed
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.settings import checks, tracks
from replifed.workflow.jobs import Table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def config():
    return checks.load([ROOT / "config/small.yaml"], ROOT)


@pytest.fixture(scope="module")
def a9a(config):
    return config["cross"]["experiments"]["a9a"]


def test_every_method_of_the_comparison_has_a_theory_or_a_reason(a9a):
    for method in a9a["methods"]:
        assert bool(tracks.said([method])[method]) or not without_theory(method)
        assert not (theory_of(method) and without_theory(method))


# What the theorems say, from mu, L and five local steps of ten clients.
SAYS = {
    "fedlin": lambda made, mu, L: made.solver.step == pytest.approx(1 / (6 * 5 * L)),
    "fedpd": lambda made, mu, L: made.eta == pytest.approx((np.sqrt(5) - 1) / (4 * L)),
    "fedplt": lambda made, mu, L: made.rho == pytest.approx(1 / np.sqrt(mu * L)),
    "fedsplit": lambda made, mu, L: made.s == pytest.approx(1 / np.sqrt(mu * L)),
    "scaffnew": lambda made, mu, L: made.step == pytest.approx(1 / L),
    "tamuna": lambda made, mu, L: made.gamma == pytest.approx(2 / (L + mu)),
    "mb_sgd": lambda made, mu, L: made.step == pytest.approx(1 / L),
}


@pytest.mark.parametrize("method", SAYS)
def test_the_parameters_are_those_of_theory(method, a9a):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1, 10, 30, 6))
    y = np.sign(X @ rng.normal(size=6))
    problem = DenseLinearModel(X, y, loss_named("logistic"), weights=np.full((1, 10), 0.1), l2=0.01)
    settings = typed("cross", {"seed": 1, **{k: v for k, v in a9a.items() if k != "tuning"}, "untuned": True})
    made = algorithm(method, np.ones(1), problem, settings)
    assert SAYS[method](made, *problem.common_mu_L())


def test_the_tracks_are_experiments_of_their_own(config):
    asked = {"data": ["a9a"], "against": ["fedavg", "fedlin", "giant"], "studies": 3, "untuned": True}
    checked = checks.validate({**config, "comparison": asked})
    section = checked["compare"]
    assert list(section["experiments"]) == ["a9a", "a9a_study_2", "a9a_study_3", "a9a_untuned"]
    searched = [one["tuning"]["replicates"] for one in section["experiments"].values() if "tuning" in one]
    every = [name for names in searched for name in names]
    assert len(set(every)) == len(every) == 9 and not set(every) & {1, 2}
    assert section["experiments"]["a9a_study_2"]["methods"] == ["fedavg", "fedlin"]
    assert section["experiments"]["a9a_untuned"]["methods"] == ["fedlin"]
    table = Table(checked)
    assert table["run:compare/a9a_untuned/fedlin"].reads.keys() == {"data", "partition"}
    reads = table["table:compare/studies"].reads
    assert "tuned:a9a_study_3/fedavg" in reads and "run:a9a/giant" in reads
    assert not any("study" in key or "untuned" in key for key in table["table:compare/table1"].reads)


@pytest.mark.parametrize(
    ("against", "key", "said"),
    [
        (["fedavg"], "untuned", "of fedavg none has parameters of its paper's theory"),
        (["giant"], "studies", "of giant none has a number to tune"),
    ],
)
def test_a_track_needs_a_method(config, against, key, said):
    asked = {"data": ["a9a"], "against": against, key: 2 if key == "studies" else True}
    with pytest.raises(checks.ConfigError, match=said):
        checks.validate({**config, "comparison": asked})


def run(rate):
    t = np.arange(41)
    runs = [
        pd.DataFrame({"replicate": seed, "round": t, "gap": rate ** (t * (1 + seed / 90))}) for seed in (0, 1)
    ]
    frame = pd.concat(runs, ignore_index=True).assign(diverged=False)
    return frame.assign(**dict.fromkeys(("bits_up", "bits_down", "sample_gradients"), 1.0 * frame["round"]))


RATES = {
    "a9a": {"fedavg": 0.9, "fedlin": 0.5, "giant": 0.2},
    "a9a_study_2": {"fedavg": 0.6, "fedlin": 0.7},
    "a9a_untuned": {"fedlin": 0.95},
}
STEPS = {("a9a", "fedavg"): 1.0, ("a9a", "fedlin"): 3.0, ("a9a_study_2", "fedavg"): 3.0}


def inputs(**options):
    return types.SimpleNamespace(
        methods=lambda experiment: list(RATES[experiment]),
        run=lambda experiment, method: run(RATES[experiment][method]),
        tuned=lambda *pair: {"search": {"step": STEPS.get(pair, 3.0)}},
        options=types.SimpleNamespace(**options),
    )


def test_studies_tell_medians_and_ranges():
    frame = compare.TABLES["studies"].table(inputs(studies={"a9a": ["a9a_study_2"]}))
    assert frame.pivot_table("rank", "study", "method").to_numpy().tolist() == [[2, 1], [1, 2]]
    ((title, shown),) = compare.TABLES["studies"].show(frame).items()
    assert title == "a9a, 2 studies"
    lines = shown.set_index("method")
    assert lines["tuned number, × reference"].to_dict() == {"FedAvg": "2 [1, 3]", "FedLin": "3"}
    assert lines["rank"].to_dict() == {"FedAvg": "1.5 [1, 2]", "FedLin": "1.5 [1, 2]"}


def test_both_ranks_stand_side_by_side():
    said = tracks.said(["fedavg", "fedlin", "giant"])
    frame = compare.TABLES["untuned"].table(inputs(untuned={"a9a": "a9a_untuned"}, said=said))
    ((_, shown),) = compare.TABLES["untuned"].show(frame).items()
    lines = shown.set_index("method")
    assert lines["rank tuned"].to_dict() == {"GIANT": "1", "FedLin": "2", "FedAvg": "3"}
    assert lines["rank untuned"].to_dict() == {"GIANT": "1", "FedLin": "2", "FedAvg": "not run"}
    assert lines.loc["FedAvg", "parameters by theory"].startswith("no theorem")
    assert lines.loc["GIANT", "parameters by theory"] == "no number to tune"
    assert METHODS["fedlin"] and "1 / (6 L K)" in lines.loc["FedLin", "parameters by theory"]
