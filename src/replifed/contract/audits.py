"""Parts of the contract that a counter between method and problem watches, and global state."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from replifed.algorithms.guarded import guarded
from replifed.contract.checks import ROWS, Case, expect
from replifed.contract.problems import make
from replifed.engine.audit import exchanges_difference, work_differences
from replifed.engine.exchanges import exchanges_needed


def declared(algorithm: Any, name: str) -> str:
    """Reason that a method, or its local solver, gives for what it books; "" for none."""
    owners = (algorithm, getattr(algorithm, "solver", None))
    return next((reason for owner in owners if (reason := getattr(owner, name, ""))), "")


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
