"""Theorems and derivations of the paper, on cases so small that all their outcomes can be enumerated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.algorithms.fedmm import FedMM, Variates
from replifed.algorithms.sa_ssmm import SaSsmm
from replifed.claims.claim import Measured
from replifed.claims.samples import Sample
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize, Independent
from replifed.operators.quantise import block_quantise
from replifed.papers.fedmm.experiments import mean_field
from replifed.papers.fedmm.problems import em_problem
from replifed.problems.surrogates.base import Family, FederatedSurrogate
from replifed.problems.surrogates.families import (
    DictionaryLearning,
    GaussianMixture,
    Location,
    Poisson,
    PoissonKnownMean,
)
from replifed.randomness import Streams


@dataclass(frozen=True, kw_only=True)
class Logistic(Family):
    """Example 1: logistic loss log(1 + exp(-<z, theta>)), labels being in z, and g = lam |theta|_1.

    phi = theta / rho, psi = |theta|^2 / (2 rho), sbar = theta - rho grad l, T = prox of rho g; MM-1 holds for
    rho <= 4 / |z|^2.
    """

    dim: int
    rho: float
    lam: float

    @property
    def parameters(self) -> int:
        return self.dim

    @property
    def statistics(self) -> int:
        return self.dim

    def expectations(self, Z: NDArray, theta: NDArray) -> tuple[NDArray, NDArray]:
        margins = (Z * theta[..., None, :]).sum(axis=-1)
        slope = -(Z / (1 + np.exp(margins))[..., None]).mean(axis=-2)
        return np.logaddexp(0, -margins).mean(axis=-1), theta - self.rho * slope

    def T(self, s: NDArray) -> NDArray:
        return np.sign(s) * np.maximum(np.abs(s) - self.rho * self.lam, 0)

    def phi(self, theta: NDArray) -> NDArray:
        return theta / self.rho

    def psi(self, theta: NDArray) -> NDArray:
        return (theta**2).sum(axis=-1) / (2 * self.rho)

    def penalty(self, theta: NDArray) -> NDArray:
        return self.lam * np.abs(theta).sum(axis=-1)


class Example(NamedTuple):
    """A family with data (m, p)."""

    family: Family
    Z: NDArray
    each: bool = True  # MM-1 holds for every sample, else for their mean

    def theta(self, rng: np.random.Generator) -> NDArray:
        return rng.standard_normal(self.family.parameters)

    def mirror(self, theta: NDArray) -> NDArray:
        return self.family.sbar(self.Z, theta)

    def objective(self, theta: NDArray) -> float:
        return float(self.family.expectations(self.Z, theta)[0] + self.family.penalty(theta))

    def fixed_point(self, theta: NDArray) -> NDArray:
        for _ in range(3000):
            before, theta = theta, self.family.T(self.mirror(theta))
            if np.abs(theta - before).max() < 1e-9:
                break
        return theta


def _examples() -> dict[str, Example]:
    rng = np.random.default_rng(5)
    labelled = rng.normal(size=(12, 3)) + 0.5
    counts = rng.poisson(np.exp(0.5 + rng.normal(size=(12, 1)))).astype(float)
    points = rng.normal(size=(12, 2)) + 2 * rng.normal(size=(3, 2)).repeat(4, axis=0)
    weights, covariance = np.array([0.5, 0.3, 0.2]), np.array([[1.0, 0.3], [0.3, 0.8]])
    return {
        "logistic": Example(Logistic(dim=3, rho=4 / (labelled**2).sum(axis=1).max(), lam=0.05), labelled),
        "poisson": Example(Poisson(lam=0.4), counts),
        "poisson_known_mean": Example(PoissonKnownMean(lam=0.4, mean=float(counts.mean())), counts, False),
        "mixture": Example(GaussianMixture(weights=weights, covariance=covariance, lam=0.05), points),
        "dictionary": Example(
            DictionaryLearning(features=4, atoms=3, lam=0.3, eta=0.05), rng.normal(size=(12, 4))
        ),
    }


EXAMPLES = _examples()


# --- Surrogates: Section 2 and Appendices A to C -------------------------------------------------


def surrogate(name: str) -> Measured:
    """MM-1 at random pairs, with equality where these are equal; MM-2: T(s) is the minimum."""
    example, rng = EXAMPLES[name], np.random.default_rng(1)
    family = example.family
    Z = example.Z[:, None] if example.each else example.Z

    def above(theta: NDArray, tau: NDArray) -> NDArray:
        loss, s = family.expectations(Z, tau)
        product = (s * (family.phi(theta) - family.phi(tau))).sum(axis=-1)
        return loss + family.psi(theta) - family.psi(tau) - product - family.expectations(Z, theta)[0]

    pairs = [(example.theta(rng), example.theta(rng)) for _ in range(40)]
    majorises = [bool((above(*pair) >= -1e-8).all()) for pair in pairs]
    touches = [float(np.abs(above(tau, tau)).max()) < 1e-12 for _, tau in pairs]
    minimises = [_is_minimum(family, example.mirror(theta), rng) for theta, _ in pairs]
    return Measured(np.array(majorises + touches + minimises))


def _is_minimum(family: Family, s: NDArray, rng: np.random.Generator) -> bool:
    def value(theta: NDArray) -> NDArray:
        return family.penalty(theta) + family.psi(theta) - (s * family.phi(theta)).sum(axis=-1)

    best = family.T(s)
    away = rng.choice([0.01, 0.1, 1], (50, 1)) * rng.standard_normal((50, family.parameters))
    return bool((value(best + away) > value(best)).all())


def descends() -> Measured:
    """The objective never rises from one exact iteration of MM to the next."""
    falls = []
    for example in EXAMPLES.values():
        theta = example.theta(np.random.default_rng(2))
        values = [example.objective(theta)]
        for _ in range(50):
            theta = example.family.T(example.mirror(theta))
            values.append(example.objective(theta))
        falls.append((np.diff(values) <= 1e-9 * np.abs(values[0])).all() and values[-1] < values[0])
    return Measured(np.array(falls))


def roots_are_fixed_points() -> Measured:
    """Where h(s) = 0, T(s) is a fixed point of MM and stationary; elsewhere it is neither.

    Stationary by the objective alone: along no direction does it fall in proportion to the step.
    """
    checks, rng = [], np.random.default_rng(3)
    for example in EXAMPLES.values():
        family, start = example.family, example.theta(rng)
        for theta, expected in ((example.fixed_point(start), True), (start, False)):
            s = example.mirror(theta)
            root = np.abs(example.mirror(family.T(s)) - s).max() < 1e-6
            fixed = np.abs(family.T(s) - theta).max() < 1e-6
            directions = np.concatenate([np.eye(family.parameters), -np.eye(family.parameters)])
            ends = np.array([example.objective(theta + 1e-4 * direction) for direction in directions])
            slopes = (ends - example.objective(theta)) / 1e-4
            checks += [holds == expected for holds in (root, fixed, slopes.min() > -3e-3)]
    return Measured(np.array(checks))


def monotone() -> Measured:
    """<s - s', phi(T(s)) - phi(T(s'))> >= 0 (Lemma 2), of statistics of samples."""
    rng, products = np.random.default_rng(4), []
    for example in EXAMPLES.values():
        family = example.family
        for _ in range(40):
            s, other = (example.mirror(3 * example.theta(rng)) for _ in range(2))
            products.append((s - other) @ (family.phi(family.T(s)) - family.phi(family.T(other))))
    return Measured(np.array(products) >= -1e-9)


def projects() -> Measured:
    """The projection's angle is obtuse, and it increases no distance (Lemma 3, B = I)."""
    rng, checks = np.random.default_rng(6), []
    for family in (EXAMPLES[name].family for name in ("mixture", "dictionary")):
        for _ in range(40):
            far, other = rng.standard_normal((2, family.statistics))
            near, inside = family.project(far), family.project(other)
            checks.append(np.linalg.norm(near - inside) <= np.linalg.norm(far - other) * (1 + 1e-12))
            checks.append((far - near) @ (inside - near) <= 1e-9)
    return Measured(np.array(checks))


