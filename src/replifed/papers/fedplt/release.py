"""Privacy loss of Fed-PLT with noisy steps on quadratic losses, where all its random vectors are Gaussian.

N agents with f_i(x) = mu x^2 / 2 in one dimension; replacing a sample of the first changes its gradient by
s. In units of s and of the noise's deviation tau, divergences of order lambda are lambda s^2 / tau^2 times
those here.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.splitting_theory import linear_round
from replifed.claims.claim import Measured
from replifed.claims.quantities import quantity

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


def shares_of_bound() -> NDArray:
    """Divergence of all agents' last models as a share of the bound of Proposition 4, in many cases."""
    cases = itertools.product((0.1, 0.3, 1.0, 3.0), (1, 5, 10), (1, 2, 5, 20))
    return np.array([divergences(N, *case)["all"] / bound(*case) for case in cases for N in (1, 2, 10)])


@quantity
def below_bound(shares: NDArray) -> Measured:
    """True of shares of at most one."""
    return Measured(shares <= 1, note=f"at most {shares.max():.2g} of the bound in {len(shares)} cases")


# Numbers of local epochs, and what stays the same: rounds, gradient steps, or the shares to which the slowest
# coordinate's error falls without noise.
_EPOCHS = (1, 2, 5, 10)
_AT = {"rounds": (5, 20), "steps": (20, 40), "accuracy": (1e-2, 1e-4)}


def rate(rho: float, steps: int) -> float:
    """The slowest rate without noise over curvatures from MU to L, with one agent's and the mean's modes."""
    curvatures = np.linspace(MU, L, 19)
    rounds = (linear_round(np.full((2, 1, 1), one), rho, steps, step(rho)) for one in curvatures)
    return max(float(np.abs(np.linalg.eigvals(one)).max()) for one in rounds)


@cache
def fastest(steps: int) -> tuple[float, float]:
    """The rho of a grid with the lowest rate, and that rate."""
    found = min((rate(rho, steps), rho) for rho in np.geomspace(0.03, 3.0, 41).tolist())
    return found[1], found[0]


def rounds_at(fixed: str, amount: float, steps: int) -> int:
    """Number of rounds of so many local epochs, in all `rounds`, `steps`, or to an `accuracy`."""
    if fixed == "accuracy":
        return int(np.ceil(np.log(amount) / np.log(fastest(steps)[1])))
    return int(amount if fixed == "rounds" else amount // steps)


def given_away(what: str, agents: int, fixed: str) -> pd.DataFrame:
    """Divergence of the last models, "all", or of the "messages", by amount and by number of epochs.

    In as many rounds or steps, or at an accuracy (`fixed`), each N_e at its fastest rho.
    """
    amounts = _AT[fixed]
    given = [
        [divergences(agents, fastest(N_e)[0], N_e, rounds_at(fixed, one, N_e))[what] for N_e in _EPOCHS]
        for one in amounts
    ]
    return pd.DataFrame(given, pd.Index(amounts, name=fixed), _EPOCHS)


@quantity
def of_ten(given: pd.DataFrame) -> Measured:
    """What ten local epochs give away as a multiple of what one does, at each amount."""
    return Measured((given[10] / given[1]).to_numpy(), alternatives=True)


@quantity
def some_hide(given: pd.DataFrame) -> Measured:
    """True if some number of epochs above one gives away less than one, at each amount."""
    rows = (
        f"at {amount:g}, " + ", ".join(f"{one:.2g} with N_e = {N_e}" for N_e, one in row.items())
        for amount, row in given.iterrows()
    )
    least = given.drop(columns=1).min(axis=1)
    return Measured((least < given[1]).to_numpy(), note=f"{given.index.name} {'; '.join(rows)}")


def bounds() -> NDArray:
    """The bound of Proposition 4: a line for each rho and number of rounds, a column for each N_e."""
    cases = itertools.product((0.1, 0.3, 1.0, 3.0), (1, 5, 20))
    return np.array([[bound(rho, N_e, K) for N_e in _EPOCHS] for rho, K in cases])


@quantity
def depends(table: NDArray) -> Measured:
    """True where a number changes from one column to the next."""
    return Measured((np.diff(table) != 0).ravel())


@quantity
def growth(table: NDArray) -> Measured:
    """Last column as a multiple of the first, in each line."""
    return Measured(table[:, -1] / table[:, 0], alternatives=True)
