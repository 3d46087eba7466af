"""What pages have on the site alone: contents, cards of papers, findings beside pictures, methods."""

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path
from posixpath import dirname, join, normpath

from replifed.algorithms.registry import BUILT_IN, METHODS
from replifed.claims.scores import STATUSES

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "src/replifed/reference"
# Pages whose lists of links are the contents of their section: a line there is a line in the menu.
SECTIONS = ("docs/how-to", "docs/papers", "docs/trust", "docs/api")
_LISTED = re.compile(r"^- \[([^\]]*)\]\(([\w./-]+)\.md\)", re.MULTILINE)
# A link to a tutorial shows its script elsewhere, and its page here.
_SCRIPT = re.compile(r"\]\(((?:docs/)?)tutorials/(\w+)\.py\)")
_PICTURE = re.compile(r"^### (.*)\n\n(.*)\n\n(!\[.*\]\(.*\))\n\n((?:- .*\n)+\n)?(`.*`)\n", re.MULTILINE)
_PAPER = re.compile(r"^- \[([^\]]*)\]\((papers/\w+)\.md\): (.*)$", re.MULTILINE)
_FINDING = re.compile(r"^## Finding\n\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
_TOCTREE = "\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"
_CARD = """\
::::{{card}} [{name}]({page}.md)
*{about}*

Main claims: {counts}

:::{{dropdown}} Finding
{finding}
:::
::::
"""
_PANEL = """\
### {title}

:::::{{grid}} 1 1 2 2

::::{{grid-item}}
:columns: 12 12 7 7

{picture}

{caption}

{path}
::::

::::{{grid-item}}
:columns: 12 12 5 5

{findings}
::::
:::::
"""


def contents(page: str, text: str) -> str:
    """Return a hidden toctree for each heading that has a list of pages below it."""
    trees = ""
    for part in re.split(r"^## ", text, flags=re.MULTILINE):
        pages = [f"{title} </{normpath(join(dirname(page), link))}>" for title, link in _LISTED.findall(part)]
        if pages:
            trees += _TOCTREE.format(caption=part.splitlines()[0].strip("# "), pages="\n".join(pages))
    return trees


def paper_cards(text: str) -> str:
    """Return the page with a card for each listed paper: its main claims, and the finding of its own page."""
    counts = defaultdict(Counter)
    for row in _rows("statements.csv"):
        counts[row["paper"]][row["status"]] += row["main"] == "yes"

    def card(found: re.Match) -> str:
        name, page, about = found.groups()
        finding = _FINDING.search((ROOT / f"docs/{page}.md").read_text())
        if finding is None:  # the comparison makes no promises
            return f"::::{{card}} [{name}]({page}.md)\n*{about}*\n::::\n"
        own = counts[page.removeprefix("papers/")]
        said = ", ".join(f"**{own[status]} {status}**" for status in STATUSES if own[status])
        return _CARD.format(name=name, page=page, about=about, counts=said, finding=finding[1])

    return _PAPER.sub(card, text)


def _rows(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def beside(text: str) -> str:
    """Return the page of pictures with what came of each picture's statements beside it."""

    def panel(found: re.Match) -> str:
        title, caption, picture, listed, path = found.groups()
        said = (listed or "- No statement rests on this figure alone.").strip()
        return _PANEL.format(title=title, caption=caption, picture=picture, path=path, findings=said)

    return _PICTURE.sub(panel, text)


def methods() -> str:
    """Return the directives that print the docstring of every built-in method."""
    classes = {METHODS[name].replace(":", "."): name for name in sorted(BUILT_IN)}
    return "\n".join(
        f"## {name}\n\n```{{eval-rst}}\n.. autoclass:: {target}\n```\n" for target, name in classes.items()
    )


def complete(app, page: str, text: list[str]) -> None:
    """Add what a page has on the site alone."""
    text[0] = _SCRIPT.sub(r"](\1learn/\2.rst)", text[0])
    if page in SECTIONS:
        text[0] += contents(page, text[0])
    if page == "docs/papers":
        note_sources(app, page)
        text[0] = paper_cards(text[0])
    elif page == "docs/pictures":
        text[0] = beside(text[0])
    elif page == "docs/api-methods":
        text[0] = text[0].replace("<!-- methods -->", methods())


def note_sources(app, page: str) -> None:
    """Have a page that other files complete made anew when these change."""
    for file in (*(ROOT / "docs/papers").glob("*.md"), REFERENCE / "statements.csv", Path(__file__)):
        app.env.note_dependency(str(file), docname=page)


def setup(app) -> dict:
    app.connect("source-read", complete)
    return {"parallel_read_safe": True}
