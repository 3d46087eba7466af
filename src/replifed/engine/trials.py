"""Trials of step sizes: their data, rounds, score and cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.base import Algorithm
from replifed.engine.perturbed import of_runs, simulate_perturbed
from replifed.engine.search import Grid, Search, search, search_each
from replifed.engine.simulate import History, Metric, objective, simulate
from replifed.progress import Progress, silent
from replifed.randomness import Streams

# Number of data sets on which every step is scored.
SCORED = 3
# If no step is stable, this many are scored on more data sets, and the best of them is selected.
_LEADERS = 5
# A run is dropped whose objective is, at the end of two stages in a row, above `_HOPELESS` times its value at
# the start. In FedHT's Simulation II, where objectives leap most, no step near the best does so.
_HOPELESS = 2.0
# A step is tried on further data sets if its descent on the first is at least this share of the best one's.
_BEHIND = 0.5
# Of what a search has tried, the better half by this share of the rounds is run to the end, and one more:
# long steps are ahead early, and the best at the end is often a little shorter.
_RANKED = 1 / 3
# Approximate number of records in the last rounds.
_RECORDED = 5

Runnable = Algorithm | Callable[[NDArray, NDArray], Algorithm]
"""The algorithm of R runs, or a function of indices of runs and factors, as in `simulate_perturbed`."""


@dataclass
class Spent:
    """Cost of a search: runs, their rounds, and their traffic in bits, up and down."""

    runs: int = 0
    rounds: int = 0
    bits: float = 0.0
    replicates: set[int] = field(default_factory=set)  # names of the repetitions that were run

    def add(self, history: History, started: bool = True) -> None:
        """Add a stage of some runs; those that continue from an earlier stage are not counted again."""
        R = history.diverged.shape[1]
        self.runs += R if started else 0
        self.rounds += R * int(history.rounds[-1] - history.rounds[0])
        self.bits += float(history.ledger["bits_up"][-1].sum() + history.ledger["bits_down"][-1].sum())

    def __str__(self) -> str:
        if not self.runs:
            return "none"
        return f"{self.runs:,.0f} runs, {self.rounds:,.0f} rounds, {self.bits:.2g} bits"

    def record(self) -> dict[str, Any]:
        """Cost of the search, for a JSON file."""
        return {"runs": self.runs, "rounds": self.rounds, "bits": self.bits}

    def of_trials(self) -> dict[str, Any]:
        """Entries of a JSON file: the replicates that were run, and the cost."""
        return {"trials": {"replicates": sorted(self.replicates)}, "cost": self.record()}


@dataclass(frozen=True)
class Check:
    """Settings for the check of a step's stability, see `perturbed`."""

    data_sets: int = SCORED  # number of data sets, the first ones
    rounds: int | None = None  # of a run, at most; None for those of a trial
    tail: float | None = None  # share of the rounds, at the end, that are compared; None for that of a trial
    records: int = _RECORDED  # approximate number of records in the tail


@dataclass
class Standing:
    """Results so far of searches that run side by side, by the number of the search."""

    reached: dict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))  # by stage
    best: dict[int, float] = field(default_factory=lambda: defaultdict(lambda: np.inf))  # score to the end

    def lower(self, searches: NDArray, scores: NDArray) -> None:
        """Update the best scores of `searches` (R,) with the `scores` (R,) of completed runs."""
        for number, score in zip(searches.tolist(), scores.tolist(), strict=True):
            self.best[number] = min(self.best[number], score)

    def limits(
        self, searches: NDArray, stage: int, values: NDArray, survivors: Callable[[int], int]
    ) -> NDArray:
        """For each run (R,), the worst value with which a run of its search continues after a stage.

        Of the n runs of a search that have reached the stage, these with `values` (R,) included, the best
        `survivors(n)` continue.
        """
        for number, value in zip(searches.tolist(), values.tolist(), strict=True):
            if np.isfinite(value):
                self.reached[number, stage].append(value)
        worst = {}
        for number in set(searches.tolist()):
            so_far = sorted(self.reached[number, stage])
            worst[number] = so_far[: survivors(len(so_far))][-1] if so_far else np.inf
        return np.array([worst[number] for number in searches.tolist()])


