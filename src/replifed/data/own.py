"""Custom data sets: a LibSVM, CSV, parquet or npz file, or a Python function, checked like built-in data."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.data import generated
from replifed.data.catalogue import Counts
from replifed.data.columns import Asked, Columns, joined, line_of, read_csv
from replifed.data.parquet import read_parquet
from replifed.data.parse import meta_of
from replifed.data.scaling import standardise
from replifed.data.streams import unpacked
from replifed.data.strings import NUMBER, Strings, strings
from replifed.data.table import Stack, Table, load, save
from replifed.errors import DataError, one_line
from replifed.store import limits
from replifed.store.npz import read_npz

# Tasks by the names of losses of linear models.
LOSSES = {"logistic": "binary", "least_squares": "regression", "softmax": "multiclass"}
_MOST_CLASSES = 100
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".npz": "npz"}
# Numbers of a block of rows of a dense array.
_BLOCK = 4 << 20
_NUMBERS = "fiub"  # kinds of arrays of numbers
# Up to it every whole number is a float.
_EXACT = 2**53


def form_of(settings: Mapping[str, Any]) -> str:
    """Return the stated form, or else the form that the path implies."""
    path = settings["path"]
    if "form" in settings:
        return settings["form"]
    if generated.is_generated(path):
        return "generated"
    return "python" if ".py:" in path else _SUFFIXES.get(Path(path).suffix, "libsvm")


def file_of(settings: Mapping[str, Any]) -> str:
    """Return the file with the data, or with the function that returns the data."""
    path, form = settings["path"], form_of(settings)
    if form == "generated":
        return str(generated.__file__)
    return path.rpartition(":")[0] if form == "python" else path


def is_there(settings: Mapping[str, Any]) -> bool:
    """Return True if there is such a file."""
    try:
        return Path(file_of(settings)).is_file()
    except OSError:  # such as a name of 300 letters
        return False


def names_clients(settings: Mapping[str, Any]) -> bool:
    """Return True if a data set names its clients, by a setting or in an npz, without reading the data."""
    if form_of(settings) == "generated":
        return settings["path"] != "digits"
    if form_of(settings) != "npz":
        return "client" in settings
    try:
        with zipfile.ZipFile(file_of(settings)) as archive:
            return "client.npy" in archive.namelist()
    except Exception:  # a damaged archive may raise anything, and is refused where it is read
        return False


def parse(name: str, settings: Mapping[str, Any], out: Path, like: Path | None = None) -> None:
    """Read a data set, see `read`, and write it `prepared`, completely or not at all.

    `like` is what was written of the samples to train on, if this is their test set.
    """
    if like is None:
        save(out, prepared(read(name, settings), settings))
        return
    train = load(like)
    test = read(name, settings, train.meta.get("classes"))
    save(out, aligned(test, train, settings["path"]))


def prepared(table: Table, settings: Mapping[str, Any]) -> Table:
    """Return the table as runs take it, with standardised features if the settings ask for them."""
    if not settings.get("standardise"):
        return table
    X, whose = standardise(table.X)
    old = table.meta
    new = meta_of(old["id"], old["task"], f"{old['form']}, standardised", "original", "", X, table.y)
    return Table(X, table.y, {**old, **new, "standardised": whose}, table.client)


def read(name: str, settings: Mapping[str, Any], classes: Sequence[str] | None = None) -> Table:
    """Read a data set, and check it.

    Parameters
    ----------
    name : of the data set.
    settings : path; optionally form, loss, label and client (columns of csv and parquet), drop and categories
        (lists of them), rows and features (the expected numbers), limit_gb (limit on the
        unpacked file and on memory), and partition_stated (false if no partition is configured, so that
        clients named by the data would be ignored). Labels become -1 and +1, targets of least squares stay as
        they are, and classes become 0 to C - 1; clients are numbered. The metadata of the table hold the ids
        of clients and the names of classes and of features, as strings. Features are not standardised yet.
    classes : of the samples to train on, if this is a test set, which may lack some, but has no others.

    Raises
    ------
    DataError
        The file is missing or has another form; a value is not a number; a row has no client; the number of
        labels does not fit the loss; the number of rows or features is not the expected one; or the limit is
        exceeded. All errors are listed in one line.
    """
    path, form = settings["path"], form_of(settings)
    if form == "python" and ":" not in path:
        raise DataError(f"{name}: {path} names no function; write FILE.py:FUNCTION")
    if not is_there(settings):
        raise DataError(f"{name}: {file_of(settings)} does not exist; correct the path")
    most, loss = settings.get("limit_gb", limits.DEFAULT / 2**30), settings.get("loss", "logistic")
    with limits.limit(most * 2**30, f"if it is right, set a higher datasets.{name}.limit_gb"):
        try:
            columns = _READERS[form](path, settings)
        except (OSError, MemoryError) as error:
            raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        checks: list[Callable[[], Any]] = [
            lambda: _targets(path, loss, *_numbers(settings, columns.label, loss), classes),
            lambda: _numbered(settings, columns.client),
            lambda: _check_table(name, settings, columns),
        ]
        (y, found), (client, ids), X = _all_sound(path, columns.errors, checks)
        meta = meta_of(name, LOSSES[loss], form, "original", "", X, y)
        meta |= {"classes": found} if found else {}
        meta |= {"columns": columns.names} if columns.names else {}
    return Table(X, y, meta if ids is None else {**meta, "clients": ids}, client)


def _all_sound(path: str, errors: Sequence[str], checks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return what the checks return, or refuse the file with all errors at once."""
    found, results = [*errors], []
    for check in checks:
        try:
            results.append(check())
        except DataError as error:
            found.append(str(error))
    if found:
        raise DataError(joined(path, found))
    return results


