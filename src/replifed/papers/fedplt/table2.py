"""Table II with tuned parameters: convergence rates of all methods."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt import comparison


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Rates with parameters tuned on other data sets, for each data set, and with an equal budget."""
    found = comparison.collect(inputs, settings, ("common", "own", "equal budget"))
    return pd.concat([found, comparison.biased(inputs).assign(reading="natural step")], ignore_index=True)


render = comparison.render
