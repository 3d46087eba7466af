"""The contract of a method, checked on the settings of its `example` (`replifed check`)."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.guarded import guarded, located
from replifed.algorithms.registry import class_of
from replifed.contract import checks, problems
from replifed.contract.checks import CHANNEL, ROWS, Case, close, expect
from replifed.contract.problems import make
from replifed.engine.audit import exchanges_difference, work_differences
from replifed.engine.exchanges import exchanges_needed
from replifed.errors import ConfigError, ReplifedError, one_line
from replifed.problems.audited import RawDataError
from replifed.randomness import Streams
from replifed.wire.forms import has_forms
from replifed.wire.run import run

ROUNDS = 5


def _everyone(case: Case) -> bool:
    return not case.partial


def _once(case: Case) -> bool:
    """Return whether a case is the first of its method, for checks of settings alone."""
    return not case.partial and not case.changes and case.kind == problems.kinds_for(case.cls.needs)[0]


def _has_forms(case: Case) -> bool:
    # Forms take one data set, and not all settings of variants.
    return case.kind == "dense" and has_forms(case.cls) and set(case.changes) <= {"batch"}


def check_secrecy(case: Case) -> None:
    """It asks for gradients, Hessians and losses, and does not read the clients' data."""
    case.run(2, audited=True)


def check_books(case: Case) -> None:
    """It books all gradients, Hessians and values of losses that it takes, also those of `init`."""
    totals = case.run(4, audited=True).ledger
    found = work_differences({name: values[-1] for name, values in totals.items()})
    expect(not found or declared(case.algorithm(), "counts_differ"), "; ".join(found))


def check_exchanges(case: Case) -> None:
    """Clients look only at points that the exchanges it books can have brought."""
    algorithm = case.algorithm()
    for t in range(3):
        state = case.run(t).state
        needed = exchanges_needed(algorithm, state, make(case.kind), case.context(t))
        _, cost = algorithm.round(state, make(case.kind), case.context(t))
        found = exchanges_difference(np.max(cost.exchanges), needed)
        expect(
            not found or declared(algorithm, "exchanges_differ"),
            f"{found}: its clients look at points that fewer cannot have brought",
        )


def check_process(case: Case) -> None:
    """It leaves random numbers, floating-point errors, folder and environment as they were."""
    with guarded(inspect.getfile(case.cls), case.cls.__name__) as changed:
        algorithm, problem = case.algorithm(), make(case.kind)
        state = algorithm.init(problem, ROWS)
        algorithm.observe(state)
        algorithm.round(state, problem, case.context(0))
    changed += getattr(inspect.getmodule(case.cls), "replifed_changed", [])
    expect(not changed, f"it changes {', '.join(dict.fromkeys(changed))}")


def check_forms(case: Case) -> None:
    """Rounds, and the bits of each, are those of `client` and `server`, message by message."""
    streams, models = Streams(ROWS.seed, ROWS.replicates[:1]), []

    def server(problem: Any, seen: dict[str, NDArray]) -> NDArray:
        models.append(seen["server"][0])
        return np.zeros(1)

    batched = case.run(ROUNDS, streams=streams, metrics={"model": server})
    shared = {"cohort": case.cohort(), "channel": CHANNEL}
    wired = run(case.algorithm(), make(case.kind), streams, ROUNDS, exact=True, **shared)
    for t, (one, other) in enumerate(zip(models, wired.models, strict=True)):
        close(one, other, f"after round {t}, the model is not that of client and server")
    for way, up in (("bits_up", True), ("bits_down", False)):
        booked = np.diff(batched.ledger[way][:, 0])
        close(booked, wired.bits(up), f"{way}: booked is not what client and server send")


# Each check, and the condition of a case on which it is made.
CHECKS: dict[Callable[[Case], None], Callable[[Case], bool]] = {
    checks.check_form: lambda case: True,
    checks.check_purity: lambda case: True,
    checks.check_ownership: lambda case: True,
    checks.check_resume: lambda case: True,
    checks.check_randomness: _everyone,
    checks.check_relabelling: _everyone,
    checks.check_equal_clients: _everyone,
    checks.check_batch: lambda case: True,
    checks.check_grid: _everyone,
    checks.check_refusals: _once,
    checks.check_cohort_costs: lambda case: case.partial,
    checks.check_uplink: _everyone,
    check_secrecy: lambda case: True,
    check_books: lambda case: True,
    check_exchanges: lambda case: not getattr(case.cls, "centralised", False),
    check_process: _once,
    check_forms: _has_forms,
}


class Outcome(NamedTuple):
    """Result of a check on a case."""

    part: str  # of the contract, in words
    case: Case
    error: str  # empty if it is kept


