"""What columns of logs usually mean, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Usual names of columns, in small letters with one _ between words; the first ones first.
USUAL = {
    "method": ("method", "algorithm", "algo", "solver_name", "solver", "optimizer", "strategy"),
    "seed": (
        *("seed", "random_seed", "random_state", "replicate", "idx_rep", "repetition", "repeat", "rep"),
        *("trial", "run", "run_id", "fold"),
    ),
    "round": (
        *("round", "rounds", "global_round", "server_round", "current_round", "round_number", "round_num"),
        *(
            "round_idx",
            "round_id",
            "communication_round",
            "communication_rounds",
            "comm_round",
            "comm_rounds",
        ),
        *(
            "com_round",
            "global_rounds",
            "stop_val",
            "iteration",
            "iterations",
            "iter",
            "iters",
            "global_iter",
        ),
        *("global_step", "step", "steps", "global_epoch", "epoch", "epochs", "t", "line"),
    ),
    "bits": ("bits", "bits_total", "total_bits", "communicated_bits"),
    "client": ("client", "client_id", "cid", "clients", "partition_id", "user", "user_id", "id"),
    "weight": (
        *("weight", "num_samples", "n_samples", "samples", "num_examples", "n_examples", "examples"),
        *("data_size", "sample_size", "size", "n"),
    ),
}
LINE = "line"  # the column of numbers of lines, from 0, where a file has an order and no rounds
VALUE = "value"  # the column of numbers whose name no file says
FILE = "_file"  # the column of the file of each line
ROW = "row"  # the column that tells runs apart, each of which is a row of a file


def usual(column: str) -> str:
    """Return a column's name in small letters, with one _ between words.

    >>> usual("Communication Rounds"), usual("trainer/global_step"), usual("_step")
    ('communication_rounds', 'global_step', 'step')
    """
    return re.sub(r"[^a-z0-9]+", "_", str(column).lower().rpartition("/")[2]).strip("_")


def find(meaning: str, columns: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of this meaning, the most usual first."""
    names = USUAL[meaning]
    return sorted((one for one in columns if usual(one) in names), key=lambda one: names.index(usual(one)))
