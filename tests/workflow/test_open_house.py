"""A method and a paper of one's own, from nothing but what an installation holds."""

import re

import pandas as pd
import pytest

from copies import ROOT, surroundings

METHOD = '''
"""FedProx: local steps on f_i(w) + mu / 2 |w - x|^2."""

from dataclasses import dataclass
from typing import Annotated

from replifed.algorithms.base import COUNT, NONNEGATIVE, POSITIVE, Method, ServerModel, per_run
from replifed.algorithms.cohort import Cohort


@dataclass(frozen=True, kw_only=True)
class Mine(Method):
    step: Annotated[float, POSITIVE]
    local_steps: Annotated[int, COUNT] = 5
    mu: Annotated[float, NONNEGATIVE] = 0.1

    label = "my FedProx"

    def round(self, state, problem, ctx):
        cohort = Cohort(problem, ctx)
        local = problem.local(state.x, additive=True, clients=cohort.index)
        start = w = local.start
        for batch in cohort.minibatches(self.local_steps, None):
            w = w - per_run(self.step, w) * (local.gradient(w, batch) + self.mu * (w - start))
        return ServerModel(local.mean(w)), cohort.cost(self.local_steps, None)
'''
AGAINST = ["fedavg", "fedplt"]


def test_the_wheel_lists_all_files_of_the_workflow(installed):
    for name in ("workflow", "config", "profiles"):
        there = {
            file.relative_to(ROOT) for file in (ROOT / name).rglob("*.*") if file.suffix in (".smk", ".yaml")
        }
        assert {installed.folder / file for file in there} <= set(installed.folder.rglob("*"))


def test_a_method_of_ones_own_stands_beside_built_in_ones(installed):
    assert len(METHOD.splitlines()) < 40
    (installed.folder / "mine.py").write_text(METHOD)
    words = ["compare", "mine.py:Mine", "--against", ",".join(AGAINST), "--small", "--cores", "2"]
    words += ["--data", "phishing"]
    status, said = installed.replifed(*words)
    assert status == 0 and "figures/small/compare/report.html" in said.splitlines(), said
    assert "compare: run mine" not in said  # a line of progress is all
    folder = installed.folder / "figures/small/compare"
    for name in ("fig1", "table1"):
        frame = pd.read_csv(folder / f"{name}.csv")
        assert set(frame["method"]) == {*AGAINST, "mine"} and set(frame["experiment"]) == {"phishing"}
    pairs = pd.read_csv(folder / "pairs.csv")
    of_mine = pairs[(pairs["second"] == "mine") & (pairs["used"] == "bits")]
    assert len(of_mine) == of_mine["target"].nunique() * len(AGAINST) > 0
    assert (pd.read_csv(folder / "table1.csv")["reached"] > 0).any()  # also of few rounds it says something
    for name in ("table1.md", "table1.tex", "pairs.md", "pairs.tex", "report.html"):
        assert "my FedProx" in (folder / name).read_text()
    assert b"FedProx" in (folder / "fig1.pdf").read_bytes() or (folder / "fig1.png").stat().st_size > 20_000
    # Nothing is run twice, and an edit runs its own jobs alone.
    assert not installed.jobs_of(*words, "-n")
    (installed.folder / "mine.py").write_text(
        METHOD.replace("mu: Annotated[float, NONNEGATIVE] = 0.1", "mu: Annotated[float, NONNEGATIVE] = 0.2")
    )
    again = installed.jobs_of(*words, "-n")
    assert {job for job in again if "cross" in job or "fetch" in job} == set()
    assert {"compare: tune mine on phishing", "compare: run mine on phishing"} <= again


REFUSED = [
    (["mine.py:Yours"], "unknown class 'Yours'"),
    (
        ["mine.py:Mine", "--against", "fedavgg"],
        "--against: unknown method on these problems 'fedavgg'; did you",
    ),
    (
        ["mine.py:Mine", "--data", "a9b"],
        "--data: unknown problem of the comparison 'a9b'; did you mean 'a9a'",
    ),
    (["fedavg=mine.py:Mine"], "fedavg is a built-in method; give yours another name"),
    (["broken.py:Mine"], "broken.py:19: Mine.round breaks the contract: "),
]


@pytest.mark.parametrize(("words", "says"), REFUSED)
def test_what_cannot_be_compared_is_refused_before_any_job(installed, words, says):
    (installed.folder / "mine.py").write_text(METHOD)
    broken = METHOD.replace("ServerModel(local.mean(w)),", "local.mean(w),")
    (installed.folder / "broken.py").write_text(broken)
    status, said = installed.replifed("compare", *words, "--configfile", "config/small.yaml")
    assert status in (1, 2) and says in said and "Traceback" not in said
    assert "Job stats" not in said


