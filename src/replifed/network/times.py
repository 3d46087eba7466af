"""Time that recorded rounds would have taken: a function of bits, exchanges and gradients, without a run.

A round takes, with K clients, which all do as much,

    S(K) * (latency * exchanges + bits down / (K downlink) + bits up / (K uplink) + gradients / K * gradient)

where S(K) is the mean of the slowest of K factors exp(spread z), z normal: the rates are those of the client
in the middle, and a round waits for the slowest one of its cohort. The server takes no time, and its own link
is no limit. A local Hessian counts as d / 2 gradients of each of its samples: 2 d^2 operations against 4 d.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from replifed.errors import ConfigError, unknown_name
from replifed.network.ledger import BITS_PER_VALUE

if TYPE_CHECKING:
    import pandas as pd

# Of `parts`.
PARTS = ("wait", "down", "up", "work")
_SCALES = {"": 1.0, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
# Kinds of units: what they end with, as multiples of bits a second, and of seconds.
_RATE = {"bps": 1.0, "bit/s": 1.0, "b/s": 1.0, "B/s": 8.0}
_TIME = {"s": 1.0}
_UNITS = {"uplink": _RATE, "downlink": _RATE, "latency": _TIME, "gradient": _TIME}
_SUCH_AS = {"uplink": "1Mbps", "downlink": "10Mbps", "latency": "50ms", "gradient": "1us", "spread": "0.5"}


class Rates(NamedTuple):
    """What a client's communication and work cost."""

    uplink: float  # bits a second
    downlink: float
    latency: float  # seconds of an exchange, there and back
    gradient: float  # seconds of the gradient of one sample
    spread: float = 0.0  # standard deviation of the logarithm of clients' times

    def __str__(self) -> str:
        words = [f"{key}={_in_words(getattr(self, key), key)}" for key in _UNITS]
        return ",".join([*words, f"spread={self.spread:g}"] if self.spread else words)


class Preset(NamedTuple):
    """Rates by a name, and where they come from."""

    rates: Rates
    source: str


_OOKLA = "https://my-financial-wealth.com/2020/10/25/the-global-mobile-and-broadband-internet-speed-ranking/"
# Gradients are those of a linear model of 250 features, 1,000 operations.
PRESETS = {
    "phone": Preset(
        Rates(11.22e6, 35.96e6, 40e-3, 1e-6),
        f"global means of mobile networks, Speedtest Global Index, September 2020 ({_OOKLA}); a gradient at "
        "1e9 operations a second, as measured on phones (http://codedivine.org/2012/09/25/prelim-analysis-rgbenchmm/)",
    ),
    "hospital": Preset(
        Rates(100e6, 100e6, 21e-3, 1e-7),
        "the least that the Office of the National Coordinator for Health IT recommends to a hospital "
        "(https://connectwithcare.org/broadband-access); latency of fixed broadband, as for phone; a "
        "gradient at 1e10 operations a second, chosen here",
    ),
    "datacentre": Preset(
        Rates(10e9, 10e9, 0.5e-3, 1e-8),
        "one flow within a placement group "
        "(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html); latency "
        "of Dean's list, measured anew (https://www.evanjones.ca/network-latencies-2021.html); a gradient at "
        "1e11 operations a second, chosen here",
    ),
}


class Size(NamedTuple):
    """What a history does not say of its problem."""

    clients: int
    dim: int
    samples: float  # of all clients


def of_history(history: pd.DataFrame, clients: int) -> Size:
    """Return the size of a problem of the comparison, by columns of its histories."""
    bits = float(history["message_bits"].iloc[0])  # of one model from each client
    return Size(clients, round(bits / (clients * BITS_PER_VALUE)), float(history["samples"].mean()))


def rates(text: str) -> Rates:
    """Return the rates that a text states: a preset's name, KEY=VALUE, or the first and then changes of it.

    >>> rates("uplink=1Mbps,downlink=10Mbps,latency=50ms,gradient=1us")
    Rates(uplink=1000000.0, downlink=10000000.0, latency=0.05, gradient=1e-06, spread=0.0)
    >>> rates("phone,spread=0.5").spread
    0.5
    """
    name, *words = text.split(",") if isinstance(text, str) else [""]
    found: dict[str, float] = {}
    if "=" in name:
        words = [name, *words]
    elif name in PRESETS:
        found = PRESETS[name].rates._asdict()
    else:
        raise ConfigError(f"{unknown_name('preset', name, PRESETS)}; or state uplink=1Mbps and the like")
    for word in words:
        key, _, value = word.partition("=")
        if key not in Rates._fields:
            raise ConfigError(unknown_name("part of a time", key, Rates._fields))
        found[key] = _number(key, value)
    if lacking := [key for key in _UNITS if key not in found]:
        raise ConfigError(
            f"{lacking[0]} is missing: add {lacking[0]}={_SUCH_AS[lacking[0]]}, or begin with one of "
            f"{', '.join(PRESETS)}"
        )
    return Rates(**found)


