"""The contract of a method, checked of every one in the registry on the settings of its `example`.

A method's problem follows from what it `needs` (contract_problems.py). A method of this package also has a
line in `MESSAGES`: what it sends, counted by hand. At the end each check meets a method that breaks it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import contract_problems as problems
import numpy as np
import pytest
import scipy.sparse as sp
from contract_problems import N, make
from numpy.typing import NDArray

from replifed.algorithms.base import POSITIVE, Method, Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Accelerated, Noisy, Stochastic
from replifed.algorithms.registry import METHODS, method_class
from replifed.errors import ConfigError, ReplifedError
from replifed.network.fading import Constant, Rayleigh
from replifed.network.ledger import Cost, dense_bits
from replifed.network.participation import FixedSize, Participation
from replifed.problems.base import Smooth
from replifed.randomness import Streams
from replifed.simulate import simulate
from replifed.store.npz import read_npz, write_npz

# Settings that take other paths through the code than a method's example. A method needs none.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "fedgradmp": [{"solver": "sgd", "step": 0.05, "reuse": True, "batch": 4}, {"solver": "gd"}],
    "fedmm": [{"bits": 6, "batch": 4}],
    "fednl": [
        {"compressor": "topk", "option": 2},
        {"option": 2, "start": "hessian", "skip_below": 30},
        {"quantised": True, "b_max": 24},
    ],
    "fedplt": [
        {"solver": Accelerated(steps=3)},
        {"solver": Stochastic(steps=3, batch=4), "start_deviation": 0.5},
        {"solver": Noisy(steps=3, tau=0.1, clip=1.0)},
    ],
    "ideal_shed": [{"q_choice": "exact"}],
    "parameter_aggregation": [{"bits": 6, "batch": 4}],
    "qshed": [
        {"dither": "fresh", "normalise": True},
        {"q_choice": "exact", "renewals": 3, "dither": "added", "overload": "clip"},
    ],
    "shed": [{"renewals": 1, "single_precision": True}],
    "tamuna": [{"solver": Stochastic(steps=3, batch=4), "sparsity": 2}],
}
COPIES = 16  # a power of two, whose inverse is a number of single precision too
CHANNEL = Rayleigh(20)
ROWS = Streams(7, (1, 2, 3))


@dataclass(frozen=True)
class Case:
    """A method with settings, on a kind of problem, with all clients or a cohort."""

    cls: Any
    kind: str
    partial: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def algorithm(self) -> Any:
        """A new instance."""
        return replace(self.cls.example(), **self.changes)

    def run(self, rounds: int, *, clients=range(N), data_sets=(0,), streams=ROWS, algorithm=None, **more):
        """Simulate from a new instance of everything."""
        more = {"channel": CHANNEL, "cohort": FixedSize(4) if self.partial else None, "metrics": {}} | more
        problem = make(self.kind, clients, data_sets)
        return simulate(algorithm or self.algorithm(), problem, streams, rounds, **more)

    def server(self, state: Any) -> np.ndarray:
        return self.algorithm().observe(state)["server"]

    def context(self, t: int) -> Round:
        now = ROWS.at(t)
        active, chosen = FixedSize(4)(now, N) if self.partial else (None, None)
        return Round(t, active, CHANNEL(now, N), now, chosen)

    def __str__(self) -> str:
        settings = [
            f"{key}={type(value).__name__ if dataclasses.is_dataclass(value) else value}"
            for key, value in self.changes.items()
        ]
        return "-".join([self.name or self.cls.__name__, self.kind, *["cohort"] * self.partial, *settings])


def is_built_in(name: str) -> bool:
    return METHODS[name].startswith("replifed.")


def settings_of(cls: Any) -> list[dict[str, Any]]:
    """None; minibatches, where those are an option that the example leaves out."""
    fields = {one.name: one for one in dataclasses.fields(cls)}
    optional = "batch" in fields and fields["batch"].default is None
    return [{}, {"batch": 4}] if optional else [{}]


@functools.cache
def kinds(cls: Any) -> list[str]:
    """The problems that a method can run on. Some are refused in round 0: dense models on sparse data."""
    first, *others = problems.kinds_for(cls.needs)
    found = [first]
    for kind in others:
        with contextlib.suppress(ReplifedError):
            Case(cls, kind).run(1)
            found.append(kind)
    return found


def cases(*, partial: bool = True, variants: bool = True, every_kind: bool = True) -> list[Any]:
    """All methods on all problems that they can run on, or one, and with cohorts where they may."""
    found = []
    for name in METHODS:
        cls = method_class(name)
        if not getattr(cls, "example", None):
            continue  # `test_every_method_has_an_example` says so
        changes = settings_of(cls) + (VARIANTS.get(name, []) if variants else [])
        some = (False, True) if partial and cls.partial_participation else (False,)
        on = kinds(cls)[: None if every_kind else 1]
        for kind, cohort, change in itertools.product(on, some, changes):
            if cohort and kind not in problems.COHORTS:
                continue
            case = Case(cls, kind, cohort, change, name)
            found.append(pytest.param(case, id=str(case)))
    return found


every = pytest.mark.parametrize("case", cases())
everyone = pytest.mark.parametrize("case", cases(partial=False))
once = pytest.mark.parametrize("case", cases(partial=False, every_kind=False))
registered = pytest.mark.parametrize("name", METHODS)


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def close(a: np.ndarray, b: np.ndarray, what: str = "") -> None:
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=what)


# -- checks: each raises where a method breaks its part of the contract ---------------------------------


def check_purity(case: Case) -> None:
    """A round changes neither its state nor the problem, and depends on nothing else."""
    algorithm, problem = case.algorithm(), make(case.kind)
    states = [case.run(t, algorithm=algorithm).state for t in (2, 3)]
    kept = pickle.dumps(states)
    for array in itertools.chain(*states):
        array.flags.writeable = False
    data = {name: copied(value) for name, value in vars(problem).items() if is_array(value)}
    first, cost = algorithm.round(states[0], problem, case.context(2))
    algorithm.round(states[1], problem, case.context(3))
    again, cost_again = algorithm.round(states[0], problem, case.context(2))
    anew, cost_anew = case.algorithm().round(pickle.loads(kept)[0], make(case.kind), case.context(2))
    assert same(first, again) and same(first, anew), "a second call gives another state"
    assert same(cost, cost_again) and same(cost, cost_anew), "a second call costs something else"
    assert not same(case.run(0).state, states[0]), "rounds change nothing"
    assert all(map(same, states, pickle.loads(kept))), "the state that a round began with has changed"
    for name, before in data.items():
        assert np.array_equal(*map(plain, (before, getattr(problem, name)))), f"the problem's {name} changed"


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or sp.issparse(value)


def copied(array: Any) -> Any:
    return array.copy()


def plain(array: Any) -> np.ndarray:
    return array.toarray() if sp.issparse(array) else array


def check_resume(case: Case, folder: Any) -> None:
    """A run goes on from a stored state as if it had never been stopped, to the bit."""
    whole = case.run(5)
    for t in (1, 2, 4):
        begun = case.run(t)
        write_npz(folder / "state.npz", begun.state._asdict())
        stored = type(begun.state)(**read_npz(folder / "state.npz"))
        for state in (pickle.loads(pickle.dumps(begun.state)), stored):
            rest = case.run(5, resume=(t, state))
            assert same(rest.state, whole.state), f"resumed after round {t}, the last state is another"
            for what, totals in whole.ledger.items():
                # The ledger counts from where it goes on.
                close(totals[t] + rest.ledger[what], totals[t:], what)


def check_randomness(case: Case) -> None:
    """Runs depend on the seed where a method says so, and only there."""
    run = {"channel": Constant(20), "cohort": None}
    first, again, other = (case.run(3, streams=Streams(seed, (1,)), **run).state for seed in (7, 7, 8))
    assert same(first, again), "with the same seed, a run ends elsewhere"
    if case.algorithm().stochastic:
        assert not same(first, other), "it says that it is stochastic, and does not depend on the seed"
    else:
        assert same(first, other), "it depends on the seed, and says that it is not stochastic"


def client_axis(drawn: np.ndarray, clients: int) -> int | None:
    """Which axis of random numbers goes with the clients: it alone is so long."""
    found = [axis for axis in range(1, drawn.ndim) if drawn.shape[axis] == clients]
    assert len(found) < 2, f"random numbers {drawn.shape}: which axis are the {clients} clients?"
    return found[0] if found else None


@dataclass(frozen=True)
class Relabelled(Streams):
    """Streams whose clients are listed in another order."""

    order: ClassVar = tuple(np.random.default_rng(3).permutation(N))

    def draw(self, purpose, sample):
        drawn = super().draw(purpose, sample)
        axis = client_axis(drawn, N)
        return drawn if axis is None else np.take(drawn, self.order, axis=axis)


def check_relabelling(case: Case) -> None:
    """In which order clients are listed does not matter; random numbers go with their clients."""
    turned = Relabelled(ROWS.seed, ROWS.replicates)
    before, after = case.run(4), case.run(4, clients=Relabelled.order, streams=turned)
    close(case.server(before.state), case.server(after.state), "clients in another order")


@dataclass(frozen=True)
class Alike(Streams):
    """Streams with the same random numbers for all of `COPIES` clients; what was drawn is noted in order."""

    drawn: list = field(default_factory=list)

    def draw(self, purpose, sample):
        drawn = super().draw(purpose, sample)
        axis = client_axis(drawn, COPIES)
        first = drawn if axis is None else drawn.take([0], axis=axis)
        self.drawn.append((purpose, axis, first))
        return drawn if axis is None else np.repeat(first, COPIES, axis=axis)


@dataclass(frozen=True)
class Replayed(Streams):
    """The numbers that `Alike` has noted, for `clients` clients."""

    drawn: Iterator | None = None
    clients: int = 1

    def draw(self, purpose, sample):
        noted, axis, first = next(self.drawn)
        assert noted == purpose
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
    apart = np.abs(case.server(many.state) - case.server(alone.state)).max()
    if reason := getattr(case.cls, "equal_clients_differ", ""):
        assert isinstance(reason, str) and apart > 1e-6, "equal clients act as one, and the class denies it"
    else:
        close(case.server(many.state), case.server(alone.state), f"{COPIES} equal clients are not one")
    for what, one in alone.ledger.items():
        each = two.ledger[what] - one
        close(many.ledger[what], one + (COPIES - 1) * each, f"{what}: some of equal clients cost more")
        if what.startswith("bits"):
            close(each, one, f"{what}: a second client costs something else")


def spoilt(state: Any, row: int) -> Any:
    """The state with one run of the batch lost; zeros stay, since a sparse model's number of them counts."""
    fields = [array.copy() for array in state]
    for array in fields:
        if array.dtype.kind == "f":
            array[row] = np.where(array[row] == 0, 0, np.nan)
    return type(state)(*fields)


