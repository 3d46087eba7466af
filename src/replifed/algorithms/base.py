"""The contract of a federated algorithm.

An algorithm is a frozen dataclass of settings with pure methods: `init` builds the initial state,
`round` maps a state to the next one and its cost, and `observe` returns the arrays that metrics may
read. An algorithm does not print, plot, read files or keep anything outside its state; the simulator
handles cohorts, recording, progress, divergence and tuning.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.network.ledger import Cost
from replifed.problems.base import LocalSteps, Smooth
from replifed.randomness import Streams


class Round(NamedTuple):
    """Inputs of one round, which the simulator passes to the algorithm.

    `t` is the round's number, from 0. `active` masks the clients that take part (None: all), and `chosen`
    holds the indices of those that compute (None: all). `shares` and `rest` are the law's own weights of an
    average, as in `network.participation.Participation`. `budget` holds the bits per coordinate that each
    client may send (None: unlimited). `streams` draws this round's random numbers. If `in_place`, the round
    may overwrite the arrays of its state, which nobody else uses: inactive clients then need not be copied.
    """

    t: int
    active: NDArray | None  # boolean (R or 1, N)
    budget: NDArray | None  # (R or 1, N)
    streams: Streams
    chosen: NDArray | None = None  # int (R or 1, c)
    in_place: bool = False
    shares: NDArray | None = None  # (R or 1, c)
    rest: NDArray | None = None  # (R or 1,)


class ServerModel(NamedTuple):
    """State of a method with stateless clients: the server's model x_t, (R, D)."""

    x: NDArray


class Guarantee(NamedTuple):
    """Convergence guarantee that a method's authors have proved."""

    linear_to_bias: bool  # linear convergence up to the optimal statistical bias
    unbounded_dissimilarity: bool  # no bound on how the clients' gradients differ, except at the solution
    growing_batches: bool = False  # linear convergence needs minibatches that grow exponentially


class Cohorts(NamedTuple):
    """A method under partial participation."""

    paper: str  # what its paper says, in a few words
    code: str = ""  # what a round does here; "" if it takes all clients
    form: bool = True  # whether the paper has a form for cohorts, or one that its authors gave elsewhere


def without_form(method: type[Any]) -> str:
    """Return why a method takes no cohorts in a comparison, in a few words; "" if it takes them."""
    said = getattr(method, "cohorts", Cohorts(""))
    if not getattr(method, "partial_participation", False):
        return said.paper or "it is defined for all clients"
    return "" if said.form else said.paper


def full_only(method: type[Any]) -> str:
    """Return why a method takes no cohorts, in one line."""
    said = getattr(method, "cohorts", None)
    why = f" ({said.paper})" if said is not None and said.paper else ""
    return f"{method.__name__} is defined for full participation only{why}; leave cohorts out"


class Conditions(NamedTuple):
    """What a comparison on one problem fixes for all methods; each derives its own settings."""

    mu: NDArray  # (S,), strong convexity of each data set
    L: NDArray  # (S,), smoothness
    clients: int
    local_steps: int
    sparsity: int  # coordinates that sparse methods keep
    l1: float  # weight of a 1-norm; 0 without one
    cohort: int | None = None  # clients of a round, at most; None for all


