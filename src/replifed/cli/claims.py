"""`replifed claims`: verdicts on the papers, and their references."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.cli.arguments import (
    NO_DEFAULTS,
    add_command,
    add_configfile,
    add_file,
    add_small,
    load_config,
    refuse_small,
    with_small,
)
from replifed.errors import ConfigError, ReplifedError
from replifed.parts import own_papers, paper_names
from replifed.store import hashes


def add(commands: Any) -> None:
    """Add these commands to the parser."""
    claims = add_command(
        commands,
        "claims",
        _show,
        "Show the score of each paper, made by `replifed make claims` or, of one paper, `replifed make "
        "PAPER`; exits with status 1 if a claim that held in the reference does not hold any more.",
        "--paper fedht --verdict deviates",
    )
    add_file(claims, "--file", help="default: all that are in the results folder")
    claims.add_argument("--paper", help="of this paper the score and the main claims")
    text = (
        "statements of this status (reproduced, conditional, deviates, inconclusive, untestable), or claims "
        "of this verdict (holds, fails, unchecked)"
    )
    claims.add_argument("--verdict", help=text)
    text = "what decided the verdict of this claim, or the status of this statement"
    claims.add_argument("--why", metavar="CLAIM|STATEMENT", help=text)
    claims.add_argument("--main", action="store_true", help="the main claims alone, a line each")
    claims.add_argument("--all", action="store_true", help="each claim, with its numbers")
    text = "the verdicts of the reference run, which comes with the code: nothing has to be run"
    claims.add_argument("--reference", action="store_true", help=text)
    text = "the reference; default: reference, or tests/golden/SCALE.csv of other scales, if it exists"
    add_file(claims, "--golden", help=text)
    add_small(claims)
    add_configfile(claims)
    parts = claims.add_subparsers(title="references", metavar="COMMAND")

    example = "--golden tests/golden/small.csv --file results/small/claims.csv"
    text = "Compare what was measured with reference numbers; exits with status 1 if something moved."
    check = add_command(parts, "check", _check, text, example, **NO_DEFAULTS)
    text = (
        "Make the measured claims the reference, printing old, new and difference; with a folder as "
        "--golden, by default of the papers' scale, the whole run whose claims.csv this is, or the one paper "
        "of results/PAPER/claims.csv."
    )
    accept = add_command(parts, "accept", _accept, text, example, **NO_DEFAULTS)
    text = "the reference; default: reference, or tests/golden/SCALE.csv of other scales"
    for part in (check, accept):
        add_file(part, "--golden", help=text)
        add_file(part, "--file", required=True, help="the measured claims")

    text = (
        "Make the statuses of the reference anew from its verdicts, as rules, sentences and axes are now, "
        "printing old and new; claims that it lacks are entered as not run yet. Nothing is measured."
    )
    restate = add_command(parts, "restate", _restate, text, "--golden reference")
    add_file(restate, "--golden", required=True, help="the folder of the reference")

    text = "Enter new and changed tolerances and measures in their logs, printing old and new."
    example = "tests/golden --reason 'the interval of 30 seeds is known now'"
    log = add_command(parts, "log", _log, text, example)
    log.add_argument("folder", type=Path, help="of tolerances.csv and measures.csv")
    log.add_argument("--reason", default="", metavar="TEXT", help="why a number was changed")

    document = add_command(
        parts,
        "document",
        _document,
        "Write a page for each paper: every checkable sentence, its claims or why it has none, and their "
        "verdicts; the score, as a picture, a line in the README and a table in docs/score.md; and the rules "
        "of verdicts, as tables in docs/verdicts.md.",
        "--golden reference --out docs/papers",
    )
    add_file(document, "--golden", required=True, help="the reference whose verdicts are shown")
    text = "folder of the pages"
    document.add_argument("--out", type=Path, dest="folder", required=True, metavar="FOLDER", help=text)
    for name, default, what in (
        ("--readme", "README.md", "score"),
        ("--score-page", "docs/score.md", "score"),
        ("--rules-page", "docs/verdicts.md", "rules"),
    ):
        text = f"file with the {what}, between its marks; default: {default}"
        add_file(document, name, default=Path(default), help=text)


def _show(arguments: argparse.Namespace) -> int:
    from replifed.claims import files, reference, why
    from replifed.papers import jobs

    if arguments.reference:
        return _show_reference(arguments)
    missing: list[str] = []
    flags = "".join(f" --configfile {one}" for one in with_small(arguments).configfile)
    if arguments.file is None:
        config = load_config(arguments)
        papers, results = config["papers"], Path(config["paths"]["results"])
        files.check_names(arguments.paper, arguments.verdict, papers)  # making the verdicts takes hours
        rows = files.of_folder(results, papers)
        there = {row["paper"] for row in rows}
        missing = [paper for paper in papers if paper not in there]
        named = arguments.paper or (arguments.why or "").partition(".")[0]
        if named in missing:
            raise _not_made(results / named / "claims.csv", named, flags)
        if not rows:
            raise _not_made(results / "claims.csv", "claims", flags)
    else:
        _check_file(arguments.file)
        rows = files.read(arguments.file)
    if arguments.why is not None:
        print("\n".join(why.why(rows, arguments.why, jobs.grounds_of, everything=arguments.all)))
        return 0
    _say(rows, arguments)
    # A file of one claim, results/PAPER/claims/CLAIM.csv, lacks the others anyway.
    of_one = arguments.file is not None and arguments.file.parent.name == "claims"
    golden = arguments.golden or (None if of_one else reference.reference_of(rows))
    lost = reference.lost(rows, golden) if golden else []
    if lost:
        print("\n".join(["", "no longer holds:", *lost]))
    if missing and arguments.paper is None:
        print(f"not measured here: {', '.join(missing)}; `replifed make PAPER --cores 2{flags}` measures one")
    return 1 if lost else 0


def _say(rows: Sequence[Mapping[str, str]], arguments: argparse.Namespace) -> None:
    """Print what of the verdicts was asked for, and how to see more."""
    from replifed.claims import files

    files.show(rows, arguments.paper, arguments.verdict, arguments.main, arguments.all)
    if not (arguments.all or arguments.main or arguments.verdict):
        main = "" if arguments.paper else "--main or --paper PAPER (main claims), "
        files.say(f"more: {main}--verdict deviates (a status), --all (each claim), --why NAME (what decided)")


def _show_reference(arguments: argparse.Namespace) -> int:
    from replifed.claims import files, why
    from replifed.papers import jobs
    from replifed.runs import kept, opened

    if arguments.file:
        raise ConfigError("--reference and --file are two sources of verdicts; give one")
    refuse_small(arguments)
    run = opened.reference()
    rows = files.read(Path(run.place, "claims.csv"))
    if arguments.why is not None:
        print("\n".join(why.why(rows, arguments.why, jobs.grounds_of, everything=arguments.all)))
    else:
        _say(rows, arguments)
    paper = arguments.paper or (arguments.why or "").partition(".")[0]
    files.say(f"reference run: {kept.in_words(run, paper)}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from replifed.claims import reference

    hashes.check([arguments.file])
    golden = _reference(arguments)
    compared, errors = reference.compare(arguments.file, golden)
    if not compared:
        raise ReplifedError(f"{golden} has no reference for any claim in {arguments.file}")
    new = [f"{name}: new, without a reference" for name in reference.new(arguments.file, golden)]
    print("\n".join([*errors, *new, f"{compared} claims compared with {golden}, {len(errors)} moved"]))
    return 1 if errors else 0


def _accept(arguments: argparse.Namespace) -> None:
    from replifed.claims import reference
    from replifed.runs import kept

    kept.clean(arguments.golden or reference.FOLDER)
    golden = _reference(arguments)
    if golden.suffix != ".csv" and arguments.file.parent.name in paper_names():
        moved = _accept_paper(arguments, golden, arguments.file.parent.name)
    elif golden.suffix == ".csv":
        moved = reference.accept(arguments.file, golden)
    else:
        moved = _accept_run(arguments, golden)
    print("\n".join([*moved, f"{len(moved)} references moved in {golden}"]))


def _accept_paper(arguments: argparse.Namespace, golden: Path, paper: str) -> list[str]:
    """Put one paper, as it was made here, in the place of the reference's."""
    from replifed.claims import reference
    from replifed.cli.runs import own_run
    from replifed.papers import jobs
    from replifed.runs import archived, kept, opened
    from replifed.settings.needs import settings_for

    run, config = own_run(arguments, papers=[paper])
    _check_scale(arguments.file, run.rows("claims.csv"), config)
    _, moved = reference.changes(arguments.file, golden)
    run = archived.of_papers(run, config, settings_for)
    kept.write(kept.renewed(opened.open_run(golden), run, [paper]), golden)
    jobs.restate(golden)
    return moved


