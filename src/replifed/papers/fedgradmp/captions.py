"""Titles and captions of this paper's figures and tables, for the report."""

from __future__ import annotations

PAPER = {
    "name": "FedGradMP",
    "citation": "H. Jeong, D. Needell, J. Qin: Federated Gradient Matching Pursuit. arXiv:2302.10755, 2023.",
    "doi": "10.48550/arXiv.2302.10755",
}

_BANDS = (
    "Lines are geometric means over seeds, bands go from the best to the worst seed; a cross marks the round "
    "at which a seed diverged, and seeds that diverge are not in the mean."
)
_WORK = (
    "On the right the work that was counted instead of the paper's wall-clock time: gradients of single "
    "samples over all clients; a least-squares solution counts as the gradients that cost as much."
)
_SECONDS = (
    "Relative error against processor seconds, of one repetition, as measured on the machine that made the "
    "figure; unlike all else, it differs from run to run."
)
_DIGITS = (
    "Means over seeds with 95 % intervals, each method at its best step, be it beyond the printed grid; "
    "FedAvg, FedMid and FedDualAvg have no tau and stand in every row."
)

# Artefact -> (title, what it shows). The second doubles as the alternative text of the picture.
CAPTIONS = {
    "table1": (
        "Table I: comparison of methods",
        "What each method declares of itself, and the client step sizes it ran with on Figure 4's data. "
        "* needs minibatches that grow exponentially. ** needs none for least squares. Tuning: what the "
        "searches for these steps and for those of the other comparisons used, over all of a method's "
        "variants.",
    ),
    "fig1": (
        "Figure 1: linear convergence",
        f"Relative error of FedGradMP with K = 1 against rounds for four variances alpha of the clients' "
        f"means; noiseless on the left, noisy on the right. {_BANDS}",
    ),
    "fig2": (
        "Figure 2: sparse video recovery",
        "A frame, what FedGradMP recovers of it with up to 50 K-SVD atoms and 30 measurements at each of 50 "
        "clients, and the difference: of the xylophone clip, and of a drawn clip with as many frames as the "
        "paper's. Best: the approximation by as many atoms that matching pursuit finds with the frame at "
        "hand.",
    ),
    "fig3": (
        "Figure 3: low heterogeneity",
        f"Relative error of all methods against rounds, each at its best step. {_WORK} {_BANDS}",
    ),
    "fig4": (
        "Figure 4: high heterogeneity",
        f"As Figure 3, with clients' means of variance 0.5. {_WORK} {_BANDS}",
    ),
    "fig5": (
        "Figure 5: many non-zeros",
        f"As Figure 4 with 400 non-zeros, FedGradMP with gradient descent inside. {_WORK} {_BANDS}",
    ),
    "fig3_seconds": ("Figure 3 in seconds", _SECONDS),
    "fig4_seconds": ("Figure 4 in seconds", _SECONDS),
    "fig5_seconds": ("Figure 5 in seconds", _SECONDS),
    "fig6": (
        "Figure 6: digits by writer",
        f"Accuracy on the training writers (left) and on others (right) against rounds, a row for each "
        f"sparsity level tau, which the paper does not state. {_DIGITS}",
    ),
    "fig6_bits": (
        "Figure 6 against bits (not in the paper)",
        f"The accuracies of Figure 6 against the bits sent both ways. {_DIGITS}",
    ),
    "fig7": (
        "Figure 7: random Gaussian dictionary",
        "Training accuracy of FedGradMP with the standard basis of 784 pixels and with 200 random Gaussian "
        f"atoms, at equal tau; 2000 is all of their coefficients. {_DIGITS.split(';')[0]}.",
    ),
    "fig7_bits": (
        "Figure 7 against bits (not in the paper)",
        f"The accuracies of Figure 7 against the bits sent both ways. {_DIGITS.split(';')[0]}.",
    ),
    "fig8": (
        "Figure 8: FedIterHT's learning rates",
        "Relative error of FedIterHT at the larger steps, at the smaller ones, and the latter's loss; a row "
        "for each way to read what the paper leaves open. On the left, curves end where all seeds have "
        f"diverged. {_BANDS}",
    ),
    "fig9": (
        "Figure 9: exact recovery",
        f"Relative error and loss of FedGradMP with K = 3 on the data of Figure 8. {_BANDS}",
    ),
    "fig10": (
        "Figure 10: number of local iterations",
        f"Relative error of FedGradMP for each number of local iterations K; noiseless on the left, noisy on "
        f"the right. {_BANDS}",
    ),
    "fig11": (
        "Figure 11: cohort size",
        "Relative error of FedGradMP for each number of clients that take part in a round; noiseless on the "
        f"left, noisy on the right; at the dimension of all other figures and at the printed one. {_BANDS}",
    ),
    "supports": (
        "Support recovery (not in the paper)",
        "Precision and recall of the support of the server's model on the data of Figures 3 and 4.",
    ),
    "rates": (
        "Theorem 5 (not in the paper)",
        "Squared error and the theorem's bound where its conditions hold, on near-isometric clients; on the "
        "right each client's restricted condition number on the paper's own data, which exceeds what the "
        "theorem allows on every client.",
    ),
}
