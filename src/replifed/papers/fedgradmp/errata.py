"""Errata of Jeong, Needell, Qin 2023."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fediterht import FedIterHT
from replifed.claims.errata import Errata, Outcome
from replifed.engine.simulate import simulate
from replifed.operators.hard_threshold import hard_threshold, largest
from replifed.operators.matrices import isometry_constant
from replifed.papers.fedgradmp.problems import regression, relative_error
from replifed.parts import typed
from replifed.problems.losses import loss_named
from replifed.randomness import Streams

ERRATA = Errata("fedgradmp")

_SEED, _CLIENTS, _COHORT, _TAU = 10755, 12, 4, 4
_COMMON = {"problem": "regression", "seed": _SEED}
_SMALL = {"clients": _CLIENTS, "samples": 40, "features": 60, "planted": _TAU, "decay": 0.2}
_FIGURE8 = {"clients": 30, "samples": 100, "features": 1000, "planted": 10, "decay": 1.1}


def _recover(scale: float = 1.0, noise: float = 0.0, carried: bool = False) -> tuple[float, int]:
    """Run 12 rounds of Algorithm 2; the server takes `scale` times the cohort's mean.

    With `carried` a client begins a round with the Lambda that it ended with, empty at first, else with the
    support of x_t. Returns the relative error, and in how many of the 48 first local iterations x_t does not
    lie in the span that is minimised over.
    """
    data, solution = regression(typed("fedgradmp", _COMMON | _SMALL), 0.2, noise, 1)
    A, y = data.X[0], data.y[0]
    rng, x = np.random.default_rng(0), np.zeros_like(solution)
    ended, outside = np.zeros((_CLIENTS, len(x)), bool), 0
    for _ in range(12):
        models = []
        for i in rng.choice(_CLIENTS, _COHORT, replace=False):
            u, Lambda = x, ended[i] if carried else x != 0
            for _ in range(2):
                batch = rng.choice(A.shape[1], 20, replace=False)
                r = A[i, batch].T @ (A[i, batch] @ u - y[i, batch])
                merged = largest(r, 2 * _TAU) | Lambda
                outside += bool(((u != 0) & ~merged).any())
                b = np.zeros_like(x)
                b[merged] = np.linalg.lstsq(A[i][:, merged], y[i], rcond=None)[0]
                u = hard_threshold(b, _TAU)
                Lambda = ended[i] = u != 0
            models.append(u)
        x = hard_threshold(scale * np.mean(models, axis=0), _TAU)
    return float(np.linalg.norm(x - solution) / np.linalg.norm(solution)), outside


@ERRATA.add(
    "empty_lambda",
    place="Algorithms 1 and 2, initialisation",
    printed="Lambda is empty before the first round, and then what a client's last iteration left",
    corrected="Lambda is the support of x_t at the start of each round: Lemma 4 takes x_{t,k} to lie in the "
    "span of the atoms in Gamma u Lambda, at k = 1, too",
    forms=(True, False),
)
def _in_the_span(carried: bool) -> Outcome:
    """x_t lies in the span of Gamma u Lambda in each client's first local iteration."""
    _, outside = _recover(noise=1e-2, carried=carried)
    return Outcome(not outside, f"x_t is outside it in {outside} of 48 first local iterations")


@ERRATA.add(
    "cohort_sum",
    place="Algorithm 2, server step",
    printed="x_{t+1} from sum_{i=1}^N p_i x^{(i)}_{t,K+1}, where only the cohort's L clients have models",
    corrected="the weights are scaled to sum to one over the cohort; read literally, the model shrinks "
    "by L/N a round",
    forms=(_COHORT / _CLIENTS, 1.0),
)
def _recovers(scale: float) -> Outcome:
    """Without noise, FedGradMP with cohorts must come to the true model."""
    error, _ = _recover(scale)
    return Outcome(error < 1e-6, f"relative error {error:.3g} after 12 rounds")


def _printed_loss(z: NDArray, y: NDArray) -> NDArray:
    """-<y, z> + ln(exp(sum_c z_c)), in the logarithm simplified."""
    return z.sum(axis=-1) - np.take_along_axis(z, y[:, None], axis=-1)[:, 0]


