"""Data that make each shape fail, as it says in `fails`: a check that cannot fail is no claim."""

import fnmatch
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from replifed.claims.curves import Curves, log_linear_fit
from replifed.claims.quantities import Quantity, _first, _noted, as_measured
from replifed.claims.rules import FAILS
from replifed.claims.samples import Sample
from replifed.claims.verdicts import judge
from replifed.papers import jobs
from replifed.papers.fedgradmp import measures as gradmp
from replifed.parts import paper_names


def verdict(claim, *stand_ins):
    """The verdict of a shape whose outermost measure has these in the place of its quantities, in order."""
    outermost = claim.expression
    while outermost.function in (_noted, _first):
        outermost = outermost.arguments[0]
    left = iter(stand_ins)
    values = [next(left) if isinstance(one, Quantity) else one for one in outermost.arguments]
    named = {key: next(left) if isinstance(one, Quantity) else one for key, one in outermost.named}
    assert next(left, None) is None, "a stand-in for each quantity"
    return judge(claim, as_measured(outermost.function(*values, **named))).verdict


# --- FedAc ----------------------------------------------------------------------------------------


def points(first, second, lower):
    """Points of two methods at many (K, M), all run; the one called `lower` is lower at half of them."""
    cases = [
        (K, M, name)
        for K in (2**k for k in range(10))
        for M in (8, 16, 512, 1024)
        for name in (first, second)
    ]
    table = pd.DataFrame(cases, columns=["K", "M", "method"])
    wins = np.where(table["M"] > 16, lower, second if lower == first else first)
    return table.assign(best_loss=np.where(table["method"] == wins, 0.1, 0.2), run=True)


def lines(method="fedac_1", low=-0.55, high=-0.45, mean=1.0):
    """Fresh seeds: FedAc-I significantly below FedAvg at half of the (K, M), and the gap falls too slowly."""
    cases = [(K, M) for K in (8, 64) for M in (32, 64)]
    table = pd.DataFrame(cases, columns=["K", "M"])
    exponents = {"exponent": (low + high) / 2, "exponent_low": low, "exponent_high": high}
    means = np.where(table["M"] == 64, mean, -mean)
    return table.assign(method=method, mean=means, p_holm=0.001, **exponents)


class Fresh:
    iterations = 10**8


# --- FedGradMP ------------------------------------------------------------------------------------

ROUNDS = np.arange(0, 101, 5)


def errors(*curves):
    """Errors by round, a curve a seed."""
    return Curves(ROUNDS, np.arange(len(curves)), np.array([curve + 0.0 * ROUNDS for curve in curves]))


def flattening():
    """Errors that fall as 1 / (1 + t): nothing linear."""
    worst, halves = gradmp.pace(errors(*[1 / (1 + ROUNDS)] * 5), 1e-13)
    return [worst < 1, halves >= 0.5]


def beyond_the_grid():
    """A search whose best step is above the printed ones."""
    one = {"step": 0.02, "score": 0.5, "steps": [0.02], "scores": [0.5], "rejected": [], "chaotic": False}
    return {"variants": {"": one}}


def bent():
    """Errors whose logarithm is bent, and that come down by less than a half."""
    curve = errors(*[0.6 + 0.4 / (1 + ROUNDS)] * 5)
    fit = log_linear_fit(curve, gradmp.end_floor(curve))
    return [fit[1] >= 0.9, 10 ** gradmp.tail(curve) < curve.sample(curve.values[:, 0]) / 2]


def lost_or_solved():
    """Runs of which half diverge and half come down to the solution."""
    found = gradmp.at_rest(errors(10.0 ** (ROUNDS / 5.0), np.maximum(0.5**ROUNDS, 1e-3)))
    return [found >= 0.5, found <= 10.0]


# --- Fed-PLT --------------------------------------------------------------------------------------


def cases(*values):
    return Sample(np.array(values))


def by_setting(*columns, rates):
    """Two data sets' rates, a column a setting."""
    return pd.DataFrame([rates, rates], columns=columns, dtype=float)


def rounds_of_worst(norm):
    """Rounds from the worst direction, where |S| and |S'| are below one, that leave so much."""
    line = {"mu": 0.5, "L": 2.0, "rho": 0.3, "steps": 10, "norm": norm, "factor": norm}
    return pd.DataFrame(
        [{**line, "replicate": 1, "solver": solver} for solver in ("gradient", "accelerated")]
    )


class OfFedPLT:
    rho, clip, samples, ridge, delta = 0.3, 4.0, 20, 0.5, 1e-5


def drifting(solver):
    line = {"variant": "minibatches", "solver": solver, "batch": 1, "replicate": 1}
    return pd.DataFrame([{**line, "before": 1.0, "error": 2.0}])


def one_step(tau=0.1):
    return pd.DataFrame({"round": [1], "steps": 1, "tau": tau, "gamma": 0.4, "replicate": 1})


def noisier(*errors):
    levels = {"round": 5, "steps": 1, "tau": [0.1, 1.0], "replicate": 1}
    return pd.DataFrame({**levels, "error": errors})


