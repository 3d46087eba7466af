"""How each method is set up on a problem that its paper may never have seen.

Most have one number to tune, as a multiple of a reference value that follows from the problem's moduli;
what else a method has takes its paper's natural value. Gradient descent and Newton-type methods search
their step themselves, and FedGradMP's follows from the data, so that they have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.newton_type import NewtonType
from replifed.algorithms.registry import method_class

# Newton-type methods stop at gradients of this length, where the gap is below 1e-15.
_SOLVED = 1e-9


class Moduli(NamedTuple):
    """Least strong-convexity and largest smoothness modulus of the clients, and their number."""

    low: float
    high: float
    n_clients: int


def algorithm(name: str, multiple: NDArray, moduli: Moduli, settings: dict, dim: int) -> Any:
    """The method `name` with the tuned number at `multiple` (R,) times its reference value.

    Parameters
    ----------
    settings : dict
        Keys local_steps and kept_share, the share of coordinates that sparse methods keep.
    dim : int
        Coordinates of a model.
    """
    return _MAKERS[name](method_class(name), np.asarray(multiple, float), moduli, settings, dim)


def tunes(name: str) -> bool:
    """Whether the method has a number to tune."""
    return _MAKERS[name] not in (_newton, _matching_pursuit, _gradient_descent)


def width(name: str) -> type:
    """Type of the numbers that the method computes with.

    Of first-order methods these are also what is sent. Newton-type methods solve linear systems, for which
    floats of 32 bits are too short; they round what they send themselves.
    """
    return np.float64 if issubclass(method_class(name), NewtonType) else np.float32


def _solver(settings: dict, step: NDArray | None = None) -> Any:
    from replifed.algorithms.local_solvers import Gradient

    return Gradient(steps=settings["local_steps"], step=step)


def _averaging(method, multiple, moduli, settings, dim):
    return method(step=multiple / moduli.high, local_steps=settings["local_steps"])


def _composite(method, multiple, moduli, settings, dim):
    # The problem has no 1-norm.
    return method(step=multiple / moduli.high, local_steps=settings["local_steps"], weight=0.0)


def _sparse(method, multiple, moduli, settings, dim):
    sparsity = round(settings["kept_share"] * dim)
    return method(step=multiple / moduli.high, local_steps=settings["local_steps"], sparsity=sparsity)


def _sparse_each_step(method, multiple, moduli, settings, dim):
    return method(step=multiple / moduli.high, sparsity=round(settings["kept_share"] * dim))


def _matching_pursuit(method, multiple, moduli, settings, dim):
    # Algorithm 2: to solve each client's problem on its support to the end costs a hundred times a round.
    sparsity = round(settings["kept_share"] * dim)
    return method(sparsity=sparsity, local_steps=1, solver="gd", inner_steps=settings["local_steps"])


def _splitting(method, multiple, moduli, settings, dim):
    from replifed.algorithms.fedplt import best_penalty

    return method(rho=multiple * best_penalty(moduli.low, moduli.high), solver=_solver(settings))


def _primal_dual(method, multiple, moduli, settings, dim):
    return method(eta=multiple / np.sqrt(moduli.low * moduli.high), solver=_solver(settings))


def _corrected(method, multiple, moduli, settings, dim):
    return method(solver=_solver(settings, multiple / moduli.high))


def _tamuna(method, multiple, moduli, settings, dim):
    from replifed.algorithms.tamuna import theory_parameters

    N = moduli.n_clients
    gamma, eta = theory_parameters(moduli.low, moduli.high, settings["local_steps"], N, N)
    return method(gamma=multiple * gamma, eta=eta, solver=_solver(settings))


def _exact_diffusion(method, multiple, moduli, settings, dim):
    from replifed.algorithms.led import natural_parameters

    alpha, beta = natural_parameters(moduli.high, settings["local_steps"])
    return method(alpha=multiple * alpha, beta=beta, solver=_solver(settings))


def _five_gcs(method, multiple, moduli, settings, dim):
    from replifed.algorithms.fivegcs import theory_parameters

    N = moduli.n_clients
    gamma, tau = theory_parameters(moduli.low, moduli.high, N, N)
    return method(gamma=multiple * gamma, tau=tau / multiple, solver=_solver(settings))


def _gradient_descent(method, multiple, moduli, settings, dim):
    return method(
        step=4.0 / moduli.high, epsilon=_SOLVED, single_precision=True
    )  # the search halves the step


def _newton(method, multiple, moduli, settings, dim):
    return method(epsilon=_SOLVED, single_precision=True)


_MAKERS: dict[str, Callable[..., Any]] = {
    "fedavg": _averaging,
    "fedmid": _composite,
    "feddualavg": _composite,
    "fedht": _sparse,
    "fediterht": _sparse,
    "distributed_iht": _sparse_each_step,
    "fedgradmp": _matching_pursuit,
    "fedplt": _splitting,
    "fedpd": _primal_dual,
    "fedlin": _corrected,
    "tamuna": _tamuna,
    "led": _exact_diffusion,
    "fivegcs": _five_gcs,
    "gradient_descent": _gradient_descent,
    "newton": _newton,
    "giant": _newton,
    "fednl": _newton,
    "shed": _newton,
    "ideal_shed": _newton,
    "qshed": _newton,
    "nqshed": _newton,
}
