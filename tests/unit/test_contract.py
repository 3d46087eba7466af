"""The contract of a method, checked of every one in the registry on the settings of its `example`.

A method's problem follows from what it `needs` (contract/problems.py). A method of this package also declares
in `messages` what it sends, counted by hand. At the end each check meets a method that breaks it.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from pairwise import covering, pairs
from replifed import contract
from replifed.algorithms.base import POSITIVE, Method, Round, ServerModel, per_run
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Accelerated, Noisy, Stochastic
from replifed.algorithms.registry import METHODS, method_class
from replifed.contract import check_forms, checks, examine, problems
from replifed.contract.checks import ROWS, Case, close, members
from replifed.contract.problems import N, make
from replifed.engine.audit import differences
from replifed.engine.exchanges import CommonPoints
from replifed.engine.simulate import simulate
from replifed.errors import ConfigError, ReplifedError
from replifed.network.fading import Constant
from replifed.network.ledger import Cost, dense_bits
from replifed.network.messages import Counted, both_ways
from replifed.network.participation import Participation
from replifed.problems import restricted
from replifed.problems.audited import Call, idle
from replifed.problems.base import Hessian, LocalSteps, PerClientModels, Smooth
from replifed.wire.forms.common import average, mean
from replifed.wire.messages import Dense

# Settings that take other paths through the code than a method's example. A method needs none.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "fedgradmp": [{"solver": "sgd", "step": 0.05, "reuse": True, "batch": 4}, {"solver": "gd"}],
    "fedmm": [{"bits": 6, "batch": 4}],
    "fedac": [{"variant": "2"}, {"variant": "naive", "batch": 4, "start_deviation": 0.5}],
    "feddyn": [{"solver": Stochastic(steps=3, batch=4)}],
    "fednl": [
        {"compressor": "topk", "option": 2},
        {"option": 2, "start": "hessian", "vector_bits": 30},
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
    "scaffnew": [{"solver": Stochastic(steps=3, batch=4)}],
    "scaffold": [{"option": "1"}, {"solver": Stochastic(steps=3, batch=4), "server_step": 0.5}],
    "shed": [{"renewals": 1, "single_precision": True}],
    "tamuna": [{"solver": Stochastic(steps=3, batch=4), "sparsity": 2}],
}

# Problems that a method refuses in its first round. They stand here, since each process that collects tests
# would have to compile most kernels to find them out.
REFUSED = {"feddualavg": {"sparse"}, "fedmid": {"sparse"}}


def problems_of(name: str) -> list[str]:
    return [
        kind for kind in problems.kinds_for(method_class(name).needs) if kind not in REFUSED.get(name, set())
    ]


def is_built_in(name: str) -> bool:
    return METHODS[name].startswith("replifed.")


def every_case(*names: str, variants: bool = True) -> list[Case]:
    """Methods (all by default) on all problems that they can run on, and with cohorts where they may."""
    found = []
    for name in names or METHODS:
        cls = method_class(name)
        if getattr(cls, "example", None):  # `test_every_method_has_an_example` says so of the others
            found += contract.cases(cls, name, VARIANTS.get(name, []) if variants else [], problems_of(name))
    return found


def parts(name: str) -> dict[tuple[str, ...], tuple[Callable[[Case], None], Case]]:
    """Checks of one method on the cases that they are made of, by check, problem, cohort and settings."""
    cases = every_case(name)
    return {
        (check.__name__, case.kind, str(case.partial), repr(case.changes)): (check, case)
        for check, of in contract.CHECKS.items()
        for case in cases
        # Variants refuse settings of their own.
        if of(replace(case, changes={}) if check is checks.check_refusals else case)
    }


def chosen_parts() -> Iterator[Any]:
    """Of all parts as many as have each two of check, problem, cohort and settings together."""
    for name in METHODS:
        every = parts(name)
        for check, case in map(every.get, covering(list(every))):
            yield pytest.param(check, case, id=f"{check.__name__}-{case}")


registered = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(autouse=True)
def newton_ends_once_a_step_gains_nothing_that_is_looked_at(monkeypatch):
    """Newton's method on sub-problems otherwise halves its last step 34 times, at differences of rounding."""
    monkeypatch.setattr(restricted, "_NEWTON_TOLERANCE", 1e-7)


