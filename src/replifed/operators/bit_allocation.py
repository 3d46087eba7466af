"""Allocation of bits to the eigenvectors of a Hessian (Dal Fabbro et al. 2023, Sections III and IV).

A Hessian with eigenvalues l_1 >= ... >= l_n is approximated by sum_{i<=q} (l_i - rho) v_i v_i' + rho I
with rho = l_{q+1}. Vector i is sent with b_i bits per coordinate, which gives its coordinates
an error of variance Delta_i^2/12 with Delta_i = 2^(1-b_i). The expected squared Frobenius error is
(eq. 14), with lbar_i = l_i - rho and x_i = Delta_i^2,

    f(x, q) = sum_{i>q} lbar_i^2 + sum_{i<=q} gamma_i x_i
              + (a2 - a3) sum_{i<=q} lbar_i^2 x_i^2 + a3 (sum_{i<=q} lbar_i x_i)^2.

Problems (16) and (21) minimise it under sum b_i = B. If b_i counts all bits sent so far, p_i of them in
earlier rounds, (21) is (16) with the further constraint b_i >= p_i; so one solver serves both. Every function
takes stacks of clients and runs. If a client's eigenvalues are not all finite because its run has diverged,
bits are allocated as if all its eigenvalues were zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError

# Fourth powers of numbers between these neither overflow nor vanish.
_SMALLEST, _LARGEST = 1e-70, 1e70


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
    """gamma_i (below eq. (15)) and lbar_i (below eq. (10)), shape (..., n); zero for i > q.

    `values` (..., n) are the eigenvalues, not increasing, and q (...), from 0 to n - 1, is the number of
    vectors considered.
    """
    considered, rho = _considered_and_rho(values, q)
    lbar = np.where(considered, values - rho, 0.0)
    d = np.where(considered, 0.0, rho - values).sum(axis=-1, keepdims=True) / 6
    return d * lbar + a1(values.shape[-1]) * lbar**2, lbar


def _considered_and_rho(values: NDArray, q: NDArray) -> tuple[NDArray, NDArray]:
    """Mask (..., n) of the first q vectors, and rho = l_{q+1}, (..., 1)."""
    q = np.asarray(q)[..., None]
    rho = np.take_along_axis(values, np.broadcast_to(q, (*values.shape[:-1], 1)), axis=-1)
    return np.arange(values.shape[-1]) < q, rho


def expected_error(values: NDArray, q: NDArray, x: NDArray) -> NDArray:
    """f(x, q) of eq. (15), shape (...); x_i for i > q does not matter."""
    n = values.shape[-1]
    gamma, lbar = coefficients(values, q)
    considered, rho = _considered_and_rho(values, q)
    omitted = np.where(considered, 0.0, values - rho) ** 2
    scaled = lbar * x
    quadratic = (a2(n) - a3(n)) * (scaled**2).sum(axis=-1) + a3(n) * scaled.sum(axis=-1) ** 2
    return omitted.sum(axis=-1) + (gamma * x).sum(axis=-1) + quadratic


def _scaled(values: NDArray) -> NDArray:
    """Eigenvalues, scaled by a power of two if they are too large or too small; that changes no solution."""
    values = np.where(np.isfinite(values).all(axis=-1, keepdims=True), values, 0.0)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    extreme = (largest > 0) & ((largest < _SMALLEST) | (largest > _LARGEST))
    return np.ldexp(values, np.where(extreme, -np.frexp(largest)[1], 0)) if extreme.any() else values


def solve(values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int) -> NDArray:
    """Solve the convex problem (16), or (21) where bits were sent before, for given q.

    Parameters
    ----------
    values, previous : arrays, shape (..., n)
        Eigenvalues, not increasing, and p_i, bits per coordinate sent so far; zero for i > q.
    q, budget : int arrays, shape (...)
        Number of vectors considered, at most n - 1, and B, bits per coordinate to allocate now.
    b_max : int
        Maximum number of bits of a coordinate, over all rounds.

    Returns
    -------
    array, shape (..., n)
        b_i, real numbers with p_i <= b_i <= b_max and the sum min(B, free bits) + sum p_i, where free bits
        are those up to b_max. Vectors with lbar_i = 0 get no bits, and have no free bits.
    """
    from replifed.kernels.allocation import allocate_bits

    n = values.shape[-1]
    gamma, lbar = coefficients(_scaled(values), q)
    previous = np.broadcast_to(previous, values.shape)
    # Vectors after the last one considered get no bits.
    k, all_previous = max(int(np.max(q)), 1), previous
    gamma, lbar, previous = gamma[..., :k], lbar[..., :k], previous[..., :k]
    useful = lbar > _SMALLEST * lbar.max(axis=-1, keepdims=True)
    gamma, lbar = (np.where(useful, each, 0.0) for each in (gamma, lbar))
    free = np.where(useful, b_max - previous, 0)
    total = np.minimum(np.asarray(budget), free.sum(axis=-1)) + previous.sum(axis=-1)
    highest = np.exp2(2.0 * (1 - previous))
    lowest = np.where(useful, 4.0 ** (1 - b_max), highest)
    square, cross = 2 * (a2(n) - a3(n)) * lbar**2, 2 * a3(n) * lbar
    bits = np.empty(lbar.shape)
    flat = (each.reshape(-1, k) for each in (gamma, lbar, square, cross, lowest, highest))
    allocate_bits(*flat, np.broadcast_to(total, bits.shape[:-1]).astype(float).ravel(), bits.reshape(-1, k))
    return _completed(bits, all_previous)


def to_integers(
    bits: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """Round to integers that sum to min(B, free bits of the first q vectors) + sum p_i (Section III-A).

    Bits are first rounded to the nearest integers. Then the vectors that rounding up increased most lose a
    bit, or those that rounding down reduced most gain one, until the sum is right; ties keep the bits in the
    order of the eigenvalues. If `bits`, from `solve`, are not finite, rounding starts at the bits sent
    before. Other parameters are those of `solve`.
    """
    k, all_previous = max(int(np.max(q)), 1), previous
    bits, previous = bits[..., :k], previous[..., :k]
    bits = np.where(np.isfinite(bits), bits, previous)
    considered = np.arange(k) < np.asarray(q)[..., None]
    free = np.where(considered, b_max - previous, 0).sum(axis=-1)
    total = np.minimum(np.asarray(budget), free) + previous.sum(axis=-1)
    whole = np.clip(np.rint(bits), previous, np.where(considered, b_max, previous)).astype(np.int64)
    while (missing := total - whole.sum(axis=-1)).any():
        gained = whole - bits
        # One bit less for those rounded up furthest, the last ones first among equals.
        excess = np.where(whole > previous, gained, -np.inf)[..., ::-1]
        rank = _rank(-excess)[..., ::-1]
        decreased = (rank < np.maximum(-missing, 0)[..., None]) & (whole > previous)
        # One bit more for those rounded down furthest, the first ones first among equals.
        open_to_more = considered & (whole < b_max)
        rank = _rank(np.where(open_to_more, gained, np.inf))
        increased = (rank < np.maximum(missing, 0)[..., None]) & open_to_more
        if not (decreased | increased).any():
            raise ReplifedError(f"a budget of {np.min(budget)} bits cannot be allocated: must be 0 or more")
        whole = whole + increased - decreased
    return _completed(whole, all_previous)


def _completed(first: NDArray, previous: NDArray) -> NDArray:
    """Bits `first` (..., k), followed by the entries of `previous` (..., n) from k on."""
    rest = np.asarray(previous)[..., first.shape[-1] :]
    rest = np.broadcast_to(rest, (*first.shape[:-1], rest.shape[-1]))
    return np.concatenate([first, rest.astype(first.dtype)], axis=-1)


def _rank(keys: NDArray) -> NDArray:
    """Rank of each entry in increasing order along the last axis; ties keep their order."""
    return np.argsort(np.argsort(keys, axis=-1, kind="stable"), axis=-1, kind="stable")


def allocate(
    values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """Integer bits per coordinate of each vector after this round, by the heuristic of Section IV-C.

    Problem (21) is solved once, for qbar = min(q_{t-1} + B, n - 1) vectors. Parameters are those of `solve`,
    with q = q_{t-1}, the number of vectors that have bits already.
    """
    n = values.shape[-1]
    qbar = np.minimum(np.asarray(q) + np.asarray(budget), n - 1)
    return to_integers(solve(values, qbar, previous, budget, b_max), qbar, previous, budget, b_max)


def allocate_exactly(
    values: NDArray, q: NDArray, previous: NDArray, budget: NDArray, b_max: int
) -> NDArray[np.int64]:
    """Allocation for the best q from q_{t-1} (or 1, if there is a budget) to n - 1; see `allocate`."""
    values = _scaled(values)
    smallest_q = np.maximum(q, np.minimum(budget, 1))
    lowest, best_q, best_bits = np.full(smallest_q.shape, np.inf), smallest_q, np.zeros(values.shape)
    for candidate in range(values.shape[-1]):
        q = np.maximum(candidate, smallest_q)
        bits = solve(values, q, previous, budget, b_max)
        error = expected_error(values, q, interval_squared(bits))
        better = error < lowest
        lowest, best_q = np.where(better, error, lowest), np.where(better, q, best_q)
        best_bits = np.where(better[..., None], bits, best_bits)
    return to_integers(best_bits, best_q, previous, budget, b_max)


def interval_squared(bits: NDArray) -> NDArray:
    """x = Delta^2 = 4^(1-b)."""
    return np.exp2(2.0 * (1.0 - np.asarray(bits, dtype=float)))


def vectors_in_use(bits: NDArray) -> NDArray[np.int64]:
    """q_t of eq. (23): number of the last vector with bits, shape (...)."""
    n = bits.shape[-1]
    return np.where(bits > 0, np.arange(1, n + 1), 0).max(axis=-1)
