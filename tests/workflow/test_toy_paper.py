"""A paper more: two files, and none of the others is touched."""

import pandas as pd

from copies import copy_repository

SETTINGS = """
toy:
  seed: 1
  experiments:
    bowl: {step: 0.1, local_steps: 3, rounds: 60, replicates: [1, 2, 3], methods: [fedavg]}
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
    CLAIM.value("end", "It ends at zero.", 0.0, last(BOWL), within=1e-3, because="single numbers"),
]
'''


def test_a_sixth_paper_is_two_files(tmp_path):
    assert len(SETTINGS.split("\n")) + len(PAPER.split("\n")) <= 80
    copy = copy_repository(tmp_path, stubs={}, papers=("toy",))
    (copy.folder / "config/papers/toy.yaml").write_text(SETTINGS)
    folder = copy.folder / "src/replifed/papers/toy"
    folder.mkdir()
    (folder / "__init__.py").write_text(PAPER)
    done = copy.snakemake("all", "--cores", "1")
    assert done.status == 0, done.text
    claims = pd.read_csv(copy.folder / "results/claims.csv").set_index("id")
    assert claims["verdict"].to_dict() == {"toy.descends": "reproduced", "toy.end": "reproduced"}
    statements = pd.read_csv(copy.folder / "results/statements.csv").set_index("statement_id")
    assert statements["status"].to_dict() == claims["verdict"].to_dict()
    assert pd.read_csv(copy.folder / "results/not_claimed.csv").empty
    assert (copy.folder / "figures/toy/fig1.png").stat().st_size > 5000
    assert "A toy" in (copy.folder / "results/report.html").read_text()
    # One claim alone, by the command that stands beside it.
    command = claims.loc["toy.end", "command"]
    assert command == "snakemake results/toy/claims/end.csv --cores 2"
    assert copy.snakemake(*command.split()[1:]).status == 0
    alone = (copy.folder / "results/toy/claims/end.csv").read_text().splitlines()
    assert alone[1:] == (copy.folder / "results/toy/claims.csv").read_text().splitlines()[2:]
    unknown = copy.snakemake("--cores", "1", "results/toy/claims/ende.csv")
    assert unknown.status == 1 and "unknown claim of toy 'ende'; did you mean 'end'" in unknown.text
    wrong = copy.snakemake(
        "all", "--cores", "1", "--config", "toy={experiments: {bowl: {methods: [nobody]}}}"
    )
    assert wrong.status == 1
    assert "nobody" in wrong.text
