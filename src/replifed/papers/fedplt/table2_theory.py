"""Table II with the parameters that each method's own paper prescribes."""

from __future__ import annotations

from typing import Any

import pandas as pd

from replifed.papers.fedplt import comparison


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Rates with theory's parameters."""
    found = comparison.collect(inputs, settings, ("theory",))
    return pd.concat([found, comparison.biased(inputs).assign(reading="natural step")], ignore_index=True)


render = comparison.render