def off_draws(several):
    """Rates of many data sets, all far from the printed ones."""
    rng = np.random.default_rng(0)
    return [Sample(0.1 + 0.001 * rng.standard_normal(20)) for _ in range(several)]


FEDPLT = {
    **dict.fromkeys(
        (
            *("exact.*", "composite.*", "table1.*.epochs", "table1.*.partial*", "uncoordinated.*"),
            *("bounds.fixed", "bounds.unique", "minibatches.*.variance*", "table3.monotone*"),
            "table2.accelerated.*.converges*",
        ),
        lambda: [cases(1.0)],
    ),
    **dict.fromkeys(("fedavg.*", "warm.needed"), lambda: [cases(0.0)]),
    "table4.increasing*": lambda: [cases(-1.0)],
    "minibatches.gradient.neighbourhood*": lambda: [drifting("gradient")],
    "minibatches.accelerated.neighbourhood*": lambda: [drifting("accelerated")],
    "privacy.epochs*": lambda: [pd.DataFrame([[1.0, 2.0]], pd.Index([20], name="steps"), [1, 2])],
    "privacy.dependence": lambda: [np.array([[1.0, 1.0]])],
    "privacy.bound": lambda: [np.array([1.1])],
    "privacy.tighter*": lambda: [one_step(), OfFedPLT()],
    "privacy.tradeoff": lambda: [noisier(2.0, 1.0)],
    # At its end, or as low as there.
    "fig3.dip*": lambda: [by_setting(1, 2, 50, rates=[0.8, 0.7, 0.7])],
    "bounds.contraction*": lambda: [rounds_of_worst(1.1)],
    **dict.fromkeys(("bounds.rounds", "bounds.accelerated"), lambda: [rounds_of_worst(1.1), OfFedPLT()]),
    **{f"table2.{name}.joint*": lambda: off_draws(4) for name in ("fedplt", "tamuna", "fivegcs")},
    **{f"table2.{name}.joint*": lambda: off_draws(2) for name in ("fedpd", "fedlin", "led")},
    "table2.accelerated.often*": lambda: [cases(-0.1)] * 4,
    "fig2.end.*": lambda: [cases(0.9)],
    **dict.fromkeys(
        ("fig2.valley*", "fig2.exact*", "fig3.valley*"),
        lambda: [by_setting(1, 2, 3, 4, rates=[0.8, 0.5, 0.7, 0.6])],
    ),
    "fig2.resembles*": lambda: [by_setting(0.3, rates=[0.5]), by_setting(0.3, rates=[0.7])],
    "fig3.constant20*": lambda: [by_setting(10, 30, 50, rates=[0.5, 0.6, 0.7])],
}

# --- Q-SHED ---------------------------------------------------------------------------------------


def stalled():
    """A run that ends above the relative cost that it has to reach."""
    return pd.DataFrame({"replicate": [1, 1, 2, 2], "round": [0, 1, 0, 1], "gap": [1.0, 1e-12, 1.0, 1e-3]})


FAILING = {
    "fedac.orders.fedac.*": lambda: [points("fedac_1", "fedavg", "fedavg")],
    "fedac.orders.rounds.*": lambda: [points("fedac_1", "fedavg", "fedavg")],
    "fedac.orders.fedac_2.*": lambda: [points("fedac_2", "fedavg", "fedavg")],
    "fedac.orders.fedac_2.fedac_1.*": lambda: [points("fedac_2", "fedac_1", "fedac_1")],
    "fedgradmp.fig1.linear.*": flattening,
    "fedgradmp.fig1.monotone.*": lambda: [np.array([1.0, -1.0, 1.0])],
    "fedgradmp.fig8.diverges.*": lambda: [gradmp.soon(errors(*[0.99**ROUNDS] * 5)) <= 10.0],
    "fedgradmp.fig8.stalls.*": lost_or_solved,
    "fedgradmp.fig8-baselines.*.diverges.text": lambda: [gradmp.soon(errors(*[0.99**ROUNDS] * 5)) <= 10.0],
    "fedgradmp.fig8-baselines.*.stalls.text": lost_or_solved,
    "fedgradmp.fig9.precision": lambda: [np.array([1e-16, 1e-13])],
    "fedgradmp.fig10.monotone.*": lambda: [np.array([-1.0, 1.0, 1.0, -1.0])],
    "fedgradmp.fig11.precision.*": lambda: [np.array([1e-16, 1e-13])],
    "fedgradmp.remark3.rate": lambda: [gradmp.unlike(10, 1.005, 1.005)],
    "fedgradmp.remark3.residual": lambda: [gradmp.unlike(50, 1.02, 1.02)],
    "fedgradmp.corollary10": lambda: [(np.ones((10, 4)), np.ones((10, 4)))],
    "fedgradmp.fig2.*": lambda: [
        pd.DataFrame(
            {"part": "curve", "round": [20], "sparsity": 10, "atoms": 50, "psnr": 20.0, "best_psnr": 24.0}
        )
    ],
    "fedgradmp.tuning.*.grid": lambda: [beyond_the_grid()] * 4,
    "fedgradmp.fig3.fediterht.linear*": bent,
    "fedgradmp.fig3.converge.*": lambda: [
        gradmp.worst_tenth(errors(1 - ROUNDS / 200, np.where(ROUNDS < 50, 1 - ROUNDS / 200, 0.75)))
    ],
    "fedgradmp.fig?.fediterht.oracle*": lambda: [np.array([1.0, 3.0, 4.0])],
    "fedgradmp.fig3.optimal": lambda: [np.array([1.0, 3.0, 4.0])],
    "fedgradmp.fig4.holds": lambda: [np.array([1.0, 2.5])],
    **{f"fedplt.{name}": data for name, data in FEDPLT.items()},
    "fedac.fresh.orders.*": lambda: [lines(), 20],
    "fedac.fresh.rounds.*": lambda: [lines(), 20],
    "fedac.fresh.speedup.fedavg.*": lambda: [lines("fedavg"), 20, Fresh()],
    "fedac.fresh.speedup.*": lambda: [lines(), 20, Fresh()],
    "fedac.orders.naive.*": lambda: [points("naive_fedac", "fedac_1", "naive_fedac")],
    "fedac.orders.mb_ac_sgd.few*": lambda: [points("mb_ac_sgd", "fedac_1", "fedac_1")],
    "fedac.orders.mb_ac_sgd.many*": lambda: [points("mb_ac_sgd", "fedac_1", "mb_ac_sgd")],
    "qshed.fig?.converges.*": lambda: [stalled()],
}

