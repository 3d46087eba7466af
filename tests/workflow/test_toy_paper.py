"""A paper more, of two files: its results, and its claims one by one."""

import subprocess

import pandas as pd
import pytest

import warm
from copies import copy_repository, surroundings

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
from replifed.figures.artefact import Grid, by_name
from replifed.figures.summaries import averages
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
        source=lambda inputs: averages(inputs.histories(), ["experiment", "method"]),
        log_bands=True,
        rows=["experiment"],
        series="method",
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A copy with the paper in which `all` has run."""
    copy = copy_repository(tmp_path_factory.mktemp("made"), stubs={}, papers=("toy",))
    (copy.folder / "config/papers/toy.yaml").write_text(SETTINGS)
    folder = copy.folder / "src/replifed/papers/toy"
    folder.mkdir()
    (folder / "__init__.py").write_text(PAPER)
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
    assert verdicts == {"toy.descends": "holds", "toy.end": "holds"}
    assert pd.read_csv(made.folder / "results/not_claimed.csv").empty
    assert (made.folder / "figures/toy/fig1.png").stat().st_size > 5000
    assert "A toy" in (made.folder / "results/report.html").read_text()


def test_one_claim_alone_is_made_by_the_command_beside_it(made):
    command = claims_of(made).loc["toy.end", "command"]
    assert command == "replifed make toy.end --cores 2"
    said = subprocess.run(
        [warm.executable(), "-m", *command.split()],
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
