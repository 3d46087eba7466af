"""Verdicts on a paper whose experiments are logs, in its own folder and without Snakemake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.claims import files, scores
from replifed.errors import ConfigError, one_line
from replifed.papers import jobs
from replifed.parts import lone_paper, part, typed
from replifed.report.sentences import of_paper
from replifed.settings import needs
from replifed.settings.checks import validate
from replifed.settings.reading import read_file
from replifed.store.histories import provenance, write_history

# Logs have one scale, that of the paper.
SCALE = "paper"


def judge(folder: Path) -> list[str]:
    """Judge the paper in a folder, and return lines to print; verdicts and the page are in `folder`/results.

    Raises
    ------
    ConfigError
        The folder holds no paper, its settings are wrong, or an experiment is to be run and has no logs.
    DataError
        Logs cannot be read, or are no experiment.
    """
    with lone_paper(folder) as paper:
        settings = folder / "settings.yaml"
        content = read_file(settings)
        if paper not in content:
            raise ConfigError(f"{settings}: the section is to be called {paper}, like its folder")
        section = validate({**content, "papers": [paper]}, [settings])[paper]
        results = folder / "results"
        inputs, remarks = _histories(paper, folder, section, results)
        _verdicts(paper, folder, section, results, inputs)
        _pages(paper, folder, section, results, inputs, remarks)
        rows = files.read(results / "claims.csv")
        notes = [f"note: {name}: {one}" for name, known in remarks.items() for one in known]
        return [*notes, *_in_words(rows, of_paper(paper)), *_ending(rows, results)]


def _histories(
    paper: str, folder: Path, section: Mapping[str, Any], results: Path
) -> tuple[dict[str, list[Path]], dict[str, list[str]]]:
    """Write the logs of each experiment as histories; return them by key, and remarks on each experiment."""
    from replifed.logs.histories import read

    inputs: dict[str, list[Path]] = {}
    remarks: dict[str, list[str]] = {}
    for name, experiment in section["experiments"].items():
        if "logs" not in experiment:
            raise ConfigError(f"{paper}.experiments.{name} has no logs; `snakemake {paper}` runs it")
        runs = read(folder, typed(paper, {"seed": section["seed"], **experiment}))
        remarks[name] = runs.remarks
        given = needs.settings_for("run", section, name)
        about = provenance([part(paper, "experiments")], given, {"kind": experiment["data"], "stamp": ""})
        for method in runs.labels:
            file = results / paper / name / f"{method}.parquet"
            write_history(file, runs.history(method), about)
            inputs[f"run:{name}/{method}"] = [file]
    return inputs, remarks


def _verdicts(
    paper: str, folder: Path, section: Mapping[str, Any], results: Path, inputs: dict[str, list[Path]]
) -> None:
    measured = results / paper / "claims.csv"
    read = {"seed": section["seed"], "experiments": section["experiments"]}
    jobs.measure_claims(paper, read, SCALE, inputs, measured, made_by=f"replifed judge {folder}")
    names = ("claims.csv", "statements.csv", "not_claimed.csv")
    jobs.collect_claims([measured], *(results / name for name in names))


def _pages(
    paper: str,
    folder: Path,
    section: Mapping[str, Any],
    results: Path,
    inputs: dict[str, list[Path]],
    remarks: Mapping[str, list[str]],
) -> None:
    from replifed.report.page import build

    made = needs.artefacts(section)
    for name, artefact in made.items():
        suffixes = ("csv", "pdf", "png") if artefact["kind"] == "figure" else ("csv", "md", "tex")
        outputs = {suffix: results / "figures" / paper / f"{name}.{suffix}" for suffix in suffixes}
        read = {key: inputs[key] for key in needs.artefact_keys(artefact)}
        try:
            jobs.artefact(paper, name, needs.settings_for("artefact", section, name), SCALE, read, outputs)
        except KeyError as error:
            raise _no_column(folder, section, error) from error
    shown = {
        "artefacts": made,
        "made_by": f"replifed judge {folder}",
        "experiments": {
            name: one | ({"noted": "; ".join(remarks[name])} if remarks[name] else {})
            for name, one in needs.shown_experiments(section).items()
        },
    }
    build(
        results / "figures",
        SCALE,
        {"papers": [paper], paper: shown},
        results / "report.html",
        results / "claims.csv",
        single=True,
    )


def _no_column(folder: Path, section: Mapping[str, Any], error: KeyError) -> ConfigError:
    """Name the file that draws a column which no history has, such as a metric under its earlier name."""
    metrics = dict.fromkeys(name for one in section["experiments"].values() for name in one["metrics"])
    return ConfigError(
        f"{folder / 'figures.py'}: the logs have no {one_line(error)}; metrics in {folder / 'settings.yaml'} "
        f"are {', '.join(metrics)}"
    )


def _in_words(rows: Sequence[Mapping[str, str]], sentences: Sequence[Any]) -> Iterator[str]:
    """Lines on each sentence in the paper's order: its status, and below it its claims with their numbers."""
    statuses = {one["statement_id"]: one["status"] for one in scores.statements(rows)}
    says = {row["statement_id"]: row["statement"] for row in reversed(rows)}
    stated = {
        one.name: f"{one.place}: {one.says}" + " (main claim)" * one.main for one in sentences if one.name
    }
    for name, text in {**dict(reversed(says.items())), **stated}.items():
        status = statuses.get(name, "informs")
        yield f"{files.MARKS.get(status, ' ')} {status:12} {text}"
        for row in rows:
            if row["statement_id"] == name:
                numbers = "  ".join(filter(None, (files.number_text(row), files.remarks(row))))
                yield f"    {files.MARKS[row['verdict']]} {row['verdict']:12} {row['id']}  {numbers}".rstrip()


def _ending(rows: Sequence[Mapping[str, str]], results: Path) -> list[str]:
    statements = scores.statements(rows)
    rests = dict.fromkeys(one["evidence"] for one in statements if one["evidence"])
    evidence = f"evidence: {', '.join(rests)}"
    return [*scores.in_lines(statements), evidence, f"page: {results / 'report.html'}"]
