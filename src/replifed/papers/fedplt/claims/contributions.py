"""Title, abstract, introduction and contributions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, formula, run
from replifed.papers.fedplt import measures, release
from replifed.papers.fedplt.axes import CLAIM, LOSS, LOSSES, Reading, notes, on_loss, readings
from replifed.papers.fedplt.claims.rates import clipped, faster_than_rivals
from replifed.papers.fedplt.measures import at, by_setting, lines
from replifed.papers.fedplt.methods import PARTIAL, SOLVERS
from replifed.papers.fedplt.paper import COLUMNS, METHODS

# Of "significantly reduces the number of rounds".
_SIGNIFICANTLY: dict[str, Any] = {
    "unit": "e-folds",
    "least": 0.22,
    "because": "significantly fewer is four fifths",
}
_EXACTLY = "on quadratic losses, where it is known exactly"


def arrives(errors: Quantity, within: float = 1e-9) -> Quantity:
    """True of errors that are at most this small."""
    return (errors <= within).note("largest error left {0.max:.2g}", errors)


def _fewer_rounds(rate: Quantity, other: Quantity) -> Quantity:
    """Logarithm of how many times fewer rounds `rate` takes to an error than the `other`."""
    return np.log(-np.log(rate)) - np.log(-np.log(other))


def exact(who: str) -> Quantity:
    """Errors with any number of local epochs, from a warm start."""
    return lines(run("exactness", "fedplt"), "error", participation=who, start="warm")


@CLAIM.sentence(
    "exact.full",
    "Abstract, Section I, Remark 3",
    "Local training does not impair accuracy: it converges exactly for any number of local epochs.",
    main=True,
    evidence="formula",
)
def _exact() -> Iterator[Claim]:
    yield CLAIM("exact.full", artefact="exactness").shape(
        "No client drift: exact convergence for every number of local epochs (Remark 3).",
        arrives(exact("all"), 1e-12),
        fails="an error above 1e-12 with some number of local epochs",
    )


def _epochs(reading: Reading) -> tuple[Quantity, Quantity]:
    """Rates with one and with ten local epochs."""
    by_steps = by_setting(reading.run("epochs"), "steps", solver="gradient")
    one, ten = (at(by_steps, count, f"{count} local steps") for count in (1, 10))
    return one, ten


@CLAIM.sentence(
    "fig3.local",
    "Abstract, Section I",
    "Local training significantly reduces the number of communication rounds.",
    main=True,
)
def _local_training() -> Iterator[Claim]:
    for reading in readings():
        one, ten = _epochs(reading)
        yield reading.claims()("fig3.local").order(
            "With 10 local epochs fewer rounds are needed than with one, at the same rho.",
            _fewer_rounds(ten, one),
            note=f"one epoch is near the exact map; {LOSS}" if reading.loss == "mean" else "",
            **_SIGNIFICANTLY,
        )


def _half_of_the_agents(reading: Reading) -> Quantity:
    """Logarithm of how many times fewer rounds half of the agents take than all, each at its own rho."""
    by_active = by_setting(reading.run("participation"), "active")
    return _fewer_rounds(at(by_active, 5, "5 agents"), at(by_active, 10, "10 agents"))


@CLAIM.sentence(
    "table3.rounds",
    "Abstract, Section I",
    "Partial participation significantly reduces the number of communication rounds, too.",
    main=True,
)
def _partial_rounds() -> Iterator[Claim]:
    for reading in readings():
        yield reading.claims()("table3.rounds").order(
            "With half of the agents fewer rounds are needed than with all, each at its own rho.",
            _half_of_the_agents(reading),
            note="Section VII-A says the opposite, and is right: a round moves half of the agents",
            **_SIGNIFICANTLY,
        )


@CLAIM.sentence(
    "table3.messages",
    "Section I",
    "Partial participation allows to reduce the number of communications that are required.",
)
def _partial_messages() -> Iterator[Claim]:
    for reading in readings():
        yield reading.claims(unit="e-folds")("table3.messages").order(
            "Half of the agents, each at its own rho, send fewer messages in all than all of them do.",
            _half_of_the_agents(reading) + np.log(2.0),
            note="a round has half of the messages, but more than twice as many rounds are needed",
        )


@CLAIM.sentence("fedavg.biased", "Section I", "Local training may cost accuracy, by client drift.")
def _fedavg() -> Iterator[Claim]:
    for reading in readings():
        artefact = reading.experiment("table2")
        yield reading.claims(artefact=artefact)("fedavg.biased").shape(
            "FedAvg does not reach the minimiser.",
            lines(reading.run("comparison", "fedavg"), "error") > 1e-3,
            fails="a run that ends within 1e-3 of the minimiser",
        )


@CLAIM.sentence(
    "table2.partial",
    "Sections I and VII-A",
    "Partial participation may cost slower convergence: rates increase when some of the agents take part.",
)
def _partial_participation() -> Iterator[Claim]:
    for method, solver, reading in itertools.product(PARTIAL, SOLVERS, readings("common")):
        claim = reading.claims(artefact=reading.experiment("table2"), unit="rate")
        yield claim(f"table2.partial.{method}.{solver}").order(
            f"{METHODS[method]}: the rate increases when half of the agents take part ({solver} solver).",
            clipped(reading, method, solver, "half") - clipped(reading, method, solver, "all"),
        )


@CLAIM.sentence(
    "composite",
    "Contributions 1 and 2, Section V, Table I, Lemma 6",
    "It can be applied to composite problems, and converges exactly on strongly convex ones.",
    main=True,
    evidence="formula",
)
def _composite() -> Iterator[Claim]:
    for loss in LOSSES:
        runs = Reading(loss, "planted").run("variants")
        claim = CLAIM.given(artefact="variants", options={"loss": loss})
        for name, who, where in (("full", "all", "all agents"), ("partial", "half", "half of the agents")):
            yield claim(f"composite.{name}").shape(
                f"Exact convergence on composite problems, with {where}.",
                arrives(lines(runs, "error", variant="composite", participation=who), 1e-11),
                fails="a run that ends farther than 1e-11 from the minimiser",
            )


@CLAIM.sentence(
    "exact.accelerated",
    "Contribution 2, Proposition 3, Remark 3",
    "Convergence with accelerated local steps is exact, with some of the agents, too.",
    main=True,
    evidence="formula",
)
def _exact_accelerated() -> Iterator[Claim]:
    comparison = run("comparison", "fedplt")
    for name, cohort, who in (("full", 10, "all agents"), ("partial", 5, "half of the agents")):
        errors = lines(comparison, "error", reading="common", solver="accelerated", cohort=cohort)
        yield CLAIM(f"exact.accelerated.{name}", artefact="exactness").shape(
            f"Exact convergence with accelerated local steps, with {who}.",
            arrives(errors),
            fails="a run that ends farther than 1e-9 from the minimiser",
        )


def minibatches(solver: str, words: str) -> Iterator[Claim]:
    """Where local steps on minibatches lead."""
    for loss in LOSSES:
        runs = Reading(loss, "planted").run("variants")
        claim = CLAIM.given(artefact="variants", options={"loss": loss})
        yield claim(f"minibatches.{solver}.neighbourhood").shape(
            f"{words} lead to a neighbourhood of the minimiser: mean errors settle, within a tenth.",
            measures.steady(runs, solver, 0.1),
            fails="mean errors that still move by more than a tenth at the end",
            note="minibatches are drawn with replacement; in the paper they are subsets",
        )
        by_batch = by_setting(runs, "batch", "error", variant="minibatches", solver=solver)
        yield claim(f"minibatches.{solver}.variance").shape(
            f"{words}: the larger their noise, the larger the neighbourhood.",
            measures.mean_change(by_batch) < 0,
            fails="a mean error that does not fall as batches grow",
        )


@CLAIM.sentence(
    "minibatches.gradient",
    "Contribution 3, Section V-B",
    "With stochastic gradients it reaches a neighbourhood of the minimiser that grows with their variance.",
)
def _stochastic() -> Iterator[Claim]:
    yield from minibatches("gradient", "Minibatches")


def _privacy_by_epochs(name: str, what: str, agents: int, words: str, note: str) -> Claim:
    return CLAIM(f"privacy.epochs{name}", artefact="privacy").shape(
        f"For a fixed number of gradient steps, the more of them are local, the less {words}.",
        formula(release.epochs_hide, what, agents),
        fails="a number of local epochs with which more is given away than with fewer",
        note=_EXACTLY + note,
    )


@CLAIM.sentence(
    "privacy.messages",
    "Title, Contribution 3, Section VI",
    "Local training enhances privacy: of a fixed number of steps, the more are local, the less the server "
    "sees.",
    main=True,
    evidence="formula",
)
def _messages() -> Iterator[Claim]:
    yield _privacy_by_epochs(
        ".messages", "messages", 2, "all messages give away", "; Proposition 4 is of final models"
    )


@CLAIM.sentence(
    "privacy.epochs",
    "Contribution 3, Section VI",
    "Local training enhances the privacy of final models: the more steps are local the less these give away.",
    evidence="formula",
)
def _final_models() -> Iterator[Claim]:
    yield _privacy_by_epochs("", "all", 10, "the agents' final models give away", "")
    # Not in the text: Proposition 4 counts rounds and local epochs by their product alone, and grows with it.
    for reading in readings():
        one, ten = _epochs(reading)
        yield reading.claims(unit="e-folds", informs=True)("fig3.privacy").order(
            "With ten local epochs fewer noisy steps in all lead to the same accuracy than with one.",
            _fewer_rounds(ten, one) - np.log(10.0),
            note=notes("ten epochs save fewer than nine rounds of ten", on_loss(reading.loss)),
        )


@CLAIM.sentence(
    "table2.best",
    "Contribution 4, Section VII-A",
    "Its convergence rate is the best in all scenarios.",
    main=True,
)
def _best() -> Iterator[Claim]:
    for column in COLUMNS:
        yield from faster_than_rivals(*column)


@CLAIM.sentence(
    "fig3.dip",
    "Contribution 4, Section VII-B, Figure 3",
    "The rate is not monotone in the number of local epochs; there is a best, finite one.",
    main=True,
)
def _dip() -> Iterator[Claim]:
    for reading in readings():
        by_steps = by_setting(reading.run("epochs"), "steps", solver="gradient")
        yield reading.claims(note=on_loss(reading.loss))("fig3.dip").shape(
            "At its minimum the rate is lower than with 50 epochs by at least 0.1.",
            measures.plateau(by_steps) - measures.lowest(by_steps) >= 0.1,
            fails="a data set on which the rate at the minimum is less than 0.1 below that with 50 epochs",
        )
