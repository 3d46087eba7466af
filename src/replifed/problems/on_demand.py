"""A problem whose clients' data are made, or read, when a client is drawn: for very many clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.problems.clients import stacked
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import Loss, loss_named

Client = Callable[[int], tuple[NDArray, NDArray]]
"""Features (m_i, d) and targets (m_i,) of a client, from its number; each time the same."""


def from_function(
    client: Client,
    clients: int,
    samples: int,
    *,
    loss: str = "logistic",
    l2: float = 0.0,
    classes: int = 0,
    watched: int = 1000,
) -> ClientsOnDemand:
    """A linear model on the data of many clients, each of which is made when it takes part.

    Parameters
    ----------
    client : function of a client's number, from 0, to its features (m, d) and targets (m,)
        It gives the same data each time, such as from ``np.random.default_rng(number)`` or a file.
    clients : N.
    samples : m, of every client.
    loss, l2, classes : as of `from_clients`; a softmax needs `classes`.
    watched : clients of which the objective is, drawn uniformly without replacement, once for all; also the
        constants mu and L.

    Raises
    ------
    ReplifedError
        A number is out of its range, or a client's data have another form; it names the client.
    """
    for name, value in {"clients": clients, "samples": samples, "watched": watched}.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ReplifedError(f"{name} = {value!r}: must be a whole number, at least 1")
    if loss == "softmax" and classes < 2:
        raise ReplifedError(
            f"classes = {classes!r}: a softmax on clients that are not read yet needs their number"
        )
    return ClientsOnDemand(client, clients, samples, loss=loss_named(loss, classes), l2=l2, watched=watched)


class ClientsOnDemand:
    """F = 1/N sum_i f_i with f_i as of `DenseLinearModel`; a round makes the data of its cohort alone.

    Attributes
    ----------
    sample : DenseLinearModel of the watched clients, whose mean loss is shown as the objective.
    """

    on_demand = True  # methods keep the states of those clients alone that were drawn

    def __init__(
        self, client: Client, clients: int, samples: int, *, loss: Loss, l2: float, watched: int
    ) -> None:
        self._client, self.n_clients, self._samples = client, clients, samples
        self.loss_function, self.l2 = loss, l2
        self._features = 0  # of every client, as the first one has them
        drawn = np.random.default_rng(0).choice(clients, min(watched, clients), replace=False)
        self.sample = self._of(np.sort(drawn)[None])
        self.dim, self.dtype = self.sample.dim, self.sample.dtype
        # One number seen N times: no memory grows with N here.
        self.sizes = np.broadcast_to(np.int64(samples), (1, clients))
        self.weights = np.broadcast_to(np.asarray(1 / clients, self.dtype), (1, clients))

    def _of(self, chosen: NDArray) -> DenseLinearModel:
        """Problem of some clients, (S, c), whose data are made now."""
        X, y, sizes = stacked([[self._data(i) for i in each] for each in chosen])
        weights = np.full(sizes.shape, 1 / sizes.shape[1])
        return DenseLinearModel(X, y, self.loss_function, sizes=sizes, weights=weights, l2=self.l2)

    def _data(self, i: int) -> tuple[NDArray, NDArray]:
        made = self._client(int(i))
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise ReplifedError(
                f"client {i}: {type(made).__name__} of another form: expected (features, targets)"
            )
        if any(map(sp.issparse, made)):
            raise ReplifedError(
                f"client {i}: sparse features; give dense ones, or all clients to from_clients"
            )
        X, y = map(np.asarray, made)
        self._features = self._features or X.shape[-1]
        shape = (self._samples, self._features)
        if X.shape != shape or y.shape != shape[:1]:
            raise ReplifedError(
                f"client {i}: features {X.shape} and targets {y.shape}; expected {shape} and {shape[:1]}"
            )
        return X, y

    # -- the objective, of the watched clients ---------------------------------------------------

    def loss(self, x: NDArray) -> NDArray:
        """Mean loss of the watched clients at the server's models, (R,)."""
        return self.sample.loss(x)

    def gradient(self, x: NDArray) -> NDArray:
        """Its gradient, (R, D)."""
        return self.sample.gradient(x)

    def smoothness(self) -> NDArray:
        """Of the watched clients."""
        return self.sample.smoothness()

    def strong_convexity(self) -> NDArray:
        """Of the watched clients."""
        return self.sample.strong_convexity()

    def common_mu_L(self) -> tuple[NDArray, NDArray]:
        """Smallest mu and largest L of the watched clients."""
        return self.sample.common_mu_L()

    # -- a round's clients -----------------------------------------------------------------------

    def with_clients(self, chosen: NDArray) -> DenseLinearModel:
        """Return the problem of the clients `chosen` (R or 1, c); their data are made now."""
        part = self._of(chosen)
        mu, L = (np.repeat(one, len(chosen)) for one in self.common_mu_L())
        part._of_all = mu, L
        return part

    def local(self, x: NDArray, *, clients: NDArray | None = None, **more: Any) -> Any:
        """See `problems.base.LocalSteps`; a cohort has to be named."""
        if clients is None:
            return self.refuse_all()
        return self.with_clients(clients).local(x, **more)

    def refuse_all(self, *_: Any, **__: Any) -> Any:
        """Reject what would need the data of all clients."""
        raise ReplifedError(
            f"the data of all {self.n_clients:,} clients would be made in every round: "
            "give a cohort, such as cohort=100"
        )

    # Methods need these of the clients of a round, and ask before the first one whether there are such.
    client_losses = per_client_gradients = per_client_descent = per_client_hessians = with_runs = refuse_all