def degenerate() -> Measured:
    """B(s) = J_phi(T(s)) J_T(s) by differences: singular for dictionaries (E.3), invertible in E.2."""
    checks = []
    for name, invertible in (("dictionary", False), ("poisson_known_mean", True)):
        example, rng = EXAMPLES[name], np.random.default_rng(7)
        family = example.family
        for _ in range(5):
            s = example.mirror(example.theta(rng))
            B = np.stack(
                [
                    (family.phi(family.T(s + change)) - family.phi(family.T(s - change))) / 2e-5
                    for change in 1e-5 * np.eye(family.statistics)
                ],
                axis=1,
            )
            rank = np.linalg.matrix_rank(B, tol=1e-5 * np.abs(B).max())
            checks.append((rank == family.statistics) == invertible and rank <= family.parameters)
    return Measured(np.array(checks))


# --- Oracles and the centralised method: Section 2.2 ---------------------------------------------


def only_surrogates_stay_unbiased() -> Measured:
    """Over all minibatches the mean oracle of s is exact, and that of T(s) is not, unless T is linear."""
    checks = []
    linear = Example(Location(), np.linspace(-0.9, 0.8, 6)[:, None])
    for example, exact in ((EXAMPLES["dictionary"], False), (EXAMPLES["mixture"], False), (linear, True)):
        theta = example.theta(np.random.default_rng(8))
        whole = example._replace(Z=example.Z[:6])
        oracles = np.array(
            [
                example.family.sbar(example.Z[list(batch)], theta)
                for batch in itertools.combinations(range(6), 2)
            ]
        )
        s, minimisers = whole.mirror(theta), example.family.T(oracles)
        bias = np.abs(minimisers.mean(axis=0) - example.family.T(s)).max()
        checks += [np.abs(oracles.mean(axis=0) - s).max() < 1e-12, (bias < 1e-12) == exact]
    return Measured(np.array(checks))


