"""Histories of a comparison with the time that they would have taken, where `comparison.time` says how fast.

Nothing is run for it: `network.times` computes it from what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from replifed.network import times
from replifed.network.times import Rates, Size
from replifed.settings.held_out import number


class Timed:
    """Inputs whose histories have a column seconds."""

    def __init__(self, inputs: Any, rates: Rates) -> None:
        self._inputs, self._rates = inputs, rates
        self.run = cache(self._run)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inputs, name)

    def _run(self, experiment: str, method: str) -> pd.DataFrame:
        history = self._inputs.run(experiment, method)
        return times.with_seconds(history, size_of(self._inputs, experiment, history), self._rates)

    def histories(self) -> Iterator[pd.DataFrame]:
        """Yield the histories of all runs, each with its experiment as a column."""
        for experiment, method in self._inputs.runs():
            yield self.run(experiment, method).assign(experiment=experiment)


def rates_of(inputs: Any) -> Rates | None:
    """Return what the comparison says of time, if it does."""
    text = getattr(getattr(inputs, "options", None), "time", None)
    return None if text is None else times.rates(text)


def timed(inputs: Any) -> Any:
    """Return inputs whose histories have their time, where it is asked for; else as they are."""
    rates = rates_of(inputs)
    return inputs if rates is None else Timed(inputs, rates)


def size_of(inputs: Any, experiment: str, history: pd.DataFrame) -> Size:
    """Return the size of a problem; clients are those that train, or drawn as its settings say."""
    settings = inputs.experiment(experiment)
    if not inputs.has(f"partition:{experiment}"):
        return times.of_history(history, settings.clients)
    # The clients of a repetition, of which the data may name more; some may be kept from training.
    client = next(iter(inputs.partition(experiment).clients.values()))
    clients = len(np.unique(client[client >= 0]))
    if settings.new_clients is not None:
        clients -= number(settings.new_clients, clients)
    return times.of_history(history, clients)
