"""Figure 4: the k-means clusters of E2006-tfidf in the plane, by t-SNE."""

from replifed.papers.fedht.embedding import draw, table

__all__ = ["draw", "table"]
