"""`replifed` alone: what it says of the runs here, and that what it names can be done."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import planted_paper
from replifed import cli
from replifed.claims import scores

ROOT = Path(__file__).parents[2]


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Put a Snakefile into an empty folder; return a function that calls `replifed` there."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "Snakefile", "Snakefile")
    (tmp_path / "tests/golden").mkdir(parents=True)
    (tmp_path / "tests/golden/small.csv").touch()

    def call():
        assert cli.main([]) == 0
        return capsys.readouterr().out

    return call


def commands(text):
    """The commands of a text as words, each of which the parser takes."""
    found = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("  ")]
    found = [[*one, "&&"][: [*one, "&&"].index("&&")] for one in found]
    for words in found:
        assert words[0] == "replifed"
        cli._parser().parse_args(words[1:])
    return [" ".join(words[1:]) for words in found]


def job(folder):
    file = Path(folder, "benchmarks/fedplt/fig3.tsv")
    file.parent.mkdir(parents=True)
    file.touch()


def test_nothing_run(said):
    text = said()
    first = ["claims --reference --main", "make fedplt/fig3 --small", "make all --small --cores N"]
    assert [re.sub(r"cores \d+", "cores N", one) for one in commands(text)] == first
    assert text.startswith("results/ holds no run yet")
    Path("Snakefile").unlink()
    assert "init my_work" in commands(said())


def test_begun_and_whole_runs(said):
    job("results/small")
    text = said()
    assert text.startswith("results/small: 1 job done, verdicts not complete")
    assert commands(text)[0] == "list" and commands(text)[1].startswith("make all --small --cores ")
    Path("results/small/fedac").mkdir()
    Path("results/small/fedac/claims.csv").touch()
    text = said()
    assert text.startswith("results/small: 1 job done, verdicts on fedac alone")
    assert commands(text)[:2] == ["claims --small", "list"]
    for folder in ("results", "results/small"):
        Path(folder).mkdir(exist_ok=True)
        scores.write(planted_paper.rows(), f"{folder}/statements.csv")
        Path(folder, "report.html").touch()
    job("results")
    text = said()
    assert re.search(r"^results: 5 main claims: .* deviates", text, re.MULTILINE)
    assert "\nreport: results/small/report.html\n" in text
    shown = ["claims --main", "diff", "claims --small --main", "diff results/small tests/golden/small.csv"]
    assert commands(text) == shown
    Path("results/statements.csv").write_text("a,b\n1,2\n")
    assert "results/statements.csv" in said()


def test_it_imports_nothing_slow(tmp_path):
    (tmp_path / "results/benchmarks").mkdir(parents=True)
    scores.write(planted_paper.rows(), tmp_path / "results/statements.csv")
    code = "import sys; from replifed import cli; cli.main([]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not {"pandas", "scipy", "yaml", "pydantic", "snakemake"} & set(done.stdout.split())
