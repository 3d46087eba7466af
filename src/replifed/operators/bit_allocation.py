"""How many bits each eigenvector of a Hessian is worth (Dal Fabbro et al. 2023, Sections III and IV).

A Hessian with eigenvalues l_1 >= ... >= l_n is approximated by sum_{i<=q} (l_i - rho) v_i v_i' + rho I
with rho = l_{q+1}. Vector i is sent with b_i bits per coordinate, which gives its coordinates
an error of variance Delta_i^2/12 with Delta_i = 2^(1-b_i). The expected squared Frobenius error is
(eq. 14), with lbar_i = l_i - rho and x_i = Delta_i^2,

    f(x, q) = sum_{i>q} lbar_i^2 + sum_{i<=q} gamma_i x_i
              + (a2 - a3) sum_{i<=q} lbar_i^2 x_i^2 + a3 (sum_{i<=q} lbar_i x_i)^2.

Problems (16) and (21) minimise it under sum b_i = B. In terms of the bits sent in all, of which p_i
came earlier, (21) is (16) with the further constraint b_i >= p_i; so one solver serves both. Every
function takes stacks of devices and rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Steps of the safeguarded Newton iteration; some ten are needed, bisection alone takes 60.
_MOST_STEPS = 200
_BITS_TOLERANCE = 1e-12


def a1(n: int) -> float:
    """(n + 1)/6, of eq. (12); printed as 1/12 + n/6, which the moments of the error contradict."""
    return (n + 1) / 6


def a2(n: int) -> float:
    """n/80 + n (n - 1)/144, of eq. (12)."""
    return n / 80 + n * (n - 1) / 144


def a3(n: int) -> float:
    """n/144, of eq. (13)."""
    return n / 144


def coefficients(values: NDArray, q: NDArray) -> tuple[NDArray, NDArray]:
    """gamma_i and lbar_i of eq. (14) for q vectors; zero for i > q.

    Parameters
    ----------
    values : array, shape (..., n)
        Eigenvalues, not increasing.
    q : int array, shape (...)
        Vectors considered, 0 to n - 1.

    Returns
    -------
    gamma, lbar : arrays, shape (..., n)
    """
    n = values.shape[-1]
    q = np.asarray(q)[..., None]
    chosen = np.arange(n) < q
    rho = np.take_along_axis(values, np.broadcast_to(q, (*values.shape[:-1], 1)), axis=-1)
    lbar = np.where(chosen, values - rho, 0.0)
    d = np.where(chosen, 0.0, rho - values).sum(axis=-1, keepdims=True) / 6
    return d * lbar + a1(n) * lbar**2, lbar


def expected_error(values: NDArray, q: NDArray, x: NDArray) -> NDArray:
    """f(x, q) of eq. (16), shape (...); x_i for i > q does not matter."""
    n = values.shape[-1]
    gamma, lbar = coefficients(values, q)
    q = np.asarray(q)[..., None]
    rho = np.take_along_axis(values, np.broadcast_to(q, (*values.shape[:-1], 1)), axis=-1)
    left_out = np.where(np.arange(n) < q, 0.0, values - rho) ** 2
    scaled = lbar * x
    quadratic = (a2(n) - a3(n)) * (scaled**2).sum(axis=-1) + a3(n) * scaled.sum(axis=-1) ** 2
    return left_out.sum(axis=-1) + (gamma * x).sum(axis=-1) + quadratic


def solve(values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int) -> NDArray:
    """Solve the convex problem (16), or (21) where bits were sent before, for given q.

    Parameters
    ----------
    values : array, shape (..., n)
        Eigenvalues, not increasing.
    q : int array, shape (...)
        At most n - 1.
    previous : int array, shape (..., n)
        p_i, bits per coordinate sent so far; zero for i > q.
    budget : int array, shape (...)
        B, bits per coordinate to share out now.
    b_max : int
        The most bits that a coordinate may get over time.

    Returns
    -------
    array, shape (..., n)
        b_i, real numbers with p_i <= b_i <= b_max that sum to min(B, room) + sum p_i. Vectors with
        lbar_i = 0 are worth no bits, and leave no room.

    Notes
    -----
    Stationarity in x_i with multiplier nu is x_i (gamma_i + 2 (a2 - a3) lbar_i^2 x_i + 2 a3 lbar_i S) = nu
    with S = sum lbar_j x_j. Given nu, S is the fixed point of a contraction (its factor is below
    n a3 / (2 (a2 - a3)) < 1); sum b_i decreases in nu. So Newton's method in log nu, safeguarded by
    bisection, finds the one solution.
    """
    n = values.shape[-1]
    gamma, lbar = coefficients(values, q)
    # No vector behind the last one considered gets bits.
    k, everyone = max(int(np.max(q)), 1), previous
    gamma, lbar, previous = gamma[..., :k], lbar[..., :k], previous[..., :k]
    worth = lbar > 0
    room = np.where(worth, b_max - previous, 0)
    wanted = np.minimum(np.asarray(budget), room.sum(axis=-1)) + previous.sum(axis=-1)
    highest = np.exp2(2.0 * (1 - previous))
    lowest = np.where(worth, 4.0 ** (1 - b_max), highest)
    square, cross = 2 * (a2(n) - a3(n)) * lbar**2, 2 * a3(n) * lbar

    def slope(x: NDArray) -> NDArray:
        return gamma + square * x + cross * (lbar * x).sum(axis=-1, keepdims=True)

    # Beyond these multipliers all x sit at their bounds.
    with np.errstate(divide="ignore"):
        low = np.log(np.where(worth, lowest * slope(lowest), np.inf).min(axis=-1))
        high = np.log(np.where(worth, highest * slope(highest), 0.0).max(axis=-1))
    idle = ~worth.any(axis=-1)
    low, high = np.where(idle, -1.0, low - 1e-9), np.where(idle, 1.0, high + 1e-9)
    u, s = 0.5 * (low + high), np.zeros(low.shape)
    for _ in range(_MOST_STEPS):
        nu = np.exp(u)[..., None]
        for _ in range(_MOST_STEPS):
            x, free, g = _stationary(nu, s, gamma, square, cross, lowest, highest)
            moment = np.where(free, lbar / (2 * square * x + g + ~free), 0.0)
            gap = (lbar * x).sum(axis=-1) - s
            s = s + gap / (1.0 + (moment * cross * x).sum(axis=-1))
            if np.all(np.abs(gap) <= 1e-15 * s):
                break
        bits = 1.0 - 0.5 * np.log2(x)
        excess = bits.sum(axis=-1) - wanted
        done = (np.abs(excess) <= _BITS_TOLERANCE * np.maximum(wanted, 1.0)) | (
            high - low <= 1e-15 * np.abs(u)
        )
        if done.all():
            break
        low, high = np.where(excess > 0, u, low), np.where(excess > 0, high, u)
        # d x_i / du = (nu - 2 a3 lbar_i x_i dS/du) / (4 (a2 - a3) lbar_i^2 x_i + g_i) on the free ones.
        pull = np.where(free, 1.0 / (2 * square * x + g + ~free), 0.0)
        ds = (lbar * pull * nu).sum(axis=-1) / (1.0 + (moment * cross * x).sum(axis=-1))
        growth = (pull * (nu / x - cross * ds[..., None])).sum(axis=-1) / (2 * np.log(2.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = u + excess / growth
        inside = (newton > low) & (newton < high)
        u = np.where(done, u, np.where(inside, newton, 0.5 * (low + high)))
    return _with_the_rest(bits, everyone)


def _stationary(
    nu: NDArray,
    s: NDArray,
    gamma: NDArray,
    square: NDArray,
    cross: NDArray,
    lowest: NDArray,
    highest: NDArray,
) -> tuple[NDArray, NDArray, NDArray]:
    """x_i for given multiplier and S, which of them lie inside their bounds, and gamma_i + 2 a3 lbar_i S."""
    g = gamma + cross * s[..., None]
    with np.errstate(divide="ignore"):
        x = 2.0 * nu / (g + np.sqrt(g * g + 4.0 * square * nu))
    free = (x > lowest) & (x < highest)
    return np.clip(x, lowest, highest), free, g


def to_integers(
    bits: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """Round to whole bits that sum to min(B, what b_max leaves of the first q vectors) (Section III-A).

    The nearest integers first; then one bit less where rounding up gained most, or one more where
    rounding down lost most. Ties keep the bits in the order of the eigenvalues.

    Parameters are those of `solve`, with its solution `bits`.
    """
    k, everyone = max(int(np.max(q)), 1), previous
    bits, previous = bits[..., :k], previous[..., :k]
    chosen = np.arange(k) < np.asarray(q)[..., None]
    room = np.where(chosen, b_max - previous, 0).sum(axis=-1)
    wanted = np.minimum(np.asarray(budget), room) + previous.sum(axis=-1)
    whole = np.clip(np.rint(bits), previous, np.where(chosen, b_max, previous)).astype(np.int64)
    while (missing := wanted - whole.sum(axis=-1)).any():
        gained = whole - bits
        # Who gives a bit: those rounded up furthest, the last ones first among equals.
        giving = np.where(whole > previous, gained, -np.inf)[..., ::-1]
        rank = _rank(-giving)[..., ::-1]
        gives = (rank < np.maximum(-missing, 0)[..., None]) & (whole > previous)
        # Who gets one: those rounded down furthest, the first ones first among equals.
        getting = chosen & (whole < b_max)
        rank = _rank(np.where(getting, gained, np.inf))
        gets = (rank < np.maximum(missing, 0)[..., None]) & getting
        whole = whole + gets - gives
    return _with_the_rest(whole, everyone)


def _with_the_rest(first: NDArray, everyone: NDArray) -> NDArray:
    """`first` (..., k) and what `everyone` (..., n) has from k on."""
    rest = np.asarray(everyone)[..., first.shape[-1] :]
    rest = np.broadcast_to(rest, (*first.shape[:-1], rest.shape[-1]))
    return np.concatenate([first, rest.astype(first.dtype)], axis=-1)


def _rank(keys: NDArray) -> NDArray:
    """Place of each entry in increasing order along the last axis; equal ones keep their order."""
    return np.argsort(np.argsort(keys, axis=-1, kind="stable"), axis=-1, kind="stable")


def allocate(
    values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """Whole bits per coordinate that each vector has after this round, by the heuristic of Section IV-C.

    Problem (21) is solved once, for qbar = min(q_{t-1} + B, n - 1) vectors.

    Parameters
    ----------
    values : array, shape (..., n)
        Eigenvalues, not increasing.
    q : int array, shape (...)
        q_{t-1}, vectors that have bits already.
    previous : int array, shape (..., n)
    budget : int array, shape (...)
    b_max : int

    Returns
    -------
    int array, shape (..., n)
    """
    n = values.shape[-1]
    qbar = np.minimum(np.asarray(q) + np.asarray(budget), n - 1)
    return to_integers(solve(values, qbar, previous, budget, b_max), qbar, previous, budget, b_max)


def allocate_exactly(
    values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """As `allocate`, with (21) solved for every q from q_{t-1} to n - 1, and the best of them kept.

    q = 0, which sends nothing, is considered only where there is no budget.
    """
    n = values.shape[-1]
    leading = values.shape[:-1]
    tried = np.arange(n).reshape(-1, *(1,) * len(leading))
    tried = np.broadcast_to(tried, (n, *leading))

    def repeated(array: NDArray) -> NDArray:
        return np.broadcast_to(array, (n, *np.shape(array)))

    at_least = np.maximum(np.asarray(q), np.minimum(np.asarray(budget), 1))
    tried = np.maximum(tried, at_least)
    bits = solve(repeated(values), tried, repeated(previous), repeated(budget), b_max)
    error = expected_error(repeated(values), tried, interval_squared(bits))
    best = np.argmin(error, axis=0)
    chosen = np.take_along_axis(tried, best[None], axis=0)[0]
    real = np.take_along_axis(bits, best[None, ..., None], axis=0)[0]
    return to_integers(real, chosen, previous, budget, b_max)


def interval_squared(bits: NDArray) -> NDArray:
    """x = Delta^2 = 4^(1-b)."""
    return np.exp2(2.0 * (1.0 - np.asarray(bits, dtype=float)))


def vectors_in_use(bits: NDArray) -> NDArray[np.int64]:
    """q_t of eq. (23): the last vector that has bits, shape (...)."""
    n = bits.shape[-1]
    return np.where(bits > 0, np.arange(1, n + 1), 0).max(axis=-1)
