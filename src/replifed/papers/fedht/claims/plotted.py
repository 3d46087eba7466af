"""Curves and errors that claims of several sections look at, and what these depend on."""

from __future__ import annotations

from collections.abc import Iterator

from replifed.claims.curves import curves
from replifed.claims.quantities import Quantity, run
from replifed.papers.fedht import measures
from replifed.papers.fedht.axes import FIGURE6, OF_MNIST, OF_REAL, Options, Reading

SIMULATIONS = ("simulation1", "simulation2")
REAL = ("e2006", "rcv1", "mnist")
FEDERATED = ("fedht", "fediterht")
BASELINE = "distributed_iht"
COMPARED = (*FEDERATED, BASELINE)
SPREADS = ("alpha = 0.1", "alpha = 0.5", "alpha = 1")  # of the planted problem's clients
# By method: its theorem, rate and bias term.
BOUNDS = {"fedht": ("Theorem 1", "theta_1", "g_1"), "fediterht": ("Theorem 2", "theta_2", "g_3")}

FREE_K = "we tune step size and K for FedHT and FedIterHT, and the step size alone for Distributed-IHT"
_NEARLY_ONE = (
    "a client's Hessian has nearly rank one, so that several local steps need a step size many times smaller "
    "than one averaged step; only at a common, small step size does a round of K steps go K times as far"
)
NOTES = {"own": f"{FREE_K}; {_NEARLY_ONE}", "printed": f"{FREE_K}; {_NEARLY_ONE}", "common": "", "theory": ""}
OWN_K = "each K takes its own best stable step here, which falls faster than 1/K; at one step the order holds"


def plotted(
    experiment: str, method: str, reading: Reading | str, place: int = 0, full_batch: bool = False
) -> Quantity:
    """Curves of a method in Figures 2, 3 and 6, at a level of heterogeneity by its index."""
    return of_column("objective", experiment, method, reading, place, full_batch)


def of_column(
    value: str,
    experiment: str,
    method: str,
    reading: Reading | str,
    place: int = 0,
    full_batch: bool = False,
) -> Quantity:
    """Another column of these curves."""
    name, K = reading if isinstance(reading, Reading) else Reading(reading)
    history = measures.batches(run(experiment, method), full_batch)
    fixed: dict[str, object] = {"tuned": True} if K is None or method == BASELINE else {"local_steps": K}
    return curves(measures.at_level(history, experiment, place), value, reading=name, **fixed)


def of_figure6() -> Iterator[tuple[str, Options, str, str]]:
    """Reading, settings, panel and experiment of each curve of Figure 6; MNIST with two meanings of tau."""
    for reading, options in FIGURE6.items():
        for panel in ("e2006", "rcv1"):
            yield reading, {**options, **OF_REAL}, panel, panel
        for experiment, more in OF_MNIST.items():
            yield reading, {**options, **more}, "mnist", experiment


def small_batches(experiment: str, method: str) -> Quantity:
    """History at the mildest level."""
    return measures.at_level(measures.batches(run(experiment, method)), experiment, 0)


def by_k(experiment: str, method: str, reading: str) -> Quantity:
    """Curves of each K in Figure 1."""
    return measures.by_local_steps(small_batches(experiment, method), reading)


def left(method: str, experiment: str = "dissimilar") -> list[Quantity]:
    """Errors left on a planted problem, by K, at each spread."""
    return [measures.ends(run(experiment, method), experiment, place) for place in range(3)]
