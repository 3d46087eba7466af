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

from replifed.claims.samples import originals
from replifed.errors import ConfigError, DataError, unknown_name
from replifed.logs import files
from replifed.logs.meanings import FILE, LINE
from replifed.logs.reading import read as read_log
from replifed.logs.settings import Experiment
from replifed.logs.texts import check_lines
from replifed.logs.values import floats, holding, number_or_text, spoilt
from replifed.logs.wide import stacked
from replifed.settings.messages import errors_in, line

# Of names and numbers in a remark or an error, that many are shown.
_SHOWN = 5
# Before the names of columns that are not judged, and may show that a run diverged.
_OTHER = "_other:"


class CombinedLogs(NamedTuple):
    """Runs of one experiment."""

    # Columns method, replicate, round, diverged, the metrics, and bits where they are counted.
    frame: pd.DataFrame
    labels: dict[str, str]  # of each method, as the logs call it
    remarks: list[str]  # in words: what was left out, lost or repeated
    files: list[Path]

    def history(self, method: str) -> pd.DataFrame:
        """History of one method."""
        return self.frame[self.frame["method"] == method].reset_index(drop=True)


def read(folder: Path, settings: Experiment) -> CombinedLogs:
    """Read the logs of an experiment in a paper's folder.

    Raises
    ------
    DataError
        A log cannot be read, lacks a column, or its runs are no experiment (see `combine_logs`).
    """
    found = files.find(folder, settings.logs)
    frames, said = [], []
    for log in found:
        table = read_log(log.path)
        frames.append(placed(table.frame, log.named, log.path.relative_to(folder).as_posix()))
        said += table.said
    check_lines(folder, sum(map(len, frames)))
    runs = combine_logs(frames, settings)
    return runs._replace(remarks=[*dict.fromkeys(said), *runs.remarks], files=[log.path for log in found])


def placed(frame: pd.DataFrame, named: Mapping[str, str], name: str) -> pd.DataFrame:
    """Return the table of a log with the file's name, and what that says in braces, as columns."""
    # `where` and axes take what a name says for a number, if it is one.
    added = {key: text if key in ("method", "seed") else number_or_text(text) for key, text in named.items()}
    return frame.assign(**added, **{FILE: name})


def combine_logs(frames: Sequence[pd.DataFrame], settings: Experiment) -> CombinedLogs:
    """Combine the tables of one log, or of several, into the runs of one experiment.

    Names of methods become lower case, and seeds that are not numbers are numbered. If one seed lacks a
    round, the round is left out for all seeds of the method. A run whose last values are not numbers has
    diverged.

    Raises
    ------
    DataError
        A column is missing, or holds no number; two runs have one seed; runs of a method end at different
        rounds, and `until` is not set; reported seeds are missing, or the methods were tuned on them.
    """
    remarks: list[str] = []
    mapped = [_mapped(frame, settings, remarks) for frame in frames]
    rows = pd.concat(mapped, ignore_index=True)
    if rows.empty:
        raise DataError(_none_chosen(frames, settings.where) if settings.where else "the logs have no line")
    rows["replicate"] = _numbered(rows["replicate"], remarks)
    labels = _labels(rows["method"])
    rows["method"] = rows["method"].map({label: name for name, label in labels.items()})
    rows = _chosen(rows, settings)
    if settings.until is not None:
        rows = rows[rows["round"] <= settings.until]
        if rows.empty:
            raise DataError(f"until: no round up to {settings.until} was recorded")
    rows = _one_line_per_round(rows, settings)
    others = [name for name in rows if str(name).startswith(_OTHER)]
    recorded = {name: set(rows.loc[np.isfinite(rows[name]), "round"]) for name in others}
    parts = [
        _complete_method(method, of_method, settings, recorded, remarks)
        for method, of_method in rows.groupby("method", sort=False)
    ]
    frame = pd.concat(parts, ignore_index=True).drop(columns=[FILE, *others])
    ends = frame.groupby("method", sort=False)["round"].max()
    if len(set(ends)) > 1:
        listed = _listed(f"{method} at {end}" for method, end in ends.items())
        cure = "" if settings.stopped else f"; until: {ends.min()} compares them at the same round"
        remarks.append(f"methods end at different rounds ({listed}){cure}")
    if not frame.duplicated(["method", "replicate"]).any():
        # With one row per run, equal rows (values of two digits, say) are no evidence of copies. A unique
        # column prevents that they count as such.
        frame["line"] = np.arange(len(frame))
    remarks += _about_copies(frame)
    there = set(frame["method"].unique())
    return CombinedLogs(frame, {name: label for name, label in labels.items() if name in there}, remarks, [])


