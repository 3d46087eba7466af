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
    "With step sizes for their own mu and L agents can adapt to the heterogeneity of their losses.",
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
_NORMS = {"gradient": "|S|", "accelerated": "|S'|"}


@CLAIM.sentence(
    "bounds.contraction",
    "Propositions 1 to 3, eq. (14)",
    "Where |S| < 1 (|S'| for accelerated steps), a round multiplies the distance of (x, z) to its fixed "
    "point by at most that number, and so errors fall.",
    main=True,
    evidence="formula",
    question="Is 1 / rho missing in eq. (14), and at which rho is |S| below one with it?",
)
def _propositions() -> Iterator[Claim]:
    for loss in LOSSES:
        splitting = run("splitting_mean" if loss == "mean" else "splitting", "fedplt")
        yield _BOUND("bounds.contraction", options={"loss": loss}).shape(
            "Where |S| < 1 no distance to the fixed point grows by more than |S| a round (Proposition 1).",
            measures.round_below_norm(splitting),
            fails="a round with a norm above |S|, where |S| is below one",
            note="this uses |S| as printed; with 1 / rho in eq. (14) |S| is above one in all these cases; "
            "rounds are linearised at the minimiser",
        )
    for name, solver, place in (("rounds", "gradient", 2), ("accelerated", "accelerated", 3)):
        yield _BOUND(f"bounds.{name}", artefact="worst").shape(
            f"From the worst direction near the fixed point a round with {solver} steps leaves at most "
            f"{_NORMS[solver]} times the error before, all agents active (Proposition {place}).",
            measures.worst_below_norm(run("worst", "fedplt"), settings("worst"), solver),
            fails="a start from which a round leaves more",
            note=f"{_NORMS[solver]} as printed",
        )


@CLAIM.sentence(
    "bounds.fixed",
    "Proposition 1",
    "A round's unique fixed point is the minimiser, with the z of the splitting.",
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


@CLAIM.sentence("warm.needed", "Remark 2", "Local steps must start from the last x_i.")
def _warm_start() -> Iterator[Claim]:
    cold = measures.cold_errors_of_few_steps(run("exactness", "fedplt"))
    yield CLAIM("warm.needed", artefact="exactness").shape(
        "From v_{i,k}, few local steps do not converge to the minimiser.",
        (cold > 1e-6).note("least error left {0.min:.2g}", cold),
        fails="a run from v_{i,k} that ends within 1e-6 of the minimiser",
    )


for _place, _says in {
    "Proposition 2, Section IV-C, Assumption 2": "The mean error after k rounds has a bound, with partial "
    "participation and noise.",
    "Proposition 3": "Where S' is below one a round with accelerated steps is a contraction by at most |S'|.",
}.items():
    CLAIM.also("bounds.contraction", _place, _says)


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
    "Proposition 4 bounds the Renyi divergence of the final models.",
    main=True,
    evidence="formula",
)
def _proposition4() -> Iterator[Claim]:
    yield CLAIM("privacy.bound").shape(
        "The Renyi divergence of final models on neighbouring data sets is at most that of Proposition 4.",
        release.below_bound(formula(release.shares_of_bound)),
        fails="neighbouring data sets with a larger divergence",
        note="on quadratic losses, where it is known exactly, coupling by the coordinator included",
    )


@CLAIM.sentence(
    "privacy.tighter",
    "Below Proposition 4",
    "Proposition 4's bound is arguably tighter than that of advanced composition.",
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
    "The larger the noise's variance, the less accurate the models; privacy and accuracy trade off.",
)
def _tradeoff() -> Iterator[Claim]:
    yield CLAIM("privacy.tradeoff").shape(
        "The larger the noise, the larger the error.",
        measures.error_rises_with_noise(run("privacy", "fedplt")),
        fails="more than one step in twenty to more noise that lowers the error",
        share=0.95,
        note="two levels whose noise is below the error that the rounds leave may be equal",
    )
