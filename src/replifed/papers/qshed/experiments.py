"""Runs of the paper: methods on two data sets, over channels without and with fading.

A `case` changes some settings: the paper leaves the renewal set, the quantiser and the line search open, and
the experiments on these choices change one of them at a time. A `variant` is a way to run one method.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from replifed.algorithms.newton_type import Armijo
from replifed.algorithms.registry import method_class
from replifed.engine.plans import Planned, execute, in_one_table
from replifed.engine.simulate import History, simulate
from replifed.network.fading import Constant, Rayleigh
from replifed.operators.bit_allocation import allocate
from replifed.papers.qshed.hessians import errors
from replifed.papers.qshed.paper import PRINTED_BITS, PRINTED_VALUES
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.minimiser import minimiser
from replifed.problems.sparse import SparseLinearModel
from replifed.progress import Progress, silent
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    import pandas as pd

    from replifed.papers.qshed.settings import Changes, Experiment

# These send what they send, whatever the channel.
UNLIMITED = ("giant", "newton", "gradient_descent")

# Rounds of these work on one device's matrix after the other, so that repetitions gain nothing side by side;
# alone, each ends when it has converged, and stays there in what is drawn.
APART = ("fednl",)

# Settings of the problem and the channel, which change every method.
_COMMON = {"budget", "l2", "split"}

# Gaps below this share of f* are rounding error.
FLOOR = 1e-13


# --- Problems ------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A problem of some repetitions, side by side."""

    replicates: tuple[int, ...]
    problem: Any  # with one data set a repetition
    minimum: NDArray  # f*, shape (R,), by Newton's method to a gradient of 1e-13


def problems(settings: Experiment, table: Any, *, apart: bool = False) -> Iterator[Drawn]:
    """Draw the devices' samples, uniformly without replacement, anew for each repetition.

    Where the `split` is "labels", they are sorted by class before they go to one device after the other.
    Dense data of all repetitions make one problem, unless they are wanted `apart`. Sparse ones always are: a
    run of 300 features keeps 8 x 300 x 300 numbers in several arrays.
    """
    N, m, loss, l2 = settings.clients, settings.samples, loss_named("logistic"), settings.l2
    names, sparse = tuple(settings.replicates), sp.issparse(table.X)
    for replicates in [(name,) for name in names] if apart or sparse else [names]:
        streams = (generator(settings.seed, name, None, "data") for name in replicates)
        # Samples of all devices, device after device.
        rows = [rng.permutation(len(table.y))[: N * m] for rng in streams]
        if settings.split == "labels":
            rows = [one[np.argsort(table.y[one], kind="stable")] for one in rows]
        y = np.stack([_labels(settings, table.y[one]) for one in rows])
        problem: Any
        if sparse:
            X, device = sp.csr_array(table.X)[rows[0]], np.repeat(np.arange(N), m)
            problem = SparseLinearModel(X, y[0], loss, device, l2=l2)
        else:
            shape = (len(replicates), N, m)
            X = np.stack([_features(settings, table.X[one]) for one in rows])
            problem = DenseLinearModel(X.reshape(*shape, -1), y.reshape(shape), loss, l2=l2)
        yield Drawn(replicates, problem, problem.loss(minimiser(problem, len(replicates))))


def _labels(settings: Experiment, y: NDArray) -> NDArray:
    """+1 for the positive class, -1 for the rest; labels that are so already are kept."""
    positive = settings.positive
    return np.asarray(y, float) if positive is None else np.where(y == positive, 1.0, -1.0)


