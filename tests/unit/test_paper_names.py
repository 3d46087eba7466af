"""Names that a paper of one's own may have, and folders in which it may lie."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from replifed import __version__, cli, parts
from replifed.cli.listing import TARGETS
from replifed.errors import ConfigError
from replifed.settings.checks import configuration_of
from replifed.settings.fields import FreePaper
from replifed.settings.reading import listed_papers

ROOT = Path(__file__).parents[2]
RULES = {
    name
    for file in [ROOT / "workflow/Snakefile", *ROOT.glob("workflow/rules/*.smk")]
    for name in re.findall(r"^ *(?:use rule \w+ as|rule) (\w+)", file.read_text(), re.MULTILINE)
}
MODULES = {file.stem for file in parts.PAPERS.glob("*.py")}
BAD = {
    "",
    "1a",
    "Demo",
    "a-b",
    "a.b",
    "a/b",
    "..",
    "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "class",
    300 * "a",
    "run_x",
}


@pytest.fixture(autouse=True)
def unregistered(monkeypatch):
    monkeypatch.setenv(parts.VARIABLE, "[]")


@pytest.mark.parametrize(
    "name", sorted({*RULES, *TARGETS, *MODULES, *configuration_of([]).model_fields, *BAD})
)
def test_a_name_that_something_else_has_is_refused_where_it_is_given(name, tmp_path, capsys):
    assert cli.main(["new", "paper", name, "--to", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not any(tmp_path.iterdir())


def paper(folder, name):
    folder.joinpath(name).mkdir(parents=True)
    folder.joinpath(name, "__init__.py").touch()
    return folder


@pytest.mark.parametrize("name", ["data", "fedplt", "Demo"])
def test_a_folder_that_is_called_like_something_else_is_named(name, tmp_path):
    with pytest.raises(ConfigError, match=rf"paper_folders: {tmp_path}/{name}: .*; rename the folder$"):
        parts.register_folders([paper(tmp_path, name)])


def test_two_folders_of_one_name_are_named(tmp_path):
    with pytest.raises(ConfigError, match="have one name; rename one of them"):
        parts.register_folders([paper(tmp_path / "a", "demo"), paper(tmp_path / "b", "demo")])


def test_papers_are_found_below_any_folder(tmp_path):
    folder = paper(tmp_path / "a:b [c] \n;d", "fedht_mine")
    parts.register_folders([folder])
    assert parts.own_papers() == {"fedht_mine": folder / "fedht_mine"}


def test_a_folder_without_a_paper_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"paper_folders: .* holds no folder of a paper"):
        listed_papers({"paper_folders": [str(tmp_path)]})


def test_a_paper_says_for_which_version_it_is_written(tmp_path):
    assert cli.main(["new", "paper", "demo", "--to", str(tmp_path)]) == 0
    section = yaml.safe_load((tmp_path / "demo/settings.yaml").read_text())["demo"]
    assert section["replifed"] == __version__.rpartition(".")[0]
    assert FreePaper.model_validate(section).replifed == section["replifed"]
    for key in (1.5, "0.9"):
        with pytest.raises(ValidationError, match=r"is written for replifed 0\.9|string"):
            FreePaper.model_validate({**section, "replifed": key})
