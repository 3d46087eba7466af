"""Page of Markdown with every picture of a run and what came of it, small enough to be kept with the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.claims import files, scores
from replifed.claims.prose import named
from replifed.claims.scores import Row
from replifed.report.artefacts import in_order, stamp_of, words_of
from replifed.report.curves import read
from replifed.report.prose import declared, numbers_of, tables_in
from replifed.report.sentences import caveats
from replifed.store import hashes
from replifed.store.atomic import replacing, write_text

_WIDTH = 1000  # pixels
_FEW = 4  # statements beside the main claims, up to which they are told and not counted
_FEWEST = 2  # sentences of a caption that are worth a reference to an earlier one
_HEAD = """\
# Pictures

Every figure of the reference run at the papers' settings; `snakemake gallery --cores 2` makes this page, with
all that it shows. Of a figure with several pages, the PDF has the others; numbers are in the CSV beside it.
Below a picture stands what came of the statements that it decides, main claims first ([what the words
mean](verdicts.md)); [the papers' pages](score.md) have every claim.
"""


def write(figures_dir: Path, settings: Mapping[str, Any], claims: Path, out: Path) -> None:
    """Write the page, and the pictures into a folder of its name next to it.

    Parameters
    ----------
    figures_dir : holds PAPER/ARTEFACT.{csv,png} of figures.
    settings : papers, and of each which artefacts there are.
    claims : those of all papers, measured in the same run.
    out : the page. Pictures of other artefacts in its folder are removed.
    """
    folder, text = out.with_suffix(""), _HEAD
    folder.mkdir(parents=True, exist_ok=True)
    rows = files.read(claims)
    outcomes, shown = _outcomes(rows), []
    for paper in settings["papers"]:
        about, described = words_of(paper)
        numbers = numbers_of(paper, declared(paper), rows, tables_in(figures_dir))
        said: dict[str, str] = {}
        text += f"\n## {about.get('name', paper)}\n"
        for key, entry in in_order(settings[paper]["artefacts"]):
            if entry["kind"] == "figure":
                drawn, words = figures_dir / paper / key, described[key]
                small = folder / f"{paper}-{key}.webp"
                _shrink(drawn.with_suffix(".png"), small)
                shown.append(small)
                data = stamp_of(read(drawn.with_suffix(".csv")))
                caption = named(words.caption, f"{paper}/{key}", numbers)
                caption = _without_repeats(caption, words.title, said)
                text += f"\n### {words.title}\n\n{caption}{f' Data: {data}.' * bool(data)}\n"
                text += f"\n![{words.title}]({folder.name}/{small.name})\n"
                text += _finding(outcomes.get((paper, key), ()))
                text += f"\n`figures/{paper}/{key}.pdf`\n"
    for file in set(folder.glob("*.webp")).difference(shown):
        file.unlink()
    write_text(out, text)


def _outcomes(claims: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Statements by the paper and the artefact of the claims that decided their status."""
    artefacts = {claim["id"]: (claim["paper"], claim["artefact"]) for claim in claims}
    found: dict[tuple[str, str], list[Row]] = {}
    for statement in scores.statements(claims):
        for place in dict.fromkeys(artefacts[claim] for claim in statement["claims"].split()):
            found.setdefault(place, []).append(statement)
    return found


def _finding(statements: Iterable[Row]) -> str:
    """Markdown list: each main claim with its status, then the others, or how many have which."""
    statements = list(statements)
    others = [one for one in statements if not scores.is_main(one)]
    told = [*filter(scores.is_main, statements), *others * (len(others) <= _FEW)]
    lines = [
        f"- **{one['status']}**{caveats(one)}: {one['statement']}{' *Main claim.*' * scores.is_main(one)}\n"
        for one in told
    ]
    if len(others) > _FEW:
        more = f"{len(others)} {'other ' * bool(told)}statements"
        lines.append(f"- {more}: {scores.in_words(others, zeros=False)}\n")
    return "\n" + "".join(lines) if lines else ""


def _without_repeats(caption: str, title: str, said: dict[str, str]) -> str:
    """A caption without the sentences at its end that an earlier one of the paper has, which it names.

    `said` has each sentence and the figure that has it, and is brought up to date.

    >>> said = {}
    >>> _without_repeats("Error. Lines are means. Bands are ranges.", "Figure 1: a", said)
    'Error. Lines are means. Bands are ranges.'
    >>> _without_repeats("Loss. Lines are means. Bands are ranges.", "Figure 2: b", said)
    'Loss. The rest as under Figure 1.'
    """
    sentences = re.split(r"(?<=[.:]) (?=[A-Z])", caption)
    kept, last = list(sentences), said.get(sentences[-1])
    while kept and last and said.get(kept[-1]) == last:
        kept.pop()
    for sentence in sentences:
        said.setdefault(sentence, title.partition(":")[0])
    if len(sentences) - len(kept) < _FEWEST or not kept:
        return caption
    return " ".join([*kept, f"The rest as under {last}."])


def _shrink(picture: Path, out: Path) -> None:
    from PIL import Image

    hashes.check([picture])
    with Image.open(picture) as image, replacing(out) as temporary:
        drawn = image.convert("RGB")
        drawn.thumbnail((_WIDTH, drawn.height))
        drawn.save(temporary, "webp", quality=60, method=6)