def check_batch(case: Case) -> None:
    """A run alone is that run of the batch, whatever becomes of the others."""
    own = case.kind in problems.OWN_DATA
    sets = range(3) if own else (0,)
    together = case.run(4, data_sets=sets)
    begun = case.run(1, data_sets=sets).state
    assert all(len(array) == len(ROWS) for array in begun), "the first axis of the state is not the batch"
    beside = case.run(4, data_sets=sets, resume=(1, spoilt(begun, 1)))
    assert np.isfinite(case.server(together.state)).all()
    for row, replicate in enumerate(ROWS.replicates):
        alone = case.run(4, data_sets=(row,) if own else (0,), streams=Streams(ROWS.seed, (replicate,)))
        close(case.server(together.state)[row], case.server(alone.state)[0], f"run {row} of the batch")
        for what, totals in alone.ledger.items():
            close(together.ledger[what][:, row], totals[:, 0], what)
        if row != 1:
            close(case.server(beside.state)[row], case.server(alone.state)[0], "beside a run that is lost")


def numeric(owner: Any) -> Iterator[tuple[Any, str]]:
    """Numeric settings, as (owner, name), of a method and of what it is made of."""
    for one in dataclasses.fields(owner):
        value = getattr(owner, one.name)
        if one.init and any(kind in one.type for kind in ("int", "float")):
            yield owner, one.name
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from numeric(value)