def test_a_paper_of_ones_own_lives_anywhere(installed):
    status, said = installed.replifed("new", "paper", "demo", "--to", "my papers")
    assert status == 0 and "snakemake --cores 2 demo --config 'paper_folders=[my papers]'" in said
    env = surroundings() | {"PYTHONPATH": str(installed.folder.parent / "site")}
    words = ["--cores", "1", "--config", "paper_folders=[my papers]", "papers=[]"]
    done = installed.snakemake("demo", *words, env=env)
    assert done.status == 0, done.text
    verdicts = pd.read_csv(installed.folder / "results/demo/claims.csv")["verdict"]
    assert list(verdicts) == ["holds"] * 4
    assert (installed.folder / "figures/demo/fig1.png").stat().st_size > 5000
    status, said = installed.replifed("new", "paper", "demo", "--to", "my papers")
    assert status == 2 and "exists already" in said
    wrong = installed.snakemake("demo", "--cores", "1", "--config", "paper_folders=[nowhere]", env=env)
    assert wrong.status == 1 and 'paper_folders: "nowhere" is not allowed' in wrong.text


def test_the_page_on_papers_leads_to_its_verdicts(installed):
    page = (ROOT / "docs/own-paper.md").read_text()
    work = type(installed)(installed.folder / "tutorial")
    for folder, *words in (
        (installed, "init", "tutorial"),
        (work, "new", "paper", "demo", "--to", "my_papers"),
    ):
        status, said = folder.replifed(*words)
        assert status == 0, said
    blocks = re.findall(r"```(?:yaml|python|markdown) (\S+)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    for file, text in blocks:
        (work.folder / file).write_text(text)
    [command] = re.findall(r"^snakemake (.*) --configfile my.yaml$", page, re.MULTILINE)
    env = surroundings() | {"PYTHONPATH": str(installed.folder.parent / "site")}
    done = work.snakemake(*command.split(), "--configfile", "my.yaml", env=env)
    assert done.status == 0, done.text
    claims = pd.read_csv(work.folder / "results/demo/claims.csv").set_index("id")
    assert claims.loc["demo.rate", "measured"] == pytest.approx(0.25, abs=1e-3)
    assert dict(claims["verdict"]) == {
        **{"demo.local_steps": "holds", "demo.local_steps.0.586": "holds"},
        **{"demo.rate": "fails", "demo.rate.0.586": "holds"},
    }
    assert (work.folder / "figures/demo/fig1.png").stat().st_size > 5000
    status, said = work.replifed("make", "demo", "--configfile", "my.yaml")
    assert status == 0 and "1 main claim: 1 reproduced" in said, said
    assert "1 other statement: 0 reproduced, 0 conditional, 1 deviates" in said
    [words] = re.findall(r"`replifed (claims --why .*?)`", page)
    status, said = work.replifed(*words.split())
    assert status == 0 and "demo.table1.rate: deviates" in said, said


OFFERED = """
import numpy as np


def drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    return X, X @ rng.normal(size=5) + 0.1 * rng.normal(size=400), np.arange(400) % 4
"""


def test_data_of_an_installed_package_are_compared_by_name(installed):
    site = installed.folder.parent / "site"
    (site / "offering.py").write_text(OFFERED)
    (site / "their_method.py").write_text(METHOD)
    offers = site / "offering-1.dist-info"
    offers.mkdir()
    (offers / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1\n")
    (offers / "entry_points.txt").write_text(
        "[replifed.datasets]\ndrawn = offering:drawn\n[replifed.methods]\ntheirs = their_method:Mine\n"
    )
    (installed.folder / "loss.yaml").write_text(
        "datasets: {drawn: {loss: least_squares, partition: given}}\n"
        "comparison: {data: [drawn], against: [fedavg, newton],\n"
        "             vary: {local_steps: [5, 2], ridge: [0.01], target: [0.1]}}\n"
    )
    files = ["--configfile", "config/small.yaml", "--configfile", "loss.yaml"]
    status, said = installed.replifed("compare", "--vary", "--cores", "2", *files)
    assert status == 0, said
    # Newton's method takes no local steps, and has run once for both numbers of them.
    assert re.search(r"^FedAvg before distributed Newton in \d of 4 ", said, re.MULTILINE), said
    assert "local steps are not varied of newton, which takes none" in said
    assert len(pd.read_csv(installed.folder / "figures/small/compare/vary.csv")) == 4
    assert not (installed.folder / "results/small/compare/drawn_2_steps/newton.parquet").exists()
    assert (installed.folder / "results/small/compare/drawn/newton.parquet").is_file()
    frame = pd.read_csv(installed.folder / "figures/small/compare/fig1.csv")
    assert set(frame["experiment"]) == {"drawn"} and set(frame["method"]) == {"fedavg", "newton"}
    # Least squares: Newton's first step ends at the minimiser, but for the floats that it sends.
    newton = frame[frame["method"] == "newton"].set_index("round")["median"]
    assert newton[1] < 1e-9
    assert "drawn" in installed.replifed("list", "datasets")[1]
    # A method that a package offers joins by its name, and what it makes is the comparison's own.
    words = ["compare", "--dry-run", "--data", "a9a,mushrooms", "--against", "fedavg,theirs"]
    jobs = installed.jobs_of(*words, *files[:2])
    for name in ("a9a", "mushrooms"):
        assert {f"compare: {step} theirs on {name}" for step in ("tune", "run")} <= jobs
    assert "cross: run fedavg on a9a, mushrooms" in jobs
    assert "theirs" in installed.replifed("compare", "--data", "a9a", "--against", "their", *files[:2])[1]
