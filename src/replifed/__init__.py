"""Replication of federated-optimisation papers: algorithms, problems and one engine that runs them."""

__version__ = "0.1.0"
