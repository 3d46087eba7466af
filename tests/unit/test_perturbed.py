"""Twins tell runs whose outcome is their own from those whose outcome is that of the last bits."""

from typing import NamedTuple

import numpy as np
import pytest

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fedgradmp import FedGradMP
from replifed.algorithms.fediterht import FedIterHT
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Gradient
from replifed.contract.problems import make
from replifed.engine import perturbed
from replifed.engine.perturbed import move, of_runs, relative_move, simulate_perturbed
from replifed.engine.simulate import simulate
from replifed.network.ledger import Cost
from replifed.network.participation import Participation
from replifed.papers import inputs
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic
from replifed.randomness import Streams


class State(NamedTuple):
    x: np.ndarray


class Logistic4:
    """x <- a x (1 - x): calm for a < 3, chaotic for a = 4."""

    needs = ()
    stochastic = partial_participation = False

    def __init__(self, a):
        self.a = np.asarray(a)[:, None]

    def init(self, problem, streams):
        return State(np.full((len(streams), 1), 0.3))

    def round(self, state, problem, ctx):
        return State(self.a * state.x * (1 - state.x)), Cost(0.0, 0.0)

    def observe(self, state):
        return {"server": state.x}


class Bare:
    n_clients = 1

    def loss(self, x):
        return 1.0 + x[:, 0]


@pytest.mark.parametrize("rounds, told", [(80, True), (8, False)])
def test_a_chaotic_map_is_told_once_it_has_had_the_time(rounds, told):
    values = np.array([0.5, 2.5, 4.0])
    twinned = simulate_perturbed(
        lambda numbers, factors: Logistic4(values[numbers] * np.minimum(factors, 2)),
        Bare(),
        Streams(1, (1, 1, 1)),
        rounds,
    )
    assert twinned.chaotic.tolist() == [False, False, told]
    assert inputs.PERTURBED == perturbed.PERTURBED
    # What twins recorded stands beside the runs.
    kept = twinned.recorded.metrics
    first = np.abs(kept["objective.of_step"] / kept["objective"] - 1)
    assert first[0].max() == 0
    assert (first[-1, 2] > 1e-3) == told
    # The second rises, from 0.3 to 0.6.
    assert twinned.stable.tolist()[:2] == [True, False]
    alone = simulate(Logistic4(values), Bare(), Streams(1, (1, 1, 1)), rounds)
    np.testing.assert_array_equal(twinned.history.metrics["objective"], alone.metrics["objective"])
    np.testing.assert_array_equal(twinned.history.state.x, alone.state.x)


def problem(dtype=float, loss=None):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1, 6, 12, 40)).astype(dtype)
    y = X @ (np.arange(40) < 4).astype(dtype) + 0.1 * rng.standard_normal((1, 6, 12)).astype(dtype)
    return DenseLinearModel(X, np.sign(y) if loss else y, loss or LeastSquares(), l2=0.1 if loss else 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [None, 4])
def test_calm_runs_are_unchanged_beside_their_twins(dtype, batch):
    data, steps = problem(dtype), np.array([0.003, 0.01, 0.03])

    def make(numbers, factors):
        return FedIterHT(step=steps[numbers] * factors, sparsity=5, local_steps=3, batch=batch)

    streams = Streams(7, (4, 4, 4))
    twinned = simulate_perturbed(make, data, streams, 30)
    alone = simulate(make(np.arange(3), np.ones(3)), data, streams, 30)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(
        twinned.history.metrics["objective"], alone.metrics["objective"], rtol=tolerance
    )
    assert twinned.stable.all()
    assert (twinned.difference > 0).all()  # they are twins, not copies
    assert (twinned.difference < 1e-3).all()
    kept = twinned.recorded.metrics
    of_start, of_step = (kept[f"objective.{which}"] / kept["objective"] - 1 for which in perturbed.PERTURBED)
    largest = np.maximum(np.abs(of_start), np.abs(of_step))
    np.testing.assert_allclose(twinned.difference, largest[-6:].max(axis=0), rtol=1e-6)  # in the last fifth


def test_settings_of_a_single_run_are_those_of_its_twins():
    data, streams = problem(np.float64), Streams(7, (4,))
    alone, plain = (FedGradMP(sparsity=tau, local_steps=2) for tau in (np.array([4]), 4))

    def of_step(method):
        return lambda runs, factors: of_runs(method, runs)

    one, other = (simulate_perturbed(of_step(method), data, streams, 5) for method in (alone, plain))
    np.testing.assert_array_equal(one.everything.metrics["objective"], other.everything.metrics["objective"])


def test_states_without_the_servers_model_are_moved_as_a_whole():
    """Fed-PLT keeps the agents' z; the server's model follows from it."""
    data = problem(loss=Logistic())
    twinned = simulate_perturbed(
        lambda numbers, factors: FedPLT(rho=1.0 * factors, solver=Gradient(steps=3)),
        data,
        Streams(7, (4,)),
        12,
    )
    assert 0 < twinned.difference[0] < 1e-6
    assert twinned.stable.all()


def test_a_move_has_its_size_and_keeps_the_support():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 8)) * (np.arange(8) < 5)
    moved = move(x, 1e-3, rng.standard_normal((1, 8)))
    np.testing.assert_allclose(np.linalg.norm(moved - x, axis=1), 1e-3 * np.linalg.norm(x, axis=1))
    np.testing.assert_array_equal(moved != 0, x != 0)
    np.testing.assert_array_equal(move(np.zeros((1, 4)), 1e-3, np.ones((1, 4))), np.zeros((1, 4)))
    assert relative_move(np.dtype("float64")) == 1e-10
    assert relative_move(np.dtype("float32")) == pytest.approx(1.19e-5, rel=1e-2)


def test_runs_that_all_diverge_agree_and_are_not_admissible():
    data, steps = problem(), np.array([1e3])
    twinned = simulate_perturbed(
        lambda numbers, factors: FedIterHT(
            step=steps[numbers] * factors, sparsity=5, local_steps=3, batch=None
        ),
        data,
        Streams(7, (4,)),
        40,
    )
    assert not twinned.chaotic.any()
    assert not twinned.stable.any()


def test_what_twins_say_hangs_on_the_tail_alone():
    values = np.array([0.5, 2.5, 4.0])

    def run(whole):
        return simulate_perturbed(
            lambda numbers, factors: Logistic4(values[numbers] * np.minimum(factors, 2)),
            Bare(),
            Streams(1, (1, 1, 1)),
            80,
            record_before_tail=whole,
            record_every=4,
        )

    every, late = run(True), run(False)
    assert late.history.rounds.tolist() == [0, 68, 72, 76, 80]
    np.testing.assert_array_equal(late.difference, every.difference)
    np.testing.assert_array_equal(late.descends, every.descends)


def test_twins_leave_their_run_after_the_first_round_that_has_clients():
    def later(streams, n_clients):
        active = np.full((1, n_clients), streams.round_ > 1)
        return Participation(active, np.arange(n_clients)[None])

    method, problem = FedAvg(step=0.05, local_steps=2), make("dense", range(4))
    found = simulate_perturbed(method, problem, Streams(0, (1, 2)), 8, cohort=later)
    own, moved = (found.everything.metrics["objective"][:, place::3] for place in (0, 1))
    assert (own[:3] == own[0]).all() and (own[:3] == moved[:3]).all()
    x = found.everything.state.x
    assert (x[0::3] != x[1::3]).any(axis=1).all() and found.stable.all()
