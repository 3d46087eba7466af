"""`replifed make`: a claim, an artefact, a paper or everything, by its name; and `replifed run`: one run."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_small,
    add_snakemake,
    call_snakemake,
    check_known,
    given_settings,
    load_config,
    with_small,
)
from replifed.cli.listing import TARGETS
from replifed.errors import ConfigError, DataError, counted, meant
from replifed.parts import own_papers

_SHOWN = 5  # claims on an artefact, unless all are asked for
_JUDGED = ("all", "claims", "report", "single_report", "gallery", "manifest")  # targets with all verdicts
_WORST_FIRST = ("fails", "inconclusive", "unchecked", "holds")


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    make = add_command(
        commands,
        "make",
        _make,
        "Make one figure or table, all of a paper, or all, with Snakemake: prints the number of jobs ahead "
        "and their recorded time, then the progress, and at the end the files and the worst verdicts among "
        "the claims that its own runs decide. For a claim or a statement: makes what it needs, and prints "
        "its sentence, what was published and measured, and the verdict, beside the reference run's.",
        "fedplt/fig3 --small --cores 2",
    )
    text = (
        "a name that `replifed list` prints: an artefact, its file, a paper, a claim or a statement, or all"
    )
    make.add_argument("name", metavar="NAME", help=text)
    make.add_argument("--all", action="store_true", help=f"print all claims, not the worst {_SHOWN}")
    add_small(make)
    add_snakemake(make)

    run = add_command(
        commands,
        "run",
        _run,
        "Run one method on one experiment, with all its repetitions. Snakemake makes the inputs of the run "
        "(data, partition, tuned steps) and runs it with the settings of the configuration. Prints the path "
        "of the history.",
        "fedht simulation1 fediterht --cores 2 --configfile config/small.yaml",
    )
    for name in ("paper", "experiment", "method"):
        run.add_argument(name)
    add_snakemake(run)


def _make(arguments: argparse.Namespace) -> int:
    config = load_config(with_small(arguments))
    changes = _changes(arguments, config)
    if changes and "paths" not in given_settings(arguments.config):
        folders = _changed_paths(config["paths"], changes)
        arguments.config = [*arguments.config, f"paths={json.dumps(folders)}"]
        config = load_config(arguments)
    if (
        "/" not in arguments.name
        and arguments.name.partition(".")[0] in config["papers"]
        and "." in arguments.name
    ):
        return _make_claims(arguments, config, changes)
    name = named(arguments.name, config)
    paths = files(name, config)
    status = call_snakemake(paths[0] if paths else name, arguments)
    if status == 0 and not arguments.dry_run:
        flags = [flag for file in arguments.configfile for flag in ("--configfile", file)]
        flags += ["--config", *arguments.config] if arguments.config else []
        options = "".join(f" {shlex.quote(flag)}" for flag in flags)
        print("\n".join([*paths, *changes, *_verdicts(name, config, options, arguments.all)]))
    return status


def _run(arguments: argparse.Namespace) -> int:
    paper, experiment, method = arguments.paper, arguments.experiment, arguments.method
    config = load_config(arguments)
    check_known("paper", paper, config["papers"])
    experiments = config[paper]["experiments"]
    check_known("experiment", experiment, experiments)
    check_known("method of this experiment", method, experiments[experiment]["methods"])
    target = f"{config['paths']['results']}/{paper}/{experiment}/{method}.parquet"
    status = call_snakemake(target, arguments)
    if status == 0 and not arguments.dry_run:
        print(target)
    return status


def _changes(arguments: argparse.Namespace, config: Mapping[str, Any]) -> list[str]:
    """Say which settings of papers --config changes: "fedplt.experiments.epochs.rho: 0.5 in place of 0.3"."""
    if not arguments.config:
        return []
    plain = load_config(argparse.Namespace(configfile=arguments.configfile))
    now, before = (
        dict(_leaves({paper: one[paper] for paper in config["papers"] if paper in one}))
        for one in (config, plain)
    )
    names = {**before, **now}
    return [
        f"{name}: {now.get(name, 'nothing')} in place of {before.get(name, 'nothing')}"
        for name in names
        if now.get(name) != before.get(name)
    ]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves(one, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _changed_paths(paths: Mapping[str, str], changes: list[str]) -> dict[str, str]:
    """Folders of a run with changed settings, so that the plain one's files stay as they are."""
    name = f"changed-{hashlib.sha256(repr(changes).encode()).hexdigest()[:8]}"
    return {key: f"{paths[key]}/{name}" for key in ("results", "figures", "logs")}


