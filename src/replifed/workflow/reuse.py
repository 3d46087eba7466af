"""Runs of a comparison that are taken from elsewhere where they would come out the same anyway.

They come from the reference run, or from what `--from` names: a folder, an archive, or its address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from replifed.algorithms.registry import METHODS
from replifed.data import download
from replifed.errors import ConfigError, DataError, one_line
from replifed.parts import COMPARE, part
from replifed.runs.recorded import Made, Recorded, open_recorded
from replifed.settings.comparison import comparison
from replifed.settings.needs import settings_for
from replifed.store import hashes, limits
from replifed.store.atomic import replacing
from replifed.store.provenance import canonical_json, source_hash
from replifed.workflow.jobs import files, owner, problem

_ADDRESS = re.compile(r"https?://")
_DIGEST = re.compile(r"(?P<place>.+)#sha256=(?P<sha256>[0-9a-f]{64})")


class Reused(NamedTuple):
    """Runs that were taken, as "EXPERIMENT/METHOD", and why the others were not, by method."""

    runs: list[str]
    reasons: dict[str, str]


def opened(place: str, folder: Path) -> Recorded:
    """Open what `--from` names: a folder, an archive whose digest may follow, or an address and its digest.

    An archive from an address is kept in `folder`, by its digest.

    Raises
    ------
    ConfigError, DataError
        An address has no digest; nothing is there; its digest is another one.
    """
    found = _DIGEST.fullmatch(place)
    where, wanted = (found["place"], found["sha256"]) if found else (place, "")
    if "#sha256" in where:
        raise ConfigError(f"{place}: a digest is 64 small hexadecimal digits, as in run.zip#sha256=...")
    file = Path(where)
    if _ADDRESS.match(where):
        if not wanted:
            raise ConfigError(f"{where}: add its digest, {where}#sha256=...")
        file = folder / f"{wanted}.zip"
        if not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                with replacing(file) as temporary:
                    download.download(where, temporary, limits.most())
                    _check_digest(where, temporary, wanted)
            except download.UnavailableError as error:
                raise DataError(f"{where} cannot be had: {one_line(error)}") from error
    if wanted:
        _check_digest(where, file, wanted)
    return open_recorded(file)


def _check_digest(name: str, file: Path, wanted: str) -> None:
    if file.is_dir():
        raise ConfigError(f"{name} is a folder: a digest is that of an archive")
    if (now := hashes.file_hash(file)) != wanted:
        raise DataError(f"{name}: its sha256 is {now}, not {wanted}; nothing of it was read")


def reuse(
    config: Mapping[str, Any],
    source: Recorded,
    make: Callable[[list[str]], int],
    there: Collection[str] = (),
) -> Reused:
    """Copy runs of the comparison of `config` to a folder of their own among the results.

    A run is taken if it is not made yet, nor `there`, and its settings, its sources, its data, their split
    and their own test set are those that it would have here. `make` makes files of the workflow, such as the
    split; it returns a status.
    """
    section = comparison(config) or {"experiments": {}}
    runs: list[str] = []
    reasons: dict[str, str] = {}
    for experiment, one in section["experiments"].items():
        names = [
            method
            for method in one["methods"]
            if source.content(experiment, f"{method}.parquet") is not None
            and f"{experiment}/{method}" not in there
            and not _made(config, "run", experiment, method).is_file()
        ]
        read = _read({**config, COMPARE: section}, experiment) if names else {}
        own = one.get("dataset") in config.get("datasets", {})
        reason = _of_the_data(experiment, read, own, source, make)
        for method in names:
            if why := reason or _of_the_run(section, experiment, method, source, read.get("test")):
                reasons[method] = why
            else:
                _copy(config, experiment, method, source)
                runs.append(f"{experiment}/{method}")
    return Reused(runs, reasons)


def _read(config: Mapping[str, Any], experiment: str) -> dict[str, Path]:
    """Return the files with the split, and the data set's own test set, that runs here read."""
    keys = problem(config, COMPARE, experiment)
    found: dict[str, Path] = {}
    for name in ("partition", "test"):
        if name in keys:
            kind, _, of = keys[name].partition(":")
            found[name] = Path(files(kind, of, config["paths"])[0])
    return found


