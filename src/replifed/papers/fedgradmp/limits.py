"""Where methods come to rest on a regression, by its normal equations instead of endless rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replifed.papers.fedgradmp.problems import Planted

# Thresholds of the 1-norm in a round: of FedMid each local step and the server apply one.
_APPLIED = {"fedmid": 2.0, "feddualavg": 1.0, "fedavg": 0.0}


def limit(method: str, planted: Planted, weight: float = 0.0) -> float:
    """Relative error of the model that a method of short steps would come to.

    Of dense methods that is the minimiser of f + c weight |x|_1, with c = 0 for FedAvg, 1 for FedDualAvg and
    2 for FedMid. Sparse ones could do no better than least squares on the true support, of all clients'
    samples: the oracle.

    Notes
    -----
    Clients have equally many samples, so that f is the mean square over all of them.
    """
    data, solution = planted
    A, y = data.X.reshape(-1, data.n_features), data.y.ravel()
    x = np.zeros_like(solution)
    if method in _APPLIED:
        x = _lasso(A, y, _APPLIED[method] * weight)
    else:
        support = solution != 0
        x[support] = np.linalg.lstsq(A[:, support], y, rcond=None)[0]
    return float(np.linalg.norm(x - solution) / np.linalg.norm(solution))


def _lasso(A: NDArray, y: NDArray, weight: float) -> NDArray:
    """Minimise |Ax - y|^2 / (2m) + weight |x|_1, from least squares on."""
    gram, correlations = A.T @ A, A.T @ y
    x = np.linalg.solve(gram, correlations)
    if not weight:
        return x
    from sklearn.linear_model import lasso_path  # late: no other job of the paper needs it

    path = lasso_path(A, y, alphas=[weight], precompute=gram, Xy=correlations, coef_init=x, tol=1e-7)
    return path[1][:, 0]
