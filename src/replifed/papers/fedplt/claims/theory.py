"""Sections IV to VI: remarks, propositions and their corollaries."""

from __future__ import annotations

from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula, run, settings
from replifed.papers.fedplt import measures, release
from replifed.papers.fedplt.axes import CLAIM, LOSSES, Reading
from replifed.papers.fedplt.claims.contributions import arrives, exact
from replifed.papers.fedplt.measures import lines


@CLAIM.sentence(
    "uncoordinated",
    "Remark 1, Section IV-C",
    "Agents may use different algorithms, or one with different parameters, with any partial participation.",
    evidence="formula",
)
def _uncoordinated() -> Iterator[Claim]:
    for loss in LOSSES:
        runs = Reading(loss, "planted").run("variants")
        claim = CLAIM.given(artefact="variants", options={"loss": loss})
        for name, who, where in (("full", "all", "all agents"), ("partial", "half", "half of the agents")):
            yield claim(f"uncoordinated.{name}").shape(
                "With different algorithms and numbers of local steps it still converges to the minimiser, "
                f"with {where}.",
                arrives(
                    lines(runs, "error", variant="uncoordinated", solver="mixed", participation=who), 1e-11
                ),
                fails="a run that ends farther than 1e-11 from the minimiser",
            )


@CLAIM.sentence(
    "uncoordinated.faster",
    "Remark 1",
    "With steps for their own mu and L agents can adapt to the heterogeneity of their losses.",
)
def _adapting() -> Iterator[Claim]:
    for loss in LOSSES:
        runs = Reading(loss, "planted").run("variants")
        claim = CLAIM.given(artefact="variants", options={"loss": loss})
        yield claim("uncoordinated.adapts").shape(
            "With steps for their own mu and L it converges to the minimiser.",
            arrives(lines(runs, "error", variant="uncoordinated", solver="own"), 1e-11),
            fails="a run that ends farther than 1e-11 from the minimiser",
        )
        for steps in (1, 10):
            common, own = (
                lines(runs, "rate", variant="uncoordinated", solver=solver, steps=steps)
                for solver in ("common", "own")
            )
            # Not in the text, which calls it useful.
            yield claim(f"uncoordinated.faster.{steps}", unit="rate", informs=True).order(
                f"The rate is lower than with one step for all ({steps} local epoch{'s' * (steps > 1)}).",
                common - own,
                note="the agents' mu and L differ little; with many epochs, or mean losses, it makes the "
                "proximal maps more exact, which is slower, as in Figure 3",
            )


_BOUND = CLAIM.given(artefact="bounds")


def _below_norm(name: str, solver: str, norm: str) -> Claim:
    below = measures.rate_below_norm(run("epochs", "fedplt"), settings("epochs"), solver)
    return _BOUND(f"bounds.{name}").shape(
        f"Where {norm} < 1 the measured rate is at most {norm}.",
        below,
        fails="a rate above the norm, where the norm is below one",
        note="S and S' as printed",
    )


@CLAIM.sentence(
    "bounds.contraction",
    "Proposition 1",
    "Where S is below one a round is a contraction with a constant of at most |S|.",
    main=True,
)
def _proposition1() -> Iterator[Claim]:
    yield _BOUND("bounds.contraction").shape(
        "Where |S| < 1 a round brings any two states closer by the factor |S|.",
        measures.round_below_norm(run("splitting", "fedplt")),
        fails="two states that a round brings closer by less than |S|",
        note="S as printed; its eq. (14) lacks a factor 1 / rho, and with that |S| is above one everywhere "
        "here. A round is taken as its linearisation at the minimiser",
    )
    yield _below_norm("rate", "gradient", "|S|")


@CLAIM.sentence(
    "bounds.fixed", "Proposition 1", "Its unique fixed point is the minimiser, with z of the splitting."
)
def _fixed_point() -> Iterator[Claim]:
    left = measures.left(run("bounds", "fedplt"))
    yield _BOUND("bounds.fixed").shape(
        "(x, z) converges to the minimiser and its z.",
        (left <= 1e-5).note("at most {0.max:.2g} is left", left),
        fails="a run that ends farther than 1e-5 from the fixed point",
    )
    radius = measures.rate_where_proved(run("splitting", "fedplt"))
    yield _BOUND("bounds.unique").shape(
        "Where |S| < 1 no other fixed point is near.",
        (radius < 1).note("a round's spectral radius is at most {0.max:.3f}", radius),
        fails="a spectral radius of one or more",
        note="of a round's linearisation at the minimiser; S as printed",
    )


