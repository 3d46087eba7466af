"""Page of Markdown with every picture of a run and what came of it, small enough to be kept with the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replifed.claims import files, scores
from replifed.claims.prose import named
from replifed.claims.scores import Row
from replifed.errors import counted
from replifed.report.artefacts import in_order, opened, stamp_of, words_of
from replifed.report.curves import read
from replifed.report.prose import declared, numbers_of, tables_in
from replifed.report.sentences import caveats
from replifed.store import hashes
from replifed.store.atomic import replacing, write_text

_WIDTH = 1000  # pixels
_TOLD = 1  # sentences of a caption
_HEAD = """\
# Pictures

Every figure of the reference run at the papers' settings; `snakemake gallery --cores 2` makes this page. The
report has the whole captions, the PDF the other pages of a figure, and the CSV beside it the numbers. Below a
picture stands what came of the main claims that it decides, by their numbers on the paper's page, and of how
many other statements.
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
        text += f"\n## {about.get('name', paper)}\n"
        for key, entry in in_order(settings[paper]["artefacts"]):
            if entry["kind"] == "figure":
                drawn, words = figures_dir / paper / key, described[key]
                small = folder / f"{paper}-{key}.webp"
                _shrink(drawn.with_suffix(".png"), small)
                shown.append(small)
                data = stamp_of(read(drawn.with_suffix(".csv")))
                caption, _ = opened(named(words.caption, f"{paper}/{key}", numbers), _TOLD)
                text += f"\n### {words.title}\n\n{caption}{f' Data: {data}.' * bool(data)}\n"
                short = words.title.partition(":")[0].removesuffix(" (not in the paper)")
                text += f"\n![{short}]({folder.name}/{small.name})\n"
                text += _finding(outcomes.get((paper, key), ()))
                text += f"\n`figures/{paper}/{key}.pdf`\n"
    for file in set(folder.glob("*.webp")).difference(shown):
        file.unlink()
    write_text(out, text)


def _outcomes(claims: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Statements by paper and artefact of the claims that decided their status; main ones have a number."""
    artefacts = {claim["id"]: (claim["paper"], claim["artefact"]) for claim in claims}
    found: dict[tuple[str, str], list[Row]] = {}
    numbers: Counter[str] = Counter()
    for statement in scores.statements(claims):
        if scores.is_main(statement):
            numbers[statement["paper"]] += 1
            statement = {**statement, "number": str(numbers[statement["paper"]])}
        for place in dict.fromkeys(artefacts[claim] for claim in statement["claims"].split()):
            found.setdefault(place, []).append(statement)
    return found


def _finding(statements: Iterable[Row]) -> str:
    """Markdown list: the main claims of each status, by their numbers, then how many others have which."""
    statements = list(statements)
    main: dict[str, list[str]] = {}
    for one in filter(scores.is_main, statements):
        link = f"[{one['number']}](papers/{one['paper']}.md#main-claims)"
        main.setdefault(f"**{one['status']}**{caveats(one)}", []).append(link)
    others = [one for one in statements if not scores.is_main(one)]
    lines = [f"- {came}: main claim{'s' * (len(one) > 1)} {', '.join(one)}\n" for came, one in main.items()]
    if others:
        count = scores.by_status(others)
        came = ", ".join(f"{number} {status}" for status in scores.STATUSES if (number := count[status]))
        what = "other statement" if main else "statement"
        lines.append(f"- {counted(len(others), what)}: {came}\n")
    return "\n" + "".join(lines) if lines else ""


def _shrink(picture: Path, out: Path) -> None:
    from PIL import Image

    hashes.check([picture])
    with Image.open(picture) as image, replacing(out) as temporary:
        drawn = image.convert("RGB")
        drawn.thumbnail((_WIDTH, drawn.height))
        drawn.save(temporary, "webp", quality=60, method=6)
