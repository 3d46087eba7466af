"""Fetching a data set's files, and recording which form of it was selected.

For each kind of form (originals, then substitutes) every form is first looked up on this machine, in the raw
folder and in the mirror, only then at its URLs, and at last in the package, which has a few data sets. Each
file must pass its check: its official hash if one is known; else that pinned on first use; else its parsed
content. A file that fails is an error under every policy: a surrogate replaces data that are not available,
never data that are wrong.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from replifed.data import SURROGATE_STAMP
from replifed.data.catalogue import CATALOGUE, PACKED, Dataset, Form, RawFile
from replifed.data.download import UnavailableError, download
from replifed.data.pins import Pin, acceptance, find_pin, needs_pin, pin_path, write_pin
from replifed.data.records import find_record, write_record
from replifed.data.streams import looks_like_web_page, stream_error, unpacked
from replifed.errors import DataError
from replifed.store import hashes
from replifed.store.atomic import explained, make_folder
from replifed.store.hashes import file_hash

Policy = Literal["auto", "real", "surrogate"]
MIRROR_VARIABLE = "REPLIFED_MIRROR"


def fetch(
    dataset: Dataset,
    raw_dir: Path,
    *,
    policy: Policy = "auto",
    mirror: str | Path | None = None,
    substitutes: bool = False,
    refresh: bool = False,
) -> dict[str, Any]:
    """Get a data set's raw files and write ``<raw_dir>/<id>.json``, last of all.

    Parameters
    ----------
    raw_dir : files go to ``<raw_dir>/<id>/``; files put there by hand are accepted after their checks. Beside
        it, in ``pins/``, originals without a published hash are pinned.
    policy : "auto" falls back to a surrogate, with a warning, if no form is available; "real" fails instead;
        "surrogate" generates one at once.
    mirror : a folder with copies of the files; default the environment variable REPLIFED_MIRROR.
    substitutes : whether policy "real" accepts other real data in place of the paper's.
    refresh : try the network again even if a substitute or a surrogate is in use.

    Returns the record: id, form, kind, stamp, policy, and each file's name, sha256 and bytes.
    """
    record: dict[str, Any] = {"id": dataset.id, "policy": policy, "files": []}
    record |= {"form": "surrogate", "kind": "surrogate", "stamp": SURROGATE_STAMP}
    if policy == "surrogate" and dataset.surrogate is None:
        raise DataError(f"{dataset.id} is never generated; set data.policy: auto, or leave it out")
    if policy == "surrogate":
        write_record(raw_dir, record)
        return record

    allowed = ("original", "substitute") if policy == "auto" or substitutes else ("original",)
    search = _Search(dataset, raw_dir, mirror_folder(mirror))
    network = refresh or not _settled(dataset, raw_dir, policy, allowed)
    with search.locked_folder():
        form, files = search.first(allowed, network)
        if form is not None:
            record |= {"form": form.name, "kind": form.kind, "stamp": form.stamp, "files": files}
        elif policy == "real" or dataset.surrogate is None:
            raise DataError(_how_to_get(dataset, search, allowed))
        write_record(raw_dir, record)
    if record["kind"] != "original":
        _warn(record, search.reasons)
    return record


def replaceable(raw_dir: Path, mirror: Path | None) -> list[str]:
    """Return the data sets whose surrogate is in use although the mirror now has their files."""
    names = []
    for dataset in CATALOGUE.values():
        record = _record_before(raw_dir, dataset.id)
        if record and record["kind"] == "surrogate" and record["policy"] == "auto":
            forms = [[_copies(file, dataset, mirror) for file in form.files] for form in dataset.forms]
            if any(all(any(one.is_file() for one in some) for some in files) for files in forms):
                names.append(dataset.id)
    return names


def _copies(file: RawFile, dataset: Dataset, mirror: Path | None) -> list[Path]:
    """Return the paths that a file may have in a mirror."""
    if mirror is None or file.packaged:
        return []
    return [mirror / place for place in (file.mirror_path, f"{dataset.id}/{file.name}", file.name)]


def _settled(dataset: Dataset, raw_dir: Path, policy: str, allowed: Iterable[str]) -> bool:
    """Return whether an earlier fetch is still valid, so that the network is not needed.

    A surrogate to which policy auto fell back stays until it is refreshed: trying dead hosts in every run
    would be slow, and results must not change by themselves when the network is back.
    """
    before = _record_before(raw_dir, dataset.id)
    if before is None:
        return False
    if before["kind"] == "surrogate":
        return policy == before["policy"] == "auto"
    here = all((raw_dir / dataset.id / file["name"]).exists() for file in before["files"])
    return here and before["kind"] in allowed


def _record_before(raw_dir: Path, id_: str) -> dict[str, Any] | None:
    """Return the record of an earlier fetch, None without one or for a damaged one, which is replaced."""
    try:
        return find_record(raw_dir, id_)
    except DataError:
        return None


class _Search:
    """Search for a data set's files; `reasons` are those of hosts that did not deliver them."""

    def __init__(self, dataset: Dataset, raw_dir: Path, mirror: Path | None) -> None:
        self.dataset, self.folder, self.mirror = dataset, raw_dir / dataset.id, mirror
        self.incoming = self.folder / ".incoming"  # files that are not complete or not checked yet
        self.pin_path = pin_path(raw_dir, dataset.id)
        self.pin: Pin | None = None  # of the form that is looked for
        self.origins: dict[Path, str] = {}  # paths or URLs from which files were copied
        self.reasons: list[str] = []

    @contextlib.contextmanager
    def locked_folder(self) -> Iterator[None]:
        """Lock the folder for this process, and remove incomplete files at the end.

        The system releases the lock when the process ends. On systems without such locks (Windows, some
        network file systems) nothing is locked; the workflow starts one job per data set anyway.
        """
        make_folder(self.folder)
        with explained(self.folder / ".lock"):
            lock = (self.folder / ".lock").open("a")
        with lock:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            shutil.rmtree(self.incoming, ignore_errors=True)
            try:
                yield
            finally:
                shutil.rmtree(self.incoming, ignore_errors=True)

    def first(self, kinds: Iterable[str], network: bool) -> tuple[Form | None, list[dict[str, Any]]]:
        """Return the first form that is available, and its files."""
        for kind in kinds:
            forms = [form for form in self.dataset.forms if form.kind == kind]
            for place in ("here", "network", "package") if network else ("here", "package"):
                for form in forms:
                    try:
                        return form, self._form(form, place)
                    except UnavailableError as error:
                        if str(error):
                            self.reasons.append(str(error))
        return None, []

    def _form(self, form: Form, place: str) -> list[dict[str, Any]]:
        """Copy, check and pin all files of a form; return their entries in the record."""
        self.pin = find_pin(self.pin_path) if needs_pin(self.dataset, form) else None
        files: dict[Path, Path] = {}
        for file in form.files:
            final, copy = self.folder / file.name, self._file(file, place)
            # A file with an official hash is kept even if another file is not available.
            files[final] = self._moved(copy, final) if file.has_hash else copy
        known = all(file.has_hash or self._pinned(file) for file in form.files)
        meta = None if known else self._checked_content(form, list(files.values()))
        for final, copy in files.items():
            self._moved(copy, final)
        hashes.record(files)
        entries = [{"name": final.name, **hashes.measure(final)._asdict()} for final in files]
        if meta and needs_pin(self.dataset, form):
            write_pin(self.pin_path, self.pin, entries, meta)
            names = " and ".join(final.name for final in files)
            why = f"no hash of {names} is published; the counts fit, and its hash is kept in {self.pin_path}"
            print(f"replifed: {self.dataset.id}: {why}", file=sys.stderr)
        return entries

    def _pinned(self, file: RawFile) -> str | None:
        return self.pin.hash_of(file.name) if self.pin else None

    def _moved(self, copy: Path, final: Path) -> Path:
        """Move a file to its final path, whole."""
        if copy != final:
            with explained(final):
                with copy.open("rb") as stream:
                    os.fsync(stream.fileno())
                copy.replace(final)
        self.origins[final] = self.origins[copy]
        return final

    def _file(self, file: RawFile, place: str) -> Path:
        path = self.folder / file.name
        if path.exists():
            return self._checked(file, path, str(path))
        staged = self.incoming / file.name
        in_package = [PACKED / file.name] if file.packaged and place == "package" else []
        for copy in [*_copies(file, self.dataset, self.mirror), *in_package]:
            if copy.is_file():
                if not os.access(copy, os.R_OK):
                    raise DataError(f"{copy}: permission denied; make the mirror readable")
                make_folder(self.incoming)
                with explained(staged):
                    shutil.copyfile(copy, staged)
                return self._checked(file, staged, str(copy))
        if place == "network":
            return self._downloaded(file, staged)
        raise UnavailableError

    def _downloaded(self, file: RawFile, staged: Path) -> Path:
        reasons: list[str] = []
        wrong: DataError | None = None
        make_folder(self.incoming)
        for url in file.urls:
            try:
                with explained(staged):
                    download(url, staged, file.most_bytes)
                return self._checked(file, staged, url)
            except UnavailableError as error:
                reasons.append(str(error))
            except DataError as error:
                wrong = error
        if wrong is not None:
            raise wrong
        raise UnavailableError("; ".join(dict.fromkeys(reasons)))

    def _checked(self, file: RawFile, copy: Path, origin: str) -> Path:
        """Return `copy` if its hash is the official or the pinned one, or if there is none."""
        self.origins[copy] = origin
        if looks_like_web_page(copy):
            raise DataError(f"{origin} is a web page, not {file.name}; {self._remedy(origin)}")
        remedy = self._remedy(origin)
        if file.has_hash:
            algorithm = "sha256" if file.sha256 else "md5"
            wanted, whose = file.sha256 or file.md5, f"official {algorithm}"
        elif (wanted := self._pinned(file)) is None:
            return copy  # its content is checked later
        else:
            algorithm, whose = "sha256", "sha256 pinned on first use"
            remedy = f"{remedy}, {acceptance(self.pin_path)}"
        measured = file_hash(copy, algorithm)
        if measured == wanted:
            return copy
        cause = stream_error(copy)
        why = f" ({cause.replace(str(copy), 'the file')})" if cause else ""
        raise DataError(
            f"{origin} is not {file.name} of {self.dataset.id}: its hash is {measured}, "
            f"the {whose} is {wanted}{why}; {remedy}"
        )

    def _remedy(self, origin: str) -> str:
        """Say what to do about a wrong file; what a host sends cannot be replaced there."""
        return f"put the right one into {self.folder}" if "://" in origin else "delete or replace it"

    def _checked_content(self, form: Form, files: list[Path]) -> dict[str, Any]:
        """Parse and check the files of a form; return the metadata of their table."""
        from replifed.data.parse import read_form

        try:
            meta = read_form(self.dataset, form, files).meta
            if form.parser == "libsvm" and needs_pin(self.dataset, form):
                for file in files:
                    _check_end(file)  # counts do not show that the last number was cut
        except DataError as error:
            # The parser names the copy that it reads; the user knows its origin.
            text = str(error)
            for file in files:
                text = text.replace(str(file), self.origins[file])
            raise DataError(f"{text}; {self._remedy(self.origins[files[0]])}") from error
        if self.pin and meta["content_sha256"] != self.pin.content_sha256:
            names = ", ".join(self.origins[file] for file in files)
            first = ", ".join(file.name for file in self.pin.files)
            raise DataError(
                f"{names} is not {self.dataset.id}: its content hash is {meta['content_sha256']}, but "
                f"{first}, pinned on first use, has {self.pin.content_sha256}; "
                f"{self._remedy(self.origins[files[0]])}, {acceptance(self.pin_path)}"
            )
        return meta


