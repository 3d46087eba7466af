"""Samples that a comparison keeps for a test, and what is left to train on.

Which samples are kept is drawn once for all repetitions, those of the search too, so that no repetition
trains or tunes on what another one tests. A client's test samples are those of its samples that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.scaling import scaled, statistics
from replifed.engine.accuracy import TestSet, held_out
from replifed.errors import DataError, ReplifedError
from replifed.papers.cross.problems import dense, targets
from replifed.randomness import generator
from replifed.settings.held_out import OFFICIAL, number, share

if TYPE_CHECKING:
    from replifed.papers.cross import settings as of


class Held:
    """A data set and its split without what is kept.

    Parameters
    ----------
    official : table, optional
        The data set's own test set.
    validation : share, optional
        Of the training samples, kept in place of the test's for the search.

    Attributes
    ----------
    table, partition : what `problems.problem` takes. Features are standardised, if the settings say so, with
        the statistics of the samples on which some repetition trains.
    """

    def __init__(
        self,
        settings: of.OnDataSet,
        table: Any,
        partition: Any,
        official: Any = None,
        validation: str | None = None,
    ) -> None:
        self._settings, self._official, self._split = settings, official, partition
        natural = table.client is not None and partition.meta["settings"]["clusters"] == "given"
        group = table.client if natural else table.y
        free = np.ones(len(table.y), bool)
        self._kept = ~free
        if settings.test is not None and settings.test != OFFICIAL:
            self._kept = self._drawn("test", settings.test, group, free)
        self._new = self._never()
        if validation is not None:
            self._kept, kept = self._drawn("validation", validation, group, ~self._kept), self._kept
            clients = {name: np.where(kept, -1, one) for name, one in partition.clients.items()}
            self._split = SimpleNamespace(clients=clients, meta=partition.meta)
            self._official = None
        training = {name: self._training(name, one) for name, one in self._split.clients.items()}
        self.partition = SimpleNamespace(clients=training, meta=partition.meta)
        self.table = table
        if settings.standardise:
            some = np.any([one >= 0 for one in training.values()], axis=0)
            self._scaling = statistics(table.X[some]).scaling()
            self.table = SimpleNamespace(
                X=scaled(table.X, self._scaling), y=table.y, meta=table.meta, client=table.client
            )

    def _drawn(self, purpose: str, text: str, group: NDArray, of: NDArray) -> NDArray:
        """Mask of samples, of which a share is drawn of each client that the data name, or of each class."""
        mask = np.zeros(len(group), bool)
        mask[of] = held_out(group[of], share(text), generator(self._settings.seed, 0, None, purpose))
        return mask

    def _never(self) -> NDArray:
        """Places, among the clients of a repetition, of those that never take part: alike in all."""
        if self._settings.new_clients is None:
            return np.zeros(0, int)
        clients = len(_present(next(iter(self._split.clients.values()))))
        try:
            count = number(self._settings.new_clients, clients)
        except ValueError as error:
            raise ReplifedError(f"{self._settings.dataset}: new_clients: {error}") from error
        return np.sort(generator(self._settings.seed, 0, None, "new clients").permutation(clients)[:count])

    def _training(self, name: int, client: NDArray) -> NDArray:
        """Client of each sample that is trained on, -1 for others."""
        known = np.delete(_present(client), self._new)
        left = np.where(self._kept | ~np.isin(client, known), -1, client)
        if len(gone := np.setdiff1d(known, left)):
            raise DataError(
                f"{self._settings.dataset}: in repetition {name} client {gone[0]} keeps no sample to train "
                "on; take a smaller share for the test, or fewer clients"
            )
        return left

    def test(self, replicates: Sequence[int]) -> TestSet:
        """The test set of some repetitions, whose clients are numbered anew: first those that train."""
        if self._official is not None:
            return self._own_test(replicates)
        numbers = []
        for client in (self._split.clients[name] for name in replicates):
            present = _present(client)
            order = np.concatenate([np.delete(present, self._new), present[self._new]])
            number_of = np.full(int(client.max()) + 2, -1)  # the last one is that of no client
            number_of[order] = np.arange(len(order))
            numbers.append(number_of[client])
        rows = np.flatnonzero(self._kept & np.any([one >= 0 for one in numbers], axis=0))
        y = targets(self._settings, self.table.y[rows])
        client = np.stack([one[rows] for one in numbers])
        X = self.table.X[rows]
        X = X if self._settings.problem == "sparse" else dense(X)
        return TestSet(X, y, client, len(order) - len(self._new))

    def _own_test(self, replicates: Sequence[int]) -> TestSet:
        """The data set's own test set, whose clients are known by their names if the data give the split."""
        table, own, clients = self.table, self._official, 0
        if "surrogate" in (table.meta["kind"], own.meta["kind"]):
            raise DataError(
                f"{own.meta['id']} tests nothing: generated data take the place of it, or of "
                f"{table.meta['id']}; keep a share of the samples instead"
            )
        client = np.full((1, len(own.y)), -1)
        if own.client is not None and self._split.meta["settings"]["clusters"] == "given":
            numbers = {name: k for k, name in enumerate(table.meta["clients"])}
            whose = [numbers.setdefault(name, len(numbers)) for name in own.meta["clients"]]
            rows = []
            for known in (_present(self.partition.clients[name]) for name in replicates):
                order = np.concatenate([known, np.setdiff1d(whose, known)])
                number_of = np.full(len(numbers), -1)
                number_of[order] = np.arange(len(order))
                rows.append(number_of[whose][own.client])
            client, clients = np.stack(rows), len(known)
        X = scaled(own.X, self._scaling) if self._settings.standardise else own.X
        return TestSet(dense(X), targets(self._settings, own.y), client, clients)


def _present(client: NDArray) -> NDArray:
    return np.unique(client[client >= 0])
