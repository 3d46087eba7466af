"""Table I: what the methods declare, the client step sizes they ran with, and what it cost to find these.

The steps are those on Figure 4's data; the cost is that of each experiment's search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from replifed.figures.artefact import Made, by_name
from replifed.papers.fedgradmp.paper import EXPERIMENTS, METHODS, declared
from replifed.tune import Spent

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

# Names in the table: FedHT and FedIterHT share a line.
NAMES = {**METHODS, "fediterht": "FedHT / FedIterHT"}


def _table1(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """One line a method; columns such as tuning_mild_bits say what its search used."""
    rows = []
    searched = settings["artefact"].get("tuned", {})
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            steps = sorted(set(history["step"].dropna()))
            final = history[history["round"] == history["round"].max()]["error"]
            rows.append(
                {
                    "method": method,
                    **declared(method),
                    "steps_run": " ".join(f"{step:g}" for step in steps),
                    "best_final_error": float(np.min(final)),
                    **{
                        f"tuning_{name}_{kind}": amount
                        for name in searched
                        for kind, amount in _cost(inputs, searched, name, method).items()
                    },
                }
            )
    return pd.DataFrame(rows)


def _cost(inputs: Inputs, searched: dict[str, list[str]], experiment: str, method: str) -> dict[str, float]:
    """What a method's search used; zeros where there was none."""
    tuned = inputs.tuned(experiment, method) if method in searched[experiment] else {}
    return tuned.get("cost", Spent().record())


def _render_table1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people."""

    def true(value: Any) -> bool:
        return str(value) == "True"

    def mark(value: Any, star: str = "") -> str:
        return ("✓" if true(value) else "✗") + star

    return pd.DataFrame(
        [
            {
                "Method": NAMES[row.method],
                "Dictionary sparsity": mark(row.dictionary),
                "Linear convergence to the optimal statistical bias": mark(
                    row.linear_to_bias, "*" if true(row.growing_batches) else ""
                ),
                "No client step size": mark(
                    row.no_client_step, "**" if true(row.no_step_for_least_squares) else ""
                ),
                "Unbounded dissimilarity": mark(row.unbounded_dissimilarity),
                "Client step sizes run here": str(row.steps_run) or "none",
                **{
                    f"Tuning, {EXPERIMENTS[name]}": str(
                        Spent(*(getattr(row, f"tuning_{name}_{kind}") for kind in Spent().record()))
                    )
                    for name in EXPERIMENTS
                    if f"tuning_{name}_runs" in frame
                },
            }
            for row in frame.itertuples()
        ]
    )


TABLES = by_name(
    Made(
        "table1",
        "Table I: comparison of methods",
        (
            "What each method declares of itself, and the client step sizes it ran with on Figure 4's data. "
            "* needs minibatches that grow exponentially. ** needs none for least squares. Tuning: what the "
            "searches for these steps and for those of the other comparisons used, over all of a method's "
            "variants."
        ),
        _table1,
        _render_table1,
    ),
)
