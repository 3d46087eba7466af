"""Custom data sets: a LibSVM, CSV, parquet or npz file, or a Python function, checked as built-in ones."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.parse import meta_of
from replifed.data.streams import unpacked
from replifed.data.table import Table, canonical, save
from replifed.errors import DataError, unknown_name

# Tasks by the names of losses of linear models.
LOSSES = {"logistic": "binary", "least_squares": "regression", "softmax": "multiclass"}
_MOST_CLASSES = 100
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".npz": "npz"}


def form_of(settings: Mapping[str, Any]) -> str:
    """Return the form that is stated, or that follows from the path."""
    path = settings["path"]
    if "form" in settings:
        return settings["form"]
    return "python" if ".py:" in path else _SUFFIXES.get(Path(path).suffix, "libsvm")


def file_of(settings: Mapping[str, Any]) -> str:
    """Return the file with the data, or with the function that returns them."""
    path = settings["path"]
    return path.rpartition(":")[0] if form_of(settings) == "python" else path


def names_clients(settings: Mapping[str, Any]) -> bool:
    """Return True if a data set is seen to name its clients before it is read: by a column, or in an npz."""
    if form_of(settings) != "npz":
        return "client" in settings
    try:
        with zipfile.ZipFile(file_of(settings)) as archive:
            return "client.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False  # which is refused where it is read


def parse(name: str, settings: Mapping[str, Any], out: Path) -> None:
    """Read a data set, check it and write it as a table, whole or not at all.

    Parameters
    ----------
    name : of the data set.
    settings : path; optionally form, loss, label and client (columns of csv and parquet), rows and features
        (the expected numbers), and partition_stated (false where clients that the data name would be
        dropped unasked). Labels become -1 and +1, targets of least squares stay as they are, and
        classes become 0 to C - 1; clients are numbered, and the table's metadata has their ids, as texts.

    Raises
    ------
    DataError
        The file is missing or has another form, holds values that are not numbers or rows without a client,
        or has another number of labels than the loss needs, or of rows or features than expected.
    """
    path, form = settings["path"], form_of(settings)
    if not Path(file_of(settings)).is_file():
        raise DataError(f"{name}: {file_of(settings)}: there is no such file")
    X, y, client = _READERS[form](path, settings)
    if X.ndim != 2 or y.shape != X.shape[:1] or not y.size:
        raise DataError(f"{path}: features {X.shape} and labels {y.shape}; expected (n, d) and (n,)")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise DataError(f"{path}: a feature or label is missing or not finite")
    for axis, count in zip(("rows", "features"), X.shape, strict=True):
        if settings.get(axis, count) != count:
            raise DataError(f"{path}: {count} {axis}; expected {settings[axis]}")
    loss = settings.get("loss", "logistic")
    y = _targets(path, loss, y)
    meta = meta_of(name, LOSSES[loss], form, "original", "", X, y)
    if client is None:
        return save(out, Table(X, y, meta))
    if not settings.get("partition_stated", True):
        raise DataError(
            f"{path} names clients, which k-means would drop; state partition: given for datasets.{name}, or "
            "the partition that you want"
        )
    numbers, ids = _numbered(settings, client, len(y))
    save(out, Table(X, y, {**meta, "clients": ids}, numbers))


def _targets(path: str, loss: str, y: NDArray) -> NDArray:
    """Return the labels as the loss expects them."""
    labels, number = np.unique(y, return_inverse=True)
    few = ", ".join(f"{label:g}" for label in labels[:5])
    if loss == "logistic":
        if len(labels) != 2:
            raise DataError(
                f"{path}: {len(labels)} kinds of labels ({few}); logistic regression needs two; "
                f"for others state the loss, {' or '.join([*LOSSES][1:])}"
            )
        return np.where(number == 1, 1, -1)
    if loss == "softmax":
        if not 2 <= len(labels) <= min(_MOST_CLASSES, len(y) - 1):
            raise DataError(
                f"{path}: {len(labels)} kinds of labels ({few}); a softmax needs 2 to {_MOST_CLASSES}, "
                "fewer than samples"
            )
        return number
    if len(labels) == 1:
        raise DataError(f"{path}: all targets are {few}; least squares have nothing to fit")
    return y


# Texts that stand for no value, in small letters; "" is one that is blank.
_MISSING = {"", "na", "n/a", "nan", "nat", "none", "null", "<na>"}


def _numbered(settings: Mapping[str, Any], client: Any, samples: int) -> tuple[NDArray[np.int32], list[str]]:
    """Return each sample's client as a number from 0, and the id of each number.

    Ids are texts: 007 and 7 are two clients. They are sorted as numbers where they are some.
    """
    path = settings["path"]
    values = np.asarray(client, dtype=object)
    if values.shape != (samples,):
        raise DataError(f"{path}: clients {values.shape}; expected one a sample, ({samples},)")
    texts = [_id(value) for value in values]
    for row, text in enumerate(texts):
        if text.lower() in _MISSING:
            line = f"line {_line(path, row)}" if form_of(settings) == "csv" else f"row {row + 1}"
            raise DataError(
                f"{path}, {line}: {settings.get('client', 'client')} names no client (it is empty, or a "
                "word such as NA); correct it, or remove the row"
            )
    ids = sorted(
        {*texts}, key=lambda text: (not text.isdecimal(), int(text) if text.isdecimal() else 0, text)
    )
    number = {text: k for k, text in enumerate(ids)}
    return np.array([number[text] for text in texts], dtype=np.int32), ids


def _id(value: Any) -> str:
    """Return the id of a client as a text; whole numbers of a column of floats are written without point."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="backslashreplace")
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def _line(path: str, row: int) -> int:
    """Return the line of a CSV file on which its data row `row` (from 0) begins; blank lines are no rows."""
    begin, found = 1, -2  # the first row is the head
    with unpacked(Path(path)) as stream:
        reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline=""))
        for cells in reader:
            found += len(cells) > 1 or bool("".join(cells).strip())
            if found == row:
                break
            begin = reader.line_num + 1
    return begin


