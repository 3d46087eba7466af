"""Measures of this paper's claims alone: of runs, and of the formulas that it states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.fedgradmp_rates import Constants, Promise, theorem5
from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.curves import Curves, at, curves, level
from replifed.claims.quantities import Quantity, quantity, run
from replifed.claims.samples import Sample, paired
from replifed.claims.searches import within
from replifed.operators import dictionaries
from replifed.operators.matrices import isometry_constant, restricted_eigenvalues, stable_rank
from replifed.papers.fedgradmp import problems
from replifed.randomness import generator

if TYPE_CHECKING:
    from replifed.papers.fedgradmp import settings as of

# Relative errors below are rounding, which is another one on each processor.
MACHINE = 1e-14
# Random supports on which restricted constants are estimated.
_SUPPORTS = 20


@quantity
def logs(one: Curves) -> Curves:
    """Curves of log10 of errors, of machine precision at least; once lost, of the largest, at least one."""
    values = np.log10(np.maximum(one.values, MACHINE))
    finite = np.isfinite(values)
    largest = values.max(axis=1, initial=0.0, where=finite, keepdims=True)
    return one._replace(values=np.where(finite, values, largest))


@quantity
def tail(one: Curves) -> Sample:
    """Geometric mean of the last quarter of each curve, as a log10."""
    return level(logs(one), 0.25)


@quantity
def descent(one: Curves) -> Sample:
    """Decades by which each curve falls until its end."""
    return at(logs(one), 0) - tail(one)


@quantity
def residual(one: Curves, limit: Sample | None = None) -> Sample:
    """`tail`; where the last quarter adds a tenth or more to the descent until then, a bound from above.

    If it is known where a run comes to rest, its `limit` stands in the place of the bound.
    """
    end, earlier = tail(one), one.rounds < np.quantile(one.rounds, 0.75)
    before = tail(one._replace(rounds=one.rounds[earlier], values=one.values[:, earlier]))
    falls = before.values - end.values > 0.1 * descent(one).values.clip(min=0)
    if limit is None:
        return replace(end, bounds=np.where(falls, -1, 0))
    end, limit = paired(end, limit)
    return replace(end, values=np.where(falls, np.log10(limit.values), end.values))


@quantity
def at_rest(one: Curves, limit: Sample | None = None) -> Sample:
    """`residual` as an error, of a run that has diverged infinite."""
    found = residual(one) if limit is None else residual(one, limit)
    lost = ~one.survived
    return replace(
        found, values=np.where(lost, np.inf, 10**found.values), bounds=np.where(lost, 0, found.bounds)
    )


@quantity
def soon(one: Curves) -> Sample:
    """Value after the first fifth of the rounds."""
    return one.sample(one.values[:, one.rounds <= one.rounds[-1] / 5][:, -1])


@quantity
def worst_tenth(one: Curves) -> Sample:
    """Largest change in decades from one tenth of the rounds to the next; below zero if the curve falls."""
    values, marks = logs(one).values, np.linspace(0, one.rounds[-1], 11)
    each = np.array([np.interp(marks, one.rounds, curve) for curve in values])
    return one.sample(np.diff(each, axis=1).max(axis=1))


@quantity
def way_to(one: Curves, limit: Sample) -> Sample:
    """Share of the way from the start to the limit that the last quarter has come."""
    start = one.sample(one.values[:, 0])
    return (start - tail(one).map(lambda end: 10**end)) / (start - limit)


@quantity
def pace(one: Curves, relative_floor: float) -> tuple[Sample, Sample]:
    """How evenly each curve descends until the floor, a share of its start, or until its last round.

    Returns what the error is multiplied by in its worst round; and the descent in the second half of the
    rounds, as a multiple of that in the first. Both stay below one and near one or above it in linear
    convergence, which a theorem bounds from above; in sublinear convergence the second falls.
    """
    worst, halves = np.empty((2, len(one.seeds)))
    for row, values in enumerate(one.values):
        floor = relative_floor * values[0]
        reached = np.flatnonzero(values <= floor)
        end = reached[0] if len(reached) else len(values) - 1
        y = np.log(np.maximum(values[: end + 1], floor))
        middle = np.interp(end / 2, np.arange(end + 1), y)
        worst[row] = np.exp(np.diff(y).max())
        halves[row] = (middle - y[-1]) / max(y[0] - middle, 1e-300)
    return one.sample(worst), one.sample(halves)


@quantity
def as_long(one: Curves, other: Curves) -> Curves:
    """Curves up to the last round of the others."""
    there = one.rounds <= other.rounds[-1]
    return one._replace(rounds=one.rounds[there], values=one.values[:, there])


@quantity
def kept(one: Curves, other: Curves) -> Sample:
    """The descent of `other` as a share of that of `one`."""
    if descent(one).min <= 0:
        raise NotMeasurableError("on some seed nothing descends, so that nothing can be lost")
    return descent(other) / descent(one)


def column(
    value: str, experiment: str, method: str = "fedgradmp", variant: str | None = None, **where: Any
) -> Quantity:
    """Curves of a column of a method's runs, or of those of a variant."""
    where = where if variant is None else {"variant": variant, **where}
    return curves(run(experiment, method), value, **where)


