"""The paper, its Table I, and names and lines of methods and their variants."""

from __future__ import annotations

from dataclasses import fields

from replifed.algorithms.registry import method_class
from replifed.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Line

PAPER = {
    "name": "FedGradMP",
    "citation": "H. Jeong, D. Needell, J. Qin: Federated Gradient Matching Pursuit. arXiv:2302.10755, 2023.",
    "doi": "10.48550/arXiv.2302.10755",
}

EXPERIMENTS = {
    "mild": "Figure 3's data (α = 0.2)",
    "strong": "Figure 4's data (α = 0.5)",
    "dense": "Figure 5's data (α = 0.5, τ = 400)",
    "cohorts": "n = 1000",
    "cohorts_small": "n = 50",
    "digits": "digits",
    "digits_gaussian": "digits, Gaussian atoms",
    "video": "xylophone",
    "video_drawn": "drawn clip",
}

# Curves of the comparisons: method and variant.
LINES = {
    "fedgradmp/exact": Line("FedGradMP", BLUE, "-", "o"),
    "fedgradmp/gd": Line("FedGradMP, gradient descent inside", SKY, (0, (5, 1.5)), "P"),
    "fediterht/": Line("FedIterHT", VERMILLION, (0, (5, 1.5)), "s"),
    "fedmid/0.03125": Line("FedMid, λ = 0.5⁵", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "fedmid/5e-06": Line("FedMid, λ = 5e-6", GREEN, (0, (1, 1)), "v"),
    "feddualavg/0.03125": Line("FedDualAvg, λ = 0.5⁵", PURPLE, (0, (4, 1.5, 1, 1.5)), "D"),
    "feddualavg/5e-06": Line("FedDualAvg, λ = 5e-6", PURPLE, (0, (1, 1)), "d"),
    "fedavg/": Line("FedAvg", GREY, (0, (1, 1.2)), "x"),
}
# The same at the best of the printed steps.
LINES |= {
    f"{name}/printed": line._replace(label=f"{line.label}, printed steps", dashes=(0, (1, 2)), marker="+")
    for name, line in LINES.items()
}
# On digits the sparse methods' variants are tau, one row of panels each.
DIGIT_LINES = {
    "fedgradmp": Line("FedGradMP", BLUE, "-", "o"),
    "fediterht": Line("FedIterHT", VERMILLION, (0, (5, 1.5)), "s"),
    "fedmid": Line("FedMid", GREEN, (0, (4, 1.5, 1, 1.5)), "^"),
    "feddualavg": Line("FedDualAvg", PURPLE, (0, (3, 1)), "D"),
    "fedavg": Line("FedAvg", GREY, (0, (1, 1.2)), "x"),
}
METHODS = {method: line.label for method, line in DIGIT_LINES.items()}
DICTIONARIES = {
    "digits": Line("standard basis", BLACK, (0, (5, 1.5)), "s"),
    "digits_gaussian": Line("200 random Gaussian atoms", ORANGE, "-", "o"),
}
# Of Figure 8. None is stated in full; all but the first were chosen since the runs then diverge.
READINGS = {
    "text": "loss as printed, τ = 10",
    "larger_tau": "loss as printed, τ = 200",
    "summed": "summed gradients, τ = 10",
    "split": "gradients times 20, τ = 10",
}


def declared(method: str) -> dict[str, bool]:
    """The four columns of Table I, from a method's settings and its guarantee."""
    settings = {field.name: field for field in fields(method_class(method))}
    guarantee = method_class(method).guarantee
    step = settings.get("step")
    return {
        "dictionary": "projection" in settings,
        "linear_to_bias": guarantee.linear_to_bias,
        "growing_batches": guarantee.growing_batches,
        "no_client_step": step is None,
        # A method that runs without a step size has a default for it.
        "no_step_for_least_squares": step is not None and step.default is None,
        "unbounded_dissimilarity": guarantee.unbounded_dissimilarity,
    }