def _with_reference(z: NDArray, y: NDArray) -> NDArray:
    """-<y, z> + ln(1 + sum_c exp(z_c)): a softmax with one more class, whose score is zero."""
    return loss_named("softmax", z.shape[-1] + 1).value(np.pad(z, ((0, 0), (0, 1))), y)


@ERRATA.add(
    "log_sum_exp",
    place="Sections IV-D and V-B, multiclass logistic loss",
    printed="ln(exp(sum_i b'x^{(i)}))",
    corrected="ln(1 + sum_i exp(b'x^{(i)})), whose gradient has the s that Section IV-D prints, with a "
    "reference class; as printed the loss is linear and unbounded. Section V-B's is printed alike, and "
    "runs here without the 1, which is a choice",
    forms=(_printed_loss, _with_reference),
)
def _has_the_sigmoid(loss: Callable[[NDArray, NDArray], NDArray]) -> Outcome:
    """The loss must not be negative, and its gradient s - y with s = exp(z) / (1 + sum_c exp(z_c))."""
    rng, h = np.random.default_rng(0), 1e-5
    z, y = 3 * rng.standard_normal((1000, 10)), rng.integers(0, 10, 1000)
    steps = h * np.eye(10)
    slopes = np.stack([(loss(z + step, y) - loss(z - step, y)) / (2 * h) for step in steps], axis=-1)
    s = np.exp(z) / (1 + np.exp(z).sum(axis=-1, keepdims=True))
    least, off = float(loss(z, y).min()), float(np.abs(slopes - (s - np.eye(10)[y])).max())
    evidence = (
        f"least value {least:.3g} on random scores, the gradient is off by {0.0 if off < 1e-6 else off:.2g}"
    )
    return Outcome(least >= 0 and off < 1e-6, evidence)


@ERRATA.add(
    "hidden_sparsity",
    place="Section V-C, Figure 8",
    printed="FedIterHT for a 10-sparse vector diverges at learning rates 0.004, 0.01 and 0.02; no other "
    "tau is given",
    corrected="with the printed loss and tau = 10 it does not; a conjecture is tau = 200, with which it "
    "does, as it does with gradients summed over the minibatch",
    forms=(10, 200),
    conjecture=True,
)
def _diverges(sparsity: int) -> Outcome:
    """Figure 8's left panel: FedIterHT with the printed loss diverges at the three larger learning rates."""
    steps, seeds, lost = np.array([0.004, 0.01, 0.02]), range(1, 6), 0
    for seed in seeds:
        data, solution = regression(typed("fedgradmp", _COMMON | _FIGURE8), 1.0, 0.0, seed)
        history = simulate(
            FedIterHT(step=steps, sparsity=sparsity, local_steps=3, batch=40),
            data,
            Streams(_SEED, (seed,) * len(steps)),
            30,
            metrics={"error": relative_error(solution)},
            record_every=30,
        )
        lost += int(np.count_nonzero(~(history.metrics["error"][-1] <= 10)))
    total = len(seeds) * len(steps)
    return Outcome(lost == total, f"with tau = {sparsity}, {lost} of {total} runs diverge in 30 rounds")


@ERRATA.add(
    "mean_law",
    place="Section V-A",
    printed="mu_i ~ N(alpha, 0)",
    corrected="mu_i ~ N(0, alpha), as two sentences before",
    forms=(
        lambda rng, alpha: rng.normal(alpha, 0.0, 50),
        lambda rng, alpha: rng.normal(0.0, math.sqrt(alpha), 50),
    ),
)
def _alpha_is_heterogeneity(means: Callable[[np.random.Generator, float], NDArray]) -> Outcome:
    """The clients' means must vary as alpha says: their variance is alpha, up to a third."""
    ratios = [float(np.var(means(np.random.default_rng(0), alpha))) / alpha for alpha in (0.5, 2.5)]
    holds = all(abs(ratio - 1) < 1 / 3 for ratio in ratios)
    return Outcome(holds, "variance {:.2g} and {:.2g} times alpha, at 0.5 and 2.5".format(*ratios))