def _features(settings: Experiment, images: NDArray) -> NDArray:
    """Pixels in [0, 1], their leading principal components, and a constant."""
    from scipy.linalg import eigh

    X = np.asarray(images, dtype=float) / settings.pixel_scale
    components = settings.components
    if components is not None:
        X = X - X.mean(axis=0)
        features = X.shape[1]
        leading = (features - components, features - 1)
        V = eigh(X.T @ X, subset_by_index=leading)[1][:, ::-1]
        V = V * np.where(np.take_along_axis(V, np.abs(V).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)
        X = X @ V
    return np.hstack([X, np.ones((len(X), 1))]) if settings.intercept else X


# --- Curves --------------------------------------------------------------------------------------


def algorithm(method: str, settings: Experiment) -> Any:
    """Build `method` with those of the settings that it has."""
    kept = {name: value for name, value in settings.plain().items() if name in _fields(method)}
    if kept.get("line_search") is not None:
        kept["line_search"] = Armijo(**kept["line_search"])
    return method_class(method)(**kept)


def _fields(method: str) -> set[str]:
    return {field.name for field in fields(method_class(method)) if field.init}


def channel(name: str, settings: Experiment) -> Callable[[Streams, int], NDArray]:
    """The channel called "constant" or "rayleigh"."""
    if name == "constant":
        return Constant(settings.budget)
    return Rayleigh(settings.budget, **settings.fading.plain())


def cases(method: str, settings: Experiment) -> dict[str, Changes]:
    """The cases that change something for `method`, with the settings that they change."""
    known = _fields(method) | _COMMON
    return {
        name: changed
        for name, changed in settings.cases.items()
        if not changed.model_fields_set or known & changed.model_fields_set
    }


def run(
    method: str,
    settings: Experiment,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Run all cases, variants, channels and seeds of `method`."""
    if settings.kind == "allocation":
        return _allocations(method, settings, table, progress)
    if settings.kind == "hessians":
        return _hessians(method, settings, table, progress)
    return execute(method, settings.seed, _plans(method, settings, table), progress)


def _plans(method: str, settings: Experiment, table: Any) -> Iterator[Planned]:
    """A curve for each case, variant and channel; `gap` is f - f*, at least rounding error."""
    drawn: dict[tuple, list[Drawn]] = {}  # cases that change neither ridge nor split share the problems
    for case, changed in cases(method, settings).items():
        for variant, own in settings.variants.get(method, {"": None}).items():
            merged = settings.with_(*filter(None, (changed, own)))
            key = merged.l2, merged.split
            if key not in drawn:
                drawn[key] = list(problems(merged, table, apart=method in APART))
            channels = ["constant"] if method in UNLIMITED else merged.channels
            for name, (replicates, problem, minimum) in itertools.product(channels, drawn[key]):
                floor = FLOOR * np.maximum(1.0, np.abs(minimum))
                end = np.maximum(merged.stop, floor)
                yield Planned(
                    algorithm=algorithm(method, merged),
                    problem=problem,
                    replicates=replicates,
                    rounds=merged.rounds,
                    labels={"variant": variant, "case": case, "channel": name, "replicate": replicates},
                    derived={"gap": partial(_gap, minimum, floor)},
                    options={"channel": channel(name, merged), "until": partial(_below, minimum, end)},
                )


def _gap(minimum: NDArray, floor: NDArray, history: History) -> NDArray:
    return np.maximum(history.metrics["objective"] - minimum, floor)


def _below(minimum: NDArray, end: NDArray, now: dict[str, NDArray]) -> NDArray:
    return now["objective"] - minimum <= end


# --- Section IV-A's example ----------------------------------------------------------------------


def _allocations(method: str, settings: Experiment, table: Any, progress: Progress) -> pd.DataFrame:
    """Every device's eigenvalues and the bits that its eigenvectors have, round by round."""
    frames = []
    for drawn in problems(settings, table):
        streams = Streams(settings.seed, drawn.replicates)
        built, limits = algorithm(method, settings), channel(settings.channels[0], settings)
        state = built.init(drawn.problem, streams)
        for t in range(settings.rounds):
            progress("rounds", t, settings.rounds)
            before = state
            state = simulate(
                built, drawn.problem, streams, t + 1, channel=limits, resume=(t, state), metrics={}
            ).state
            budget = limits(streams.at(t), drawn.problem.n_clients)
            frames.append(_allocation_columns(drawn, t + 1, before, state, budget))
    return in_one_table(frames)


def _allocation_columns(drawn: Drawn, t: int, before: Any, state: Any, budget: NDArray) -> dict[str, Any]:
    R, N, n = state.bits.shape
    replicate, device, vector = (axis.ravel() for axis in np.indices((R, N, n)))
    renewed = (state.values != before.values).any(axis=-1)
    return {
        "replicate": np.array(drawn.replicates)[replicate],
        "round": t,
        "device": device + 1,
        "vector": vector + 1,
        "eigenvalue": state.values.ravel(),
        "bits": state.bits.ravel(),
        "budget": np.broadcast_to(budget, (R, N))[replicate, device],
        "renewed": renewed[replicate, device],
    }


def _hessians(method: str, settings: Experiment, table: Any, progress: Progress) -> pd.DataFrame:
    """Errors of every device's quantised Hessians, of all cases, which change the overload alone."""
    changes = cases(method, settings)
    overloads = {case: settings.with_(changed).overload for case, changed in changes.items()}
    frames: list[dict[str, Any]] = []
    done = 0
    for drawn in problems(settings, table):
        progress("repetitions", done, len(settings.replicates))
        frames += errors(settings, drawn, overloads)
        done += len(drawn.replicates)
    return in_one_table(frames)


def nearest_spectrum(history: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """The new Hessian, of any device and round, whose leading eigenvalues come closest to the printed ones.

    Returns its lines of the history, by vector, and the largest of the eleven differences for every Hessian.
    """
    printed = np.array(PRINTED_VALUES)
    leading = history[history["renewed"] & (history["vector"] <= len(printed))]
    keys = ["replicate", "round", "device"]
    table = leading.set_index([*keys, "vector"])["eigenvalue"].unstack()  # noqa: PD010
    distances = np.abs(table - printed).max(axis=1)
    chosen = history.set_index(keys).loc[distances.idxmin()].reset_index()
    return chosen.sort_values("vector"), distances


def example_bits(values: NDArray, b_max: int) -> NDArray:
    """Bits that the heuristic of Section IV-C gives a fresh spectrum with the printed example's budget."""
    fresh = np.zeros(len(values), dtype=int)
    return allocate(values, np.array(0), fresh, np.array(sum(PRINTED_BITS)), b_max)
