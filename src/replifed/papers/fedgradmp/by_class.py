"""FedIterHT's sparsity by class: of tau non-zeros each class's weights x^(c) keep tau / C (Section IV-D).

Models are W (d, C), flattened; levels count all classes together, as messages do.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from replifed.operators.hard_threshold import threshold_by_class
from replifed.problems.dense import DenseLinearModel, DenseLocalModels


class _LocalModels(DenseLocalModels):
    """Local models that are thresholded by class, and so is then their mean."""

    def __init__(self, problem: Any, x: NDArray) -> None:
        super().__init__(problem, x)
        self._classes: int = problem.loss_function.n_outputs
        self._levels: int | NDArray | None = None

    def threshold(self, u: NDArray, tau: int | NDArray) -> NDArray:
        self._levels = tau
        return threshold_by_class(u, tau, self._classes)

    def descend(self, batches: Any, eta: Any, pull: Any, tau: Any, **more: Any) -> NDArray | None:
        self._levels = tau
        return super().descend(batches, eta, pull, tau, classes=self._classes, **more)

    def mean(self, u: NDArray, weights: NDArray | None = None) -> NDArray:
        mean = super().mean(u, weights)
        # FedIterHT's own threshold of the mean, of all classes together, then leaves it as it is.
        return mean if self._levels is None else threshold_by_class(mean, self._levels, self._classes)


class DigitsByClass(DenseLinearModel):
    """Softmax regression on which FedIterHT's thresholds, at clients and at the server, are by class."""

    def local_models(self, x: NDArray) -> _LocalModels:
        return _LocalModels(self, x)
