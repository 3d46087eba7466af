"""Processor time of `snakemake all` where nothing is left to do, of its dry run, and of refusing a wrong key.

In a temporary copy of the repository every product is an empty file that Snakemake is told to take for
finished, so that no experiment runs.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from replifed.data.records import write_record

ROOT = Path(__file__).parents[1]
COPIED = ("Snakefile", "workflow", "config", "profiles", "src", "environment.yml")
ASKED = {"nothing to do": (8.0, ["--cores", "1"]), "dry run": (6.0, ["--cores", "1", "--dry-run"])}


def snakemake(folder: Path, *words: str, status: int = 0) -> tuple[str, float]:
    """Run Snakemake, which must end with `status`; returns what it printed and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "all", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        sys.exit(f"snakemake all {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def finished_copy(folder: Path) -> int:
    """Make a copy of the repository in which all products of `all` exist; returns their number."""
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, folder / name)
    lines = snakemake(folder, "--summary")[0].splitlines()
    products = [line.split("\t")[0] for line in lines if line.count("\t") == 5]
    assert products.pop(0) == "output_file"
    for product in products:
        path = folder / product
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if path.parent == folder / "data/raw":
            record = {
                "id": path.stem,
                "form": "",
                "kind": "original",
                "stamp": "",
                "policy": "auto",
                "files": [],
            }
            write_record(path.parent, record)
    snakemake(folder, "--touch", "--cores", "1")
    return len(products)


def main() -> int:
    met = True
    with tempfile.TemporaryDirectory() as name:
        products = finished_copy(Path(name))
        print(f"`snakemake all`, {products} products\n")
        print("| work | processor time, s | at most, s |")
        print("|---|--:|--:|")
        for what, (most, words) in ASKED.items():
            taken = []
            for _ in range(3):
                text, seconds = snakemake(Path(name), *words)
                assert "Nothing to be done" in text, text
                taken.append(seconds)
            met &= statistics.median(taken) <= most
            print(f"| {what} | {statistics.median(taken):.1f} | {most:g} |")
        _, seconds = snakemake(Path(name), "--cores", "1", "--config", "polcy=real", status=1)
        met &= seconds <= 3.0
        print(f"| refusal of a wrong key | {seconds:.1f} | 3 |")
        # The dry run of a fresh copy plans every job.
        for product in ("results", "figures", "data", ".snakemake"):
            shutil.rmtree(Path(name, product), ignore_errors=True)
        text, seconds = snakemake(Path(name), "--cores", "1", "--dry-run")
        assert "report" in text and "Nothing to be done" not in text
        met &= seconds <= 6.0
        print(f"| dry run of everything | {seconds:.1f} | 6 |")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
