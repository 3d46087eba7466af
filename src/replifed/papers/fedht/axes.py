"""What the paper leaves open, and readings of it.

At a common step no method has a free setting. Elsewhere FedHT and FedIterHT choose K as well as the step, and
Distributed-IHT, whose K is 1, the step alone. So orders between FedHT and FedIterHT have equal freedoms in
all settings, as have those between the K of Figure 1 and the levels of Figure 2; orders against
Distributed-IHT have them at a common step alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.statements import Statements, slug

AXES = Axes(
    Axis(
        "step",
        "How step sizes are chosen in the experiments.",
        Option("printed grid", "printed", "Section 5: for each algorithm the best of 10, 1, ..., 0.001"),
        Option(
            "own",
            "chosen",
            "each method at its best step size: the search extends the grid while the best is at its edge, "
            "and refines it",
            against="Section 5 prints the grid",
        ),
        Option(
            "common",
            "fitted",
            "one step size, half of 1/l with l the clients' largest smoothness constant, for all methods of "
            "a figure: FedIterHT then needs about 20 rounds where Figure 3 has 20 in Simulation I",
            against="Section 5 searches each algorithm's step; a tuned Distributed-IHT is far ahead by then",
        ),
        Option(
            "1/(6 l)",
            "printed",
            "Theorems 1 and 2, for every K; we take l_d for the restricted l_s, which is at most as large "
            "and too costly to compute",
            against="Section 5 prints a grid for the experiments; at this step size the objective "
            "has hardly fallen by a tenth when rounds are counted",
        ),
        # Common steps of .0003 and .001, by hand, and one on samples of length one, were thrown away.
        tried=7,
    ),
    Axis(
        "step of the remarks",
        "At which step the remarks on the theorems compare methods and numbers of local steps K.",
        Option("1/(6 l)", "printed", "Theorems 1 and 2, of which the remarks speak, for every K"),
        Option(
            "own",
            "chosen",
            "Section 5 searches steps; each K takes its best",
            against="the theorems' step is the same for every K",
        ),
        Option("common", "fitted", "as in Figure 3, for every K; three times the theorems' step"),
        Option(
            "printed grid",
            "printed",
            "Section 5, of the experiments in which methods are compared",
            against="the theorems' step is the same for every method and K",
        ),
    ),
    Axis(
        "K",
        "Number of local steps in Figures 2, 3 and 6, of which none states it.",
        Option("searched", "printed", "Section 5: the best of 3, 5, 8 and 10, with its step"),
        *(
            Option(
                K,
                "chosen",
                f"{words} of the four that Section 5 searches; methods at one step size then share all "
                "hyperparameters",
                against="Section 5 searches K",
            )
            for K, words in (
                ("10", "the largest"),
                ("8", "the second largest"),
                ("5", "the second smallest"),
                ("3", "the smallest"),
            )
        ),
    ),
    Axis(
        "K of the remarks",
        "At which number of local steps Section 4 compares FedIterHT with FedHT.",
        Option("10", "chosen", "the condition of Remark 3 is weakest at the largest K"),
        Option("8", "chosen", "one of the four of Section 5"),
        Option("5", "chosen", "one of the four of Section 5"),
        Option("3", "chosen", "the smallest of the four of Section 5"),
        Option("searched", "chosen", "each method at the best of the four, with its step, as in Section 5"),
    ),
    Axis(
        "levels",
        "Whether Figure 2 compares levels of heterogeneity at one step.",
        Option("own steps", "chosen", "Section 5 searches the steps of each algorithm"),
        Option("one step", "chosen", "that of the strongest level, so that no level gains by a larger one"),
    ),
    Axis(
        "level",
        "Level of heterogeneity (alpha, beta) in Figures 1 and 3.",
        Option("(0.1, 0.1)", "chosen", "the first of the pairs that Section 5.1 prints"),
        Option("(1, 1)", "chosen", "the last of them; a common step size saves more there"),
    ),
    Axis(
        "batch",
        "Batch size of the experiments.",
        Option(
            "50",
            "chosen",
            "public re-implementations have 20 to 64; we draw samples uniformly with replacement, as the "
            "printed algorithms say",
            against="the theorems' batches grow",
        ),
        Option(
            "full", "chosen", "the methods without noise", against="both algorithms sample", kind="equivalent"
        ),
    ),
    Axis(
        "tau",
        "Sparsity in the simulations.",
        Option(
            "200",
            "chosen",
            "Section 5 prints it for the two data sets beside MNIST; public re-implementations take it here",
        ),
        Option(
            "100",
            "chosen",
            "the non-zeros tau* of each client's own model",
            not_run="the theorems require a tau above tau*",
        ),
    ),
    Axis(
        "tau of MNIST",
        "Whether the 500 weights that are kept on MNIST are those of the whole model or of each class.",
        Option(
            "500 of all weights",
            "chosen",
            "problem (2) bounds the non-zeros of the whole variable, here of 784 x 10 weights",
        ),
        Option(
            "500 in each class",
            "chosen",
            "each class has a vector of 784 weights; a public re-implementation thresholds each at 500",
            against="it hardly binds: pixels at the border are always zero",
        ),
    ),
    Axis(
        "loss",
        "Scale of the losses, on which the printed steps depend; the appendix with the losses is lost.",
        Option("means, squares halved", "chosen", "problem (2) has an expectation, and so a mean"),
        Option(
            "means, squares whole",
            "chosen",
            "as common",
            kind="equivalent",
            not_run="it equals the other one at half the step sizes, which the search covers except at the "
            "ends",
        ),
    ),
    Axis(
        "second arguments",
        "Whether the second argument of N(., .) is a variance where it is a number.",
        Option(
            "variances", "printed", "Section 5.1: N(v, Sigma) with the matrix Sigma, which is a covariance"
        ),
        Option(
            "standard deviations",
            "chosen",
            "a public re-implementation reads it so",
            not_run="at (1, 1) it is the same, and at (0.1, 0.1) clients would differ by a tenth as much",
        ),
    ),
    Axis(
        "parts",
        "Whether each of the 200 parts of the real data goes to one client; Table 2, with the number of "
        "clients, is lost.",
        Option("each once", "chosen", "two of them make 100 clients, as many as in the simulations"),
        Option(
            "with repetition",
            "chosen",
            "each client picks at random",
            not_run="some samples would have no client, and their loss no part in f",
        ),
    ),
    Axis(
        "clients",
        "In which coordinates clients differ where we measure the bias; no experiment of the paper has a "
        "known solution.",
        Option(
            "minimisers differ on the support",
            "chosen",
            "as in the simulations, where clients' models have one support",
        ),
        Option(
            "minimisers differ everywhere",
            "chosen",
            "in all coordinates; the solution and the gradient at it are the same for all alpha",
            against="clients of the simulations differ on their common support alone",
        ),
    ),
    Axis(
        "gradients",
        "Whether gradients are noisy where we measure the bias.",
        Option(
            "full",
            "chosen",
            "the theorems' batches grow until noise is gone",
            against="both algorithms sample",
        ),
        Option(
            "noisy minibatches",
            "chosen",
            "both algorithms sample; a standard deviation of 3 per coordinate, where a client's gradient at "
            "the start is about 10 on the support",
            against="at the start of Simulation I minibatches of 50 have a seventieth of a client's gradient",
        ),
    ),
    inferred={
        "step": "common",
        "step of the remarks": "common",
        "K": "10",
        "K of the remarks": "10",
        "levels": "one step",
        "level": "(0.1, 0.1)",
        "batch": "50",
        "tau": "200",
        "tau of MNIST": "500 of all weights",
        "loss": "means, squares halved",
        "second arguments": "variances",
        "parts": "each once",
        "clients": "minimisers differ on the support",
        "gradients": "full",
    },
    # Whoever needs a fifth of the rounds needs fewer.
    fitted_on=("fig3.simulation1", "fig3.fewer"),
    # Steps, K and levels are gaps of figures, which share their experiments: their claims name them, too.
    gaps={
        "simulation1": ["batch", "tau", "loss", "second arguments"],
        "simulation2": ["batch", "tau", "loss", "second arguments"],
        "e2006": ["batch", "loss", "parts"],
        "rcv1": ["batch", "loss", "parts"],
        "mnist": ["batch", "loss", "tau of MNIST", "parts"],
        "mnist_classes": ["batch", "loss", "tau of MNIST", "parts"],
        "biased": ["step of the remarks"],
        "dissimilar": ["clients", "gradients"],
        "dissimilar_support": ["clients", "gradients"],
        "dissimilar_noisy": ["clients", "gradients"],
        "dissimilar_support_noisy": ["clients", "gradients"],
    },
)

Options = Mapping[str, str]
# What the experiments of each kind have in common.
_LOSS = {"loss": "means, squares halved"}
OF_SIMULATION = {"batch": "50", "tau": "200", "second arguments": "variances", **_LOSS}
OF_REAL = {"batch": "50", "parts": "each once", **_LOSS}
OF_MNIST = {
    "mnist": {**OF_REAL, "tau of MNIST": "500 of all weights"},
    "mnist_classes": {**OF_REAL, "tau of MNIST": "500 in each class"},
}
_MILD = {"level": "(0.1, 0.1)", **OF_SIMULATION}
LOCAL_STEPS = ("10", "8", "5", "3")


class Reading(NamedTuple):
    """Curves by what histories call them: a reading, and K where it is not searched."""

    name: str
    K: int | None = None


# Settings by reading.
REMARKS = {
    name: {"step of the remarks": step, **_MILD}
    for name, step in (
        ("theory", "1/(6 l)"),
        ("printed", "printed grid"),
        ("own", "own"),
        ("common", "common"),
    )
}
FIGURE1 = {
    name: {"step": step, **_MILD}
    for name, step in (("printed", "printed grid"), ("own", "own"), ("common", "common"))
}
FIGURE2 = {
    "printed": {"step": "printed grid", "K": "searched", "levels": "own steps", **OF_SIMULATION},
    "own": {"step": "own", "K": "searched", "levels": "own steps", **OF_SIMULATION},
    "equal": {"step": "common", "K": "10", "levels": "one step", **OF_SIMULATION},
}
_AT_ONE_STEP = (("common", "common"), ("theory", "1/(6 l)"))
FIGURE3: dict[Reading, Options] = {
    Reading("printed"): {"step": "printed grid", "K": "searched", **_MILD},
    Reading("own"): {"step": "own", "K": "searched", **_MILD},
    **{
        Reading(name, int(K)): {"step": step, "K": K, **_MILD}
        for name, step in _AT_ONE_STEP
        for K in LOCAL_STEPS
    },
}
# FedIterHT and FedHT: each at the best of its K, or both at one step and one K.
FASTER: dict[Reading, Options] = {
    **{
        Reading(name): {"step of the remarks": step, "K of the remarks": "searched", **_MILD}
        for name, step in (("printed", "printed grid"), ("own", "own"))
    },
    **{
        Reading(name, int(K)): {"step of the remarks": step, "K of the remarks": K, **_MILD}
        for name, step in _AT_ONE_STEP
        for K in LOCAL_STEPS
    },
}
FIGURE6 = {
    "printed": {"step": "printed grid", "K": "searched"},
    "own": {"step": "own", "K": "searched"},
}
THEOREMS = {"step of the remarks": "1/(6 l)"}
# Of the bias, by experiment.
PLANTED = {
    f"dissimilar{name}": {"clients": f"minimisers differ {where}", "gradients": gradients}
    for name, where, gradients in (
        ("_support", "on the support", "full"),
        ("", "everywhere", "full"),
        ("_noisy", "everywhere", "noisy minibatches"),
        ("_support_noisy", "on the support", "noisy minibatches"),
    )
}

_ENDINGS = {"printed grid": "printed", "own": "own", "common": "common", "1/(6 l)": "theory"}
_ENDINGS |= {"minimisers differ on the support": "support", "noisy minibatches": "noisy"}
_OF_AXIS = {("level", "(1, 1)"): "(1, 1)", ("batch", "full"): "full batch"}
_OF_AXIS |= {("tau of MNIST", "500 in each class"): "classes"}
_OF_AXIS |= {(axis, K): f"{K} steps" for axis in ("K", "K of the remarks") for K in LOCAL_STEPS[1:]}


def _suffix(options: Mapping[str, str]) -> str:
    if options.get("levels") == "one step":
        return ".equal"
    endings = (_OF_AXIS.get((axis, one), _ENDINGS.get(one, "")) for axis, one in options.items())
    return slug(" ".join(filter(None, endings)))


CLAIM = Statements("fedht", AXES, suffix=_suffix, runs="own runs")
RATES = CLAIM.given(artefact="rates")
