"""Titles and captions of this paper's figures and tables, for the report."""

from __future__ import annotations

PAPER = {
    "name": "FedMM",
    "citation": (
        "A. Dieuleveut, G. Fort, M. Hegazy, H.-T. Wai: Federated Majorize-Minimization: Beyond Parameter "
        "Aggregation. arXiv:2507.17534, 2025."
    ),
    "doi": "10.48550/arXiv.2507.17534",
}

_MARKS = (
    "The text at hand has lost its formulas and numbers. Recovered: 10 independent runs, equal-size "
    "constrained k-means, 5000 users of MovieLens 1M, all metrics. Inferred: the algorithm's lines, the "
    "quantiser, the metrics' normalisation. Chosen: all sizes (p, K, N, n, λ, η), minibatches, bits, the "
    "family and range of steps, the number of rounds; see the marks in config/papers/fedmm.yaml."
)
_BANDS = "Lines are means over seeds, bands one standard deviation."
_METRICS = (
    "Columns: objective (28) on all data; squared update of the parameter over γ², of T(S) for "
    "FedMM; squared "
    "update of the surrogate over γ², of the mirror of θ for parameter aggregation."
)

# Artefact -> (title, what it shows). The second doubles as the alternative text of the picture.
CAPTIONS = {
    "fig1": (
        "Figure 1: space of aggregation",
        "FedMM against aggregation of parameters, each at its own tuned step. The search goes on until the "
        f"best step lies inside its range. {_METRICS} {_BANDS} {_MARKS}",
    ),
    "fig1_common": (
        "Figure 1 at one step for both methods (second reading)",
        f"As Figure 1, with the step tuned for FedMM in both methods. {_METRICS} {_BANDS} {_MARKS}",
    ),
    "fig2": (
        "Figure 2: control variates",
        "FedMM with all local samples and no quantisation, with (α > 0) and without (α = 0) "
        "control variates, "
        f"at two shares of active clients; β = 1. {_METRICS} {_BANDS} {_MARKS}",
    ),
    "fig3": (
        "Figure 3: federated optimal transport",
        "L2-UVP of the learned map, per round and per gradient, of FedMM-OT and FedAdam in several "
        "dimensions, with the best linear map for reference. The coupled objective (33) is "
        "unbounded below, so in both methods the potential takes its derivative with the other map held "
        "fixed, and the conjugate maximises. The weight of the cycle term is not stated, and zero here. "
        "Clients' step, server's step and control variates are chosen here.",
    ),
    "em": (
        "EM examples (not in the paper)",
        "The examples of Appendix C on unlike clients: with all clients, all samples and step 1 FedMM is EM; "
        "with half of the clients, minibatches and 8 bits it ends near EM's solution. Lines are geometric "
        "means over seeds, bands one standard deviation of the logarithm. The law of the "
        "random effect, N(0, 1), and all sizes are chosen here.",
    ),
    "batch": (
        "The local batch against the number of atoms (not in the paper)",
        "Final objective of both methods against local samples a round in units of K, for two "
        "reconstructions of the lost sizes. Steps are the best of a fixed range in these very runs; on "
        "unlike clients with small batches the naive method would gain from smaller ones, see the table of "
        "searches. A local surrogate of fewer samples than atoms leaves atoms unused, which a local "
        "minimiser sets to zero: this is what makes aggregation of parameters fail. Bars are one standard "
        "deviation.",
    ),
    "bits": (
        "Bits of a coordinate (not in the paper)",
        "Objective on heterogeneous synthetic data for several numbers of bits a coordinate, "
        "against rounds and "
        f"against bits sent; β = 1. {_BANDS}",
    ),
    "partitions": (
        "Clients of MovieLens 1M (not in the paper)",
        "What the clients hold that constrained k-means made of 5000 users.",
    ),
    "steps": (
        "Searches of the step (not in the paper)",
        "Mean objective over the last fifth of the search's rounds for each step that was tried, "
        "γ_t = min(1, β / √t). The range grows until the best step lies inside, at most to the β from which "
        "on γ_t is 1 in every round. * marks the chosen step, † one that was checked and is not stable: "
        "moved by its last bits a run goes elsewhere, or it ends no lower than it began. Runs, rounds and "
        "bits, both ways, are what each search cost, its checks for stability included. The repetitions "
        "are others than those reported; on MovieLens they share users and clients with them.",
    ),
    "remark1": (
        "Remark 1: the toy",
        "Two readings of the example, whose formulas are lost. Aggregating surrogates gives the solution in "
        "the first round, aggregating parameters a constant that is not the solution.",
    ),
}
