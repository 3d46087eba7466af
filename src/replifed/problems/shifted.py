"""Linear models whose runs differ in a shift of each client's features and in the targets."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.problems.dense import DenseLinearModel, DenseLocalModels
from replifed.problems.linear import LinearObjective, check_finite, check_labels
from replifed.problems.losses import COMPILED, Loss
from replifed.problems.products import largest_eigenvalue


class ShiftedLinearModel(LinearObjective):
    """f_i(x) = mean over j of loss((z_ij + s_i)'x, y_ij), with shifts s_i and targets y_i of the run's set.

    All runs share the features Z (1, N, m, d); shifted features are never stored. There are L sets of
    `shifts` (L, N, d) and targets `y` (L, N, m), and `sets` (R,) holds the index of each run's set. The
    loss is one of `losses.COMPILED`.
    """

    def __init__(self, Z: NDArray, shifts: NDArray, y: NDArray, loss: Loss, sets: Sequence[int]) -> None:
        if loss.name not in COMPILED:
            raise ReplifedError(f"shifted data take the losses {', '.join(COMPILED)}, not {loss.name}")
        self.Z, self.shifts, self.y, self.loss_function = Z, shifts, y, loss
        check_finite(shifts=shifts, targets=y)
        check_labels(y, loss)
        self.sets = np.asarray(sets, dtype=np.int64)
        # For what all runs share and does not depend on targets.
        self._shared = DenseLinearModel(Z, y[:1], loss)
        self.n_clients, self.dim, self.dtype = self._shared.n_clients, self._shared.dim, Z.dtype
        self.sizes, self.weights, self.l2 = self._shared.sizes, self._shared.weights, 0.0

    def of_runs(self, sets: Sequence[int] | NDArray) -> ShiftedLinearModel:
        """Return the problem of runs with the given `sets`, which shares the features."""
        problem = copy.copy(self)
        problem.__dict__.pop("_targets", None)
        problem.sets = np.asarray(sets, dtype=np.int64)
        return problem

    def repeated(self, times: int) -> ShiftedLinearModel:
        """Return the problem in which each run appears `times` times in a row."""
        return self.of_runs(np.repeat(self.sets, times))

    @cached_property
    def _targets(self) -> NDArray:
        return self.y[self.sets]

    def predictions(self, x: NDArray) -> NDArray:
        """(Z_i + 1 s_i') x for the server's models `x` (R, d); shape (R, N, m, 1)."""
        offsets = np.stack([self.shifts[number] @ model for number, model in zip(self.sets, x, strict=True)])
        return self._shared.predictions(x) + offsets[..., None, None]

    def _fit(self, z: NDArray) -> NDArray:
        return self.loss_function.value(z, self._targets).mean(axis=-1)

    def gradient(self, x: NDArray) -> NDArray:
        r = self.loss_function.derivative(self.predictions(x), self._targets)
        r *= (self.weights / self.sizes).astype(self.dtype)[..., None, None]
        g = self._shared.combine(r)
        for gradient, number, of_clients in zip(g, self.sets, r[..., 0].sum(axis=-1), strict=True):
            gradient += of_clients @ self.shifts[number]
        return g

    def smoothness(self) -> NDArray:
        curvature = self.loss_function.curvature / self._shared.n_samples
        of_set = {
            int(number): [
                curvature * largest_eigenvalue(Z + shift, min(Z.shape))
                for Z, shift in zip(self.Z[0], self.shifts[number], strict=True)
            ]
            for number in np.unique(self.sets)
        }
        return np.array([of_set[int(number)] for number in self.sets])

    def strong_convexity(self) -> NDArray:
        """Zero, a lower bound for all data; shape (R, N)."""
        return np.zeros((len(self.sets), self.n_clients))

    def per_client_gradients(self, u: NDArray, batch: NDArray | None = None) -> NDArray:
        """See `problems.base.PerClientModels`; `u` (n, N, d) are models of the first n runs."""
        return self._shared.shifted_gradients(u, batch, self.y, self.shifts, self.sets)

    def minibatch_steps(
        self,
        w: NDArray,
        batches: list[NDArray],
        eta: NDArray,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray | None = None,
        tau: int | NDArray | None = None,
    ) -> NDArray | None:
        """As `DenseLinearModel.minibatch_steps`."""
        return self._shared.shifted_steps(w, batches, eta, ridge, linear, tau, self.y, self.shifts, self.sets)

    def local(
        self,
        x: NDArray,
        *,
        additive: bool = False,
        sparsity: int | None = None,
        clients: NDArray | None = None,
        draws: int | None = None,
    ) -> DenseLocalModels:
        """See `problems.base.LocalSteps`."""
        if clients is not None:
            raise ReplifedError("cohorts on shifted data are not supported; use dense features")
        return DenseLocalModels(self, x)
