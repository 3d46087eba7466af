"""Figure 4: all methods at high heterogeneity, against rounds and against counted work."""

from __future__ import annotations

from replifed.papers.fedgradmp.comparison import comparison

table, draw = comparison("FedGradMP Figure 4: high heterogeneity, τ = 15")
