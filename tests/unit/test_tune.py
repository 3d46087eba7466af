"""Step-size search: grown at its edges, refined, blind to what diverges, and the same one by one."""

import numpy as np
import pytest

from replifed.algorithms.fediterht import FedIterHT
from replifed.errors import ReplifedError
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams
from replifed.simulate import simulate
from replifed.tune import search, tune_step, tune_steps


def bowl(best, limit=np.inf, calls=None):
    """A score with its minimum at the step `best`, infinite above `limit`."""

    def score(steps):
        if calls is not None:
            calls.append(steps.tolist())
        return np.where(steps > limit, np.inf, np.log(steps / best) ** 2)

    return score


@pytest.mark.parametrize("best", [3e-5, 0.02, 0.1, 0.7, 400.0])
def test_search_finds_the_minimum_inside_and_beyond_both_edges(best):
    coarse = search(bowl(best), [1, 0.1, 0.01], refine=0)
    fine = search(bowl(best), [1, 0.1, 0.01], refine=3)
    # Spacing 10; three halvings of the log-distance leave a factor 10^(1/8), the best point within half.
    assert abs(np.log10(coarse.best / best)) <= 0.5
    assert abs(np.log10(fine.best / best)) <= 0.5 / 8 + 1e-3
    for found in (coarse, fine):
        assert list(found.steps) == sorted(set(found.steps))
        np.testing.assert_array_equal(found.scores, bowl(best)(np.array(found.steps)))
        assert found.best == found.steps[int(np.argmin(found.scores))]
        assert {1, 0.1, 0.01} <= set(found.steps)
    # The best point has neighbours on both sides that are worse.
    assert 0 < coarse.steps.index(coarse.best) < len(coarse.steps) - 1


def test_a_grid_that_brackets_its_best_point_is_not_grown():
    calls = []
    found = search(bowl(0.1, calls=calls), [1, 0.1, 0.01], refine=1)
    assert calls[0] == [0.01, 0.1, 1]
    # Refined on both sides by the geometric means, rounded to four digits; nothing is tried twice.
    assert calls[1:] == [[0.03162, 0.3162]]
    assert found.best == 0.1


def test_steps_that_diverge_are_no_obstacle():
    # The best step that does not diverge is next to the wall.
    found = search(bowl(10.0, limit=0.5), [10, 1, 0.1], refine=4)
    assert 0.4 < found.best <= 0.5
    assert np.isinf(found.scores[-1])
    # The whole grid diverges: it is extended downwards until something does not.
    found = search(bowl(1e-4, limit=1e-3), [10, 1, 0.1], refine=0)
    assert found.best == pytest.approx(1e-4)


def test_one_step_alone_is_a_grid():
    assert search(bowl(0.25), [1.0], refine=0).best == 0.25


def test_failure_is_one_line():
    with pytest.raises(ReplifedError, match=r"^every step from 1e-\d+ to 1 diverged$") as failure:
        search(lambda steps: np.full(len(steps), np.inf), [1, 0.1], refine=2)
    assert "\n" not in str(failure.value)


def problems():
    rng = np.random.default_rng(5)
    for replicate in (101, 102):
        X, y = rng.standard_normal((1, 4, 10, 30)), rng.standard_normal((1, 4, 10))
        yield replicate, DenseLinearModel(X, y, LeastSquares())


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
    together = tune_step(make, data, 9, rounds, steps, refine=2, tail=tail)
    alone = search(one_by_one, steps, refine=2)
    assert together.steps == alone.steps
    assert together.best == alone.best
    start = np.mean([problem.loss(np.zeros((1, 30))) for _, problem in data])
    for one, other in zip(together.scores, alone.scores, strict=True):
        # Those that rise are given up, wherever they are then.
        assert one == pytest.approx(other, rel=1e-10) or min(one, other) > 2 * start
    assert np.isinf(together.scores[-1])
    assert np.isfinite(together.scores[0])


def test_a_lucky_last_round_does_not_win():
    """With the longest step the models leap about, and to the solution in the last round."""
    [(name, problem)] = list(problems())[:1]
    solution = np.linalg.lstsq(problem.X.reshape(-1, 30), problem.y.ravel())[0]

    class Leaping(FedIterHT):
        def round(self, state, problem, ctx):
            after, cost = super().round(state, problem, ctx)
            leaps = np.ravel(self.step)[:, None] > 0.5
            return after._replace(x=np.where(leaps, solution if ctx.t == 19 else 0.1, after.x)), cost

    def make(steps):
        return Leaping(step=steps, sparsity=8, local_steps=1, batch=None)

    lucky, mean = (
        tune_step(make, [(name, problem)], 9, 20, [1, 0.1, 0.01], refine=0, tail=tail) for tail in (0.0, 0.2)
    )
    assert lucky.best >= 1
    assert mean.best < 1


def test_searches_of_several_numbers_of_local_steps_are_those_of_each_one():
    data = list(problems())

    def make(K, steps):
        return FedIterHT(step=steps, sparsity=8, local_steps=K, batch=5)

    counts, steps = [1, 60, 2], [1, 0.1, 0.01]
    together = tune_steps(make, counts, data, 9, 8, steps, refine=2, tail=0.3)
    for K, found in zip(counts, together, strict=True):
        alone = tune_step(lambda step, K=K: make(K, step), data, 9, 8, steps, refine=2, tail=0.3)
        assert found.steps == alone.steps
        assert found.best == alone.best
        np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-10)
    # They need not ask for the same number of steps.
    assert len({len(found.steps) for found in together}) > 1


def test_steps_that_rise_twice_in_a_row_are_given_up():
    """Their score is what they had come to; the others' are as without them."""
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
    found = tune_step(make, [(name, problem)], 9, 30, steps, refine=0, tail=0.2)
    last = {step: max(rounds) + 1 for step, rounds in rounds_of.items()}
    assert [last[step] for step in steps] == [30, 30, 30, 4, 12, 30]
    for step, value in ((0.5, 12.0), (0.6, 20.0)):
        expected = problem.loss(np.full((1, 30), value))[0]
        assert found.scores[found.steps.index(step)] == pytest.approx(expected)
    alone = tune_step(make, [(name, problem)], 9, 30, [0.01, 0.02, 0.1, 0.7], refine=0, tail=0.2)
    both = [step for step in alone.steps if step in found.steps]
    assert len(both) >= 4
    for step in both:
        expected = alone.scores[alone.steps.index(step)]
        assert found.scores[found.steps.index(step)] == pytest.approx(expected)
