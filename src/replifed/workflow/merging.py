"""One comparison made of several that were made before: their runs side by side, and all figures anew."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from replifed.errors import ConfigError, DataError
from replifed.parts import COMPARE
from replifed.runs.recorded import Recorded
from replifed.settings.comparison import shown
from replifed.store.atomic import replacing
from replifed.store.provenance import canonical_json

# Figures and tables that need no data, which a recorded run does not hold.
_SUFFIXES = {"figure": ("csv", "pdf", "png"), "table": ("csv", "md", "tex")}
# Ends of experiments that are no problems of their own.
_TRACK = re.compile(r"_(untuned|study_\d+)$")
# Settings in which searches of one experiment may differ, and runs: none.
_NO_RESULT = ("methods", "tuning")


def merge(sources: Sequence[Recorded], out: Path, time: str | None, made_by: str) -> list[str]:
    """Write a folder with the runs of several comparisons as one, with its figures, tables and page.

    They have to agree, on each problem that all have, on settings, data and clients; problems that only some
    have are left out. The folder can be merged again, and `replifed compare --from` takes it.

    Returns
    -------
    list of str
        What was left out, and the files to look at.

    Raises
    ------
    ConfigError, DataError
        The folder is there already; the comparisons differ, or have no problem in common.
    """
    if out.exists():
        raise ConfigError(f"{out} exists; give --out the name of a new folder")
    problems = [{name for name, _ in one.runs() if not _TRACK.search(name)} for one in sources]
    shared = sorted(set.intersection(*problems))
    if not shared:
        text = ", ".join(
            f"{one.place} is on {', '.join(sorted(of))}" for one, of in zip(sources, problems, strict=True)
        )
        raise DataError(f"{text}: they have no problem in common")
    runs = _runs(sources, shared)
    experiments = {experiment: _settings(runs, experiment) for experiment in shared}
    for first, second in pairwise(sources):
        _check_clients(first, second, shared)
    scale = sources[0].scale
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as folder:
        made = Path(folder, "made")
        _write_runs(made / "results" / COMPARE, runs, shared)
        _write_figures(made, runs, experiments, scale, time, made_by)
        shutil.move(made, out)
    left_out = sorted(set.union(*problems) - set(shared))
    lines = [f"left out, not in all: {', '.join(left_out)}"] if left_out else []
    return [*lines, *(str(out / name) for name in ("figures", "report.html"))]


Runs = Mapping[tuple[str, str], tuple[Recorded, Any]]
"""Where each run was found, and it, by experiment and method."""


def _runs(sources: Sequence[Recorded], shared: Sequence[str]) -> Runs:
    """Return the runs of all; one that two have must be the same."""
    found: dict[tuple[str, str], tuple[Recorded, Any]] = {}
    for source in sources:
        for experiment, method in source.runs():
            if experiment not in shared:
                continue
            made = source.run(experiment, method)
            if made is None:
                continue
            key = (experiment, method)
            if key not in found:
                found[key] = (source, made)
                continue
            other, before = found[key]
            differ = [part for part in ("settings", "source", "data") if before.meta[part] != made.meta[part]]
            if differ:
                raise DataError(
                    f"{other.place} and {source.place} both have {experiment}/{method}, and its "
                    f"{' and '.join(differ)} differ; run one of them anew"
                )
    return found


def _settings(runs: Runs, experiment: str) -> dict[str, Any]:
    """Return the settings of an experiment, which all of its runs and searches have, with its methods."""
    of = {method: one for (name, method), one in runs.items() if name == experiment}
    first, *others = of
    settings = _all_settings(*of[first], experiment, first)
    for method in others:
        now = _all_settings(*of[method], experiment, method)
        differ = [
            key
            for key in {**settings, **now}
            if key not in _NO_RESULT and canonical_json(settings.get(key)) != canonical_json(now.get(key))
        ]
        places = f"{of[first][0].place} and {of[method][0].place}"
        if differ:
            raise DataError(f"{places} differ on {experiment}: other settings: {', '.join(differ)}")
        data = [one.meta["data"] for one in (of[first][1], of[method][1])]
        if data[0] != data[1]:
            raise DataError(f"{places} are on different data: {experiment} of {first} and of {method}")
        if "tuning" in settings and now.get("tuning", settings["tuning"]) != settings["tuning"]:
            raise DataError(f"{places} differ on {experiment}: other settings: tuning")
    return {**settings, "methods": list(of)}


def _all_settings(source: Recorded, made: Any, experiment: str, method: str) -> dict[str, Any]:
    searched = source.tuned(experiment, method)
    tuning = searched["meta"]["settings"].get("tuning") if searched else None
    return {**made.meta["settings"], **({"tuning": tuning} if tuning else {})}


def _check_clients(first: Recorded, second: Recorded, shared: Sequence[str]) -> None:
    for experiment in shared:
        ours, theirs = first.partitions(experiment), second.partitions(experiment)
        if ours and theirs and not ours & theirs:
            raise DataError(
                f"{first.place} and {second.place} are on different data, or clients: {experiment}"
            )


def _write_runs(folder: Path, runs: Runs, shared: Sequence[str]) -> None:
    for (experiment, method), (source, _) in runs.items():
        for name in (f"{method}.parquet", f"{method}.tuned.json", "partition.npz"):
            content = source.content(experiment, name)
            file = folder / experiment / name
            if content is not None and not file.is_file():
                with replacing(file) as temporary:
                    temporary.write_bytes(content)


def _write_figures(
    made: Path,
    runs: Runs,
    experiments: Mapping[str, Mapping[str, Any]],
    scale: str,
    time: str | None,
    made_by: str,
) -> None:
    from replifed.papers.jobs import artefact
    from replifed.report.page import build
    from replifed.settings.needs import artefact_keys

    results, figures = made / "results" / COMPARE, made / "figures"
    by_experiment = {name: one["methods"] for name, one in experiments.items()}
    split = [name for name in experiments if (results / name / "partition.npz").is_file()]
    entries = shown(by_experiment, split, time)
    seed = next(iter(experiments.values()))["seed"]
    for name, entry in entries.items():
        inputs = {key: [results / file] for key in artefact_keys(entry) if (file := _file_of(key))}
        inputs = {key: files for key, files in inputs.items() if files[0].is_file()}
        settings = {"artefact": entry, "experiments": experiments, "seed": seed}
        outputs = {suffix: figures / COMPARE / f"{name}.{suffix}" for suffix in _SUFFIXES[entry["kind"]]}
        artefact(COMPARE, name, dict(settings), scale, inputs, outputs)
    kept = {name: {k: v for k, v in one.items() if k not in _NO_RESULT} for name, one in experiments.items()}
    section = {"artefacts": entries, "experiments": kept, "made_by": made_by}
    build(figures, scale, {"papers": [COMPARE], COMPARE: section}, made / "report.html", single=True)


def _file_of(key: str) -> str:
    """Return the file of a run, a search or a partition; "" of data."""
    kind, _, name = key.partition(":")
    return {
        "run": f"{name}.parquet",
        "tuned": f"{name}.tuned.json",
        "partition": f"{name}/partition.npz",
    }.get(kind, "")
