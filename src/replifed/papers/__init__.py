"""The papers: a package each, with the jobs that run them all, and custom ones in registered folders."""

from collections.abc import Iterator

from replifed.parts import PAPERS, own_folders


class _Folders:
    """Folders in which Python looks for papers at each import: some are registered later than this one."""

    def __iter__(self) -> Iterator[str]:
        yield from map(str, (PAPERS, *own_folders()))


__path__ = _Folders()  # type: ignore[assignment]
