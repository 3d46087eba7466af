"""The real Snakefile and code on the tiny settings: killed in mid-run, resumed, complete, repeated."""

import contextlib
import csv
import html
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warm
from copies import ROOT, Copy, copy_repository, surroundings
from replifed.claims.reference import accept, compare
from replifed.claims.rules import VERDICTS
from replifed.partition import store
from replifed.report.artefacts import words_of
from replifed.report.columns import unknown
from replifed.runs import compared, opened
from replifed.store.environment import machine
from replifed.store.hashes import record
from replifed.store.histories import read_history

TINY = ("all", "--cores", "2", "--configfile", "config/tiny.yaml")
FIRST = "results/tiny/fedht/planted/fedht.parquet"  # a run without a search before it
# The kernels that any x86-64 processor has, in place of those made for this one.
OTHER_PROCESSOR = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NUMBA_CPU_NAME": "nehalem",
    "NUMBA_CPU_FEATURES": "",
    "NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),
}


def plant(folder: Path) -> None:
    """Leave what a download and a split leave, which these few artefacts do without."""
    raw, partition = folder / KINDS["raw data"], folder / KINDS["partition"]
    raw.parent.mkdir(parents=True)
    raw.write_text("old")
    store.save(partition, store.Partition(np.arange(8, dtype="<i4"), {1: np.arange(8, dtype="<i4")}))
    record([raw, partition])


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A copy in which `all` was killed as soon as the first run was on disk, with every job it had.

    These jobs are processes as users have them; what comes after is made by warm ones.
    """
    copy = copy_repository(tmp_path_factory.mktemp("killed"), stubs={})
    plant(copy.folder)
    command = [sys.executable, "-m", "snakemake", *TINY, "--prioritize", FIRST]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen(command, cwd=copy.folder, env=surroundings(), **quiet)
    end = time.monotonic() + 400  # kernels are compiled first
    try:
        while not list(copy.folder.glob("results/tiny/fedht/*/[!.]*.parquet")):
            assert process.poll() is None and time.monotonic() < end, "no run was ever written"
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return copy


def test_a_killed_run_leaves_nothing_half_written_and_goes_on(killed):
    runs = list(killed.folder.glob("results/tiny/fedht/*/[!.]*.parquet"))
    assert runs
    for path in runs:
        frame, meta = read_history(path)
        assert len(frame) > 0
        assert [one["processor"] for one in meta["machines"]] == [machine()["processor"]]
    done = killed.snakemake(*TINY)
    assert done.status == 0, done.text
    assert "an earlier call was killed (process " in done.text
    for name in ("fig1", "rates"):
        for suffix in ("csv", "pdf", "png"):
            assert (killed.folder / f"figures/tiny/fedht/{name}.{suffix}").stat().st_size > 500
    claims = pd.read_csv(killed.folder / "results/tiny/claims.csv")
    assert set(claims["verdict"]) <= set(VERDICTS)
    assert (claims["scale"] == "tiny").all()
    # The score stands above the closing line.
    assert re.fullmatch(r"\d+ (other )?statements: \d+ reproduced [(,].*", done.text.strip().splitlines()[-2])
    assert unknown(killed.folder / "results/tiny", killed.folder / "figures/tiny") == []
    again = killed.snakemake(*TINY)
    assert "Nothing to be done" in again.text


def reported(copy: Copy, *words: str) -> dict[str, tuple[str, str, dict[str, str], str]]:
    """What Snakemake's own report shows: category, subcategory, labels and caption of each file."""
    done = copy.snakemake("--report", "shown.html", *words)
    assert done.status == 0, done.text
    page = (copy.folder / "shown.html").read_text()

    def content(name: str) -> dict:
        return json.JSONDecoder().raw_decode(page.partition(f'id="{name}">')[2].partition(" = ")[2])[0]

    results = content("results")
    return {
        file: (category, kind, results[file]["labels"], results[file]["caption"])
        for category, kinds in content("categories").items()
        for kind, files in kinds.items()
        for file in files
    }


