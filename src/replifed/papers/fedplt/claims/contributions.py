"""Title, abstract, introduction and contributions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity, formula, run
from replifed.papers.fedplt import measures, release
from replifed.papers.fedplt.axes import CLAIM, LOSSES, Reading, by_agents, by_epochs, notes, on_loss, readings
from replifed.papers.fedplt.claims.rates import clipped, faster_than_rivals
from replifed.papers.fedplt.measures import at, by_setting, lines
from replifed.papers.fedplt.methods import PARTIAL, SOLVERS
from replifed.papers.fedplt.paper import COLUMNS, METHODS


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
    "Abstract, Section I, Contributions 1 and 2, Section V, Proposition 3, Remark 3, Lemma 6",
    "Local training does not impair accuracy: with gradient or accelerated steps, and on composite problems, "
    "it converges exactly for any number of local epochs.",
    main=True,
    evidence="formula",
)
def _exact() -> Iterator[Claim]:
    yield CLAIM("exact.full", artefact="exactness").shape(
        "No client drift: exact convergence for every number of local epochs (Remark 3).",
        arrives(exact("all"), 1e-12),
        fails="an error above 1e-12 with some number of local epochs",
    )
    for loss in LOSSES:
        runs = Reading(loss, "planted").run("variants")
        claim = CLAIM.given(artefact="variants", options={"loss": loss})
        for name, who, where in (("full", "all", "all agents"), ("partial", "half", "half of the agents")):
            yield claim(f"composite.{name}").shape(
                f"Exact convergence on composite problems, with {where}.",
                arrives(lines(runs, "error", variant="composite", participation=who), 1e-11),
                fails="a run that ends farther than 1e-11 from the minimiser",
            )
    for reading in readings("common"):
        claim = reading.claims(artefact=reading.experiment("table2"))
        for name, cohort, who in (("full", 10, "all agents"), ("partial", 5, "half of the agents")):
            runs = reading.run("comparison")
            yield claim(f"exact.accelerated.{name}").shape(
                f"Exact convergence with accelerated local steps, with {who}.",
                arrives(lines(runs, "error", reading="common", solver="accelerated", cohort=cohort)),
                fails="a run that ends farther than 1e-9 from the minimiser",
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
    question="With which loss, rho and number of local epochs did local training reduce rounds, and by how "
    "much?",
)
def _local_training() -> Iterator[Claim]:
    for reading in by_epochs():
        yield reading.claims(unit="e-folds")("fig3.local").order(
            "With 10 local epochs fewer rounds are needed than with one, at the same rho.",
            _fewer_rounds(*reversed(_epochs(reading))),
            note="the text prints no number for significantly",
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
    question="Compared with what does partial participation reduce rounds, as Table III has more of them?",
)
def _partial_rounds() -> Iterator[Claim]:
    for reading in by_agents():
        yield reading.claims(unit="e-folds")("table3.rounds").order(
            "With half of the agents fewer rounds are needed than with all, at each data set's best rho.",
            _half_of_the_agents(reading),
            note="Section VII-A says the opposite, and is right: a round updates only half of the agents",
        )


@CLAIM.sentence(
    "table3.messages",
    "Section I",
    "Partial participation reduces the number of communications that are required.",
)
def _partial_messages() -> Iterator[Claim]:
    for reading in by_agents():
        yield reading.claims(unit="e-folds")("table3.messages").order(
            "Half of the agents, at each data set's best rho, send fewer messages in all than all do.",
            _half_of_the_agents(reading) + np.log(2.0),
            note="a round has half of the messages, but more than twice as many rounds are needed",
        )


@CLAIM.sentence("fedavg.biased", "Section I", "Local training may cost accuracy, because of client drift.")
def _fedavg() -> Iterator[Claim]:
    for reading in readings("common"):
        artefact = reading.experiment("table2")
        yield reading.claims(artefact=artefact)("fedavg.biased").shape(
            "FedAvg does not reach the minimiser.",
            lines(reading.run("comparison", "fedavg"), "error") > 1e-3,
            fails="a run that ends within 1e-3 of the minimiser",
        )


@CLAIM.sentence(
    "table2.partial",
    "Sections I and VII-A",
    "Partial participation may slow convergence: rates increase when only some of the agents take part.",
)
def _partial_participation() -> Iterator[Claim]:
    for method, solver, reading in itertools.product(PARTIAL, SOLVERS, readings("common")):
        claim = reading.claims(artefact=reading.experiment("table2"), unit="rate")
        yield claim(f"table2.partial.{method}.{solver}").order(
            f"{METHODS[method]}: the rate increases when half of the agents take part ({solver} solver).",
            clipped(reading, method, solver, "half") - clipped(reading, method, solver, "all"),
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
    "With stochastic gradients Fed-PLT reaches a neighbourhood of the minimiser that grows with their "
    "variance.",
)
def _stochastic() -> Iterator[Claim]:
    yield from minibatches("gradient", "Minibatches")


_NO_CHANGE = "a smaller change is not called one (`claims.units`)"
_FIXED = {"rounds": "In as many rounds", "steps": "Of as many gradient steps", "accuracy": "For one accuracy"}


def _privacy_by_epochs(name: str, what: str, agents: int, words: str, note: str = "") -> Iterator[Claim]:
    for fixed, beginning in _FIXED.items():
        yield CLAIM(f"privacy.epochs{name}", artefact="privacy", options={"fixed": fixed}).shape(
            f"{beginning}, some number of local epochs above one lets {words} give away less than one does.",
            release.some_hide(formula(release.given_away, what, agents, fixed)),
            fails="numbers of local epochs of which none above one gives away less than one does",
            note=notes(
                "on quadratic losses, where it is known exactly, each number at its fastest rho", note
            ),
        )
        yield CLAIM(
            f"privacy.ten{name}", artefact="privacy", options={"fixed": fixed}, unit="ratio", informs=True
        ).near(
            f"{beginning}, what {words} give away with ten local epochs, as a multiple of that with one.",
            1.0,
            release.of_ten(formula(release.given_away, what, agents, fixed)),
            within=0.05,
            because=_NO_CHANGE,
        )


# What agents send is no main claim: Contribution 3 promises the privacy of the final model alone.
@CLAIM.sentence(
    "privacy.messages",
    "Section VI",
    "Local training can enhance the privacy of what agents send.",
    evidence="formula",
)
def _messages() -> Iterator[Claim]:
    yield from _privacy_by_epochs(
        ".messages", "messages", 2, "all messages", "Proposition 4 bounds final models alone"
    )


@CLAIM.sentence(
    "privacy.epochs",
    "Title, Abstract, Contribution 3",
    "Local training can enhance the privacy of the final models.",
    main=True,
    evidence="formula",
    question="With what do you compare the privacy of the final models: at equal rounds, gradient steps or "
    "accuracy?",
)
def _final_models() -> Iterator[Claim]:
    yield from _privacy_by_epochs("", "all", 10, "the agents' final models")
    # Not in the text: how much more noise local training needs on the paper's problem.
    for reading in by_epochs():
        yield reading.claims(unit="e-folds", informs=True)("fig3.privacy").order(
            "With ten local epochs fewer noisy steps in all lead to the same accuracy than with one.",
            _fewer_rounds(*reversed(_epochs(reading))) - np.log(10.0),
            note=notes("ten epochs take ten times the steps, and save fewer rounds", on_loss(reading.loss)),
        )


@CLAIM.sentence(
    "privacy.dependence",
    "Abstract, Proposition 4",
    "The privacy bounds depend on the number of local epochs.",
    main=True,
    evidence="formula",
    question="At equal rounds the bound grows with the number of local epochs. What is held equal when it "
    "shows that local training enhances privacy?",
)
def _dependence() -> Iterator[Claim]:
    claim = CLAIM.given(artefact="privacy")
    yield claim("privacy.dependence").shape(
        "At the same rho and after as many rounds the bound changes with the number of local epochs.",
        release.depends(formula(release.bounds)),
        fails="a bound that is the same for two numbers of local epochs",
        note="it depends on N_e through K N_e alone: it is the same for as many gradient steps",
    )
    # The text does not say in which direction.
    yield claim("privacy.dependence.growth", unit="ratio", informs=True).near(
        "At the same rho and after as many rounds, the bound with ten local epochs as a multiple of that "
        "with one.",
        1.0,
        release.growth(formula(release.bounds)),
        within=0.05,
        because=_NO_CHANGE,
    )


@CLAIM.sentence(
    "table2.best",
    "Contribution 4, Section VII-A",
    "Fed-PLT's convergence rate is the best in all scenarios.",
    main=True,
    question="With which step sizes did FedLin run, and does its round of two exchanges count once?",
)
def _best() -> Iterator[Claim]:
    for column in COLUMNS:
        yield from faster_than_rivals(*column)


@CLAIM.sentence(
    "fig3.dip",
    "Contribution 4, Section VII-B, Figure 3",
    "The rate is not monotone in the number of local epochs; a finite number is best.",
    main=True,
)
def _dip() -> Iterator[Claim]:
    for reading in by_epochs():
        by_steps = by_setting(reading.run("epochs"), "steps", solver="gradient")
        yield reading.claims(note=on_loss(reading.loss))("fig3.dip").shape(
            "The least mean rate is below those with one and with 50 epochs, by more than the interval.",
            measures.below_ends(by_steps),
            fails="a least mean rate at an end, or no farther below it than their difference's interval",
        )