def named(name: str, config: Mapping[str, Any]) -> str:
    """Return the name of a target, given by a name or by one of the files that `replifed list` prints.

    Raises
    ------
    ConfigError
        The name is unknown; with the nearest known ones.
    """
    from replifed.settings.checks import retired, unknown_artefact
    from replifed.settings.needs import makeable

    papers = config["papers"]
    names = [f"{paper}/{artefact}" for paper in papers for artefact in makeable(config[paper])]
    path = PurePosixPath(name)
    if path.suffix and path.is_relative_to(config["paths"]["figures"]):
        file, name = name, path.relative_to(config["paths"]["figures"]).with_suffix("").as_posix()
        made = files(name, config) if name in names else []
        if made and str(path) not in made:
            raise ConfigError(f"{file} is not made; of this artefact there are: {', '.join(made)}")
    if name in (*papers, *TARGETS, *names):
        return name
    paper, slash, artefact = name.partition("/")
    if paper in papers and slash:
        raise ConfigError(unknown_artefact(paper, config[paper], artefact, makeable(config[paper])))
    if line := retired(config).get(path.stem):
        raise ConfigError(line)
    of_papers = [one for one in names if one.endswith(f"/{name}")]
    near = (
        f"; did you mean {' or '.join(of_papers)}?" if of_papers else meant(name, [*papers, *TARGETS, *names])
    )
    raise ConfigError(f"nothing is called {name!r}{near or ';'} `replifed list` prints all names")


def files(name: str, config: Mapping[str, Any]) -> list[str]:
    """Return the files of an artefact, the target first; none for a paper and for all."""
    from replifed.workflow.jobs import files as made

    if "/" not in name:
        return []
    numbers, *shown = made(_kind(name, config), name, config["paths"])
    return [*shown, numbers]


def _kind(name: str, config: Mapping[str, Any]) -> str:
    paper, _, artefact = name.partition("/")
    return config[paper]["artefacts"][artefact]["kind"]


def _make_claims(arguments: argparse.Namespace, config: Mapping[str, Any], changes: list[str]) -> int:
    """Make what a claim, or those on a statement, need; print how they stand here and in the reference."""
    from replifed.claims.files import read
    from replifed.papers.jobs import claims_named

    paper = arguments.name.partition(".")[0]
    names = [claim.id.removeprefix(f"{paper}.") for claim in claims_named(paper, arguments.name)]
    files = [f"{config['paths']['results']}/{paper}/claims/{name}.csv" for name in names]
    status = call_snakemake(files, arguments)
    if status == 0 and not arguments.dry_run:
        accepted, note = _accepted(paper)
        rows = [row for file in files for row in read(file)]
        lines = [line for row in rows for line in _in_full(row, accepted, changes)]
        if arguments.name not in {row["id"] for row in rows}:
            lines += _of_statement(arguments.name, rows, accepted)
        print("\n".join([*lines, note]))
    return status


def _accepted(paper: str) -> tuple[dict[str, Mapping[str, str]], str]:
    """Lines of the reference run's claims by id, and a line that names the run, if there is one."""
    from replifed.runs import kept, opened

    try:
        run = opened.reference()
        note = f"reference run: {kept.in_words(run, paper)}"
        return {row["id"]: row for row in run.rows("claims.csv")}, note
    except DataError as error:
        return {}, str(error)


def _in_full(
    row: Mapping[str, str], accepted: Mapping[str, Mapping[str, str]], changes: list[str]
) -> Iterator[str]:
    from replifed.claims.files import MARKS, number_text, remarks

    yield row["id"]
    quoted = f"{row['sentence']} ({row['place']})" if row["sentence"] else row["statement"]
    yield from textwrap.wrap(quoted, 100, initial_indent="  ", subsequent_indent="  ")
    for who, one in (("", row), ("reference run: ", accepted.get(row["id"]))):
        if one is not None:
            measured = number_text(one) or remarks(one)
            on = "by a formula" if one["data"] == "none" else f"on {one['data']} data"
            scale = f", at scale {one['scale']}" * (one["scale"] != "paper")
            yield f"  {who}{MARKS[one['verdict']]} {one['verdict']}: {measured}  ({on}{scale})"
            if who == "":
                yield from [f"  in {row['options']}"] * bool(row["options"])
                yield from (f"  with {change}" for change in changes)