def _check_scale(file: Path, rows: Sequence[Mapping[str, str]], config: Mapping[str, Any]) -> None:
    if others := {row.get("scale", "") for row in rows} - {config["scale"]}:
        raise ConfigError(
            f"{file} is of scale {', '.join(sorted(others))}, and the settings are those of scale "
            f"{config['scale']}"
        )


def _accept_run(arguments: argparse.Namespace, golden: Path) -> list[str]:
    """Make the whole run of claims.csv the reference; the folders of the settings are relative to its own."""
    from replifed.claims import reference
    from replifed.runs import archived, kept, opened
    from replifed.settings.needs import settings_for

    config = load_config(with_small(arguments))
    run = opened.open_run(arguments.file.parent, config["papers"])
    rows = run.rows("claims.csv")
    if arguments.file.name != "claims.csv" or not set(config["papers"]) <= {row["paper"] for row in rows}:
        raise ConfigError(f"{arguments.file}: the reference is that of all papers, from `replifed make all`")
    _check_scale(arguments.file, rows, config)
    _, moved = reference.changes(arguments.file, golden)
    kept.write(archived.whole(run, config, settings_for), golden)
    return moved


def _check_file(file: Path) -> None:
    """Reject a file that does not exist.

    Its folder has the name of a scale with settings, or another run made it.
    """
    if not file.is_file():
        settings = Path("config", f"{file.parent.name}.yaml")
        of_scale = file.name == "claims.csv" and settings.is_file()
        raise _not_made(file, "claims", f" --configfile {settings}" if of_scale else None)


