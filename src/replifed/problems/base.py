"""Capabilities of a federated problem, as small protocols that a method requires.

The axes of every array are (runs, clients, ...). The first is the batch axis: R runs are simulated side by
side, such as the Monte-Carlo replicates of one setting or the points of a step-size grid. A model is a flat
vector of D coordinates, so the server holds (R, D) and the clients (R, N, D).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from numpy.typing import DTypeLike, NDArray

from replifed.errors import ReplifedError


class Problem(Protocol):
    """F(x) = sum_i p_i f_i(x) over N clients, on S data sets.

    S is 1 if all runs share one data set, else R (or, with `PerClientModels`, a divisor of R).
    """

    n_clients: int
    """Number N of clients."""
    dim: int
    """Number D of coordinates of a model."""
    dtype: DTypeLike
    """Type of the numbers of models and gradients."""
    sizes: NDArray
    """Samples n_i of each client, (S, N)."""
    weights: NDArray
    """p_i of each client, above 0 with a sum of one, (S, N)."""


class LocalModels(Protocol):
    """The clients' copies of the server's model during one round, in coordinates that suit the data.

    An algorithm does arithmetic on the opaque array `start`; only the methods below know what its entries
    stand for: coordinates of the model on dense data, features of the client's samples on sparse data, or
    samples if models change by gradients alone.
    """

    start: NDArray

    def gradient(self, u: NDArray, batch: NDArray | None) -> NDArray:
        """Gradient of each client's loss at its own model `u`, on its minibatch or (None) all samples."""

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        """H_tau of each client's model; `u` itself may be overwritten."""

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        """sum_i p_i u_i in the server's coordinates, (R, D); with `weights` (R or 1, c) in place of p."""


@runtime_checkable
class Smooth(Protocol):
    """Losses and gradients."""

    def loss(self, x: NDArray) -> NDArray:
        """F at the server's models `x` (R, D); shape (R,)."""

    def gradient(self, x: NDArray) -> NDArray:
        """Gradient of F, shape (R, D)."""

    def client_losses(self, x: NDArray) -> NDArray:
        """f_i at the server's models, shape (R, N)."""

    def smoothness(self) -> NDArray:
        """Lipschitz constant of each client's gradient, shape (S, N)."""

    def strong_convexity(self) -> NDArray:
        """Strong-convexity modulus of each client's loss, shape (S, N)."""


@runtime_checkable
class LocalSteps(Protocol):
    """Many steps of every client on its own copy of the model."""

    def local(
        self,
        x: NDArray,
        *,
        additive: bool = False,
        sparsity: int | None = None,
        clients: NDArray | None = None,
        draws: int | None = None,
    ) -> LocalModels:
        """Hand the server's models `x` (R, D) to the clients that take part, (R or 1, c), all by default.

        `additive` promises that local models change only by multiples of gradients, `sparsity` that `x` and
        all local models between steps have at most that many non-zeros. Clients are in increasing order.
        `draws` is the number of samples that each client draws in all steps, None for full batches.
        """


@runtime_checkable
class RestrictedMinimiser(Protocol):
    """Minimisers of each client's loss over models with a given support, a mask (R, N, D).

    The problem's local models have these methods, too, for the clients that take part.
    """

    def restricted_minima(self, start: NDArray, support: NDArray) -> NDArray:
        """argmin f_i(w) over w on `support`, the nearest to `start`, which also lies on `support`."""

    def restricted_descent(self, start: NDArray, support: NDArray, steps: int) -> NDArray:
        """Models after `steps` gradient steps towards these minimisers, with a step size per client."""

    def restricted_work(self, size: NDArray) -> NDArray:
        """Work of one minimisation over `size` coordinates, in gradients of a single sample."""


@runtime_checkable
class Hessian(Protocol):
    """Hessians of the clients' losses, for D up to a few thousand."""

    def client_hessians(self, x: NDArray) -> NDArray:
        """Hessian of each f_i at the server's models, shape (R, N, D, D)."""


@runtime_checkable
class HessianProducts(Protocol):
    """Products with the Hessian of F, for any D."""

    def hessian_products(self, x: NDArray) -> Callable[[NDArray], NDArray]:
        """Function that multiplies the Hessian of F at the models `x` (R, D) with one vector each, (R, D)."""


@runtime_checkable
class PerClientModels(Protocol):
    """Gradients and Hessians with a separate model at each client, in the server's coordinates.

    The number S of data sets may be any divisor of R: the first R / S runs share the first data set, and so
    on.
    """

    def per_client_gradients(
        self,
        u: NDArray,
        batch: NDArray | None = None,
        clip: float | None = None,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray | None = None,
    ) -> NDArray:
        """Gradient of each f_i(u_i) + <a_i, u_i> + b |u_i|^2 / 2 at its client's model `u`; (R, N, D).

        `batch` holds minibatches (R or 1, N, b), whose gradients are scaled so that their expectation is the
        full gradient; None takes all samples. `clip`, for full batches only, is the largest norm of a
        sample's gradient without ridge and linear term; longer ones are scaled down. `ridge` is b, (R,), and
        `linear` is a, (R, N, D).
        """

    def per_client_descent(
        self,
        u: NDArray,
        steps: int,
        step: NDArray,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray,
        momentum: NDArray | None = None,
    ) -> NDArray:
        """Each client's model after `steps` gradient steps (R or 1, N or 1, 1) on that objective from `u`.

        With `momentum` beta, of the shape of `step`, they are Nesterov's: v+ = w - step grad, w+ = v+ +
        beta (v+ - v), with w = v = u at first.
        """

    def per_client_hessians(self, u: NDArray) -> NDArray:
        """Hessian of each f_i at its client's model, shape (R, N, D, D)."""

    def common_mu_L(self) -> tuple[NDArray, NDArray]:
        """Smallest mu and largest L over all clients, (S,) each; `with_clients` keeps these values."""

    def with_clients(self, chosen: NDArray) -> PerClientModels:
        """Return the problem restricted to the clients `chosen` (R or 1, c) of each run."""

    def with_runs(self, kept: NDArray) -> PerClientModels:
        """Return the problem of the runs in the mask `kept` (R,): all runs of a data set or none."""


@runtime_checkable
class Ray(Protocol):
    """Losses on a line, for line searches: a trial step needs no pass over the data."""

    def along(self, x: NDArray, p: NDArray) -> Callable[[NDArray], NDArray]:
        """f_i at x + eta p, shape (R, N), as a function of eta (R,); x and p have shape (R, D)."""


def require(problem: Problem, needs: tuple[type, ...], who: str) -> None:
    """Reject, before round 0, a problem that lacks a capability that the method `who` needs."""
    missing = [need.__name__ for need in needs if not isinstance(problem, need)]
    if missing:
        remedy = getattr(problem, "remedies", {})
        known = "; ".join(dict.fromkeys(remedy[name] for name in missing if name in remedy))
        raise ReplifedError(
            f"{who} needs {', '.join(missing)}, which {type(problem).__name__} does not offer: "
            f"{known or 'it is for another kind of problem'}"
        )
