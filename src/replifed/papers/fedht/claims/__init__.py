"""The paper's checkable statements (Tong et al. 2022), one module per part, in its order.

What the paper leaves open stands in `axes`. Signs of five seeds' differences tell nothing at 5 %, so that
families of up to a dozen orders are told by Student's t alone, which takes differences as normal
(`claims.multiplicity`). Tolerances were fixed before any of this was run; what changed since, and why, is in
`tests/golden`.
"""

from replifed.papers.fedht.claims import contributions, methods, experiments  # isort: skip
from replifed.papers.fedht.axes import CLAIM

__all__ = ["CLAIMS", "SENTENCES", "contributions", "experiments", "methods"]

CLAIMS = CLAIM.all()
SENTENCES = CLAIM.sentences
