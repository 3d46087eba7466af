"""Mutants as made and kept; those listed as computing the same still exist, and say why."""

import ast
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from signal import SIGKILL, SIGSEGV, SIGTERM
from subprocess import CompletedProcess

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/replifed"
SOURCE = "def f(x, y):\n    return x - y\n"


@pytest.fixture(scope="module")
def program():
    """tests/mutants.py."""
    spec = spec_from_file_location("mutants", TESTS / "mutants.py")
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def test_every_equivalent_mutant_exists_and_has_a_reason(program):
    listed = program.equivalents()
    assert listed
    for (module, *change), reason in listed.items():
        path = module.replace(".", "/") if "." in module else f"algorithms/{module}"
        source = (PACKAGE / f"{path}.py").read_text(encoding="utf-8")
        made = [[one.code, one.was, one.now] for one in program.mutants(source)]
        assert change in made
        assert reason


def test_a_source_has_the_mutants_that_its_expressions_ask_for(program):
    found = program.mutants("def f(x, y):\n    return (x - y) + g(x, y) + (x - y)\n")
    changes = [(one.was, one.now) for one in found]
    assert changes.count(("x - y", "y - x")) == 2
    assert ("g(x, y)", "x") in changes
    assert ("g(x, y)", "g(y, x)") in changes
    assert not program.mutants("def f(x):\n    return g(x, x) if x else x\n")[1:]
    assert not program.mutants("def f(*x):\n    raise ValueError(f'{x[1]} is wrong')\n")
    assert len({one.source for one in found}) == len(found)


def test_a_mutant_is_its_source_but_for_the_change(program):
    source = "def f(α):\n    β = 2 * α; β -= 1\n    return β\n"
    for one in program.mutants(source):
        changed = ast.unparse(ast.parse(one.source))
        assert one.was in source
        assert changed == ast.unparse(ast.parse(source)).replace(one.was, one.now, 1)


def test_no_module_with_formulas_is_left_out(program):
    every = program.parts()
    formulas = {
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removeprefix("algorithms.")
        for folder in ("algorithms", "wire/forms", "claims", "engine")
        for file in (PACKAGE / folder).glob("[!_]*.py")
        if program.mutants(file.read_text("utf-8"))
    }
    assert formulas - {"guarded", "looks", "own", "registry"} == {part.key()[1] for part in every}
    named = {name for part in every for name in part.names.split()}
    assert {name for name in named if "." not in name} == {*program.METHODS, *program.SHARED}
    assert {name for name in named if "." in name} == {
        name.removeprefix("wire.") for name in formulas if "." in name
    }
    first = {part.names: Path(part.tests[0]).stem for part in every}
    assert first["fedplt"] == "test_fedplt_methods"
    assert first["fednl"] == "test_qshed_methods"
    assert first["hard_thresholding"] == "test_algorithms"


@pytest.fixture
def play(program, monkeypatch, tmp_path):
    """Run the program on `SOURCE`; the mutants that it tries, and how it ends."""
    record = tmp_path / "record.csv"
    monkeypatch.setattr(program, "must_pass", lambda asked: None)

    def play(*words, source=SOURCE, catches=("x + y", "x", "y - x"), until=None):
        tried = []

        def caught_by(part, mutant):
            if mutant.now == until:
                raise KeyboardInterrupt
            tried.append(mutant.now)
            return "test_f" if mutant.now in catches else ""

        monkeypatch.setattr(program, "parts", lambda: [program.Part("a b", "some.f", source, [])])
        monkeypatch.setattr(program, "caught_by", caught_by)
        try:
            return tried, program.main([*words, "--record", str(record)])
        except KeyboardInterrupt:
            return tried, None

    play.record = record
    return play


def test_a_record_goes_on_where_it_was_ended(play, program):
    assert play(until="y - x") == (["x + y", "x"], None)
    assert play(catches=["x + y", "x"]) == (["y - x"], 1)
    assert play() == ([], 1)
    assert play("--survivors") == (["y - x"], 0)
    whole = play.record.read_bytes()
    assert whole.decode().splitlines()[0] == "name,module,source,line,column,code,was,now,caught_by"
    assert play("--jobs", "2", source=SOURCE + "\n")[0] != []  # it has changed
    assert len(program.read(play.record)) == 3
    assert play()[1] == 0
    assert play.record.read_bytes() == whole


def test_a_share_must_not_fall(play, tmp_path, capsys):
    before = tmp_path / "before.csv"
    play(catches=["x + y", "x"])
    play.record.rename(before)
    assert play("--against", str(before), catches=["x", "y - x"])[1] == 0
    play.record.unlink()
    capsys.readouterr()
    assert play("--against", str(before), catches=["x"])[1] == 1
    assert "| b | 3 | 1 | 33% | 67% **worse now** |" in capsys.readouterr().out


def test_tests_run_on_the_mutant_in_place_of_its_module(program, tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text(
        "import numpy as np\n"
        "from replifed.operators.proximal import soft_threshold\n\n"
        "def test_it():\n    assert soft_threshold(np.ones(1), 1) == 0\n"
    )
    assert not program.failing([str(test)], str(tmp_path))
    (tmp_path / "replifed.operators.proximal.py").write_text("def soft_threshold(x, t):\n    return x\n")
    assert program.failing([str(test)], str(tmp_path)).endswith("test_it.py::test_it")


def test_what_ends_the_tests_from_outside_catches_nothing(program, monkeypatch):
    def ends(code, output=""):
        done = CompletedProcess([], code, output, "")
        monkeypatch.setattr(program.subprocess, "run", lambda *_, **__: done)
        return program.failing(["/a/test_it.py"], "")

    assert (
        ends(1, "FAILED tests/unit/test_it.py::test_it[a b] - assert 1 == 2\n") == "test_it.py::test_it[a b]"
    )
    assert ends(-SIGSEGV) == "test_it.py: SIGSEGV"
    for code in (2, -SIGTERM, -SIGKILL):  # pytest says 2 when a key ends it
        with pytest.raises(ChildProcessError, match=f"ended with {code}"):
            ends(code)