@ERRATA.add(
    "rip_at_least",
    place="Section IV-D, sparse linear regression",
    printed="if the RIP constant is at least delta, squared lengths are within 1 - delta and 1 + delta",
    corrected="if it is at most delta",
    forms=(0.6, 0.2),
)
def _bounds_isometry(constant: float) -> Outcome:
    """(1 - delta)|z|^2 <= |Az|^2 <= (1 + delta)|z|^2 with delta = 0.3, of a matrix with this RIP constant."""
    squared = np.array([1 - constant, 1 + constant])  # of A = diag, at both unit vectors
    holds = bool((np.abs(squared - 1) <= 0.3).all())
    return Outcome(holds, f"RIP constant {constant:g}, |Az|^2 between {squared[0]:g} and {squared[1]:g}")


@ERRATA.add(
    "stable_rank",
    place="Section IV-D, after Corollary 10",
    printed="delta_tau = C |B|_F^2 / |B|_F^2 tau log(n/tau)",
    corrected="delta_tau = C |B| / |B|_F sqrt(tau log(n/tau)), by the inverse root of the stable rank, "
    "as Corollary 10 has it; |B|^2 / |B|_F^2 tau log(n/tau) is its square",
    forms=(lambda rank: 1.0, lambda rank: rank**-0.5),
)
def _follows_isometry(predicted: Callable[[float], float]) -> Outcome:
    """delta must be a constant times what is predicted, up to a half, for all stable ranks.

    B has orthonormal rows, as many as its stable rank, so that BA is Gaussian.
    """
    rng, ratios = np.random.default_rng(1), {}
    for rank in (25, 100, 400, 1600, 6400):
        BA = rng.standard_normal((rank, 60)) / math.sqrt(rank)
        ratios[rank] = isometry_constant(BA, 3, rng, 200) / predicted(rank)
    shown = ", ".join(f"{ratio:.3g}" for ratio in ratios.values())
    holds = bool(max(ratios.values()) < 1.5 * min(ratios.values()))
    return Outcome(holds, f"isometry constants over what is predicted, at stable ranks 25 to 6400: {shown}")


def _contraction(first: Callable[[float, float, float], float], eta: float) -> Outcome:
    """beta_2 must be 2c/a of Lemma 4's proof, |Delta| = |z| = 1 and no noise; `first` is its first term."""
    smooth, convex, theta, mean_square = 1.2, 1.0, 0.5, 1.5
    slack = math.sqrt(eta**2 - 1) / eta * (3 * mean_square + 1)
    c = (smooth + 1 / theta**2) - (convex - slack)
    stated = first(smooth + 1 / theta**2, convex, eta) + 2 * slack / convex
    proven = 2 * c / convex
    return Outcome(abs(stated / proven - 1) < 1e-9, f"beta_2 = {stated:.3g}, the proof has {proven:.3g}")


@ERRATA.add(
    "beta2",
    place="Lemma 4 and Theorem 5, beta_2 with eta_1 > 1",
    printed="first term 2 (rho^+ + 1/theta^2 - eta_1^2 rho^-) / (eta_1^2 rho^-)",
    corrected="2 (rho^+ + 1/theta^2 - rho^-) / rho^-, which the proof has; they agree at eta_1 = 1",
    forms=(
        lambda high, low, eta: 2 * (high - eta**2 * low) / (eta**2 * low),
        lambda high, low, eta: 2 * (high - low) / low,
    ),
)
def _contracts_at_larger_eta(first: Callable[[float, float, float], float]) -> Outcome:
    return _contraction(first, eta=1.5)


@ERRATA.add(
    "lemma4_moments",
    place="Lemma 4, end of the proof; Lemma 12 alike",
    printed="with u = E|Delta - z|, a u^2 - 2 b u - c <= 0 bounds E|Delta - z|^2 by (sqrt(c/a) + 2b/a)^2",
    corrected="with u the root of E|Delta - z|^2, for which the inequality holds, too, as E|Delta - z| is at "
    "most that, and not at least. The bound stays",
    forms=(lambda d, p: d * p, lambda d, p: d * math.sqrt(p)),
)
def _bounds_the_square(moment: Callable[[float, float], float]) -> Outcome:
    """E D^2 stays below the bound for D = d with probability p, else 0, whose moment u meets the inequality.

    The moment is of d and p, and grows as d.
    """
    a, b, c, worst = 1.0, 0.3, 0.5, 0.0
    largest_u = (b + math.sqrt(b**2 + a * c)) / a
    for p in (1.0, 0.5, 0.1):
        d = largest_u / moment(1.0, p)
        worst = max(worst, p * d**2 / (math.sqrt(c / a) + 2 * b / a) ** 2)
    return Outcome(worst <= 1, f"E D^2 comes to {worst:.3g} times the bound")