# -- messages, counted by hand ---------------------------------------------------------------------------


def check_messages(case: Case) -> None:
    """What a round is charged is what it sends, by hand."""
    inside, bits = (0, 3, 4, 7) if case.partial else range(N), 40
    problem, algorithm = make(case.kind), case.algorithm()
    sizes, largest = problem.sizes[0, list(inside)].tolist(), int(problem.sizes.max())
    state = case.run(0).state
    active, chosen = members(*inside)(ROWS, N) if case.partial else (None, None)
    for t in range(3):
        context = Round(t, active, Constant(bits)(ROWS, N), ROWS.at(t), chosen)
        after, cost = algorithm.round(state, problem, context)
        trials = (np.asarray(cost.line_search_messages) / N - 1) / 2
        d = getattr(problem, "parameters", problem.dim)
        # New Hessians in rounds 1, 2, 4, 7, ...
        K, D, renewed = cost.iterations, problem.dim, t in (0, 1, 3)
        sent = case.cls.messages(
            Counted(sizes, largest, N, K, D, d, algorithm, state, after, renewed, trials)
        )
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
    assert problems.kinds_for(cls.needs), f"{name}: add a problem with {needs} to contract/problems.py"
    assert hasattr(cls, "messages") or not is_built_in(name), (
        f"{name}: give {cls.__name__} a function `messages`, what it sends up and down in a round"
    )


@registered
def test_the_problems_of_a_method_are_those_that_it_does_not_refuse(name):
    assert problems_of(name) == contract.kinds(method_class(name))


def test_all_pairs_of_check_problem_cohort_and_settings_are_examined():
    every = list(parts("fednl"))
    chosen = covering(every)
    assert len(chosen) < len(every)
    assert set(chosen) <= set(every) and pairs(*chosen) == pairs(*every)


@pytest.mark.parametrize(("check", "case"), list(chosen_parts()))
def test_every_method_keeps_each_part_of_the_contract(check, case):
    if check is checks.check_equal_clients and "sparsity" in case.changes:
        pytest.skip("a number of messages, whatever that of the clients")
    check(case)


# SCAFFOLD's first option takes a gradient more.
BY_HAND = [
    *(case for case in every_case(variants=False) if is_built_in(case.name)),
    *(case for case in every_case() if case.changes == {"option": "1"}),
]


@pytest.mark.parametrize("case", BY_HAND, ids=str)
def test_messages_are_those_counted_by_hand(case):
    check_messages(case)


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
        local, cohort = problem.local(state.x, clients=ctx.chosen), Cohort(problem, ctx)
        models = local.start - per_run(self.step, local.start) * local.gradient(local.start, None)
        return lambda u: cohort.average(local, u, state.x), models

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


class ReadsWhatItWrote(Sound):
    def round(self, state, problem, ctx):
        after, cost = super().round(state, problem, ctx)
        if ctx.in_place:
            state.x[:] = after.x
        return ServerModel(after.x + 0.5 * (after.x - state.x)), cost


class FlipsLabels(Sound):
    def round(self, state, problem, ctx):
        problem.y[..., 0] *= -1
        return super().round(state, problem, ctx)


class CountsItsRounds(Sound):
    def round(self, state, problem, ctx):
        object.__setattr__(self, "calls", getattr(self, "calls", 0) + 1)
        after, cost = super().round(state, problem, ctx)
        return ServerModel(after.x / self.calls), cost


def moves(name: str, change: Callable[..., NDArray]) -> type[Sound]:
    """Return gradient descent whose new model x is what `change` makes of it and of the old one."""

    def round(self, state, problem, ctx):
        after, cost = Sound.round(self, state, problem, ctx)
        return ServerModel(change(after.x, state.x, problem, ctx)), cost

    return type(name, (Sound,), {"round": round})


def charges(name: str, change: Callable[..., dict[str, Any]], **members: Any) -> type[Sound]:
    """Return gradient descent with other entries in its cost."""

    def cost(self, problem, ctx):
        cost = Sound.cost(self, problem, ctx)
        return cost._replace(**change(cost, problem, ctx))

    return type(name, (Sound,), {"cost": cost, **members})