@cache
def kinds(cls: Any) -> list[str]:
    """Return the problems that a method can run on; it may reject some in round 0, such as sparse data."""
    if not isinstance(cls.needs, tuple):
        raise ConfigError(f"needs = {cls.needs!r}: must be a tuple, such as (problems.Gradients,)")
    fit = problems.kinds_for(cls.needs)
    if not fit:
        raise ConfigError(f"needs of {cls.__name__}: no kind of problem has all of them")
    first, *others = fit
    found = [first]
    for kind in others:
        try:
            Case(cls, kind).run(1)
        except ReplifedError:
            continue
        except KeyboardInterrupt:
            raise
        except BaseException:  # an error of the method, which the checks will report
            pass
        found.append(kind)
    return found


def cases(
    cls: Any, name: str = "", variants: Sequence[Mapping[str, Any]] = (), on: Sequence[str] | None = None
) -> list[Case]:
    """Return cases of a method: on all problems that it can run on, and with cohorts if it allows them.

    Parameters
    ----------
    cls : type
    name : str
        Name of the cases.
    variants : sequence of mappings
        Settings that take other paths through the code than those of the example.
    on : sequence of str, optional
        The problems, where they are known; else the method is run on each to find out.
    """
    on = kinds(cls) if on is None else on
    cohorts = (False, True) if cls.partial_participation else (False,)
    return [
        Case(cls, kind, cohort, dict(change), name)
        for kind, cohort, change in itertools.product(on, cohorts, [*_settings(cls), *variants])
        if not cohort or kind in problems.COHORTS
    ]


def _settings(cls: Any) -> list[dict[str, Any]]:
    """Return changes of the example's settings: none; and minibatches, if it omits that option."""
    batch = cls.__dataclass_fields__.get("batch")
    return [{}, {"batch": 4}] if batch is not None and batch.default is None else [{}]


def examine(cls: Any) -> Iterator[Outcome]:
    """Check all parts of the contract on all cases of a method, one after the other."""
    every = cases(cls)
    for check, of in CHECKS.items():
        part = (check.__doc__ or "").partition("\n")[0].rstrip(".")
        for case in filter(of, every):
            yield Outcome(part, case, _error(check, case))


def first_error(source: str) -> str:
    """Return the first error of a custom method, FILE.py:CLASS, in one line; "" if there is none.

    It is imported, and rounds of it are run: does it return the right types, leave its state unchanged, and
    read no more of a state that it owns once it has written to it, and none of the clients' data?
    """
    try:
        cls = class_of(source)
    except ReplifedError as error:
        return str(error)
    try:
        case, *others = cases(cls)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{source}: {describe(error, cls)}"
    file = source.rpartition(":")[0]
    with_cohort = next((other for other in others if other.partial), case)
    for check, of in (
        (checks.check_form, case),
        (checks.check_purity, case),
        (checks.check_ownership, with_cohort),
        (check_secrecy, case),
    ):
        if message := _error(check, of):
            if message.startswith(path := inspect.getfile(cls)):
                return file + message.removeprefix(path)
            named = message.partition(":")[0]
            part = named if named in ("init", "observe") else "round"
            line = inspect.getsourcelines(getattr(cls, part))[1]
            where = file if "(line " in message else f"{file}:{line}"
            return f"{where}: {cls.__name__}.{part} breaks the contract: {message.removeprefix(part + ': ')}"
    return ""


def cohort_error(source: str) -> str:
    """Return what a custom method does wrong with cohorts, in one line; "" for nothing, or without them."""
    with_cohort = [case for case in cases(class_of(source)) if case.partial]
    error = _error(checks.check_cohort_costs, with_cohort[0]) if with_cohort else ""
    return f"{source}: with cohorts it breaks the contract: {error}" if error else ""


def _error(check: Callable[[Case], None], case: Case) -> str:
    try:
        check(case)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an error in a method's code, or its exit, breaks the contract too
        return describe(error, case.cls)
    return ""


def describe(error: BaseException, cls: Any) -> str:
    """Return an exception in one line, with its line in the file of the class."""
    text = one_line(error)
    in_words = isinstance(error, AssertionError | ReplifedError)
    if in_words and not isinstance(error, RawDataError):
        return text
    line = located(error, inspect.getfile(cls)).rpartition(":")[2]
    return (text if in_words else f"{type(error).__name__}: {text}") + (
        f" (line {line})" if line.isdigit() else ""
    )


def declared(algorithm: Any, name: str) -> str:
    """Reason that a method, or its local solver, gives for what it books; "" for none."""
    owners = (algorithm, getattr(algorithm, "solver", None))
    return next((reason for owner in owners if (reason := getattr(owner, name, ""))), "")
