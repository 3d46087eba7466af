"""The steps that the workflow calls: each reads its inputs, computes, and writes its outputs whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replifed.algorithms.registry import METHODS
from replifed.errors import ConfigError, DataError, ReplifedError, one_line, unknown_name
from replifed.parts import finding_file, folder_of, paper_names, part, typed
from replifed.progress import Lines
from replifed.store import hashes
from replifed.store.atomic import write_json, write_text

if TYPE_CHECKING:
    from replifed.figures.artefact import Artefact

SYNTHETIC = {"kind": "synthetic", "stamp": ""}
# Kinds of data of which an artefact needs no remark.
ORIGINAL = ("original", "synthetic")
# What is stamped on an artefact of published numbers alone.
PUBLISHED = "published points alone: nothing here was computed"


def tune(
    paper: str,
    experiment: str,
    method: str,
    settings: dict,
    data: Path | None,
    partition: Path | None,
    out: Path,
    leader: Path | None = None,
    *,
    test: Path | None = None,
) -> None:
    """Search a method's step sizes; writes the choice and the whole curve as JSON.

    `test` is the data set's own test set, where a comparison uses it. `leader` is what the search of the
    method `tuning.leader` wrote, where this one is to take its step, too.
    """
    from replifed.store.histories import read_tuned, write_tuned

    table, split, more = _data(data, partition, test)
    if leader is not None:
        more = {**more, "leader": read_tuned(leader, settings["tuning"]["leader"], settings)}
    progress = Lines(paper, experiment, method)
    found = _part(paper, "experiments").tune(method, typed(paper, settings), table, split, progress, **more)
    write_tuned(out, found, _provenance(paper, method, settings, table))


def run(
    paper: str,
    experiment: str,
    method: str,
    settings: dict,
    data: Path | None,
    partition: Path | None,
    tuned: Path | None,
    out: Path,
    share: tuple[int, int] | None = None,
    *,
    test: Path | None = None,
) -> None:
    """Run one method with all its settings; writes its history.

    A `share`, its number from 1 and how many there are, is of some repetitions, for `store.histories.join`.
    `test` is as of `tune`.
    """
    from replifed.store.histories import SHARE, read_tuned, write_history

    table, split, more = _data(data, partition, test)
    choice = read_tuned(tuned, method, settings) if tuned else None
    own = settings
    if share is not None:
        from replifed.settings.needs import share_of_run

        own = share_of_run(settings, *share)
    progress = Lines(paper, experiment, method)
    run_of = _part(paper, "experiments").run
    frame = run_of(method, typed(paper, own), choice, table, split, progress, **more)
    if choice is not None:
        both = sorted(set(choice["trials"]["replicates"]) & set(frame["replicate"].tolist()))
        if both:
            repetitions = ", ".join(map(str, both))
            raise ReplifedError(f"{tuned}: searched on the repetitions that are reported ({repetitions})")
    meta = _provenance(paper, method, settings, table)
    if test is not None:
        meta["data"] = {**meta["data"], "test": hashes.file_hash(test)}
    write_history(out, frame, meta if share is None else {**meta, SHARE: share})


def artefact(
    paper: str,
    name: str,
    settings: dict,
    scale: str,
    inputs: dict[str, list[Path]],
    outputs: dict[str, Path],
) -> None:
    """Make a figure or a table: first the CSV of exactly its numbers, then, from that alone, the rest.

    Outputs are by suffix: csv, and either pdf and png, or md and tex.
    """
    from replifed.papers.inputs import Inputs

    kind = f"{settings['artefact']['kind']}s"
    made = getattr(_part(paper, kind), kind.upper())[name]
    available = Inputs(inputs, settings, paper)
    frame = made.table(available)
    if settings["artefact"].get("published"):
        data = PUBLISHED
    else:
        kinds = {experiment: available.data_kind(experiment) for experiment in available.experiments()}
        data = "; ".join(f"{name}: {text}" for name, (kind, text) in kinds.items() if kind not in ORIGINAL)
    if made.stamped:
        frame = frame.assign(data=data, scale=scale)
    write_text(outputs["csv"], frame.to_csv(index=False, float_format="%.12g"))
    # What is drawn is what the CSV says, to the last digit.
    frame = _read_back(made, outputs["csv"], [name for name in frame if frame[name].dtype.kind == "f"])
    publish = _draw if "png" in outputs else _print_table
    publish(made, frame, outputs, data, scale)


def shown(paper: str, name: str, content: bytes) -> str:
    """Say what a figure or a table came to, from its CSV: tables as Markdown, curves in words."""
    import io

    from replifed.figures.artefact import Grid
    from replifed.report.curves import in_words

    kind = "figures" if name in _part(paper, "figures").FIGURES else "tables"
    every = getattr(_part(paper, kind), kind.upper())
    if name not in every:
        raise ConfigError(f"{paper}/{name} is made no longer; its file is of an older version")
    made = every[name]
    try:
        frame = _read_back(made, io.BytesIO(content))
        if isinstance(made, Grid):
            return "\n\n".join(filter(None, [made.title, in_words(made, frame)]))
        if kind == "figures":
            return "\n\n".join([made.title, made.caption, frame.head(20).to_string(index=False)])
        return "\n\n".join(_markdown(made, _readable(made, frame)))
    except (ValueError, KeyError) as error:  # of pandas, and of decoding; a column is missing
        raise DataError(f"{paper}/{name}: its CSV is damaged ({one_line(error)}); make it anew") from error


def about(paper: str) -> tuple[dict[str, str], dict[str, str]]:
    """The name, citation and DOI of a paper, and the titles of its figures and tables by name."""
    made = [getattr(_part(paper, kind), kind.upper()) for kind in ("figures", "tables")]
    named = _part(paper, "paper").PAPER
    return dict(named), {name: one.title for several in made for name, one in several.items()}


def measure_claims(
    paper: str,
    settings: dict,
    scale: str,
    inputs: dict[str, list[Path]],
    out: Path,
    only: str | None = None,
    made_by: str = "",
    environment: Path | None = None,
) -> None:
    """Hold every claim of a paper, or `only` one, against what was measured; writes a CSV.

    `made_by` is the command that measures each claim again, if it is not `replifed make`. Into the file
    `environment` goes what this was made with, from the commit to the processor.
    """
    from replifed.claims.prose import Numbers, named
    from replifed.claims.verdicts import measure
    from replifed.logs.rules import guarded
    from replifed.papers.inputs import Inputs

    claims = _part(paper, "claims").CLAIMS if only is None else claim_and_family(paper, only)
    claims = guarded(claims, settings.get("experiments", {}))

    def command(claim: Any) -> str:
        if made_by:
            return made_by
        words = ("replifed make", claim.id, "--cores 2", os.environ.get(hashes.CONFIGFILES_VARIABLE))
        return " ".join(filter(None, words))

    frame = measure(claims, Inputs(inputs, settings, paper), scale, command)
    numbers = Numbers({row["id"]: row for row in _texts(frame)}, lambda *_: None, {})
    frame["note"] = [named(note, paper, numbers) for note in frame["note"]]
    if only is not None:
        frame = frame[frame["id"] == f"{paper}.{only}"]
    if environment is not None:
        from replifed.store import environment as surroundings

        write_json(environment, surroundings.environment())
    write_text(out, frame.to_csv(index=False, float_format="%.12g"))


def measured_on(
    paper: str, artefact: str, settings: dict[str, Any], scale: str, inputs: dict[str, list[Path]]
) -> list[dict[str, Any]]:
    """Lines of claims.csv for the claims on an artefact that these inputs suffice for, families included."""
    from replifed.claims.verdicts import measure
    from replifed.logs.rules import guarded
    from replifed.papers.inputs import Inputs

    wanted = [one for one in _part(paper, "claims").CLAIMS if one.artefact == artefact]
    needed = {one.id: claim_and_family(paper, one.id.removeprefix(f"{paper}.")) for one in wanted}
    measurable = [
        name for name, family in needed.items() if all(key in inputs for one in family for key in one.needs)
    ]
    claims = {one.id: one for name in measurable for one in needed[name]}
    guards = guarded(claims.values(), settings.get("experiments", {}))
    frame = measure(guards, Inputs(inputs, settings, paper), scale)
    return _texts(frame[frame["id"].isin(measurable)])


def _texts(frame: Any) -> list[dict[str, str]]:
    """Lines of a table as text, "" where there is no number."""
    return frame.astype(object).where(lambda kept: kept.notna(), "").astype(str).to_dict("records")


def claims_named(paper: str, name: str) -> list[Any]:
    """The claim of a paper with this id, or those on the statement with it.

    Raises
    ------
    ConfigError
        The paper makes neither.
    """
    claims = claims_of(paper)
    found = [claim for claim in claims if claim.id == name]
    found = found or [claim for claim in claims if claim.statement_id == name and not claim.informs]
    if not found:
        known = dict.fromkeys(word for claim in claims for word in (claim.id, claim.statement_id))
        raise ConfigError(unknown_name("claim or statement", name, known))
    return found


def claim_and_family(paper: str, name: str) -> list[Any]:
    """A claim of a paper, by its id without the paper, with those that its test is corrected with."""
    claims = {claim.id.removeprefix(f"{paper}."): claim for claim in _part(paper, "claims").CLAIMS}
    if name not in claims:
        raise ConfigError(unknown_name(f"claim of {paper}", name, claims))
    one = claims[name]
    family = [claim for claim in claims.values() if claim.is_tested and claim.family == one.family]
    return family if one.is_tested else [one]


def collect_claims(files: list[Path], out: Path, statements: Path, not_claimed: Path) -> None:
    """Join the claims of several papers; write the status of statements, and those without a claim."""
    from replifed.claims import scores
    from replifed.claims.files import collect
    from replifed.claims.sentences import write_not_claimed
    from replifed.report.sentences import of_paper

    rows = collect(files, out)
    scores.write(rows, statements)
    papers = dict.fromkeys(row["paper"] for row in rows)
    write_not_claimed(not_claimed, (one for paper in papers for one in of_paper(paper)))


def claims_of(paper: str) -> list[Any]:
    """Claims of a paper."""
    return list(_part(paper, "claims").CLAIMS)


@cache
def grounds_of(paper: str) -> dict[str, str]:
    """What speaks for and against the options of each claim of a paper, by its id; {} of an unknown one."""
    here = claims_of(paper) if paper in paper_names() else []
    return {claim.id: claim.axes.grounds(claim.options) for claim in here}


def every_claim() -> list[Any]:
    """Claims of all papers, in order of the papers' names."""
    return [claim for paper in paper_names() for claim in claims_of(paper)]


