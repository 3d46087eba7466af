"""Errata of Dal Fabbro et al. 2023 (arXiv 2305.10852)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from replifed.claims.errata import Errata, Outcome
from replifed.operators.bit_allocation import (
    a1,
    a2,
    a3,
    allocate,
    coefficients,
    expected_error,
    interval_squared,
    vectors_in_use,
)
from replifed.operators.quantise import draw_dither, interval, quantise

ERRATA = Errata("qshed")

# A device of six parameters, of whose Hessian three vectors are sent with 3, 2 and 2 bits.
_VALUES = np.array([1.0, 0.6, 0.3, 0.1, 0.05, 0.01])
_Q, _BITS = 3, np.array([3, 2, 2])


@cache
def _drawn(bits: tuple[int, ...]) -> tuple[float, float]:
    """|H - H^|_F^2 for errors that are uniform in their cells, eq. (11): mean and its standard error.

    A vector without bits is received as zero.
    """
    n, draws, q = len(_VALUES), 200_000, int(vectors_in_use(np.array(bits)))
    rng, sent, rho = np.random.default_rng(0), np.array(bits[:q]), _VALUES[q]
    V = np.linalg.qr(rng.standard_normal((n, n)))[0].T
    H = (V.T * _VALUES) @ V
    received = V[:q] + interval(sent)[:, None] * rng.uniform(-0.5, 0.5, (draws, q, n))
    received[:, sent == 0] = 0.0
    approximate = np.matmul(received.swapaxes(1, 2) * (_VALUES[:q] - rho), received) + rho * np.eye(n)
    errors = ((H - approximate) ** 2).sum(axis=(1, 2))
    return float(errors.mean()), float(errors.std() / np.sqrt(draws))


def _formula(a: float, b: float, c: float) -> float:
    """Eq. (14), or (20) before anything was sent: with `a` for a1, `b` for a2, `c` for a3."""
    rho, x = _VALUES[_Q], interval(_BITS) ** 2
    lbar, rest = _VALUES[:_Q] - rho, _VALUES[_Q:] - rho
    linear = a * lbar**2 @ x + -rest.sum() / 6 * lbar @ x
    return float((rest**2).sum() + linear + _cross_terms(b, c, lbar * x))


def _as_drawn(*values: float) -> Outcome:
    """One of the values is the mean that was drawn; the evidence is of the nearest one."""
    mean, spread = _drawn(tuple(_BITS))
    off = min(((value - mean) / spread for value in values), key=abs)
    nearest = f"the nearest of {len(values)} is " if len(values) > 1 else ""
    return Outcome(abs(off) < 4, f"{nearest}{off:+.1f} standard errors from a Monte-Carlo mean, {mean:.4f}")


@ERRATA.add(
    "a1",
    place="eq. (12), and with it eq. (14)",
    printed="a1(n) = 1/12 + n/6",
    corrected="a1(n) = (n + 1)/6: for n = 1, E(v^2 - (v + e)^2)^2 has 4 v^2 E e^2 = Delta^2/3",
    forms=(lambda n: 1 / 12 + n / 6, a1),
)
def _first_moment(form: Callable[[int], float]) -> Outcome:
    """Eq. (14) with a1(n)."""
    n = len(_VALUES)
    return _as_drawn(_formula(form(n), a2(n), a3(n)))


@ERRATA.add(
    "swapped_form",
    place="eq. (17), second line, and eq. (18)",
    printed="A_q = a3 diag(lbar^2) + (a2 - a3) lbar lbar'",
    corrected="A_q = (a2 - a3) diag(lbar^2) + a3 lbar lbar'",
    forms=(lambda n: (a3(n), a2(n) - a3(n)), lambda n: (a2(n) - a3(n), a3(n))),
)
def _quadratic_form(form: Callable[[int], tuple[float, float]]) -> Outcome:
    """Second differences of (17)'s first line against A_q."""
    n = len(_VALUES)
    lbar = coefficients(_VALUES, np.array(_Q))[1][:_Q]
    on_diagonal, everywhere = form(n)
    A = on_diagonal * np.diag(lbar**2) + everywhere * np.outer(lbar, lbar)

    def first_line(x: NDArray) -> float:
        return _cross_terms(a2(n), a3(n), lbar * x)

    step, unit, at = 1e-3, np.eye(_Q), np.array([0.3, 0.2, 0.1])
    hessian = np.zeros((_Q, _Q))
    for i, j in itertools.product(range(_Q), repeat=2):
        for a, b in itertools.product((1, -1), repeat=2):
            hessian[i, j] += a * b * first_line(at + step * (a * unit[i] + b * unit[j]))
    hessian /= 4 * step**2
    gap = np.abs(hessian - 2 * A).max() / np.abs(hessian).max()
    return Outcome(gap < 1e-6, f"A_q off by {gap:.1e} of the second differences")


