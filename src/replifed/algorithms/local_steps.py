"""The local steps of first-order methods."""

from __future__ import annotations

from numpy.typing import NDArray

from replifed.algorithms.base import per_run
from replifed.problems.base import LocalModels


def gradient_steps(
    local: LocalModels,
    batches: list[NDArray] | list[None],
    eta: float | NDArray,
    *,
    pull: float | NDArray = 0.0,
    tau: int | NDArray | None = None,
) -> NDArray:
    """Local models after K steps w <- w - eta grad l(w; b) from the server's model w_t.

    Local models with a compiled `descend` for their loss and data use it; tests compare it with `loop`.

    Parameters
    ----------
    local : the clients' models, with `start` w_t.
    batches : minibatches of each of the K steps, as `Cohort.minibatches` draws them.
    eta : step size, one or one a run (R,).
    pull : mu, one or one a run (R,), for steps on l(w; b) + mu / 2 |w - w_t|^2.
    tau : sparsity level, one or one a run (R,), for H_tau after each step.
    """
    fast = getattr(local, "descend", None)
    w = None if fast is None else fast(batches, eta, pull, tau)
    return loop(local, batches, eta, pull, tau) if w is None else w


def loop(
    local: LocalModels,
    batches: list[NDArray] | list[None],
    eta: float | NDArray,
    pull: float | NDArray,
    tau: int | NDArray | None,
) -> NDArray:
    """Plain loop that defines `gradient_steps`."""
    w = w_t = local.start
    eta, mu = per_run(eta, w), per_run(pull, w)
    for batch in batches:
        w = w - eta * (local.gradient(w, batch) + mu * (w - w_t))
        if tau is not None:
            w = local.threshold(w, tau)
    return w
