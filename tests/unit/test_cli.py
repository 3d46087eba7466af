"""The command line: what it hands on, how it refuses, and how quickly it starts."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest

import planted_paper
from replifed import cli
from replifed.claims import files, scores, tables
from replifed.claims.verdicts import COLUMNS
from replifed.cli import make
from replifed.data.catalogue import CATALOGUE
from replifed.errors import DataError
from replifed.papers import jobs
from replifed.papers.inputs import Inputs
from replifed.store import FORMAT
from replifed.store.provenance import config_hash

ROOT = Path(__file__).parents[2]


@pytest.fixture
def calls(monkeypatch):
    """Replace what the handlers call, and return the list of calls."""
    made = []
    for name in ("fetch", "parse"):

        def record(*positional, name=name, **named):
            made.append((name, positional, named))
            return {"form": "", "kind": "", "files": [], "counts": {}}

        monkeypatch.setattr(f"replifed.data.{name}.{name}", record)
    ended = types.SimpleNamespace(wait=lambda: 0)
    monkeypatch.setattr(subprocess, "Popen", lambda words, **_: made.append(("snakemake", words)) or ended)
    return made


REFUSED = [
    ("run fedth mnist fedht", "unknown paper 'fedth'; did you mean 'fedht'?"),
    ("run fedht mnits fedht", "unknown experiment 'mnits'; did you mean 'mnist'?"),
    ("run fedht mnist fedht --cores two", "two: give a whole number, at least 1"),
    ("list --paper fedth", "unknown paper 'fedth'"),
    ("list artefact", "did you mean 'artefacts'?"),
    ("job run:fedht/mnist/fedht", "only the workflow does jobs: "),
    ("data fetch mnist --policy reel", "'real'? (known: auto, real, surrogate)"),
    ("clams", "unknown command 'clams'; did you mean 'claims'?; see `replifed --help`"),
    ("claims chek", "unknown command 'chek'; did you mean 'check'?; see `replifed claims --help`"),
    (
        "claims --file CLAIMS --why demo.table1.rates",
        "unknown claim or statement 'demo.table1.rates'; did you",
    ),
    ("claims --file CLAIMS --verdict nearly", "unknown verdict 'nearly'"),
    ("make", "required: NAME; see `replifed make --help`"),
    ("make fedplt/fig3 --smal", "unrecognized arguments: --smal; see"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_a_call_that_cannot_be_is_one_line_and_status_2(calls, capsys, tmp_path, words, message):
    if "CLAIMS" in words:
        tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows())
    words = [str(tmp_path / "claims.csv") if word == "CLAIMS" else word for word in words.split()]
    try:
        status = cli.main(words)
    except SystemExit as ended:
        status = ended.code
    error = capsys.readouterr().err
    assert status == 2 and message in error
    assert error.startswith("replifed: error: ") and error.count("\n") == 1


def test_run_by_hand_asks_snakemake_for_the_history(calls, capsys):
    words = ["run", "fedht", "simulation1", "fediterht", "--cores", "2", "--configfile", "config/small.yaml"]
    assert cli.main(words) == 0
    [(_, command)] = calls
    target = "results/small/fedht/simulation1/fediterht.parquet"
    snakemake = ["-m", "replifed.workflow.quietly", target, "--cores", "2"]
    assert command[1:] == [*snakemake, "--configfile", "config/small.yaml"]
    assert capsys.readouterr().out == f"{target}\n"


def test_changed_settings_are_named_and_what_they_make_lies_apart(calls, capsys):
    rho = "fedplt={experiments: {epochs: {rho: 0.5}}}"
    assert cli.main(["make", "fedplt/fig3", "--cores", "1", "--config", rho]) == 0
    [(_, words)] = calls
    assert re.fullmatch(r"figures/changed-[0-9a-f]{8}/fedplt/fig3.pdf", words[3])
    assert "\nfedplt.experiments.epochs.rho: 0.5 in place of 0.3\n" in capsys.readouterr().out
    assert cli.main(["make", "fedplt/fig3", "--cores", "1", "--config", "data={policy: real}"]) == 0
    assert calls[1][1][3] == "figures/fedplt/fig3.pdf"
    assert "in place of" not in capsys.readouterr().out


WHY = {
    "demo.table1.rate.sum-own": [
        "demo.table1.rate: deviates sentence Table 1, row 1, main claim Its rate is 0.53.",
        "since it fails in the printed settings; it holds in 1 of 3 other settings, not in loss: mean; "
        "step: own",
        "inferred holds with loss: sum; step: own (fitted on this statement)",
        "other fails with step: own",
        "part of inferred replaces loss: mean runs run:sim/fast run:sim/slow",
        "[0.501, 0.559] for the published number, at 95 % published 0.53, rival 0.7",
        "among the 2 values of table1 in these settings",
        "verdict holds: the prediction interval contains the published number, but not the rival's",
    ],
    "demo.fig3.hangs": [
        "perturbed holds with the first perturbed runs, holds with the second",
        "verdict inconclusive: runs are sensitive to rounding: the difference is 1.2 times the shift",
    ],
    "demo.fig1.deviates": [
        "since it fails in the printed settings",
        "question Is the noise's variance one?",
        "demo.stalls: fails claim No run stalls. (shape)",
    ],
    "demo.section5.time": ["demo.section5.time: untestable"],
    "demo.section6.cohorts": ["demo.section6.cohorts: no status, since none of its claims counts"],
}


@pytest.mark.parametrize("name", WHY)
def test_why_says_what_decided(tmp_path, capsys, name):
    tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows())
    assert cli.main(["claims", "--file", str(tmp_path / "claims.csv"), "--why", name]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert [told for told in WHY[name] if told not in said] == []


def shown(capsys, *words):
    assert cli.main(["claims", *words]) == 0
    return capsys.readouterr().out


def test_statements_are_listed_main_ones_first_and_claims_if_all_are_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows()[::-1])
    file = ("--file", str(tmp_path / "claims.csv"))
    statements = scores.statements(planted_paper.rows())
    main = {one["statement_id"] for one in statements if scores.is_main(one)}
    said = shown(capsys, *file, "--main")
    assert {line.split()[2] for line in said.splitlines() if line[:1] in (*"✓≈✗?–",)} == main
    said = shown(capsys, *file, "--verdict", "deviates")
    assert "demo.fig1.deviates" in said and "demo.more" not in said
    said = shown(capsys, *file, "--all")
    names = [line.split()[2] for line in said.splitlines() if line[:1] in (*"✓✗?–",)]
    assert names[17] == "demo.faster" and names[18] == "demo.cohorts"
    failing = [row["id"] for row in planted_paper.rows()[::-1] if row["verdict"] == "fails"]
    said = shown(capsys, *file, "--verdict", "fails")
    assert sorted(line.split()[2] for line in said.splitlines() if line[:1] == "✗") == sorted(failing)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("", 30),
        ("--paper fedplt", 60),
        ("--main", 70),
        ("--why fedplt.table2.best", 60),
        ("--why fedplt.fig3.zeta", 60),
    ],
)
def test_answers_fit_a_screen_and_its_width(monkeypatch, capsys, words, most):
    monkeypatch.setenv("COLUMNS", "60")
    lines = shown(capsys, "--reference", *words.split()).splitlines()
    assert len(lines) <= most * 100 / 60
    # A name is never broken.
    assert [line for line in lines if len(line) > 60 and len(line.split()) > 4] == []


def test_why_names_the_claims_that_decide_where_a_statement_and_a_claim_share_a_name(capsys):
    rows = Path(ROOT, "reference/claims.csv")
    shared = [row for row in files.read(rows) if row["id"] == row["statement_id"] and row["informs"]]
    for row in shared:
        said = shown(capsys, "--reference", "--why", row["id"])
        group = [one for one in files.read(rows) if one["statement_id"] == row["id"] and not one["informs"]]
        if group:
            assert f"{row['id']}: {row['verdict']}" not in said
            assert any(f"by {one['id']}:" in said for one in group)


# Those without a surrogate are fetched where they are named.
EVERY = [name for name, one in CATALOGUE.items() if one.surrogate is not None]


@pytest.mark.parametrize(
    ("words", "ids", "changed"),
    [
        (["fetch", "mnist", "--raw-dir", "r", "--policy", "real"], ["mnist"], {"policy": "real"}),
        (["--raw-dir", "r", "--policy", "real", "fetch", "mnist"], ["mnist"], {"policy": "real"}),
        (["fetch", "mnist", "a9a", "--raw-dir", "r"], ["mnist", "a9a"], {}),
        (["--refresh", "--raw-dir", "r", "--mirror", "m"], EVERY, {"refresh": True, "mirror": Path("m")}),
        (["fetch", "mnist", "--raw-dir", "r", "--substitutes"], ["mnist"], {"substitutes": True}),
    ],
)
def test_data_fetch(calls, words, ids, changed):
    assert cli.main(["data", *words]) == 0
    plain = {} if "policy" in changed else {"policy": "auto", "mirror": None, "substitutes": False}
    assert calls == [("fetch", (CATALOGUE[id_], Path("r")), {**plain, **changed}) for id_ in ids]


def test_data_parse_and_all(calls):
    """A parsed file lies beside the raw folder, if it has no name."""
    assert cli.main(["data", "parse", "mnist", "--raw-dir", "store/raw"]) == 0
    assert cli.main(["data", "parse", "mnist", "--out", "m.npz"]) == 0
    assert cli.main(["data", "all", "--cores", "3"]) == 0
    mnist = CATALOGUE["mnist"]
    assert calls[0] == ("parse", (mnist, Path("store/raw"), Path("store/parsed/mnist.npz")), {})
    assert calls[1] == ("parse", (mnist, Path("data/raw"), Path("m.npz")), {})
    assert calls[2][1][2:] == ["replifed.workflow.quietly", "data", "--cores", "3"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("list papers", ["fedht"]),
        ("list methods", ["fedht", "fediterht", "distributed_iht", "fedavg"]),
        ("list datasets", ["mnist", "rcv1_binary"]),
        ("list artefacts", ["figures/fedht/fig1.pdf", "figures/fedht/table2.md", "table1 is not computed"]),
        ("data --raw-dir nowhere", ["mnist"]),
        ("data status --raw-dir nowhere", ["mnist"]),
    ],
)
def test_list(words, expected, capsys):
    assert cli.main(words.split()) == 0
    out = capsys.readouterr().out
    assert [name for name in expected if name not in out] == []


@pytest.mark.parametrize(
    ("raised", "status", "text"),
    [
        (DataError("first\nsecond"), 2, "replifed: error: first\n  second\n"),
        (KeyboardInterrupt(), 130, "replifed: interrupted; give the same command again to go on\n"),
        (ZeroDivisionError(), None, ""),  # a bug keeps its traceback
    ],
)
def test_how_errors_end(monkeypatch, capsys, raised, status, text):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("replifed.data.parse.parse", fail)
    words = ["data", "parse", "mnist", "--raw-dir", "r"]
    if status is None:
        with pytest.raises(ZeroDivisionError):
            cli.main(words)
    else:
        assert cli.main(words) == status and capsys.readouterr().err == text


def changing(*keys, to):
    """A change of an entry of a searched outcome; its hash fits where an entry is taken out."""

    def change(found):
        inner = found
        for key in keys[:-1]:
            inner = inner[key]
        if to is None:
            del inner[keys[-1]]
            if keys[0] != "meta":
                del found["meta"]["content_hash"]
                found["meta"]["content_hash"] = config_hash(found)
        else:
            inner[keys[-1]] = to

    return change


NONE_SUCH, ALTERED = "not the outcome of a step-size search", "altered since it was written"


TOO_LARGE = (
    f'{{"method": "fedavg", "step": 1e999, "meta": {{"format": {FORMAT}, "settings": {{}}, '
    '"data": {"kind": "", "stamp": ""}, "content_hash": ""}}'
)


def commands(parser, words=()):
    """The words of every command that has a handler."""
    if parser.get_default("handler"):
        yield list(words)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                yield from commands(part, (*words, name))


COMMANDS = list(commands(cli._parser()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([*words, "--help"])
    assert caught.value.code == 0
    assert f"example:\n  replifed {' '.join(words)}" in capsys.readouterr().out


def test_the_command_line_imports_nothing_heavy():
    code = "import sys, replifed.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pandas", "yaml", "pydantic", "snakemake", "matplotlib", "sklearn", "requests"}
    assert not heavy & set(done.stdout.split())


@pytest.fixture
def searched(monkeypatch, tmp_path):
    """A file that `tune` wrote, and the words of a run that looks up its step there."""

    class Experiments:
        @staticmethod
        def tune(method, *_):
            step = {"": {"step": 0.1 + 0.2}}
            return {"method": method, "levels": step, "trials": {"replicates": [101]}}

        @staticmethod
        def run(method, settings, choice, *_):
            return pd.DataFrame({"step": [choice["levels"][""]["step"]], "replicate": 1})

    monkeypatch.setattr(jobs, "_part", lambda paper, name: Experiments)
    monkeypatch.setattr(jobs, "typed", lambda paper, settings: settings)
    file, out = tmp_path / "fedavg.tuned.json", tmp_path / "run.parquet"
    jobs.tune("fedht", "mnist", "fedavg", {"seed": 1, "sizes": (3, 4), "tuning": {}}, None, None, file)

    def run(method="fedavg", **changed):
        settings = {"seed": 1, "sizes": [3, 4], "rounds": 9, **changed}
        settings = {key: value for key, value in settings.items() if value is not None}
        jobs.run("fedht", "mnist", method, settings, None, None, file, out)
        return pd.read_parquet(out)

    return file, run


def test_a_run_takes_the_step_that_was_tuned(searched):
    file, run = searched
    assert run()["step"].tolist() == [0.1 + 0.2]
    inputs = Inputs({"tuned:mnist/fedavg": [file]})
    assert inputs.tuned("mnist", "fedavg")["levels"] == {"": {"step": 0.1 + 0.2}}
    assert inputs.data_kind("mnist") == ("synthetic", "")


DAMAGED = [
    ('{"levels": {', "not a sound JSON file"),
    ("", "not a sound JSON file"),
    (TOO_LARGE, NONE_SUCH),
    ('{"a": 1}', "lacks 'method'"),
    ("[]", NONE_SUCH),
    ('{"method": "fedavg", "meta": []}', NONE_SUCH),
    (changing("levels", "", "step", to=float("nan")), NONE_SUCH),
    (changing("levels", to=None), "lacks 'levels'"),
    (changing("levels", "", "step", to=None), "lacks 'step'"),
    (changing("meta", "content_hash", to=None), "lacks 'content_hash'"),
    (changing("levels", to=[]), ALTERED),
    (changing("levels", "", "step", to=1), ALTERED),
    (changing("meta", "data", "kind", to="original"), ALTERED),
    (None, "No such file"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGED)
def test_a_damaged_search_is_named(searched, change, message):
    file, run = searched
    if change is None:
        file.unlink()
    elif isinstance(change, str):
        file.write_text(change)
    else:
        found = json.loads(file.read_text())
        change(found)
        file.write_text(json.dumps(found))
    with pytest.raises(DataError) as caught:
        run()
    error = str(caught.value)
    assert str(file) in error and message in error and "\n" not in error
    assert change is None or "delete it and run the workflow again" in error
    with pytest.raises(DataError, match=re.escape(str(file))):
        assert Inputs({"tuned:mnist/fedavg": [file]}).tuned("mnist", "fedavg")["levels"][""]["step"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"method": "fedht"}, "tuned for the method 'fedavg', not for 'fedht'"),
        ({"seed": 2}, "tuned with other settings than the run's (seed)"),
        ({"sizes": None}, "tuned with other settings than the run's (sizes)"),
    ],
)
def test_the_search_of_something_else_is_refused(searched, changed, message):
    file, run = searched
    with pytest.raises(DataError, match=f"^{re.escape(f'{file}: {message}')}"):
        run(**changed)


def test_a_raw_folder_on_an_unmounted_disk_is_named(capsys, tmp_path):
    link = tmp_path / "raw"
    link.symlink_to(tmp_path / "disk")
    for policy in ("surrogate", "auto"):
        assert cli.main(["data", "fetch", "mnist", "--raw-dir", str(link), "--policy", policy]) == 2
        error = capsys.readouterr().err
        assert error.startswith("replifed: error: cannot make the folder ")
        assert f"{link} is a link to {tmp_path / 'disk'}, which is missing" in error
        assert error.count("\n") == 1


def test_of_many_claims_on_an_artefact_the_worst_are_shown():
    verdicts = {"a": "holds", "b": "unchecked", "c": "fails", "d": "inconclusive", "e": "holds", "f": "fails"}
    empty = {"measured": "", "published": "", "statement": "Says. " * 30}
    rows = [
        empty | {"id": f"p.{name}", "verdict": one, "main": "yes" * (name in "fe")}
        for name, one in verdicts.items()
    ]
    few, many = ([*make._worst_first("p/fig1", rows, "small", " --small", every)] for every in (False, True))
    assert few[0] == "6 claims on p/fig1 at scale small: 2 fails, 1 inconclusive, 1 unchecked, 2 holds"
    assert [line.split()[2] for line in few[1:-3:2]] == ["p.f", "p.c", "p.d", "p.b", "p.e"]
    assert all(len(line) <= 104 for line in few[2:-3:2])
    assert few[-3] == "... and 1 more, which --all prints" and few[-2].endswith("`replifed make p.f --small`")
    assert len(many) == 1 + 2 * 6 + 2
