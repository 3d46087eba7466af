"""Privacy loss of Fed-PLT with noisy steps on quadratic losses, where all its random vectors are Gaussian.

N agents with f_i(x) = mu x^2 / 2 in one dimension; replacing a sample of the first changes its gradient by
s. In units of s and of the noise's deviation tau, divergences of order lambda are lambda s^2 / tau^2 times
those here.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from replifed.claims.claim import Measured

MU, L = 1.0, 10.0


def step(rho: float) -> float:
    """The best constant step for agents with moduli MU and L."""
    return 2.0 / (MU + L + 2.0 / rho)


def divergences(agents: int, rho: float, steps: int, rounds: int) -> dict[str, float]:
    """Of two neighbouring data sets: of the first agent's last model, of all agents', of all messages.

    And of "v", from which the first agent starts its last round, zero in the first.
    """
    gamma, drawn = step(rho), agents * (1 + rounds * steps)
    # Every number is linear in the random ones and, in the last column, in the exchanged sample.
    x, z = np.zeros((agents, drawn + 1)), np.zeros((agents, drawn + 1))
    noise = np.eye(drawn, drawn + 1).reshape(-1, agents, drawn + 1)  # the start's, then each step's
    x += np.sqrt(2 / MU) * noise[0]
    messages = []
    for k in range(rounds):
        y = z.mean(axis=0)
        v, w = 2 * y - z, x
        for t in noise[1 + k * steps : 1 + (k + 1) * steps]:
            gradient = MU * w + (w - v) / rho
            gradient[0, -1] += 1.0
            w = w - gamma * gradient + np.sqrt(2 * gamma) * t
        x, z = w, z + 2 * (w - y)
        messages.append(z)
    parts = {"own": x[:1], "all": x, "messages": np.concatenate(messages), "v": v[:1]}
    return {name: _divergence(rows) for name, rows in parts.items()}


def _divergence(rows: NDArray) -> float:
    """Renyi divergence of order 1 of two Gaussians that differ by the last column."""
    noise, shift = rows[:, :-1], rows[:, -1]
    if not rows.any():  # no random number yet, the same on both
        return 0.0
    return float(shift @ np.linalg.solve(noise @ noise.T, shift)) / 2


def bound(rho: float, steps: int, rounds: int) -> float:
    """Proposition 4."""
    return (1 - np.exp(-MU * step(rho) * rounds * steps / 2)) / MU


def final_models_below_bound() -> Measured:
    """True if the divergence of all agents' last models is at most the bound of Proposition 4."""
    cases = itertools.product((0.1, 0.3, 1.0, 3.0), (1, 5, 10), (1, 2, 5, 20))
    shares = np.array([divergences(N, *case)["all"] / bound(*case) for case in cases for N in (1, 2, 10)])
    return Measured(shares <= 1, note=f"at most {shares.max():.2g} of the bound in {len(shares)} cases")


def epochs_hide(what: str, agents: int) -> Measured:
    """True if the last models, "all", or the "messages" lose less privacy with each N_e, at K N_e = 20."""
    epochs, rhos = (1, 2, 5, 10, 20), (0.3, 1.0, 3.0)
    given = np.array([[divergences(agents, rho, N_e, 20 // N_e)[what] for N_e in epochs] for rho in rhos])
    note = ", ".join(f"{one:.2g} with N_e = {N_e}" for N_e, one in zip(epochs, given[0], strict=True))
    factors = ", ".join(map("{:.1f}".format, given[:, 0] / given[:, -1]))
    note += f", at rho = {rhos[0]:g}; by factors of {factors} from one to {epochs[-1]} at rho = "
    note += ", ".join(map("{:g}".format, rhos))
    return Measured((np.diff(given) < 0).ravel(), note=note)
