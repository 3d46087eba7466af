"""Getting hold of a data set's files, and saying which form of it was chosen.

For each kind of form (originals, then substitutes) every form is first looked for on this machine,
in the raw folder and in the mirror, and only then at its URLs. What is found must pass its checks:
official hash where one is known; else the hash pinned when it was first accepted; else its parsed
content. A file that fails is an error under every policy, never a reason for a surrogate: falling
back is for data that cannot be had, not for data that are wrong.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from replifed import hashes
from replifed.atomic import explained, make_folder
from replifed.data.catalogue import SURROGATE_STAMP, Dataset, Form, RawFile
from replifed.data.pins import dataset_lock, read_pins, write_pins
from replifed.data.records import find_record, write_record
from replifed.data.streams import file_md5, file_sha256, looks_like_web_page, stream_fault
from replifed.errors import ConfigError, DataError, unknown_name

Policy = Literal["auto", "real", "surrogate"]
POLICIES = ("auto", "real", "surrogate")
MIRROR_VARIABLE = "REPLIFED_MIRROR"

_INCOMING = ".incoming"  # files on their way, inside the data set's raw folder
_PROBES = ".probes"  # verdicts on hosts, inside the raw folder


def fetch(
    dataset: Dataset,
    raw_dir: str | os.PathLike[str],
    *,
    policy: Policy = "auto",
    mirror: str | os.PathLike[str] | None = None,
    substitutes: bool = False,
    refresh: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Get a data set's raw files and write ``<raw_dir>/<id>.json``, last of all.

    Parameters
    ----------
    dataset : Dataset
    raw_dir : path-like
        Files go to ``<raw_dir>/<id>/``; files put there by hand are accepted after their checks.
    policy : {"auto", "real", "surrogate"}
        "auto" falls back to a surrogate, with a warning, when no form can be had; "real" fails
        instead; "surrogate" looks for nothing.
    mirror : path-like, optional
        A folder with copies of the files; default the environment variable REPLIFED_MIRROR.
    substitutes : bool
        Whether policy "real" accepts other real data in place of the paper's.
    refresh : bool
        Try the network again although the data set was fetched before in another form than an
        original. Originals are only verified.
    progress : bool
        Show a bar while downloading, on a terminal.

    Returns
    -------
    dict
        The record: id, form, kind, stamp, policy, and each file's name, sha256, bytes and source
        ("mirror", "url" or "already there").
    """
    if policy not in POLICIES:
        raise ConfigError(unknown_name("data policy", policy, POLICIES))
    raw_dir = Path(raw_dir)
    if policy == "surrogate":
        record = _surrogate_record(dataset, policy)
        write_record(raw_dir, record)
        return record

    allowed = ("original", "substitute") if policy == "auto" or substitutes else ("original",)
    network = refresh or not _settled(dataset, raw_dir, policy, allowed)
    search = _Search(
        dataset=dataset,
        folder=raw_dir / dataset.id,
        mirror=_mirror(mirror),
        network=network,
        probes=raw_dir / _PROBES,
        progress=progress,
    )
    with dataset_lock(search.folder):
        form, files = search.first(allowed)
        if form is not None:
            record = _record(dataset, form.name, form.kind, form.stamp, policy, files)
        elif policy == "real":
            raise DataError(_how_to_get(dataset, search, allowed))
        else:
            record = _surrogate_record(dataset, policy)
        write_record(raw_dir, record)
    if record["kind"] != "original":
        _warn(record, search.reasons)
    return record


def _settled(dataset: Dataset, raw_dir: Path, policy: str, allowed: Iterable[str]) -> bool:
    """Whether an earlier fetch still answers, so that the network need not be asked.

    A surrogate that policy auto fell back to stays until it is refreshed: asking dead hosts in every
    run would be slow, and results must not change by themselves when the network comes back.
    """
    try:
        before = find_record(raw_dir, dataset.id)
    except DataError:
        return False  # a damaged record is written anew
    if before is None:
        return False
    if before["kind"] == "surrogate":
        return policy == before["policy"] == "auto"
    here = all((raw_dir / dataset.id / file["name"]).exists() for file in before["files"])
    return here and before["kind"] in allowed


class _UnavailableError(Exception):
    """A form cannot be had here and now."""


@dataclass(frozen=True)
class _Found:
    """A file that was found: where it is now, what to call it, and where it came from."""

    path: Path
    shown: str
    source: str


