"""Accuracy on samples that are neither trained nor tuned on: over all, by client, and of new clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.engine.simulate import Metric
from replifed.errors import ConfigError

ACCURACY, WORST, NEW = "accuracy", "accuracy_worst", "accuracy_new"
# Share of the clients whose mean is `WORST`.
TENTH = 0.1
# Predictions that are held at a time.
_PIECE = 1 << 22


@dataclass(frozen=True)
class TestSet:
    """Samples with their classes, and whose they are.

    Its accuracies are, as far as there are such clients:

    * `accuracy`: mean over the clients that train of each one's share of right samples; where the samples
      belong to none of them, the share of all samples;
    * `accuracy_worst`: mean over the tenth of these clients (rounded up) for which it is lowest;
    * `accuracy_new`: mean over the clients that never take part.
    """

    __test__ = False  # no test, whatever pytest makes of its name

    X: Any  # (n, d), dense or sparse
    y: NDArray  # as the problem has them: -1 and +1, or classes from 0 on
    client: NDArray  # of each sample, (S, n) for S data sets, or (1, n): -1 for none
    clients: int  # that train: from 0 on; those of larger numbers never take part

    def right(self, x: NDArray) -> NDArray:
        """Mask (R, n) of the samples that the models (R, D) classify as they are."""
        runs, (n, d) = len(x), self.X.shape
        columns = x.reshape(runs, d, -1).transpose(1, 0, 2).reshape(d, -1)
        found, step = np.empty((runs, n), bool), max(_PIECE // columns.shape[1], 1)
        for begin in range(0, n, step):
            z = (self.X[begin : begin + step] @ columns).reshape(-1, runs, columns.shape[1] // runs)
            classes = np.where(z[..., 0] > 0, 1, -1) if z.shape[-1] == 1 else z.argmax(axis=-1)
            found[:, begin : begin + step] = (classes == self.y[begin : begin + step, None]).T
        return found

    def by_client(self, right: NDArray) -> NDArray:
        """Share of right samples of each client, known and new ones, (R, K), NaN where it has none."""
        runs, K = len(right), int(self.client.max(initial=-1)) + 1
        sums, counts = np.empty((runs, K)), np.empty((runs, K))
        for run, good in enumerate(right):
            client = self.client[run % len(self.client)]
            held = client >= 0
            counts[run] = np.bincount(client[held], minlength=K)
            sums[run] = np.bincount(client[held], good[held], minlength=K)
        with np.errstate(invalid="ignore"):
            return sums / counts

    def accuracies(self, x: NDArray) -> dict[str, NDArray]:
        """Accuracies of models (R, D) by name, (R,) each."""
        right = self.right(x)
        shares = self.by_client(right)
        known, new = shares[:, : self.clients], shares[:, self.clients :]
        found = {ACCURACY: right.mean(axis=1)}
        if self.known.all():
            found = {ACCURACY: np.nanmean(known, axis=1), WORST: np.array([_worst(one) for one in known])}
        return found | ({NEW: np.nanmean(new, axis=1)} if self.new.all() else {})

    @property
    def samples(self) -> NDArray:
        """Numbers of samples that each data set's accuracies are over, (S,)."""
        held = (self.client >= 0).sum(axis=1)
        return held if self.known.all() else np.full(len(held), len(self.y))

    @property
    def known(self) -> NDArray:
        """Numbers of clients that train and have samples here, (S,)."""
        return np.array([len(np.unique(one[(one >= 0) & (one < self.clients)])) for one in self.client])

    @property
    def new(self) -> NDArray:
        """Numbers of clients that never take part and have samples here, (S,)."""
        return np.array([len(np.unique(one[one >= self.clients])) for one in self.client])

    def metrics(self) -> dict[str, Metric]:
        """The accuracies as metrics of `simulate`; the first one computes all, the others read it."""
        names = [ACCURACY, *([WORST] if self.known.all() else []), *([NEW] if self.new.all() else [])]
        found: dict[str, NDArray] = {}

        def metric(name: str, _: Any, seen: dict[str, NDArray]) -> NDArray:
            if name == ACCURACY:
                found.update(self.accuracies(seen["server"].astype(float)))
            return found[name]

        return {name: partial(metric, name) for name in names}


def _worst(shares: NDArray) -> float:
    ordered = np.sort(shares[~np.isnan(shares)])
    return float(ordered[: max(int(np.ceil(TENTH * len(ordered))), 1)].mean())


def held_out(group: NDArray, share: float, rng: np.random.Generator) -> NDArray:
    """Mask (n,) of samples of which a `share` of each group (n,) is drawn.

    Of a group of two samples or more at least one is drawn and one is not; of one none is.
    """
    out = np.zeros(len(group), bool)
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        count = min(max(round(share * len(rows)), 1), len(rows) - 1)
        out[rng.permutation(rows)[:count]] = True
    return out


def of_pairs(test: Any, problem: Any) -> TestSet:
    """Return the test set of `replifed.run`.

    Parameters
    ----------
    test : pair of features and classes, which belong to no client; or a list of such pairs, one a client:
        first those of the problem, then clients that never take part.
    problem : linear model with classes.
    """
    pairs = [test] if isinstance(test, tuple) else list(test)
    if not pairs or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise ConfigError("test: give a pair of features and classes, or a list of pairs, one a client")
    check_classes(problem.loss_function.name)
    d, C = problem.dim // problem.loss_function.n_outputs, problem.loss_function.n_outputs
    X, y, owner = [], [], []
    for number, (features, classes) in enumerate(pairs):
        features = features if hasattr(features, "tocsr") else np.asarray(features, float)
        classes = np.asarray(classes)
        if features.ndim != 2 or classes.shape != features.shape[:1]:
            raise ConfigError(f"test: features {features.shape} and classes {classes.shape} do not fit")
        if features.shape[1] != d:
            raise ConfigError(f"test: {features.shape[1]} features; the problem has {d}")
        known = np.isin(classes, np.arange(C) if C > 1 else [-1, 1])
        if not known.all():
            expected = f"0 to {C - 1}" if C > 1 else "-1 and +1"
            raise ConfigError(f"test: the class {classes[~known][0]}; the problem has {expected}")
        X.append(features)
        y.append(classes)
        owner.append(np.full(len(classes), -1 if isinstance(test, tuple) else number))
    client = np.concatenate(owner)[None]
    return TestSet(_stacked(X), np.concatenate(y), client, problem.n_clients)


def _stacked(parts: Sequence[Any]) -> Any:
    if any(hasattr(part, "tocsr") for part in parts):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def check_classes(loss: str) -> None:
    """Reject a loss whose targets are no classes."""
    if loss not in ("logistic", "softmax"):
        raise ConfigError(f"test: accuracy is of classes, and the loss {loss} has targets; leave it out")
