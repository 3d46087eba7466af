"""Claims on the propositions, privacy, and what Algorithm 1 allows beside the tables."""

from __future__ import annotations

from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula, run, settings
from replifed.papers.fedplt import measures, release
from replifed.papers.fedplt.claims.readings import CLAIM, Reading, arrives
from replifed.papers.fedplt.measures import by_setting, lines, mean_change

_EXACTLY = "on quadratic losses, where it is known exactly"


def theorems() -> Iterator[Claim]:
    """Exactness, and bounds on rates and errors."""
    claim = CLAIM.given(artefact="exactness")
    runs = run("exactness", "fedplt")
    for name, who, statement in (
        ("full", "all", "No client drift: exact convergence for every number of local epochs (Remark 3)."),
        ("partial", "half", "Exact convergence also under partial participation (Remark 3)."),
    ):
        errors = lines(runs, "error", participation=who, start="warm")
        yield claim.shape(f"exact.{name}", statement, arrives(errors, 1e-12))
    comparison = run("comparison", "fedplt")
    for name, cohort, who in (("full", 10, "all agents"), ("partial", 5, "half of the agents")):
        yield claim.shape(
            f"exact.accelerated.{name}",
            f"Exact convergence also with accelerated local steps, with {who} (Proposition 3, Remark 3).",
            arrives(lines(comparison, "error", reading="common", solver="accelerated", cohort=cohort)),
        )
    cold = measures.cold_errors_of_few_steps(runs)
    yield claim.shape(
        "warm.needed",
        "Local steps must begin at x_{i,k}: from v_{i,k}, few of them do not converge to the minimiser "
        "(Remark 2).",
        (cold > 1e-6).note("least error left {0.min:.2g}", cold),
    )
    claim = CLAIM.given(artefact="bounds")
    for name, solver, statement in (
        ("rate", "gradient", "Where |S| < 1 the measured rate is at most |S| (Proposition 1)."),
        ("accelerated", "accelerated", "Where |S'| < 1 the measured rate is at most |S'| (Proposition 3)."),
    ):
        below = measures.rate_below_norm(run("epochs", "fedplt"), settings("epochs"), solver)
        yield claim.shape(f"bounds.{name}", statement, below, note="S and S' as printed")
    yield claim.shape(
        "bounds.contraction",
        "Where |S| < 1 a round brings any two states closer by the factor |S| (Proposition 1).",
        measures.round_below_norm(run("splitting", "fedplt")),
        note="S as printed; its eq. (14) lacks a factor 1 / rho, and with that |S| is above one everywhere "
        "here. A round is taken as its linearisation at the minimiser",
    )
    yield claim.shape(
        "bounds.rounds",
        "Mean errors stay below the bound of Proposition 2, with and without partial participation and "
        "noise.",
        measures.errors_below_bound(run("bounds", "fedplt"), settings("bounds")),
        note="S as printed",
    )


def privacy() -> Iterator[Claim]:
    """Section VI."""
    runs = run("privacy", "fedplt")
    yield CLAIM.shape(
        "privacy.tradeoff",
        "The larger the noise, the larger the error (Corollary 1, Section VI).",
        measures.error_rises_with_noise(runs),
        share=0.95,
        note="two levels whose noise is below the error that the rounds leave may be equal",
    )
    yield CLAIM.shape(
        "privacy.bound",
        "The Renyi divergence of final models on neighbouring data sets is at most that of Proposition 4.",
        formula(release.final_models_below_bound),
        note="on quadratic losses, where it is known exactly, coupling by the coordinator included",
    )
    yield CLAIM.identity(
        "privacy.constant",
        "Proposition 4's privacy loss grows with the rounds, up to the constant lambda L^2 / (mu tau^2 q^2), "
        "where composing the Renyi divergences of all steps grows without bound (Section VI).",
        formula(measures.grows_to_constant),
        note="of the bound; the divergence of final models itself need not grow: on quadratic losses it can "
        "fall after the first round, since the coordinator mixes in the other agents' noise",
    )
    for name, what, agents, words, note in (
        ("", "all", 10, "the agents' final models give away", ""),
        (".messages", "messages", 2, "all messages give away", "; Proposition 4 is of final models"),
    ):
        yield CLAIM.shape(
            f"privacy.epochs{name}",
            "Local training enhances privacy (title, Contribution 3, Section VI): at equally many gradient "
            f"steps, the more of them are local the less {words}.",
            formula(release.epochs_hide, what, agents),
            says="privacy.epochs",
            note=_EXACTLY + note,
        )
    for name, rival, how, note in (
        ("", "advanced", "advanced composition of", ""),
        (
            ".renyi",
            "renyi",
            "composing the Renyi divergences of",
            "it costs half as much while steps are few, and protects every step's model",
        ),
    ):
        yield CLAIM.shape(
            f"privacy.tighter{name}",
            f"Proposition 4's privacy is tighter than {how} all noisy steps (Section VI).",
            measures.tighter(runs, settings("privacy"), rival),
            says="privacy.tighter",
            note=note,
        )


def variants(loss: str) -> Iterator[Claim]:
    """Uncoordinated, composite and stochastic variants of Algorithm 1."""
    reading = Reading(loss)
    claim, runs = reading.claims(artefact="variants"), reading.run("variants")
    for name, who, where in (("full", "all", "all agents"), ("partial", "half", "half of the agents")):
        yield claim.shape(
            f"composite.{name}",
            f"Exact convergence on composite problems, with {where} (Contribution 2, Section V).",
            arrives(lines(runs, "error", variant="composite", participation=who), 1e-11),
            says="composite",
        )
        yield claim.shape(
            f"uncoordinated.{name}",
            "Agents may use different algorithms and numbers of local steps, and it still converges to the "
            f"minimiser, with {where} (Remark 1).",
            arrives(lines(runs, "error", variant="uncoordinated", solver="mixed", participation=who), 1e-11),
            says="uncoordinated",
        )
    for steps in (1, 10):
        common, own = (
            lines(runs, "rate", variant="uncoordinated", solver=solver, steps=steps)
            for solver in ("common", "own")
        )
        yield claim.order(
            f"uncoordinated.faster.{steps}",
            "Steps for their own mu and L adapt to the agents' losses: the rate is lower than with one for "
            f"all ({steps} local epoch{'s' * (steps > 1)}; Remark 1).",
            common - own,
            unit="rate",
            says="uncoordinated.faster",
            note="the agents' mu and L differ little; with many epochs, or mean losses, it makes the "
            "proximal maps more exact, which is slower, as in Figure 3",
        )
    for solver, words in (("gradient", "Minibatches"), ("accelerated", "Minibatches with accelerated steps")):
        yield claim.shape(
            f"minibatches.{solver}.neighbourhood",
            f"{words} lead to a neighbourhood of the minimiser: mean errors settle, within a tenth "
            "(Section V-B, Table I).",
            measures.steady(runs, solver, 0.1),
        )
        by_batch = by_setting(runs, "batch", "error", variant="minibatches", solver=solver)
        yield claim.shape(
            f"minibatches.{solver}.variance",
            f"{words}: the larger their noise, the larger the neighbourhood (Contribution 3).",
            mean_change(by_batch) < 0,
        )