error = partial(column, "error")
limit = partial(column, "limit")


def log_error(after: int, *curve: str, **where: Any) -> Quantity:
    """Decimal logarithm of the error after some rounds."""
    return at(logs(error(*curve, **where)), after)


def log_end(*curve: str, **where: Any) -> Quantity:
    """Decimal logarithm of the error at the end."""
    return tail(error(*curve, **where))


def more_accurate(mine: Quantity, theirs: Quantity) -> Quantity:
    """Difference of two accuracies, with a note on what they are."""
    return (mine - theirs).note("{0.mean:.4f} against {1.mean:.4f}", mine, theirs)


def decades(other: Quantity, best: Quantity) -> Quantity:
    """Difference of decimal logarithms, with a note on what they are of."""
    return (other - best).note("{0.antilog:.3g} against {1.antilog:.3g}", other, best)


@quantity
def end_floor(one: Curves) -> Sample:
    """Twice what a curve ends at, relative to its start; a half where the curve has not fallen by half."""
    return (2 * tail(one).map(lambda ends: 10**ends) / one.sample(one.values[:, 0])).map(
        lambda share: np.minimum(share, 0.5)
    )


@quantity
def at_equal(total: Sample, theirs: Curves, spent: Curves) -> Sample:
    """Values of `theirs` when as much work has been `spent` as the `total`, on a line between two records.

    A run that has diverged spends no more, and stays lost.
    """
    total, theirs, spent = paired(total, theirs, spent)
    values = np.empty(len(total.values))
    for row, (wanted, used, curve) in enumerate(zip(total.values, spent.values, theirs.values, strict=True)):
        if wanted > used[-1] > used[-2]:
            raise NotMeasurableError(f"the other method's run ends after {used[-1]:.3g} of {wanted:.3g}")
        values[row] = np.interp(wanted, used, curve)
    return theirs.sample(values)


@quantity
def over_budgets(mine: Curves, sent: Curves, theirs: Curves, spent: Curves) -> tuple[Sample, Sample]:
    """Accuracies at all budgets that `mine` has `sent`, after each recorded round, against those of `theirs`.

    Returns, for each seed, the mean difference and the share of budgets at which `mine` is ahead. Values of
    `theirs` lie on a line between two records.
    """
    mine, sent, theirs, spent = paired(mine, sent, theirs, spent)
    mean, ahead = np.empty((2, len(mine.seeds)))
    for row, (own, budgets, other, used) in enumerate(
        zip(mine.values, sent.values, theirs.values, spent.values, strict=True)
    ):
        if budgets[-1] > used[-1]:
            raise NotMeasurableError(f"the other method sends {used[-1]:.3g} bits of {budgets[-1]:.3g}")
        difference = own[1:] - np.interp(budgets[1:], used, other)
        mean[row], ahead[row] = difference.mean(), (difference > 0).mean()
    chaotic = mine.sample(mean).chaotic or theirs.sample(mean).chaotic
    return Sample(mean, seeds=mine.seeds, chaotic=chaotic), Sample(ahead, seeds=mine.seeds, chaotic=chaotic)


@quantity
def with_bits(history: pd.DataFrame) -> pd.DataFrame:
    """The history with the bits sent both ways."""
    return history.assign(bits=history["bits_up"] + history["bits_down"])


