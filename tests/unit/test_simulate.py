"""The simulator: what it records, how it tells diverged rows apart, and what it asks of methods."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest

from replifed.algorithms.fediterht import FedIterHT
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Gradient
from replifed.engine.simulate import BLOW_UP, objective, simulate
from replifed.errors import ReplifedError
from replifed.network.ledger import Cost
from replifed.network.participation import FixedSize, Independent, Participation
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams


class Scaled(NamedTuple):
    x: np.ndarray


class Scaling:
    """Multiplies each row's one coordinate by a factor a round; a round costs one bit up a row's number."""

    needs = ()
    stochastic = False
    partial_participation = True

    def __init__(self, *factors):
        self.factors = np.array(factors)[:, None]
        self.seen = []

    def init(self, problem, streams):
        return Scaled(np.ones((len(streams), 1)))

    def round(self, state, problem, ctx):
        self.seen.append((ctx.t, ctx.streams.round_, ctx.active))
        return Scaled(state.x * self.factors), Cost(1 + np.arange(len(self.factors)), 5)

    def observe(self, state):
        return {"server": state.x}


class Absolute:
    """F(x) = |x|."""

    n_clients = 6

    @staticmethod
    def loss(x):
        return np.abs(x[:, 0])


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def run(*factors, rounds=7, **more):
    algorithm = Scaling(*factors)
    return simulate(algorithm, Absolute(), Streams(0, (0,) * len(factors)), rounds, **more), algorithm


def test_first_last_and_every_third_round_are_recorded():
    history, algorithm = run(0.5, 2.0, record_every=3)
    assert history.rounds.tolist() == [0, 3, 6, 7]
    assert history.metrics["objective"].tolist() == [[1, 1], [1 / 8, 8], [1 / 64, 64], [1 / 128, 128]]
    assert history.ledger["bits_up"].tolist() == [[0, 0], [3, 6], [6, 12], [7, 14]]
    assert history.ledger["bits_down"].tolist() == [[0, 0], [15, 15], [30, 30], [35, 35]]
    assert not history.diverged.any()
    # Every round runs once, with its own streams and nobody left out.
    assert algorithm.seen == [(t, t, None) for t in range(7)]
    resumed, _ = run(0.5, 2.0, record_every=3, resume=(4, Scaled(np.array([[1 / 16], [16.0]]))))
    assert resumed.rounds.tolist() == [4, 6, 7]
    assert resumed.metrics["objective"].tolist() == [[1 / 16, 16], [1 / 64, 64], [1 / 128, 128]]
    assert run(0.5, rounds=0)[0].rounds.tolist() == [0]


def test_metrics_are_the_callers():
    metrics = {"double": lambda problem, seen: 2 * seen["server"][:, 0], "objective": objective}
    history, _ = run(0.5, 3.0, rounds=2, metrics=metrics)
    assert history.metrics["double"].tolist() == [[2, 2], [1, 6], [0.5, 18]]
    assert list(history.metrics) == ["double", "objective"]


def test_a_metric_that_is_taken_seldom_is_nan_at_other_records():
    seen = []
    metrics = {"cheap": lambda problem, now: now["server"][:, 0], "objective": objective}
    seldom = {"objective": lambda t: seen.append(t) or t % 3 == 0}
    history, _ = run(0.5, 1e5, rounds=7, metrics=metrics, schedule=seldom)
    assert history.metrics["cheap"][:, 0].tolist() == [0.5**t for t in range(8)]
    taken = ~np.isnan(history.metrics["objective"])
    assert (np.flatnonzero(taken[:, 0]).tolist(), set(seen)) == ([0, 3, 6, 7], set(range(1, 7)))
    # Until the objective tells it, nobody knows that a run has diverged.
    assert history.diverged[:, 1].tolist() == [False] * 3 + [True] * 5
    assert history.metrics["objective"][3:, 1][taken[3:, 1]].tolist() == [np.inf] * 3
    lost, _ = run(np.nan, rounds=7, metrics=metrics, schedule=seldom)
    assert np.isnan(lost.metrics["objective"][:, 0]).tolist() == [t not in (0, 3, 6, 7) for t in range(8)]


def test_a_run_that_blows_up_is_infinite_from_then_on_and_costs_nothing_more():
    # 10^5 > 10^4 in round 5, which is the last that row 1 pays for.
    assert BLOW_UP == 1e4
    history, _ = run(0.5, 10.0, rounds=7)
    assert history.diverged[:, 1].tolist() == [False] * 5 + [True] * 3
    assert history.metrics["objective"][:, 1].tolist() == [1, 10, 100, 1000, 10000] + [np.inf] * 3
    assert history.ledger["bits_up"][:, 1].tolist() == [0, 2, 4, 6, 8, 10, 10, 10]
    assert history.metrics["objective"][:, 0].tolist() == [0.5**t for t in range(8)]
    assert history.ledger["bits_up"][-1, 0] == 7
    # A diverged row is parked at zero, and does not count as converged for it.
    assert history.state.x[:, 0].tolist() == [0.5**7, 0]


@pytest.mark.parametrize("factor", [1e200, np.inf, np.nan])
def test_overflow_between_records_is_noticed_without_warnings(factor):
    history, _ = run(factor, 1.0, record_every=4, rounds=8)
    assert history.diverged.tolist() == [[False, False], [True, False], [True, False]]
    assert history.metrics["objective"].tolist() == [[1, 1], [np.inf, 1], [np.inf, 1]]
    # 1e200 overflows in the second round; what is no number from the first round on, in the first.
    assert history.ledger["bits_up"][-1].tolist() == [2 if factor == 1e200 else 1, 16]


@pytest.mark.parametrize("record_every", [1, 2, 3, 4])
def test_a_simulation_whose_runs_are_all_lost_stops_and_fills_its_records(record_every):
    history, algorithm = run(np.nan, 1e200, record_every=record_every, rounds=9)
    # Recorded every round, 1e200 is too much after round 1; else it overflows in round 2.
    assert len(algorithm.seen) == (1 if record_every == 1 else 2)
    expected = [t for t in range(10) if t % record_every == 0 or t == 9]
    assert history.rounds.tolist() == expected
    assert np.all(np.isinf(history.metrics["objective"][1:]))
    assert np.all(history.diverged[1:])
    assert history.ledger["bits_down"].shape == (len(expected), 2)
    assert history.ledger["bits_up"][-1].tolist() == [1, 2 * len(algorithm.seen)]


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("batch", [None, 4])
def test_diverging_neighbours_change_no_run(layout, batch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, 5, 8, 20)), rng.standard_normal((1, 5, 8))
    if layout == "dense":
        problem = DenseLinearModel(X, y, LeastSquares())
    else:
        problem = SparseLinearModel(X.reshape(40, 20), y.ravel(), LeastSquares(), np.repeat(np.arange(5), 8))

    def histories(*steps):
        algorithm = FedIterHT(step=np.array(steps), sparsity=6, local_steps=3, batch=batch)
        return simulate(algorithm, problem, Streams(3, (1,) * len(steps)), 30)

    together = histories(0.01, 1e3, 0.02, 1e120, 5.0)
    assert together.diverged[-1].tolist() == [False, True, False, True, True]
    for row, step in ((0, 0.01), (2, 0.02)):
        alone = histories(step)
        np.testing.assert_allclose(
            together.metrics["objective"][:, row], alone.metrics["objective"][:, 0], rtol=1e-12
        )
        np.testing.assert_allclose(together.state.x[row], alone.state.x[0], atol=1e-12)


def test_cohorts_are_drawn_each_round_from_its_own_streams():
    cohort = Independent(0.5)

    _, algorithm = run(1.0, 1.0, rounds=4, cohort=cohort)
    for t, (_, _, active) in enumerate(algorithm.seen):
        assert np.array_equal(active, cohort(Streams(0, (0, 0)).at(t), 6).active)
    assert len({active.tobytes() for _, _, active in algorithm.seen}) > 1


def test_a_round_that_nobody_attends_costs_nothing():
    def cohort(streams, n_clients):
        # Nobody in the first row's odd rounds.
        active = np.zeros((2, n_clients), dtype=bool)
        active[:, 0] = [streams.round_ % 2 == 0, True]
        return Participation(active, None)

    history, _ = run(1.0, 1.0, rounds=4, cohort=cohort)
    assert history.ledger["bits_up"].tolist() == [[0, 0], [1, 2], [1, 4], [2, 6], [2, 8]]
    for what, once in (("bits_down", 5), ("exchanges", 1)):
        assert history.ledger[what][-1].tolist() == [2 * once, 4 * once]


def test_cohorts_are_refused_where_all_must_take_part():
    problem = DenseLinearModel(np.ones((1, 2, 3, 4)), np.ones((1, 2, 3)), LeastSquares())

    class Whole(FedIterHT):
        partial_participation = False

    algorithm = Whole(step=0.1, sparsity=2, local_steps=1)
    with pytest.raises(ReplifedError, match="Whole is defined for full participation only"):
        simulate(algorithm, problem, Streams(0, (0,)), 2, cohort=FixedSize(1))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"rounds": -1}, "^rounds = -1: must be a whole number in"),
        ({"rounds": 2.5}, "^rounds = 2.5: must be a whole number in"),
        ({"record_every": 0}, "^record_every = 0: must be a whole number in"),
        ({"resume": (1, Scaled(np.ones((3, 1))))}, "^resume: the state must have 2 runs"),
        ({"resume": (99, Scaled(np.ones((2, 1))))}, "^resume from round 99: must be a whole number in"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_arguments_out_of_range_are_refused(given, message):
    with pytest.raises(ReplifedError, match=message):
        run(0.5, 2.0, **given)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("of_solver", [False, True])
def test_settings_have_one_value_or_one_a_run(rows, of_solver):
    problem = DenseLinearModel(np.ones((1, 2, 3, 4)), np.ones((1, 2, 3)), LeastSquares())
    three = np.array([0.1, 0.2, 0.3])
    if of_solver:
        algorithm, name = FedPLT(rho=1.0, solver=Gradient(steps=1, step=three)), "Gradient.step"
    else:
        algorithm, name = FedIterHT(step=three, sparsity=2, local_steps=1), "FedIterHT.step"
    with pytest.raises(
        ReplifedError, match=rf"^{name} has shape \(3,\): must be a number, or {rows}, one a run$"
    ):
        simulate(algorithm, problem, Streams(0, (0,) * rows), 2)


def test_progress_is_told_every_round():
    told = []
    run(1.0, rounds=3, progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_runs_are_taken_by_number_or_by_mask():
    history, _ = run(0.5, 10.0, 0.25, rounds=5)
    again = history.take(np.array([2, 0, 2]))
    assert again.metrics["objective"][5].tolist() == [0.25**5, 0.5**5, 0.25**5]
    assert again.ledger["bits_up"][5].tolist() == [15, 5, 15] and not again.diverged.any()
    left = history.take(~history.diverged[-1])
    assert np.array_equal(left.state.x[:, 0], [0.5**5, 0.25**5])


def test_frame_has_a_line_for_each_run_and_record():
    history, _ = run(0.5, 10.0, rounds=5)
    frame = history.frame(method="scaling", factor=[0.5, 10.0], step=np.array([1, 2]))
    assert list(frame.columns[:4]) == ["method", "factor", "step", "round"]
    assert len(frame) == 12
    last = frame[(frame["factor"] == 10.0) & (frame["round"] == 5)].iloc[0]
    assert (last["method"], last["step"], last["objective"]) == ("scaling", 2, np.inf)
    assert bool(last["diverged"])
    kept = frame[frame["factor"] == 0.5]
    assert kept["objective"].tolist() == [0.5**t for t in range(6)]
    assert kept["bits_up"].tolist() == [0, 1, 2, 3, 4, 5]
