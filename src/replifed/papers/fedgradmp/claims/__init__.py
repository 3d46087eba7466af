"""The paper's checkable statements (Jeong, Needell, Qin 2023), one module per part, in its order.

Figures 3 to 5 put FedGradMP with exact sub-problems (as Algorithm 1 has it; Figure 5 with gradient descent,
as the text says) against each baseline, the weight of the 1-norm as printed. What the paper leaves open
stands in `axes`. Tolerances were fixed before any of this was run; what changed since,
and why, is in `tests/golden`.

Vocabulary: `CLAIM("figure.name", ...)` makes a claim, `DECADES` and `SHARE` one in that unit, and
`options_of(experiment)` has the printed settings on all axes that an experiment needs. `.order(text,
difference)` claims that a difference is positive, `.shape(text, condition)` that a condition is true.
"""

from replifed.papers.fedgradmp.claims import contributions, theory, experiments  # isort: skip
from replifed.papers.fedgradmp.axes import CLAIM

__all__ = ["CLAIMS", "SENTENCES", "contributions", "experiments", "theory"]

CLAIMS = CLAIM.all()
SENTENCES = CLAIM.sentences