def _of_the_data(
    experiment: str,
    read: Mapping[str, Path],
    own: bool,
    source: Recorded,
    make: Callable[[list[str]], int],
) -> str:
    """Say why no run on an experiment is taken: its data, or who holds which, are others.

    Files of data of one's `own` may have changed since the split, which is then made again.
    """
    wanted = [str(file) for file in read.values() if own or not file.is_file()]
    if wanted and make(wanted):
        return "data that cannot be split here"
    if "partition" not in read or hashes.file_hash(read["partition"]) in source.partitions(experiment):
        return ""
    return "other data, or other clients"


def _of_the_run(
    section: Mapping[str, Any], experiment: str, method: str, source: Recorded, test: Path | None
) -> str:
    """Say why a run is not taken; "" if it would come out the same."""
    try:
        made = source.run(experiment, method)
    except DataError as error:
        return str(error)
    assert made is not None
    return (
        other_settings(section, experiment, method, source, made)
        or other_sources(method, made)
        or other_test(made, test)
    )


def other_settings(
    section: Mapping[str, Any], experiment: str, method: str, source: Recorded, made: Made
) -> str:
    """Say which settings a run, or its search, has that it would not have here, or which data."""
    now = {"run": made.meta["settings"]}
    if searched := source.tuned(experiment, method):
        now["tune"] = searched["meta"]["settings"]
    changed: list[str] = []
    for step, before in now.items():
        if step == "tune" and "tuning" not in section["experiments"][experiment]:
            continue
        # As JSON, since those of a run have been through a file: there a tuple is a list.
        wanted = settings_for(step, section, experiment)
        changed += [
            key
            for key in {**wanted, **before}
            if canonical_json(wanted.get(key)) != canonical_json(before.get(key))
        ]
    if changed:
        return f"other settings: {', '.join(dict.fromkeys(changed))}"
    kind = made.meta["data"]["kind"]
    return "" if kind in ("original", "synthetic") else f"{kind} data"


def other_sources(method: str, made: Made) -> str:
    """Say which modules of a run have changed since; a file of one's own may lie elsewhere now."""
    own, engine = METHODS[method].split(":")[0], part(COMPARE, "experiments")
    digests = {name: digest for name, digest in made.meta["source"].items() if name != engine}
    changed = [own] if source_hash(own) not in digests.values() else []
    changed += [engine] if source_hash(engine) != made.meta["source"].get(engine) else []
    return f"other sources: {', '.join(changed)}" if changed else ""


def other_test(made: Made, test: Path | None) -> str:
    """Say that a run was tested on another file than `test`, the data set's own test set, if it reads one."""
    if test is None:
        return ""
    if "test" not in made.meta["data"]:
        return "no record of its test set"
    return "" if made.meta["data"]["test"] == hashes.file_hash(test) else "another test set"


def _copy(config: Mapping[str, Any], experiment: str, method: str, source: Recorded) -> None:
    for suffix in (".parquet", ".tuned.json"):
        content = source.content(experiment, f"{method}{suffix}")
        if content is not None:
            file = Path(files("reused", f"{experiment}/{method}{suffix}", config["paths"])[0])
            if (
                not file.is_file() or file.read_bytes() != content
            ):  # else its time stays, and no figure is made anew
                with replacing(file) as temporary:
                    temporary.write_bytes(content)
            hashes.record([file])


def _made(config: Mapping[str, Any], kind: str, experiment: str, method: str = "") -> Path:
    """Return the first file of a job of the comparison, which may share it with `cross`."""
    section = owner(config, COMPARE, experiment, method)
    name = "/".join(filter(None, (section, experiment, method)))
    return Path(files(kind, name, config["paths"])[0])
