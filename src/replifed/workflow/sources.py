"""One small file for the source files of a job."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from replifed.store import provenance
from replifed.store.atomic import write_text
from replifed.store.hashes import file_hash

# It only says in which module a method is, which is a source by itself: a method more reruns nothing.
REGISTRY = Path("replifed/algorithms/registry.py")


@cache
def source_stamp(modules: tuple[str, ...], root: str, folder: str) -> str:
    """Return one small file that stands for the source files of modules (see `provenance.sources`).

    Its folder is the hash of what they hold, so that an edit gives a job another input. Dozens of sources as
    inputs of hundreds of jobs would keep Snakemake busy with nothing but asking for their times and sizes.
    Each has a folder of its own: Snakemake lists a folder once, and would miss what is added later.

    Parameters
    ----------
    modules : tuple of str
        Such as "replifed.papers.jobs:run"; a missing one is a `ReplifedError`.
    root, folder : str
        The folder of the package, and that of the stamps.
    """
    found = {file.relative_to(root) for module in modules for file in _sources(module, root)} - {REGISTRY}
    names = sorted(file.as_posix() for file in found)
    text = "".join(f"{_sha256(Path(root, name))}  {name}\n" for name in names)
    stamp = Path(folder, hashlib.sha256(text.encode()).hexdigest()[:32], "files")
    if not stamp.is_file():
        write_text(stamp, text)
    # It has no time of its own: only its name may rerun a job.
    os.utime(stamp, (0, 0))
    return str(stamp)


# A process looks at one state of the sources.
_sources = cache(provenance.sources)
_sha256 = cache(file_hash)