@ERRATA.add(
    "sparsity_of_differences",
    place="Lemmas 4 and 11, proofs; Corollary 6",
    printed="|grad g(x) - grad g(x*)| <= rho_tau^+ |x - x*| for tau-sparse x and x*",
    corrected="with rho_{2 tau}^+, as their difference has up to 2 tau non-zeros",
    forms=(1, 2),
)
def _smooth_along_differences(multiple: int) -> Outcome:
    """It holds for all 2-sparse differences of 1-sparse vectors, with rho of `multiple` times one coordinate.

    Of a quadratic g with Hessian A'A, rho_s^+ is the largest norm of s columns of A'A.
    """
    A = 2 + np.random.default_rng(0).standard_normal((8, 6))
    hessian = A.T @ A

    def rho(s: int) -> float:
        return max(float(np.linalg.norm(hessian[:, S], 2)) for S in combinations(range(6), s))

    worst = rho(2) / rho(multiple)  # pairs of coordinates in the worst direction
    return Outcome(worst <= 1 + 1e-12, f"gradients differ by up to {worst:.3g} times what is stated")


@ERRATA.add(
    "lemma11_square",
    place="Lemma 11, proof; its last term in Lemma 12 and Theorem 13",
    printed="|grad f_i(x*) - grad f_i(x)|^2 <= rho-bar |x - x*|^2",
    corrected="rho-bar^2. The lemma holds even without this term, since a variance is at most the mean "
    "square, 2 E(rho^2) |Delta|^2 + 2 E|grad g(x*)|^2",
    forms=(1, 2),
)
def _of_the_loss_squared(power: int) -> Outcome:
    """It holds for f = rho-bar |x|^2 / 2, whatever rho-bar, with rho-bar to the `power`."""
    worst = max(rho**2 / rho**power for rho in (0.5, 1.0, 5.0))
    return Outcome(worst <= 1, f"the left side is up to {worst:.3g} times the right")


@ERRATA.add(
    "theorem13_beta2",
    place="Theorem 13 and Lemma 12's last line, beta_2 with eta_1 = 1",
    printed="second term 3 theta^2 E((rho_tau^+)^2 + rho-bar) / rho^-, and + 1",
    corrected="6 theta^2 E(...) / rho^-, twice c / a of the proof's inequality, whose c stands there halved; "
    "and no 1, which belongs into the bracket that eta_1 = 1 removes",
    forms=((3.0, 1.0), (6.0, 0.0)),
)
def _contracts_without_variances(terms: tuple[float, float]) -> Outcome:
    """beta_2 must be 2c/a, where X/2 >= a/2 u^2 - b u, so that c is X; |Delta| = |z| = 1, no noise."""
    smooth, convex, theta, square = 1.2, 1.0, 0.5, 2.5  # square: E((rho_tau^+)^2 + rho-bar)
    halved = (smooth + 1 / theta**2) / 2 - (convex - 3 * theta**2 * square) / 2  # X/2, line by line
    proven = 2 * (2 * halved) / convex
    factor, one = terms
    stated = 2 * (smooth + 1 / theta**2 - convex) / convex + factor * theta**2 * square / convex + one
    return Outcome(abs(stated / proven - 1) < 1e-9, f"beta_2 = {stated:.3g}, the proof has {proven:.3g}")


