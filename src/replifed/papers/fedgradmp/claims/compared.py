"""FedGradMP against each baseline in Figures 3 to 5, and what several sections' claims have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from replifed.claims.claim import Claim
from replifed.claims.curves import at, curves, first
from replifed.claims.quantities import Quantity, joined, run
from replifed.papers.fedgradmp import measures
from replifed.papers.fedgradmp.axes import DECADES, STEPS, options_of
from replifed.papers.fedgradmp.measures import decades, error, log_error, logs
from replifed.papers.fedgradmp.paper import EXPERIMENTS, METHODS

BASELINES = (("fediterht", ""), ("fedmid", "0.03125"), ("feddualavg", "0.03125"), ("fedavg", ""))
# Experiment, and how FedGradMP's sub-problems are solved.
FIGURES = {"fig3": ("mild", "exact"), "fig4": ("strong", "exact"), "fig5": ("dense", "gd")}
NOISES = {0.0: "noiseless", 4e-6: "noisy"}
SPARSITY = (
    "the paper does not state tau; the fewer weights FedGradMP keeps, the less accurate it is, while dense "
    "baselines keep all"
)
MOST = 'the text shows one curve per step, and says of short ones that they "tend to" it: most runs must'
LONG, SHORT = (0.004, 0.01, 0.02), (0.0001, 0.0005, 0.001, 0.002)  # steps of Figure 8


def faster_in_rounds(figure: str) -> Iterator[Claim]:
    """Claims on the errors after five rounds."""
    experiment, solver = FIGURES[figure]
    for (name, (step, words)), (method, variant) in product(STEPS.items(), BASELINES):
        other = log_error(5, experiment, method, variant, reading=name)
        yield DECADES(f"{figure}.{method}.rounds", options=options_of(experiment, step=step)).order(
            f"{EXPERIMENTS[experiment]}: FedGradMP converges faster than {METHODS[method]} {words}in rounds; "
            "its error after 5 is smaller (Section V-B).",
            decades(other, log_error(5, experiment, "fedgradmp", solver)),
        )


def faster_in_work(figure: str) -> Iterator[Claim]:
    """Claims on the errors at the work of five rounds of FedGradMP."""
    experiment, solver = FIGURES[figure]
    best = (experiment, "fedgradmp", solver)
    work = at(measures.column("sample_gradients", *best), 5)
    for (name, (step, words)), (method, variant) in product(STEPS.items(), BASELINES):
        other = (experiment, method, variant)
        spent = measures.column("sample_gradients", *other, reading=name)
        then = measures.at_equal(work, logs(error(*other, reading=name)), spent)
        options = options_of(experiment, step=step, time="counted work")
        yield DECADES(f"{figure}.{method}.work", options=options).order(
            f"{EXPERIMENTS[experiment]}: FedGradMP converges faster than {METHODS[method]} {words}in "
            "computation; its error after 5 rounds is smaller than the other's at equal work (Section V-B).",
            decades(then, log_error(5, *best)),
        )


def smaller_residual(figure: str, **more: bool) -> Iterator[Claim]:
    """Claims on the errors at the end, or where dense methods come to rest (`limits`)."""
    experiment, solver = FIGURES[figure]
    for (name, (step, words)), (method, variant) in product(STEPS.items(), BASELINES):
        theirs = error(experiment, method, variant, reading=name)
        ours = error(experiment, "fedgradmp", solver)
        at_rest = None
        if method != "fediterht":
            at_rest = first(measures.limit(experiment, method, variant, reading=name))
        yield DECADES(f"{figure}.{method}.residual", options=options_of(experiment, step=step), **more).order(
            f"{EXPERIMENTS[experiment]}: FedGradMP has a smaller residual error than {METHODS[method]} "
            f"{words}at the end (Section V-B).",
            decades(measures.residual(theirs, at_rest), measures.residual(ours)),
            note="each over the last quarter of its rounds: baselines have more, and cost more; "
            + (
                "a run that still descends bounds its residual from above, so that it may yet end below"
                if at_rest is None
                else "for a run that still descends stands the minimiser to which short steps lead"
            ),
        )


def fewer_bits(figure: str) -> Iterator[Claim]:
    """Claims on the errors when as many bits were sent as FedGradMP sends in five rounds."""
    experiment, solver = FIGURES[figure]
    best = (experiment, "fedgradmp", solver)
    sent = at(_bits(*best), 5)
    for (name, (step, words)), (method, variant) in product(STEPS.items(), BASELINES):
        other = (experiment, method, variant)
        then = measures.at_equal(sent, logs(error(*other, reading=name)), _bits(*other, reading=name))
        yield DECADES(
            f"{figure}-bits.{method}", artefact=figure, options=options_of(experiment, step=step)
        ).order(
            f"{EXPERIMENTS[experiment]}: FedGradMP saves communication: after 5 rounds its error is smaller "
            f"than that of {METHODS[method]} {words}when both have sent as many bits (Section I-B).",
            decades(then, log_error(5, *best)),
        )


def _bits(experiment: str, method: str, variant: str, **where: str) -> Quantity:
    return curves(measures.with_bits(run(experiment, method)), "bits", variant=variant, **where)


def of_steps(
    measure: Callable[..., Quantity], method: str, reading: str, steps: tuple[float, ...]
) -> Quantity:
    """What a measure of curves finds on all runs with some of Figure 8's steps."""
    return joined(*(measure(error("learning_rates", method, reading, step=step)) for step in steps))
