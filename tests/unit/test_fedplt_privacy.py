"""Renyi bounds of noisy Fed-PLT: formulas, conversion, and an audit that tries to break them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import beta, norm

from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Noisy
from replifed.engine.simulate import simulate
from replifed.papers.fedplt import release
from replifed.papers.fedplt.renyi import advanced_composition, best_epsilon, composed_gaussian, proposition4
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams

COMMON = {"sensitivity": 0.3, "deviation": 0.2, "gamma": 0.05}


@given(
    mu=st.floats(0.01, 5),
    gamma=st.floats(1e-3, 1),
    deviation=st.floats(0.01, 10),
    rounds=st.integers(1, 200),
    steps=st.integers(1, 50),
)
@settings(max_examples=50, deadline=None)
def test_the_bound_grows_with_rounds_and_steps_up_to_its_limit(mu, gamma, deviation, rounds, steps):
    def epsilon(rounds, steps):
        return proposition4(
            2.0, sensitivity=1.0, mu=mu, deviation=deviation, gamma=gamma, rounds=rounds, steps=steps
        )

    limit = 2.0 / (mu * deviation**2)
    assert 0 < epsilon(rounds, steps) <= min(epsilon(rounds + 1, steps), epsilon(rounds, steps + 1))
    assert epsilon(10**6, 10**6) <= limit * (1 + 1e-12)
    # Rounds and steps count only by their product.
    assert epsilon(rounds, steps) == pytest.approx(epsilon(1, rounds * steps))


def test_composing_gaussian_steps_costs_half_of_the_bounds_first_slope():
    for gamma in (1e-3, 1e-5):
        common = {"sensitivity": 0.3, "deviation": 0.2, "gamma": gamma, "rounds": 2, "steps": 3}
        ratio = composed_gaussian(2.0, **common) / proposition4(2.0, mu=0.5, **common)
        assert ratio == pytest.approx(0.5, rel=2 * gamma)


def test_a_step_is_a_gaussian_mechanism():
    # Renyi divergence of order 3 of two normal distributions a shift apart, by integration.
    shift, deviation = 0.05 * 0.3, np.sqrt(2 * 0.05) * 0.2
    x = np.linspace(-1, 1, 200_001)
    p, q = norm.pdf(x, 0, deviation), norm.pdf(x, shift, deviation)
    divergence = np.log(np.trapezoid(p**3 * q**-2.0, x)) / 2
    assert composed_gaussian(3.0, rounds=1, steps=1, **COMMON) == pytest.approx(divergence, rel=1e-6)


def test_advanced_composition_by_hand():
    # Of ten mechanisms the plain sum is the least; of a thousand the bound with a deviation is.
    assert advanced_composition(0.1, 10, 1e-5) == pytest.approx(1.0)
    deviation = 0.1 * np.sqrt(2000 * np.log(1e5))
    drift = 100 * (np.exp(0.1) - 1) / (np.exp(0.1) + 1)
    assert advanced_composition(0.1, 1000, 1e-5) == pytest.approx(drift + deviation)


def test_what_is_released_on_quadratic_losses_by_hand():
    rho, gamma = 0.3, release.step(0.3)
    own = gamma**2 / (4 * gamma + 4 * (1 - gamma * (1 + 1 / rho)) ** 2)
    for agents in (1, 3):
        once, later = (release.divergences(agents, rho, 1, rounds) for rounds in (1, 6))
        assert once == pytest.approx({"own": own, "all": own, "messages": own, "v": 0.0})
        # Who knows all messages sees each step of the first agent: the sum of Gaussian mechanisms.
        assert later["messages"] == pytest.approx(own + 5 * gamma / 4)
    # What is sent soon costs more than Proposition 4 allows, final models do not.
    found = release.divergences(2, 1.0, 10, 50)
    assert found["all"] < release.bound(1.0, 10, 50) < found["messages"] / 5


def test_final_models_that_give_away_more_than_promised_are_found(monkeypatch):
    """Planted: a bound of half of what Proposition 4 promises, and half of the noise in every step."""
    assert release.below_bound(release.shares_of_bound()).values.all()
    bound, divergences = release.bound, release.divergences
    monkeypatch.setattr(release, "bound", lambda *case: bound(*case) / 2)
    assert not release.below_bound(release.shares_of_bound()).values.all()
    monkeypatch.setattr(release, "bound", bound)
    monkeypatch.setattr(release, "divergences", lambda *case: {"all": 4 * divergences(*case)["all"]})
    assert not release.below_bound(release.shares_of_bound()).values.all()


def test_messages_that_do_not_hang_on_local_epochs_are_found(monkeypatch):
    """Planted: what is given away follows from the number of steps alone, at one rho."""
    assert release.some_hide(release.given_away("messages", 2, "steps")).values.all()
    assert not release.some_hide(release.given_away("messages", 2, "rounds")).values.any()
    divergences = release.divergences
    monkeypatch.setattr(release, "divergences", lambda N, _, steps, K: divergences(N, 0.3, 1, steps * K))
    assert not release.some_hide(release.given_away("messages", 2, "steps")).values.all()


def test_rounds_to_an_accuracy_reach_it():
    """The slowest coordinate's error is there after as many rounds, and not one before."""
    for steps in (1, 5):
        rho, rate = release.fastest(steps)
        assert rate == pytest.approx(release.rate(rho, steps))
        assert all(release.rate(other, steps) > rate - 0.01 for other in (0.1, 0.3, 1.0))
        rounds = release.rounds_at("accuracy", 1e-3, steps)
        assert rate**rounds <= 1e-3 < rate ** (rounds - 1)
    assert (release.rounds_at("rounds", 5, 10), release.rounds_at("steps", 40, 10)) == (5, 4)


