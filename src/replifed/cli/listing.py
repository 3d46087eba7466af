"""`replifed list` and `schema`: what can be made, and what may be set."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from replifed.cli.arguments import add_command, add_configfile, add_out, check_known, load_config
from replifed.errors import counted

# Targets besides papers and artefacts.
TARGETS = {
    "all": "every paper, the claims and the report",
    "data": "fetch and parse every data set",
    "claims": "the verdicts on all claims",
    "report": "the report, with all that it shows",
    "single_report": "the report as one file",
    "gallery": "every picture on one page, docs/pictures.md, at the papers' scale alone",
    "manifest": "the list of all files by their hashes",
    "verify": "files that have changed since the manifest was written",
    "compare": "methods of your own and built-in ones",
    "comparison_report": "the page of that comparison",
    "help": "this list",
}
HOW = "`replifed make NAME --cores 2`, or `snakemake TARGET --cores 2` (a file or one of the words above)"


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    example = "artefacts --paper fedht"
    listed = add_command(commands, "list", _list, "Print names of one kind.", example)
    kinds = ["papers", "artefacts", "claims", "datasets", "methods", "jobs"]
    what = f"one of {', '.join(kinds)}; default: artefacts"
    listed.add_argument("what", nargs="?", default="artefacts", choices=kinds, metavar="KIND", help=what)
    listed.add_argument("--paper", help="only the artefacts, or claims, of this paper")
    listed.add_argument(
        "--record",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="FILE",
        help="with jobs: write their times to a table of costs, by default the package's own",
    )
    add_configfile(listed)

    text = "Write the JSON schema from which editors complete and check the files in config/."
    schema = add_command(commands, "schema", _schema, text, "")
    default = "config/config.schema.json"
    add_out(schema, required=False, default=Path(default), help=f"the file to write; default {default}")


def _schema(arguments: argparse.Namespace) -> None:
    from replifed.settings.checks import write_schema

    write_schema(arguments.out)


def _list(arguments: argparse.Namespace) -> None:
    if arguments.what == "methods":
        _list_methods()
    elif arguments.what == "datasets":
        from replifed.data.catalogue import CATALOGUE, offered

        titles = {name: dataset.title for name, dataset in CATALOGUE.items()}
        titles = {name: f"of an installed package, {source}" for name, source in offered().items()} | titles
        width = max(map(len, titles))
        print("\n".join(f"{name:{width}}  {title}" for name, title in titles.items()))
    elif arguments.what == "claims":
        _list_claims(arguments)
    elif arguments.what == "papers":
        print("\n".join(load_config(arguments)["papers"]))
    elif arguments.what == "jobs":
        config = load_config(arguments)
        folder = Path(config["paths"]["results"], "benchmarks")
        print(costs(folder))
        if arguments.record is not None:
            from replifed.workflow.costs import COSTS, record

            file = arguments.record if arguments.record.name else COSTS
            jobs = record(config["scale"], folder, file)
            print(f"{jobs} jobs of scale {config['scale']} recorded in {file}")
    else:
        _list_artefacts(arguments)


def _list_methods() -> None:
    """Print one line per method: name, paper and rule, and the capabilities of a problem that it needs."""
    from replifed.algorithms.registry import METHODS, method_class

    width, classes = max(map(len, METHODS)), {name: method_class(name) for name in sorted(METHODS)}
    modules = Counter(cls.__module__ for cls in classes.values())
    for name, cls in classes.items():
        # The docstring of a module does not distinguish methods that share it.
        text = cls.__doc__ if modules[cls.__module__] > 1 else sys.modules[cls.__module__].__doc__
        first, *_ = (text or cls.__name__).strip().split("\n\n")
        about = " ".join(first.split())
        needs = ", ".join(need.__name__ for need in cls.needs)
        print(f"{name:{width}}  {about} Needs: {needs}.")
    print("What a method needs is what a problem must offer to run it: see `replifed.problems.base`.")


def _list_claims(arguments: argparse.Namespace) -> None:
    """Print each statement with the claims on it, by paper."""
    from replifed.papers.jobs import claims_of

    papers = load_config(arguments)["papers"]
    if arguments.paper is not None:
        check_known("paper", arguments.paper, papers)
        papers = [arguments.paper]
    for paper in papers:
        statements: dict[str, list[Any]] = {}
        for claim in claims_of(paper):
            statements.setdefault(claim.statement_id, []).append(claim)
        for name, claims in statements.items():
            text = claims[0].sentence or claims[0].statement
            print(f"{name}{' (main)' * bool(claims[0].main)}: {text}")
            print("".join(f"  {claim.id}\n" for claim in claims), end="")
    flags = "".join(f" --configfile {name}" for name in arguments.configfile)
    print(f"\nMeasure one, or all on a statement, with: `replifed make NAME --cores 2{flags}`")


def _list_artefacts(arguments: argparse.Namespace) -> None:
    from replifed.settings.needs import makeable, used_experiments

    config = load_config(arguments)
    papers = config["papers"]
    if arguments.paper is not None:
        check_known("paper", arguments.paper, papers)
        papers = [arguments.paper]
    figures = config["paths"]["figures"]
    flags = "".join(f" --configfile {name}" for name in arguments.configfile)
    suffixes = {"figure": "pdf", "table": "md"}
    for paper in papers:
        print(f"{paper}: all of this paper")
        entries = makeable(config[paper])
        paths = {name: f"{figures}/{paper}/{name}.{suffixes[one['kind']]}" for name, one in entries.items()}
        names = max(len(paper) + 1 + len(name) for name in paths)
        width = max(map(len, paths.values()))
        for name, path in paths.items():
            source = ", ".join(used_experiments(entries[name]))
            source += "; on demand" if "on_demand" in entries[name] else ""
            print(f"  {f'{paper}/{name}':{names}}  {path:{width}}  from {source}")
        for name, reason in config[paper].get("not_computed", {}).items():
            print(f"  ({name} is not computed: {reason})")
    if arguments.paper is None:
        print("\n".join(f"{name}: {text}" for name, text in TARGETS.items()))
    print(f"\nMake one with: {HOW}{flags and f'; each with{flags}'}")


def costs(folder: Path) -> str:
    """Return a table of the resources of each job's last run, dearest first, sums, and the dearest parts.

    CPU and memory (MiB) are what each job recorded of itself, and a dash where it recorded nothing: no sum
    counts that. The clock is Snakemake's.
    """
    from replifed.workflow.costs import measured, used

    clock = {job: float(row["s"]) for job, row in measured(folder).items()}
    own = {job: used(folder, job, seconds) for job, seconds in clock.items()}
    known = {job: one for job, one in own.items() if one is not None}
    width = max(map(len, clock))
    lines = [f"{'job':{width}}  {'CPU s':>8}  {'clock s':>8}  {'MiB':>7}"]
    for job in sorted(clock, key=lambda job: (-known[job]["cpu"] if job in known else 1.0, job)):
        cpu, memory = (f"{known[job][key]:.1f}" if job in known else "-" for key in ("cpu", "memory"))
        lines.append(f"{job:{width}}  {cpu:>8}  {clock[job]:8.1f}  {memory:>7}")

    def summed(name: str, jobs: Collection[str]) -> str:
        ones = [known[job] for job in jobs if job in known]
        minutes, largest = (
            sum(one["cpu"] for one in ones) / 60,
            max((one["memory"] for one in ones), default=0),
        )
        missing = f"; {len(jobs) - len(ones)} left no record" if len(ones) < len(jobs) else ""
        text = f"{name}: {counted(len(jobs), 'job')}, {minutes:.1f} CPU minutes"
        return f"{text}, at most {largest:.0f} MiB{missing}"

    papers: dict[str, list[str]] = {}
    for job in clock:
        papers.setdefault(job.split("/")[0] if "/" in job else "closing", []).append(job)
    parts = {
        f"{job.split('/')[0]}/{part}" if one["parts"] else job: cpu
        for job, one in known.items()
        for part, cpu in (one["parts"] or {"": one["cpu"]}).items()
    }
    dearest = sorted(parts.items(), key=lambda item: -item[1])[:10]
    lines += ["", "dearest: " + ", ".join(f"{name} {cpu:.0f} s" for name, cpu in dearest)]
    lines += [summed(name, jobs) for name, jobs in sorted(papers.items())]
    if len(known) < len(clock):
        lines.append("a job without a record ran before jobs kept one, or its record is of another run")
    lines.append(summed("all", clock))
    return "\n".join(lines)
