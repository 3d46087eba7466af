"""`replifed archive`, `diff`, `show`, `certificate` and `manifest verify`: runs as a whole."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    add_command,
    add_configfile,
    add_file,
    add_small,
    check_known,
    load_config,
    refuse_small,
    with_small,
)
from replifed.errors import ConfigError, counted
from replifed.parts import paper_names
from replifed.progress import Bar, Lines, Progress, redraws

_SHOWN = 30  # lines of a comparison, unless all are asked for


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    archive = add_command(
        commands,
        "archive",
        _archive,
        "Write the run of this folder as one zip, whose bytes depend on the run alone: histories, tuned "
        "settings, tables, verdicts, manifest, settings, environment and hashes of the data, described as an "
        "RO-Crate.",
        "run.zip --small --agent 'Ada Lovelace'",
    )
    archive.add_argument("out", type=Path, metavar="FILE.zip", help="the archive to write")
    archive.add_argument("--agent", default="not stated", metavar="NAME", help="who made the run")
    _add_run(archive)

    diff = add_command(
        commands,
        "diff",
        _diff,
        "Compare two runs, the worst differences first, with their causes where the files show them. Exits "
        "with status 1 if something moved, a verdict changed, or a part is missing.",
        "results/small other.zip",
    )
    what = "a folder of results or of a run, an archive, a CSV of references, or `reference`"
    diff.add_argument("a", nargs="?", metavar="A", help=f"{what}; default: the run of this folder")
    diff.add_argument("b", nargs="?", default="reference", metavar="B", help="likewise; default: reference")
    diff.add_argument("--all", action="store_true", help=f"print all differences, not the worst {_SHOWN}")
    add_file(diff, "--html", help="write a page with the curves of both over each other")
    diff.add_argument("--markdown", action="store_true", help="print them as a table of Markdown")
    _add_run(diff)

    show = add_command(
        commands,
        "show",
        _show,
        "Print the numbers of a figure or table of a run, with the verdicts of its claims.",
        "fedplt/fig3 --reference",
    )
    show.add_argument("name", metavar="PAPER/ARTEFACT", help="a name that `replifed list` prints")
    show.add_argument("--reference", action="store_true", help="of the reference run, not of this folder's")
    show.add_argument("--all", action="store_true", help="print all claims, not the worst 5")
    _add_run(show)

    certificate = add_command(
        commands,
        "certificate",
        _certificate,
        "Compare one paper's figures and tables with the reference run, and write what CODECHECK asks for: "
        "codecheck.yml and a page, both unsigned.",
        "fedplt --name 'Ada Lovelace' --orcid 0000-0000-0000-0000 --out certificate",
    )
    certificate.add_argument("paper", metavar="PAPER")
    certificate.add_argument("--name", required=True, help="who made the run")
    certificate.add_argument("--orcid", required=True, help="the ORCID of who made the run")
    certificate.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    text = "what to compare with, as `replifed diff` takes it; default: the reference run"
    certificate.add_argument("--against", default="reference", metavar="B", help=text)
    _add_run(certificate)

    manifest = commands.add_parser(
        "manifest", description="Hashes of all files made; see `snakemake verify --cores 1`."
    )
    parts = manifest.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "Hash every file again; exits with status 1 if one has changed, is missing or was made by no job."
    example = "results/manifest.csv --folders results/fedht figures/fedht"
    verify = add_command(parts, "verify", _manifest_verify, text, example)
    add_file(verify, "manifest")
    text = "with files of the workflow"
    verify.add_argument("--folders", nargs="*", default=[], metavar="FOLDER", help=text)
    text = "folder of raw files, to compare with their pins"
    verify.add_argument("--raw-dir", type=Path, metavar="FOLDER", help=text)


def _add_run(parser: argparse.ArgumentParser) -> None:
    add_small(parser)
    add_configfile(parser)


def _progress(title: str) -> Progress:
    """Progress of a command as a bar, or as lines where none can be drawn."""
    return Bar(title) if redraws(sys.stderr) else Lines(title)


def own_run(
    arguments: argparse.Namespace, single: bool = False, papers: Sequence[str] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return the run of this folder at the scale that the options name, or papers of it, and its settings.

    Papers that were made one by one have no manifest; then it is one of what is there, with `single` also of
    claims that were measured alone.
    """
    from replifed.runs.opened import Run, of_folders
    from replifed.store.provenance import canonical_json

    config = load_config(with_small(arguments))
    config = {**config, "papers": papers or config["papers"]}
    results, figures = (Path(config["paths"][name]) for name in ("results", "figures"))
    run = of_folders(results, figures, config["papers"], single)
    if not run.parts:
        raise ConfigError(
            f"{run.place} holds no run; `replifed make all --cores 2{_scale(arguments)}` makes it"
        )
    more = {"settings.json": partial(str.encode, canonical_json(config))}
    if papers or "environment.json" not in run:
        more["manifest.csv"] = partial(_manifest, run, config)
    return Run(run.place, {**run.parts, **more}, run.partial), config


def _scale(arguments: argparse.Namespace) -> str:
    return "".join(f" --configfile {file}" for file in arguments.configfile)


def _manifest(run: Any, config: dict[str, Any]) -> bytes:
    """List what is there of the papers of a run, and the raw files of their data, by recorded hashes."""
    from replifed.runs.compared import papers
    from replifed.store import manifest
    from replifed.workflow.jobs import Table

    made = [paper for paper in config["papers"] if paper in papers(run)]
    return manifest.of_folders(Table({**config, "papers": made}).verified_folders()).encode()


