"""Parsing raw files into a checked table.

The hashes of the raw files are compared with those recorded at the download: a file may have been replaced
since. Then counts and content hash are compared with the catalogue, since no parser finds all errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replifed.data import SURROGATE_STAMP, checkpoints, images, texts
from replifed.data.catalogue import Counts, Dataset, Form
from replifed.data.records import read_record
from replifed.data.table import Table, content_sha256, save
from replifed.errors import DataError
from replifed.store import limits
from replifed.store.hashes import file_hash

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    # Features, labels, and of natural data the client of each sample, by its name.
    Parsed = tuple[csr_matrix | NDArray, NDArray] | tuple[NDArray, NDArray, NDArray]


def parse(dataset: Dataset, raw_dir: Path, out: Path) -> dict[str, Any]:
    """Parse a fetched data set, check it, and write it to `out`, an ``.npz``, completely or not at all.

    Returns its metadata: id, task, form, kind, stamp, counts, content_sha256.
    """
    record = read_record(raw_dir, dataset.id)
    if record["kind"] == "surrogate":
        from replifed.data.surrogates import generate

        X, y = generate(dataset)
        origin = ("surrogate", "surrogate", SURROGATE_STAMP)
        table = Table(X, y, meta_of(dataset.id, dataset.task, *origin, X, y))
    else:
        form = dataset.form(record["form"])
        table = read_form(dataset, form, _verified_files(form, raw_dir / dataset.id, record))
    save(out, table)
    return table.meta


def read_form(dataset: Dataset, form: Form, paths: Sequence[Path]) -> Table:
    """Parse the files of a form and compare them with the catalogue."""
    counts, sha256 = dataset.expected(form)
    most = max(limits.DEFAULT, *(file.unpacked for file in form.files))
    with limits.limit(most, f"it is not {dataset.id}, or its record lacks `unpacked`"):
        X, y, *owner = PARSERS[form.parser](paths, counts)
    names = ", ".join(map(str, paths))
    y = _labels(dataset, y, names)
    meta = meta_of(dataset.id, dataset.task, form.name, form.kind, form.stamp, X, y)
    if difference := _difference(counts, sha256, meta):
        causes = [texts.first_error(path, counts.features) for path in paths if form.parser == "libsvm"]
        because = "".join(f" ({cause})" for cause in causes if cause)
        raise DataError(f"{names}: not the expected content of {dataset.id}: {difference}{because}")
    if not owner:
        return Table(X, y, meta)
    clients, number = np.unique(owner[0], return_inverse=True)
    return Table(X, y, {**meta, "clients": [str(name) for name in clients]}, number.astype(np.int32))


PARSERS: dict[str, Callable[[Sequence[Path], Counts], Parsed]] = {
    "idx": images.read_idx,
    "libsvm": texts.read_libsvm,
    "potentials": checkpoints.read_potentials,
    "ratings": texts.read_ratings,
    "writers_hdf5": images.read_writers_hdf5,
    "writers_idx": images.read_writers_idx,
    "idx_by_writer": images.read_idx_by_writer,
    "femnist": partial(images.read_femnist, part="train"),
    "femnist_test": partial(images.read_femnist, part="test"),
    "mp4": images.read_mp4,
    "mat_frames": images.read_mat,
}


def _verified_files(form: Form, folder: Path, record: Mapping[str, Any]) -> list[Path]:
    recorded = {file["name"]: file["sha256"] for file in record["files"]}
    paths = [folder / file.name for file in form.files]
    again = f"run `replifed data fetch {record['id']}` again"
    for path in paths:
        if not path.exists() or path.name not in recorded:
            raise DataError(f"{path} is missing; {again}")
        measured = file_hash(path)
        if measured != recorded[path.name]:
            raise DataError(
                f"{path} was altered since it was fetched: its sha256 is {measured}, recorded was "
                f"{recorded[path.name]}; delete it and {again}"
            )
    return paths


def _labels(dataset: Dataset, y: NDArray, names: str) -> NDArray:
    if dataset.task in ("regression", "unlabelled"):
        return np.asarray(y, dtype=np.float64)
    whole = np.asarray(y).astype(np.int64)
    if not np.array_equal(whole, y):
        odd = np.flatnonzero(whole != y)[0]
        raise DataError(f"{names}: the label {float(y[odd])!r} of sample {odd + 1} is not a class number")
    if dataset.task == "multiclass":
        return whole
    classes = np.unique(whole)
    if len(classes) != 2:
        few = ", ".join(map(str, classes[:5].tolist()))
        raise DataError(f"{names}: {dataset.id} has two classes, but this file has {len(classes)} ({few})")
    return np.where(whole == classes[1], 1, -1).astype(np.int64)


def meta_of(id_: str, task: str, form: str, kind: str, stamp: str, X: Any, y: NDArray) -> dict[str, Any]:
    """Return the metadata of a table: its origin, its counts, and the hash of its content."""
    counts = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": len(np.unique(y)) if task in ("binary", "multiclass") else None,
        "nonzeros": int(np.count_nonzero(X)) if isinstance(X, np.ndarray) else int(X.nnz),
    }
    origin = {"id": id_, "task": task, "form": form, "kind": kind, "stamp": stamp}
    return {**origin, "counts": counts, "content_sha256": content_sha256(X, y)}


def _difference(counts: Counts, sha256: str | None, meta: Mapping[str, Any]) -> str:
    for name, count in meta["counts"].items():
        wanted = getattr(counts, name)
        if wanted is not None and count != wanted:
            return f"{count} {name} instead of {wanted}"
    if sha256 is not None and meta["content_sha256"] != sha256:
        return f"the content hash is {meta['content_sha256']} instead of {sha256}"
    return ""
