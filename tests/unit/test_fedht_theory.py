"""What the theorems of FedHT promise is noticed where it fails."""

import numpy as np
import pandas as pd
import pytest

from replifed.papers.fedht import theory
from replifed.papers.fedht.measures import planted

SETTINGS = {"condition": 1.05, "sparsity": 9600, "planted": 1}
ROUNDS = np.arange(6)


def given(method, share):
    """Runs whose error and objective fall as fast as the theorem promises, times a share of the bound."""
    frames = []
    for K in (3, 10):
        falls = theory.planted_theta(SETTINGS, method, K) ** ROUNDS
        objective = SETTINGS["condition"] * 4.0 * falls * share
        curve = {"round": ROUNDS, "error": 4.0 * falls, "objective": objective}
        frames += [pd.DataFrame({**curve, "local_steps": K, "replicate": seed}) for seed in (1, 2)]
    return pd.concat(frames).assign(batch="theorem")


def below(history, method):
    objectives, errors = planted(history, "objective"), planted(history)
    return theory.below_bound(objectives, errors, SETTINGS["condition"], SETTINGS, method, "f - f(x*)")


@pytest.mark.parametrize("method", ["fedht", "fediterht"])
def test_the_objectives_bound_has_the_theorems_rate_and_l_times_the_first_error(method):
    measured = below(given(method, 1.0), method)
    assert measured.values.all() and measured.seeds == 2
    assert not below(given(method, 1.001), method).values.any()
    late = given(method, 0.5)
    late.loc[late["round"] == 5, "objective"] *= 2.1
    assert below(late, method).values.sum() == 2 * len(ROUNDS) - 2
