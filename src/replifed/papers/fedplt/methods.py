"""The six compared methods: their parameters from theory, and as multiples of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.fedlin import FedLin
from replifed.algorithms.fedlin import theory_step as fedlin_step
from replifed.algorithms.fedpd import FedPD
from replifed.algorithms.fedpd import theory_eta as fedpd_eta
from replifed.algorithms.fedplt import FedPLT, best_penalty
from replifed.algorithms.fivegcs import FiveGCS
from replifed.algorithms.fivegcs import theory_parameters as fivegcs_parameters
from replifed.algorithms.led import LED
from replifed.algorithms.led import natural_parameters as led_parameters
from replifed.algorithms.local_solvers import Accelerated, Gradient, SteppedSolver
from replifed.algorithms.tamuna import TAMUNA
from replifed.algorithms.tamuna import theory_parameters as tamuna_parameters

SOLVERS: dict[str, Callable[..., SteppedSolver]] = {"gradient": Gradient, "accelerated": Accelerated}
# Those that let agents stay out.
PARTIAL = ("fedplt", "tamuna", "fivegcs")


class Moduli(NamedTuple):
    """Strong-convexity and smoothness modulus common to all agents, one a row: each of shape (R,)."""

    low: NDArray
    high: NDArray


class Cell(NamedTuple):
    """A cell of Table II: the local solver, N_e, the number of agents and of those that take part."""

    solver: str
    steps: int
    agents: int
    cohort: int


# The parameters of each method that a search varies. `scale` is a factor before the local step.
PARAMETERS = {
    "fedplt": ("rho",),
    "fedpd": ("eta", "scale"),
    "fedlin": ("step",),
    "tamuna": ("gamma", "eta"),
    "led": ("alpha", "beta"),
    "fivegcs": ("gamma", "tau"),
}
# Those that are free with an equal budget: every method's local step, and all that it has of its own.
FREE = {**PARAMETERS, "fedplt": ("rho", "scale"), "fivegcs": ("gamma", "tau", "scale")}


def local_step(solver: str, moduli: Moduli, ridge: NDArray | float = 0.0) -> NDArray:
    """The best constant step for an objective with these moduli and `ridge` more."""
    if solver == "accelerated":
        return 1.0 / (moduli.high + ridge)
    return 2.0 / (moduli.low + moduli.high + 2.0 * ridge)


def theory(method: str, moduli: Moduli, cell: Cell) -> dict[str, NDArray]:
    """Each method's parameters as its own paper prescribes them; arrays (R,)."""
    parameters = _theory(method, moduli, cell)
    return {name: np.asarray(value) for name, value in parameters.items()}


def _theory(method: str, moduli: Moduli, cell: Cell) -> dict[str, float | NDArray]:
    low, high = moduli
    ones = np.ones_like(high)
    if method == "fedplt":
        return {"rho": best_penalty(low, high)}
    if method == "fedpd":
        return {"eta": fedpd_eta(high), "scale": ones}
    if method == "fedlin":
        return {"step": fedlin_step(high, cell.steps)}
    if method == "tamuna":
        gamma, eta = tamuna_parameters(low, high, cell.steps, cell.agents, cell.cohort)
        return {"gamma": gamma, "eta": eta * ones}
    if method == "led":
        alpha, beta = led_parameters(high, cell.steps)
        return {"alpha": alpha, "beta": beta * ones}
    if method == "fivegcs":
        gamma, tau = fivegcs_parameters(low, high, cell.agents, cell.cohort)
        return {"gamma": gamma, "tau": tau}
    raise KeyError(method)


def reference(method: str, moduli: Moduli, cell: Cell) -> dict[str, NDArray]:
    """Where a search of the parameters begins: theory, but for FedLin the best step for one agent alone."""
    if method == "fedlin":
        return {"step": local_step(cell.solver, moduli)}
    return theory(method, moduli, cell)


def build(method: str, moduli: Moduli, cell: Cell, parameters: dict[str, NDArray]) -> Any:
    """The method with these parameters (R,).

    Local steps are the best constant ones for the inner objective, times `scale` where it is given; but for
    FedLin, TAMUNA and LED, whose step is a parameter. Momentum follows the step.
    """
    make = SOLVERS[cell.solver]
    solver: SteppedSolver = make(steps=cell.steps)

    def scaled(ridge: NDArray) -> SteppedSolver:
        if "scale" not in parameters:
            return solver
        return make(steps=cell.steps, step=parameters["scale"] * local_step(cell.solver, moduli, ridge))

    if method == "fedplt":
        return FedPLT(rho=parameters["rho"], solver=scaled(1.0 / parameters["rho"]))
    if method == "fedpd":
        return FedPD(eta=parameters["eta"], solver=scaled(1.0 / parameters["eta"]))
    if method == "fedlin":
        return FedLin(solver=make(steps=cell.steps, step=parameters["step"]))
    if method == "tamuna":
        gamma = parameters["gamma"]
        if cell.solver == "accelerated":
            # gamma = 2 / (L + mu) is too long a step with momentum, which takes 1 / L instead.
            shorter = local_step("accelerated", moduli) / local_step("gradient", moduli)
            solver = make(steps=cell.steps, step=shorter * gamma)
        return TAMUNA(gamma=gamma, eta=parameters["eta"], solver=solver)
    if method == "led":
        return LED(alpha=parameters["alpha"], beta=parameters["beta"], solver=solver)
    if method == "fivegcs":
        gamma, tau = parameters["gamma"], parameters["tau"]
        # What the agents descend on has moduli between M tau and high - low + M tau.
        return FiveGCS(gamma=gamma, tau=tau, solver=scaled(cell.agents * tau - moduli.low))
    if method == "fedavg":
        return FedAvg(step=local_step("gradient", moduli), local_steps=cell.steps)
    raise KeyError(method)
