"""Figure 3: all methods at low heterogeneity, against rounds and against counted work."""

from __future__ import annotations

from replifed.papers.fedgradmp.comparison import comparison

table, draw = comparison("FedGradMP Figure 3: low heterogeneity, τ = 15")
