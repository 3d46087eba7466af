"""A copy of the repository in which the real workflow has run, with stubs in place of the numerics."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import warm

ROOT = Path(__file__).parents[2]
COPIED = ("Snakefile", "workflow", "config", "profiles", "src", "environment.yml")

# Appended to the real modules, so that their imports, and with them the dependencies, stay the real ones.
STUBS = {
    "partition/build.py": """

def partition(paper, experiment, settings, data, out, table):
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("stub")
    table.write_text("stub")
""",
    "papers/jobs.py": """

def _stub(*files):
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("stub")


def tune(paper, experiment, method, settings, data, partition, out, leader, *, test):
    _stub(out)


def run(paper, experiment, method, settings, data, partition, tuned, out, share, *, test):
    _stub(out)
    if share is not None:
        out.write_text("stub of share {} of {}".format(*share))


def artefact(paper, name, settings, scale, inputs, outputs):
    _stub(*outputs.values())


def measure_claims(paper, settings, scale, inputs, out, only, environment):
    _stub(out, environment)


def collect_claims(files, out, statements, not_claimed):
    _stub(out, statements, not_claimed)


def measure_errata(paper, out):
    _stub(out)
""",
    "store/histories.py": """

def join(files, out):
    out.write_text("; ".join(file.read_text() for file in files))
""",
    "report/page.py": """

def build(figures_dir, scale, settings, out, curves=None, run=None, **_):
    for file in filter(None, (out, curves, run)):
        file.write_text("stub")
""",
    "data/fetch.py": """

def fetch(dataset, raw_dir, *, policy, mirror=None, **_):
    if policy == "real" and os.environ.get("STUB_FAILS"):
        raise DataError("no such file anywhere")
    print(f"mirror is {mirror or os.environ.get('REPLIFED_MIRROR')}")
    record = {"id": dataset.id, "form": "", "stamp": "", "policy": policy, "files": []}
    record["kind"] = "original" if dataset.id == "mnist" else "surrogate"
    write_record(raw_dir, record)
    return record
""",
    "data/parse.py": """

def parse(dataset, raw_dir, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("stub")
    return {"kind": "stub", "counts": {}}
""",
}


@dataclass(frozen=True)
class Result:
    """How a call of Snakemake ended, and what it printed."""

    status: int
    text: str

    @property
    def jobs(self) -> set[str]:
        """Messages of the jobs that ran or would run."""
        return set(re.findall(r"^Job \d+: (.*)$", self.text, flags=re.MULTILINE))

    @property
    def last_line(self) -> str:
        return self.text.strip().splitlines()[-1]


def surroundings() -> dict[str, str]:
    """The environment without the mirror of whoever runs the tests; copies share compiled kernels."""
    kernels = os.environ.get("NUMBA_CACHE_DIR") or str(ROOT / "src/replifed/kernels/__pycache__")
    # Jobs of a copy compile its modules once.
    left_out = ("REPLIFED_MIRROR", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return {**kept, "NUMBA_CACHE_DIR": kernels}


@dataclass(frozen=True)
class Copy:
    """A working copy of the repository."""

    folder: Path

    def snakemake(self, *words: str, env: dict[str, str] | None = None, python: str = "") -> Result:
        """Call Snakemake with one word after the other; with the real Python if it is given."""
        done = subprocess.run(
            [python or warm.executable(), "-m", "snakemake", *words],
            cwd=self.folder,
            env=surroundings() | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Result(done.returncode, done.stdout)

    def planned(self, *words: str) -> set[str]:
        """Return the messages of the jobs that `all` would run now."""
        result = self.snakemake("all", "--dry-run", "--cores", "1", *words)
        assert result.status == 0, result.text
        return result.jobs

    @contextlib.contextmanager
    def edited(self, name: str, text: str = "\n# an edit\n"):
        """Append `text` to a file for a while."""
        file = self.folder / name
        before, times = file.read_bytes(), file.stat()
        file.write_bytes(before + text.encode())
        try:
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def copy_repository(
    folder: Path, stubs: dict[str, str] = STUBS, papers: tuple[str, ...] | None = ("fedht",)
) -> Copy:
    """Copy the repository to `folder`, with the given papers in its configuration; None leaves all.

    Each figure is a job, so that what an edit reruns is told figure by figure.
    """
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # With what Python has compiled, but without kernels, which all copies share.
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("kernels-*", "*.egg-info"))
        else:
            shutil.copy2(source, folder / name)
    if papers is not None:
        file = folder / "config/config.yaml"
        file.write_text(re.sub(r"(?m)^papers: .*$", f"papers: [{', '.join(papers)}]", file.read_text()))
    for file in (folder / "config/papers").glob("*.yaml"):
        file.write_text(re.sub(r"(?m)^  together: artefacts.*\n", "", file.read_text()))
    for name, text in stubs.items():
        with (folder / "src/replifed" / name).open("a") as file:
            file.write(text)
    return Copy(folder)
