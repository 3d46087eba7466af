"""Formulas that the paper states, checked as formulas."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.hard_thresholding import RATES, alpha, fedht_rate, fediterht_rate
from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.curves import Curves
from replifed.claims.quantities import quantity
from replifed.operators.hard_threshold import hard_threshold
from replifed.randomness import generator

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.fedht import settings as of

LOCAL_STEPS = (3, 5, 8, 10)
KAPPAS = (1.0, 1.05, 2.0, 10.0, 100.0)


class Size(NamedTuple):
    """Of an experiment of the paper: tau, clients N and weights d."""

    tau: int
    N: int
    d: int


EXPERIMENTS = {
    "Simulation I": Size(200, 100, 1000),
    "Simulation II": Size(200, 100, 1000),
    "E2006-tfidf": Size(200, 100, 150_360),
    "RCV1": Size(200, 100, 47_236),
    "MNIST": Size(500, 100, 7840),
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


def lemma1_of_ranks() -> Measured:
    """Lemma 1 with matrices, ranks and truncated singular values in place of vectors, non-zeros and H_tau."""
    rng = generator(0, 0, None, "lemma 1 of ranks")
    holds = []
    for d, rank_star, extra in itertools.product((6, 20), (1, 3), (1, 2, 8)):
        rank = rank_star + extra
        if rank >= d:
            continue
        scale = 10 ** rng.uniform(-2, 2, (2, 200, 1, 1))
        left, right = rng.standard_normal((200, d, rank_star)), rng.standard_normal((200, rank_star, d))
        X_star = scale[0] * left @ right
        X = X_star + scale[1] * rng.standard_normal((200, d, d))
        # The worst case of vectors, as singular values in the basis of X*.
        u, values, v = np.linalg.svd(X_star[:50])
        values[:, :rank_star] *= 0.5
        values[:, rank_star : rank_star + rank] = values[:, :1] * 1.0001
        X[:50] = (u * values[:, None]) @ v
        u, values, v = np.linalg.svd(X)
        values[:, rank:] = 0.0
        error = (((u * values[:, None]) @ v - X_star) ** 2).sum(axis=(1, 2))
        bound = (1 + alpha(rank, rank_star)) * ((X - X_star) ** 2).sum(axis=(1, 2))
        holds.append(error <= bound * (1 + 1e-9))
    all_hold = np.concatenate(holds)
    violations = np.count_nonzero(~all_hold)
    return Measured(all_hold, seeds=0, note=f"{violations} violations in {len(all_hold)} cases")


# With each method a kappa at which the theorem's least tau is a whole number: 16 11^2 + 1, and 16 24^2 + 1.
_WHOLE = {"fedht": 1.0, "fediterht": 625 / 588}


def rates_below_one(method: str) -> Measured:
    """0 < theta < 1 wherever tau is as large as the theorem asks, for K >= 1."""
    holds, first = [], ""
    for kappa, tau_star, K in itertools.product(
        (*KAPPAS, _WHOLE[method]), (1, 10, 100), (1, 2, *LOCAL_STEPS)
    ):
        bound = RATES[method](kappa, 2, 1, K).least_sparsity * tau_star
        whole = abs(bound - round(bound)) < 1e-6
        for tau in (round(bound) if whole else math.ceil(bound), 4 * math.ceil(bound)):
            theta = RATES[method](kappa, tau, tau_star, K).theta
            # Next to a bound that is no whole number rounding may hide by how little theta is below one.
            holds.append(0 < theta < (1 - 1e-12 if whole else 1 + 1e-12))
            if not holds[-1]:
                first = first or f"theta = {theta:.6g} at K = {K}, kappa = {kappa:.4g}, tau = {tau}, for one"
    return Measured(np.array(holds), seeds=0, note=first)


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


# How often theta, psi and xi hold the factor 1 + alpha: once for each threshold that the theorem counts.
_THRESHOLDS = {"fedht": 1, "fediterht": 2}


def bias_factor(kappa: float, tau: int, tau_star: int, local_steps: int, method: str = "fedht") -> float:
    """xi / (1 - psi) of Theorem 1 or 2, times l^2: what multiplies B^2 |grad f(x*)|^2 in g_1, or g_3."""
    q = (1 - 1 / (12 * kappa)) ** local_steps
    expansion = (1 + alpha(tau, tau_star)) ** _THRESHOLDS[method]
    return expansion * (1 - q) * kappa / (1 - expansion * q)


def bias_factors(method: str = "fedht", times: int = 1) -> NDArray:
    """`bias_factor` at `times` the least tau of the theorem: a row for each kappa, a column for each K."""
    least = {kappa: math.ceil(RATES[method](kappa, 2, 1, 1).least_sparsity) for kappa in KAPPAS}
    rows = [[bias_factor(kappa, times * least[kappa], 1, K, method) for K in LOCAL_STEPS] for kappa in KAPPAS]
    return np.array(rows)


def bias_grows_with_k() -> Measured:
    """g_1 grows with K, by its printed formula, wherever Theorem 1 holds."""
    factors = np.concatenate([bias_factors(), bias_factors(times=10)])
    changes = factors[:, -1] / factors[:, 0]
    note = f"from K = 3 to 10 the factor changes by {changes.min():.3g} to {changes.max():.3g} times"
    return Measured((np.diff(factors) > 0).ravel(), seeds=0, note=note)


def bias_terms_by_k(method: str) -> NDArray:
    """Factors of g_1 or g_3, a column for each K, at the theorem's least tau and ten times that."""
    return np.concatenate([bias_factors(method), bias_factors(method, times=10)])


