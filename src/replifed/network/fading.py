"""Channels: how many bits per coordinate each client may send in a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.randomness import Streams


@dataclass(frozen=True)
class Constant:
    """Constant budget of `bits` per coordinate for each client and round."""

    bits: int

    def __post_init__(self) -> None:
        _check_bits(self.bits)

    def __call__(self, streams: Streams, n_clients: int) -> NDArray:
        return np.full((1, n_clients), self.bits)


@dataclass(frozen=True)
class Rayleigh:
    """Rayleigh fading (Dal Fabbro et al. 2023, eq. 26): B_t = floor(B log2(1 + gamma Gamma)).

    gamma is exponential, independent for every client and round.
    """

    bits: int  # B, per coordinate where gamma Gamma = 1
    gain: float | NDArray = 1.0  # Gamma, transmission power and attenuation of the clients, a number or (N,)
    rate: float = 1.0  # nu, one over the mean of gamma

    def __post_init__(self) -> None:
        _check_bits(self.bits)
        if not np.all(np.asarray(self.gain, dtype=float) > 0) or not self.rate > 0:
            raise ConfigError(f"fading with gain {self.gain} and rate {self.rate}: both must be above 0")

    def __call__(self, streams: Streams, n_clients: int) -> NDArray:
        if np.shape(self.gain) not in ((), (n_clients,)):
            raise ConfigError(f"gains of {np.size(self.gain)} clients; there are {n_clients}")
        gamma = streams.draw("fading", lambda rng: rng.standard_exponential(n_clients)) / self.rate
        return np.floor(self.bits * np.log2(1.0 + gamma * self.gain)).astype(np.int64)


def _check_bits(bits: int) -> None:
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or bits < 0:
        raise ConfigError(f"a budget of {bits!r} bits per coordinate: must be a whole number, at least 0")
