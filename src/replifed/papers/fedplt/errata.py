"""Errata of Bastianello, Liu and Johansson 2024."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from replifed.algorithms import splitting_theory
from replifed.algorithms.fedplt import FedPLT
from replifed.algorithms.local_solvers import Accelerated, Gradient
from replifed.claims.errata import Errata, Outcome
from replifed.papers.fedplt import release
from replifed.papers.fedplt.paper import FEDPLT_RATES, TABLE4
from replifed.papers.fedplt.trials import Trial, rate, regression
from replifed.parts import typed
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Logistic
from replifed.problems.minimiser import minimiser

_SHAPE = {"replicates": (1, 2, 3, 4, 5, 6), "agents": 10, "samples": 20, "features": 15, "rounds": 50}
_DATA = {"seed": 17572, "ridge": 0.5, "loss": "sum", "data": "planted"}
_SETTINGS = typed("fedplt", {"problem": "exactness", **_SHAPE, **_DATA})
_STEPS, _RHO = 10, 0.3

ERRATA = Errata("fedplt")


def _rates(
    solver: Any, rho: NDArray, loss: str = "sum", features: float = 1.0, intercept: float = 1.0
) -> NDArray:
    """Rates (S, G) of Fed-PLT with penalties (G,), on features and an intercept's column times factors."""
    trial = Trial(_SETTINGS.with_(loss=loss))
    if (features, intercept) != (1.0, 1.0):
        X, y = trial.problem.X * np.r_[intercept, np.full(_SETTINGS.features, features)], trial.problem.y
        trial.problem = DenseLinearModel(X, y, Logistic(), l2=trial.problem.l2, summed=loss == "sum")
        trial.solution = minimiser(trial.problem, len(trial.replicates))
    S = len(trial.replicates)
    algorithm = FedPLT(rho=np.tile(rho, S), solver=solver)
    return rate(trial.traces(algorithm, np.ones((S, len(rho)), bool)))


@ERRATA.add(
    "modulus",
    place="Section VII, constants mu and L of f_i",
    printed="f_i is epsilon-strongly convex, with the regulariser epsilon / (2 N) |x|^2",
    corrected="f_i is epsilon / N-strongly convex",
    forms=(5.0, 0.5),
)
def modulus(value: float) -> Outcome:
    """Far out, where the logistic terms are flat, a strongly convex f_i must still curve by its modulus."""
    problem = regression(_SETTINGS.with_(replicates=(1,), loss="mean"))
    far = np.full((1, 10, problem.dim), 1e4)
    least = float(np.linalg.eigvalsh(problem.per_client_hessians(far))[..., 0].min())
    return Outcome(least >= value * (1 - 1e-9), f"{value:g} asked, curvature of {least:.3g} found")


@ERRATA.add(
    "mean",
    place="Section VII, local loss",
    printed="f_i averages the logistic losses of its 20 points, whose features' scale is not stated",
    corrected="a conjecture: f_i sums them; or the features and the intercept's column are sqrt(20) times "
    "larger, with which the mean is the same problem; it is not if the features alone are",
    forms=(("mean", 1.0, 1.0), ("sum", 1.0, 1.0)),
    conjecture=True,
)
def mean(form: tuple[str, float, float]) -> Outcome:
    """The best rate over rho at N_e = 10 must be the published one, and its rho about 0.3.

    A form is the loss, and the factors of the features and of the intercept's column. With sqrt(20) for both
    the mean passes as well.
    """
    grid = np.geomspace(0.1, 3.0, 12)
    means = _rates(Gradient(steps=_STEPS), grid, *form).mean(axis=0)
    best, at = float(means.min()), float(grid[means.argmin()])
    near = abs(best - FEDPLT_RATES[0]) < 0.06 and 0.2 <= at <= 0.45
    return Outcome(near, f"best rate {best:.3f} at rho = {at:.2f}")