def noise(x: NDArray, problem: Any, ctx: Round) -> NDArray:
    return x + ctx.streams.draw("noise", lambda rng: rng.random(problem.dim))


DrawsUndeclared = moves("DrawsUndeclared", lambda x, old, problem, ctx: noise(x, problem, ctx))
ShrinksToTheMean = moves("ShrinksToTheMean", lambda x, *_: 0.9 * x + 0.1 * x.mean(axis=0))
StopsWithTheFirstLost = moves("StopsWithTheFirstLost", lambda x, old, *_: x if np.isfinite(x).all() else old)
ChangesItsPrecision = moves("ChangesItsPrecision", lambda x, *_: x.astype(np.float32))
ChargesTheLastTwice = charges(
    "ChargesTheLastTwice", lambda cost, problem, ctx: {"bits_up": cost.bits_up + dense_bits(problem.dim)}
)
ChargesByNumber = charges(
    "ChargesByNumber",
    lambda cost, problem, ctx: {
        "bits_up": 32 * (1 + (np.arange(N) if ctx.chosen is None else ctx.chosen)).sum()
    },
)
LearnsForNothing = charges("LearnsForNothing", lambda *_: {"bits_up": 0})
SaysWhatItSends = charges("SaysWhatItSends", lambda *_: {}, messages=staticmethod(both_ways))
SendsHalf = charges(
    "SendsHalf", lambda cost, *_: {"bits_up": cost.bits_up / 2}, messages=staticmethod(both_ways)
)


class ChargesEveryone(Sound):
    def cost(self, problem, ctx):
        return super().cost(problem, ctx._replace(chosen=None, active=None))


class PrefersTheFirst(Sound):
    def round(self, state, problem, ctx):
        _, models = self.models(state, problem, ctx)
        weights = 0.5 ** np.arange(1, models.shape[1] + 1)
        return ServerModel(np.einsum("n,rnd->rd", weights, models)), self.cost(problem, ctx)


class AddsUp(Sound):
    def round(self, state, problem, ctx):
        _, models = self.models(state, problem, ctx)
        return ServerModel(state.x + (models - state.x[:, None]).sum(axis=1)), self.cost(problem, ctx)


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


class AveragesAllThatCompute(Sound):
    def models(self, state, problem, ctx):
        return problem.local(state.x, clients=ctx.chosen).mean, super().models(state, problem, ctx)[1]


class ForgetsItsCost(Sound):
    def round(self, state, problem, ctx):
        return super().round(state, problem, ctx)[0]


class LosesTheBatch(Sound):
    def init(self, problem, streams):
        return ServerModel(np.zeros(problem.dim))


# -- planted cheats --------------------------------------------------------------------------------------


class TakesAnotherStep(Sound):
    """Books one of two gradients: local steps have common points only at first, so one exchange will do."""

    def models(self, state, problem, ctx):
        mean, models = super().models(state, problem, ctx)
        local = problem.local(state.x, clients=ctx.chosen)
        return mean, models - per_run(self.step, models) * local.gradient(models, None)


class SolvesBeforehand(Sound):
    def init(self, problem, streams):
        x = super().init(problem, streams).x
        return ServerModel(x - 0.05 * problem.gradient(x))


class LooksAtHessians(Sound):
    needs = (Smooth, Hessian, LocalSteps)

    def models(self, state, problem, ctx):
        mean, models = super().models(state, problem, ctx)
        largest = problem.client_hessians(state.x).mean(axis=1).max(axis=(1, 2))
        return mean, models / (1 + 0 * largest[:, None, None])


class ComputesIdly(Sound):
    """Says that it throws away what it uses."""

    def models(self, state, problem, ctx):
        with idle(np.ones((len(state.x), 1), bool)):
            return super().models(state, problem, ctx)


