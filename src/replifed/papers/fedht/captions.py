"""Titles and captions of this paper's figures and tables, for the report."""

from __future__ import annotations

PAPER = {
    "name": "FedHT and FedIterHT",
    "citation": (
        "Q. Tong, G. Liang, J. Ding, T. Zhu, M. Pan, J. Bi: Federated Optimization of ℓ0-norm Regularized "
        "Sparse Learning. Algorithms 15(9), 319, 2022."
    ),
    "doi": "10.3390/a15090319",
}

_READINGS = (
    "Two readings of the step size stand side by side: each method at its own best step (and best K), "
    "and all methods at one step, half the inverse of the clients' largest smoothness constant, with the "
    "largest K. The paper names neither; the second was chosen because Figure 3's numbers come out in it."
)
_LEVELS = (
    "Two readings of the step size stand side by side: each method at its own best step (and best K) at "
    "each level, and one step for all levels, half the inverse of the largest smoothness constant at (1, 1)."
)
_BANDS = (
    "Lines are means over seeds, bands 95 % intervals of the mean; a cross marks the round at which a "
    "seed diverged, and seeds that diverge are not in the mean. Above a panel stand the numbers of local "
    "steps K and the step sizes γ of its curves, in the legend's order. A curve that hangs on rounding, as "
    "its twins say, is named in its panel and has no band."
)

# Artefact -> (title, what it shows). The second doubles as the alternative text of the picture.
CAPTIONS = {
    "fig1": (
        "Figure 1: number of local steps",
        f"Objective against communication rounds of FedHT and FedIterHT for each number of local steps "
        f"K, on both "
        f"simulations at (0.1, 0.1). {_READINGS} {_BANDS}",
    ),
    "fig2": (
        "Figure 2: heterogeneity",
        "Objective, as a share of the initial one, against communication rounds of FedHT and FedIterHT at "
        f"three degrees of heterogeneity (α, β), on both simulations. {_LEVELS} {_BANDS}",
    ),
    "fig3": (
        "Figure 3: against Distributed-IHT on the simulations",
        f"Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, against "
        f"communication "
        f"rounds and local iterations, on both simulations at (0.1, 0.1) and (1, 1). {_READINGS} {_BANDS}",
    ),
    "fig3_full_batch": (
        "Figure 3 with full local gradients",
        f"The same methods as in Figure 3 with all local samples in each gradient, at (0.1, 0.1). "
        f"{_READINGS}",
    ),
    "fig4": (
        "Figure 4: clusters of E2006-tfidf",
        "t-SNE of a sample of documents, coloured by k-means cluster.",
    ),
    "fig5": ("Figure 5: clusters of RCV1", "t-SNE of a sample of documents, coloured by k-means cluster."),
    "fig6": (
        "Figure 6: against Distributed-IHT on real data",
        "Objective of FedHT, FedIterHT and Distributed-IHT, with dense FedAvg for reference, against "
        "communication rounds, local iterations and bits, on E2006-tfidf, RCV1 and MNIST; each method at "
        "its own best step and K, and at the best step of the printed grid, which ends far below the best on "
        f"RCV1. {_BANDS}",
    ),
    "fig6_classes": (
        "FedIterHT on MNIST by class (not in the paper)",
        "Left, how much of the support of the server's model and of the clients' models after their local "
        "steps lies in classes that the client holds no sample of; right, the objective. The local threshold "
        "of Algorithm 2 stands beside a variant that keeps tau / 10 weights of each class. One seed.",
    ),
    "rates": (
        "Linear rates (not in the paper)",
        "Above, the measured error of FedHT and FedIterHT on a planted problem that meets the theorems' "
        "conditions, with the theorems' bounds, for each K. The first minibatches that they ask for are "
        "larger than what a client holds, so that all samples are used; dashed, batches that begin smaller "
        "and grow as fast, of which the theorems say nothing. Below, the sparsity τ of the paper's "
        "experiments beside the least τ that the theorems ask for in the kindest case: their conditions are "
        "met in none.",
    ),
    "tuning": (
        "Step-size searches (not in the paper)",
        "Objective at the end of a short run against the step size, for each method and K; stars mark the "
        "best steps, crosses steps that diverged, rings steps that are not stable (moved by their last bits "
        "their runs go elsewhere), the grey band the grid printed in the paper. Below stands what a method's "
        "search cost, over all levels and K.",
    ),
    "partitions": (
        "Partitions (not in the paper)",
        "Sizes and contents of the clients of the three real data sets.",
    ),
    "table2": ("Table 2: data sets", "The real data sets, as found and as split between the clients."),
}