@dataclass(frozen=True)
class Trials:
    """Trials of step sizes: their data, number of rounds, and score.

    The score is the mean of the metric over `tail`, a share of the rounds, at the end. If `tail` is zero, it
    is the last round's metric, and a step with a jumping objective may win by a lucky last round.

    Runs advance in stages. Most steps of a coarse grid diverge or raise the objective in their first rounds;
    they are pruned after a stage, and the metric at that time is their score. On the first data set, after
    a third of the rounds, runs outside the better half of their search's trials are pruned, too.
    """

    replicates: Sequence[int]  # names of data sets: the first three for every step, others if none is stable
    problem: Callable[[int], Any]  # of a replicate, with data that all runs share
    seed: int  # the experiment's
    rounds: int  # of a trial
    tail: float = 0.0
    metric: Metric = objective  # lower is better; a run whose metric blows up has diverged
    check: Check | None = field(default_factory=Check)  # None if steps need not be stable
    # Where searches differ in their data, too: maps a problem and the number of each run's search to theirs.
    of_searches: Callable[[Any, NDArray], Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of `simulate`, such as the cohort
    progress: Progress = silent
    spent: Spent = field(default_factory=Spent)

    @property
    def stages(self) -> Sequence[int]:
        """Rounds after which runs are pruned."""
        return 1, 4, 12

    @property
    def ranked(self) -> int:
        """Round after which only the better half continues."""
        return max(round(_RANKED * self.rounds), 1)

    @property
    def tail_rounds(self) -> int:
        """Number of the rounds, at the end, whose mean is the score."""
        return max(round(self.tail * self.rounds), 1)

    @cached_property
    def problems(self) -> list[tuple[int, Any]]:
        """Pairs of replicate and problem on which every step is scored."""
        return [(replicate, self.problem(replicate)) for replicate in self.replicates[:SCORED]]

    def scores(
        self, algorithm: Runnable, searches: NDArray, standing: Standing | None = None
    ) -> tuple[NDArray, NDArray]:
        """Mean score over the data sets, (R,), infinite for runs that diverged, and a mask of mere estimates.

        A run stops after the first data set if it was pruned there, or if its descent is below `_BEHIND`
        times the descent of its search's best run. The estimate of its score is its score on the first data
        set plus the largest increase of another run's mean by the other data sets; otherwise it would win if
        the first data set had the lowest objectives. A dropped run whose estimate is below all scores of its
        search's completed runs is run to the end after all.

        Parameters
        ----------
        algorithm : of R runs
        searches : array, shape (R,)
            Number of the search to which each run belongs.
        standing : Standing, optional
            Results of these searches so far, which this call updates; without it, no worse half is dropped.
        """
        first, *others = self.problems
        kept = np.ones(len(searches), bool)
        if standing is None:
            [trial] = self._run(algorithm, [first], searches, _prune_rising)
        else:
            prune, stages = partial(self._prune_worse_half, kept, standing), {*self.stages, self.ranked}
            [trial] = self._run(algorithm, [first], searches, prune, stages)
        scores, descent = trial.score, trial.start - trial.score
        farthest = _largest(np.where(kept, descent, -np.inf), searches)
        ahead = kept & np.isfinite(scores) & ((descent >= _BEHIND * farthest) | (farthest <= 0))
        runs = np.flatnonzero(ahead)
        means = np.where(ahead, scores / len(self.problems), np.nan)
        for other in others if runs.size else ():
            [trial] = self._run(_subset(algorithm, runs), [other], searches[runs], _prune_rising)
            means[runs] += trial.score / len(self.problems)
        added = _largest(np.where(np.isfinite(means), means - scores, -np.inf), searches)
        scores = np.where(ahead, means, scores + np.where(np.isfinite(added), added, 0.0))
        if standing is not None:
            standing.lower(searches[ahead], scores[ahead])
            again = np.flatnonzero(~kept & (scores < [standing.best[number] for number in searches.tolist()]))
            if again.size:
                scores[again], _ = self.scores(_subset(algorithm, again), searches[again])
                standing.lower(searches[again], scores[again])
                kept[again] = True
        return scores, ~kept

    def _prune_worse_half(self, kept: NDArray, standing: Standing, stage: int, trials: list[_Trial]) -> None:
        """Prune runs that rise and, at the stage `ranked`, the worse half, also from the mask `kept` (R,)."""
        _prune_rising(stage, trials)
        if stage != self.ranked:
            return
        [trial] = trials
        runs, values = trial.active, trial.score[trial.active]
        limits = standing.limits(trial.searches[runs], stage, values, lambda n: n // 2 + 1)
        kept[runs[values > limits]] = False
        trial.prune(~kept)

    def more_scores(self, algorithm: Runnable, searches: NDArray, scores: NDArray) -> NDArray:
        """Mean scores (R,) over all data sets, from the mean `scores` over the first ones."""
        total = scores * len(self.problems)
        for replicate in self.replicates[SCORED:]:
            data_set = replicate, self.problem(replicate)
            [trial] = self._run(algorithm, [data_set], searches, _prune_rising)
            total = total + trial.score
        return total / len(self.replicates)

    def stable(self, algorithm: Runnable, searches: NDArray) -> NDArray:
        """Mask of the R runs that descend and agree with their perturbed runs on all data sets checked."""
        check = self.check or Check()
        rounds = self.rounds if check.rounds is None else min(self.rounds, check.rounds)
        tail = self.tail if check.tail is None else check.tail
        good = np.ones(len(searches), bool)
        for replicate, problem in self.problems[: check.data_sets]:
            runs = np.flatnonzero(good)
            if not runs.size:
                break
            self.progress(f"comparing {len(runs)} runs with perturbed ones", 0, 1)
            perturbed = simulate_perturbed(
                _subset(algorithm, runs),
                self.data(problem, searches[runs]),
                Streams(self.seed, (replicate,) * len(runs)),
                rounds,
                tail=tail,
                record_every=max(round(tail * rounds) // check.records, 1),
                record_before_tail=False,
                **self.options,
            )
            self.spent.add(perturbed.everything)
            good[runs] = perturbed.stable
        return good

    def data(self, problem: Any, searches: NDArray) -> Any:
        """The problem of runs that belong to these searches (R,)."""
        return problem if self.of_searches is None else self.of_searches(problem, searches)

    def _run(
        self,
        algorithm: Runnable,
        problems: Sequence[tuple[int, Any]],
        searches: NDArray,
        prune: Prune,
        stages: Iterable[int] | None = None,
    ) -> list[_Trial]:
        """Run R settings on each of some data sets, stage by stage; `prune` ends some of them.

        For 25 rounds with a tail of 0.2, stages end after rounds 1, 4, 12, 20 and 25, and the score is the
        mean over rounds 21 to 25.
        """
        tail_start = self.rounds - self.tail_rounds if self.tail_rounds > 1 else self.rounds
        early = [stage for stage in stages or self.stages if stage < tail_start]
        stages = sorted({*early, tail_start, self.rounds} - {0})
        trials = [_Trial(self, algorithm, *problem, searches) for problem in problems]
        for number, stop in enumerate(stages):
            count = max(len(trial.active) for trial in trials)
            self.progress(f"searching the step, {count} runs to round {stop}", number, len(stages))
            for trial in trials:
                every = max(self.tail_rounds // _RECORDED, 1) if trial.round >= tail_start else None
                trial.advance(stop, every)
            if stop < tail_start:
                prune(stop, trials)
        return trials


@dataclass(frozen=True)
class SuccessiveHalving(Trials):
    """Trials in which only the n best runs of a search so far continue after each stage.

    The data sets advance side by side, and runs are compared by their means over these. Pruned runs have no
    score.
    """

    survivors: Mapping[int, int] = field(default_factory=dict)  # rounds of a stage -> n

    @property
    def stages(self) -> Sequence[int]:
        return sorted(self.survivors)

    def scores(
        self, algorithm: Runnable, searches: NDArray, standing: Standing | None = None
    ) -> tuple[NDArray, NDArray]:
        """Mean score over the data sets, (R,), infinite where a run diverged or was pruned; no estimates."""
        prune = partial(self._prune_behind, searches, standing or Standing())
        trials = self._run(algorithm, self.problems, searches, prune)
        return np.mean([trial.score for trial in trials], axis=0), np.zeros(len(searches), bool)

    def _prune_behind(self, searches: NDArray, standing: Standing, stage: int, trials: list[_Trial]) -> None:
        """Prune all but the n best runs of each search after this stage; `searches` as in `scores`."""
        means = np.mean([trial.score for trial in trials], axis=0)
        limits = standing.limits(searches, stage, means, lambda _: self.survivors[stage])
        for trial in trials:
            trial.prune(~np.isfinite(means) | (means > limits), score=np.inf)


class _Trial:
    """R runs on one data set that advance side by side; some end early, since they diverge or are pruned."""

    def __init__(
        self, trials: Trials, algorithm: Runnable, replicate: int, problem: Any, searches: NDArray
    ) -> None:
        self._trials, self._algorithm, self.searches = trials, algorithm, searches
        self._replicate, self._problem = replicate, problem
        self._history: History | None = None  # of the last stage and the runs that are active
        self.active = np.arange(len(searches))  # indices of the runs that are active
        self.round = 0
        self.start = self.score = np.full(len(searches), np.inf)  # at the start and now; infinite: diverged
        self.past: list[NDArray] = []  # scores after each stage

    def advance(self, stop: int, record_every: int | None) -> None:
        """Run up to round `stop`; record that one alone, or more often."""
        if not self.active.size:
            return
        trials = self._trials
        history = simulate(
            of_runs(self._algorithm, self.active),
            trials.data(self._problem, self.searches[self.active]),
            Streams(trials.seed, (self._replicate,) * len(self.active)),
            stop,
            metrics={"objective": trials.metric},
            record_every=record_every or stop - self.round,
            resume=None if self._history is None else (self.round, self._history.state),
            **trials.options,
        )
        trials.spent.replicates.add(self._replicate)
        trials.spent.add(history, started=self._history is None)
        values, alive = history.metrics["objective"], ~history.diverged[-1]
        late = history.rounds > min(stop - 1, trials.rounds - trials.tail_rounds)
        if self._history is None:
            self.start = values[0]
        self.score = self.score.copy()  # that of the last stage stays as it is
        self.score[self.active] = np.inf
        self.score[self.active[alive]] = values[late][:, alive].mean(axis=0)
        self.past.append(self.score)
        self._history, self.round = history, stop
        self._keep(alive)

    def prune(self, runs: NDArray, score: float | None = None) -> None:
        """End the runs of a mask (R,), if given with this score."""
        self._keep(~runs[self.active])
        if score is not None:
            self.score[runs] = score

    def _keep(self, active: NDArray) -> None:
        if self._history is not None:
            self._history = self._history.take(active)
        self.active = self.active[active]


Prune = Callable[[int, list[_Trial]], None]
"""Ends runs after a stage, given its last round."""


def _prune_rising(_: int, trials: list[_Trial]) -> None:
    """Prune runs that are far above their start at the end of two stages in a row."""
    for trial in trials:
        if len(trial.past) > 1:
            trial.prune(np.minimum(*trial.past[-2:]) > _HOPELESS * trial.start)


def _largest(values: NDArray, searches: NDArray) -> NDArray:
    """For each run (R,), the largest value among those of its search."""
    of_search = np.full(searches.max() + 1, -np.inf)
    np.maximum.at(of_search, searches, values)
    return of_search[searches]


def _subset(algorithm: Runnable, runs: NDArray) -> Runnable:
    """Return the algorithm of some runs, for `simulate_perturbed`, which repeats them and moves steps."""
    return lambda indices, factors: of_runs(algorithm, runs[indices], factors)


# -- Searches of a step --------------------------------------------------------------------------------


def tune_step(make: Callable[[NDArray], Algorithm], trials: Trials, grid: Grid) -> Search:
    """Search the step size with the lowest score in the trials; `make` builds the algorithm of steps (R,)."""
    [found] = tune_steps(lambda _, steps: make(steps), [""], trials, grid)
    return found


def tune_steps(
    make: Callable[[NDArray, NDArray], Algorithm], names: Sequence[str], trials: Trials, grid: Grid
) -> list[Search]:
    """Search the step sizes of several variants of a method side by side.

    Parameters
    ----------
    make : callable
        Builds the algorithm of R runs from the names of their variants (R,) and their steps (R,).
    names : sequence of str
        Names of the variants.
    trials : Trials
    grid : Grid

    Returns
    -------
    list of Search
        One per variant. If `trials.check` is given, its step is stable. If no step is stable, the step with
        the best mean over more data sets is selected, and marked as chaotic.
    """
    of_variants, standing = np.array(names), Standing()
    estimates: set[tuple[int, float]] = set()

    def score(variants: NDArray, steps: NDArray) -> NDArray:
        scores, estimated = trials.scores(make(of_variants[variants], steps), variants, standing)
        estimates.update(zip(variants[estimated].tolist(), steps[estimated].tolist(), strict=True))
        return scores

    def stable(variants: NDArray, steps: NDArray) -> NDArray:
        return trials.stable(make(of_variants[variants], steps), variants)

    def to_the_end(variant: int, steps: NDArray, scores: NDArray) -> NDArray:
        """Scores (G,) in which estimates for dropped steps are replaced by scores of complete runs."""
        dropped = np.array([(variant, step) in estimates for step in steps.tolist()])
        if dropped.any():
            variants = np.full(int(dropped.sum()), variant)
            scores = scores.copy()
            scores[dropped], _ = trials.scores(make(of_variants[variants], steps[dropped]), variants)
        return scores

    def rescored(variant: int, steps: NDArray, scores: NDArray) -> NDArray:
        variants, scores = np.full(len(steps), variant), to_the_end(variant, steps, scores)
        return trials.more_scores(make(of_variants[variants], steps), variants, scores)

    found = search_each(score, [grid] * len(names), admissible=None if trials.check is None else stable)
    outcomes = []
    for number, one in enumerate(found):
        if one.chaotic:
            outcomes.append(best_of_chaotic(one, partial(rescored, number)))
        else:  # the best that is stable may be one that was pruned
            outcomes.append(one.rescored([one.points.index(one.best)], partial(to_the_end, number)))
    return outcomes


def best_of_chaotic(found: Search, rescored: Callable[[NDArray, NDArray], NDArray]) -> Search:
    """Search of a step; if no step is stable, it selects the best of its leaders on more data sets.

    `rescored` maps steps (G,) and their scores to their means over more data sets (G,).
    """
    if not found.chaotic:
        return found
    scores = np.array(found.scores)
    leaders = np.argsort(scores, kind="stable")[: min(_LEADERS, int(np.isfinite(scores).sum()))]
    found = found.rescored(leaders, rescored)
    best = min(leaders.tolist(), key=lambda leader: found.scores[leader])
    return replace(found, best=found.points[best])


def best_printed(
    own: Search, steps: Sequence[float], make: Callable[[NDArray], Algorithm], trials: Trials, number: int = 0
) -> Search:
    """Search among a paper's printed steps: the best stable one, even at their edge; if none is, the best.

    The search `own`, with that `number` in the trials, began with the printed steps; its checks are not
    repeated.
    """
    scores = dict(zip(own.steps, own.scores, strict=True))
    checked = {step: False for (step,) in own.rejected} | ({} if own.chaotic else {own.step: True})

    def admissible(candidates: NDArray) -> NDArray:
        new = np.array([step for step in candidates.tolist() if step not in checked])
        if new.size:
            stable = trials.stable(make(new), np.full(len(new), number))
            checked.update(zip(new.tolist(), stable.tolist(), strict=True))
        return np.array([checked[step] for step in candidates.tolist()])

    return search(np.vectorize(scores.get), Grid.of_steps(steps, grow=False), admissible=admissible)