@ERRATA.add(
    "strict_convexity",
    place="Lemma III.1",
    printed="f(x, q) is strictly convex in x for any q",
    corrected="where lambda_q > lambda_{q+1}; otherwise lbar_q = 0 and f does not depend on x_q",
    forms=(lambda values, q: True, lambda values, q: values[q - 1] > values[q]),
)
def _strictly_convex(condition: Callable[[NDArray, int], bool]) -> Outcome:
    """Wherever the condition promises it, A_q has to be positive definite."""
    n, worst = 4, np.inf
    for values, q in (
        (np.array([1.0, 0.5, 0.2, 0.1]), 2),
        (np.array([1.0, 0.5, 0.5, 0.1]), 2),
        (np.array([0.3, 0.3, 0.3, 0.3]), 1),
    ):
        if condition(values, q):
            lbar = coefficients(values, np.array(q))[1][:q]
            A = (a2(n) - a3(n)) * np.diag(lbar**2) + a3(n) * np.outer(lbar, lbar)
            worst = min(worst, float(np.linalg.eigvalsh(A)[0]))
    return Outcome(worst > 0, f"smallest eigenvalue of A_q where promised: {worst:.2g}")


def _cross_terms(on_diagonal: float, off: float, lx: NDArray) -> float:
    """The quadratic terms of (17) and (20) for the products of lbar and x."""
    cross = np.outer(lx, lx)
    return on_diagonal * np.trace(cross) + off * (cross.sum() - np.trace(cross))


@ERRATA.add(
    "undefined_b_c",
    place="eq. (20)",
    printed="an omission: b(n) and c(n) are not defined; none of 1 and 1, a1 and a2 of eq. (12), a1 and "
    "a3, and a3 and a2 - a3 of eq. (18) will do",
    corrected="b(n) = a2(n), c(n) = a3(n)",
    forms=(
        (
            lambda n: (1.0, 1.0),
            lambda n: (a1(n), a2(n)),
            lambda n: (a1(n), a3(n)),
            lambda n: (a3(n), a2(n) - a3(n)),
        ),
        (lambda n: (a2(n), a3(n)),),
    ),
)
def _refined_cost(pairs: tuple[Callable[[int], tuple[float, float]], ...]) -> Outcome:
    """Eq. (20), with some b(n) and c(n) of those given."""
    n = len(_VALUES)
    return _as_drawn(*(_formula(a1(n), *pair(n)) for pair in pairs))


@ERRATA.add(
    "no_bits",
    place="eq. (16), x_i <= 4 as b_i >= 0",
    printed="a vector without bits costs what eq. (14) says at x = 4",
    corrected="it is received as zero and costs lbar^2: the model overcharges it by a factor that grows "
    "as n^2",
    forms=(lambda lbar, n: 4 * a1(n) * lbar**2 + 16 * a2(n) * lbar**2, lambda lbar, n: lbar**2),
)
def _cost_of_nothing(form: Callable[[float, int], float]) -> Outcome:
    """Squared error of a vector that was sent no bits, and so is received as zero."""
    n, lbar = 90, 0.2
    v = np.full(n, n**-0.5)
    received = quantise(v, np.array(0), np.zeros(n))
    error = lbar**2 * ((np.outer(v, v) - np.outer(received, received)) ** 2).sum()
    ratio = form(lbar, n) / error
    return Outcome(abs(ratio - 1) < 1e-9, f"{ratio:.4g} times the true error at n = {n}")


@ERRATA.add(
    "b_max",
    place="problems (16) and (21)",
    printed="the bits b_i are bounded by b_i >= 0 and their sum alone",
    corrected="and by b_max, less what was sent before: no more than b_max bits are of use (Section IV-D)",
    forms=(64, 16),
)
def _most_bits(limit: int) -> Outcome:
    """Bits of a coordinate after three rounds, where (21) is solved with a limit or, as printed, without."""
    b_max, n = 16, len(_VALUES)
    q, bits = np.array(0), np.zeros(n, dtype=np.int64)
    for _ in range(3):
        bits = allocate(_VALUES, q, bits, np.array(25), limit)
        q = vectors_in_use(bits)
    return Outcome(bool(bits.max() <= b_max), f"{bits.max()} bits for a coordinate, where b_max = {b_max}")


@ERRATA.add(
    "last_q",
    place="Lemma III.1, and below problems (16) and (21)",
    printed="q = 1, ..., n",
    corrected="q = 1, ..., n - 1, since rho_q = lambda_{q+1}",
    forms=(lambda n: n, lambda n: n - 1),
)
def _range_of_q(last: Callable[[int], int]) -> Outcome:
    """q must go as far as rho_q = lambda_{q+1} is one of the n eigenvalues, and no farther."""
    n = len(_VALUES)
    return Outcome(last(n) + 1 == n, f"of n = {n} eigenvalues, q = {last(n)} needs number {last(n) + 1}")


@ERRATA.add(
    "qbar",
    place="Section IV-C and Algorithm 1, line 13",
    printed="qbar = q_{t-1} + B_t",
    corrected="qbar = min(q_{t-1} + B_t, n - 1)",
    forms=(lambda q, B, n: q + B, lambda q, B, n: min(q + B, n - 1)),
)
def _within_range(qbar: Callable[[int, int, int], int]) -> Outcome:
    """For all q_{t-1} and B_t, qbar must be at most n - 1, and q_{t-1} + B_t where that is no more."""
    n, budget = 90, 32  # of Section V
    cases = [(q, B) for q in range(n) for B in range(budget + 1)]
    excess = [max(qbar(q, B, n) - (n - 1), 0) for q, B in cases]
    cut = sum(qbar(q, B, n) < q + B <= n - 1 for q, B in cases)
    over = sum(one > 0 for one in excess)
    evidence = f"of {len(cases)} cases with n = {n} it exceeds n - 1 in {over}, by up to {max(excess)}"
    return Outcome(over == cut == 0, evidence + f", and is cut below it in {cut}" * (cut > 0))


