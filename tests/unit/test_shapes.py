"""Data that make each shape fail, as it says in `fails`: a check that cannot fail is no claim."""

import fnmatch

import numpy as np
import pandas as pd
import pytest

from replifed.claims.quantities import Quantity, _first, _noted, as_measured
from replifed.claims.rules import FAILS
from replifed.claims.verdicts import judge
from replifed.papers import jobs
from replifed.parts import paper_names

# Papers of which this file has no data yet.
PENDING = {"fedgradmp", "fedht", "fedplt", "qshed"}


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
        (K, M, name) for K in (2**k for k in range(10)) for M in (8, 16, 32, 64) for name in (first, second)
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


FAILING = {
    "fedac.orders.fedac.*": lambda: [points("fedac_1", "fedavg", "fedavg")],
    "fedac.orders.rounds.*": lambda: [points("fedac_1", "fedavg", "fedavg")],
    "fedac.orders.fedac_2.*": lambda: [points("fedac_2", "fedavg", "fedavg")],
    "fedac.orders.fedac_2.fedac_1.*": lambda: [points("fedac_2", "fedac_1", "fedac_1")],
    "fedac.fresh.orders.*": lambda: [lines(), 20],
    "fedac.fresh.rounds.*": lambda: [lines(), 20],
    "fedac.fresh.speedup.fedavg.*": lambda: [lines("fedavg"), 20, Fresh()],
    "fedac.fresh.speedup.*": lambda: [lines(), 20, Fresh()],
    "fedac.orders.naive.*": lambda: [points("naive_fedac", "fedac_1", "naive_fedac")],
    "fedac.orders.mb_ac_sgd.few*": lambda: [points("mb_ac_sgd", "fedac_1", "fedac_1")],
    "fedac.orders.mb_ac_sgd.many*": lambda: [points("mb_ac_sgd", "fedac_1", "mb_ac_sgd")],
}

SHAPES = [
    claim
    for paper in paper_names()
    for claim in jobs.claims_of(paper)
    if claim.kind == "shape" and claim.measure is not None
]


@pytest.mark.parametrize("claim", [one for one in SHAPES if one.paper not in PENDING], ids=lambda one: one.id)
def test_data_make_each_shape_fail(claim):
    """Planted: data of which a claim does not hold; a threshold that keeps everything passes no such test."""
    patterns = [one for one in FAILING if fnmatch.fnmatchcase(claim.id, one)]
    assert patterns, f"no data here make {claim.id} fail: {claim.fails}"
    assert verdict(claim, *FAILING[max(patterns, key=len)]()) == FAILS


def test_no_data_are_left_over():
    assert [one for one in FAILING if not any(fnmatch.fnmatchcase(claim.id, one) for claim in SHAPES)] == []
    assert {claim.paper for claim in SHAPES} >= PENDING