def _of_statement(
    name: str, rows: list[dict[str, str]], accepted: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Yield the status of a statement, here and in the reference."""
    from replifed.claims import scores
    from replifed.claims.files import MARKS

    yield name
    there = [row for row in accepted.values() if row["statement_id"] == name]
    for who, several in (("", rows), ("reference run: ", there)):
        for one in scores.statements(several):
            yield f"  {who}{MARKS[one['status']]} {one['status']}: {one['reason']}"


def _verdicts(name: str, config: Mapping[str, Any], options: str, every: bool) -> Iterator[str]:
    """Yield the claims on an artefact; or the score of a paper, or of all, and where a paper's files are."""
    from replifed.workflow.closing import score_lines

    paper, _, artefact = name.partition("/")
    results = config["paths"]["results"]
    if not artefact:
        if paper in config["papers"]:
            yield from (f"{config['paths']['figures']}/{paper}", f"{results}/{paper}/report.html")
        judged = config["papers"] if name in _JUDGED else [paper] if paper in config["papers"] else []
        yield from score_lines(config["paths"], judged)
        return
    measured = Path(results, paper, "claims.csv")
    measures = f"`snakemake {measured} --cores 2{options}`"
    inputs = _inputs(name, config)
    runs = [file for key, files in inputs.items() if not key.startswith("data:") for file in files]
    gone = [file for file in runs if not file.is_file()]
    if gone:  # Snakemake does not miss what lies before a figure that is there
        again = f"`snakemake {gone[0]} --cores 2{options}`"
        yield f"{gone[0]} is gone, so that its claims cannot be judged: {again}"
        return
    if rows := _of_artefact(paper, artefact, config, inputs):
        yield from _worst_first(name, rows, config["scale"], options, every)
    if others := _claims_on(paper, artefact) - len(rows):
        more = "more claims need" if others > 1 else "more claim needs"
        yield f"{others} {more} other runs of {paper}: {measures}"


def _worst_first(
    name: str, rows: list[dict[str, Any]], scale: str, options: str, every: bool
) -> Iterator[str]:
    """Yield the number of claims by verdict, the worst claims with their sentences, and what shows more."""
    yield from worst_first(f" on {name} at scale {scale}", rows, every)
    first = min(rows, key=_how_bad)["id"]
    yield f"the whole sentence and numbers of a claim: `replifed make {first}{options}`"
    if name.partition("/")[0] not in own_papers():
        yield f"the verdicts of the accepted run: `replifed show {name} --reference`"


def worst_first(where: str, rows: Sequence[Mapping[str, Any]], every: bool) -> Iterator[str]:
    """Yield the number of claims by verdict, and the worst of them, or all, with their sentences."""
    from replifed.claims.files import MARKS, number_text

    counts = Counter(row["verdict"] for row in rows)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORST_FIRST if counts[verdict])
    yield f"{counted(len(rows), 'claim')}{where}{': ' * bool(rows)}{said}"
    shown = sorted(rows, key=_how_bad)[: None if every else _SHOWN]
    for row in shown:
        yield f"{MARKS[row['verdict']]} {row['verdict']:12} {row['id']}  {number_text(row)}".rstrip()
        yield f"    {textwrap.shorten(row['statement'], 100, placeholder=' ...')}"
    if len(rows) > len(shown):
        yield f"... and {len(rows) - len(shown)} more, which --all prints"


def _how_bad(row: Mapping[str, Any]) -> tuple[int, bool]:
    return _WORST_FIRST.index(row["verdict"]), not row["main"]


def _claims_on(paper: str, artefact: str) -> int:
    from replifed.papers.jobs import claims_of

    return sum(claim.artefact == artefact for claim in claims_of(paper))


def _inputs(name: str, config: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Return the files that an artefact shows, by their names."""
    from replifed.workflow.jobs import Table

    table = Table(config)
    reads = table[f"{_kind(name, config)}:{name}"].reads
    return {one: [Path(file) for file in table.files(key)] for one, key in reads.items()}


def _of_artefact(
    paper: str, artefact: str, config: Mapping[str, Any], inputs: dict[str, list[Path]]
) -> list[dict[str, Any]]:
    """Measure the claims that an artefact's own runs tell; none without runs."""
    from replifed.papers.jobs import measured_on
    from replifed.settings.needs import settings_for

    return measured_on(paper, artefact, settings_for("claims", config[paper]), config["scale"], inputs)
