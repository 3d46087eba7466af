"""What does not hold as printed in Dieuleveut et al. 2025."""

from __future__ import annotations

import numpy as np

from replifed.algorithms.fedmm import FedMM
from replifed.network.participation import FixedSize
from replifed.papers.errata import Erratum, Outcome
from replifed.problems.surrogates.base import FederatedSurrogate
from replifed.problems.surrogates.variational import DictionaryLearning
from replifed.randomness import Streams
from replifed.simulate import simulate


def _copies_cancel(active: int) -> Outcome:
    """Clients that all hold the same samples: do control variates change the surrogate?"""
    rng = np.random.default_rng(0)
    family = DictionaryLearning(features=6, atoms=3, lam=0.3, eta=0.05)
    Z = rng.normal(size=(1, 1, 30, 6))
    problem = FederatedSurrogate(family, Z, rng.normal(size=(1, family.parameters)), n_clients=8)
    cohort = None if active == 8 else FixedSize(active)
    ends = [
        simulate(FedMM(beta=1.0, alpha=alpha), problem, Streams(0, (0,)), 30, cohort=cohort).state.x
        for alpha in (0.0, 0.5)
    ]
    gap = float(np.abs(ends[0] - ends[1]).max() / np.abs(ends[0]).max())
    return Outcome(gap < 1e-12, f"{active} of 8 clients active: surrogates differ by {gap:.2g}")


ERRATA = (
    Erratum(
        id="fedmm.cancel",
        paper="fedmm",
        place="Section 6, Impact of Control Variates",
        printed="with clients that share their data and no compression, control variates exactly cancel out, "
        "half of the clients taking part",
        corrected="they cancel exactly where all clients take part; otherwise active clients' variates run "
        "ahead of the others', and what is left of them is small but not zero",
        forms=(4, 8),
        check=_copies_cancel,
    ),
)