class Algorithm(Protocol):
    """A federated method. Its state is a NamedTuple of arrays, the batch axis first."""

    @property
    def needs(self) -> tuple[type, ...]:
        """Capabilities that the problem must have, protocols of `problems.base`."""

    @property
    def stochastic(self) -> bool:
        """True if `init` or rounds draw random numbers."""

    @property
    def partial_participation(self) -> bool:
        """True if a round may run with only some of the clients."""

    def init(self, problem: Any, streams: Streams) -> Any:
        """State before round 0."""

    def round(self, state: Any, problem: Any, ctx: Round) -> tuple[Any, Cost]:
        """One communication round: the next state, and its cost, summed over clients.

        Changes no argument, except a state that is `in_place`.
        """

    def observe(self, state: Any) -> dict[str, NDArray]:
        """Arrays that metrics may read, by name; always "server", the server's model (R, D)."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """Base of most methods: it checks the settings, and its state is `ServerModel`.

    `replifed check` tests the contract on `example()`, by default with the settings `small`. Optional class
    attributes:

    needs : tuple of type
        Capabilities that the problem must have, `Smooth` and `LocalSteps` by default.
    partial_participation : bool
        Whether a round may run with only some of the clients; true by default.
    cohorts : Cohorts
        What its paper says on cohorts, and what the code does.
    steps_alone : bool
        Whether the server steps in a round to which nobody comes; false by default: the state stays.
    tuned : str
        Setting that a comparison tunes, as a multiple of 1/L; `step` by default.
    searched : bool
        Whether a comparison has a number to tune; by default, if the method has the setting `tuned`.
    in_doubles : bool
        Whether it computes with doubles where others compute with floats of 32 bits; false by default.
    name : str
        Name of a built-in method in settings and commands, by which the registry finds it.
    label : str
        Name in figures and tables; the class's name by default.
    look : tuple
        Colour, dashes and marker of its curves, and their width if it is another one, in the words of
        `figures.lines`: ("blue", "long", "s"). By default one that no other method has.
    messages : function
        What a round sends, from `network.messages.Counted` to `Sent`; the tests hold the costs of a built-in
        method against it.
    equal_clients_differ : str
        Reason why clients with the same data and random numbers do not act as one.
    centralised : bool
        Whether the server holds the data, so that nothing is sent.
    counts_differ, exchanges_differ : str
        Reason why a round books less work than it takes, or fewer exchanges than it needs.
    theory : str
        Where the parameters of `compared` at the multiple 1 come from, if the method's own theory gives them;
        or those at `theory_multiple(given)`, where that is another one.
    weighted : bool
        Whether it averages with the problem's weights p_i, not with 1/N (see `participation.weighted_view`).
    """

    needs: ClassVar[tuple[type, ...]] = (Smooth, LocalSteps)
    partial_participation: ClassVar[bool] = True
    cohorts: ClassVar[Cohorts] = Cohorts("")
    small: ClassVar[dict[str, Any]] = {}

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def stochastic(self) -> bool:
        """True if rounds draw random numbers; by default, if the method has a minibatch size."""
        return getattr(self, "batch", None) is not None

    def init(self, problem: Any, streams: Streams) -> Any:
        return ServerModel(np.zeros((len(streams), problem.dim), dtype=problem.dtype))

    def observe(self, state: Any) -> dict[str, NDArray]:
        return {"server": state.x}

    @classmethod
    def compared(cls, multiple: NDArray, given: Conditions) -> Self:
        """Method on a problem that its paper does not have, with the tuned number at `multiple` (R,).

        Other settings have their paper's natural values. A method whose theory gives parameters overrides
        this: the multiple is then that of the theory's value.
        """
        return cls(**usual_settings(cls, multiple, given))

    @classmethod
    def example(cls) -> Self:
        """Method with small settings, for the checks of the contract."""
        return cls(**{**_small_settings(cls), **cls.small})


def usual_settings(kind: type[Any], multiple: NDArray, given: Conditions) -> dict[str, Any]:
    """Return the tuned setting, `multiple` / L, and the number of local steps, if the method has them."""
    values = {getattr(kind, "tuned", "step"): multiple / given.L, "local_steps": given.local_steps}
    return {field.name: values[field.name] for field in fields(kind) if field.init and field.name in values}


def compared(kind: type[Any], multiple: NDArray, given: Conditions) -> Any:
    """Return a method as a comparison runs it: by its own `compared`, or with the usual settings.

    A method of a package need not have `Method` as its base.
    """
    if hasattr(kind, "compared"):
        return kind.compared(multiple, given)
    return kind(**usual_settings(kind, multiple, given))


@dataclass(frozen=True)
class Range:
    """Allowed values of a numeric setting, for its annotation: low < or <= value < or <= high."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"{kind} in {left}{self.low:g}, {self.high:g}{right}"


POSITIVE = Range(0, low_open=True)
"""Numbers above 0, for the annotation of a setting: `step: Annotated[float, POSITIVE]`."""
NONNEGATIVE = Range(0)
"""Numbers from 0 on."""
COUNT = Range(1, whole=True)
"""Whole numbers from 1 on."""


@cache
def _allowed(kind: type) -> dict[str, Any]:
    """Allowed values of a dataclass's fields, from the annotations: a `Range`, or a `Literal`'s words."""
    hints = get_type_hints(kind, include_extras=True)
    allowed: dict[str, Any] = {}
    for field in fields(kind):
        origin, parts = get_origin(hints[field.name]), get_args(hints[field.name])
        if origin is Annotated or origin is Literal:
            allowed[field.name] = parts[1] if origin is Annotated else parts
    return allowed


def _small_settings(kind: type) -> dict[str, Any]:
    """Small values of the settings that have no default, as far as their annotations tell."""
    small: dict[str, Any] = {}
    for field in fields(kind):
        allowed = _allowed(kind).get(field.name)
        if field.default is not MISSING or field.default_factory is not MISSING:
            continue
        if isinstance(allowed, Range):
            small[field.name] = next((value for value in (0.05, 2) if value in allowed), allowed.low)
        elif isinstance(allowed, tuple):
            small[field.name] = allowed[0]
    return small


def check_settings(owner: Any) -> None:
    """Reject settings that their annotations do not allow, naming method, setting, value and range.

    A number may also be an array with one value per run (a step-size grid), or None if that is its default.
    """
    for field in fields(owner):
        allowed, value = _allowed(owner.__class__).get(field.name), getattr(owner, field.name)
        name = f"{type(owner).__name__}.{field.name}"
        if isinstance(allowed, tuple) and value not in allowed:
            raise ConfigError(f"{name} = {value!r}: must be one of {', '.join(allowed)}")
        if not isinstance(allowed, Range) or (value is None and field.default is None):
            continue
        for one in np.ravel(value) if np.size(value) else [value]:
            if one not in allowed:
                raise ConfigError(f"{name} = {one}: must be {allowed}")


def per_run(setting: float | NDArray, array: NDArray) -> NDArray:
    """Reshape a setting, one value per run or one for all, so that it multiplies `array` (R, ...)."""
    return np.asarray(setting, dtype=array.dtype).reshape(-1, *(1,) * (array.ndim - 1))
