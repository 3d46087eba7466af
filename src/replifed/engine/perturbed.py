"""Perturbed runs of a run: does its outcome depend on the last bits?

Hard thresholding, quantisation or a bounded map can keep a run from diverging although its step is too long
for stability: it wanders, and rounding decides where it ends. Such a run is *chaotic*. Two perturbed runs
reveal it: one has a slightly perturbed server model after the first round, the other a slightly longer step.
They use the same data, cohorts and minibatches as the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Algorithm, Round
from replifed.engine.simulate import History, refuse_what_does_not_fit, simulate
from replifed.network.ledger import Cost
from replifed.problems.base import require
from replifed.randomness import Streams

# What perturbed runs differ in: the model that they go on from after the first round, and the step. They name
# columns of histories, such as objective.of_start: the objective of the run whose model was perturbed.
PERTURBED = ("of_start", "of_step")
# Relative size of a move of the model: this, or so many units in the last place if these are more.
_MOVE, _UNITS = 1e-10, 100
_NEVER, _NOT_YET = -2, -1
# Largest relative difference between the objectives of a stable run and of its perturbed runs.
AGREEMENT = 1e-3
# Below this share of their value at the start, objectives are rounding error.
_ROUNDING = 1e-12


class Perturbed(NamedTuple):
    """R runs compared with their perturbed runs.

    `difference` (R,) is the largest relative difference of the objective between a run and a perturbed one,
    over the recorded rounds of the tail; infinite if only one of the two has diverged.
    """

    history: History  # of the runs alone
    difference: NDArray
    descends: NDArray  # whether the mean objective over the tail lies below that at the start, (R,)
    everything: History  # of the runs and their perturbed runs, three in turn

    @property
    def recorded(self) -> History:
        """History of the runs, with metrics of perturbed ones as objective.of_start, ... beside theirs."""
        more: dict[str, NDArray] = {}
        for place, which in enumerate(PERTURBED, start=1):
            own = self.everything.take(np.arange(self.everything.diverged.shape[1]) % 3 == place)
            more |= {f"{name}.{which}": values for name, values in own.metrics.items()}
        return replace(self.history, metrics=self.history.metrics | more)

    @property
    def chaotic(self) -> NDArray:
        """Mask (R,) of the runs that differ from a perturbed run."""
        return ~(self.difference <= AGREEMENT)

    @property
    def stable(self) -> NDArray:
        """Mask (R,) of the runs that agree with their perturbed runs and end below their start."""
        return ~self.chaotic & self.descends


def simulate_perturbed(
    algorithm: Algorithm | Callable[[NDArray, NDArray], Algorithm],
    problem: Any,
    streams: Streams,
    rounds: int,
    *,
    tail: float = 0.2,
    record_before_tail: bool = True,
    compared: str = "objective",
    **options: Any,
) -> Perturbed:
    """Run R settings of a method, each with its two perturbed runs.

    Parameters
    ----------
    algorithm : Algorithm or callable
        Algorithm of the R runs; its attribute `tuned` names the setting that is larger in one perturbed run,
        `step` by default. If that setting is not one of its fields: a function of run indices (3R,) and
        factors (3R,) that returns the algorithm of these runs with the tuned quantity times the factors.
    problem : Problem
        Problem with data for each run, or data shared by all runs.
    streams : Streams
        Streams of the R runs.
    rounds : int
    tail : float
        Share of the rounds, at the end, over which objectives are compared.
    record_before_tail : bool
        Whether the rounds before the tail are recorded too.
    compared : str
        Metric by which runs and perturbed runs are compared, lower is better; one of `simulate`'s `metrics`.
    **options
        Further options of `simulate`.
    """
    R = len(streams)
    indices, role = np.repeat(np.arange(R), 3), np.tile(np.arange(3), R)
    make = partial(of_runs, algorithm)
    of_three = Streams(streams.seed, tuple(name for name in streams.replicates for _ in range(3)))
    data = problem.repeated(3) if hasattr(problem, "repeated") else problem
    plain = make(indices, np.ones(3 * R))
    require(data, plain.needs, type(plain).__name__)
    refuse_what_does_not_fit(plain, data, 3 * R)
    size = relative_move(plain.observe(plain.init(data, of_three))["server"].dtype)
    longer = make(indices, np.where(role == 2, 1.0 + size, 1.0))
    tail_start = rounds - max(round(tail * rounds), 1) + 1  # the first round that is compared
    begun = options.get("resume") is not None and options["resume"][0] > 0
    perturbing = _Perturbing(longer, np.where((role == 1) & (not begun), _NOT_YET, _NEVER), size)
    history = simulate(
        perturbing, data, of_three, rounds, record_from=0 if record_before_tail else tail_start, **options
    )
    objective = history.metrics[compared]
    late = objective[history.rounds >= tail_start].reshape(-1, R, 3)
    start = objective[0].reshape(R, 3)[:, 0]
    runs = history.take(role == 0)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(late[..., 1:] - late[..., :1])
        scale = np.maximum(np.abs(late[..., 0]), _ROUNDING / AGREEMENT * np.abs(start))
        # Where all have diverged they agree.
        agree = late[..., 1:] == late[..., :1]
        difference = np.where(agree, 0.0, gaps / scale[..., None]).max(axis=(0, 2))
        difference = np.where(np.isnan(difference), np.inf, difference)
        descends = late[..., 0].mean(axis=0) < start
    return Perturbed(runs, difference, descends, history)


def of_runs(algorithm: Any, runs: NDArray, factors: NDArray | None = None) -> Any:
    """Return the algorithm of some runs, by index, with its tuned setting multiplied by `factors`."""
    if callable(algorithm):
        return algorithm(runs, np.ones(len(runs)) if factors is None else factors)
    settings = _settings_of(algorithm, runs)
    if factors is not None:
        tuned = getattr(algorithm, "tuned", "step")
        settings[tuned] = settings[tuned] * factors
    return replace(algorithm, **settings)


def _settings_of(owner: Any, runs: NDArray) -> dict[str, Any]:
    """Return the settings of a method, or of its local solver, of some of its runs."""
    settings = {}
    for one in fields(owner):
        if not one.init:
            continue
        value = getattr(owner, one.name)
        if isinstance(value, np.ndarray) and value.ndim:
            value = value[runs if len(value) > 1 else np.zeros_like(runs)]
        elif is_dataclass(value):
            value = replace(cast(Any, value), **_settings_of(value, runs))
        settings[one.name] = value
    return settings


def relative_move(dtype: np.dtype) -> float:
    """Size of a perturbation relative to the model's norm: max(1e-10, 100 eps) for this type."""
    return max(_MOVE, _UNITS * float(np.finfo(dtype).eps))


