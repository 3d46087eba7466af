"""The paper's checkable statements (Bastianello, Liu, Johansson 2024), one module per section, in its order.

What the numerical section leaves open stands in `axes`. Theory's parameters are for the worst
case and the paper tunes: they are an option of their own.
"""

from replifed.papers.fedplt.claims import contributions, tables, theory  # isort: skip
from replifed.papers.fedplt.claims import table2, tables34, figures  # isort: skip
from replifed.papers.fedplt.axes import CLAIM

__all__ = ["CLAIMS", "SENTENCES", "contributions", "figures", "table2", "tables", "tables34", "theory"]

CLAIMS = CLAIM.all()
SENTENCES = CLAIM.sentences
