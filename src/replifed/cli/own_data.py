"""What data of one's own show before any run, for `replifed check` and `compare`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.errors import ConfigError, DataError

# Endings of files that are data, whether such a file is there or not.
_ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".npz", ".svm", ".libsvm", ".gz", ".bz2", ".xz")


def is_data(source: str, given: Sequence[str]) -> bool:
    """Return whether `replifed check SOURCE [KEY=VALUE ...]` names data, and no method."""
    from replifed.data.generated import is_generated

    path = Path(source)
    return (
        bool(given)
        or is_generated(source)
        or path.suffix.lower() in _ENDINGS
        or (path.is_file() and path.suffix != ".py")
    )


def look_at_file(path: str, given: Sequence[str]) -> None:
    """Print the findings on a data file, read with settings KEY=VALUE; clients that are named are taken."""
    from replifed.data.generated import is_generated, settings_of
    from replifed.settings.checks import load
    from replifed.settings.reading import read_value

    if wrong := [pair for pair in given if "=" not in pair]:
        raise ConfigError(f"{wrong[0]}: write KEY=VALUE, such as label=outcome or 'drop=[id, day]'")
    pairs = [pair.split("=", 1) for pair in given]
    base = settings_of(path)[1] if is_generated(path) else {"path": path}
    settings = {**base, **{key: read_value(value, key) for key, value in pairs}}
    if "client" in settings:
        settings.setdefault("partition", "given")
    for key in ("drop", "categories"):
        if isinstance(settings.get(key), str):
            settings[key] = [settings[key]]
    name = re.sub("[^a-z0-9]+", "_", Path(path).stem.lower()).strip("_0123456789") or "data"
    try:
        config = load(given={"datasets": {name: settings}})
    except ConfigError as error:
        text = str(error).replace(f"datasets.{name}.", "").replace("; correct what follows --config", "")
        raise ConfigError(text) from error
    look_at(config, [name])


def look_at(config: Mapping[str, Any], names: Iterable[str]) -> None:
    """Print the findings on the custom data sets among `names`, or raise all their errors together."""
    from replifed.data.findings import findings
    from replifed.data.own import read
    from replifed.settings.comparison import problems

    custom, errors = config.get("datasets", {}), []
    for name in [one for one in names if one in custom]:
        settings, problem = custom[name], problems(config)[name]
        try:
            table = read(name, settings)
        except DataError as error:
            errors.append(str(error))
            continue
        found = findings(
            table,
            problem["ridge"],
            by_client=settings.get("partition") == "given" and settings.get("weights") != "samples",
            standardised=settings.get("standardise", False),
            tested="test" in config.get("comparison", {}),
        )
        path = f" ({settings['path']})" * (settings["path"] != name)
        print("\n  ".join([f"{name}{path}:", *map(str, found)]))
    if errors:
        raise DataError("\n".join(errors))