def test_snakemakes_own_report_shows_each_figure_and_table_with_its_caption(killed):
    assert killed.snakemake(*TINY).status == 0  # of what was killed, the rest
    found = reported(killed, *TINY)
    folder = killed.folder
    kinds = {".png": "figures", ".md": "tables"}
    files = [path for path in folder.glob("figures/tiny/*/*") if path.suffix in kinds]
    assert {"fig1.png", "remark1.md"} <= {path.name for path in files}
    assert found.keys() == {str(path.relative_to(folder)) for path in files}
    for path in files:
        *place, caption = found[str(path.relative_to(folder))]
        assert place == [path.parent.name, kinds[path.suffix], {"artefact": path.stem}]
        described = words_of(path.parent.name)[1][path.stem]
        text = html.unescape(re.sub(r"<[^>]*>", "", caption))
        assert text.split() == f"{described.title} {described.caption}".split()


# One file of each kind that rules read or write.
KINDS = {
    "run history": "results/tiny/fedht/simulation1/fedht.parquet",
    "tuned settings": "results/tiny/fedht/simulation1/fedht.tuned.json",
    "partition": "results/tiny/qshed/example/partition.npz",
    "parsed data": "data/parsed/mushrooms.npz",
    "record of data": "data/raw/mushrooms.json",
    "raw data": "data/raw/mushrooms/old",
    "claims of a paper": "results/tiny/fedht/claims.csv",
    "errata": "results/tiny/fedht/errata.csv",
    "claims": "results/tiny/claims.csv",
    "numbers of a figure": "figures/tiny/fedht/fig1.csv",
    "pdf": "figures/tiny/fedht/fig1.pdf",
    "png": "figures/tiny/fedht/fig1.png",
    "md": "figures/tiny/fedmm/remark1.md",
    "tex": "figures/tiny/fedmm/remark1.tex",
    "report": "results/tiny/report.html",
}
MANIFEST = "results/tiny/manifest.csv"
CLOSING = ("claims.csv", "statements.csv", "not_claimed.csv", "report.html", "report_curves.js")
EXTRA, MISSING = "figures/tiny/fedht/new.csv", "figures/tiny/fedht/rates.pdf"
AGAIN = f"--cores 2 --force {' '.join(TINY[3:])}"


@contextlib.contextmanager
def altered(folder: Path, *names: str):
    """Flip a bit in the midst of files, as a failing disk would: without a new time; then undo it."""
    before = {folder / name: ((folder / name).read_bytes(), (folder / name).stat()) for name in names}

    def write(flip: int):
        for file, (content, times) in before.items():
            middle = len(content) // 2
            file.write_bytes(content[:middle] + bytes([content[middle] ^ flip]) + content[middle + 1 :])
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    try:
        write(1)
        yield
    finally:
        write(0)


TO_TINY = "--configfile config/tiny.yaml"


@pytest.fixture(scope="module")
def verified(killed):
    """What `verify` says when a bit is flipped in a file of each kind, one is missing and one is extra."""
    sound = killed.snakemake("verify", *TINY[1:])
    assert sound.status == 0, sound.text
    assert re.search(rf"^\d+ files of {MANIFEST} checked, 0 errors$", sound.text, flags=re.MULTILINE)
    (killed.folder / EXTRA).write_text("1,2")
    (killed.folder / MISSING).rename(killed.folder / "kept")
    with altered(killed.folder, *KINDS.values()):
        found = killed.snakemake("verify", *TINY[1:])
    (killed.folder / "kept").rename(killed.folder / MISSING)
    (killed.folder / EXTRA).unlink()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_flip_in_any_file_is_named_with_the_command_that_mends_it(verified, kind):
    name = KINDS[kind]
    (line,) = (line for line in verified.text.splitlines() if line.startswith(f"{name}: changed, sha256 is "))
    first = f"rm {name} && " if kind == "raw data" else ""
    target = "data/raw/mushrooms.json" if kind == "raw data" else name
    assert line.endswith(f"; `{first}snakemake {target} {AGAIN}`")


