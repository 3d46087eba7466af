"""The command line: what it hands on, how it refuses, and how quickly it starts."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
import types
from importlib import import_module
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
from replifed.settings import checks as config
from replifed.store import FORMAT
from replifed.store.provenance import config_hash

ROOT = Path(__file__).parents[2]


@pytest.fixture
def calls(monkeypatch):
    """Replace what the handlers call, and return the list of calls."""
    made = []

    def recorder(name, real):
        def record(*positional, **named):
            made.append((name, positional, named))
            return {"form": "", "kind": "", "files": [], "counts": {}}

        record.__signature__ = inspect.signature(real)
        return record

    replaced = {
        "replifed.data.fetch": ["fetch"],
        "replifed.data.parse": ["parse"],
    }
    for module, names in replaced.items():
        for name in names:
            real = getattr(import_module(module), name)
            monkeypatch.setattr(f"{module}.{name}", recorder(name, real))
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda words, **_: made.append(("snakemake", words)) or types.SimpleNamespace(wait=lambda: 0),
    )
    return made


def test_run_by_hand_asks_snakemake_for_the_history(calls, capsys):
    words = ["run", "fedht", "simulation1", "fediterht", "--cores", "2", "--configfile", "config/small.yaml"]
    assert cli.main(words) == 0
    [(_, command)] = calls
    target = "results/small/fedht/simulation1/fediterht.parquet"
    snakemake = ["-m", "replifed.workflow.quietly", target, "--cores", "2"]
    assert command[1:] == [*snakemake, "--configfile", "config/small.yaml"]
    assert capsys.readouterr().out == f"{target}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "fedth", "mnist", "fedht"], "unknown paper 'fedth'; did you mean 'fedht'?"),
        (["run", "fedht", "mnits", "fedht"], "unknown experiment 'mnits'; did you mean 'mnist'?"),
        (["list", "--paper", "fedth"], "unknown paper 'fedth'"),
        (["job", "run:fedht/mnist/fedht"], "only the workflow does jobs: "),
    ],
)
def test_a_fault_of_the_user_is_one_line_and_status_2(calls, capsys, words, message):
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("replifed: error: ")
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["data", "fetch", "mnist", "--policy", "reel"], "'real'? (known: auto, real, surrogate)"),
        (["clams"], "unknown command 'clams'; did you mean 'claims'?; see `replifed --help`"),
        (["claims", "chek"], "unknown command 'chek'; did you mean 'check'?; see `replifed claims --help`"),
        (["list", "artefact"], "did you mean 'artefacts'?"),
        (["make"], "required: NAME; see `replifed make --help`"),
        (["make", "fedplt/fig3", "--smal"], "unrecognized arguments: --smal; see"),
        (["run", "fedht", "mnist", "fedht", "--cores", "two"], "two: give a whole number, at least 1"),
    ],
)
def test_a_malformed_call_is_one_line_and_status_2(capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("replifed: error: ") and error.count("\n") == 1


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
        "also in loss: sum; step: own (inferred, fitted on this statement) evidence own runs on data drawn",
        "settings fails in loss: mean; step: own (uncertain)",
        "part of inferred replaces loss: mean runs run:sim/fast run:sim/slow",
        "[0.501, 0.559] in which the published number is to lie published 0.53, rival 0.7",
        "among the 2 values of table1 in these settings",
        "verdict holds: the prediction interval contains the published number, not the rival's",
    ],
    "demo.fig3.hangs": [
        "perturbed holds with the first perturbed runs in place, with the second holds",
        "verdict inconclusive: runs depend on rounding: the difference is 1.2 times what it moves",
    ],
    "demo.fig1.deviates": [
        "since it fails in the printed settings",
        "question Is the noise's variance one?",
        "demo.stalls: fails claim No run stalls. (shape)",
    ],
    "demo.section5.time": ["demo.section5.time: untestable"],
    "demo.section6.cohorts": ["demo.section6.cohorts: no statement, its claims only inform"],
}


@pytest.mark.parametrize("name", WHY)
def test_why_says_what_decided(tmp_path, capsys, name):
    tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows())
    assert cli.main(["claims", "--file", str(tmp_path / "claims.csv"), "--why", name]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert [told for told in WHY[name] if told not in said] == []


def test_why_and_verdicts_of_unknown_names_are_refused_with_the_known_ones(tmp_path, capsys):
    tables.write(tmp_path / "claims.csv", COLUMNS, planted_paper.rows())
    words = ["claims", "--file", str(tmp_path / "claims.csv")]
    assert cli.main([*words, "--why", "demo.table1.rates"]) == 2
    assert "unknown claim or statement 'demo.table1.rates'; did you mean" in capsys.readouterr().err
    assert cli.main([*words, "--verdict", "nearly"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in ("conditional", "deviates", "fails", "holds", "untestable"))


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


@pytest.mark.parametrize("columns", [60, 100])
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
def test_answers_fit_a_screen_and_its_width(monkeypatch, capsys, words, most, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown(capsys, "--reference", *words.split()).splitlines()
    assert len(lines) <= most * (100 / columns)
    # A name is never broken.
    assert [line for line in lines if len(line) > columns and len(line.split()) > 4] == []


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
    named = {**plain, **changed}
    assert calls == [("fetch", (CATALOGUE[id_], Path("r")), named) for id_ in ids]


def test_data_parse_writes_beside_the_raw_folder(calls):
    assert cli.main(["data", "parse", "mnist", "--raw-dir", "store/raw"]) == 0
    assert cli.main(["data", "parse", "mnist", "--out", "m.npz"]) == 0
    mnist = CATALOGUE["mnist"]
    assert calls[0] == ("parse", (mnist, Path("store/raw"), Path("store/parsed/mnist.npz")), {})
    assert calls[1] == ("parse", (mnist, Path("data/raw"), Path("m.npz")), {})


def test_data_all_asks_snakemake(calls):
    assert cli.main(["data", "all", "--cores", "3"]) == 0
    assert calls[0][1][2:] == ["replifed.workflow.quietly", "data", "--cores", "3"]


@pytest.mark.parametrize("words", [["data"], ["data", "status"]])
def test_data_status_names_every_data_set(words, capsys, tmp_path):
    assert cli.main([*words, "--raw-dir", str(tmp_path)]) == 0
    assert "mnist" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("papers", ["fedht"]),
        ("methods", ["fedht", "fediterht", "distributed_iht", "fedavg"]),
        ("datasets", ["mnist", "rcv1_binary"]),
        ("artefacts", ["figures/fedht/fig1.pdf", "figures/fedht/table2.md", "table1 is not computed"]),
    ],
)
def test_list(what, expected, capsys):
    assert cli.main(["list", what]) == 0
    out = capsys.readouterr().out
    for name in expected:
        assert name in out


@pytest.mark.parametrize(
    ("raised", "status", "text"),
    [
        (DataError("first\nsecond"), 2, "replifed: error: first\n  second\n"),
        (KeyboardInterrupt(), 130, "replifed: interrupted; give the same command again to go on\n"),
    ],
)
def test_how_errors_end(monkeypatch, capsys, raised, status, text):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("replifed.data.parse.parse", fail)
    assert cli.main(["data", "parse", "mnist", "--raw-dir", "r"]) == status
    assert capsys.readouterr().err == text


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("replifed.data.parse.parse", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["data", "parse", "mnist", "--raw-dir", "r"])


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


def test_the_first_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert "examples:" in out
    for words in COMMANDS:
        assert words[0] in out


def test_the_command_line_imports_nothing_heavy():
    code = "import sys, replifed.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pandas", "yaml", "pydantic", "snakemake", "matplotlib", "sklearn", "requests"}
    assert not heavy & set(done.stdout.split())


def test_python_m_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "replifed", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("replifed ")


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


def without(*keys):
    """A change that takes an entry out of a searched outcome, with a hash that fits."""

    def change(found):
        del found["meta"]["content_hash"]
        inner = found
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        found["meta"]["content_hash"] = config_hash(found)

    return change


DAMAGED = {
    "truncated": ('{"levels": {', "not a sound JSON file"),
    "empty": ("", "not a sound JSON file"),
    "not a number": (
        lambda found: found["levels"][""].update(step=float("nan")),
        "not the outcome of a step-size search",
    ),
    "foreign": ('{"a": 1}', "lacks 'method'"),
    "a list": ("[]", "not the outcome of a step-size search"),
    "no provenance": ('{"method": "fedavg", "meta": []}', "not the outcome of a step-size search"),
    "too large a number": (
        '{"method": "fedavg", "step": 1e999, '
        f'"meta": {{"format": {FORMAT}, '
        '"settings": {}, "data": {"kind": "", "stamp": ""}, "content_hash": ""}}',
        "not the outcome of a step-size search",
    ),
    "no levels": (without("levels"), "lacks 'levels'"),
    "no step": (without("levels", "", "step"), "lacks 'step'"),
    "another shape": (lambda found: found.update(levels=[]), "altered since it was written"),
    "no hash": (lambda found: found["meta"].pop("content_hash"), "lacks 'content_hash'"),
    "another kind of data": (
        lambda found: found["meta"]["data"].update(kind="original"),
        "altered since it was written",
    ),
    "another step": (lambda found: found["levels"][""].update(step=1), "altered since it was written"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_search_is_named(searched, damage):
    file, run = searched
    change, message = DAMAGED[damage]
    if isinstance(change, str):
        file.write_text(change)
    else:
        found = json.loads(file.read_text())
        change(found)
        file.write_text(json.dumps(found))
    with pytest.raises(DataError) as caught:
        run()
    error = str(caught.value)
    assert error.startswith(f"{file}: ") and "\n" not in error
    assert message in error
    assert "delete it and run the workflow again" in error
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


def test_a_search_that_cannot_be_read_is_named(searched):
    file, run = searched
    file.unlink()
    with pytest.raises(DataError, match=f"cannot read {re.escape(str(file))}: No such file"):
        run()


def test_a_raw_folder_on_an_unmounted_disk_is_named(capsys, tmp_path):
    link = tmp_path / "raw"
    link.symlink_to(tmp_path / "disk")
    for policy in ("surrogate", "auto"):
        assert cli.main(["data", "fetch", "mnist", "--raw-dir", str(link), "--policy", policy]) == 2
        error = capsys.readouterr().err
        assert error.startswith("replifed: error: cannot make the folder ")
        assert f"{link} is a link to {tmp_path / 'disk'}, which is missing" in error
        assert error.count("\n") == 1


def test_an_artefact_is_made_by_its_name():
    checked = config.load([ROOT / "config/small.yaml"], root=ROOT)
    assert make.files("fedplt/fig3", checked)[0] == "figures/small/fedplt/fig3.pdf"
    assert make.files("fedplt/table2", checked)[0] == "figures/small/fedplt/table2.md"
    assert make.files("fedplt", checked) == make.files("all", checked) == []


def test_of_many_claims_on_an_artefact_the_worst_are_shown():
    verdicts = {"a": "holds", "b": "unchecked", "c": "fails", "d": "inconclusive", "e": "holds", "f": "fails"}
    empty = dict.fromkeys(("measured", "published"), "")
    rows = [
        empty
        | {"id": f"p.{name}", "verdict": one, "main": "yes" * (name in "fe"), "statement": "Says. " * 30}
        for name, one in verdicts.items()
    ]
    few, many = ([*make._worst_first("p/fig1", rows, "small", " --small", every)] for every in (False, True))
    assert few[0] == "6 claims on p/fig1 at scale small: 2 fails, 1 inconclusive, 1 unchecked, 2 holds"
    assert [line.split()[2] for line in few[1:-3:2]] == ["p.f", "p.c", "p.d", "p.b", "p.e"]
    assert all(line.startswith("    Says.") and len(line) <= 104 for line in few[2:-3:2])
    assert few[-3] == "... and 1 more, which --all prints" and few[-2].endswith("`replifed make p.f --small`")
    assert [line.split()[2] for line in many[1:-2:2]][-1] == "p.a" and len(many) == 1 + 2 * 6 + 2
