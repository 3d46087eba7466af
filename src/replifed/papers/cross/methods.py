"""How each method is set up on a problem that its paper may never have seen.

Most have one number to tune, as a multiple of a reference value that follows from the problem's mu and L;
what else a method has takes its paper's natural value. Gradient descent and Newton-type methods search
their step themselves, and FedGradMP's follows from the data, so that they have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import fivegcs, led, tamuna
from replifed.algorithms.fedplt import best_penalty
from replifed.algorithms.local_solvers import Gradient
from replifed.algorithms.newton_type import NewtonType
from replifed.algorithms.registry import method_class
from replifed.problems.dense import DenseLinearModel

# Newton-type methods stop at gradients of this length, where the gap is below 1e-15.
_SOLVED = 1e-9


def algorithm(name: str, multiple: NDArray, problem: DenseLinearModel, settings: dict) -> Any:
    """The method `name` with the tuned number at `multiple` (R,) times its reference value.

    Parameters
    ----------
    problem : DenseLinearModel
        Says mu, L, the number of clients and that of coordinates.
    settings : dict
        Keys local_steps and kept_share, the share of coordinates that sparse methods keep.
    """
    method, multiple = method_class(name), np.asarray(multiple, float)
    mu, L = float(problem.strong_convexity().min()), float(problem.smoothness().max())
    N, K = problem.n_clients, settings["local_steps"]
    kept = round(settings["kept_share"] * problem.dim)
    step, solver = multiple / L, Gradient(steps=K)
    match name:
        case "gradient_descent":  # the search halves the step
            return method(step=4.0 / L, epsilon=_SOLVED, single_precision=True)
        case _ if issubclass(method, NewtonType):
            return method(epsilon=_SOLVED, single_precision=True)
        case "fedmid" | "feddualavg":  # the problem has no 1-norm
            return method(step=step, local_steps=K, weight=0.0)
        case "fedht" | "fediterht":
            return method(step=step, local_steps=K, sparsity=kept)
        case "distributed_iht":
            return method(step=step, sparsity=kept)
        case "fedgradmp":
            # Algorithm 2: to solve each client's problem on its support to the end costs a hundred times a
            # round.
            return method(sparsity=kept, local_steps=1, solver="gd", inner_steps=K)
        case "fedplt":
            return method(rho=multiple * best_penalty(mu, L), solver=solver)
        case "fedpd":
            return method(eta=multiple / np.sqrt(mu * L), solver=solver)
        case "fedlin":
            return method(solver=Gradient(steps=K, step=step))
        case "tamuna":
            gamma, eta = tamuna.theory_parameters(mu, L, K, N, N)
            return method(gamma=multiple * gamma, eta=eta, solver=solver)
        case "led":
            alpha, beta = led.natural_parameters(L, K)
            return method(alpha=multiple * alpha, beta=beta, solver=solver)
        case "fivegcs":
            gamma, tau = fivegcs.theory_parameters(mu, L, N, N)
            return method(gamma=multiple * gamma, tau=tau / multiple, solver=solver)
        case _:  # FedAvg, and any other method of a step and local steps
            return method(step=step, local_steps=K)


def tunes(name: str) -> bool:
    """Whether the method has a number to tune."""
    return name != "fedgradmp" and not issubclass(method_class(name), NewtonType)


def width(name: str) -> type:
    """Type of the numbers that the method computes with.

    Of first-order methods these are also what is sent. Newton-type methods solve linear systems, for which
    floats of 32 bits are too short; they round what they send themselves.
    """
    return np.float64 if issubclass(method_class(name), NewtonType) else np.float32