def check_grid(case: Case) -> None:
    """A setting may have one value for each run of the batch, where its annotation says so."""
    algorithm = case.algorithm()
    for owner, name in numeric(algorithm):
        value = getattr(owner, name)
        if "NDArray" not in owner.__dataclass_fields__[name].type or value is None:
            continue
        each = (
            [max(value - k, 1) for k in range(3)]
            if isinstance(value, int)
            else value * np.array([1, 0.5, 0.7])
        )
        values = np.array(each)

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
            close(case.server(grid.state)[row], case.server(alone.state)[0], f"{name}, one value a run")
            for what, totals in alone.ledger.items():
                close(grid.ledger[what][:, row], totals[:, 0], what)


def check_refusals(case: Case) -> None:
    """Numbers that are none, out of range or of another type are refused by name, in one line."""
    for owner, name in numeric(case.algorithm()):
        kind = owner.__dataclass_fields__[name].type
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
                assert said in str(error), f"{said} = {value!r}: refused without its name: {error}"
                assert len(str(error).splitlines()) == 1, f"{said} = {value!r}: refused in several lines"
            else:
                raise AssertionError(f"{said} = {value!r} is taken")


def members(*chosen: int, masked: bool = False) -> Callable[[Streams, int], Participation]:
    """The same cohort in every round."""

    def cohort(streams: Streams, n_clients: int) -> Participation:
        active = np.isin(np.arange(n_clients), chosen)[None]
        return Participation(active, None if masked else np.array([chosen]))

    return cohort


