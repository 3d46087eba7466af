"""What messages advise can be done: every command that one names is known here, and is tried."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import advice
from replifed import cli
from replifed.cli.listing import TARGETS
from replifed.store import hashes
from replifed.workflow import command

ROOT = advice.ROOT
HISTORY = Path("results/tiny/fedht/simulation1/fedavg.parquet")
TINY = " --configfile config/tiny.yaml"
ANEW = (hashes.remake(HISTORY), hashes.remake(Path("data/raw/mnist/a.gz")), hashes.snakemake("all"))
# Each command in a message, {} for what is filled in, as it can be given; "": not to be run by a test.
COMMANDS = {
    "replifed list": "replifed list",
    "replifed list methods": "replifed list methods",
    "replifed claims --reference{}": "replifed claims --reference --paper fedplt",
    "replifed show {} --reference": "replifed show fedplt/fig3 --reference",
    "replifed init FOLDER": "replifed init work",
    "replifed make all": "replifed make all",
    "replifed make claims": "replifed make claims",
    "replifed make all --cores 2{}": f"replifed make all --cores 2{TINY}",
    "replifed make all --small --cores 2": "replifed make all --small --cores 2",
    "replifed make {} --cores 2": "replifed make fedplt/fig3 --cores 2",
    "replifed make {} --cores 2{}": f"replifed make claims --cores 2{TINY}",
    "replifed make PAPER": "replifed make fedplt",
    "replifed make PAPER --cores 2{}": f"replifed make fedplt --cores 2{TINY}",
    "replifed make NAME --cores 2": "replifed make fedplt/fig3 --cores 2",
    "replifed make NAME --cores 2{}": f"replifed make fedplt.fig3.exact --cores 2{TINY}",
    "replifed make {}": "replifed make fedplt/fig3",
    "replifed make {}{}": f"replifed make fedplt.fig3.exact{TINY} --config scale=tiny",
    "replifed diff": "replifed diff",
    "replifed data --refresh": "replifed data --refresh",
    "replifed data fetch {}": "replifed data fetch mnist",
    "replifed data fetch DATASET": "replifed data fetch mnist",
    "replifed columns FILE": "replifed columns figures/small/fedht/fig3.csv",
    "replifed claims accept --golden reference --file results/claims.csv": (
        "replifed claims accept --golden reference --file results/claims.csv"
    ),
    # These name a command in a description.
    "replifed claims document": "replifed claims document --help",
    "replifed claims --reference --why {example}": "replifed claims --reference --why fedplt.fig3.zeta",
    "replifed compare": "replifed compare --help",
    "replifed new paper": "replifed new paper --help",
    "replifed judge {}": "replifed judge --help",
    "replifed new paper NAME --from-logs": "replifed new paper demo --from-logs runs",
    "replifed new paper NAME --from-logs FOLDER": "replifed new paper demo --from-logs runs",
    "cli/arguments.py: {} --help": "replifed make --help",
    "papers/cross/cohorts.py: {}": "",  # a method's name in a table
    "snakemake TARGET --cores 2": f"snakemake report --cores 2{TINY}",
    "snakemake {} --cores 2{}": f"snakemake results/tiny/fedplt/claims.csv --cores 2{TINY}",
    "snakemake --cores 2 {} --config {}": "snakemake --cores 2 fedplt --config 'paper_folders=[]'",
    "snakemake verify --cores 1": "snakemake verify --cores 1",
    "snakemake --cores 1 data": "snakemake --cores 1 data",
    "snakemake gallery --cores 2": "snakemake gallery --cores 2",
    "snakemake compare": "snakemake compare --cores 1",
    "snakemake --unlock": "snakemake --unlock",
    "snakemake {}": f"snakemake data --cores 1{TINY}",
    "store/hashes.py: {}": f"{ANEW[0]}{TINY}",
    "store/manifest.py: {}": f"{ANEW[2]}{TINY}",
    "store/npz.py: {}": "replifed data parse mnist",
    **dict.fromkeys((f"pip install 'replifed[{extra}]'" for extra in ("video", "tensorboard")), ""),
    **dict.fromkeys(("rm {}", "cp -a", "kill PROCESS", "cd {}", "pip install {package}"), ""),
    # No command is filled in here, but a file or a number.
    **dict.fromkeys((f"{name}: {{}}" for name in ("report/columns.py", "report/score.py")), ""),
    **dict.fromkeys((f"{name}: {{}}" for name in ("report/sentences.py", "runs/certified.py")), ""),
    "runs/compared.py: {}": "",
}
CALLS = sorted({call for call in COMMANDS.values() if call})
QUICK = [call for call in CALLS if call.startswith(("replifed list", "replifed show", "replifed claims --r"))]


def test_every_command_in_a_message_is_tried_here():
    found = advice.commands()
    assert {command: file for command, file in found.items() if command not in COMMANDS} == {}
    assert COMMANDS.keys() - found == set()


def test_commands_are_found():
    text = 'f"{a} is no such: `replifed {b} --x`; or: snakemake y, `{c}`" "run it: snakemake {d}"'
    (found,) = advice.texts(advice.ast.parse(text))
    matches = [one[1] or one[2] for one in advice._COMMAND.finditer(found)]
    assert matches == ["replifed {} --x", "{}", "snakemake {d}"]


@pytest.mark.parametrize("call", [call for call in CALLS if call.startswith("replifed")])
def test_replifed_takes_the_words(call, capsys):
    _, *given = shlex.split(call)
    if "--help" in given:
        with pytest.raises(SystemExit) as caught:
            cli.main(given)
        assert caught.value.code == 0
    elif call in QUICK:
        assert cli.main(given) == 0
    else:
        cli._parser().parse_args(given)
    capsys.readouterr()


@pytest.mark.parametrize("call", [call for call in CALLS if call.startswith("snakemake")])
def test_snakemake_takes_the_words(call):
    _, *given = shlex.split(call)
    taken = command.parsed(given)
    command.check_options(taken, given)
    papers = {file.stem for file in ROOT.glob("config/papers/*.yaml")}
    for target in taken.targets:
        assert target in papers | set(TARGETS) or Path(target).suffix in (".csv", ".parquet")
    assert taken.unlock or taken.cores


@pytest.mark.on_demand
@pytest.mark.parametrize("call", [call for call in CALLS if re.match("replifed make|snakemake", call)])
def test_the_jobs_are_planned(call, tmp_path):
    for name in ("Snakefile", "workflow", "config", "profiles", "src"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    if "verify" in call:
        pytest.skip("there is no manifest; tests/workflow verifies one")
    program, *given = shlex.split(call)
    given += [] if "--unlock" in given else ["--dry-run"]
    words = [sys.executable, "-m", program, *given]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
        ("compare mine.py", "mine.py: give a method of your own as FILE.py:CLASS, such as mine.py:Mine"),
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
