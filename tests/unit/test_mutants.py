"""The list of mutants that compute the same: each is still one of its module's, and says why."""

import csv
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from replifed.algorithms.registry import METHODS

TESTS = Path(__file__).parents[1]


def test_every_equivalent_mutant_exists_and_has_a_reason():
    spec = spec_from_file_location("mutants", TESTS / "mutants.py")
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    with (TESTS / "mutants_equivalent.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            module = METHODS[row["method"]].partition(":")[0].replace(".", "/")
            source = (TESTS.parent / "src" / f"{module}.py").read_text(encoding="utf-8")
            made = {(one.code, one.was, one.now) for one in program.mutants(source)}
            assert (row["code"], row["was"], row["now"]) in made
            assert row["reason"]
