"""Figure 6 against the bits that were sent, which the paper does not show."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.digits import accuracies, draw_accuracies


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Accuracies against bits; panels by tau and by whose digits."""
    return accuracies(inputs, settings)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: a row for each tau, training writers on the left, test writers right."""
    return draw_accuracies(frame, "bits", "FedGradMP: accuracy on digits by writer against bits sent")