def _check_table(name: str, settings: Mapping[str, Any], columns: Columns) -> Any:
    """Return the features if they are as the settings expect them; None if they have errors already."""
    path, X = settings["path"], columns.X
    if columns.client is not None and not settings.get("partition_stated", True):
        raise DataError(
            f"{path} names clients, which k-means would drop; set partition: given for datasets.{name}, or "
            "another partition"
        )
    if X is None:
        return None
    for axis, count in zip(("rows", "features"), X.shape, strict=True):
        if settings.get(axis, count) != count:
            raise DataError(f"{path}: {count} {axis}; expected {settings[axis]}")
    if not X.nnz:
        raise DataError(f"{path}: all features are zero; give each sample its features")
    return X


def _place(settings: Mapping[str, Any], row: int) -> str:
    """Return file and line, or row, of row `row` (from 0)."""
    path = settings["path"]
    return f"{path}, line {line_of(path, row)}" if form_of(settings) == "csv" else f"{path}, row {row + 1}"


def _numbers(
    settings: Mapping[str, Any], label: NDArray | Strings, loss: str
) -> tuple[NDArray, list[str] | None]:
    """Return labels as numbers, and the words, in alphabetical order, that these stand for, if any."""
    name = settings.get("label", "label")
    if isinstance(label, Strings):
        if error := label.lacks(name, lambda row: _place(settings, row)):
            raise DataError(error)
        if (numbers := label.numbers()) is None:
            if loss == "least_squares":
                wrong = next(k for k, kind in enumerate(label.kinds) if not NUMBER.fullmatch(kind))
                row = int(np.flatnonzero(label.number == wrong)[0])
                raise DataError(
                    f"{_place(settings, row)}: the {name} {label.kinds[wrong]!r} is no number; least squares "
                    "need targets"
                )
            kinds, places = np.unique(label.kinds, return_inverse=True)
            return places.astype(float)[label.number], kinds.tolist()
        label = numbers
    if not np.isfinite(label).all():
        row = int(np.flatnonzero(~np.isfinite(label))[0])
        raise DataError(
            f"{_place(settings, row)}: the {name} is missing or not finite; correct it, or remove the row"
        )
    return label, None


def _targets(
    path: str, loss: str, y: NDArray, words: list[str] | None, known: Sequence[str] | None = None
) -> tuple[NDArray, list[str]]:
    """Return the labels as the loss expects them, and the names of classes, which may be `known`."""
    labels, number = np.unique(y, return_inverse=True)
    if known:
        names = words or [f"{label:g}" for label in labels]
        if other := [name for name in names if name not in known]:
            listed = ", ".join(known[:5]) + ", ..." * (len(known) > 5)
            raise DataError(f"{path}: the class {other[0]} is none of the samples to train on ({listed})")
        number = np.array([known.index(name) for name in names])[number]
        return np.where(number == 1, 1, -1) if loss == "logistic" else number, [*known]
    few = ", ".join(words[:5] if words else [f"{label:g}" for label in labels[:5]])
    if loss == "logistic":
        if len(labels) != 2:
            raise DataError(
                f"{path}: {len(labels)} kinds of labels ({few}); logistic regression needs two; "
                f"for others set loss: {' or '.join([*LOSSES][1:])}"
            )
        return np.where(number == 1, 1, -1), words or [f"{label:g}" for label in labels]
    if loss == "softmax":
        if not 2 <= len(labels) <= min(_MOST_CLASSES, len(y) - 1):
            raise DataError(
                f"{path}: {len(labels)} kinds of labels ({few}); a softmax needs 2 to {_MOST_CLASSES}, "
                "fewer than samples"
            )
        return number, words or [f"{label:g}" for label in labels]
    if len(labels) == 1:
        raise DataError(
            f"{path}: all targets are {few}, which leaves nothing to fit; name another column as label"
        )
    return y, []


