"""Sparsity class by class: of C tau non-zeros each class's weights x^(c) keep tau (Section IV-D).

Models are W (d, C), flattened; levels count all classes together, as messages do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from replifed.operators.hard_threshold import threshold_by_class
from replifed.operators.projections import Thresholding
from replifed.problems.dense import DenseLinearModel


@dataclass(frozen=True)
class ThresholdingByClass(Thresholding):
    """Projections of FedGradMP: level / C atoms of each class."""

    classes: int

    def support(self, correlations: NDArray, k: int | NDArray) -> NDArray:
        return threshold_by_class(correlations, k, self.classes) != 0

    def prune(self, coefficients: NDArray, k: int | NDArray) -> NDArray:
        return threshold_by_class(coefficients, k, self.classes)


class DigitsByClass(DenseLinearModel):
    """Softmax regression on which FedIterHT's thresholds, at clients and at the server, are by class."""

    def local(self, x: NDArray, **promises: Any) -> Any:
        local, classes = super().local(x, **promises), self.loss_function.n_outputs
        mean = local.mean
        levels: int | NDArray | None = None

        def of_client(u: NDArray, level: int | NDArray) -> NDArray:
            nonlocal levels
            levels = level
            return threshold_by_class(u, level, classes)

        def of_server(u: NDArray) -> NDArray:
            # FedIterHT's own threshold of the mean, of all classes together, then leaves it as it is.
            return mean(u) if levels is None else threshold_by_class(mean(u), levels, classes)

        # The compiled local steps know no classes.
        local.threshold, local.mean, local.descend = of_client, of_server, None
        return local
