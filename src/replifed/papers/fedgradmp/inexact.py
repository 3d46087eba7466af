"""FedGradMP with the accuracy of its sub-problems told: the delta of Theorem 7."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def watched(method: type, distances: list[float]) -> type:
    """Return FedGradMP, given as `method`, with its sub-problems' solutions held against exact ones.

    Parameters
    ----------
    method : type
    distances : list of float
        Where the largest |b - b_opt| of all clients is appended in each local iteration.
    """

    class Watched(method):
        def _solve(self, local, u: NDArray, r: NDArray, support: NDArray, batches: list) -> NDArray:
            exact = local.restricted_minima(u.copy(), support)
            b = super()._solve(local, u, r, support, batches)
            distances.append(float(np.linalg.norm(b - exact, axis=-1).max()))
            return b

    return Watched
