"""Histories from logs: one table of the runs of an experiment, or an error that says why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from replifed.claims.copies import originals
from replifed.errors import ConfigError, DataError, unknown_name
from replifed.logs import files
from replifed.logs.settings import Experiment
from replifed.settings.messages import errors_in, line

# Of names and numbers in a remark or an error, that many are shown.
_SHOWN = 5
# Marks of what is told of an experiment without columns that say it.
_FILE = "_file"
# Before the name of a column that is no metric, and may show that a run diverged.
_OTHER = "_other "


class Logged(NamedTuple):
    """Runs of one experiment."""

    # Columns method, replicate, round, diverged, the metrics, and bits where they are counted.
    frame: pd.DataFrame
    labels: dict[str, str]  # of each method, as the logs call it
    remarks: list[str]  # in words: what was left out, lost or repeated
    files: list[Path]

    def history(self, method: str) -> pd.DataFrame:
        """History of one method."""
        return self.frame[self.frame["method"] == method].reset_index(drop=True)


def read(folder: Path, settings: Experiment) -> Logged:
    """Read the logs of an experiment in a paper's folder.

    Raises
    ------
    DataError
        A log cannot be read, lacks a column, or its runs are no experiment (see `logged`).
    """
    found = files.find(folder, settings.logs)
    frames = [
        files.read(log.path).assign(**log.named, **{_FILE: log.path.relative_to(folder).as_posix()})
        for log in found
    ]
    return logged(frames, settings)._replace(files=[log.path for log in found])


def logged(frames: Sequence[pd.DataFrame], settings: Experiment) -> Logged:
    """Make one experiment of the tables of several logs, or of one.

    Methods are named in small letters; seeds that are no numbers are numbered. A round that some seed lacks
    is left out for all seeds of its method, and a run that ends in values that are no numbers has diverged.

    Raises
    ------
    DataError
        A column is missing, or holds no number; two runs have one seed; runs of a method end at different
        rounds, and no last round that counts is stated; reported seeds are missing, or were tuned on.
    """
    whole = pd.concat([_mapped(frame, settings) for frame in frames], ignore_index=True)
    if whole.empty:
        chosen = ", ".join(f"{key} = {one!r}" for key, one in settings.where.items())
        raise DataError(f"where: no line has {chosen}" if chosen else "the logs have no line")
    remarks: list[str] = []
    whole["replicate"] = _numbered(whole["replicate"], remarks)
    labels = _labels(whole["method"])
    whole["method"] = whole["method"].map({label: name for name, label in labels.items()})
    whole = _chosen(whole, settings)
    if settings.until is not None:
        whole = whole[whole["round"] <= settings.until]
        if whole.empty:
            raise DataError(f"until: no round up to {settings.until} was recorded")
    others = [name for name in whole if str(name).startswith(_OTHER)]
    counted = [name for name in ("bits", *settings.axes) if name in whole]
    whole = _one_line_a_round(whole, [*settings.metrics, *counted], others)
    remarks += _diverged_elsewhere(whole, others)
    whole = whole.drop(columns=others)
    parts = [_whole(method, own, settings, remarks) for method, own in whole.groupby("method", sort=False)]
    frame = pd.concat(parts, ignore_index=True).drop(columns=_FILE)
    ends = frame.groupby("method", sort=False)["round"].max()
    if len(set(ends)) > 1:
        told = _listed(f"{method} at {end}" for method, end in ends.items())
        remarks.append(f"methods end at different rounds ({told}); until: {ends.min()} compares them at one")
    if not frame.duplicated(["method", "replicate"]).any():
        # Final values of two digits may be equal by chance: such runs are not told to be copies.
        frame["line"] = np.arange(len(frame))
    remarks += _about_copies(frame)
    there = set(frame["method"].unique())
    return Logged(frame, {name: label for name, label in labels.items() if name in there}, remarks, [])


def _mapped(frame: pd.DataFrame, settings: Experiment) -> pd.DataFrame:
    """Columns of a log by what they mean, of the lines that count."""
    named = str(frame[_FILE].iloc[0]) if _FILE in frame else "the table"
    for column, value in settings.where.items():
        if isinstance(value, (list, tuple, dict, set)):
            raise DataError(f"where: {column} is to have one value, not {value}")
        frame = frame[frame[_known(frame, column, named)] == value]
    wanted = dict(settings.columns)
    mapped = pd.DataFrame({_FILE: frame[_FILE] if _FILE in frame else pd.Series(named, frame.index)})
    for meaning, otherwise in (("method", "method"), ("seed", 1), ("round", 0)):
        given = wanted[meaning]
        if given is not None or meaning in frame:
            source = frame[_known(frame, given or meaning, named)]
        else:
            source = pd.Series(otherwise, frame.index)
        mapped["replicate" if meaning == "seed" else meaning] = source
    mapped["round"] = _whole_numbers(mapped["round"], wanted["round"] or "round", named)
    if wanted["bits"] is not None or "bits" in frame:
        column = wanted["bits"] or "bits"
        mapped["bits"] = _numbers(frame[_known(frame, column, named)], column, named)
    for name, column in settings.axes.items():
        if column in frame:  # methods may count different things
            mapped[name] = _numbers(frame[_known(frame, column, named)], column, named)
    for name, metric in settings.metrics.items():
        column = metric.column or name
        values = _numbers(frame[_known(frame, column, named)], column, named)
        if len(values) and values.isna().all():
            raise DataError(f"{named}: {column} holds no number")
        mapped[name] = values
    if mapped[["method", "replicate"]].isna().any(axis=None):
        raise DataError(f"{named}: a line has no method or no seed")
    used = {*wanted, *wanted.values(), *settings.where, *(one.column for one in settings.metrics.values())}
    for name in frame.columns.difference([*mapped, *used, *settings.axes.values()]):
        other = frame[name]
        if other.ndim == 1 and other.dtype.kind in "fiu":
            mapped[f"{_OTHER}{name}"] = other.astype(float)
    return mapped


def _diverged_elsewhere(whole: pd.DataFrame, others: Sequence[str]) -> list[str]:
    """Mark the rounds from which a run holds no number in a column that is no metric; remarks say which.

    Only where another run still holds one, or the column is infinite: what all runs leave empty at the end
    was not recorded, nor was what this run leaves empty for no longer than before.
    """
    remarks = []
    whole["diverged"] = False
    for other in others:
        known = whole["round"][np.isfinite(whole[other])]
        lost: dict[str, list[Any]] = {}
        for (method, seed), own in whole.groupby(["method", "replicate"], sort=False):
            own = own.sort_values("round")
            there = np.isfinite(own[other].to_numpy())
            if not there.any() or there[-1]:
                continue
            rounds, last = own["round"].to_numpy(), np.flatnonzero(there)[-1]
            usual = np.diff(rounds[there]).max(initial=1)
            later = known.between(rounds[last], rounds[-1], inclusive="right").any()
            if np.isinf(own[other].iloc[last + 1 :]).any() or (later and rounds[-1] - rounds[last] >= usual):
                lost.setdefault(method, []).append(seed)
                whole.loc[own.index[last + 1 :], "diverged"] = True
        for method, seeds in lost.items():
            name = other.removeprefix(_OTHER)
            remarks.append(f"{method}: {name} ends in no number in the {_seeds(seeds)}, which diverged")
    return remarks


def _known(frame: pd.DataFrame, column: str, named: str) -> str:
    if column not in frame:
        known = [str(name) for name in frame if name != _FILE]
        raise DataError(f"{named}: {unknown_name('column', column, known)}")
    if list(frame.columns).count(column) > 1:
        raise DataError(f"{named}: two columns are called {column}; rename one")
    return column


def _numbers(values: pd.Series, column: str, named: str) -> pd.Series:
    if len(found := files.spoilt(values)):
        raise DataError(f"{named}: {column} holds {str(found.iloc[0])[:40]!r}, which is no number")
    return pd.to_numeric(values, errors="coerce").astype(float)


def _whole_numbers(values: pd.Series, column: str, named: str) -> pd.Series:
    numbers = _numbers(values, column, named)
    if not (numbers.between(0, 2**53) & (numbers % 1 == 0)).all():
        raise DataError(
            f"{named}: {column} counts rounds, so that it has to hold whole numbers of at least 0"
        )
    return numbers.astype("int64")


def _numbered(seeds: pd.Series, remarks: list[str]) -> pd.Series:
    """Seeds as whole numbers: as they are, or numbered in their order."""
    numbers = pd.to_numeric(seeds, errors="coerce").astype(float)
    if numbers.notna().all() and (numbers % 1 == 0).all() and (numbers.abs() < 2**53).all():
        return numbers.astype("int64")
    names = {name: number for number, name in enumerate(sorted(seeds.astype(str).unique()), 1)}
    remarks.append(f"seeds are numbered: {_listed(f'{number} is {name}' for name, number in names.items())}")
    return seeds.astype(str).map(names)


def _labels(methods: pd.Series) -> dict[str, str]:
    """Names of methods as settings have them, and as the logs call them."""
    labels: dict[str, Any] = {}
    for label in methods.unique():
        name = method_name(str(label))
        if name in labels:
            raise DataError(
                f"the methods {labels[name]!r} and {label!r} would both be called {name}; rename one"
            )
        labels[name] = label
    return labels


def method_name(label: str) -> str:
    """Name of a method in settings and claims: small letters, digits and underscores.

    >>> method_name("FedAvg (ours)")
    'fedavg_ours'
    """
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    return name if name[:1].isalpha() else f"method_{name}".rstrip("_")


def _chosen(whole: pd.DataFrame, settings: Experiment) -> pd.DataFrame:
    """Lines of the methods and seeds that are reported."""
    methods = getattr(settings, "methods", None)  # a job of one method is not given them
    known = set(whole["method"].unique())
    for name in methods or ():
        if name not in known:
            raise DataError(f"methods: {unknown_name('method of the logs', name, known)}")
    if methods:
        whole = whole[whole["method"].isin(methods)]
    there = {int(seed) for seed in whole["replicate"].unique()}
    reported = there if settings.replicates is None else set(settings.replicates)
    if missing := sorted(reported - there):
        raise DataError(f"replicates: no log is of the {_seeds(missing)}")
    if both := sorted(reported & set(settings.tuned_on or ())):
        rest = f"; report the others: replicates: {sorted(there - set(both))}" if there - set(both) else ""
        raise DataError(f"tuned_on: the {_seeds(both)}, on which methods were tuned, would be reported{rest}")
    return whole[whole["replicate"].isin(reported)]


def _one_line_a_round(whole: pd.DataFrame, values: list[str], others: list[str]) -> pd.DataFrame:
    """Join the lines of a run and round, each of which may hold other metrics; refuse two runs of a seed."""
    keys = ["method", "replicate", "round"]
    repeated = whole[whole.duplicated(keys, keep=False)]
    if repeated.empty:
        return whole
    by_round = repeated.groupby(keys, sort=False)
    twice = by_round[_FILE].nunique().gt(1) | (by_round[values].count() > 1).any(axis=1)
    if twice.any():
        method, seed, number = twice.index[twice.to_numpy()][0]
        own = repeated[(repeated["method"] == method) & (repeated["replicate"] == seed)]
        where = _listed(own[_FILE].unique())
        raise DataError(
            f"two runs of {method} have the seed {seed} (round {number}, {where}): name the column of seeds, "
            "or {seed} in the pattern of files, or choose lines by `where`"
        )
    joined = whole.groupby(keys, sort=False)[[_FILE, *values, *others]].first()
    return joined.reset_index()


def _whole(method: str, own: pd.DataFrame, settings: Experiment, remarks: list[str]) -> pd.DataFrame:
    """Runs of a method in the same rounds; remarks name what was left out, and what is no number."""
    last = own.groupby("replicate")["round"].max()
    if len(set(last)) > 1:
        ends = _listed((f"at {end} the {_seeds(part.index)}" for end, part in last.groupby(last)), "; ")
        if not settings.stopped:
            cure = f"state the last round that counts, until: {last.min()}"
            own_ends = "or stopped: true, where runs stop by themselves"
            raise DataError(f"runs of {method} end at different rounds: {ends}; {cure}, {own_ends}")
        remarks.append(f"{method} stops by itself: {ends}")
        own = _carried(own, list(settings.metrics))
    recorded = own.groupby("round")["replicate"].nunique()
    if len(gaps := recorded.index[recorded < len(last)]):
        lacking = sorted(
            set(last.index)
            - set.intersection(*(set(own.loc[own["round"] == gap, "replicate"]) for gap in gaps))
        )
        remarks.append(
            f"{method}: rounds {_listed(gaps)} are missing of the {_seeds(lacking)}, left out for all seeds"
        )
        own = own[~own["round"].isin(gaps)]
    own = own.sort_values(["replicate", "round"], ignore_index=True)
    for name, metric in settings.metrics.items():
        _complete(method, own, name, np.inf if metric.better == "lower" else -np.inf, remarks)
    return own


def _carried(own: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Runs in the rounds of all of them; where one has no record, its last one before counts."""
    rounds, runs = np.sort(own["round"].unique()), []
    for _, one in own.groupby("replicate"):
        one = one.sort_values("round").set_index("round")
        for name in metrics:
            values = one[name].to_numpy()
            if not _lost_for_good(values, np.isnan(values)).any():
                # Its last value may be older than its last record.
                one.loc[one.index[-1], name] = one[name].dropna().iloc[-1]
        runs.append(one[one.index.notna()].reindex(rounds[rounds >= one.index[0]], method="ffill"))
    return pd.concat(runs).rename_axis("round").reset_index()