@ERRATA.add(
    "step_range",
    place="below eq. (11)",
    printed="gamma in (0, 2 / (lower modulus + 1 / rho))",
    corrected="gamma in (0, 2 / (upper modulus + 1 / rho))",
    forms=("low", "high"),
)
def step_range(modulus: str) -> Outcome:
    """With any step in the range, such as nine tenths of its end, Fed-PLT must come to the minimiser."""
    trial = Trial(_SETTINGS.with_(replicates=(1,), rounds=300))
    gamma = 0.9 * 2.0 / (float(getattr(trial.moduli, modulus)[0]) + 1.0 / _RHO)
    method = FedPLT(rho=_RHO, solver=Gradient(steps=_STEPS, step=gamma))
    reached = method.observe(trial.simulate(method, metrics={}).state)["server"]
    error = float(np.linalg.norm(reached - trial.solution) / np.linalg.norm(trial.solution))
    return Outcome(error < 1e-8, f"gamma = {gamma:.3g} leaves a relative error of {error:.2g}")


class _AcceleratedAsPrinted(Accelerated):
    """Eq. (12) with step and momentum from mu and L of f_i."""

    def _constants(self, objective, runs):
        return super()._constants(replace(objective, ridge=0.0), runs)


@ERRATA.add(
    "momentum",
    place="eq. (12)",
    printed="step and momentum from mu and L of f_i",
    corrected="from those of d_i, which are larger by 1 / rho",
    forms=(_AcceleratedAsPrinted, Accelerated),
)
def momentum(solver: Callable[..., Accelerated]) -> Outcome:
    """With the best rho of each data set the accelerated solver must come near the published 0.560."""
    grid = np.geomspace(0.15, 1.0, 48)  # the valley is narrow
    mean = float(_rates(solver(steps=_STEPS), grid).min(axis=1).mean())
    return Outcome(abs(mean - FEDPLT_RATES[2]) < 0.04, f"rate {mean:.3f}, published {FEDPLT_RATES[2]}")


@ERRATA.add(
    "stochastic",
    place="Section IV-B, stochastic gradient",
    printed="the sum over the minibatch B divided by the number q of all samples",
    corrected="divided by |B|",
    forms=(20, 5),
)
def stochastic(divisor: int) -> Outcome:
    """Averaged over all minibatches, the estimate must be the gradient of the mean of the losses."""
    gradients = np.random.default_rng(0).normal(1.0, 1.0, 20)
    batches = gradients.reshape(4, 5)  # a partition: every sample is as likely
    estimate = float((batches.sum(axis=1) * (1.0 / divisor)).mean())
    truth = float(gradients.mean())
    return Outcome(abs(estimate - truth) < 1e-12, f"mean estimate {estimate:.3g}, gradient {truth:.3g}")


@ERRATA.add(
    "noise",
    place="eq. (13) and Table IV",
    printed="tau^2 is the variance of the noise in eq. (13), and tau in the table's head and caption",
    corrected="tau is: the published errors grow as its root",
    forms=(1.0, 0.5),
)
def noise(exponent: float) -> Outcome:
    """Errors proportional to the deviation tau^exponent must grow like the published ones."""
    levels = [1e-1, 1.0, 10.0]
    slope = float(np.polyfit(np.log(levels), np.log([TABLE4[tau] for tau in levels]), 1)[0])
    return Outcome(abs(slope - exponent) < 0.1, f"a slope of {exponent:g} asked, {slope:.2f} published")


@ERRATA.add(
    "quadratic",
    place="Section IV-A, footnote 6",
    printed="the proximal map of x' A x / 2 + b' x is (I + rho A)^-1 (v - b)",
    corrected="(I + rho A)^-1 (v - rho b)",
    forms=(lambda rho: 1.0, lambda rho: rho),
)
def quadratic(factor: Callable[[float], float]) -> Outcome:
    """Where the map goes, the gradient of f + |x - v|^2 / (2 rho) must be zero."""
    A, b, v = np.diag([2.0, 0.5]), np.array([1.0, -2.0]), np.array([0.7, 0.3])
    x = np.linalg.solve(np.eye(2) + _RHO * A, v - factor(_RHO) * b)
    gradient = float(np.abs(A @ x + b + (x - v) / _RHO).max())
    return Outcome(gradient < 1e-9, f"a gradient of {gradient:.2g} is left")