def _number(key: str, text: str) -> float:
    """Return a number above 0 as bits a second or seconds, by its unit; spread has none, and may be 0."""
    said = f"{key}={text}"
    units = _UNITS.get(key, {"": 1.0})
    names = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    match = re.fullmatch(rf"([-+.\deE]+?)\s*([{''.join(_SCALES)}]?)({names})", text.strip())
    try:
        value = float(match[1]) * _SCALES[match[2]] * units[match[3]] if match else math.nan
        value = float(f"{value:.12g}")  # 1000ns are 1us
    except ValueError:
        value = math.nan
    if match is None or math.isnan(value) or (key == "spread" and match[2]):
        raise ConfigError(f"{said} is not allowed; expected a number with its unit, such as {_SUCH_AS[key]}")
    if not (0 < value < math.inf or (key == "spread" and value == 0)):
        raise ConfigError(f"{said} is not allowed; expected more than 0")
    return value


def _in_words(value: float, key: str) -> str:
    ends = ("bps", "kbps", "Mbps", "Gbps") if "link" in key else ("ns", "us", "ms", "s")
    scales = (1.0, 1e3, 1e6, 1e9) if "link" in key else (1e-9, 1e-6, 1e-3, 1.0)
    at = max(i for i, scale in enumerate(scales) if value >= scale * (1 - 1e-9) or i == 0)
    return f"{value / scales[at]:g}{ends[at]}"


@cache
def slowest(clients: float, spread: float) -> float:
    """Return the mean of the largest of `clients` factors exp(spread z), z normal and independent.

    With y = z - spread it is exp(spread^2 / 2) times the integral of K phi(y) Phi(y + spread)^(K - 1).
    """
    if spread == 0 or clients <= 0:
        return 1.0 if clients > 0 else 0.0
    from scipy.special import log_ndtr

    y = np.linspace(-12.0, 12.0, 4801)  # the trapezoidal rule, of a function that vanishes at both ends
    logarithm = -(y**2) / 2 + (clients - 1) * log_ndtr(y + spread)
    integral = np.exp(logarithm).sum() * (y[1] - y[0]) / math.sqrt(2 * math.pi)
    return float(clients * math.exp(spread**2 / 2) * integral)


def parts(history: pd.DataFrame, size: Size, spread: float = 0.0, by: str = "replicate") -> pd.DataFrame:
    """Return a history with the columns `PARTS`, of which times are sums with `Rates` as weights.

    wait counts exchanges, down and up bits of a client, work gradients of a client, so far; each round's as
    often as its slowest client is slower than the one in the middle. Between two records the same number of
    clients took part in each round. Rounds to which nobody came take no time.
    """
    history = history.sort_values([by, "round"], kind="stable")
    of_hessian = size.samples / size.clients * size.dim / 2
    work = history["sample_gradients"] + of_hessian * history.get("hessians", 0.0)
    totals = {"wait": history["exchanges"], "down": history["bits_down"], "up": history["bits_up"]}
    totals |= {"work": work, "round": history["round"]}
    totals["came"] = history.get("took_part", size.clients * history["round"])
    grown = {name: _growth(total, history[by]) for name, total in totals.items()}
    came = grown["came"] / grown["round"].where(grown["round"] > 0, 1)
    times = came.round(6).map({K: slowest(K, spread) for K in set(came.round(6))})
    each = {name: 1.0 if name == "wait" else came.where(came > 0, 1) for name in PARTS}
    sums = {name: (times * grown[name] / each[name]).groupby(history[by]).cumsum() for name in PARTS}
    return history.assign(**sums).sort_index()


def _growth(total: pd.Series, of: pd.Series) -> pd.Series:
    """Return what each record has more than that before."""
    grown = total.astype(float).groupby(of).diff()
    return grown.fillna(total.astype(float))


def with_seconds(history: pd.DataFrame, size: Size, given: Rates, by: str = "replicate") -> pd.DataFrame:
    """Return a history with a column seconds, the time so far."""
    found = parts(history, size, given.spread, by)
    return history.assign(seconds=seconds(found, given))


def seconds(found: Mapping[str, Any], given: Rates) -> Any:
    """Return the time of what `parts` counted."""
    weights: Sequence[float] = (given.latency, 1 / given.downlink, 1 / given.uplink, given.gradient)
    return sum(weight * found[name] for name, weight in zip(PARTS, weights, strict=True))
