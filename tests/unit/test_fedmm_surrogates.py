"""Every family of surrogates majorises, minimises, descends, and has the fixed points that theory says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special
from sklearn.linear_model import Lasso as SkLasso
from sklearn.mixture import GaussianMixture as SkMixture

from replifed.operators import lasso as lasso_module
from replifed.operators.lasso import lasso
from replifed.operators.quantise import block_quantise, message_bits
from replifed.papers.fedmm.theory import EXAMPLES, Example
from replifed.problems.surrogates.base import Family, FederatedSurrogate, Surrogate
from replifed.problems.surrogates.families import DictionaryLearning, Location, Poisson, Rate

RNG = np.random.default_rng(5)


@dataclass(frozen=True)
class Huber(Family):
    """A user's own family: l = min_h (z - theta - h)^2 / 2 + |h|, Huber's loss, with g = theta^2 / 20."""

    parameters = 1
    statistics = 1

    def _h(self, Z, theta):
        away = Z[..., 0] - theta
        return np.sign(away) * np.maximum(np.abs(away) - 1, 0)

    def expectations(self, Z, theta):
        h = self._h(Z, theta)
        loss = 0.5 * (Z[..., 0] - theta - h) ** 2 + np.abs(h)
        return loss.mean(axis=-1), (Z[..., 0] - h).mean(axis=-1)[..., None]

    def T(self, s):
        return s / 1.1

    def phi(self, theta):
        return theta

    def psi(self, theta):
        return 0.5 * theta[..., 0] ** 2

    def penalty(self, theta):
        return 0.05 * theta[..., 0] ** 2


FAMILIES = EXAMPLES | {
    "location": Example(Location(), RNG.normal(size=(9, 1))),
    "rate": Example(Rate(), RNG.exponential(size=(9, 1))),
    "user's own": Example(Huber(), 3 * RNG.normal(size=(9, 1))),
}
family = pytest.mark.parametrize("name", FAMILIES)


def parameter(fam, rng, scale=1.0):
    theta = scale * rng.normal(size=fam.parameters)
    if isinstance(fam, Rate):
        return np.abs(theta) + 0.1
    return np.clip(theta, -1, 1) if isinstance(fam, Location) else theta


def gap(fam, Z, theta, tau):
    """Surrogate at tau minus loss, at theta; means over the samples."""
    loss, _ = fam.expectations(Z, theta)
    at, s = fam.expectations(Z, tau)
    bound = at + fam.psi(theta) - fam.psi(tau) - (s * (fam.phi(theta) - fam.phi(tau))).sum(axis=-1)
    return bound - loss


@family
def test_mm1_majorises_and_touches(name):
    fam, Z, by_sample = FAMILIES[name]
    rng = np.random.default_rng(1)
    samples = Z[:, None, :] if by_sample else Z
    for scale in (0.1, 1.0, 2.0):
        for _ in range(20):
            theta, tau = parameter(fam, rng, scale), parameter(fam, rng, scale)
            assert (gap(fam, samples, theta, tau) >= -1e-9).all()
        assert np.abs(gap(fam, samples, tau, tau)).max() < 1e-12


@family
def test_mm2_minimises_the_surrogate(name):
    fam, Z, _ = FAMILIES[name]
    rng = np.random.default_rng(2)
    s = fam.project(fam.sbar(Z, parameter(fam, rng)))
    best = fam.T(s)

    def value(theta):
        return fam.penalty(theta) + fam.psi(theta) - (s * fam.phi(theta)).sum(axis=-1)

    for size in (1e-3, 0.1, 1.0):
        for _ in range(50):
            other = best + size * rng.normal(size=fam.parameters)
            if not (isinstance(fam, Rate) and other[0] <= 0):
                assert value(other) >= value(best) - 1e-12


@family
def test_exact_mm_descends_to_a_fixed_point(name):
    fam, Z, _ = FAMILIES[name]
    theta = parameter(fam, np.random.default_rng(3))
    values = []
    for _ in range(1500):
        s = fam.sbar(Z, theta)
        values.append(float(fam.expectations(Z, theta)[0] + fam.penalty(theta)))
        theta = fam.T(s)
    assert (np.diff(values) <= 1e-12 * max(1, abs(values[0]))).all()
    # Proposition 1: at a fixed point of MM, the mean field vanishes at its mirror, and the other way round.
    s = fam.sbar(Z, theta)
    assert np.abs(fam.T(s) - theta).max() < 1e-6
    assert np.abs(fam.sbar(Z, fam.T(s)) - s).max() < 1e-6
    np.testing.assert_allclose(fam.project(s), s, atol=1e-12)


@family
def test_projection_is_the_nearest_point(name):
    fam, Z, _ = FAMILIES[name]
    rng = np.random.default_rng(4)
    far = 2 * rng.normal(size=fam.statistics)
    near = fam.project(far)
    np.testing.assert_allclose(fam.project(near), near, atol=1e-12)
    for _ in range(30):
        inside = fam.project(fam.sbar(Z, parameter(fam, rng)) + 0.3 * rng.normal(size=fam.statistics))
        assert ((far - near) * (inside - near)).sum() <= 1e-9


@pytest.mark.parametrize("theta", [-6.0, -1.5, 0.3, 2.0, 5.0])
def test_poisson_expectations_by_quadrature(theta):
    fam = Poisson(lam=0.4)
    for z in (0.0, 1.0, 3.0, 20.0, 100.0, 400.0):
        # The peak of the integrand lies where z - e^(theta + h) = h.
        peak = optimize.brentq(lambda h, z=z: z - np.exp(theta + h) - h, -z - 300, z + 1, xtol=1e-12)
        width = 1 / np.sqrt(1 + np.exp(theta + peak))
        ends = peak - 15 * width, peak + 12 * width
        points = peak + width * np.array([-6, -2, 0, 2, 6])

        def integral(power, z=z, peak=peak, ends=ends, points=points):
            def log_joint(h):
                return (
                    z * (theta + h)
                    - np.exp(theta + h)
                    - special.gammaln(z + 1)
                    - 0.5 * (h**2 + np.log(2 * np.pi))
                )

            top = log_joint(peak)
            found = integrate.quad(
                lambda h: np.exp(log_joint(h) - top + power * (h - peak)),
                *ends,
                points=points,
                epsabs=0,
                epsrel=1e-12,
                limit=200,
            )
            return np.log(found[0]) + top + power * peak

        loss, s = fam.expectations(np.array([[z]]), np.array([theta]))
        assert loss == pytest.approx(-integral(0), rel=1e-8)
        assert s == pytest.approx([z, np.exp(integral(1) - integral(0))], rel=1e-8)


def test_mixture_is_em():
    means = np.array([[1.0, 0], [-1, 0], [0, -1]])
    fam, points, _ = EXAMPLES["mixture"]
    fam, inverse = replace(fam, lam=1e-12), np.linalg.inv(fam.covariance)
    model = SkMixture(3, covariance_type="tied")
    model.weights_, model.means_ = fam.weights, means
    model.precisions_cholesky_ = np.linalg.cholesky(inverse)
    model.covariances_, model.precisions_ = fam.covariance, inverse
    r = model.predict_proba(points)
    expected = (r.T @ points) / r.sum(axis=0)[:, None]
    found = fam.T(fam.sbar(points, means.ravel())).reshape(3, 2)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert fam.expectations(points, means.ravel())[0] == pytest.approx(-model.score(points), rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.01, 3.0), st.booleans())
def test_lasso_agrees_with_scikit_learn(seed, K, penalty, correlated):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(2, 20, K)) + 1.5 * correlated
    D[1, :, -1] = 0  # an unused atom
    Z = rng.normal(size=(2, 7, 20)) * 2
    G, C = D.transpose(0, 2, 1) @ D, Z @ D
    found = lasso(G, C, penalty)
    for b in range(2):
        for j in range(7):
            model = SkLasso(alpha=penalty / 20, fit_intercept=False, tol=1e-14, max_iter=10**5)
            np.testing.assert_allclose(found[b, j], model.fit(D[b], Z[b, j]).coef_, atol=1e-10)


def violation(G, C, h, penalty):
    """Largest violation of the optimality conditions, as a share of |c|_inf + penalty."""
    r = C - h @ G
    off = np.where(h != 0, np.abs(r - penalty * np.sign(h)), np.abs(r) - penalty)
    return (off.max(axis=-1) / (np.abs(C).max(axis=-1) + penalty)).max()


def test_lasso_with_equal_atoms_is_optimal_and_nan_stays_nan():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(10, 3))
    D = np.concatenate([D, D], axis=1)
    C = rng.normal(size=(1, 50, 10)) @ D
    G = (D.T @ D)[None]
    assert violation(G, C, lasso(G, C, 0.3), 0.3) < 1.01e-9
    assert np.isnan(lasso(np.full((1, 2, 2), np.nan), np.ones((1, 3, 2)), 1.0)).all()


RANDOM = np.random.default_rng(8).normal(size=(2, 6, 20))
DEPENDENT = {
    "more atoms than features": RANDOM,
    "of low rank": RANDOM[:, :, :3] @ RANDOM[:, :3],
    "whole numbers, ties": np.round(RANDOM),
    "alike": RANDOM[:, :, :1] + 1e-3 * RANDOM,
    "of all lengths": RANDOM * np.logspace(-3, 3, 20),
}


@pytest.mark.parametrize("penalty", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("kind", DEPENDENT)
def test_lasso_with_dependent_atoms_is_optimal(kind, penalty):
    D = DEPENDENT[kind]
    C = np.round(3 * np.random.default_rng(9).normal(size=(2, 40, 6))) @ D
    G = D.transpose(0, 2, 1) @ D
    assert violation(G, C, lasso(G, C, penalty), penalty) < 1.01e-9
    # A dictionary at full rank beside it has the codes that it has alone.
    G[1] = np.eye(20)
    assert np.array_equal(lasso(G, C, penalty)[1:], lasso(G[1:], C[1:], penalty))


def test_lasso_checks_what_the_search_returns(monkeypatch):
    """A search that is cut short is started again, and one that cannot be finished gives NaN."""
    D = RANDOM[:, :, :5]
    C, G = np.ones((2, 1, 6)) @ D, D.transpose(0, 2, 1) @ D
    wanted, search, calls = lasso(G, C, 0.1), lasso_module._searched, []

    def idle(G, which, right, h, *rest):
        return h

    def idle_at_first(*arguments):
        calls.append(arguments)
        return search(*arguments) if len(calls) > 1 else idle(*arguments)

    monkeypatch.setattr(lasso_module, "_searched", idle_at_first)
    np.testing.assert_allclose(lasso(G, C, 0.1), wanted, atol=1e-11)
    monkeypatch.setattr(lasso_module, "_searched", idle)
    assert np.isnan(lasso(G, C, 0.1)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 150))
def test_quantiser_is_unbiased_with_bounded_variance(seed, bits, D):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=D) * np.exp(rng.normal(size=D))
    q = block_quantise(x, rng.random((4000, D)), bits)
    error = q - x
    spread = error.std(axis=0) / np.sqrt(4000)
    # Whatever happens with probability 1/4000 may not have been seen: one step of the grid.
    levels, length = 2 ** (bits - 1) - 1, min(D, 64)
    mesh = np.abs(x).max() / levels
    assert (np.abs(error.mean(axis=0)) <= 6 * spread + 10 * mesh / 4000).all()
    omega = min(length / (4 * levels**2), np.sqrt(length) / levels)
    assert (error**2).sum(axis=1).mean() <= omega * (x**2).sum() * 1.05
    assert np.array_equal(block_quantise(np.zeros(D), rng.random(D), bits), np.zeros(D))
    assert message_bits(130, 8) == 130 * 8 + 3 * 32


def test_problem_has_the_capability_and_clients_of_one_data_set_share_it():
    fam = FAMILIES["dictionary"][0]
    Z = RNG.normal(size=(2, 1, 9, 4))
    theta = RNG.normal(size=(2, fam.parameters))
    shared = FederatedSurrogate(fam, Z, theta, n_clients=3)
    copied = FederatedSurrogate(fam, np.repeat(Z, 3, axis=1), theta)
    assert isinstance(shared, Surrogate)
    np.testing.assert_allclose(shared.loss(theta), copied.loss(theta), rtol=1e-12)
    np.testing.assert_allclose(shared.mirror(theta), copied.mirror(theta), atol=1e-13)
    chosen, batch = np.array([[0, 2], [1, 2]]), RNG.integers(9, size=(2, 2, 4))
    for picked in ((chosen, batch), (chosen, None), (None, None)):
        np.testing.assert_allclose(shared.oracle(theta, *picked), copied.oracle(theta, *picked), atol=1e-12)
        # The mirror has evaluated all samples at this model; a problem that has not gives the same answers.
        fresh = FederatedSurrogate(fam, copied.Z, theta)
        np.testing.assert_allclose(copied.oracle(theta, *picked), fresh.oracle(theta, *picked), atol=1e-12)
    direct = fam.sbar(Z[1, 0, batch[1, 1]], theta[1])
    np.testing.assert_allclose(copied.oracle(theta, chosen, batch)[1, 1], direct, atol=1e-12)


@pytest.mark.parametrize("batch", [None, np.array([[[0, 4, 4], [1, 2, 0]]])])
@pytest.mark.parametrize("shared", [False, True])
def test_a_cohort_is_coded_from_its_last_codes_to_the_same_answer(batch, shared):
    """Each code is kept in its own place: where a whole evaluation has it, and no other moves."""
    rng, family = np.random.default_rng(3), DictionaryLearning(features=4, atoms=3, lam=0.2, eta=0.1)
    Z, theta = rng.normal(size=(1 if shared else 2, 5, 6, 4)), rng.normal(size=(2, 12))
    chosen = np.array([[3, 1]])
    another = replace(family)
    watched, fresh = (FederatedSurrogate(one, Z, theta[:1]) for one in (family, another))
    watched.loss(theta)
    codes = family._last["codes"].copy()
    answer = watched.oracle(theta + 0.01, chosen, batch)
    np.testing.assert_allclose(answer, fresh.oracle(theta + 0.01, chosen, batch), rtol=1e-9)
    moved = (family._last["codes"] != codes).any(axis=-1)
    asked = np.zeros((5, 6), bool)
    for client, samples in zip(chosen[0], [range(6)] * 2 if batch is None else batch[0], strict=True):
        asked[client, list(samples)] = True
    assert moved.any() and not moved[:, ~asked].any()
    fresh.loss(theta + 0.01)
    kept, whole = (one._last["codes"][:, asked] for one in (family, another))
    np.testing.assert_allclose(kept, whole, rtol=1e-9, atol=1e-12)