@quantity
def bias_hardly_varies(factors: NDArray, within: float) -> Measured:
    """From one K to the next the bias term changes by a share of at most `within`, by its printed formula."""
    changes = np.abs(np.diff(factors) / factors[:, :-1])
    return Measured((changes <= within).ravel(), seeds=0, note=f"changes of up to {changes.max():.3g}")


def bias_ratios() -> NDArray:
    """g_3 / g_1 for each kappa and K, apart from the gradients, at the tau that Theorem 2 asks for.

    With one kappa and one l for both, the least favourable to g_3, as restricted constants are smaller.
    """
    ratios = []
    for kappa, K in itertools.product(KAPPAS, LOCAL_STEPS):
        tau = max(math.ceil(RATES[method](kappa, 2, 1, K).least_sparsity) for method in RATES)
        one, other = (bias_factor(kappa, tau, 1, K, method) for method in ("fediterht", "fedht"))
        ratios.append(one / other)
    return np.array(ratios)


@quantity
def smaller_bias(ratios: NDArray, share: float) -> Measured:
    """g_3 is below g_1 where 2 N tau + tau* is this share of d, and the gradient's entries are equal."""
    together = ratios * share
    note = f"g_3 / g_1 from {together.min():.3g} to {together.max():.3g}; their factors alone differ by "
    return Measured(together < 1, seeds=0, note=f"{note}{ratios.min():.3g} to {ratios.max():.3g}")


def shares_of_coordinates() -> dict[str, float]:
    """2 N tau / d of each experiment."""
    return {name: 2 * one.N * one.tau / one.d for name, one in EXPERIMENTS.items()}


@quantity
def support_is_small(shares: dict[str, float]) -> Measured:
    """True if 2 N tau is at most a tenth of d, in each experiment."""
    note = "2 N tau / d: " + ", ".join(f"{name} {share:.3g}" for name, share in shares.items())
    return Measured(np.array([share <= 0.1 for share in shares.values()]), seeds=0, note=note)


def planted_theta(settings: of.Planted | of.Biased, method: str, local_steps: int) -> float:
    """Theta of the planted problem."""
    rate = RATES[method](settings.condition, settings.sparsity, settings.planted, local_steps)
    if not rate.holds:
        raise NotMeasurableError(
            f"the cut-down problem does not meet the theorem's conditions (theta = {rate.theta:.3g})"
        )
    return rate.theta


@quantity
def below_bound(
    errors: dict[int, Curves], bias: dict[int, float], settings: of.Biased, method: str
) -> Measured:
    """For each K and round, whether the mean error is below theta^t |x_0 - x*|^2 and the bias of that K."""
    holds, worst = [], 0.0
    for K, one in errors.items():
        mean = one.values.mean(axis=0)
        bound = mean[0] * planted_theta(settings, method, K) ** one.rounds + bias[K]
        holds.append(mean <= bound * (1 + 1e-9))
        worst = max(worst, float((mean[1:] / bound[1:]).max()))
    note = f"error at most {worst:.3g} of the bound"
    return Measured(np.concatenate(holds), seeds=len(one.seeds), note=note)


@quantity
def bias_terms(history: pd.DataFrame, settings: of.Biased, method: str) -> dict[int, float]:
    """g_1 or g_3 of each K: the theorem's factor, B^2 and |grad f(x*)|^2, which the runs note; l = kappa."""
    kappa, tau, tau_star = settings.condition, settings.sparsity, settings.planted
    runs = history[history["round"] == 0]
    gradient = (runs["dissimilarity"] * runs["gradient"]).groupby(runs["local_steps"]).mean() / kappa**2
    return {int(K): bias_factor(kappa, tau, tau_star, int(K), method) * own for K, own in gradient.items()}