@ERRATA.add(
    "lipschitz",
    place="eq. (14), and with it S and S' of Propositions 1 to 3",
    printed="prox of f_i is 1 / (lower modulus + 1 / rho)-Lipschitz",
    corrected="1 / rho times that, 1 / (1 + rho lower modulus)",
    forms=(lambda mu, rho: 1 / (mu + 1 / rho), lambda mu, rho: 1 / (1 + rho * mu)),
)
def lipschitz(constant: Callable[[float, float], float]) -> Outcome:
    """On f = mu x^2 / 2 minimisers of f + |x - v|^2 / (2 rho) must move by at most so much of v's way."""
    mu, v = 0.5, np.array([1.0, 3.0])
    x = [brentq(lambda x, at=at: mu * x + (x - at) / _RHO, -10, 10) for at in v]
    moved, bound = abs(x[1] - x[0]) / abs(v[1] - v[0]), constant(mu, _RHO)
    return Outcome(
        moved <= bound * (1 + 1e-9),
        f"at mu = {mu:g} and rho = {_RHO:g} it moves by {moved:.3f} of v's way, {bound:.3f} said",
    )


@ERRATA.add(
    "stable",
    place="Proposition 1",
    printed="if S is stable, its spectral radius below one, a round T is a contraction, by |S| at most",
    corrected="if |S| < 1, which the proof uses and Proposition 2 needs; with S stable distances fall at the "
    "rate of its radius in the end, though single rounds may enlarge them",
    forms=(splitting_theory.spectral_radius, splitting_theory.norm),
)
def stable(measure: Callable[[NDArray], float]) -> Outcome:
    """Where the condition holds, no round may enlarge the distance to the fixed point.

    For f_i = x^2 / 2 on one agent, with S corrected as in `lipschitz`, and a penalty at which |S| is above
    one and one at which it is below: with the first alone, the correction would pass by being never met.
    """
    met, grown, evidence = 0, 0.0, []
    for rho in (0.1, 1.0):
        S = splitting_theory.contraction(1.0, 1.0, rho, _STEPS)
        T = splitting_theory.linear_round(np.ones((1, 1, 1)), rho, _STEPS, 1 / (1 + 1 / rho))
        growth, holds = float(np.linalg.norm(T, 2)), measure(S) < 1
        if holds:
            met, grown = met + 1, max(grown, growth)
        evidence.append(
            f"at rho = {rho:g} it is {'met' if holds else 'not met'}, and a round takes distances up to "
            f"{growth:.3f} times"
        )
    return Outcome(met > 0 and grown < 1, "; ".join(evidence))


@ERRATA.add(
    "corollary",
    place="Corollary 1",
    printed="under Assumption 2, so with probabilities p < 1, errors fall as |S|^K",
    corrected="as sigma^K of Proposition 2, sigma^2 = 1 - p + p |S|^2; as |S|^K for p = 1",
    forms=(lambda norm, p: norm, lambda norm, p: np.sqrt(1 - p + p * norm**2)),
)
def corollary(factor: Callable[[float, float], float]) -> Outcome:
    """With the chance (1 - p)^N a round moves nobody, so the mean error falls by no more than that.

    Two agents, mu = 0.5 and L = 2, N_e = 10 and p = 0.05, for the rho of a grid with the least |S|.
    """
    p, agents = 0.05, 2
    norms = (
        splitting_theory.norm(splitting_theory.contraction(0.5, 2.0, rho, 10))
        for rho in np.geomspace(0.01, 10, 61)
    )
    least, stays = min(norms), (1 - p) ** agents
    stated = float(factor(least, p))
    return Outcome(
        least < 1 and stays <= stated,
        f"|S| = {least:.3f}: {stated:.3f} said a round, at least {stays:.3f} stays",
    )


_MODULI = (2.0, 4.0, 10.0, 30.0, 100.0)  # L, with mu = 1


def _accelerated(high: float) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
    """Curvatures from 1 to `high`, and x and w of the lemma's steps from x = w = 1 on c x^2 / 2."""
    beta = (np.sqrt(high) - 1) / (np.sqrt(high) + 1)
    curvature = np.linspace(1.0, high, 30)
    x = w = np.ones_like(curvature)
    for _ in range(41):
        yield curvature, x, w
        new = w - curvature * w / high
        x, w = new, new + beta * (new - x)