def _unjudged(run: Any, papers: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    """Name those of the papers of this folder that no claims are measured on, with what measures them."""
    judged = {row["paper"] for row in run.rows("claims.csv")} if "claims.csv" in run else set()
    commands = {
        paper: f"`replifed make {paper} --cores 2{_scale(arguments)}`"
        for paper in papers
        if paper not in judged - run.partial
    }
    return [
        f"the claims on {paper} are not measured here: {makes} does so" for paper, makes in commands.items()
    ]


def _named(place: str) -> Any:
    """Return the run that `place` names: the reference, wherever it lies, or what is there."""
    from replifed.runs import opened

    return opened.reference() if place == str(opened.REFERENCE) else opened.open_run(Path(place))


def _archive(arguments: argparse.Namespace) -> None:
    from replifed.runs import archived
    from replifed.settings.needs import settings_for

    if arguments.out.suffix != ".zip":
        raise ConfigError(f"{arguments.out}: give the archive a name that ends with .zip")
    run, config = own_run(arguments)
    workflow = Path(archived.WORKFLOW)
    files = {archived.WORKFLOW: workflow.read_bytes()} if workflow.is_file() else {}
    checked = archived.whole if "environment.json" in run else archived.of_papers
    run = checked(run, config, settings_for)
    count = archived.write(run, arguments.out, arguments.agent, files, _progress("archive"))
    print(f"{arguments.out}: {count} files, {arguments.out.stat().st_size / 1e6:.1f} MB")
    if missing := [paper for paper in config["papers"] if paper not in run.entries(archived.ABOUT)["papers"]]:
        everything = f"`replifed make all --cores 2{_scale(arguments)}` makes everything"
        print(f"not in it, since not made here: {', '.join(missing)}; {everything}")


def _diff(arguments: argparse.Namespace) -> int:
    from replifed.runs import compared

    own = arguments.a is None
    a, b = own_run(arguments, single=True)[0] if own else _named(arguments.a), _named(arguments.b)
    found = compared.compare(a, b, _progress("diff"))
    if arguments.html:
        from replifed.runs.page import write

        write(arguments.html, a, b, found)
    lines = compared.grouped(found)
    shown = lines if arguments.all else lines[:_SHOWN]
    print("\n".join([f"A: {a.place}", f"B: {b.place}", ""]))
    print(compared.as_markdown(shown) if arguments.markdown else compared.as_text(shown))
    if len(lines) > len(shown):
        print(f"... and {len(lines) - len(shown)} more, which --all prints")
    unjudged = _unjudged(a, sorted(compared.papers(a) & compared.papers(b)), arguments) if own else []
    print("\n".join([compared.summary(found), *compared.left_out(a, b), *unjudged]))
    if arguments.html:
        print(arguments.html)
    return 0 if all(one.outcome in compared.SOUND for one in found) else 1


def _certificate(arguments: argparse.Namespace) -> None:
    from replifed.cli.arguments import check_known
    from replifed.papers.jobs import about
    from replifed.runs import certified, compared

    if not re.fullmatch(r"(\d{4}-){3}\d{3}[\dX]", arguments.orcid):
        raise ConfigError(
            f"--orcid {arguments.orcid}: an ORCID is four groups of digits, 0000-0000-0000-0000"
        )
    run, config = own_run(arguments)
    check_known("paper", arguments.paper, config["papers"])
    other = _named(arguments.against)
    found = compared.compare(run, other, _progress("certificate"))
    paper, titles = about(arguments.paper)
    codechecker = {"name": arguments.name, "ORCID": arguments.orcid}
    files = certified.write(arguments.out, arguments.paper, paper, run, other, found, titles, codechecker)
    print("\n".join([*map(str, files), *_unjudged(run, [arguments.paper], arguments)]))


def _show(arguments: argparse.Namespace) -> None:
    from replifed.cli.make import worst_first
    from replifed.papers.jobs import shown
    from replifed.runs import kept, opened

    refuse_small(arguments)
    paper, slash, name = arguments.name.partition("/")
    run = opened.reference() if arguments.reference else own_run(arguments)[0]
    part = f"tables/{paper}/{name}.csv"
    if not slash or part not in run:
        from replifed.errors import unknown_name

        known = [one.removeprefix("tables/").removesuffix(".csv") for one in run.of_kind("tables")]
        accepted = () if arguments.reference else opened.reference().of_kind("tables")
        if part in accepted:
            raise ConfigError(
                f"{arguments.name} is not made here: `replifed make {arguments.name} --cores 2` makes it, "
                f"and `replifed show {arguments.name} --reference` shows the accepted run's"
            )
        raise ConfigError(unknown_name("figure or table", arguments.name, known))
    check_known("paper", paper, paper_names())
    print(shown(paper, name, run.read(part)))
    if unjudged := _unjudged(run, [paper], arguments):
        print("", *unjudged, sep="\n")
        return
    rows = [row for row in run.rows("claims.csv") if (row["paper"], row["artefact"]) == (paper, name)]
    print("", *worst_first("", rows, arguments.all), sep="\n")
    if arguments.reference:
        print(f"reference run: {kept.in_words(run, paper)}")


def _manifest_verify(arguments: argparse.Namespace) -> int:
    from replifed.data import pins
    from replifed.store import manifest

    checked, errors = manifest.verify(arguments.manifest, arguments.folders)
    if arguments.raw_dir:
        errors += pins.errors(arguments.raw_dir)
    found = counted(len(errors), "error")
    print("\n".join([*errors, f"{checked} files of {arguments.manifest} checked, {found}"]))
    return 1 if errors else 0
