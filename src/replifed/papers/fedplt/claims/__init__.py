"""The paper's checkable statements (Bastianello, Liu and Johansson 2024).

See `experiments` for the ways to tune. The paper prints the mean of the local losses and publishes rates that
only their sum gives: every statement on its numerical section is tested in both readings. That of the mean is
nearest to the text, and the data's generator is ours there; the sum was chosen to fit, with the generator, so
that its results are consistent at best. Theory's parameters are for the worst case and the paper tunes: they
are held against TAMUNA's row alone, which they explain.
"""

from __future__ import annotations

import itertools

from replifed.papers.fedplt.claims.figures import figure2, figure3
from replifed.papers.fedplt.claims.readings import LOSSES
from replifed.papers.fedplt.claims.table2 import accelerated, fedavg, orders, partial_participation, rates
from replifed.papers.fedplt.claims.tables import table1, table3, table4
from replifed.papers.fedplt.claims.theory import privacy, theorems, variants

CLAIMS = (
    *table1(),
    *rates(),
    *orders(),
    *partial_participation(),
    *accelerated(),
    *fedavg(),
    *(
        claim
        for part, loss in itertools.product((table3, table4, figure2, figure3, variants), LOSSES)
        for claim in part(loss)
    ),
    *theorems(),
    *privacy(),
)
