"""A parquet file that benchopt makes of a small benchmark: gradient descent with two steps on a quadratic."""

import subprocess
import sys

OBJECTIVE = """
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "quadratic"
    min_benchopt_version = "1.6"

    def set_data(self, target):
        self.target = target

    def get_one_result(self):
        return {"x": 0.0}

    def evaluate_result(self, x):
        return {"value": (x - self.target) ** 2}

    def get_objective(self):
        return {"target": self.target}
"""
DATASET = """
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "drawn"

    def get_data(self):
        return {"target": 3.0}
"""
SOLVER = """
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "NAME"
    sampling_strategy = "iteration"

    def set_objective(self, target):
        self.target = target

    def run(self, n_iter):
        self.x = 0.0
        for _ in range(n_iter):
            self.x -= STEP * (self.x - self.target)

    def get_result(self):
        return {"x": self.x}
"""


def make(folder):
    """Run the benchmark, and put its parquet file into a folder."""
    benchmark = folder.parent / "benchmark"
    files = {
        "objective.py": OBJECTIVE,
        "datasets/drawn.py": DATASET,
        "solvers/fast.py": SOLVER.replace("NAME", "fast").replace("STEP", "0.5"),
        "solvers/slow.py": SOLVER.replace("NAME", "slow").replace("STEP", "0.1"),
    }
    for name, text in files.items():
        (benchmark / name).parent.mkdir(parents=True, exist_ok=True)
        (benchmark / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "benchopt",
        "run",
        str(benchmark),
        "-n",
        "6",
        "-r",
        "2",
        "--no-plot",
        "--no-html",
    ]
    subprocess.run(command, check=True, capture_output=True)
    folder.mkdir()
    (made,) = (benchmark / "outputs").rglob("*.parquet")
    made.rename(folder / made.name)
