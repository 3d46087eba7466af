"""Titles and captions of the artefacts in the report."""

PAPER = {
    "name": "Fed-PLT",
    "citation": (
        "N. Bastianello, C. Liu, K. H. Johansson: Enhancing Privacy in Federated Learning through Local "
        "Training. arXiv:2403.17572, 2024."
    ),
    "doi": "10.48550/arXiv.2403.17572",
}

# Artefact -> (title, what it shows). The second doubles as the alternative text of the picture.
CAPTIONS = {
    "table1": (
        "Table I: comparison of the algorithms",
        "Models that each method keeps between two rounds and sends in one, counted on its code. The "
        "published "
        "count of variables includes copies that agents hold during a round.",
    ),
    "table2": (
        "Table II: convergence rates, tuned parameters",
        "Mean over data sets with 95 % intervals, published numbers in brackets; 10 agents, or 5 of them at "
        "random. FedLin takes two exchanges for one round, all others one. Tuned for each data set: of "
        "Fed-PLT ρ alone, of its rivals two parameters (of FedLin one). Equal budget: on the first data sets "
        "every method searches its local step and all its own parameters, from the same grid, until a finer "
        "one changes the rate by less than 0.003. Both choose on the data set that they report, with all "
        "agents active: such a run draws nothing at random, so that choice and report coincide. TAMUNA draws "
        "its number of local steps and has neither. The last column is the cost of a line's searches. With "
        "an equal budget they took, for each data set, some 110 to 150 points for two parameters, 20 for "
        "FedLin's one and 500 for 5GCS's three; the table of searches has them all.",
    ),
    "table2_theory": (
        "Table II: convergence rates, parameters of theory",
        "As before, each method with the step sizes that its own paper prescribes; for LED, whose "
        "theorem leaves "
        "constants open, the natural ones. All take 10 local steps, 5GCS too, whose theorem asks for about "
        "30; with accelerated local steps these are 1 / L long, TAMUNA's too.",
    ),
    "table3": (
        "Table III: rates of Fed-PLT with 1 to 10 active agents",
        "Cohorts are drawn uniformly in each round; ρ is that of each data set with all agents active.",
    ),
    "table4": (
        "Table IV: asymptotic error of Fed-PLT with noisy gradient descent",
        "Three ways to measure the error and two readings of the noise level; the paper names neither.",
    ),
    "fig2": (
        "Figure 2: rate of Fed-PLT against ρ",
        "Mean over data sets and 95 % interval, and the bound ζ on the rate of exact Peaceman–Rachford "
        "splitting.",
    ),
    "fig3": (
        "Figure 3: rate of Fed-PLT against the number of local epochs",
        "The plateau is the rate of exact Peaceman–Rachford splitting, run here with Newton's method; ζ "
        "is a bound "
        "above it.",
    ),
    "bounds": (
        "Bounds of the theory (not in the paper)",
        "Contraction constants of Propositions 1 and 3 beside measured rates, and the bounds of "
        "Proposition 2 and "
        "Corollary 1 beside measured errors; drawn only where they are below one on every data set.",
    ),
    "privacy": (
        "Privacy, accuracy and local epochs (described without a figure in the paper)",
        "Mean losses, clipped gradients, all agents active, starts as Proposition 4 asks for. Only what "
        "agent i "
        "holds at the end is bounded; z_i, sent in every round, is not.",
    ),
    "readings": (
        "Readings of the set-up (not in the paper)",
        "Rates with summed and averaged losses and two kinds of data; the published best rate is the "
        "dotted line. Each ρ is one for all data sets here, which costs some hundredths against Table II, "
        "where each data set has its own.",
    ),
    "exactness": (
        "Exact convergence (Remarks 2 and 3)",
        "Largest relative error left over the data sets, with any number of local epochs, and without "
        "the warm "
        "start.",
    ),
    "searches": (
        "Parameter searches (not in the paper)",
        "Tuned on other data sets: best multiples of each method's reference parameters on data sets that "
        "are not reported. Else every data set has its own choice, made on that data set itself. The cost "
        "is that of all trials of a line; points that are tried at one data set are counted for it alone.",
    ),
}
