"""Contract of every method: one function for each part of it, which raises an error if it is broken.

The contract: a round is a pure function of state, problem and round; a run goes on from any stored state;
clients have no order, and equal ones act as one; runs of a batch are independent of each other; settings out
of range are rejected by name; the ledger charges whoever takes part, and for all that the server learns.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.algorithms.base import Round
from replifed.contract import problems
from replifed.contract.problems import N, make
from replifed.engine.simulate import History, simulate
from replifed.errors import ConfigError, ReplifedError
from replifed.network.fading import Constant, Rayleigh
from replifed.network.ledger import Cost
from replifed.network.participation import FixedSize, Participation
from replifed.randomness import Streams
from replifed.store.npz import read_npz, write_npz

COPIES = 16  # a power of two, whose inverse is exact in single precision too
CHANNEL = Rayleigh(20)
ROWS = Streams(7, (1, 2, 3))


class ContractError(AssertionError):
    """A method breaks its contract."""


def expect(kept: Any, broken: str) -> None:
    """Raise `ContractError` unless a part of the contract is kept."""
    if not kept:
        raise ContractError(broken)


@dataclass(frozen=True)
class Case:
    """A method with settings, on a kind of problem, with all clients or a cohort."""

    cls: Any
    kind: str
    partial: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def algorithm(self) -> Any:
        """Return a new instance of the method."""
        return replace(self.cls.example(), **self.changes)

    def run(self, rounds: int, *, clients=range(N), data_sets=(0,), streams=ROWS, algorithm=None, **more):
        """Simulate from a new instance of everything."""
        more = {"channel": CHANNEL, "cohort": self.cohort(), "metrics": {}} | more
        problem = make(self.kind, clients, data_sets)
        return simulate(algorithm or self.algorithm(), problem, streams, rounds, **more)

    def cohort(self) -> FixedSize | None:
        """Return what draws the clients that take part; None if all do."""
        return FixedSize(4) if self.partial else None

    def server(self, state: Any) -> NDArray:
        """Return the server's model."""
        return self.algorithm().observe(state)["server"]

    def context(self, t: int) -> Round:
        """Return round t as `run` passes it to the method."""
        now = ROWS.at(t)
        active, chosen = FixedSize(4)(now, N) if self.partial else (None, None)
        return Round(t, active, CHANNEL(now, N), now, chosen)

    def __str__(self) -> str:
        settings = [
            f"{key}={type(value).__name__ if dataclasses.is_dataclass(value) else value}"
            for key, value in self.changes.items()
        ]
        return "-".join([self.name or self.cls.__name__, self.kind, *["cohort"] * self.partial, *settings])


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def close(a: NDArray, b: Any, what: str) -> None:
    """Raise `ContractError` for arrays that differ by more than rounding."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    expect(a.shape == b.shape or not (a.ndim and b.ndim), f"{what}: shapes {a.shape} and {b.shape}")
    expect(np.allclose(a, b, rtol=1e-8, atol=1e-9, equal_nan=True), f"{what}: {_distance(a, b)}")


def _distance(a: NDArray, b: NDArray) -> str:
    a, b = np.broadcast_arrays(a, b)
    distance = np.where(a == b, 0, np.abs(a - b))
    worst = np.unravel_index(np.argmax(np.where(np.isnan(distance), np.inf, distance)), a.shape)
    return f"{a[worst]:.6g} is not {b[worst]:.6g}"


def check_form(case: Case) -> None:
    """State, cost and observations are as the simulator expects them."""
    algorithm, problem = case.algorithm(), make(case.kind)
    state = algorithm.init(problem, ROWS)
    expect(isinstance(state, tuple) and hasattr(state, "_fields"), "init: the state is no NamedTuple")
    for name, array in state._asdict().items():
        expect(isinstance(array, np.ndarray), f"init: the state's {name} is no array")
        expect(
            array.shape[:1] == (len(ROWS),),
            f"init: the state's {name} has shape {array.shape}; its first axis must be the {len(ROWS)} runs",
        )
    model = algorithm.observe(state).get("server")
    expected = (len(ROWS), getattr(problem, "parameters", problem.dim))
    expect(np.shape(model) == expected, f"observe: server has shape {np.shape(model)}; expected {expected}")
    outcome = algorithm.round(state, problem, case.context(0))
    expect(
        isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[1], Cost),
        "round: it must return the next state and a Cost",
    )
    after = outcome[0]
    expect(type(after) is type(state), f"round: the next state is a {type(after).__name__}, not that of init")
    for name, before, now in zip(state._fields, state, after, strict=True):
        expect(
            isinstance(now, np.ndarray)
            and (now.ndim, now.shape[:1], now.dtype) == (before.ndim, before.shape[:1], before.dtype),
            f"round: the state's {name} has become {np.shape(now)} of {getattr(now, 'dtype', type(now))}, it "
            f"was {before.shape} of {before.dtype}",
        )


def check_purity(case: Case) -> None:
    """A round changes neither its state nor the problem, and depends on nothing else."""
    algorithm, problem = case.algorithm(), make(case.kind)
    states = [case.run(t, algorithm=algorithm).state for t in (2, 3)]
    kept = pickle.dumps(states)
    for array in itertools.chain(*states):
        array.flags.writeable = False
    data = {name: value.copy() for name, value in vars(problem).items() if _is_array(value)}
    first, cost = algorithm.round(states[0], problem, case.context(2))
    algorithm.round(states[1], problem, case.context(3))
    np.random.random(), random.random()  # noqa: NPY002, so that what is not from the streams is another
    again, cost_again = algorithm.round(states[0], problem, case.context(2))
    anew, cost_anew = case.algorithm().round(pickle.loads(kept)[0], make(case.kind), case.context(2))
    expect(same(first, again) and same(first, anew), "a second call gives another state")
    expect(same(cost, cost_again) and same(cost, cost_anew), "a second call costs something else")
    expect(not same(case.run(0).state, states[0]), "rounds change nothing")
    expect(all(map(same, states, pickle.loads(kept))), "the state that a round began with has changed")
    for name, before in data.items():
        now = _plain(getattr(problem, name))
        expect(np.array_equal(_plain(before), now), f"the problem's {name} changed")


def check_ownership(case: Case) -> None:
    """Rounds that may write to their state end where those that may not do, to the bit."""
    algorithm, problem = case.algorithm(), make(case.kind)
    state = algorithm.init(problem, ROWS)
    for t in range(4):
        state, _ = algorithm.round(state, problem, case.context(t))
    expect(same(case.run(4).state, state), "it writes to a state that it still reads, or that it shares")


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or sp.issparse(value)


def _plain(array: Any) -> np.ndarray:
    return array.toarray() if sp.issparse(array) else array


def check_resume(case: Case) -> None:
    """A run goes on from a stored state as if it had never been stopped, to the bit."""
    whole = case.run(5)
    for t in (1, 2, 4):
        begun = case.run(t)
        with TemporaryDirectory() as folder:
            file = Path(folder, "state.npz")
            write_npz(file, begun.state._asdict())
            stored = type(begun.state)(**read_npz(file, begun.state._fields))
        for state in (pickle.loads(pickle.dumps(begun.state)), stored):
            rest = case.run(5, resume=(t, state))
            expect(same(rest.state, whole.state), f"resumed after round {t}, the last state is another")
            for what, totals in whole.ledger.items():
                # The ledger counts from where it goes on.
                close(totals[t] + rest.ledger[what], totals[t:], what)


def check_randomness(case: Case) -> None:
    """Runs depend on the seed where a method says so, and only there."""
    run = {"channel": Constant(20), "cohort": None}
    first, again, other = (case.run(3, streams=Streams(seed, (1,)), **run).state for seed in (7, 7, 8))
    expect(same(first, again), "with the same seed, a run ends elsewhere")
    if case.algorithm().stochastic:
        expect(not same(first, other), "it says that it is stochastic, and does not depend on the seed")
    else:
        expect(same(first, other), "it depends on the seed, and says that it is not stochastic")


def _client_axis(drawn: np.ndarray, clients: int) -> int | None:
    """Axis of random numbers that belongs to the clients, which alone has their length; None without one."""
    found = [axis for axis in range(1, drawn.ndim) if drawn.shape[axis] == clients]
    expect(len(found) < 2, f"random numbers {drawn.shape}: which axis are the {clients} clients?")
    return found[0] if found else None


@dataclass(frozen=True)
class Relabelled(Streams):
    """Streams whose clients are listed in another order."""

    order: ClassVar = tuple(np.random.default_rng(3).permutation(N))

    def draw(self, purpose, sample):
        drawn = super().draw(purpose, sample)
        axis = _client_axis(drawn, N)
        return drawn if axis is None else np.take(drawn, self.order, axis=axis)


def check_relabelling(case: Case) -> None:
    """The order of the clients does not matter; random numbers go with their clients."""
    turned = Relabelled(ROWS.seed, ROWS.replicates)
    before, after = case.run(4), case.run(4, clients=Relabelled.order, streams=turned)
    close(case.server(before.state), case.server(after.state), "clients in another order")


@dataclass(frozen=True)
class Alike(Streams):
    """Streams with the same random numbers for all of `COPIES` clients, which are noted in order."""

    drawn: list = field(default_factory=list)

    def draw(self, purpose, sample):
        drawn = super().draw(purpose, sample)
        axis = _client_axis(drawn, COPIES)
        first = drawn if axis is None else drawn.take([0], axis=axis)
        self.drawn.append((purpose, axis, first))
        return drawn if axis is None else np.repeat(first, COPIES, axis=axis)


@dataclass(frozen=True)
class Replayed(Streams):
    """The numbers that `Alike` has noted, for `clients` clients."""

    drawn: Iterator = field(default_factory=lambda: iter(()))
    clients: int = 1

    def draw(self, purpose, sample):
        noted, axis, first = next(self.drawn)
        expect(noted == purpose, f"it draws {purpose} where it drew {noted} with more clients")
        return first if axis is None else np.repeat(first, self.clients, axis=axis)


def check_equal_clients(case: Case) -> None:
    """Equal clients with equal random numbers cost the same and act as one, if the class does not say why."""
    fixed = {"channel": Constant(40), "cohort": None}
    noted = Alike(7, (1, 2, 3))
    many = case.run(4, clients=[0] * COPIES, streams=noted, **fixed)
    alone, two = (
        case.run(4, clients=[0] * n, streams=Replayed(7, (1, 2, 3), None, iter(noted.drawn), n), **fixed)
        for n in (1, 2)
    )
    distance = np.abs(case.server(many.state) - case.server(alone.state)).max()
    if reason := getattr(case.cls, "equal_clients_differ", ""):
        expect(
            isinstance(reason, str) and distance > 1e-6, "equal clients act as one, and the class denies it"
        )
    else:
        close(case.server(many.state), case.server(alone.state), f"{COPIES} equal clients are not one")
    for what, one in alone.ledger.items():
        each = two.ledger[what] - one
        close(many.ledger[what], one + (COPIES - 1) * each, f"{what}: some of equal clients cost more")
        if what.startswith("bits"):
            close(each, one, f"{what}: a second client costs something else")


def _spoilt(state: Any, row: int) -> Any:
    """State with one run of the batch set to NaN, but for zeros: a sparse model must keep their number."""
    fields = [array.copy() for array in state]
    for array in fields:
        if array.dtype.kind == "f":
            array[row] = np.where(array[row] == 0, 0, np.nan)
    return type(state)(*fields)


def check_batch(case: Case) -> None:
    """A run alone equals that run of the batch, whatever happens to the others."""
    own = case.kind in problems.OWN_DATA
    sets = range(3) if own else (0,)
    together = case.run(4, data_sets=sets)
    begun = case.run(1, data_sets=sets).state
    expect(all(len(array) == len(ROWS) for array in begun), "the first axis of the state is not the batch")
    beside = case.run(4, data_sets=sets, resume=(1, _spoilt(begun, 1)))
    expect(np.isfinite(case.server(together.state)).all(), "the model is not finite after four rounds")
    for row, replicate in enumerate(ROWS.replicates):
        alone = case.run(4, data_sets=(row,) if own else (0,), streams=Streams(ROWS.seed, (replicate,)))
        _check_row(case, together, row, alone, f"run {row} of the batch")
        if row != 1:
            close(case.server(beside.state)[row], case.server(alone.state)[0], "beside a run that is lost")


def _check_row(case: Case, batch: History, row: int, alone: History, name: str) -> None:
    """Compare a run of a batch, its model and its costs, with the same run alone."""
    close(case.server(batch.state)[row], case.server(alone.state)[0], name)
    for kind, totals in alone.ledger.items():
        close(batch.ledger[kind][:, row], totals[:, 0], kind)


def _numeric(owner: Any) -> Iterator[tuple[Any, str]]:
    """Yield numeric settings, as (owner, name), of a method and of its parts."""
    for one in dataclasses.fields(owner):
        value = getattr(owner, one.name)
        if one.init and any(kind in str(one.type) for kind in ("int", "float")):
            yield owner, one.name
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _numeric(value)


def check_grid(case: Case) -> None:
    """A setting may have one value for each run of the batch, where its annotation says so."""
    algorithm = case.algorithm()
    for owner, name in _numeric(algorithm):
        value = getattr(owner, name)
        # A type is a text or an object, as the file's annotations are.
        if "ndarray" not in str(owner.__dataclass_fields__[name].type).lower() or value is None:
            continue
        whole = isinstance(value, int)
        values = np.array([max(value - k, 1) for k in range(3)]) if whole else value * np.array([1, 0.5, 0.7])

        def built(setting, owner=owner, name=name):
            changed = replace(owner, **{name: setting})
            if owner is algorithm:
                return changed
            (part,) = (key for key in vars(algorithm) if getattr(algorithm, key) is owner)
            return replace(algorithm, **{part: changed})

        streams = Streams(7, (1, 1, 1))
        grid = case.run(3, algorithm=built(values), streams=streams)
        for row in range(3):
            alone = case.run(3, algorithm=built(values[row].item()), streams=Streams(7, (1,)))
            _check_row(case, grid, row, alone, f"{name}, one value a run")


def check_refusals(case: Case) -> None:
    """Values that are not numbers, out of range or of another type are rejected by name, in one line."""
    for owner, name in _numeric(case.algorithm()):
        kind = str(owner.__dataclass_fields__[name].type)
        word = "no such word" if "str" in kind else "many"
        wrong: list[Any] = [math.nan, math.inf, -math.inf, -1, word, True, 1j]
        wrong += [] if "float" in kind else [2.5]
        wrong += [] if "None" in kind else [None]
        wrong += [] if "str" in kind else [[]]
        if "NDArray" in kind:
            good = getattr(owner, name)
            wrong += [np.array([1 if good is None else good, -1])]
        for value in wrong:
            said = f"{type(owner).__name__}.{name}"
            try:
                replace(owner, **{name: value})
            except ConfigError as error:
                expect(said in str(error), f"{said} = {value!r}: refused without its name: {error}")
                expect(len(str(error).splitlines()) == 1, f"{said} = {value!r}: refused in several lines")
            else:
                raise ContractError(
                    f"{said} = {value!r} is taken; annotate what is allowed, as Annotated[float, POSITIVE]"
                )


def members(
    *chosen: int, masked: bool = False, beside: tuple[int, ...] = ()
) -> Callable[[Streams, int], Participation]:
    """Return a law of one cohort for all rounds; `beside` it compute others, whose results are discarded."""

    def cohort(streams: Streams, n_clients: int) -> Participation:
        active = np.isin(np.arange(n_clients), chosen)[None]
        return Participation(active, None if masked else np.sort([[*chosen, *beside]]))

    return cohort


def check_cohort_costs(case: Case) -> None:
    """Ledger and model do not depend on clients outside the cohort, nor on which of equal ones are in it."""
    inside = (0, 3, 4, 7)
    here = case.run(2, cohort=members(*inside))
    others = [i if i in inside else i + 1 for i in range(N)]
    for clients in (others, [*range(N), 20, 21]):
        there = case.run(2, clients=clients, cohort=members(*inside)).ledger
        for what, totals in here.ledger.items():
            close(there[what], totals, f"{what}: it depends on clients outside the cohort")
    equal = [case.run(2, clients=[0] * N, cohort=members(*who)).ledger for who in (inside, (1, 2, 5, 10))]
    for what, totals in equal[0].items():
        close(equal[1][what], totals, f"{what}: equal cohorts cost differently")
    for way, law in {
        "a mask of the same clients": members(*inside, masked=True),
        "a cohort that others fill up": members(*inside, beside=(2, 9)),
    }.items():
        try:
            other = case.run(2, cohort=law)
        except ReplifedError:
            continue  # it takes cohorts of a fixed size only, and says so
        drawn = getattr(case.algorithm(), "batch", None) is not None  # by the clients that compute
        for what, totals in here.ledger.items():
            if not (drawn and what == "sample_gradients"):
                close(other.ledger[what], totals, f"{what}: {way} costs something else")
        if not drawn:
            model, expected = (case.server(run.state) for run in (other, here))
            close(model, expected, f"the server's model: {way} leads elsewhere")


def check_uplink(case: Case) -> None:
    """The server learns of a client's data only from messages."""
    algorithm, clients = case.algorithm(), [i if i != 2 else 12 for i in range(N)]
    learnt = False
    for t in range(3):
        state = case.run(t, cohort=None).state
        context = replace(case, partial=False).context(t)
        (here, cost), (there, _) = (
            algorithm.round(state, make(case.kind, who), context) for who in (range(N), clients)
        )
        differs = not np.array_equal(case.server(here), case.server(there))
        learnt |= differs
        if getattr(algorithm, "centralised", False):
            expect(not np.any(cost.bits_up) and not np.any(cost.bits_down), "centralised, and it sends")
        elif differs:
            expect(np.all(np.asarray(cost.bits_up) > 0), "the server learns of a client that sends nothing")
    expect(learnt, "the server's model does not depend on a client's data")
