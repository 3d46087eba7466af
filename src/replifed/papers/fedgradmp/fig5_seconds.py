"""Figure 5 by processor time, as measured where it was made: not the same twice."""

from __future__ import annotations

from replifed.papers.fedgradmp.comparison import seconds

table, draw = seconds("FedGradMP Figure 5: by processor time")
