"""FedIterHT on digits, of which each client holds two, with a local threshold in each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.cohort import Cohort
from replifed.algorithms.registry import method_class
from replifed.network.ledger import Cost, sparse_bits
from replifed.operators.hard_threshold import hard_threshold
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import objective, simulate

VARIANTS = ("paper", "class")
"""Threshold over all weights, as in Algorithm 2, or tau / C weights of each of the C classes."""


class State(NamedTuple):
    """The server's model, and what part of the clients' models lay in classes that they do not see.

    Attributes
    ----------
    x : array, shape (1, D)
    unseen : array, shape (1,)
        After the local steps that led to x; zero before the first.
    """

    x: NDArray
    unseen: NDArray


def unseen_classes(y: NDArray, client: NDArray) -> NDArray:
    """Whether each client holds no sample of each class, shape (N, C)."""
    seen = np.zeros((client.max() + 1, int(y.max()) + 1), dtype=bool)
    seen[client, y] = True
    return ~seen


def share_unseen(u: NDArray, unseen: NDArray) -> float:
    """Mean over clients of the share of a model's non-zeros that belong to unseen classes."""
    clients, classes = unseen.shape
    count = np.count_nonzero(u.reshape(clients, -1, classes), axis=1)
    return float(np.mean((count * unseen).sum(axis=1) / np.maximum(count.sum(axis=1), 1)))


def threshold(u: NDArray, tau: int, variant: str, classes: int) -> NDArray:
    """Keep the largest tau weights of all, or tau / C of each class."""
    if variant == "paper":
        return hard_threshold(u, tau)
    by_class = u.reshape(*u.shape[:2], -1, classes).swapaxes(-1, -2)
    return hard_threshold(by_class, tau // classes).swapaxes(-1, -2).reshape(u.shape)


def variant_of(method: type, variant: str, unseen: NDArray) -> type:
    """Return FedIterHT, given as `method`, with one of `VARIANTS`, and its clients' supports observed."""

    @dataclass(frozen=True, kw_only=True)
    class Variant(method):
        def init(self, problem: Any, streams: Streams) -> State:
            return State(super().init(problem, streams).x, np.zeros(len(streams)))

        def round(self, state: State, problem: Any, ctx: Any) -> tuple[State, Cost]:
            K, tau, classes = self.local_steps, self.sparsity, unseen.shape[1]
            cohort, local = Cohort(problem, ctx), problem.local(state.x, sparsity=tau)
            u = local.start  # line 3
            for batch in cohort.minibatches(K, self.batch):  # lines 4-5
                u = threshold(u - self.step * local.gradient(u, batch), tau, variant, classes)  # lines 6-7
            x = hard_threshold(local.mean(u), tau)  # line 10
            message = cohort.size * sparse_bits(tau, problem.dim)
            samples = K * cohort.samples(self.batch)
            cost = Cost(message, message, iterations=K, sample_gradients=samples)
            return State(x, np.array([share_unseen(u, unseen)])), cost

        def observe(self, state: State) -> dict[str, NDArray]:
            return {"server": state.x, "unseen": state.unseen}

    return Variant


def run(
    method: str, settings: dict, make_problem: Any, table: Any, partition: Any, progress: Progress | None
) -> pd.DataFrame:
    """Run both variants on every repetition; columns server and local are shares of non-zeros.

    Parameters
    ----------
    make_problem : callable
        `experiments.problem`.
    """
    (K,), frames = settings["local_steps"], []
    for replicate in settings["replicates"]:
        clients = make_problem(settings, "", replicate, table, partition)
        unseen = unseen_classes(table.y, partition.clients[replicate])

        def of_server(problem: Any, seen: dict[str, NDArray], unseen: NDArray = unseen) -> NDArray:
            model = np.broadcast_to(seen["server"][:, None], (1, len(unseen), problem.dim))
            return np.array([share_unseen(model, unseen)])

        metrics = {"objective": objective, "server": of_server, "local": lambda _, seen: seen["unseen"]}
        for number, variant in enumerate(VARIANTS):
            if progress is not None:
                progress(f"{variant} seed {replicate}", number, len(VARIANTS))
            built = variant_of(method_class(method), variant, unseen)(
                step=settings["step"],
                sparsity=settings["sparsity"],
                local_steps=K,
                batch=settings["batch"],
            )
            streams = Streams(settings["seed"], (replicate,))
            history = simulate(built, clients, streams, settings["rounds"], metrics=metrics)
            frames.append(
                history.frame(
                    method=method,
                    variant=variant,
                    local_steps=K,
                    step=settings["step"],
                    replicate=replicate,
                )
            )
    return pd.concat(frames, ignore_index=True)
