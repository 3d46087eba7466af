"""A paper from outside the package, examples/li2020: its size, its mathematics, and its small scale."""

import ast
import re
import shutil
import sys
from importlib import import_module
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from copies import ROOT, surroundings
from replifed import parts
from replifed.problems import from_clients
from replifed.randomness import Streams
from replifed.simulate import simulate

EXAMPLE = ROOT / "examples/li2020"


@pytest.fixture(scope="module")
def paper():
    """Modules of the example, which is registered as a paper while they are imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(parts.VARIABLE, f'["{ROOT / "examples"}"]')
        names = "example", "methods", "data", "figures", "measures"
        modules = {name: import_module(f"replifed.papers.li2020.{name}") for name in names}
    yield modules.__getitem__
    for module in [name for name in sys.modules if name.startswith("replifed.papers.li2020")]:
        del sys.modules[module]


def code_lines(file):
    """Lines of a module without blank ones, comments and docstrings."""
    text, left_out = file.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            left_out |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in left_out for number, line in lines)


def test_it_takes_600_lines_and_nothing_of_other_papers():
    assert sum(map(code_lines, EXAMPLE.glob("*.py"))) <= 600
    assert "replifed.papers" not in "".join(file.read_text() for file in EXAMPLE.glob("*.py"))


def test_laws_of_the_schemes_are_their_draws(paper):
    """Means and second moments of the weights over many rounds, against enumeration."""
    sizes, K, rounds = np.array([5, 1, 3, 2]), 2, 4000
    p, N = sizes / sizes.sum(), len(sizes)
    clients = [(np.ones((n, 1)), np.ones(n)) for n in sizes]
    problem = from_clients(clients, loss="least_squares", weights=p)
    pairs, draws = list(combinations(range(N), K)), list(product(range(N), repeat=K))
    count = {one: np.bincount(one, minlength=N) for one in {*pairs, *draws}}
    exact = {
        "I": [(p[[*one]].prod(), count[one] / K) for one in draws],
        "II": [(1 / len(pairs), count[one] * p * N / K) for one in pairs],
        "original": [(1 / len(pairs), count[one] * p) for one in pairs],
    }
    for scheme, weighted in exact.items():
        law, seen = paper("methods").law(scheme, K, problem), np.zeros((rounds, N))
        for t in range(rounds):
            active, chosen, shares, rest = law(Streams(3, (1,), t), N)
            seen[t, chosen[0]] = shares[0]
            assert ((seen[t] > 0) == active[0]).all() and active.sum() <= K
            if scheme == "original":
                assert rest[0] == pytest.approx(1 - seen[t].sum())
        for power in (1, 2):
            mean = sum(chance * weights**power for chance, weights in weighted)
            spread = np.sqrt(sum(chance * weights ** (2 * power) for chance, weights in weighted) - mean**2)
            assert (abs((seen**power).mean(axis=0) - mean) <= 5 * spread / np.sqrt(rounds) + 1e-12).all()


def test_transformed_scheme_two_is_a_plain_loop(paper):
    """Local steps on N p_k F_k, ridge included, and a plain mean."""
    methods, rng, ridge, eta = paper("methods"), np.random.default_rng(2), 0.3, 0.05
    clients = [(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (4, 9, 2, 5)]
    p = np.array([len(y) for _, y in clients]) / 20
    problem = from_clients(clients, loss="least_squares", l2=ridge, weights=p)
    rule = lambda r: 1 / (1 + r)  # noqa: E731
    algorithm = methods.LocalSGD(step=eta, local_steps=3, rule=rule, tilted=True)
    law = methods.law("transformed", 2, problem)
    history = simulate(algorithm, problem, Streams(1, (1,)), 5, cohort=law)
    w = np.zeros(3)
    for r in range(5):
        ends = []
        for k in np.flatnonzero(law(Streams(1, (1,), r), 4).active[0]):
            X, y = clients[k]
            own = w
            for _ in range(3):
                own = own - eta / (1 + r) * 4 * p[k] * (X.T @ (X @ own - y) / len(y) + ridge * own)
            ends.append(own)
        w = np.mean(ends, axis=0)
    assert history.state.x[0] == pytest.approx(w, abs=1e-12)


def test_unbalanced_mnist_has_the_counts_of_the_paper(paper):
    """Training samples in all: 62,866 in the median, by the generator alone, on 70,000 labels."""
    y = np.repeat(np.arange(10), [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958])
    X = np.zeros((len(y), 1), np.uint8)
    totals = [
        sum(len(labels) for _, labels in paper("data").unbalanced(X, y, np.random.default_rng(seed)).train)
        for seed in range(5)
    ]
    assert all(62_800 <= total <= 62_930 for total in totals)


def test_measures_fail_on_data_that_contradict_them(paper):
    measures, example = paper("measures"), paper("example")
    rounds = np.arange(0, 40_001, 200)
    stays = pd.DataFrame({"scheme": "full", "replicate": 1, "round": rounds, "objective": 0.1})
    assert not measures.is_of_rate(stays, "full").values.all()
    assert measures.is_bounded(stays, "full").values.all()  # the bound is that large
    assert not measures.is_bounded(stays.assign(objective=1e9), "full").values.any()
    curve = pd.DataFrame({"local_steps": 1, "round": [0, 1], "distance": [example.R, example.R]})
    assert list(measures.is_descent(curve).values) == [True, False]
    stored = paper("figures").published("theorem4").query("step_rule == 'fix'")
    stored = stored.rename(columns={"err": "distance"})
    assert measures.is_stored("fix", stored).values.all()
    assert not measures.is_stored("fix", stored.assign(loss=stored["loss"] + 2e-11)).values.all()
    assert measures.are_devices().values.sum() == 200


@pytest.fixture(scope="module")
def made(installed):
    """A folder in which the copied example has run, from an installed package and without MNIST."""
    shutil.copytree(EXAMPLE, installed.folder / "mine/li2020")
    env = surroundings() | {"PYTHONPATH": str(installed.site)}
    small = ["--configfile", "mine/li2020/small.yaml", "--config", "paper_folders=[mine]"]

    def call(*words):
        return installed.snakemake("li2020", "--cores", "1", *small, *words, env=env)

    done = call()
    assert done.status == 0, done.text
    return installed.folder, call


def test_all_of_it_at_its_small_scale(made):
    folder, _ = made
    claims = pd.read_csv(folder / "results/small/li2020/claims.csv").set_index("id")
    verdicts = claims["verdict"]
    exact = ["values.fix", "values.decay.stored", "one", "law", "once"]
    exact = [*(f"theorem4.{name}" for name in exact), "bounds.below.full", "bounds.schemes.below.i"]
    for name in [*exact, "bounds.means", "bounds.variance", "run.devices"]:
        assert verdicts[f"li2020.{name}"] == "holds", claims.loc[f"li2020.{name}"]
    # On generated digits nothing is said of the paper.
    assert set(verdicts[[name for name in verdicts.index if "balanced" in name]]) == {"unchecked"}
    for name in ("theorem4", "bounds", "run", "fig1a", "fig1b", "fig1c", "fig1d"):
        assert (folder / f"figures/small/li2020/{name}.png").stat().st_size > 5000
    page = (folder / "results/small/li2020/report.html").read_text()
    assert "On the convergence of FedAvg" in page


def test_what_is_missing_is_said_in_one_line(made):
    folder, call = made
    done = call("paper_folders=[mine/li2020]")
    assert done.status == 1
    assert done.last_line.startswith(
        'replifed: error: paper_folders: "mine/li2020" holds no folder of a paper'
    )
    settings = folder / "mine/li2020/settings.yaml"
    before = settings.read_text()
    settings.write_text(re.sub(r'replifed: "[\d.]+"', 'replifed: "9.9"', before))
    done = call()
    settings.write_text(before)
    said = "replifed: error: li2020.replifed: the paper is written for replifed 9.9, and "
    assert done.status == 1 and done.last_line.startswith(said)
    done = call("data={policy: real, mirror: gone}")
    assert done.status == 1 and "Traceback" not in done.text
    [said] = [line for line in done.text.splitlines() if line.startswith("replifed: error: ")]
    assert "gone" in said
