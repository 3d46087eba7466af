"""Two tables of numbers, column by column: identical, within what rounding may do, or moved."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.claims.samples import PERTURBED

if TYPE_CHECKING:
    import pandas as pd

# Relative difference that rounding may make; and below which share of a run's largest value in a column, and
# below which number, all is rounding.
RELATIVE, FLOOR, LEAST = 1e-9, 1e-12, 1e-14
IDENTICAL, WITHIN, MOVED, MISSING = "identical", "within tolerance", "moved", "missing"


class Column(NamedTuple):
    """Outcome of a column.

    `share` is the largest difference as a multiple of what is allowed, `at` its row; `by_perturbed` says that
    it is allowed only since the run differs as much from its perturbed runs.
    """

    name: str
    outcome: str
    share: float = 0.0
    text: str = ""
    at: int = -1
    by_perturbed: bool = False


def read_csv(content: bytes) -> pd.DataFrame:
    """Read a table of an artefact; a column with other text than numbers is text."""
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=["nan"])
    if not isinstance(frame.index, pd.RangeIndex):  # else pandas takes the first fields for names of rows
        raise ValueError("its lines have more fields than its head")
    return frame


def columns(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Column]:
    """Compare two tables with the same order of rows."""
    runs = [cache(partial(_runs, frame)) for frame in (a, b)]
    for name in [*a.columns, *(name for name in b.columns if name not in a.columns)]:
        if name not in a.columns or name not in b.columns:
            yield Column(name, MISSING, np.inf, f"only in {'A' if name in a.columns else 'B'}")
        elif len(a) != len(b):
            yield Column(name, MOVED, np.inf, f"{len(a)} rows against {len(b)}")
        else:
            yield _column(name, a, b, runs)


def _column(name: str, a: pd.DataFrame, b: pd.DataFrame, runs: Sequence[Callable[[], NDArray]]) -> Column:
    if a[name].equals(b[name]):
        return Column(name, IDENTICAL)
    x, y = _numbers(a[name]), _numbers(b[name])
    if x is None or y is None:
        return _texts(name, _as_text(a[name]), _as_text(b[name]))
    with np.errstate(invalid="ignore", divide="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        distance = np.where(same, 0.0, np.abs(x - y))
        distance[np.isnan(distance)] = np.inf  # a number against none
        sizes = np.maximum(np.abs(x), np.abs(y))
        rounding = RELATIVE * sizes + FLOOR * _largest(sizes, runs[0]()) + LEAST
        # The smaller of both: a number that was changed lies far from its own perturbed runs, too.
        gaps = (_to_perturbed(name, frame, of) for frame, of in zip((a, b), runs, strict=True))
        allowed = np.fmax(rounding, np.fmin(*gaps))
        shares = np.where(distance == 0, 0.0, distance / np.where(np.isfinite(allowed), allowed, 0.0))
    shares[np.isnan(shares)] = np.inf
    if not shares.any():
        return Column(name, IDENTICAL)
    at = int(shares.argmax())
    relative = (
        f" (relative {distance[at] / sizes[at]:.1e})" if np.isfinite(distance[at]) and sizes[at] else ""
    )
    text = f"{x[at]:.10g} against {y[at]:.10g}{relative}{_where(a, at)}"
    if shares[at] > 1:
        return Column(name, MOVED, float(shares[at]), text, at)
    return Column(name, WITHIN, float(shares[at]), text, at, bool((distance > rounding).any()))


def _numbers(values: pd.Series) -> NDArray | None:
    """Values as floats; None for a column of text."""
    if values.dtype.kind in "fiub":
        return values.to_numpy(dtype=float)
    import pandas as pd

    # A column of a CSV may have empty fields between its numbers.
    found = pd.to_numeric(values.replace("", np.nan), errors="coerce")
    return (
        None if (found.isna() & (values.astype(str) != "") & values.notna()).any() else found.to_numpy(float)
    )


def _as_text(values: pd.Series) -> NDArray:
    """Values as text, numbers among them all in one notation."""
    import pandas as pd

    numbers = pd.to_numeric(values, errors="coerce")
    return np.array(
        [str(word) if np.isnan(x) else f"{x:.12g}" for word, x in zip(values, numbers, strict=True)]
    )


def _texts(name: str, x: NDArray, y: NDArray) -> Column:
    differ = np.flatnonzero(x != y)
    if not len(differ):
        return Column(name, IDENTICAL)
    text = f"{len(differ)} of {len(x)} entries, the first {x[differ[0]][:40]!r} against {y[differ[0]][:40]!r}"
    return Column(name, MOVED, np.inf, text)


def _to_perturbed(name: str, frame: pd.DataFrame, runs: Callable[[], NDArray]) -> NDArray:
    """Distance of each number from perturbed runs, the largest up to its round; 0 where none was kept."""
    # A run and its perturbed run differ by rounding alone.
    base = next((name.removesuffix(end) for end in PERTURBED if name.endswith(end)), name)
    perturbed = [f"{base}{end}" for end in PERTURBED if f"{base}{end}" in frame]
    gap = np.zeros(len(frame))
    if not perturbed or "round" not in frame or base not in frame:
        return gap
    for which in perturbed:
        gap = np.fmax(gap, (frame[base] - frame[which]).abs().to_numpy(float))
    gap[~np.isfinite(gap)] = np.nan  # one of the two diverged, which says nothing of the other
    return frame.assign(gap=gap)["gap"].groupby(runs()).cummax().to_numpy()


def _largest(sizes: NDArray, runs: NDArray) -> NDArray:
    """Largest finite number of each row's run: next to one that diverged, small numbers of others count."""
    most = np.zeros(runs.max(initial=0) + 1)
    np.maximum.at(most, runs, np.where(np.isfinite(sizes), sizes, 0.0))
    return most[runs]


def _runs(frame: pd.DataFrame) -> NDArray:
    """Number of each row's run: columns before the round tell runs apart, without a round there is one."""
    names = list(frame.columns)
    labels = names[: names.index("round")] if "round" in names else []
    if not labels:
        return np.zeros(len(frame), int)
    # A label may be missing, as the step of a method that has none.
    return frame[labels].astype(str).groupby(labels, sort=False, dropna=False).ngroup().to_numpy()


def _where(frame: pd.DataFrame, at: int) -> str:
    """Round and replicate of a row, if it has them."""
    places = [f"{label} {frame[label].iloc[at]}" for label in ("replicate", "round") if label in frame]
    return f" at {', '.join(places)}" if places else f" in row {at + 1}"