LooksAtLosses = moves(
    "LooksAtLosses",
    lambda x, old, problem, ctx: np.where((problem.loss(x) < problem.loss(old))[:, None], x, 0.99 * old),
)
ReadsTheData = moves("ReadsTheData", lambda x, old, problem, ctx: x + 0 * np.mean(problem.X))
ReadsTheDataBehind = moves(
    "ReadsTheDataBehind", lambda x, old, problem, ctx: x + 0 * np.mean(problem.smoothness.__self__.X)
)
AsksACopy = moves("AsksACopy", lambda x, old, problem, ctx: x - 0.05 * copy.deepcopy(problem).gradient(x))
ListsAttributes = moves("ListsAttributes", lambda x, old, problem, ctx: x + 0 * np.mean(vars(problem)["y"]))
ReadsBehindLocalModels = moves(
    "ReadsBehindLocalModels", lambda x, old, problem, ctx: x + 0 * np.mean(problem.local(old)._problem.y)
)
DrawsFromNumpy = moves(
    "DrawsFromNumpy",
    lambda x, *_: x + 1e-3 * np.random.standard_normal(x.shape),  # noqa: NPY002
)


class LooksAtFiftyPoints(Sound):
    """Gradient descent of 50 exchanges in what it books as one; it books its gradients."""

    needs = (Smooth, PerClientModels)

    def round(self, state, problem, ctx):
        cohort, x = Cohort(problem, ctx), state.x
        for k in range(50):
            u = self.points(np.repeat(x[:, None], cohort.clients.shape[1], axis=1), ctx, k)
            x = x - per_run(self.step, x) * cohort.mean(cohort.problem.per_client_gradients(u))
        return ServerModel(x), cohort.cost(50, None)

    def points(self, u, ctx, k):
        return u


class LooksAtFiftyNoisyPoints(LooksAtFiftyPoints):
    stochastic = True

    def points(self, u, ctx, k):
        return u + ctx.streams.draw(f"noise {k}", lambda rng: 0.1 * rng.standard_normal(u.shape[1:]))


class LooksAlongALine(LooksAtFiftyPoints):
    """At points that do not follow from each other."""

    def round(self, state, problem, ctx):
        x = state.x
        g = [problem.gradient(x * (1 + k / 100)) for k in range(50)]
        return ServerModel(x - per_run(self.step, x) * np.mean(g, axis=0)), Cohort(problem, ctx).cost(
            50, None
        )


class TakesFiftySigns(LooksAtFiftyPoints):
    def round(self, state, problem, ctx):
        x = state.x
        for _ in range(50):
            x = x - per_run(self.step, x) * np.sign(problem.gradient(x))
        return ServerModel(x), Cohort(problem, ctx).cost(50, None)


class AveragesTwice(Sound):
    def models(self, state, problem, ctx):
        mean, models = super().models(state, problem, ctx)
        return super().models(ServerModel(mean(models)), problem, ctx)

    def cost(self, problem, ctx):
        cost = super().cost(problem, ctx)
        return cost._replace(sample_gradients=2 * cost.sample_gradients)


class ChangesTheProcess(Sound):
    def round(self, state, problem, ctx):
        np.random.seed(0)  # noqa: NPY002
        np.seterr(all="ignore")
        os.chdir("/")
        os.environ["REPLIFED_PLANTED"] = "1"
        return super().round(state, problem, ctx)


class Exits(Sound):
    def round(self, state, problem, ctx):
        sys.exit(0)


class Forks(Sound):
    def round(self, state, problem, ctx):
        os.fork()
        return super().round(state, problem, ctx)


class GoesClientByClient(Sound):
    """Local steps in a loop over the clients, each a problem of its own: one exchange will do."""

    needs = (Smooth, PerClientModels)

    def round(self, state, problem, ctx):
        cohort, models = Cohort(problem, ctx), []
        for i in range(cohort.clients.shape[1]):
            own, w = cohort.problem.with_clients(np.array([[i]])), state.x
            for _ in range(3):
                w = w - per_run(self.step, w) * own.gradient(w)
            models.append(w)
        return ServerModel(np.mean(models, axis=0)), cohort.cost(3, None)


class TwoForms(Sound):
    def client(self, message, own, data, turn):
        (x,) = message
        return [Dense(x - self.step * data.gradient(x))], own

    def server(self, state, turn):
        replies = yield [Dense(state["x"])]
        return {"x": average(replies, turn.facts.weights)}


class ForgetsTheWeights(TwoForms):
    def server(self, state, turn):
        replies = yield [Dense(state["x"])]
        return {"x": mean(replies)}


class SendsHalfAModel(TwoForms):
    def client(self, message, own, data, turn):
        ((whole,), own) = super().client(message, own, data, turn)
        return [Dense(whole.values, width=16)], own


