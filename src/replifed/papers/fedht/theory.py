"""What the paper states as formulas, checked as formulas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.hard_thresholding import RATES, alpha, fedht_rate, fediterht_rate
from replifed.claims.curves import Curves
from replifed.claims.quantities import quantity
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.operators.hard_threshold import hard_threshold
from replifed.randomness import generator

LOCAL_STEPS = (3, 5, 8, 10)
KAPPAS = (1.0, 1.05, 2.0, 10.0, 100.0)

# tau of the experiments, N of their clients and d of their models, in order: the simulations, E2006-tfidf,
# RCV1, MNIST.
EXPERIMENTS = {
    "simulations": (200, 100, 1000),
    "E2006-tfidf": (200, 100, 150_360),
    "RCV1": (200, 100, 47_236),
    "MNIST": (500, 100, 7840),
}


def lemma1() -> Measured:
    """|H_tau(x) - x*|^2 <= (1 + alpha) |x - x*|^2 on random vectors, near the worst ones among them."""
    rng = generator(0, 0, None, "lemma 1")
    holds = []
    for d, tau_star, extra in itertools.product((5, 50, 400), (1, 3), (1, 2, 8, 40)):
        tau = tau_star + extra
        if tau >= d:
            continue
        x_star = np.zeros((200, d))
        x_star[:, :tau_star] = rng.standard_normal((200, tau_star)) * 10 ** rng.uniform(-2, 2, (200, 1))
        x = x_star + rng.standard_normal((200, d)) * 10 ** rng.uniform(-2, 2, (200, 1))
        # The worst case: tau equal entries off the support push out an entry of x* that is hardly smaller.
        x[:50] = 0.0
        x[:50, :tau_star] = x_star[:50, :tau_star] * 0.5
        peak = np.abs(x[:50, :tau_star]).max(axis=1, keepdims=True)
        x[:50, tau_star : tau_star + tau] = peak * 1.0001
        left = ((hard_threshold(x, tau) - x_star) ** 2).sum(axis=1)
        right = (1 + alpha(tau, tau_star)) * ((x - x_star) ** 2).sum(axis=1)
        holds.append(left <= right * (1 + 1e-12))
    all_hold = np.concatenate(holds)
    violations = np.count_nonzero(~all_hold)
    return Measured(all_hold, seeds=0, note=f"{violations} violations in {len(all_hold)} cases")


def rates_below_one(method: str) -> Measured:
    """0 < theta < 1 wherever tau is as large as the theorem asks."""
    holds = []
    for kappa, tau_star, K in itertools.product(KAPPAS, (1, 10, 100), LOCAL_STEPS):
        least = math.ceil(RATES[method](kappa, 2, 1, K).least_sparsity * tau_star)
        holds += [0 < RATES[method](kappa, tau, tau_star, K).theta < 1 for tau in (least, 4 * least)]
    return Measured(np.array(holds), seeds=0)


def remark3_condition() -> Measured:
    """theta_2 <= theta_1 exactly where 2 alpha <= ((1 - 1/(12 kappa_d)) / (1 - 1/(12 kappa_s)))^K - 1."""
    holds, sides = [], set()
    for low, high in itertools.combinations_with_replacement(KAPPAS, 2):
        for tau, K in itertools.product((200, 10**4, 10**6, 10**9), LOCAL_STEPS):
            condition = 2 * alpha(tau, 1) <= ((1 - 1 / (12 * high)) / (1 - 1 / (12 * low))) ** K - 1
            smaller = fediterht_rate(low, tau, 1, K).theta <= fedht_rate(high, tau, 1, K).theta
            holds.append(condition == smaller)
            sides.add(condition)
    assert sides == {True, False}, "the grid must hold cases of both kinds"
    return Measured(np.array(holds), seeds=0)


def bias_factor(kappa: float, tau: int, tau_star: int, local_steps: int) -> float:
    """xi_1 / (1 - psi_1) of Theorem 1, times l_d^2: what multiplies B^2 |grad f(x*)|^2 in g_1."""
    q = (1 - 1 / (12 * kappa)) ** local_steps
    a = alpha(tau, tau_star)
    return (1 + a) * (1 - q) * kappa / (1 - (1 + a) * q)


def bias_factors(times: int = 1) -> NDArray:
    """`bias_factor` at `times` the least tau of Theorem 1: a row for each kappa, a column for each K."""
    least = {kappa: math.ceil(fedht_rate(kappa, 2, 1, 1).least_sparsity) for kappa in KAPPAS}
    rows = [[bias_factor(kappa, times * least[kappa], 1, K) for K in LOCAL_STEPS] for kappa in KAPPAS]
    return np.array(rows)


def bias_grows_with_k() -> Measured:
    """g_1 grows with K, by its printed formula, wherever Theorem 1 holds."""
    factors = np.concatenate([bias_factors(), bias_factors(times=10)])
    changes = factors[:, -1] / factors[:, 0]
    note = f"from K = 3 to 10 the factor changes by {changes.min():.3g} to {changes.max():.3g} times"
    return Measured((np.diff(factors) > 0).ravel(), seeds=0, note=note)


def conditions_met(method: str) -> Measured:
    """Whether any data could meet the theorem's condition on tau at the experiments' tau."""
    least = RATES[method](1.0, 2, 1, 1).least_sparsity
    holds = np.array([tau >= least for tau, _, _ in EXPERIMENTS.values()])
    return Measured(holds, seeds=0, note=f"conditions not met: tau of at least {math.ceil(least)} is needed")


def support_is_small() -> Measured:
    """Whether 2 N tau is at most a tenth of d, in each experiment."""
    shares = {name: 2 * N * tau / d for name, (tau, N, d) in EXPERIMENTS.items()}
    note = "2 N tau / d: " + ", ".join(f"{name} {share:.3g}" for name, share in shares.items())
    return Measured(np.array([share <= 0.1 for share in shares.values()]), seeds=0, note=note)


def planted_theta(settings: dict[str, Any], method: str, local_steps: int) -> float:
    """Theta of the planted problem."""
    rate = RATES[method](settings["condition"], settings["sparsity"], settings["planted"], local_steps)
    if not rate.holds:
        raise NotMeasurableError(
            f"the cut-down problem does not meet the theorem's conditions (theta = {rate.theta:.3g})"
        )
    return rate.theta


@quantity
def below_bound(
    values: dict[int, Curves],
    errors: dict[int, Curves],
    factor: float,
    settings: dict[str, Any],
    method: str,
    name: str,
) -> Measured:
    """For each K and round, whether the mean of `values` is below theta^t |x_0 - x*|^2 times a factor."""
    holds, worst = [], 0.0
    for K, one in values.items():
        mean = one.values.mean(axis=0)
        start = factor * errors[K].values.mean(axis=0)[0]
        bound = start * planted_theta(settings, method, K) ** one.rounds
        holds.append(mean <= bound * (1 + 1e-9))
        worst = max(worst, float((mean[1:] / bound[1:]).max()))
    note = f"{name} at most {worst:.3g} of the bound"
    return Measured(np.concatenate(holds), seeds=len(one.seeds), note=note)


@quantity
def rounds_within_corollary(errors: dict[int, Curves], settings: dict[str, Any], method: str) -> Measured:
    """For each K and precision, whether the rounds needed are at most the corollary's."""
    holds = []
    for K, one in errors.items():
        mean = one.values.mean(axis=0)
        for share in (1e-1, 1e-2, 1e-3, 1e-4):
            allowed = math.log(1 / share) / math.log(1 / planted_theta(settings, method, K))
            if allowed > one.rounds[-1]:
                continue
            below = mean <= share * mean[0]
            needed = one.rounds[int(np.argmax(below))] if below.any() else math.inf
            # The count of rounds is whole; the bound rounds up.
            holds.append(needed <= math.ceil(allowed))
    if not holds:
        raise NotMeasurableError("the runs are shorter than the corollary's number of rounds")
    return Measured(np.array(holds), seeds=len(one.seeds))
