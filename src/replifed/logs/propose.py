"""A mapping for logs that nobody has described, by usual names of columns and files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from replifed.errors import ConfigError, DataError, counted, unknown_name
from replifed.logs import files
from replifed.logs.files import spoilt
from replifed.logs.histories import Logged, logged, settings_of
from replifed.logs.settings import Experiment

# Usual names of columns, the first ones first.
_USUAL = {
    "method": ("method", "algorithm", "algo", "solver_name", "solver", "optimizer", "strategy"),
    "seed": ("seed", "replicate", "idx_rep", "repetition", "rep", "trial", "run", "run_id"),
    "round": (
        *("round", "rounds", "server_round", "communication_round", "comm_round", "stop_val"),
        *("iteration", "iter", "step", "epoch", "t"),
    ),
    "bits": ("bits", "bits_total", "total_bits", "communicated_bits"),
}
# Names of files that say method and seed; else the whole name is the method's.
_NAMES = (
    *("{method}_seed{seed}", "{method}-seed{seed}", "{method}_s{seed}", "{method}_{seed}", "{method}-{seed}"),
    *("{method}/seed{seed}", "{method}/seed_{seed}", "{method}/{seed}"),
    *("seed{seed}/{method}", "seed_{seed}/{method}", "{seed}/{method}"),
)
_SUFFIXES = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".parquet")
_INDEX = "Unnamed: 0"  # of lines, without a name
_NAMED = 3  # files that an error names
FOLDER = "logs"  # of the copies in the paper's folder


class Proposal(NamedTuple):
    """Logs of a folder, and how they would be read."""

    copies: dict[str, Path]  # by their names in the paper's folder
    patterns: list[str]
    columns: dict[str, str]
    metrics: list[str]  # columns of numbers that mean nothing else
    frames: list[pd.DataFrame]
    remarks: list[str]

    def settings(self, better: Mapping[str, str]) -> dict[str, Any]:
        """Settings of the experiment, of the metrics whose better side is stated."""
        if not better:
            names = ", ".join(self.metrics)
            raise ConfigError(
                f"which side is better is not guessed: give --lower NAME or --higher NAME, of {names}"
            )
        for name in better:
            if name not in self.metrics:
                if any(name in frame for frame in self.frames):
                    raise DataError(_no_metric(name, self.frames))
                raise ConfigError(unknown_name("metric", name, self.metrics))
        if len({metric_name(name) for name in better}) < len(better):
            raise ConfigError(f"two of the metrics {', '.join(better)} would have one name; rename a column")
        named = {metric_name(name): {"better": side, "column": name} for name, side in better.items()}
        logs = self.patterns[0] if len(self.patterns) == 1 else self.patterns
        return {"logs": logs, "columns": self.columns, "metrics": named}

    def runs(self, better: Mapping[str, str]) -> Logged:
        """The logs, read so."""
        return logged(self.frames, Experiment.of_job(self.settings(better)))


def metric_name(column: str) -> str:
    """Name of a metric in settings and claims.

    >>> metric_name("Test Acc (%)")
    'test_acc'
    """
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")
    return name if name[:1].isalpha() else f"metric_{name}".rstrip("_")


def propose(folder: Path, pattern: str | None = None) -> Proposal:
    """Look at the logs in a folder, or at those of a pattern, and propose what columns and names mean.

    Raises
    ------
    DataError
        The folder holds no log.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder of logs")
    lost: dict[str, str] = {}
    read: dict[Path, pd.DataFrame] = {}
    if pattern is not None:
        settings_of({"any": "lower"}, logs=pattern)  # the rules of patterns
        read = {log.path: files.read(log.path) for log in files.find(folder, pattern)}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and pattern is None):
        known = path.suffix in _SUFFIXES or files.EVENTS in path.name
        if known and not files.is_hidden(path.relative_to(folder).as_posix()):
            try:
                read[path] = files.read(path)
            except DataError as error:
                lost[path.relative_to(folder).as_posix()] = str(error)
    if not read:
        raise DataError(
            f"{folder} holds no log: no table in CSV, JSON lines, parquet or events{_first(lost)}"
        )
    remarks = [f"left out: {error}" for error in lost.values()]
    usual = Counter(tuple(frame.columns) for frame in read.values()).most_common(1)[0][0]
    for path in [path for path, frame in read.items() if tuple(frame.columns) != usual]:
        remarks.append(f"left out: {path} has other columns ({', '.join(map(str, read.pop(path).columns))})")
    frame = pd.concat(read.values(), ignore_index=True)
    columns = dict(_columns(frame))
    names = {path: path.relative_to(folder).as_posix() for path in read}
    patterns = [pattern] if pattern else _patterns(list(names.values()), columns)
    frames = [
        one.assign(**_named(name, patterns), _file=name)
        for one, name in zip(read.values(), names.values(), strict=True)
    ]
    metrics = [str(name) for name in frame if name not in columns.values() and _is_metric(frame[name])]
    if not metrics:
        others = [str(name) for name in frame if name not in columns.values() and name != _INDEX]
        why = f"; {_no_metric(others[0], frames)}" if others else ""
        raise DataError(f"{folder} holds no metric: its columns are {', '.join(map(str, usual))}{why}")
    copies = {f"{FOLDER}/{name}": path for path, name in names.items()}
    return Proposal(
        copies, [f"{FOLDER}/{pattern}" for pattern in patterns], columns, metrics, frames, remarks
    )


