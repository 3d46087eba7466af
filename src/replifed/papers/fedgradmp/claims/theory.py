"""Sections II to IV and appendices: what assumptions, theorems and remarks say."""

from __future__ import annotations

from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import formula
from replifed.papers.fedgradmp import measures
from replifed.papers.fedgradmp.axes import CLAIM, RATES


@CLAIM.sentence(
    "theorem13",
    "Remark 2; Appendix B, Theorem 13",
    "Bounded variances are not essential; a linear rate holds without them.",
    evidence="formula",
)
def _theorem13() -> Iterator[Claim]:
    yield RATES("theorem13").identity(
        "Bounded variances are not essential: Theorem 13 has a linear rate without them, kappa < 1 "
        "(Remark 2).",
        formula(measures.theorem13_contracts),
        note="this is about the bound: its kappa is above one for every theta and any losses, so that it "
        "promises nothing",
    )


@CLAIM.sentence(
    "remark3.rate",
    "Remark 3, 2",
    "If some mu(i) exceeds one, kappa may be below one for few local iterations and above one for many.",
    evidence="formula",
)
def _rate() -> Iterator[Claim]:
    yield RATES("remark3.rate").shape(
        "Where some client's mu exceeds one, Theorem 5's kappa may be below one at K = 1 and above one at a "
        "larger K (Remark 3).",
        formula(measures.rate_worsens, formula(measures.unlike, 10, 1.005, 1.12)),
        fails="kappa that stays on one side of one for all K",
        note="of the bound; what FedGradMP does as K grows is Figure 10's",
    )


@CLAIM.sentence(
    "remark3.residual",
    "Remark 3, 3",
    "Even with all mu(i) below one the residual depends on K in no simple way.",
    evidence="formula",
)
def _residual() -> Iterator[Claim]:
    yield RATES("remark3.residual").shape(
        "Theorem 5's residual depends on K in no simple way even where all mu are below one: it falls with "
        "K here and rises there (Remark 3).",
        formula(measures.residual_turns, formula(measures.unlike, 50, 1.02, 1.1)),
        fails="a residual that only falls, or only rises, with K",
        note="if all clients are alike, it falls with every K",
    )


@CLAIM.sentence(
    "corollary10",
    "Remark 3, 1; Section IV-D, Corollary 10",
    "With Gaussian atoms the isometry constant of BA / |B|_F falls as the stable rank of B grows.",
    evidence="formula",
)
def _isometry() -> Iterator[Claim]:
    yield RATES("corollary10").shape(
        "The isometry constant of BA/|B|_F with Gaussian A falls, in expectation, as the stable rank of B "
        "grows (Corollary 10).",
        formula(measures.isometry_improves, formula(measures.isometries)),
        fails="a constant that does not fall as the stable rank grows",
    )


@CLAIM.sentence(
    "logistic",
    "Section IV-D",
    "The logistic losses' second derivatives lie between 4 / (1 + e^r)^2 and 1; with K classes, jointly, "
    "between (1 + K e^(2r))^-2 and 1.",
    evidence="formula",
)
def _logistic() -> Iterator[Claim]:
    yield RATES("logistic").identity(
        "With samples of length one and |x| <= r, the logistic loss curves between 4 / (1 + e^r)^2 and 1 "
        "times least squares; with K classes between (1 + K e^{2r})^-2 and 1, in all of them jointly "
        "(Section IV-D).",
        formula(measures.logistic_bounds),
        note="jointly, since the printed s has a reference class, its 1: without one a vector added to all "
        "classes leaves the loss as it is",
    )