def remembers() -> Measured:
    """With 1/t the surrogate is the mean of all oracles; with a constant step it forgets geometrically."""
    example = EXAMPLES["mixture"]
    problem = FederatedSurrogate(example.family, example.Z[None, None], np.ones((1, 6)))
    streams, checks = Streams(3, (1,)), []
    for step, weights in (
        ({"beta": 1.0, "decay": 1.0}, np.array([0, *[1 / 6] * 6])),
        ({"beta": 0.3, "decay": 0.0}, np.array([0.7**6, *(0.3 * 0.7 ** np.arange(5, -1, -1))])),
    ):
        algorithm = SaSsmm(**step, batch=3)
        state = algorithm.init(problem, streams)
        oracles = [state.s]
        for t in range(6):
            ctx = Round(t, None, None, streams.at(t))
            # A step of 1 takes the oracle as it is.
            oracles.append(SaSsmm(beta=1.0, decay=0.0, batch=3).round(state, problem, ctx)[0].s)
            state = algorithm.round(state, problem, ctx)[0]
        checks.append(np.abs(np.tensordot(weights, np.array(oracles), 1) - state.s).max() < 1e-12)
    return Measured(np.array(checks))


# --- FedMM: Section 5 and Appendix D -------------------------------------------------------------


def variates_add_up() -> Measured:
    """|V - sum_i mu_i V_i| stays at rounding over rounds with cohorts, minibatches and quantisation."""
    settings: Any = SimpleNamespace(seed=1, model="poisson", clients=8, samples=80, lam=0.1)
    problem = em_problem(settings, 1)
    gaps = []
    for cohort, p in ((None, None), (FixedSize(3), None), (Independent(0.4), 0.4)):
        algorithm = FedMM(beta=0.5, alpha=0.2, bits=6, batch=4, participation=p)
        state = simulate(algorithm, problem, Streams(1, (1, 2)), 20, cohort=cohort).state
        gaps.append(np.abs((problem.weights[..., None] * state.V_i).sum(axis=1) - state.V).max())
    return Measured(np.array(gaps) < 1e-12, note=f"largest gap {max(gaps):.2g}")


def variates_cancel() -> Measured:
    """True where clients share their samples and all take part: variates leave the surrogate as it is."""
    rng = np.random.default_rng(0)
    family = DictionaryLearning(features=6, atoms=3, lam=0.3, eta=0.05)
    Z = rng.normal(size=(1, 1, 30, 6))
    problem = FederatedSurrogate(family, Z, rng.normal(size=(1, family.parameters)), n_clients=8)
    ends = [
        simulate(FedMM(beta=1.0, alpha=alpha), problem, Streams(0, (0,)), 30).state.x for alpha in (0.0, 0.5)
    ]
    gap = float(np.abs(ends[0] - ends[1]).max() / np.abs(ends[0]).max())
    return Measured(np.array([gap < 1e-12]), note=f"surrogates differ by {gap:.2g}")


