"""Bytes of messages beside the ledger's bits: of each method with client and server, and by dimension.

    python wire.py                                       # a table; docs/wire.md has its main numbers
    python wire.py --figure ../docs/wire.webp --flower BYTES

`--flower` is what Flower adds to a message, which tests/flower_loopback.py measures.
"""

from __future__ import annotations

import timing  # noqa: F401 # isort: skip, sets the number of threads

import argparse
from pathlib import Path

import numpy as np

from replifed.algorithms.registry import METHODS, method_class
from replifed.engine.simulate import simulate
from replifed.network.fading import Constant
from replifed.problems.clients import from_clients
from replifed.randomness import Streams
from replifed.wire import codec
from replifed.wire.forms import MODULES
from replifed.wire.messages import Dense, Eigenpairs, Part, Sparse
from replifed.wire.run import run

N, M, D, ROUNDS = 10, 60, 40, 10
SIZES = np.unique(np.logspace(1, 6, 21).astype(int))


def problem():
    rng = np.random.default_rng(1)
    clients = [
        (rng.normal(size=(M, D)) / np.sqrt(np.arange(1, D + 1)), rng.choice([-1.0, 1.0], M)) for _ in range(N)
    ]
    return from_clients(clients, loss="logistic", l2=0.1)


def row(name: str) -> str:
    """What a method sends a client and round, and how far it ends from where nothing is rounded."""
    method, data, streams = method_class(name).example(), problem(), Streams(1, (1,))
    shared = {"channel": Constant(20)}
    wired = run(method, data, streams, ROUNDS, **shared)
    batched = simulate(method, data, streams, ROUNDS, metrics={}, **shared)
    x = method.observe(batched.state)["server"][0]
    apart = np.abs(wired.models[-1] - x).max() / np.abs(x).max()
    each = N * ROUNDS
    booked = [batched.ledger[way][-1, 0] / each / 8 for way in ("bits_up", "bits_down")]
    sent = [wired.bits(way).sum() / each / 8 for way in (True, False)]
    heads = [sum(one.overhead for one in wired.sent if one.up is way) / each for way in (True, False)]
    messages = len(wired.sent) / each
    numbers = (f"{booked[0]:.0f}", f"{sent[0]:.0f}", f"{heads[0]:.0f}", f"{booked[1]:.0f}", f"{sent[1]:.0f}")
    return (
        f"| {type(method).__name__} | {' | '.join(numbers)} | {heads[1]:.0f} | {messages:.1f} | {apart:.0e} |"
    )


def lengths(part: Part) -> tuple[float, int]:
    """Bytes that the ledger counts, and all of a message."""
    data = codec.encode([part], 0, 0, 0)
    return codec.size(data).bits / 8, len(data)


def draw(file: Path, flower: float) -> None:
    """Draw bytes of a message over the dimension."""
    import matplotlib.pyplot as plt

    def sparse(d: int) -> Sparse:
        k = max(d // 20, 1)
        return Sparse(np.where(np.arange(d) < k, 1.0, 0.0), k)

    kinds = {
        "dense, 32 bits": lambda d: Dense(np.ones(d)),
        "eigenpair, 16 bits a coordinate": lambda d: Eigenpairs(np.ones((1, d + 1)), 16),
        "sparse, one in 20": sparse,
    }
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (label, make), colour in zip(kinds.items(), ("#0072b2", "#d55e00", "#009e73"), strict=True):
        booked, whole = np.array([lengths(make(int(d))) for d in SIZES]).T
        axes.loglog(SIZES, booked, color=colour, label=f"{label}: ledger")
        axes.loglog(SIZES, whole, "o", color=colour, ms=3, mfc="none", label="with head and checksum")
        if flower:
            axes.loglog(SIZES, whole + flower, ":", color=colour, label="over Flower")
    axes.set(xlabel="coordinates D of the model", ylabel="bytes of a message")
    axes.legend(fontsize=7, frameon=False, ncols=1)
    axes.grid(alpha=0.25)
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figure", type=Path, metavar="FILE")
    parser.add_argument("--flower", type=float, default=0.0, metavar="BYTES")
    arguments = parser.parse_args()
    if arguments.figure:
        draw(arguments.figure, arguments.flower)
        return
    print("| method | up: booked | sent | heads | down: booked | sent | heads | messages | apart |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in METHODS:
        if method_class(name).__name__ in MODULES:
            print(row(name), flush=True)


if __name__ == "__main__":
    main()
