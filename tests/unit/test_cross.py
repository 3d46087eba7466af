"""The comparison of all methods: each can be set up, and the table says what each used."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.network.fading import Constant
from replifed.papers.cross import table1
from replifed.papers.cross.experiments import _gap, _moduli
from replifed.papers.cross.families import FIRST_ORDER, SECOND_ORDER
from replifed.papers.cross.methods import algorithm
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams
from replifed.simulate import simulate

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
SETTINGS = CONFIG["experiments"]["a9a"]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1, 4, 30, 6))
    y = np.sign(X @ rng.normal(size=6) + rng.normal(size=(1, 4, 30)))
    return DenseLinearModel(X, y, loss_named("logistic"), weights=np.full((1, 4), 0.25), l2=0.01)


@pytest.mark.parametrize("method", SETTINGS["methods"])
def test_every_method_closes_most_of_the_gap(problem, method):
    least = problem.loss(minimiser(problem, 1))
    start = problem.loss(np.zeros((1, problem.dim))) - least
    made = algorithm(method, np.array([0.5]), _moduli(problem), SETTINGS, problem.dim)
    metrics = {"gap": _gap(least, start)}
    history = simulate(
        made, problem, Streams(0, (1,)), 60, metrics=metrics, channel=Constant(SETTINGS["bits"])
    )
    gap = history.metrics["gap"][:, 0]
    assert gap[0] == pytest.approx(1.0)
    assert gap[-1] < 0.6  # sparse models keep half of the coordinates
    assert (np.diff(history.ledger["bits_up"][:, 0]) >= 0).all()


def test_every_method_has_a_line():
    assert set(SETTINGS["methods"]) == {*FIRST_ORDER, *SECOND_ORDER}


def test_the_table_counts_to_the_first_round_at_the_target(tmp_path):
    rounds = np.arange(4)
    one = pd.DataFrame({"round": rounds, "gap": [1, 1e-2, 1e-5, 1e-3]})
    one = one.assign(bits_up=10.0 * rounds, bits_down=rounds, sample_gradients=5.0 * rounds)
    history = pd.concat([one.assign(replicate=1), one.assign(replicate=2, gap=1.0)])
    used = table1.reached(history)
    assert used.loc[1].tolist() == [2, 22, 10]
    assert used.loc[2].isna().all()

    class Inputs:
        def experiments(self):
            return ["a9a"]

        def methods(self, experiment):
            return ["fedlin", "newton"]

        def run(self, experiment, method):
            return history if method == "newton" else history[history["replicate"] == 1]

    table1.table(Inputs(), {}).to_csv(tmp_path / "t.csv", index=False)
    shown = table1.render(pd.read_csv(tmp_path / "t.csv", keep_default_na=False, na_values=["nan"]))
    assert shown.set_index("method")["a9a: bits"].to_dict() == {
        "FedLin": "22 [22, 22]",
        "distributed Newton": "not reached (1 of 2)",
    }