@ERRATA.add(
    "root",
    place="Lemma 7 and Proposition 3",
    printed="|x^l - x*| <= (1 + high / low) (1 - sqrt(low / high))^l |x^0 - x*|",
    corrected="this bounds the square of the distance, as the lemma's proof has it",
    forms=(splitting_theory.printed_accelerated_contraction, splitting_theory.accelerated_contraction),
)
def root(factor: Callable[[float, float, int], float]) -> Outcome:
    """The factor must bound the distance to the minimiser that accelerated steps leave on quadratics.

    Of x as in the lemma, and of w, which eq. (12) returns: as a mean of x and of v in `potential`, it is
    bounded as well.
    """
    ratios = {}
    for high in _MODULI:
        for steps, (_, x, w) in enumerate(_accelerated(high)):
            ratios[high, steps] = float(np.abs([x, w]).max()) / factor(1.0, high, steps)
    high, steps = worst = max(ratios, key=lambda case: ratios[case])
    return Outcome(
        ratios[worst] <= 1,
        f"with moduli 1 and {high:g} the distance after {steps} steps is {ratios[worst]:.3f} times the bound",
    )


@ERRATA.add(
    "potential",
    place="Lemma 7, proof",
    printed="phi = f(x) - f* + mu / 2 |w - x*|^2 falls by the factor 1 - sqrt(mu / L) in every step",
    corrected="with v = w + sqrt(L / mu) (w - x) in the place of w, as in the theorem that is cited",
    forms=(0.0, 1.0),
)
def potential(weight: float) -> Outcome:
    """On quadratics phi, with w + weight sqrt(L / mu) (w - x) for w, must fall by the factor in each step."""
    times = {}
    for high in _MODULI:
        sequence = (
            c / 2 * x**2 + (w + weight * np.sqrt(high) * (w - x)) ** 2 / 2 for c, x, w in _accelerated(high)
        )
        for step, (before, after) in enumerate(itertools.pairwise(sequence), 1):
            seen = before > 1e-200  # where the curvature is L, x arrives in one step
            times[high, step] = float((after[seen] / before[seen]).max()) / (1 - 1 / np.sqrt(high))
    high, step = worst = max(times, key=lambda case: times[case])
    return Outcome(
        times[worst] <= 1 + 1e-9,
        f"with moduli 1 and {high:g}, phi after step {step} is {times[worst]:.3g} times what it may be",
    )


@ERRATA.add(
    "two_states",
    place="Proposition 1, with Definition 2",
    printed="T is contractive: a round brings any two states closer, by |S| at most",
    corrected="it brings a state closer to the fixed point, as the proof has it; that suffices to converge",
    forms=(False, True),
)
def two_states(fixed: bool) -> Outcome:
    """A round must bring two states closer by |S|, the second of which may be the `fixed` point.

    One agent, whose f' has slopes 2 and 12, and its kink below the point where the last of ten local steps
    begins, above all others. With rho = 1 S is the same as printed and as corrected in `lipschitz`. Pairs of
    states are at random, and one that differs a little in z.
    """
    low, high, rho = 2.0, 12.0, 1.0
    gamma, chi = splitting_theory.best_step(low, high, rho), splitting_theory.chi(low, high, rho)
    # From x = 0 with v = z = 1 steps by the factor chi lead towards 1 / (1 + rho low).
    kink = (1 - (chi ** (_STEPS - 1) + chi ** (_STEPS - 2)) / 2) / (1 + rho * low)

    def round_(x: NDArray, z: NDArray) -> NDArray:
        y = z  # of one agent; v = 2 y - z
        w = x
        for _ in range(_STEPS):
            w = w - gamma * (low * w + (high - low) * np.maximum(w - kink, 0.0) + (w - z) / rho)
        return np.stack([w, z + 2 * (w - y)])

    drawn = np.random.default_rng(0).normal(0.0, 1.0, (2, 2, 1000))
    near = np.array([[[0.0], [1.0]], [[0.0], [1.0 + 1e-3 * chi**_STEPS]]])  # x and z of two states
    first, second = np.concatenate([drawn, near], axis=-1)
    if fixed:
        second = np.zeros_like(first)  # f' is zero at zero
    closer = np.linalg.norm(round_(*first) - round_(*second), axis=0) / np.linalg.norm(first - second, axis=0)
    norm = splitting_theory.norm(splitting_theory.contraction(low, high, rho, _STEPS))
    most = float(closer.max())
    return Outcome(most <= norm, f"distances become up to {most:.3f} times as large, |S| = {norm:.3f}")


