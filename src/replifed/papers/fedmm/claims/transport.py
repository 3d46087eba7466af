"""Section 7, federated optimal transport, and what Appendices D and E prove."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from replifed.claims.claim import Claim
from replifed.claims.curves import curves, last
from replifed.claims.quantities import run
from replifed.papers.fedmm import measures, theory
from replifed.papers.fedmm.axes import CLAIM, LOST, TRANSPORT, proved


@CLAIM.sentence(
    "fig3.better",
    "Abstract, Section 7.3, Figure 3",
    "In every dimension FedMM-OT computes a transport map that is significantly better than FedAdam's.",
    main=True,
    question="Our copy has lost all formulas: how many rounds and which learning rates does Figure 3 have, "
    "and what is the weight of the cycle term in (33)?",
)
def _transport() -> Iterator[Claim]:
    for dim in (2, 4, 8):
        histories = [run(f"transport_{dim}", method) for method in ("fedmm_ot", "fedadam")]
        ours, adam = (last(curves(history, "uvp")) for history in histories)
        for count, words, lower in (
            ("per round", "rounds", np.log(adam) - np.log(ours)),
            ("per gradient", "gradients of a sample", measures.at_equal_gradients(*histories)),
        ):
            yield CLAIM(f"fig3.d{dim}.better", unit="e-folds", options={**TRANSPORT, "count": count}).order(
                f"D = {dim}: FedMM-OT ends at less L2-UVP than FedAdam after equally many {words}.",
                lower,
                note="it depends on rounds, learning rates and the weight of the cycle term, which are lost",
            )


proved(
    "lemma2", "Appendix D, Lemma 2", "Along s the map φ(T(s)) is monotone (57).", theory.monotone, note=LOST
)
proved(
    "lemma3",
    "Appendix D, Lemma 3",
    "Projections make obtuse angles and bring no points farther apart, here with B = I.",
    theory.projects,
)
proved(
    "prop3",
    "Appendix D, Proposition 3",
    "H is an unbiased oracle of h(S), and variates act on the part of its variance that cohorts add.",
    theory.field,
)
proved(
    "prop5",
    "Appendix D, Proposition 5",
    "The server's control variate is the weighted mean of the clients' at all times.",
    theory.variates_add_up,
)
proved(
    "appendix_e",
    "Appendices E.2 and E.3, Section 5, A 7",
    "B(s) is singular for dictionary learning, and invertible for counts with a known mean.",
    theory.degenerate,
)