def _mapped(frame: pd.DataFrame, settings: Experiment, remarks: list[str]) -> pd.DataFrame:
    """Columns of a log by what they mean, of the lines that count; one line per run and round."""
    named = str(frame[FILE].iloc[0]) if FILE in frame and len(frame) else "the table"
    wanted = dict(settings.columns)
    if settings.wide is not None:
        frame = stacked(frame, settings.wide, {*wanted.values(), *settings.where}, named)
    for column, value in settings.where.items():
        if isinstance(value, (list, tuple, dict, set)):
            raise DataError(f"where: {column} is to have one value, not {value}")
        frame = frame[holding(frame[_known(frame, column, named)], value)]
    mapped = pd.DataFrame({FILE: frame[FILE] if FILE in frame else pd.Series(named, frame.index)})
    used = [FILE, *settings.where]
    for meaning, otherwise in (("method", "method"), ("seed", 1), ("round", 0)):
        given = wanted[meaning]
        if meaning == "round" and given == LINE and LINE not in frame:
            source = pd.Series(np.arange(len(frame)), frame.index)
        elif given is not None or meaning in frame:
            used.append(_known(frame, given or meaning, named))
            source = frame[used[-1]]
        else:
            source = pd.Series(otherwise, frame.index)
        mapped["replicate" if meaning == "seed" else meaning] = source
    if mapped[["method", "replicate"]].isna().any(axis=None):
        raise DataError(f"{named}: a line has no method or no seed")
    # Categories and texts of other kinds would be grouped, and written, as what they are.
    mapped["method"] = [str(_whole_if_so(one)) for one in mapped["method"]]
    mapped["round"] = _whole_numbers(mapped["round"], wanted["round"] or "round", named)
    if wanted["bits"] is not None or "bits" in frame:
        used.append(_known(frame, wanted["bits"] or "bits", named))
        mapped["bits"] = _numbers(frame[used[-1]], used[-1], named)
    for name, column in settings.axes.items():
        if column in frame:  # methods may count different things
            used.append(_known(frame, column, named))
            mapped[name] = _numbers(frame[column], column, named)
    for name, metric in settings.metrics.items():
        used.append(_known(frame, metric.column or name, named))
        values = _numbers(frame[used[-1]], used[-1], named)
        if len(values) and values.isna().all():
            raise DataError(f"{named}: {used[-1]} holds no number")
        mapped[name] = values
    if wanted["client"] is not None:
        return _over_clients(frame, mapped, settings, named, remarks)
    # A run that diverges in any number has diverged, whichever is judged.
    used += [_known(frame, one, named) for one in settings.ignore]
    others = [one for one in frame.columns.drop_duplicates(keep=False) if one not in used]
    floating = {f"{_OTHER}{one}": floats(frame[one]) for one in others if frame[one].dtype.kind == "f"}
    return pd.concat([mapped, pd.DataFrame(floating, frame.index)], axis=1)


def _none_chosen(frames: Sequence[pd.DataFrame], where: Mapping[str, Any]) -> str:
    """Say which values no line has, and what its columns hold."""
    chosen = ", ".join(f"{column} = {value}" for column, value in where.items())
    there = {
        column: dict.fromkeys(str(one) for frame in frames if column in frame for one in frame[column])
        for column in where
    }
    known = (f"; {column} is {_listed(values)}" for column, values in there.items() if values)
    return f"where: no line has {chosen}{''.join(known)}"


def _whole_if_so(label: Any) -> Any:
    return int(label) if isinstance(label, float | np.floating) and label % 1 == 0 else label


def _over_clients(
    frame: pd.DataFrame, mapped: pd.DataFrame, settings: Experiment, named: str, remarks: list[str]
) -> pd.DataFrame:
    """Means of clients' lines, by their weights; a round in which a client has no number has none."""
    client = _known(frame, settings.columns.client or "", named)
    if settings.columns.weight is None:
        raise DataError(
            f"{named}: each line is a client ({client}), and nothing says how much it counts: name "
            "the column of its samples, columns: {weight: ...} (or --weight NAME)"
        )
    column = _known(frame, settings.columns.weight, named)
    weight = _numbers(frame[column], column, named)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError(f"{named}: {column} is to hold a weight of at least 0 in each line")
    for name in _counted(mapped, settings):
        raise DataError(f"{named}: {name} is counted by client; give that of all in a column of its own")
    keys = [FILE, "method", "replicate", "round"]
    lines = mapped.assign(_client=frame[client].astype(str), _weight=weight)
    if (twice := lines.duplicated([*keys, "_client"])).any():
        one = lines[twice].iloc[0]
        raise DataError(
            f"{named}: two lines of client {one['_client']} are of round {one['round']}; choose by `where`"
        )
    total = lines.groupby(keys, sort=False)["_weight"].sum()
    if (total == 0).any():
        raise DataError(f"{named}: {column} is 0 for all clients of round {total.index[total == 0][0][-1]}")
    for name in settings.metrics:
        # Of clients without weight the number is no matter.
        lines[name] = (lines[name] * weight).where(weight > 0, 0.0)
    names = list(settings.metrics)
    grouped = [lines[key] for key in keys]
    sums = lines.groupby(keys, sort=False)[names].sum()
    lost = lines[names].isna().groupby(grouped, sort=False).any()
    means = sums.div(total, axis=0).mask(lost)
    remark = f"numbers are means over clients ({client}), weighted by {column}"
    if remark not in remarks:
        remarks.append(remark)
    return means.reset_index()


