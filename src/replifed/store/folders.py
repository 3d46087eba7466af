"""New folders for work of one's own, filled from the package's templates."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from replifed.errors import ConfigError
from replifed.store.atomic import make_folder

EXISTS = "exists already; remove it, or choose another name"
_TEMPLATES = Path(__file__).parents[1] / "templates"


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and remove it if the block that fills it fails.

    Raises
    ------
    ConfigError
        It exists already.
    """
    if folder.exists():
        raise ConfigError(f"{folder} {EXISTS}")
    make_folder(folder)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def fill(folder: Path, kind: str, change: Callable[[str], str]) -> list[Path]:
    """Write the templates of a kind, as `change` turns their texts, into a folder; return the files."""
    written = []
    for template in sorted((_TEMPLATES / kind).rglob("*.txt")):
        file = folder / template.relative_to(_TEMPLATES / kind).with_suffix("")
        make_folder(file.parent)
        file.write_text(change(template.read_text(encoding="utf-8")), encoding="utf-8")
        written.append(file)
    return written
