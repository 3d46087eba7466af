"""A paper more, of two files: its results, its claims one by one, and the seeds that a pilot asks for."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from copies import copy_repository, surroundings
from replifed.claims.seeds import number_for

SETTINGS = """
toy:
  seed: 1
  experiments:
    bowl: {step: 0.1, local_steps: 3, rounds: 60, replicates: [1, 2, 3, 4, 5], methods: [fedavg]}
  artefacts:
    fig1: {kind: figure, runs: {bowl: [fedavg]}}
"""
PAPER = '''
"""FedAvg on least squares, of clients that share a solution."""

import numpy as np

from replifed.algorithms.registry import method_class
from replifed.claims.curves import curves, first, last
from replifed.claims.quantities import run as of
from replifed.claims.statements import Statements
from replifed.figures.artefact import by_name
from replifed.figures.grid import Grid
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams
from replifed.simulate import simulate

PAPER = {"name": "A toy", "citation": "", "doi": ""}



def run(method, settings, tuned, table, partition, progress=None):
    algorithm = method_class(method)(step=settings.step, local_steps=settings.local_steps)
    streams = Streams(settings.seed, tuple(settings.replicates))
    X = streams.draw("data", lambda rng: rng.standard_normal((4, 20, 5)))
    model = DenseLinearModel(X, X @ np.ones(5), LeastSquares())
    history = simulate(algorithm, model, streams, settings.rounds)
    return history.frame(method=method, replicate=settings.replicates)


FIGURES = by_name(
    Grid(
        "fig1",
        title="The bowl",
        caption="FedAvg goes down.",
        prefix="A toy",
        rows=["experiment"],
        by=("experiment", "method"),
        series="method",
        values=("objective",),
        x={"round": "communication rounds"},
        y="objective",
        log_y=True,
    )
)

CLAIM = Statements("toy", artefact="fig1")
BOWL = curves(of("bowl", "fedavg"))
CLAIMS = [
    CLAIM.order("descends", "The objective falls.", first(BOWL) - last(BOWL), least=0.1),
    CLAIM.value("end", "It ends at zero.", "0.000", last(BOWL), rival=0.1),
]
'''
# The same paper with a pilot, whose claims say how many seeds are run.
REPLICATES = "replicates: [1, 2, 3, 4, 5]"
PILOT = f"replicates: {[*range(1, 41)]}, pilot: {[*range(101, 106)]}"
CLAIMS = """
from replifed.claims.curves import curves, first
from replifed.claims.quantities import run
from replifed.claims.statements import Statements

CLAIM = Statements("piloted", artefact="fig1")
BOWL = curves(run("bowl", "fedavg"))
CLAIMS = [CLAIM.near("start", "It starts at 2.5.", 2.5, first(BOWL), within=0.25, because="a tenth")]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A copy with both papers in which `all` has run."""
    copy = copy_repository(tmp_path_factory.mktemp("made"), stubs={}, papers=("toy", "piloted"))
    for paper, settings in {"toy": SETTINGS, "piloted": SETTINGS.replace(REPLICATES, PILOT)}.items():
        (copy.folder / f"config/papers/{paper}.yaml").write_text(settings.replace("toy:", f"{paper}:"))
        folder = copy.folder / "src/replifed/papers" / paper
        folder.mkdir()
        (folder / "__init__.py").write_text(PAPER.replace('"toy"', f'"{paper}"'))
    (folder / "claims.py").write_text(CLAIMS)
    done = copy.snakemake("all", "--cores", "1")
    assert done.status == 0, done.text
    return copy


def claims_of(copy):
    return pd.read_csv(copy.folder / "results/claims.csv").set_index("id")


def test_a_paper_more_is_two_files(made):
    assert len(SETTINGS.split("\n")) + len(PAPER.split("\n")) <= 80
    verdicts = claims_of(made)["verdict"].to_dict()
    statements = pd.read_csv(made.folder / "results/statements.csv").set_index("statement_id")
    of_verdicts = {"holds": "reproduced", "fails": "deviates", "inconclusive": "inconclusive"}
    assert statements["status"].to_dict() == {name: of_verdicts[one] for name, one in verdicts.items()}
    del verdicts["piloted.start"]
    assert verdicts == {"toy.descends": "holds", "toy.end": "holds"}
    assert pd.read_csv(made.folder / "results/not_claimed.csv").empty
    assert (made.folder / "figures/toy/fig1.png").stat().st_size > 5000
    assert "A toy" in (made.folder / "results/report.html").read_text()


def test_one_claim_alone_is_made_by_the_command_beside_it(made):
    command = claims_of(made).loc["toy.end", "command"]
    assert command == "replifed make toy.end --cores 2"
    said = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=made.folder,
        env={**surroundings(), "PYTHONPATH": str(made.folder / "src")},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0
    assert "✓ holds" in said.stdout
    alone = (made.folder / "results/toy/claims/end.csv").read_text().splitlines()
    assert alone[1:] == (made.folder / "results/toy/claims.csv").read_text().splitlines()[2:]
    unknown = made.snakemake("--cores", "1", "results/toy/claims/ende.csv")
    assert unknown.status == 1 and "unknown claim of toy 'ende'; did you mean 'end'" in unknown.text


def test_an_unknown_method_is_refused(made):
    setting = "toy={experiments: {bowl: {methods: [nobody]}}}"
    wrong = made.snakemake("all", "--cores", "1", "--config", setting)
    assert wrong.status == 1
    assert "nobody" in wrong.text


def seeds_and_histories(copy):
    """How many seeds the pilot asks for, its history, and that of the runs that are reported."""
    folder = copy.folder / "results/piloted"
    histories = [pd.read_parquet(folder / name / "fedavg.parquet") for name in ("bowl_pilot", "bowl")]
    return json.loads((folder / "bowl/seeds.json").read_text()), *histories


def test_claims_get_the_seeds_that_a_pilot_says_they_need(made):
    found, pilot, reported = seeds_and_histories(made)
    assert sorted(set(pilot["replicate"])) == [*range(101, 106)]
    starts = pilot[pilot["round"] == 0]["objective"]
    wanted = number_for(starts.std(), 0.25, 5)
    assert found["asked"]["piloted.start"] == found["seeds"] == wanted
    assert 5 < wanted < 40
    assert sorted(set(reported["replicate"])) == [*range(1, wanted + 1)]
    assert claims_of(made).loc["piloted.start", "seeds"] == wanted
    assert made.snakemake("verify", "--cores", "1").status == 0
    assert not made.planned()


def test_another_tolerance_runs_what_is_reported_anew_but_not_the_pilot(made):
    claims = made.folder / "src/replifed/papers/piloted/claims.py"
    claims.write_text(CLAIMS.replace("within=0.25", "within=0.01"))
    done = made.snakemake("results/claims.csv", "--cores", "1")
    assert done.status == 0, done.text
    assert done.jobs >= {
        "piloted: count the seeds of bowl",
        "piloted: run fedavg on bowl",
        "piloted: measure the claims",
    }
    assert not any("bowl_pilot" in job for job in done.jobs), done.jobs
    found, _, reported = seeds_and_histories(made)
    assert (found["seeds"], reported["replicate"].nunique()) == (40, 40)
    assert "would need" in claims_of(made).loc["piloted.start", "note"]
