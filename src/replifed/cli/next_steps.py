"""`replifed` alone: the runs of this folder, and the commands that come next."""

from __future__ import annotations

import os
from pathlib import Path

from replifed.errors import DataError, counted

Steps = list[tuple[str, str]]  # commands, and what each does

_RESULTS = Path("results")


def show() -> int:
    """Print the state of each run below results/ and the next commands; return 0."""
    blocks = [(_state(run), _after(run)) for run in _runs()] or [_first()]
    width = max(len(command) for _, steps in blocks for command, _ in steps)
    for state, steps in blocks:
        print("\n".join([state, *(f"  {command:{width}}  # {text}" for command, text in steps), ""]))
    print("all commands: replifed --help")
    return 0


def _runs() -> list[Path]:
    """Folders of results, of the papers' scale and of others, in which a job has ended."""
    folders = [_RESULTS, *(sorted(_RESULTS.iterdir()) if _RESULTS.is_dir() else [])]
    return [one for one in folders if one.joinpath("benchmarks").is_dir()]


def _first() -> tuple[str, Steps]:
    verdicts = ("replifed claims --reference --main", "the verdicts of the accepted run")
    figure = ("replifed make fedplt/fig3 --small", "one figure at a reduced scale: a minute")
    if not Path("Snakefile").is_file():
        init = ("replifed init my_work && cd my_work", "a folder in which the workflow runs")
        return "there is no workflow in this folder; first:", [verdicts, init, figure]
    everything = (f"replifed make all --small {_cores()}", "everything at that scale: 12 min on 2 cores")
    return "results/ holds no run yet; first:", [verdicts, figure, everything]


def _state(folder: Path) -> str:
    """State of a run in a line: its score once all verdicts are there, else how far it is."""
    from replifed.claims import scores

    statements, report = folder / "statements.csv", folder / "report.html"
    if not statements.is_file():
        jobs = sum(1 for _ in folder.joinpath("benchmarks").rglob("*.tsv"))
        return f"{folder}: {counted(jobs, 'job')} done, verdicts not complete"
    try:
        score = scores.in_lines(scores.read(statements))[0]
    except DataError as error:
        return str(error)
    return f"{folder}: {score}" + (f"\nreport: {report}" if report.is_file() else "")


def _after(folder: Path) -> Steps:
    scale = _scale(folder)
    if not folder.joinpath("statements.csv").is_file():
        goes_on = (f"replifed make all{scale} {_cores()}", "goes on with everything")
        return [("replifed list", "every figure, table and target by name"), goes_on]
    verdicts = (f"replifed claims{scale} --main", "the verdicts on the main claims")
    golden = Path("tests/golden", f"{folder.name}.csv")
    if folder == _RESULTS:
        return [verdicts, ("replifed diff", "what differs from the accepted run")]
    differs = (f"replifed diff {folder} {golden}", "what differs from the accepted verdicts")
    return [verdicts, differs] if golden.is_file() else [verdicts]


def _scale(folder: Path) -> str:
    if folder == _RESULTS:
        return ""
    return " --small" if folder.name == "small" else f" --configfile config/{folder.name}.yaml"


def _cores() -> str:
    bound = getattr(os, "sched_getaffinity", None)
    return f"--cores {len(bound(0)) if bound else os.cpu_count()}"