BROKEN: dict[Callable[..., None], list[tuple[type, str]]] = {
    checks.check_form: [
        (ForgetsItsCost, "next state and a Cost"),
        (ChangesItsPrecision, "x has become .* of float32"),
        (LosesTheBatch, "first axis must be the 3 runs"),
    ],
    check_forms: [
        (ForgetsTheWeights, "after round 1, the model is not that of client and server"),
        (SendsHalfAModel, "bits_up: booked is not what client and server send"),
    ],
    checks.check_purity: [
        (MovesItsState, "read-only"),
        (FlipsLabels, "second call|y changed"),
        (CountsItsRounds, "a second call gives another state"),
    ],
    checks.check_ownership: [(ReadsWhatItWrote, "still reads")],
    checks.check_resume: [(CountsItsRounds, "resumed after round 1")],
    checks.check_randomness: [(DrawsUndeclared, "it depends on the seed")],
    checks.check_relabelling: [(PrefersTheFirst, "another order")],
    checks.check_equal_clients: [(AddsUp, "equal clients are not one"), (ChargesTheLastTwice, "bits_up")],
    checks.check_batch: [
        (ShrinksToTheMean, "run 0 of the batch"),
        (StopsWithTheFirstLost, "beside a run that is lost"),
    ],
    checks.check_grid: [(TakesTheLongestStep, "step, one value a run")],
    checks.check_refusals: [
        (TakesAnyStep, r"TakesAnyStep\.step = nan is taken"),
        (RefusesWithoutAName, "without its name"),
    ],
    checks.check_cohort_costs: [
        (ChargesEveryone, "it depends on clients outside"),
        (ChargesByNumber, "bits_up: equal cohorts"),
        (AveragesAllThatCompute, "the server's model: a mask of the same clients leads elsewhere"),
    ],
    checks.check_uplink: [(LearnsForNothing, "sends nothing")],
    check_messages: [(SendsHalf, "bits up in round 0")],
    contract.check_secrecy: [
        (ReadsTheData, r"it reads problem\.X: clients' data stay with them"),
        (ReadsTheDataBehind, "has no attribute '__self__'"),
        (AsksACopy, "it reads a copy of the problem"),
        (ListsAttributes, r"it reads problem\.__dict__"),
        (ReadsBehindLocalModels, "it reads _problem of local models"),
    ],
    contract.check_books: [
        (TakesAnotherStep, "books 648 of 1,296 sample gradients"),
        (SolvesBeforehand, "books 648 of 810 sample gradients"),
        (LooksAtHessians, "books 0 of 44 Hessians"),
        (LooksAtLosses, "books 0 of 88 values of losses"),
    ],
    contract.check_exchanges: [
        (LooksAtFiftyPoints, "books 1 exchange a round and needs 50: its clients look at points that"),
        (LooksAtFiftyNoisyPoints, "books 1 exchange a round and needs 50"),
        (LooksAlongALine, "books 1 exchange a round and needs 50"),
        (TakesFiftySigns, "books 1 exchange a round and needs 50"),
        (AveragesTwice, "books 1 exchange a round and needs 2"),
    ],
    contract.check_process: [
        (ChangesTheProcess, r"np\.random \(.*\), np\.seterr, the working folder, the environment"),
        (DrawsFromNumpy, r"it changes np\.random"),
        (Exits, r"test_contract\.py:\d+: Exits ends or forks the process: SystemExit\(0\)"),
        (Forks, r"test_contract\.py:\d+: Forks ends or forks the process: os\.fork"),
    ],
}


@pytest.mark.parametrize(
    "check, broken, says",
    [
        pytest.param(check, broken, says, id=f"{check.__name__}-{getattr(broken, '__name__', 'sound')}")
        for check, table in BROKEN.items()
        for broken, says in [(None, ""), *table]
    ],
)
def test_a_broken_method_is_noticed(check, broken, says):
    sound = {check_forms: TwoForms, check_messages: SaysWhatItSends}.get(check, Sound)
    case = Case(broken or sound, "dense", partial=check is checks.check_cohort_costs)
    expected = (AssertionError, ValueError, AttributeError, ReplifedError)
    with pytest.raises(expected, match=says) if broken else nullcontext():
        check(case)


