"""Which files a module depends on, found without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from replifed.errors import ReplifedError
from replifed.store import provenance

MODULES = {
    "shop/__init__.py": "",
    "shop/errors.py": "",
    "shop/main.py": "import shop.goods.apples\nimport json\n",
    "shop/goods/__init__.py": "from .. import errors\n",
    "shop/goods/apples.py": "from .pears import pear\nfrom ..errors import Rotten\n",
    "shop/goods/pears.py": "def pear():\n    from shop import lazy\n    return lazy\n",
    "shop/lazy.py": "import importlib\nnotes = importlib.import_module('shop.notes')\n",
    "shop/notes.py": "",
    "shop/registry.py": "NAMES = {'till': 'shop.till:Till'}\n",
    "shop/till.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop import notes\n"
    "else:\n    import shop.errors\n",
    "shop/page.py": "TEMPLATE = 'page.html.j2'\nOTHER = 'absent.txt'\n",
    "shop/page.html.j2": "<p>",
    "shop/circle_a.py": "import shop.circle_b\n",
    "shop/circle_b.py": "from shop.circle_a import x\n",
    "shop/broken.py": "def (\n",
    "shop/jobs.py": "from shop import errors\n\n"
    "def weigh():\n    helper()\n\n"
    "def helper():\n    import shop.till\n\n"
    "def sell():\n    import shop.page\n\n"
    "def tidy():\n    return None\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in MODULES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def names(module, root):
    return [file.relative_to(root).as_posix() for file in provenance.sources(module, root)]


def test_imports_are_followed_through_packages_relative_and_lazy_ones(root):
    assert names("shop.main", root) == [
        "shop/__init__.py",
        "shop/errors.py",
        "shop/goods/__init__.py",
        "shop/goods/apples.py",
        "shop/goods/pears.py",
        "shop/lazy.py",
        "shop/main.py",
        "shop/notes.py",
    ]


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("shop", ["__init__"]),
        ("shop.registry", ["__init__", "registry"]),
        ("shop.till", ["__init__", "errors", "till"]),
        ("shop.circle_a", ["__init__", "circle_a", "circle_b"]),
    ],
    ids=["package", "strings are not imports", "TYPE_CHECKING never runs", "circle"],
)
def test_what_is_followed(root, module, expected):
    assert names(module, root) == [f"shop/{name}.py" for name in expected]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("weigh", {"__init__", "errors", "jobs", "till"}),
        ("sell", {"__init__", "errors", "jobs", "page", "page.html"}),
        ("tidy", {"__init__", "errors", "jobs"}),
    ],
)
def test_a_function_leaves_out_what_only_others_import(root, function, expected):
    assert {Path(name).stem for name in names(f"shop.jobs:{function}", root)} == expected


def test_a_file_beside_the_module_that_it_names_is_a_source(root):
    assert names("shop.page", root) == ["shop/__init__.py", "shop/page.html.j2", "shop/page.py"]


def test_a_relative_root_gives_relative_paths(root, monkeypatch):
    monkeypatch.chdir(root)
    assert provenance.sources("shop.registry", Path()) == [Path("shop/__init__.py"), Path("shop/registry.py")]


def test_a_changed_file_is_read_again_though_its_time_is_the_same(root):
    import os

    file = root / "shop/registry.py"
    before, time = provenance.sources("shop.registry", root), file.stat().st_mtime_ns
    file.write_text("import shop.errors\n")
    os.utime(file, ns=(time, time))
    assert len(provenance.sources("shop.registry", root)) == len(before) + 1


def test_the_hash_follows_the_content_of_dependencies_only(root):
    first = provenance.source_hash("shop.main", root)
    (root / "shop/till.py").write_text("# not imported by main\n")
    (root / "shop/notes.py").touch()
    assert provenance.source_hash("shop.main", root) == first
    (root / "shop/notes.py").write_text("# imported by a lazy import of a relative import\n")
    assert provenance.source_hash("shop.main", root) != first


def test_the_hash_does_not_depend_on_the_folder(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for name, text in MODULES.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    assert provenance.source_hash("shop.main", root) == provenance.source_hash("shop.main", other)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("shop.absent", "no module shop.absent"),
        ("shop.broken", r"broken\.py, line 1"),
        ("shop.jobs:absent", "has no function absent"),
    ],
)
def test_faults_are_named(root, module, message):
    with pytest.raises(ReplifedError, match=message):
        provenance.sources(module, root)


def test_a_method_does_not_depend_on_its_siblings_nor_the_registry():
    found = {file.stem for file in provenance.sources("replifed.algorithms.fediterht")}
    assert {"fediterht", "base", "hard_threshold", "randomness"} <= found
    assert not found & {"fedavg", "distributed_iht", "registry", "cli", "config"}


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert provenance.canonical_json({"b": 1, "a": [0.1, None, True]}) == '{"a":[0.1,null,true],"b":1}'
    assert provenance.config_hash({"a": 1, "b": 2}) == provenance.config_hash({"b": 2, "a": 1})
    assert provenance.config_hash({"a": [1, 2]}) != provenance.config_hash({"a": [2, 1]})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_json_refuses_what_json_has_no_word_for(value):
    with pytest.raises(ValueError):
        provenance.canonical_json({"a": value})