def test_verify_names_missing_and_extra_files_and_prints_nothing_else(verified):
    assert verified.status == 1
    said, *lines, last = verified.text.splitlines()
    assert said.startswith("Using workflow specific profile")  # before any file of the workflow is read
    assert f"{EXTRA}: extra, no job made it; `rm {EXTRA}`" in lines
    assert f"{MISSING}: missing; `snakemake {MISSING} {AGAIN}`" in lines
    assert len(lines) == len(KINDS) + 2
    assert last.endswith(f"checked, {len(lines)} errors")


def test_verify_names_a_manifest_that_is_not_whole(killed):
    manifest = killed.folder / MANIFEST
    with altered(killed.folder, MANIFEST):
        content = manifest.read_bytes()
        manifest.write_bytes(content[: content.index(b"\n") + 1])
        found = killed.snakemake("verify", *TINY[1:])
    assert found.status == 1
    assert f"{MANIFEST}: missing, altered, cut short" in found.text
    assert f"`snakemake {MANIFEST} {AGAIN}`" in found.text
    assert found.text.endswith(" checked, 1 error\n")


def test_what_someone_else_wrote_is_not_taken_for_a_result(killed):
    """Although it is newer than all that it was made from."""
    manifest, name = killed.folder / MANIFEST, KINDS["md"]
    before = manifest.read_bytes()
    with (killed.folder / name).open("ab") as table:
        table.write(b" ")
    refused = killed.snakemake(*TINY)
    assert refused.status == 1
    assert (
        f"error: {name} has changed since it was made; make it anew: `snakemake {name} {AGAIN}`"
        in refused.text
    )
    assert killed.snakemake(name, *AGAIN.split()).status == 0
    done = killed.snakemake(*TINY)
    assert done.status == 0, done.text
    assert manifest.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_one_line(killed):
    # A file where a folder should be stops even root, whom permissions do not.
    (killed.folder / "blocked").write_text("")
    result = killed.snakemake(
        *TINY, "--config", "paths={results: blocked/results, figures: figures/tiny, data: data}"
    )
    assert result.status != 0
    assert "blocked" in result.text


# How far results may be off, relative to a column's largest, where it is not 1e-9 of each: single precision,
# and for intervals of rates, which are slopes of curves down to rounding errors.
TOLERANCES = {"figures/tiny/fedht/fig1.csv": 1e-5, "figures/tiny/fedplt/fig2.csv": 1e-6}
# Columns that are not smooth in the numbers behind them. Once the planted model is recovered, gradients are
# rounding errors alone; they name the supports whose sizes FedGradMP's work counts.
NOT_SMOOTH = {"figures/tiny/fedgradmp/fig9.csv": ["work"]}


def changed(ours: Path, theirs: Path, names: Iterable[str]) -> list[str]:
    """Files that are not the same in two folders, to the byte."""
    return [name for name in names if (ours / name).read_bytes() != (theirs / name).read_bytes()]