def check_cohort_costs(case: Case) -> None:
    """The ledger knows nothing of the clients outside the cohort, nor which of equal ones are in it."""
    inside = (0, 3, 4, 7)
    here = case.run(2, cohort=members(*inside)).ledger
    others = [i if i in inside else i + 1 for i in range(N)]
    assert [problems.size(i) for i in others] != [problems.size(i) for i in range(N)]
    for clients in (others, [*range(N), 20, 21]):
        there = case.run(2, clients=clients, cohort=members(*inside)).ledger
        for what, totals in here.items():
            close(there[what], totals, f"{what}: it depends on clients outside the cohort")
    equal = [case.run(2, clients=[0] * N, cohort=members(*who)).ledger for who in (inside, (1, 2, 5, 10))]
    for what, totals in equal[0].items():
        close(equal[1][what], totals, f"{what}: equal cohorts cost differently")
    try:
        masked = case.run(2, cohort=members(*inside, masked=True)).ledger
    except ReplifedError:
        return  # it takes cohorts of a fixed size only, and says so
    for what, totals in here.items():
        close(masked[what], totals, f"{what}: a mask of the same clients costs something else")


def check_uplink(case: Case) -> None:
    """What the server learns of a client's data, somebody has sent it."""
    algorithm, clients = case.algorithm(), [i if i != 2 else 12 for i in range(N)]
    learnt = False
    for t in range(3):
        state = case.run(t, cohort=None).state
        context = replace(case, partial=False).context(t)
        (here, cost), (there, _) = (
            algorithm.round(state, make(case.kind, who), context) for who in (range(N), clients)
        )
        differs = not np.array_equal(*map(case.server, (here, there)))
        learnt |= differs
        if getattr(algorithm, "centralised", False):
            assert not np.any(cost.bits_up) and not np.any(cost.bits_down), "centralised, and it sends"
        elif differs:
            assert np.all(np.asarray(cost.bits_up) > 0), "the server learns of a client that sends nothing"
    assert learnt, "the server's model does not depend on a client's data"


# -- messages, counted by hand ---------------------------------------------------------------------------


class Sent(NamedTuple):
    """Bits of one round, samples that are looked at (None: not counted here), and exchanges."""

    up: Any
    down: Any
    samples: Any = None
    exchanges: int = 1


