"""The six compared methods: their parameters from theory, and as multiples of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import fedlin, fedpd, fedplt, fivegcs, led, tamuna
from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.local_solvers import Accelerated, Gradient, SteppedSolver

METHODS: dict[str, Callable[..., Any]] = {
    "fedplt": fedplt.FedPLT,
    "fedpd": fedpd.FedPD,
    "fedlin": fedlin.FedLin,
    "tamuna": tamuna.TAMUNA,
    "led": led.LED,
    "fivegcs": fivegcs.FiveGCS,
}
SOLVERS: dict[str, Callable[..., SteppedSolver]] = {"gradient": Gradient, "accelerated": Accelerated}
# Methods with partial participation.
PARTIAL = ("fedplt", "tamuna", "fivegcs")
# The parameters of each method that a search varies. `scale` is a factor before the local step.
PARAMETERS = {
    "fedplt": ("rho",),
    "fedpd": ("eta", "scale"),
    "fedlin": ("step",),
    "tamuna": ("gamma", "eta"),
    "led": ("alpha", "beta"),
    "fivegcs": ("gamma", "tau"),
}
# Parameters that are searched with an equal budget: every method's local step, and all others.
FREE = {**PARAMETERS, "fedplt": ("rho", "scale"), "fivegcs": ("gamma", "tau", "scale")}

Values = dict[str, NDArray]
"""Parameters by name, with an entry a data set."""


class Moduli(NamedTuple):
    """mu and L common to all agents: each of shape (R,)."""

    low: NDArray
    high: NDArray


class Cell(NamedTuple):
    """A cell of Table II: method, local solver, N_e, the number of agents and of those that take part."""

    method: str
    solver: str
    steps: int
    agents: int
    cohort: int

    @property
    def everyone(self) -> bool:
        """True if all agents take part."""
        return self.cohort == self.agents


def local_step(solver: str, moduli: Moduli, ridge: NDArray | float = 0.0) -> NDArray:
    """The best constant step for an objective with these moduli and `ridge` more."""
    if solver == "accelerated":
        return 1.0 / (moduli.high + ridge)
    return 2.0 / (moduli.low + moduli.high + 2.0 * ridge)


def theory(cell: Cell, moduli: Moduli) -> Values:
    """The method's parameters as its own paper prescribes them; arrays (R,)."""
    mu, L = moduli
    parameters: tuple[Any, ...]
    match cell.method:
        case "fedplt":
            parameters = (fedplt.best_rho(mu, L),)
        case "fedpd":
            parameters = fedpd.theory_eta(L), 1.0
        case "fedlin":
            parameters = (fedlin.theory_step(L, cell.steps),)
        case "tamuna":
            parameters = tamuna.theory_parameters(mu, L, cell.steps, cell.agents, cell.cohort)
        case "led":
            parameters = led.natural_parameters(L, cell.steps)
        case "fivegcs":
            parameters = fivegcs.theory_parameters(mu, L, cell.agents, cell.cohort)
        case "fedavg":
            return {}
        case _:
            raise KeyError(cell.method)
    values = (np.broadcast_to(value, L.shape) for value in parameters)
    return dict(zip(PARAMETERS[cell.method], values, strict=True))


def reference(cell: Cell, moduli: Moduli) -> Values:
    """Start of a search of the parameters: theory, but for FedLin the best step for one agent alone."""
    if cell.method == "fedlin":
        return {"step": local_step(cell.solver, moduli)}
    return theory(cell, moduli)


def times(base: Values, multiples: NDArray) -> Values:
    """Parameters `base`, each times its multiples, the last axis of (..., P)."""
    return {name: values * multiples[..., p] for p, (name, values) in enumerate(base.items())}


def build(cell: Cell, moduli: Moduli, parameters: Values) -> Any:
    """The method with these parameters (R,).

    Local steps are the best constant ones for the inner objective, times `scale` if it is given; those of
    FedLin, TAMUNA and LED are parameters. Momentum follows the step.
    """
    if cell.method == "fedavg":
        return FedAvg(step=local_step("gradient", moduli), local_steps=cell.steps)
    settings = dict(parameters)
    step = settings.pop("step", None)
    if "scale" in settings:
        if cell.method == "fivegcs":  # whose agents' objectives have moduli M tau and L - mu + M tau
            ridge = cell.agents * settings["tau"] - moduli.low
        else:
            ridge = 1.0 / settings["rho" if cell.method == "fedplt" else "eta"]
        step = settings.pop("scale") * local_step(cell.solver, moduli, ridge)
    elif cell.method == "tamuna" and cell.solver == "accelerated":
        # gamma = 2 / (L + mu) is too long a step with momentum, which takes 1 / L instead.
        step = local_step("accelerated", moduli) / local_step("gradient", moduli) * settings["gamma"]
    return METHODS[cell.method](**settings, solver=SOLVERS[cell.solver](steps=cell.steps, step=step))