def test_a_loop_over_the_clients_needs_one_exchange():
    for partial in (False, True):
        case = Case(GoesClientByClient, "dense", partial)
        contract.check_exchanges(case)
        contract.check_books(case)


def test_points_that_the_server_holds_are_sent_at_once_and_others_one_by_one():
    x, y, who = np.ones((1, 3)), np.zeros((1, 3)), np.arange(4)[None]
    for more, expected in (([], 1), ([x / 2], 2), ([x / 2, x / 3], 3)):
        points = CommonPoints((x, y))
        for at in (x, y, *more, *more):
            points.see(Call("per_client_gradients", [np.repeat(at[:, None], 4, axis=1)], np.arange(1), who))
        assert points.exchanges == expected


def test_who_says_why_may_book_less():
    for broken, reason, check in (
        (TakesAnotherStep, "counts_differ", contract.check_books),
        (LooksAtFiftyPoints, "exchanges_differ", contract.check_exchanges),
    ):
        check(Case(type("Declared", (broken,), {reason: "the second is a by-product of the first"}), "dense"))


def test_an_answer_that_is_said_to_be_thrown_away_is_nothing():
    case = Case(ComputesIdly, "dense")
    assert not np.array_equal(case.run(2).state.x, case.run(0).state.x)
    assert np.array_equal(case.run(2, audited=True).state.x, case.run(0).state.x)


def test_a_counter_changes_no_run_and_counts_what_is_taken():
    case = Case(TakesAnotherStep, "dense", partial=True)
    counted, alone = case.run(5, audited=True), case.run(5)
    assert checks.same(counted.state, alone.state)
    np.testing.assert_array_equal(counted.ledger["booked_sample_gradients"], alone.ledger["sample_gradients"])
    np.testing.assert_array_equal(counted.ledger["sample_gradients"], 2 * alone.ledger["sample_gradients"])
    assert differences({name: totals[-1] for name, totals in counted.ledger.items()}) == [
        f"books {np.mean(alone.ledger['sample_gradients'][-1]):,.0f} of "
        f"{2 * np.mean(alone.ledger['sample_gradients'][-1]):,.0f} sample gradients"
    ]
    flagged = Case(LooksAtFiftyPoints, "dense").run(3, audited=True).ledger
    assert flagged["exchanges_needed"][-1, 0] == 50 and flagged["exchanges_booked"][-1, 0] == 1


def test_a_cohort_that_all_runs_share_is_counted_as_one_of_each():
    shared, each = (
        Case(TakesAnotherStep, "dense").run(
            3,
            audited=True,
            cohort=lambda _, n, rows=rows: Participation(np.arange(n) < np.full((rows, 1), 3), None),
        )
        for rows in (1, len(ROWS))
    )
    for kind, counted in each.ledger.items():
        np.testing.assert_array_equal(shared.ledger[kind], counted, kind)


def test_clients_out_of_the_cohort_are_not_asked():
    class AsksEveryone(Sound):
        def models(self, state, problem, ctx):
            problem.client_gradients(state.x)
            return super().models(state, problem, ctx)

    with pytest.raises(AssertionError, match="asks clients that are out of the round's cohort"):
        contract.check_books(Case(AsksEveryone, "dense", partial=True))


def test_before_a_run_a_method_is_refused_that_reads_what_it_wrote(monkeypatch):
    monkeypatch.setattr(contract, "class_of", lambda source: ReadsWhatItWrote)
    said = contract.first_error("mine.py:ReadsWhatItWrote")
    assert "ReadsWhatItWrote.round breaks the contract: it writes to a state that it still reads" in said
    monkeypatch.setattr(contract, "class_of", lambda source: Sound)
    assert contract.first_error("mine.py:Sound") == ""


def test_every_part_is_examined_of_a_method_of_ones_own():
    outcomes = list(examine(TwoForms))
    assert not [one.error for one in outcomes if one.error]
    assert {one.part.partition(" ")[0] for one in outcomes} >= {"State,", "Rounds", "Values", "Equal"}
    broken = {one.part for one in examine(ForgetsTheWeights) if one.error}
    assert [part[:29] for part in broken] == ["Rounds, and the bits of each,"]
