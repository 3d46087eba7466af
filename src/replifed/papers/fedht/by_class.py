"""Softmax regression whose thresholds are by class: of tau non-zeros each class's column keeps tau / C.

Models are W (d, C), flattened; levels count all classes together, as messages do.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from replifed.operators.hard_threshold import threshold_by_class
from replifed.problems.dense import DenseLinearModel, DenseLocalModels


class _LocalModels(DenseLocalModels):
    """Local models that are thresholded by class, and so is their mean."""

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        return threshold_by_class(u, tau, self._problem.loss_function.n_outputs)

    def descend(self, batches: Any, eta: Any, pull: Any, tau: Any, **more: Any) -> NDArray | None:
        if tau is not None:
            more["classes"] = self._problem.loss_function.n_outputs
        return super().descend(batches, eta, pull, tau, **more)

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        # The server's own threshold, of all classes together, then leaves it as it is.
        return self.threshold(super().mean(u, weights), self._problem.kept)


class SoftmaxByClass(DenseLinearModel):
    """Softmax regression on which thresholds, at clients and at the server, are by class.

    The methods' tau is `kept`, the non-zeros of all classes together.
    """

    kept: int

    def local(self, x: NDArray, *, additive: bool = False, **more: Any) -> Any:
        """See `problems.base.LocalSteps`; coordinate by coordinate, since the mean is thresholded."""
        return super().local(x, **more)

    def local_models(self, x: NDArray) -> _LocalModels:
        return _LocalModels(self, x)
