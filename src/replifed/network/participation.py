"""Who takes part in a round, and what the part of each weighs: all laws, for engine, settings and library.

A law is called with a round's streams and the number N of clients, and returns a `Participation`. It says who
comes. What the server makes of them is the method's own form, unless the law gives shares of its own:

=================  ==============================================================  =========================
law                who                                                             source
=================  ==============================================================  =========================
`FixedSize`        K of N, uniformly, without replacement                          McMahan et al. 2017
`Independent`      each with its own probability, independently                    Dieuleveut et al. 2025
`WithReplacement`  K draws by given probabilities; repeats count in a plain mean   Li et al. 2020, scheme I
`Markov`           each is there and away in turn, for random numbers of rounds    Rodio et al. 2023
`Cyclic`           groups that are there in turn                                   Cho et al. 2023
`Averaged`         those of another law, averaged by given shares (`shares`)       Li et al. 2020, scheme II
=================  ==============================================================  =========================

`Asked` makes one of the words of settings and commands. Schemes of Li et al. 2020, "On the convergence of
FedAvg on non-IID data": full is no law; original, uniform with "completed"; I, by-size; II, uniform with
"scaled"; transformed II, uniform with "transformed". Theirs has N p_i times the ridge, too, which stays here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError, ReplifedError
from replifed.randomness import Streams

# With more clients than this a round costs what its cohort costs: it draws these clients alone, and what the
# server averages over all of them is kept as a running mean. With fewer, all draw, and all are averaged anew.
MANY = 1000
# Weights that differ by less than this share are equal.
_EQUAL = 1e-6
# States of availability that a law remembers, one for each set of streams.
_REMEMBERED = 8

Average = Literal["own", "scaled", "completed", "transformed"]
"""Ways to average: a method's own, those of `shares`, and equal weights of the losses N p_i f_i."""
_IN_WORDS = {
    "own": "",
    "scaled": " Models are averaged with the weights N p_i / K for K clients that came.",
    "completed": " Models are averaged with the weights p_i, and the old model has the rest.",
    "transformed": " Every method takes plain means, of the losses N p_i f_i.",
}
_LAWS = "one of uniform, by-size, markov:ON,OFF (such as markov:20,5), cyclic:GROUPS (such as cyclic:4)"


class Participation(NamedTuple):
    """Clients that take part in one round, drawn for each of R runs, or once for all runs."""

    active: NDArray  # boolean (R or 1, N)
    # Clients that compute, int (R or 1, c), in increasing order; None for all. c is the same in every round:
    # where fewer take part, clients that are not active fill the places, and what they compute is discarded.
    chosen: NDArray | None


class Weighed(NamedTuple):
    """Clients that take part, and the law's own weights of what is averaged; see `Participation`."""

    active: NDArray
    chosen: NDArray | None
    shares: NDArray  # of those that compute, in the server's average, (R or 1, c)
    rest: NDArray  # of the server's old model, (R or 1,)


Law = Callable[[Streams, int], Participation | Weighed]


# -- Who takes part ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedSize:
    """`size` clients, drawn uniformly without replacement (McMahan et al. 2017, Algorithm 1)."""

    size: int

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        _check_size(self.size, n_clients)
        # The first clients of a random order; a smaller cohort of the same round is part of a larger one.
        if n_clients > MANY:
            order = streams.draw("cohort", lambda rng: _first_of_order(rng, n_clients, self.size))
        else:
            keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
            order = np.argsort(keys, axis=-1, kind="stable")[:, : self.size]
        chosen = np.sort(order, axis=-1)
        active = np.zeros((len(chosen), n_clients), dtype=bool)
        np.put_along_axis(active, chosen, True, axis=-1)
        return Participation(active, chosen)


def _check_size(size: int, n_clients: int) -> None:
    if not 1 <= size <= n_clients:
        raise ConfigError(f"a cohort of {size} clients: must be between 1 and {n_clients}")


