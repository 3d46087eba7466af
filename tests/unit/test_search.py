"""The search of steps: extended at its edges, refined, blind to what diverges, several side by side."""

import numpy as np
import pytest

from replifed.engine.search import Budget, Grid, search, search_each, with_margin
from replifed.errors import ReplifedError


def bowl(best, limit=np.inf, calls=None):
    """A score with its minimum at the step `best`, infinite above `limit`."""

    def score(steps):
        if calls is not None:
            calls.append(steps.tolist())
        return np.where(steps > limit, np.inf, np.log(steps / best) ** 2)

    return score


@pytest.mark.parametrize("best", [3e-5, 0.02, 0.1, 0.7, 400.0])
def test_search_finds_the_minimum_inside_and_beyond_both_edges(best):
    coarse = search(bowl(best), Grid.of_steps([1, 0.1, 0.01], 0))
    fine = search(bowl(best), Grid.of_steps([1, 0.1, 0.01], 3))
    # Spacing 10; three halvings of the log-distance leave a factor 10^(1/8), the best point within half.
    assert abs(np.log10(coarse.step / best)) <= 0.5
    assert abs(np.log10(fine.step / best)) <= 0.5 / 8 + 1e-3
    for found in (coarse, fine):
        assert list(found.steps) == sorted(set(found.steps))
        np.testing.assert_array_equal(found.scores, bowl(best)(np.array(found.steps)))
        assert found.step == found.steps[int(np.argmin(found.scores))]
        assert {1, 0.1, 0.01} <= set(found.steps)
    # The best point has neighbours on both sides that are worse.
    assert 0 < coarse.steps.index(coarse.step) < len(coarse.steps) - 1


def test_a_grid_that_brackets_its_best_point_is_not_grown():
    calls = []
    found = search(bowl(0.1, calls=calls), Grid.of_steps([1, 0.1, 0.01], 1))
    assert calls[0] == [0.01, 0.1, 1]
    # Refined on both sides by the geometric means, rounded to four digits; nothing is tried twice.
    assert calls[1:] == [[0.03162, 0.3162]]
    assert found.step == 0.1


def test_steps_that_diverge_are_no_obstacle():
    # The best step that does not diverge is next to the wall.
    found = search(bowl(10.0, limit=0.5), Grid.of_steps([10, 1, 0.1], 4))
    assert 0.4 < found.step <= 0.5
    assert np.isinf(found.scores[-1])
    # The whole grid diverges: it is extended downwards until something does not.
    found = search(bowl(1e-4, limit=1e-3), Grid.of_steps([10, 1, 0.1], 0))
    assert found.step == pytest.approx(1e-4)


def test_one_step_alone_is_a_grid():
    assert search(bowl(0.25), Grid.of_steps([1.0], 0)).step == 0.25


def test_failure_is_one_line():
    with pytest.raises(
        ReplifedError, match=r"^every step from 1e-\d+ to 1 diverged; try smaller ones$"
    ) as failure:
        search(lambda steps: np.full(len(steps), np.inf), Grid.of_steps([1, 0.1], 2))
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("best", "slope"), [((0.7, 1.4), 1), ((40.0, 0.02), 1), ((1e-3, 300.0), 1), ((30.0, 1e-3), 2)]
)
def test_two_parameters_are_searched_inside_and_beyond_the_edges_of_their_grid(best, slope):
    """The valley is oblique: better points lie where both parameters change, or one twice as much."""

    def score(points):
        a, b = np.log(points / best).T
        return (slope * a + b) ** 2 + 0.02 * (a - slope * b) ** 2

    grid = Grid(((1 / 3, 1, 3),) * 2, refine=8, tolerance=1e-4)
    found = search(score, grid)
    assert not found.edge
    assert found.score == min(found.scores) < 2e-3
    assert search(score, Grid(grid.axes, refine=0)).score < 0.1
    flat = search(lambda points: np.ones(len(points)), grid)
    assert flat.best == (1, 1)