def document(folder: Path, golden: Path, readme: Path, score_page: Path, rules_page: Path) -> None:
    """Write one page per paper, folder/PAPER.md, with the verdicts of a reference, and the score of all.

    Pictures of main claims by settings lie beside it, folder/PAPER.NAME.svg. The score is a picture,
    folder/score.svg, a line in the README and a table in `score_page`, the rules of verdicts and of statuses
    are tables in `rules_page`, all between their marks.
    """
    from replifed.claims import scores
    from replifed.claims.axes import Axes
    from replifed.claims.prose import named
    from replifed.claims.reference import verdicts
    from replifed.report.prose import numbers_of, text_with_numbers
    from replifed.report.score import (
        inserted,
        picture,
        rules_of_claims,
        rules_of_statuses,
        score,
        summary,
        table,
    )
    from replifed.report.sentences import Texts, of_paper, page

    found, read = [], _tables_of(golden)
    for paper in paper_names():
        declared = claims_of(paper)
        claims = verdicts(declared, golden)
        numbers = numbers_of(paper, declared, claims, read)
        claims = [row | {"note": named(row["note"], row["id"], numbers)} for row in claims]
        found.append(score(paper, scores.statements(claims)))
        if listed := of_paper(paper):
            cited, errata = _part(paper, "paper").PAPER, getattr(_part(paper, "errata"), "ERRATA", ())
            files = finding_file(paper), folder_of(paper) / "axes.md"
            texts = Texts(*(text_with_numbers(paper, file, numbers) for file in files))
            axes = declared[0].axes if declared else Axes()
            text, pictures = page(cited, texts, axes, listed, claims, errata)
            for old in folder.glob(f"{paper}.*.svg"):
                if old.name not in pictures:
                    old.unlink()
            for name, content in {f"{paper}.md": text, **pictures}.items():
                write_text(folder / name, content)
    write_text(folder / "score.svg", picture(found))
    for file, what, block in (
        (readme, "score", summary(found)),
        (score_page, "score", table(found)),
        (rules_page, "rules", rules_of_claims()),
        (rules_page, "statuses", rules_of_statuses()),
    ):
        write_text(file, inserted(file.read_text(encoding="utf-8"), what, block, str(file)))


