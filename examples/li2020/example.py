"""The ridge problem of Theorem 4: its minimiser, FedAvg's fixed points on it, and the theorems' constants.

Five devices share 21 coordinates: A = tridiag(-1, 2, -1) is cut into blocks A_k of five coordinates, of which
neighbours share one. F_k(w) = w'A_k w / 2 - [k = 1] w_1 + mu |w|^2 / 2, and F is the mean of the F_k. Every
row of `_X` is a square in w'A_k w: an edge (w_j - w_{j+1})^2, or an end of the whole, w_1^2 or w_21^2.
"""

from functools import cache

import numpy as np

from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares

N, BLOCK, MU = 5, 4, 2e-4
DIM = N * BLOCK + 1
_X = np.zeros((N, BLOCK + 1, DIM))
for k in range(N):
    for j in range(BLOCK):
        _X[k, j, k * BLOCK + j], _X[k, j, k * BLOCK + j + 1] = 1, -1
_X[0, BLOCK, 0] = _X[-1, BLOCK, -1] = 1
_y = np.zeros((N, BLOCK + 1))
_y[0, BLOCK] = 1  # the linear term, and 1/2 that `Example.loss` takes off again
H = _X.swapaxes(1, 2) @ _X + MU * np.eye(DIM)
b = np.einsum("kmd,km->kd", _X, _y)
MEAN_H, MEAN_B = H.mean(axis=0), b.mean(axis=0)
BEST = np.linalg.solve(MEAN_H, MEAN_B)  # w*
LEAST = -MEAN_B @ BEST / 2  # F*
R = float(np.linalg.norm(BEST))


def problem() -> DenseLinearModel:
    """The five devices, each with the weight 1/5; two have a fifth row."""
    sizes = np.array([[BLOCK + 1, *[BLOCK] * (N - 2), BLOCK + 1]])
    p = np.full((1, N), 1 / N)
    return DenseLinearModel(_X[None], _y[None], LeastSquares(), sizes=sizes, weights=p, l2=MU, summed=True)


def loss(x: np.ndarray) -> np.ndarray:
    """10 F(w), as the authors stored it, of models (R, D)."""
    return 2 * N * (np.einsum("rd,de,re->r", x, MEAN_H, x) / 2 - x @ MEAN_B)


def gap(x: np.ndarray) -> np.ndarray:
    """F(w) - F*, of models (R, D)."""
    return np.einsum("rd,de,re->r", x - BEST, MEAN_H, x - BEST) / 2


def distance(x: np.ndarray) -> np.ndarray:
    """|w - w*|, of models (R, D)."""
    return np.linalg.norm(x - BEST, axis=-1)


def _powers(E: int, eta: float) -> np.ndarray:
    return np.stack([np.linalg.matrix_power(np.eye(DIM) - eta * h, E) for h in H])


def moved(E: int, eta: float) -> np.ndarray:
    """Every device's model after E steps of length `eta` from 0, (N, D)."""
    return ((np.eye(DIM) - _powers(E, eta)) @ np.linalg.solve(H, b[..., None]))[..., 0]


@cache
def plateau(E: int, eta: float) -> float:
    """Distance from w* of the point that rounds of E steps of length `eta` leave where it is."""
    fixed = np.linalg.solve(np.eye(DIM) - _powers(E, eta).mean(axis=0), moved(E, eta).mean(axis=0))
    return float(np.linalg.norm(fixed - BEST))


def law() -> float:
    """|H^-1 mean_k H_k (H_k w* - b_k)| / (2 |w*|): the limit of plateau / (|w*| (E - 1) eta) as eta falls."""
    drift = np.einsum("kde,ke->d", H, H @ BEST - b) / N
    return float(np.linalg.norm(np.linalg.solve(MEAN_H, drift)) / (2 * R))


def one_shot() -> float:
    """Distance of the mean of the devices' minimisers from w*, as a share of |w*|: E without end."""
    return float(np.linalg.norm(np.linalg.solve(H, b[..., None]).mean(axis=0)[:, 0] - BEST) / R)


L = float(np.linalg.eigvalsh(H).max())
KAPPA = L / MU
GAMMA = LEAST + float((np.einsum("kd,kd->k", b, np.linalg.solve(H, b[..., None])[..., 0]) / 2).mean())
# Largest squared gradient of a device over the ball around w* that holds the start, w = 0.
G2 = float((np.linalg.norm(H @ BEST - b, axis=1) + np.linalg.norm(H, 2, axis=(1, 2)) * R).max() ** 2)


def offset(E: int) -> float:
    """Theorem 1's gamma: eta_t = 2 / (mu (gamma + t))."""
    return max(8 * KAPPA, E)


def bound(T: np.ndarray, E: int, extra: float = 0.0) -> np.ndarray:
    """What theorems 1 to 3 say that E F(w_T) - F* is at most; `extra` times 4 E^2 G^2 is their C."""
    B = 6 * L * GAMMA + 8 * (E - 1) ** 2 * G2 + extra * 4 * E**2 * G2
    return KAPPA / (offset(E) + T - 1) * (2 * B / MU + MU * offset(E) / 2 * R**2)