def _as_features(X: Any, path: str) -> Any:
    """Return features as a sparse table in canonical form, like built-in data sets."""
    import scipy.sparse as sp

    X = X if sp.issparse(X) else np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise DataError(f"{path}: the features hold what is no number")
    return canonical(sp.csr_matrix(X, dtype=np.float64))


def _read_libsvm(path: str, settings: Mapping[str, Any]) -> tuple[Any, NDArray, None]:
    from replifed.data.texts import read_libsvm

    return *read_libsvm([Path(path)], Counts(features=settings.get("features"))), None


def _read_columns(path: str, settings: Mapping[str, Any]) -> tuple[Any, NDArray, Any]:
    import pandas as pd

    client = settings.get("client")
    try:
        if form_of(settings) == "parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, dtype={client: str} if client else None)
    except Exception as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}") from error
    label = settings.get("label", ([c for c in frame.columns if c != client] or [client])[-1])
    named = [label, *([client] if client else [])]
    for column in named:
        if column not in frame:
            raise DataError(f"{path}: {unknown_name('column', str(column), map(str, frame.columns))}")
    features = frame.drop(columns=named)
    for column, kind in features.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind):
            raise DataError(f"{path}: the column {column} holds what is no number")
    labels = frame[label].to_numpy()
    if not pd.api.types.is_numeric_dtype(frame[label].dtype):  # words
        if settings.get("loss") == "least_squares":
            raise DataError(f"{path}: the column {label} holds what is no number; least squares need targets")
        labels = np.unique(labels.astype(str), return_inverse=True)[1]
    ids = frame[client].to_numpy(object) if client else None
    return _as_features(features.to_numpy(float), path), np.asarray(labels, float), ids


def _read_npz(path: str, settings: Mapping[str, Any]) -> tuple[Any, NDArray, Any]:
    try:
        with np.load(path) as arrays:
            values = {key: arrays[key] for key in ("X", "y", "client") if key in arrays}
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())}") from error
    if "X" not in values or "y" not in values:
        raise DataError(f"{path}: it needs the arrays X and y, and may have client")
    return _as_features(values["X"], path), values["y"], values.get("client")


def _read_python(path: str, settings: Mapping[str, Any]) -> tuple[Any, NDArray, Any]:
    from replifed.algorithms.guarded import guarded, say
    from replifed.algorithms.own import module_of

    file, _, function = path.rpartition(":")
    call = getattr(module_of(file), function, None)
    if not callable(call):
        raise DataError(f"{file}: it has no function {function}")
    place = Path(file).resolve()  # as its module has it, so that messages name the line
    with guarded(place, function) as changed:
        values = call()
    say(place, function, changed)
    if not isinstance(values, tuple) or len(values) not in (2, 3):
        raise DataError(f"{path}: it must return features, labels, and optionally the client of each sample")
    X, y, client = (*values, None)[:3]
    return _as_features(X, path), np.asarray(y, float), client


_READERS = {
    "libsvm": _read_libsvm,
    "csv": _read_columns,
    "parquet": _read_columns,
    "npz": _read_npz,
    "python": _read_python,
}
