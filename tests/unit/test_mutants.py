"""Mutants as made; those listed as computing the same still exist, and say why."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


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
        source = (TESTS.parent / f"src/replifed/algorithms/{module}.py").read_text(encoding="utf-8")
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
    assert len({one.source for one in found}) == len(found)
