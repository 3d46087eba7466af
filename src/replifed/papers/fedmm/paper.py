"""The paper, the labels of experiments, methods and metrics in its figures, and its shorter range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from replifed.algorithms.looks import method_line

if TYPE_CHECKING:
    from replifed.papers.fedmm import settings as of

PAPER = {
    "name": "FedMM",
    "citation": (
        "A. Dieuleveut, G. Fort, M. Hegazy, H.-T. Wai: Federated Majorize-Minimization: Beyond Parameter "
        "Aggregation. arXiv:2507.17534, 2025."
    ),
    "doi": "10.48550/arXiv.2507.17534",
}

EXPERIMENTS = {
    "synthetic_homogeneous": "Synthetic, homogeneous",
    "synthetic_heterogeneous": "Synthetic, heterogeneous",
    "movielens_random": "MovieLens 1M, 5000 random users",
    "movielens": "MovieLens 1M, 5000 fullest users",
    "variates_homogeneous": "Synthetic, homogeneous",
    "variates_heterogeneous": "Synthetic, heterogeneous",
    "variates_movielens_random": "MovieLens 1M, 5000 random users",
    "variates_movielens": "MovieLens 1M, 5000 fullest users",
    "em_poisson": "Poisson with random effect",
    "em_poisson_known_mean": "The same, E[Z] known",
    "em_mixture": "Gaussian mixture",
}

METHODS = {
    name: method_line(name) for name in ("fedmm", "parameter_aggregation", "fedmm_ot", "fedadam", "sa_ssmm")
}

METRICS = {
    "objective": "objective (28)",
    "parameter_update": "parameter update $E^p$",
    "surrogate_update": "surrogate update $E^s$",
}

# First rounds in which all metrics are recorded, however seldom later on: there the curves fall most.
FIRST_ROUNDS = 20
# Runs of the naive method at its best step of the shorter range, by the experiment whose data they share. On
# homogeneous data this is its best step of all.
SHORTER = {
    "synthetic_heterogeneous": "shorter_heterogeneous",
    "movielens_random": "shorter_movielens",
}


def best_asked(found: Mapping[str, Any], experiment: of.Codes) -> float:
    """The best step of a search's record among those from which the search started."""
    assert experiment.tuning is not None
    scores = dict(zip(found["betas"], found["scores"], strict=True))
    asked = (beta for beta in experiment.tuning.betas if beta in scores)  # not beyond where gamma_t is 1
    return min(asked, key=lambda beta: math.inf if scores[beta] is None else scores[beta])