def _numbered(
    settings: Mapping[str, Any], client: Strings | None
) -> tuple[NDArray[np.int32] | None, list[str] | None]:
    """Return each sample's client as a number from 0, and the id of each number, if the data name clients.

    Ids are strings: 007 and 7 are two clients. Whole numbers are sorted by value, before other ids.
    """
    if client is None:
        return None, None
    if (row := client.missing()) is not None:
        raise DataError(
            f"{_place(settings, row)}: {settings.get('client', 'client')} names no client (it is empty, or a "
            "word such as NA); correct it, or remove the row"
        )
    ids = sorted(client.kinds, key=lambda text: (not _whole(text), int(text) if _whole(text) else 0, text))
    number = {text: k for k, text in enumerate(ids)}
    places = np.array([number[text] for text in client.kinds], dtype=np.int32)
    return places[client.number], ids


def _whole(text: str) -> bool:
    return text.isdecimal() and len(text) < 1000


# --- Readers: features, labels as numbers or words, and clients, if there are any ---


def _read_libsvm(path: str, settings: Mapping[str, Any]) -> Columns:
    from replifed.data.texts import read_libsvm

    with unpacked(Path(path)) as stream:
        first = stream.readline(1 << 16)
    if re.search(rb"[,;|\t]", first) and b":" not in first:
        raise DataError(
            f"{path}, line 1: this looks like a table with columns, not like LibSVM; set form: csv"
        )
    return Columns(*read_libsvm([Path(path)], Counts(features=settings.get("features")), ended=True), None)


def _read_csv(path: str, settings: Mapping[str, Any]) -> Columns:
    return read_csv(path, _asked(settings))


def _read_parquet(path: str, settings: Mapping[str, Any]) -> Columns:
    return read_parquet(path, _asked(settings))


def _asked(settings: Mapping[str, Any]) -> Asked:
    return Asked(**{key: settings[key] for key in Asked._fields if key in settings})


def _read_npz(path: str, settings: Mapping[str, Any]) -> Columns:
    values = read_npz(Path(path), ("X", "y", "client"))
    if "X" not in values or "y" not in values:
        raise DataError(f"{path}: give it the arrays X and y, and client if you know the clients")
    return _columns(path, values["X"], values["y"], values.get("client"))


def _read_python(path: str, settings: Mapping[str, Any]) -> Columns:
    from replifed.algorithms.guarded import guarded, located, say
    from replifed.algorithms.own import module_of

    file, _, function = path.rpartition(":")
    call = getattr(module_of(file), function, None)
    if not callable(call):
        raise DataError(f"{file} has no function {function}; correct the name")
    place = Path(file).resolve()  # as its module has it, so that messages name the line
    with guarded(place, function) as changed:
        try:
            values = call()
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            raise DataError(f"{located(error, place)}: {function} fails: {text}") from error
    say(place, function, changed)
    if not isinstance(values, tuple) or len(values) not in (2, 3):
        raise DataError(f"{path}: it must return features, labels, and optionally the client of each sample")
    return _columns(path, *(*values, None)[:3])


def _read_generated(path: str, settings: Mapping[str, Any]) -> Columns:
    if not generated.is_generated(path):
        raise DataError(f"{path} is not generated; give {' or '.join(generated.FORMS)}")
    X, y, client = generated.generate(path)
    return _columns(path, X, y, None if client is None else [f"client {k + 1}" for k in client])


_READERS = {
    "generated": _read_generated,
    "libsvm": _read_libsvm,
    "csv": _read_csv,
    "parquet": _read_parquet,
    "npz": _read_npz,
    "python": _read_python,
}


# --- Arrays ---


