"""Theorems on Fed-PLT by Bastianello, Liu and Johansson (2024): contraction constants and error bounds.

`mu` and `L` are the strong-convexity and smoothness constants of the losses f_i throughout.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def zeta(mu: float, L: float, rho: float) -> float:
    """Contraction constant of exact Peaceman-Rachford splitting (Lemma 3)."""
    return max(abs(1 - rho * constant) / (1 + rho * constant) for constant in (mu, L))


def best_step(mu: float, L: float, rho: float) -> float:
    """Gradient step gamma = 2 / (L + mu + 2 / rho) with the smallest chi."""
    return 2.0 / (mu + L + 2.0 / rho)


def chi(mu: float, L: float, rho: float) -> float:
    """Contraction constant of one gradient step on d_i (Lemma 2), with the best step."""
    gamma = best_step(mu, L, rho)
    return max(abs(1 - gamma * (constant + 1 / rho)) for constant in (mu, L))


def printed_accelerated_contraction(mu: float, L: float, steps: int) -> float:
    """chi(N_e) as Proposition 3 and Lemma 7 print it: (1 + L / mu) (1 - sqrt(mu / L))^N_e.

    It replaces the factor chi^N_e of gradient steps. The proof of Lemma 7 bounds the squared distance by it.
    """
    return (1 + L / mu) * (1 - math.sqrt(mu / L)) ** steps


def accelerated_contraction(mu: float, L: float, steps: int) -> float:
    """chi(N_e) as in the proof of Lemma 7, the root of the printed one.

    The paper takes mu and L of f_i. The lemma applies to d_i, whose constants are mu + 1 / rho and
    L + 1 / rho.
    """
    return math.sqrt(printed_accelerated_contraction(mu, L, steps))


def norm(S: NDArray) -> float:
    """Largest singular value of S. Proposition 1 bounds the contraction constant by it."""
    return float(np.linalg.norm(S, 2))


def spectral_radius(S: NDArray) -> float:
    """Largest modulus of the eigenvalues of S; below one, S is stable."""
    return float(np.abs(np.linalg.eigvals(S)).max())


def contraction(
    mu: float, L: float, rho: float, steps: int, *, accelerated: bool = False, printed: bool = False
) -> NDArray:
    """S (2, 2) of Proposition 1 for `steps` (accelerated) gradient steps, the best constant ones.

    S bounds the distances of (x, z) to the fixed point after a round in terms of those before it. If
    `printed`, S has the constant of eq. (14), and for accelerated steps mu and L of f_i and the chi(N_e) of
    Lemma 7. Otherwise it is corrected: it has 1 / rho times that constant, mu and L of d_i, and the chi(N_e)
    of the proof of Lemma 7.
    """
    if accelerated and printed:
        s = printed_accelerated_contraction(mu, L, steps)
    elif accelerated:
        s = accelerated_contraction(mu + 1 / rho, L + 1 / rho, steps)
    else:
        s = chi(mu, L, rho) ** steps
    c = 1.0 / (mu + 1.0 / rho) if printed else 1.0 / (1.0 + rho * mu)
    return np.array([[s, (1 + s) * c], [2 * s, zeta(mu, L, rho) + 2 * s * c]])


def linear_round(hessians: NDArray, rho: float, steps: int, gamma: float = 0.0) -> NDArray:
    """Matrix of a round on (x, z) near the fixed point, with all clients and h = 0; not in the paper.

    Its spectral radius is the asymptotic rate, its norm the largest growth of a distance in one round.

    Parameters
    ----------
    hessians : Hessian of each f_i at the minimiser, shape (N, D, D).
    steps, gamma : number and size of gradient steps; zero steps stand for the exact proximal map.
    """
    N, D, _ = hessians.shape
    curvatures, vectors = np.linalg.eigh(hessians)

    def of_clients(values: NDArray) -> NDArray:
        out = np.zeros((N, D, N, D))
        out[np.arange(N), :, np.arange(N)] = (vectors * values[:, None]) @ vectors.swapaxes(1, 2)
        return out.reshape(N * D, N * D)

    # Remaining share of w's distance to the proximal point, and the proximal map.
    remaining = of_clients((1 - gamma * (curvatures + 1 / rho)) ** steps if steps else np.zeros((N, D)))
    prox = of_clients(1 / (1 + rho * curvatures))
    identity, mean = np.eye(N * D), np.kron(np.full((N, N), 1 / N), np.eye(D))
    x_of_z = (identity - remaining) @ prox @ (2 * mean - identity)
    return np.block([[remaining, x_of_z], [2 * remaining, identity + 2 * x_of_z - 2 * mean]])


def error_bound(
    rounds: int, norm_S: float, start: float, noise: float = 0.0, least: float = 1.0, most: float = 1.0
) -> float:
    """Proposition 2: bound on the mean distance of (x, z) to its fixed point after `rounds` rounds.

    Parameters
    ----------
    rounds : k.
    norm_S : |S|, below one.
    start : distance before round 0.
    noise : nu, mean norm of the additive error of a round.
    least, most : smallest and largest participation probability of the clients.
    """
    sigma = math.sqrt(1 - least + least * norm_S**2)
    return math.sqrt(most / least) * (sigma**rounds * start + (1 - sigma**rounds) / (1 - sigma) * noise)


def noise_level(deviation: float, dim: int, clients: int, gamma: float, chi: float, steps: int) -> float:
    """nu of Corollary 1: bound on the error that noisy steps add to (x, z) in a round.

    `deviation` is the standard deviation of t in eq. (13), before the factor sqrt(2 gamma).
    """
    return deviation * math.sqrt(10 * dim * clients * gamma) * (1 - chi**steps) / (1 - chi)