# --- FedHT ----------------------------------------------------------------------------------------


def rounds_that_grow(*ends):
    """Curves by K, of which a larger K is slower: round at which each has come down."""
    rounds = np.arange(11)
    return {
        K: Curves(rounds, np.array([1, 2]), np.array([np.where(rounds < end, 8.0, 1.0)] * 2))
        for K, end in zip((3, 10), ends, strict=True)
    }


def above(theta=2.0):
    """Errors that grow from round to round, with their biases and the settings of the bound."""
    errors = {K: Curves(np.arange(4), np.array([1]), theta ** np.arange(4.0)[None]) for K in (3, 10)}
    return [errors, {3: 0.0, 10: 0.0}, SimpleNamespace(condition=1.05, sparsity=9600, planted=1)]


def of_support(share):
    """Last models of two seeds and two spreads, with this share of the support on one of them."""
    lines = [
        (level, seed, t, share if (level, seed) == ("1", 2) else 1.0)
        for level in ("0.1", "1")
        for seed in (1, 2)
        for t in (0, 1)
    ]
    table = pd.DataFrame(lines, columns=["level", "replicate", "round", "recovered"])
    return table.assign(local_steps=10)


def left(*errors):
    """Logarithms of the errors that are left, by K from 3 on."""
    return {3 + number: Sample(np.log10([one] * 2)) for number, one in enumerate(errors)}


def at_steps(step):
    """A search of one level and K."""
    record = {"step": step, "score": 1.0, "steps": [step], "scores": [1.0], "rejected": [], "chaotic": False}
    return {"levels": {"": {"by_local_steps": {"3": record}}}}


FAILING |= {
    "fedht.fig1.*.monotone*": lambda: [rounds_that_grow(2, 7)],
    "fedht.theory.bias.smaller": lambda: [np.array([1.5, 11.0])],
    "fedht.theory.remark3.support": lambda: [{"one": 0.1, "other": 0.2}],
    "fedht.theory.*.slight_k": lambda: [np.array([[1.0, 0.95, 0.8]])],
    "fedht.bias.*.slight_k*": lambda: [left(0.01, 0.02)],
    "fedht.bias.*.bound*": above,
    "fedht.bias.*.support*": lambda: [of_support(0.9)],
    "fedht.tuning.*.grid": lambda: [at_steps(1.0), at_steps(0.1), at_steps(100.0)],
    "fedht.partitions.*.unbalanced": lambda: [SimpleNamespace(cluster=np.repeat([0, 1], 10))],
    "fedht.partitions.*.balanced": lambda: [SimpleNamespace(cluster=np.repeat([0, 1], [10, 30]))],
}

SHAPES = [
    claim
    for paper in paper_names()
    for claim in jobs.claims_of(paper)
    if claim.kind == "shape" and claim.measure is not None
]


@pytest.mark.parametrize("claim", SHAPES, ids=lambda one: one.id)
def test_data_make_each_shape_fail(claim):
    """Planted: data of which a claim does not hold; a threshold that keeps everything passes no such test."""
    patterns = [one for one in FAILING if fnmatch.fnmatchcase(claim.id, one)]
    assert patterns, f"no data here make {claim.id} fail: {claim.fails}"
    assert verdict(claim, *FAILING[max(patterns, key=len)]()) == FAILS


def test_no_data_are_left_over():
    assert [one for one in FAILING if not any(fnmatch.fnmatchcase(claim.id, one) for claim in SHAPES)] == []
