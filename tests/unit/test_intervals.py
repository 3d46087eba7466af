"""Prediction intervals against simulation, and against the formula of one component."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from replifed.intervals import mean_interval, prediction


def test_one_component_is_students_formula():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    one = prediction(values, 2)
    deviation = math.sqrt(values.var(ddof=1) * (1 / 4 + 1 / 2))
    half = stats.t.ppf(0.975, 3) * deviation
    assert one.interval(0.05) == pytest.approx((2.5 - half, 2.5 + half))
    assert one.p_value(2.5 + half) == pytest.approx(0.05)


def test_their_printed_spread_replaces_ours():
    one = prediction(np.array([1.0, 2.0, 3.0]), 9, spread=3.0)
    assert one.deviation == pytest.approx(math.sqrt(1 / 3 + 1.0))


def test_half_a_digit_widens_it():
    values = np.array([1.0, 1.0, 1.0])
    exact = prediction(values, widened=0.005)
    assert exact.interval(0.05) == pytest.approx((0.995, 1.005))
    assert (exact.p_value(1.004), exact.p_value(1.006)) == (1.0, 0.0)


def test_one_repetition_predicts_nothing():
    assert prediction([3.0]).interval(0.05) == (-math.inf, math.inf)


@pytest.mark.parametrize("between, runs", [(0.0, 4), (1.0, 4), (3.0, 2)])
def test_nested_runs_hold_their_level(between, runs):
    """A mean over the paper's runs on one data set of its own lies inside in 95 of 100 cases."""
    rng, m, D, cases = np.random.default_rng(5), 3, 8, 1500
    inside = 0
    for _ in range(cases):
        means = between * rng.standard_normal(D + 1)
        ours = means[:D, None] + rng.standard_normal((D, runs))
        theirs = means[D] + rng.standard_normal(m).mean()
        low, high = prediction(ours.ravel(), m, data_sets=np.repeat(np.arange(D), runs)).interval(0.05)
        inside += low <= theirs <= high
    assert 0.93 <= inside / cases <= 0.975


def test_one_run_a_data_set_is_not_nested():
    values = np.array([1.0, 4.0, 6.0])
    assert prediction(values, 1, data_sets=np.arange(3)) == prediction(values, 1)


def test_a_prediction_is_wider_than_the_interval_of_the_mean():
    values = np.array([1.0, 4.0, 6.0, 2.0])
    _, low, high = mean_interval(values)
    ends = prediction(values, 100).interval(0.05)
    assert ends[0] < low and high < ends[1]