@quantity
def recovered(history: pd.DataFrame, within: float) -> Measured:
    """True if the frame's PSNR comes within some decibels of the best approximation's."""
    history = history[history["part"] == "curve"]
    last = history[history["round"] == history["round"].max()]
    tau, atoms = last["sparsity"].iloc[0], last["atoms"].iloc[0]
    if tau >= atoms:
        raise NotMeasurableError(f"tau is {tau:g} of {atoms:g} atoms: nothing is sparse")
    psnr, best = last["psnr"].to_numpy(), last["best_psnr"].to_numpy()
    note = f"PSNR {psnr.mean():.2f} dB, best {best.mean():.2f} dB"
    return Measured(psnr >= best - within, shown=float(psnr.mean()), note=note)


def ended(ends: Sample) -> str:
    """Number of runs that diverge, and range of the ends of the others, as text."""
    values = ends.values
    finite = values[np.isfinite(values)]
    others = f"; others end between {finite.min():.3g} and {finite.max():.3g}" if finite.size else ""
    return f"{len(values) - len(finite)} of {len(values)} runs diverge{others}"


# -- theorems -------------------------------------------------------------------------------------------


def _constants(smoothness: NDArray) -> Constants:
    """Clients of equal weight with rho^- = 1."""
    N = len(smoothness)
    return Constants(convexity=np.ones(N), smoothness=smoothness, weights=np.full(N, 1 / N))


def promises(
    history: pd.DataFrame, settings: of.Isometry, solver: str = "exact"
) -> Iterator[tuple[tuple[float, float, int], pd.DataFrame, Promise]]:
    """Condition number, noise and K of each case of the isometry experiment, its runs and what is promised.

    By Theorem 5 where sub-problems are solved to the end; by Theorem 7 with the solver "gd", one gradient
    step, of which the largest error made is delta.
    """
    cases = history[history["solver"] == solver].groupby(["condition", "noise", "local_steps"])
    for (condition, noise, K), runs in cases:
        constants = _constants(np.full(settings.clients, condition))  # by construction
        accuracy = None if solver == "exact" else float(runs["accuracy"].max())
        promised = theorem5(constants, int(K), float(runs["peak"].mean()), accuracy=accuracy)
        yield (condition, noise, K), runs, promised


def unlike(N: int, smoothness: float, other: float) -> Constants:
    """N clients, of which one has another constant."""
    return _constants(np.append(np.full(N - 1, smoothness), other))


def rate_worsens(clients: Constants) -> Measured:
    """Remark 3: whether kappa is below one at K = 1 and above one at some K, with one mu above one."""
    kappa = [theorem5(clients, K, 1.0).kappa for K in range(1, 11)]
    mu = 4 * clients.beta1() * clients.beta2()
    note = f"mu {mu[0]:.2g}, on one client {mu[-1]:.3g}; kappa {kappa[0]:.2g} to {kappa[-1]:.2g}"
    return Measured(np.array([mu[-1] > 1, kappa[0] < 1, max(kappa) > 1]), seeds=1, note=note)


def residual_turns(clients: Constants) -> Measured:
    """Remark 3: whether the residual both falls and rises with K where all mu are below one."""
    left = np.array([theorem5(clients, K, 1.0).residual for K in range(1, 11)])
    mu, change = 4 * clients.beta1() * clients.beta2(), np.diff(left)
    note = f"mu up to {mu.max():.2g}; as multiples of that at K = 10: {left[0] / left[-1]:.3g} at K = 1, "
    note += f"{left.min() / left[-1]:.3g} at K = {1 + left.argmin()}"
    return Measured(np.array([mu.max() < 1, change.min() < 0, change.max() > 0]), seeds=1, note=note)


def client_constants(settings: of.Regression, alpha: float, replicate: int) -> pd.DataFrame:
    """Restricted constants of each client's loss over 4 tau coordinates, estimated on random supports."""
    data, _ = problems.regression(settings, alpha, 0.0, replicate)
    rows = []
    for i, A in enumerate(data.X[0]):
        rng = generator(settings.seed, replicate, None, f"supports/{i}")
        low, high = restricted_eigenvalues(A / np.sqrt(data.n_samples), 4 * settings.planted, rng, _SUPPORTS)
        rows.append({"client": i + 1, "low": low, "high": high, "condition": high / max(low, 1e-300)})
    return pd.DataFrame(rows)


