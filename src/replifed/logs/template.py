"""`replifed new paper --from-logs`: a folder with a paper on logs, which is judged as it stands."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replifed.errors import ConfigError
from replifed.logs.histories import Logged
from replifed.logs.propose import described, propose
from replifed.store import limits
from replifed.store.atomic import make_folder
from replifed.store.folders import fill


def write(name: str, folder: Path, source: Path, pattern: str | None, better: Mapping[str, str]) -> None:
    """Fill a folder with a paper on the logs in `source`, or those of a pattern, with copies of them.

    Prints what they hold.

    Raises
    ------
    ConfigError
        The better side of no metric is stated.
    DataError
        There are no logs, or their runs are no experiment.
    """
    proposal = propose(source, pattern)
    if not better:
        print("\n".join(described(proposal, None)))
    settings, runs = proposal.settings(better), proposal.runs(better)
    print("\n".join(described(proposal, runs)))
    words = _words(name, settings, runs)
    total = sum(path.stat().st_size for path in proposal.copies.values())
    limits.check(source, total, "its logs have")
    any_word = rf"\b({'|'.join(words)})\b"
    for copy, path in proposal.copies.items():
        make_folder((folder / copy).parent)
        shutil.copyfile(path, folder / copy)
    for kind in ("any_paper", "logs"):
        # All words at once: a value may hold another one.
        fill(folder, kind, lambda text: re.sub(any_word, lambda found: words[found[0]], text))


def _words(name: str, settings: Mapping[str, Any], runs: Logged) -> dict[str, str]:
    """What the templates hold in capitals; what logs call a method stands in Python's texts."""
    metric, lower = next((one, given["better"] == "lower") for one, given in settings["metrics"].items())
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
    metrics = (f"        {key}: {_flow(given)}" for key, given in settings["metrics"].items())
    words |= {"METRICS": "\n".join(metrics), "METHODS": _flow(list(runs.labels))}
    words |= {"LABELS": _flow({key: str(label) for key, label in runs.labels.items()})}
    words |= {"LOGS": _flow(settings["logs"]), "COLUMNS": _flow(settings["columns"])}
    return words


def _flow(value: Any) -> str:
    """YAML on one line, with texts in quotes: JSON, which YAML is a superset of."""
    return json.dumps(value, ensure_ascii=False)