class _Field(NamedTuple):
    """One round from one state with every possible cohort, of clients that take part with probability p."""

    S: NDArray  # (q,)
    later: NDArray  # (2^N, q), S after the round
    chance: NDArray  # (2^N,)
    targets: NDArray  # (N, q), h_i(S)
    mu: NDArray  # (N,)


_P, _GAMMA = 0.3, 0.8


def _every_cohort(V_i: Callable[[NDArray], NDArray], project: bool = False) -> _Field:
    """A round of FedMM on heterogeneous clients, whose variates are a function of h_i(S)."""
    family, rng, N = EXAMPLES["dictionary"].family, np.random.default_rng(9), 4
    mu = np.array([0.4, 0.1, 0.2, 0.3])
    Z = rng.normal(size=(1, N, 10, 4)) + 2 * rng.normal(size=(1, N, 1, 4))
    problem = FederatedSurrogate(family, Z, rng.normal(size=(1, family.parameters)), weights=mu)
    S = problem.start(Streams(0, (0,)))
    theta = problem.T(S)
    targets = problem.oracle(theta, None, None)[0] - S
    masks = np.array(list(itertools.product([False, True], repeat=N)))
    x, parameters, variates = (np.repeat(a[None], len(masks), axis=0) for a in (S[0], theta[0], V_i(targets)))
    state = Variates(x, parameters, mu @ variates, variates, x, np.zeros(len(masks)))
    method: Any = FedMM if project else _Unprojected
    streams = Streams(0, tuple(range(len(masks)))).at(0)
    algorithm = method(beta=_GAMMA, decay=0.0, alpha=0.5, participation=_P)
    later = algorithm.round(state, problem, Round(0, masks, None, streams))[0].x
    chance = np.where(masks, _P, 1 - _P).prod(axis=1)
    return _Field(S[0], later, chance, targets, mu)


class _Unprojected(FedMM):
    """Without the projection: S moves by gamma H."""

    def project(self, problem: Any, x: NDArray) -> NDArray:
        return x


def field() -> Measured:
    """E[H | past] = h(S), and E|H - h|^2 = omega_p sum_i mu_i^2 |h_i - V_i|^2 without other noise."""
    checks = []
    for V_i in (np.zeros_like, lambda targets: targets[::-1], lambda targets: targets):
        one = _every_cohort(V_i)
        H, h = (one.later - one.S) / _GAMMA, one.mu @ one.targets
        variance = one.chance @ ((H - h) ** 2).sum(axis=1)
        gaps = ((one.targets - V_i(one.targets)) ** 2).sum(axis=1)
        expected = (1 - _P) / _P * (one.mu**2 @ gaps)
        unbiased = np.abs(one.chance @ H - h).max() < 1e-12
        checks += [unbiased, abs(variance - expected) < 1e-10 * (1 + expected)]
    return Measured(np.array(checks))


def leaves_and_is_biased() -> Measured:
    """Steps leave S, so do quantised matrices, and projected steps are not S + gamma h in the mean."""
    family = EXAMPLES["dictionary"].family
    free, projected = (_every_cohort(np.zeros_like, project) for project in (False, True))
    outside = np.abs(free.later - family.project(free.later)).max()
    bias = np.abs(free.chance @ (projected.later - free.later)).max()
    rng = np.random.default_rng(10)
    A = rng.normal(size=(200, 3, 2))
    matrices = (A @ np.swapaxes(A, 1, 2)).reshape(200, 9)
    rounded = block_quantise(matrices, rng.random(matrices.shape), 4).reshape(200, 3, 3)
    lowest = np.linalg.eigvalsh((rounded + np.swapaxes(rounded, 1, 2)) / 2).min(axis=1)
    indefinite = float((lowest < -1e-9).mean())
    note = (
        f"a step of {outside:.2g} outside, a bias of {bias:.2g}, {indefinite:.0%} of rounded matrices outside"
    )
    return Measured(np.array([outside > 1e-6, bias > 1e-6, indefinite > 0]), note=note)