@quantity
def conditions_met(*experiments: of.Regression) -> Measured:
    """True if any client of the experiments with these settings has 2 rho^- > rho^+, as the theorems need."""
    clients = pd.concat(client_constants(one, one.alphas[0], one.replicates[0]) for one in experiments)
    note = f"the smallest ratio of any client is {clients['condition'].min():.3g}, by an estimate from below"
    return Measured((2 * clients["low"] > clients["high"]).to_numpy(), seeds=1, note=note)


def theorem13_contracts(factor: float = 4.0) -> Measured:
    """True if kappa of Theorem 13 is below one for some theta in the easiest case.

    With exact projections, with which (1 + eta_2)^2 is the `factor` 4, rho^+ = rho^-, and K = 1: a power of
    what exceeds one grows with K.
    """
    theta, rho = np.geomspace(1e-3, 1e3, 2001)[:, None], np.geomspace(1e-3, 1e3, 61)
    beta_1, beta_2 = 1.0, 2 / (theta**2 * rho) + 3 * theta**2 * (rho**2 + rho) / rho + 1
    least = (4 * (factor * beta_1 * beta_2)).min()
    return Measured(np.array([least < 1]), note=f"kappa is at least {least:.3g}")


@quantity
def steps_within(lowest: float, largest: float, *found: dict[str, Any]) -> Measured:
    """True if each best step, of every method and variant, lies between `lowest` and `largest`."""
    records = (record for one in found for record in one["variants"].values())
    return within(lowest, largest, records)


def isometries() -> tuple[NDArray, NDArray]:
    """Isometry constants of BA / |B|_F and stable ranks of B, ascending, by draw and rank."""
    n, tau, rows, decays, draws = 200, 4, 100, (2.0, 1.0, 0.5, 0.0), 10
    constants, ranks = np.empty((2, draws, len(decays)))
    for draw in range(draws):
        rng = generator(0, draw, None, "corollary 10")
        for number, decay in enumerate(decays):
            B = rng.standard_normal((rows, n)) * np.arange(1, n + 1) ** -decay
            A = np.sqrt(n) * dictionaries.gaussian(rng, n, n)
            ranks[draw, number] = stable_rank(B)
            constants[draw, number] = isometry_constant(B @ A / np.linalg.norm(B), tau, rng)
    return constants, ranks


def isometry_improves(found: tuple[NDArray, NDArray]) -> Measured:
    """Corollary 10: the isometry constant falls, on average, as the stable rank of B grows."""
    constants, ranks = found
    rank, constant, single = ranks.mean(axis=0), constants.mean(axis=0), np.diff(constants) < 0
    note = "; ".join(f"rank {r:.3g}: {c:.3g}" for r, c in zip(rank, constant, strict=True))
    note += f"; in {single.sum()} of {single.size} steps of single draws"
    return Measured(np.diff(constant) < 0, seeds=len(constants), note=note)


def logistic_bounds(K: int = 10, reference: float = 1.0) -> Measured:
    """True if the logistic losses' second derivatives in the scores b'x stay within Section IV-D's bounds.

    With K classes those of ln(`reference` + sum_i exp z_i), whose gradient is the printed s: eigenvalues of
    diag(s) - ss', so that the bounds hold jointly in all classes. On scores up to r of one class, those of
    the other K - 1 being equal.
    """
    held = []
    for r in (0.1, 1.0, 3.0, 10.0):
        z = np.linspace(-r, r, 201)
        binary = 1 / np.cosh(z) ** 2  # 4 s(2z) (1 - s(2z))
        own, other = (scores.ravel()[:, None] for scores in np.meshgrid(z[::5], z[::5]))
        weights = np.exp(np.where(np.arange(K) == 0, own, other))
        total = (reference + weights.sum(axis=-1))[:, None, None]
        s, rest = weights[:, :, None] / total, reference / total
        # The least eigenvalue by the inverse, 1/s + 11'/s_0, as it is far below the rounding of the largest.
        least = 1 / np.linalg.eigvalsh(np.eye(K) / s + 1 / rest)[:, -1]
        largest = np.linalg.eigvalsh(np.eye(K) * s - s * s.swapaxes(1, 2))[:, -1]
        bounds = 4 / (1 + np.exp(r)) ** 2, (1 + K * np.exp(2 * r)) ** -2.0
        held.append([binary.min() / bounds[0], least.min() / bounds[1], 1 / binary.max(), 1 / largest.max()])
    note = f"at least {np.min(held):.3g} of the bounds"
    return Measured(np.array(held).ravel() >= 1 - 1e-12, seeds=1, note=note)
