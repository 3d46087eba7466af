"""A comparison for a paper: the best and who is tied, LaTeX, looks of curves, and what was not tuned."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from legible import faults
from replifed.algorithms.looks import method_lines
from replifed.algorithms.registry import BUILT_IN
from replifed.figures.lines import distinguished
from replifed.figures.style import save
from replifed.papers.cross import compare, latex, ranking
from replifed.papers.cross.named import problem_name
from replifed.papers.cross.ranking import BEHIND, BEST, TIED
from replifed.parts import typed
from replifed.report.artefacts import opened
from replifed.settings import cohorts, held_out, partitions

ROOT = Path(__file__).parents[2]
CROSS = yaml.safe_load((ROOT / "config/papers/cross.yaml").read_text("utf-8"))["cross"]
SETS = ["a9a", "phishing", "w8a"]


def run(rate, per_round, seeds=20, shift=0.0, rounds=40, floor=1e-12):
    """A gap that falls by a rate, a little differently for each seed, down to a floor."""
    t, rng = np.arange(rounds + 1), np.random.default_rng(5)
    runs = []
    for seed, noise in enumerate(rng.normal(size=seeds)):
        gap = np.maximum(rate ** (t * (1 + 0.03 * noise + shift)), floor)
        one = pd.DataFrame({"replicate": seed, "round": t, "gap": gap, "diverged": False})
        runs.append(one.assign(bits_up=per_round * t, bits_down=per_round * t, exchanges=t))
    costs = {"sample_gradients": 100.0, "hessians": 0.0}
    found = pd.concat(runs, ignore_index=True).assign(message_bits=10 * 32 * 50.0, samples=1000.0)
    return found.assign(**{name: cost * found["round"] for name, cost in costs.items()})


class Inputs:
    """Histories by problem and method."""

    def __init__(self, runs):
        self._runs = runs
        self.experiments = lambda: list(runs)
        self.methods = lambda experiment: list(runs[experiment])
        self.run = lambda experiment, method: runs[experiment][method].assign(method=method)
        self.tuned = lambda experiment, method: {"search": None}
        self.experiment = lambda name: typed("cross", {"seed": 1, **CROSS["experiments"]["a9a"]})

    def runs(self):
        return [(experiment, method) for experiment, of in self._runs.items() for method in of]

    def histories(self):
        for experiment, method in self.runs():
            yield self.run(experiment, method).assign(experiment=experiment)


ALIKE = {
    "fedlin": run(0.5, 2.0),
    "scaffold": run(0.5, 2.0, shift=0.001),  # by far less than a ratio of 1.05
    "fedavg": run(0.7, 2.0),
    "fedprox": run(0.99, 2.0),  # never gets there
}


def read_back(made, inputs, folder):
    made.table(inputs).to_csv(folder / "t.csv", index=False, na_rep="nan")
    texts = dict.fromkeys(getattr(made, "texts", ()), str)
    return pd.read_csv(folder / "t.csv", keep_default_na=False, na_values=["nan"], dtype=texts)


def test_the_best_is_told_from_those_that_need_more_and_not_from_those_that_do_not(tmp_path):
    inputs = Inputs({"a9a": ALIKE})
    frame = read_back(compare.TABLES["table1"], inputs, tmp_path)
    places = frame.pivot_table("place", "method", "used", aggfunc="first")
    assert set(places.loc[["fedlin", "scaffold"], "round"]) == {BEST, TIED}
    assert places.loc["fedavg", "round"] == places.loc["fedprox", "round"] == BEHIND
    best = read_back(compare.TABLES["best"], inputs, tmp_path)
    assert set(best["method"] + best["tied"]) <= {"fedlinscaffold", "scaffoldfedlin"}
    ((title, table),) = compare.TABLES["best"].show(best).items()
    assert title == "a9a, until the gap stays at 0.0001"
    assert set(table["not distinguished from it"]) <= {"FedLin", "SCAFFOLD"}


def test_a_single_seed_that_does_not_get_there_ties_nobody():
    """It gives a target that all seeds of two methods reach, which tells them from those that never do."""
    runs = {method: ALIKE[method].copy() for method in ("fedlin", "fedavg", "fedprox")}
    for method in ("fedlin", "fedavg"):
        stuck = runs[method]["replicate"] == 3
        runs[method].loc[stuck, "gap"] = runs[method]["gap"].clip(lower=3e-4)
    frame = ranking.placed(Inputs({"a9a": runs}), compare._targets)
    assert set(frame["target"]) == {5e-4}
    assert set(frame.loc[frame["method"] == "fedprox", "place"]) == {BEHIND}


def test_without_a_target_the_gaps_at_the_end_are_distinguished(tmp_path):
    slow = {"fedlin": run(0.995, 1.0), "fedavg": run(0.999, 1.0)}
    frame = read_back(compare.TABLES["best"], Inputs({"a9a": slow}), tmp_path)
    assert frame[["used", "method"]].to_numpy().tolist() == [["gap", "fedlin"]]
    text = latex.used(read_back(compare.TABLES["table1"], Inputs({"a9a": slow}), tmp_path))
    assert r"method & gap \\" in text and text.count(r"\textbf") == 1


def test_of_one_run_a_ratio_of_a_twentieth_decides(tmp_path):
    """Copies of one run have no test."""
    runs = {"fedlin": run(0.5, 2.0, seeds=1), "fedavg": run(0.7, 2.0, seeds=1)}
    copies = {
        name: pd.concat([one.assign(replicate=seed) for seed in range(3)], ignore_index=True)
        for name, one in runs.items()
    }
    best = read_back(compare.TABLES["best"], Inputs({"a9a": copies}), tmp_path)
    assert set(best["method"]) == {"fedlin"} and set(best["tied"]) == {""}


def many():
    names = CROSS["experiments"]["a9a"]["methods"][:6]
    rates = np.linspace(0.3, 0.97, len(names))
    return {one: {name: run(rate, 1e6, 6, 0.01 * k) for name, rate in zip(names, rates, strict=True)}
            for k, one in enumerate(SETS)}  # fmt: skip


def test_the_latex_says_what_it_means_and_fits_the_text(tmp_path):
    frame = read_back(compare.TABLES["table1"], Inputs(many()), tmp_path)
    text = latex.used(frame, "scale: a_b")
    tables = text.split(r"\begin{table}")[1:]
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(tables) == len(set(labels)) == 4
    for table in tables:
        caption = re.search(r"\\caption\{(.*)\}\n", table)[1]
        assert 1 <= len(re.findall(r"\.(?= [A-Z]|$)", caption)) <= 3 and r"a\_b" in caption
        assert r"\begin{tabular*}{\textwidth}" in table and r"\toprule" in table
    assert "A gap of 1e-12 is a floor" in tables[-1] and tables[0].count(r"\textbf") == len(SETS)
    alone = latex.used(frame[frame["experiment"] == "a9a"])
    assert r"method & rounds & bits & gradients & gap \\" in alone
    rows = re.findall(r"(?m)^(\w+) & (\S+) &.*& (\S+) \\\\$", alone)[1:]
    late = [float(gap) for _, rounds, gap in rows if rounds.startswith("--")]
    assert late == sorted(late) and late, "in the order of their gaps"
    named = frame[frame["experiment"] == "a9a"].assign(experiment="my_cohort_10pct_test_20pct")
    assert "needs on my, one client in ten until" in latex.used(named)
    wide = pd.concat([frame.assign(experiment=f"{one}_{k}") for one in SETS for k in range(5)])
    parts = latex.used(wide).split(r"\begin{tabular*}")
    widest = max(len(line.replace("&", "")) for part in parts for line in part.splitlines() if "&" in line)
    assert len(parts) > 5 and widest < 110
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex")
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "t.tex").write_text(f"{head}{text}{alone}{latex.used(wide)}\\end{{document}}")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Overfull" not in done.stdout


@pytest.mark.parametrize("sets", [1, 3])
def test_pictures_for_a_paper_are_a_column_or_two_wide_without_a_title(tmp_path, sets):
    inputs = Inputs({one: runs for one, runs in list(many().items())[:sets]})
    figure = compare.FIGURES["paper"]
    pages = figure.pages_of(read_back(figure, inputs, tmp_path))
    assert len(pages) == 3  # rounds, bits, gradients
    for page in pages:
        assert page.get_size_inches()[0] == pytest.approx(3.4 if sets == 1 else 6.8)
        assert not page.texts and faults(page, None) == []
    save(pages, tmp_path / "p.pdf")
    content = (tmp_path / "p.pdf").read_bytes()
    assert content.count(b"/FontFile2") == content.count(b"/Type /FontDescriptor") > 0
    whole = compare.FIGURES["fig1"].pages_of(read_back(compare.FIGURES["fig1"], inputs, tmp_path))
    assert len(whole) == (1 if sets == 1 else 3) and faults(whole[0]) == []
    assert [ax.axison for ax in whole[0].axes].count(True) == 3
    said = [text.get_text() for text in whole[0].legends[0].get_texts()]
    assert not [one for one in said if "seed" in one] and "6 seeds" in whole[0].texts[0].get_text()
    assert "stops at 1e-10 (rounding)" in said


def test_boxes_are_drawn_over_data_sets(tmp_path):
    frame = read_back(compare.FIGURES["boxes"], Inputs(many()), tmp_path)
    assert (frame["ratio"] >= 1).all() and (frame["ratio"] == 1).sum() >= 3 * len(SETS)
    assert faults(compare.FIGURES["boxes"].show(frame)) == []


def test_no_two_curves_share_colour_and_marker():
    every = method_lines(BUILT_IN)
    rng = np.random.default_rng(0)
    for _ in range(20):
        names = rng.choice(list(every), 11, replace=False)
        lines = distinguished(every, names)
        assert len({(lines[name].color, lines[name].marker) for name in names}) == 11
        for name in names:
            assert (lines[name].color, lines[name].dashes) == (every[name].color, every[name].dashes)
    every = distinguished(every, every)
    assert len({(line.color, line.marker) for line in every.values()}) == len(every)


NOT_TUNED = {
    "fedavg": "local_steps = 5",
    "fedprox": "local_steps = 5, mu = 0.1",
    "fedavgm": "local_steps = 5, momentum = 0.9",
    "fedadam_server": "step from the problem, local_steps = 5, beta_1 = 0.9, beta_2 = 0.99, tau = 0.001",
    "stranger": "",
}


@pytest.mark.parametrize("method", NOT_TUNED)
def test_what_no_search_chose_is_said(method):
    settings = typed("cross", {"seed": 1, **CROSS["experiments"]["a9a"]})
    assert compare.fixed(method, settings) == NOT_TUNED[method]


def test_captions_are_folded_after_three_sentences():
    for made in [*compare.FIGURES.values(), *compare.TABLES.values()]:
        caption, more = opened(made.caption, 3)
        assert f"{caption} {more}".strip() == made.caption
        assert len(re.findall(r"[.] (?=[A-Z])", caption)) <= 2
    assert ranking.BEST == "best"


def named(data, **requested):
    """The words for a problem, by the key that the settings of a comparison give it."""
    problem = {"dataset": data, "partition": partitions.partition("kmeans"), "tuning": {}}
    name, problem = cohorts.with_cohort(data, problem, requested)
    name, problem = held_out.with_test(name, problem, requested, {})
    return problem_name(partitions.split_anew(name, problem, requested)[0])


def test_problems_are_named_in_words_by_what_was_asked_for():
    assert named("mnist_writers", cohort="10%", test="20%") == "MNIST by writer, one client in ten"
    assert named("a9a", test="official", new_clients=2, tune_on="accuracy") == "a9a"
    split = {"partition": "dirichlet:0.3", "clients": 50, "sizes": "lognormal:0.5"}
    words = "phishing, 50 clients, Dirichlet(0.3), log-normal sizes"
    assert named("phishing", cohort=5, availability="by-size", **split) == f"{words}, 5 a round, by size"
    law = {"availability": "markov:20,5", "average": "scaled"}
    assert named("my_data", **law, partition="iid") == (
        "my_data, 10 clients, i.i.d., there at times, scaled averages"
    )
    assert named("my_data", cohort="12.5%", clients=30) == "my_data, 30 clients by k-means, 12.5 % a round"
    assert problem_name("my_own_data") == "my_own_data"
