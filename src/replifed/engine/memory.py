"""Rejection, before the first round, of dense Hessians that do not fit into memory."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

from replifed.algorithms.local_solvers import Exact
from replifed.errors import ReplifedError
from replifed.memory import granted
from replifed.problems.base import Hessian

_GIB = 1 << 30


def refuse_what_does_not_fit(algorithm: Any, problem: Any, runs: int, cohort: int | None = None) -> None:
    """Reject a method if its clients' Hessians alone, in doubles, exceed the free memory.

    Raises
    ------
    ReplifedError
        The Hessians do not fit; the message gives the estimate and the limit in GiB.
    """
    if Hessian in algorithm.needs:
        clients = problem.n_clients
    elif isinstance(getattr(algorithm, "solver", None), Exact):
        clients = problem.n_clients if cohort is None else cohort
    else:
        return
    needed, limit = 8 * runs * clients * problem.dim**2, free()
    if needed > limit:
        raise ReplifedError(
            f"{type(algorithm).__name__} needs {needed / _GIB:.1f} GiB for the Hessians of {clients} clients "
            f"in {problem.dim} coordinates, {runs} runs at a time; {limit / _GIB:.1f} GiB are free: take a "
            "method without Hessians, or fewer features"
        )


def free() -> float:
    """Bytes that this process may still allocate, as far as the system tells."""
    limits = [granted()]
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        limits.append(float(address_space))
    return min(limits)
