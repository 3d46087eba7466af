"""What the theorems of FedHT promise is noticed where it fails."""

import numpy as np
import pandas as pd
import pytest

from replifed.papers.fedht import theory
from replifed.papers.fedht.measures import (
    curves_by_k,
    ends,
    hardly_varies,
    larger,
    larger_with_k,
    planted,
    recovers,
)

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


@pytest.mark.parametrize(("method", "thresholds"), [("fedht", 1), ("fediterht", 2)])
def test_the_bias_adds_to_the_bound_what_rounds_that_shrink_by_psi_and_add_xi_rest_at(method, thresholds):
    kappa, a = 1.05, 2 / np.sqrt(9599)
    frames = []
    for K in (3, 10):
        q, bias = (1 - 1 / (12 * kappa)) ** K, 0.0
        for _ in range(500):
            bias = (1 + a) ** thresholds * (q * bias + (1 - q) / kappa * 1.2 * 0.3)
        error = 4.0 * theory.planted_theta(SETTINGS, method, K) ** ROUNDS + bias
        error[0] = 4.0
        curve = {"round": ROUNDS, "error": error, "gradient": 0.3, "dissimilarity": 1.2}
        frames.append(pd.DataFrame({**curve, "local_steps": K, "replicate": 1}))
    history = pd.concat(frames)

    def holds(history):
        errors = curves_by_k(history, "error")
        terms = theory.bias_terms(history, SETTINGS, method)
        return theory.below_bound(errors, errors, 1.0, SETTINGS, method, "error", terms).values

    assert holds(history).all()
    more = history.assign(error=history["error"].where(history["round"] == 0, 1.001 * history["error"]))
    assert not holds(more)[more["round"] > 0].any()
    # One threshold less, or no dissimilarity, and the bound would be lower.
    assert not holds(history.assign(dissimilarity=1.0)).all()


def left(errors):
    """Runs of two seeds at two spreads, by K: the errors at their end."""
    frames = [
        pd.DataFrame(
            {"round": [0, 1], "error": [9.0, error * factor], "local_steps": K, "replicate": seed}
        ).assign(level=level)
        for level, by_k in errors.items()
        for K, error in by_k.items()
        for seed, factor in ((1, 1.0), (2, 2.0))
    ]
    history = pd.concat(frames)
    return [ends(history, "dissimilar", place) for place in range(len(errors))]


def test_what_is_left_is_compared_by_spread_by_k_and_by_method():
    mild, strong = left({"0.1": {3: 0.01, 10: 0.0105}, "1": {3: 0.01, 10: 0.1}})
    np.testing.assert_allclose(larger(strong, mild).values, np.log10(0.1 / 0.0105))
    np.testing.assert_allclose(larger_with_k(strong).values, 1.0)
    assert hardly_varies(mild, 0.1).values.all() and not hardly_varies(strong, 0.1).values.any()
    assert not hardly_varies(left({"1": {3: 0.1, 10: 0.01}})[0], 0.1).values.any()
    assert recovers(mild, strong).values.all()
    lost = recovers(mild, *left({"1": {3: 0.7, 10: 0.1}})).values
    assert (~lost).sum() == 1
