"""Softmax regression whose thresholds are by class: of tau non-zeros each class's column keeps tau / C.

Models are W (d, C), flattened; levels count all classes together, as messages do.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from replifed.operators.hard_threshold import threshold_by_class
from replifed.problems.dense import DenseLinearModel, DenseLocalModels


class _LocalModels(DenseLocalModels):
    """Local models that are thresholded by class, and so is then their mean."""

    def __init__(self, problem: SoftmaxByClass, x: NDArray) -> None:
        super().__init__(problem, x)
        self._classes: int = problem.loss_function.n_outputs
        self._kept: int | NDArray | None = problem.kept

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        self._kept = tau
        return threshold_by_class(u, tau, self._classes)

    def descend(self, batches: Any, eta: Any, pull: Any, tau: Any, **more: Any) -> NDArray | None:
        if tau is not None:
            self._kept, more["classes"] = tau, self._classes
        return super().descend(batches, eta, pull, tau, **more)

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        mean = super().mean(u, weights)
        # The server's own threshold, of all classes together, then leaves it as it is.
        return mean if self._kept is None else threshold_by_class(mean, self._kept, self._classes)


class SoftmaxByClass(DenseLinearModel):
    """Softmax regression on which thresholds, at clients and at the server, are by class.

    The server's is that of the clients' last steps; of methods whose clients have none, `kept` non-zeros of
    all classes together.
    """

    kept: int | None = None

    def local(self, x: NDArray, *, additive: bool = False, **more: Any) -> Any:
        """See `problems.base.LocalSteps`; coordinate by coordinate, since the mean is thresholded."""
        return super().local(x, **more)

    def local_models(self, x: NDArray) -> _LocalModels:
        return _LocalModels(self, x)