def _counted(frame: pd.DataFrame, settings: Experiment) -> list[str]:
    """Columns that grow beside the rounds."""
    return [name for name in ("bits", *settings.axes) if name in frame]


def _known(frame: pd.DataFrame, column: str, named: str) -> str:
    if column not in frame:
        known = [str(name) for name in frame if name != FILE]
        raise DataError(f"{named}: {unknown_name('column', column, known)}")
    if list(frame.columns).count(column) > 1:
        raise DataError(f"{named}: two columns are called {column}; rename one")
    return column


def _numbers(values: pd.Series, column: str, named: str) -> pd.Series:
    if len(found := spoilt(values)):
        raise DataError(f"{named}: {column} holds {str(found.iloc[0])[:40]!r}, which is no number")
    return floats(values)


def _whole_numbers(values: pd.Series, column: str, named: str) -> pd.Series:
    numbers = _numbers(values, column, named)
    if not (numbers.between(0, 2**53) & (numbers % 1 == 0)).all():
        raise DataError(
            f"{named}: {column} counts rounds, so that it has to hold whole numbers of at least 0"
        )
    return numbers.astype("int64")


def _numbered(seeds: pd.Series, remarks: list[str]) -> pd.Series:
    """Seeds as whole numbers: as they are, or numbered in their order."""
    numbers = floats(seeds)
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


def _chosen(rows: pd.DataFrame, settings: Experiment) -> pd.DataFrame:
    """Lines of the methods and seeds that are reported."""
    methods = getattr(settings, "methods", None)  # a job of one method is not given them
    known = set(rows["method"].unique())
    for name in methods or ():
        if name not in known:
            raise DataError(f"methods: {unknown_name('method of the logs', name, known)}")
    if methods:
        rows = rows[rows["method"].isin(methods)]
    there = {int(seed) for seed in rows["replicate"].unique()}
    reported = there if settings.replicates is None else set(settings.replicates)
    if missing := sorted(reported - there):
        raise DataError(f"replicates: no log is of the {_seeds(missing)}")
    if both := sorted(reported & set(settings.tuned_on or ())):
        rest = f"; report the others: replicates: {sorted(there - set(both))}" if there - set(both) else ""
        raise DataError(f"tuned_on: the {_seeds(both)}, on which methods were tuned, would be reported{rest}")
    return rows[rows["replicate"].isin(reported)]


def _one_line_per_round(rows: pd.DataFrame, settings: Experiment) -> pd.DataFrame:
    """Join the lines of a run and round, each of which may hold other metrics; refuse two runs of a seed."""
    keys = ["method", "replicate", "round"]
    repeated = rows[rows.duplicated(keys, keep=False)]
    if repeated.empty:
        return rows
    values = [*settings.metrics, *_counted(rows, settings)]
    by_round = repeated.groupby(keys, sort=False)
    twice = by_round[FILE].nunique().gt(1) | (by_round[values].count() > 1).any(axis=1)
    if twice.any():
        method, seed, number = twice.index[twice.to_numpy()][0]
        own = repeated[(repeated["method"] == method) & (repeated["replicate"] == seed)]
        where = _listed(own[FILE].unique())
        if not own["round"].any():
            raise DataError(
                f"{where}: the run of {method} with the seed {seed} has several lines, and no column of "
                "rounds: name it, columns: {round: ...} (or --round NAME; --round line counts lines), or "
                "that of seeds (--seed NAME)"
            )
        raise DataError(
            f"two runs of {method} have the seed {seed} (round {number}, {where}): name the column of seeds "
            "(--seed), or {seed} in the pattern of files (--files), or choose lines by `where` (--where)"
        )
    return rows.groupby(keys, sort=False, as_index=False).first()