class Counted(NamedTuple):
    """What a count may follow from.

    c clients take part, with n samples in a local step; K local steps; D coordinates of a model, d of theta;
    settings a; states before and after; Hessians are new or not; trials of the line search.
    """

    c: int
    n: int
    K: Any
    D: int
    d: int
    a: Any
    before: Any
    after: Any
    renewed: bool
    trials: Any

    @property
    def dense(self) -> int:
        return 32 * self.D

    @property
    def sparse(self) -> int:
        """tau values and where they are: a bit a coordinate, or a number for each."""
        tau = self.a.sparsity
        return 32 * tau + min(self.D, tau * math.ceil(math.log2(self.D)))


def second_order(extra: Callable[[Counted], Any], exchanges: int = 1) -> Callable[[Counted], Sent]:
    """All clients' gradients of 16 bits a coordinate, what is extra, and the scalars of the line search."""

    def count(r: Counted) -> Sent:
        up = r.c * (16 * r.D + 32 * (1 + r.trials)) + extra(r)
        return Sent(up, r.c * (exchanges * r.dense + 32 * r.trials), r.n, exchanges)

    return count


def more(r: Counted, name: str) -> Any:
    """How much a count of the clients has grown in a round, from nothing where Hessians are new."""
    before, after = (getattr(state, name).reshape(3, -1).sum(axis=1) for state in (r.before, r.after))
    return after - before * (not r.renewed)


def eigenvalues(r: Counted) -> Any:
    """One with each vector, and each client's next one (rho) with new Hessians; before, it has been sent."""
    return 32 * (more(r, "q") + r.c * r.renewed)


def both_ways(r: Counted) -> Sent:
    return Sent(r.c * r.dense, r.c * r.dense, r.K * r.n)