def _tables_of(golden: Path) -> Callable[[str, str], list[dict[str, str]] | None]:
    """Reader of the tables of a reference; of one that is a list of numbers there are none."""
    from replifed.runs import opened

    run = opened.reference(golden) if golden.is_dir() else None

    def read(paper: str, name: str) -> list[dict[str, str]] | None:
        table = f"tables/{paper}/{name}.csv"
        return run.rows(table) if run is not None and table in run else None

    return read


def restate(golden: Path) -> list[str]:
    """Make the statuses of the reference anew from its verdicts, as rules, sentences and axes are now.

    Returns a line for each that has changed.
    """
    from replifed.claims import reference, scores, sentences, tables
    from replifed.claims.verdicts import COLUMNS
    from replifed.report.sentences import of_paper
    from replifed.runs import kept

    before = {row["statement_id"]: row["status"] for row in tables.rows(golden / "statements.csv")}
    rows = reference.restated(every_claim(), tables.rows(golden / "claims.csv"))
    statements = scores.statements(rows)
    listed = (one for paper in dict.fromkeys(row["paper"] for row in rows) for one in of_paper(paper))
    files = {
        "claims.csv": (COLUMNS, rows),
        "statements.csv": (scores.COLUMNS, statements),
        "not_claimed.csv": (sentences.COLUMNS, sentences.not_claimed(listed)),
    }
    kept.restate(golden, {name: tables.as_text(*content) for name, content in files.items()})
    now = {one["statement_id"]: one["status"] for one in statements}
    both = {name: (before.get(name, "new"), now.get(name, "gone")) for name in before | now}
    return [f"{name}: {old} -> {new}" for name, (old, new) in both.items() if old != new]