@ERRATA.add(
    "lemma12",
    place="Lemma 12, beta_2",
    printed="first term 4 ((2 eta_1^2 - 1) (rho^+ + 1/theta^2) - eta_1^2 rho^-) / (eta_1^2 rho^-)",
    corrected="2 (rho^+ + 1/theta^2 - rho^-) / rho^-, half of that at eta_1 = 1, as in Theorem 13",
    forms=(
        lambda high, low, eta: 4 * ((2 * eta**2 - 1) * high - eta**2 * low) / (eta**2 * low),
        lambda high, low, eta: 2 * (high - low) / low,
    ),
)
def _contracts_at_eta_one(first: Callable[[float, float, float], float]) -> Outcome:
    return _contraction(first, eta=1.0)


@ERRATA.add(
    "optimal_bias",
    place="Remark 4",
    printed="with (12) the squared residual is of order tau log n / (N|D|), the optimal statistical bias",
    corrected="tau log n / |D|: where clients' noise is independent, (12) holds with a beta^2 that grows "
    "as N, and its factor 1 + beta^2 takes back what averaging over the clients gives",
    forms=(lambda N: 1 / N, lambda N: 1.0),
)
def _bound_falls(predicted: Callable[[int], float]) -> Outcome:
    """2 (1 + beta^2) |P grad f(x*)|^2, with the least beta of (12), falls with N as predicted, up to a half.

    Clients' gradients at x* are the noise of their own samples, so independent; P is on 40 coordinates.
    """
    rng, ratios = np.random.default_rng(0), {}
    for N in (10, 40, 160, 640):
        slopes = rng.standard_normal((200, N, 40))  # on 200 supports
        mean = slopes.mean(axis=1, keepdims=True)
        square = (mean**2).sum(axis=-1).squeeze()
        beta2 = (((slopes - mean) ** 2).sum(axis=-1).mean(axis=1) / square).max()
        ratios[N] = 2 * (1 + beta2) * square.max() / predicted(N)
    shown = ", ".join(f"{ratio / ratios[10]:.3g}" for ratio in ratios.values())
    holds = bool(max(ratios.values()) < 1.5 * min(ratios.values()))
    return Outcome(holds, f"the bound over what is predicted, at N = 10, 40, 160 and 640: {shown}")


@ERRATA.add(
    "theorem7_residual",
    place="Theorem 7",
    printed="nu + delta^2 in the residual",
    corrected="2 nu + 2 (1 + eta_2)^2 delta^2: the proof's last line has the factor 2 (1 + eta_2)^2 "
    "before xi_1, xi_2 and delta^2, as before beta_1 beta_2",
    forms=((1, 1), (2, 8)),
)
def _inexact_residual(factors: tuple[int, int]) -> Outcome:
    """Theorem 7's residual, of nu and delta^2 times the factors, must be what its proof's recursion comes to.

    One client, eta = 1, so that 1 + eta_2 = 2 and 2 eta_3^2 + 2 = 4.
    """
    beta1, beta2, xi1, xi2, delta, K = 1.05, 0.02, 0.3, 0.2, 0.5, 3
    error = 1.0
    for _ in range(100):
        for _ in range(K):
            error = 2 * 2**2 * (beta1 * (beta2 * error + xi2) + xi1 + delta**2)
        error *= 4
    mu, nu = 2 * 2**2 * beta1 * beta2, 2**2 * (beta1 * xi2 + xi1)
    stated = 4 * (factors[0] * nu + factors[1] * delta**2) / (1 - 4 * mu**K) * (1 - mu**K) / (1 - mu)
    holds = abs(stated / error - 1) < 1e-9
    return Outcome(holds, f"residual {stated:.4g}, the recursion comes to {error:.4g}")


# Powers mu(i)^K, or what Theorem 8 sums of clients' noise; of twelve clients.
_OF_CLIENTS = np.linspace(0.1, 0.9, 12) ** 2


def _mean_over_cohorts(L: int) -> float:
    """Expectation of a cohort's mean over all cohorts of L clients, each as likely."""
    return float(np.mean([_OF_CLIENTS[list(cohort)].mean() for cohort in combinations(range(12), L)]))