def _first(lost: Mapping[str, str]) -> str:
    """Say how many files are left out, the first names, and why the first one is."""
    if not lost:
        return ""
    names = ", ".join([*islice(lost, _NAMED), *(["..."] if len(lost) > _NAMED else [])])
    return f"; left out: {counted(len(lost), 'file')} ({names}); {next(iter(lost.values()))}"


def _no_metric(column: str, frames: Sequence[pd.DataFrame]) -> str:
    """Say what a column holds that is no number."""
    values = pd.concat([frame[column] for frame in frames if column in frame], ignore_index=True)
    found = spoilt(values)
    if not len(found):
        return f"{column} is no metric: it holds no number, or says something else"
    text = str(found.iloc[0])[:40]
    cure = "; write a point for the comma" if re.fullmatch(r"-?[\d.]+,[\d,]+(e-?\d+)?", text) else ""
    return f"{column} is no metric: it holds {text!r}, which is no number{cure}"


def _columns(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    lower = {str(name).lower(): str(name) for name in frame}
    for meaning, usual in _USUAL.items():
        found = next((lower[name] for name in usual if name in lower), None)
        if found is not None and (
            meaning == "method" or pd.to_numeric(frame[found], errors="coerce").notna().all()
        ):
            yield meaning, found


def _is_metric(values: pd.Series) -> bool:
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return numeric and values.notna().any() and not str(values.name).startswith("Unnamed")


def _patterns(names: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """Patterns of the files, one for each ending."""
    endings = sorted({_ending(name) for name in names})
    if "method" in columns:
        nested = any("/" in name for name in names)
        return [f"{'**/' * nested}*{ending}" for ending in endings]
    for pattern in _NAMES if "seed" not in columns else ():
        found = [_named(name, [pattern + ending for ending in endings]) for name in names]
        pairs = [(one["method"], one["seed"]) for one in found if one.get("seed", "").isdecimal()]
        if len(set(pairs)) == len(names) and len({seed for _, seed in pairs}) > 1:
            return [pattern + ending for ending in endings]
    stems = [Path(name).name for name in names]
    if len(set(stems)) < len(stems):
        raise DataError("files in several folders have one name, and no column says the method; rename them")
    return [f"{'**/' * any('/' in name for name in names)}{{method}}{ending}" for ending in endings]


def _ending(name: str) -> str:
    return "" if files.EVENTS in name else Path(name).suffix


def _named(name: str, patterns: Sequence[str]) -> dict[str, str]:
    found = (re.fullmatch("".join(files.expression(pattern)), name) for pattern in patterns)
    return next((match.groupdict() for match in found if match), {})


def described(proposal: Proposal, runs: Logged | None) -> list[str]:
    """Lines on the logs: files, columns, methods with their seeds, metrics with their ranges."""
    whole = pd.concat(proposal.frames, ignore_index=True)
    lines = [f"{counted(len(proposal.frames), 'log')}, read as {', '.join(proposal.patterns)}"]
    lines += [f"{meaning}: column {column}" for meaning, column in proposal.columns.items()]
    for name in proposal.metrics:
        lines.append(f"metric {name}: from {whole[name].min():.4g} to {whole[name].max():.4g}")
    if runs is None:
        return [*lines, *proposal.remarks]
    for name, label in runs.labels.items():
        own = runs.history(name)
        seeds, rounds = own["replicate"].nunique(), own["round"].nunique()
        lines.append(f"method {name} ({label}): {counted(seeds, 'seed')}, {counted(rounds, 'round')}")
    return [*lines, *proposal.remarks, *runs.remarks]
