"""What the theorems of FedHT promise is noticed where it fails."""

import numpy as np
import pandas as pd
import pytest

from replifed.papers.fedht import theory

SETTINGS = {"condition": 1.05, "sparsity": 9600, "planted": 1}
ROUNDS = np.arange(6)


class Given:
    """Runs whose error and objective fall as fast as the theorem promises, times a share of the bound."""

    def __init__(self, method, share):
        self.settings = {"experiments": {"planted": SETTINGS}}
        frames = []
        for K in (3, 10):
            falls = theory.planted_theta(self, method, K) ** ROUNDS
            objective = SETTINGS["condition"] * 4.0 * falls * share
            curve = {"round": ROUNDS, "error": 4.0 * falls, "objective": objective}
            frames += [pd.DataFrame({**curve, "local_steps": K, "replicate": seed}) for seed in (1, 2)]
        self.history = pd.concat(frames).assign(batch="theorem")

    def run(self, experiment, method):
        return self.history


@pytest.mark.parametrize("method", ["fedht", "fediterht"])
def test_the_objectives_bound_has_the_theorems_rate_and_l_times_the_first_error(method):
    measured = theory.objective_below_bound(method)(Given(method, 1.0))
    assert measured.values.all() and measured.seeds == 2
    assert not theory.objective_below_bound(method)(Given(method, 1.001)).values.any()
    late = Given(method, 0.5)
    late.history.loc[late.history["round"] == 5, "objective"] *= 2.1
    assert theory.objective_below_bound(method)(late).values.sum() == 2 * len(ROUNDS) - 2
