"""The paper, its Table I, and names and lines of methods and their variants."""

from __future__ import annotations

from dataclasses import fields

from replifed.algorithms.looks import method_line
from replifed.algorithms.registry import method_class
from replifed.figures.lines import BLACK, BLUE, ORANGE, TWO_DASHES, TWO_DOTS, Line

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
    "digits_classes": "digits, τ in each class",
    "digits_classes_few": "digits, τ = 50 in each class",
    "digits_fewest": "digits, τ = 500",
    "digits_double": "digits, double precision",
    "digits_gaussian": "digits, Gaussian atoms",
    "digits_gaussian_few": "digits, Gaussian atoms, τ = 50 in each class",
    "video": "xylophone",
    "video_drawn": "drawn clip",
}

# Curves of the comparisons: method and variant.
LINES = {
    "fedgradmp/exact": method_line("fedgradmp"),
    "fedgradmp/gd": method_line(
        "fedgradmp", "FedGradMP, gradient descent inside", dashes=TWO_DASHES, marker="P"
    ),
    "fediterht/": method_line("fediterht"),
    "fedmid/0.03125": method_line("fedmid", "FedMid, λ = 0.5⁵"),
    "fedmid/5e-06": method_line("fedmid", "FedMid, λ = 5e-6", dashes=TWO_DOTS, marker="v"),
    "feddualavg/0.03125": method_line("feddualavg", "FedDualAvg, λ = 0.5⁵"),
    "feddualavg/5e-06": method_line("feddualavg", "FedDualAvg, λ = 5e-6", dashes=TWO_DASHES, marker="d"),
    "fedavg/": method_line("fedavg"),
}
# The same at the best of the printed steps: thin.
LINES |= {
    f"{name}/printed": own._replace(label=f"{own.label}, printed steps", width=0.7)
    for name, own in LINES.items()
}
ORACLE = Line("least squares on the true support", BLACK, (0, (1, 1.5)), "", 1.0)
# On digits the sparse methods' variants are tau, one row of panels each.
DIGIT_LINES = {
    name: method_line(name) for name in ("fedgradmp", "fediterht", "fedmid", "feddualavg", "fedavg")
}
METHODS = {method: own.label for method, own in DIGIT_LINES.items()}
DICTIONARIES = {
    "digits": Line("standard basis", BLACK, (0, (5, 1.5)), "s"),
    "digits_classes": Line("standard basis, τ in each class", BLUE, (0, (3, 1, 1, 1)), "^"),
    "digits_gaussian": Line("200 random Gaussian atoms", ORANGE, "-", "o"),
    "digits_classes_few": Line("standard basis, 50 in each class", BLUE, TWO_DASHES, "v"),
    "digits_gaussian_few": Line("200 atoms, 50 in each class", ORANGE, TWO_DOTS, "D"),
}
# Of Figure 9: rounds to machine precision.
EXACT_ROUNDS = 4
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


def noise_name(variance: float) -> str:
    """Return the name of a level of noise in titles."""
    return "noiseless" if variance == 0 else f"noise of variance {variance:.3g}"
