"""Trials of steps: dropped early or run one by one they select the same, and their cost is what they ran."""

from dataclasses import replace

import numpy as np
import pytest

from replifed.algorithms.fediterht import FedIterHT
from replifed.engine.search import Grid, Search, search
from replifed.engine.simulate import simulate
from replifed.engine.trials import Check, Standing, Trials, best_printed, tune_step
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams


def problems():
    rng = np.random.default_rng(5)
    for replicate in (101, 102):
        X, y = rng.standard_normal((1, 4, 10, 30)), rng.standard_normal((1, 4, 10))
        yield replicate, DenseLinearModel(X, y, LeastSquares())


def trials_on(data, rounds, tail=0.0, check=None, **more):
    """Trials on pairs of a replicate and its problem; steps need not be stable."""
    data = dict(data)
    return Trials(list(data), data.__getitem__, 9, rounds, tail, check=check, **more)


@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize(
    "rounds, tail, scored", [(3, 0.0, [3]), (20, 0.0, [20]), (20, 0.2, [17, 18, 19, 20]), (3, 1.0, [1, 2, 3])]
)
def test_a_batched_search_is_a_search_run_by_run(batch, rounds, tail, scored):
    data = list(problems())

    def make(steps):
        return FedIterHT(step=steps, sparsity=8, local_steps=3, batch=batch)

    def one_by_one(steps):
        scores = []
        for step in steps:
            runs = [simulate(make(step), problem, Streams(9, (name,)), rounds) for name, problem in data]
            scores.append(np.mean([run.metrics["objective"][scored, 0] for run in runs]))
        return np.array(scores)

    steps = [10, 1, 0.1, 0.01]
    together = tune_step(make, trials_on(data, rounds, tail), Grid.of_steps(steps, 2))
    alone = search(one_by_one, Grid.of_steps(steps, 2))
    assert together.steps == alone.steps
    assert together.best == alone.best
    start = np.mean([problem.loss(np.zeros((1, 30))) for _, problem in data])
    given_up = 0
    for one, other in zip(together.scores, alone.scores, strict=True):
        # Those that rise are given up, wherever they are then.
        if one == pytest.approx(other, rel=1e-10) or min(one, other) > 2 * start:
            continue
        # Those behind on the first data set are dropped there; none of them would have been the best.
        assert min(one, other) > together.score
        given_up += 1
    assert given_up <= 2 * len(together.steps) / 3
    assert np.isinf(together.scores[-1])
    assert np.isfinite(together.scores[0])


def test_a_step_that_is_given_up_does_not_win_where_the_first_data_set_is_the_easiest():
    (first, easy), (other, hard) = problems()
    easy = DenseLinearModel(easy.X, 0.1 * easy.y, LeastSquares())
    data = [(first, easy), (other, hard)]

    def make(steps):
        return FedIterHT(step=steps, sparsity=8, local_steps=3, batch=None)

    trials = trials_on(data, 20)
    steps = np.array([0.1, 1e-3])
    scores, _ = trials.scores(make(steps), np.zeros(2, int))
    ends = [simulate(make(steps[0]), problem, Streams(9, (name,)), 20) for name, problem in data]
    assert scores[0] == pytest.approx(np.mean([run.metrics["objective"][-1, 0] for run in ends]), rel=1e-10)
    assert trials.spent.runs == 3  # the short step was not tried on the second
    assert scores[1] > scores[0]


def test_a_lucky_last_round_does_not_win():
    """With the longest step the models leap about, and to the solution when ranked and at the end."""
    [(name, problem)] = list(problems())[:1]
    solution = np.linalg.lstsq(problem.X.reshape(-1, 30), problem.y.ravel())[0]

    class Leaping(FedIterHT):
        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            leaps = np.ravel(self.step)[:, None] > 0.5
            return after._replace(x=np.where(leaps, solution if ctx.t in (6, 19) else 0.1, after.x)), cost

    def make(steps):
        return Leaping(step=steps, sparsity=8, local_steps=1, batch=None)

    lucky, mean = (
        tune_step(make, trials_on([(name, problem)], 20, tail), Grid.of_steps([1, 0.1, 0.01], 0))
        for tail in (0.0, 0.2)
    )
    assert lucky.step >= 1
    assert mean.step < 1


def test_steps_that_rise_twice_in_a_row_are_given_up():
    """Their score is what they had come to; the others' are as without them. None is dropped for its rank."""
    [(name, problem)] = list(problems())[:1]
    rounds_of = {}

    class Rising(FedIterHT):
        """With the step 0.5 the objective is high from the first round on, with 0.6 from the second on."""

        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            x = after.x.copy()
            for row, step in enumerate(np.ravel(self.step)):
                rounds_of.setdefault(step, []).append(ctx.t)
                if step == 0.5 or (step == 0.6 and ctx.t > 1):
                    x[row] = 9.0 + ctx.t
                elif step == 0.7 and ctx.t == 3:
                    x[row] = 9.0
            return after._replace(x=x), cost

    def make(steps):
        return Rising(step=steps, sparsity=8, local_steps=1, batch=None)

    steps = [0.01, 0.02, 0.1, 0.5, 0.6, 0.7]
    runs = np.zeros(len(steps), int)
    scores, estimated = trials_on([(name, problem)], 30, 0.2).scores(make(np.array(steps)), runs)
    last = {step: max(rounds) + 1 for step, rounds in rounds_of.items()}
    assert [last[step] for step in steps] == [30, 30, 30, 4, 12, 30]
    assert not estimated.any()
    for step, value in ((0.5, 12.0), (0.6, 20.0)):
        assert scores[steps.index(step)] == pytest.approx(problem.loss(np.full((1, 30), value))[0])
    others = [0, 1, 2, 5]
    alone, _ = trials_on([(name, problem)], 30, 0.2).scores(make(np.array(steps)[others]), runs[others])
    np.testing.assert_allclose(scores[others], alone)


