"""Settings of each method on a problem that its paper does not have; its class gives them (`compared`).

Most have one number to tune, as a multiple of a reference value that follows from the problem's mu and L;
their other settings have their paper's natural values. Gradient descent and Newton-type methods search their
step themselves, and FedGradMP's and FedMM's follow from the data, so that they have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Conditions, compared, without_form
from replifed.algorithms.registry import method_class
from replifed.network.participation import Asked
from replifed.problems.dense import DenseLinearModel

if TYPE_CHECKING:
    from replifed.papers.cross.settings import Common


def law(name: str, problem: Any, settings: Common) -> Any:
    """Law of who takes part in the rounds of the method; None if all do.

    A method whose paper has no form for cohorts runs with all clients.
    """
    asked = asked_for(settings)
    return None if asked.everyone or without_form(method_class(name)) else asked.law(problem)


def asked_for(settings: Common) -> Asked:
    """What the settings say of cohorts."""
    return Asked(settings.cohort, settings.availability or "uniform", settings.average or "own")


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
    given = Conditions(
        *problem.common_mu_L(),
        clients=problem.n_clients,
        local_steps=settings.local_steps,
        sparsity=round(settings.kept_share * problem.dim),
        l1=getattr(problem, "l1", 0.0),
        cohort=getattr(law(name, problem, settings), "size", None),
    )
    if settings.untuned and hasattr(method, "theory_multiple"):
        multiple = multiple * np.asarray(method.theory_multiple(given))
    return compared(method, multiple, given)


def width(name: str) -> type:
    """Type of the numbers that the method computes with.

    First-order methods send these. Methods in doubles round their messages themselves; FedMM's stay doubles.
    """
    return np.float64 if getattr(method_class(name), "in_doubles", False) else np.float32
