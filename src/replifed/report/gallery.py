"""Page of Markdown with every picture of a run, small enough to be kept with the code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replifed.report.artefacts import in_order, stamp_of, words_of
from replifed.report.curves import read
from replifed.store import hashes
from replifed.store.atomic import replacing, write_text

_WIDTH = 1000  # pixels
_HEAD = """\
# Pictures

Every figure of the reference run at the papers' settings; `snakemake gallery --cores 2` makes this page, with
all that it shows. Of a figure with several pages, the PDF has the others; numbers are in the CSV beside it.
[The papers' pages](score.md) say what came of each claim.
"""


def write(figures_dir: Path, settings: Mapping[str, Any], out: Path) -> None:
    """Write the page, and the pictures into a folder of its name next to it.

    Parameters
    ----------
    figures_dir : holds PAPER/ARTEFACT.{csv,png} of figures.
    settings : papers, and of each which artefacts there are.
    out : the page. Pictures of other artefacts in its folder are removed.
    """
    folder, text = out.with_suffix(""), _HEAD
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for paper in settings["papers"]:
        about, described = words_of(paper)
        text += f"\n## {about.get('name', paper)}\n"
        for key, entry in in_order(settings[paper]["artefacts"]):
            if entry["kind"] == "figure":
                files, words = figures_dir / paper / key, described[key]
                small = folder / f"{paper}-{key}.webp"
                _shrink(files.with_suffix(".png"), small)
                shown.append(small)
                data = stamp_of(read(files.with_suffix(".csv")))
                text += f"\n### {words.title}\n\n{words.caption}{f' Data: {data}.' * bool(data)}\n"
                text += f"\n![{words.title}]({folder.name}/{small.name})\n\n`figures/{paper}/{key}.pdf`\n"
    for file in set(folder.glob("*.webp")).difference(shown):
        file.unlink()
    write_text(out, text)


def _shrink(picture: Path, out: Path) -> None:
    from PIL import Image

    hashes.check([picture])
    with Image.open(picture) as image, replacing(out) as temporary:
        drawn = image.convert("RGB")
        drawn.thumbnail((_WIDTH, drawn.height))
        drawn.save(temporary, "webp", quality=60, method=6)
