"""Checks of what the FedMM paper proves: each fails where its subject is made wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from known_runs import claim_of
from replifed.claims.verdicts import judge
from replifed.papers.fedmm import theory
from replifed.papers.fedmm.theory import EXAMPLES
from replifed.problems.surrogates.families import DictionaryLearning


def too_long_a_step(monkeypatch):
    family = replace(EXAMPLES["logistic"].family, rho=8 * EXAMPLES["logistic"].family.rho)
    monkeypatch.setitem(EXAMPLES, "logistic", EXAMPLES["logistic"]._replace(family=family))


def another_weight_in_the_minimiser(monkeypatch):
    T = DictionaryLearning.T
    monkeypatch.setattr(DictionaryLearning, "T", lambda self, s: T(replace(self, eta=4 * self.eta), s))


def too_long_a_minimiser(monkeypatch):
    T = DictionaryLearning.T
    monkeypatch.setattr(DictionaryLearning, "T", lambda self, s: 1.3 * T(self, s))


def turned(monkeypatch):
    phi = DictionaryLearning.phi
    monkeypatch.setattr(DictionaryLearning, "phi", lambda self, theta: -phi(self, theta))


def too_far(monkeypatch):
    monkeypatch.setattr(DictionaryLearning, "project", lambda self, s: 1.5 * s)


def linear(monkeypatch):
    monkeypatch.setattr(DictionaryLearning, "T", lambda self, s: s)


def invertible(monkeypatch):
    monkeypatch.setattr(DictionaryLearning, "phi", lambda self, theta: theta)
    monkeypatch.setattr(DictionaryLearning, "T", lambda self, s: s)


def another_decay(monkeypatch):
    monkeypatch.setattr(
        "replifed.algorithms.sa_ssmm.step_size", lambda beta, decay, t, runs: np.full(runs, 0.4)
    )


def no_weight_for_absence(monkeypatch):
    monkeypatch.setattr(theory.FedMM, "_probability", lambda self, cohort: 1.0)


def like_clients(monkeypatch):
    logistic = theory._logistic
    monkeypatch.setattr(theory, "_logistic", lambda n_clients, heterogeneous: logistic(n_clients, False))


def everybody(monkeypatch):
    monkeypatch.setattr(theory, "_P", 1.0)


def rounded_down(monkeypatch):
    rounds = theory.block_quantise
    monkeypatch.setattr(theory, "block_quantise", lambda x, u, bits: rounds(x, 0.6 * u, bits))


def forgotten_variates(monkeypatch):
    whole = theory.FedMM.round

    def forget(self, state, problem, ctx):
        return whole(self, state._replace(V=state.V / 2), problem, ctx)

    monkeypatch.setattr(theory.FedMM, "round", forget)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (too_long_a_step, lambda: theory.surrogate("logistic")),
        (another_weight_in_the_minimiser, lambda: theory.surrogate("dictionary")),
        (turned, lambda: theory.surrogate("dictionary")),
        (too_long_a_minimiser, theory.descends),
        (another_weight_in_the_minimiser, theory.roots_are_fixed_points),
        (turned, theory.monotone),
        (too_far, theory.projects),
        (invertible, theory.degenerate),
        (linear, theory.only_surrogates_stay_unbiased),
        (another_decay, theory.remembers),
        (forgotten_variates, theory.variates_add_up),
        (forgotten_variates, theory.variates_cancel),
        (no_weight_for_absence, theory.field),
        (forgotten_variates, theory.field),
        (like_clients, theory.averages_lose_zeros),
        (everybody, theory.leaves_and_is_biased),
        (rounded_down, theory.compression),
    ],
)
def test_a_planted_fault_is_found(fault, check, monkeypatch):
    assert check().values.all()
    fault(monkeypatch)
    assert not check().values.all()


def test_variates_take_the_floor_away_and_none_take_none():
    claim = claim_of("fedmm.theorem1.unlike")
    with_variates, without = (theory.late_noise(alpha) for alpha in (0.5, 0.0))
    assert judge(claim, (without - with_variates).measured()).verdict == "holds"
    assert judge(claim, (without - without).measured()).verdict != "holds"


def test_the_logistic_example_is_proximal_gradient_descent():
    """One iteration against the gradient by differences and the definition of the proximal map."""
    family, Z, _ = EXAMPLES["logistic"]
    theta, rho, step = np.array([0.4, -0.2, 0.7]), family.rho, 1e-6
    loss = [
        [np.log1p(np.exp(-Z @ (theta + sign * step * unit))).mean() for sign in (1, -1)] for unit in np.eye(3)
    ]
    target = theta - rho * (np.array(loss) @ [1, -1]) / (2 * step)
    grid = np.linspace(-3, 3, 60001)
    prox = [grid[np.argmin(0.5 * (grid - one) ** 2 + rho * family.lam * np.abs(grid))] for one in target]
    np.testing.assert_allclose(family.T(family.sbar(Z, theta)), prox, atol=2e-4)