def _not_made(file: Path, target: str, flags: str | None) -> ConfigError:
    """Say that a file of claims does not exist, and which target makes it, by the `flags` of its settings."""
    made = "it" if flags is not None or file == Path("results/claims.csv") else "results/claims.csv"
    accepted = f" --paper {target}" if target in paper_names() else ""
    also = f", and `replifed claims --reference{accepted}` shows the accepted run's"
    return ConfigError(
        f"{file} does not exist; `replifed make {target} --cores 2{flags or ''}` makes {made}"
        f"{'' if target in own_papers() else also}"
    )


def _reference(arguments: argparse.Namespace) -> Path:
    """Return the reference that was named, or that of the claims' scale."""
    from replifed.claims import files, reference

    _check_file(arguments.file)
    if golden := arguments.golden or reference.reference_of(files.read(arguments.file)):
        return golden
    raise ConfigError(f"there is no reference for the scale of {arguments.file}; name one with --golden")


def _document(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    jobs.document(
        arguments.folder, arguments.golden, arguments.readme, arguments.score_page, arguments.rules_page
    )


def _restate(arguments: argparse.Namespace) -> None:
    from replifed.papers import jobs

    changed = jobs.restate(arguments.golden)
    print("\n".join([*changed, f"{len(changed)} statuses changed in {arguments.golden}"]))


def _log(arguments: argparse.Namespace) -> None:
    from replifed.claims import tolerances
    from replifed.papers import jobs

    claims = jobs.every_claim()
    for name, record in (("tolerances", tolerances.record), ("measures", tolerances.record_measures)):
        log = arguments.folder / f"{name}.csv"
        changed = record(claims, log, arguments.reason)
        for key, (before, now) in changed.items():
            print(f"{key}: {before or 'new'} -> {now or 'gone'}")
        print(f"{len(changed)} entries changed in {log}")