def averages_lose_zeros() -> Measured:
    """Comparison of zeros: clients' mean parameters have fewer than the minimiser of their mean surrogate.

    Logistic regression with several 1-norms on heterogeneous clients, after 200 rounds with all of them.
    """
    checks, zeros = [], []
    for lam in (0.08, 0.1, 0.12):
        data, family = _logistic(8, heterogeneous=True), Logistic(dim=4, rho=4.0, lam=lam)
        problem = FederatedSurrogate(family, data.Z, data.theta0)
        s = problem.start(Streams(1, (1,)))
        for _ in range(200):
            s = problem.mirror(family.T(s))
        of_clients = family.T(problem.oracle(family.T(s), None, None))  # each one's minimiser, (1, N, d)
        ours, naive = (int((theta == 0).sum()) for theta in (family.T(s), of_clients.mean(axis=1)))
        zeros.append(f"{ours} and {naive} at lam = {lam:g}")
        checks.append(ours > naive)
    return Measured(np.array(checks), note=f"zeros of surrogates and parameters: {', '.join(zeros)}")


def compression() -> Measured:
    """Quantised and sent with p: unbiased, of relative variance omega + (1 - p)(1 + omega) / p (Lemma 1).

    Every outcome of rounding at random is counted, with its probability.
    """
    checks, rng = [], np.random.default_rng(11)
    for bits, p in itertools.product((2, 3, 5), (0.2, 0.7, 1.0)):
        x = rng.standard_normal(4)
        low, high = (block_quantise(x, np.full(4, u), bits) for u in (0.0, 1 - 1e-12))
        up = np.divide(x - low, high - low, out=np.zeros(4), where=high != low)
        rounded_up = np.array(list(itertools.product([False, True], repeat=4)))
        outcomes = np.where(rounded_up, high, low)
        chance = np.where(rounded_up, up, 1 - up).prod(axis=1)
        omega = chance @ ((outcomes - x) ** 2).sum(axis=1) / (x @ x)
        sent = p * chance @ ((outcomes / p - x) ** 2).sum(axis=1) / (x @ x) + 1 - p
        levels = 2 ** (bits - 1) - 1
        checks += [
            (((up >= 0) & (up <= 1)).all() and np.abs(chance @ outcomes - x).max() < 1e-9),
            omega <= min(4 / (4 * levels**2), 2 / levels) and omega > 0,
            abs(sent - (omega + (1 - p) * (1 + omega) / p)) < 1e-9,
        ]
    return Measured(np.array(checks))


# --- Theorem 1 -----------------------------------------------------------------------------------

_STEP, _SEEDS = 0.5, np.arange(1, 25)


def _logistic(n_clients: int, heterogeneous: bool) -> FederatedSurrogate:
    """Logistic regression on the unit sphere: sorted samples shared out, or all samples for all clients."""
    rng = np.random.default_rng(12)
    A = rng.normal(size=(240, 4))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    y = np.where(rng.random(240) < 1 / (1 + np.exp(-2 * A.sum(axis=1))), 1.0, -1.0)
    Z = (y[:, None] * A)[np.argsort(y * A[:, 0])]
    Z = Z.reshape(1, n_clients, -1, 4) if heterogeneous else Z[None, None]
    return FederatedSurrogate(Logistic(dim=4, rho=4.0, lam=0.01), Z, np.zeros((1, 4)), n_clients=n_clients)


def _fields(problem: FederatedSurrogate, seed: int, cohort: Any = None, **settings: Any) -> NDArray:
    """|h(S_t)|^2 in every round of every repetition, shape (R, T), with a constant step."""
    algorithm, streams = FedMM(beta=_STEP, decay=0.0, **settings), Streams(seed, tuple(_SEEDS))
    history = simulate(algorithm, problem, streams, 600, metrics={"h": mean_field}, cohort=cohort)
    return history.metrics["h"].T


def log_noise(n_clients: int, batch: int) -> Sample:
    """Logarithm of the level at which |h(S)|^2 stays in the end with minibatches of homogeneous clients."""
    squares = _fields(_logistic(n_clients, heterogeneous=False), 1000 * n_clients + batch, batch=batch)
    return Sample(np.log(squares[:, 200:].mean(axis=1)), seeds=_SEEDS)


def late_noise(alpha: float) -> Sample:
    """Logarithm of the mean |h(S)|^2 over rounds 180 to 199, for heterogeneous clients, half taking part.

    They take all their samples, and send their surrogates whole. By then the start is forgotten; much later,
    runs with variates are at rounding errors.
    """
    p, problem = 0.5, _logistic(8, heterogeneous=True)
    squares = _fields(problem, 1, Independent(p), alpha=alpha, participation=p)
    return Sample(np.log(squares[:, 180:200].mean(axis=1)), seeds=_SEEDS)
