"""What data show before any run: units that would decide a ranking, columns that are no features, classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.data.scaling import Scaling, Statistics, statistics, whose
from replifed.data.table import Table
from replifed.errors import counted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Second derivative of a loss in its prediction at zero, but for softmax, where it depends on the classes.
_CURVATURE = {"binary": 0.25, "regression": 1.0}
# Operations, about, of a matrix of second moments, above which only its largest eigenvalue is sought.
_EXACT = 4e9
_BLOCK = 1 << 19  # values of a dense block of rows
_PRECISE = 1e-3  # relative, of an eigenvalue by Lanczos iteration
# Standardising is advised where the condition number is as large, and falls to a tenth.
_LARGE, _WORSE = 100, 10
# Names that a line lists, columns that are looked at for repeated values, and fewest samples that tell an id.
_LISTED, _LOOKED_AT, _FEWEST = 5, 64, 20
_CLASSES = 6
_ID = re.compile(r"(?i:(^|[\s_.-])(id|ids|uid|uuid|guid|key|idx|index))$|[a-z](Id|ID|Uuid|UUID)$")
_DATE = re.compile(
    r"(?i:(^|[\s_.-])(date|datum|day|month|year|time|timestamp|datetime|dob|birthday)([\s_.-]|$))"
    r"|[a-z](Date|Time|Timestamp)$"
)
# Whole numbers that dates are written as: years, 20240131, and seconds and milliseconds since 1970.
_DATES = ((1900, 2100), (19000101, 21001231), (946684800, 4102444800), (946684800000, 4102444800000))


class Finding(NamedTuple):
    """A line on a data set, and what to do about it, if anything."""

    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, self))


def findings(
    table: Table,
    ridge: float,
    *,
    by_client: bool = False,
    standardised: bool = False,
    tested: bool = False,
) -> list[Finding]:
    """Say what a data set of one's own shows.

    Parameters
    ----------
    table : a sparse one, as `data.own.read` makes it, before features are standardised.
    ridge : weight of |x|^2 / 2 in the objective whose condition number is said.
    by_client : whether clients that the data name have equal weights in that objective, else samples have.
    standardised : whether features will be.
    tested : whether samples will be kept for a test.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of features such as 1e300
        found = statistics(table.X)
        return [
            _counts(table),
            *_conditioning(table, found, ridge, by_client, whose(found.rows, tested) if standardised else ""),
            *_columns(table, found),
            *_clients(table),
        ]


# --- Classes and clients ---


def _counts(table: Table) -> Finding:
    n, d = table.X.shape
    size = f"{n} samples, {counted(d, 'feature')}"
    if table.meta["task"] == "regression":
        return Finding(
            f"{size}; targets from {table.y.min():.4g} to {table.y.max():.4g}, with mean {table.y.mean():.4g}"
        )
    labels, counts = np.unique(table.y, return_counts=True)
    names = table.meta.get("classes") or [f"{label:g}" for label in labels]
    shares = [f"{_share(count, n)} {_short(name)}" for name, count in zip(names, counts, strict=True)]
    if len(shares) > _CLASSES:
        rarest, commonest = shares[counts.argmin()], shares[counts.argmax()]
        return Finding(f"{size}; {len(shares)} classes, from {rarest} to {commonest}")
    return Finding(f"{size}; classes: {', '.join(shares)}")


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.2g} %" if count < of else "100 %"


def _clients(table: Table) -> Iterator[Finding]:
    if table.client is None:
        return
    sizes = np.bincount(table.client)
    yield Finding(f"{counted(len(sizes), 'client')}, with {sizes.min()} to {sizes.max()} samples each")
    if table.meta["task"] == "regression":
        return
    pairs = np.unique(np.stack([table.client, table.y.astype(int)]), axis=1)
    kinds = np.bincount(pairs[0])
    if alone := np.flatnonzero(kinds == 1).tolist():
        names = table.meta.get("clients") or list(map(str, range(len(sizes))))
        yield Finding(f"{counted(len(alone), 'client')} with one class only: {_listed(names, alone)}")


# --- Conditioning ---


def _conditioning(
    table: Table, found: Statistics, ridge: float, by_client: bool, standardised: str
) -> Iterator[Finding]:
    task = table.meta["task"]
    curvature = _CURVATURE.get(task) or 1 / (table.y.max() + 1)
    weights = np.full(len(table.y), 1 / len(table.y))
    if by_client and table.client is not None:
        sizes = np.bincount(table.client)
        weights = 1 / (len(sizes) * sizes[table.client])
    conditions = []
    for low, high in _eigenvalues(table.X, weights, found.scaling()):
        # Of a softmax only differences of classes count, so that its Hessian is singular without a ridge.
        bound = 0.0 if task == "multiclass" or np.isnan(low) else low
        conditions.append((curvature * high + ridge) / (curvature * bound + ridge))
    before, after = conditions
    most = "at most " if np.isnan(low) else ""
    text = f"condition number at the model zero, with the ridge {ridge:g}: {most}"
    if standardised:
        yield Finding(f"{text}{after:.3g}, standardised {standardised}; {before:.3g} as they are")
    else:
        remedy = "the order of methods may come from the units: set standardise: true"
        text += f"{before:.3g}, with standardised features {after:.3g}"
        yield Finding(text, remedy if before > max(_LARGE, _WORSE * after) else "")
    used, name = np.flatnonzero(found.filled), _namer(table)
    sizes = found.magnitude[used]
    small, large = used[sizes.argmin()], used[sizes.argmax()]
    if (ratio := sizes.max() / sizes.min()) > 1:
        yield Finding(
            f"ratio of the columns' scales: {ratio:.3g}, from {sizes.min():.3g} ({name(small)}) to "
            f"{sizes.max():.3g} ({name(large)})"
        )


