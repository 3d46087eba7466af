"""One loop that runs any algorithm on any problem and records a History.

Cohorts, recording, progress and divergence live here, once for all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT, Algorithm, Range, Round, full_only
from replifed.algorithms.client_states import Drawn
from replifed.algorithms.local_solvers import Exact
from replifed.errors import ConfigError, ReplifedError
from replifed.memory import free
from replifed.network.ledger import Cost, Ledger
from replifed.network.participation import Law
from replifed.problems.base import Hessian, require
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.engine.audit import Audit

Metric = Callable[[Any, dict[str, NDArray]], NDArray]
"""Maps a problem and an algorithm's observations to one number a run."""

_ROUNDS = Range(0, whole=True)
# A run has diverged once its objective has grown by this factor; no method here recovers from that.
BLOW_UP = 1e4
_GIB = 1 << 30


def objective(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """F at the server's model."""
    return problem.loss(seen["server"])


def nonzeros(problem: Any, seen: dict[str, NDArray]) -> NDArray:
    """Number of non-zero coordinates of the server's model."""
    return np.count_nonzero(seen["server"], axis=-1)


@dataclass(frozen=True)
class History:
    """Records of R runs at T rounds."""

    rounds: NDArray  # (T,)
    metrics: dict[str, NDArray]  # by name, (T, R); infinite where the run has diverged
    ledger: dict[str, NDArray]  # by name (`network.ledger.Cost`), totals so far, (T, R)
    diverged: NDArray  # a mask, (T, R)
    state: Any  # the algorithm's last one, from which a run can go on

    def take(self, runs: NDArray) -> History:
        """Return the history of some `runs`, given as indices, which may repeat, or as a mask."""
        return History(
            self.rounds,
            {name: values[:, runs] for name, values in self.metrics.items()},
            {name: values[:, runs] for name, values in self.ledger.items()},
            self.diverged[:, runs],
            type(self.state)(*(field[runs] for field in self.state)),
        )

    def frame(self, **labels: Any):
        """A data frame with one row per run and recorded round.

        Its first columns are `labels`, each one value or R values, which identify the runs (replicate, step,
        ...).
        """
        import pandas as pd

        times, runs = self.diverged.shape
        columns: dict[str, Any] = {}
        for name, value in labels.items():
            values = list(value) if isinstance(value, list | tuple | np.ndarray) else [value] * runs
            columns[name] = np.repeat(np.array(values, dtype=object), times)
        columns["round"] = np.tile(self.rounds, runs)
        for name, recorded in {**self.metrics, **self.ledger}.items():
            columns[name] = recorded.T.ravel()
        columns["diverged"] = self.diverged.T.ravel()
        return pd.DataFrame(columns).infer_objects()


def simulate(
    algorithm: Algorithm,
    problem: Any,
    streams: Streams,
    rounds: int,
    *,
    metrics: Mapping[str, Metric] | None = None,
    record_every: int = 1,
    record_from: int = 0,
    schedule: Mapping[str, Callable[[int], bool]] | None = None,
    cohort: Law | None = None,
    channel: Callable[[Streams, int], NDArray] | None = None,
    until: Callable[[dict[str, NDArray]], NDArray] | None = None,
    progress: Callable[[int, int], None] | None = None,
    resume: tuple[int, Any] | None = None,
    audited: bool = False,
) -> History:
    """Run `algorithm` on `problem` for rounds 1 to `rounds`, R runs side by side.

    Parameters
    ----------
    algorithm : Algorithm
    problem : Problem
        Problem with the capabilities that the algorithm needs, passed on unchanged: if its weights differ and
        the algorithm takes plain means, pass `network.participation.weighted_view(type(algorithm), problem)`.
    streams : Streams
        One name per run.
    rounds : int
    metrics : mapping of name to Metric
        `{"objective": objective}` by default. Divergence is decided by the metric called "objective".
    record_every, record_from : int
        Rounds between records, and the first one after the start; start and end are always recorded.
    schedule : mapping of name to callable, optional
        Selects the recorded rounds at which an expensive metric is computed, besides start and end; it is NaN
        at the others. Without the objective, a run counts as diverged only if its model is not finite.
    cohort : callable, optional
        Law of who takes part in a round (`network.participation`); all do by default. The ledger then has
        `took_part`, clients so far, and `empty_rounds`. A round to which nobody comes costs a run nothing,
        and its state stays, unless the method has `steps_alone`.
    channel : callable, optional
        Draws the bits per coordinate that each client may send in a round, (R or 1, N); no limit by default.
    until : callable, optional
        Maps the metrics just recorded, by name, to a mask (R,) of the runs that are done. The simulation and
        its record end early once every run is done or has diverged.
    progress : callable, optional
        Called with (rounds done, rounds) after each round.
    resume : (int, state), optional
        Continue from that round and state; the ledger then starts at zero there.
    audited : bool
        Hide the clients' data from the method and count its use of them: the ledger has the totals of
        `engine.audit.Audit`.

    Raises
    ------
    ReplifedError
        The problem lacks a capability, a setting is out of its range or has neither one value nor one per
        run, or Hessians do not fit into memory.
    """
    if rounds not in _ROUNDS:
        raise ConfigError(f"rounds = {rounds}: must be {_ROUNDS}")
    if record_every not in COUNT:
        raise ConfigError(f"record_every = {record_every}: must be {COUNT}")
    if resume is not None and resume[0] not in Range(0, rounds, whole=True):
        raise ConfigError(f"resume from round {resume[0]}: must be {Range(0, rounds, whole=True)}")
    if resume is not None and any(len(field) != len(streams) for field in resume[1]):
        raise ReplifedError(f"resume: the state must have {len(streams)} runs, as many as streams")
    _check_lengths(algorithm, len(streams))
    require(problem, algorithm.needs, type(algorithm).__name__)
    if cohort is not None and not algorithm.partial_participation:
        raise ReplifedError(full_only(type(algorithm)))
    refuse_what_does_not_fit(algorithm, problem, len(streams), getattr(cohort, "size", None))
    metrics = {"objective": objective} if metrics is None else metrics
    begin = resume[0] if resume is not None else 0
    audit, given = None, problem
    if audited:
        from replifed.engine.audit import Audit

        audit = Audit(problem, len(streams), range(begin, rounds), cohorts=cohort is not None)
        given = audit.problem
    state = resume[1] if resume is not None else algorithm.init(given, streams)
    due = {t for t in range(begin + 1, rounds + 1) if t >= record_from and t % record_every == 0} | {rounds}

    def taken(name: str, t: int) -> bool:
        return schedule is None or name not in schedule or t in (begin, rounds) or schedule[name](t)

    ledger = Ledger(len(streams), cohorts=cohort is not None)
    recorder = _Recorder(problem, metrics, taken, ledger if audit is None else audit)
    alive = np.ones(len(streams), dtype=bool)
    # Runs that diverge overflow; the recorder marks them, so warnings are off.
    with np.errstate(over="ignore", invalid="ignore"):
        recorder.record(begin, algorithm.observe(state), alive)
        for t in range(begin, rounds):
            now = streams.at(t)
            who = None if cohort is None else cohort(now, problem.n_clients)
            active, chosen, *weights = who or (None, None)
            came = None if active is None else np.broadcast_to(active.sum(axis=1), alive.shape)
            budget = None if channel is None else channel(now, problem.n_clients)
            empty = came is not None and not came.all() and not getattr(algorithm, "steps_alone", False)
            # Others may hold a state from which a run goes on; those of `init` and of rounds are the loop's.
            in_place = (t > begin or resume is None) and not empty
            ctx = Round(t, active, budget, now, chosen, in_place, *weights)
            if audit is not None:
                audit.open(algorithm, state, ctx)
            before, cost = state, Cost(0, 0, 0)
            if not empty or np.any(came):
                state, cost = algorithm.round(state, given, ctx)
            if empty and came is not None:
                state = kept(state, before, ~came.astype(bool))
            seen = algorithm.observe(state)
            if audit is None:
                ledger.add(cost, alive, came)
            else:
                audit.close(cost, alive, came, seen["server"])
            alive &= np.isfinite(seen["server"]).all(axis=-1)
            if t + 1 in due:
                recorder.record(t + 1, seen, alive)
            if progress is not None:
                progress(t + 1, rounds)
            if not alive.any():
                recorder.fill(sorted(due), alive)
                break
            if not alive.all():
                # Diverged runs become zero: their overflows would slow down the others.
                state = type(state)(*(_replaced(field, ~alive, None) for field in state))
            if until is not None and t + 1 in due and (until(recorder.values()) | ~alive).all():
                break
    return recorder.history(state)


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


def _check_lengths(algorithm: Algorithm, runs: int) -> None:
    """Reject array settings, of the algorithm or its local solver, that do not have one value per run."""
    for owner in (algorithm, getattr(algorithm, "solver", None)):
        for field in fields(owner) if is_dataclass(owner) else ():
            value = getattr(owner, field.name)
            if isinstance(value, np.ndarray) and value.shape not in ((), (1,), (runs,)):
                raise ConfigError(
                    f"{type(owner).__name__}.{field.name} has shape {value.shape}: must be a number, or "
                    f"{runs}, one a run"
                )


class _Recorder:
    """Collects metrics and ledger at the recorded rounds."""

    def __init__(
        self,
        problem: Any,
        metrics: Mapping[str, Metric],
        taken: Callable[[str, int], bool],
        ledger: Ledger | Audit,
    ) -> None:
        self._problem, self._metrics, self._taken, self.ledger = problem, metrics, taken, ledger
        # The round, its metrics, the ledger's totals, and which runs have diverged.
        self._records: list[Any] = []

    def record(self, t: int, seen: dict[str, NDArray], alive: NDArray) -> None:
        """Record round `t`; remove runs whose objective has blown up from the mask `alive`, in place."""
        due = {name: of for name, of in self._metrics.items() if self._taken(name, t)}
        values = {name: np.asarray(of(self._problem, seen), float) for name, of in due.items()}
        if "objective" in values:
            f = values["objective"]
            start = self._records[0][1]["objective"] if self._records else f
            alive &= np.isfinite(f) & (f <= BLOW_UP * np.maximum(np.abs(start), 1.0))
        self._append(t, {name: np.where(alive, value, np.inf) for name, value in values.items()}, alive)

    def values(self) -> dict[str, NDArray]:
        """The metrics recorded last."""
        return self._records[-1][1]

    def fill(self, due: Sequence[int], alive: NDArray) -> None:
        """Fill in the rounds that are not simulated because all runs have diverged."""
        lost = {name: np.full(len(alive), np.inf) for name in self._metrics}
        for later in due:
            if later > self._records[-1][0]:
                self._append(later, lost, alive)

    def _append(self, t: int, values: dict[str, NDArray], alive: NDArray) -> None:
        none = np.full(len(alive), np.nan)
        values = {name: values[name] if self._taken(name, t) else none for name in self._metrics}
        self._records.append((t, values, {name: a.copy() for name, a in self.ledger.totals.items()}, ~alive))

    def history(self, state: Any) -> History:
        rounds, values, totals, diverged = zip(*self._records, strict=True)
        return History(np.array(rounds), _stacked(values), _stacked(totals), np.stack(diverged), state)


def _stacked(records: Sequence[dict[str, NDArray]]) -> dict[str, NDArray]:
    return {name: np.stack([record[name] for record in records]) for name in records[0]}


def kept(state: Any, before: Any, runs: NDArray) -> Any:
    """State with that of `before` in the mask `runs` (R,)."""
    return type(state)(*(_replaced(a, runs, b) for a, b in zip(state, before, strict=True)))


def _replaced(field: Any, runs: NDArray, by: Any) -> Any:
    """Field of a state with that of `by`, or zeros, in the mask `runs` (R,)."""
    if isinstance(field, Drawn):
        return field.replaced(runs, by)
    return np.where(runs.reshape(-1, *(1,) * (field.ndim - 1)), 0 if by is None else by, field)
