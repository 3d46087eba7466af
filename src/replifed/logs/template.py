"""`replifed new paper --from-logs`: a folder with a paper on logs, which is judged as it stands."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replifed.claims.evidence import LOGS
from replifed.errors import ConfigError, ReplifedError
from replifed.logs.histories import CombinedLogs, checked
from replifed.logs.propose import FOLDER, Proposal, described, metric_name, propose
from replifed.settings.reading import deep_merge, read_file
from replifed.store import limits
from replifed.store.atomic import make_folder, write_text
from replifed.store.folders import EXISTS, fill, new_folder


def write(
    name: str, folder: Path, source: Path, stated: Mapping[str, Any], better: Mapping[str, str]
) -> None:
    """Write a folder with a paper on the logs in `source`, with copies of them, and print what they hold.

    If that fails, the folder holds settings.yaml alone, with what was found; the next call reads it.

    Parameters
    ----------
    stated : settings of the experiment that are stated; they go before those of settings.yaml.
    better : the better side of columns of the logs.

    Raises
    ------
    ConfigError
        The better side of no metric is stated, or the folder holds a paper already.
    DataError
        There are no logs, or their runs are no experiment.
    """
    draft = folder / "settings.yaml"
    if folder.exists() and (not folder.is_dir() or any(one != draft for one in folder.iterdir())):
        raise ConfigError(f"{folder} {EXISTS}")
    found = Proposal(source, {"evidence": LOGS, **_merged(_left_behind(name, draft), stated)})
    try:
        propose(found, better)
        runs = found.runs()
        words = _words(name, found, runs)
        limits.check(source, sum(path.stat().st_size for path in found.copies.values()), "its logs have")
    except ReplifedError as error:
        if not found.columns:  # nothing was found
            raise
        print("\n".join(described(found, None)))
        make_folder(folder)
        write_text(draft, "\n".join(_draft(name, found, error)))
        cure = f"or edit {draft}, which has what was found, and give the command again"
        raise type(error)(f"{error}; {cure}") from error
    print("\n".join(described(found, runs)))
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    with new_folder(part):
        _fill(part, found, words)
        draft.unlink(missing_ok=True)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)


def _left_behind(name: str, draft: Path) -> dict[str, Any]:
    """Settings of the experiment that an earlier call left, and somebody may have edited."""
    if not draft.is_file():
        return {}
    content: Any = read_file(draft)
    for key in (name, "experiments", "runs"):
        if not isinstance(content, dict) or not isinstance(content.get(key), dict):
            raise ConfigError(f"{draft} has no {name}: {{experiments: {{runs: ...}}}}; correct or remove it")
        content = content[key]
    content = {key: value for key, value in content.items() if value not in (None, {}, [])}
    try:
        checked(content)
    except ConfigError as error:
        raise ConfigError(f"{draft}: {error}") from error
    logs = content.get("logs", [])
    patterns = [one.removeprefix(f"{FOLDER}/") for one in ([logs] if isinstance(logs, str) else logs)]
    return content | ({"logs": patterns[0] if len(patterns) == 1 else patterns} if patterns else {})


def _merged(earlier: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    checked(stated)
    return deep_merge(earlier, stated)


def _draft(name: str, found: Proposal, error: ReplifedError) -> list[str]:
    """Lines of the settings that are left to edit."""
    listed = [
        one
        for one in found.metrics or found.columns
        if metric_name(one) not in found.settings.get("metrics", {})
    ]
    return [
        f"# {error}",
        "# Edit this and give the same command again; docs/logs.md lists all keys.",
        *([f"# Columns: {', '.join(found.columns)}"] if found.columns else []),
        f"{name}:",
        "  seed: 0",
        "  experiments:",
        "    runs:",
        *_lines(found.settings),
        *(
            f"        # {metric_name(one)}: {_flow({'better': 'lower or higher', 'column': one})}"
            for one in listed
        ),
        "",
    ]


def _lines(settings: Mapping[str, Any]) -> list[str]:
    """Lines of YAML of the settings of an experiment, but for its methods."""
    logs = settings.get("logs", [])
    logs = f"{FOLDER}/{logs}" if isinstance(logs, str) else [f"{FOLDER}/{one}" for one in logs]
    rest = {key: one for key, one in settings.items() if key not in ("logs", "metrics", "methods")}
    metrics = settings.get("metrics", {})
    return [
        *([f"      logs: {_flow(logs)}"] if logs else []),
        *(f"      {key}: {_flow(value)}" for key, value in rest.items()),
        "      metrics:",
        *(f"        {key}: {_flow(given)}" for key, given in metrics.items()),
    ]


def _fill(folder: Path, found: Proposal, words: Mapping[str, str]) -> None:
    any_word = rf"\b({'|'.join(words)})\b"
    for copy, path in found.copies.items():
        make_folder((folder / copy).parent)
        shutil.copyfile(path, folder / copy)
    for kind in ("any_paper", "logs"):
        # All words at once: a value may hold another one.
        fill(folder, kind, lambda text: re.sub(any_word, lambda one: words[one[0]], text))


def _words(name: str, found: Proposal, runs: CombinedLogs) -> dict[str, str]:
    """What the templates hold in capitals; what logs call a method stands in Python's texts."""
    metric, lower = next(
        (one, given["better"] == "lower") for one, given in found.settings["metrics"].items()
    )
    last = runs.frame[runs.frame["round"] == runs.frame.groupby("method")["round"].transform("max")]
    ends = last.dropna(subset=[metric]).groupby("method")[metric].mean().replace([np.inf, -np.inf], np.nan)
    ends = ends.dropna().sort_values(ascending=lower)
    if ends.empty:
        raise ConfigError(f"no method ends with a number of {metric}; state another metric first")
    one, value = ends.index[0], f"{ends.iloc[0]:.3g}"
    labels = {key: json.dumps(str(label))[1:-1] for key, label in runs.labels.items()}
    best, sign = labels[one], "<" if lower else ">"
    end = f'RUNS.last("{one}", "{metric}")'
    rival, other = None, None
    if len(ends) > 1:
        other, rival = ends.index[1], f"{ends.iloc[1]:.3g}"
        ahead = f"{best} ends with better {metric} than {labels[other]}."
        order, often = f'RUNS.ahead("{one}", "{other}", "{metric}")', f"{best} often ends better."
        shape = f'{end} {sign} RUNS.last("{other}", "{metric}")'
    else:
        start = f'RUNS.first("{one}", "{metric}")'
        ahead, often = f"{best} improves {metric}.", f"{best} often improves {metric}."
        order, shape = f"{start} - {end}" if lower else f"{end} - {start}", f"{end} {sign} {start}"
    width = abs(float(value)) / 10 or 0.1
    met = f"rival={rival}" if rival not in (None, value) else f'within={width:.3g}, because="a tenth of it"'
    words = {"METRIC": metric, "BEST": best, "VALUE": value, "ONE": one, "RIVAL": met, "AHEAD": ahead}
    words |= {"ORDER": order, "LEAST": f"{width / 10:.3g}", "OFTEN": often, "SHAPE": shape, "NAME": name}
    words |= {"SETTINGS": "\n".join(_lines(found.settings)), "METHODS": _flow(list(runs.labels))}
    words |= {"LABELS": _flow({key: str(label) for key, label in runs.labels.items()})}
    return words


def _flow(value: Any) -> str:
    """YAML on one line, with texts in quotes: JSON, which YAML is a superset of."""
    return json.dumps(value, ensure_ascii=False)
