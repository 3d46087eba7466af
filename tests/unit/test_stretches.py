"""Selection in stretches is hard thresholding, one stretch after the other."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replifed.operators.hard_threshold import hard_threshold
from replifed.operators.stretches import largest_of_stretches

# Few distinct magnitudes: most draws have ties at the cut, of both signs.
CROWDED = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0])
SPREAD = st.floats(-1e300, 1e300, allow_subnormal=True)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(st.lists(CROWDED, max_size=12), st.lists(SPREAD, max_size=12)), min_size=1, max_size=4
    ),
    st.integers(1, 13),
)
def test_each_stretch_is_thresholded(stretches, tau):
    v = np.array([value for stretch in stretches for value in stretch])
    bounds = np.cumsum([0, *map(len, stretches)])
    before = v.copy()
    chosen = largest_of_stretches(v, bounds, tau)
    assert np.array_equal(v, before)
    assert (np.diff(chosen) > 0).all()
    kept = np.zeros_like(v)
    kept[chosen] = v[chosen]
    for begin, end in pairwise(bounds):
        assert np.array_equal(kept[begin:end], hard_threshold(v[begin:end], tau))
        assert np.count_nonzero((chosen >= begin) & (chosen < end)) <= tau


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_nan_is_chosen_first(tau):
    v = np.array([3.0, np.nan, 1.0, np.nan, 5.0, 4.0, np.inf, 0.0])
    chosen = largest_of_stretches(v, np.array([0, 5, 8]), tau)
    assert {1, 3} <= set(chosen.tolist()) if tau > 1 else np.isnan(v[chosen]).any()
    assert 6 in chosen
    assert np.isin([5, 6], chosen).sum() == min(tau, 2)
