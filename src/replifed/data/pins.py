"""Pins: hashes of originals without published hashes, recorded at the first use.

Published counts identify no data: any file of the right shape has them. So a pin keeps the size and hash of
an original's files, with the counts and the hash of the parsed numbers, and any other file is rejected until
somebody removes the pin. Pins are in ``pins/`` beside the raw folder: they outlive it and, unlike downloads,
can be committed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from replifed.data.catalogue import Dataset, Form, in_one_line
from replifed.data.records import File
from replifed.errors import DataError
from replifed.store import hashes
from replifed.store.atomic import write_json
from replifed.store.provenance import config_hash


class Pin(BaseModel, strict=True, extra="forbid"):
    """Counts and hashes of a data set's original at its first use; `seal` is a hash of the other fields."""

    id: str
    counts: dict[str, int | None]
    content_sha256: str
    files: list[File]  # of each form that was used so far
    seal: str = ""

    def hash_of(self, name: str) -> str | None:
        """Return the sha256 of the file called `name`, or None if no form with that file was used."""
        return next((file.sha256 for file in self.files if file.name == name), None)

    def wanted_seal(self) -> str:
        """Return the seal that the other fields should have."""
        return config_hash(self.model_dump(exclude={"seal"}))


def needs_pin(dataset: Dataset, form: Form) -> bool:
    """Return True for an original without a published hash, of its files or of its content."""
    hashed = dataset.expected(form)[1] is not None or all(file.has_hash for file in form.files)
    return form.kind == "original" and not hashed


def pin_path(raw_dir: Path, id_: str) -> Path:
    """Return the path of a data set's pin."""
    return raw_dir.parent / "pins" / f"{id_}.json"


def acceptance(path: Path) -> str:
    """Return advice on how to accept another file in place of the one that `path` pins."""
    return f"or accept it as the original: `rm {shlex.quote(str(path))}`, then the same command again"


def find_pin(path: Path) -> Pin | None:
    """Return the pin in `path`, or None if there is none; a damaged or edited pin raises `DataError`."""
    remedy = f"restore it, or have the data checked as new: `rm {shlex.quote(str(path))}`"
    try:
        pin = Pin.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        raise DataError(f"{path} is not the pin of a data set ({in_one_line(error)}); {remedy}") from error
    if pin.seal != pin.wanted_seal() or pin.id != path.stem:
        raise DataError(f"{path} was edited, or is another data set's: its seal does not fit; {remedy}")
    return pin


def write_pin(
    path: Path, before: Pin | None, files: Iterable[Mapping[str, Any]], meta: Mapping[str, Any]
) -> None:
    """Pin `files`, entries of a record, whose table has the metadata `meta`, beside those pinned `before`."""
    entries = [*(before.files if before else ()), *(File.model_validate(file) for file in files)]
    content = {key: meta[key] for key in ("id", "counts", "content_sha256")}
    pin = Pin(**content, files=list({file.name: file for file in entries}.values()))
    write_json(path, pin.model_copy(update={"seal": pin.wanted_seal()}).model_dump())


def errors(raw_dir: Path) -> list[str]:
    """Return a message for each damaged pin, and for each raw file that differs from its pin."""
    found = []
    for path in sorted(pin_path(raw_dir, "").parent.glob("*.json")):
        try:
            pin = find_pin(path)
        except DataError as error:
            found.append(str(error))
            continue
        for file in pin.files if pin else ():
            raw = raw_dir / path.stem / file.name
            if raw.is_file() and (now := hashes.file_hash(raw)) != file.sha256:
                found.append(
                    f"{raw}: its sha256 is {now}, that pinned on first use is {file.sha256}; replace it, "
                    f"{acceptance(path)}"
                )
    return found