def _first_of_order(rng: np.random.Generator, n: int, size: int) -> NDArray:
    """First `size` of `n` clients in a random order, in time proportional to `size`.

    The first half of the order comes from draws with replacement, in which at least half of the draws are
    new: clients in the order of their first draw. The others follow in a random permutation.
    """
    half = min(size, n // 2)
    drawn, order = np.empty(0, np.int64), np.empty(0, np.int64)
    while len(order) < half:
        drawn = np.concatenate([drawn, (rng.random(half) * n).astype(np.int64)])
        _, first = np.unique(drawn, return_index=True)
        order = drawn[np.sort(first)[:half]]
    if size > half:
        others = np.setdiff1d(np.arange(n), order, assume_unique=True)
        order = np.concatenate([order, rng.permutation(others)[: size - half]])
    return order


@dataclass(frozen=True)
class Independent:
    """Independent participation with one `probability`, or one per client (N,); a round may be empty."""

    probability: float | NDArray

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        p = np.asarray(self.probability, dtype=float)
        if not ((p > 0) & (p <= 1)).all() or p.shape not in ((), (n_clients,)):
            raise ConfigError(f"probabilities of taking part must be in (0, 1], one or {n_clients}: {p}")
        keys = streams.draw("cohort", lambda rng: rng.random(n_clients))
        return Participation(keys < p, None)


@dataclass(frozen=True)
class WithReplacement:
    """`size` draws with replacement by `probabilities`, (S, N) for S data sets; repeats count.

    Scheme I of Li et al. 2020, the box of FedProx (Li, Sahu et al. 2020, Algorithm 2): the average is the
    plain mean over the draws, so that with probabilities p_i its mean is sum_i p_i w_i. A client computes
    once, however often it is drawn.
    """

    size: int
    probabilities: NDArray

    def __call__(self, streams: Streams, n_clients: int) -> Weighed:
        p = np.asarray(self.probabilities, float)
        p = p if p.ndim > 1 else p[None]
        if self.size < 1 or p.shape[1] != n_clients or (p < 0).any() or not np.allclose(p.sum(axis=1), 1):
            raise ConfigError(
                f"{self.size} draws by probabilities of shape {p.shape}: must be at least one draw, and "
                f"{n_clients} probabilities with the sum 1"
            )
        uniform = streams.draw("cohort", lambda rng: rng.random(self.size))
        p = _rows(p, len(streams)) if len(p) > 1 else p
        rows = max(len(p), len(uniform))
        drawn = np.zeros((rows, n_clients))
        for row in range(rows):
            # The last bound is 1 up to rounding.
            bounds = np.cumsum(p[row % len(p)])[:-1]
            np.add.at(drawn[row], np.searchsorted(bounds, uniform[row % len(uniform)], side="right"), 1)
        active = drawn > 0
        chosen = _filled(active, min(self.size, n_clients))
        shares = np.take_along_axis(drawn, chosen, axis=1) / self.size
        return Weighed(active, chosen, shares, np.zeros(rows))


def _rows(of_sets: NDArray, runs: int) -> NDArray:
    """Entries (R, ...) of runs, from those of S data sets, each of which R / S runs in turn share."""
    return np.repeat(of_sets, runs // len(of_sets), axis=0)


def _filled(active: NDArray, width: int) -> NDArray:
    """Active clients of each row, in increasing order, and as many others as fill `width` places."""
    chosen = np.empty((len(active), width), np.int64)
    for row, here in zip(chosen, active, strict=True):
        came = np.flatnonzero(here)
        row[: len(came)] = came
        row[len(came) :] = np.flatnonzero(~here[:width])[: width - len(came)]
        row.sort()
    return chosen


class _Available:
    """Of those who are there, `size` at most, drawn uniformly without replacement; all without a size."""

    size: int | None

    def there(self, streams: Streams, n_clients: int) -> NDArray:
        """Mask (R or 1, N) of the clients that could take part."""
        raise NotImplementedError

    def most(self, n_clients: int) -> int:
        """Largest number of clients that are there at once."""
        return n_clients

    def __call__(self, streams: Streams, n_clients: int) -> Participation:
        size, most = self.size, self.most(n_clients)
        if size is not None:
            _check_size(size, n_clients)
        active = self.there(streams, n_clients)
        if size is not None and size < most:
            # The keys of `FixedSize` for few clients: where all are there, so is its cohort.
            keys = np.where(active, streams.draw("cohort", lambda rng: rng.random(n_clients)), np.inf)
            first = np.argpartition(keys, size - 1, axis=-1)[:, :size]
            drawn = np.zeros_like(active)
            np.put_along_axis(drawn, first, True, axis=-1)
            active, most = active & drawn, size
        return Participation(active, _filled(active, most))


def _remember(memory: dict, key: Any, value: Any) -> None:
    memory.pop(key, None)
    memory[key] = value
    while len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]


def _of_streams(streams: Streams, n_clients: int) -> tuple:
    """What a law's memory is for: runs that share one replicate have one state."""
    names = streams.replicates
    return streams.seed, names if len(set(names)) > 1 else names[:1], n_clients


@dataclass(frozen=True)
class Markov(_Available):
    """Clients that are there for `on` rounds on average, then away for `off`, independently of each other.

    A Markov chain of two states for each client (Rodio, Faticanti, Marfoq, Neglia and Leonardi, "Federated
    learning under heterogeneous and correlated client availability", INFOCOM 2023), here the same for all,
    from its stationary law on: a client is there with probability on / (on + off), and the correlation with
    the round before is 1 - 1/on - 1/off. A round may be empty.
    """

    on: float
    off: float
    size: int | None = None
    # The last round and its state: a round then takes one step of the chain, of N numbers.
    _last: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (1 <= self.on < np.inf and 1 <= self.off < np.inf):
            raise ConfigError(f"markov:{self.on:g},{self.off:g}: must be mean numbers of rounds, 1 or more")

    def there(self, streams: Streams, n_clients: int) -> NDArray:
        t, key = streams.round_ or 0, _of_streams(streams, n_clients)
        done, state = self._last.get(key, (-1, None))
        if done > t:
            done, state = -1, None
        for s in range(done + 1, t + 1):
            uniform = streams.at(s).draw("available", lambda rng: rng.random(n_clients))
            if state is None:
                state = uniform < self.on / (self.on + self.off)
            else:
                state = uniform < np.where(state, 1 - 1 / self.on, 1 / self.off)
        _remember(self._last, key, (t, state))
        return state


@dataclass(frozen=True)
class Cyclic(_Available):
    """`groups` of clients that are there in turn, one a round.

    Cho, Sharma, Joshi, Xu, Kale and Zhang, "On the convergence of federated averaging with cyclic client
    participation", ICML 2023; time zones, as in Eichner et al., "Semi-cyclic stochastic gradient descent",
    ICML 2019. Groups are drawn once a run, and their sizes differ by one at most.
    """

    groups: int
    size: int | None = None
    _last: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def check(self, n_clients: int) -> None:
        """Reject more groups than clients, in one line."""
        if not 1 <= self.groups <= n_clients:
            raise ConfigError(f"cyclic:{self.groups}: must be between 1 and {n_clients} groups")

    def there(self, streams: Streams, n_clients: int) -> NDArray:
        self.check(n_clients)
        key = _of_streams(streams, n_clients)
        if key not in self._last:
            once = replace(streams, round_=None)
            order = once.draw("groups", lambda rng: rng.permutation(n_clients))
            _remember(self._last, key, order % self.groups)
        return self._last[key] == (streams.round_ or 0) % self.groups

    def most(self, n_clients: int) -> int:
        return -(-n_clients // self.groups)


# -- What they weigh -----------------------------------------------------------------------------------


def shares(average: str, p: NDArray, came: NDArray, n_clients: int) -> tuple[NDArray, NDArray]:
    """Shares of clients in the server's average, and the share of its old model.

    Parameters
    ----------
    average : str
        "own", p_i over the sum of those who came (McMahan et al. 2017); "scaled", (N / K) p_i for K who came
        (Li et al. 2020, scheme II), with shares that sum to one on average only; "completed", p_i, and the
        old model has the rest (their "original").
    p : array, (R or 1, c)
        Weights of the clients that compute.
    came : boolean array, (R or 1, c)
        Those of them that take part.
    n_clients : int

    Returns
    -------
    array (R or 1, c), array (R or 1,)
        If nobody came, the old model has all.
    """
    p = np.where(came, p, np.zeros((), p.dtype))
    if average == "completed":
        return p, 1 - p.sum(axis=1)
    count = np.broadcast_to(came, p.shape).sum(axis=1, keepdims=True)
    if average == "scaled":
        p = p * (n_clients / np.maximum(count, 1)).astype(p.dtype)
    else:
        p = p / np.where(count > 0, p.sum(axis=1, keepdims=True), 1)
    return p, np.where(count[:, 0] > 0, 0.0, 1.0)


@dataclass(frozen=True)
class Averaged:
    """Who `law` draws, averaged as `shares` says, with the `weights` p_i of the problem, (S, N)."""

    law: Any
    average: Literal["scaled", "completed"]
    weights: NDArray

    @property
    def size(self) -> int | None:
        """Clients of a round, if that is fixed."""
        return getattr(self.law, "size", None)

    def __call__(self, streams: Streams, n_clients: int) -> Weighed:
        active, chosen, *_ = self.law(streams, n_clients)
        p = _rows(self.weights, len(streams)) if len(self.weights) > 1 else self.weights
        at = np.arange(n_clients)[None] if chosen is None else chosen
        rows = max(len(p), len(active), len(at))
        at = np.broadcast_to(at, (rows, at.shape[1]))
        own, came = (
            np.take_along_axis(np.broadcast_to(a, (rows, n_clients)), at, axis=1) for a in (p, active)
        )
        return Weighed(active, chosen, *shares(self.average, own, came, n_clients))


def weighted_view(method: type[Any], problem: Any, average: str = "own") -> Any:
    """Problem that a method minimises: rewritten with equal weights if the method takes plain means.

    A method whose attribute `weighted` is true averages with the weights p_i. Any other takes plain means: if
    the weights differ, it gets F = (1 / N) sum_i (N p_i f_i), with the constants of the losses N p_i f_i. So
    does each method under "transformed", which is the transformed scheme II of Li et al. 2020.

    Raises
    ------
    ReplifedError
        The weights differ, the method takes plain means, and the problem cannot be rewritten.
    """
    p = getattr(problem, "weights", None)
    weighted = getattr(method, "weighted", False) and average != "transformed"
    if p is None or weighted or np.ptp(p, axis=1).max() <= _EQUAL * p.max():
        return problem
    if not hasattr(problem, "with_equal_weights"):
        name, kind = method.__name__, type(problem).__name__
        raise ReplifedError(
            f"{name} takes plain means, and the weights of this {kind} differ: give dense features or equal "
            f"weights, or {name} the attribute weighted = True if it averages with them"
        )
    return problem.with_equal_weights()


# -- By the words of settings and commands -------------------------------------------------------------


class Asked(NamedTuple):
    """What settings, commands and `replifed.run` say of cohorts; `law` makes the law of a problem."""

    cohort: str | int | None = None
    availability: str = "uniform"
    average: str = "own"

    @property
    def everyone(self) -> bool:
        """True if all clients take part in every round."""
        return self.cohort is None and self.availability == "uniform"

    def size(self, n_clients: int) -> int | None:
        """Clients of a round, of `n_clients`; None if there is no limit."""
        if self.cohort is None:
            return None
        text, limit = str(self.cohort), f"from 1 to {n_clients} clients, or a share such as 10%"
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text)
        share = found is not None and found[2] == "%"
        if isinstance(self.cohort, bool) or not found or (not share and "." in text):
            raise ConfigError(f"cohort = {self.cohort!r}: must be {limit}")
        number = float(found[1])
        if not 0 < number <= (100 if share else n_clients):
            raise ConfigError(f"cohort = {self.cohort!r}: must be {limit}")
        return max(round(number * n_clients / 100), 1) if share else int(number)

    def law(self, problem: Any) -> Any:
        """Law for a problem with its `n_clients`, `sizes` and `weights`; None if all take part."""
        law = self._who(problem.n_clients, problem.sizes)
        if law is None or self.average in ("own", "transformed"):
            return law
        return Averaged(law, self.average, np.asarray(problem.weights))  # type: ignore[arg-type]

    def check(self, n_clients: int | None = None) -> None:
        """Reject what no problem, or none of `n_clients`, can have.

        Raises
        ------
        ConfigError
            In one line.
        """
        if self.average not in get_args(Average):
            raise ConfigError(f"average = {self.average!r}: must be one of {', '.join(get_args(Average))}")
        if self.average != "own" and self.everyone:
            raise ConfigError(f"average = {self.average}: it is of cohorts; give a cohort")
        most = 10**9 if n_clients is None else n_clients
        law = self._who(most, None)
        if self.average != "own" and isinstance(law, WithReplacement):
            raise ConfigError(f"average = {self.average}: by-size has its plain mean")
        if n_clients is not None and isinstance(law, Cyclic):
            law.check(n_clients)

    def _who(self, n_clients: int, sizes: NDArray | None) -> Any:
        size, (kind, _, numbers) = self.size(n_clients), str(self.availability).partition(":")
        if kind in ("uniform", "by-size") and not numbers:
            if kind == "uniform":
                return None if size is None else FixedSize(size)
            if size is None:
                raise ConfigError("by-size draws a cohort: say of how many clients")
            n = np.ones((1, 1)) if sizes is None else np.asarray(sizes, float)
            return WithReplacement(size, n / n.sum(axis=1, keepdims=True))
        if kind == "markov" and re.fullmatch(r"[0-9.]+,[0-9.]+", numbers):
            try:
                on, off = map(float, numbers.split(","))
            except ValueError:
                on = off = 0.0
            return Markov(on, off, size)
        if kind == "cyclic" and re.fullmatch(r"0*[1-9]\d*", numbers):
            return Cyclic(int(numbers), size)
        raise ConfigError(f"availability = {self.availability}: must be {_LAWS}")

    def in_words(self) -> str:
        """Who takes part, for captions; "" if all do."""
        if self.everyone:
            return ""
        kind, _, numbers = self.availability.partition(":")
        text = str(self.cohort)
        size = f"{text} of the clients" if text.endswith("%") else f"{text} client{'s' * (text != '1')}"
        size = "all clients" if self.cohort is None else size
        there = "" if self.cohort is None else f", drawn uniformly; {size} at most"
        who = {
            "uniform": f"{size}, drawn uniformly without replacement",
            "by-size": f"{size}, drawn with replacement by their numbers of samples",
            "markov": "clients that are there, where rounds there are {} on average, and away {}{}",
            "cyclic": "clients of one group, {} groups in turn{}",
        }[kind].format(*numbers.split(","), there)
        return f"In each round take part {who}.{_IN_WORDS[self.average]}"