@CLAIM.sentence("warm.needed", "Remark 2", "Local steps must begin at the last x_i.")
def _warm_start() -> Iterator[Claim]:
    cold = measures.cold_errors_of_few_steps(run("exactness", "fedplt"))
    yield CLAIM("warm.needed", artefact="exactness").shape(
        "From v_{i,k}, few local steps do not converge to the minimiser.",
        (cold > 1e-6).note("least error left {0.min:.2g}", cold),
        fails="a run from v_{i,k} that ends within 1e-6 of the minimiser",
    )


@CLAIM.sentence(
    "bounds.rounds",
    "Proposition 2, Section IV-C, Assumption 2",
    "A bound on the mean error after k rounds, with partial participation and noise.",
)
def _proposition2() -> Iterator[Claim]:
    yield _BOUND("bounds.rounds").shape(
        "Mean errors stay below the bound, with and without partial participation and noise.",
        measures.errors_below_bound(run("bounds", "fedplt"), settings("bounds")),
        fails="a mean error above the bound after some round",
        note="S as printed",
    )


@CLAIM.sentence(
    "bounds.accelerated",
    "Proposition 3",
    "Where S' is below one a round with accelerated steps is a contraction with a constant of at most |S'|.",
)
def _proposition3() -> Iterator[Claim]:
    yield _below_norm("accelerated", "accelerated", "|S'|")


@CLAIM.sentence(
    "exact.partial", "Remark 3", "Convergence is exact also with partial participation.", evidence="formula"
)
def _exact_partial() -> Iterator[Claim]:
    yield CLAIM("exact.partial", artefact="exactness").shape(
        "Exact convergence under partial participation.",
        arrives(exact("half"), 1e-12),
        fails="a run that ends farther than 1e-12 from the minimiser",
    )


@CLAIM.sentence(
    "privacy.bound",
    "Proposition 4",
    "A bound on the Renyi divergence of the final models.",
    main=True,
    evidence="formula",
)
def _proposition4() -> Iterator[Claim]:
    yield CLAIM("privacy.bound").shape(
        "The Renyi divergence of final models on neighbouring data sets is at most that of Proposition 4.",
        formula(release.final_models_below_bound),
        fails="neighbouring data sets with a larger divergence",
        note="on quadratic losses, where it is known exactly, coupling by the coordinator included",
    )


@CLAIM.sentence(
    "privacy.constant",
    "Below Proposition 4",
    "The privacy loss grows with the iterations, up to a constant.",
    evidence="formula",
)
def _constant() -> Iterator[Claim]:
    yield CLAIM("privacy.constant").identity(
        "The bound grows with the rounds, up to the constant lambda L^2 / (mu tau^2 q^2), where composing "
        "the Renyi divergences of all steps grows without bound.",
        formula(measures.grows_to_constant),
        note="of the bound; the divergence of final models itself need not grow: on quadratic losses it can "
        "fall after the first round, since the coordinator mixes in the other agents' noise",
    )


@CLAIM.sentence(
    "privacy.tighter",
    "Below Proposition 4",
    "It is arguably tighter than what advanced composition gives.",
)
def _tighter() -> Iterator[Claim]:
    runs, made = run("privacy", "fedplt"), settings("privacy")
    yield CLAIM("privacy.tighter").shape(
        "Proposition 4's privacy is tighter than advanced composition of all noisy steps.",
        measures.tighter(runs, made, "advanced"),
        fails="a setting in which advanced composition gives the smaller epsilon",
    )
    yield CLAIM("privacy.tighter.renyi", informs=True).shape(
        "Proposition 4's privacy is tighter than composing the Renyi divergences of all noisy steps.",
        measures.tighter(runs, made, "renyi"),
        fails="a setting in which composed divergences give the smaller epsilon",
        note="it costs half as much while steps are few, and protects every step's model",
    )


@CLAIM.sentence(
    "privacy.tradeoff",
    "Section VI, below Corollary 1",
    "The larger the noise's variance, the less accurate; privacy and accuracy trade off.",
)
def _tradeoff() -> Iterator[Claim]:
    yield CLAIM("privacy.tradeoff").shape(
        "The larger the noise, the larger the error.",
        measures.error_rises_with_noise(run("privacy", "fedplt")),
        fails="more than one step in twenty to more noise that lowers the error",
        share=0.95,
        note="two levels whose noise is below the error that the rounds leave may be equal",
    )
