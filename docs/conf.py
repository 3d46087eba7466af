"""The pages of this repository as a site: ``sphinx-build -W --keep-going -c docs . site``.

The source folder is the repository itself: every page reads the same there and where the code is hosted.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from replifed import __version__  # noqa: E402
from replifed.algorithms.registry import BUILT_IN, METHODS  # noqa: E402

project, author, version, release = "replifed", "the replifed authors", __version__, __version__
root_doc = "README"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md"),
    *("config/README.md", "data/README.md", "benchmarks/README.md", "tests/golden/README.md"),
    "src/replifed/data/packed/README.md",
]
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]

myst_heading_anchors = 3  # links to headings, as where the code is hosted
myst_enable_extensions = ["dollarmath"]
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each parameter is

html_theme = "alabaster"
html_theme_options = {
    "description": "Federated optimisation, replicated whole",
    **{"page_width": "1320px", "body_max_width": "none", "sidebar_width": "240px"},
    **{"font_family": "system-ui, sans-serif", "head_font_family": "system-ui, sans-serif"},
}
toc_object_entries = False  # the contents beside a page name its sections alone
html_extra_path = ["index.html"]  # the front page is the README, which keeps its name
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sourcelink = False

CONTENTS = """
```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""
PARTS = {
    "Use": [
        *("docs/install", "config/README", "data/README", "docs/cluster", "docs/cost", "docs/growth"),
        *("docs/outputs", "docs/columns", "docs/trouble"),
    ],
    "Your own": ["docs/own-method", "docs/own-data", "docs/own-paper", "docs/library", "docs/api"],
    "Papers": ["docs/score", "docs/comparison"]
    + [f"docs/papers/{file.stem}" for file in sorted((ROOT / "docs/papers").glob("*.md"))],
    "Trust": [
        *("docs/runs", "docs/wire", "docs/artifact", "docs/pictures", "tests/golden/README"),
        *("src/replifed/data/packed/README", "benchmarks/README"),
    ],
    "Change": ["CONTRIBUTING", "CHANGELOG"],
}


def methods() -> str:
    """Return the directives that print the docstring of every built-in method."""
    classes = {METHODS[name].replace(":", "."): name for name in sorted(BUILT_IN)}
    return "\n".join(
        f"### {name}\n\n```{{eval-rst}}\n.. autoclass:: {target}\n```\n" for target, name in classes.items()
    )


def complete(app, page: str, text: list[str]) -> None:
    """Add what a page has on the site alone: the contents, and the methods as the registry has them."""
    if page == root_doc:
        text[0] += "".join(
            CONTENTS.format(caption=caption, pages="\n".join(pages)) for caption, pages in PARTS.items()
        )
    if page == "docs/api":
        text[0] = text[0].replace("<!-- methods -->", methods())


def plain(app, kind: str, name: str, thing, options, lines: list[str]) -> None:
    """Print the bars of norms: they are substitutions otherwise."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app) -> None:
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", plain, priority=900)  # after numpydoc