def measure_errata(paper: str, out: Path) -> None:
    """Check every erratum of a paper; writes a CSV."""
    from replifed.claims.errata import measure, write

    write(out, measure(getattr(_part(paper, "errata"), "ERRATA", ())))


def _part(paper: str, name: str) -> Any:
    return import_module(part(paper, name))


@lru_cache(maxsize=1)  # a search and the run after it, in one process, have the same
def _data(data: Path | None, partition: Path | None, test: Path | None) -> tuple[Any, Any, dict[str, Any]]:
    """Return a data set, its split between clients, and its own test set by that name, if it has one."""
    if data is None:
        return None, None, {}
    from replifed.data.table import load
    from replifed.partition import store

    table = load(data)
    split = None if partition is None else store.load(partition, samples=len(table.y))
    return table, split, {} if test is None else {"test": load(test)}


def _provenance(paper: str, method: str, settings: dict, table: Any) -> dict[str, Any]:
    from replifed.store.histories import provenance

    modules = [part(paper, "experiments")]
    kind: dict[str, Any] = SYNTHETIC
    if "logs" in settings:
        return provenance(modules, settings, {"kind": settings.get("data", "original"), "stamp": ""})
    modules.insert(0, METHODS[method].split(":")[0])
    if table is not None:
        kind = {key: table.meta[key] for key in ("id", "kind", "stamp", "content_sha256")}
    elif settings.get("problem") in getattr(_part(paper, "experiments"), "SURROGATES", ()):
        from replifed.data import SURROGATE_STAMP

        kind = {"kind": "surrogate", "stamp": SURROGATE_STAMP}
    return provenance(modules, settings, kind)


def _draw(made: Artefact, frame: Any, outputs: dict[str, Path], data: str, scale: str) -> None:
    from replifed.figures.style import banner, save

    pages = made.pages_of(frame)
    for page in pages:
        if data == PUBLISHED:
            banner(page, data.upper(), scale, prefix="")
        else:
            banner(page, data, scale)
    for suffix in ("pdf", "png"):
        save(pages, outputs[suffix])


def _print_table(made: Artefact, frame: Any, outputs: dict[str, Path], data: str, scale: str) -> None:
    note = "; ".join(filter(None, (data, "" if scale == "paper" else f"scale: {scale}")))
    tables = _readable(made, frame)
    markdown, latex = _markdown(made, tables), []
    of_paper = getattr(made, "latex", None)
    if of_paper is not None:
        latex.append(of_paper(frame, note))
    for title, table in tables.items() if of_paper is None else ():
        caption = "; ".join(filter(None, (made.title, title, note)))
        latex.append(table.style.hide(axis="index").to_latex(hrules=True, caption=caption))
    write_text(outputs["md"], "\n\n".join([*markdown, *([f"*{note}*"] if note else [])]) + "\n")
    write_text(outputs["tex"], "\n".join(latex))


def _read_back(made: Artefact, source: Any, numbers: Sequence[str] | None = None) -> Any:
    """Read the numbers of an artefact from its CSV.

    Empty fields are NaN in the columns `numbers`, by default those that hold numbers alone; else they are "".
    """
    import pandas as pd

    texts = dict.fromkeys(getattr(made, "texts", ()), str)
    frame = pd.read_csv(source, keep_default_na=False, na_values=["nan"], dtype=texts)
    for name in frame.columns.difference([*texts]):
        if frame[name].dtype.kind in "OTU" and (numbers is None or name in numbers):
            found = pd.to_numeric(frame[name], errors="coerce")
            if numbers is not None or (found.notna().any() and (frame[name][found.isna()] == "").all()):
                frame[name] = found
    return frame


def _readable(made: Any, frame: Any) -> dict[str, Any]:
    """Tables of an artefact by title, "" that of the only one."""
    tables = made.show(frame)
    return tables if isinstance(tables, dict) else {"": tables}


def _markdown(made: Any, tables: dict[str, Any]) -> list[str]:
    """Paragraphs of a table, or of several by their titles."""
    paragraphs = [f"# {made.title}", made.caption]
    for title, table in tables.items():
        paragraphs += [f"**{title}**"] * bool(title) + [table.to_markdown(index=False, disable_numparse=True)]
    return paragraphs
