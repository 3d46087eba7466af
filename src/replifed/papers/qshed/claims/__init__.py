"""The paper's checkable sentences (Dal Fabbro et al. 2023), one module per part, in its order.

Savings are 1 - T_Q/T for the rounds T to a relative cost of 1e-4, 1e-6 and 1e-8, seed by seed. With a line
search no cost rises, so that a run may end once it is there. What the paper leaves open stands in `axes`.
Tolerances were fixed before the runs, least effects and some measures were not: what changed since, and why,
is in `tests/golden`.
"""

from replifed.papers.qshed.claims import contributions, theory, experiments  # isort: skip
from replifed.papers.qshed.axes import CLAIM

__all__ = ["CLAIMS", "SENTENCES", "contributions", "experiments", "theory"]

CLAIMS = CLAIM.all()
SENTENCES = CLAIM.sentences
