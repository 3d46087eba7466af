"""What logs that nobody has described are likely to mean: settings, each guess of which is said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from replifed.claims.evidence import LOGS
from replifed.errors import ConfigError, DataError, counted, meant, unknown_name
from replifed.logs import files, meanings, names, unopened
from replifed.logs.histories import CombinedLogs, combine_logs, placed
from replifed.logs.meanings import FILE, ROW, VALUE
from replifed.logs.reading import read
from replifed.logs.settings import Experiment
from replifed.logs.texts import check_lines
from replifed.logs.values import floats, spoilt
from replifed.logs.wide import is_run, stacked

_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".log", ".dat", ".json", ".jsonl", ".ndjson"),
    *(".parquet", ".npz", ".npy", *unopened.CLOSED),
)
_NAMED = 3  # files that an error names
_WANDB = re.compile(r"(?P<run>.+) - (?P<metric>[^-]+)")  # a column of its exports
FOLDER = "logs"  # of the copies in the paper's folder


@dataclass
class Proposal:
    """What was found in a folder of logs so far, and how they would be read."""

    source: Path
    settings: dict[str, Any]  # of the experiment: what was stated, and what is guessed
    columns: list[str] = field(default_factory=list)  # that the logs have
    metrics: list[str] = field(default_factory=list)  # columns of numbers that mean nothing else
    frames: list[pd.DataFrame] = field(default_factory=list)
    copies: dict[str, Path] = field(default_factory=dict)  # by their names in the paper's folder
    remarks: list[str] = field(default_factory=list)

    def runs(self) -> CombinedLogs:
        """The logs, read by these settings."""
        return combine_logs(self.frames, Experiment.of_job(self.settings))


def metric_name(column: str) -> str:
    """Name of a metric in settings and claims.

    >>> metric_name("Test Acc (%)")
    'test_acc'
    """
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")
    return name if name[:1].isalpha() else f"metric_{name}".rstrip("_")


def propose(found: Proposal, better: Mapping[str, str]) -> None:
    """Look at the logs, and complete the settings: what columns and names mean, and metrics by their side.

    Parameters
    ----------
    found : is filled step by step, so that it holds what was found if a step fails.
    better : the better side of columns; metrics that the settings state stay.

    Raises
    ------
    DataError
        There is no log, or what its columns or names mean is not clear.
    ConfigError
        The better side of no metric is stated, or one is unknown.
    """
    if not found.source.is_dir():
        raise ConfigError(f"{found.source} is no folder of logs")
    stated = found.settings
    tables = _alike(found, _tables(found), better)
    check_lines(found.source, sum(map(len, tables.values())))
    whole = pd.concat(tables.values(), ignore_index=True)
    found.columns = [str(name) for name in whole]
    stated["columns"] = _columns(whole, stated.get("columns", {}))
    relative = {path: path.relative_to(found.source).as_posix() for path in tables}
    _make_wide(found, whole, better)
    _ask_about_rows(found, whole)
    if "logs" not in stated:
        stated["logs"] = _plain(_patterns(found, list(relative.values())))
    patterns = _listed(stated["logs"])
    for path, frame in tables.items():
        name = relative[path]
        says = next(filter(None, (files.parse_name(one, name) for one in patterns)), {})
        found.frames.append(placed(frame, says, name))
        found.copies[f"{FOLDER}/{name}"] = path
    # Names of files may say a column that has a usual name, too, such as {solver}.
    first = found.frames[0]
    for meaning in ("method", "seed"):
        if meaning not in stated["columns"] and meaning not in first:
            stated["columns"] |= dict(zip([meaning], meanings.find(meaning, first), strict=False))
    _weigh_clients(found)
    said = {key for one in patterns for key in re.findall(r"\{(\w+)\}", one)}
    taken = {*stated["columns"].values(), *stated.get("where", {}), *said, FILE, ROW, "method", "seed"}
    shown = _stacked(found)[0]
    found.metrics = [name for name in shown if name not in taken and is_run(shown[name])]
    if not found.metrics:
        others = [one for one in found.columns if one not in taken and not one.startswith("Unnamed")]
        why = f"; {_no_metric(others[0], found.frames)}" if others else ""
        raise DataError(f"{found.source} holds no metric: its columns are {', '.join(found.columns)}{why}")
    stated["metrics"] = _metrics(found, better)


def _tables(found: Proposal) -> dict[Path, pd.DataFrame]:
    """Tables of all files that could be logs, or of those that are stated."""
    source, lost, read_so_far = found.source, {}, {}
    if stated := found.settings.get("logs"):
        paths = [log.path for log in files.find(source, stated)]
    else:
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        named = {path: path.relative_to(source).as_posix() for path in paths}
        paths = [path for path in paths if _may_be_log(path) and not files.is_hidden(named[path])]
    said: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        try:
            read_so_far[path], words = read(path)
        except DataError as error:
            if stated:
                raise
            lost[path.relative_to(source).as_posix()] = str(error)
            continue
        for one in words:
            said[one].append(path.relative_to(source).as_posix())
    if not read_so_far:
        raise DataError(
            f"{source} holds no log: no table in text, JSON, parquet, arrays of numpy or events"
            + (f"; left out: {_lost(lost)}" if lost else "")
        )
    found.remarks += [f"{_some(which)}: {one}" for one, which in said.items()]
    if lost:
        found.remarks.append(f"left out: {_lost(lost)}")
    return read_so_far


def _lost(lost: Mapping[str, str]) -> str:
    """Say how many files are left out, the first names, and why the first one is."""
    return f"{counted(len(lost), 'file')} ({_some(lost)}); {next(iter(lost.values()))}"


def _may_be_log(path: Path) -> bool:
    end = files.ending(path.name)
    for packing in files.PACKED:
        end = end.removesuffix(packing)
    return files.EVENTS in path.name or end.lower() in _SUFFIXES


def _alike(
    found: Proposal, tables: dict[Path, pd.DataFrame], better: Mapping[str, str]
) -> dict[Path, pd.DataFrame]:
    """Tables with the same columns as most others; those that have the metrics that are judged, if any."""
    groups = defaultdict(list)
    for path, frame in tables.items():
        groups[frozenset(map(str, frame.columns))].append(path)
    usual = max(
        groups,
        key=lambda one: (
            len(one & set(better)),
            len(groups[one]),
            sum(len(tables[path]) for path in groups[one]),
        ),
    )
    kept = {}
    for path, frame in tables.items():
        if usual <= set(map(str, frame.columns)):
            kept[path] = frame.loc[:, [str(name) in usual for name in frame]]
            continue
        others = ", ".join(map(str, frame.columns))
        found.remarks.append(f"left out: {path} has other columns ({others})")
    return kept


def _columns(whole: pd.DataFrame, stated: Mapping[str, str]) -> dict[str, str]:
    """Columns by what they mean: as stated, or by usual names."""
    columns = {}
    for meaning in ("method", "seed", "round", "bits"):
        if meaning in stated:
            columns[meaning] = stated[meaning]
            continue
        for name in meanings.find(meaning, map(str, whole)):
            numbers = floats(whole[name]) if list(whole).count(name) == 1 else pd.Series(dtype=float)
            counts = meaning == "bits" or bool(((numbers >= 0) & (numbers % 1 == 0)).all())
            if meaning == "method" or (len(numbers) and numbers.notna().all() and counts):
                columns[meaning] = name
                break
    return columns | {meaning: name for meaning, name in stated.items() if meaning not in columns}


def _patterns(found: Proposal, paths: Sequence[str]) -> list[str]:
    """Patterns of the files, one for each ending."""
    columns, wide = found.settings["columns"], found.settings.get("wide", "")
    method, seed = (
        ("method" not in columns and "{method}" not in wide),
        ("seed" not in columns and "{seed}" not in wide),
    )
    ends = sorted({files.ending(name) for name in paths})
    if not method and (not seed or len(paths) == 1):
        return [f"{'**/' * any('/' in name for name in paths)}*{end}" for end in ends]
    # Writers of events name files by time and machine, and runs by their folders.
    stems = [_stem(name) for name in paths]
    beside = all(files.EVENTS in name for name in paths) and all("/" in name for name in paths)
    if beside:
        stems = [Path(name).parent.as_posix() for name in paths]
    end = ends[0] if len(ends) == 1 else ""
    below = f"/*{files.EVENTS}*" if beside else ""
    pattern, said = names.guess(stems, method=method, seed=seed, end=below or end)
    found.remarks += [said] if said else []
    return [pattern + below] if beside else [pattern + end for end in ends]


def _stem(name: str) -> str:
    end = files.ending(name)
    return name[: -len(end)] if end else name


def _make_wide(found: Proposal, whole: pd.DataFrame, better: Mapping[str, str]) -> None:
    """Take columns for runs, where their names are those of wandb, or the metric that is stated is none."""
    stated = found.settings
    if "wide" in stated or "metrics" in stated:
        return
    taken = {*stated["columns"].values(), *stated.get("where", {})}
    free = [one for one in found.columns if one not in taken and is_run(whole[one])]
    exports = [match for one in free if (match := _WANDB.fullmatch(one))]
    if exports and not set(better) & set(free):
        runs = list(dict.fromkeys(match["run"] for match in exports))
        pattern, said = names.guess(runs, method="method" not in stated["columns"], seed=True, ask="--wide")
        stated["wide"] = f"{pattern} - {{metric}}"
        found.remarks.append(
            f"columns are runs, as wandb exports them: {stated['wide']}{'; ' * bool(said)}{said}"
        )
        return
    if len(better) != 1 or len(free) < 2 or "method" in stated["columns"] or "round" not in stated["columns"]:
        return
    (metric,) = better
    unlike = not any(meant(metric, [one]) or metric_name(metric) in metric_name(one) for one in free)
    if unlike and not any(_is_usual_metric(one) for one in free):
        pattern, said = names.guess(free, method=True, seed="seed" not in stated["columns"], ask="--wide")
        stated["wide"] = pattern
        found.remarks.append(
            f"columns are runs, one column per method: {pattern} ({', '.join(free)}){'; ' * bool(said)}{said}"
        )


def _ask_about_rows(found: Proposal, whole: pd.DataFrame) -> None:
    """Refuse rows that are runs if nothing says what tells them apart."""
    named = {"method", "seed"} & set(found.settings["columns"])
    if ROW in whole and len(whole[ROW].unique()) > 1 and not named:
        raise DataError(
            f"{found.source}: each row is a run, and nothing says of what: give --seed {ROW} if each is "
            f"a seed, --method {ROW} if each is a method"
        )


def _is_usual_metric(column: str) -> bool:
    words = (
        "column",
        "loss",
        "acc",
        "obj",
        "err",
        "gap",
        "val",
        "test",
        "train",
        "time",
        "grad",
        "auc",
        "f1",
        "lr",
    )
    return any(word in metric_name(column) for word in words)


def _stacked(found: Proposal) -> list[pd.DataFrame]:
    if "wide" not in found.settings:
        return found.frames
    others = {*found.settings["columns"].values(), *found.settings.get("where", {})}
    return [stacked(one, found.settings["wide"], others, one[FILE].iloc[0]) for one in found.frames]


def _weigh_clients(found: Proposal) -> None:
    """Take a column of clients for what it is if rounds have several lines."""
    columns = found.settings["columns"]
    if "client" in columns or "round" not in columns:
        return
    for frame in found.frames:
        own = [columns.get(one, one) for one in ("method", "seed", "round")]
        keys = [one for one in (*own, *found.settings.get("where", {})) if one in frame]
        for client in meanings.find("client", map(str, frame)):
            several = frame.duplicated(keys).any() and not frame.duplicated([*keys, client]).any()
            if several and len(frame[client].unique()) > 1 and client not in columns.values():
                columns["client"] = client
                if "weight" not in columns:
                    columns |= dict(zip(["weight"], meanings.find("weight", map(str, frame)), strict=False))
                columns.pop("bits", None)
                return


def _metrics(found: Proposal, better: Mapping[str, str]) -> dict[str, Any]:
    """Metrics that are judged, by name: those that the settings state, and columns with a side."""
    metrics: dict[str, Any] = dict(found.settings.get("metrics", {}))
    for given, side in better.items():
        column = _metric_column(found, given, better)
        name = metric_name(given)
        if name in metrics and metrics[name].get("column", name) != column:
            raise ConfigError(f"two of the metrics {', '.join(better)} would have one name; rename a column")
        metrics[name] = {"better": side, "column": column}
    if not metrics:
        raise ConfigError(
            "which side is better is not guessed: give --lower NAME or --higher NAME, of "
            + ", ".join(found.metrics)
        )
    return metrics


def _metric_column(found: Proposal, given: str, better: Mapping[str, str]) -> str:
    if given in found.metrics:
        return given
    short = [one for one in found.metrics if re.split(r"[./ ]", one)[-1] == given]
    if len(short) == 1:
        return short[0]
    if VALUE in found.metrics and len(better) == 1 and not meant(given, found.metrics):
        found.remarks.append(f"{VALUE} is called {given}")
        return VALUE
    if any(given in frame for frame in found.frames):
        raise DataError(_no_metric(given, found.frames))
    raise ConfigError(unknown_name("metric", given, found.metrics))


def _no_metric(column: str, frames: Sequence[pd.DataFrame]) -> str:
    """Say what a column holds that is no number."""
    values = pd.concat([frame[column] for frame in frames if column in frame], ignore_index=True)
    wrong = spoilt(values)
    if not len(wrong):
        return f"{column} is no metric: it holds no number, or says something else"
    text = str(wrong.iloc[0])[:40]
    cure = "; write a point for the comma" if re.fullmatch(r"-?[\d.]+,[\d,]+(e-?\d+)?", text) else ""
    return f"{column} is no metric: it holds {text!r}, which is no number{cure}"


def _listed(patterns: str | list[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _plain(patterns: list[str]) -> str | list[str]:
    return patterns[0] if len(patterns) == 1 else patterns


def _some(which: Iterable[str]) -> str:
    which = list(which)
    return ", ".join([*islice(which, _NAMED), *(["..."] if len(which) > _NAMED else [])])


def described(found: Proposal, runs: CombinedLogs | None) -> list[str]:
    """Lines on the logs: files, columns, methods with their seeds, metrics with their ranges."""
    if not found.frames:
        return found.remarks
    whole = pd.concat(_stacked(found), ignore_index=True)
    read_as = ", ".join(_listed(found.settings["logs"]))
    lines = [f"{counted(len(found.frames), 'log')}, read as {read_as}"]
    if (evidence := found.settings.get("evidence")) is not None:
        lines.append(f"evidence: {evidence}" + "; give --own if the runs are yours" * (evidence == LOGS))
    lines += [f"{meaning}: column {column}" for meaning, column in found.settings["columns"].items()]
    for name in found.metrics:
        values = floats(whole[name])
        lines.append(f"metric {name}: from {values.min():.4g} to {values.max():.4g}")
    for name, label in runs.labels.items() if runs else ():
        own = runs.history(name)  # type: ignore[union-attr]
        seeds, rounds = own["replicate"].nunique(), own["round"].nunique()
        lines.append(f"method {name} ({label}): {counted(seeds, 'seed')}, {counted(rounds, 'round')}")
    return [*lines, *(f"note: {one}" for one in (*found.remarks, *(runs.remarks if runs else ())))]
