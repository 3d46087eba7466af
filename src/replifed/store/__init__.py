"""How results lie on disk."""
