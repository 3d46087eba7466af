"""Plans: the histories that the engine makes of what an experiment yields."""

from operator import attrgetter

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.fedavg import FedAvg
from replifed.engine.perturbed import PERTURBED
from replifed.engine.plans import Planned, execute, run_plan
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return DenseLinearModel(
        rng.normal(size=(1, 3, 10, 4)), rng.normal(size=(1, 3, 10)), loss_named("least_squares")
    )


def planned(problem, **more):
    steps = np.array([0.1, 0.2])
    given = {
        "algorithm": FedAvg(step=steps, local_steps=2),
        "problem": problem,
        "replicates": [4, 4],
        "rounds": 3,
        "labels": {"step": steps},
        "options": {"cohort": FixedSize(2)},
    }
    return Planned(**given | more)


def test_a_history_has_labels_repetitions_and_derived_metrics(problem):
    plan = planned(problem, derived={"half": lambda history: history.metrics["objective"] / 2})
    frame = execute("fedavg", 1, [plan])
    history = simulate(plan.algorithm, problem, Streams(1, (4, 4)), 3, cohort=FixedSize(2))
    wanted = history.frame(method="fedavg", step=[0.1, 0.2], replicate=4)
    pd.testing.assert_frame_equal(frame.drop(columns="half"), wanted)
    np.testing.assert_array_equal(frame["half"], wanted["objective"] / 2)
    np.testing.assert_array_equal(
        run_plan(plan, 1).history.metrics["objective"], history.metrics["objective"]
    )


def test_several_curves_may_be_one_run(problem):
    labels = {"reading": ["own", "common", "printed"], "replicate": 4}
    frame = execute("fedavg", 1, [planned(problem, labels=labels, run_of_curve=[1, 0, 1])])
    curves = {reading: part["objective"].tolist() for reading, part in frame.groupby("reading")}
    assert curves["own"] == curves["printed"] != curves["common"]
    assert list(frame)[:3] == ["method", "reading", "replicate"]  # where the labels have it


def test_runs_are_compared_with_twins_whose_records_may_be_kept(problem):
    labels = {"chaotic": attrgetter("chaotic"), "difference": attrgetter("difference")}
    frames = {
        perturbed: execute("fedavg", 1, [planned(problem, run_labels=labels, perturbed=perturbed)])
        for perturbed in (None, "compared", "recorded")
    }
    alone, compared, recorded = frames.values()
    assert alone["difference"].isna().all() and (compared["difference"] < 1e-6).all()
    assert not compared["chaotic"].any()
    of_perturbed = [f"objective.{twin}" for twin in PERTURBED]
    pd.testing.assert_frame_equal(recorded.drop(columns=of_perturbed), compared)
    np.testing.assert_allclose(recorded[of_perturbed[0]], recorded["objective"], rtol=1e-6)


def test_progress_names_what_the_curves_share_and_the_repetition(problem):
    said = []
    plans = [planned(problem, labels={"K": 2, "variant": "", "step": [0.1, 0.2]}), planned(problem)]
    plans.append(
        planned(problem, algorithm=FedAvg(step=0.1, local_steps=1), replicates=[5], labels={"K": 0.25})
    )
    execute("fedavg", 1, plans, lambda what, done, total: said.append((what, done, total)), total=3)
    begun = [one for one in said if not one[0].endswith("rounds")]
    assert begun == [("K 2", 0, 3), ("", 1, 3), ("K 0.25, replicate 5", 2, 3)]
    assert {("K 2, rounds", 3, 3), ("rounds", 3, 3)} < set(said)
