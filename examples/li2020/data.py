"""The data of Section 6: MNIST, split in two ways, and synthetic devices. The last feature is a 1."""

from typing import NamedTuple

import numpy as np

DEVICES, DIGITS, SHARES = 100, 10, 20


class Devices(NamedTuple):
    """Training samples of each device, and a test set where there is one."""

    train: list  # of (features, classes)
    test: tuple | None = None


def _with_bias(X):
    return np.concatenate([X, np.ones((len(X), 1))], axis=1, dtype=np.float32)


def balanced(X, y) -> Devices:
    """The authors' split: of each digit 20 shares in the order of the file, two digits a device."""
    X, first = _with_bias(X / 255), len(y) * 6 // 7
    train = [np.flatnonzero(y[:first] == digit) for digit in range(DIGITS)]
    size = (min(map(len, train)) - 1) // SHARES
    left = [[rows[s * size : (s + 1) * size] for s in range(SHARES)] for rows in train]
    draws, devices = np.random.RandomState(6), []
    for _ in range(DEVICES):
        there = [digit for digit in range(DIGITS) if left[digit]]
        rows = np.concatenate([left[digit].pop() for digit in draws.choice(there, 2, replace=False)])
        devices.append((X[rows], y[rows]))
    return Devices(devices, (X[first:], y[first:]))


def unbalanced(X, y, rng: np.random.Generator) -> Devices:
    """FedProx's split, of which the counts of the paper's unbalanced MNIST remind; its seed is not known.

    Device u has five samples of the digits u and u + 1, and log-normal shares of what is left of them.
    """
    X = X.astype(np.float32)
    X = _with_bias((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-3))
    rows = [np.flatnonzero(y == digit) for digit in range(DIGITS)]
    blocks = DEVICES // DIGITS
    shares = rng.lognormal(0, 2, (DIGITS, blocks, 2))
    spare = np.array([len(one) - 10 * blocks for one in rows])[:, None, None]
    more = (spare * shares / shares.sum(axis=(1, 2), keepdims=True)).astype(int)
    taken, held = np.zeros(DIGITS, int), [[] for _ in range(DEVICES)]
    for extra in (False, True):
        for u in range(DEVICES):
            for j in range(2):
                digit = (u + j) % DIGITS
                count = more[digit, u // DIGITS, j] if extra else 5
                if taken[digit] + count < len(rows[digit]) or not extra:
                    held[u].append(rows[digit][taken[digit] : taken[digit] + count])
                    taken[digit] += count
    return Devices([_nine_tenths(X, y, np.concatenate(one), rng) for one in held])


def synthetic(alpha: float, beta: float, rng: np.random.Generator) -> Devices:
    """Devices of Shamir et al. and FedProx; alpha and beta are deviations, as in the authors' code."""
    sizes = rng.lognormal(4, 2, DEVICES).astype(int) + 50
    deviation, devices = np.arange(1, 61) ** -0.6, []
    for n in sizes:
        u, centre = rng.normal(0, alpha), rng.normal(0, beta)
        W, b, v = rng.normal(u, 1, (60, DIGITS)), rng.normal(u, 1, DIGITS), rng.normal(centre, 1, 60)
        X = v + deviation * rng.standard_normal((n, 60))
        devices.append(_nine_tenths(_with_bias(X), (X @ W + b).argmax(axis=1), np.arange(n), rng))
    return Devices(devices)


def _nine_tenths(X, y, rows, rng):
    train = rng.permutation(rows)[: int(0.9 * len(rows))]
    return X[train], y[train]
