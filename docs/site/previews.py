"""What other sites show of a link to a page: title, first paragraph, picture; and how to cite a paper's page.

The address of the site is `html_baseurl`; without it addresses are relative to the page.
"""

from html import escape
from posixpath import relpath

from docutils import nodes

from replifed import __version__
from replifed.report.artefacts import in_order

_PAPERS = "docs/papers/"
_PICTURES = "docs/pictures/"
_OTHERS = f"{_PICTURES}cross-fig5.webp"  # of pages that are on no paper
_MOST = 300  # characters
_CITE = """
## Cite this page

The replifed authors: *{title}: what holds and what does not*. replifed {version}, 2026{address}.
"""


def cite(app, page: str, text: list[str]) -> None:
    """End the page on a paper with how it is cited, by its own address if the site has one."""
    if page.startswith(_PAPERS):
        title = text[0].partition("\n")[0].strip("# ")
        address = f", <{app.config.html_baseurl}{page}.html>" if app.config.html_baseurl else ""
        text[0] += _CITE.format(title=title, version=__version__, address=address)


def describe(app, page: str, template: str, context: dict, tree) -> None:
    """Add the tags from which a link's preview is made."""
    if tree is None:
        return
    base = app.config.html_baseurl
    picture = app.env.images.get(_picture(app, page))
    root = base or f"{relpath('.', page.rpartition('/')[0])}/"
    told = {
        "og:type": "article",
        "og:site_name": app.config.project,
        "og:title": context["title"],
        "og:description": _first(tree),
        "og:url": f"{base}{page}.html" if base else "",
        "og:image": f"{root}_images/{picture[1]}" if picture else "",
    }
    tags = [f'<meta property="{name}" content="{escape(one)}">' for name, one in told.items() if one]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def _picture(app, page: str) -> str:
    """Name of the picture of a page: of a paper's page the first of its figures."""
    begin = f"{_PICTURES}{page.removeprefix(_PAPERS)}-"
    own = {one.removeprefix(begin): one for one in app.env.images if one.startswith(begin)}
    return in_order(own)[0][1] if page.startswith(_PAPERS) and own else _OTHERS


def _first(tree) -> str:
    """Text of the first paragraph below a heading Finding, or of the page."""
    found = [one for one in tree.findall(nodes.section) if "finding" in one["ids"]]
    text = next(((found or [tree])[0]).findall(nodes.paragraph), nodes.paragraph()).astext()
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[:_MOST].rpartition(' ')[0]} …"


def setup(app) -> dict:
    app.connect("source-read", cite)
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True}
