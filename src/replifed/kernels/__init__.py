"""Inner loops compiled by numba, for work that numpy can only do in several passes through memory.

Each takes and fills plain arrays; what they mean is said by the operators and problems that call them.
They are imported where they are called, since numba takes a third of a second to load, which most of
the workflow's small jobs need not pay. The first call compiles; later processes load what it has left.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile, InTreeCacheLocator
from numpy.typing import NDArray


def _digest() -> str:
    """Name of all kernels' sources: numba itself would overlook a change in what a kernel calls."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# With bounds checks, which numba's own cache would not tell from the rest, kernels are compiled apart.
_CACHE = Path(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__") / (
    f"kernels-{_digest()}" + ("-checked" if numba.config.BOUNDSCHECK else "")
)


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


class _Files(IndexDataCacheFile):
    """A kernel's files, each with a hash at its end. What is damaged or cannot be kept is compiled anew.

    Machine code with a flipped bit would run, and say something else.
    """

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _intact(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        if not _intact(path := self._data_path(name)):
            raise OSError(f"{path}: damaged")  # for numba, a file that is missing
        return super()._load_data(name)

    def save(self, key: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk, say
            super().save(key, data)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        with super()._open_for_write(filepath) as file:
            yield (content := BytesIO())
            file.write(content.getvalue() + sha256(content.getvalue()).digest())


def _intact(path: str) -> bool:
    """Whether a file can be read and ends in the hash of the rest."""
    with suppress(OSError):
        content = Path(path).read_bytes()
        return content[-32:] == sha256(content[:-32]).digest()
    return False


class _Kept(FunctionCache):
    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _Files(
            locator.get_cache_path(), self._impl.filename_base, locator.get_source_stamp()
        )


class _Uncollected(event.Listener):
    """Puts off collecting garbage: compiling leaves little and would spend a tenth of its time on it."""

    def __init__(self) -> None:
        self._depth, self._enabled = 0, False

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._enabled:
            gc.enable()


event.register("numba:compile", _Uncollected())

_ANY_ORDER = {"reassoc", "contract", "nsz"}


def _compiled(function: Callable, fastmath: set[str], called_from_python: bool = True) -> Callable:
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.Locator"
    made = numba.njit(
        error_model="numpy",
        fastmath=fastmath,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=not called_from_python,
    )(function)
    with suppress(RuntimeError):  # there is no folder that it may write to
        made._cache = _Kept(function)
    return made


def compiled(function: Callable) -> Callable:
    """Compile a function in which sums may be taken in any order, as BLAS takes them.

    Infinities and NaN keep their meaning: they are how a run that diverges is found.
    """
    return _compiled(function, _ANY_ORDER)


def compiled_within(function: Callable) -> Callable:
    """Compile as `compiled` a function that only compiled ones call.

    What makes it callable from Python would take as long to compile as a short function itself. Without it,
    a call from Python crashes.
    """
    return _compiled(function, _ANY_ORDER, called_from_python=False)


def compiled_as_numpy(function: Callable) -> Callable:
    """Compile a formula that is rounded after each operation, as numpy's is."""
    return _compiled(function, set())


def compiled_as_written(function: Callable) -> Callable:
    """Compile a formula that is exact only as it is written."""
    return _compiled(function, {"contract"})


def read_only(array: NDArray) -> NDArray:
    """View of an array that a kernel does not write to."""
    view = array.view()
    view.flags.writeable = False
    return view