def _check_end(path: Path) -> None:
    """Raise a `DataError` for a text whose last line has no end."""
    last = b""
    with unpacked(path) as stream:
        while block := stream.read(1 << 20):
            last = block
    if not last.endswith(b"\n"):
        raise DataError(f"{path}: no line end after the last number; the file may be truncated")


def mirror_folder(mirror: str | Path | None = None) -> Path | None:
    """Return the folder `mirror`, or that of the environment variable; None without either.

    Raises
    ------
    DataError
        It does not exist.
    """
    given = os.fspath(mirror) if mirror else os.environ.get(MIRROR_VARIABLE, "")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        raise DataError(
            f"the mirror {path} is no folder; correct "
            + ("data.mirror, or --mirror" if mirror else f"or unset {MIRROR_VARIABLE}")
        )
    return path


def _how_to_get(dataset: Dataset, search: _Search, allowed: Iterable[str]) -> str:
    forms = [form for form in dataset.forms if form.kind in allowed and any(f.urls for f in form.files)]
    wanted = []
    unknown = "no published hash"
    if dataset.content_sha256:
        unknown += f"; content hash {dataset.content_sha256}"
    for file in (forms or dataset.forms)[0].files:
        known = f"sha256 {file.sha256}" if file.sha256 else f"md5 {file.md5}" if file.md5 else unknown
        wanted.append(f"{' or '.join(file.urls) or file.name} ({known})")
    reasons = f" ({'; '.join(search.reasons)})" if search.reasons else ""
    others = [form.stamp for form in dataset.forms if form.kind == "substitute"]
    hint = ""
    if others and "substitute" not in allowed:
        hint = f", or accept the substitute ({others[0]}): data.substitutes: true, or --substitutes"
    return (
        f"{dataset.id} is not available{reasons}; download {' and '.join(wanted)} into {search.folder}{hint}"
    )


def _warn(record: Mapping[str, Any], reasons: list[str]) -> None:
    why = f" ({'; '.join(reasons)})" if reasons else ""
    text = f"the original is not available; other real data take its place: {record['stamp']}"
    if record["kind"] == "surrogate":
        says = "which says nothing about the paper's data"
        text = f"the data are not available; a SURROGATE will be generated, {says}"
    again = "; with a network, or the files in a mirror, `replifed data --refresh` fetches the original"
    print(f"replifed: WARNING: {record['id']}: {text}{why}{again}", file=sys.stderr)