@ERRATA.add(
    "renewal",
    place="Algorithm 1, line 11",
    printed="an omission: at a renewal q_{t-1} is set to 0, and of b_{t-1}(i) nothing is said",
    corrected="b_{t-1}(i) = 0 as well: nothing was sent of the new Hessian's vectors",
    forms=(True, False),
)
def _after_renewal(bits_stay: bool) -> Outcome:
    """Error that (21) promises, and the aggregator's, once a Hessian of the same eigenvalues is new."""
    none, budget = np.zeros(len(_VALUES), dtype=int), np.array(8)
    first = allocate(_VALUES, np.array(0), none, budget, 16)
    before = first if bits_stay else none
    bits = allocate(_VALUES, np.array(0), before, budget, 16)
    promised = expected_error(_VALUES, vectors_in_use(bits), interval_squared(bits))
    ratio = _drawn(tuple(bits - before))[0] / float(promised)
    evidence = f"of the new vectors {bits - before} bits arrive: {ratio:.3g} times the promised error"
    return Outcome(abs(ratio - 1) < 0.02, evidence)


@ERRATA.add(
    "fading_budget",
    place="Section V, below eq. (26)",
    printed="B_t = B log2(1 + gamma Gamma), to which whole bits have to sum",
    corrected="the whole number below",
    forms=(lambda bits: bits, np.floor),
)
def _whole_budget(form: Callable[[NDArray], NDArray]) -> Outcome:
    """Whole bits have to sum to the budget of a fading channel, 32 bits as in Section V."""
    budgets = form(32 * np.log2(1 + np.random.default_rng(0).exponential(size=1000)))
    missed = float(np.abs(budgets - np.rint(budgets)).max())
    return Outcome(missed == 0, f"whole bits miss the budget by up to {missed:.2g}")


@ERRATA.add(
    "one_bit_overload",
    place="eq. (11)",
    printed="the error of one bit has variance Delta^2/12 for coordinates in [-1, 1]",
    corrected="for |v_j| <= 1 - Delta/2 = 1/2; beyond, the quantiser overloads",
    forms=(1.0, 0.5),
)
def _one_bit(largest: float) -> Outcome:
    """The error of one bit has variance Delta^2/12 for coordinates as large as promised."""
    draws = 200_000
    dither = draw_dither(np.random.default_rng(0), (draws,))
    error = quantise(np.full((draws, 1), largest), np.ones(draws, dtype=int), dither[:, None])[:, 0] - largest
    variance, expected = np.mean(error**2), 1 / 12
    spread = np.std(error**2) / np.sqrt(draws)
    evidence = f"mean squared error {variance:.4f} at v = {largest:g}, promised {expected:.4f}"
    return Outcome(bool(abs(variance - expected) < 4 * spread), evidence)


@ERRATA.add(
    "refinement",
    place="Section IV-D, below eq. (25)",
    printed="an omission: a small enough quantisation error can always be achieved by refinements, which "
    "problem (7) ends at b_max bits; how large b_max has to be is not said, and Section V has 16",
    corrected="if b_max is large enough for e_t < lambda_n: with mu = 1e-5 at 300 features 16 bits are not, "
    "and 28, for one, are",
    forms=(16, 28),
)
def _refinement_suffices(b_max: int) -> Outcome:
    """Eq. (24) shows convergence once e_t < lambda_n: here for all vectors at b_max bits each.

    As on w8a, the device has 500 rows of 300 binary features, 4 % of them ones, has never seen some of the
    features, and mu = 1e-5.
    """
    rng = np.random.default_rng(0)
    n, mu = 300, 1e-5
    X = (rng.random((500, n)) < 0.04) * (np.arange(n) < 270.0)
    values, V = np.linalg.eigh(0.25 * X.T @ X / len(X) + mu * np.eye(n))
    values, vectors = values[::-1], V.T[::-1]
    q = n - 1
    sent = quantise(vectors[:q], np.full(q, b_max), draw_dither(rng, (q, n)))
    # Of v v' - v^ v^', of rank two, the spectral norm follows from the two vectors' inner products.
    inner = np.stack([np.ones(q), (vectors[:q] * sent).sum(1), (sent**2).sum(1)])
    half, product = 0.5 * (inner[0] - inner[2]), inner[0] * inner[2] - inner[1] ** 2
    norms = np.abs(half) + np.sqrt(half**2 + np.maximum(product, 0.0))
    e = float(((values[:q] - values[q]) * norms).sum())
    return Outcome(e < values[-1], f"e_t = {e:.1e} at {b_max} bits against lambda_n = {values[-1]:.1e}")