class _Search:
    """One look for a data set's files."""

    def __init__(
        self,
        dataset: Dataset,
        folder: Path,
        mirror: Path | None,
        network: bool,
        probes: Path,
        progress: bool,
    ) -> None:
        self.dataset = dataset
        self.folder = folder
        self.incoming = folder / _INCOMING
        self.mirror = mirror
        self.network = network
        self.probes = probes
        self.progress = progress
        self.reasons: list[str] = []

    def first(self, kinds: Iterable[str]) -> tuple[Form | None, list[dict[str, Any]]]:
        """Return the first form that can be had, and its files."""
        self._sweep()
        try:
            for kind in kinds:
                forms = [form for form in self.dataset.forms if form.kind == kind]
                for network in (False, True) if self.network else (False,):
                    for form in forms:
                        try:
                            return form, self._form(form, network)
                        except _UnavailableError as error:
                            if network and str(error):
                                self.reasons.append(str(error))
            return None, []
        finally:
            self._sweep()

    def _form(self, form: Form, network: bool) -> list[dict[str, Any]]:
        """Find, check and keep every file of a form."""
        pins = read_pins(self.folder)
        found: dict[str, _Found] = {}
        try:
            for file in form.files:
                found[file.name] = self._file(file, pins, network)
        except _UnavailableError:
            # What was downloaded and is known to be right need not be downloaded again.
            if network:
                self._keep([file for file in form.files if file.has_hash], found, pins)
            raise
        unknown = [file for file in form.files if not file.has_hash and file.name not in pins]
        if unknown:
            self._check_content(form, found)
        return self._keep(form.files, found, pins)

    def _file(self, file: RawFile, pins: Mapping[str, Any], network: bool) -> _Found:
        path = self.folder / file.name
        if path.exists():
            source = pins[file.name]["source"] if file.name in pins else "already there"
            found = _Found(path, str(path), source)
            self._check_bytes(file, pins, found)
            return found
        original = self._in_mirror(file)
        if original is not None:
            staged = self.incoming / file.name
            make_folder(self.incoming)
            with explained(staged):
                try:
                    shutil.copyfile(original, staged)
                except PermissionError as error:
                    if os.access(original, os.R_OK):
                        raise
                    raise DataError(f"{original}: permission denied; make the mirror readable") from error
            found = _Found(staged, str(original), "mirror")
            self._check_bytes(file, pins, found)
            return found
        if network:
            return self._download(file, pins)
        raise _UnavailableError

    def _in_mirror(self, file: RawFile) -> Path | None:
        if self.mirror is None:
            return None
        places = (Path(file.mirror_path), Path(file.name), Path(self.dataset.id, file.name))
        for candidate in (self.mirror / place for place in places):
            if candidate.is_file():
                return candidate
        return None

    def _download(self, file: RawFile, pins: Mapping[str, Any]) -> _Found:
        from replifed.data.download import DownloadError, download, unreachable

        staged = self.incoming / file.name
        part = staged.with_name(f"{file.name}.part")
        faults: list[str] = []
        wrong: DataError | None = None
        for url in file.urls:
            fault = unreachable(url, self.probes)
            if fault is not None:
                faults.append(fault)
                continue
            found = _Found(staged, url, "url")
            # A resumed download that fails its check may have been glued from two versions of the
            # file: it gets one more chance from its first byte.
            for _ in range(2):
                resumed = part.exists()
                try:
                    make_folder(self.incoming)
                    with explained(staged):
                        download(url, staged, part, progress=self.progress)
                    if looks_like_web_page(staged):
                        staged.unlink()
                        raise DownloadError(f"{url}: the server answered with a web page, not with data")
                    self._check_bytes(file, pins, found)
                    return found
                except DownloadError as error:
                    faults.append(str(error))
                    break
                except DataError as error:
                    wrong = error
                    if not resumed:
                        break
        if wrong is not None:
            raise wrong
        raise _UnavailableError("; ".join(dict.fromkeys(faults)))

    def _check_bytes(self, file: RawFile, pins: Mapping[str, Any], found: _Found) -> None:
        """Compare a file with what is known about its bytes; drop it if it is wrong and not the user's."""
        fault = self._bytes_fault(file, pins, found)
        if fault is not None:
            if found.path.parent == self.incoming:
                found.path.unlink()
            raise DataError(fault)

    def _bytes_fault(self, file: RawFile, pins: Mapping[str, Any], found: _Found) -> str | None:
        if looks_like_web_page(found.path):
            return f"{found.shown} is a web page, not {file.name}; replace or delete it"
        sha256 = file_sha256(found.path)
        pinned = pins.get(file.name, {}).get("sha256")
        if file.sha256 is not None:
            wanted, hash_, whose = file.sha256, sha256, "official sha256"
        elif file.md5 is not None:
            wanted, hash_, whose = file.md5, file_md5(found.path), "official md5"
        elif pinned is not None:
            wanted, hash_, whose = pinned, sha256, "sha256 recorded when it was first accepted"
        else:
            return None  # nothing to compare with: the content is checked before the file is kept
        if hash_ == wanted:
            return None
        cause = stream_fault(found.path, "the file")
        remedy = "delete or replace it"
        if whose.startswith("sha256"):
            remedy = f"{remedy}, or delete {self.folder / '.pins.json'} to have it checked as a new file"
        return (
            f"{found.shown} is not {file.name} of {self.dataset.id}: its hash is {hash_}, "
            f"the {whose} is {wanted}" + (f" ({cause})" if cause else "") + f"; {remedy}"
        )

    def _check_content(self, form: Form, found: Mapping[str, _Found]) -> None:
        from replifed.data.parse import read_form

        paths = {name: item.path for name, item in found.items()}
        shown = {name: item.shown for name, item in found.items()}
        read_form(self.dataset, form, paths, shown)

    def _keep(
        self, files: Iterable[RawFile], found: Mapping[str, _Found], pins: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Move checked files to their final names, pin them, and return what the record says of them."""
        pins = dict(pins)
        kept: list[dict[str, Any]] = []
        for file in files:
            if file.name not in found:
                continue
            path, final = found[file.name].path, self.folder / file.name
            facts = {
                "sha256": file_sha256(path),
                "bytes": path.stat().st_size,
                "source": found[file.name].source,
            }
            if path != final:
                with explained(final):
                    with path.open("rb") as stream:
                        os.fsync(stream.fileno())
                    path.replace(final)
            pins[file.name] = facts
            kept.append({"name": file.name, **facts})
        write_pins(self.folder, pins)
        hashes.record(self.folder / file["name"] for file in kept)
        return kept

    def _sweep(self) -> None:
        """Remove what is still on its way, refused or left by a killed run, but for resumable downloads."""
        if not self.incoming.is_dir():
            return
        for path in self.incoming.iterdir():
            if path.suffix != ".part":
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a partial download keeps the folder
            self.incoming.rmdir()


def _mirror(mirror: str | os.PathLike[str] | None) -> Path | None:
    given = os.fspath(mirror) if mirror else os.environ.get(MIRROR_VARIABLE, "")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        raise DataError(f"the mirror folder {path} does not exist or is not a folder")
    return path


def _record(
    dataset: Dataset, form: str, kind: str, stamp: str, policy: str, files: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"id": dataset.id, "form": form, "kind": kind, "stamp": stamp, "policy": policy, "files": files}


def _surrogate_record(dataset: Dataset, policy: str) -> dict[str, Any]:
    return _record(dataset, "surrogate", "surrogate", SURROGATE_STAMP, policy, [])


def _how_to_get(dataset: Dataset, search: _Search, allowed: Iterable[str]) -> str:
    forms = [form for form in dataset.forms if form.kind in allowed and any(f.urls for f in form.files)]
    wanted = []
    for file in (forms or dataset.forms)[0].files:
        known = f"sha256 {file.sha256}" if file.sha256 else f"md5 {file.md5}" if file.md5 else None
        if known is None:
            content = dataset.content_sha256
            known = f"no published hash; content hash {content}" if content else "no published hash"
        wanted.append(f"{' or '.join(file.urls) or file.name} ({known})")
    reasons = f" ({'; '.join(search.reasons)})" if search.reasons else ""
    others = [form.stamp for form in dataset.forms if form.kind == "substitute"]
    hint = f", or accept the substitute ({others[0]})" if others and "substitute" not in allowed else ""
    return (
        f"{dataset.id} cannot be had{reasons}: download {' and '.join(wanted)} "
        f"and put it into {search.folder}, unchanged{hint}"
    )


def _warn(record: Mapping[str, Any], reasons: list[str]) -> None:
    why = f" ({'; '.join(reasons)})" if reasons else ""
    if record["kind"] == "surrogate":
        text = (
            "the data cannot be had; a SURROGATE will be generated, which says nothing about the paper's data"
        )
    else:
        text = f"the original cannot be had; using other real data instead: {record['stamp']}"
    print(f"replifed: WARNING: {record['id']}: {text}{why}", file=sys.stderr)