def move(x: NDArray, size: float, direction: NDArray) -> NDArray:
    """Move models (R, ...) by `size` times their norm along `direction` (R or 1, ...), on their supports."""
    axes = tuple(range(1, x.ndim))
    along = np.where(x != 0, direction, 0.0)
    length = np.sqrt((along**2).sum(axis=axes, keepdims=True))
    norm = np.sqrt((x.astype(float) ** 2).sum(axis=axes, keepdims=True))
    along = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
    return (x + size * norm * along).astype(x.dtype)


@dataclass(frozen=True)
class _Perturbing:
    """An algorithm that perturbs the state of some runs once, after the first round that has clients."""

    algorithm: Algorithm
    when: NDArray  # the round after which each run is perturbed, (R,), filled in as the rounds come
    size: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.algorithm, name)

    def round(self, state: Any, problem: Any, ctx: Round) -> tuple[Any, Cost]:
        after, cost = self.algorithm.round(state, problem, ctx)
        came = True if ctx.active is None else ctx.active.any(axis=1)
        here = (self.when == ctx.t) | ((self.when == _NOT_YET) & came)
        self.when[here] = ctx.t
        return (self._perturb(after, ctx.streams, here) if here.any() else after), cost

    def _perturb(self, state: Any, streams: Streams, runs: NDArray) -> Any:
        """Perturb the fields that equal the server's model; if there are none, all arrays of floats."""
        server = self.algorithm.observe(state)["server"]
        fields = dict(zip(state._fields, state, strict=True))
        numeric = {name: a for name, a in fields.items() if a.dtype.kind == "f" and a.ndim > 1}
        models = {name: a for name, a in numeric.items() if a.shape == server.shape and (a == server).all()}
        for name, array in (models or numeric).items():
            here = array[runs]
            direction = streams.draw(f"twin/{name}", _normal(array.shape[1:]))
            if len(direction) > 1:
                direction = direction[runs]
            fields[name] = array.copy()
            fields[name][runs] = move(here, self.size, direction)
        return type(state)(**fields)


def _normal(shape: tuple[int, ...]) -> Callable[[np.random.Generator], NDArray]:
    return lambda rng: rng.standard_normal(shape)
