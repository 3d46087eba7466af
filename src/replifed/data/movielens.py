"""MovieLens ratings: one line a rating, `user::film::rating`, with or without a time stamp behind."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replifed.data.content import canonical
from replifed.data.streams import BROKEN_STREAM, describe_broken, open_unpacked
from replifed.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

_MEMBER = "ratings.dat"


def read(path: Path, users: int, films: int, shown: str) -> tuple[csr_matrix, NDArray]:
    """Read all ratings.

    Parameters
    ----------
    path : Path
        A zip that holds a `ratings.dat`, or such a file itself, plain or packed.
    users, films : int
        Largest numbers that occur.
    shown : str
        What to call the file in error messages.

    Returns
    -------
    X : csr_matrix, shape (users, films)
        Ratings from 1 to 5; nothing is stored where a user has not rated. Row u is user u + 1.
    y : array of zeros, shape (users,)
        There are no labels.
    """
    from scipy.sparse import coo_matrix

    text = _unpacked(path, shown)
    first, _, _ = text.partition(b"\n")
    columns = first.count(b"::") + 1
    if columns not in (3, 4):
        raise DataError(f"{shown}: line 1 is not user::film::rating, with or without a time: {first[:60]!r}")
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    try:
        values = np.array(text.replace(b"::", b" ").split(), dtype=np.int64)
    except ValueError as error:
        raise DataError(f"{shown}: not a file of whole numbers ({error})") from error
    if values.size != lines * columns:
        raise DataError(
            f"{shown}: {lines} lines of {columns} numbers are expected, but {values.size} are held"
        )
    user, film, rating = values.reshape(lines, columns).T[:3]
    for name, numbers, most in (("user", user, users), ("film", film, films), ("rating", rating, 5)):
        if numbers.min() < 1 or numbers.max() > most:
            line = int(np.flatnonzero((numbers < 1) | (numbers > most))[0]) + 1
            raise DataError(f"{shown}: line {line}: {name} {numbers[line - 1]} is not between 1 and {most}")
    X = coo_matrix((rating.astype(float), (user - 1, film - 1)), shape=(users, films)).tocsr()
    if X.nnz != lines:
        raise DataError(f"{shown}: {lines - X.nnz} ratings occur twice")
    return canonical(X), np.zeros(users)


def _unpacked(path: Path, shown: str) -> bytes:
    if path.suffix != ".zip":
        try:
            with open_unpacked(path) as stream:
                return stream.read()
        except BROKEN_STREAM as error:
            raise DataError(describe_broken(path, shown, error)) from error
    try:
        with zipfile.ZipFile(path) as archive:
            held = [name for name in archive.namelist() if Path(name).name == _MEMBER]
            if len(held) != 1:
                raise DataError(f"{shown}: holds {len(held)} files called {_MEMBER} instead of one")
            return archive.read(held[0])
    except (zipfile.BadZipFile, *BROKEN_STREAM) as error:
        raise DataError(f"{shown} is not a sound zip file: {error}") from error
