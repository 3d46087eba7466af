"""`replifed make`: an artefact, a paper or everything, by its name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from replifed.cli.arguments import SMALL, add_command, add_small, add_snakemake, call_snakemake, load_config
from replifed.cli.listing import TARGETS
from replifed.errors import ConfigError, meant


def add(commands: Any) -> None:
    """Add this command to the parser."""
    make = add_command(
        commands,
        "make",
        _make,
        "Make one figure or table, all of a paper, or all, with Snakemake: prints the number of jobs ahead "
        "and their recorded time, then the progress, and at the end the files, with the verdicts of its "
        "claims if they have been measured.",
        "fedplt/fig3 --small --cores 2",
    )
    text = "a name that `replifed list` prints: an artefact, its file, a paper, or all"
    make.add_argument("name", metavar="NAME", help=text)
    add_small(make)
    add_snakemake(make)


def _make(arguments: argparse.Namespace) -> int:
    if arguments.small:
        arguments.configfile = [SMALL, *arguments.configfile]
    config = load_config(arguments)
    name = named(arguments.name, config)
    paths = files(name, config)
    status = call_snakemake(paths[0] if paths else name, arguments, one_line=True)
    if status == 0 and not arguments.dry_run:
        options = "".join(f" --configfile {file}" for file in arguments.configfile)
        print("\n".join([*paths, *_verdicts(name, config, options)]))
    return status


def named(name: str, config: Mapping[str, Any]) -> str:
    """Return the name of a target, given by a name or by one of the files that `replifed list` prints.

    Raises
    ------
    ConfigError
        The name is unknown; with the nearest known ones.
    """
    from replifed.settings.needs import makeable
    from replifed.settings.retired import retired, unknown_artefact

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
    from replifed.settings.needs import makeable
    from replifed.workflow.plan import SUFFIXES

    paper, slash, artefact = name.partition("/")
    if not slash:
        return []
    numbers, *shown = SUFFIXES[makeable(config[paper])[artefact]["kind"]]
    folder = f"{config['paths']['figures']}/{paper}/{artefact}"
    return [f"{folder}.{suffix}" for suffix in (*shown, numbers)]


def _verdicts(name: str, config: Mapping[str, Any], options: str) -> Iterator[str]:
    """Yield a line a claim on an artefact, or the score of a paper, if its claims have been measured."""
    from replifed.claims import scores
    from replifed.claims.files import read

    paper, _, artefact = name.partition("/")
    if paper not in config["papers"]:
        return  # the workflow itself prints the score of `all`
    folder = Path(config["paths"]["results"])
    if not artefact:
        yield f"{config['paths']['figures']}/{paper}"
    measured = folder / paper / "claims.csv"
    if not measured.is_file():
        yield f"its claims are measured with all runs of {paper}, by: snakemake {measured} --cores 2{options}"
        return
    rows = read(measured)
    if artefact:
        yield from (f"{row['verdict']:12}  {row['id']}" for row in rows if row["artefact"] == artefact)
    else:
        yield from scores.in_lines(scores.statements(rows))
