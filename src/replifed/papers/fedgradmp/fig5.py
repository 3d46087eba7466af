"""Figure 5: all methods on a signal with many non-zeros, against rounds and against counted work."""

from __future__ import annotations

from replifed.papers.fedgradmp.comparison import comparison

table, draw = comparison("FedGradMP Figure 5: high heterogeneity, τ = 400")
