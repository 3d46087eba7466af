"""The two forms of a method, held against each other: all clients at once, and one client and the server."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.contract.checks import CHANNEL, ROWS, Case, close
from replifed.contract.problems import make
from replifed.randomness import Streams
from replifed.wire.run import run

ROUNDS = 5


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
