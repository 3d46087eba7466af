"""Figure 5: the k-means clusters of RCV1 in the plane, by t-SNE."""

from replifed.papers.fedht.embedding import draw, table

__all__ = ["draw", "table"]
