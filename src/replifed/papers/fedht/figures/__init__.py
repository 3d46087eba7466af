"""Objectives by local steps, heterogeneity and method; clusters, clients, searches and theorems."""

from replifed.figures.artefact import by_name
from replifed.papers.fedht.figures.clients import CLUSTERS, PARTITIONS
from replifed.papers.fedht.figures.objectives import OBJECTIVES
from replifed.papers.fedht.figures.searches import SEARCHES
from replifed.papers.fedht.figures.theory import THEORY

FIGURES = by_name(*OBJECTIVES, *CLUSTERS, PARTITIONS, *THEORY, SEARCHES)