def test_the_better_half_of_what_a_search_has_tried_goes_on_and_nothing_dropped_can_win():
    rounds_of = {}

    class Told(FedIterHT):
        """The objective is the step; with steps above 1 it is low at first, and high from round 8 on."""

        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            x = np.zeros_like(after.x)
            for row, step in enumerate(np.ravel(self.step)):
                rounds_of.setdefault(step, []).append(ctx.t + 1)
                x[row, 0] = np.sqrt(step if step < 1 else 0.01 if ctx.t < 7 else 3.0)
            return after._replace(x=x), cost

    class Square(DenseLinearModel):
        def loss(self, x):
            return np.where(x[:, 0] == 0, 5.0, x[:, 0] ** 2)

    [(name, other)] = list(problems())[:1]
    problem = Square(other.X, other.y, LeastSquares())
    trials, standing = trials_on([(name, problem)], 15), Standing()

    def scores_of(steps, searches):
        made = Told(step=np.array(steps), sparsity=8, local_steps=1, batch=None)
        return trials.scores(made, np.array(searches), standing)

    def ends():
        return {step: max(rounds) for step, rounds in rounds_of.items()}

    scores, estimated = scores_of([0.1, 0.2, 0.3, 0.4, 0.25, 0.5], [0, 0, 0, 0, 0, 1])
    assert ends() == {
        0.1: 15,
        0.2: 15,
        0.3: 5,
        0.4: 5,
        0.25: 15,
        0.5: 15,
    }  # a search is ranked by its own runs
    assert estimated.tolist() == [False, False, True, True, False, False]
    np.testing.assert_allclose(scores, [0.1, 0.2, 0.3, 0.4, 0.25, 0.5], rtol=1e-6)
    # Ranked among those before; where what was kept ends higher, the others are run to the end, too.
    assert scores_of([0.15, 0.05], [0, 0])[1].tolist() == [False, False]
    scores, estimated = scores_of([2.0, 3.0, 0.6, 0.7, 4.0], [2] * 5)
    assert ends()[0.6] == ends()[0.7] == 15
    assert not estimated.any()
    assert scores.argmin() == 2


def test_where_nothing_is_admissible_the_best_mean_over_more_data_sets_is_taken_and_marked():
    (first, one), (second, other) = problems()

    class Restless(FedIterHT):
        """Its objective depends on the last bits; 0.1 is best on the first data set, 0.05 on the other."""

        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            step = np.ravel(self.step)[:, None]
            lucky = (0.1 if problem is one else 0.05) * np.ones_like(step)
            size = 1 + np.abs(np.log(step / lucky)) + 0.3 * np.modf(1e10 * np.abs(after.x).sum(1))[0][:, None]
            return after._replace(x=np.where(after.x != 0, size, 0.0)), cost

    def make(steps):
        return Restless(step=steps, sparsity=8, local_steps=1, batch=None)

    data = {first: one, 3: one, 4: one} | dict.fromkeys(range(second, second + 12), other)
    trials, grid = trials_on(data, 6, 0.5, Check()), Grid.of_steps([0.2, 0.1, 0.05, 0.025], 0, grow=False)
    found = tune_step(make, trials, grid)
    assert found.chaotic
    assert found.record()["chaotic"] is True
    assert found.step == 0.05
    # Without the check luck decides.
    assert tune_step(make, replace(trials, check=None), grid).step == 0.1


def test_what_a_search_spends_is_what_its_trials_ran():
    [(name, problem), _] = list(problems())
    ran = []

    class Counted(FedIterHT):
        def round(self, state, problem, ctx):
            ran.append(len(ctx.streams))
            after, cost = super().round(state, problem, ctx)
            bits.append(np.sum(np.broadcast_to(cost.bits_up + cost.bits_down, len(ctx.streams))))
            return after, cost

    bits = []

    def make(steps):
        return Counted(step=steps, sparsity=8, local_steps=1, batch=None)

    trials = trials_on([(name, problem)], 10, 0.2)
    found = tune_step(make, trials, Grid.of_steps([0.1, 0.03, 0.01], 1))
    assert trials.spent.runs == len(found.steps)
    assert trials.spent.rounds == sum(ran)
    assert trials.spent.bits == pytest.approx(sum(bits))
    said = []
    checked = replace(trials, check=Check(), progress=lambda words, *_: said.append(words.split()[0]))
    tune_step(make, checked, Grid.of_steps([0.1, 0.03, 0.01], 1))
    assert trials.spent.rounds == sum(ran) and set(said) == {"searching", "comparing"}


@pytest.mark.parametrize(
    ("rejected", "stable", "asked", "best", "chaotic"),
    [
        ((), {0.04}, [0.04], 0.04, False),
        ((), {0.01}, [0.04, 0.01], 0.01, False),
        ((0.04,), {0.01}, [0.01], 0.01, False),  # what the search has checked is not run again
        ((0.04,), {}, [0.01], 0.04, True),  # none is stable: the best
    ],
)
def test_the_best_printed_step_is_stable_where_one_is(rejected, stable, asked, best, chaotic):
    steps, ran = (0.01, 0.04, 0.1), []
    own = Search((0.1,), tuple((one,) for one in steps), (0.3, 0.2, 0.1), tuple((one,) for one in rejected))

    class Checked:
        def stable(self, made, searches):
            ran.extend(made.tolist())
            return np.isin(made, list(stable))

    found = best_printed(own, [0.01, 0.04], np.array, Checked())
    assert (found.step, found.chaotic, ran) == (best, chaotic, asked)
    assert best_printed(own, [0.01, 0.1], np.array, Checked()).step == 0.1
    assert ran == asked
