"""Settings of each method on a problem that its paper does not have.

Most have one number to tune, as a multiple of a reference value that follows from the problem's mu and L;
their other settings have their paper's natural values. Gradient descent and Newton-type methods search their
step themselves, and FedGradMP's and FedMM's follow from the data, so that they have none.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms import fedsplit, fivegcs, led, tamuna
from replifed.algorithms.fedplt import best_rho
from replifed.algorithms.local_solvers import Gradient
from replifed.algorithms.newton_type import NewtonType
from replifed.algorithms.registry import BUILT_IN, method_class
from replifed.operators.proximal import L1, Zero
from replifed.problems.dense import DenseLinearModel

if TYPE_CHECKING:
    from replifed.papers.cross.settings import Common

# Newton-type methods stop at gradients of this length, where the gap is below 1e-15.
_SOLVED = 1e-9
# Adam's step at the server, of a coordinate a round.
_ADAM = 0.1


def algorithm(name: str, multiple: NDArray, problem: DenseLinearModel, settings: Common) -> Any:
    """The method `name` with the tuned number at `multiple` (R,) times its reference value.

    Parameters
    ----------
    problem : DenseLinearModel
        Has mu and L, for each of its data sets, the numbers of clients and coordinates, and the weight of a
        1-norm.
    settings : Common
        Has local_steps and kept_share, the share of coordinates that sparse methods keep.
    """
    method, multiple = method_class(name), np.asarray(multiple, float)
    mu, L = problem.common_mu_L()
    N, K, l1 = problem.n_clients, settings.local_steps, getattr(problem, "l1", 0.0)
    sparsity = round(settings.kept_share * problem.dim)
    step, solver = multiple / L, Gradient(steps=K)
    match name:
        case "gradient_descent":  # the search halves the step
            return method(step=4.0 / L, epsilon=_SOLVED, single_precision=True)
        case _ if issubclass(method, NewtonType):
            return method(epsilon=_SOLVED, single_precision=True)
        case "fedmid" | "feddualavg":
            return method(step=step, local_steps=K, weight=l1)
        case "fedmm":  # the proximal gradient method, see `problems.Regression`
            return method(beta=1.0, decay=0.0)
        case "fedht" | "fediterht":
            return method(step=step, local_steps=K, sparsity=sparsity)
        case "distributed_iht":
            return method(step=step, sparsity=sparsity)
        case "fedgradmp":
            # Algorithm 2: an exact solution of each client's problem on its support costs a hundred times a
            # round.
            return method(sparsity=sparsity, local_steps=1, solver="gd", inner_steps=K)
        case "fedplt":
            # Its h is added to the sum of the clients' losses, not to their mean.
            penalty = L1(weight=N * l1) if l1 else Zero()
            return method(rho=multiple * best_rho(mu, L), solver=solver, penalty=penalty)
        case "fedpd":
            return method(eta=multiple / np.sqrt(mu * L), solver=solver)
        case "fedlin" | "slocalgd":
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
        case "scaffold" | "scaffnew":
            return method(step=step, solver=solver)
        case "feddyn":
            return method(alpha=multiple * np.sqrt(mu * L), solver=solver)
        case "fedsplit":
            return method(s=multiple * fedsplit.theory_step(mu, L), solver=solver)
        case "fedadam_server":  # the clients' step only scales what Adam normalises
            return method(step=1.0 / L, local_steps=K, server_step=multiple * _ADAM)
        case _:  # FedAvg, and any other method with these settings, or some of them
            values = {_tuned(method): step, "local_steps": K}
            return method(**{key: value for key, value in values.items() if key in _settings(method)})


def _tuned(method: type) -> str:
    """Name of the setting that is tuned of a custom method, as a multiple of 1 / L."""
    return getattr(method, "tuned", "step")


def _settings(method: Any) -> list[str]:
    return [field.name for field in fields(method)]


def tunes(name: str) -> bool:
    """True if the method has a number to tune."""
    if name in BUILT_IN:
        return name not in ("fedgradmp", "fedmm") and not issubclass(method_class(name), NewtonType)
    return _tuned(method_class(name)) in _settings(method_class(name))


def width(name: str) -> type:
    """Type of the numbers that the method computes with.

    First-order methods send these. Newton-type methods solve linear systems, for which floats of 32 bits are
    too short; they round their messages themselves. FedMM's state has doubles.
    """
    return np.float64 if name == "fedmm" or issubclass(method_class(name), NewtonType) else np.float32
