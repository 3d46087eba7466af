"""The paper's checkable sentences (Dieuleveut et al. 2025), one module per part, in its order.

What the paper leaves open stands in `axes`.
"""

from dataclasses import replace

from replifed.papers.fedmm.claims import framework, aggregation, variates, transport  # isort: skip
from replifed.papers.fedmm.axes import CLAIM

__all__ = ["CLAIMS", "SENTENCES", "aggregation", "framework", "transport", "variates"]

# All seeds share MovieLens' users and clients.
CLAIMS = [
    replace(claim, shared="one split" if any("movielens" in key for key in claim.needs) else "")
    for claim in CLAIM.all()
]
SENTENCES = CLAIM.sentences
