"""Sections II to IV: SHED, the model of quantisation, the allocation of bits and convergence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from replifed.claims.claim import Claim, Measured
from replifed.claims.quantities import formula, run, settings
from replifed.papers.qshed import measures
from replifed.papers.qshed.axes import CLAIM, FIGURES, T, of, read, reading, runs_of
from replifed.papers.qshed.claims.contributions import MEDIANS, best_possible
from replifed.papers.qshed.model import bits_stay_ordered, bound_holds, cross_traces, squared_errors
from replifed.papers.qshed.paper import CHANNELS, EXPERIMENTS

EXAMPLE = CLAIM.given(artefact="bit_allocation")
_RUN = EXAMPLE.given(options=reading("giant", "example"), informs=True)
# The longest stretches between two renewals that all runs go through.
STRETCHES = {"shed": (33, 54), "qshed": (20, 33)}


def _superlinear(name: str, label: str) -> Iterator[Claim]:
    for experiment, figure in FIGURES.items():
        runs = read("giant", experiment, name)
        at_4, at_7, at_10 = (T(**runs, threshold=cost) for cost in (1e-4, 1e-7, 1e-10))
        early, late = at_7 - at_4, at_10 - at_7
        yield of(experiment, unit="rounds")(f"{figure}.superlinear.{name}").order(
            f"{EXPERIMENTS[experiment]}: {label} takes more rounds from 1e-4 to 1e-7 than on to 1e-10.",
            (early - late).note(MEDIANS, early, late),
            note="linear convergence takes equally many; before 1e-4 every Newton-type method is slow",
        )


CLAIM.sentence("superlinear.shed", "Section II-B", "SHED converges superlinearly.")(
    partial(_superlinear, "shed", "SHED")
)


@CLAIM.sentence(
    "section4.incremental",
    "Section II-B, Section IV",
    "Further eigenpairs of an outdated Hessian, sent round by round, speed up convergence.",
)
def _incremental() -> Iterator[Claim]:
    for (experiment, figure), (name, label) in product(
        FIGURES.items(), (("shed", "SHED"), ("qshed", "Q-SHED"))
    ):
        start, end = STRETCHES[name]
        yield of(experiment, unit="decades")(f"{figure}.incremental.{name}").order(
            f"{EXPERIMENTS[experiment]}: {label}'s decades a round in the second half of rounds {start} to "
            f"{end - 1}, less those in the first.",
            measures.speed_up(runs_of(**read("giant", experiment, name)), start, end),
        )


CLAIM.sentence(
    "section3.best",
    "Section III",
    "The bit allocation aims at the best possible Hessian approximation with the available bits.",
)(best_possible)


def _model(name: str, what: str, ratios: Callable[..., Any]) -> Iterator[Claim]:
    yield EXAMPLE(f"model.{name}", unit="ratio").near(
        f"{what}: as a multiple of this, for unit vectors of n = 90.",
        1.0,
        formula(Measured, formula(ratios), seeds=1),
        within=0.02,
        because="a Monte-Carlo mean; its interval is half as wide",
    )


CLAIM.sentence(
    "model.eq11",
    "Eq. (11)",
    "The error of each coordinate has variance Δ²/12 with Δ = 2^(1-b).",
    evidence="formula",
)(partial(_model, "eq11", "After a refinement a coordinate's mean squared error is Δ²/12", squared_errors))
CLAIM.sentence("model.eq13", "Eq. (13)", "E tr(δV_i δV_j) = n Δ_i² Δ_j²/144.", evidence="formula")(
    partial(_model, "eq13", "At one bit the mean of tr(δV_i δV_j) is n Δ_i² Δ_j²/144", cross_traces)
)


@CLAIM.sentence(
    "example.ordered",
    "Section IV-A",
    "With eigenvalues in decreasing order, the bits of the vectors decrease monotonically.",
    evidence="formula",
)
def _ordered() -> Iterator[Claim]:
    yield EXAMPLE.identity(
        "example.ordered",
        "Bits decrease with the eigenvalues, for random spectra and budgets, after each of ten rounds.",
        formula(Measured, formula(bits_stay_ordered), seeds=1),
    )
    history = run("example", "qshed")
    yield _RUN.identity(
        "example.ordered.runs",
        "Bits decrease with the eigenvalues, in our runs on FMNIST.",
        measures.bits_decrease(history),
    )
    yield _RUN.identity(
        "example.increments",
        "The bits that a round adds, which are what (21) allocates, decrease with the eigenvalues.",
        measures.bits_decrease(history, added=True),
        note="the text's b_t count all rounds so far; a round adds bits to vectors behind those sent before",
    )


@CLAIM.sentence(
    "example.bits",
    "Section IV-A",
    "On FMNIST a device's first eleven vectors, of eigenvalues 0.21, 0.11, 0.06, 0.03, 0.03, 0.02, 0.02, and "
    "four times 0.01, have 3, 3, 2, 2, 2, and six times 1 bits.",
    evidence="formula",
)
def _bits() -> Iterator[Claim]:
    yield EXAMPLE("example.bits", unit="bits").near(
        "A device allocates [3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1] bits to its first 11 eigenvectors: sum of the "
        "differences, for the printed eigenvalues and any tail behind them.",
        0.0,
        measures.bits_off_printed(settings("example")),
        within=6.0,
        because="what rounding moves: of spectra that round to the printed one and have one of these tails, "
        "95 % have bits that differ from its own by as much at most",
    )
    yield _RUN("example.spectrum", unit="eigenvalue").near(
        "On FMNIST a device has these eigenvalues at some time: largest difference to the nearest spectrum.",
        0.0,
        measures.spectrum_off_printed(run("example", "qshed")),
        within=0.005,
        because="numbers rounded to two decimals; what is nearer rounds to them, and nothing else does",
        note="it is of one unnamed device in one unnamed round, which no run can refute",
    )


@CLAIM.sentence("section4.converges", "Section IV-D", "With backtracking, convergence is guaranteed.")
def _converges() -> Iterator[Claim]:
    for (experiment, figure), (channel, words) in product(FIGURES.items(), CHANNELS.items()):
        yield of(experiment)(f"{figure}.converges.{channel}").shape(
            f"{EXPERIMENTS[experiment]}, {words}: every run reaches a relative cost of 1e-10.",
            measures.converged(runs_of(experiment, "qshed", channel), 1e-10),
            fails="a run that ends above a relative cost of 1e-10",
            note="with one renewal alone it does not (see the choices)",
        )


CLAIM.sentence(
    "superlinear.qshed",
    "Section IV-D",
    "Careful choices of the quantisation may keep superlinear convergence.",
)(partial(_superlinear, "qshed", "Q-SHED"))


@CLAIM.sentence(
    "model.eq24",
    "Eqs. (24) and (25)",
    "On least squares the distance to the minimiser shrinks by κ_t.",
    evidence="formula",
)
def _least_squares() -> Iterator[Claim]:
    yield EXAMPLE.identity(
        "model.eq24",
        "In every round with κ_t < 1 the distance to the minimiser shrinks to at most κ_t of what it was.",
        formula(Measured, formula(bound_holds, 16), seeds=1),
    )
