"""The numbers that the paper prints."""

from __future__ import annotations

COLUMNS = (("gradient", "all"), ("gradient", "half"), ("accelerated", "all"), ("accelerated", "half"))
"""Columns of Table II: local solver, and whether all agents or half of them take part."""

TABLE2: dict[str, tuple[float | None, ...]] = {
    "fedplt": (0.531, 0.761, 0.560, 0.778),
    "fedpd": (0.756, None, 0.740, None),
    "fedlin": (0.546, None, 0.774, None),
    "tamuna": (0.905, 0.960, 0.901, 0.958),
    "led": (0.762, None, 0.777, None),
    "fivegcs": (0.789, 0.897, 0.789, 0.894),
}

TABLE3 = (0.955, 0.907, 0.862, 0.815, 0.764, 0.719, 0.666, 0.617, 0.569, 0.531)
"""Rates with 1 to 10 active agents."""

TABLE4 = {
    1e-6: 0.1357,
    1e-5: 0.1359,
    1e-4: 0.1380,
    1e-3: 0.1569,
    1e-2: 0.2957,
    1e-1: 0.8478,
    1.0: 2.7529,
    10.0: 9.8387,
}
"""Asymptotic error for each level of noise."""

STORED = {
    "fedplt": (2, 1),
    "fedpd": (2, 1),
    "fedlin": (2, 1),
    "tamuna": (2, 1),
    "led": (2, 1),
    "fivegcs": (1, 3),
}
"""Variables that Table I has agents and coordinator store: (a, b) for a N + b."""

BEST_RHO = 0.3
BEST_EPOCHS = 10
"""Where Figures 2 and 3 have their minima."""