def _complete(method: str, own: pd.DataFrame, name: str, worst: float, remarks: list[str]) -> None:
    """Give a metric its worst value once a run has diverged, and empty the rounds that some seed lacks."""
    table = own.set_index(["replicate", "round"])[name].unstack()  # noqa: PD010
    values = table.to_numpy(float).copy()
    empty = np.isnan(values).all(axis=0)
    ends = np.stack([_lost_for_good(run, empty) for run in values])
    if (diverged := ends.any(axis=1)).any():
        remarks.append(
            f"{method}: {name} ends in no number in the {_seeds(table.index[diverged])}, which diverged"
        )
    values[ends] = worst
    gaps = np.isnan(values).any(axis=0)
    if (holes := gaps & ~empty).any():
        lacking = table.index[np.isnan(values[:, holes]).any(axis=1)]
        remarks.append(
            f"{method}: {name} is no number in rounds {_listed(table.columns[holes])} "
            f"of the {_seeds(lacking)}, left out for all seeds"
        )
    values[:, gaps] = np.nan
    if gaps.all():
        raise DataError(f"{method}: no round has {name} of all its seeds")
    own[name] = values.ravel()
    own["diverged"] |= ends.ravel()


def _lost_for_good(values: NDArray, empty: NDArray) -> NDArray:
    """Mask of the rounds (T,) from which on a run holds no number any more.

    A metric that all runs evaluate every tenth round has not diverged nine rounds after the last time, nor
    one that they evaluate ever more seldom before the next time.
    """
    known = np.flatnonzero(np.isfinite(values))
    lost = np.arange(len(values)) > (known[-1] if len(known) else -1)
    rest, gaps = empty[lost], np.diff(known)
    usual = gaps.max() if len(gaps) else 1
    if len(gaps) > 2 and gaps[-3] < gaps[-2] < gaps[-1]:
        usual = gaps[-1] ** 2 / gaps[-2]
    return lost & False if rest.all() and len(rest) < usual else lost