def _columns(path: str, X: Any, y: Any, client: Any) -> Columns:
    """Return features, labels and clients, checked to be arrays that fit together."""
    import scipy.sparse as sp

    if sp.issparse(X):
        X = X.tocsr()
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise DataError(f"{path}: the features are no sound sparse matrix ({error})") from error
    else:
        X = _array(path, "features", X)
    y = _array(path, "labels", y)
    if X.ndim != 2 or y.shape != X.shape[:1] or not min(X.shape):
        raise DataError(
            f"{path}: features {X.shape} and labels {y.shape}; expected (n, d) and (n,), with n and d above 0"
        )
    limits.check(path, 80 * X.shape[1], f"a run on its {X.shape[1]} features takes")
    stack, step = Stack(path), max(1, _BLOCK // X.shape[1])
    for begin in range(0, X.shape[0], step):
        rows = X[begin : begin + step]
        _check_numbers(path, begin, rows)
        stack.add(rows, y[begin : begin + step])
    label = _floats(path, "labels", y) if y.dtype.kind in _NUMBERS else _strings(path, "labels", y)
    if client is None:
        return Columns(stack.whole(), label, None)
    ids = _array(path, "clients", client, dtype=object)
    if ids.shape != y.shape:
        raise DataError(f"{path}: clients {ids.shape}; expected one a sample, ({len(y)},)")
    return Columns(stack.whole(), label, _strings(path, "clients", ids))


def _array(path: str, what: str, values: Any, dtype: Any = None) -> NDArray:
    if np.ma.is_masked(values):
        raise DataError(f"{path}: some {what} are masked; give them, or remove their rows")
    try:
        return np.asarray(values, dtype=dtype)
    except Exception as error:  # lists of different lengths, or objects with an opinion
        raise DataError(f"{path}: the {what} are no array ({one_line(error)})") from error


def _check_numbers(path: str, begin: int, rows: Any) -> None:
    """Reject features, of rows from `begin` on, that are not finite floats without loss of digits."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    wrong = ~np.isfinite(_floats(path, "features", values))
    if wrong.any():
        if values is rows:
            row, column = np.argwhere(wrong)[0]
        else:
            place = int(np.flatnonzero(wrong)[0])
            row, column = np.searchsorted(rows.indptr, place, "right") - 1, rows.indices[place]
        raise DataError(
            f"{path}, row {begin + row + 1}, column {column + 1}: the feature is missing or not finite; "
            "correct it, or remove the row"
        )


def _floats(path: str, what: str, values: NDArray) -> NDArray:
    if values.dtype.kind not in _NUMBERS:
        raise DataError(f"{path}: the {what} are no numbers ({values.dtype}); give an array of floats")
    if values.dtype.kind in "iu" and values.size and max(-int(values.min()), int(values.max())) > _EXACT:
        raise DataError(
            f"{path}: the {what} are whole numbers beyond 2^53, which floats cannot hold exactly; scale them"
        )
    return values.astype(np.float64, copy=False)


def _strings(path: str, what: str, values: NDArray) -> Strings:
    try:
        if values.dtype.kind not in "USO":
            raise TypeError(values.dtype)
        return strings(values.tolist())
    except TypeError as error:  # of lists, say
        raise DataError(f"{path}: the {what} are neither numbers nor texts ({error}); give either") from error


# --- A data set's own test set ---


def aligned(test: Table, like: Table, path: str) -> Table:
    """Return a test set with the columns of `like`, the samples to train on; `path` names it in errors.

    Columns go by their names, if they have any, and else by their places. Those of categories may be missing,
    since no test sample has them, and so may the last ones that have no names: they are zeros there.

    Raises
    ------
    DataError
        It has other features.
    """
    from scipy.sparse import csr_matrix

    columns, known = test.meta.get("columns"), like.meta.get("columns")
    n, d = test.X.shape[0], like.X.shape[1]
    if columns is None or known is None:
        if test.X.shape[1] > d:
            raise DataError(f"{path}: {test.X.shape[1]} features; the samples to train on have {d}")
        places = np.arange(test.X.shape[1])
    else:
        if other := [name for name in columns if name not in known]:
            raise DataError(f"{path}: the feature {other[0]} is none of the samples to train on")
        if missing := [name for name in known if name not in columns and "=" not in name]:
            raise DataError(f"{path}: the feature {missing[0]} of the samples to train on is missing")
        places = np.array([known.index(name) for name in columns])
    X = csr_matrix(test.X)
    X = csr_matrix((X.data, places[X.indices], X.indptr), (n, d))
    X.sort_indices()
    old, names = test.meta, {} if known is None else {"columns": known}
    meta = meta_of(old["id"], old["task"], old["form"], old["kind"], old["stamp"], X, test.y)
    return Table(X, test.y, {**old, **meta, **names}, test.client)