def test_a_tolerance_ends_the_halving():
    calls = []
    search(bowl(0.013, calls=calls), Grid.of_steps([1, 0.1, 0.01], 12, tolerance=0.1))
    coarse = len(calls)
    search(bowl(0.013, calls=calls), Grid.of_steps([1, 0.1, 0.01], 12, tolerance=1e-6))
    assert 3 <= coarse <= len(calls) - coarse - 3


def test_a_bound_that_is_met_and_a_grid_that_may_not_grow_are_recorded():
    bounded = search(bowl(50.0), Grid.of_steps([1, 0.1, 0.01], 2, bounds=((1e-3, 20.0),)))
    assert bounded.step == max(bounded.steps) == 20.0
    printed = search(bowl(50.0), Grid.of_steps([1, 0.1, 0.01], 0, grow=False))
    assert (printed.step, printed.steps) == (1, (0.01, 0.1, 1))
    free = search(bowl(50.0), Grid.of_steps([1, 0.1, 0.01], 2))
    assert [bounded.edge, printed.edge, free.edge] == [True, True, False]
    assert bounded.record()["edge"] is True


def test_a_margin_keeps_away_from_the_wall():
    grid = Grid.of_steps([10, 1, 0.1], 2)
    best = search(bowl(10.0, limit=0.5), grid)
    safe = search(bowl(10.0, limit=0.5), grid, choose=with_margin)
    assert safe.step < best.step <= 0.5
    assert best.steps.index(best.step) == safe.steps.index(safe.step) + 1


def test_only_admissible_points_win_and_only_candidates_are_checked():
    checked = []

    def admissible(steps):
        checked.extend(steps)
        return steps < 0.3

    found = search(bowl(1.0), Grid.of_steps([10, 1, 0.1, 0.01], 3), admissible=admissible)
    assert 0.1 < found.step < 0.3
    assert not found.chaotic
    assert set(found.rejected) <= {(step,) for step in checked if step >= 0.3}
    assert 1.0 in {step for (step,) in found.rejected}
    assert 10 not in checked
    # Refined as finely as a search that never had to look elsewhere.
    place = found.steps.index(found.step)
    assert found.steps[place + 1] / found.step <= 10 ** (1 / 8) * 1.02


def test_searches_side_by_side_are_searches_one_by_one():
    centres, limits, asked = [3e-5, 0.1, 0.7], [np.inf, 0.02, 0.3], []

    def score(numbers, steps):
        asked.append(sorted(set(numbers.tolist())))
        return np.log(steps / np.array(centres)[numbers]) ** 2

    def admissible(numbers, steps):
        return steps < np.array(limits)[numbers]

    grid = Grid.of_steps([1, 0.1, 0.01], 2)
    found = search_each(score, [grid] * 3, admissible=admissible)
    assert asked[0] == [0, 1, 2]
    for one, centre, limit in zip(found, centres, limits, strict=True):
        assert one == search(bowl(centre), grid, admissible=lambda steps, limit=limit: steps < limit)
        assert one.step < limit


@pytest.mark.parametrize(("best", "edge"), [(0.5, False), (1e-3, False), (1e9, True)])
def test_points_and_checks_stay_within_the_budget(best, edge):
    spent = [0]

    def score(steps):
        spent[0] += 3 * len(steps)
        return bowl(best)(steps)

    def admissible(steps):
        spent[0] += 9 * len(steps)
        return steps > 0

    budget = Budget(60, lambda: spent[0], point=3, check=9)
    found = search(score, Grid.of_steps([0.1, 0.3, 1, 3, 10], 2), admissible=admissible, budget=budget)
    assert spent[0] <= 60 and (found.edge, found.chaotic) == (edge, False)


def test_a_budget_that_is_spent_on_checks_leaves_the_best_unchecked():
    checked = []
    budget = Budget(9, lambda: 3 + 3 * len(checked), check=3)
    found = search(
        bowl(1.0),
        Grid.of_steps([0.1, 1, 10], 0),
        admissible=lambda steps: checked.extend(steps) or steps < 0,
        budget=budget,
    )
    assert checked == [1.0, 0.1] and (found.step, found.chaotic) == (10, True)