PAPERS = ("fedht", "qshed")
# Of the other papers: what is drawn, and the runs behind it, without claims and errata.
OTHERS = [f"figures/tiny/{name}.csv" for name in ("fedgradmp/fig9", "fedmm/remark1", "fedplt/fig2")]
FEWER = ("--config", *(f"{name}={{together: true}}" for name in (*PAPERS, "fedgradmp", "fedmm", "fedplt")))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Another copy, in which papers were asked for by name, on one core and in other jobs; and its output."""
    again = copy_repository(tmp_path_factory.mktemp("alone"), stubs={})
    plant(again.folder)
    done = again.snakemake(*PAPERS, "--cores", "1", *TINY[3:], *FEWER)
    assert done.status == 0, done.text
    return again, done


def test_other_folders_numbers_of_cores_and_jobs_change_no_byte(killed, alone, tmp_path):
    again, done = alone
    others = copy_repository(tmp_path, stubs={})
    drawn = others.snakemake(*OTHERS, "--cores", "1", *TINY[3:], *FEWER)
    assert drawn.status == 0, drawn.text
    assert "fedht: make figures and tables of runs" in done.text
    assert "fedht: run fedht on simulation1, simulation2, planted" in done.text
    assert "fedplt: run fedplt on penalty, " in drawn.text
    with (killed.folder / MANIFEST).open(newline="") as file:
        listed = [row["file"] for row in csv.DictReader(file) if row["file"]]
    names = {name for name in listed if name not in {f"results/tiny/{end}" for end in CLOSING}}
    unjudged = {name for name in names if re.search(r"/(fedgradmp|fedmm|fedplt)/", name)}
    whole, unjudged = names - unjudged, {name for name in unjudged if not re.search("claims|errata", name)}
    assert len(whole) > 20 and len(unjudged) > 12
    assert {name.rpartition(".")[2] for name in whole} >= {"csv", "png", "pdf", "parquet", "npz", "json"}
    assert {name.rpartition(".")[2] for name in unjudged} >= {"csv", "md", "tex", "png", "pdf", "parquet"}
    assert {name.split("/")[2] for name in whole if name.endswith("/claims.csv")} == {*PAPERS}
    assert (
        changed(killed.folder, again.folder, whole) == changed(killed.folder, others.folder, unjudged) == []
    )


def test_papers_made_by_their_names_end_as_all_does_and_are_the_same_run(killed, alone):
    again, done = alone
    *_, score, last = done.text.strip().splitlines()
    assert re.fullmatch(r"\d+ (other )?statements: \d+ reproduced [(,].*", score)
    pages = [f"results/tiny/{paper}/report.html" for paper in PAPERS]
    assert last.endswith("; ".join(f"report: {page}" for page in pages))
    assert all("One paper alone." in (again.folder / page).read_text() for page in pages)
    (file,) = again.folder.glob("results/tiny/qshed/example/*.parquet")
    assert len(read_history(file)[1]["data"]["content_sha256"]) == 64
    found = compared.compare(*(opened.open_run(folder.folder) for folder in (killed, again)))
    assert {one.outcome for one in found} == {compared.IDENTICAL}
    assert {one.kind for one in found} == {"history", "tuned", "table", "claim", "statement"}
    for name, says in {
        "archive run.zip": r"^run.zip: \d+ files",
        "make qshed": r"^results/tiny/qshed/report.html\n\d+ main claims: ",
    }.items():
        said = say(again.folder, f"replifed {name} --configfile config/tiny.yaml")
        assert re.search(says, said, re.MULTILINE), said
    said = say(again.folder, "replifed claims --configfile config/tiny.yaml")
    assert score in " ".join(said.split())
    assert "nothing moved" in say(again.folder, f"replifed diff run.zip {killed.folder}")


def test_another_folder_changes_no_byte_of_what_closes_a_run(killed, tmp_path):
    moved = Copy(tmp_path / "moved")
    shutil.copytree(killed.folder, moved.folder)
    names = [f"results/tiny/{name}" for name in CLOSING]
    done = moved.snakemake(*names, "--force", "--cores", "1", *TINY[3:])
    assert done.status == 0, done.text
    assert done.jobs == {"collect the claims of all papers", "write the report"}
    assert changed(killed.folder, moved.folder, names) == []
    pages = [*(moved.folder / "results/tiny").glob("report*.*")]
    assert {file.name for file in pages} >= {"report.html", "report_curves.js"}
    assert sum(file.stat().st_size for file in pages) < 2_000_000, "with its scripts it opens at once"


@pytest.mark.on_demand  # all kernels are compiled once more: minutes
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has an older processor to emulate")
def test_another_processor_changes_rounding_alone(killed, tmp_path):
    again = copy_repository(tmp_path, stubs={})
    done = again.snakemake(*TINY, env=OTHER_PROCESSOR, python=sys.executable)
    assert done.status == 0, done.text
    compared = 0
    for path in sorted(killed.folder.glob("figures/tiny/*/*.csv")):
        name = path.relative_to(killed.folder)
        ours, theirs = (pd.read_csv(folder / name) for folder in (killed.folder, again.folder))
        assert list(ours.columns) == list(theirs.columns)
        for column in ours.select_dtypes("number").columns.difference(NOT_SMOOTH.get(name.as_posix(), [])):
            a, b = ours[column].to_numpy(float), theirs[column].to_numpy(float)
            # Below 1e-12 there is nothing but rounding.
            atol = max(TOLERANCES.get(name.as_posix(), 0.0) * np.abs(a).max(), 1e-12)
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=atol, err_msg=f"{name}: {column}")
            compared += a.size
    assert compared > 1000
    reference = tmp_path / "claims.csv"
    accept(killed.folder / "results/tiny/claims.csv", reference)
    number, faults = compare(again.folder / "results/tiny/claims.csv", reference)
    assert number > 10
    assert faults == []
    words = ["--file", again.folder / "results/tiny/claims.csv", "--golden", reference]
    told = subprocess.run(
        [sys.executable, "-m", "replifed", "claims", *map(str, words)], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout


# --- The commands of the README ---

README = (ROOT / "README.md").read_text()
COMMANDS = {
    line.partition(" #")[0].strip()
    for block in re.findall(r"^```\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
}
SET_UP = {"make setup && . .venv/bin/activate", "make test"}  # test_makefile.py has these
ALL = {"make", "make small", "snakemake --cores 8 all"}
# How each is called at the tiny scale, where that is not as it stands, and what it says.
SAYS = {
    "replifed claims --reference --main": ("", "reproduced   fedplt."),
    "replifed claims --reference --paper fedplt": ("", "reproduced   fedplt."),
    "replifed show fedplt/fig3 --reference": ("", "^Figure 3: "),
    "replifed claims --reference --why fedplt.table2.best": ("", "^fedplt.table2.best: "),
    "replifed make fedplt/fig3 --small": (
        f"replifed make fedplt/fig2 {TO_TINY}",
        "^figures/tiny/fedplt/fig2.pdf$",
    ),
    "replifed make fedplt.fig3.exact --cores 2": (
        f"replifed make fedplt.fig2.best --cores 2 {TO_TINY}",
        "^fedplt.fig2.best$",
    ),
    "replifed make fedplt --cores 2": (
        f"replifed make fedplt --cores 2 {TO_TINY}",
        "^results/tiny/fedplt/report.html$",
    ),
    "replifed diff": ("replifed diff results/tiny results/tiny", "nothing moved"),
    "replifed check mine.py:Mine": ("", "^Mine: 16 of 16 parts of the contract are kept"),
    "replifed compare mine.py:Mine --data a9a --against fedavg,fedlin --cores 2": (
        "replifed compare mine.py:Mine --data a9a --against fedavg,fedlin --cores 2 --small --dry-run "
        "--config papers=[cross]",
        "^compare: tune mine on a9a$",
    ),
    "replifed new paper demo --to my_papers": ("", "snakemake --cores 2 demo"),
}


def say(folder: Path, command: str) -> str:
    """What a command of the README prints in a copy, with the method that it tells to begin from."""
    fedavg = (ROOT / "src/replifed/algorithms/fedavg.py").read_text()
    (folder / "mine.py").write_text(fedavg.replace("class FedAvg", "class Mine"))
    program, *words = shlex.split(command)
    env = surroundings() | {"PYTHONPATH": str(folder / "src"), "REPLIFED_OFFLINE": "1"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    call = [warm.executable(), "-m", program, *words]
    done = subprocess.run(call, cwd=folder, env=env, text=True, **streams)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_each_command_of_the_readme_is_run():
    assert SET_UP | ALL | SAYS.keys() == COMMANDS


@pytest.mark.parametrize("command", SAYS)
def test_a_command_of_the_readme_does_what_it_says(killed, command):
    tiny, says = SAYS[command]
    assert re.search(says, said := say(killed.folder, tiny or command), re.MULTILINE), said


def recipe(command: str) -> str:
    """What a target of `make` calls, but for the environment."""
    _, *target = command.split()
    words = ["make", "--no-print-directory", "--dry-run", "CORES=2", *target]
    # These tests may have been called by make, whose options another one takes over.
    around = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    said = subprocess.run(words, cwd=ROOT, env=around, capture_output=True, text=True, check=True)
    return said.stdout.removeprefix("sh tools/environment.sh ").strip()


@pytest.mark.parametrize("command", sorted(ALL))
def test_all_as_the_readme_calls_it_is_what_these_tests_ran(command):
    called = recipe(command) if command.startswith("make") else command
    assert re.fullmatch(r"snakemake --cores \d all( --configfile config/small.yaml)?", called)
