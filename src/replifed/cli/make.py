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
        "Make one figure or table, all of a paper, or all, with Snakemake: says how many jobs are ahead and "
        "how long they took when they were last recorded, then how far it is, and at the end where it is, "
        "with the verdicts of its claims where they have been measured.",
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
    """The name of what is meant by a name or by one of the files that `replifed list` prints.

    Raises
    ------
    ConfigError
        There is no such name; with those that come near.
    """
    from replifed.settings.cuts import makeable
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
    same = [one for one in names if one.endswith(f"/{name}")]
    near = f"; did you mean {' or '.join(same)}?" if same else meant(name, [*papers, *TARGETS, *names])
    raise ConfigError(f"nothing is called {name!r}{near or ';'} `replifed list` prints all names")


def files(name: str, config: Mapping[str, Any]) -> list[str]:
    """The files of an artefact, the first of which is the target; none for a paper and for all."""
    from replifed.settings.cuts import makeable
    from replifed.workflow.plan import SUFFIXES

    paper, slash, artefact = name.partition("/")
    if not slash:
        return []
    numbers, *shown = SUFFIXES[makeable(config[paper])[artefact]["kind"]]
    folder = f"{config['paths']['figures']}/{paper}/{artefact}"
    return [f"{folder}.{suffix}" for suffix in (*shown, numbers)]


def _verdicts(name: str, config: Mapping[str, Any], options: str) -> Iterator[str]:
    """A line a claim on an artefact, or the score of a paper, from where its claims have been measured."""
    from replifed.claims import scores
    from replifed.claims.files import read

    paper, _, artefact = name.partition("/")
    if paper not in config["papers"]:
        return  # of `all`, the workflow itself tells the score
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
        yield scores.total_in_words(scores.statements(rows))
