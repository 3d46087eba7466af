"""Federated optimal transport (Section 7): the benchmark's pair of measures, split between clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed import tune
from replifed.algorithms.registry import method_class
from replifed.network.participation import FixedSize
from replifed.partition.clusters import equal_clusters
from replifed.problems.transport import FederatedTransport, Mixture, TrueMap
from replifed.progress import Progress
from replifed.randomness import Streams, generator
from replifed.simulate import History, simulate

_TESTS = 4096
_PUBLIC = 2**14


def problems(settings: dict, table: Any, names: list[int]) -> Iterator[FederatedTransport]:
    """The problem of each repetition: of one true map, with samples and a split of its own.

    Parameters
    ----------
    settings : dict
        Of an experiment of problem "transport".
    table : Table
        Parameters of the two networks behind the true map.
    names : list of int
        The repetitions.
    """
    dim, N = settings["dim"], settings["clients"]
    what, mixture = f"data/transport {dim}", Mixture(dim=dim)
    common = generator(settings["seed"], 0, None, what)
    true_map = TrueMap(table.X, dim, mixture.sample(common, _PUBLIC))
    for name in names:
        rng = generator(settings["seed"], name, None, what)
        held = mixture.sample(rng, settings["samples"])
        cluster = equal_clusters(held, N, int(rng.integers(2**31)))
        clients = np.stack([held[cluster == i] for i in range(N)])
        public = true_map(mixture.sample(rng, _PUBLIC))
        yield FederatedTransport(clients, public, mixture.sample(rng, _TESTS), true_map)


def uvp(data: Any, seen: dict[str, NDArray]) -> NDArray:
    """L2-UVP of the potential's map, in percent."""
    return data.uvp(seen["server"])


def _simulate(
    method: str,
    settings: dict,
    data: FederatedTransport,
    name: int,
    step: float,
    rounds: int,
    every: int,
) -> History:
    shared = {key: settings[key] for key in ("batch", "server_batch", "start_steps", "cycle")}
    if method == "fedmm_ot":
        shared |= {key: settings[key] for key in ("alpha", "server_step", "server_steps")}
    active = max(round(settings["participation"] * data.n_clients), 1)
    return simulate(
        method_class(method)(step=np.array([step]), **shared),
        data,
        Streams(settings["seed"], (name,)),
        rounds,
        metrics={"uvp": uvp},
        record_every=every,
        cohort=FixedSize(active) if active < data.n_clients else None,
    )


def search(method: str, settings: dict, table: Any, progress: Progress | None) -> dict[str, Any]:
    """Search of the step with the lowest L2-UVP, mean over the search's repetitions."""
    chosen = settings["tuning"]
    names, rounds = chosen["replicates"], chosen["rounds"]
    data_sets = list(problems(settings, table, names))
    spent = tune.Spent()

    def score(steps: NDArray) -> NDArray:
        found = []
        for number, step in enumerate(steps):
            if progress is not None:
                progress(f"step {step:g}", number, len(steps))
            last = []
            for name, data in zip(names, data_sets, strict=True):
                history = _simulate(method, settings, data, name, step, rounds, rounds)
                spent.add(history)
                last.append(history.metrics["uvp"][-1, 0])
            found.append(np.mean(last))
        return np.where(np.isfinite(found), found, np.inf)

    found = tune.search(score, tune.Grid.of_steps(chosen["steps"][method], refine=0))
    return {
        "method": method,
        **found.record(),
        "trials": {"replicates": sorted(names)},
        "cost": spent.record(),
    }


def run(method: str, settings: dict, table: Any, progress: Progress | None) -> pd.DataFrame:
    """All repetitions of one method at its step, each with samples and a split of its own."""
    names, frames = settings["replicates"], []
    data_sets = list(problems(settings, table, names))
    linear = float(np.mean([data.linear_uvp() for data in data_sets]))
    for number, (name, data) in enumerate(zip(names, data_sets, strict=True)):
        if progress is not None:
            progress(f"seed {name}", number, len(names))
        step = settings["steps"][method]
        history = _simulate(method, settings, data, name, step, settings["rounds"], settings["record_every"])
        frames.append(
            history.frame(method=method, dim=settings["dim"], step=step, linear_uvp=linear, replicate=name)
        )
    return pd.concat(frames, ignore_index=True)
