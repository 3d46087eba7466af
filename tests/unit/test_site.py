"""The site: its checker names what is broken, and its API has what readers import."""

import ast
import re
from pathlib import Path
from runpy import run_path

import pytest

import replifed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b.html#there">b</a><a id="x" href="#x"></a><a href="https://a.org">a</a>', None),
        ('<a href="c.html">c</a>', "links to c.html, which is not there"),
        ('<a href="b.html#gone">b</a>', "links to b.html#gone, which has no such place"),
        ('<img src="p.png">', "links to p.png, which is not there"),
        ('<meta property="og:image" content="p.png">', "links to p.png, which is not there"),
        ('<img srcset="a.html 1x, https://cdn.org/p.png 2x">', "loads https://cdn.org/p.png from a network"),
        ('<video poster="//cdn.org/p.png"></video>', "loads //cdn.org/p.png from a network"),
        ('<script src="https://cdn.org/a.js"></script>', "loads https://cdn.org/a.js from a network"),
        ('<link rel="stylesheet" href="//cdn.org/a.css">', "loads //cdn.org/a.css from a network"),
        ("<style>@import 'https://cdn.org/f.css';</style>", "loads https://cdn.org/f.css from a network"),
    ],
)
def test_broken_links_and_what_comes_from_a_network_are_named(body, said, tmp_path):
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<p id="there">')
    checker = run_path(str(ROOT / "tools/check_site.py"))
    assert [*checker["faults"](tmp_path)] == ([f"a.html {said}"] if said else [])


def _imported(text):
    """Yield MODULE.NAME for each name that Python text imports from the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("replifed"):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_all_that_a_readers_file_imports_is_in_the_api():
    pages = "\n".join(file.read_text() for file in ROOT.glob("docs/api*.md"))
    whole = re.findall(r"automodule:: (\S+)\n   :members:", pages)
    said = set(re.findall(r"auto(?:class|function|data):: (\S+)", pages))
    blocks = [
        text
        for page in ROOT.glob("docs/*.md")
        for text in re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text(), re.M | re.S)
    ]
    blocks += [file.read_text() for file in ROOT.glob("docs/tutorials/*.py")]
    blocks += [file.read_text() for file in ROOT.glob("src/replifed/templates/*paper/*.py.txt")]
    blocks += [file.read_text() for file in ROOT.glob("examples/*/*.py")]
    used = {name for text in blocks for name in _imported(text)} | {
        f"replifed.{name}" for name in replifed._LIBRARY
    }
    assert len(used) > 30
    hidden = {name for name in used - said if name.rpartition(".")[0] not in whole}
    assert hidden == {"replifed.cli.main"}  # the command line, as the tutorials call it