@ERRATA.add(
    "operator",
    place="Corollary 1, proof",
    printed="a local step is w - gamma (grad f(w) + (w - v) rho)",
    corrected="w - gamma (grad f(w) + (w - v) / rho), as in Algorithm 1",
    forms=(lambda rho: rho, lambda rho: 1 / rho),
)
def operator(weight: Callable[[float], float]) -> Outcome:
    """On quadratics the step must contract by chi, as the proof says."""
    mu, L = 0.5, 25.0
    gamma, chi = splitting_theory.best_step(mu, L, _RHO), splitting_theory.chi(mu, L, _RHO)
    moved = max(abs(1 - gamma * (curvature + weight(_RHO))) for curvature in (mu, L))
    return Outcome(moved <= chi + 1e-12, f"distances shrink by {moved:.3f}, chi = {chi:.3f}")


@ERRATA.add(
    "signs",
    place="Proposition 4, proof, the two differential equations below (20)",
    printed="- U_2 dt in both",
    corrected="+ U_2 dt in the second, as in (20)",
    forms=(-1, 1),
)
def signs(sign: int) -> Outcome:
    """After the time gamma the second process must have made a step with the gradient of its own data."""
    first, second, gamma = 3.0, 1.0, 0.1  # gradients on the two data sets
    both, differ = (first + second) / 2, (first - second) / 2
    moved = -gamma * both + sign * gamma * differ
    return Outcome(
        abs(moved + gamma * second) < 1e-12, f"it moves by {moved:.2f}, a step by {-gamma * second:.2f}"
    )


@ERRATA.add(
    "independent",
    place="Proposition 4, proof",
    printed="agents' models are independent: the divergence of all x_K is that of the one agent's x_{i,K}",
    corrected="only before the first communication: the coordinator couples them in every round",
    forms=(2, 1),
)
def independent(rounds: int) -> Outcome:
    """On quadratic losses both divergences are known; they must be equal after these rounds."""
    divergences = release.divergences(2, _RHO, _STEPS, rounds)
    times = divergences["all"] / divergences["own"]
    return Outcome(
        abs(times - 1) < 1e-9,
        f"after {rounds} round{'s' * (rounds > 1)} that of all is {times:.2f} times the one agent's",
    )


@ERRATA.add(
    "conditioned",
    place="Proposition 4, proof, below eq. (20)",
    printed="given v_{i,k}, local steps on the two data sets differ by their gradients alone, in every round",
    corrected="in the first round alone: later v_{i,k} = 2 y - z_i itself depends on the agent's data",
    forms=(2, 1),
)
def conditioned(round_: int) -> Outcome:
    """On quadratic losses v_i of this round must have the same law on both data sets."""
    divergence = release.divergences(3, _RHO, _STEPS, round_)["v"]  # of two agents v_1 is z_2
    return Outcome(
        divergence < 1e-12, f"a divergence of {divergence:.3g} s^2 / tau^2 between its laws in round {round_}"
    )


@ERRATA.add(
    "released",
    place="Proposition 4",
    printed="Algorithm 1 satisfies the bound",
    corrected="its final models do, once disclosed, as Contribution 3 says; the z_i that it sends do not",
    forms=("messages", "all"),
)
def released(what: str) -> Outcome:
    """On quadratic losses, where it is known, the divergence of what is released must be within the bound."""
    case = 1.0, _STEPS, 50
    times = release.divergences(2, *case)[what] / release.bound(*case)
    return Outcome(times <= 1, f"after {case[-1]} rounds it is {times:.2f} times the bound")
