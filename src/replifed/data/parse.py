"""From raw files to a checked table.

The raw files' hashes are compared once more with those of the fetched record: a file may have been
replaced since. Counts and content hash are then compared with the catalogue, whatever the file's
bytes are, since no parser notices everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from replifed.data import archive, checkpoints, idx, libsvm, movielens, video, writers
from replifed.data.archive import load
from replifed.data.catalogue import SURROGATE_STAMP, Dataset, Form
from replifed.data.content import Table, content_sha256, count_nonzeros
from replifed.data.records import read_record
from replifed.data.streams import file_sha256
from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Parsed = tuple[csr_matrix | NDArray, NDArray]

__all__ = ["PARSERS", "Table", "load", "parse", "read_form"]


def parse(dataset: Dataset, raw_dir: str | os.PathLike[str], out: str | os.PathLike[str]) -> dict[str, Any]:
    """Parse a fetched data set, check it and write it to `out`.

    Parameters
    ----------
    dataset : Dataset
    raw_dir : path-like
        The folder with ``<id>.json`` and the raw files.
    out : path-like
        The ``.npz`` to write (see `replifed.data.archive`); whole or not at all.

    Returns
    -------
    dict
        The table's metadata: id, task, form, kind, stamp, counts, content_sha256.
    """
    raw_dir = Path(raw_dir)
    record = read_record(raw_dir, dataset.id)
    if record["kind"] == "surrogate":
        from replifed.data.surrogates import generate

        X, y = generate(dataset)
        meta = _meta(dataset, "surrogate", "surrogate", SURROGATE_STAMP, X, y)
    else:
        form = dataset.form(record["form"])
        paths = _verified_files(form, raw_dir / dataset.id, record)
        X, y, meta = read_form(dataset, form, paths)
    archive.save(out, Table(X, y, meta))
    return meta


def read_form(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str] | None = None
) -> tuple[csr_matrix | NDArray, NDArray, dict[str, Any]]:
    """Parse the files of a form and check what they say.

    Parameters
    ----------
    dataset, form
        The records that the files must agree with.
    paths : mapping of str to Path
        Where each file of the form is.
    shown : mapping of str to str, optional
        What to call each file in error messages; default its path.

    Returns
    -------
    X : csr_matrix or array
    y : array
    meta : dict
    """
    shown = shown or {name: str(path) for name, path in paths.items()}
    X, y = PARSERS[form.parser](dataset, form, paths, shown)
    names = ", ".join(shown[file.name] for file in form.files)
    y = _labels(dataset, y, names)
    meta = _meta(dataset, form.name, form.kind, form.stamp, X, y)
    fault = _disagreement(dataset, form, meta)
    if fault is not None:
        cause = _libsvm_fault(dataset, form, paths, shown) if form.parser == "libsvm" else None
        raise DataError(f"{names}: not the expected content of {dataset.id}: {fault}" + _because(cause))
    return X, y, meta


def _parse_libsvm(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> Parsed:
    (file,) = form.files
    return libsvm.read(paths[file.name], dataset.expected(form)[0].features, shown[file.name])


def _parse_idx(dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]) -> Parsed:
    """Read images, then labels: the order of the form's files."""
    images, labels = (idx.read(paths[file.name], shown[file.name]) for file in form.files)
    if labels.ndim != 1 or len(images) != len(labels):
        first, second = (shown[file.name] for file in form.files)
        raise DataError(f"{first} holds {len(images)} images but {second} holds {labels.shape} labels")
    return images.reshape(len(images), -1), labels


def _parse_ratings(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> Parsed:
    (file,) = form.files
    counts = dataset.expected(form)[0]
    assert counts.rows is not None and counts.features is not None  # as the catalogue says of ratings
    return movielens.read(paths[file.name], counts.rows, counts.features, shown[file.name])


def _parse_potentials(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> Parsed:
    names = [file.name for file in form.files]
    rows = checkpoints.read_potentials([paths[name] for name in names], [shown[name] for name in names])
    return rows, np.zeros(len(rows))


def _parse_writers_hdf5(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> Parsed:
    (file,) = form.files
    return writers.read_hdf5(paths[file.name], shown[file.name])


def _parse_writers_idx(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> Parsed:
    """Read images, then extended labels: the order of the form's files."""
    images, labels = (file.name for file in form.files)
    return writers.read_idx(paths[images], paths[labels], (shown[images], shown[labels]))


def _parse_mp4(dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]) -> Parsed:
    (file,) = form.files
    return video.read_mp4(paths[file.name], shown[file.name])


def _parse_mat(dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]) -> Parsed:
    (file,) = form.files
    return video.read_mat(paths[file.name], shown[file.name])


PARSERS: dict[str, Callable[[Dataset, Form, Mapping[str, Path], Mapping[str, str]], Parsed]] = {
    "idx": _parse_idx,
    "libsvm": _parse_libsvm,
    "potentials": _parse_potentials,
    "ratings": _parse_ratings,
    "writers_hdf5": _parse_writers_hdf5,
    "writers_idx": _parse_writers_idx,
    "mp4": _parse_mp4,
    "mat_frames": _parse_mat,
}


def _verified_files(form: Form, folder: Path, record: Mapping[str, Any]) -> dict[str, Path]:
    recorded = {file["name"]: file["sha256"] for file in record["files"]}
    paths = {}
    for file in form.files:
        path = folder / file.name
        if not path.exists() or file.name not in recorded:
            raise DataError(f"{path} is missing; run `replifed data fetch {record['id']}` again")
        found = file_sha256(path)
        if found != recorded[file.name]:
            raise DataError(
                f"{path} was altered since it was fetched: its sha256 is {found}, recorded was "
                f"{recorded[file.name]}; delete it and run `replifed data fetch {record['id']}` again"
            )
        paths[file.name] = path
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


def _meta(dataset: Dataset, form: str, kind: str, stamp: str, X: Any, y: NDArray) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "task": dataset.task,
        "form": form,
        "kind": kind,
        "stamp": stamp,
        "counts": {
            "rows": X.shape[0],
            "features": X.shape[1],
            "classes": len(np.unique(y)) if dataset.task in ("binary", "multiclass") else None,
            "nonzeros": count_nonzeros(X),
        },
        "content_sha256": content_sha256(X, y),
    }


def _disagreement(dataset: Dataset, form: Form, meta: Mapping[str, Any]) -> str | None:
    counts, sha256 = dataset.expected(form)
    for name, found in meta["counts"].items():
        wanted = getattr(counts, name)
        if wanted is not None and found != wanted:
            return f"{found} {name} instead of {wanted}"
    if sha256 is not None and meta["content_sha256"] != sha256:
        return f"the content hash is {meta['content_sha256']} instead of {sha256}"
    return None


def _libsvm_fault(
    dataset: Dataset, form: Form, paths: Mapping[str, Path], shown: Mapping[str, str]
) -> str | None:
    features = dataset.expected(form)[0].features
    faults = (libsvm.first_fault(paths[f.name], features, shown[f.name]) for f in form.files)
    return next((fault for fault in faults if fault is not None), None)


def _because(cause: str | None) -> str:
    return f" ({cause})" if cause else ""
