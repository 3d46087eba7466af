"""What messages advise can be done: every command that one names is known here, and is tried."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import advice
from replifed import cli
from replifed.store import hashes
from replifed.workflow import command

ROOT = advice.ROOT
# What begins with a blank that is filled in, and is no command.
NO_COMMAND = {
    *("papers/cross/cohorts.py: {}", "report/columns.py: {}", "report/score.py: {}"),
    *("report/sentences.py: {}", "runs/certified.py: {}", "runs/compared.py: {}"),
}
HISTORY = Path("results/tiny/fedht/simulation1/fedavg.parquet")
MADE = [hashes.remake(HISTORY), hashes.remake(Path("data/raw/mnist/a.gz")), hashes.snakemake("all")]
# What is filled in whole.
FILLED = {
    **dict(zip(("store/hashes.py: {}", "store/manifest.py: {}"), (MADE[0], MADE[2]), strict=True)),
    "cli/arguments.py: {} --help": "replifed make --help",
    "store/npz.py: {}": "replifed data parse mnist",
}


def options_of(parser, words):
    """The parser of a command's words, and what it does not know of them: names of commands, and options."""
    for word in words:
        nested = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        if nested and word in nested[0]:
            parser = nested[0][word]
        elif nested and not word.startswith("-") and parser.get_default("handler") is None:
            return [word]
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [option for option in given if option not in parser._option_string_actions]


COMMANDS = {FILLED.get(one, one): file for one, file in advice.commands().items() if one not in NO_COMMAND}


@pytest.mark.parametrize("call", sorted({*COMMANDS, *MADE}))
def test_a_command_that_a_message_names_is_known(call):
    if not call.startswith(("replifed", "snakemake")):
        assert call.startswith(("pip install", "rm ", "cp ", "kill ", "cd ")), COMMANDS[call]
        return
    program, *words = shlex.split(re.sub(r"\{\w*\}$", "", call).replace("{}", "all"))
    if program == "replifed":
        assert options_of(cli._parser(), words) == []
    else:
        command.parsed(words)


def test_commands_are_found():
    text = 'f"{a} is no such: `replifed {b} --x`; or: snakemake y, `{c}`" "run it: snakemake {d}"'
    (found,) = advice.texts(advice.ast.parse(text))
    matches = [one[1] or one[2] for one in advice._COMMAND.finditer(found)]
    assert matches == ["replifed {} --x", "{}", "snakemake {d}"]


@pytest.mark.parametrize(
    "page", ["artifact", "install", "trouble", "runs", "own-method", "own-data", "logs", "wire"]
)
def test_the_commands_of_a_page_are_taken(page):
    text = (ROOT / f"docs/{page}.md").read_text().replace("\\\n", " ")
    text = re.sub(r"^```\w+\n.*?^```\n", "", text, flags=re.M | re.S)  # other languages
    blocks = "".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    inline = re.findall(
        r"`((?:replifed|snakemake) [^`]+)`", re.sub(r"^```\n.*?^```", "", text, flags=re.M | re.S)
    )
    calls = [line for line in blocks.splitlines() if line.startswith(("replifed ", "snakemake "))] + inline
    assert calls
    for call in calls:
        program, *given = shlex.split(re.split(r" [>&]|\|", call)[0], comments=True)
        if program == "snakemake":
            command.check_options(command.parsed(given), given)
        elif len(given) > 1:  # a name alone is that of a command
            cli._parser().parse_args(given)


def test_the_extra_that_is_named_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"video", "tensorboard", "flower"} <= extras.keys()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("compare mine.py", "mine.py: no method; write FILE.py:CLASS, such as mine.py:Mine"),
        ("compare fedavg", "fedavg is a built-in method; name it with --against fedavg"),
        ("compare nowhere.py:Mine", "nowhere.py"),
        ("compare sound.py:Mien", "sound.py: unknown class 'Mien'"),
        ("compare --against fedavg --data a99a", "--data: unknown problem of the comparison 'a99a'"),
        ("claims", "`replifed claims --reference` shows the accepted run's"),
        (
            "claims --paper fedplt",
            "fedplt/claims.csv does not exist; `replifed make fedplt --cores 2` makes it",
        ),
        (
            "claims --why fedplt.table2.best",
            "`replifed claims --reference --paper fedplt` shows the accepted",
        ),
        ("claims --small", "`replifed make claims --cores 2 --configfile config/small.yaml` makes it"),
        ("make fedplt/fgi3", "did you mean 'fig3'?"),
    ],
)
def test_advice_fits_what_was_typed(given, says, tmp_path, monkeypatch, capsys):
    (tmp_path / "config").symlink_to(ROOT / "config")
    (tmp_path / "Snakefile").symlink_to(ROOT / "Snakefile")
    (tmp_path / "sound.py").write_text("class Mine:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(given.split()) == 2
    said = capsys.readouterr().err
    assert says in said and "follows --config" not in said
    assert said.startswith("replifed: error: ") and said.count("\n") == 1