def _eigenvalues(X: csr_matrix, weights: NDArray, scaling: Scaling) -> list[tuple[float, float]]:
    """Smallest and largest eigenvalue of sum_j w_j x_j x_j', of samples as they are and scaled.

    The smallest is NaN where it takes too long.
    """
    n, d = X.shape
    shift, scale, _ = scaling
    if n * float(d) ** 2 > _EXACT:
        low = 0.0 if n < d else np.nan
        each = (Scaling(0 * shift, np.ones(d), scaling.centred), scaling)
        return [(low, _largest(X, weights, one)) for one in each]
    moments, mean = _moments(X, weights, scaling)
    around = np.outer(shift, scale * mean)
    raw = moments * np.outer(scale, scale) + around + around.T + weights.sum() * np.outer(shift, shift)
    return [_ends(raw), _ends(moments)]


def _ends(H: NDArray) -> tuple[float, float]:
    if not np.isfinite(H).all():
        return 0.0, np.inf  # squares of the features overflow
    values = np.linalg.eigvalsh(H)
    return max(float(values[0]), 0.0), float(values[-1])


def _moments(X: csr_matrix, weights: NDArray, scaling: Scaling) -> tuple[NDArray, NDArray]:
    """Weighted sums of z_j z_j' and z_j over scaled samples z_j, by dense blocks."""
    from threadpoolctl import threadpool_limits

    n, d = X.shape
    H, mean, step = np.zeros((d, d)), np.zeros(d), max(1, _BLOCK // d)
    with threadpool_limits(1):  # more of them wait for each other on a busy machine
        for begin in range(0, n, step):
            rows = (X[begin : begin + step].toarray() - scaling.shift) / scaling.scale
            weighted = weights[begin : begin + step, None] * rows
            H += rows.T @ weighted
            mean += weighted.sum(axis=0)
    return H, mean


def _largest(X: csr_matrix, weights: NDArray, scaling: Scaling) -> float:
    """Largest eigenvalue of the weighted sum of z_j z_j' over scaled samples z_j, by Lanczos iteration.

    Iterates on that d x d matrix, or, if n < d, on the n x n Gram matrix with the same eigenvalue.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, d = X.shape
    root, shift, scale = np.sqrt(weights), scaling.shift, scaling.scale

    def forward(v: NDArray) -> NDArray:
        v = v / scale
        return root * (X @ v - shift @ v)

    def backward(u: NDArray) -> NDArray:
        u = root * u
        return (X.T @ u - shift * u.sum()) / scale

    def times(v: NDArray) -> NDArray:
        v = v.ravel()
        return backward(forward(v)) if d <= n else forward(backward(v))

    side = min(n, d)
    start = np.random.default_rng(0).normal(size=side)
    if not np.isfinite(times(start)).all():
        return np.inf  # squares of the features overflow
    operator = LinearOperator((side, side), matvec=times, dtype=float)
    options = {"v0": start, "ncv": min(side, 12), "tol": _PRECISE, "return_eigenvectors": False}
    return float(eigsh(operator, 1, which="LA", **options)[0])


# --- Columns ---


def _columns(table: Table, found: Statistics) -> Iterator[Finding]:
    name, n = _namer(table), found.rows
    if (constant := np.flatnonzero(found.constant)).size:
        zero = int((found.filled[constant] == 0).sum())
        which = f" ({zero} of them zero)" if zero else ""
        yield Finding(
            f"{counted(constant.size, 'constant column')}{which}: {_named(name, constant)}",
            "" if zero == constant.size else f"{_out(table)}, unless an intercept is meant",
        )
    names = table.meta.get("columns") or []
    varied = ~found.constant & found.whole & (n >= _FEWEST)
    ids = {*np.flatnonzero(varied & _called(_ID, names, found)).tolist(), *_unique(table.X, found, varied)}
    if ids:
        yield Finding(
            f"columns like ids, by name or since no number repeats: {_named(name, sorted(ids))}",
            f"{_out(table)}, unless they are features",
        )
    dates = varied & _called(_DATE, names, found)
    for low, high in _DATES:
        dates |= varied & (found.low >= low) & (found.high <= high)
    if when := sorted({*np.flatnonzero(dates).tolist()} - ids):
        yield Finding(
            f"columns like dates, by name or value: {_named(name, when)}",
            f"{_out(table)}, unless they are features",
        )


def _out(table: Table) -> str:
    return "name them in drop" if "columns" in table.meta else "leave them out"


def _called(pattern: re.Pattern[str], names: Sequence[str], found: Statistics) -> NDArray:
    """Return which columns have a name like that."""
    if not names:
        return np.zeros(len(found.low), bool)
    return np.array([bool(pattern.search(name)) for name in names])


def _unique(X: csr_matrix, found: Statistics, varied: NDArray) -> list[int]:
    """Return columns whose values, whole numbers, all differ."""
    # Only one of them is zero, and they span as many numbers as there are.
    n = found.rows
    possible = varied & (found.filled >= n - 1) & (found.high - found.low >= n - 1)
    some = np.flatnonzero(possible)[:_LOOKED_AT]
    return [int(k) for k in some if np.unique(X[:, [k]].toarray()).size == n]


def _namer(table: Table) -> Callable[[int], str]:
    names = table.meta.get("columns")
    return (lambda k: _short(names[k])) if names else (lambda k: f"column {k + 1}")


def _named(name: Callable[[int], str], columns: Sequence[int] | NDArray) -> str:
    return _listed({int(k): name(k) for k in columns[:_LISTED]}, list(columns))


def _listed(names: object, numbers: Sequence[int]) -> str:
    few = [_short(names[k]) for k in numbers[:_LISTED]]  # type: ignore[index]
    return ", ".join(few) + (f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else "")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:21]}..."