def _is_the_expectation(stated: Callable[[NDArray, int], float]) -> Outcome:
    """What is stated of a cohort's mean must be its expectation, for 1, 3, 6 and 12 of 12 clients."""
    ratios = {L: stated(_OF_CLIENTS, L) / _mean_over_cohorts(L) for L in (1, 3, 6, 12)}
    shown = ", ".join(f"{ratio:.3g}" for ratio in ratios.values())
    holds = all(abs(ratio - 1) < 1e-9 for ratio in ratios.values())
    return Outcome(holds, f"stated over expected, with 1, 3, 6 and 12 clients of 12: {shown}")


@ERRATA.add(
    "theorem8_cohort",
    place="Theorem 8, kappa; Remark 6; Figure 11, caption",
    printed="kappa has the maximum over cohorts of (1/L) sum_{i in S} mu(i)^K, and falls as L grows",
    corrected="cohorts are uniform and independent of x_t, so that the proof's expectation is (1/N) sum_i "
    "mu(i)^K with every L: Theorem 8's kappa is Theorem 5's, and predicts no effect of the cohort",
    forms=(lambda values, L: np.sort(values)[-L:].mean(), lambda values, L: values.mean()),
)
def _rate_of_cohorts(stated: Callable[[NDArray, int], float]) -> Outcome:
    return _is_the_expectation(stated)


@ERRATA.add(
    "theorem8_noise",
    place="Theorem 8, nu",
    printed="(1/L) sum_{i=1}^N of the clients' sigma_i^2 terms",
    corrected="(1/N) sum_{i=1}^N, the expectation of the cohort's mean; as printed it is N/L times that",
    forms=(lambda values, L: values.sum() / L, lambda values, L: values.mean()),
)
def _noise_of_cohorts(stated: Callable[[NDArray, int], float]) -> Outcome:
    return _is_the_expectation(stated)


@ERRATA.add(
    "theorem5_residual",
    place="Theorem 5, from (17) on; Theorems 7 and 8 alike",
    printed="nu sum_i p_i (1 - mu(i)^K)/(1 - mu(i)), with nu the mean of the clients' terms",
    corrected="sum_i p_i nu(i) (1 - mu(i)^K)/(1 - mu(i)): (17) has one nu for all clients, and cannot be "
    "applied to their sum weighted by mu(i); where noisy clients are the slow ones the residual is larger",
    forms=(lambda p, nu, g: (p @ nu) * (p @ g), lambda p, nu, g: p @ (nu * g)),
)
def _residual_of_clients(stated: Callable[[NDArray, NDArray, NDArray], float]) -> Outcome:
    """The noise that a round adds must be what each client's recursion e <- mu e + nu comes to, K times."""
    p, mu, nu, K = np.array([0.5, 0.5]), np.array([0.05, 0.6]), np.array([0.1, 1.0]), 4
    errors = np.zeros(2)
    for _ in range(K):
        errors = mu * errors + nu
    added, said = float(p @ errors), float(stated(p, nu, (1 - mu**K) / (1 - mu)))
    return Outcome(abs(said / added - 1) < 1e-9, f"{said:.4g} stated, the recursions come to {added:.4g}")


@ERRATA.add(
    "theorem8_power",
    place="Theorem 8",
    printed="mu = max_i [(1 + eta_2)^2 beta_1 beta_2]^K, in (1 - mu^K)/(1 - mu)",
    corrected="mu without the power K, as in Theorem 5",
    forms=(3, 1),
)
def _all_clients_is_theorem5(power: int) -> Outcome:
    """With equal clients and L = N, Theorem 8's residual must be Theorem 5's."""
    m, K = 0.6, 3
    expected = 1 + m + m**2
    stated = (1 - (m**power) ** K) / (1 - m**power)
    return Outcome(abs(stated - expected) < 1e-12, f"factor {stated:.4g}, Theorem 5's is {expected:.4g}")


@ERRATA.add(
    "figure11_caption",
    place="Figure 11, caption",
    printed="residuals in the right panel decay to zero since the measurements are noiseless",
    corrected="they do in the left panel; the right one is the noisy case, says the text",
    forms=(0.0, 4e-6),
)
def _residual_is_left(noise: float) -> Outcome:
    """Figure 11's right panel, whose residuals the text compares between cohorts, needs some."""
    error, _ = _recover(noise=noise)
    return Outcome(error > 1e-10, f"residual {error:.2g}")