def _complete_method(
    method: str,
    own: pd.DataFrame,
    settings: Experiment,
    recorded: Mapping[str, set[int]],
    remarks: list[str],
) -> pd.DataFrame:
    """Return the runs of a method in rounds that all of them have; remarks name what was left out.

    `recorded` has, for each column that is not judged, the rounds in which any run has a number.
    """
    last = own.groupby("replicate")["round"].max()
    if len(set(last)) > 1:
        ends = _listed((f"at {end} the {_seeds(part.index)}" for end, part in last.groupby(last)), "; ")
        if not settings.stopped:
            raise DataError(
                f"runs of {method} end at different rounds: {ends}; state the last round that counts, until: "
                f"{last.min()} (or --until), or stopped: true (or --stopped) if a run stops once it is done"
            )
        remarks.append(f"runs of {method} stop at different rounds: {ends}; their last values are kept")
        own = _carried(own, [*settings.metrics, *recorded])
    counts = own.groupby("round")["replicate"].nunique()
    if len(gaps := counts.index[counts < len(last)]):
        lacking = sorted(
            set(last.index)
            - set.intersection(*(set(own.loc[own["round"] == gap, "replicate"]) for gap in gaps))
        )
        remarks.append(
            f"{method}: rounds {_listed(gaps)} are missing of the {_seeds(lacking)}, left out for all seeds"
        )
        own = own[~own["round"].isin(gaps)]
    own = own.sort_values(["replicate", "round"], ignore_index=True)
    own["diverged"] = False
    for name, metric in settings.metrics.items():
        _complete(method, own, name, np.inf if metric.better == "lower" else -np.inf, remarks)
    for name, rounds in recorded.items():
        own["diverged"] |= _divergence(method, own, name, remarks, rounds)
    return own


def _carried(own: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Runs in the rounds of all of them; where one has no record, its last one before counts."""
    rounds, runs = np.sort(own["round"].unique()), []
    for _, one in own.groupby("replicate"):
        one = one.sort_values("round").set_index("round")
        for name in names:
            values = one[name].to_numpy()
            if not _lost_for_good(values, np.isnan(values)).any():
                # Its last value may be older than its last record.
                one.loc[one.index[-1], name] = one[name].dropna().iloc[-1]
        runs.append(one[one.index.notna()].reindex(rounds[rounds >= one.index[0]], method="ffill"))
    return pd.concat(runs).rename_axis("round").reset_index()


def _divergence(
    method: str, own: pd.DataFrame, name: str, remarks: list[str], elsewhere: set[int] | None = None
) -> NDArray[np.bool_]:
    """Mask of the lines (R T) from which on a run holds no number any more; the remark names such seeds.

    Of a column that is not judged, `elsewhere` are the rounds in which any run of the experiment has one;
    logs may end before the run does, so that other runs have to show that numbers were due.
    """
    table = own.set_index(["replicate", "round"])[name].unstack()  # noqa: PD010
    values = table.to_numpy(float)
    due = np.isfinite(values).any(axis=0)
    ends = np.stack([_lost_for_good(run, np.isnan(values).all(axis=0)) for run in values])
    if elsewhere is not None:
        others = table.columns.isin(elsewhere)
        for run, lost in zip(values, ends, strict=True):
            shown = (due & lost).any() or (others & lost).sum() > 1 or np.isinf(run[lost]).any()
            lost &= bool(shown and np.isfinite(run).any())
    if (diverged := ends.any(axis=1)).any():
        called = name.removeprefix(_OTHER)
        cure = f" (unless settings say ignore: [{called}])" * (called != name)
        lost = _seeds(table.index[diverged])
        remarks.append(f"{method}: {called} ends in no number in the {lost}, which diverged{cure}")
    return ends.ravel()


def _complete(method: str, own: pd.DataFrame, name: str, worst: float, remarks: list[str]) -> None:
    """Give a metric its worst value once a run has diverged, and empty the rounds that some seed lacks."""
    table = own.set_index(["replicate", "round"])[name].unstack()  # noqa: PD010
    values = table.to_numpy(float).copy()
    empty = np.isnan(values).all(axis=0)
    ends = _divergence(method, own, name, remarks).reshape(values.shape)
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
    sides = {name: {"better": side} for name, side in metrics.items()}
    return checked({"logs": "in memory", "metrics": sides, **more})


def checked(given: Mapping[str, Any]) -> Experiment:
    """Return settings of an experiment as an object; those that nobody stated need not be there.

    Raises
    ------
    ConfigError
        A key or a value is none of them.
    """
    needed = {"methods": ["any"], "logs": "any", "metrics": {"any": {"better": "lower"}}}
    try:
        Experiment.model_validate({**needed, **given})
    except ValidationError as error:
        found = errors_in(error, Experiment, [])
        raise ConfigError("; ".join(line(path, text, []) for path, text in found)) from error
    return Experiment.of_job(given)
