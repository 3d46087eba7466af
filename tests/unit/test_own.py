"""A method from a file of one's own: what it must have, what it is told, and how it is checked."""

import ast
import os
import re
from inspect import getdoc, getsource
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from replifed import cli
from replifed.algorithms.base import Method
from replifed.algorithms.own import load
from replifed.algorithms.registry import class_of
from replifed.contract import check_process, first_error
from replifed.contract.checks import Case
from replifed.errors import ConfigError
from replifed.problems import base
from replifed.problems.base import Smooth

ROOT = Path(__file__).parents[2]

METHOD = """
from dataclasses import dataclass
from replifed.algorithms.base import ServerModel
from replifed.algorithms.cohort import Cohort


@dataclass
class Mine:
    step: float = 0.05

    def round(self, state, problem, ctx):
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, clients=cohort.index)
        return ServerModel(local.mean(local.start - self.step * local.gradient(local.start, None))), COST
"""
CHARGED = METHOD.replace("COST", "cohort.cost(1, None)")


def written(folder, text):
    file = folder / "mine.py"
    file.write_text(text)
    return f"{file}:Mine"


def test_settings_and_a_round_are_enough(tmp_path):
    cls = load(written(tmp_path, CHARGED))
    assert cls.needs[0] is Smooth and cls.partial_participation
    assert cls.example().step == 0.05 and not cls.example().stochastic
    annotated = CHARGED.replace("float = 0.05", "Annotated[float, POSITIVE]").replace(
        "import ServerModel", "import POSITIVE, ServerModel\nfrom typing import Annotated"
    )
    (tmp_path / "more").mkdir()
    cls = load(written(tmp_path / "more", annotated))
    assert cls.example().step == 0.05
    with pytest.raises(ConfigError, match=r"Mine\.step = nan: must be a number in"):
        cls(step=np.nan)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(:\n", "mine.py:1: SyntaxError"),
        ("import nothing_of_this_name\n", "mine.py:1: ModuleNotFoundError: No module named"),
        ("x = 1\ny = 1 / 0\n", "mine.py:2: ZeroDivisionError"),
        ("class Yours:\n    pass\n", r"unknown class 'Mine' \(known: Yours\)"),
        ("class Mine:\n    pass\n", "mine.py:1: Mine is no dataclass; a method is a dataclass of"),
        (METHOD.replace("def round", "def step_once"), "mine.py:7: Mine has no round"),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_one_line(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says) as refusal:
        load(written(tmp_path, text))
    assert "\n" not in str(refusal.value)


def test_a_source_must_be_a_file_and_a_class():
    for source, says in {"mine.py": "write FILE.py:CLASS", "nowhere.py:Mine": "does not exist"}.items():
        with pytest.raises(ConfigError, match=says):
            class_of(source)


@pytest.mark.parametrize(
    ("cost", "status", "says"),
    [
        ("cohort.cost(1, None)", 1, "FAIL Values that are not numbers"),  # its step has no range
        ("cohort.cost(1, None)._replace(bits_up=0)", 1, "FAIL The server learns"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero (line 14)"),
    ],
)
def test_check_prints_what_is_kept_and_what_is_not(tmp_path, capsys, cost, status, says):
    assert cli.main(["check", written(tmp_path, METHOD.replace("COST", cost))]) == status
    said = capsys.readouterr().out
    assert says in said and said.splitlines()[-1].startswith("Mine: ")
    assert said.count("ZeroDivisionError") == ("1 / 0" in cost)  # what breaks every part is said once


@pytest.mark.parametrize(("shaped", "status"), [("per_run(self.step, x)", 0), ("self.step", 1)])
def test_the_tutorials_method_takes_a_step_a_run_as_a_search_gives_it(shaped, status, tmp_path, capsys):
    text = ROOT.joinpath("docs/tutorials/mine.py").read_text()
    file = tmp_path / "mine.py"
    file.write_text(text.replace("per_run(self.step, x)", shaped))
    assert cli.main(["check", f"{file}:FedExP"]) == status, capsys.readouterr().out


def test_check_knows_the_methods_of_the_package(capsys):
    assert cli.main(["check", "fedavg"]) == 0
    assert "FedAvg: 17 of 17 parts of the contract are kept" in capsys.readouterr().out
    assert cli.main(["check", "fedavgg"]) == 2


LEAVES = [
    ("import sys\nsys.exit(0)\n", "mine.py:2: importing it ends or forks the process: SystemExit(0)"),
    ("import os\nos._exit(0)\n", "mine.py:2: importing it ends or forks the process: os._exit"),
    ("class Own(BaseException): pass\nraise Own\n", "mine.py:2: importing it ends or forks .*Own"),
    (
        CHARGED.replace("return", "raise SystemExit(0)\n        return"),
        "^[^ ]*mine.py:14: round ends or forks",
    ),
    (
        CHARGED + "\n    @classmethod\n    def example(cls):\n        raise SystemExit(0)\n",
        "^[^ ]*mine.py:18: example ends",
    ),
    (CHARGED.replace("return", "import os; os.fork()\n        return"), "round ends or forks .*os.fork"),
]


@pytest.mark.parametrize(("text", "says"), LEAVES)
def test_a_file_may_not_end_or_fork_the_process(tmp_path, text, says):
    assert re.search(says.replace("(0)", r"\(0\)"), first_error(written(tmp_path, text)))


def everything():
    return np.random.get_state(legacy=True)[1].tolist(), np.geterr(), Path.cwd(), dict(os.environ)  # noqa: NPY002


def test_what_a_file_sets_for_all_is_set_back_and_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = everything()
    sets = "\nimport os, numpy as np\nnp.random.seed(3)\nnp.seterr(over='ignore')\n"
    acts = "os.chdir('/'); os.environ['REPLIFED_PLANTED'] = '1'\n        return"
    case = Case(load(written(tmp_path, sets + CHARGED.replace("return", acts))), "dense")
    case.run(2)
    assert everything() == before
    said = capsys.readouterr().err.splitlines()
    for named in (
        "importing it changes np.random",
        "importing it changes np.seterr",
        "round changes the work",
    ):
        assert len([line for line in said if named in line]) == 1
    with pytest.raises(AssertionError, match=r"it changes the working folder, the environment, np\.random"):
        check_process(case)


def test_what_a_methods_file_uses_is_on_the_page_of_the_api():
    page = (ROOT / "docs/api.md").read_text()
    used = ("ServerModel", "Round", "per_run", "Range", "POSITIVE", "NONNEGATIVE", "COUNT", "Cohort", "Cost")
    for name in used:
        assert re.search(rf"\.\. auto\w+:: replifed\.[\w.]+\.{name}\n", page), name
    # Sphinx prints an attribute of a class whose docstring stands below it.
    [body] = [one.body for one in ast.parse(getsource(base)).body if getattr(one, "name", "") == "Problem"]
    lines = [(one, below) for one, below in pairwise(body) if isinstance(one, ast.AnnAssign)]
    said = {one.target.id for one, below in lines if isinstance(below, ast.Expr)}
    assert said == set(base.Problem.__annotations__) == {"n_clients", "dim", "dtype", "sizes", "weights"}
    for name in ("needs", "partial_participation", "tuned", "label", "weighted"):
        assert f"\n{name} : " in getdoc(Method)
