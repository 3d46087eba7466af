"""MovieLens ratings: one line a rating, `user::film::rating`, with or without a time stamp behind."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from replifed.data.catalogue import Counts
from replifed.data.streams import unpacked
from replifed.data.table import canonical
from replifed.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MEMBER = "ratings.dat"


def read(paths: Sequence[Path], counts: Counts) -> tuple[csr_matrix, NDArray]:
    """Read all ratings from a zip that holds a `ratings.dat`, or from such a file itself.

    Returns the ratings (users, films), as `counts` says, from 1 to 5, of which nothing is stored where a user
    has not rated (row u is user u + 1); and zeros (users,) in place of labels.
    """
    from scipy.sparse import coo_matrix

    (path,) = paths
    users, films = counts.rows, counts.features
    assert users is not None and films is not None  # as the catalogue says of ratings
    text = _text(path)
    first, _, _ = text.partition(b"\n")
    columns = first.count(b"::") + 1
    if columns not in (3, 4):
        raise DataError(f"{path}: line 1 is not user::film::rating, with or without a time: {first[:60]!r}")
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    try:
        values = np.array(text.replace(b"::", b" ").split(), dtype=np.int64)
    except ValueError as error:
        raise DataError(f"{path}: not a file of whole numbers ({error})") from error
    if values.size != lines * columns:
        raise DataError(
            f"{path}: {lines} lines of {columns} numbers are expected, but {values.size} are held"
        )
    user, film, rating = values.reshape(lines, columns).T[:3]
    for name, numbers, most in (("user", user, users), ("film", film, films), ("rating", rating, 5)):
        if numbers.min() < 1 or numbers.max() > most:
            line = int(np.flatnonzero((numbers < 1) | (numbers > most))[0]) + 1
            raise DataError(f"{path}: line {line}: {name} {numbers[line - 1]} is not between 1 and {most}")
    X = coo_matrix((rating.astype(float), (user - 1, film - 1)), shape=(users, films)).tocsr()
    if X.nnz != lines:
        raise DataError(f"{path}: {lines - X.nnz} ratings occur twice")
    return canonical(X), np.zeros(users)


def _text(path: Path) -> bytes:
    with unpacked(path) as stream:
        if path.suffix != ".zip":
            return stream.read()
        try:
            with zipfile.ZipFile(stream) as archive:
                members = [name for name in archive.namelist() if Path(name).name == _MEMBER]
                if len(members) != 1:
                    raise DataError(f"{path}: holds {len(members)} files called {_MEMBER} instead of one")
                return archive.read(members[0])
        except zipfile.BadZipFile as error:
            raise DataError(f"{path} is not a sound zip file: {error}") from error
