"""Inner loops compiled by numba, for work that numpy can only do in several passes through memory.

Each takes and fills plain arrays; what they mean is said by the operators and problems that call them.
They are imported where they are called, since numba takes a third of a second to load, which most of
the workflow's small jobs need not pay. The first call compiles; later processes load what it has left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

import numba
from numba.core.caching import InTreeCacheLocator


def _digest() -> str:
    """Name of all kernels' sources: numba itself would overlook a change in what a kernel calls."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# With bounds checks, which numba's own cache would not tell from the rest, kernels are compiled apart.
_CACHE = Path(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__") / (
    f"kernels-{_digest()}" + ("-checked" if numba.config.BOUNDSCHECK else "")
)


_ANY_ORDER = {"reassoc", "contract", "nsz"}


@cache
def _make_cache() -> None:
    """Make the folder, once and not for each kernel; OSError where it takes no files."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    TemporaryFile(dir=_CACHE).close()


class Locator(InTreeCacheLocator):
    """Where numba keeps what it has compiled: by what the kernels say, not by where their files lie.

    With NUMBA_CACHE_DIR set, checkouts with the same kernels thus share what one of them has compiled.
    """

    def ensure_cache_path(self) -> None:
        _make_cache()

    def get_cache_path(self) -> str:
        return str(_CACHE)

    def get_source_stamp(self) -> str:
        return _CACHE.name


def _compiled(function: Callable, fastmath: set[str], inlined: bool = False) -> Callable:
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.Locator"
    settings = {"error_model": "numpy", "fastmath": fastmath, "forceinline": inlined}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # there is no folder that it may write to
        return numba.njit(**settings)(function)


def compiled(function: Callable) -> Callable:
    """Compile a function in which sums may be taken in any order, as BLAS takes them.

    Infinities and NaN keep their meaning: they are how a run that diverges is found.
    """
    return _compiled(function, _ANY_ORDER)


def inlined(function: Callable) -> Callable:
    """As `compiled`, and made a part of its callers: to pass many arrays costs as much as a short loop."""
    return _compiled(function, _ANY_ORDER, inlined=True)


def compiled_as_written(function: Callable) -> Callable:
    """Compile a formula that is exact only as it is written."""
    return _compiled(function, {"contract"})
