"""How methods are found: what their classes declare is read from the sources, and loads none of them."""

import subprocess
import sys

import pytest

from replifed.algorithms import looks, registry
from replifed.algorithms.registry import BUILT_IN, METHODS, declared, method_class
from replifed.errors import ConfigError
from replifed.papers.cross import paper
from replifed.store import provenance

MINE = """
class State:
    x = 1

class Mine(Method):
    name: ClassVar = "mine"
    look = ("blue", "dots", "s")
"""


def test_what_is_read_of_a_class_is_what_it_has():
    for name, said in BUILT_IN.items():
        own = vars(method_class(name))
        assert (own["name"], own.get("label", method_class(name).__name__)) == (name, said.label)
        assert own.get("look") == said.look


def test_names_and_looks_load_no_method():
    code = "import sys; from replifed.papers.cross import paper; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {one.source.partition(":")[0] for one in BUILT_IN.values()}
    assert not modules & set(loaded.stdout.split())


def test_a_file_in_the_folder_is_a_method(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "base.py").write_text("class Base:\n    name: str\n")
    source = "replifed.algorithms.mine:Mine"
    assert declared(tmp_path) == {"mine": (source, "Mine", ("blue", "dots", "s"))}
    (tmp_path / "other.py").write_text(MINE.replace("class Mine", "class Other"))
    with pytest.raises(ConfigError, match=r"mine:Mine and .*other:Other have one name, mine"):
        declared(tmp_path)
    (tmp_path / "other.py").write_text('class Other:\n    name = "other"\n    label = "a" + "b"\n')
    with pytest.raises(ConfigError, match=r"other\.py:3: write label out"):
        declared(tmp_path)


def test_runs_of_the_comparison_depend_on_no_other_method():
    """So that a new method makes none of them again."""
    modules = {METHODS[name].partition(":")[0] for name in METHODS}
    files = provenance.sources("replifed.papers.cross.experiments")
    names = {".".join(file.relative_to(provenance.SOURCE_ROOT).with_suffix("").parts) for file in files}
    assert "replifed.papers.cross.methods" in names and not names & modules


def test_methods_that_declare_no_look_are_told_apart(monkeypatch):
    before = looks.method_lines(BUILT_IN)
    plain = {name: one._replace(look=None) if name < "fedh" else one for name, one in BUILT_IN.items()}
    declared = {name for name, one in plain.items() if one.look}
    monkeypatch.setattr(looks, "BUILT_IN", plain)
    lines = looks.method_lines(plain)
    shown = {(line.color, str(line.dashes), line.marker) for line in lines.values()}
    assert len(shown) == len(BUILT_IN) and lines == looks.method_lines(plain)
    assert [line.label for line in lines.values()] == [line.label for line in before.values()]
    assert all(lines[name] == before[name] for name in declared)


def test_a_custom_method_has_a_look_of_its_own_and_not_its_parents(monkeypatch):
    class Heir(method_class("fedavg")):
        pass

    class Described(Heir):
        label, look = "Mine, described", ("#123456", "solid", "s")

    of = {"heir": Heir, "described": Described}
    for name in of:
        monkeypatch.setitem(METHODS, name, f"somebody:{name}")
    monkeypatch.setattr(looks, "method_class", lambda name: of.get(name) or registry.method_class(name))
    heir, described = list(paper.registered_lines().items())[:2]
    assert (heir[0], heir[1].label, heir[1].width) == ("heir", "Heir", 2.4)
    assert heir[1].color not in {line.color for line in looks.method_lines(BUILT_IN).values()}
    assert (described[1].label, described[1].color) == ("Mine, described", "#123456")