def _about_copies(frame: pd.DataFrame) -> list[str]:
    """Say which seeds repeat others."""
    remarks = []
    for method, own in frame.groupby("method", sort=False):
        first = originals(own.drop(columns="method"))
        copied = [seed for seed, source in first.items() if source != seed]
        if copied:
            remarks.append(
                f"{method}: the {_seeds(copied)} repeat other seeds' runs, which an order counts once"
            )
    return remarks


def _seeds(seeds: Iterable[Any]) -> str:
    seeds = list(seeds)
    return f"seed{'s' * (len(seeds) > 1)} {_listed(seeds)}"


def _listed(names: Iterable[Any], between: str = ", ") -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return between.join(names[:_SHOWN]) + more


def settings_of(metrics: Mapping[str, str], **more: Any) -> Experiment:
    """Settings of runs in a data frame: the better side of each metric, and further keys of `Experiment`.

    Raises
    ------
    ConfigError
        A key or a value is none of them.
    """
    given = {
        "logs": "in memory",
        "metrics": {name: {"better": side} for name, side in metrics.items()},
        **more,
    }
    try:
        Experiment.model_validate({"methods": ["any"], **given})
    except ValidationError as error:
        found = errors_in(error, Experiment, [])
        raise ConfigError("\n".join(line(path, text, []) for path, text in found)) from error
    return Experiment.of_job(given)
