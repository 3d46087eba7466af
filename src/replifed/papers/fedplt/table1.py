"""Table I: what the methods store, send and allow."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt.footprint import footprint, formula
from replifed.papers.fedplt.published import STORED
from replifed.papers.fedplt.titles import METHODS

# Without a count of their own: what the papers of the methods prove.
ALLOWED = {
    "fedplt": ("any; (S)GD, acc. GD, noisy GD analysed", ">= 1", "strongly convex, composite"),
    "fedpd": ("(S)GD", ">= a least number", "non-convex"),
    "fedlin": ("(S)GD", ">= 1", "non-convex"),
    "tamuna": ("(S)GD", "random", "strongly convex"),
    "led": ("(S)GD", ">= 1", "non-convex"),
    "fivegcs": ("any with a descent property", ">= a least number", "strongly convex"),
}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Count on the code of each method."""
    rows = []
    for method in settings["artefact"]["runs"]["comparison"]:
        found = footprint(method)
        solvers, epochs, problems = ALLOWED[method]
        rows.append(
            {
                "method": method,
                "stored": formula(found.each, found.shared),
                "stored_published": formula(*STORED[method]),
                "up": found.up,
                "down": found.down,
                "exchanges": found.exchanges,
                "partial": "yes" if found.partial else "no",
                "solvers": solvers,
                "epochs": epochs,
                "problems": problems,
            }
        )
    return pd.DataFrame(rows)


def render(frame: pd.DataFrame) -> pd.DataFrame:
    """The table to read."""
    return pd.DataFrame(
        {
            "Algorithm": frame["method"].map(METHODS),
            "Models kept (counted)": frame["stored"],
            "Variables stored (published)": frame["stored_published"],
            "Models sent per agent and round, up / down": [
                f"{up:g} / {down:g}" for up, down in zip(frame["up"], frame["down"], strict=True)
            ],
            "Exchanges a round": frame["exchanges"].astype(str),
            "Local solvers": frame["solvers"],
            "Local epochs": frame["epochs"],
            "Partial participation": frame["partial"],
            "Problems": frame["problems"],
        }
    )