# fmt: off
MESSAGES: dict[str, Callable[[Counted], Sent]] = {
    "fedavg": both_ways,  # a model there and back
    "feddualavg": both_ways,  # a dual state there and back
    "fedmid": both_ways,  # a model there and back
    "fedpd": both_ways,  # x_i + eta lambda_i up, x_0 down
    "fedplt": both_ways,  # z_i up, y down
    "led": both_ways,  # phi_i up, their mean down
    # Also the gradient at the end of the local steps, which is the dual variable.
    "fivegcs": lambda r: Sent(r.c * r.dense, r.c * r.dense, (r.K + 1) * r.n),
    # Gradient and model, both up and down; the gradient at the start takes all samples.
    "fedlin": lambda r: Sent(2 * r.c * r.dense, 2 * r.c * r.dense, (r.K + 1) * r.n, 2),
    # In a cohort each client is told the new mean as well, since it may miss the next round.
    "tamuna": lambda r: Sent(r.c * r.dense, r.c * r.dense * (1 if r.c == N else 2), r.K * r.n),
    "fedht": lambda r: Sent(r.c * r.dense, r.c * r.sparse, r.K * r.n),  # the server's threshold alone
    "distributed_iht": lambda r: Sent(r.c * r.dense, r.c * r.sparse, r.n),  # one local step
    "fediterht": lambda r: Sent(r.c * r.sparse, r.c * r.sparse, r.K * r.n),  # thresholds on both sides
    "fedgradmp": lambda r: Sent(r.c * r.sparse, r.c * r.sparse),  # as FedIterHT; sub-problems count as work
    "fedmm": lambda r: Sent(r.c * r.dense, r.c * 32 * (r.D + r.d), r.n),  # S_i up, S and theta down
    "parameter_aggregation": lambda r: Sent(r.c * 32 * r.d, r.c * 32 * r.d, r.n),  # theta there and back
    "sa_ssmm": lambda r: Sent(0, 0, r.n, 0),  # where all data are
    # A potential up, both networks down; clients and server share public targets.
    "fedmm_ot": lambda r: Sent(
        r.c * r.dense, 2 * r.c * r.dense, r.n + (r.c + r.a.server_steps) * r.a.server_batch
    ),
    # Both networks' gradients up, both networks down.
    "fedadam": lambda r: Sent(2 * r.c * r.dense, 2 * r.c * r.dense, r.n + 2 * r.c * r.a.server_batch),
    "gradient_descent": second_order(lambda r: 0),
    "newton": second_order(lambda r: r.c * 16 * r.D * (r.D + 1) // 2),  # a triangle of the Hessian
    "giant": second_order(lambda r: r.c * 16 * r.D, exchanges=2),  # a direction, for the gradient
    "fednl": second_order(lambda r: r.c * (16 * r.D + 32)),  # an eigenpair
    "shed": second_order(lambda r: 16 * r.D * more(r, "q") + eigenvalues(r)),  # vectors, whole
    "nqshed": second_order(lambda r: 16 * r.D * more(r, "q") + eigenvalues(r)),  # as SHED
    "ideal_shed": second_order(lambda r: 16 * r.D * more(r, "q") + eigenvalues(r)),  # as SHED
    "qshed": second_order(lambda r: r.D * more(r, "bits") + eigenvalues(r)),  # as many bits as were allocated
}
# fmt: on


def check_messages(case: Case, count: Callable[[Counted], Sent]) -> None:
    """What a round is charged is what it sends, by hand."""
    inside, bits = (0, 3, 4, 7) if case.partial else range(N), 40
    problem, algorithm = make(case.kind), case.algorithm()
    sizes = problem.sizes[0, list(inside)]
    # Settings of the example and the case; `batch` may be None.
    batch = getattr(algorithm, "batch", None)
    n = int(sizes.sum()) if batch is None else len(inside) * batch
    state = case.run(0).state
    active, chosen = members(*inside)(ROWS, N) if case.partial else (None, None)
    for t in range(3):
        context = Round(t, active, Constant(bits)(ROWS, N), ROWS.at(t), chosen)
        after, cost = algorithm.round(state, problem, context)
        trials = (np.asarray(cost.line_search_messages) / N - 1) / 2
        d = getattr(problem, "parameters", problem.dim)
        # New Hessians in rounds 1, 2, 4, 7, ...
        counted = Counted(
            len(inside), n, cost.iterations, problem.dim, d, algorithm, state, after, t in (0, 1, 3), trials
        )
        sent = count(counted)
        close(cost.bits_up, sent.up, f"bits up in round {t}")
        close(cost.bits_down, sent.down, f"bits down in round {t}")
        close(cost.exchanges, sent.exchanges, f"exchanges in round {t}")
        if sent.samples is not None:
            close(cost.sample_gradients, sent.samples, f"sample gradients in round {t}")
        state = after


# -- every method ----------------------------------------------------------------------------------------


@registered
def test_every_method_has_an_example_and_a_problem(name):
    cls = method_class(name)
    assert getattr(cls, "example", None), (
        f"{name}: give {cls.__name__} a classmethod `example` that returns an instance with small settings"
    )
    assert type(cls.example()) is cls
    needs = ", ".join(need.__name__ for need in cls.needs)
    assert problems.kinds_for(cls.needs), f"{name}: add a problem with {needs} to contract_problems.py"
    assert name in MESSAGES or not is_built_in(name), (
        f"{name}: add a line to MESSAGES, what it sends up and down in a round"
    )


def test_unknown_methods_are_named_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown method 'fedth'; did you mean 'fedht'"):
        method_class("fedth")


@every
def test_a_round_is_a_pure_function(case):
    check_purity(case)


@every
def test_a_run_goes_on_from_any_round(case, tmp_path):
    check_resume(case, tmp_path)


@everyone
def test_the_seed_decides_what_is_random(case):
    check_randomness(case)


@everyone
def test_the_order_of_clients_does_not_matter(case):
    check_relabelling(case)


@everyone
def test_equal_clients_act_as_one(case):
    if "sparsity" in case.changes:
        pytest.skip("a number of messages, whatever that of the clients")
    check_equal_clients(case)


@every
def test_runs_of_a_batch_are_independent(case):
    check_batch(case)


@everyone
def test_a_grid_of_settings_is_its_single_runs(case):
    check_grid(case)


@once
def test_bad_settings_are_refused(case):
    check_refusals(case)


@pytest.mark.parametrize("case", [one for one in cases() if one.values[0].partial])
def test_who_stays_out_costs_nothing(case):
    check_cohort_costs(case)


@everyone
def test_what_the_server_learns_is_sent(case):
    check_uplink(case)


@pytest.mark.parametrize("case", [one for one in cases(variants=False) if is_built_in(one.values[0].name)])
def test_messages_are_those_counted_by_hand(case):
    check_messages(case, MESSAGES[case.name])


@registered
def test_what_a_problem_lacks_is_said_before_round_0(name):
    class Nothing:
        n_clients, dim, dtype = 1, 3, float

    algorithm, called = method_class(name).example(), []
    missing = ", ".join(need.__name__ for need in algorithm.needs)
    with pytest.raises(ReplifedError, match=f"{type(algorithm).__name__} needs {missing}, which Nothing"):
        simulate(algorithm, Nothing(), ROWS, 3, progress=lambda *done: called.append(done))
    assert not called


@registered
def test_cohorts_are_refused_where_all_must_take_part(name):
    cls = method_class(name)
    if not cls.partial_participation:
        with pytest.raises(ReplifedError, match=f"{cls.__name__} is defined for full participation only"):
            Case(cls, problems.kinds_for(cls.needs)[0], partial=True).run(1)


# -- each check notices what it is for -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sound(Method):
    """Gradient descent on the mean of the clients' losses; the next ones break it."""

    step: Annotated[float | NDArray, POSITIVE]

    small: ClassVar = {"step": 0.05}

    def init(self, problem, streams):
        return ServerModel(np.full((len(streams), problem.dim), 0.1))

    def models(self, state, problem, ctx):
        local = problem.local(state.x, clients=ctx.chosen)
        return local.mean, local.start - per_run(self.step, local.start) * local.gradient(local.start, None)

    def round(self, state, problem, ctx):
        mean, models = self.models(state, problem, ctx)
        return ServerModel(mean(models)), self.cost(problem, ctx)

    def cost(self, problem, ctx):
        cohort = Cohort(problem, ctx)
        return Cost(cohort.message(), cohort.message(), 1, 1, cohort.total(problem.sizes))


class MovesItsState(Sound):
    def round(self, state, problem, ctx):
        after, cost = super().round(state, problem, ctx)
        state.x[:] = after.x
        return state, cost


class FlipsLabels(Sound):
    def round(self, state, problem, ctx):
        problem.y[..., 0] *= -1
        return super().round(state, problem, ctx)


class CountsItsRounds(Sound):
    def round(self, state, problem, ctx):
        object.__setattr__(self, "calls", getattr(self, "calls", 0) + 1)
        after, cost = super().round(state, problem, ctx)
        return ServerModel(after.x / self.calls), cost


class DrawsUndeclared(Sound):
    def round(self, state, problem, ctx):
        after, cost = super().round(state, problem, ctx)
        return ServerModel(after.x + ctx.streams.draw("noise", lambda rng: rng.random(problem.dim))), cost


class PrefersTheFirst(Sound):
    def round(self, state, problem, ctx):
        _, models = self.models(state, problem, ctx)
        weights = 0.5 ** np.arange(1, models.shape[1] + 1)
        return ServerModel(np.einsum("n,rnd->rd", weights, models)), self.cost(problem, ctx)


class AddsUp(Sound):
    def round(self, state, problem, ctx):
        _, models = self.models(state, problem, ctx)
        return ServerModel(state.x + (models - state.x[:, None]).sum(axis=1)), self.cost(problem, ctx)


class ChargesTheLastTwice(Sound):
    def cost(self, problem, ctx):
        cost = super().cost(problem, ctx)
        return cost._replace(bits_up=cost.bits_up + dense_bits(problem.dim))


class ShrinksToTheMean(Sound):
    def round(self, state, problem, ctx):
        after, cost = super().round(state, problem, ctx)
        return ServerModel(0.9 * after.x + 0.1 * after.x.mean(axis=0)), cost


class StopsWithTheFirstLost(Sound):
    def round(self, state, problem, ctx):
        after, cost = super().round(state, problem, ctx)
        return (after if np.isfinite(after.x).all() else state), cost


class TakesTheLongestStep(Sound):
    def models(self, state, problem, ctx):
        return replace(self, step=float(np.max(self.step))).models_at_one_step(state, problem, ctx)

    def models_at_one_step(self, state, problem, ctx):
        return Sound.models(self, state, problem, ctx)


class TakesAnyStep(Sound):
    def __post_init__(self):
        pass


class RefusesWithoutAName(Sound):
    def __post_init__(self):
        if not (np.isrealobj(self.step) and np.all(np.asarray(self.step, dtype=float) > 0)):
            raise ConfigError("the step must be positive")


class ChargesEveryone(Sound):
    def cost(self, problem, ctx):
        return super().cost(problem, ctx._replace(chosen=None, active=None))


class ChargesByNumber(Sound):
    def cost(self, problem, ctx):
        numbers = np.arange(problem.n_clients) if ctx.chosen is None else ctx.chosen
        return super().cost(problem, ctx)._replace(bits_up=32 * (1 + numbers).sum())


class LearnsForNothing(Sound):
    def cost(self, problem, ctx):
        return super().cost(problem, ctx)._replace(bits_up=0)


class SendsHalf(Sound):
    def cost(self, problem, ctx):
        cost = super().cost(problem, ctx)
        return cost._replace(bits_up=cost.bits_up / 2)


CHECKS: dict[Callable[..., None], list[tuple[type, str]]] = {
    check_purity: [
        (MovesItsState, "read-only"),
        (FlipsLabels, "second call|y changed"),
        (CountsItsRounds, "a second call gives another state"),
    ],
    check_resume: [(CountsItsRounds, "resumed after round 1")],
    check_randomness: [(DrawsUndeclared, "it depends on the seed")],
    check_relabelling: [(PrefersTheFirst, "another order")],
    check_equal_clients: [(AddsUp, "equal clients are not one"), (ChargesTheLastTwice, "bits_up")],
    check_batch: [
        (ShrinksToTheMean, "run 0 of the batch"),
        (StopsWithTheFirstLost, "beside a run that is lost"),
    ],
    check_grid: [(TakesTheLongestStep, "step, one value a run")],
    check_refusals: [
        (TakesAnyStep, r"TakesAnyStep\.step = nan is taken"),
        (RefusesWithoutAName, "without its name"),
    ],
    check_cohort_costs: [
        (ChargesEveryone, "it depends on clients outside"),
        (ChargesByNumber, "bits_up: equal cohorts"),
    ],
    check_uplink: [(LearnsForNothing, "sends nothing")],
    check_messages: [(SendsHalf, "bits up in round 0")],
}


@pytest.mark.parametrize(
    "check, broken, says",
    [
        pytest.param(check, broken, says, id=f"{check.__name__}-{broken.__name__}")
        for check, table in CHECKS.items()
        for broken, says in [(Sound, ""), *table]
    ],
)
def test_a_broken_method_is_noticed(check, broken, says, tmp_path):
    more = {check_resume: [tmp_path], check_messages: [both_ways]}.get(check, [])
    if broken is Sound:
        check(Case(Sound, "dense", partial=check is check_cohort_costs), *more)
    else:
        with pytest.raises((AssertionError, ValueError), match=says):
            check(Case(broken, "dense", partial=check is check_cohort_costs), *more)


def test_a_method_without_example_problem_or_count_is_told_what_to_add(monkeypatch):
    class Bare(Sound):
        needs = (Smooth, type("Wanted", (), {}))
        example = None

    name, known = "replifed.nowhere:Bare", test_every_method_has_an_example_and_a_problem
    monkeypatch.setitem(METHODS, "bare", name)
    monkeypatch.setitem(globals(), "method_class", lambda _: Bare)
    with pytest.raises(AssertionError, match="bare: give Bare a classmethod `example`"):
        known("bare")
    Bare.example = classmethod(lambda cls: cls(step=0.05))
    with pytest.raises(AssertionError, match="bare: add a problem with Smooth, Wanted"):
        known("bare")
    Bare.needs = Sound.needs
    with pytest.raises(AssertionError, match="bare: add a line to MESSAGES"):
        known("bare")
    # What another package registers is not counted here.
    monkeypatch.setitem(METHODS, "bare", "somebody.elses:Bare")
    known("bare")