def test_the_bound_is_the_same_for_as_many_gradient_steps():
    assert release.bound(0.3, 1, 20) == pytest.approx(release.bound(0.3, 10, 2))
    assert release.depends(release.bounds()).values.all()
    assert not release.depends(np.ones((1, 2))).values.any()
    # In as many rounds it grows, up to tenfold: 1 - exp(-x) does so at most in proportion.
    growth = release.growth(release.bounds()).values
    assert ((growth > 1) & (growth < 10)).all()


@given(slope=st.floats(1e-4, 50), exponent=st.floats(1, 10))
@settings(max_examples=40, deadline=None)
def test_the_best_order_is_best_and_no_accountant_says_more(slope, exponent):
    delta = 10.0**-exponent
    found = minimize_scalar(
        lambda t: slope * (1 + np.exp(t)) + np.log(1 / delta) / np.exp(t), bounds=(-12, 12), method="bounded"
    ).fun
    epsilon = float(best_epsilon(slope, delta))
    assert epsilon == pytest.approx(found, rel=1e-6)
    # slope * order is exactly that of one Gaussian mechanism, whose tight epsilon is known.
    assert gaussian_epsilon(np.sqrt(2 * slope), delta) <= epsilon * (1 + 1e-9)


def gaussian_epsilon(mu, delta):
    """The least epsilon of a Gaussian mechanism of sensitivity mu deviations (Balle and Wang 2018)."""

    def excess(epsilon):
        second = epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(second) - delta

    if excess(0.0) <= 0:
        return 0.0
    return brentq(excess, 0.0, mu**2 / 2 + mu * 10 + 1)


# -- an audit ----------------------------------------------------------------------------------------

LENGTH, RHO, DEVIATION, STEPS, ROUNDS, DELTA = 2.0, 1.0, 1.7, 3, 2, 1e-2
RUNS = 8_000
DIMENSION, SAMPLES, AGENTS, MU = 3, 2, 2, 1.0


def neighbours():
    """Two problems that differ in one sample of the first agent, whose gradients clip to opposite ends."""
    X = np.zeros((1, AGENTS, SAMPLES, DIMENSION))
    X[..., 0] = 1
    # Targets so far away that clipped gradients have full length wherever the model is.
    y = np.full((1, AGENTS, SAMPLES), 1e6)
    other = y.copy()
    other[0, 0, 0] = -1e6
    return [DenseLinearModel(X, targets, LeastSquares(), l2=MU) for targets in (y, other)]


def released(problem, deviation, seed):
    """x_{1,K} along the direction in which the data sets differ, of many runs."""
    high = MU  # clipping hides the curvature of the losses, as if these were linear
    gamma = 1.0 / (high + 1 / RHO)
    solver = Noisy(steps=STEPS, step=gamma, tau=deviation, reading="deviation", clip=LENGTH)
    algorithm = FedPLT(rho=RHO, solver=solver, start_deviation=deviation * np.sqrt(2 / MU))
    streams = Streams(seed, tuple(range(RUNS)))
    return simulate(algorithm, problem, streams, ROUNDS, metrics={}).state.x[:, 0, 0]


def promised():
    gamma = 1.0 / (MU + 1 / RHO)
    slope = proposition4(
        1.0,
        sensitivity=LENGTH / SAMPLES,
        mu=MU,
        deviation=DEVIATION,
        gamma=gamma,
        rounds=ROUNDS,
        steps=STEPS,
    )
    return float(best_epsilon(slope, DELTA))


def empirical(first, second):
    """Largest epsilon that a threshold test proves at 99.9 %: P(first) > e^eps P(second) + delta."""
    half = len(first) // 2
    best = 0.0
    for a, b in ((first, second), (-first, -second), (second, first), (-second, -first)):
        # The threshold is chosen on one half of the runs and judged on the other.
        for cut in np.quantile(np.concatenate([a[:half], b[:half]]), np.linspace(0.02, 0.98, 25)):
            hits, false = (a[half:] > cut).sum(), (b[half:] > cut).sum()
            low = beta.ppf(0.0005, hits, half - hits + 1) if hits else 0.0
            high = beta.ppf(0.9995, false + 1, half - false) if false < half else 1.0
            if low > DELTA:
                best = max(best, np.log((low - DELTA) / high))
    return best


def test_no_test_tells_neighbours_apart_better_than_promised_and_too_little_noise_is_found_out():
    problems = neighbours()
    honest = empirical(*(released(p, DEVIATION, seed) for seed, p in enumerate(problems)))
    mutant = empirical(*(released(p, DEVIATION / 10, seed) for seed, p in enumerate(problems)))
    assert 0 < honest < promised() < mutant
